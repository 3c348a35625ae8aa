// Package upstream is a model vendor to test against: it speaks Chat Completions
// and Responses exactly as OpenAI does, and on request misbehaves in every way that
// vendors have been seen to. It keeps a ledger of what reached it and what it sent,
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
// parallel calls of it. After a tool's result the answer quotes its first 80
// characters.
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
	done     chan struct{} // closed by Close
	working  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	fallback string                // the default scenario
	raw      map[net.Conn]struct{} // connections taken from net/http
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

// URL is the base URL of the API, "http://127.0.0.1:PORT/v1".
func (s *Server) URL() string { return "http://" + s.Host() + "/v1" }

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
	api.HandleFunc("GET /v1/models", s.recorded(s.listModels))
	api.HandleFunc("POST /v1/chat/completions", s.recorded(s.call(parseChat)))
	api.HandleFunc("POST /v1/responses", s.recorded(s.call(parseResponses)))
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
		x := &exchange{srv: s, w: w, r: r, entry: s.ledger.open(r)}
		noted := make(chan struct{})
		stop := context.AfterFunc(r.Context(), func() { x.gone(); close(noted) })
		serve(x)
		if !stop() {
			<-noted
		}
		x.note(func(e *Request) { e.Finished = time.Now() })
		select {
		case <-s.done:
			panic(http.ErrAbortHandler) // or net/http would end the half answer well
		default:
		}
	}
}

func (s *Server) listModels(x *exchange) {
	if !x.authorised() {
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, id := range s.models {
		list.Data = append(list.Data, model{ID: id, Object: "model", Created: epoch, OwnedBy: "upstream"})
	}
	x.send(&answer{body: list})
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
func (s *Server) call(parse func([]byte) (door, error)) func(*exchange) {
	return func(x *exchange) {
		if !x.authorised() {
			return
		}
		if isEarly(cmp.Or(x.r.Header.Get("X-Fault"), s.defaultScenario())) {
			x.answerEarly()
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
		x.note(func(e *Request) { e.Body = string(body) })
		if err != nil {
			x.fail(http.StatusRequestEntityTooLarge, apiError{Message: "The request body could not be read.", Type: "invalid_request_error"})
			return
		}
		if x.door, err = parse(body); err != nil {
			x.fail(http.StatusBadRequest, apiError{Message: "We could not parse the JSON body of your request.", Type: "invalid_request_error"})
			return
		}
		x.prompt = x.door.prompt()
		x.reply = say(x.prompt)
		x.usage = count(body, x.reply)

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
			x.fail(http.StatusNotFound, apiError{
				Message: "The model '" + model + "' does not exist or you do not have access to it.",
				Type:    "invalid_request_error", Param: new("model"), Code: new("model_not_found"),
			})
		case sc.fault.take != nil:
			sc.fault.take(x)
		default:
			a := x.correct()
			if sc.fault.bend != nil {
				sc.fault.bend(x, a)
			}
			x.send(a)
		}
	}
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
	door   door
	prompt prompt
	reply  reply
	usage  usage
	arg    string // the scenario's argument
}

// key is the API key of the call, in whichever header it came.
func (x *exchange) key() string {
	h := x.r.Header
	bearer, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return cmp.Or(bearer, h.Get("X-Api-Key"), h.Get("Api-Key"))
}

func (x *exchange) authorised() bool {
	if x.srv.key == "" || x.key() == x.srv.key {
		return true
	}
	x.fail(http.StatusUnauthorized, apiError{
		Message: "Incorrect API key provided: " + x.key() + ".",
		Type:    "invalid_request_error", Code: new("invalid_api_key"),
	})
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
