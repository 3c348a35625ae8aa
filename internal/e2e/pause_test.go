package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// inTurn is an upstream that gives its answers in turn.
type inTurn struct {
	answers []string

	mu    sync.Mutex
	asked []string // bodies
}

func (s *inTurn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.asked)
	s.asked = append(s.asked, string(body))
	if n >= len(s.answers) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		return
	}
	kind := "application/json"
	if !strings.HasPrefix(s.answers[n], "{") {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	io.WriteString(w, s.answers[n])
}

// An upstream that pauses within an answer is asked to go on, and the client
// sees one answer.
func TestPausedAnswers(t *testing.T) {
	t.Parallel()
	const (
		use     = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}`
		told    = `{"type":"text","text":"Done."}`
		message = `"type":"message","role":"assistant","model":"m","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":2}`
		paused  = `{"id":"msg_1",` + message + `,"stop_reason":"pause_turn","content":[` + use + `]}`
		ended   = `{"id":"msg_2",` + message + `,"stop_reason":"end_turn","content":[` + told + `]}`
	)
	stream := func(id, block, reason string) string {
		return `data: {"type":"message_start","message":{"id":"` + id + `",` + message + `,"stop_reason":null,"content":[` + block + "]}}\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}` + "\n\n" +
			`data: {"type":"message_stop"}` + "\n\n"
	}
	gemini := func(text, finish string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"index":0,"finishReason":"` + finish + `","continuationToken":"T"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}`
	}
	whole, streamed := `{"model":"up/m","messages":[{"role":"user","content":"q"}]}`, `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"q"}]}`
	for name, c := range map[string]struct {
		speaks, body string
		answers      []string
		status       int
		has          []string // of the answer
		once         string   // is there once
		last         string   // of the last request
		requests     int
	}{
		"Messages":              {"anthropic", whole, []string{paused, ended}, 200, []string{`"content":"Done."`, `"finish_reason":"stop"`, `"total_tokens":14`}, `"finish_reason"`, `{"role":"assistant","content":[` + use + `]}]}`, 2},
		"Messages, as stream":   {"anthropic", streamed, []string{stream("msg_1", use, "pause_turn"), stream("msg_2", told, "end_turn")}, 200, []string{`"delta":{"content":"Done."}`, "data: [DONE]"}, `"finish_reason":"stop"`, `{"role":"assistant","content":[` + use + `]}]}`, 2},
		"whole for a stream":    {"anthropic", streamed, []string{paused, ended}, 200, []string{`"delta":{"content":"Done."}`, "data: [DONE]"}, `"finish_reason":"stop"`, `{"role":"assistant","content":[` + use + `]}]}`, 2},
		"a failure":             {"anthropic", whole, []string{paused}, 503, []string{"overloaded"}, "", use, 2},
		"without end":           {"anthropic", whole, []string{paused, paused, paused, paused, paused, paused, paused}, 200, []string{`"finish_reason":"stop"`, `"total_tokens":42`}, `"finish_reason"`, use, 6},
		"Gemini":                {"gemini", whole, []string{gemini("One ", "CONTINUATION"), gemini("two", "STOP")}, 200, []string{`"content":"One two"`, `"finish_reason":"stop"`, `"total_tokens":14`}, `"finish_reason"`, `"continuationToken":"T"`, 2},
		"Gemini, as a stream":   {"gemini", streamed, []string{"data: " + gemini("One ", "CONTINUATION") + "\r\n\r\n", "data: " + gemini("two", "STOP") + "\r\n\r\n"}, 200, []string{`{"content":"One "}`, `{"content":"two"}`, "data: [DONE]"}, `"finish_reason":"stop"`, `"continuationToken":"T"`, 2},
		"a failure in a stream": {"anthropic", streamed, []string{stream("msg_1", told, "pause_turn")}, 200, []string{`{"content":"Done."}`, `{"error":`}, "", told, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := &inTurn{answers: c.answers}
			server := httptest.NewServer(up)
			t.Cleanup(server.Close)
			g := start(t, "providers: {up: {base_url: '"+server.URL+"', speaks: ["+c.speaks+"], models: [m]}}")
			got := g.post(t, "/chat/completions", c.body)
			if got.status != c.status {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			for _, want := range c.has {
				if !strings.Contains(got.body, want) {
					t.Errorf("no %s in\n%s", want, got.body)
				}
			}
			if c.once != "" && strings.Count(got.body, c.once) != 1 {
				t.Errorf("%s is not there once in\n%s", c.once, got.body)
			}
			up.mu.Lock()
			defer up.mu.Unlock()
			if len(up.asked) != c.requests || !strings.Contains(up.asked[len(up.asked)-1], c.last) {
				t.Errorf("%d requests, the last\n%s", len(up.asked), up.asked[len(up.asked)-1])
			}
		})
	}
}
