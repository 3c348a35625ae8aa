package alert

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/money"
)

// reached is an alert of a key.
var reached = budget.Alert{
	Owner: "abc", Name: "alice", Budget: budget.Budget{Amount: 5 * money.Dollar, Period: budget.Month, Zone: "Europe/Berlin"},
	Spent: 4*money.Dollar + 10_000_000, Threshold: 4 * money.Dollar,
	Window: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Renews: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
}

// logged collects log lines.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// sender makes one that is in a hurry, and runs it until the test ends.
func sender(t *testing.T, set *Settings) (*Sender, *logged) {
	t.Helper()
	log := &logged{}
	s := New(slog.New(slog.NewTextHandler(log, nil)))
	s.first, s.longest = time.Millisecond, 5*time.Millisecond
	s.Apply(set)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s, log
}

// hook is a server for webhooks that fails as often as it is told.
type hook struct {
	*httptest.Server
	got chan *http.Request // with its body

	mu    sync.Mutex
	fails []int // statuses of the next answers
}

func newHook(t *testing.T, fails ...int) *hook {
	h := &hook{got: make(chan *http.Request, 1000), fails: fails}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got <- r
		if len(h.fails) > 0 {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(h.fails[0])
			h.fails = h.fails[1:]
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// next is the next request, and its body.
func (h *hook) next(t *testing.T) (*http.Request, string) {
	t.Helper()
	select {
	case r := <-h.got:
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		return r, string(body)
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		return nil, ""
	}
}

func TestWebhook(t *testing.T) {
	h := newHook(t, 500, 302, 404)
	s, log := sender(t, &Settings{UserAgent: "limen/test", Webhook: &Webhook{
		URL: h.URL + "/hook?token=canary", Header: map[string]string{"authorization": "Bearer t"}, Secret: "key",
	}})
	s.Send(reached)
	var first string
	for i := range 4 {
		r, body := h.next(t)
		if i == 0 {
			first = body
		}
		if body != first {
			t.Errorf("try %d has another body:\n%s\n%s", i, body, first)
		}
		if r.Method != http.MethodPost || r.RequestURI != "/hook?token=canary" || r.Header.Get("Authorization") != "Bearer t" ||
			r.Header.Get("Content-Type") != "application/json" || r.UserAgent() != "limen/test" {
			t.Errorf("got %s %s %v", r.Method, r.RequestURI, r.Header)
		}
		if got, want := r.Header.Get("X-Limen-Signature"), "sha256="+sign("key", []byte(body)); got != want {
			t.Errorf("the signature is %s, want %s", got, want)
		}
	}
	want := regexp.MustCompile(`^\{"type":"budget\.reached","id":"alert_[a-z2-7]{26}","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ","owner":"abc","name":"alice",` +
		`"budget":\{"amount":5,"period":"month","zone":"Europe/Berlin"\},"spent":4\.01,"threshold":4,"window":"2026-11-01T00:00:00Z","renews":"2026-12-01T00:00:00Z",` +
		`"text":"Limen: alice has spent \$4\.01 of the budget 5/month@Europe/Berlin, \$4 or more\. It begins anew at 2026-12-01 00:00 UTC\."\}$`)
	if !want.MatchString(first) {
		t.Errorf("the body is %s", first)
	}
	s.Send(budget.Alert{Name: "web", Budget: budget.Budget{Amount: money.Dollar, Period: budget.Total}, Spent: money.Dollar, Threshold: money.Dollar})
	if _, body := h.next(t); !strings.Contains(body, `"text":"Limen: web has spent $1 of the budget 1/total, $1 or more. Calls are refused until it is raised."`) || strings.Contains(body, "renews") {
		t.Errorf("the body is %s", body)
	}
	if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, "status 302") {
		t.Errorf("the log has\n%s", text)
	}
}

// TestSignature is with the figures of RFC 4231, 4.3.
func TestSignature(t *testing.T) {
	if got := sign("Jefe", []byte("what do ya want for nothing?")); got != "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" {
		t.Errorf("got %s", got)
	}
}

func TestTextOfAlerts(t *testing.T) {
	hard, soft := reached, reached
	hard.Spent = 5 * money.Dollar
	soft.Spent, soft.Budget.Soft = 6*money.Dollar, true
	for _, c := range []struct {
		alert budget.Alert
		want  string
	}{
		{hard, "Limen: alice has spent $5 of the budget 5/month@Europe/Berlin, $4 or more. Calls are refused until it begins anew. It begins anew at 2026-12-01 00:00 UTC."},
		{soft, "Limen: alice has spent $6 of the budget 5/month@Europe/Berlin soft, $4 or more. It begins anew at 2026-12-01 00:00 UTC."},
	} {
		if got := textOf(&c.alert); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestUnreachableWebhooks has addresses that nothing is sent to, and errors that
// do not tell them.
func TestUnreachableWebhooks(t *testing.T) {
	s := New(slog.New(slog.DiscardHandler))
	for url, want := range map[string]string{
		"http://169.254.169.254/latest?canary": "cloud metadata service",
		"http://[fd00:ec2::254]/canary":        "cloud metadata service",
		"http://127.0.0.1:1/canary":            "refused",
		"http://127.0.0.1:bad/canary":          "invalid port",
	} {
		err := s.post(t.Context(), &Settings{Webhook: &Webhook{URL: url}}, newMessage(&reached, time.Now()))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}

// TestOneWayHoldsNoOtherUp has mail that cannot be sent beside a webhook.
func TestOneWayHoldsNoOtherUp(t *testing.T) {
	h := newHook(t)
	s, log := sender(t, &Settings{Webhook: &Webhook{URL: h.URL}, Mail: mailTo("127.0.0.1:1", Never)})
	for range 5 {
		s.Send(reached)
		h.next(t)
	}
	if text := log.String(); !strings.Contains(text, "by=email") || !strings.Contains(text, "refused") { // tried between two of them
		t.Errorf("the log has\n%s", text)
	}
}

// TestGivingUp has a try made again, less and less often, for ten minutes.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		s := New(slog.New(slog.NewTextHandler(log, nil)))
		begun := time.Now()
		var tries []time.Duration
		s.ways[0].tell = func(context.Context, *Settings, *message) error {
			tries = append(tries, time.Since(begun).Round(time.Second))
			return io.ErrUnexpectedEOF
		}
		s.Apply(&Settings{Webhook: &Webhook{}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		s.Send(reached)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 127, 247, 367, 487}; len(tries) != len(want) || tries[10] != want[10]*time.Second || tries[4] != want[4]*time.Second {
			t.Errorf("tried at %v, want at seconds %d", tries, want)
		}
		if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, `msg="an alert could not be told" by=webhook alert="Limen: alice`) {
			t.Errorf("the log has\n%s", text)
		}

		// What a new configuration takes away is not tried, what waits at the end is logged.
		s.Send(reached)
		synctest.Wait()
		s.Apply(&Settings{})
		before := len(tries)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(tries) != before {
			t.Errorf("%d more tries without a webhook", len(tries)-before)
		}
		s.Apply(&Settings{Webhook: &Webhook{}})
		s.Send(reached)
		synctest.Wait()
		cancel()
		running.Wait()
		if text := log.String(); !strings.Contains(text, "the gateway stopped before an alert was told") {
			t.Errorf("the log has\n%s", text)
		}
	})
}

// TestTooManyAlerts has more than may wait. Nobody who sends one waits.
func TestTooManyAlerts(t *testing.T) {
	log := &logged{}
	s := New(slog.New(slog.NewTextHandler(log, nil)))
	s.Apply(&Settings{Webhook: &Webhook{}})
	for range most + 3 {
		s.Send(reached)
	}
	if n := strings.Count(log.String(), `this one is told to nobody" alert="Limen: alice`); n != 3 {
		t.Errorf("%d are logged as not told, want 3", n)
	}
	for range most + 2 {
		s.take(newMessage(&reached, time.Now()))
	}
	if n := strings.Count(log.String(), "by=webhook"); n != 2 || len(s.ways[0].waiting) != most {
		t.Errorf("%d wait and %d are logged, want %d and 2", len(s.ways[0].waiting), n, most)
	}
}
