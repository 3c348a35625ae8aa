package openaichat

import (
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
)

// asked is a question of a client that answers are encoded for.
func asked(vendor string, req *llm.Request) *dialect.Ask {
	return &dialect.Ask{Request: req, ID: "1", Model: "m", Begun: time.Unix(7, 0), Vendor: vendor}
}

func told(channel llm.Channel, item int, text string) llm.Delta {
	return llm.Delta{Item: item, Channel: channel, Data: llm.Quote(text)}
}

// chunks are what events become in a stream: the choices alone.
func chunks(ask *dialect.Ask, events []llm.Event) string {
	encoder := Dialect{}.Encode(ask)
	var out []byte
	for _, e := range events {
		out = encoder.Event(out, e)
	}
	var lines []string
	for line := range strings.SplitSeq(string(encoder.End(out)), "\n\n") {
		line = strings.TrimPrefix(line, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":`)
		line = strings.ReplaceAll(line, `"logprobs":null,"finish_reason":null}]}`, "")
		line = strings.ReplaceAll(line, `[{"index":0,"delta":`, "")
		lines = append(lines, strings.TrimSuffix(line, ","))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// whole is what they become at once: the choices alone.
func whole(ask *dialect.Ask, events []llm.Event) string {
	var f llm.Folder
	for _, e := range events {
		f.Add(e)
	}
	out := string(Dialect{}.AppendAnswer(nil, &f.Answer, ask))
	out = strings.TrimPrefix(out, `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`)
	return strings.TrimSuffix(out, "]}")
}

const role = `{"role":"assistant","content":"","refusal":null}` + "\n"

func TestAnswers(t *testing.T) {
	message, reasoning := llm.Open{Kind: llm.MessageItem}, llm.Open{Kind: llm.ReasoningItem}
	call := llm.Open{Item: 1, Kind: llm.CallItem, CallID: llm.Quote("a"), Name: "f"}
	stop := llm.Finish{}
	old := &llm.Request{Words: oldWords}
	for _, c := range []struct {
		name   string
		ask    *dialect.Ask
		events []llm.Event
		chunks string
		whole  string
	}{
		{
			name: "nothing at all", ask: asked("", nil), events: []llm.Event{llm.Start{}, stop},
			chunks: role + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole:  `"content":"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}`,
		},
		{
			name: "a text and a call", ask: asked("", nil),
			events: []llm.Event{llm.Start{}, message, told(llm.TextChannel, 0, "x"), llm.Close{}, call, told(llm.ArgsChannel, 1, "{}"), llm.Close{Item: 1}, stop},
			chunks: role + `{"content":"x"}` + "\n" + `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}` + "\n" +
				`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}` + "\n" + `{},"logprobs":null,"finish_reason":"tool_calls"}]}` + "\ndata: [DONE]",
			whole: `"content":"x","refusal":null,"annotations":[],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}`,
		},
		{
			name: "a call of the old form", ask: asked("", old),
			events: []llm.Event{llm.Start{}, message, llm.Close{}, call, told(llm.ArgsChannel, 1, "{}"), llm.Close{Item: 1},
				llm.Open{Item: 2, Kind: llm.CallItem, CallID: llm.Quote("b"), Name: "g"}, told(llm.ArgsChannel, 2, "{}"), llm.Close{Item: 2}, stop},
			chunks: role + `{"function_call":{"name":"f","arguments":""}}` + "\n" + `{"function_call":{"arguments":"{}"}}` + "\n" + `{},"logprobs":null,"finish_reason":"function_call"}]}` + "\ndata: [DONE]",
			whole:  `"content":null,"refusal":null,"annotations":[],"function_call":{"name":"f","arguments":"{}"}},"logprobs":null,"finish_reason":"function_call"}`,
		},
		{
			name: "a custom call", ask: asked("", nil),
			events: []llm.Event{llm.Start{}, llm.Open{Kind: llm.CallItem, CallID: llm.Quote("a"), Name: "p", Call: llm.CustomCall}, told(llm.ArgsChannel, 0, "i"), llm.Close{}, stop},
			chunks: role + `{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"p","input":""}}]}` + "\n" + `{"tool_calls":[{"index":0,"custom":{"input":"i"}}]}` + "\n" + `{},"logprobs":null,"finish_reason":"tool_calls"}]}` + "\ndata: [DONE]",
			whole:  `"content":null,"refusal":null,"annotations":[],"tool_calls":[{"id":"a","type":"custom","custom":{"name":"p","input":"i"}}]},"logprobs":null,"finish_reason":"tool_calls"}`,
		},
		{
			name: "a length stays one beside calls", ask: asked("", nil),
			events: []llm.Event{llm.Start{}, message, llm.Close{}, call, told(llm.ArgsChannel, 1, "{"), llm.Close{Item: 1}, llm.Finish{Reason: llm.WindowFull}},
			chunks: role + `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}` + "\n" + `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}` + "\n" + `{},"logprobs":null,"finish_reason":"length"}]}` + "\ndata: [DONE]",
			whole:  `"content":null,"refusal":null,"annotations":[],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]},"logprobs":null,"finish_reason":"length"}`,
		},
		{
			name: "thinking of a vendor without a form", ask: asked("deepseek", nil), events: []llm.Event{llm.Start{}, reasoning, told(llm.ThinkingChannel, 0, "t"), llm.Close{}, stop},
			chunks: role + `{"reasoning_content":"t"}` + "\n" + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole:  `"content":"","refusal":null,"annotations":[],"reasoning_content":"t"},"logprobs":null,"finish_reason":"stop"}`,
		},
		{
			name: "thinking of OpenAI", ask: asked("openai", nil),
			events: []llm.Event{llm.Start{}, llm.Open{Kind: llm.ReasoningItem, ID: llm.Quote("r"), Block: 2}, told(llm.SummaryChannel, 0, "s"), llm.Seal{Opaque: llm.Opaque{Kind: llm.Encrypted, Vendor: "openai", Data: llm.Quote("E")}}, llm.Close{}, stop},
			chunks: role + `{"reasoning_content":"s","reasoning_details":[{"type":"reasoning.summary","summary":"s","id":"r","format":"openai-responses-v1","index":2}]}` + "\n" +
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"E","id":"r","format":"openai-responses-v1","index":2}]}` + "\n" + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole: `"content":"","refusal":null,"annotations":[],"reasoning_content":"s","reasoning_details":[{"type":"reasoning.summary","summary":"s","id":"r","format":"openai-responses-v1","index":2},{"type":"reasoning.encrypted","data":"E","id":"r","format":"openai-responses-v1","index":2}]},"logprobs":null,"finish_reason":"stop"}`,
		},
		{
			name: "a refusal in words", ask: asked("", nil), events: []llm.Event{llm.Start{}, message, told(llm.RefusalChannel, 0, "no"), llm.Close{}, stop},
			chunks: role + `{"refusal":"no"}` + "\n" + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole:  `"content":null,"refusal":"no","annotations":[]},"logprobs":null,"finish_reason":"stop"}`,
		},
		{
			name: "a refusal without words", ask: asked("", nil), events: []llm.Event{llm.Start{}, llm.Finish{Reason: llm.Refused}},
			chunks: role + `{"refusal":"The model declined to answer."}` + "\n" + `{},"logprobs":null,"finish_reason":"content_filter"}]}` + "\ndata: [DONE]",
			whole:  `"content":null,"refusal":"The model declined to answer.","annotations":[]},"logprobs":null,"finish_reason":"content_filter"}`,
		},
		{
			name: "citations of the second of two texts", ask: asked("", nil),
			events: []llm.Event{llm.Start{}, message, told(llm.TextChannel, 0, "é\"😀"), llm.Close{}, llm.Open{Item: 1, Kind: llm.MessageItem}, told(llm.TextChannel, 1, "ab"),
				llm.Annotate{Item: 1, Annotation: llm.Annotation{URL: llm.Quote("u"), Title: llm.Quote("t"), Start: 1, End: 2}}, llm.Close{Item: 1}, stop},
			chunks: role + `{"content":"é\"😀"}` + "\n" + `{"content":"ab"}` + "\n" + `{"annotations":[{"type":"url_citation","url_citation":{"url":"u","title":"t","start_index":4,"end_index":5}}]}` + "\n" + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole:  `"content":"é\"😀ab","refusal":null,"annotations":[{"type":"url_citation","url_citation":{"url":"u","title":"t","start_index":4,"end_index":5}}]},"logprobs":null,"finish_reason":"stop"}`,
		},
		{
			name: "images, sound and probabilities", ask: asked("", nil),
			events: []llm.Event{llm.Start{}, message, told(llm.TextChannel, 0, "x"), llm.Logprobs{Tokens: []llm.Raw{llm.Raw("{\"token\":\n\"x\"}")}}, told(llm.AudioChannel, 0, "AA"), told(llm.TranscriptChannel, 0, "a"),
				llm.Picture{Media: &llm.Media{Data: llm.Quote("BB"), MIME: "image/webp"}}, llm.Close{}, stop},
			chunks: role + `{"content":"x"}` + "\n" + `{},"logprobs":{"content":[{"token":"x"}],"refusal":null},"finish_reason":null}]}` + "\n" + `{"audio":{"id":"audio_1","expires_at":7,"data":"AA"}}` + "\n" + `{"audio":{"transcript":"a"}}` + "\n" +
				`{"images":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,BB"}}]}` + "\n" + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\ndata: [DONE]",
			whole: `"content":"x","refusal":null,"annotations":[],"images":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,BB"}}],"audio":{"id":"audio_1","data":"AA","expires_at":7,"transcript":"a"}},"logprobs":{"content":[{"token":"x"}],"refusal":null},"finish_reason":"stop"}`,
		},
		{
			name: "usage that was asked for", ask: asked("", &llm.Request{WantsUsage: true}),
			events: []llm.Event{llm.Start{}, stop, llm.Used{Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5}, Known: true}},
			chunks: role + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\n" +
				`[],"usage":{"prompt_tokens":6,"completion_tokens":9,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":5}}}` + "\ndata: [DONE]",
			whole: `"content":"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":6,"completion_tokens":9,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":5}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, used := c.events[len(c.events)-1].(llm.Used); !used {
				if err := dialecttest.Check(c.events, false); err != nil {
					t.Fatalf("the test's own events: %v", err)
				}
			}
			if got := chunks(c.ask, c.events); got != c.chunks {
				t.Errorf("stream: got\n%s\nwant\n%s", got, c.chunks)
			}
			if got := whole(c.ask, c.events); got != c.whole {
				t.Errorf("whole: got\n%s\nwant\n%s", got, c.whole)
			}
		})
	}
}

func TestNothingIsToldBeforeContent(t *testing.T) {
	encoder := Dialect{}.Encode(asked("", nil))
	var out []byte
	for _, e := range []llm.Event{llm.Start{}, llm.Open{Kind: llm.MessageItem}, llm.Ping{}, llm.Used{}, told(llm.TextChannel, 0, "")} {
		out = encoder.Event(out, e)
	}
	if len(out) > 0 {
		t.Errorf("got %s before any content", out)
	}
	out = encoder.Fail(out, llm.Errorf(llm.Upstream, "broken"))
	if want := `data: {"error":{"message":"broken","type":"server_error","param":null,"code":"upstream_error"}}` + "\n\n"; string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
}

func TestSealedTurnHasItsOrigin(t *testing.T) {
	ask := asked("anthropic", nil)
	ask.Origin = "h"
	events := []llm.Event{llm.Start{}, llm.Finish{Turn: &llm.Opaque{Kind: llm.WholeTurn, Vendor: "anthropic", Data: llm.Raw(`[]`)}}}
	const want = `"reasoning_details":[{"type":"reasoning.encrypted","data":"gw1.eyJiIjpbXSwiayI6ImFudGhyb3BpYy50dXJuIiwibyI6ImgifQ","format":"anthropic-claude-v1","index":0}]` // {"b":[],"k":"anthropic.turn","o":"h"}
	for _, got := range []string{chunks(ask, events), whole(ask, events)} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}
