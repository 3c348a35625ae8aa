package socket

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/sse"
)

// socket is one WebSocket. It belongs to one call at a time; its reader goes on
// between calls, so that pings are answered and its end is seen.
type socket struct {
	transport *Transport
	conn      *websocket.Conn
	header    http.Header // of the handshake
	begun     time.Time
	since     time.Time // idle since
	memory    memory

	busy   atomic.Bool // a call waits for events
	events chan event  // of the call
	gone   chan struct{}
	err    error // why the socket ended, once it is gone
	once   sync.Once
	closed chan struct{}
}

// event is one message of the upstream.
type event struct {
	kind     string // its type; "" when the message is not what it should be
	data     []byte
	object   jsonedit.Object
	terminal bool // nothing of the call follows
}

// The members of an event that are looked at.
const (
	eventType = iota
	eventResponse
	eventError
	eventCode
	eventStatus
	eventStatusCode // the older name
	eventHeaders
)

var eventFields = jsonedit.NewFields("type", "response", "error", "code", "status", "status_code", "headers")

// read takes the upstream's messages until the socket ends. What comes while no
// call waits, or before the response of a call has begun, is nobody's.
func (s *socket) read() {
	begun := false
	for {
		e, err := s.receive()
		if err != nil {
			s.err = err
			s.transport.forget(s)
			close(s.gone)
			s.close()
			return
		}
		if !s.busy.Load() {
			continue
		}
		switch e.kind {
		case "response.created", "response.queued", "response.in_progress":
			begun = true
		case "response.completed", "response.incomplete", "response.failed":
			e.terminal = begun
		case "error":
			e.terminal = true
		}
		if !begun && !e.terminal && e.kind != "" {
			continue
		}
		if e.terminal {
			begun = false
			s.busy.Store(false)
		}
		select {
		case s.events <- e:
		case <-s.closed:
		}
	}
}

// receive reads one message, within the limit that the connection has.
func (s *socket) receive() (e event, err error) {
	kind, data, err := s.conn.Read(context.Background())
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return e, sse.ErrTooLong
	case err != nil:
		return e, err
	case kind != websocket.MessageText:
		return e, errors.New("a message is not text")
	}
	e.data = data
	if jsonedit.Scan(data, eventFields, &e.object) == nil {
		e.kind, _ = jsonedit.Unquote(e.object.Value(eventType))
	}
	return e, nil
}

// close ends the socket at once, which also cancels what the upstream does.
func (s *socket) close() {
	s.once.Do(func() { close(s.closed) })
	s.conn.CloseNow()
}

// call sends a message and returns the answer when it has begun, or, where no
// stream is wanted, when it is there.
func (s *socket) call(ctx context.Context, m *message) (*http.Response, error) {
	a := &answer{socket: s, ctx: ctx, recorder: newRecorder(m.input)}
	a.release = context.AfterFunc(ctx, s.close)
	after := s.memory
	s.memory = memory{} // the upstream drops it when this fails
	var first event
	var err error
	if after.precedes(m.input) {
		a.continued = true
		if first, err = a.ask(m, &after); err == nil && first.code() == "previous_response_not_found" {
			a.continued = false
		}
	}
	if !a.continued && err == nil {
		first, err = a.ask(m, nil)
	}
	if err == nil && first.code() == "websocket_connection_limit_reached" {
		err = errLimit
	}
	switch {
	case err != nil:
		a.abandon()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &unanswered{err}
	case first.kind == "error" && (first.status() != 0 || !m.stream):
		a.end(first)
		return first.refusal(), nil
	case m.stream:
		a.show(first)
		return response(http.StatusOK, "text/event-stream", a, -1), nil
	}
	return a.whole(first)
}

// code is that of an error event.
func (e *event) code() (code string) {
	if e.kind != "error" {
		return ""
	}
	value, ok := jsonedit.Get(e.object.Value(eventError), "code")
	if !ok {
		value = e.object.Value(eventCode)
	}
	code, _ = jsonedit.Unquote(value)
	return code
}

// status is the HTTP status that an error event stands for; 0 when it says none.
func (e *event) status() int {
	for _, field := range [...]int{eventStatus, eventStatusCode} {
		if n, err := strconv.Atoi(string(e.object.Value(field))); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return 0
}

// ask sends a message and waits for the first event. A message that cannot be
// sent whole may be answered all the same.
func (a *answer) ask(m *message, after *memory) (event, error) {
	s := a.socket
	s.busy.Store(true)
	data := m.create(after)
	s.conn.Write(context.Background(), websocket.MessageText, *data) // an end of the context closes the socket
	buffer.Put(data)
	return a.next()
}

// next waits for the next event.
func (a *answer) next() (event, error) {
	select {
	case e := <-a.socket.events:
		return e, nil
	case <-a.socket.gone:
		return event{}, a.socket.err
	case <-a.ctx.Done():
		return event{}, a.ctx.Err()
	}
}
