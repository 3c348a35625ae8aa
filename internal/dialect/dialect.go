// Package dialect says what the gateway needs of a wire format. Each format
// is a folder below; none of them does I/O or knows HTTP's types, so that all
// of them can be tested and fuzzed as functions of bytes.
package dialect

import (
	"bytes"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// Name of a dialect, as written in a provider's `speaks`.
type Name string

// The dialects. An upstream may speak one that no client speaks to Limen.
const (
	OpenAIChat      Name = "openai-chat"
	OpenAIResponses Name = "openai-responses"
	Anthropic       Name = "anthropic"
	Gemini          Name = "gemini"
	Bedrock         Name = "bedrock"
)

// Request is what one strict look at a client's body tells.
type Request struct {
	Model      string
	Stream     bool
	WantsUsage bool // the client asked for usage within the stream
	// Counting is said by the caller: the request is only counted, and need
	// have no limit of an answer.
	Counting bool

	// Context is set where the dialect has requests that stand on others.
	Context *Context
	// Told are members of the answer that the gateway answers for, in place
	// of the upstream. They are set before the answer comes.
	Told []llm.Member
	// Cost, where it is set, has the client told what the call costs.
	Cost Cost

	// Object holds where the members stand that the dialect edits.
	Object jsonedit.Object
}

// Context is what a request says of what came before it, and of what becomes
// of it.
type Context struct {
	Previous     string // the ID of the response that it goes on from
	Conversation string // the ID of the conversation that it belongs to
	Store        bool   // others may go on from it
	StoreSaid    bool   // the client said so itself
	Background   bool   // the client reads the answer later
	Itemized     bool   // the input is wanted as items in their kept form
	Input        []byte // a string, an array of items or nothing
}

// Stateful is a dialect with requests that stand on others.
type Stateful interface {
	// Standalone appends a request, which Inspect accepted, that stands for
	// itself: the whole input, the inside of an array in parts, is in it, and
	// its upstream need keep nothing.
	Standalone(dst, body []byte, req *Request, input [][]byte) []byte
	// Queued is the response of a call that has yet to begin.
	Queued(ask *Ask) []byte
	// Fault is the error of a response that failed.
	Fault(e *llm.Error) []byte
	// Tell gives a response the members that the gateway answers for.
	Tell(response []byte, told []llm.Member) []byte
	// Compacts reports whether a request, which Inspect accepted, asks that its
	// conversation be compacted instead of answered.
	Compacts(body []byte, req *Request) bool
	// Summarize appends the request for a summary of a request's conversation.
	Summarize(dst, body []byte) []byte
	// Compacted is the item that stands for the conversation, of which the
	// response has the summary. id makes that of the item.
	Compacted(response []byte, id string, key seal.Key) (item []byte, err error)
	// WithOutput is a response whose whole output is that item.
	WithOutput(response, item []byte) []byte
	// Compaction is the answer to a client that had the conversation of a
	// request compacted. created is a Unix time.
	Compaction(body, response, item []byte, id string, created int64) []byte
	// Final returns the response in an answer as the client is told it: a body
	// or, when stream is set, the last frames of a stream. nil when there is
	// none.
	Final(told []byte, stream bool) []byte
	// Unkept is what is told in place of the last frames of a stream whose
	// response could not be kept.
	Unkept(told []byte, e *llm.Error) []byte
}

// Upstream is what a request body is made fit for.
type Upstream struct {
	Model string
	// AskUsage: the upstream reports usage of a stream only when asked.
	AskUsage bool
}

// Forgetful is a dialect whose requests can hold state that only one account
// reads.
type Forgetful interface {
	// Forget appends a request, which Inspect accepted, without that state, for
	// an account that did not take it. There are no notes where there was none.
	Forget(dst, body []byte, req *Request) ([]byte, llm.Notes)
}

// RejectsState reports whether an upstream refused a request for state of a
// model in it.
func RejectsState(e *llm.Error) bool {
	return e.Kind == llm.Invalid && (e.Code == "invalid_encrypted_content" || e.Code == "reasoning_signature_rejected" || badSignature(e.Message))
}

// Failures is how a dialect tells a client of a failure before any answer.
type Failures interface {
	// Status of HTTP for a failure.
	Status(e *llm.Error) int
	// AppendError appends the body of a failed call.
	AppendError(dst []byte, e *llm.Error, requestID string) []byte
	// RequestIDHeader is the header field in which clients look for the ID of
	// their request.
	RequestIDHeader() string
	// Limits are the header fields that tell a client how it stands with its
	// limits now; none where there are none.
	Limits(s limit.Standing, now time.Time) []Header
}

// Dialect is a format that clients and upstreams share: bodies and frames
// pass through it as they are, but for what the gateway owns.
type Dialect interface {
	Failures
	Name() Name
	// Path of the operation, below a base URL.
	Path() string
	// Inspect looks at a client's body; its error is an *llm.Error.
	Inspect(body []byte, req *Request) error
	// Forward appends the body for an upstream, as segments that share
	// memory with body, and returns their total length.
	Forward(dst [][]byte, body []byte, req *Request, up Upstream) ([][]byte, int)
	// Anew reports whether a request must be said anew although the upstream
	// speaks the dialect, because it has something that the server takes in
	// another way, or that was sealed here.
	Anew(body []byte, caps *llm.Caps) bool
	// Prompt is what a request that Inspect accepted has for the model.
	Prompt(req *Request) Prompt
	// Passed are the header fields that go on to an upstream of the same
	// dialect, out of those that the client sent.
	Passed(sent func(name string) string) []Header
	// Answer checks a whole JSON answer and reads its usage. known is false
	// when the upstream sent none. Its error is an *llm.Error.
	Answer(body []byte) (usage llm.Usage, known bool, err error)
	// Priced is a whole answer, which Answer accepted, with what the call costs
	// in its usage, where the request has that told; else it is body.
	Priced(body []byte, req *Request) []byte
	// Follow starts to follow a stream that answers req.
	Follow(req *Request) Follower
	// Replay appends a whole JSON answer, which Answer accepted, as the
	// stream that a client asked for.
	Replay(dst, body []byte, req *Request) []byte
}

// Follower looks on while an upstream's stream passes to the client: it
// meters, keeps out what the client must not see, mends what clients are
// known to break on, and knows whether the stream ended well.
type Follower interface {
	// Frame looks at one frame. pass means that the frame's own bytes go to
	// the client; otherwise what was appended to dst does, which may be
	// nothing. An *llm.Error means that the upstream failed: the caller ends
	// the stream with Fail.
	Frame(dst []byte, f sse.Frame) (out []byte, pass bool, err error)
	// Begun reports whether a frame with content was seen.
	Begun() bool
	// Done reports whether the terminal event was seen: nothing that follows
	// matters.
	Done() bool
	// End is called when the upstream closed its stream cleanly before Done.
	// It appends what was missing of a complete answer, or returns the error
	// that the stream was cut.
	End(dst []byte) (out []byte, err error)
	// Fail appends the frames that tell the client of a failure.
	Fail(dst []byte, e *llm.Error) []byte
	// Usage is what the upstream reported, or an estimate of what was seen
	// (in counts the bytes of the request's body).
	Usage(in int64) llm.Usage
}

// Refollow appends a stream as a follower lets it pass: a stream that was put
// together here is mended like one that came.
func Refollow(dst, stream []byte, f Follower) []byte {
	for frame, err := range sse.All(bytes.NewReader(stream), len(stream)+1) {
		pass := false
		if err == nil {
			dst, pass, err = f.Frame(dst, frame)
		}
		if err != nil {
			return f.Fail(dst, llm.AsError(err))
		}
		if pass {
			dst = append(dst, frame.Raw...)
		}
		if f.Done() {
			break
		}
	}
	return dst
}
