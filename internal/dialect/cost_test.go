package dialect_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// answering are the events of an answer that used so much.
func answering(used llm.Used) []llm.Event {
	return []llm.Event{
		llm.Start{Model: llm.Raw(`"m"`)},
		llm.Open{Kind: llm.MessageItem},
		llm.Delta{Data: llm.Raw(`"ok"`)},
		llm.Close{},
		used,
		llm.Finish{},
	}
}

// saidTo is an answer as clients of a dialect are told it: whole, and as a
// stream.
func saidTo(d dialect.Inbound, used llm.Used, cost dialect.Cost) (whole, stream []byte) {
	ask := func() *dialect.Ask {
		return &dialect.Ask{Request: &llm.Request{WantsUsage: true}, ID: "1", Model: "m", Begun: time.Unix(1, 0), Cost: cost}
	}
	encoder := d.Encode(ask())
	var fold llm.Folder
	for _, e := range answering(used) {
		stream = encoder.Event(stream, e)
		fold.Add(e)
	}
	return d.AppendAnswer(nil, &fold.Answer, ask()), encoder.End(stream)
}

// Clients are told all that their dialect has words for, and what it costs when
// that was asked for.
func TestClientsAreTold(t *testing.T) {
	text := llm.Usage{Input: 10, CacheRead: 20, CacheWrite: 3, Output: 6, Reasoning: 7}
	all := llm.Usage{
		Input: 10, CacheRead: 20, CacheWrite: 3, HourWrite: 4, AudioIn: 5, Output: 6, Reasoning: 7, AudioOut: 8, ImageOut: 9,
		Searches: 2, Service: llm.Priority,
	}
	for _, test := range []struct {
		door  string
		used  llm.Used
		price string // "" when nobody asked
		want  string
	}{
		{"openai.chat", llm.Used{Usage: text, Known: true}, "",
			`"usage":{"prompt_tokens":33,"completion_tokens":13,"total_tokens":46,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":7}}}`},
		{"openai.chat", llm.Used{Usage: all, Known: true}, "0.0125",
			`"usage":{"prompt_tokens":42,"completion_tokens":30,"total_tokens":72,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":7,"audio_tokens":5},` +
				`"completion_tokens_details":{"reasoning_tokens":7,"audio_tokens":8,"image_tokens":9},"cost":0.0125},"service_tier":"priority"}`},
		{"openai.chat", llm.Used{Usage: text}, "0.0125",
			`"completion_tokens_details":{"reasoning_tokens":7},"cost":null}}`},
		{"openai.responses", llm.Used{Usage: text, Known: true}, "",
			`"usage":{"input_tokens":33,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":3},"output_tokens":13,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":46},"instructions":null`},
		{"openai.responses", llm.Used{Usage: all, Known: true}, "0.0125",
			`"usage":{"input_tokens":42,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":7,"audio_tokens":5},"output_tokens":30,` +
				`"output_tokens_details":{"reasoning_tokens":7,"audio_tokens":8,"image_tokens":9},"total_tokens":72,"cost":0.0125},"instructions":null`},
		{"openai.responses", llm.Used{Usage: all, Known: true}, "", `"service_tier":"priority"`},
		{"openai.responses", llm.Used{Usage: text, Known: true}, "", `"service_tier":"default"`},
		{"openai.responses", llm.Used{}, "0.0125", `"total_tokens":1,"cost":null},"instructions":null`},
		{"anthropic.messages", llm.Used{Usage: text, Known: true}, "",
			`"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":13,"output_tokens_details":{"thinking_tokens":7}}}`},
		{"anthropic.messages", llm.Used{Usage: all, Known: true}, "0.0125",
			`"usage":{"input_tokens":15,"cache_creation_input_tokens":7,"cache_read_input_tokens":20,"output_tokens":30,"output_tokens_details":{"thinking_tokens":7},` +
				`"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"server_tool_use":{"web_search_requests":2},"service_tier":"priority","cost":0.0125}}`},
		{"anthropic.messages", llm.Used{Usage: llm.Usage{Output: 13}}, "0.0125", `,"cost":null}}`},
		{"google.generateContent", llm.Used{Usage: all, Known: true}, "",
			`"usageMetadata":{"promptTokenCount":42,"cachedContentTokenCount":20,"candidatesTokenCount":23,"thoughtsTokenCount":7,"totalTokenCount":72,` +
				`"promptTokensDetails":[{"modality":"TEXT","tokenCount":37},{"modality":"AUDIO","tokenCount":5}],` +
				`"candidatesTokensDetails":[{"modality":"TEXT","tokenCount":6},{"modality":"AUDIO","tokenCount":8},{"modality":"IMAGE","tokenCount":9}],"serviceTier":"priority"}`},
		{"google.generateContent", llm.Used{Usage: text, Known: true}, "",
			`"usageMetadata":{"promptTokenCount":33,"cachedContentTokenCount":20,"candidatesTokenCount":6,"thoughtsTokenCount":7,"totalTokenCount":46}`},
	} {
		var cost dialect.Cost
		if test.price != "" {
			cost = func(u llm.Usage) (money.Amount, bool) {
				if u != test.used.Usage {
					t.Errorf("%s: the cost is asked of %+v", test.door, u)
				}
				a, err := money.Parse(test.price)
				return a, err == nil
			}
		}
		whole, stream := saidTo(doors[test.door].inbound, test.used, cost)
		for how, said := range map[string][]byte{"whole": whole, "streamed": stream} {
			told := min(len(test.price), 1)
			if !strings.Contains(string(said), test.want) || bytes.Count(said, []byte(`"cost":`)) != told {
				t.Errorf("%s %s:\ngot  %s\nwant %s", test.door, how, said, test.want)
			}
		}
	}
}

// A cost that is not known is null, and one that an upstream states gives way.
func TestCostInUsage(t *testing.T) {
	unknown := func(llm.Usage) (money.Amount, bool) { return 7, false }
	price := func(llm.Usage) (money.Amount, bool) { return 7, true }
	for _, test := range []struct {
		cost           dialect.Cost
		object, wanted string
		known          bool
	}{
		{nil, `{"a": 1}`, `{"a": 1}`, true},
		{price, `{"a": 1}`, `{"a": 1,"cost":0.000000007}`, true},
		{price, `{}`, `{"cost":0.000000007}`, true},
		{price, `{"a": 1}`, `{"a": 1,"cost":null}`, false},
		{unknown, `{"a": 1}`, `{"a": 1,"cost":null}`, true},
		{price, `{"cost": {"total_cost": 3}, "a":1}`, `{"cost": 0.000000007, "a":1}`, true},
		{price, `null`, `null`, true},
		{price, ``, ``, true},
	} {
		if got := string(test.cost.In([]byte(test.object), llm.Usage{}, test.known)); got != test.wanted {
			t.Errorf("%s: got %s, want %s", test.object, got, test.wanted)
		}
	}
}

func TestServiceOf(t *testing.T) {
	for word, want := range map[string]llm.Service{
		``: llm.Standard, `null`: llm.Standard, `""`: llm.Standard, `"auto"`: llm.Standard, `"default"`: llm.Standard, `"STANDARD"`: llm.Standard,
		`"on_demand"`: llm.Standard, `"flex"`: llm.Flex, `"priority"`: llm.Priority, `"fast"`: llm.Priority, `"batch"`: llm.Batch,
		`"scale"`: llm.Other, `"reserved"`: llm.Other, `"ultrafast"`: llm.Other,
	} {
		if got := dialect.ServiceOf(llm.Raw(word)); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}
