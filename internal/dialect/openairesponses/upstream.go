package openairesponses

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// Failed implements dialect.Outbound.
func (Upstream) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	return coded(openai.UpstreamError(status, body, wait))
}

// coded gives an error the gateway's own code where it has one.
func coded(e *llm.Error) *llm.Error {
	switch {
	case e.Kind == llm.RateLimited:
		e.Code = "upstream_rate_limited"
	case e.Kind == llm.Overloaded:
		e.Code = "upstream_overloaded"
	case e.Kind == llm.Invalid && e.Code == "invalid_encrypted_content":
		e.Code = "reasoning_signature_rejected"
	}
	return e
}

// Frames implements dialect.Outbound.
func (Upstream) Frames(r io.Reader, max int) dialect.Frames { return dialect.SSE(r, max) }

// Answers implements dialect.Outbound.
func (Upstream) Answers(call *dialect.Call, caps *llm.Caps) dialect.Decoder {
	d := &answerDecoder{caps: caps, byIndex: map[int]*heard{}}
	if call != nil {
		d.names, d.words = call.Names, call.Words
	}
	return d
}

// answerDecoder reads one answer. What begins and ends an item is the truth;
// the list in the last event may be partial.
type answerDecoder struct {
	caps  *llm.Caps
	names *dialect.Names
	words *llm.Words // of the client

	begun     bool
	done      bool
	id        llm.Raw
	items     int // that were told
	order     []*heard
	byIndex   map[int]*heard // by output_index
	calls     bool
	searched  int64 // searches that took a fee
	generated int   // IDs of calls that had none
	event     jsonedit.Object
}

// heard is an item of the upstream's while it comes in.
type heard struct {
	number int // of the event's item
	kind   llm.ItemKind
	call   llm.CallKind
	index  int
	closed bool

	parts       map[heardPart]bool // what came of its texts
	args        bool
	annotations int
	logprobs    bool
}

type heardPart struct {
	channel llm.Channel
	part    int
}

// Done implements dialect.Decoder.
func (d *answerDecoder) Done() bool { return d.done }

// End implements dialect.Decoder.
func (d *answerDecoder) End(dst []llm.Event) ([]llm.Event, error) {
	if d.done {
		return dst, nil
	}
	return dst, dialect.Truncated()
}

// The members of a stream's event that are looked at.
const (
	partEventType = iota
	partEventOutput
	partEventContent
	partEventSummary
	partEventDelta
	partEventItem
	partEventResponse
	partEventError
	partEventAnnotation
	partEventLogprobs
	partEventCode
)

var partEventFields = jsonedit.NewFields("type", "output_index", "content_index", "summary_index", "delta", "item", "response", "error", "annotation", "logprobs", "code")

// Frame implements dialect.Decoder.
func (d *answerDecoder) Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error) {
	if d.done || len(f.Data) == 0 {
		return dst, nil
	}
	if openai.IsDone(f.Data) {
		return dst, dialect.Truncated() // the terminal event comes first
	}
	if err := jsonedit.Scan(f.Data, partEventFields, &d.event); err != nil {
		return dst, dialect.Malformed(err)
	}
	kind := llm.Raw(d.event.Value(partEventType)).Text()
	switch kind {
	case "":
		if e := d.event.Value(partEventError); jsonedit.KindOf(e) == jsonedit.KindObject {
			return dst, faultOf(e)
		}
		return dst, dialect.Malformed(errNoType)
	case "error":
		if e := d.event.Value(partEventError); jsonedit.KindOf(e) == jsonedit.KindObject {
			return dst, faultOf(e)
		}
		return dst, faultOf(f.Data)
	case "response.failed", "response.cancelled":
		return dst, failedResponse(d.event.Value(partEventResponse))
	}
	dst = d.start(dst, d.event.Value(partEventResponse))
	switch kind {
	case "response.completed", "response.incomplete":
		return d.finish(dst, d.event.Value(partEventResponse), kind == "response.incomplete")
	case "response.output_item.added":
		return d.added(dst, d.number(partEventOutput), readItem(d.event.Value(partEventItem))), nil
	case "response.output_item.done":
		if searches(d.event.Value(partEventItem)) {
			d.searched++
		}
		return d.over(dst, d.number(partEventOutput), readItem(d.event.Value(partEventItem))), nil
	case "response.output_text.annotation.added":
		return d.cited(dst), nil
	}
	return d.delta(dst, kind), nil
}

// number is a count of the event at hand; 0 when there is none.
func (d *answerDecoder) number(field int) int {
	n, err := strconv.Atoi(string(d.event.Value(field)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// start tells that the answer begins, by the first response that is sent or,
// where there is none, by whatever comes first.
func (d *answerDecoder) start(dst []llm.Event, response llm.Raw) []llm.Event {
	if d.begun {
		return dst
	}
	d.begun = true
	s := llm.Start{ID: dialect.Member(response, "id"), Model: dialect.Member(response, "model")}
	s.Created, _ = strconv.ParseInt(string(dialect.Member(response, "created_at")), 10, 64)
	d.id = s.ID.Clone()
	return append(dst, s)
}

// faultOf is the error of an upstream that failed while it answered.
func faultOf(object []byte) *llm.Error {
	e := openai.EventError(object)
	if e.Kind == llm.Upstream && !e.NoRetry {
		if said := dialect.Text(object, "message"); said != "" {
			e.Message = dialect.Fault{Message: said}.Error().Message
		}
	}
	return coded(e)
}

func failedResponse(response []byte) *llm.Error {
	if e := dialect.Member(response, "error"); e.Kind() == jsonedit.KindObject {
		return faultOf(e)
	}
	return &llm.Error{Kind: llm.Upstream, Message: "The upstream reported that the response failed.", Err: errFailed}
}

// Whole implements dialect.Decoder.
func (d *answerDecoder) Whole(dst []llm.Event, body []byte) ([]llm.Event, error) {
	body = bytes.TrimSpace(body)
	if _, _, err := (Dialect{}).Answer(body); err != nil {
		if e := dialect.Member(body, "error"); e.Kind() == jsonedit.KindObject {
			return dst, faultOf(e)
		}
		return dst, err
	}
	status := dialect.Text(body, "status")
	if status == "cancelled" {
		return dst, failedResponse(body)
	}
	return d.finish(d.start(dst, body), body, status == "incomplete")
}

// finish tells the end, and before it the items that only the last event
// tells of.
func (d *answerDecoder) finish(dst []llm.Event, response llm.Raw, incomplete bool) ([]llm.Event, error) {
	if d.items == 0 {
		i := 0
		for item := range jsonedit.Elements(dialect.Member(response, "output")) {
			if jsonedit.KindOf(item) == jsonedit.KindObject {
				dst = d.over(dst, i, readItem(item))
			}
			i++
		}
	}
	for _, h := range d.order {
		dst = d.close(dst, h)
	}
	var whole jsonedit.Object
	if jsonedit.Scan(response, responseFields, &whole) == nil {
		if usage, known := usageOf(&whole, d.searched); known {
			dst = append(dst, llm.Used{Usage: usage, Known: true})
		}
	}
	f := llm.Finish{Reason: llm.Stopped}
	if d.calls {
		f.Reason = llm.ToolsCalled
	}
	if incomplete {
		switch reason := dialect.Text(response, "incomplete_details", "reason"); reason {
		case "content_filter":
			f.Reason = llm.Filtered
		case "steered":
			dst = append(dst, note("assume", "stop"))
			f.Reason = llm.Stopped
		default: // max_output_tokens and max_messages
			f.Reason = llm.LengthReached
		}
	}
	d.done = true
	return append(dst, f), nil
}

func note(word, what string) llm.Note {
	var n llm.Notes
	switch word {
	case "assume":
		n.Assume(what)
	default:
		n.Skip(what)
	}
	return llm.Note{Notes: n}
}

// callID is a call's ID, made up where the upstream gives none: of the answer
// and the position, so that it is the same whenever it is asked for.
func (d *answerDecoder) callID(it *rawItem) llm.Raw {
	if it.callID.IsText() && !it.callID.Blank() {
		return it.callID
	}
	if it.id.IsText() && !it.id.Blank() {
		return it.id
	}
	sum := sha256.Sum256(append(d.id.Clone(), strconv.Itoa(d.generated)...))
	d.generated++
	return llm.Quote("call_" + hex.EncodeToString(sum[:12]))
}
