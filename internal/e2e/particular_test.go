package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestParticularUpstreams: where a vendor takes or says something only in its
// own way, the client has the usual one, although both speak one dialect.
func TestParticularUpstreams(t *testing.T) {
	t.Parallel()
	const (
		tool   = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
		schema = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`
		ask    = `"messages":[{"role":"user","content":"q"}]`
	)
	for _, c := range []struct {
		name, vendor, model, media, body, answer string
		asked, answered                          []string
		never                                    []string // in the request or the answer
	}{
		{
			"thinking within the text", "together", "deepseek-ai/DeepSeek-R1", "text/event-stream",
			`{"model":"up/deepseek-ai/DeepSeek-R1","stream":true,` + ask + `}`,
			`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"<think>hm</th"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{"content":"ink>\n\nyes"},"finish_reason":"eos"}]}` + "\n\ndata: [DONE]\n\n",
			[]string{`"stream":true`},
			[]string{`"delta":{"reasoning_content":"hm"}`, `"delta":{"content":"yes"}`, `"finish_reason":"stop"`, "data: [DONE]"}, []string{"think>"},
		},
		{
			"thinking within the text, whole", "together", "deepseek-ai/DeepSeek-R1", "application/json",
			`{"model":"up/deepseek-ai/DeepSeek-R1",` + ask + `}`,
			`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"<think>hm</think>yes"},"finish_reason":"eos"}]}`,
			nil, []string{`"content":"yes"`, `"reasoning_content":"hm"`, `"finish_reason":"stop"`}, []string{"think>"},
		},
		{
			"tools beside thinking, by Responses", "openai", "gpt-5.4", "application/json",
			`{"model":"up/gpt-5.4","reasoning_effort":"high","tools":[` + tool + `],` + ask + `}`,
			`{"id":"resp_1","object":"response","created_at":1,"model":"gpt-5.4","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`,
			[]string{`"input":[`, `"effort":"high"`, `"type":"function"`}, []string{`"object":"chat.completion"`, `"id":"c1"`, `"finish_reason":"tool_calls"`}, []string{`"messages"`},
		},
		{
			"tools beside thinking, with what only the chat has", "openai", "gpt-5.4", "application/json",
			`{"model":"up/gpt-5.4","reasoning_effort":"high","stop":["E"],"tools":[` + tool + `],` + ask + `}`,
			`{"id":"c","object":"chat.completion","created":1,"model":"gpt-5.4","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`,
			[]string{`"messages"`, `"reasoning_effort":"none"`, `"stop":["E"]`}, []string{`"content":"yes"`}, []string{`"input"`},
		},
		{
			"a schema that must not be streamed", "groq", "llama-3.3-70b", "application/json",
			`{"model":"up/llama-3.3-70b","stream":true,` + schema + `,` + ask + `}`,
			`{"id":"c","object":"chat.completion","created":1,"model":"llama-3.3-70b","choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}]}`,
			[]string{`"json_schema"`}, []string{`data: {"id":"c","object":"chat.completion.chunk"`, `"content":"{}"`, `"finish_reason":"stop"`, "data: [DONE]"}, []string{`"stream":`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, asked := script(t, c.media, c.answer)
			g := start(t, "providers:\n  up: {vendor: "+c.vendor+", base_url: "+url+", api_key: k, models: ['"+c.model+"']}\n")
			got := g.post(t, "/chat/completions", c.body)
			if got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			out := asked()
			for _, want := range c.asked {
				if !strings.Contains(out, want) {
					t.Errorf("the upstream is not asked for %s:\n%s", want, out)
				}
			}
			for _, want := range c.answered {
				if !strings.Contains(got.body, want) {
					t.Errorf("the client does not get %s:\n%s", want, got.body)
				}
			}
			for _, bad := range c.never {
				if strings.Contains(out, bad) || strings.Contains(got.body, bad) {
					t.Errorf("%s is in\n%s\nor\n%s", bad, out, got.body)
				}
			}
		})
	}
}
