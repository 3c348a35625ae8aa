package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// carried starts a translated call whose answer may be gone on with.
func carried(t *testing.T, in dialect.Inbound, body string) *dialect.Translation {
	t.Helper()
	req, err := in.Decode([]byte(body), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dialect.Translate(req, in, anthropic.Upstream{}, &llm.Caps{Model: "a"}, &dialect.Ask{Request: req, ID: "1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	tr.Carry(req)
	return tr
}

// feed has the frames of a stream followed.
func feed(t *testing.T, dst []byte, tr *dialect.Translation, stream string) []byte {
	t.Helper()
	for frame, err := range sse.All(strings.NewReader(stream), 1<<20) {
		if err == nil {
			dst, _, err = tr.Frame(dst, frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dst
}

// goOn has a chat upstream go on with the answer.
func goOn(t *testing.T, dst []byte, tr *dialect.Translation) (*dialect.Call, []byte) {
	t.Helper()
	caps := &llm.Caps{Model: "b"}
	call, err := tr.Continue(openaichat.Upstream{}, caps)
	if err != nil {
		t.Fatal(err)
	}
	return call, tr.Resumed(dst, call, openaichat.Upstream{}, caps, nil)
}

const (
	claudeBegins = `event: message_start
data: {"type":"message_start","message":{"id":"x","role":"assistant","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}

`
	claudeSays = `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"One, \"two\","}}

`
	claudeThinks = `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Count."}}

`
	claudeCalls = `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}

`
	chatGoesOn = `data: {"id":"y","choices":[{"index":0,"delta":{"role":"assistant","content":" three."}}]}

data: {"id":"y","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}

data: [DONE]

`
)

// An answer that breaks off within a text goes on in the same text, from what
// another upstream is told was said.
func TestContinue(t *testing.T) {
	tr := carried(t, openairesponses.Dialect{}, `{"model":"m","stream":true,"input":"count"}`)
	out := feed(t, nil, tr, claudeBegins+claudeSays)
	if !tr.Continues() {
		t.Fatal("a text cannot be gone on with")
	}
	call, out := goOn(t, out, tr)
	if want := `{"role":"assistant","content":"One, \"two\","},{"role":"user","content":"Your answer broke off.`; !bytes.Contains(call.Body, []byte(want)) {
		t.Errorf("the request has not %s\n%s", want, call.Body)
	}
	out = feed(t, out, tr, chatGoesOn)
	if !tr.Done() {
		t.Error("the answer is not done")
	}
	for _, want := range []string{`"text":"One, \"two\", three."`, `event: response.completed`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the stream has not %s\n%s", want, out)
		}
	}
	for _, once := range []string{"event: response.created", "event: response.output_item.added", "event: response.completed"} {
		if n := bytes.Count(out, []byte(once)); n != 1 {
			t.Errorf("%s came %d times", once, n)
		}
	}
	if u := tr.Usage(100); u.Input < 9+5 || u.Output < 2 || !u.Estimated {
		t.Errorf("used %+v, of both upstreams, one of which broke off", u)
	}
}

// Thoughts end where they broke off, and the other upstream answers anew.
func TestContinueThoughts(t *testing.T) {
	tr := carried(t, openaichat.Dialect{}, `{"model":"m","stream":true,"messages":[{"role":"user","content":"count"}]}`)
	out := feed(t, nil, tr, claudeBegins+claudeThinks)
	call, out := goOn(t, out, tr)
	if bytes.Contains(call.Body, []byte("broke off")) || bytes.Contains(call.Body, []byte("Count.")) {
		t.Errorf("the model is told of thoughts: %s", call.Body)
	}
	out = feed(t, out, tr, chatGoesOn)
	if !bytes.Contains(out, []byte(`"content":" three."`)) || !bytes.HasSuffix(out, []byte("data: [DONE]\n\n")) {
		t.Errorf("got %s", out)
	}
}

// What does not go on with the text stands behind it: it was closed before.
func TestContinueBehind(t *testing.T) {
	const body = `{"model":"m","stream":true,"input":"count","tools":[{"type":"function","name":"f","parameters":{},"strict":false}]}`
	for _, c := range []struct{ name, rest, want string }{
		{"a call", `data: {"id":"y","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"id":"y","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`, `"call_id":"c"`},
		{"thoughts and a call", `data: {"id":"y","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Hm."}}]}

data: {"id":"y","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"id":"y","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`, `"call_id":"c"`},
		{"nothing", `data: {"id":"y","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`, `"text":"One, \"two\","`},
	} {
		tr := carried(t, openairesponses.Dialect{}, body)
		out := feed(t, nil, tr, claudeBegins+claudeSays)
		_, out = goOn(t, out, tr)
		out = feed(t, out, tr, c.rest)
		for _, want := range []string{c.want, "event: response.completed"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s: the stream has not %s\n%s", c.name, want, out)
			}
		}
		if added, done := bytes.Count(out, []byte("event: response.output_item.added")), bytes.Count(out, []byte("event: response.output_item.done")); added != done {
			t.Errorf("%s: %d items began, %d ended\n%s", c.name, added, done, out)
		}
	}
}

// Who is held to JSON begins it anew: both halves are none together.
func TestContinueNotJSON(t *testing.T) {
	tr := carried(t, openaichat.Dialect{}, `{"model":"m","stream":true,"messages":[{"role":"user","content":"count"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`)
	out := feed(t, nil, tr, claudeBegins)
	if !tr.Continues() {
		t.Error("what has said nothing is not gone on with")
	}
	feed(t, out, tr, claudeSays)
	if tr.Continues() {
		t.Error("JSON is gone on with")
	}
}

// What has begun a call of a tool is not gone on with: it might be run twice.
func TestContinueNot(t *testing.T) {
	tr := carried(t, openaichat.Dialect{}, `{"model":"m","stream":true,"messages":[{"role":"user","content":"count"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	feed(t, nil, tr, claudeBegins+claudeCalls)
	if tr.Continues() {
		t.Error("a call of a tool is gone on with")
	}
}
