package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is an upstream: it gives each message to say, with the number of the
// socket and of the message on it, and sends what that returns.
type peer struct {
	*httptest.Server
	say func(socket, message int, text string) []string

	mu      sync.Mutex
	sockets int
	header  []http.Header // of the handshakes
	posts   []string      // bodies that came by HTTP
	gone    sync.WaitGroup
}

func newPeer(t *testing.T, secure bool, say func(socket, message int, text string) []string) *peer {
	p := &peer{say: say}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(func() { p.Close(); p.gone.Wait() })
	return p
}

func (p *peer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.posts = append(p.posts, string(body))
		io.WriteString(w, "by HTTP")
		return
	}
	p.gone.Add(1)
	defer p.gone.Done()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	p.mu.Lock()
	p.sockets++
	number := p.sockets
	p.header = append(p.header, r.Header)
	p.mu.Unlock()
	for n := 1; ; n++ {
		_, text, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		for _, said := range p.say(number, n, string(text)) {
			if said == "close" {
				conn.Close(websocket.StatusGoingAway, "")
				return
			}
			if conn.Write(context.Background(), websocket.MessageText, []byte(said)) != nil {
				return
			}
		}
	}
}

// open is a transport to the peer, which is closed before it.
func (p *peer) open(t *testing.T) *Transport {
	at, _ := url.Parse(p.URL + "/v1/responses")
	handshake := p.Client().Transport.(*http.Transport).Clone()
	other := p.Client().Transport.(*http.Transport)
	tr := New(Config{URL: at, HTTP: other, Handshake: handshake, MaxEvent: 1 << 20, Failed: func(err error) { t.Logf("failed: %v", err) }})
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// body is a request body in memory.
type body struct {
	io.Reader
	segments [][]byte
}

func (b *body) Segments() [][]byte { return b.segments }
func (b *body) Close() error       { return nil }

func ask(ctx context.Context, tr *Transport, text string, header http.Header) (*http.Response, error) {
	half := len(text) / 2
	at := *tr.config.URL
	r := (&http.Request{
		Method: http.MethodPost, URL: &at, Host: at.Host, Header: header, ContentLength: int64(len(text)),
		Body: &body{strings.NewReader(text), [][]byte{[]byte(text[:half]), []byte(text[half:])}},
	}).WithContext(ctx)
	return tr.RoundTrip(r)
}

// answerTo makes a call and returns its status and whole body.
func answerTo(t *testing.T, tr *Transport, text string) string {
	t.Helper()
	resp, err := ask(t.Context(), tr, text, http.Header{"Authorization": {"Bearer key"}, "Accept": {"text/event-stream"}})
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return fmt.Sprintf("%d %s, then %v", resp.StatusCode, all, err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, all)
}

// completed are the events of the shortest response.
func completed(id string) []string {
	return []string{
		`{"type":"response.created","response":{"id":"` + id + `","previous_response_id":"x"}}`,
		`{"type":"response.completed","response":{"id":"` + id + `","previous_response_id":"x","output":[{"id":"` + id + `"}]}}`,
	}
}

const question = `{"model":"m","input":[{"a":1}],"stream":true}`

// Messages are what HTTP would have brought, over TLS too.
func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		sent    string
		events  []string
		want    string
	}{
		"a stream": {
			`{"stream":true,"model":"m","input":"Hi","background":false}`, `{"model":"m","input":"Hi","type":"response.create"}`,
			[]string{`{"type":"response.created"}`, "{\"type\": \"response.x\",\n\"n\":1}", `{"type":"response.incomplete","response":{}}`},
			"200 event: response.created\ndata: {\"type\":\"response.created\"}\n\n" +
				"event: response.x\ndata: {\"type\": \"response.x\",\"n\":1}\n\n" +
				"event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{}}\n\n",
		},
		"a whole answer": {
			`{"model":"m","input":[]}`, `{"model":"m","input":[],"type":"response.create"}`,
			[]string{`{"type":"response.created"}`, `{"type":"response.x"}`, `{"type":"response.completed","response":{"id":"r", "output":[]}}`},
			`200 {"id":"r", "output":[]}`,
		},
		"what came before is nobody's": {
			question, "", []string{`{"type":"response.completed"}`, `{"type":"rates"}`, `{"type":"response.created"}`, `{"type":"response.failed"}`},
			"200 event: response.created\ndata: {\"type\":\"response.created\"}\n\nevent: response.failed\ndata: {\"type\":\"response.failed\"}\n\n",
		},
		"an error with a status": {
			question, "", []string{`{"type":"error","status":429,"error":{"code":"c"},"headers":{"retry-after":7,"content-type":"text/html"}}`},
			`429 {"error":{"code":"c"}}`,
		},
		"the older name of the status": {question, "", []string{`{"type":"error","status_code":401,"error":{"code":"c"}}`}, `401 {"error":{"code":"c"}}`},
		"an error without one":         {question, "", []string{`{"type":"error","code":"c"}`}, "200 event: error\ndata: {\"type\":\"error\",\"code\":\"c\"}\n\n"},
		"the same, not streamed":       {`{"input":"Hi"}`, "", []string{`{"type":"error","code":"c"}`}, `200 {"error":{"type":"error","code":"c"}}`},
		"an error within a whole answer": {
			`{"input":"Hi"}`, "", []string{`{"type":"response.created"}`, `{"type":"error","status":500,"error":{"code":"c"}}`},
			`500 {"error":{"code":"c"}}`,
		},
		"what is no event": {question, "", []string{`{"type":"response.created"}`, `{{`, `{"type":"response.failed"}`},
			"200 event: response.created\ndata: {\"type\":\"response.created\"}\n\ndata: {{\n\nevent: response.failed\ndata: {\"type\":\"response.failed\"}\n\n"},
		"an end without the end": {question, "", []string{`{"type":"response.created"}`, "close"},
			"200 event: response.created\ndata: {\"type\":\"response.created\"}\n\n, then " + errEnded.Error()},
		"a message that is too large": {question, "", []string{`{"type":"response.created"}`, `{"type":"` + strings.Repeat("x", 1<<20) + `"}`},
			"200 event: response.created\ndata: {\"type\":\"response.created\"}\n\n, then " + sse.ErrTooLong.Error()},
		"options of the stream": {`{"input":"Hi","stream":true,"stream_options":{}}`, "", nil, "200 by HTTP"},
		"in the background":     {`{"input":"Hi","background":true}`, "", nil, "200 by HTTP"},
		"what is no object":     {`[1]`, "", nil, "200 by HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan string, 1)
			p := newPeer(t, true, func(_, _ int, text string) []string {
				sent <- text
				return tt.events
			})
			if got := answerTo(t, p.open(t), tt.request); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if tt.sent != "" {
				if got := <-sent; got != tt.sent {
					t.Errorf("sent %s, want %s", got, tt.sent)
				}
				if h := p.header[0]; h.Get("Authorization") != "Bearer key" || h.Get("Accept") != "" {
					t.Errorf("handshake with %v", h)
				}
			}
		})
	}
}

// What goes on from a socket's last response is sent as what is new.
func TestContinues(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	p := newPeer(t, false, func(socket, n int, text string) []string {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, text)
		if strings.Contains(text, "previous_response_id") && strings.Contains(text, "lost") {
			return []string{`{"type":"error","status":400,"error":{"code":"previous_response_not_found"}}`}
		}
		return completed(fmt.Sprintf("r%d_%d", socket, n))
	})
	tr := p.open(t)
	for _, tt := range []struct{ name, input, want, previous string }{
		{"the first", `{"a":1}`, `{"a":1}`, ""},
		{"goes on", `{"a":1},{"id":"r1_1"},{"b":2}`, `{"b":2}`, "r1_1"},
		{"nothing new", `{"a":1},{"id":"r1_1"},{"b":2},{"id":"r1_2"}`, `{"a":1},{"id":"r1_1"},{"b":2},{"id":"r1_2"}`, ""}, // over a socket of its own
		{"spaces around", ` {"a":1},{"id":"r1_1"},{"b":2},{"id":"r1_2"},{"c":3} `, `{"c":3}`, "r1_2"},
		{"another of the same length and end", `{"a":9},{"id":"r1_1"},{"b":2},{"id":"r1_2"},{"c":3},{"id":"r1_3"},{"d":4}`,
			`{"a":9},{"id":"r1_1"},{"b":2},{"id":"r1_2"},{"c":3},{"id":"r1_3"},{"d":4}`, ""},
	} {
		got := answerTo(t, tr, `{"input":[`+tt.input+`]}`)
		want := `{"input":[` + tt.want + `],"type":"response.create"`
		if tt.previous != "" {
			want += `,"previous_response_id":"` + tt.previous + `"`
		}
		mu.Lock()
		if !slices.Equal(sent, []string{want + "}"}) {
			t.Errorf("%s: sent %q, want %s", tt.name, sent, want)
		}
		sent = nil
		mu.Unlock()
		if hidden := strings.Contains(got, `"previous_response_id":null`); !strings.HasPrefix(got, `200 {"id":"r`) || hidden != (tt.previous != "") {
			t.Errorf("%s: the client reads %s", tt.name, got)
		}
	}

	// What the upstream has forgotten is sent once more, whole.
	const past = `{"a":9},{"id":"r1_1"},{"b":2},{"id":"r1_2"},{"c":3},{"id":"r1_3"},{"d":4},{"id":"r1_4"}`
	got := answerTo(t, tr, `{"input":[`+past+`,"lost"]}`)
	want := []string{`{"input":["lost"],"type":"response.create","previous_response_id":"r1_4"}`, `{"input":[` + past + `,"lost"],"type":"response.create"}`}
	if !slices.Equal(sent, want) || !strings.Contains(got, `"previous_response_id":"x"`) {
		t.Errorf("sent %q, want %q; the client reads %s", sent, want, got)
	}
}

// What was told of a longer past is not remembered as a shorter one.
func TestMemoryPrecedes(t *testing.T) {
	r := newRecorder([]byte(`{"a":1}`))
	m := r.memory([]byte(`{"id":"r","output":[{"b":2}, {"c":3}]}`))
	for input, want := range map[string]bool{
		`{"a":1},{"b":2},{"c":3},{"d":4}`:  true,
		`{"a":1},{"b":2},{"c":3}`:          false,
		`{"a":1},{"b":2},{"c":33},{"d":4}`: false,
		`{"a":2},{"b":2},{"c":3},{"d":4}`:  false,
		`{"a":1}`:                          false,
		``:                                 false,
	} {
		if got := m.precedes([]byte(input)); got != want {
			t.Errorf("%s: %t", input, got)
		}
	}
	for _, none := range []memory{{}, newRecorder(nil).memory([]byte(`{"id":"r"}`)), newRecorder([]byte("1")).memory([]byte(`[]`))} {
		if none.precedes([]byte(`{"a":1},{"b":2}`)) || none.id != "" {
			t.Errorf("%+v", none)
		}
	}
}

// Sockets are kept by their headers, and closed when they are idle or old.
func TestPool(t *testing.T) {
	p := newPeer(t, false, func(socket, n int, text string) []string { return completed(fmt.Sprintf("r%d_%d", socket, n)) })
	tr := p.open(t)
	call := func(header http.Header, text string) string {
		t.Helper()
		resp, err := ask(t.Context(), tr, text, header)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		all, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return string(all)
	}
	const bare = `{"input":"Hi"}` // which leaves no memory
	for i, tt := range []struct {
		beta, want string
	}{{"", "r1_1"}, {"", "r1_2"}, {"b", "r2_1"}, {"", "r1_3"}, {"b", "r2_2"}} {
		header := http.Header{"Authorization": {"k"}}
		if tt.beta != "" {
			header.Set("Openai-Beta", tt.beta)
		}
		if got := call(header, bare); !strings.Contains(got, `"id":"`+tt.want+`"`) {
			t.Errorf("call %d: %s, want %s", i, got, tt.want)
		}
	}
	own := http.Header{"Idempotency-Key": {"once"}}
	if got := call(own, bare); got != "by HTTP" {
		t.Errorf("with a key of idempotency: %s", got)
	}

	age := func(change func(*socket)) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, s := range tr.idle {
			change(s)
		}
	}
	plain := http.Header{"Authorization": {"k"}}
	age(func(s *socket) { s.begun = s.begun.Add(-maxAge) })
	if got := call(plain, bare); !strings.Contains(got, `"id":"r3_1"`) {
		t.Errorf("an old socket served: %s", got)
	}
	age(func(s *socket) { s.since = s.since.Add(-idleTime) })
	tr.expire()
	tr.mu.Lock()
	if len(tr.idle) != 0 {
		t.Errorf("%d sockets were idle for too long", len(tr.idle))
	}
	tr.mu.Unlock()

	// Conversations have sockets of their own, up to a number.
	for i := range 2 * remembering {
		call(plain, fmt.Sprintf(`{"input":[%d]}`, i))
	}
	tr.mu.Lock()
	if n := len(tr.open); n > remembering+1 { // one may not have seen its end
		t.Errorf("%d sockets remember conversations", n)
	}
	tr.mu.Unlock()

	tr.CloseIdleConnections()
	if got := call(plain, bare); got != "by HTTP" {
		t.Errorf("after the end: %s", got)
	}
}

// No more sockets are open than may be; the calls beyond go by HTTP.
func TestBounded(t *testing.T) {
	held := make(chan struct{})
	p := newPeer(t, false, func(int, int, string) []string { <-held; return completed("r") })
	tr := p.open(t)
	var calls sync.WaitGroup
	for range maxOpen {
		calls.Go(func() { answerTo(t, tr, `{"input":"Hi"}`) })
	}
	for full := false; !full; {
		tr.mu.Lock()
		full = len(tr.open) == maxOpen
		tr.mu.Unlock()
	}
	if got := answerTo(t, tr, `{"input":"Hi"}`); got != "200 by HTTP" {
		t.Error(got)
	}
	close(held)
	calls.Wait()
}

// A socket that was closed while it was idle costs nothing; one that is closed
// at once is no reason to ask again over another.
func TestEnds(t *testing.T) {
	stale := func(_, n int, _ string) []string {
		if n > 1 {
			return []string{"close"}
		}
		return completed("r")
	}
	p := newPeer(t, false, stale)
	tr := p.open(t)
	for range 3 {
		if got := answerTo(t, tr, `{"input":"Hi"}`); !strings.HasPrefix(got, "200 {") {
			t.Error(got)
		}
	}
	if p.mu.Lock(); p.sockets != 3 || len(p.posts) != 0 {
		t.Errorf("%d sockets, %d by HTTP", p.sockets, len(p.posts))
	}
	p.mu.Unlock()

	p = newPeer(t, false, func(int, int, string) []string { return []string{"close"} })
	tr = p.open(t)
	for range 3 {
		if got := answerTo(t, tr, `{"input":"Hi"}`); got != "200 by HTTP" {
			t.Error(got)
		}
	}
	if p.sockets != 1 || len(p.posts) != 3 {
		t.Errorf("%d sockets, %d by HTTP", p.sockets, len(p.posts))
	}
	tr.mu.Lock()
	tr.rest = time.Time{} // later
	tr.mu.Unlock()
	answerTo(t, tr, `{"input":"Hi"}`)
	if p.sockets != 2 {
		t.Errorf("after a while: %d sockets", p.sockets)
	}
}

// An upstream that cannot be reached is not asked by HTTP in turn.
func TestUnreachable(t *testing.T) {
	p := newPeer(t, false, nil)
	tr := p.open(t)
	p.Close()
	_, err := ask(t.Context(), tr, question, http.Header{})
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Op != "dial" {
		t.Errorf("got %v", err)
	}
}

// A call that is given up ends its socket, whatever it waits for.
func TestCancel(t *testing.T) {
	for name, events := range map[string][]string{"the first event": nil, "the next": {`{"type":"response.created"}`}} {
		asked := make(chan struct{}, 1)
		p := newPeer(t, false, func(int, int, string) []string { asked <- struct{}{}; return events })
		tr := p.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		resp, err := ask(ctx, tr, question, http.Header{})
		if err == nil {
			_, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			resp.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		p.gone.Wait() // the peer saw it
	}
}
