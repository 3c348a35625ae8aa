package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// ways is a record with what routing leaves in it.
type ways struct {
	record
	Key       string
	CacheMiss string `json:"cache_miss"`
	Steps     []struct {
		Target, Account, Result string
		Tried                   bool
	} `json:"steps"`
}

func (g *gateway) ways(t *testing.T, id string) (w ways) {
	t.Helper()
	g.record(t, id) // is there
	g.admin(t, http.MethodGet, "/calls/"+id, "", &w)
	return w
}

// result is what became of a target, "" where nothing is said of it.
func (w *ways) result(target string) string {
	for _, s := range w.Steps {
		if s.Target == target {
			return s.Result
		}
	}
	return ""
}

// baseOf is where an upstream speaks a dialect.
func baseOf(up *upstream.Server, speaks string) string {
	switch speaks {
	case "gemini":
		return strings.TrimSuffix(up.URL(), "/v1") + "/v1beta"
	case "bedrock":
		return strings.TrimSuffix(up.URL(), "/v1")
	}
	return up.URL()
}

// providerOf is a provider's part of a configuration.
func providerOf(name string, up *upstream.Server, speaks, further string) string {
	return fmt.Sprintf("  %s: {base_url: %q, api_key: %s, speaks: [%s], models: [small, big]%s}\n", name, baseOf(up, speaks), canary, speaks, further)
}

// pair is a gateway whose model m has two targets, a/small and b/big.
func pair(t *testing.T, speaksA, speaksB, model, further string) (g *gateway, a, b *upstream.Server) {
	t.Helper()
	a, b = newUpstream(t), newUpstream(t)
	return start(t, "providers:\n"+providerOf("a", a, speaksA, "")+providerOf("b", b, speaksB, "")+
		"models:\n  m: {targets: [a/small, b/big], "+model+"}\n"+further), a, b
}

func faulty(t *testing.T, up *upstream.Server, fault string) {
	t.Helper()
	if err := up.SetDefault(fault); err != nil {
		t.Fatal(err)
	}
}

// calls are those of a model that reached an upstream.
func calls(up *upstream.Server) (list []upstream.Request) {
	for _, r := range up.Requests() {
		if r.Method == http.MethodPost {
			list = append(list, r)
		}
	}
	return list
}

// bodyOf asks a model something, in the client's dialect.
func bodyOf(path, model string, stream bool, prompt, further string) string {
	switch path {
	case "/responses":
		return fmt.Sprintf(`{"model":%q,"stream":%t,"input":%q%s}`, model, stream, prompt, further)
	case "/messages":
		return fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":100,"messages":[{"role":"user","content":%q}]%s}`, model, stream, prompt, further)
	}
	return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":%q}]%s}`, model, stream, prompt, further)
}

// id is the call's, wherever the dialect has it.
func (r reply) callID() string {
	if id := r.id(); id != "" {
		return id
	}
	return r.header.Get("Request-Id")
}

// The first of two targets hangs, and the second answers: the first hears at
// once that nobody waits for it, and both are in the usage.
func TestHedgeWins(t *testing.T) {
	t.Parallel()
	g, a, b := pair(t, "openai-chat", "openai-chat", "hedge: {after: 20ms, max: 100%}", "")
	faulty(t, a, "hang")
	var delays []time.Duration
	for i, stream := range []bool{true, false, true, false, true, false} {
		got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", stream, fmt.Sprintf("n%d", i), ""))
		if got.status != http.StatusOK || !strings.Contains(got.body, "big") {
			t.Fatalf("stream %t: got %d %s, want the second's answer", stream, got.status, got.body)
		}
		w := g.ways(t, got.callID())
		if w.Provider != "b" || w.result("a/small") != "canceled" || w.result("b/big") != "ok" {
			t.Errorf("stream %t: got served by %s, steps %+v", stream, w.Provider, w.Steps)
		}
		won := find(t, b, fmt.Sprintf("n%d", i), func(r upstream.Request) bool { return !r.Finished.IsZero() })
		lost := find(t, a, fmt.Sprintf("n%d", i), func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
		if in := int64(len(won.Body)/4 + 1); !w.Estimated || w.Input <= in {
			t.Errorf("stream %t: got %d tokens in, estimated %t, want those of both: more than the %d of the winner", stream, w.Input, w.Estimated, in)
		}
		delays = append(delays, lost.Cancelled.Sub(won.Finished))
	}
	slices.Sort(delays)
	t.Logf("the loser heard of it after %v", delays)
	if delays[0] > 100*time.Millisecond {
		t.Errorf("the loser heard of it after %v at best, want 100ms at most", delays[0])
	}
}

// The first target is slow, yet it is the first to begin.
func TestHedgeLoses(t *testing.T) {
	t.Parallel()
	g, a, b := pair(t, "openai-chat", "openai-chat", "hedge: {after: 20ms, max: 100%}", "")
	faulty(t, a, "pause 200")
	faulty(t, b, "hang")
	for _, stream := range []bool{true, false} {
		prompt := fmt.Sprintf("stream %t", stream)
		got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", stream, prompt, ""))
		if got.status != http.StatusOK || !strings.Contains(got.body, "small") {
			t.Fatalf("stream %t: got %d %s, want the first's answer", stream, got.status, got.body)
		}
		find(t, b, prompt, func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
		if w := g.ways(t, got.callID()); w.Provider != "a" || w.result("b/big") != "canceled" || !w.Estimated {
			t.Errorf("stream %t: got %+v, want a's answer and the usage of both", stream, w)
		}
	}
}

// Where one of two fails the other's answer counts, and the last failure where
// both do.
func TestHedgeFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want, said string }{
		{"error-late=0", "pause 700", "stream", "big"},
		{"pause 700", "error-first", "stream", "small"},
		{"pause 700", "status-500", "stream", "small"},
		{"error-late=0", "error-late=0", "502 upstream_error", ""},
	} {
		t.Run(c.a+", "+c.b, func(t *testing.T) {
			t.Parallel()
			g, a, b := pair(t, "openai-chat", "openai-chat", "hedge: {after: 20ms, max: 100%}", "retries: {attempts: 2}\n")
			faulty(t, a, c.a)
			faulty(t, b, c.b)
			got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", true, "Hi", ""))
			if outcome := observe(t, "/chat/completions", got); outcome != c.want || !strings.Contains(got.body, c.said) {
				t.Errorf("got %q, want %q with %q\n%s", outcome, c.want, c.said, got.body)
			}
			if len(calls(a)) != 1 || len(calls(b)) != 1 {
				t.Errorf("got %d calls of a and %d of b, want one each", len(calls(a)), len(calls(b)))
			}
		})
	}
}

// No more calls are made twice than the configuration allows, and none whose
// tools the gateway runs: what they do is not to be done twice.
func TestHedgeBounds(t *testing.T) {
	t.Parallel()
	g, a, b := pair(t, "openai-chat", "openai-chat", "hedge: {after: 5ms, max: 20%}", fmt.Sprintf("tools: {web_search: {url: %q}}\n", searchEngine(t).URL+"/search?format=json"))
	faulty(t, a, "pause 40")
	faulty(t, b, "hang")
	for range 20 {
		if got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", false, "Hi", "")); got.status != http.StatusOK {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if n := len(calls(b)); n < 1 || n > 4 {
		t.Errorf("got %d of 20 calls made twice, want some, and 4 at most", n)
	}

	g, a, b = pair(t, "openai-chat", "openai-chat", "hedge: {after: 5ms, max: 100%}", fmt.Sprintf("tools: {web_search: {url: %q}}\n", searchEngine(t).URL+"/search?format=json"))
	faulty(t, a, "pause 100")
	for _, stream := range []bool{true, false} {
		got := g.post(t, "/responses", bodyOf("/responses", "m", stream, "Hi", `,"tools":[{"type":"web_search"}]`))
		if got.status != http.StatusOK || len(calls(b)) != 0 {
			t.Errorf("a call with tools: got %d, and %d calls of the second\n%s", got.status, len(calls(b)), got.body)
		}
	}
}

// A stream that ends badly after it began, by dialect of the upstream: how many
// frames there are up to the first word and the second.
var brokenAfter = map[string]int{"openai-chat": 3, "anthropic": 5, "gemini": 5, "openai-responses": 6}

// saidIn is the text that a client has of a stream, and whether it ended well.
func saidIn(t *testing.T, path, stream string) (text string, well bool) {
	t.Helper()
	for _, e := range frames(t, stream) {
		if e.data == "[DONE]" {
			continue
		}
		var ev struct {
			Type    string
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
			Delta json.RawMessage
		}
		if err := json.Unmarshal([]byte(e.data), &ev); err != nil {
			t.Fatalf("frame %q: %v", e.data, err)
		}
		for _, c := range ev.Choices {
			text += c.Delta.Content
			well = well || c.FinishReason == "stop"
		}
		switch ev.Type {
		case "response.output_text.delta":
			var s string
			json.Unmarshal(ev.Delta, &s)
			text += s
		case "content_block_delta":
			var d struct{ Text string }
			json.Unmarshal(ev.Delta, &d)
			text += d.Text
		case "response.completed", "message_stop":
			well = true
		}
	}
	return text, well
}

// clean fails where something comes twice that comes once in a stream.
func clean(t *testing.T, path, stream string) {
	t.Helper()
	once := map[string][]string{
		"/chat/completions": {`"role":"assistant"`, `"finish_reason":"stop"`, "[DONE]"},
		"/responses":        {"event: response.created\n", `"part":{"type":"output_text","text":""`, "event: response.output_text.done\n", "event: response.completed\n"},
		"/messages":         {"event: message_start\n", `"content_block":{"type":"text"`, "event: message_stop\n"},
	}
	for _, part := range once[path] {
		if n := strings.Count(stream, part); n != 1 {
			t.Errorf("%q comes %d times, want once\n%s", part, n, stream)
		}
	}
	for began, ended := range map[string]string{"event: response.output_item.added\n": "event: response.output_item.done\n", "event: content_block_start\n": "event: content_block_stop\n"} {
		if n, m := strings.Count(stream, began), strings.Count(stream, ended); n != m {
			t.Errorf("%q comes %d times, its end %d times\n%s", began, n, m, stream)
		}
	}
}

// clientPaths are the operations of clients, one of each dialect.
var clientPaths = []string{"/chat/completions", "/responses", "/messages"}

// A stream that broke off goes on at another target, for clients of every
// dialect, over upstreams of every dialect.
func TestContinued(t *testing.T) {
	t.Parallel()
	for _, speaks := range []string{"openai-chat", "openai-responses", "anthropic", "gemini"} {
		for _, next := range []string{"openai-chat", "openai-responses", "anthropic", "gemini"} {
			for _, fault := range []string{"cut", "error-late"} {
				if fault != "cut" && next != "openai-chat" {
					continue // how it broke off is nothing to who goes on
				}
				t.Run(speaks+", "+fault+", "+next, func(t *testing.T) {
					t.Parallel()
					g, a, b := pair(t, speaks, next, "continue: true", "")
					faulty(t, a, fmt.Sprintf("%s %d", fault, brokenAfter[speaks]))
					for _, path := range clientPaths { // a fourth failure would not be seen: a is spared
						got := g.post(t, path, bodyOf(path, "m", true, "Hi", ""))
						g.continued(t, a, b, path, got)
					}
				})
			}
		}
	}
}

// An upstream dies within its answer.
func TestContinuedAfterDeath(t *testing.T) {
	t.Parallel()
	for _, path := range clientPaths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			g, a, b := pair(t, "openai-chat", "anthropic", "continue: true", "")
			faulty(t, a, "stall 3")
			resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, path, strings.NewReader(bodyOf(path, "m", true, "Hi", ""))))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body bytes.Buffer
			for part := make([]byte, 512); !strings.Contains(body.String(), "from "); {
				n, err := resp.Body.Read(part)
				if body.Write(part[:n]); err != nil {
					t.Fatalf("%v after %s", err, body.String())
				}
			}
			a.Close()
			if _, err = body.ReadFrom(resp.Body); err != nil {
				t.Fatal(err)
			}
			g.continued(t, a, b, path, reply{resp.StatusCode, resp.Header, body.String(), nil})
		})
	}
}

// continued checks a stream that a began and b went on with.
func (g *gateway) continued(t *testing.T, a, b *upstream.Server, path string, got reply) {
	t.Helper()
	text, well := saidIn(t, path, got.body)
	said, _ := strings.CutSuffix(text, "Hello from big.")
	if said != "Hello " && said != "Hello from " || !well {
		t.Errorf("%s: got %q, ended well: %t\n%s", path, text, well, got.body)
		return
	}
	clean(t, path, got.body)
	asked := last(t, b).Body
	told := strings.Index(asked, `"`+said+`"`)
	if order := strings.Index(asked, "Your answer broke off."); told < 0 || order < told {
		t.Errorf("%s: the second was asked %s", path, asked)
	}
	w := g.ways(t, got.callID())
	if w.Provider != "b" || !w.Estimated || !slices.Contains(w.Notes, "assume:continuation") || w.Status != 200 {
		t.Errorf("%s: got %+v", path, w)
	}
	first := last(t, a).Body
	if w.Input < int64(len(asked)/4+len(first)/8) || w.Output < 4 {
		t.Errorf("%s: got %d in, %d out, want the sum of both: %d and %d bytes", path, w.Input, w.Output, len(first), len(asked))
	}
	if path == "/responses" && !strings.Contains(got.body, `"text":"`+text+`"`) {
		t.Errorf("the whole response has not the joined text\n%s", got.body)
	}
}

// endsBadly wants a stream that tells of a failure, once and last, and of no
// good end.
func endsBadly(t *testing.T, path, stream, code string) {
	t.Helper()
	failure := map[string]string{"/chat/completions": `data: {"error":`, "/responses": "event: error\n"}[path]
	at := strings.Index(stream, failure)
	if at < 0 || strings.Count(stream, failure) != 1 || !strings.Contains(stream[at:], `"code":"`+code+`"`) || strings.Contains(stream[at:], `"choices"`) ||
		strings.Contains(stream, "response.completed") {
		t.Errorf("%s: the stream does not end with the failure %s\n%s", path, code, stream)
	}
}

// What no other can go on with ends with the failure, as does what may not.
func TestContinuedNot(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`
	for _, c := range []struct{ name, model, fault, further string }{
		{"not configured", "strategy: ordered", "error-late", ""},
		{"a call of a tool", "continue: true", "error-late 3", tools},
		{"JSON", "continue: true", "error-late 2", `,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`},
		{"two answers", "continue: true", "error-late 8", `,"n":2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, a, b := pair(t, "openai-chat", "openai-chat", c.model, "")
			faulty(t, a, c.fault)
			got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", true, "Hi", c.further))
			endsBadly(t, "/chat/completions", got.body, "upstream_error")
			if n := len(calls(b)); n != 0 {
				t.Errorf("got %d calls of the second, want none", n)
			}
		})
	}
}

// Where nobody can go on, the stream ends with the failure. Those that refused
// to go on used nothing.
func TestContinuedInVain(t *testing.T) {
	t.Parallel()
	for fault, code := range map[string]string{ // of the last that went on
		"status-500": "upstream_stream_truncated", "html": "upstream_stream_truncated", "cut 0": "upstream_stream_truncated", "error-first": "upstream_error",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			g, a, b := pair(t, "openai-chat", "anthropic", "continue: true", "")
			faulty(t, a, "cut")
			faulty(t, b, fault)
			for _, path := range []string{"/chat/completions", "/responses"} {
				got := g.post(t, path, bodyOf(path, "m", true, "Hi", ""))
				endsBadly(t, path, got.body, code)
				w := g.ways(t, got.callID())
				if w.Status < 500 || w.result("a/small") != "broken off" || w.result("b/big") == "ok" {
					t.Errorf("%s: got %+v", path, w)
				}
				if fault == "status-500" && w.Input > int64(len(calls(a)[0].Body)) {
					t.Errorf("%s: got %d tokens in, more than the first can have used of %d bytes", path, w.Input, len(calls(a)[0].Body))
				}
			}
		})
	}
}

// Three targets, of which the second breaks off too.
func TestContinuedTwice(t *testing.T) {
	t.Parallel()
	a, b, c := newUpstream(t), newUpstream(t), newUpstream(t)
	g := start(t, "providers:\n"+providerOf("a", a, "openai-chat", "")+providerOf("b", b, "anthropic", "")+providerOf("c", c, "openai-responses", "")+
		"models:\n  m: {targets: [a/small, b/small, c/big], continue: true}\n")
	faulty(t, a, "cut 3")
	faulty(t, b, "cut 5")
	for _, path := range clientPaths[:2] {
		got := g.post(t, path, bodyOf(path, "m", true, "Hi", ""))
		text, well := saidIn(t, path, got.body)
		if text != "Hello from Hello from Hello from big." || !well {
			t.Errorf("%s: got %q, ended well: %t\n%s", path, text, well, got.body)
		}
		clean(t, path, got.body)
		if asked := last(t, c).Body; !strings.Contains(asked, `"Hello from Hello from "`) {
			t.Errorf("%s: the third was asked %s", path, asked)
		}
	}
}

// Thoughts that broke off end there; the other target thinks for itself.
func TestContinuedThoughts(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"anthropic", "openai-chat"} {
		g, a, b := pair(t, "openai-chat", next, "continue: true", "")
		faulty(t, a, "cut 3")
		for _, path := range clientPaths {
			further := map[string]string{
				"/chat/completions": `,"reasoning_effort":"high"`,
				"/responses":        `,"reasoning":{"effort":"high","summary":"auto"}`,
				"/messages":         `,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`,
			}[path]
			got := g.post(t, path, bodyOf(path, "m", true, "Hi", further))
			text, well := saidIn(t, path, got.body)
			if text != "Hello from big." || !well || strings.Contains(last(t, b).Body, "broke off") {
				t.Errorf("%s: got %q, ended well: %t, the second was asked %s\n%s", path, text, well, last(t, b).Body, got.body)
			}
			clean(t, path, got.body)
		}
	}
}

// A response that two targets wrote is kept whole, and gone on from.
func TestContinuedStored(t *testing.T) {
	t.Parallel()
	g, a, b := pair(t, "openai-chat", "openai-responses", "continue: true", "")
	faulty(t, a, "cut")
	got := g.post(t, "/responses", bodyOf("/responses", "m", true, "Hi", ""))
	var done struct{ Response struct{ ID string } }
	for _, e := range frames(t, got.body) {
		if e.name == "response.completed" {
			json.Unmarshal([]byte(e.data), &done)
		}
	}
	kept := g.object(t, http.MethodGet, "/responses/"+done.Response.ID)
	if !strings.Contains(kept.body, `"text":"Hello from Hello from big."`) {
		t.Errorf("got %d %s, want the joined text", kept.status, kept.body)
	}
	faulty(t, a, "")
	next := g.post(t, "/responses", bodyOf("/responses", "m", false, "And now?", `,"previous_response_id":"`+done.Response.ID+`"`))
	if outcome := observe(t, "/responses", next); outcome != "answer" {
		t.Fatalf("got %q", outcome)
	}
	asked := last(t, a).Body
	if len(calls(b)) > 1 {
		asked = last(t, b).Body
	}
	if !strings.Contains(asked, `"Hello from Hello from big."`) || strings.Contains(asked, "broke off") {
		t.Errorf("the next turn went on from %s", asked)
	}
}
