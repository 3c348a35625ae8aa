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
	fold    llm.Folder // of an answer that is not streamed
	next    *Call      // what a whole answer was paused for
	usage   llm.Usage
	known   bool
	seen    int64 // bytes of text
}

var _ Follower = (*Translation)(nil)

// Translate says a request in an upstream's dialect.
func Translate(req *llm.Request, in Inbound, out Outbound, caps *llm.Caps, ask *Ask) (*Translation, error) {
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
			t.see(e)
			dst = t.encoder.Event(dst, e)
		}
	}
	return dst
}

// Frame implements Follower.
func (t *Translation) Frame(dst []byte, f sse.Frame) ([]byte, bool, error) {
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
		dst, t.ended = t.encoder.End(dst), true
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
	t.ended = true
	return t.encoder.End(dst), nil
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
	return llm.Estimate(in, t.seen)
}

// Whole translates an answer that came whole, into the stream that the client
// asked for or into a whole answer. Of one that is paused, the rest comes with
// the next call, and body must stay as it is until then.
func (t *Translation) Whole(dst, body []byte, stream bool) ([]byte, error) {
	if t.decoder == nil {
		t.start()
	}
	events, err := t.decoder.Whole(t.events[:0], body)
	if err != nil {
		return dst, err
	}
	t.next = t.Resume(true)
	if stream {
		dst = t.tell(dst, events)
		if t.next != nil {
			return dst, nil
		}
		t.ended = true
		return t.encoder.End(dst), nil
	}
	for _, e := range events {
		t.named = t.restore.Event(t.named[:0], e)
		for _, e := range t.named {
			t.see(e)
			t.fold.Add(e)
		}
	}
	if t.next != nil {
		return dst, nil
	}
	return t.inbound.AppendAnswer(dst, &t.fold.Answer, t.ask), nil
}

// Resume returns the call that goes on with an answer that the upstream
// paused, once; nil when it did not. closed means that the upstream closed the
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
