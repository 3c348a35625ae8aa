package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/sse"
)

func TestReplay(t *testing.T) {
	const (
		text      = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hé\nllo","annotations":[{"type":"url_citation"}],"logprobs":[{"token":"h"}]},{"type":"output_text","text":"","annotations":[]}]}`
		refusal   = `{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`
		call      = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{\"x\": 1}"}`
		noArgs    = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"g","arguments":""}`
		custom    = `{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_3","name":"h","input":"raw \"text\""}`
		reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"AAAA"}`
		silent    = `{"id":"rs_2","type":"reasoning","summary":[]}`
		search    = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
		empty     = `{"id":"msg_3","type":"message","status":"completed","role":"assistant","content":[]}`
	)
	for name, items := range map[string][]string{
		"nothing": nil, "text": {text}, "refusal": {refusal}, "call": {call}, "custom call": {custom}, "reasoning": {reasoning},
		"all": {reasoning, text, call, noArgs, custom, silent, search, refusal, empty},
	} {
		t.Run(name, func(t *testing.T) {
			for _, status := range []string{"completed", "incomplete"} {
				body := response(status, strings.Join(items, ","), fullUsage)
				var printed bytes.Buffer
				if err := json.Indent(&printed, []byte(body), "", "  "); err != nil {
					t.Fatal(err)
				}
				for _, body := range []string{body, printed.String()} { // some servers print their answers for people
					if _, _, err := (Dialect{}).Answer([]byte(body)); err != nil {
						t.Fatal(err)
					}
					stream := Dialect{}.Replay([]byte("before"), []byte(body), &dialect.Request{Stream: true})[len("before"):]
					checkStream(t, stream)
					want := fmt.Sprintf(`"response.%s","sequence_number":`, status)
					if !bytes.Contains(stream, []byte(want)) {
						t.Errorf("no terminal event with %s", want)
					}
					// It is what a follower passes as it is.
					if out, usage, err := follow(newFollower(), bytes.NewReader(stream)); err != nil || !bytes.Equal(out, stream) || usage.Total() != 15 {
						t.Errorf("followed: %v, usage %+v,\n%s\nwant\n%s", err, usage, out, stream)
					}
				}
			}
		})
	}
}

// Exactly what LangChain and the helpers of SDKs need of a call.
func TestReplayOfACall(t *testing.T) {
	const call = `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"}`
	stream := string(Dialect{}.Replay(nil, []byte(response("completed", call, fullUsage)), &dialect.Request{}))
	for _, want := range []string{
		frame(2, "response.output_item.added", `"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"","status":"in_progress"}`),
		frame(3, "response.function_call_arguments.delta", `"item_id":"fc_1","output_index":0,"delta":"{}"`),
		frame(5, "response.output_item.done", `"output_index":0,"item":`+call),
	} {
		if !strings.Contains(stream, want) {
			t.Errorf("no\n%s\nin\n%s", want, stream)
		}
	}
	if !strings.Contains(stream, `"arguments":"{}","name":"f"`) && !strings.Contains(stream, `"name":"f","arguments":"{}"}`) {
		t.Errorf("the final arguments come without the name of the function:\n%s", stream)
	}
}

// An upstream's answer can lack what its schema wants. What comes of it must
// still be a stream of JSON.
func TestReplayOfIncompleteItems(t *testing.T) {
	for _, items := range []string{
		`{"type":"message","id":"a","content":[{"type":"output_text"}]}`,
		`{"type":"message","id":"a","content":[{"type":"refusal"}]}`,
		`{"type":"message","id":"a","content":[{"type":"output_text","text":null,"logprobs":null}]}`,
		`{"type":"message","id":"a","content":null}`,
		`{"type":"message","id":"a","content":"text"}`,
		`{"type":"message"}`,
		`{"type":"message","content":[1,"x",null,{"type":"new"},{"type":"output_text","type":"x"}]}`,
		`{"type":"function_call","id":"a"}`,
		`{"type":"custom_tool_call","id":"a","input":null}`,
		`{"type":"reasoning","id":"a","summary":[{},{"text":1},"x"]}`,
		`{"type":"new_thing"}`,
		`{}`,
		`1,"x",null,[]`,
	} {
		for f, err := range sse.All(bytes.NewReader(Dialect{}.Replay(nil, []byte(response("completed", items, "null")), &dialect.Request{})), 1<<20) {
			if err != nil {
				t.Fatal(err)
			}
			if string(f.Data) != "[DONE]" && !json.Valid(f.Data) {
				t.Errorf("%s: no JSON: %s", items, f.Data)
			}
		}
	}
}

// Some clients ask again without end when the terminal event has no usage.
func TestReplayWithoutUsage(t *testing.T) {
	stream := string(Dialect{}.Replay(nil, []byte(response("completed", message, "null")), &dialect.Request{}))
	terminal := stream[strings.Index(stream, "event: response.completed"):]
	if !strings.Contains(terminal, `"usage":{"input_tokens":`) {
		t.Errorf("the terminal event has no usage: %s", terminal)
	}
}

func FuzzReplayResponses(f *testing.F) {
	f.Add([]byte(response("completed", message+`,{"type":"reasoning","summary":[{"text":"a"}]},{"type":"function_call","arguments":{}}`, fullUsage)))
	f.Add([]byte("{\"status\":\"incomplete\",\"output\":[\n{\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\n\"refusal\":1}]}]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, _, err := (Dialect{}).Answer(body); err != nil {
			return
		}
		var last string
		for f, err := range sse.All(bytes.NewReader(Dialect{}.Replay(nil, body, &dialect.Request{})), 1<<22) {
			if err != nil {
				t.Fatal(err)
			}
			if last = string(f.Data); last != "[DONE]" && !json.Valid(f.Data) {
				t.Errorf("%q: no JSON: %q", body, f.Data)
			}
		}
		if last != "[DONE]" {
			t.Errorf("%q has no end", body)
		}
	})
}
