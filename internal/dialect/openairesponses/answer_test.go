package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

func asked(t testing.TB, members string) *dialect.Ask {
	t.Helper()
	req, err := Dialect{}.Decode([]byte(`{"model":"m","input":"x"`+members+`}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	return &dialect.Ask{Request: req, ID: "1", Model: "m", Begun: time.Unix(7, 0)}
}

const sealing = `,"include":["reasoning.encrypted_content"]`

// stream tells events, in full.
func stream(ask *dialect.Ask, events []llm.Event) []byte {
	e := Dialect{}.Encode(ask)
	var out []byte
	for _, ev := range events {
		out = e.Event(out, ev)
	}
	return e.End(out)
}

// whole is the same as one body.
func wholeOf(ask *dialect.Ask, events []llm.Event) []byte {
	var f llm.Folder
	for _, e := range events {
		f.Add(e)
	}
	return Dialect{}.AppendAnswer(nil, &f.Answer, ask)
}

// terminal is the response of a stream's last event.
func terminal(t *testing.T, stream []byte) []byte {
	t.Helper()
	var last []byte
	for f, err := range sse.All(bytes.NewReader(stream), 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		if r := dialect.Member(f.Data, "response"); r != nil {
			last = r.Clone()
		}
	}
	return last
}

func delta(item int, channel llm.Channel, text string) llm.Event {
	return llm.Delta{Item: item, Channel: channel, Data: llm.Quote(text)}
}

func TestAnswers(t *testing.T) {
	call := func(item int, kind llm.CallKind, name, args string) []llm.Event {
		return []llm.Event{llm.Open{Item: item, Kind: llm.CallItem, CallID: llm.Raw(`"c"`), Name: name, Call: kind}, delta(item, llm.ArgsChannel, args), llm.Close{Item: item}}
	}
	text := []llm.Event{llm.Open{Kind: llm.MessageItem}, delta(0, llm.TextChannel, "a"), llm.Delta{Part: 1, Data: llm.Raw(`"b"`)}, llm.Close{}}
	for name, c := range map[string]struct {
		asked  string
		events []llm.Event
		finish llm.Finish
		status string
		output string
	}{
		"texts of one message": {"", text, llm.Finish{}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"ab","annotations":[],"logprobs":[]}],"status":"completed"}`},
		"cut": {"", text, llm.Finish{Reason: llm.WindowFull}, "incomplete",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"ab","annotations":[],"logprobs":[]}],"status":"incomplete"}`},
		"refused": {"", text, llm.Finish{Reason: llm.Refused, Detail: llm.Raw(`"no"`)}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"ab","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no"}],"status":"completed"}`},
		"refused at once": {"", nil, llm.Finish{Reason: llm.Refused, Detail: llm.Raw(`"no"`)}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}],"status":"completed"}`},
		"prompt blocked": {"", []llm.Event{llm.Open{Kind: llm.MessageItem}, delta(0, llm.RefusalChannel, "no"), llm.Close{}}, llm.Finish{Reason: llm.Filtered}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}],"status":"completed"}`},
		"whole call, then cut": {"", call(0, llm.FunctionCall, "f", `{"a":1}`), llm.Finish{Reason: llm.LengthReached}, "incomplete",
			`{"id":"fc_1_0","type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}","status":"completed"}`},
		"cut call": {"", call(0, llm.FunctionCall, "f", `{"a`), llm.Finish{Reason: llm.LengthReached}, "incomplete",
			`{"id":"fc_1_0","type":"function_call","call_id":"c","name":"f","arguments":"{\"a","status":"incomplete"}`},
		"namespace": {"", []llm.Event{llm.Open{Kind: llm.CallItem, CallID: llm.Raw(`"c"`), Name: "f", Space: "n"}, delta(0, llm.ArgsChannel, "{}"), llm.Close{}}, llm.Finish{}, "completed",
			`{"id":"fc_1_0","type":"function_call","call_id":"c","name":"f","namespace":"n","arguments":"{}","status":"completed"}`},
		"custom": {"", call(0, llm.CustomCall, "f", "x"), llm.Finish{}, "completed",
			`{"id":"ctc_1_0","type":"custom_tool_call","call_id":"c","name":"f","input":"x","status":"completed"}`},
		"tool search": {"", call(0, llm.ToolSearchCall, "tool_search", `{"query":"q"}`), llm.Finish{}, "completed",
			`{"id":"tsc_1_0","type":"tool_search_call","execution":"client","call_id":"c","arguments":{"query":"q"},"status":"completed"}`},
		"local shell": {"", call(0, llm.LocalShellCall, "local_shell", `{"command":["ls"]}`), llm.Finish{}, "completed",
			`{"id":"lsh_1_0","type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"}`},
		"shell": {"", call(0, llm.ShellCall, "shell", `{"commands":["ls"]}`), llm.Finish{}, "completed",
			`{"id":"sh_1_0","type":"shell_call","call_id":"c","action":{"commands":["ls"]},"status":"completed"}`},
		"patch": {"", call(0, llm.ApplyPatchCall, "apply_patch", `{"operation":{"type":"delete_file","path":"a"}}`), llm.Finish{}, "completed",
			`{"id":"apc_1_0","type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"a"},"status":"completed"}`},
		"picture": {"", []llm.Event{llm.Open{Kind: llm.MessageItem}, delta(0, llm.TextChannel, "a"), llm.Picture{Media: &llm.Media{Kind: llm.Image, Data: llm.Raw(`"aGk="`)}}, llm.Close{}}, llm.Finish{}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}],"status":"completed"},{"id":"ig_1_1","type":"image_generation_call","status":"completed","result":"aGk="}`},
		"code": {"", []llm.Event{llm.Open{Kind: llm.ServerItem}, llm.Close{Server: &llm.ServerCall{Kind: llm.CodeExecution, Code: llm.Raw(`"1+1"`), Outputs: []llm.Raw{llm.Raw(`"2"`)}}}}, llm.Finish{}, "completed",
			`{"id":"ci_1_0","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"","outputs":[{"type":"logs","logs":"2"}]}`},
		"nothing is sealed unasked": {"", []llm.Event{llm.Open{Kind: llm.ReasoningItem}, delta(0, llm.SummaryChannel, "hm"), llm.Seal{Opaque: llm.Opaque{Data: llm.Raw(`"S"`)}}, llm.Close{}}, llm.Finish{}, "completed",
			`{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"status":"completed"}`},
		"signed thinking": {sealing, []llm.Event{llm.Open{Kind: llm.ReasoningItem}, delta(0, llm.SummaryChannel, "hm"), llm.Seal{Opaque: llm.Opaque{Data: llm.Raw(`"S"`)}}, llm.Close{}}, llm.Finish{}, "completed",
			`{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` + (seal.Key{}).Seal(sealThinking, seal.Field{Name: "s", Value: []byte(`"S"`)}, seal.Field{Name: "t", Value: []byte(`"hm"`)}) + `","status":"completed"}`},
		"signed call alone": {sealing, []llm.Event{llm.Open{Kind: llm.CallItem, CallID: llm.Raw(`"c"`), Name: "f", Opaque: []llm.Opaque{{Kind: llm.ThoughtSignature, Data: llm.Raw(`"S"`)}}}, delta(0, llm.ArgsChannel, "{}"), llm.Close{}}, llm.Finish{}, "completed",
			`{"id":"rs_1_0","type":"reasoning","summary":[],"encrypted_content":"` + (seal.Key{}).Seal(sealCall, seal.Field{Name: "c", Value: []byte(`"c"`)}, seal.Field{Name: "s", Value: []byte(`"S"`)}) + `","status":"completed"},{"id":"fc_1_1","type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"completed"}`},
		"whole turn": {sealing, text, llm.Finish{Turn: &llm.Opaque{Kind: llm.WholeTurn, Data: llm.Raw(`[]`)}}, "completed",
			`{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"ab","annotations":[],"logprobs":[]}],"status":"completed"},{"id":"rs_1_1","type":"reasoning","summary":[],"encrypted_content":"` + (seal.Key{}).Seal(sealTurn, seal.Field{Name: "b", Value: []byte(`[]`)}) + `","status":"completed"}`},
	} {
		t.Run(name, func(t *testing.T) {
			events := append([]llm.Event{llm.Start{}}, c.events...)
			events = append(events, c.finish)
			told := stream(asked(t, c.asked), events)
			checkStream(t, told)
			for way, response := range map[string][]byte{"stream": terminal(t, told), "whole": wholeOf(asked(t, c.asked), events)} {
				if got := string(dialect.Member(response, "output")); got != "["+c.output+"]" {
					t.Errorf("%s: got\n%s\nwant\n[%s]", way, got, c.output)
				}
				if got := dialect.Text(response, "status"); got != c.status {
					t.Errorf("%s: status %s, want %s", way, got, c.status)
				}
			}
		})
	}
}

// Every snapshot has all the members of the schema, with what the client said.
func TestSnapshots(t *testing.T) {
	const request = `,"instructions":"i","temperature":0.5,"metadata":{"a":"b"},"reasoning":{"effort":"low"},"tools":[{"type":"function","name":"f"},{"type":"web_search"}],"text":{"verbosity":"low"}`
	const want = `{"id":"resp_1","object":"response","created_at":7,"completed_at":7,"status":"completed","model":"up","error":null,"incomplete_details":null,"output":[],` +
		`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":6},` +
		`"instructions":"i","previous_response_id":null,"tools":[{"type":"function","name":"f","description":null,"parameters":null,"strict":null},{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":true,"temperature":0.5,"top_p":1,` +
		`"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"max_output_tokens":null,"max_tool_calls":null,"text":{"format":{"type":"text"},"verbosity":"low"},"reasoning":{"effort":"low","summary":null},` +
		`"truncation":"disabled","store":false,"background":false,"service_tier":"default","metadata":{"a":"b"},"safety_identifier":null,"prompt_cache_key":null,"user":null,"conversation":null}`
	events := []llm.Event{llm.Start{Model: llm.Raw(`"up"`)}, llm.Finish{}, llm.Used{Usage: llm.Usage{Input: 3, CacheRead: 2, Output: 1}, Known: true}}
	if got := string(wholeOf(asked(t, request), events)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(terminal(t, stream(asked(t, request), events))); got != want {
		t.Errorf("stream: got\n%s\nwant\n%s", got, want)
	}
}

// Thinking is shown as it is, but for models that tell a summary of it.
func TestThinking(t *testing.T) {
	events := []llm.Event{llm.Start{}, llm.Open{Kind: llm.ReasoningItem}, delta(0, llm.ThinkingChannel, "hm"), llm.Close{}, llm.Finish{}}
	for vendor, want := range map[string]string{
		"":          `[{"id":"rs_1_0","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"status":"completed"}]`,
		"anthropic": `[{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"status":"completed"}]`,
	} {
		ask := asked(t, "")
		ask.Vendor = vendor
		told := stream(ask, events)
		checkStream(t, told)
		for _, response := range [][]byte{terminal(t, told), wholeOf(ask, events)} {
			if got := string(dialect.Member(response, "output")); got != want {
				t.Errorf("%q: got %s, want %s", vendor, got, want)
			}
		}
	}
}

// A failure keeps what was finished, and comes in the forms that a follower
// gives it.
func TestAnswerFails(t *testing.T) {
	e := Dialect{}.Encode(asked(t, ""))
	var out []byte
	for _, ev := range []llm.Event{llm.Start{}, llm.Open{Kind: llm.MessageItem}, delta(0, llm.TextChannel, "a"), llm.Close{}, llm.Open{Item: 1, Kind: llm.CallItem, CallID: llm.Raw(`"c"`), Name: "f"}} {
		out = e.Event(out, ev)
	}
	out = e.Fail(out, llm.Errorf(llm.RateLimited, "slow down"))
	if !bytes.Contains(out, []byte(`"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"},"message":"slow down"`)) || !bytes.HasSuffix(out, []byte(done1)) {
		t.Errorf("got %s", out)
	}
	failed := terminal(t, out)
	if dialect.Text(failed, "status") != "failed" || dialect.Text(failed, "error", "code") != "rate_limit_exceeded" || !bytes.Contains(failed, []byte(`"output":[{"id":"msg_1_0"`)) {
		t.Errorf("got %s", failed)
	}
}

// heardOf writes events as lines.
func heardOf(events []llm.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e := e.(type) {
		case llm.Open:
			fmt.Fprintf(&b, "open %d %d %s %s %s %d\n", e.Item, e.Kind, e.CallID, e.Name, e.Phase, e.Call)
		case llm.Delta:
			fmt.Fprintf(&b, "delta %d %d %d %s\n", e.Item, e.Part, e.Channel, e.Data)
		case llm.Annotate:
			fmt.Fprintf(&b, "annotate %d %s %d-%d\n", e.Item, e.Annotation.URL, e.Annotation.Start, e.Annotation.End)
		case llm.Seal:
			fmt.Fprintf(&b, "seal %d %s %s\n", e.Item, e.Opaque.Vendor, e.Opaque.Data)
		case llm.Close:
			fmt.Fprintf(&b, "close %d %v\n", e.Item, e.Server != nil)
		case llm.Finish:
			fmt.Fprintf(&b, "finish %d\n", e.Reason)
		case llm.Note:
			fmt.Fprintf(&b, "note %s\n", e.Notes)
		}
	}
	return b.String()
}

// hear reads a stream.
func hear(t testing.TB, text string) (events []llm.Event, failure error) {
	t.Helper()
	d := Upstream{}.Answers(nil, &llm.Caps{Vendor: "openai"})
	for f, err := range sse.All(strings.NewReader(text), 1<<20) {
		if err != nil {
			return events, err
		}
		if events, err = d.Frame(events, sse.Frame{Event: bytes.Clone(f.Event), Data: bytes.Clone(f.Data)}); err != nil {
			return events, err
		}
		if d.Done() {
			return events, nil
		}
	}
	return d.End(events)
}

func TestHearsStreams(t *testing.T) {
	const start = `data: {"type":"response.created","response":{"id":"r","model":"m","created_at":1}}` + "\n\n"
	added := func(item string) string {
		return `data: {"type":"response.output_item.added","output_index":0,"item":` + item + "}\n\n"
	}
	over := func(item string) string {
		return `data: {"type":"response.output_item.done","output_index":0,"item":` + item + "}\n\n"
	}
	const end = `data: {"type":"response.completed","response":{"status":"completed","output":[]}}` + "\n\n"
	for name, c := range map[string]struct{ in, want string }{
		"call": {start + added(`{"type":"function_call","call_id":"c","name":"f","arguments":""}`) + `data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}` + "\n\n" + over(`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`) + end,
			"open 0 2 \"c\" f  0\ndelta 0 0 6 \"{}\"\nclose 0 false\nfinish 2\n"},
		"call without deltas": {start + over(`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}`) + end,
			"open 0 2 \"c\" f  0\ndelta 0 0 6 \"{\\\"a\\\":1}\"\nclose 0 false\nfinish 2\n"},
		"call without anything": {start + added(`{"type":"function_call","call_id":"c","name":"f"}`) + end,
			"open 0 2 \"c\" f  0\ndelta 0 0 6 \"{}\"\nclose 0 false\nfinish 2\n"},
		"custom call": {start + over(`{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"}`) + end,
			"open 0 2 \"c\" f  1\ndelta 0 0 6 \"x\"\nclose 0 false\nfinish 2\n"},
		"reasoning": {start + added(`{"type":"reasoning","id":"rs_1","summary":[]}`) + `data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}` + "\n\n" +
			over(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"E"}`) + end,
			"open 0 1    0\ndelta 0 1 5 \"b\"\ndelta 0 0 5 \"a\"\nseal 0 openai \"E\"\nclose 0 false\nfinish 0\n"},
		"text without created": {`data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}` + "\n\n" + `data: {"type":"response.future"}` + "\n\n" + end,
			"open 0 0    0\ndelta 0 0 0 \"a\"\nclose 0 false\nfinish 0\n"},
		"annotation": {start + over(`{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":1}]}]}`) + end,
			"open 0 0   \"final_answer\" 0\ndelta 0 0 0 \"a\"\nannotate 0 \"u\" 0-1\nclose 0 false\nfinish 0\n"},
		"unknown item": {start + added(`{"type":"hologram"}`) + over(`{"type":"hologram"}`) + end, "note skip:item:hologram\nfinish 0\n"},
		"picture":      {start + over(`{"type":"image_generation_call","result":"aGk="}`) + end, "open 0 3    0\nclose 0 true\nfinish 0\n"},
		"only at the end": {`data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}` + "\n\n",
			"open 0 0    0\ndelta 0 0 0 \"a\"\nclose 0 false\nfinish 3\n"},
	} {
		events, err := hear(t, c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := dialecttest.Check(events, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := heardOf(events); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestHearsFailures(t *testing.T) {
	const start = `data: {"type":"response.created","response":{"id":"r","model":"m"}}` + "\n\n"
	for in, want := range map[string]struct {
		kind    llm.Kind
		message string
	}{
		start:                      {llm.UpstreamTruncated, "ended before"},
		start + "data: [DONE]\n\n": {llm.UpstreamTruncated, "ended before"},
		start + `data: {"type":"error","code":"server_error","message":"boom","param":null}` + "\n\n":                                    {llm.Upstream, "boom"},
		start + `data: {"type":"error","error":{"type":"server_error","code":"rate_limit_exceeded","message":"slow"}}` + "\n\n":          {llm.RateLimited, "rate limit"},
		start + `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}` + "\n\n": {llm.Upstream, "x"},
		`data: {"error":{"message":"boom"}}` + "\n\n":                                                                                    {llm.Upstream, "boom"},
		`data: {"type"` + "\n\n": {llm.UpstreamInvalid, "could not be read"},
	} {
		_, err := hear(t, in)
		if e := llm.AsError(err); err == nil || e.Kind != want.kind || e.Kind == llm.RateLimited && e.Code != "upstream_rate_limited" || !strings.Contains(e.Message, want.message) {
			t.Errorf("%s: got %v, want %+v", in, err, want)
		}
	}
}

func TestFailed(t *testing.T) {
	for status, want := range map[int]string{429: "upstream_rate_limited", 503: "upstream_overloaded", 400: "reasoning_signature_rejected"} {
		if e := (Upstream{}).Failed(status, []byte(`{"error":{"message":"m","code":"invalid_encrypted_content"}}`), 0); e.Code != want {
			t.Errorf("%d: got %q, want %q", status, e.Code, want)
		}
	}
}

// Whatever an upstream sends, its events keep their order, and what comes of
// them is a stream that clients can read.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(whole), true)
	f.Add([]byte(response("completed", message+`,{"type":"reasoning","summary":[{"text":"a"}],"encrypted_content":"E"},{"type":"function_call","call_id":"c","name":"f"}`, fullUsage)), false)
	f.Fuzz(func(t *testing.T, body []byte, streamed bool) {
		var events []llm.Event
		var err error
		if streamed {
			events, err = hear(t, string(body))
		} else {
			events, err = Upstream{}.Answers(nil, &llm.Caps{}).Whole(nil, body)
		}
		if bad := dialecttest.Check(events, err == nil); bad != nil && len(events) > 0 {
			t.Fatalf("%q: %v\n%s", body, bad, heardOf(events))
		}
		if err != nil {
			return
		}
		checkStream(t, stream(asked(t, sealing), events))
		if answer := wholeOf(asked(t, sealing), events); !json.Valid(answer) {
			t.Fatalf("%q became no JSON: %s", body, answer)
		}
	})
}
