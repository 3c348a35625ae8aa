package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/state"
)

// A socket is a door like HTTP: each of its messages becomes a request, and
// takes the way that all calls take. What is written to the client as frames of
// an event stream goes out as messages. Calls are served one after the other;
// the socket remembers the last ones, so that the client sends what is new.

const (
	socketLife   = time.Hour        // longer none lasts
	socketPing   = 25 * time.Second // between two looks whether the client is there
	socketQueue  = 32               // messages that may wait for the one that is served
	socketWrite  = 30 * time.Second // for a client to take a message
	beyondBody   = 64 << 10         // of a message, besides the request in it
	keyInSocket  = "openai-insecure-api-key."
	stopping     = "the gateway stops; connect again"
	steerRefused = `{"type":"response.steer.failed","error":{"type":"invalid_request_error","code":"steering_not_supported","message":"This gateway cannot steer a response that is being made; send a new one when it is over.","param":null}}`
)

// socket is one WebSocket.
type socket struct {
	gateway *Gateway
	door    Door
	x       *exchange // of the handshake
	conn    *websocket.Conn
	session *state.Session
	life    *time.Timer

	mu      sync.Mutex
	waiting []message
	size    int64 // of what waits, in bytes
	busy    bool  // a goroutine serves what waits
	closing bool  // nothing new is served
	serving sync.WaitGroup
}

// message is a request of the client.
type message struct {
	lane     []byte // stream_id, JSON; nil when there is none
	previous string
	generate bool
	body     []byte
}

// sockets are those that are open.
type sockets struct {
	mu      sync.Mutex
	open    map[*socket]struct{}
	closing bool
	gone    sync.WaitGroup
}

func (s *sockets) add(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	if s.open == nil {
		s.open = map[*socket]struct{}{}
	}
	s.open[k] = struct{}{}
	s.gone.Add(1)
	return true
}

func (s *sockets) remove(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
	s.gone.Done()
}

// CloseSockets has the sockets end after the call that each of them serves.
func (g *Gateway) CloseSockets() {
	g.sockets.mu.Lock()
	defer g.sockets.mu.Unlock()
	g.sockets.closing = true
	for s := range g.sockets.open {
		go s.end(websocket.StatusServiceRestart, stopping)
	}
}

// AwaitSockets waits until all sockets have ended, or ctx has.
func (g *Gateway) AwaitSockets(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		g.sockets.gone.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// wantsSocket reports whether a request is the handshake of a WebSocket.
func wantsSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// socket serves a WebSocket until it ends.
func (g *Gateway) socket(x *exchange, d Door) {
	if !x.set.Sockets || x.r.ProtoMajor != 1 {
		g.refuseSocket(x)
		return
	}
	if err := checkHandshake(x.r.Header); err != nil {
		g.refuse(x, err)
		return
	}
	conn, err := websocket.Accept(x.w, x.r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // a key opens it, which no other site's page has
		Subprotocols:       subprotocols(x.r.Header),
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	s := &socket{gateway: g, door: d, x: x, conn: conn, session: state.NewSession()}
	if !g.sockets.add(s) {
		conn.Close(websocket.StatusServiceRestart, stopping)
		return
	}
	defer g.sockets.remove(s)
	conn.SetReadLimit(x.set.MaxBody + beyondBody)
	ctx, cancel := context.WithCancel(x.r.Context())
	s.life = time.AfterFunc(socketLife, func() {
		e := llm.Errorf(llm.Invalid, "A socket lasts at most %s: connect again.", socketLife)
		e.Code = "websocket_connection_limit_reached"
		s.send(errorMessage(http.StatusBadRequest, openai.AppendErrorObject(nil, e), nil), nil)
		s.end(websocket.StatusPolicyViolation, "the socket is too old; connect again")
	})
	ping := s.pinged(ctx)
	s.read(ctx)
	cancel()
	ping.Stop()
	s.life.Stop()
	s.serving.Wait()
	conn.CloseNow()
}

// checkHandshake refuses, in words that clients of an API read, what is not the
// handshake of a WebSocket.
func checkHandshake(h http.Header) error {
	key, err := base64.StdEncoding.DecodeString(h.Get("Sec-Websocket-Key"))
	switch {
	case h.Get("Sec-Websocket-Version") != "13":
		return llm.Errorf(llm.Invalid, "The WebSocket protocol has the version 13, which the header Sec-WebSocket-Version must say.")
	case err != nil || len(key) != 16:
		return llm.Errorf(llm.Invalid, "The header Sec-WebSocket-Key must have 16 bytes in base64.")
	case !strings.Contains(strings.ToLower(h.Get("Connection")), "upgrade"):
		return llm.Errorf(llm.Invalid, "The header Connection must have the word Upgrade. A proxy in between may have taken it out.")
	}
	return nil
}

// subprotocols are those that a browser offers besides the one with its key.
func subprotocols(h http.Header) (names []string) {
	for _, name := range offered(h) {
		if !strings.HasPrefix(name, keyInSocket) {
			names = append(names, name)
		}
	}
	return names
}

func offered(h http.Header) (names []string) {
	for _, line := range h["Sec-Websocket-Protocol"] {
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// pinged looks from time to time whether the client is there, and ends the
// socket when it is not.
func (s *socket) pinged(ctx context.Context) *time.Timer {
	var timer *time.Timer
	var mu sync.Mutex // the timer may fire before it is assigned
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(socketPing, func() {
		wait, cancel := context.WithTimeout(ctx, socketPing)
		defer cancel()
		if s.conn.Ping(wait) != nil {
			s.conn.CloseNow()
			return
		}
		mu.Lock()
		timer.Reset(socketPing)
		mu.Unlock()
	})
	return timer
}

// read takes the client's messages until it leaves.
func (s *socket) read(ctx context.Context) {
	for {
		kind, r, err := s.conn.Reader(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			s.conn.Close(websocket.StatusUnsupportedData, "messages are JSON, as text")
			return
		}
		data, err := readAll(r, -1, s.x.set.MaxBody+beyondBody, func(int) {})
		if err != nil {
			return
		}
		s.take(ctx, *data)
		buffer.Put(data)
	}
}

// The members of a message that are the socket's own business.
const (
	messageType = iota
	messageLane
	messageGenerate
	messageStream
	messageOptions
	messageBackground
	messagePrevious
)

var messageFields = jsonedit.NewFields("type", "stream_id", "generate", "stream", "stream_options", "background", "previous_response_id")

// take takes one message.
func (s *socket) take(ctx context.Context, data []byte) {
	var o jsonedit.Object
	if err := jsonedit.Scan(data, messageFields, &o); err != nil {
		s.refuse(openai.ScanError(err), nil)
		return
	}
	lane := bytes.Clone(o.Value(messageLane))
	switch kind, _ := jsonedit.Unquote(o.Value(messageType)); kind {
	case "response.create":
		generate := o.Value(messageGenerate)
		m := message{lane: lane, generate: jsonedit.KindOf(generate) != jsonedit.KindBool || string(generate) == "true"}
		m.previous, _ = jsonedit.Unquote(o.Value(messagePrevious))
		m.body = jsonedit.Edited(data, &o,
			jsonedit.Remove(messageType), jsonedit.Remove(messageLane), jsonedit.Remove(messageGenerate), jsonedit.Remove(messageOptions),
			jsonedit.Remove(messageBackground), jsonedit.Set(messageStream, []byte("true")))
		if !s.queue(ctx, m) {
			s.refuse(llm.Errorf(llm.Overloaded, "Too many requests wait on this socket: at most %d, of %d bytes together, or one. Please send it again when one is over.", socketQueue, s.x.set.MaxBody), lane)
		}
	case "response.steer":
		s.send([]byte(steerRefused), lane)
	default:
		s.refuse(llm.InvalidParam("invalid_value", "type", "A message of the type %q is not known: send response.create.", clip(kind)), lane)
	}
}

// queue has a message served after those before it. It reports false when too
// many wait.
func (s *socket) queue(ctx context.Context, m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return true // the client is told by the end of the socket
	}
	size := int64(len(m.body))
	if n := len(s.waiting); n == socketQueue || n > 0 && s.size+size > s.x.set.MaxBody {
		return false
	}
	s.waiting, s.size = append(s.waiting, m), s.size+size
	if !s.busy {
		s.busy = true
		s.serving.Go(func() { s.work(ctx) })
	}
	return true
}

// work serves what waits, and ends when nothing does: an idle socket needs no
// goroutine for it.
func (s *socket) work(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 || s.closing || ctx.Err() != nil {
			s.busy = false
			s.mu.Unlock()
			return
		}
		m := s.waiting[0]
		s.waiting[0] = message{} // it may be large
		s.waiting, s.size = s.waiting[1:], s.size-int64(len(m.body))
		s.mu.Unlock()
		s.serve(ctx, m)
	}
}

// serve makes a request of a message, and serves it. What could not be gone on
// from is forgotten: the client begins anew.
func (s *socket) serve(ctx context.Context, m message) {
	g, now := s.gateway, time.Now()
	w := &socketWriter{socket: s, lane: m.lane, header: http.Header{}}
	r := s.x.r.Clone(ctx)
	r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(m.body)), int64(len(m.body))
	r.Header.Del("Content-Encoding")
	x := &exchange{
		w: w, r: r, requestID: newRequestID(now), started: now, set: g.settings.Load(),
		operation: s.x.operation, failures: s.x.failures, session: s.session,
	}
	var err error
	if x.key, err = g.keys.Authenticate(credential(r.Header), now); err != nil { // it may be revoked by now
		g.refuse(x, err)
		return
	}
	var failed *llm.Error
	if m.generate {
		failed = g.call(x, s.door)
	} else {
		failed = g.warmUp(x, s.door)
	}
	if failed != nil && m.previous != "" {
		s.session.Forget(m.previous)
	}
}

// end ends the socket when the call that it serves is over.
func (s *socket) end(code websocket.StatusCode, reason string) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.serving.Wait()
	s.conn.Close(code, reason)
}

// refuse tells of a message that became no request.
func (s *socket) refuse(err error, lane []byte) {
	e := llm.AsError(err)
	s.send(errorMessage(s.x.failures.Status(e), openai.AppendErrorObject(nil, e), nil), lane)
}

// errorMessage is a failure before any event of an answer, with what its header
// would tell of when to try again.
func errorMessage(status int, object []byte, header http.Header) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("type", "error")
	w.SetInt("status", int64(status))
	w.SetRaw("error", object)
	if names := slices.Sorted(maps.Keys(header)); slices.ContainsFunc(names, isOfWaiting) {
		w.Object("headers")
		for _, name := range names {
			if isOfWaiting(name) {
				w.SetText(strings.ToLower(name), header[name][0])
			}
		}
		w.EndObject()
	}
	w.EndObject()
	return w.Bytes()
}

// isOfWaiting reports whether a header field tells when to try again.
func isOfWaiting(name string) bool {
	return strings.HasPrefix(name, "Retry-After") || strings.HasPrefix(name, "X-Ratelimit-") || name == "X-Should-Retry"
}

// send sends one message, which is an object.
func (s *socket) send(data, lane []byte) error {
	if lane != nil {
		data = bytes.Join([][]byte{data[:len(data)-1], []byte(`,"stream_id":`), lane, {'}'}}, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), socketWrite)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, data)
}

// socketWriter is the http.ResponseWriter of a request that came by a socket.
type socketWriter struct {
	socket *socket
	lane   []byte
	header http.Header
	status int
}

func (w *socketWriter) Header() http.Header { return w.header }

func (w *socketWriter) WriteHeader(status int) { w.status = status }

// Flush implements http.Flusher: every message goes out at once.
func (w *socketWriter) Flush() {}

// Write sends the frames of an event stream, of which each call brings whole
// ones, or the body of a refusal.
func (w *socketWriter) Write(p []byte) (int, error) {
	if w.status != 0 && w.status != http.StatusOK {
		return len(p), w.socket.send(errorMessage(w.status, dialect.Member(p, "error"), w.header), w.lane)
	}
	for data := range eventsOf(p) {
		if err := w.socket.send(data, w.lane); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// warmUp takes a request whose answer is not wanted yet: what follows can go on
// from it. No model is called.
func (g *Gateway) warmUp(x *exchange, d Door) *llm.Error {
	c := g.begin(x, d)
	defer c.end()
	if err := g.warm(c, x.r); err != nil {
		e := llm.AsError(err)
		if !c.answer.refuse(e) {
			c.answer.write(d.Encode(&dialect.Ask{ID: x.unique(), Model: c.Request.Model, Begun: x.started}).Fail(nil, e))
		}
		g.logRefusal(x, e)
		return e
	}
	return nil
}

func (g *Gateway) warm(c *Call, r *http.Request) error {
	body, err := g.readBody(c, r)
	if err != nil {
		return err
	}
	if err := c.Dialect.Inspect(*body, &c.Request); err != nil {
		return err
	}
	if err := g.resolve(c); err != nil {
		return err
	}
	c.unanswered = true
	if body, err = g.recall(c, body); err != nil {
		return err
	}
	if c.there != nil {
		return c.there.notOnlyBegun()
	}
	req, err := c.Dialect.Decode(*body, g.seal)
	if err != nil {
		req = &llm.Request{} // its upstream may take what cannot be said in another dialect
	}
	encoder := c.Dialect.Encode(&dialect.Ask{Request: req, ID: c.id(), Model: c.Request.Model, Begun: c.Started, Told: c.Request.Told})
	var frames []byte
	for _, e := range []llm.Event{llm.Start{}, llm.Used{Known: true}, llm.Finish{}} {
		frames = encoder.Event(frames, e)
	}
	frames = encoder.End(frames)
	if err := c.commit(frames, true); err != nil {
		return err
	}
	return c.answer.write(frames)
}
