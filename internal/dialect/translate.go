package dialect

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// Where client and upstream speak different dialects, they meet in the
// vocabulary of package llm: an Inbound reads the client's request and writes
// its answer, an Outbound writes the upstream's request and reads its answer.
// N dialects need N of each, not a translation for every pair.

// Inbound is a dialect that clients speak.
type Inbound interface {
	// Decode reads a request that Inspect accepted. It refuses, with an
	// *llm.Error that names the place, what the neutral form cannot hold: what
	// the caller wrote does not vanish. The result shares body's memory.
	Decode(body []byte, key seal.Key) (*llm.Request, error)
	// Encode starts a streamed answer.
	Encode(ask *Ask) Encoder
	// AppendAnswer appends a whole answer.
	AppendAnswer(dst []byte, a *llm.Answer, ask *Ask) []byte
}

// Ask is what an answer's encoder needs to know of the request.
type Ask struct {
	Request *llm.Request
	ID      string    // unique, without any prefix
	Model   string    // what the client asked for
	Begun   time.Time // of the call
	Vendor  string    // of the target, for marking opaque state
	Origin  string
	Seal    seal.Key
	Told    []llm.Member    // members of the answer that the gateway answers for
	Cost    Cost            // of which the client is told in the usage; may be nil
	Noted   func(llm.Notes) // is told what of the answer cannot be said; may be nil

	skipped llm.Notes // that were noted already
}

// Skip notes, once, what the upstream told and the client's dialect has no
// place for.
func (a *Ask) Skip(what string) {
	before := len(a.skipped)
	if a.skipped.Skip(what); len(a.skipped) > before {
		a.Note(a.skipped[before:])
	}
}

// Note tells of what an encoder cannot say.
func (a *Ask) Note(n llm.Notes) {
	if a.Noted != nil {
		a.Noted(n)
	}
}

// Encoder tells the events of one answer as a stream of its dialect.
type Encoder interface {
	// Event appends the frames that tell an event, which may be none.
	Event(dst []byte, e llm.Event) []byte
	// End appends what ends a stream that was told in full.
	End(dst []byte) []byte
	// Fail appends the frames that tell of a failure instead.
	Fail(dst []byte, e *llm.Error) []byte
}

// Hosting is a dialect whose clients ask for tools that they do not run.
type Hosting interface {
	// Hosted are the kinds of such tools that a request, which Inspect
	// accepted, asks for.
	Hosted(body []byte) []llm.ServerKind
}

// Runner is an Outbound whose upstreams run tools.
type Runner interface {
	// Runs reports whether they run one of a kind. functions says that the
	// client has tools of its own beside it.
	Runs(kind llm.ServerKind, functions bool, caps *llm.Caps) bool
}

// Outbound is a dialect that upstreams speak.
type Outbound interface {
	// Encode writes a request as an upstream with those abilities takes it. It
	// is deterministic, and append-only: the same history gives the same bytes
	// and new ones at the end. Its *llm.Error says what cannot be asked there.
	Encode(req *llm.Request, caps *llm.Caps) (*Call, error)
	// Answers starts to read the answer to a call.
	Answers(call *Call, caps *llm.Caps) Decoder
	// Failed reads an upstream's answer with a status of failure. wait is what
	// its header asks for, 0 when it does not.
	Failed(status int, body []byte, wait time.Duration) *llm.Error
	// Frames reads the frames of a stream.
	Frames(r io.Reader, max int) Frames
}

// Counter is an Outbound whose upstreams count the tokens of a request.
type Counter interface {
	// Count is the request that has those of a call counted.
	Count(call *Call) *Call
	// Counted reads the answer to it.
	Counted(body []byte) (int64, error)
}

// Measurer is an Outbound of which it is known what its upstreams make of a
// request, so that those of its tokens can be counted that no upstream counts.
type Measurer interface {
	// Measure is how many tokens a call's body has. of counts those of a text.
	// exact is false where there is something in it of which no rule is known.
	Measure(body []byte, by *llm.Tokenizer, of func(text string) int64) (tokens int64, exact bool)
}

// CountIn reads the answer of an upstream that has counted in a member.
func CountIn(body []byte, member string) (int64, error) {
	tokens, err := strconv.ParseInt(string(Member(body, member)), 10, 64)
	if err != nil {
		return 0, NotAnAnswer(err)
	}
	return tokens, nil
}

// Only is an object with those of its members alone that are named, which is
// with their quotes.
func Only(object []byte, names map[string]bool) []byte {
	w := jsonedit.NewWriter(make([]byte, 0, len(object)))
	w.BeginObject()
	for name, value := range jsonedit.Members(object) {
		if names[string(name)] {
			w.RawName(name)
			w.Raw(value)
		}
	}
	w.EndObject()
	return w.Bytes()
}

// Frames are the frames of a stream as they come in; *sse.Reader is the usual
// one.
type Frames interface {
	Next() (sse.Frame, bool)
	Fill() error
	Close()
}

// Call is a request in an upstream's dialect.
type Call struct {
	Path   string // below the base URL, with the query
	Header []Header
	Body   []byte
	Stream bool
	Notes  llm.Notes
	Names  *Names     // of the tools, as the upstream knows them
	Tools  bool       // there are tools that the client runs
	Words  *llm.Words // of the client
	// Rounds is how often the upstream may be asked to go on with an answer
	// that it pauses.
	Rounds int
}

// Header is one field that goes with a call.
type Header struct{ Name, Value string }

// Decoder reads one answer of an upstream. Events share memory with the frame
// that they came from.
type Decoder interface {
	// Frame appends the events of a frame of a stream. An *llm.Error means
	// that the upstream failed.
	Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error)
	// End is called when the stream was closed cleanly; it appends what was
	// still held back, or returns the error that the stream was cut.
	End(dst []llm.Event) ([]llm.Event, error)
	// Done reports whether the terminal event was seen.
	Done() bool
	// Whole appends the events of an answer that came whole.
	Whole(dst []llm.Event, body []byte) ([]llm.Event, error)
}

// Resumer is a Decoder of a dialect in which an upstream may pause an answer,
// and goes on with it when asked to by another request. As long as the call
// has Rounds, a pause is not told: the decoder is not Done.
type Resumer interface {
	Decoder
	// Resume returns the body of the request that goes on with the answer, nil
	// when that is not paused. What comes then is read as the rest of the same
	// answer. closed means that nothing more will come of the request before.
	Resume(closed bool) []byte
}

// Fold reads a whole answer of an upstream.
func Fold(d Decoder, body []byte) (*llm.Answer, error) {
	events, err := d.Whole(nil, body)
	if err != nil {
		return nil, err
	}
	var f llm.Folder
	for _, e := range events {
		f.Add(e)
	}
	return &f.Answer, nil
}

// SSE reads the frames of an event stream, as most upstreams send them.
func SSE(r io.Reader, max int) Frames { return sse.NewReader(r, max) }

// Text returns a member of an object that is a string, "" when it is not.
func Text(object []byte, path ...string) string {
	v, _ := jsonedit.Get(object, path...)
	s, _ := jsonedit.Unquote(v)
	return s
}

// Member returns a member of an object, nil when it is absent or null.
func Member(object []byte, path ...string) llm.Raw {
	v, ok := jsonedit.Get(object, path...)
	if !ok || jsonedit.KindOf(v) == jsonedit.KindNull {
		return nil
	}
	return v
}

var sealed = []byte(`"` + seal.Prefix)

// Sealed reports whether a body has something that was sealed here: no
// upstream can read it.
func Sealed(body []byte) bool { return bytes.Contains(body, sealed) }
