package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// Of Responses over a WebSocket, every message is a request of the ledger, a GET
// whose body is the message. What the answer would be over HTTP goes out as
// messages, so that a fault is the same on both; where HTTP would end a body
// without its terminal, or a connection, the socket is closed.

// socketFaults are those of a socket. Over HTTP their answer is correct.
var socketFaults = []Fault{
	{Name: "socket-stale", Doc: "a socket that has served before is closed in place of an answer", take: func(x *exchange) {
		if x.socket == nil || x.socket.served < 2 {
			x.send(x.correct())
		}
	}},
	{Name: "socket-refuse", Doc: "the socket is closed in place of an answer, whether it served before or not", take: func(x *exchange) {
		if x.socket == nil {
			x.send(x.correct())
		}
	}},
	{Name: "socket-hang-up", Doc: "the socket is closed after the answer", bend: func(x *exchange, _ *answer) {
		if x.socket != nil {
			x.socket.last = true
		}
	}},
	{Name: "socket-forget", Doc: "nothing can go on from the answer", bend: func(x *exchange, _ *answer) {
		if x.socket != nil {
			x.socket.forgets = true
		}
	}},
	{Name: "socket-limit", Doc: "a socket that has served before says that its hour is over, and is closed", take: func(x *exchange) {
		if x.socket == nil || x.socket.served < 2 {
			x.send(x.correct())
			return
		}
		x.fail(http.StatusBadRequest, apiError{Message: "The connection is too old.", Type: "invalid_request_error", Code: new("websocket_connection_limit_reached")})
		x.socket.last = true
	}},
	{Name: "socket-stray", Doc: "events of nobody's before and after the answer", bend: func(x *exchange, a *answer) {
		if x.socket != nil && a.body == nil {
			stray := frame{event: "codex.rate_limits", data: json.RawMessage(`{"type":"codex.rate_limits"}`)}
			a.frames = append([]frame{stray}, append(a.frames, stray)...)
		}
	}},
	{Name: "socket-binary", Doc: "a binary message in place of an answer", take: func(x *exchange) {
		if x.socket == nil {
			x.send(x.correct())
			return
		}
		x.socket.conn.Write(x.r.Context(), websocket.MessageBinary, []byte("{}"))
		x.hold()
	}},
}

// RefuseSockets answers the handshakes that follow with a status; 0 takes them.
func (s *Server) RefuseSockets(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = status
}

// Handshakes is how many WebSockets were opened.
func (s *Server) Handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handshakes
}

// Sockets is how many WebSockets are open.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sockets
}

func (s *Server) handshake() (refusal int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == 0 {
		s.handshakes++
		s.sockets++
	}
	return s.refusal
}

func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets--
}

// socket is one WebSocket. It serves one message after the other.
type socket struct {
	srv     *Server
	conn    *websocket.Conn
	r       *http.Request
	turns   map[string]json.RawMessage // the items up to the end of a response, by its ID
	input   json.RawMessage            // of the turn that is served, with what it goes on from
	served  int                        // messages, the one that is served among them
	last    bool                       // nothing more is served
	forgets bool                       // the turn that is served
}

// upgrade serves Responses over a WebSocket.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.working.Done()
	if status := s.handshake(); status != 0 {
		http.Error(w, "no sockets here", status)
		return
	}
	defer s.hangUp()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxBody)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	messages := make(chan []byte)
	s.working.Go(func() { // reads on while a message is served, to see the client go
		defer cancel()
		defer close(messages)
		for {
			kind, data, err := conn.Read(ctx)
			if err != nil || kind != websocket.MessageText {
				return
			}
			select {
			case messages <- data:
			case <-ctx.Done():
				return
			}
		}
	})
	stop := make(chan struct{})
	defer close(stop)
	s.working.Go(func() {
		select {
		case <-s.done:
			cancel()
		case <-stop:
		}
	})
	k := &socket{srv: s, conn: conn, r: r.WithContext(ctx), turns: map[string]json.RawMessage{}}
	for data := range messages {
		k.serve(data)
		if k.last {
			conn.Close(websocket.StatusNormalClosure, "")
			return
		}
	}
}

// serve serves one message as the request that it is.
func (k *socket) serve(data []byte) {
	k.served++
	k.forgets = false
	r := k.r.Clone(k.r.Context())
	r.Body = io.NopCloser(bytes.NewReader(data))
	w := &socketWriter{socket: k, header: http.Header{}}
	k.srv.recorded(func(x *exchange) {
		x.socket = k
		k.srv.call(k.parse)(x)
	})(w, r)
	if !w.ended {
		k.last = true
	}
	if done, ok := w.response(); ok && !k.forgets {
		k.turns[done.ID] = appended(k.input, done.Output)
	}
}

// appended are items with others behind them.
func appended(list ...json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	for _, part := range list {
		var items []json.RawMessage
		json.Unmarshal(part, &items)
		all = append(all, items...)
	}
	return marshal(all)
}

// lost is a response that a request goes on from and that nobody remembers.
type lost string

func (l lost) Error() string { return "Previous response with id '" + string(l) + "' not found." }

// parse reads a message. What the vendor does not take in one is refused.
func (k *socket) parse(r *http.Request, body []byte) (door, error) {
	var m struct {
		Type       string
		Stream     json.RawMessage
		Options    json.RawMessage `json:"stream_options"`
		Background json.RawMessage
		Previous   *string `json:"previous_response_id"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if m.Type != "response.create" || m.Stream != nil || m.Options != nil || m.Background != nil {
		return nil, refusedf("A message is a response.create without stream, stream_options and background.")
	}
	d, err := parseResponses(r, body)
	if err != nil {
		return d, err
	}
	q := d.(*responsesRequest)
	q.Stream = true
	if m.Previous != nil {
		before, ok := k.turns[*m.Previous]
		delete(k.turns, *m.Previous)
		if !ok {
			return nil, lost(*m.Previous)
		}
		q.Input, q.PreviousResponseID = appended(before, q.Input), nil // it stands for itself now
	}
	k.input = q.Input
	return q, nil
}

// socketWriter turns what HTTP would have sent into messages.
type socketWriter struct {
	socket *socket
	header http.Header
	status int
	rest   []byte // of a frame, or of a refusal
	done   []byte // the data of the last frame
	ended  bool
}

func (w *socketWriter) Header() http.Header { return w.header }

func (w *socketWriter) WriteHeader(status int) { w.status = status }

func (w *socketWriter) Flush() {}

func (w *socketWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	if w.status != 0 && w.status != http.StatusOK {
		return len(p), w.refuse()
	}
	for {
		at := bytes.Index(w.rest, []byte("\n\n"))
		if at < 0 {
			return len(p), nil
		}
		var data []byte
		for line := range bytes.Lines(w.rest[:at+1]) {
			if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(data, bytes.TrimPrefix(d, []byte{' '})...)
			}
		}
		w.rest = w.rest[at+2:]
		if data == nil {
			continue
		}
		var e struct{ Type string }
		json.Unmarshal(data, &e)
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			w.done, w.ended = bytes.Clone(data), true
		}
		if err := w.send(data); err != nil {
			return 0, err
		}
	}
}

// refuse sends an error once its body is whole.
func (w *socketWriter) refuse() error {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(w.rest, &body) != nil {
		return nil // a page, or half of it
	}
	headers := map[string]string{}
	for name := range w.header {
		headers[strings.ToLower(name)] = w.header.Get(name)
	}
	w.ended = true
	return w.send(fmt.Appendf(nil, `{"type":"error","status":%d,"error":%s,"headers":%s}`, w.status, body.Error, marshal(headers)))
}

func (w *socketWriter) send(data []byte) error {
	return w.socket.conn.Write(w.socket.r.Context(), websocket.MessageText, data)
}

// response is what was completed.
func (w *socketWriter) response() (done struct {
	ID     string
	Output json.RawMessage
}, ok bool) {
	var e struct {
		Type     string
		Response json.RawMessage
	}
	if json.Unmarshal(w.done, &e) != nil || e.Type != "response.completed" {
		return done, false
	}
	return done, json.Unmarshal(e.Response, &done) == nil
}
