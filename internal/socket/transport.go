// Package socket calls the Responses of one upstream over WebSockets that are
// kept, and gives what they say back as the answers that HTTP would have
// brought: an event stream, a whole response, or a status with an error.
// Nobody above it knows the difference.
//
// The gain is on the next turn. An upstream remembers the last response of a
// socket, so that a request which goes on from that one is sent as what is new
// in it. Whatever a socket cannot do goes by HTTP.
package socket

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxOpen bounds the sockets of one upstream. What is beyond goes by HTTP.
	maxOpen = 64
	// remembering is how many sockets are opened before one that remembers
	// another conversation is used.
	remembering = 16
	// idleTime is how long a socket is kept without a call.
	idleTime = 5 * time.Minute
	// maxAge is when a socket gets no more calls. Upstreams end theirs after
	// an hour, whatever is being said.
	maxAge = 30 * time.Minute
	// restTime is how long calls go by HTTP after sockets did not work.
	restTime = 5 * time.Minute
	// handshakeTime bounds a handshake; connecting has limits of its own.
	handshakeTime = 15 * time.Second
)

// Config is what a Transport is made of.
type Config struct {
	URL       *url.URL          // of the operation
	HTTP      http.RoundTripper // takes what goes over no socket
	Handshake *http.Transport   // opens sockets, and has nothing else to do
	MaxEvent  int64             // bytes of a message that is read
	// Failed is told why sockets do not work, once until they do again.
	Failed func(error)
}

// Transport calls one operation over sockets, and all others by HTTP.
type Transport struct {
	config Config
	client *http.Client

	mu       sync.Mutex
	open     map[*socket]struct{} // each has a goroutine that reads
	dialling int
	idle     []*socket   // the last used is the last
	sweep    *time.Timer // closes idle sockets; nil while there are none
	rest     time.Time   // until then all goes by HTTP
	told     bool        // that sockets do not work
	closed   bool
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport; nothing is dialled yet.
func New(c Config) *Transport {
	return &Transport{config: c, open: map[*socket]struct{}{}, client: &http.Client{
		Transport:     c.Handshake,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errByHTTP says that a call is to go by HTTP; nothing of it was done.
var errByHTTP = errors.New("socket: this goes by HTTP")

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.serves(req) {
		return t.config.HTTP.RoundTrip(req)
	}
	m := newMessage(req)
	if m == nil {
		return t.config.HTTP.RoundTrip(req)
	}
	resp, err := t.call(req.Context(), m)
	m.release()
	if err == errByHTTP {
		return t.config.HTTP.RoundTrip(req)
	}
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// serves reports whether a request may go over a socket. A key of idempotency
// belongs to one request, the headers of a socket to many.
func (t *Transport) serves(req *http.Request) bool {
	if req.Method != http.MethodPost || req.URL.Path != t.config.URL.Path || req.Header["Idempotency-Key"] != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && time.Now().After(t.rest)
}

// call sends a message over a socket that is there, or a new one. What the peer
// closed while it was idle had nothing of the message.
func (t *Transport) call(ctx context.Context, m *message) (*http.Response, error) {
	var gone *unanswered
	if s := t.take(m); s != nil {
		if resp, err := s.call(ctx, m); !errors.As(err, &gone) {
			return resp, err
		}
	}
	s, err := t.dial(ctx, m.header)
	if err != nil {
		return nil, err
	}
	resp, err := s.call(ctx, m)
	if errors.As(err, &gone) {
		t.failed(gone.err)
		if gone.refused() {
			return nil, errByHTTP
		}
	}
	return resp, err
}

// take takes an idle socket for a message: one that remembers what the message
// goes on from, else one that remembers nothing, else, when there are many, the
// one that was idle the longest.
func (t *Transport) take(m *message) *socket {
	t.mu.Lock()
	defer t.mu.Unlock()
	best := -1
	for i, s := range t.idle {
		switch {
		case time.Since(s.begun) > maxAge || !maps.EqualFunc(s.header, m.header, slices.Equal):
		case s.memory.mayPrecede(m.input):
			return t.remove(i)
		case s.memory.id == "":
			best = i
		case best < 0 && len(t.open)+t.dialling >= remembering:
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return t.remove(best)
}

func (t *Transport) remove(i int) *socket {
	s := t.idle[i]
	t.idle = slices.Delete(t.idle, i, i+1)
	return s
}

// put keeps a socket for later calls.
func (t *Transport) put(s *socket) {
	if !t.keep(s) {
		s.close()
	}
}

func (t *Transport) keep(s *socket) bool {
	s.since = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = false
	if _, open := t.open[s]; !open || t.closed || s.since.Sub(s.begun) > maxAge {
		return false
	}
	t.idle = append(t.idle, s)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleTime, t.expire)
	}
	return true
}

// expire closes what was idle for too long.
func (t *Transport) expire() {
	t.mu.Lock()
	var old []*socket
	for len(t.idle) > 0 && time.Since(t.idle[0].since) >= idleTime {
		old = append(old, t.remove(0))
	}
	t.sweep = nil
	if len(t.idle) > 0 {
		t.sweep = time.AfterFunc(max(idleTime-time.Since(t.idle[0].since), time.Second), t.expire)
	}
	t.mu.Unlock()
	for _, s := range old {
		s.close()
	}
}

// forget drops a socket that has ended.
func (t *Transport) forget(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
	if i := slices.Index(t.idle, s); i >= 0 {
		t.remove(i)
	}
}

// CloseIdleConnections closes the sockets that no call uses; the others end with
// their calls. From then on all goes by HTTP.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.closed = nil, true
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	t.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	t.config.Handshake.CloseIdleConnections()
	if h, ok := t.config.HTTP.(interface{ CloseIdleConnections() }); ok {
		h.CloseIdleConnections()
	}
}

// dial opens a socket. An upstream that cannot be reached at all is an error,
// as it is for HTTP; one that wants no socket is called by HTTP for a while.
func (t *Transport) dial(ctx context.Context, header http.Header) (*socket, error) {
	t.mu.Lock()
	full := len(t.open)+t.dialling >= maxOpen
	if !full {
		t.dialling++
	}
	t.mu.Unlock()
	if full {
		return nil, errByHTTP
	}
	limited, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn, _, err := websocket.Dial(limited, t.config.URL.String(), &websocket.DialOptions{
		HTTPClient: t.client, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	if err == nil {
		return t.add(conn, header), nil
	}
	t.mu.Lock()
	t.dialling--
	t.mu.Unlock()
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, err
	}
	t.failed(err)
	return nil, errByHTTP
}

// add begins to read a socket that was opened.
func (t *Transport) add(conn *websocket.Conn, header http.Header) *socket {
	conn.SetReadLimit(t.config.MaxEvent)
	s := &socket{
		transport: t, conn: conn, header: header, begun: time.Now(),
		events: make(chan event), gone: make(chan struct{}), closed: make(chan struct{}),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dialling--
	t.open[s] = struct{}{}
	go s.read()
	return s
}

// failed has all calls go by HTTP for a while.
func (t *Transport) failed(err error) {
	t.mu.Lock()
	told := t.told
	t.rest, t.told = time.Now().Add(restTime), true
	t.mu.Unlock()
	if !told {
		t.config.Failed(err)
	}
}

// unanswered is a message of which the socket ended before any event came.
type unanswered struct{ err error }

func (u *unanswered) Error() string { return "socket: ended before any event: " + u.err.Error() }
func (u *unanswered) Unwrap() error { return u.err }

// refused reports whether the peer itself ended the socket, so that nobody
// works on the message.
func (u *unanswered) refused() bool {
	return u.err == errLimit || websocket.CloseStatus(u.err) != -1
}

// errLimit is the peer's word that a socket has served its time.
var errLimit = errors.New("the socket has reached a limit of the upstream's")

// errEnded is the end of a socket in the middle of an answer.
var errEnded = errors.Join(errors.New("socket: ended within an answer"), io.ErrUnexpectedEOF)
