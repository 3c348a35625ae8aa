package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/cli"
	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// ways is a record with what routing leaves in it.
type ways struct {
	record
	Key       string
	Account   string
	Notes     []string
	CacheMiss string `json:"cache_miss"`
	Steps     []struct {
		Target, Account, Result string
		Tried                   bool
	}
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

// accounts is a gateway whose model m has one target with eight accounts,
// up and up#2 to up#8. Every key is good.
func accounts(t *testing.T, model string) (g *gateway, up *upstream.Server) {
	t.Helper()
	up = upstream.New()
	t.Cleanup(up.Close)
	return start(t, fmt.Sprintf(`providers:
  up: {base_url: %q, api_keys: [key-1, key-2, key-3, key-4, key-5, key-6, key-7, key-8], speaks: [openai-chat, openai-responses], models: [small]}
models:
  m: {targets: [up/small], %s}
`, up.URL(), model)), up
}

// talk is a conversation of a client.
type talk struct {
	g        *gateway
	path     string
	header   http.Header
	opening  string // of the first message; the same for all turns
	further  string // members of the request
	messages []string
	previous string
}

// turn makes the n-th turn, and returns the account that served it.
func (c *talk) turn(t *testing.T, n int) (account string) {
	t.Helper()
	var body string
	if c.path == "/responses" {
		body = fmt.Sprintf(`{"model":"m","input":"%s, turn %d"%s`, c.opening, n, c.further)
		if c.previous != "" {
			body += fmt.Sprintf(`,"previous_response_id":%q`, c.previous)
		}
		body += "}"
	} else {
		c.messages = append(c.messages, fmt.Sprintf(`{"role":"user","content":"%s, turn %d"}`, c.opening, n))
		body = fmt.Sprintf(`{"model":"m","messages":[%s]%s}`, strings.Join(c.messages, ","), c.further)
	}
	r := c.g.request(t, t.Context(), http.MethodPost, c.path, strings.NewReader(body))
	for name, values := range c.header {
		r.Header[name] = values
	}
	got := c.g.do(t, r)
	if got.status != http.StatusOK {
		t.Errorf("turn %d of %s: %d %s", n, c.opening, got.status, got.body)
		return ""
	}
	c.messages = append(c.messages, `{"role":"assistant","content":"Hello from small."}`)
	var answer struct{ ID string }
	json.Unmarshal([]byte(got.body), &answer)
	c.previous = answer.ID
	return c.g.ways(t, got.callID()).Account
}

// Conversations stay with the account that they began with, whatever they are
// known by, and are spread over all.
func TestAffinity(t *testing.T) {
	t.Parallel()
	g, _ := accounts(t, "affinity: on")
	const conversations, turns = 60, 6
	var mu sync.Mutex
	stayed, began := 0, map[string]int{}
	moved := map[string]int{}
	var running sync.WaitGroup
	slots := make(chan struct{}, 6)
	for i := range conversations {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			c := &talk{g: g, path: []string{"/chat/completions", "/responses"}[i%2], opening: fmt.Sprintf("Conversation %d", i)}
			kind := c.path
			switch i / 2 % 3 {
			case 1:
				c.opening, c.further = "Hello", fmt.Sprintf(`,"prompt_cache_key":"k%d"`, i)
				kind += ", by key"
			case 2:
				c.opening, c.header = "Hello", http.Header{"Session-Id": {fmt.Sprintf("s%d", i)}}
				kind += ", by header"
			}
			first := c.turn(t, 1)
			same := 1
			for n := 2; n <= turns; n++ {
				if c.turn(t, n) == first {
					same++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			began[first]++
			stayed += same
			if same < turns {
				moved[kind] += turns - same
			}
		})
	}
	running.Wait()
	t.Logf("%d of %d turns stayed; conversations by account: %v", stayed, conversations*turns, began)
	if stayed*100 < conversations*turns*99 {
		t.Errorf("got %d of %d turns at the account of the first, want 99 %%; moved: %v", stayed, conversations*turns, moved)
	}
	const fair = float64(conversations) / 8
	for i := range 8 {
		account := "up"
		if i > 0 {
			account = fmt.Sprintf("up#%d", i+1)
		}
		if n := float64(began[account]); n > fair*1.25+1 || n < fair*0.75-1 {
			t.Errorf("%s: got %g conversations, want %g, a quarter and one more or less", account, n, fair)
		}
	}
}

// Without affinity the turns of a conversation go anywhere.
func TestAffinityOff(t *testing.T) {
	t.Parallel()
	g, _ := accounts(t, "affinity: off")
	c := &talk{g: g, path: "/chat/completions", opening: "Hello"}
	served := map[string]bool{}
	for n := range 20 {
		served[c.turn(t, n)] = true
	}
	if len(served) < 3 {
		t.Errorf("20 turns went to %v, want many", served)
	}
}

// The conversations of an account that is sick move once, and stay where they
// are when it is well again.
func TestAffinityMoves(t *testing.T) {
	t.Parallel()
	a, b := newUpstream(t), newUpstream(t)
	g := start(t, "providers:\n"+providerOf("a", a, "openai-chat", "")+providerOf("b", b, "openai-chat", "")+
		"models:\n  m: {targets: [a/small, b/small], strategy: weighted}\n")
	var atA []*talk
	for i := 0; len(atA) < 4; i++ {
		c := &talk{g: g, path: "/chat/completions", opening: fmt.Sprintf("Conversation %d", i)}
		if c.turn(t, 1) == "a" {
			atA = append(atA, c)
		}
	}
	faulty(t, a, "status-500")
	for _, c := range atA {
		for n := range 2 {
			if at := c.turn(t, n); at != "b" {
				t.Errorf("%s: got served by %s, want b: a fails", c.opening, at)
			}
		}
	}
	faulty(t, a, "")
	// Calls find out that a is well, once it is asked again.
	eventually(t, "a is well again", func() bool {
		before := len(calls(a))
		(&talk{g: g, path: "/chat/completions", opening: fmt.Sprintf("Later %d", time.Now().UnixNano())}).turn(t, 1)
		return len(calls(a)) > before
	})
	stayed := 0
	for _, c := range atA {
		if c.turn(t, 9) == "b" {
			stayed++
		}
	}
	if stayed < 3 {
		t.Errorf("%d of 4 conversations stayed where they moved to", stayed)
	}
}

// Each strategy spreads calls in its own way.
func TestStrategies(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, model string) (g *gateway, a, b *upstream.Server) {
		a, b = newUpstream(t), newUpstream(t)
		return start(t, "providers:\n"+providerOf("a", a, "openai-chat", "")+providerOf("b", b, "openai-chat", "")+
			"models:\n  m: {affinity: off, "+model+"}\n"), a, b
	}
	ask := func(t *testing.T, g *gateway, n int) {
		t.Helper()
		for i := range n {
			if got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", false, fmt.Sprint(i), "")); got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
		}
	}
	t.Run("ordered", func(t *testing.T) {
		t.Parallel()
		g, a, b := begin(t, "targets: [a/small, b/small]")
		if ask(t, g, 20); len(calls(a)) != 20 || len(calls(b)) != 0 {
			t.Errorf("got %d and %d calls, want all at the first", len(calls(a)), len(calls(b)))
		}
	})
	t.Run("weighted", func(t *testing.T) {
		t.Parallel()
		g, a, b := begin(t, "targets: [{to: a/small, weight: 3}, {to: b/small, weight: 1}]")
		if ask(t, g, 400); len(calls(b)) < 60 || len(calls(b)) > 140 { // 100 on average; a deviation of 8.7
			t.Errorf("got %d and %d calls, want three to one", len(calls(a)), len(calls(b)))
		}
	})
	t.Run("latency", func(t *testing.T) {
		t.Parallel()
		g, a, b := begin(t, "targets: [a/small, b/small], strategy: latency")
		faulty(t, a, "pause 150")
		if ask(t, g, 40); len(calls(a)) > 5 {
			t.Errorf("got %d and %d calls, want few at the slow one", len(calls(a)), len(calls(b)))
		}
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		g, a, b := begin(t, "targets: [a/small, b/small], strategy: busy")
		faulty(t, a, "hang")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var held sync.WaitGroup
		defer held.Wait()
		defer cancel()
		eventually(t, "a call at a", func() bool {
			over := make(chan struct{})
			held.Go(func() {
				defer close(over)
				resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(bodyOf("/chat/completions", "m", false, "Hi", ""))))
				if err == nil {
					resp.Body.Close()
				}
			})
			for len(calls(a)) == 0 {
				select {
				case <-over:
					return false
				case <-time.After(time.Millisecond):
				}
			}
			return true
		})
		before := len(calls(b))
		if ask(t, g, 20); len(calls(a)) != 1 || len(calls(b)) != before+20 {
			t.Errorf("got %d and %d calls, want all at the one that is idle", len(calls(a)), len(calls(b))-before)
		}
	})
	t.Run("price", func(t *testing.T) {
		t.Parallel()
		up := newUpstream(t, upstream.WithModels("gpt-5", "gpt-5-mini", "unheard-of"))
		g := start(t, fmt.Sprintf(`providers:
  openai: {base_url: %q, api_key: %s, speaks: [openai-chat], models: [gpt-5, gpt-5-mini, unheard-of]}
models:
  m: {targets: [openai/unheard-of, openai/gpt-5, openai/gpt-5-mini], strategy: price}
`, up.URL(), canary))
		ask(t, g, 10)
		for _, r := range calls(up) {
			if !strings.Contains(r.Body, `"gpt-5-mini"`) {
				t.Errorf("got %s, want the cheapest", r.Body)
			}
		}
	})
}

// A call goes to no target that cannot serve it, by what the request is made
// of, what the client's header asks for, and what the configuration says.
func TestConditions(t *testing.T) {
	t.Parallel()
	const (
		picture = `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`
		tools   = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`
		schema  = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`
		plain   = `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`
		team    = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"metadata":{"team":"red"}}`
	)
	long := bodyOf("/chat/completions", "m", false, strings.Repeat("word ", 4000), "")
	for _, c := range []struct {
		name, a, when string // of the first target's provider, and of the target
		body, header  string
		reason        string // why the first is left out; "" when it is not
	}{
		{"vision", "caps: {'*': {vision: false}}", "", picture, "", "no vision"},
		{"no vision wanted", "caps: {'*': {vision: false}}", "", plain, "", ""},
		{"tools", "caps: {'*': {tools: false}}", "", tools, "", "no tools"},
		{"schema", "caps: {'*': {structured: false}}", "", schema, "", "no schema"},
		{"region", "region: us", "", plain, "X-Limen-Region: eu", "region"},
		{"no region wanted", "region: us", "", plain, "", ""},
		{"retention", "region: us", "", plain, "X-Limen-Zero-Retention: true", "retention"},
		{"tokens", "region: us", "tokens < 1000", long, "", "rule"},
		{"tokens, few", "region: us", "tokens < 1000", plain, "", ""},
		{"key", "region: us", `key == "somebody"`, plain, "", "rule"},
		{"header", "region: us", `headers["x-tier"] == "gold"`, plain, "X-Tier: silver", "rule"},
		{"header, fits", "region: us", `headers["x-tier"] == "gold"`, plain, "X-Tier: gold", ""},
		{"metadata", "region: us", `metadata["team"] == "blue"`, team, "", "rule"},
		{"metadata, fits", "region: us", `metadata.team == "red"`, team, "", ""},
		{"operation", "region: us", `operation == "responses"`, plain, "", "rule"},
		{"a failure", "region: us", "1 / (tokens - tokens) == 0", plain, "", "rule failed"},
		{"a credential", "region: us", `"authorization" in headers`, plain, "", "rule"},
		{"another credential", "region: us", `"x-api-key" in headers || "cookie" in headers`, plain, "X-Api-Key: secret", "rule"},
		{"the socket's", "region: us", `"sec-websocket-protocol" in headers`, plain, "Sec-Websocket-Protocol: openai-insecure-api-key.x", "rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := newUpstream(t), newUpstream(t)
			g := start(t, "providers:\n"+providerOf("a", a, "openai-chat", ", "+c.a)+providerOf("b", b, "openai-chat", ", region: eu, zero_retention: true")+
				fmt.Sprintf("models:\n  m: {targets: [{to: a/small, when: %q}, b/small], strategy: ordered}\n", cmp.Or(c.when, "true")))
			r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(c.body))
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				r.Header.Set(name, value)
			}
			got := g.do(t, r)
			w := g.ways(t, got.callID())
			want := map[bool]string{true: "a", false: "b"}[c.reason == ""]
			if got.status != http.StatusOK || w.Provider != want || c.reason != "" && w.result("a/small") != c.reason {
				t.Errorf("got %d from %s, steps %+v, want %s, and a left out for %q\n%s", got.status, w.Provider, w.Steps, want, c.reason, got.body)
			}
			if c.reason != "" {
				if why := g.why(t, got.callID()); !strings.Contains(why, "left out: "+c.reason) {
					t.Errorf("limen why does not tell of %q\n%s", c.reason, why)
				}
			}
			if log := g.log.String(); strings.Contains(log, "a rule failed on a call") != (c.reason == "rule failed") {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

// why is what limen why shows of a call.
func (g *gateway) why(t *testing.T, id string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := cli.Main(t.Context(), []string{"why", id, "--data", g.data}, &out, &problems, cli.Version{Release: "test"}, nil); code != 0 {
		t.Errorf("limen why: exit code %d: %s", code, problems.String())
	}
	return out.String()
}

// A prompt that is too long for a target goes to one with room, by what is
// known of the models.
func TestConditionContext(t *testing.T) {
	t.Parallel()
	up := newUpstream(t, upstream.WithModels("gpt-4", "gpt-5-mini"))
	g := start(t, fmt.Sprintf(`providers:
  openai: {base_url: %q, api_key: %s, speaks: [openai-chat], models: [gpt-4, gpt-5-mini]}
models:
  m: {targets: [openai/gpt-4, openai/gpt-5-mini]}
`, up.URL(), canary))
	for _, c := range []struct {
		words int
		want  string
	}{{10, "gpt-4"}, {20000, "gpt-5-mini"}} {
		got := g.post(t, "/chat/completions", bodyOf("/chat/completions", "m", false, strings.Repeat("word ", c.words), ""))
		if w := g.ways(t, got.callID()); got.status != http.StatusOK || w.UpstreamModel != c.want {
			t.Errorf("%d words: got %d from %s, want %s; %+v", c.words, got.status, w.UpstreamModel, c.want, w.Steps)
		}
	}
}

// Where no target fits, the client is told what they lack.
func TestConditionsNobody(t *testing.T) {
	t.Parallel()
	a, b := newUpstream(t), newUpstream(t)
	g := start(t, "providers:\n"+providerOf("a", a, "openai-chat", ", region: us, caps: {'*': {vision: false}}")+providerOf("b", b, "openai-chat", ", region: us, caps: {'*': {vision: false}}")+
		`models:
  m: {targets: [a/small, b/small]}
  ruled: {targets: [{to: a/small, when: 'key == "nobody"'}]}
`)
	const picture = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`
	for _, c := range []struct{ body, header, want, said string }{
		{picture, "", "400 unsupported_by_upstream", "vision"},
		{bodyOf("/chat/completions", "m", false, "Hi", ""), "X-Limen-Region: eu", "400 unsupported_by_upstream", "the region that is asked for"},
		{bodyOf("/chat/completions", "a/small", false, "Hi", ""), "X-Limen-Region: eu", "400 unsupported_by_upstream", "the region that is asked for"},
		{bodyOf("/chat/completions", "m", false, "Hi", ""), "X-Limen-Zero-Retention: 1", "400 unsupported_by_upstream", "zero retention"},
		{bodyOf("/chat/completions", "ruled", false, "Hi", ""), "", "403", "a rule that lets this request through"},
	} {
		r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(c.body))
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		got := g.do(t, r)
		if outcome := observe(t, "/chat/completions", got); outcome != c.want || !strings.Contains(got.body, c.said) {
			t.Errorf("%s %s: got %q, want %q that names %q\n%s", c.header, c.body, outcome, c.want, c.said, got.body)
		}
	}
	if n := len(calls(a)) + len(calls(b)); n != 0 {
		t.Errorf("%d calls reached an upstream, want none", n)
	}
}

// A turn whose prompt was expected in the upstream's cache says why it was not
// read.
func TestCacheMiss(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Call me Ishmael. ", 400)
	message := func(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }
	body := func(further string, messages ...string) string {
		return fmt.Sprintf(`{"model":"m","prompt_cache_key":"k","messages":[%s]%s}`, strings.Join(messages, ","), further)
	}
	const tool = `,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"none"`
	first := []string{message("system", long), message("user", "cached")}
	for _, c := range []struct{ name, model, before, after, want string }{
		{"read", "affinity: on", body("", first...), body("", append(first, message("assistant", "Hello"), message("user", "again, cached"))...), ""},
		{"not there", "affinity: on", body("", first...), body("", append(first, message("assistant", "Hello"), message("user", "again"))...), "the upstream did not read it, "},
		{"tools", "affinity: on", body("", first...), body(tool, append(first, message("assistant", "Hello"), message("user", "again"))...), "the tools changed"},
		{"history", "affinity: on", body("", first...), body("", message("system", long[:600]+"Call me Ahab. "+long), message("user", "again")), "the conversation changed between its bytes 512 and 768"},
		{"another model", "affinity: off", body("", first...), body("", append(first, message("user", "again"))...), "another model answered: big after small"},
		{"another account", "affinity: off", body("", first...), body("", append(first, message("user", "again"))...), "another account answered: b after a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := newUpstream(t), newUpstream(t)
			target := map[string]string{"another account": "b/small", "another model": "a/big"}[c.name]
			if target == "" {
				target = "b/small"
			}
			g := start(t, "providers:\n"+providerOf("a", a, "openai-chat", "")+providerOf("b", b, "openai-chat", "")+
				fmt.Sprintf("models:\n  m: {targets: [{to: a/small, when: 'headers[\"x-go\"] == \"\"'}, %s], strategy: ordered, %s}\n", target, c.model))
			var got reply
			for i, text := range []string{c.before, c.after} {
				r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(text))
				if i == 1 && strings.HasPrefix(c.name, "another") {
					r.Header.Set("X-Go", "elsewhere")
				}
				got = g.do(t, r)
				if outcome := observe(t, "/chat/completions", got); outcome != "answer" {
					t.Fatalf("turn %d: got %q %s", i, outcome, got.body)
				}
				if w := g.ways(t, got.callID()); i == 0 && w.CacheMiss != "" {
					t.Errorf("the first turn missed: %q", w.CacheMiss)
				}
			}
			w := g.ways(t, got.callID())
			if !strings.HasPrefix(w.CacheMiss, c.want) || (c.want == "") != (w.CacheMiss == "") {
				t.Errorf("got %q, want %q", w.CacheMiss, c.want)
			}
			if why := g.why(t, got.callID()); strings.Contains(why, "not read: "+c.want) != (c.want != "") {
				t.Errorf("limen why: %s", why)
			}
			reads, misses := 1, 1
			if c.want == "" {
				reads, misses = 2, 0
			}
			metrics := g.metrics(t)
			for result, n := range map[string]int{"read": reads, "missed": misses} {
				line := fmt.Sprintf("limen_prompt_cache_total{limen_key_id=%q,result=%q} %d\n", w.Key, result, n)
				if strings.Contains(metrics, line) != (n > 0) {
					t.Errorf("the metrics lack %s", line)
				}
			}
		})
	}
}
