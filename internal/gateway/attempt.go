package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/sse"
	"github.com/limen-gateway/limen/internal/tools"
)

// attempt is a call as one target serves it. Nothing of it reaches the client
// before its answer has something to tell: until then, another can be made in
// its place. Its fields of the call's names are its own view of them.
type attempt struct {
	*Call
	Target  *route.Target
	Request dialect.Request // the client's, as it was made fit for the target
	Usage   llm.Usage
	notes   llm.Notes       // the call's, and what the target has no words for
	ctx     context.Context // ends with the call's, or with the attempt
	cancel  context.CancelCauseFunc

	way        way
	provider   *limit.Gate // that the attempt is in; nil before
	body       *sharedBody // while the attempt may read it; nil after
	tools      *tools.Run  // that the gateway runs for the answer; nil when there are none
	sent       bool        // the upstream had, or may have had, the request
	requests   int         // that were sent, and whose cost is not the call's yet
	unpaid     bool        // the key cannot pay for another request
	firstByte  time.Duration
	upstreamID string // of the request, as the upstream calls it; may be empty
	resp       *http.Response
	stream     *stream   // of the answer; nil when it comes whole
	whole      []byte    // the answer so far, when it comes whole
	lent       []*[]byte // what whole shares its memory with
	chosen     bool      // its answer is the client's
	lost       bool      // another was faster

	began      time.Time
	deadline   *time.Timer   // for the answer to begin; nil when there is none
	exit       route.Leave   // what the deadline asks
	beginning  atomic.Int32  // undecided, inTime or tooLate
	firstToken time.Duration // from began until there was something for the client
	wait       time.Duration // what the upstream's Retry-After said
	told       bool          // the plan knows what came of it
	settled    bool          // what it used is in the call's usage
}

// What is known of an answer that has a deadline to begin.
const (
	undecided = iota
	inTime
	tooLate
)

// stream is an upstream's event stream on its way to the client.
type stream struct {
	reader   dialect.Frames
	follower dialect.Follower
	buf      *[]byte
	out      []byte // frames for the client that are not written yet
	last     int    // where in out the last of them begins
	heard    bool   // an event came since the timer was told
}

// sharedBody is the body of a client's request, which several attempts may be
// sending. Its memory is given back when nobody reads it any more.
type sharedBody struct {
	buf   *[]byte
	held  *held // of the call, with room for the memory
	users atomic.Int32
}

func (c *Call) share(buf *[]byte) *sharedBody {
	b := &sharedBody{buf: buf, held: c.held}
	b.users.Store(1)
	return b
}

func (b *sharedBody) hold() *sharedBody {
	b.users.Add(1)
	return b
}

func (b *sharedBody) release() {
	if b.users.Add(-1) == 0 {
		buffer.Put(b.buf)
		b.held.releaseBody()
	}
}

// close gives back all that the attempt holds. It may be called again.
func (a *attempt) close() {
	a.done(a.Err)
	if a.tools != nil {
		a.tools.Close()
	}
	if a.stream != nil {
		a.stream.reader.Close()
		*a.stream.buf = a.stream.out
		buffer.Put(a.stream.buf)
	}
	if a.resp != nil {
		a.resp.Body.Close()
	}
	for _, buf := range a.lent {
		buffer.Put(buf)
	}
	if a.body != nil {
		a.body.release()
	}
	a.tools, a.stream, a.resp, a.lent, a.body = nil, nil, nil, nil, nil
	a.leaveProvider()
	a.cancel(nil)
}

// open sends the request, and reads the answer up to where it has something to
// tell the client.
func (g *Gateway) open(a *attempt, header http.Header, body *sharedBody) error {
	out, err := g.prepare(a, header, body)
	if err != nil {
		return err
	}
	defer out.body.Done()
	if a.Request.Stream {
		a.answer.wantStream()
	}
	if err := g.enterProvider(a); err != nil {
		return err
	}
	if a.resp, err = a.post(out); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	a.firstToken = time.Since(a.began)
	if a.deadline != nil && !a.begins() {
		return a.late()
	}
	return nil
}

// begin reads an answer up to where it has something to tell. What the client
// asked for decides the form: a client that waits for a stream takes plain JSON
// for an empty answer.
func (a *attempt) begin() error {
	switch media := a.media(); {
	case media == "text/html":
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream answered with a web page; is its base_url right?"}
	case a.Request.Stream && isStream(media):
		return a.beginStream()
	default:
		return a.readWhole(a.resp)
	}
}

// media is the type of the answer.
func (a *attempt) media() string {
	media, _, _ := strings.Cut(a.resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isStream reports whether an answer is a stream, as far as its type says.
func isStream(media string) bool {
	return media != "text/html" && !strings.HasSuffix(media, "json")
}

// firstOut is the room for frames on their way to the client.
const firstOut = 4 << 10

// beginStream reads the stream up to its first content, or to a pause or an end
// before it.
func (a *attempt) beginStream() error {
	buf := buffer.Get(firstOut)
	s := &stream{follower: a.follow(), reader: a.frames(a.resp.Body), buf: buf, out: *buf}
	a.stream = s
	for {
		if err := a.listen(); err != nil {
			return err
		}
		if s.follower.Done() || a.paused() || s.follower.Begun() && len(s.out) > 0 {
			return nil
		}
		if err := a.fill(); err != nil {
			return err
		}
	}
}

// fill reads more of the stream. At its end, the follower says whether that was
// one.
func (a *attempt) fill() error {
	s := a.stream
	switch err := s.reader.Fill(); {
	case err == io.EOF:
		s.last = len(s.out)
		s.out, err = s.follower.End(s.out)
		return err
	case err == sse.ErrTooLong:
		return &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The upstream's stream has an event that is larger than this gateway takes.", Err: err}
	case err != nil:
		return a.readError(err)
	}
	return nil
}

// listen handles the frames that have come. The client may hear nothing of
// them, but the upstream was not silent.
func (a *attempt) listen() error {
	s := a.stream
	err := s.follow()
	if s.heard {
		s.heard = false
		a.answer.progress()
	}
	if err != nil {
		return a.redacted(err)
	}
	return nil
}

// follow handles the frames that are in the reader's buffer.
func (s *stream) follow() error {
	for !s.follower.Done() {
		frame, ok := s.reader.Next()
		if !ok {
			break
		}
		if len(frame.Data) == 0 {
			continue // the gateway sends its own when there is silence
		}
		s.heard = true
		var pass bool
		var err error
		s.last = len(s.out)
		if s.out, pass, err = s.follower.Frame(s.out, frame); err != nil {
			return err
		}
		if pass {
			s.out = append(s.out, frame.Raw...)
		}
	}
	return nil
}

// readWhole reads an answer that comes whole, or the part of one that a request
// brought.
func (a *attempt) readWhole(resp *http.Response) error {
	buf, err := readAll(resp.Body, resp.ContentLength, a.set.MaxAnswer, func(int) { a.answer.progress() })
	if err != nil {
		return a.readError(err)
	}
	a.lent = append(a.lent, buf)
	if a.whole, err = a.wholeOf(a.whole, *buf); err != nil {
		return a.redacted(err)
	}
	return nil
}

// choose makes the attempt's answer the client's.
func (a *attempt) choose() {
	a.chosen = true
	a.plan.Begun(a.Target, a.firstToken, time.Now())
	a.Call.FirstByte = a.firstByte
	a.processingTime()
	a.tell()
}

// tell says in the answer's header what became of the request.
func (a *attempt) tell() {
	if len(a.notes) > 0 {
		a.answer.header("X-Limen-Notes", a.notes.String())
	}
	if a.upstreamID != "" {
		a.answer.header("X-Limen-Upstream-Request-Id", a.upstreamID)
	}
}

// noted adds to the notes what only the answer shows.
func (a *attempt) noted(n llm.Notes) {
	a.notes.Add(n)
	if a.chosen {
		a.tell()
	}
}

// spent is what an attempt used that failed. It may have been worked on, unless
// it was refused.
func (a *attempt) spent(e *llm.Error) llm.Usage {
	switch {
	case a.stream != nil:
		return a.stream.follower.Usage(a.BytesIn)
	case a.Usage != llm.Usage{}:
		return a.Usage
	case a.sent && e.Status == 0:
		return llm.Estimate(a.BytesIn, 0)
	}
	return llm.Usage{}
}

// fail is what tells a client of a failure whose stream has begun: with content,
// or with heartbeats only.
func (a *attempt) fail(e *llm.Error) []byte {
	if a.stream == nil {
		return a.follow().Fail(nil, e)
	}
	var out []byte
	if a.stream.follower.Begun() {
		out = a.stream.out // what came before the failure is the client's
	}
	return a.stream.follower.Fail(out, e)
}

// ended explains why a context ended: the reason that was given, or that the
// client left. err is what was seen of it.
func ended(ctx context.Context, err error) error {
	var e *llm.Error
	if cause := context.Cause(ctx); errors.As(cause, &e) {
		return e
	}
	return clientLeft(err)
}
