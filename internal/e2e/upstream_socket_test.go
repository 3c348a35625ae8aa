package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// overSocket is the part of a configuration that names an upstream "up" which is
// called over WebSockets.
func overSocket(s *upstream.Server) string {
	return fmt.Sprintf("retries: {attempts: 1}\nproviders:\n  up: {base_url: %q, api_key: %s, speaks: [openai-responses], models: [small], sockets: true, headers: {x-team: research}}\n", s.URL(), canary)
}

// asked are the requests for a response that reached an upstream: messages of
// sockets are GET, others POST.
func asked(s *upstream.Server) (list []upstream.Request) {
	for _, r := range s.Requests() {
		if r.Path == "/v1/responses" {
			list = append(list, r)
		}
	}
	return list
}

// answered is what a client reads of a response, whole or streamed.
type answered struct {
	ID, Status string
	Previous   *string `json:"previous_response_id"`
	Output     json.RawMessage
}

// respond makes a call of Responses that must end well.
func (g *gateway) respond(t *testing.T, body string) answered {
	t.Helper()
	got := g.post(t, "/responses", body)
	data := got.body
	if strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		list := frames(t, got.body)
		if observeResponses(t, list[:len(list)-1]) != "stream" {
			t.Fatal(got.body)
		}
		var e struct{ Response json.RawMessage }
		json.Unmarshal([]byte(list[len(list)-2].data), &e)
		data = string(e.Response)
	}
	var a answered
	if err := json.Unmarshal([]byte(data), &a); err != nil || got.status != http.StatusOK || a.Status != "completed" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return a
}

// TestUpstreamSocket has one socket serve calls of all manners, with the answers
// that HTTP would have brought.
func TestUpstreamSocket(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, overSocket(up)+fmt.Sprintf("  http: {base_url: %q, api_key: %s, speaks: [openai-responses], models: [small]}\n", up.URL(), canary))
	said := func(model, path, body string) string {
		up.Reset() // the upstream's IDs count from 1 again
		got := g.post(t, path, strings.Replace(body, "up/small", model, 1))
		if got.status != http.StatusOK || got.err != nil {
			t.Fatalf("%s over %s: %d %s %v", body, model, got.status, got.body, got.err)
		}
		text := strings.ReplaceAll(got.body, model, "MODEL")
		return strings.ReplaceAll(text, strings.TrimPrefix(got.id(), "req_"), "ID")
	}
	for name, c := range map[string]struct{ path, body string }{
		"whole":           {"/responses", responsesBody(false, "Hi")},
		"stream":          {"/responses", responsesBody(true, "Hi")},
		"stateless":       {"/responses", `{"model":"up/small","store":false,"input":"Hi","stream":true}`},
		"tools":           {"/responses", `{"model":"up/small","input":"call f {\"a\":1}","tools":[{"type":"function","name":"f"}],"stream":true}`},
		"thinking":        {"/responses", `{"model":"up/small","store":false,"input":"Hi","reasoning":{"effort":"low","summary":"auto"}}`},
		"translated":      {"/chat/completions", `{"model":"up/small","messages":[{"role":"user","content":"Hi"}]}`},
		"stream of chats": {"/chat/completions", chatBody(true, "Hi")},
	} {
		want := said("http/small", c.path, c.body)
		if r := asked(up); len(r) != 1 || r[0].Method != http.MethodPost {
			t.Fatalf("%s: %+v", name, r)
		}
		got := said("up/small", c.path, c.body)
		if strip(got) != strip(want) {
			t.Errorf("%s: over a socket\n%s\nover HTTP\n%s", name, got, want)
		}
		r := asked(up)
		if len(r) != 1 || r[0].Method != http.MethodGet || !strings.Contains(r[0].Body, `"type":"response.create"`) || strings.Contains(r[0].Body, `"stream"`) {
			t.Fatalf("%s: %+v", name, r)
		}
		if h := r[0].Header; h.Get("Authorization") != "Bearer "+canary || h.Get("X-Team") != "research" || !strings.HasPrefix(h.Get("User-Agent"), "limen/") || h.Get("Accept") != "" {
			t.Errorf("%s: header of the handshake: %v", name, h)
		}
	}
}

// differing are the figures that differ from call to call: times, and tokens that
// the fake upstream counts by what it was sent.
var differing = regexp.MustCompile(`"(created|input_tokens|prompt_tokens|total_tokens)":[0-9]+`)

func strip(text string) string { return differing.ReplaceAllString(text, "$1") }

// messageOf is a request for a response, as far as its past is concerned.
type messageOf struct {
	Previous *string `json:"previous_response_id"`
	Input    []struct {
		Type, Role string
		Content    []struct{ Text string }
	}
}

// inputs are the texts of the items that an upstream was sent, and what they go
// on from.
func inputs(t *testing.T, r upstream.Request) (previous string, texts []string) {
	t.Helper()
	var m messageOf
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	if m.Previous != nil {
		previous = *m.Previous
	}
	for _, i := range m.Input {
		text := i.Type
		if len(i.Content) > 0 {
			text = i.Content[0].Text
		}
		texts = append(texts, text)
	}
	return previous, texts
}

// TestUpstreamSocketContinues has turns that go on from the last one of a socket
// sent as what is new in them, and all others whole.
func TestUpstreamSocketContinues(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, overSocket(up))
	// turn makes a call and checks what reached the upstream: from which of the
	// earlier requests it went on, if from any, and the input.
	turn := func(what, body string, from int, texts ...string) answered {
		t.Helper()
		a := g.respond(t, body)
		all := asked(up)
		want := ""
		if from >= 0 {
			want = fmt.Sprintf("resp_%d", all[from].ID)
		}
		if previous, got := inputs(t, all[len(all)-1]); previous != want || !slices.Equal(got, texts) {
			t.Errorf("%s: got %q after %q, want %q after %q", what, got, previous, texts, want)
		}
		return a
	}
	after := func(a answered, input string) string {
		return `{"model":"up/small","previous_response_id":"` + a.ID + `","input":` + input + `,"stream":true}`
	}
	const answer = "Hello from small."
	long := strings.Repeat("All that was said. ", 500)

	first := turn("the first turn", responsesBody(true, long), -1, long)
	second := turn("the second", after(first, `"Two"`), 0, "Two")
	if second.Previous == nil || *second.Previous != first.ID {
		t.Errorf("the client reads that it went on from %v, want %s", second.Previous, first.ID)
	}
	third := turn("the third, not streamed", strings.Replace(after(second, `"Three"`), "true", "false", 1), 1, "Three")
	list := asked(up)
	t.Logf("bytes sent: %d, %d, %d", len(list[0].Body), len(list[1].Body), len(list[2].Body))
	turn("a fork", after(first, `"Other"`), -1, long, answer, "Other")
	turn("where the fork was not", after(third, `"Four"`), 2, "Four")
	if n := up.Handshakes(); n != 2 {
		t.Errorf("%d sockets for two conversations", n)
	}

	// A client that keeps its history itself gains too, and reads that it went on
	// from nothing.
	alone := `{"model":"up/small","store":false,"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Mine"}]}`
	mine := turn("a history of the client's", alone+`]}`, -1, "Mine")
	items := strings.TrimSuffix(strings.TrimPrefix(string(mine.Output), "["), "]")
	next := `,{"type":"message","role":"user","content":[{"type":"input_text","text":"And"}]}]}`
	if again := turn("what follows in it", alone+`,`+items+next, 5, "And"); again.Previous != nil {
		t.Errorf("the client reads that it went on from %s", *again.Previous)
	}
	turn("one that was changed", strings.Replace(alone, "Mine", "Mind", 1)+`,`+items+next, -1, "Mind", answer, "And")

	// What the upstream has forgotten is sent whole.
	lost := turn("what is forgotten", responsesBody(true, "[[fault:socket-forget]] Lost"), -1, "[[fault:socket-forget]] Lost")
	turn("what was forgotten", after(lost, `"Found"`), -1, "[[fault:socket-forget]] Lost", answer, "Found")
	if list := asked(up); len(list) != 11 {
		t.Errorf("%d requests, want 11", len(list))
	} else if previous, texts := inputs(t, list[9]); previous != fmt.Sprintf("resp_%d", list[8].ID) || !slices.Equal(texts, []string{"Found"}) {
		t.Errorf("at first %q after %q", texts, previous)
	}

	// A socket that ended takes its memory with it.
	short := turn("what the socket ends with", responsesBody(true, "[[fault:socket-hang-up]] Short"), -1, "[[fault:socket-hang-up]] Short")
	turn("without the socket", after(short, `"Lives"`), -1, "[[fault:socket-hang-up]] Short", answer, "Lives")

	// Of tools, the results are what is new.
	call := turn("a call of a tool", `{"model":"up/small","input":"call f {}","tools":[{"type":"function","name":"f"}]}`, -1, "call f {}")
	var calls []struct {
		CallID string `json:"call_id"`
	}
	json.Unmarshal(call.Output, &calls)
	turn("its result", after(call, `[{"type":"function_call_output","call_id":"`+calls[0].CallID+`","output":"9"}]`), 13, "function_call_output")
}

// TestUpstreamSocketFaults has faults of the upstream come out as over HTTP,
// and sockets that end between calls cost the client nothing.
func TestUpstreamSocketFaults(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, impatient+overSocket(up))
	t.Run("all", func(t *testing.T) {
		for scenario, want := range map[string][2]string{ // whole, and streamed
			"status-400":      {"400 invalid_value", "400 invalid_value"},
			"context":         {"400 context_length_exceeded", "400 context_length_exceeded"},
			"status-401":      {"502 upstream_auth", "502 upstream_auth"},
			"status-404":      {"502 upstream_error", "502 upstream_error"},
			"status-429":      {"429 rate_limit_exceeded", "429 rate_limit_exceeded"},
			"quota":           {"502 upstream_quota", "502 upstream_quota"},
			"status-503":      {"503 server_is_overloaded", "503 server_is_overloaded"},
			"error-first":     {"502 upstream_error", "502 upstream_error, estimated"},
			"error-mid":       {"502 upstream_error", "stream?, 502 upstream_error, estimated"},
			"failed-mid":      {"502 upstream_error", "stream?, 502 upstream_error, estimated"},
			"cut":             {"502 upstream_error, estimated", "stream?, 502 upstream_stream_truncated, estimated"},
			"no-completed":    {"502 upstream_error, estimated", "stream?, 502 upstream_stream_truncated, estimated"},
			"long-line arg=1": {"502 upstream_error, estimated", "stream?, 502 upstream_malformed_output, estimated"},
			"long-line arg=5": {"502 upstream_error, estimated", "stream?, 502 upstream_malformed_output, estimated"},
			"bad-json":        {"502 upstream_error, estimated", "stream?, 502 upstream_malformed_output, estimated"},
			"hang":            {"504 upstream_timeout, estimated", "stream, 504 upstream_timeout, estimated"},
			"stall":           {"504 upstream_timeout, estimated", "stream, 504 upstream_timeout, estimated"},
			"unknown-event":   {"answer", "stream"},
			"socket-stray":    {"answer", "stream"},
			"socket-stale":    {"answer", "stream"},
			"socket-hang-up":  {"answer", "stream"},
			"socket-limit":    {"answer", "stream"},
			"slow arg=20":     {"answer", "stream"},
			"no-usage":        {"answer, estimated", "stream, estimated"},
		} {
			for i, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%t", scenario, stream), func(t *testing.T) {
					g.respond(t, responsesBody(true, "Before")) // so that there is a socket
					if strings.Contains(want[i], "timeout") {
						t.Parallel()
					}
					got := g.post(t, "/responses", responsesBody(stream, t.Name()+" [[fault:"+scenario+"]]"))
					outcome := observe(t, "/responses", got)
					rec := g.record(t, got.id())
					if rest, ok := strings.CutPrefix(outcome, "stream, "); ok {
						outcome = fmt.Sprintf("stream, %d %s", rec.Status, rest)
					}
					if rec.Estimated {
						outcome += ", estimated"
					}
					want := want[i]
					if rest, either := strings.CutPrefix(want, "stream?, "); either && (outcome == rest || outcome == "stream, "+rest) {
						want = outcome
					}
					if outcome != want {
						t.Errorf("got %q, want %q\n%.2000s", outcome, want, got.body)
					}
					if scenario == "status-429" && got.header.Get("Retry-After") != "7" {
						t.Errorf("retry-after is %q", got.header.Get("Retry-After"))
					}
					checkSecrets(t, "the answer", got.body, up)
					if n := attempts(up, t.Name()+" "); n != 1 && !strings.HasPrefix(scenario, "socket") {
						t.Errorf("attempts upstream: got %d, want 1", n)
					}
				})
			}
		}
	})
	for _, r := range asked(up) {
		if r.Method != http.MethodGet {
			t.Errorf("this went by HTTP: %s", r.Body)
		}
	}
	if log := g.log.String(); strings.Contains(log, "WebSockets do not work") {
		t.Errorf("the log says so:\n%s", log)
	}
}

// TestUpstreamSocketRefused has upstreams, and what stands before them, that
// take no sockets: they are called by HTTP, and the log says so once.
func TestUpstreamSocketRefused(t *testing.T) {
	t.Parallel()
	const message = "a provider's WebSockets do not work"
	told := func(log string) bool { return strings.Contains(log, message) }
	for name, refuse := range map[string]func(*upstream.Server) string{
		"426":            func(s *upstream.Server) string { s.RefuseSockets(426); return "Hi" },
		"404":            func(s *upstream.Server) string { s.RefuseSockets(404); return "Hi" },
		"403":            func(s *upstream.Server) string { s.RefuseSockets(403); return "Hi" },
		"302":            func(s *upstream.Server) string { s.RefuseSockets(302); return "Hi" },
		"200":            func(s *upstream.Server) string { s.RefuseSockets(200); return "Hi" },
		"closed at once": func(*upstream.Server) string { return "Hi [[fault:socket-refuse]]" },
	} {
		t.Run(name, func(t *testing.T) {
			up := newUpstream(t)
			prompt := refuse(up)
			g := start(t, overSocket(up))
			for _, stream := range []bool{true, false, true} {
				g.respond(t, responsesBody(stream, prompt))
			}
			posts := 0
			for _, r := range asked(up) {
				if r.Method == http.MethodPost {
					posts++
				}
			}
			if log, _ := g.log.await(told); posts != 3 || strings.Count(log, message) != 1 {
				t.Errorf("%d of 3 calls went by HTTP; the log:\n%s", posts, log)
			}
			checkSecrets(t, "the log", g.log.String(), up)
		})
	}
	t.Run("no socket can say it", func(t *testing.T) {
		up := newUpstream(t)
		g := start(t, overSocket(up))
		r := g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(responsesBody(true, "Hi")))
		r.Header.Set("Idempotency-Key", "once")
		if got := g.do(t, r); got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
		g.respond(t, `{"model":"up/small","input":"Hi","stream":true,"stream_options":{"include_obfuscation":false}}`)
		for _, r := range asked(up) {
			if r.Method != http.MethodPost {
				t.Errorf("this went over a socket: %+v", r)
			}
		}
		if up.Handshakes() != 0 || strings.Contains(g.log.String(), message) {
			t.Errorf("%d sockets; the log:\n%s", up.Handshakes(), g.log.String())
		}
	})
	t.Run("a broken message", func(t *testing.T) {
		up := newUpstream(t)
		g := start(t, overSocket(up))
		got := g.post(t, "/responses", responsesBody(true, "[[fault:socket-binary]]"))
		if log, ok := g.log.await(told); !ok || observe(t, "/responses", got) != "502 upstream_error" {
			t.Errorf("%d %s\n%s", got.status, got.body, log)
		}
	})
}

// TestUpstreamSocketCancel has a client that leaves: its socket is closed, and
// the upstream sees it at once.
func TestUpstreamSocketCancel(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, overSocket(up))
	for scenario, stream := range map[string]bool{"stall 6": true, "hang": true, "stall 4": false} {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan time.Time, 1)
		go func() {
			find(t, up, scenario, func(r upstream.Request) bool { return r.Fault != "" && (scenario == "hang" || r.Frames > 3) })
			left <- time.Now()
			cancel()
		}()
		resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/responses", strings.NewReader(responsesBody(stream, "[[fault:"+scenario+"]]"))))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		request := find(t, up, scenario, func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
		if took := request.Cancelled.Sub(<-left); took > time.Second {
			t.Errorf("%s: the upstream saw it after %s", scenario, took)
		} else {
			t.Logf("%s: the upstream saw it after %s", scenario, took)
		}
	}
	if a := g.respond(t, responsesBody(true, "Hi")); a.Status != "completed" {
		t.Errorf("%+v", a)
	}
}

// TestUpstreamSocketsAtOnce has more calls at once than there are sockets.
func TestUpstreamSocketsAtOnce(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, overSocket(up))
	var calls sync.WaitGroup
	for i := range 80 {
		calls.Go(func() { g.respond(t, responsesBody(i%2 == 0, "[[fault:slow 20]] Hi")) })
	}
	calls.Wait()
	if n := up.Handshakes(); n == 0 || n > 64 {
		t.Errorf("%d sockets", n)
	}
	if len(asked(up)) != 80 {
		t.Errorf("%d requests for 80 calls", len(asked(up)))
	}
}

// TestUpstreamSocketEnds has sockets end with the configuration that wanted them,
// and with the gateway.
func TestUpstreamSocketEnds(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, overSocket(up))
	awaitSockets := func(n int) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(patience); up.Sockets() != n; <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("%d sockets are open, want %d", up.Sockets(), n)
			}
		}
	}
	apply := func(config string) {
		t.Helper()
		if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		g.admin(t, http.MethodPost, "/config/reload", "", &struct{}{})
	}
	g.respond(t, responsesBody(true, "Hi"))
	awaitSockets(1)
	running := make(chan reply)
	go func() { running <- g.post(t, "/responses", responsesBody(true, "[[fault:slow 50]] runner")) }()
	find(t, up, "runner", func(r upstream.Request) bool { return r.Frames > 0 })
	apply(strings.Replace(overSocket(up), "sockets: true", "sockets: false", 1))
	if got := <-running; observe(t, "/responses", got) != "stream" {
		t.Errorf("a call that ran: %s", got.body)
	}
	awaitSockets(0)
	g.respond(t, responsesBody(true, "Hi"))
	if list := asked(up); list[len(list)-1].Method != http.MethodPost {
		t.Errorf("after the change: %+v", list[len(list)-1])
	}

	apply(overSocket(up))
	g.respond(t, responsesBody(true, "Hi"))
	awaitSockets(1)
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	awaitSockets(0)
}
