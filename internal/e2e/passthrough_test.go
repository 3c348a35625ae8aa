package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// script is an upstream that always says the same bytes and keeps what it was
// asked.
func script(t *testing.T, media, answer string) (url string, asked func() string) {
	t.Helper()
	bodies := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the upstream cannot read the body: %v", err)
		}
		bodies <- string(body)
		w.Header().Set("Content-Type", media)
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", func() string { return <-bodies }
}

// TestBytesPass proves that between two sides of one dialect nothing is
// written anew: unknown members, big numbers, escapes, key order and spaces.
func TestBytesPass(t *testing.T) {
	t.Parallel()
	const (
		odd    = ` "seed" : 9223372036854775807 , "x_big":123456789012345678901234567890, "x_float": 1.10e+0, "x":{"b":1,"a":[ ]}, "text_":"\u00e9é\/<&>\u2028" `
		chunks = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"up-m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"x_new":{"n":1e400,"s":"\u00e9\/"}}` + "\n\n" +
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"up-m","choices":[{"index":0,"delta":{"content":"h\u00e9 <&> 😀"},"logprobs":null,"finish_reason":null}],"usage":null, "obfuscation" : "ab"}` + "\n\n" +
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"up-m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}` + "\n\n" +
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"up-m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"x_more":18446744073709551616}}` + "\n\n" +
			"data: [DONE]\n\n"
		events = "event: response.created\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"model":"up-m","status":"in_progress","output":[],"x":1e400}}` + "\n\n" +
			"event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"m","output_index":0,"content_index":0,"delta":"h\u00e9","logprobs":[],"obfuscation":"x"}` + "\n\n" +
			"event: response.completed\n" + `data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","object":"response","created_at":1,"model":"up-m","status":"completed","output":[],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}}}` + "\n\n" +
			"data: [DONE]\n\n"
		completion = ` { "id":"c1", "object":"chat.completion","created":1,"model":"up-m","choices":[{"index":0,"message":{"role":"assistant","content":"h\u00e9","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},"x":123456789012345678901234567890 } `
	)
	for _, c := range []struct {
		name, path, media, body, answer string
	}{
		{"chat stream", "/chat/completions", "text/event-stream", `{ "messages":[{"content":"hi","role":"user"}],` + odd + `, "stream":true,"model" : "m" ,"stream_options":{"include_usage":true, "z":0}}`, chunks},
		{"chat", "/chat/completions", "application/json", "\n" + `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":null,` + odd + `}`, completion},
		{"responses stream", "/responses", "text/event-stream", `{"input":[],"stream":true,"store":false,` + odd + `,"model":"m"}`, events},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, asked := script(t, c.media, c.answer)
			g := start(t, "providers:\n  up: {base_url: "+url+", speaks: [openai-chat, openai-responses]}\nmodels:\n  m: {targets: [up/vendor-model]}\n")
			got := g.post(t, c.path, c.body)
			if got.status != http.StatusOK || got.body != c.answer {
				t.Errorf("answer: got %d\n%s\nwant the upstream's bytes\n%s", got.status, got.body, c.answer)
			}
			i := strings.LastIndex(c.body, `"m"`)
			if j := strings.Index(c.body, `"model":"m"`); j >= 0 {
				i = j + len(`"model":`)
			}
			if body, want := asked(), c.body[:i]+`"vendor-model"`+c.body[i+len(`"m"`):]; body != want {
				t.Errorf("body upstream: got\n%s\nwant the client's bytes but for the model\n%s", body, want)
			}
			if r := g.record(t, got.id()); r.Estimated || r.Input != 3 || r.Output != 2 || r.Model != "m" || r.UpstreamModel != "vendor-model" {
				t.Errorf("usage: got %+v, want 3 tokens in and 2 out of m", r)
			}
		})
	}
}

// TestUsageIsAskedFor: without a wish of the client the gateway asks for the
// figures of a stream, and keeps the chunk with them to itself.
func TestUsageIsAskedFor(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	for _, c := range []struct {
		name, options string
		shown         bool
	}{
		{"not asked", ``, false},
		{"null", `,"stream_options":null`, false},
		{"refused", `,"stream_options":{"include_usage":false}`, false},
		{"asked", `,"stream_options":{"include_usage":true}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := g.post(t, "/chat/completions", `{"model":"up/small","messages":[{"role":"user","content":"`+c.name+`"}],"stream":true`+c.options+`}`)
			if shown := strings.Contains(got.body, `"choices":[],"usage":{`); shown != c.shown {
				t.Errorf("usage chunk: got %v, want %v\n%s", shown, c.shown, got.body)
			}
			if r := g.record(t, got.id()); r.Estimated || r.Input == 0 || r.Output == 0 {
				t.Errorf("usage: got %+v, want the upstream's figures", r)
			}
		})
	}
}
