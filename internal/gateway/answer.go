package gateway

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// stage is what a call waits for.
type stage uint8

const (
	readingBody stage = iota // the client's body
	queued                   // room at the upstream
	waiting                  // the upstream's first byte
	relaying                 // the next event, or the next part of an answer
	draining                 // the end of an upstream's answer whose content was complete
)

// drainFor is how long the end of an upstream's answer is waited for after
// its content was complete, so that the connection can serve again.
const drainFor = 50 * time.Millisecond

// answer is the client's side of a call. It owns the call's one timer, which
// ends a wait that takes too long, and keeps a silent stream alive. Writing
// and the timer meet under mu.
type answer struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	set    *Settings
	cancel context.CancelCauseFunc
	begun  time.Time // of the call

	failures  dialect.Failures
	requestID string

	mu        sync.Mutex
	giveUp    context.CancelCauseFunc // ends the attempts under way, where others may be made; else nil
	timer     *time.Timer
	due       time.Time // when the timer fires
	over      bool
	stage     stage
	since     time.Time // the last progress within the stage
	received  int64     // bytes of the body, while it is read
	stream    bool      // the client waits for a stream
	committed bool      // status and header are out
	written   int64
	lastWrite time.Time
	deadline  time.Time // of writing, as the connection has it
}

func newAnswer(x *exchange, cancel context.CancelCauseFunc) *answer {
	now, set := x.started, x.set
	a := &answer{
		w: x.w, rc: http.NewResponseController(x.w), set: set, cancel: cancel, begun: now,
		failures: x.failures, requestID: x.requestID, since: now, lastWrite: now,
	}
	a.mu.Lock() // the timer may fire before it is assigned
	defer a.mu.Unlock()
	a.due = now.Add(set.Body)
	a.timer = time.AfterFunc(set.Body, a.tick)
	return a
}

// close stops the timer and waits for it.
func (a *answer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
	if !a.deadline.IsZero() {
		a.rc.SetWriteDeadline(time.Time{}) // the connection may serve other calls
	}
}

// enter begins a stage.
func (a *answer) enter(s stage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stage, a.since = s, time.Now()
	if wait := a.next(a.since); a.since.Add(wait).Before(a.due) { // else it fires in time to look again
		a.arm(a.since, wait)
	}
}

func (a *answer) arm(now time.Time, wait time.Duration) {
	a.due = now.Add(wait)
	a.timer.Reset(wait)
}

// wantStream says that the client waits for a stream: from now on silence is
// filled with heartbeats.
func (a *answer) wantStream() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = true
}

// progress notes that what is waited for goes on.
func (a *answer) progress() {
	a.mu.Lock()
	a.since = time.Now()
	a.mu.Unlock()
}

// took notes bytes of the client's body.
func (a *answer) took(n int) {
	a.mu.Lock()
	a.received += int64(n)
	a.mu.Unlock()
}

// minBodyRate is how fast a body must come in, in bytes a second, for its
// time to be extended.
const minBodyRate = 8 << 10

// limit is how long the stage may last without progress.
func (a *answer) limit() time.Duration {
	switch a.stage {
	case readingBody:
		return a.set.Body + time.Duration(a.received/minBodyRate)*time.Second
	case queued:
		return a.set.Total
	case waiting:
		return a.set.FirstByte
	case draining:
		return drainFor
	default:
		return a.set.Idle
	}
}

// beating reports whether silence is to be filled.
func (a *answer) beating() bool {
	return a.stream && a.set.Heartbeat > 0 && (a.stage == waiting || a.stage == relaying)
}

// next is when the timer has to look again.
func (a *answer) next(now time.Time) time.Duration {
	wait := min(a.limit()-now.Sub(a.since), a.set.Total-now.Sub(a.begun))
	if a.beating() {
		wait = min(wait, a.set.Heartbeat-now.Sub(a.lastWrite))
	}
	return max(wait, time.Millisecond)
}

// tick is called by the timer.
func (a *answer) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	now := time.Now()
	if now.Sub(a.since) >= a.limit() && !a.expire(now) {
		return
	}
	if now.Sub(a.begun) >= a.set.Total {
		a.cancel(llm.Errorf(llm.UpstreamTimeout, "The call took longer than the %s that one may take.", a.set.Total))
		return
	}
	if a.beating() && now.Sub(a.lastWrite) >= a.set.Heartbeat {
		silent := a.since
		if err := a.writeLocked(heartbeat); err != nil {
			a.cancel(clientLeft(err))
			return
		}
		a.since = silent // which it still is
	}
	a.arm(now, a.next(now))
}

// heartbeat is a comment frame: the only kind of frame that no client minds.
var heartbeat = []byte(": keepalive\n\n")

// expire ends what was waited for too long. It reports whether the call goes on.
func (a *answer) expire(now time.Time) bool {
	switch a.stage {
	case readingBody:
		a.cancel(llm.Errorf(llm.SlowBody, "The body of the request did not come in time."))
		a.rc.SetReadDeadline(time.Unix(1, 0))
		return false
	case draining:
		a.cancel(nil)
		return false
	}
	e := llm.Errorf(llm.UpstreamTimeout, "The upstream was silent for %s.", a.limit())
	if a.giveUp == nil {
		a.cancel(e)
		return false
	}
	a.giveUp(e)
	a.since = now
	return true
}

// try begins attempts that giveUp ends when they are waited for too long.
func (a *answer) try(giveUp context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveUp = giveUp
}

// skipTime is how long a client that is refused has for the rest of its body.
const skipTime = 5 * time.Millisecond

// skipBody has a refusal not wait for a body that nobody reads. If the rest of a
// short one is there, it is passed over, and the connection serves again; else
// the connection ends with the refusal.
func (a *answer) skipBody() { a.rc.SetReadDeadline(time.Now().Add(skipTime)) }

func clientLeft(err error) *llm.Error {
	return &llm.Error{Kind: llm.Canceled, Message: "The client left.", Err: err}
}

// isCommitted reports whether the header is out.
func (a *answer) isCommitted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.committed
}

// sent is the number of bytes of the answer's body so far.
func (a *answer) sent() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written
}

// write sends frames of a stream and flushes them. The first write brings the
// header.
func (a *answer) write(p []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writeLocked(p)
}

// Shared header values; net/http does not change them.
var (
	contentStream = []string{"text/event-stream; charset=utf-8"}
	contentJSON   = []string{"application/json"}
	noCache       = []string{"no-cache"}
	noStore       = []string{"no-store"}
	noBuffering   = []string{"no"}
)

func (a *answer) writeLocked(p []byte) error {
	now := time.Now()
	if !a.committed {
		h := a.w.Header()
		h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = contentStream, noCache, noBuffering
		a.w.WriteHeader(http.StatusOK)
		a.committed = true
	}
	a.guardWrite(now)
	a.since, a.lastWrite = now, now
	n, err := a.w.Write(p)
	a.written += int64(n)
	if err != nil {
		return err
	}
	return a.rc.Flush()
}

// guardWrite moves the deadline of writing on, once a quarter of it is over.
func (a *answer) guardWrite(now time.Time) {
	if a.deadline.Sub(now) < a.set.Write*3/4 {
		a.deadline = now.Add(a.set.Write)
		a.rc.SetWriteDeadline(a.deadline)
	}
}

// smallWrite is what fits the buffers of a connection, whatever its client does.
const smallWrite = 4 << 10

// writeJSON sends a whole answer.
func (a *answer) writeJSON(status int, body []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	a.committed = true
	if len(body) > smallWrite {
		a.guardWrite(time.Now())
	}
	a.w.WriteHeader(status)
	n, err := a.w.Write(body)
	a.written += int64(n)
	return err
}

// header sets a field of the answer's header, unless that is out already.
func (a *answer) header(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.committed {
		a.w.Header()[name] = []string{value}
	}
}

// closing sets a field of the header, or of what follows a stream that has
// begun.
func (a *answer) closing(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.committed {
		name = http.TrailerPrefix + name
	}
	a.w.Header()[name] = []string{value}
}

// refuse answers with a failure, and reports false when the header is out
// already.
func (a *answer) refuse(e *llm.Error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.committed {
		return false
	}
	a.committed = true
	body := writeError(a.w, e, a.failures, a.requestID)
	n, _ := a.w.Write(body)
	a.written += int64(n)
	return true
}

// writeError sends a failure as a status and a body; nothing was sent before.
func writeError(w http.ResponseWriter, e *llm.Error, words dialect.Failures, requestID string) []byte {
	h := w.Header()
	if e.RetryAfter > 0 {
		seconds := int64((e.RetryAfter + time.Second - 1) / time.Second)
		h["Retry-After"] = []string{strconv.FormatInt(max(seconds, 1), 10)}
		h["Retry-After-Ms"] = []string{strconv.FormatInt(e.RetryAfter.Milliseconds(), 10)}
	}
	if e.NoRetry {
		h["X-Should-Retry"] = []string{"false"}
	}
	if e.Kind == llm.Unauthenticated {
		h["Www-Authenticate"] = []string{"Bearer"}
	}
	h["Content-Type"], h["Cache-Control"] = contentJSON, noStore
	body := words.AppendError(nil, e, requestID)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(words.Status(e))
	return body
}
