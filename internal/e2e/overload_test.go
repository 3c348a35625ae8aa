package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// hang has n calls of a model begin that no upstream ends. The returned
// function has their clients leave.
func (g *gateway) hang(t *testing.T, up *upstream.Server, model string, n int) (leave func()) {
	t.Helper()
	const prompt = "[[fault:hang]]"
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	before := attempts(up, prompt)
	for range n {
		clients.Go(func() {
			body := strings.Replace(chatBody(false, prompt), "up/small", model, 1)
			if resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(body))); err == nil {
				t.Errorf("a call that hangs got %d", resp.StatusCode)
				resp.Body.Close()
			}
		})
	}
	leave = sync.OnceFunc(func() {
		cancel()
		clients.Wait()
	})
	t.Cleanup(leave)
	eventually(t, "the calls hang", func() bool { return attempts(up, prompt) == before+n })
	return leave
}

// checkFull wants a refusal that says when to try again.
func checkFull(t *testing.T, got reply, want string) {
	t.Helper()
	check(t, got, want)
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	ms, err2 := strconv.Atoi(got.header.Get("Retry-After-Ms"))
	if err := errors.Join(err, err2); err != nil || seconds < 1 || seconds > 2 || ms < 1000 || ms > 2000 {
		t.Errorf("retry-after is %d s, %d ms (%v), want one to two seconds", seconds, ms, err)
	}
}

const overloaded = "503 server_is_overloaded"

// TestFull has more calls than may be served at once. They are refused before
// their bodies are read; all that is no call goes on.
func TestFull(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	const limits = "limits: {concurrency: %d, queue: 10ms}\n"
	g := start(t, fmt.Sprintf(limits, 2)+provider(up))
	idle := g.socket(t, g.withKey())
	leave := g.hang(t, up, "up/small", 2)

	got := g.post(t, "/chat/completions", chatBody(true, "hello"))
	checkFull(t, got, overloaded)
	if r := g.record(t, got.id()); r.Status != http.StatusServiceUnavailable || r.Error != "overloaded" || r.Provider != "" || r.Total != 0 {
		t.Errorf("recorded as %+v", r)
	}
	if got := g.post(t, "/messages", `{"model":"up/small","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`); got.status != 529 ||
		!strings.Contains(got.body, `"overloaded_error"`) || got.header.Get("Retry-After") == "" {
		t.Errorf("Messages: got %d %v %s", got.status, got.header, got.body)
	}
	check(t, g.post(t, "/responses/input_tokens", responsesBody(false, "hello")), overloaded)
	idle.send(`{"type":"response.create","model":"up/small","input":"hello"}`)
	if e := idle.next(); e.Type != "error" || e.Status != http.StatusServiceUnavailable || e.Error.Code != "server_is_overloaded" {
		t.Errorf("socket: got %+v", e)
	}

	conn := g.dial(t)
	conn.send(g.head(g.key) + "Content-Length: 1000\r\n\r\n{") // and no more
	checkFull(t, conn.answer(), overloaded)
	conn = g.dial(t)
	for range 3 { // one connection serves refusals and more
		body := chatBody(false, "hello")
		conn.send(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", g.head(g.key), len(body)))
		conn.send(body)
		checkFull(t, conn.answer(), overloaded)
	}
	conn.send("GET /v1/models HTTP/1.1\r\nHost: " + g.host() + "\r\nAuthorization: Bearer " + g.key + "\r\n\r\n")
	if got := conn.answer(); got.status != http.StatusOK {
		t.Errorf("models on the same connection: got %d %s", got.status, got.body)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		r, err := http.NewRequest(http.MethodGet, g.root()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.do(t, r); got.status != http.StatusOK {
			t.Errorf("%s: got %d %s", path, got.status, got.body)
		}
	}
	if text := g.metrics(t); !strings.Contains(text, `limen_refused_total{gen_ai_provider_name="none",limit="calls"} 8`) || !strings.Contains(text, "limen_waiting_requests 0\n") {
		t.Errorf("metrics have\n%s", text)
	}

	g.reload(t, fmt.Sprintf(limits, 3)+provider(up))
	check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
	g.reload(t, fmt.Sprintf(limits, 1)+provider(up))
	checkFull(t, g.post(t, "/chat/completions", chatBody(false, "hello")), overloaded)
	leave()
	g.await(t, "up/small")
	idle.send(`{"type":"response.create","model":"up/small","input":"hello"}`)
	if e := idle.next(); e.Type != "response.created" {
		t.Errorf("socket: got %+v", e)
	}
}

// metrics are those of the gateway, as text.
func (g *gateway) metrics(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, g.root()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.password)
	return g.do(t, r).body
}

// await waits until a call of a model is answered: the calls before it may take
// a moment to end.
func (g *gateway) await(t *testing.T, model string) {
	t.Helper()
	body := strings.Replace(chatBody(false, "again"), "up/small", model, 1)
	eventually(t, "a call of "+model+" is answered", func() bool { return g.post(t, "/chat/completions", body).status == http.StatusOK })
}

// TestProviderHangs has 1,000 clients call a provider that hangs. It takes as
// many as it may; the others are refused soon, and those of another provider
// do not notice.
func TestProviderHangs(t *testing.T) {
	t.Parallel()
	const clients, capacity = 1000, 50
	bad, good := newUpstream(t), newUpstream(t)
	const providers = "providers:\n  bad: {base_url: %q, api_key: %s, concurrency: %d}\n  up: {base_url: %q, api_key: %[2]s}\n"
	g := start(t, fmt.Sprintf(providers, bad.URL(), canary, capacity, good.URL()))
	g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	leave := g.hang(t, bad, "bad/small", capacity)

	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		refused []time.Duration
	)
	body := strings.Replace(chatBody(false, "[[fault:hang]]"), "up/small", "bad/small", 1)
	for range clients - capacity {
		wg.Go(func() {
			begun := time.Now()
			got := g.post(t, "/chat/completions", body)
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, time.Since(begun))
			checkFull(t, got, overloaded)
		})
	}
	for range 50 {
		check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
	}
	wg.Wait()
	slices.Sort(refused)
	t.Logf("refused within %s, half of them within %s", refused[len(refused)-1], refused[len(refused)/2])
	if last := refused[len(refused)-1]; last > patience/2 { // they all came at once
		t.Errorf("the last was refused after %s", last)
	}
	if n := attempts(bad, "hang"); n != capacity {
		t.Errorf("%d calls reached the provider, want %d", n, capacity)
	}
	if text := g.metrics(t); !strings.Contains(text, fmt.Sprintf(`limen_refused_total{gen_ai_provider_name="bad",limit="provider"} %d`, clients-capacity)) {
		t.Errorf("metrics have\n%s", text)
	}

	// Another limit counts at once, and what is under way with it, also when all
	// else of the provider changes.
	raised := fmt.Sprintf(providers, bad.URL(), canary, capacity+1, good.URL())
	g.reload(t, raised)
	more := g.hang(t, bad, "bad/small", 1)
	g.reload(t, strings.Replace(raised, "{base_url", "{headers: {x-team: a}, base_url", 1))
	checkFull(t, g.post(t, "/chat/completions", body), overloaded)
	leave()
	more()
	g.await(t, "bad/small")
	g.hang(t, bad, "bad/small", capacity+1)() // all places are free again
}

// TestRunsWait has a response in the background wait for its turn, however long
// that takes, while calls whose client waits are refused.
func TestRunsWait(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, "timeouts: {first_byte: 3s}\nlimits: {queue: 10ms}\n"+strings.Replace(provider(up), "{", "{concurrency: 1, ", 1))
	// It is a stream that was begun, or it would end soon itself.
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp, err := g.client.Do(g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(chatBody(true, "[[fault:stall]]"))))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()

	run, stopped := g.background(t, "up/small", "hello"), g.background(t, "up/small", "goodbye")
	got := g.do(t, g.request(t, t.Context(), http.MethodPost, "/responses/"+stopped.ID+"/cancel", nil))
	if got.status != http.StatusOK {
		t.Errorf("cancel: got %d %s", got.status, got.body)
	}
	for begun := time.Now(); time.Since(begun) < 3200*time.Millisecond; {
		checkFull(t, g.post(t, "/chat/completions", chatBody(false, "hello")), overloaded)
	}
	if r := g.response(t, run.ID); r.Status != "queued" {
		t.Errorf("the run is %s, want queued", r.Status)
	}
	leave()
	io.Copy(io.Discard, resp.Body)
	if r := g.over(t, run.ID); r.Status != "completed" {
		t.Errorf("the run is %+v, want completed", r)
	}
	if r := g.over(t, stopped.ID); r.Status != "cancelled" {
		t.Errorf("the other run is %+v, want cancelled", r)
	}
	if attempts(up, "goodbye") != 0 {
		t.Error("a run that was cancelled reached the provider")
	}
}
