package openairesponses

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

var eventData = regexp.MustCompile(`(?m)^data: (.*)$`)

// A tool that the gateway runs is told of while it runs; a whole answer has
// the same items.
func TestHostedCallsAreTold(t *testing.T) {
	call := func(s llm.MCPStep) *llm.ServerCall {
		s.Label = "s"
		return &llm.ServerCall{Kind: llm.MCP, Failed: s.Error != nil, MCP: &s}
	}
	list := call(llm.MCPStep{Kind: llm.MCPListed, Tools: llm.Raw(`[{"name":"t"}]`)})
	done := call(llm.MCPStep{Name: "t", Args: llm.Raw(`"{\"a\":1}"`), Output: llm.Raw(`"ok"`), Approval: llm.Raw(`"mcpr_0"`)})
	broken := call(llm.MCPStep{Name: "t", Args: llm.Raw(`"{}"`), Error: llm.Raw(`"no"`)})
	question := call(llm.MCPStep{Kind: llm.MCPAsked, Name: "t", Args: llm.Raw(`"{}"`)})
	search := &llm.ServerCall{Kind: llm.WebSearch, Failed: true, Queries: []llm.Raw{llm.Raw(`"q"`)}}
	live := func(n int, kind llm.ServerKind, c *llm.ServerCall) []llm.Event {
		events := []llm.Event{llm.Open{Item: n, Kind: llm.ServerItem, Server: kind, Live: true, Name: "t", Space: "s"}}
		if c.MCP != nil {
			args := c.MCP.Args
			events = append(events, llm.Delta{Item: n, Channel: llm.ArgsChannel, Data: append(args[:2:2], '"')}, llm.Delta{Item: n, Channel: llm.ArgsChannel, Data: append(llm.Raw{'"'}, args[2:]...)})
		}
		return append(events, llm.Running{Item: n}, llm.Close{Item: n, Server: c})
	}
	whole := func(n int, c *llm.ServerCall) []llm.Event {
		return []llm.Event{llm.Open{Item: n, Kind: llm.ServerItem, Server: c.Kind}, llm.Close{Item: n, Server: c}}
	}
	events := slices.Concat([]llm.Event{llm.Start{}}, whole(0, list), live(1, llm.MCP, done), live(2, llm.MCP, broken), live(3, llm.WebSearch, search), whole(4, question), []llm.Event{llm.Finish{}})

	ask := &dialect.Ask{ID: "x", Model: "m", Begun: time.Unix(1, 0), Request: &llm.Request{}}
	encoder := Dialect{}.Encode(ask)
	var out []byte
	var fold llm.Folder
	for _, e := range events {
		out = encoder.Event(out, e)
		fold.Add(e)
	}
	out = encoder.End(out)
	const items = `{"id":"mcpl_x_0","type":"mcp_list_tools","server_label":"s","tools":[{"name":"t"}],"error":null}` +
		`,{"id":"mcp_x_1","type":"mcp_call","server_label":"s","name":"t","arguments":"{\"a\":1}","output":"ok","error":null,"approval_request_id":"mcpr_0","status":"completed"}` +
		`,{"id":"mcp_x_2","type":"mcp_call","server_label":"s","name":"t","arguments":"{}","output":null,"error":"no","approval_request_id":null,"status":"failed"}` +
		`,{"id":"ws_x_3","type":"web_search_call","status":"failed","action":{"type":"search","query":"q","queries":["q"],"sources":[]}}` +
		`,{"id":"mcpr_x_4","type":"mcp_approval_request","server_label":"s","name":"t","arguments":"{}"}`
	if got := (Dialect{}).AppendAnswer(nil, &fold.Answer, ask); !strings.Contains(string(got), `"output":[`+items+`]`) {
		t.Errorf("a whole answer is\n%s", got)
	}
	var got []string
	for _, m := range eventData.FindAllStringSubmatch(string(out), -1) {
		got = append(got, m[1])
	}
	if last := got[len(got)-2]; !strings.Contains(last, `"output":[`+items+`]`) {
		t.Errorf("the last event is\n%s", last)
	}
	want := []string{
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"mcpl_x_0","type":"mcp_list_tools","server_label":"s","tools":[],"error":null}}`,
		`{"type":"response.mcp_list_tools.in_progress","sequence_number":3,"item_id":"mcpl_x_0","output_index":0}`,
		`{"type":"response.mcp_list_tools.completed","sequence_number":4,"item_id":"mcpl_x_0","output_index":0}`,
		"",
		`{"type":"response.output_item.added","sequence_number":6,"output_index":1,"item":{"id":"mcp_x_1","type":"mcp_call","server_label":"s","name":"t","arguments":"","output":null,"error":null,"approval_request_id":null,"status":"in_progress"}}`,
		`{"type":"response.mcp_call.in_progress","sequence_number":7,"item_id":"mcp_x_1","output_index":1}`,
		`{"type":"response.mcp_call_arguments.delta","sequence_number":8,"item_id":"mcp_x_1","output_index":1,"delta":"{"}`,
		`{"type":"response.mcp_call_arguments.delta","sequence_number":9,"item_id":"mcp_x_1","output_index":1,"delta":"\"a\":1}"}`,
		`{"type":"response.mcp_call_arguments.done","sequence_number":10,"item_id":"mcp_x_1","output_index":1,"arguments":"{\"a\":1}"}`,
		`{"type":"response.mcp_call.completed","sequence_number":11,"item_id":"mcp_x_1","output_index":1}`,
	}
	for i, w := range want {
		if w != "" && got[2+i] != w {
			t.Errorf("event %d is\n%s\nwant\n%s", i, got[2+i], w)
		}
	}
	var kinds []string
	for _, m := range regexp.MustCompile(`(?m)^event: response\.(.*)$`).FindAllStringSubmatch(string(out), -1) {
		kinds = append(kinds, m[1])
	}
	if got, want := strings.Join(kinds[12:], " "), "output_item.done output_item.added mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.delta mcp_call_arguments.done mcp_call.failed output_item.done"+
		" output_item.added web_search_call.in_progress web_search_call.searching web_search_call.completed output_item.done output_item.added output_item.done completed"; got != want {
		t.Errorf("got the events\n%s\nwant\n%s", got, want)
	}
}

// What the other tools of the gateway give, as it goes on and as a whole.
func TestHostedResultsAreTold(t *testing.T) {
	code := llm.ServerCall{Kind: llm.CodeExecution, Code: llm.Raw(`"1+1"`), Container: llm.Raw(`"cntr_1"`)}
	told, withheld := code, code
	told.Outputs, told.Images = []llm.Raw{llm.Raw(`"2"`)}, []llm.Raw{llm.Raw(`"data:image/png;base64,AA"`)}
	withheld.Withheld, withheld.Failed = true, true
	webp := &llm.Media{Data: llm.Raw(`"AA=="`), MIME: "image/webp"}
	for name, c := range map[string]struct {
		call   llm.ServerCall
		events string
		item   string
	}{
		"code": {
			told, "in_progress code_interpreter_call_code.delta code_interpreter_call_code.done interpreting completed",
			`{"id":"ci_x_0","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"cntr_1","outputs":[{"type":"logs","logs":"2"},{"type":"image","url":"data:image/png;base64,AA"}]}`,
		},
		"code that failed": {
			withheld, "in_progress code_interpreter_call_code.delta code_interpreter_call_code.done interpreting completed",
			`{"id":"ci_x_0","type":"code_interpreter_call","status":"failed","code":"1+1","container_id":"cntr_1","outputs":null}`,
		},
		"an image": {
			llm.ServerCall{Kind: llm.ImageGeneration, Prompt: llm.Raw(`"p"`), Image: webp}, "in_progress generating completed",
			`{"id":"ig_x_0","type":"image_generation_call","status":"completed","result":"AA==","output_format":"webp","revised_prompt":"p"}`,
		},
		"no image": {
			llm.ServerCall{Kind: llm.ImageGeneration, Prompt: llm.Raw(`"p"`), Failed: true}, "in_progress generating completed",
			`{"id":"ig_x_0","type":"image_generation_call","status":"failed","result":null,"revised_prompt":"p"}`,
		},
		"files": {
			llm.ServerCall{Kind: llm.FileSearch, Queries: []llm.Raw{llm.Raw(`"q"`)}, Files: []llm.FoundFile{{ID: llm.Raw(`"f"`), Name: llm.Raw(`"a.md"`), Text: llm.Raw(`"t"`), Score: llm.Raw(`0.5`), Attributes: llm.Raw(`{"a":1}`)}}},
			"in_progress searching completed",
			`{"id":"fs_x_0","type":"file_search_call","status":"completed","queries":["q"],"results":[{"file_id":"f","filename":"a.md","score":0.5,"attributes":{"a":1},"text":"t"}]}`,
		},
		"no files": {
			llm.ServerCall{Kind: llm.FileSearch, Queries: []llm.Raw{llm.Raw(`"q"`)}, Files: []llm.FoundFile{}}, "in_progress searching completed",
			`{"id":"fs_x_0","type":"file_search_call","status":"completed","queries":["q"],"results":[]}`,
		},
	} {
		open := llm.Open{Kind: llm.ServerItem, Server: c.call.Kind, Live: true}
		events := []llm.Event{llm.Start{}, open, llm.Running{}, llm.Close{Server: &c.call}, llm.Finish{}}
		if c.call.Code != nil {
			events = slices.Insert(events, 2, llm.Event(llm.Delta{Channel: llm.ArgsChannel, Data: c.call.Code}))
		}
		open.Live = false
		for kind, events := range map[string][]llm.Event{"live": events, "whole": {llm.Start{}, open, llm.Close{Server: &c.call}, llm.Finish{}}} {
			ask := &dialect.Ask{ID: "x", Model: "m", Begun: time.Unix(1, 0), Request: &llm.Request{}}
			encoder := Dialect{}.Encode(ask)
			var out []byte
			var fold llm.Folder
			for _, e := range events {
				out = encoder.Event(out, e)
				fold.Add(e)
			}
			out = encoder.End(out)
			if got := (Dialect{}).AppendAnswer(nil, &fold.Answer, ask); !strings.Contains(string(got), `"output":[`+c.item+`]`) || !strings.Contains(string(out), `"output":[`+c.item+`]`) {
				t.Errorf("%s, %s: got\n%s\n%s", name, kind, got, out)
			}
			var kinds []string
			for _, m := range regexp.MustCompile(`(?m)^event: response\.(?:\w+_call\.)?(.*)$`).FindAllStringSubmatch(string(out), -1) {
				kinds = append(kinds, m[1])
			}
			if got := strings.Join(kinds[3:len(kinds)-2], " "); got != c.events {
				t.Errorf("%s, %s: got the events %s", name, kind, got)
			}
		}
		req, err := Dialect{}.Decode([]byte(`{"model":"m","input":[`+c.item+`]}`), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		read := req.Items[0].(*llm.ServerCall)
		if len(read.Files) != len(c.call.Files) || (read.Files == nil) != (c.call.Files == nil) || read.Withheld != c.call.Withheld || len(read.Outputs) != len(c.call.Outputs) || string(read.Prompt) != string(c.call.Prompt) || read.Failed != c.call.Failed {
			t.Errorf("%s is read as %+v", name, read)
		}
	}
}

// The tools of an allowed_tools that the upstream runs are read, and told to
// upstreams that run them.
func TestAllowedHostedTools(t *testing.T) {
	const choice = `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"mcp","server_label":"l","name":"n"},{"type":"web_search_preview"}]}`
	req, err := Dialect{}.Decode([]byte(`{"model":"m","input":"x","tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":`+choice+`}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.ServedTool{{Kind: llm.MCP, Label: "l", Name: "n"}, {Kind: llm.WebSearch}}
	if !reflect.DeepEqual(req.ToolChoice.Served, want) {
		t.Errorf("got %+v", req.ToolChoice.Served)
	}
	call, err := Upstream{}.Encode(req, &llm.Caps{})
	if said := `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`; err != nil || !strings.Contains(string(call.Body), said) {
		t.Errorf("%v: got %s", err, call.Body)
	}
}

func TestHostedToolsAreRead(t *testing.T) {
	yes := true
	for tool, want := range map[string]*llm.MCPServer{
		`{"type":"mcp","server_label":"l","server_url":"u","authorization":"a","headers":{"X-A":"b"}}`:                                    {Label: "l", URL: "u", Authorization: "a", Headers: []llm.Member{{Name: "X-A", Value: llm.Raw(`"b"`)}}},
		`{"type":"mcp","connector_id":"c","allowed_tools":["x","y"],"require_approval":"never"}`:                                          {Connector: "c", Allowed: &llm.MCPFilter{Names: []string{"x", "y"}}, Never: &llm.MCPFilter{}},
		`{"type":"mcp","allowed_tools":[],"require_approval":"always"}`:                                                                   {Allowed: &llm.MCPFilter{Names: []string{}}},
		`{"type":"mcp","allowed_tools":{"read_only":true},"require_approval":{"always":{"tool_names":["x"]},"never":{"read_only":true}}}`: {Allowed: &llm.MCPFilter{ReadOnly: &yes}, Always: &llm.MCPFilter{Names: []string{"x"}}, Never: &llm.MCPFilter{ReadOnly: &yes}},
		`{"type":"mcp","allowed_tools":null,"require_approval":7,"headers":[]}`:                                                           {},
	} {
		req, err := Dialect{}.Decode([]byte(`{"model":"m","input":"x","tools":[`+tool+`]}`), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		if got := req.Tools[0].Server.MCP; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", tool, got, want)
		}
	}
	body := `{"tools":[{"type":"function"},{"type":"mcp"},{"type":"web_search_preview_2025_03_11"},{"type":"web_search","external_web_access":false}]}`
	if got := (Dialect{}).Hosted([]byte(body)); !reflect.DeepEqual(got, []llm.ServerKind{llm.MCP, llm.WebSearch}) {
		t.Errorf("got %v", got)
	}
}

func TestHostedItemsAreRead(t *testing.T) {
	for item, want := range map[string]llm.MCPStep{
		`{"type":"mcp_list_tools","id":"i","server_label":"s","tools":[1]}`:                                                                  {Kind: llm.MCPListed, Label: "s", Tools: llm.Raw("[1]")},
		`{"type":"mcp_call","id":"i","server_label":"s","name":"n","arguments":"{}","output":"o","error":null,"approval_request_id":"q"}`:    {Label: "s", Name: "n", Args: llm.Raw(`"{}"`), Output: llm.Raw(`"o"`), Approval: llm.Raw(`"q"`)},
		`{"type":"mcp_call","id":"i","server_label":"s","name":"n","arguments":"{}","output":null,"error":{"type":"http_error","code":500}}`: {Label: "s", Name: "n", Args: llm.Raw(`"{}"`), Error: llm.Raw(`"{\"type\":\"http_error\",\"code\":500}"`)},
		`{"type":"mcp_approval_request","id":"i","server_label":"s","name":"n","arguments":"{}"}`:                                            {Kind: llm.MCPAsked, Label: "s", Name: "n", Args: llm.Raw(`"{}"`)},
		`{"type":"mcp_approval_response","id":"i","approval_request_id":"q","approve":true}`:                                                 {Kind: llm.MCPAnswered, Approval: llm.Raw(`"q"`), Approved: true},
		`{"type":"mcp_approval_response","approval_request_id":"q","approve":false,"reason":"r"}`:                                            {Kind: llm.MCPAnswered, Approval: llm.Raw(`"q"`), Reason: llm.Raw(`"r"`)},
	} {
		req, err := Dialect{}.Decode([]byte(`{"model":"m","input":[`+item+`]}`), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		if got := req.Items[0].(*llm.ServerCall).MCP; !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", item, *got, want)
		}
	}
	// Where nobody runs the tools, a consent is refused by name as it ever was.
	req, err := Dialect{}.Decode([]byte(`{"model":"m","input":[{"type":"mcp_approval_response","approval_request_id":"q","approve":true}]}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dialect.Translate(req, Dialect{}, Upstream{}, &llm.Caps{}, &dialect.Ask{Request: req})
	if e := llm.AsError(err); err == nil || e.Param != "input[0].type" || e.Code != "unsupported_parameter" {
		t.Errorf("got %v", err)
	}
}

// Answers are kept: what opens a server is not repeated in them.
func TestSecretsAreNotRepeated(t *testing.T) {
	req, err := Dialect{}.Decode([]byte(`{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"s","headers":{"k":"canary"},"authorization":"canary","allowed_tools":["t"]}]}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	got := string(Dialect{}.AppendAnswer(nil, &llm.Answer{}, &dialect.Ask{Request: req, ID: "x", Model: "m"}))
	if strings.Contains(got, "canary") || !strings.Contains(got, `"tools":[{"type":"mcp","server_label":"s","allowed_tools":["t"]}]`) {
		t.Errorf("got %s", got)
	}
}
