// Package upstream is a model vendor to test against: it speaks Chat Completions
// and Responses as OpenAI does, Messages as Anthropic, generateContent as Gemini and
// Converse as Bedrock, and on request misbehaves in every way that vendors have been
// seen to. It keeps a ledger of what reached it and what it sent,
// which is the truth that accounting is compared with.
//
// It knows nothing of the gateway: what it calls correct comes from the contract of
// the wire, so that a mistake in the gateway's codecs cannot hide here as well.
//
// # What it says
//
// Answers are deterministic. "Hello from MODEL." is the answer to a plain prompt. If
// function tools are offered, the first is called with {}; "call NAME {json}" in the
// last user message names the tool and its arguments, "call2 NAME {json}" makes two
// parallel calls of it, and "then call NAME {json}" behind that is called when the
// results are there. After a tool's last result the answer quotes its first 80
// characters.
//
// An image in the last user message is told by its media type: "Hello from MODEL. I
// see an image of image/png." A JSON schema for the answer is answered by the least
// value that fits it. Thinking that was asked for comes before the answer, with the
// vendor's opaque state; if that comes back changed, the call is refused. "cached" in
// the last user message makes a quarter of the input come from the cache and an
// eighth go into it.
//
// Responses are kept unless store is false, and can be read, deleted, gone on from and,
// in the background, cancelled.
//
// # What it refuses
//
// Messages, generateContent and Converse are read strictly: an unknown member at any
// level, an order of turns or blocks that the vendor does not take, calls without
// results, and what else breaks its rules is a 400 in the vendor's words.
//
// # How it misbehaves
//
// The scenario of a call is the name of a fault and perhaps an argument, "reset-mid"
// or "reset-mid arg=3". It is taken from the first place that has one:
//
//  1. the header X-Fault;
//  2. a mark in the last user message, "[[fault:reset-mid arg=3]]";
//  3. the end of the model's name, "small!reset-mid" or "small!reset-mid=3";
//  4. the server's default.
//
// [Faults] lists the names.
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request's body.
const maxBody = 64 << 20

// epoch is the one time in all answers, in seconds: they are deterministic.
const epoch = 1767225600

// Server is a running upstream. Its methods may be called from any goroutine.
type Server struct {
	http     http.Server
	listener net.Listener
	models   []string
	key      string
	ledger   ledger
	stored   stored
	done     chan struct{} // closed by Close
	working  sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	fallback   string                // the default scenario
	refusal    int                   // the status of handshakes that are not taken; 0 takes them
	handshakes int                   // that were taken
	sockets    int                   // that are open
	raw        map[net.Conn]struct{} // connections taken from net/http
}

// An Option changes a Server before it starts.
type Option func(*Server)

// WithModels adds model IDs to small, big and tools. Calls of any other model get
// the vendor's 404.
func WithModels(ids ...string) Option {
	return func(s *Server) { s.models = append(s.models, ids...) }
}

// WithKey makes the server refuse calls that carry another API key. Without it every
// key is good.
func WithKey(key string) Option {
	return func(s *Server) { s.key = key }
}

// WithListener serves on l in place of a free port of the loopback interface.
func WithListener(l net.Listener) Option {
	return func(s *Server) { s.listener = l }
}

// New starts a server. Like httptest.NewServer it panics if the loopback interface
// has no port left.
func New(options ...Option) *Server {
	s := &Server{
		models: []string{"small", "big", "tools"},
		done:   make(chan struct{}),
		raw:    map[net.Conn]struct{}{},
		ledger: ledger{changed: make(chan struct{})},
	}
	for _, o := range options {
		o(s)
	}
	if s.listener == nil {
		var err error
		if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			panic("upstream: " + err.Error())
		}
	}
	s.http.Handler = s.handler()
	s.http.ConnState = s.countConn
	s.working.Go(func() { s.http.Serve(s.listener) })
	return s
}

// Host is the address, "127.0.0.1:PORT".
func (s *Server) Host() string { return s.listener.Addr().String() }

// URL is the base URL of the API, "http://127.0.0.1:PORT/v1". Gemini's is below
// /v1beta, Bedrock's at the root.
func (s *Server) URL() string { return s.root() + "/v1" }

func (s *Server) root() string { return "http://" + s.Host() }

// Close ends every connection and returns when nothing runs any more.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.done)
	for c := range s.raw {
		c.Close()
	}
	s.mu.Unlock()
	s.http.Close()
	s.working.Wait()
}

// SetDefault sets the scenario of calls that choose none. The empty scenario is the
// correct answer. A name that does not exist is an error.
func (s *Server) SetDefault(scenario string) error {
	if _, err := parseScenario(scenario); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = scenario
	return nil
}

func (s *Server) defaultScenario() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fallback
}

// begin says whether work may start, and if so makes Close wait for it.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.working.Add(1)
	return true
}

// countConn makes Close wait for the goroutine of each connection: net/http lets some
// linger for half a second.
func (s *Server) countConn(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.working.Add(1)
	case http.StateHijacked, http.StateClosed:
		s.working.Done()
	}
}

func (s *Server) handler() http.Handler {
	api := http.NewServeMux()
	handle := func(pattern string, v *vendor, serve func(*exchange)) {
		api.HandleFunc(pattern, s.recorded(func(x *exchange) {
			x.vendor = v
			serve(x)
		}))
	}
	handle("GET /v1/models", openAI, s.listModels)
	handle("POST /v1/chat/completions", openAI, s.call(parseChat))
	handle("POST /v1/responses", openAI, s.call(parseResponses))
	api.HandleFunc("GET /v1/responses", s.upgrade)
	handle("POST /v1/responses/input_tokens", openAI, s.countTokens(parseResponsesCount, "input_tokens"))
	handle("GET /v1/responses/{id}", openAI, s.storedCall((*exchange).getStored))
	handle("DELETE /v1/responses/{id}", openAI, s.storedCall((*exchange).deleteStored))
	handle("POST /v1/responses/{id}/cancel", openAI, s.storedCall((*exchange).cancelStored))
	handle("GET /v1/responses/{id}/input_items", openAI, s.storedCall((*exchange).inputStored))
	handle("POST /v1/images/generations", openAI, s.makeImage)
	handle("POST /v1/messages", anthropic, s.call(parseAnthropic))
	handle("POST /v1/messages/count_tokens", anthropic, s.countTokens(parseAnthropicCount, "input_tokens"))
	handle("GET /v1beta/models", gemini, s.listGemini)
	handle("POST /v1beta/models/{call}", gemini, s.callGemini)
	handle("POST /model/{model}/converse", bedrock, s.call(parseBedrock))
	handle("POST /model/{model}/converse-stream", bedrock, s.call(parseBedrock))
	handle("POST /model/{model}/count-tokens", bedrock, s.countTokens(parseBedrockCount, "inputTokens"))
	api.HandleFunc("/", s.recorded(func(x *exchange) {
		x.fail(http.StatusNotFound, apiError{
			Message: "Invalid URL (" + x.r.Method + " " + x.r.URL.Path + ")",
			Type:    "invalid_request_error",
		})
	}))
	api.HandleFunc("GET /_control/requests", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.Requests())
	})
	api.HandleFunc("DELETE /_control/requests", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	api.HandleFunc("POST /_control/default", func(w http.ResponseWriter, r *http.Request) {
		if err := s.SetDefault(r.URL.Query().Get("fault")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return api
}

// recorded keeps a call in the ledger from its arrival to its end.
func (s *Server) recorded(serve func(*exchange)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.working.Done()
		x := &exchange{srv: s, w: w, r: r, vendor: openAI, entry: s.ledger.open(r)}
		noted := make(chan struct{})
		stop := context.AfterFunc(r.Context(), func() { x.gone(); close(noted) })
		serve(x)
		switch {
		case !stop():
			<-noted
		case r.Context().Err() != nil: // hold saw it before the AfterFunc had begun
			x.gone()
		}
		x.note(func(e *Request) { e.Finished = time.Now() })
		select {
		case <-s.done:
			panic(http.ErrAbortHandler) // or net/http would end the half answer well
		default:
		}
	}
}

// door is a parsed request of one operation, and the dialect that answers it.
type door interface {
	prompt() prompt
	whole(id int, r reply, u usage) any
	stream(id int, r reply, u usage) []frame
	// failure is an error inside a stream. Chat has one shape for it.
	failure(id int, e apiError, shape errorShape) []frame
}

// errorShape is how a Responses stream tells of an error.
type errorShape int

const (
	flat       errorShape = iota // an error event as OpenAI's, then response.failed
	nested                       // an error event as in Open Responses, then response.failed
	failedOnly                   // response.failed
)

// call serves one operation: choose the scenario, then let its fault take the call
// over or bend the correct answer.
func (s *Server) call(parse func(*http.Request, []byte) (door, error)) func(*exchange) {
	return func(x *exchange) {
		if !x.authorised() {
			return
		}
		if isEarly(cmp.Or(x.r.Header.Get("X-Fault"), s.defaultScenario())) {
			x.answerEarly()
			return
		}
		body, ok := x.read(parse)
		if !ok {
			return
		}
		x.prompt = x.door.prompt()
		x.reply = say(x.prompt)
		x.usage = count(body, x.prompt, x.reply)

		sc, err := parseScenario(s.choose(x.r, x.prompt))
		if err != nil {
			// A misspelt fault must not pass for a correct answer.
			x.fail(http.StatusBadRequest, apiError{Message: err.Error(), Type: "invalid_request_error", Code: new("unknown_fault")})
			return
		}
		x.arg = sc.arg
		x.note(func(e *Request) { e.Fault = sc.fault.Name })
		switch model, _, _ := strings.Cut(x.prompt.model, "!"); {
		case !slices.Contains(s.models, model):
			status, e := x.vendor.noModel(model)
			x.fail(status, e)
		case sc.fault.take != nil:
			sc.fault.take(x)
		default:
			if r, ok := x.door.(*responsesRequest); ok && !x.keep(r) {
				return
			}
			a := x.correct()
			if sc.fault.bend != nil {
				sc.fault.bend(x, a)
			}
			x.send(a)
		}
	}
}

// read parses the body, which must be what the vendor takes.
func (x *exchange) read(parse func(*http.Request, []byte) (door, error)) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	x.note(func(e *Request) { e.Body = string(body) })
	if err != nil {
		x.fail(http.StatusRequestEntityTooLarge, apiError{Message: "The request body could not be read.", Type: "invalid_request_error"})
		return nil, false
	}
	if x.door, err = parse(x.r, body); err != nil {
		if gone, ok := errors.AsType[lost](err); ok {
			x.fail(http.StatusBadRequest, apiError{Message: gone.Error(), Type: "invalid_request_error", Code: new("previous_response_not_found"), Param: new("previous_response_id")})
			return nil, false
		}
		message := "We could not parse the JSON body of your request."
		if refused, ok := errors.AsType[refusal](err); ok {
			message = string(refused)
			x.note(func(e *Request) { e.Refused = message })
		}
		x.fail(http.StatusBadRequest, apiError{Message: message, Type: "invalid_request_error"})
		return nil, false
	}
	return body, true
}

var mark = regexp.MustCompile(`\[\[fault:([^\]]+)\]\]`)

// choose finds the scenario of a call.
func (s *Server) choose(r *http.Request, p prompt) string {
	if h := r.Header.Get("X-Fault"); h != "" {
		return h
	}
	if m := mark.FindStringSubmatch(p.user); m != nil {
		return m[1]
	}
	if _, suffix, ok := strings.Cut(p.model, "!"); ok {
		return suffix
	}
	return s.defaultScenario()
}

// exchange is one request on its way to its answer.
type exchange struct {
	srv    *Server
	w      http.ResponseWriter
	r      *http.Request
	entry  *Request // in the ledger; changed through note alone
	vendor *vendor
	socket *socket // that it came by; nil over HTTP
	door   door
	prompt prompt
	reply  reply
	usage  usage
	arg    string // the scenario's argument
}

// key is the API key of the call, in a header where the vendor looks for it.
func (x *exchange) key() string {
	for _, name := range x.vendor.keys {
		value := x.r.Header.Get(name)
		if name == "Authorization" {
			value, _ = strings.CutPrefix(value, "Bearer ")
		}
		if value != "" {
			return value
		}
	}
	return ""
}

func (x *exchange) authorised() bool {
	if x.srv.key == "" || x.key() == x.srv.key {
		return true
	}
	status, e := x.vendor.badKey(x.key())
	x.fail(status, e)
	return false
}

func (x *exchange) note(change func(*Request)) { x.srv.ledger.change(x.entry, change) }

// gone notes that the client left before the whole answer was sent. A connection
// that Close ended says nothing about the client.
func (x *exchange) gone() {
	select {
	case <-x.srv.done:
		return
	default:
	}
	x.note(func(e *Request) {
		if !e.Terminal && e.Cancelled.IsZero() {
			e.Cancelled = time.Now()
		}
	})
}

// Request is one entry of the ledger.
type Request struct {
	ID     int         `json:"id"` // from 1, in order of arrival
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Query  string      `json:"query"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
	Fault  string      `json:"fault"` // "" for a correct answer

	// Refused is what was wrong with the request by the vendor's rules. It is the
	// client's mistake, where a fault is the vendor's.
	Refused string `json:"refused,omitempty"`

	Frames   int  `json:"frames"`   // frames written, the comments among them not counted
	Terminal bool `json:"terminal"` // the answer's own end was sent: [DONE], response.completed, the whole JSON

	Arrived   time.Time `json:"arrived"`
	Cancelled time.Time `json:"cancelled,omitzero"` // when the client was seen to have left
	Finished  time.Time `json:"finished,omitzero"`
}

// ledger holds every request until Reset. Its zero value lacks only changed.
type ledger struct {
	mu      sync.Mutex
	entries []*Request
	last    int
	changed chan struct{} // closed and renewed at every change
}

func (l *ledger) open(r *http.Request) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e := &Request{
		ID: l.last, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Arrived: time.Now(),
	}
	l.entries = append(l.entries, e)
	l.broadcast()
	return e
}

func (l *ledger) change(e *Request, change func(*Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(e)
	l.broadcast()
}

// broadcast wakes all that wait. The caller holds mu.
func (l *ledger) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// snapshot is a copy of the entries, and a channel that closes at the next change.
func (l *ledger) snapshot() ([]Request, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Request, 0, len(l.entries))
	for _, e := range l.entries {
		list = append(list, *e)
	}
	return list, l.changed
}

// Requests are copies of the ledger's entries in order of arrival.
func (s *Server) Requests() []Request {
	list, _ := s.ledger.snapshot()
	return list
}

// Reset empties the ledger. Requests still running are no longer listed.
func (s *Server) Reset() {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.ledger.entries = nil
	s.ledger.last = 0
	s.ledger.broadcast()
}

// Wait returns the ledger as soon as n requests have arrived.
func (s *Server) Wait(ctx context.Context, n int) ([]Request, error) {
	return s.wait(ctx, n, func(Request) bool { return true })
}

// WaitFinished returns the ledger as soon as n requests have come to their end.
func (s *Server) WaitFinished(ctx context.Context, n int) ([]Request, error) {
	return s.wait(ctx, n, func(e Request) bool { return !e.Finished.IsZero() })
}

func (s *Server) wait(ctx context.Context, n int, counts func(Request) bool) ([]Request, error) {
	for {
		list, changed := s.ledger.snapshot()
		have := 0
		for _, e := range list {
			if counts(e) {
				have++
			}
		}
		if have >= n {
			return list, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return list, ctx.Err()
		case <-s.done:
			return list, errors.New("upstream: closed")
		}
	}
}
