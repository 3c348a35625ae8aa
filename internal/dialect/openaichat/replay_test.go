package openaichat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
)

// said is what a client puts together of a stream of chunks.
type said struct {
	content, reasoning, refusal string
	calls                       []string // id, name, arguments
	finish                      string
}

// assemble reads a stream as the strictest clients do.
func assemble(t *testing.T, stream []byte) (choices map[int]*said, usage string) {
	t.Helper()
	type part struct {
		ID, Name, Arguments string
	}
	choices = map[int]*said{}
	calls := map[int][]part{}
	id, model := "", ""
	data := dataOf(t, stream)
	for i, d := range data {
		if d == end {
			if i != len(data)-1 {
				t.Error("the stream goes on after its end")
			}
			break
		}
		var c struct {
			ID, Object, Model string
			Created           *int64
			Choices           []struct {
				Index        *int
				FinishReason *string `json:"finish_reason"`
				Delta        *struct {
					Role, Content, Refusal string
					Reasoning              string `json:"reasoning_content"`
					ToolCalls              []struct {
						Index    *int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Usage json.RawMessage
		}
		if err := json.Unmarshal([]byte(d), &c); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		if c.Object != "chat.completion.chunk" || c.Created == nil || c.Choices == nil {
			t.Errorf("no chunk of the contract: %s", d)
		}
		if i > 0 && (c.ID != id || c.Model != model) {
			t.Errorf("chunk is of %q, %q, want %q, %q", c.ID, c.Model, id, model)
		}
		id, model = c.ID, c.Model
		if len(c.Choices) == 0 {
			usage += string(c.Usage)
		}
		for _, choice := range c.Choices {
			if choice.Index == nil || choice.Delta == nil {
				t.Fatalf("choice without index or delta: %s", d)
			}
			n := *choice.Index
			s, known := choices[n]
			if !known {
				s = &said{}
				choices[n] = s
				if choice.Delta.Role != "assistant" {
					t.Errorf("choice %d begins without a role: %s", n, d)
				}
			}
			if s.finish != "" {
				t.Errorf("choice %d goes on after its finish: %s", n, d)
			}
			s.content += choice.Delta.Content
			s.reasoning += choice.Delta.Reasoning
			s.refusal += choice.Delta.Refusal
			for _, call := range choice.Delta.ToolCalls {
				if call.Index == nil || *call.Index > len(calls[n]) {
					t.Fatalf("call without an index, or out of order: %s", d)
				}
				if *call.Index == len(calls[n]) {
					if call.ID == "" || call.Type != "function" || call.Function.Name == "" {
						t.Errorf("call begins without ID, type or name: %s", d)
					}
					calls[n] = append(calls[n], part{})
				}
				p := &calls[n][*call.Index]
				p.ID += call.ID
				p.Name += call.Function.Name
				p.Arguments += call.Function.Arguments
			}
			if choice.FinishReason != nil {
				s.finish = *choice.FinishReason
			}
		}
	}
	for n, s := range choices {
		for _, p := range calls[n] {
			s.calls = append(s.calls, fmt.Sprint(p.ID, " ", p.Name, " ", p.Arguments))
		}
		if s.finish == "" {
			t.Errorf("choice %d has no finish", n)
		}
	}
	return choices, usage
}

func TestReplay(t *testing.T) {
	const whole = `{"id":"c","object":"chat.completion","created":7,"model":"m","choices":[%s],"usage":` + counts + `,"system_fingerprint":"f"}`
	for name, tt := range map[string]struct {
		choices string
		want    map[int]said
	}{
		"text": {
			`{"index":0,"message":{"role":"assistant","content":"hé\nllo","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}`,
			map[int]said{0: {content: "hé\nllo", finish: "stop"}},
		},
		"reasoning and refusal": {
			`{"index":0,"message":{"role":"assistant","content":null,"refusal":"no","reasoning_content":"hm"},"finish_reason":"length"}`,
			map[int]said{0: {reasoning: "hm", refusal: "no", finish: "length"}},
		},
		"calls": {
			`{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":"tool_calls"}`,
			map[int]said{0: {calls: []string{`a f {"x":1}`, `b g `}, finish: "tool_calls"}},
		},
		"two choices": {
			`{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"b","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}`,
			map[int]said{0: {content: "a", finish: "stop"}, 1: {content: "b", calls: []string{"a f {}"}, finish: "tool_calls"}},
		},
		// What Follow mends, clients break on here, too.
		"no role":                  {`{"index":0,"message":{"content":"a"},"finish_reason":"stop"}`, map[int]said{0: {content: "a", finish: "stop"}}},
		"stop with calls":          {`{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}`, map[int]said{0: {calls: []string{"a f {}"}, finish: "tool_calls"}}},
		"finish in other words":    {`{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"eos"}`, map[int]said{0: {content: "a", finish: "stop"}}},
		"no finish":                {`{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":null}`, map[int]said{0: {content: "a", finish: "stop"}}},
		"arguments as an object":   {`{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}`, map[int]said{0: {calls: []string{`a f {"x":1}`}, finish: "tool_calls"}}},
		"calls without their type": {`{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}`, map[int]said{0: {calls: []string{"a f {}"}, finish: "tool_calls"}}},
	} {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(whole, tt.choices)
			var printed bytes.Buffer
			if err := json.Indent(&printed, []byte(body), "", "  "); err != nil {
				t.Fatal(err)
			}
			for _, body := range []string{body, printed.String()} { // some servers print their answers for people
				if _, _, err := (Dialect{}).Answer([]byte(body)); err != nil {
					t.Fatal(err)
				}
				for _, wantsUsage := range []bool{false, true} {
					stream := Dialect{}.Replay([]byte(": before\n\n"), []byte(body), &dialect.Request{Stream: true, WantsUsage: wantsUsage})
					stream = stream[len(": before\n\n"):]
					choices, usage := assemble(t, stream)
					got := map[int]said{}
					for n, s := range choices {
						got[n] = *s
					}
					equal := func(a, b said) bool {
						return a.content == b.content && a.reasoning == b.reasoning && a.refusal == b.refusal && a.finish == b.finish && slices.Equal(a.calls, b.calls)
					}
					if !maps.EqualFunc(got, tt.want, equal) {
						t.Errorf("got  %+v\nwant %+v", got, tt.want)
					}
					if (usage != "") != wantsUsage || wantsUsage && strings.Join(strings.Fields(usage), "") != counts {
						t.Errorf("usage is %q, want it: %v", usage, wantsUsage)
					}
				}
			}
		})
	}
}

func TestReplayWithoutUsage(t *testing.T) {
	for _, usage := range []string{`null`, `[]`} {
		stream := Dialect{}.Replay(nil, []byte(`{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":`+usage+`}`), &dialect.Request{WantsUsage: true})
		if choices, got := assemble(t, stream); got != "" || choices[0].content != "a" {
			t.Errorf("%s: got usage %q and %+v", usage, got, choices[0])
		}
	}
}

func FuzzReplayChat(f *testing.F) {
	f.Add([]byte(`{"id":"c","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"a","function":{"arguments":{}}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte("{\"choices\":[\n1,{\"message\":{\"tool_calls\":[\n2]}}]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, _, err := (Dialect{}).Answer(body); err != nil {
			return
		}
		data := dataOf(t, Dialect{}.Replay(nil, body, &dialect.Request{WantsUsage: true}))
		if len(data) < 2 || data[len(data)-1] != end {
			t.Errorf("%q became %q", body, data)
		}
	})
}
