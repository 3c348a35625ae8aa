package probe

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestClientsAreWhole(t *testing.T) {
	want := []string{"aider", "claude", "cline", "codex", "continue", "cursor", "langchain", "librechat", "openai-js", "openai-python", "opencode", "openwebui", "qwen-code", "vercel-ai", "zed"}
	if got := Clients(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range Clients() {
		c, err := ClientNamed(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Name != name || c.Title == "" || c.Known == "" || len(c.Steps) == 0 {
			t.Errorf("%s is not whole", name)
		}
		names := map[string]bool{}
		for _, s := range c.Steps {
			if _, ok := readers[s.Answer]; !ok && len(s.Turns) == 0 {
				t.Errorf("%s: %s: nobody reads a %q", name, s.Name, s.Answer)
			}
			if names[s.Name] {
				t.Errorf("%s: the step %q is there twice", name, s.Name)
			}
			names[s.Name] = true
			for _, body := range append(slices.Clone(s.Turns), s.Body) {
				if len(body) > 0 && !strings.Contains(string(body), `"model":"{{model}}"`) && !strings.Contains(string(body), `"model": "{{model}}"`) {
					t.Errorf("%s: %s names no model", name, s.Name)
				}
			}
		}
		for _, used := range c.Uses {
			if !slices.Contains(want, used) {
				t.Errorf("%s uses %q, which is not known", name, used)
			}
		}
	}
	if _, err := ClientNamed("../probe"); err == nil || !strings.Contains(err.Error(), "there are aider, claude") {
		t.Errorf("got %v", err)
	}
}

// TestClientsPass makes the requests of all clients to a good server: all are
// JSON, filled in, and with the key where it belongs.
func TestClientsPass(t *testing.T) {
	for _, name := range Clients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			api := handler(nil, nil)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				if len(body) > 0 && !json.Valid(body) || strings.Contains(string(body), "{{") {
					t.Errorf("%s %s: %s", r.Method, r.URL, body)
				}
				mu.Unlock()
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				api.ServeHTTP(w, r)
			}))
			defer s.Close()
			results := examine(t, s.URL+"/v1", secret, "", name)
			for _, r := range results {
				local := r.Check == "reachable" && r.Status == Skip
				newer := name == "cursor" && r.Status == Absent
				if r.Status != Pass && !local && !newer {
					t.Errorf("%s: %s: %s", r.Check, r.Status, r.Detail)
				}
			}
		})
	}
}

// TestWhatClientsMind has faults that some break on and others do not see.
func TestWhatClientsMind(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  spoiler
		client string
		check  string
		status string
		words  string
	}{
		{"no output_item.done", replace("response", `"type":"response.output_item.done"`, `"type":"response.x"`), "codex", "a turn with tools", Fail, "no response.output_item.done"},
		{"no numbers, for Codex", replace("response", `"sequence_number":3,`, ``), "codex", "a turn with tools", Pass, ""},
		{"no numbers, for Python", replace("response stream", `"sequence_number":3,`, ``), "openai-python", "responses.stream", Fail, "no sequence_number"},
		{"no Responses, for Codex", answering("response", 404, "application/json", `{"error":{"message":"Invalid URL"}}`), "codex", "a turn with tools", Fail, "which Codex CLI needs"},
		{"no Responses, for opencode", answering("response", 404, "application/json", `{"error":{"message":"Invalid URL"}}`), "opencode", "Responses: a turn with tools", Absent, "only with @ai-sdk/openai"},
		{"no socket, for Codex", answering("socket", 426, "application/json", "{}"), "codex", "turns by WebSocket", Absent, "goes on over HTTP"},
		{"no Messages", answering("message", 404, "application/json", `{"error":{"message":"Invalid URL"}}`), "claude", "a turn with tools", Fail, "which Claude Code needs"},
		{"a message without its end", replace("message", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", ""), "claude", "a turn with tools", Fail, "without message_stop"},
		{"an error within a message", replace("message tool", msgEnd, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), "claude", "a turn with tools", Fail, "ends in an error: Overloaded"},
		{"no finish, for Cline", replace("chat tool", chunkCalled, ""), "cline", "a turn with tools", Fail, "no finish_reason"},
		{"no finish, for Continue", replace("chat tool", chunkCalled, ""), "continue", "a turn with tools", Pass, ""},
		{"no role, through LangChain", replace("chat stream", `"role":"assistant",`, ""), "librechat", "a chat", Fail, "no delta has a role"},
		{"text/plain, for qwen-code", withHeader("chat", "Content-Type", "text/plain"), "qwen-code", "a turn with tools", Fail, "not text/event-stream"},
		{"text/plain, for Zed", withHeader("chat tool", "Content-Type", "text/plain"), "zed", "a turn with tools", Pass, ""},
		{"a body refused, for Cursor", nil, "cursor", "a Responses body sent to Chat Completions", Absent, "offer the model by another name"},
		{"a key refused", answering("chat", 403, "application/json", `{"error":{"message":"Not this model."}}`), "aider", "a turn", Fail, "Not this model."},
		{"words instead of a call", replace("chat tool", goodToolCall, goodStream), "zed", "the result of the tool", Skip, "did not call the tool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, spoiled := newServer(t, c.spoil)
			got := examine(t, s.URL+"/v1", secret, "m", c.client)[c.check]
			if c.spoil != nil && spoiled.Load() == 0 {
				t.Fatal("nothing was spoiled")
			}
			if got.Status != c.status || !strings.Contains(got.Detail, c.words) {
				t.Errorf("got %+v, want %s: %s", got, c.status, c.words)
			}
		})
	}
}

// TestClaudeGivesBackThoughts as they came, before the call.
func TestClaudeGivesBackThoughts(t *testing.T) {
	var mu sync.Mutex
	var last string
	api := handler(nil, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		last = string(body)
		mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		api.ServeHTTP(w, r)
	}))
	defer s.Close()
	examine(t, s.URL, secret, "m", "claude")
	const want = `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"echo pong"}}]}`
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(last, want) {
		t.Errorf("got %s", last)
	}
}
