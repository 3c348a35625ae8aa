package openaichat

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// FuzzRequest takes a request through both halves: what is accepted becomes
// JSON, the same every time.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m",` + askX + `,"tools":[` + toolF + `],"stream":true,"reasoning_effort":"low"}`))
	f.Add([]byte(`{"messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"S","format":"anthropic-claude-v1","index":1}],"tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"r"}]}`))
	f.Add([]byte(`{"functions":[{"name":"f"}],"messages":[{"role":"assistant","function_call":{"name":"f"}},{"role":"function","name":"f","content":"r"}]}`))
	caps := []*llm.Caps{
		{Model: "m"},
		{Model: "m", Chat: llm.ChatCaps{Native: true, Breakpoints: true}},
		{Model: "m", Chat: llm.ChatCaps{OneSystem: true, Strict: true, Reasoning: "reasoning_details", Echo: llm.EchoAlways, CallID: "^[a-z]{3}$", NamedTools: true}},
		{Model: "m", Chat: llm.ChatCaps{
			Reasoning: "reasoning", Echo: llm.EchoAlways, EchoTags: true, CacheControl: true, MaxMarks: 1, StrictAlike: true, TypedAnyOf: true, AudioURL: true, DocumentURL: true,
			Temperature: [2]float64{0.01, 1}, ZeroTemperature: `{"do_sample":false}`, Budget: "b", Hide: `{"h":1}`, ParallelOff: true, ToolStream: `{"s":1}`, NoThinkingTools: true,
		}},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var look dialect.Request
		if (Dialect{}).Inspect(body, &look) != nil {
			return
		}
		req, err := Dialect{}.Decode(body, seal.Key{})
		if err != nil {
			if llm.AsError(err).Kind == llm.Internal {
				t.Fatal(err)
			}
			return
		}
		for _, c := range caps {
			call, err := Upstream{}.Encode(req, c)
			if err != nil {
				continue
			}
			if !json.Valid(call.Body) {
				t.Fatalf("no JSON: %s", call.Body)
			}
			if again, err := (Upstream{}).Encode(req, c); err != nil || !bytes.Equal(again.Body, call.Body) {
				t.Fatalf("%s\nbecomes %s\nthe second time, %v", call.Body, again.Body, err)
			}
		}
	})
}

// FuzzAnswer decodes a stream, or a whole answer: events keep their order, and
// both of their encodings are JSON.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("data: " + piece(`"content":"x","reasoning":"t"`) + "\n\ndata: " + finished + "\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: " + piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`) + "\n\ndata: " + finished + "\n\n"))
	f.Add([]byte(`{"id":"i","choices":[{"message":{"content":[{"type":"text","text":"x"}],"refusal":"n","annotations":[{"url_citation":{"url":"u"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte("data: " + piece(`"content":"<think>a</th"`) + "\n\ndata: " + piece(`"content":"ink>\n b"`) + "\n\ndata: " + finished + "\n\n"))
	f.Add([]byte("data: " + piece(`"reasoning_details":[{"text":"a"}]`) + "\n\ndata: " + piece(`"reasoning_details":[{"text":"ab"}]`) + "\n\ndata: " + finished + "\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, caps := range []*llm.Caps{{}, {Chat: llm.ChatCaps{Tags: true, Snapshots: true}}} {
			fuzzAnswer(t, caps, in)
		}
	})
}

func fuzzAnswer(t *testing.T, caps *llm.Caps, in []byte) {
	ask := asked("anthropic", &llm.Request{WantsUsage: true})
	check := func(events []llm.Event, ended bool) {
		if err := dialecttest.Check(events, ended); err != nil {
			t.Fatalf("%v in %s", err, shownEvents(events))
		}
		encoder := Dialect{}.Encode(ask)
		var out []byte
		for _, e := range events {
			out = encoder.Event(out, e)
		}
		for frame, err := range sse.All(bytes.NewReader(encoder.End(out)), 1<<20) {
			if err != nil || len(frame.Data) > 0 && string(frame.Data) != "[DONE]" && !json.Valid(frame.Data) {
				t.Fatalf("no JSON: %s, %v", frame.Data, err)
			}
		}
		var fold llm.Folder
		for _, e := range events {
			fold.Add(e)
		}
		if body := (Dialect{}).AppendAnswer(nil, &fold.Answer, ask); !json.Valid(body) {
			t.Fatalf("no JSON: %s", body)
		}
	}
	d := Upstream{}.Answers(&dialect.Call{}, caps)
	if events, err := d.Whole(nil, in); err == nil {
		check(events, true)
	}
	d = Upstream{}.Answers(&dialect.Call{}, caps)
	var events []llm.Event
	for frame, err := range sse.All(bytes.NewReader(in), 1<<20) {
		if err != nil || len(frame.Data) == 0 {
			continue
		}
		frame.Data = bytes.Clone(frame.Data)
		if events, err = d.Frame(events, frame); err != nil || d.Done() {
			check(events, err == nil)
			return
		}
	}
	var err error
	events, err = d.End(events)
	check(events, err == nil)
}
