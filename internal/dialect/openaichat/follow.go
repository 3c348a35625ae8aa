package openaichat

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

var (
	emptyObject  = []byte("{}")
	emptyArray   = []byte("[]")
	errNoChoices = errors.New("the answer has no choices")
	errNoName    = errors.New("a call has no name")
)

// The members of a chunk that are looked at, and of a whole answer.
const (
	chunkError = iota
	chunkChoices
	chunkUsage
	chunkID
	chunkCreated
	chunkModel
	chunkXGroq
	chunkObject
	chunkBaseResp
	chunkService
)

var chunkFields = jsonedit.NewFields("error", "choices", "usage", "id", "created", "model", "x_groq", "object", "base_resp", "service_tier")

const (
	choiceIndex = iota
	choiceDelta
	choiceFinish
	choiceUsage
)

var choiceFields = jsonedit.NewFields("index", "delta", "finish_reason", "usage")

const (
	deltaRole = iota
	deltaToolCalls
)

var deltaFields = jsonedit.NewFields("role", "tool_calls")

var (
	messageFields = jsonedit.NewFields("tool_calls")
	callFields    = jsonedit.NewFields("index", "id", "type", "function")
)

// The members of a fragment of a tool call, in the order of callFields.
const (
	callIndex = iota
	callID
	callType
	callFunction
)

// finishReasons maps the words of servers, in lower case, to those that clients
// know. A word that is in neither list passes: new ones come before new
// releases do.
var finishReasons = map[string]string{
	"stop": "stop", "eos": "stop", "end_turn": "stop", "complete": "stop",
	"length": "length", "max_tokens": "length", "model_length": "length", "context_length": "length", "model_context_window_exceeded": "length",
	"tool_calls": "tool_calls", "function_call": "function_call",
	"content_filter": "content_filter", "sensitive": "content_filter", "safety": "content_filter", "content_filtered": "content_filter",
}

// faultReasons are finish reasons that report a failure.
var faultReasons = map[string]bool{"error": true, "insufficient_system_resource": true, "network_error": true, "abort": true}

// finishReason is the word for clients; calls says that the choice calls tools.
func finishReason(said string, calls bool) string {
	word, known := finishReasons[strings.ToLower(said)]
	switch {
	case !known:
		return said
	case word == "stop" && calls:
		return "tool_calls"
	case word == "tool_calls" && !calls:
		return "stop"
	}
	return word
}

// follower implements dialect.Follower for chat. Chunks that keep to the
// contract pass as they are.
type follower struct {
	wantsUsage bool
	cost       dialect.Cost

	begun, finished, ended bool
	usageSent              bool      // a chunk with usage and no choices went to the client
	usage                  llm.Usage // but for the service
	known                  bool
	usageRaw               []byte
	service                llm.Service
	chunks                 int64 // with choices

	head  chunkHead
	calls []choiceCalls
	roles uint64 // choices, by index, whose role was said
	over  uint64 // choices that are finished
	late  bool   // the chunk has a choice that was finished before

	chunk, choice, delta, call jsonedit.Object // scratch
}

var _ dialect.Follower = (*follower)(nil)

// Follow implements dialect.Dialect.
func (Dialect) Follow(req *dialect.Request) dialect.Follower {
	return newFollower(req)
}

func newFollower(req *dialect.Request) *follower {
	return &follower{wantsUsage: req.WantsUsage, cost: req.Cost}
}

func (f *follower) Begun() bool { return f.begun }
func (f *follower) Done() bool  { return f.ended }

func (f *follower) Usage(in int64) llm.Usage {
	u := f.usage
	if !f.known {
		u = llm.Estimate(in, 0)
		u.Output = f.chunks // servers send about a token in each
	}
	u.Service = f.service
	return u
}

func (f *follower) Frame(dst []byte, frame sse.Frame) ([]byte, bool, error) {
	if openai.IsDone(frame.Data) {
		if f.begun && !f.finished {
			dst = f.assumeFinish(dst)
		}
		out, err := f.End(dst)
		return out, false, err
	}
	if err := jsonedit.Scan(frame.Data, chunkFields, &f.chunk); err != nil {
		return dst, false, dialect.Malformed(err)
	}
	var room [6]jsonedit.Change
	changes := room[:0]
	if e := f.chunk.Value(chunkError); e != nil {
		if jsonedit.KindOf(e) != jsonedit.KindNull {
			return dst, false, openai.EventError(e)
		}
		changes = append(changes, jsonedit.Remove(chunkError)) // clients look whether it is there, not what it is
	}
	if string(f.chunk.Value(chunkObject)) == `"error"` {
		return dst, false, openai.EventError(frame.Data)
	}
	if isFault(frame.Data, &f.chunk) {
		return dst, false, failedWithin(frame.Data)
	}
	f.keepService()
	changes = f.keepHead(changes)
	choices, any, err := f.readChoices()
	if err != nil {
		return dst, false, err
	}
	late := f.late && !any // after the finish, only usage counts
	if choices != nil {
		changes = append(changes, jsonedit.Set(chunkChoices, choices))
	}
	if f.readUsage() {
		switch {
		case any:
			// Some clients add up what they find: the total comes once, in a
			// chunk of its own.
			changes = append(changes, jsonedit.Remove(chunkUsage))
		case !f.wantsUsage || f.usageSent:
			return dst, false, nil
		default:
			f.usageSent = true
			if f.cost != nil {
				changes = append(changes, jsonedit.Set(chunkUsage, f.cost.In(f.chunk.Value(chunkUsage), f.Usage(0), f.known)))
			}
		}
	} else if late {
		return dst, false, nil
	}
	if len(changes) == 0 && frame.Canonical && frame.Event == nil {
		return dst, true, nil
	}
	return sse.Append(dst, nil, jsonedit.Edited(frame.Data, &f.chunk, changes...)), false, nil
}

// keepHead remembers what all chunks of an answer share, and makes a chunk
// that differs agree: clients drop one with another id.
func (f *follower) keepHead(changes []jsonedit.Change) []jsonedit.Change {
	id := f.chunk.Value(chunkID)
	if f.head.id == nil && jsonedit.KindOf(id) == jsonedit.KindString && len(id) > len(`""`) {
		f.head = chunkHead{
			id:      bytes.Clone(id),
			created: bytes.Clone(f.chunk.Value(chunkCreated)),
			model:   bytes.Clone(f.chunk.Value(chunkModel)),
		}
		return changes
	}
	if f.head.id != nil && !bytes.Equal(id, f.head.id) {
		changes = append(changes, jsonedit.Set(chunkID, f.head.id))
	}
	return changes
}

// keepService remembers the service that was given: the last chunk has it right.
func (f *follower) keepService() {
	if service := llm.Raw(f.chunk.Value(chunkService)); service.Given() {
		f.service = dialect.ServiceOf(service)
	}
}

// readUsage reports whether the chunk's own usage member has counts.
func (f *follower) readUsage() bool {
	raw := f.chunk.Value(chunkUsage)
	own := jsonedit.KindOf(raw) == jsonedit.KindObject
	if !own {
		raw, _ = jsonedit.Get(f.chunk.Value(chunkXGroq), "usage")
	}
	f.takeUsage(raw)
	return own
}

func (f *follower) takeUsage(raw []byte) {
	if u, known := openai.DecodeUsage(raw); known {
		f.usage, f.known = u, true
		f.usageRaw = append(f.usageRaw[:0], raw...)
	}
}

// readChoices looks at each choice. It returns the choices anew when one of
// them had to be mended, and whether there is any.
func (f *follower) readChoices() (mended []byte, any bool, err error) {
	f.late = false
	raw := f.chunk.Value(chunkChoices)
	if raw == nil || jsonedit.KindOf(raw) == jsonedit.KindNull {
		return emptyArray, false, nil // clients read its length
	}
	changed := false
	var list [][]byte
	for choice := range jsonedit.Elements(raw) {
		better, late, err := f.readChoice(choice)
		if err != nil {
			return nil, any, err
		}
		if late {
			f.late, changed = true, true
			continue
		}
		any = true
		if better != nil {
			choice, changed = better, true
		}
		list = append(list, choice)
	}
	if any {
		f.begun = true
		f.chunks++
	}
	if !changed {
		return nil, any, nil
	}
	mended = append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
	return mended, any, nil
}

// readChoice returns the choice anew when it had to be mended. late says that
// it was finished before: the first finish counts.
func (f *follower) readChoice(choice []byte) (mended []byte, late bool, err error) {
	if err := jsonedit.Scan(choice, choiceFields, &f.choice); err != nil {
		return nil, false, dialect.Malformed(err)
	}
	var room [2]jsonedit.Change
	changes := room[:0]
	f.takeUsage(f.choice.Value(choiceUsage))
	index, err := strconv.Atoi(string(f.choice.Value(choiceIndex)))
	if err != nil || index < 0 || index >= maxChoices {
		index = 0
	}
	if f.over&(1<<index) != 0 {
		return nil, true, nil
	}
	if delta := f.choice.Value(choiceDelta); jsonedit.KindOf(delta) == jsonedit.KindObject {
		better, err := f.readDelta(delta, index)
		if err != nil {
			return nil, false, err
		}
		if better != nil {
			changes = append(changes, jsonedit.Set(choiceDelta, better))
		}
	}
	reason := f.choice.Value(choiceFinish)
	if jsonedit.KindOf(reason) == jsonedit.KindObject { // of older SGLang
		reason, _ = jsonedit.Get(reason, "type")
	}
	if said, ok := jsonedit.Unquote(reason); ok {
		if faultReasons[strings.ToLower(said)] {
			return nil, false, &llm.Error{Kind: llm.Upstream, Message: "The upstream broke off its answer.", Err: errors.New("finish_reason " + said)}
		}
		finish := openai.Null
		if said != "" {
			f.finished = true
			f.over |= 1 << index
			finish = jsonedit.AppendQuote(nil, finishReason(said, index < len(f.calls) && len(f.calls[index]) > 0))
		}
		if !bytes.Equal(finish, f.choice.Value(choiceFinish)) {
			changes = append(changes, jsonedit.Set(choiceFinish, finish))
		}
	}
	if len(changes) == 0 {
		return nil, false, nil
	}
	return jsonedit.Edited(choice, &f.choice, changes...), false, nil
}

// maxChoices bounds n: beyond it choices are not mended.
const maxChoices = 64

// toolCalls is how a delta with tool calls can be told from one without.
var toolCalls = []byte(`tool_calls"`)

func (f *follower) readDelta(delta []byte, index int) (mended []byte, err error) {
	if f.roles&(1<<index) != 0 && !bytes.Contains(delta, toolCalls) {
		return nil, nil // most deltas: a piece of text
	}
	if err := jsonedit.Scan(delta, deltaFields, &f.delta); err != nil {
		return nil, dialect.Malformed(err)
	}
	var room [2]jsonedit.Change
	changes := room[:0]
	if role := f.delta.Value(deltaRole); f.roles&(1<<index) == 0 {
		f.roles |= 1 << index
		if jsonedit.KindOf(role) != jsonedit.KindString || len(role) == len(`""`) {
			changes = append(changes, jsonedit.Set(deltaRole, []byte(`"assistant"`)))
		}
	}
	if calls := f.delta.Value(deltaToolCalls); jsonedit.KindOf(calls) == jsonedit.KindArray && !openai.EmptyArray(calls) {
		better, err := f.mendCalls(calls, index)
		if err != nil {
			return nil, err
		}
		if better != nil {
			changes = append(changes, jsonedit.Set(deltaToolCalls, better))
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return jsonedit.Edited(delta, &f.delta, changes...), nil
}

// assumeFinish appends the finish that a server left out which said itself
// that it is done: some clients ask again without end when there is none.
func (f *follower) assumeFinish(dst []byte) []byte {
	f.finished = true
	reason := `"stop"`
	if len(f.calls) > 0 && len(f.calls[0]) > 0 {
		reason = `"tool_calls"`
	}
	return f.head.append(dst, nil, emptyObject, []byte(reason))
}

// End implements dialect.Follower; it also serves [DONE].
func (f *follower) End(dst []byte) ([]byte, error) {
	if !f.begun || !f.finished {
		return dst, dialect.Truncated()
	}
	if f.wantsUsage && !f.usageSent && f.known {
		dst = f.head.appendUsage(dst, f.cost.In(f.usageRaw, f.Usage(0), true))
		f.usageSent = true
	}
	f.ended = true
	return append(dst, openai.DoneFrame...), nil
}

// Fail implements dialect.Follower.
func (f *follower) Fail(dst []byte, e *llm.Error) []byte {
	f.ended = true
	return append(appendFailure(dst, e), openai.DoneFrame...)
}

// appendFailure appends the frame that tells of a failure.
func appendFailure(dst []byte, e *llm.Error) []byte {
	dst = append(dst, "data: "...)
	dst = openai.AppendError(dst, e)
	return append(dst, "\n\n"...)
}

// chunkHead is what all chunks of an answer share, as raw JSON.
type chunkHead struct{ id, created, model []byte }

// append appends a chunk with one choice.
func (h *chunkHead) append(dst, index, delta, finish []byte) []byte {
	w := h.begin()
	w.Array("choices")
	w.BeginObject()
	w.SetRaw("index", openai.OrElse(index, "0"))
	w.SetRaw("delta", delta)
	w.SetRaw("logprobs", openai.Null)
	w.SetRaw("finish_reason", openai.OrElse(finish, "null"))
	w.EndObject()
	w.EndArray()
	w.EndObject()
	return sse.Append(dst, nil, w.Bytes())
}

// appendUsage appends the chunk that has usage and no choices.
func (h *chunkHead) appendUsage(dst, usage []byte) []byte {
	w := h.begin()
	w.Array("choices")
	w.EndArray()
	w.SetRaw("usage", usage)
	w.EndObject()
	return sse.Append(dst, nil, w.Bytes())
}

// begin begins a chunk.
func (h *chunkHead) begin() *jsonedit.Writer {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetRaw("id", openai.OrElse(h.id, `"chatcmpl-0"`))
	w.SetText("object", "chat.completion.chunk")
	w.SetRaw("created", openai.OrElse(h.created, "0"))
	w.SetRaw("model", openai.OrElse(h.model, `""`))
	return w
}
