package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/cli"
	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

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
