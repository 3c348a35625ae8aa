package openairesponses

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// through decodes a request and writes it anew, as an upstream that knows of
// thinking takes it.
func through(t *testing.T, body string) (*llm.Request, *dialect.Call) {
	t.Helper()
	req, err := Dialect{}.Decode([]byte(body), seal.Key{})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	call, err := Upstream{}.Encode(req, &llm.Caps{Model: "m", Vendor: "openai"})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return req, call
}

func TestInput(t *testing.T) {
	sealedCall := seal.Key{}.Seal("openai.item", seal.Field{Name: "id", Value: []byte(`"rs_9"`)}, seal.Field{Name: "e", Value: []byte(`"ENC"`)})
	for name, c := range map[string]struct{ in, want, notes string }{
		"text":     {`"hi"`, `{"type":"message","role":"user","content":"hi"}`, ""},
		"untyped":  {`[{"role":"developer","content":"a"}]`, `{"type":"message","role":"developer","content":"a"}`, ""},
		"parts":    {`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image\/png;base64,aGk=","detail":"low"},{"type":"text","text":"b"}]}]`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"low"},{"type":"input_text","text":"b"}]}`, ""},
		"chat":     {`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://e.test/a","detail":"high"}}]}]`, `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://e.test/a","detail":"high"}]}`, ""},
		"file":     {`[{"role":"user","content":[{"type":"input_file","file_data":"aGk=","filename":"a.txt"}]}]`, `{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,aGk="}]}`, ""},
		"file URL": {`[{"role":"user","content":[{"type":"input_file","file_url":"https://e.test/a.pdf"}]}]`, `{"type":"message","role":"user","content":[{"type":"input_file","file_url":"https://e.test/a.pdf"}]}`, ""},
		"refusal":  {`[{"role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]}]`, `{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}`, ""},
		"call": {`[{"type":"function_call","call_id":"c","name":"f","arguments":""},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://e.test/a"}]}]`,
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://e.test/a"}]}`, ""},
		"custom": {`[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x\n"},{"type":"custom_tool_call_output","call_id":"c","output":"y"}]`,
			`{"type":"custom_tool_call","call_id":"c","name":"f","input":"x\n"},{"type":"custom_tool_call_output","call_id":"c","output":"y"}`, ""},
		"namespace":     {`[{"type":"function_call","call_id":"c","name":"f","namespace":"n","arguments":"{}"}]`, `{"type":"function_call","call_id":"c","name":"n__f","arguments":"{}"}`, ""},
		"local shell":   {`[{"type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{},"user":null}}]`, `{"type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{}}}`, ""},
		"shell":         {`[{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}]`, `{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`, ""},
		"patch":         {`[{"type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"a"}}]`, `{"type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"a"}}`, ""},
		"tool search":   {`[{"type":"tool_search_call","execution":"client","call_id":"c","arguments":{"query":"q"}}]`, `{"type":"tool_search_call","execution":"client","call_id":"c","arguments":{"query":"q"}}`, ""},
		"native":        {`[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"}],"content":null,"encrypted_content":"ENC"}]`, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"ENC"}`, ""},
		"sealed":        {`[{"type":"reasoning","summary":[],"encrypted_content":"` + sealedCall + `"}]`, `{"type":"reasoning","id":"rs_9","summary":[],"encrypted_content":"ENC"}`, ""},
		"plain":         {`[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}]`, ``, "drop:reasoning_content"},
		"broken seal":   {`[{"type":"reasoning","summary":[],"encrypted_content":"gw1.eA"}]`, ``, "drop:reasoning.encrypted_content"},
		"empty":         {`[{"type":"reasoning","summary":[]}]`, ``, ""},
		"hosted":        {`[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}]`, ``, "drop:web_search_call"},
		"configuration": {`[{"role":"user","content":"a"},{"type":"configuration_update","reasoning":{"effort":"low"}}]`, `{"type":"message","role":"user","content":"a"}`, "move:configuration_update"},
		"summary":       {`[{"type":"compaction","encrypted_content":"` + (seal.Key{}).Seal("plain", seal.Field{Name: "t", Value: []byte(`"so far"`)}) + `"}]`, `{"type":"message","role":"user","content":"so far"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, call := through(t, `{"model":"m","input":`+c.in+`}`)
			if got := string(dialect.Member(call.Body, "input")); got != "["+c.want+"]" {
				t.Errorf("got  %s\nwant [%s]", got, c.want)
			}
			if call.Notes.String() != c.notes {
				t.Errorf("notes %q, want %q", call.Notes, c.notes)
			}
		})
	}
}

func TestInstructionsComeFirst(t *testing.T) {
	_, call := through(t, `{"model":"m","input":"hi","instructions":"be brief"}`)
	const want = `[{"type":"message","role":"system","content":"be brief"},{"type":"message","role":"user","content":"hi"}]`
	if got := string(dialect.Member(call.Body, "input")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMembers(t *testing.T) {
	for in, want := range map[string]string{
		`"temperature":0,"top_p":null,"max_output_tokens":5,"store":true,"metadata":{"a":"b"},"unknown":[1]`:         `{"model":"m","store":true,"max_output_tokens":16,"temperature":0,"metadata":{"a":"b"},"input":[]}`,
		`"text":{"format":{"type":"json_schema","name":"n","schema":{"b":1,"a":2},"strict":true},"verbosity":"low"}`: `{"model":"m","store":false,"text":{"format":{"type":"json_schema","name":"n","schema":{"b":1,"a":2},"strict":true},"verbosity":"low"},"input":[]}`,
		`"reasoning":{"effort":"high","summary":"concise"},"include":["x","reasoning.encrypted_content"]`:            `{"model":"m","store":false,"reasoning":{"effort":"high","summary":"concise"},"include":["reasoning.encrypted_content"],"input":[]}`,
		`"top_logprobs":3`: `{"model":"m","store":false,"include":["message.output_text.logprobs"],"top_logprobs":3,"input":[]}`,
		`"top_logprobs":0`: `{"model":"m","store":false,"input":[]}`,
		`"tools":[{"type":"function","name":"f"},{"type":"web_search","filters":{"allowed_domains":["e.test"]},"user_location":{"type":"approximate","country":"FR"}}],"tool_choice":{"type":"function","name":"f"}`:                                                                                 `{"model":"m","store":false,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search","filters":{"allowed_domains":["e.test"]},"user_location":{"type":"approximate","country":"FR"}}],"tool_choice":{"type":"function","name":"f"},"input":[]}`,
		`"tools":[{"type":"custom","name":"c","format":{"type":"text"}},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"local_shell"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"custom","name":"c"},{"type":"function","name":"f"}]}`: `{"model":"m","store":false,"tools":[{"type":"custom","name":"c","format":{"type":"text"}},{"type":"function","name":"n__f","parameters":{"type":"object","properties":{}},"strict":false},{"type":"local_shell"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"custom","name":"c"},{"type":"function","name":"n__f"}]},"input":[]}`,
		`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","defer_loading":true}]}]`:                                                                                                                                                                     `{"model":"m","store":false,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}],"input":[]}`,
	} {
		if _, call := through(t, `{"model":"m",`+in+`}`); string(call.Body) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, call.Body, want)
		}
	}
}

func TestToolSearch(t *testing.T) {
	req, call := through(t, `{"model":"m","tools":[{"type":"tool_search"},{"type":"function","name":"f","defer_loading":true}]}`)
	if len(req.Tools) != 1 || req.Tools[0].Name != "f" || !slices.Contains(call.Notes, "degrade:tool_search") {
		t.Errorf("run by the upstream: got %+v, %v", req.Tools, call.Notes)
	}
	req, _ = through(t, `{"model":"m","tools":[{"type":"tool_search","execution":"client","parameters":{"type":"object"}},{"type":"function","name":"f","defer_loading":true}]}`)
	if len(req.Tools) != 2 || req.Tools[0].Kind != llm.ToolSearchCall || req.Tools[0].Name != "tool_search" {
		t.Errorf("run by the client: got %+v", req.Tools)
	}
	req, err := Dialect{}.Decode([]byte(`{"model":"m","input":[{"type":"tool_search_output","execution":"client","call_id":"c","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}]}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := req.Items[0].(*llm.ToolResult)
	if r == nil || len(r.Parts) != 1 || r.Parts[0].(*llm.ToolReference).Name != "n__f" || len(req.Tools) != 1 || req.Tools[0].Namespace != "n" {
		t.Errorf("found: got %+v, %+v", req.Items, req.Tools)
	}
}

// Signatures go back to what they sign, wherever the carrier stands.
func TestSeals(t *testing.T) {
	key := seal.NewKey([]byte("secret"))
	call := key.Seal("google.call", seal.Field{Name: "c", Value: []byte(`"c1"`)}, seal.Field{Name: "s", Value: []byte(`"SIG"`)}, seal.Field{Name: "o", Value: []byte(`"here"`)})
	text := key.Seal("google.text", seal.Field{Name: "i", Value: []byte(`0`)}, seal.Field{Name: "s", Value: []byte(`"TXT"`)})
	turn := func(said string) string {
		return key.Seal("anthropic.turn", seal.Field{Name: "b", Value: []byte(`[{"text":"` + said + `","type":"text"}]`)})
	}
	carrier := func(s string) string {
		return `{"type":"reasoning","summary":[],"encrypted_content":"` + s + `"},`
	}
	const message = `{"role":"assistant","content":"a"},`
	decode := func(items ...string) []llm.Item {
		req, err := Dialect{}.Decode([]byte(`{"model":"m","input":[`+strings.Join(items, "")+`{"role":"user","content":"x"}]}`), key)
		if err != nil {
			t.Fatal(err)
		}
		return req.Items
	}
	items := decode(carrier(call), `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},`)
	if c := items[0].(*llm.ToolCall); len(c.Opaque) != 1 || string(c.Opaque[0].Data) != `"SIG"` || c.Opaque[0].Vendor != "google" || c.Opaque[0].Origin != "here" {
		t.Errorf("call: got %+v", c.Opaque)
	}
	for _, order := range [][]string{{carrier(text), message}, {message, carrier(text)}} {
		m := decode(order...)[0].(*llm.Message)
		if o := m.Parts[0].(*llm.Text).Opaque; len(o) != 1 || string(o[0].Data) != `"TXT"` {
			t.Errorf("text: got %+v", o)
		}
	}
	if n, ok := decode(message, carrier(turn("a")))[0].(*llm.NativeTurn); !ok || len(n.Items) != 1 || n.Opaque.Kind != llm.WholeTurn {
		t.Errorf("turn: got %+v", n)
	}
	if items := decode(message, carrier(turn("b"))); len(items) != 2 {
		t.Errorf("a turn that was edited: got %+v", items)
	}
	signed := key.Seal("anthropic.thinking", seal.Field{Name: "t", Value: []byte(`"hm"`)}, seal.Field{Name: "s", Value: []byte(`"S"`)})
	r := decode(`{"type":"reasoning","summary":[{"type":"summary_text","text":"edited"}],"encrypted_content":"`+signed+`"},`, message)[0].(*llm.Reasoning)
	if string(r.Texts[0].Text) != `"hm"` || r.Opaque[0].Kind != llm.Signature || r.Opaque[0].Vendor != "anthropic" {
		t.Errorf("thinking: got %+v", r)
	}
}

func TestRefuses(t *testing.T) {
	for body, want := range map[string]struct{ param, code string }{
		`"conversation":{"id":"c"}`:                                   {"conversation", "unsupported_parameter"},
		`"prompt":{"id":"p"}`:                                         {"prompt", "unsupported_parameter"},
		`"background":true`:                                           {"background", "unsupported_parameter"},
		`"input":[{"id":"msg_1"}]`:                                    {"input[0]", "unsupported_parameter"},
		`"input":[{"type":"compaction_trigger"}]`:                     {"input[0]", "unsupported_parameter"},
		`"input":[{"type":"computer_call","call_id":"c"}]`:            {"input[0].type", "unsupported_parameter"},
		`"input":[{"type":"compaction","encrypted_content":"x"}]`:     {"input[0].encrypted_content", "invalid_value"},
		`"input":[{"role":"user","content":[{"type":"hologram"}]}]`:   {"input[0].content[0].type", "unsupported_parameter"},
		`"input":[{"type":"function_call","call_id":"c","name":"f"}]`: {"input[0].arguments", "missing_required_parameter"},
		`"input":[{"type":"function_call_output","output":"x"}]`:      {"input[0].call_id", "missing_required_parameter"},
		`"input":[{"type":"shell_call","call_id":"c","action":1}]`:    {"input[0].action", "invalid_type"},
		`"input":[{"role":"robot","content":"x"}]`:                    {"input[0].role", "invalid_value"},
		`"input":["x"]`: {"input[0]", "invalid_type"},
		`"input":[{"type":"additional_tools","tools":[{"type":"odd"}]}]`: {"input[0].tools[0].type", "unsupported_parameter"},
		`"tools":[{"type":"odd"}]`:                                       {"tools[0].type", "unsupported_parameter"},
		`"tools":[{"type":"function"}]`:                                  {"tools[0].name", "missing_required_parameter"},
		`"tool_choice":"maybe"`:                                          {"tool_choice", "invalid_value"},
		`"temperature":"1"`:                                              {"temperature", "invalid_type"},
		`"max_output_tokens":1.5`:                                        {"max_output_tokens", "invalid_value"},
		`"text":{"format":{"type":"xml"}}`:                               {"text.format.type", "unsupported_parameter"},
	} {
		_, err := Dialect{}.Decode([]byte(`{"model":"m",`+body+`}`), seal.Key{})
		var e *llm.Error
		if !errors.As(err, &e) || e.Param != want.param || e.Code != want.code {
			t.Errorf("%s: got %+v, want %+v", body, e, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"model":"m","instructions":"i","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:a;base64,b"}]},{"type":"reasoning","encrypted_content":"gw1.e30"},{"type":"shell_call","call_id":"c","action":{}},{"type":"function_call_output","call_id":"c","output":"x"}],"tools":[{"type":"custom","name":"f"}],"tool_choice":{"type":"custom","name":"f"}}`))
	f.Add([]byte(`{"input":[{"type":"tool_search_output","execution":"client","call_id":"c","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var look dialect.Request
		if (Dialect{}).Inspect(body, &look) != nil {
			return
		}
		req, err := Dialect{}.Decode(body, seal.Key{})
		if err != nil {
			if !errors.As(err, new(*llm.Error)) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		call, err := Upstream{}.Encode(req, &llm.Caps{Model: "m"})
		if err == nil && !json.Valid(call.Body) {
			t.Fatalf("%q became no JSON: %s", body, call.Body)
		}
		again, _ := Upstream{}.Encode(req, &llm.Caps{Model: "m"})
		if err == nil && string(again.Body) != string(call.Body) {
			t.Fatalf("%q becomes %s or %s", body, call.Body, again.Body)
		}
	})
}
