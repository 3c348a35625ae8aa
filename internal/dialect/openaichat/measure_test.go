package openaichat

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/tokens"
)

var (
	gpt4o = llm.Tokenizer{Vocabulary: "o200k_base", Message: 3, Name: 1, Reply: 3, Function: 7}
	gpt4  = llm.Tokenizer{Vocabulary: "cl100k_base", Message: 3, Name: 1, Reply: 3, Function: 10}
)

// The examples of OpenAI's cookbook, with the counts that the service gave.
const (
	jargon = `{"model":"m","messages":[
{"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
{"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},
{"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},
{"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
{"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},
{"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}]}`
	weather = `{"messages":[
{"role":"system","content":"You are a helpful assistant that can answer to questions about the weather."},
{"role":"user","content":[{"type":"text","text":"What's the weather like in San Francisco?"}]}],
"tools":[{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather in a given location","parameters":{"type":"object","properties":{
"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
"unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},"required":["location"]}}}]}`
)

func TestMeasure(t *testing.T) {
	const hi = 8 // 3 + "user" + "Hi" + 3
	user := func(content string) string { return `{"messages":[{"role":"user","content":` + content + `}]}` }
	for name, tt := range map[string]struct {
		body  string
		by    llm.Tokenizer
		want  int64
		exact bool
	}{
		"messages":            {jargon, gpt4o, 124, true},
		"messages, older":     {jargon, gpt4, 129, true},
		"functions":           {weather, gpt4o, 101, true},
		"functions, older":    {weather, gpt4, 105, true},
		"a text":              {user(`"Hi"`), gpt4o, hi, true},
		"escaped":             {user(`"\u0048\u0069"`), gpt4o, hi, true},
		"nothing":             {`{}`, gpt4o, 3, true},
		"what does not count": {`{"messages":[{"role":"user","content":"Hi"}],"max_tokens":100000,"metadata":{"a":"b"},"tools":[]}`, gpt4o, hi, true},
		"a function of nothing": {
			`{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, gpt4o, hi + 7 + 2 + 12, true,
		},
		"the server's own prompt": {user(`"Hi"`), llm.Tokenizer{Message: 3, Reply: 3, Guess: true}, hi, false},
		"an image":                {user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 4000) + `"}}]`), gpt4o, hi - 1 + 765, false},
		"an image of few details": {user(`[{"type":"image_url","image_url":{"url":"https://a.example/","detail":"low"}},{"type":"text","text":"Hi"}]`), gpt4o, hi + 85, false},
		"sound":                   {user(`[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]`), gpt4o, hi - 1 + 17, false},
		"calls": {
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"call_1","content":"Hi"}]}`, gpt4o, 3 + 1 + 3 + 1 + 1 + 3 + 1 + 1 + 3, false,
		},
		"reasoning": {`{"messages":[{"role":"assistant","content":"Hi","reasoning_content":"Hi"}]}`, gpt4o, hi + 1, false},
		"a nested schema": {
			`{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"array","items":{}}}}}}]}`,
			gpt4o, hi + 7 + 2 + 12 + 14, false,
		},
		"a custom tool":      {`{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"custom"}]}`, gpt4o, hi + 12 + 5, false},
		"a schema to answer": {`{"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x"}}}`, gpt4o, hi + 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			vocabulary := tt.by.Vocabulary
			if vocabulary == "" {
				vocabulary = "o200k_base"
			}
			got, exact := Upstream{}.Measure([]byte(tt.body), &tt.by, tokens.Named(vocabulary).Count)
			if got != tt.want || exact != tt.exact {
				t.Errorf("got %d, exact %v, want %d, %v", got, exact, tt.want, tt.exact)
			}
		})
	}
}
