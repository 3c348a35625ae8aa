package dialect

import (
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// Translation is one call between two dialects: the request as the upstream
// takes it, and the answer as the client does. It follows the upstream's
// stream as any Follower does, but lets none of its frames pass.
type Translation struct {
	Call *Call

	outbound Outbound
	caps     *llm.Caps
	inbound  Inbound
	ask      *Ask
	told     func(llm.Event) // sees every event; may be nil

	decoder Decoder
	encoder Encoder
	restore *Restore
	events  []llm.Event // scratch
	named   []llm.Event // scratch
	begun   bool
	ended   bool
	gathers bool       // the client waits for a whole answer
	fold    llm.Folder // of such an answer
	next    *Call      // what the answer was paused for
	loop    *loop      // of the tools that the gateway runs; nil when there are none
	carry   *carry     // for another upstream to go on; nil when none may
	paused  bool       // for those
	usage   llm.Usage
	known   bool
	seen    int64 // bytes of text
}

var _ Follower = (*Translation)(nil)

// Translate says a request in an upstream's dialect.
func Translate(req *llm.Request, in Inbound, out Outbound, caps *llm.Caps, ask *Ask) (*Translation, error) {
	if err := unasked(req); err != nil {
		return nil, err
	}
	call, err := out.Encode(req, caps)
	if err != nil {
		return nil, err
	}
	return &Translation{Call: call, outbound: out, caps: caps, inbound: in, ask: ask}, nil
}

// Watch has every event of the answer told to someone.
func (t *Translation) Watch(told func(llm.Event)) { t.told = told }

func (t *Translation) start() {
	t.decoder = t.outbound.Answers(t.Call, t.caps)
	t.encoder = t.inbound.Encode(t.ask)
	t.restore = NewRestore(t.Call.Names)
}

// see takes what the gateway itself needs out of an event.
func (t *Translation) see(e llm.Event) {
	switch e := e.(type) {
	case llm.Open, llm.Finish:
		t.begun = true
	case llm.Delta:
		t.seen += int64(len(e.Data))
	case llm.Used:
		t.usage, t.known = e.Usage, e.Known
	case llm.Note:
		t.ask.Note(e.Notes)
	}
	if t.told != nil {
		t.told(e)
	}
}

// tell appends what the client is told of events.
func (t *Translation) tell(dst []byte, events []llm.Event) []byte {
	for _, e := range events {
		t.named = t.restore.Event(t.named[:0], e)
		for _, e := range t.named {
			if t.carry != nil && t.carry.items != nil {
				if t.carry.ends(e) {
					dst = t.put(dst, llm.Close{Item: t.carry.held})
					t.carry.held = notTold
				}
				var told bool
				if e, told = t.carry.event(e); !told {
					continue
				}
			}
			if t.loop == nil {
				dst = t.put(dst, e)
				continue
			}
			for _, e := range t.loop.event(e) {
				dst = t.put(dst, e)
			}
		}
	}
	return dst
}

// put tells an event, or gathers it.
func (t *Translation) put(dst []byte, e llm.Event) []byte {
	t.see(e)
	if t.carry != nil {
		t.carry.see(e)
	}
	if t.gathers {
		t.fold.Add(e)
		return dst
	}
	return t.encoder.Event(dst, e)
}

// over takes the end of the upstream's answer.
func (t *Translation) over(dst []byte) []byte {
	if t.loop != nil {
		if len(t.loop.order) > 0 {
			t.paused = true
			return dst
		}
		for _, e := range t.loop.rest() {
			dst = t.put(dst, e)
		}
	}
	return t.conclude(dst)
}

// conclude ends the client's answer.
func (t *Translation) conclude(dst []byte) []byte {
	t.ended = true
	if t.gathers {
		return t.inbound.AppendAnswer(dst, &t.fold.Answer, t.ask)
	}
	return t.encoder.End(dst)
}

// Frame implements Follower.
func (t *Translation) Frame(dst []byte, f sse.Frame) ([]byte, bool, error) {
	if t.paused {
		return dst, false, nil // nothing that comes behind an end matters
	}
	if t.decoder == nil {
		t.start()
	}
	var err error
	t.events, err = t.decoder.Frame(t.events[:0], f)
	dst = t.tell(dst, t.events)
	if err != nil {
		return dst, false, err
	}
	if t.decoder.Done() {
		dst = t.over(dst)
	}
	return dst, false, nil
}

// Begun implements Follower.
func (t *Translation) Begun() bool { return t.begun }

// Done implements Follower.
func (t *Translation) Done() bool { return t.ended }

// End implements Follower.
func (t *Translation) End(dst []byte) ([]byte, error) {
	if t.decoder == nil {
		t.start()
	}
	var err error
	t.events, err = t.decoder.End(t.events[:0])
	dst = t.tell(dst, t.events)
	if err != nil {
		return dst, err
	}
	return t.over(dst), nil
}

// Fail implements Follower.
func (t *Translation) Fail(dst []byte, e *llm.Error) []byte {
	if t.decoder == nil {
		t.start()
	}
	t.ended = true
	return t.encoder.Fail(dst, e)
}

// Usage implements Follower.
func (t *Translation) Usage(in int64) llm.Usage {
	if t.known {
		return t.usage
	}
	used := llm.Estimate(in, t.seen)
	if t.carry != nil {
		used = used.Plus(t.carry.usage)
	}
	return used
}

// Whole translates an answer that came whole, into the stream that the client
// asked for or into a whole answer. Of one that is paused, the rest comes with
// the next call, or once the gateway's own tools were run, and body must stay
// as it is until then.
func (t *Translation) Whole(dst, body []byte, stream bool) ([]byte, error) {
	if t.decoder == nil {
		t.start()
	}
	events, err := t.decoder.Whole(t.events[:0], body)
	if err != nil {
		return dst, err
	}
	t.next, t.gathers = t.Resume(true), !stream
	if dst = t.tell(dst, events); t.next != nil {
		return dst, nil
	}
	return t.over(dst), nil
}

// Resume returns the call that goes on with an answer that the upstream
// paused, or for which tools were run, once; nil when there is none. closed means that the upstream closed the
// stream before.
func (t *Translation) Resume(closed bool) *Call {
	if next := t.next; next != nil {
		t.next = nil
		return next
	}
	r, ok := t.decoder.(Resumer)
	if !ok {
		return nil
	}
	body := r.Resume(closed)
	if body == nil {
		return nil
	}
	next := *t.Call
	next.Body = body
	return &next
}

// Frames reads the frames of the upstream's stream.
func (t *Translation) Frames() Outbound { return t.outbound }

// Failed reads an upstream's refusal.
func (t *Translation) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	return t.outbound.Failed(status, body, wait)
}
