package gateway

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
	"github.com/limen-gateway/limen/internal/state"
)

// A background call is one whose client does not wait: it gets the response's
// ID at once, and the call goes on without it. What the call writes to its
// client is kept as events, which any number of clients can follow.

const (
	runsOfKey  = 32              // at once
	maxRun     = 64 << 20        // bytes of a run's events
	keepEvents = time.Second     // between two times that a run's new events are stored
	lookAgain  = time.Second / 2 // for events of a run in another process
)

// runs are the background calls of this process.
type runs struct {
	mu     sync.Mutex
	byID   map[string]*run // by owner and ID
	ofKey  map[string]int
	closed bool
	going  sync.WaitGroup
}

// run is a background call. It is the http.ResponseWriter of that call.
type run struct {
	owner, id string
	turn      *state.Turn
	cancel    context.CancelCauseFunc
	store     bool // its events are kept, because a client may follow them

	header http.Header
	status int
	begun  bool

	mu      sync.Mutex
	events  [][]byte // JSON objects
	size    int
	kept    int       // how many of events are in the store
	keptAt  time.Time // the last time
	over    bool
	fault   *llm.Error    // why it ended
	changed chan struct{} // closed when there is more
}

// newRun makes the run of a call.
func newRun(c *Call, streamed bool) (*run, context.Context) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
	return &run{
		owner: c.Key.ID, id: c.turn.ID, turn: c.turn, cancel: cancel, store: streamed,
		header: http.Header{}, keptAt: c.Started, changed: make(chan struct{}),
	}, ctx
}

// add begins to count a run.
func (s *runs) add(r *run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return llm.Errorf(llm.Unavailable, "The gateway stops. Please try again in 2s.")
	case s.ofKey[r.owner] >= runsOfKey:
		e := llm.Errorf(llm.RateLimited, "%d responses of this key are being made in the background, and more are not at once. Wait until one is over.", runsOfKey)
		e.RetryAfter = 5 * time.Second
		return e
	}
	if s.byID == nil {
		s.byID, s.ofKey = map[string]*run{}, map[string]int{}
	}
	s.byID[r.owner+"/"+r.id] = r
	s.ofKey[r.owner]++
	s.going.Add(1)
	return nil
}

func (s *runs) remove(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, r.owner+"/"+r.id)
	if s.ofKey[r.owner]--; s.ofKey[r.owner] == 0 {
		delete(s.ofKey, r.owner)
	}
	s.going.Done()
}

func (s *runs) find(owner, id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[owner+"/"+id]
}

// AwaitRuns waits until the background calls are over; those that are not when
// ctx ends fail, and are waited for.
func (g *Gateway) AwaitRuns(ctx context.Context) {
	s := &g.runs
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.byID {
			r.cancel(llm.Errorf(llm.Unavailable, "The gateway was stopped while it made this response. Please send the request again."))
		}
	})
	defer stop()
	s.going.Wait()
}

// launch hands a call over to the background, and answers the client with a
// response that is queued, or with the run's stream. It takes over body.
func (g *Gateway) launch(c *Call, header http.Header, body *[]byte) error {
	ask := &dialect.Ask{ID: c.id(), Model: c.Request.Model, Begun: c.Started, Told: c.Request.Told}
	if req, err := c.Dialect.Decode(*body, g.seal); err == nil { // else its upstream may take what cannot be said in another dialect
		ask.Request = req
	}
	queued := c.stateful().Queued(ask)
	r, ctx := newRun(c, c.streams)
	err := g.runs.add(r)
	if err == nil {
		if err = c.turn.Queue(c.ctx, queued, state.Run{Cancel: func() { r.cancel(nil) }, Finished: r.finished}); err != nil {
			g.runs.remove(r)
		}
	}
	if err != nil {
		buffer.Put(body)
		return err
	}
	own := *c
	own.ctx, own.cancel, own.patience = ctx, r.cancel, limit.Forever
	own.answer = newAnswer(&exchange{w: r, started: c.Started, set: c.set, requestID: c.requestID, failures: c.Dialect}, r.cancel)
	c.turn, c.held, c.pass, c.hold, c.launched = nil, nil, nil, nil, true // the turn, the room, the limits, the money and the record are the run's
	go g.background(&own, r, header.Clone(), body)
	if !c.streams {
		return c.answer.writeJSON(http.StatusOK, queued)
	}
	c.answer.enter(relaying)
	c.answer.wantStream()
	if err := c.tail(r, -1); err != nil && !c.answer.refuse(llm.AsError(err)) {
		c.answer.write(c.Dialect.Encode(ask).Fail(nil, llm.AsError(err)))
	}
	return nil
}

// background is a call without its client. AwaitRuns waits for it.
func (g *Gateway) background(c *Call, r *run, header http.Header, body *[]byte) {
	defer g.runs.remove(r)
	defer c.end()
	turn := c.turn
	defer func() {
		r.end(c.Err)
		if c.Err == nil {
			return
		}
		if err := turn.Fail(context.WithoutCancel(c.ctx), c.stateful().Fault(c.Err)); err != nil {
			g.log.Error("a background response that failed could not be marked so", "request_id", c.requestID, "error", err)
		}
	}()
	defer g.finish(c, &exchange{requestID: c.requestID})
	if err := g.deliver(c, header, body); err != nil {
		g.fail(c, err)
	}
}

func (r *run) Header() http.Header    { return r.header }
func (r *run) WriteHeader(status int) { r.status = status }

// Flush implements http.Flusher.
func (r *run) Flush() {}

var errRunTooLong = errors.New("the response is larger than a background response may be")

// Write takes the frames of the call's stream, of which each call brings whole
// ones. The body of a refusal is not wanted: the call's error says the same.
func (r *run) Write(p []byte) (int, error) {
	if r.status != 0 && r.status != http.StatusOK {
		return len(p), nil
	}
	if !r.begun {
		r.begun = true
		r.turn.Begin(context.Background()) // that it was queued is true as well
	}
	r.mu.Lock()
	for data := range eventsOf(p) {
		r.events = append(r.events, bytes.Clone(data))
		r.size += len(data)
	}
	long := r.size > maxRun
	r.wake()
	r.mu.Unlock()
	if long {
		return 0, errRunTooLong
	}
	if r.store && time.Since(r.keptAt) > keepEvents {
		r.keep()
	}
	return len(p), nil
}

// eventsOf are the objects in the frames of a stream: neither its comments nor
// its end.
func eventsOf(frames []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for frame := range bytes.SplitSeq(frames, []byte("\n\n")) {
			_, data, ok := bytes.Cut(append([]byte{'\n'}, frame...), []byte("\ndata: "))
			if ok && !openai.IsDone(data) && !yield(data) {
				return
			}
		}
	}
}

// wake tells those that follow; mu is held.
func (r *run) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// keep stores the events that are not stored yet. It is called by the run's own
// goroutine.
func (r *run) keep() {
	r.mu.Lock()
	first, events := int64(r.kept), r.events[r.kept:]
	r.kept, r.keptAt = len(r.events), time.Now()
	r.mu.Unlock()
	if len(events) > 0 {
		r.turn.KeepEvents(context.Background(), first, events) // who follows elsewhere reads the response itself at last
	}
}

// finished are the items of the output that are over.
func (r *run) finished() (items [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, data := range r.events {
		if dialect.Text(data, "type") == "response.output_item.done" {
			items = append(items, dialect.Member(data, "item"))
		}
	}
	return items
}

// end says that nothing more comes.
func (r *run) end(fault *llm.Error) {
	if r.store {
		r.keep()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.fault = true, fault
	r.wake()
}

// after are the events from a position on, and whether more can come.
func (r *run) after(n int) (events [][]byte, over bool, fault *llm.Error, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[n:], r.over, r.fault, r.changed
}

// tail writes the events of a run that follow the one with a number, until the
// run or the client's interest ends. The error is that of a run that failed
// before it had anything to tell.
func (c *Call) tail(r *run, after int64) error {
	for n := 0; ; {
		events, over, fault, changed := r.after(n)
		n += len(events)
		if err := c.answer.write(framed(events, after)); err != nil {
			return nil
		}
		switch {
		case over && n == 0 && fault != nil:
			return fault
		case over:
			c.answer.write([]byte(openai.DoneFrame))
			return nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return nil
		}
	}
}

// resume serves the stream of a response from where a client has it: as it goes
// on, or as it was.
func (g *Gateway) resume(x *exchange, c *Call, id string) {
	after := int64(-1)
	if text := x.r.URL.Query().Get("starting_after"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			g.refuseObject(x, c, llm.InvalidParam("invalid_value", "starting_after", "Invalid 'starting_after': use the sequence number of the last event that came."))
			return
		}
		after = n
	}
	var err error
	if r := g.runs.find(x.key.ID, id); r != nil {
		c.answer.enter(relaying)
		c.answer.wantStream()
		err = c.tail(r, after)
	} else {
		err = g.tailStored(c, id, after)
	}
	if kept, ok := errors.AsType[*state.Elsewhere](err); ok {
		g.objectThere(x, c, kept, "", true)
		return
	}
	if err != nil {
		g.refuseObject(x, c, err)
	}
}

// tailStored is tail for a run in another process, or one that is over.
func (g *Gateway) tailStored(c *Call, id string, after int64) error {
	for {
		events, status, err := g.state.Events(c.ctx, c.Key.ID, id, after)
		if err != nil {
			return err
		}
		c.answer.enter(relaying)
		c.answer.wantStream()
		if err := c.answer.write(framed(events, after)); err != nil {
			return nil
		}
		ended := false
		if n := len(events); n > 0 {
			after = state.Number(events[n-1])
			ended = terminal[dialect.Text(events[n-1], "type")]
		}
		if !state.Running(status) {
			if !ended {
				return g.replay(c, id, after)
			}
			c.answer.write([]byte(openai.DoneFrame))
			return nil
		}
		select {
		case <-time.After(lookAgain):
		case <-c.ctx.Done():
			return nil
		}
	}
}

// terminal are the events that end a stream.
var terminal = map[string]bool{"response.completed": true, "response.incomplete": true, "response.failed": true}

// replay ends a stream with what is known of a response that is over, but whose
// own events were not kept to the end.
func (g *Gateway) replay(c *Call, id string, after int64) error {
	body, err := g.state.Response(c.ctx, c.Key.ID, id)
	if err != nil {
		return err
	}
	var left [][]byte
	switch dialect.Text(body, "status") {
	case "cancelled": // there is no event of that name
	case "failed":
		w := jsonedit.NewWriter(nil)
		w.BeginObject()
		w.SetText("type", "response.failed")
		w.SetInt("sequence_number", after+1)
		w.SetRaw("response", body)
		w.EndObject()
		left = append(left, w.Bytes())
	default:
		for data := range eventsOf(c.Dialect.Replay(nil, body, &dialect.Request{})) {
			left = append(left, data)
		}
	}
	c.answer.write(append(framed(left, after), openai.DoneFrame...))
	return nil
}

// framed are events as frames, those after the one with a number.
func framed(events [][]byte, after int64) (frames []byte) {
	for _, data := range events {
		if state.Number(data) > after {
			frames = sse.Append(frames, []byte(dialect.Text(data, "type")), data)
		}
	}
	return frames
}
