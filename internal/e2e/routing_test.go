package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// targets writes providers that misbehave in one way each, and models whose
// calls meet one of them first.
type targets struct{ providers, models strings.Builder }

// provider adds one; fault is what becomes of its calls, "" nothing. It
// returns the target.
func (c *targets) provider(name, url, speaks, model, fault string) string {
	header := ""
	if fault != "" {
		header = fmt.Sprintf(", headers: {X-Fault: %q}", fault)
	}
	fmt.Fprintf(&c.providers, "  %s: {base_url: %q, api_key: %s, speaks: [%s], models: [%s]%s}\n", name, url, canary, speaks, model, header)
	return name + "/" + model
}

func (c *targets) model(name, options string, list ...string) {
	fmt.Fprintf(&c.models, "  %s: {targets: [%s]%s}\n", name, strings.Join(list, ", "), options)
}

func (c *targets) String() string {
	return generous + "providers:\n" + c.providers.String() + "models:\n" + c.models.String()
}

// generous is a retry budget that no test comes to the end of.
const generous = "retries: {budget: 100%}\n"

const bothDialects = "openai-chat, openai-responses"

// nobodyHome is an address that refuses connections.
func nobodyHome(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/v1"
}

// ask makes a call of a model in one of the four manners.
func (g *gateway) ask(t *testing.T, manner int, model, prompt string) reply {
	t.Helper()
	m := manners[manner]
	body := chatBody(m.stream, prompt)
	if m.path == "/responses" {
		body = responsesBody(m.stream, prompt)
	}
	return g.post(t, m.path, strings.Replace(body, "up/small", model, 1))
}

// steps tells what a record has of the way of a call: "bad 500, good ok".
func (r *record) steps() string {
	var list []string
	for _, s := range r.Steps {
		if s.Tried {
			list = append(list, s.Account+" "+s.Result)
			continue
		}
		list = append(list, s.Account+" left out: "+s.Result)
	}
	return strings.Join(list, ", ")
}

// TestFallback has the first of two targets fail in every way, before the
// client had anything of its answer.
func TestFallback(t *testing.T) {
	t.Parallel()
	bad, good := newUpstream(t), newUpstream(t)
	cases := []struct {
		fault string
		want  [2]string // how the attempt is told of, whole and streamed; "" where the fault is none
		sent  bool      // the upstream may have worked on it
	}{
		{"refused", [2]string{"connect", "connect"}, false},
		{"reset", [2]string{"broken off", "broken off"}, true},
		{"reset-headers", [2]string{"broken off", "broken off"}, true},
		{"reset-mid", [2]string{"broken off", ""}, true},
		{"short-length", [2]string{"broken off", "broken off"}, true},
		{"status-401", [2]string{"401", "401"}, false},
		{"status-402", [2]string{"402", "402"}, false},
		{"status-403", [2]string{"403", "403"}, false},
		{"status-404", [2]string{"404", "404"}, false},
		{"status-408", [2]string{"408", "408"}, false},
		{"status-429", [2]string{"429", "429"}, false}, // with Retry-After
		{"quota", [2]string{"429", "429"}, false},      // without
		{"status-500", [2]string{"500", "500"}, false},
		{"status-502", [2]string{"502", "502"}, false},
		{"status-503", [2]string{"503", "503"}, false},
		{"status-504", [2]string{"504", "504"}, false},
		{"status-529", [2]string{"529", "529"}, false},
		{"html-502", [2]string{"502", "502"}, false},
		{"html", [2]string{"invalid", "invalid"}, true},
		{"empty", [2]string{"invalid", "broken off"}, true},
		{"error-first", [2]string{"", "502"}, true},
		{"error-in-200", [2]string{"502", "502"}, false},
		{"redirect", [2]string{"302", "302"}, false},
	}
	var c targets
	c.provider("good", good.URL(), bothDialects, "small", "")
	name := func(fault string, manner int) string { return fault + "-" + manners[manner].name }
	for _, f := range cases {
		for i := range manners {
			url, fault := bad.URL(), f.fault
			if fault == "refused" {
				url, fault = nobodyHome(t), ""
			}
			n := name(f.fault, i)
			c.model(n, "", c.provider("bad-"+n, url, bothDialects, "small", fault), "good/small")
		}
	}
	g := start(t, c.String())
	for _, f := range cases {
		for i, m := range manners {
			want := f.want[0]
			if m.stream {
				want = f.want[1]
			}
			if want == "" {
				continue
			}
			t.Run(name(f.fault, i), func(t *testing.T) {
				usual := g.record(t, g.ask(t, i, "good/small", t.Name()+" alone").id())
				got := g.ask(t, i, name(f.fault, i), t.Name()+" tried")
				if got.status != http.StatusOK || got.err != nil {
					t.Fatalf("got %d %s (%v), want what the second target says", got.status, got.body, got.err)
				}
				outcome := "answer"
				if m.stream {
					outcome = "stream"
				}
				if o := observe(t, m.path, got); o != outcome || !strings.Contains(got.body, "small") {
					t.Errorf("got %q, want %q\n%s", o, outcome, got.body)
				}
				checkSecrets(t, "the answer", got.body, bad)
				r := g.record(t, got.id())
				account := "bad-" + name(f.fault, i)
				if r.Status != 200 || r.Error != "" || r.Provider != "good" || r.Account != "good" || r.UpstreamModel != "small" {
					t.Errorf("recorded as %+v", r)
				}
				if way := account + " " + want + ", good ok"; r.steps() != way {
					t.Errorf("steps: got %q, want %q", r.steps(), way)
				}
				if f.sent != r.Estimated || f.sent != (r.Input > usual.Input) || r.Output != usual.Output {
					t.Errorf("tokens: got %d in, %d out, estimated %t, of one attempt %d in, %d out", r.Input, r.Output, r.Estimated, usual.Input, usual.Output)
				}
				n := 1
				if f.fault == "refused" {
					n = 0
				}
				if a, b := attempts(bad, t.Name()+" tried"), attempts(good, t.Name()+" tried"); a != n || b != 1 {
					t.Errorf("attempts: got %d and %d, want %d and 1", a, b, n)
				}
			})
		}
	}
	checkSecrets(t, "the log", g.log.String(), bad)
	g.holdsNothing(t)
}

// holdsNothing wants what calls that are over held to be given back.
func (g *gateway) holdsNothing(t *testing.T) {
	t.Helper()
	eventually(t, "all memory is given back", func() bool { return strings.Contains(g.metrics(t), "\nlimen_request_bodies_bytes 0\n") })
	eventually(t, "nothing is under way", func() bool {
		var out struct {
			Models []struct {
				Health []struct {
					InFlight int `json:"in_flight"`
				}
			}
		}
		g.admin(t, http.MethodGet, "/models", "", &out)
		for _, m := range out.Models {
			for _, h := range m.Health {
				if h.InFlight != 0 {
					return false
				}
			}
		}
		return len(out.Models) > 0
	})
}

// TestNoFallback has failures that another target is not to make good: those of
// the request itself, and those after the client had content.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	bad, good := newUpstream(t), newUpstream(t)
	cases := []struct {
		fault string
		want  outcomes // "" where the fault is none
	}{
		{"status-400", same("400 invalid_value")},
		{"context", same("400 context_length_exceeded")},
		{"status-409", same("409 conversation_locked")},
		{"status-413", same("413 request_too_large")},
		{"status-422", same("400")},
		{"error-late arg=3", outcomes{"", "stream, upstream_error", "", ""}},
		{"error-late arg=6", outcomes{"", "", "", "stream, upstream_error"}},
		{"cut arg=3", outcomes{"", "stream, upstream_stream_truncated", "", ""}},
		{"cut arg=6", outcomes{"", "", "", "stream, upstream_stream_truncated"}},
		{"no-completed", split("", "stream, upstream_stream_truncated")},
	}
	var c targets
	c.provider("good", good.URL(), bothDialects, "small", "")
	name := func(fault string) string { return strings.NewReplacer(" ", "-", "=", "-").Replace(fault) }
	for _, f := range cases {
		n := name(f.fault)
		c.model(n, "", c.provider("bad-"+n, bad.URL(), bothDialects, "small", f.fault), "good/small")
	}
	g := start(t, c.String())
	for _, f := range cases {
		for i, m := range manners {
			want := f.want[i]
			if want == "" {
				continue
			}
			t.Run(f.fault+"/"+m.name, func(t *testing.T) {
				got := g.ask(t, i, name(f.fault), t.Name()+" tried")
				if o := observe(t, m.path, got); o != want {
					t.Errorf("got %q, want %q\n%s", o, want, got.body)
				}
				r := g.record(t, got.id())
				if r.Provider != "bad-"+name(f.fault) || r.Error == "" || len(r.Steps) != 1 {
					t.Errorf("recorded as %+v", r)
				}
				if a, b := attempts(bad, t.Name()+" tried"), attempts(good, t.Name()+" tried"); a != 1 || b != 0 {
					t.Errorf("attempts: got %d and %d, want 1 and none", a, b)
				}
			})
		}
	}
	g.holdsNothing(t)
}

// chunk is a frame of a chat's stream.
func chunk(text string) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"small","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]}`+"\n\n", text)
}

// TestContentIsNotSaidTwice: what reset a stream that the client had something
// of is not made good by another answer.
func TestContentIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	good := newUpstream(t)
	read := make(chan struct{})
	var asked sync.Map
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		if _, again := asked.LoadOrStore("asked", true); again {
			t.Error("the target was asked twice")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chunk("once"))
		http.NewResponseController(w).Flush()
		<-read
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}))
	t.Cleanup(s.Close)
	var c targets
	c.model("m", "", c.provider("resets", s.URL+"/v1", "openai-chat", "small", ""), c.provider("good", good.URL(), bothDialects, "small", ""))
	g := start(t, c.String())
	resp, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(strings.Replace(chatBody(true, "q"), "up/small", "m", 1))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body strings.Builder
	buf := make([]byte, 4096)
	for told := false; ; {
		n, err := resp.Body.Read(buf)
		body.Write(buf[:n])
		if !told && strings.Contains(body.String(), "once") {
			told = true
			close(read)
		}
		if err != nil {
			break
		}
	}
	got := reply{status: resp.StatusCode, header: resp.Header, body: body.String()}
	check(t, got, "stream, upstream_stream_truncated")
	if strings.Count(got.body, "once") != 1 || attempts(good, `"q"`) != 0 {
		t.Errorf("asked elsewhere %d times, got\n%s", attempts(good, `"q"`), got.body)
	}
	if r := g.record(t, got.id()); r.Provider != "resets" || r.Status != 502 || !r.Estimated || r.steps() != "resets broken off" {
		t.Errorf("recorded as %+v", r)
	}
}

// TestFallbackAcrossDialects: the answer, the notes and the record are those of
// the target that answered, whatever the first one spoke.
func TestFallbackAcrossDialects(t *testing.T) {
	t.Parallel()
	bad, good := newUpstream(t, upstream.WithModels(upstreamModels...)), newUpstream(t, upstream.WithModels(upstreamModels...))
	spoken := []struct{ name, dialect, model, suffix string }{
		{"chat", "openai-chat", "small", "/v1"}, {"responses", "openai-responses", "small", "/v1"},
		{"anthropic", "anthropic", "claude-opus-4-8", "/v1"}, {"gemini", "gemini", "gemini-3.5-flash", "/v1beta"},
	}
	clients := []struct{ name, path, body string }{
		{"chat", "/chat/completions", `{"model":%q,"stream":%t,"max_tokens":99,"seed":7,"top_logprobs":null,"messages":[{"role":"user","content":%q}]}`},
		{"responses", "/responses", `{"model":%q,"stream":%t,"max_output_tokens":99,"truncation":"auto","top_p":0.5,"safety_identifier":"s","input":%q}`},
		{"messages", "/messages", `{"model":%q,"stream":%t,"max_tokens":99,"top_k":3,"messages":[{"role":"user","content":%q}]}`},
	}
	var c targets
	at := func(s *upstream.Server, suffix string) string { return strings.TrimSuffix(s.URL(), "/v1") + suffix }
	for _, to := range spoken {
		c.model("only-"+to.name, "", c.provider(to.name, at(good, to.suffix), to.dialect, to.model, ""))
	}
	name := func(from, to, client string, stream bool) string {
		return fmt.Sprintf("%s-%s-%s-%t", from, to, client, stream)
	}
	for _, from := range spoken {
		for _, to := range spoken {
			for _, client := range clients {
				for _, stream := range []bool{false, true} {
					if n := name(from.name, to.name, client.name, stream); from != to {
						c.model(n, "", c.provider("bad-"+n, at(bad, from.suffix), from.dialect, from.model, "status-500"), to.name+"/"+to.model)
					}
				}
			}
		}
	}
	g := start(t, c.String())
	for _, from := range spoken {
		for _, to := range spoken {
			for _, client := range clients {
				for _, stream := range []bool{false, true} {
					n := name(from.name, to.name, client.name, stream)
					if from == to {
						continue
					}
					t.Run(n, func(t *testing.T) {
						alone := g.post(t, client.path, fmt.Sprintf(client.body, "only-"+to.name, stream, "Hi"))
						got := g.post(t, client.path, fmt.Sprintf(client.body, n, stream, "Hi"))
						if alone.status != 200 || got.status != 200 {
							t.Fatalf("alone %d %s, got %d %s", alone.status, alone.body, got.status, got.body)
						}
						if a, b := saidFirst(alone, stream), saidFirst(got, stream); a != b {
							t.Errorf("notes: got %q, want %q", b, a)
						}
						if a, b := alike(alone.body, "only-"+to.name), alike(got.body, n); a != b {
							t.Errorf("got\n%s\nwant\n%s", b, a)
						}
						want, r := g.record(t, alone.id()), g.record(t, got.id())
						if strings.Join(r.Notes, ",") != strings.Join(want.Notes, ",") || r.Input != want.Input || r.Output != want.Output || r.Estimated {
							t.Errorf("recorded as %+v\nwant %+v", r, want)
						}
						if r.Provider != to.name || r.Account != to.name || r.UpstreamModel != to.model || r.steps() != "bad-"+n+" 500, "+to.name+" ok" {
							t.Errorf("recorded as %+v", r)
						}
					})
				}
			}
		}
	}
}

// saidFirst are the notes in an answer's header. What a stream shows only later
// may be among them or not.
func saidFirst(r reply, stream bool) string {
	notes := strings.Split(r.header.Get("X-Limen-Notes"), ",")
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return stream && strings.HasPrefix(n, "skip:") }), ",")
}

// changing is what two answers to one request do not have in common.
var changing = regexp.MustCompile(`"(id|item_id|model|created|created_at|completed_at|obfuscation)":("[^"]*"|\d+)`)

// alike is an answer without that.
func alike(body, model string) string {
	return strings.ReplaceAll(changing.ReplaceAllString(body, `"$1":"-"`), model, "MODEL")
}

// keyed is a server that knows several keys, and what is wrong with each.
type keyed struct {
	mu    sync.Mutex
	asked map[string][]time.Time
	wrong func(w http.ResponseWriter, key string, n int) bool // n counts the calls of the key, from 1
}

func (s *keyed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	s.asked[key] = append(s.asked[key], time.Now())
	n := len(s.asked[key])
	s.mu.Unlock()
	if s.wrong(w, key, n) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"c","object":"chat.completion","created":1,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
}

func (s *keyed) times(key string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked[key])
}

// TestSeveralKeys: of a provider's credentials, one that is refused or asks to be
// left alone is, and no client hears of it.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	serve := func(t *testing.T, wrong func(w http.ResponseWriter, key string, n int) bool) (*keyed, *gateway) {
		k := &keyed{asked: map[string][]time.Time{}, wrong: wrong}
		s := httptest.NewServer(k)
		t.Cleanup(s.Close)
		return k, start(t, fmt.Sprintf("providers:\n  up: {base_url: %q, api_keys: [key-a, key-b], models: [small]}\n", s.URL+"/v1"))
	}
	call := func(t *testing.T, g *gateway, n int) record {
		got := g.post(t, "/chat/completions", chatBody(false, fmt.Sprintf("conversation %d", n)))
		if got.status != http.StatusOK {
			t.Errorf("got %d %s", got.status, got.body)
		}
		return g.record(t, got.id())
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		k, g := serve(t, func(w http.ResponseWriter, key string, _ int) bool {
			if key == "key-a" {
				http.Error(w, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}`, http.StatusUnauthorized)
			}
			return key == "key-a"
		})
		both := 0
		for n := range 40 {
			r := call(t, g, n)
			if r.Account != "up#2" || r.Provider != "up" {
				t.Errorf("recorded as %+v", r)
			}
			if r.steps() == "up 401, up#2 ok" {
				both++
			}
		}
		if a, b := len(k.times("key-a")), len(k.times("key-b")); a != 1 || b != 40 || both != 1 {
			t.Errorf("the keys were asked %d and %d times, and both for %d calls", a, b, both)
		}
	})
	t.Run("limited", func(t *testing.T) {
		t.Parallel()
		const wait = 2 * time.Second
		k, g := serve(t, func(w http.ResponseWriter, key string, n int) bool {
			if key == "key-a" && n == 1 {
				w.Header().Set("Retry-After", "2")
				http.Error(w, `{"error":{"message":"Rate limit reached.","type":"rate_limit_error","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
				return true
			}
			return false
		})
		n := 0
		eventually(t, "the key is asked again", func() bool {
			n++
			call(t, g, n)
			return len(k.times("key-a")) > 1
		})
		asked := k.times("key-a")
		if pause := asked[1].Sub(asked[0]); pause < wait || pause > wait+5*time.Second {
			t.Errorf("the key was asked again after %s, want it after %s", pause, wait)
		}
	})
}

// TestFirstToken: a target that does not begin to answer is left for another,
// but never the last.
func TestFirstToken(t *testing.T) {
	t.Parallel()
	s := newUpstream(t)
	var c targets
	good := c.provider("good", s.URL(), bothDialects, "small", "")
	late := c.provider("late", s.URL(), bothDialects, "small", "pause arg=1200")
	silences := []string{"hang", "hang-headers", "comments-only"}
	for i := range manners {
		for _, silence := range silences {
			n := fmt.Sprintf("%s-%d", silence, i)
			silent := c.provider("silent-"+n, s.URL(), bothDialects, "small", silence)
			c.model(n, ", first_token: 300ms", silent, good)
			c.model("late-"+n, ", first_token: 300ms", silent, late)
		}
	}
	g := start(t, c.String())
	for range 2 * len(manners) * len(silences) { // room in the retry budget, which all want at once
		g.ask(t, 0, "good/small", "room")
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for i, m := range manners {
		for _, silence := range silences {
			calls.Go(func() {
				n := fmt.Sprintf("%s-%d", silence, i)
				t.Run(n, func(t *testing.T) {
					for model, account := range map[string]string{n: "good", "late-" + n: "late"} {
						got := g.ask(t, i, model, "Hi")
						outcome := "answer"
						if m.stream {
							outcome = "stream"
						}
						if o := observe(t, m.path, got); o != outcome {
							t.Errorf("%s: got %q, want %q\n%s", model, o, outcome, got.body)
						}
						if r := g.record(t, got.id()); r.steps() != "silent-"+n+" timeout, "+account+" ok" || !r.Estimated {
							t.Errorf("%s: recorded as %+v", model, r)
						}
					}
				})
			})
		}
	}
}

// TestSilence: a target that the limits of silence give up on is no reason to
// give the call up, nor to think badly of others.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := newUpstream(t)
	var c targets
	good := c.provider("good", s.URL(), bothDialects, "small", "")
	for i := range manners {
		c.model(fmt.Sprintf("m%d", i), "", c.provider(fmt.Sprintf("silent-%d", i), s.URL(), bothDialects, "small", "hang"), good)
	}
	g := start(t, "timeouts: {first_byte: 900ms, heartbeat: 200ms, total: 30s}\n"+c.String())
	for i, m := range manners {
		t.Run(m.name, func(t *testing.T) {
			got := g.ask(t, i, fmt.Sprintf("m%d", i), "Hi")
			outcome := "answer"
			if m.stream {
				outcome = "stream"
			}
			if o := observe(t, m.path, got); o != outcome {
				t.Errorf("got %q, want %q\n%s", o, outcome, got.body)
			}
			r := g.record(t, got.id())
			if want := fmt.Sprintf("silent-%d timeout, good ok", i); r.steps() != want || !r.Estimated {
				t.Errorf("recorded as %+v, want steps %q", r, want)
			}
		})
	}
}

// TestTotal: when the time of a call is over, no other target is asked.
func TestTotal(t *testing.T) {
	t.Parallel()
	s, good := newUpstream(t), newUpstream(t)
	var c targets
	c.model("m", "", c.provider("silent", s.URL(), bothDialects, "small", "hang"), c.provider("good", good.URL(), bothDialects, "small", ""))
	g := start(t, "timeouts: {total: 500ms}\n"+c.String())
	got := g.ask(t, 0, "m", "Hi")
	check(t, got, "504 upstream_timeout")
	if r := g.record(t, got.id()); r.steps() != "silent timeout" || attempts(good, "Hi") != 0 {
		t.Errorf("recorded as %+v", r)
	}
}

// TestStrictRoute: who wants a request to go as it is written has it go where
// that is possible.
func TestStrictRoute(t *testing.T) {
	t.Parallel()
	s := newUpstream(t, upstream.WithModels(upstreamModels...))
	var c targets
	claude := c.provider("claude", s.URL(), "anthropic", "claude-opus-4-8", "")
	second := c.provider("second", s.URL(), "anthropic", "claude-opus-4-8", "")
	small := c.provider("small", s.URL(), "openai-chat", "small", "")
	c.model("some", "", claude, second, small)
	c.model("none", "", claude, second)
	g := start(t, c.String())
	for i, m := range manners[:2] {
		body := strings.Replace(chatBody(m.stream, "Hi"), `{`, `{"seed":7,"max_tokens":9,`, 1)
		ask := func(model string) reply {
			r := g.request(t, t.Context(), http.MethodPost, m.path, strings.NewReader(strings.Replace(body, "up/small", model, 1)))
			r.Header.Set("X-Limen-Strict", "true")
			return g.do(t, r)
		}
		got := ask("some")
		check(t, got, []string{"answer", "stream"}[i])
		r := g.record(t, got.id())
		if notes := got.header.Get("X-Limen-Notes"); notes != "rename:model" || strings.Join(r.Notes, ",") != notes {
			t.Errorf("notes: got %q, recorded %q", notes, r.Notes)
		}
		if r.Account != "small" || r.steps() != "claude cannot, second cannot, small ok" {
			t.Errorf("recorded as %+v", r)
		}
		got = ask("none")
		check(t, got, "400 unsupported_by_upstream")
		if !strings.Contains(got.body, "drop:seed") || !strings.Contains(got.body, `"param":"seed"`) {
			t.Errorf("the refusal does not name the member: %s", got.body)
		}
		if r := g.record(t, got.id()); r.steps() != "claude cannot, second cannot" || r.Total != 0 {
			t.Errorf("recorded as %+v", r)
		}
	}
}

// TestStoredFallback: a turn is kept once, with the answer of the target that
// answered, however the client came by it.
func TestStoredFallback(t *testing.T) {
	t.Parallel()
	s := newUpstream(t, upstream.WithModels(upstreamModels...))
	var c targets
	good := c.provider("good", s.URL(), "anthropic", "claude-opus-4-8", "")
	for _, n := range []string{"run", "followed", "socket", "turn", "gone-on"} {
		c.model(n, "", c.provider("bad-"+n, s.URL(), bothDialects, "small", "status-503"), good)
	}
	g := start(t, c.String())
	const hello = "Hello from claude-opus-4-8."
	stored := func(t *testing.T, id, model string) {
		t.Helper()
		r := g.response(t, id)
		if r.Status != "completed" || len(r.Output) != 1 || len(r.Output[0].Content) != 1 || r.Output[0].Content[0].Text != hello {
			t.Errorf("stored as %+v", r)
		}
		var calls []record
		for _, rec := range g.records(t) {
			if rec.Model == model {
				calls = append(calls, rec)
			}
		}
		if len(calls) != 1 || calls[0].steps() != "bad-"+model+" 503, good ok" || calls[0].Status != 200 || calls[0].Estimated {
			t.Errorf("recorded as %+v", calls)
		}
	}
	t.Run("run", func(t *testing.T) {
		r := g.background(t, "run", "Hi")
		g.over(t, r.ID)
		stored(t, r.ID, "run")
	})
	t.Run("run that is followed", func(t *testing.T) {
		got := g.post(t, "/responses", `{"model":"followed","background":true,"stream":true,"input":"Hi"}`)
		if o := observe(t, "/responses", got); o != "stream" || !strings.Contains(got.body, hello) {
			t.Errorf("got %q\n%s", o, got.body)
		}
		stored(t, responseID.FindString(got.body), "followed")
	})
	t.Run("socket", func(t *testing.T) {
		e := g.socket(t, g.withKey()).turn(`{"type":"response.create","model":"socket","input":"Hi"}`)
		stored(t, e.Response.ID, "socket")
	})
	t.Run("turns", func(t *testing.T) {
		var conversation struct{ ID string }
		got := g.post(t, "/conversations", `{}`)
		if err := json.Unmarshal([]byte(got.body), &conversation); err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"turn", "gone-on"} {
			got := g.post(t, "/responses", fmt.Sprintf(`{"model":%q,"conversation":%q,"input":"Hi"}`, model, conversation.ID))
			stored(t, responseID.FindString(got.body), model)
		}
		got = g.do(t, g.request(t, t.Context(), http.MethodGet, "/conversations/"+conversation.ID+"/items", nil))
		if strings.Count(got.body, hello) != 2 || strings.Count(got.body, `"role":"user"`) != 2 || strings.Contains(got.body, "Hello from small") {
			t.Errorf("the conversation is %s", got.body)
		}
	})
}

var responseID = regexp.MustCompile(`resp_[0-9a-f]+`)
