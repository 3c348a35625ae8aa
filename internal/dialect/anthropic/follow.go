package anthropic

import (
	"bytes"
	"errors"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// The members of an event that are looked at.
const (
	eventType = iota
	eventMessage
	eventUsage
	eventFault
	eventIndex
	eventBlock
	eventDelta
)

var eventFields = jsonedit.NewFields("type", "message", "usage", "error", "index", "content_block", "delta")

var errNoType = errors.New("the event has no type")

// isDone recognises the word that ends streams of other dialects, which some
// hosts append.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// follower implements dialect.Follower for Messages. Events pass as they are.
type follower struct {
	cost         dialect.Cost
	begun, ended bool
	counts       counts
	events       int64 // with content

	event jsonedit.Object // scratch
}

var _ dialect.Follower = (*follower)(nil)

// Follow implements dialect.Dialect.
func (Dialect) Follow(req *dialect.Request) dialect.Follower { return &follower{cost: req.Cost} }

// Begun implements dialect.Follower. The head of a message is no content: an
// upstream that is overloaded often says so right after it.
func (f *follower) Begun() bool { return f.begun }

// Done implements dialect.Follower.
func (f *follower) Done() bool { return f.ended }

// Usage implements dialect.Follower.
func (f *follower) Usage(in int64) llm.Usage {
	if f.counts.known {
		return f.counts.usage()
	}
	u := llm.Estimate(in, 0)
	u.Output = f.events // servers send about a token in each
	return u
}

// Frame implements dialect.Follower.
func (f *follower) Frame(dst []byte, frame sse.Frame) ([]byte, bool, error) {
	if isDone(frame.Data) {
		return dst, false, dialect.Truncated() // message_stop comes first
	}
	if err := jsonedit.Scan(frame.Data, eventFields, &f.event); err != nil {
		return dst, false, dialect.Malformed(err)
	}
	kind := text(f.event.Value(eventType))
	var room [1]jsonedit.Change
	changes := room[:0]
	switch kind {
	case "error":
		return dst, false, eventError(f.event.Value(eventFault))
	case "message_start":
		f.counts.merge(member(f.event.Value(eventMessage), "usage"))
	case "message_delta":
		f.begun = true
		usage := f.event.Value(eventUsage)
		f.counts.merge(usage)
		if f.cost != nil {
			changes = append(changes, jsonedit.Set(eventUsage, f.cost.In(usage, f.counts.usage(), f.counts.known)))
		}
	case "message_stop":
		f.begun, f.ended = true, true
	case "content_block_delta":
		f.begun = true
		f.events++
	case "content_block_start":
		f.begun = true
	case "":
		if e := f.event.Value(eventFault); given(e) {
			return dst, false, eventError(e)
		}
		return dst, false, dialect.Malformed(errNoType)
	}
	if frame.Canonical && string(frame.Event) == kind && len(changes) == 0 {
		return dst, true, nil
	}
	if strings.ContainsAny(kind, "\r\n") {
		return dst, false, dialect.Malformed(errNoType)
	}
	data := jsonedit.Edited(frame.Data, &f.event, changes...)
	return sse.Append(dst, []byte(kind), data), false, nil // SDKs go by the name of the event
}

// End implements dialect.Follower.
func (f *follower) End(dst []byte) ([]byte, error) { return dst, dialect.Truncated() }

// Fail implements dialect.Follower.
func (f *follower) Fail(dst []byte, e *llm.Error) []byte {
	f.ended = true
	return appendFailure(dst, e)
}

// appendFailure appends the event that tells of a failure.
func appendFailure(dst []byte, e *llm.Error) []byte {
	return sse.Append(dst, []byte("error"), AppendError(nil, e, ""))
}
