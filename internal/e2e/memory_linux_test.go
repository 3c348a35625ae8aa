package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// peak is the most memory that a process has had at once since the last clear.
func (g *gateway) peak(t *testing.T) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	t.Fatal("the process has no VmHWM")
	return 0
}

// clearPeak makes peak begin anew.
func (g *gateway) clearPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.process.Pid), []byte("5"), 0); err != nil {
		t.Skipf("the peak of memory cannot be cleared here: %v", err)
	}
}

// TestMemoryIsBounded has upstreams and clients send without end. What the
// released binary needs for it is bounded by its limits.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	g := spawn(t, t.TempDir(), "limits: {event: 8MiB, answer: 32MiB, body: 32MiB}\ntimeouts: {total: 10s}\n"+provider(newUpstream(t)))
	check(t, g.post(t, "/chat/completions", chatBody(true, "warm")), "stream")
	for _, c := range []struct {
		fault, path string
		stream      bool
		want        string
		limit       int64 // of the growth
	}{
		{"long-line arg=64", "/chat/completions", true, "stream, upstream_malformed_output", 48 * mib},
		{"long-line arg=64", "/responses", true, "stream, upstream_malformed_output", 48 * mib},
		{"gzip-bomb", "/chat/completions", false, "502 upstream_invalid_response", 128 * mib},
		{"gzip-bomb", "/responses", true, "502 upstream_malformed_output", 48 * mib},
		{"endless", "/chat/completions", true, "stream, upstream_timeout", 32 * mib},
		{"comments-only arg=0", "/responses", true, "504 upstream_timeout", 32 * mib},
	} {
		t.Run(c.fault+c.path, func(t *testing.T) {
			g.clearPeak(t)
			before := g.peak(t)
			got := g.post(t, c.path, ask(c.path, c.stream, "[[fault:"+c.fault+"]]"))
			if outcome := observe(t, c.path, got); outcome != c.want {
				t.Errorf("got %q, want %q", outcome, c.want)
			}
			grown := g.peak(t) - before
			t.Logf("peak grew by %.1f MiB", float64(grown)/mib)
			if grown > c.limit {
				t.Errorf("peak grew by %d MiB, want at most %d", grown/mib, c.limit/mib)
			}
		})
	}
	t.Run("endless body", func(t *testing.T) {
		g.clearPeak(t)
		before := g.peak(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn := g.dial(t)
		go func() {
			conn.send(g.head(g.key) + "Transfer-Encoding: chunked\r\n\r\n")
			for piece := strings.Repeat(" ", 64<<10); ctx.Err() == nil; {
				if _, err := fmt.Fprintf(conn, "10000\r\n%s\r\n", piece); err != nil {
					return
				}
			}
		}()
		check(t, conn.answer(), "413 request_too_large")
		if grown := g.peak(t) - before; grown > 128*mib {
			t.Errorf("peak grew by %d MiB, want at most 128", grown/mib)
		}
	})
	if got := g.do(t, g.request(t, t.Context(), http.MethodGet, "/models", nil)); got.status != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", got.status)
	}
}

// TestBodiesAreBounded has many clients send large bodies at once, to an
// upstream that is in no hurry. What is held of them is bounded, whether
// their length is known before or not; what there is no room for is refused.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const mib, clients, size = 1 << 20, 16, 16 << 20
	answer := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			<-answer
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer slow.Close()
	g := spawn(t, t.TempDir(), fmt.Sprintf("limits: {body: 20MiB, bodies: 48MiB}\nproviders: {up: {base_url: %q, models: [small]}}\n", slow.URL))
	body := chatBody(false, strings.Repeat("a", size))
	g.clearPeak(t)
	before := g.peak(t)
	var wg sync.WaitGroup
	var served, refused atomic.Int32
	for i := range clients {
		wg.Go(func() {
			r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(body))
			if i%2 == 0 {
				r.ContentLength = -1
			}
			resp, err := g.client.Do(r)
			if err != nil {
				refused.Add(1) // a client that goes on sending may miss the answer
				return
			}
			defer resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusOK:
				served.Add(1)
			case http.StatusServiceUnavailable:
				refused.Add(1)
			default:
				t.Errorf("got %d", resp.StatusCode)
			}
		})
	}
	eventually(t, "what there is no room for is refused", func() bool { return refused.Load() >= clients-3 })
	close(answer)
	wg.Wait()
	grown := g.peak(t) - before
	t.Logf("%d served, %d refused, peak grew by %.1f MiB", served.Load(), refused.Load(), float64(grown)/mib)
	if served.Load() == 0 || grown > 3*48*mib {
		t.Errorf("%d were served, and the peak grew by %d MiB, want some, and at most %d", served.Load(), grown/mib, 3*48)
	}
	eventually(t, "all memory is given back", func() bool { return strings.Contains(g.metrics(t), "\nlimen_request_bodies_bytes 0\n") })
	if got := g.post(t, "/chat/completions", body); got.status != http.StatusOK {
		t.Errorf("afterwards: got %d %.200s", got.status, got.body)
	}
}
