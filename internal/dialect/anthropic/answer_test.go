package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// event is a frame of a stream.
func event(kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, members)
}

func head(content string) string {
	return event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`+content+`],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}`)
}

// block is the events of a block.
func blockEvents(index int, begun string, deltas ...string) string {
	at := fmt.Sprintf(`"index":%d`, index)
	out := event("content_block_start", at+`,"content_block":`+begun)
	for _, d := range deltas {
		out += event("content_block_delta", at+`,"delta":`+d)
	}
	return out + event("content_block_stop", at)
}

func tail(reason string) string {
	return event("message_delta", `"delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9,"input_tokens":null}`) + event("message_stop", "")
}

// read reads a stream, and checks the order of its events.
func read(t testing.TB, stream string, caps *llm.Caps) ([]llm.Event, error) {
	t.Helper()
	d := Upstream{}.Answers(nil, caps)
	var events []llm.Event
	var failed error
	for frame, err := range sse.All(strings.NewReader(stream), 1<<20) {
		if err != nil || len(frame.Data) == 0 || d.Done() {
			continue
		}
		frame.Data = bytes.Clone(frame.Data)
		if events, failed = d.Frame(events, frame); failed != nil {
			break
		}
	}
	if failed == nil {
		events, failed = d.End(events)
	}
	if err := dialecttest.Check(events, failed == nil); err != nil && len(events) > 0 {
		t.Fatalf("%v in %q", err, stream)
	}
	return events, failed
}

func fold(events []llm.Event) *llm.Answer {
	var f llm.Folder
	for _, e := range events {
		f.Add(e)
	}
	return &f.Answer
}

// shown is an answer in short.
func shown(a *llm.Answer) string {
	var b strings.Builder
	for _, item := range a.Choices[0].Items {
		switch item := item.(type) {
		case *llm.Message:
			fmt.Fprintf(&b, "message %d", item.Pos.Part)
			for _, p := range item.Parts {
				said := p.(*llm.Text)
				fmt.Fprintf(&b, " %s", said.Text)
				for _, a := range said.Annotations {
					fmt.Fprintf(&b, " %s@%d-%d", a.URL, a.Start, a.End)
				}
			}
		case *llm.Reasoning:
			fmt.Fprintf(&b, "reasoning %d", item.Pos.Part)
			for _, t := range item.Texts {
				fmt.Fprintf(&b, " %s", t.Text)
			}
			for _, o := range item.Opaque {
				fmt.Fprintf(&b, " %d:%s:%s:%s", o.Kind, o.Vendor, o.Origin, o.Data)
			}
		case *llm.ToolCall:
			fmt.Fprintf(&b, "call %s %s %s", item.ID, item.Name, item.Args)
		case *llm.ServerCall:
			fmt.Fprintf(&b, "server %d %s %v %d blocks", item.Kind, item.Queries, item.Failed, len(item.Native))
			for _, s := range item.Sources {
				fmt.Fprintf(&b, " %s", s.URL)
			}
		}
		b.WriteString("\n")
	}
	f := a.Choices[0].Finish
	fmt.Fprintf(&b, "reason %d", f.Reason)
	if f.StopSeq != nil || f.Detail != nil {
		fmt.Fprintf(&b, " %s %s", f.StopSeq, f.Detail)
	}
	if f.Turn != nil {
		fmt.Fprintf(&b, "\nturn %s", f.Turn.Data)
	}
	if len(a.Notes) > 0 {
		fmt.Fprintf(&b, "\nnotes %s", a.Notes)
	}
	return b.String()
}

const (
	searchUse    = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}`
	searchResult = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://e.test/a","title":"A","encrypted_content":"E"}]}`
	location     = `{"type":"web_search_result_location","url":"https://e.test/a","title":"A","encrypted_index":"I"}`
)

// Every answer reads the same, whole and as a stream.
func TestAnswers(t *testing.T) {
	caps := &llm.Caps{Vendor: "anthropic", Origin: "o1"}
	for name, c := range map[string]struct {
		stream, content, reason, want string
	}{
		"text over blocks, offsets in characters": {
			blockEvents(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"h\u00e9 \ud83d\ude00é"}`) +
				blockEvents(1, `{"type":"text","text":"","citations":[]}`, `{"type":"citations_delta","citation":`+location+`}`, `{"type":"text_delta","text":"one"}`, `{"type":"future_delta"}`),
			`{"type":"text","text":"h\u00e9 \ud83d\ude00é"},{"type":"text","text":"one","citations":[` + location + `]}`, "end_turn",
			"message 0 \"h\\u00e9 \\ud83d\\ude00éone\" \"https://e.test/a\"@5-8\nreason 0"},
		"thinking and calls": {
			blockEvents(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"hm"}`, `{"type":"signature_delta","signature":"S"}`) +
				blockEvents(1, `{"type":"redacted_thinking","data":"R"}`) +
				blockEvents(2, `{"type":"tool_use","id":"t1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"a\""}`, `{"type":"input_json_delta","partial_json":":1}"}`) +
				blockEvents(3, `{"type":"tool_use","id":"t2","name":"g","input":{}}`),
			`{"type":"thinking","thinking":"hm","signature":"S"},{"type":"redacted_thinking","data":"R"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use","id":"t2","name":"g","input":{}}`, "tool_use",
			"reasoning 0 \"hm\" 0:anthropic:o1:\"S\"\nreasoning 1 1:anthropic:o1:\"R\"\ncall \"t1\" f \"{\\\"a\\\":1}\"\ncall \"t2\" g \"{}\"\nreason 2"},
		"signed without a text": {
			blockEvents(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"S"}`),
			`{"type":"thinking","thinking":"","signature":"S"}`, "max_tokens", "reasoning 0 0:anthropic:o1:\"S\"\nreason 1"},
		"several texts around thinking": {
			blockEvents(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"a"}`) +
				blockEvents(1, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"b"}`, `{"type":"signature_delta","signature":"S"}`) +
				blockEvents(2, `{"type":"text","text":""}`, `{"type":"text_delta","text":"c"}`),
			`{"type":"text","text":"a"},{"type":"thinking","thinking":"b","signature":"S"},{"type":"text","text":"c"}`, "end_turn",
			"message 0 \"a\"\nreasoning 1 \"b\" 0:anthropic:o1:\"S\"\nmessage 2 \"c\"\nreason 0\n" +
				`turn [{"text":"a","type":"text"},{"signature":"S","thinking":"b","type":"thinking"},{"text":"c","type":"text"}]`},
		"search": {
			blockEvents(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`) + blockEvents(1, searchResult) +
				blockEvents(2, `{"type":"text","text":""}`, `{"type":"text_delta","text":"a"}`),
			searchUse + "," + searchResult + `,{"type":"text","text":"a"}`, "refusal",
			"server 1 [\"x\"] false 2 blocks \"https://e.test/a\"\nmessage 2 \"a\"\nreason 4\nturn [" +
				`{"id":"s1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},{"content":[{"encrypted_content":"E","title":"A","type":"web_search_result","url":"https://e.test/a"}],"tool_use_id":"s1","type":"web_search_tool_result"},{"text":"a","type":"text"}]`},
		"paused": {
			blockEvents(0, `{"type":"server_tool_use","id":"s1","name":"code_execution","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"code\":\"1\"}"}`),
			`{"type":"server_tool_use","id":"s1","name":"code_execution","input":{"code":"1"}}`, "pause_turn",
			"server 3 [] false 1 blocks\nreason 5\nturn " + `[{"id":"s1","input":{"code":"1"},"name":"code_execution","type":"server_tool_use"}]`},
		"blocks and reasons that nobody knows": {
			blockEvents(0, `{"type":"future_block"}`, `{"type":"future_delta"}`), `{"type":"future_block"}`, "future_reason",
			"reason 0\nnotes skip:block:future_block,assume:stop_reason"},
	} {
		events, err := read(t, head("")+event("future_event", `"x":1`)+event("ping", "")+c.stream+tail(c.reason), caps)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		streamed := fold(events)
		if len(streamed.Choices[0].Items) == 0 && !strings.HasPrefix(c.want, "reason") {
			t.Errorf("%s: nothing", name)
		}
		if got := shown(streamed); got != c.want {
			t.Errorf("%s, streamed:\ngot  %s\nwant %s", name, got, c.want)
		}
		if want := (llm.Usage{Input: 5, Output: 9}); streamed.Usage != want || !streamed.Known {
			t.Errorf("%s: usage %+v", name, streamed.Usage)
		}
		body := `{"id":"msg_1","type":"message","model":"m","content":[` + c.content + `],"stop_reason":"` + c.reason + `","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":9}}`
		events, err = Upstream{}.Answers(nil, caps).Whole(nil, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := dialecttest.Check(events, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := shown(fold(events)); got != c.want {
			t.Errorf("%s, whole:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   llm.Kind
	}{
		"cut":         {head("") + blockEvents(0, `{"type":"text","text":"a"}`), llm.UpstreamTruncated},
		"empty":       {"", llm.UpstreamTruncated},
		"other end":   {head("") + "data: [DONE]\n\n", llm.UpstreamTruncated},
		"overloaded":  {head("") + event("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`), llm.Overloaded},
		"credential":  {event("error", `"error":{"type":"authentication_error","message":"secret"}`), llm.UpstreamAuth},
		"no JSON":     {"data: {\n\n", llm.UpstreamInvalid},
		"no type":     {"data: {}\n\n", llm.UpstreamInvalid},
		"no start":    {blockEvents(0, `{"type":"text","text":"a"}`), llm.UpstreamInvalid},
		"no name":     {head("") + blockEvents(0, `{"type":"tool_use","id":"t"}`), llm.UpstreamInvalid},
		"error alone": {"data: {\"error\":{\"type\":\"api_error\"}}\n\n", llm.Upstream},
	} {
		_, err := read(t, c.stream, &llm.Caps{})
		if got := llm.AsError(err); err == nil || got.Kind != c.want || strings.Contains(got.Message, "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFailed(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   llm.Kind
		param  string
		code   string
	}{
		"bound":     {400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature`" + ` in block."}}`, llm.Invalid, "messages[1]", "reasoning_signature_rejected"},
		"too long":  {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`, llm.Invalid, "", "context_length_exceeded"},
		"member":    {400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9 > 8"}}`, llm.Invalid, "max_tokens", ""},
		"credit":    {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}`, llm.UpstreamQuota, "", ""},
		"billing":   {402, `{}`, llm.UpstreamQuota, "", ""},
		"key":       {401, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, llm.UpstreamAuth, "", ""},
		"rate":      {429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, llm.RateLimited, "", "upstream_rate_limited"},
		"overload":  {529, ``, llm.Overloaded, "", "upstream_overloaded"},
		"vertex":    {400, `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, llm.Invalid, "", ""},
		"not JSON":  {500, `<html>`, llm.Upstream, "", ""},
		"too large": {413, `{}`, llm.TooLarge, "", ""},
	} {
		e := Upstream{}.Failed(c.status, []byte(c.body), 7*time.Second)
		if e.Kind != c.want || e.Param != c.param || e.Code != c.code || e.Message == "" {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

func TestClasses(t *testing.T) {
	want := map[llm.Kind]string{
		llm.Internal: "500 api_error", llm.Invalid: "400 invalid_request_error", llm.Unsupported: "400 invalid_request_error",
		llm.Unauthenticated: "401 authentication_error", llm.Forbidden: "403 permission_error", llm.NoModel: "404 not_found_error",
		llm.NotFound: "404 not_found_error", llm.BadMethod: "405 invalid_request_error", llm.NoSocket: "426 invalid_request_error", llm.WrongHost: "421 invalid_request_error",
		llm.TooLarge: "413 request_too_large", llm.HeadersTooLarge: "431 invalid_request_error", llm.BadMedia: "415 invalid_request_error",
		llm.SlowBody: "408 timeout_error", llm.Conflict: "409 invalid_request_error", llm.RateLimited: "429 rate_limit_error", llm.OverBudget: "429 rate_limit_error",
		llm.Overloaded: "529 overloaded_error", llm.Unavailable: "503 api_error", llm.Upstream: "502 api_error",
		llm.UpstreamInvalid: "502 api_error", llm.UpstreamTruncated: "502 api_error", llm.UpstreamAuth: "502 api_error",
		llm.UpstreamQuota: "502 api_error", llm.UpstreamTimeout: "504 timeout_error", llm.Canceled: "499 api_error",
	}
	for kind := llm.Internal; kind <= llm.Canceled; kind++ {
		e := &llm.Error{Kind: kind, Message: "a \"b\"", Err: errors.New("canary")}
		status, typ, _ := strings.Cut(want[kind], " ")
		if got := fmt.Sprint(Status(e)); got != status {
			t.Errorf("%s: status %s, want %s", kind, got, status)
		}
		if got, want := string(AppendError(nil, e, "r")), `{"type":"error","error":{"type":"`+typ+`","message":"a \"b\""},"request_id":"r"}`; got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
	if got := string(AppendError(nil, &llm.Error{}, "")); strings.Contains(got, "request_id") {
		t.Errorf("got %s", got)
	}
}

// told is a stream of events as a Messages client gets it, and the answer that
// they fold to.
func told(t *testing.T, ask *dialect.Ask, events []llm.Event) (stream, whole string) {
	t.Helper()
	if err := dialecttest.Check(events, true); err != nil {
		t.Fatal(err)
	}
	e := Dialect{}.Encode(ask)
	var out []byte
	for _, event := range events {
		out = e.Event(out, event)
	}
	body := Dialect{}.AppendAnswer(nil, fold(events), ask)
	if !json.Valid(body) {
		t.Fatalf("no JSON: %s", body)
	}
	return string(e.End(out)), string(body)
}

// assembled is the content that a client puts together of a stream.
func assembled(t *testing.T, stream string) (content, end string) {
	t.Helper()
	var blocks []map[string]any
	partial := map[int]string{}
	open := -1
	for frame, err := range sse.All(strings.NewReader(stream), 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Type  string
			Index int
			Block map[string]any    `json:"content_block"`
			Delta map[string]string `json:"-"`
			Raw   json.RawMessage   `json:"delta"`
		}
		if err := json.Unmarshal(frame.Data, &e); err != nil || e.Type != string(frame.Event) {
			t.Fatalf("%v in %s", err, frame.Raw)
		}
		switch e.Type {
		case "content_block_start":
			if open >= 0 || e.Index != len(blocks) {
				t.Fatalf("block %d begins out of turn in\n%s", e.Index, stream)
			}
			open = e.Index
			blocks = append(blocks, e.Block)
		case "content_block_delta":
			if e.Index != open {
				t.Fatalf("block %d is not open in\n%s", e.Index, stream)
			}
			if err := json.Unmarshal(e.Raw, &e.Delta); err != nil {
				t.Fatal(err)
			}
			for name, piece := range e.Delta {
				switch name {
				case "type":
				case "partial_json":
					partial[e.Index] += piece
				default:
					blocks[e.Index][name] = blocks[e.Index][name].(string) + piece
				}
			}
		case "content_block_stop":
			if e.Index != open {
				t.Fatalf("block %d is not open in\n%s", e.Index, stream)
			}
			open = -1
		case "message_delta":
			end = string(frame.Data)
		}
	}
	for i, text := range partial {
		var input any
		if err := json.Unmarshal([]byte(text), &input); err != nil {
			input = map[string]any{"_raw": text}
		}
		blocks[i]["input"] = input
	}
	got, err := json.Marshal(blocks)
	if err != nil || open >= 0 {
		t.Fatalf("%v, block %d is open in\n%s", err, open, stream)
	}
	return string(got), end
}

func TestTellsMessages(t *testing.T) {
	plain := string(llm.Quote(seal.Key{}.Seal("plain")))
	sealed := func(kind string, fields ...string) string {
		var f []seal.Field
		for i := 0; i < len(fields); i += 2 {
			f = append(f, seal.Field{Name: fields[i], Value: []byte(fields[i+1])})
		}
		return string(llm.Quote(seal.Key{}.Seal(kind, f...)))
	}
	google := llm.Opaque{Kind: llm.ThoughtSignature, Vendor: "google", Data: llm.Raw(`"S"`)}
	text := func(item, part int, s string) llm.Event {
		return llm.Delta{Item: item, Part: part, Channel: llm.TextChannel, Data: llm.Quote(s)}
	}
	think := func(item, part int, s string) llm.Event {
		return llm.Delta{Item: item, Part: part, Channel: llm.SummaryChannel, Data: llm.Quote(s)}
	}
	args := func(item int, s string) llm.Event {
		return llm.Delta{Item: item, Channel: llm.ArgsChannel, Data: llm.Quote(s)}
	}
	use := func(item int, id string, states ...llm.Opaque) llm.Event {
		return llm.Open{Item: item, Kind: llm.CallItem, CallID: llm.Quote(id), Name: "f", Opaque: states}
	}
	for name, c := range map[string]struct {
		events       []llm.Event
		finish       llm.Finish
		content, end string
	}{
		"unsigned thinking is marked": {
			[]llm.Event{llm.Open{Kind: llm.ReasoningItem}, think(0, 0, "a"), think(0, 1, "b"), llm.Close{}, llm.Open{Item: 1}, text(1, 0, "t"), llm.Close{Item: 1}},
			llm.Finish{Reason: llm.LengthReached},
			`[{"type":"thinking","thinking":"a\n\nb","signature":` + plain + `},{"type":"text","text":"t"}]`, `"stop_reason":"max_tokens"`},
		"the signature of the call behind it": {
			[]llm.Event{llm.Open{Kind: llm.ReasoningItem}, think(0, 0, "a"), llm.Close{}, use(1, "c1", google), args(1, "{}"), llm.Close{Item: 1}},
			llm.Finish{},
			`[{"type":"thinking","thinking":"a","signature":` + sealed("google.call", "c", `"c1"`, "s", `"S"`) + `},{"type":"tool_use","id":"c1","name":"f","input":{}}]`, `"stop_reason":"tool_use"`},
		"a signed call alone": {
			[]llm.Event{use(0, "c1", google), args(0, `{"a":1}`), llm.Close{}},
			llm.Finish{Reason: llm.ToolsCalled},
			`[{"type":"thinking","thinking":"","signature":` + sealed("google.call", "c", `"c1"`, "s", `"S"`) + `},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]`, `"stop_reason":"tool_use"`},
		"an item of OpenAI": {
			[]llm.Event{llm.Open{Kind: llm.ReasoningItem, ID: llm.Raw(`"rs_1"`)}, llm.Seal{Opaque: llm.Opaque{Kind: llm.Encrypted, Vendor: "openai", Origin: "o", Data: llm.Raw(`"E"`)}}, llm.Close{}},
			llm.Finish{Reason: llm.WindowFull},
			`[{"type":"thinking","thinking":"","signature":` + sealed("openai.item", "id", `"rs_1"`, "e", `"E"`, "o", `"o"`) + `}]`, `"stop_reason":"model_context_window_exceeded"`},
		"native thinking": {
			[]llm.Event{llm.Open{Kind: llm.ReasoningItem}, llm.Seal{Opaque: llm.Opaque{Kind: llm.Redacted, Vendor: "anthropic", Data: llm.Raw(`"R"`)}}, llm.Close{},
				llm.Open{Item: 1, Kind: llm.ReasoningItem}, think(1, 0, "a"), llm.Seal{Item: 1, Opaque: llm.Opaque{Kind: llm.Signature, Vendor: "anthropic", Data: llm.Raw(`"S"`)}}, llm.Close{Item: 1}},
			llm.Finish{Reason: llm.Paused},
			`[{"type":"redacted_thinking","data":"R"},{"type":"thinking","thinking":"a","signature":"S"}]`, `"stop_reason":"pause_turn"`},
		"a refusal": {
			[]llm.Event{llm.Open{}, text(0, 0, "t"), llm.Delta{Channel: llm.RefusalChannel, Part: 1, Data: llm.Raw(`"no"`)}, llm.Close{}},
			llm.Finish{Reason: llm.Refused, Detail: llm.Raw(`"why"`)},
			`[{"type":"text","text":"t"},{"type":"text","text":"no"}]`, `"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":"why"}`},
		"a search": {
			[]llm.Event{llm.Open{Kind: llm.ServerItem}, llm.Close{Server: &llm.ServerCall{Kind: llm.WebSearch, ID: llm.Raw(`"ws"`), Queries: []llm.Raw{llm.Raw(`"q"`)}, Sources: []llm.Source{{URL: llm.Raw(`"u"`)}}}},
				llm.Open{Item: 1}, text(1, 0, "t"), llm.Close{Item: 1}},
			llm.Finish{StopSeq: llm.Raw(`"END"`)},
			`[{"type":"server_tool_use","id":"srvtoolu_ws","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_ws","content":[{"type":"web_search_result","url":"u","title":"u","encrypted_content":"","page_age":null}]},{"type":"text","text":"t"}]`,
			`"stop_reason":"stop_sequence","stop_sequence":"END"`},
		"parallel calls, one after the other": {
			[]llm.Event{use(0, "a"), use(1, "b"), args(1, "{"), args(0, "{"), args(0, "}"), args(1, "}"), llm.Close{Item: 1}, llm.Close{}},
			llm.Finish{Reason: llm.ToolsCalled},
			`[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]`, `"stop_reason":"tool_use"`},
		"only the first choice": {
			[]llm.Event{llm.Open{}, llm.Open{Item: 1, Choice: 1}, text(0, 0, "a"), text(1, 0, "b"), llm.Close{}, llm.Close{Item: 1}},
			llm.Finish{Reason: llm.Filtered}, `[{"type":"text","text":"a"}]`, `"stop_reason":"refusal"`},
		"a call that was cut": {
			[]llm.Event{use(0, "a"), args(0, `{"x":`), llm.Close{}},
			llm.Finish{Reason: llm.LengthReached}, `[{"type":"tool_use","id":"a","name":"f","input":{"_raw":"{\"x\":"}}]`, `"stop_reason":"max_tokens"`},
	} {
		events := append([]llm.Event{llm.Start{Model: llm.Raw(`"up"`)}}, c.events...)
		events = append(events, c.finish, llm.Used{Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5}, Known: true})
		stream, whole := told(t, &dialect.Ask{ID: "1", Model: "asked"}, events)
		content, end := assembled(t, stream)
		var got any
		if err := json.Unmarshal([]byte(content), &got); err != nil {
			t.Fatal(err)
		}
		sameJSON(t, name, got, c.content)
		const usage = `"usage":{"input_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":2,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5}}`
		for _, want := range []string{c.end, usage} {
			if !strings.Contains(end, want) || !strings.Contains(whole, want) {
				t.Errorf("%s: no %s in %s\nor %s", name, want, end, whole)
			}
		}
		var m struct {
			Content   any
			ID, Model string
		}
		if err := json.Unmarshal([]byte(whole), &m); err != nil || m.ID != "msg_1" || m.Model != "up" {
			t.Errorf("%s: %v, %s", name, err, whole)
		}
		sameJSON(t, name+", whole", m.Content, c.content)
	}
}

// What an upstream tells nothing about is told as nothing.
func TestTellsEmptyMessage(t *testing.T) {
	stream, _ := told(t, &dialect.Ask{ID: "1", Model: "asked"}, []llm.Event{llm.Start{}, llm.Ping{}, llm.Finish{}})
	const want = "event: ping\ndata: {\"type\":\"ping\"}\n\n" +
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"asked\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":0}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	if stream != want {
		t.Errorf("got\n%s\nwant\n%s", stream, want)
	}
}

// Clients take the last block for the answer: no signature stands behind it.
func TestTellsTextSignature(t *testing.T) {
	google := llm.Opaque{Kind: llm.ThoughtSignature, Vendor: "google", Data: llm.Raw(`"S"`)}
	said := []llm.Event{llm.Start{}, llm.Open{}, llm.Delta{Data: llm.Raw(`"t"`)}, llm.Seal{Opaque: google}, llm.Close{}}
	signed := func(i string) string {
		sealed := seal.Key{}.Seal("google.text", seal.Field{Name: "i", Value: []byte(i)}, seal.Field{Name: "s", Value: google.Data})
		return `{"type":"thinking","thinking":"","signature":"` + sealed + `"}`
	}
	const block, call = `{"type":"text","text":"t"}`, `{"type":"tool_use","id":"c1","name":"f","input":{}}`
	for _, c := range []struct {
		events   []llm.Event
		streamed string
		whole    string
		untold   llm.Notes
	}{
		{said, `[` + block + `]`, `[` + signed("1") + `,` + block + `]`, llm.Notes{"skip:signature:text"}},
		{append(slices.Clip(said), llm.Open{Item: 1, Kind: llm.CallItem, CallID: llm.Raw(`"c1"`), Name: "f"}, llm.Delta{Item: 1, Channel: llm.ArgsChannel, Data: llm.Raw(`"{}"`)}, llm.Close{Item: 1}),
			`[` + block + `,` + signed("0") + `,` + call + `]`, `[` + signed("1") + `,` + block + `,` + call + `]`, nil},
	} {
		var untold llm.Notes
		ask := &dialect.Ask{ID: "1", Noted: func(n llm.Notes) { untold.Add(n) }}
		stream, whole := told(t, ask, append(c.events, llm.Finish{}))
		content, _ := assembled(t, stream)
		var blocks any
		var m struct{ Content any }
		if err := errors.Join(json.Unmarshal([]byte(content), &blocks), json.Unmarshal([]byte(whole), &m)); err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "stream", blocks, c.streamed)
		sameJSON(t, "whole", m.Content, c.whole)
		if !slices.Equal(untold, c.untold) {
			t.Errorf("notes %v, want %v", untold, c.untold)
		}
	}
}
