package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

var (
	errNoCandidates = errors.New("the answer has no candidates")
	errCandidate    = errors.New("a candidate has an index that cannot be")
	errNoName       = errors.New("a function call has no name")
	errNothing      = errors.New("the answer ended without saying anything")
)

// maxIndex bounds the index of a candidate: each has state of its own.
const maxIndex = 64

// decoder reads an answer. A whole one and the chunks of a stream have the
// same form.
type decoder struct {
	words   *llm.Words // of the client
	want    int        // candidates that were asked for
	id      llm.Raw
	started bool
	items   int // that were opened
	calls   int // that were given an ID here
	choices []*choice
	settled bool // the usage came with the last finish, or after it
	ended   bool

	body   []byte  // of the request
	rounds int     // how often the upstream may be asked to go on
	token  llm.Raw // with which it is asked, while it waits for that
	spent  llm.Usage
	used   llm.Usage // since then

	counted, billed bool // used is told of, and has the searches
}

var _ dialect.Resumer = (*decoder)(nil)

// Answers implements dialect.Outbound.
func (Upstream) Answers(call *dialect.Call, _ *llm.Caps) dialect.Decoder {
	d := &decoder{want: 1}
	if call != nil {
		d.words = call.Words
		d.body, d.rounds = call.Body, call.Rounds
		if n, ok := count(dialect.Member(call.Body, "generationConfig", "candidateCount")); ok {
			d.want = int(min(max(n, 1), maxIndex))
		}
	}
	return d
}

// Frame implements dialect.Decoder.
func (d *decoder) Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error) {
	if len(f.Data) == 0 || string(bytes.TrimSpace(f.Data)) == "[DONE]" {
		return dst, nil
	}
	dst, err := d.chunk(dst, f.Data)
	var bad *jsonedit.Error
	if errors.As(err, &bad) {
		return dst, dialect.Malformed(err)
	}
	return dst, err
}

// End implements dialect.Decoder: the API has no event that ends a stream, so
// the finish of every candidate must have come.
func (d *decoder) End(dst []llm.Event) ([]llm.Event, error) {
	if !d.finished() {
		return dst, dialect.Truncated()
	}
	d.ended = true
	return dst, nil
}

// Done implements dialect.Decoder.
func (d *decoder) Done() bool { return d.ended || d.settled && d.finished() }

func (d *decoder) finished() bool {
	for _, c := range d.choices {
		if !c.finished {
			return false
		}
	}
	return len(d.choices) > 0 && (d.blocked() || len(d.choices) >= d.want)
}

// blocked reports whether the prompt was refused, which is told once for all
// candidates.
func (d *decoder) blocked() bool { return len(d.choices) == 1 && d.choices[0].blocked }

// Whole implements dialect.Decoder.
func (d *decoder) Whole(dst []llm.Event, body []byte) ([]llm.Event, error) {
	dst, err := d.chunk(dst, body)
	var bad *jsonedit.Error
	switch {
	case errors.As(err, &bad):
		return dst, dialect.NotAnAnswer(err)
	case err != nil:
		return dst, err
	case len(d.choices) == 0:
		return dst, dialect.NotAnAnswer(errNoCandidates)
	}
	if d.token != nil {
		return dst, nil
	}
	for _, c := range d.choices {
		if c.finished {
			continue
		}
		if dst, err = c.finish(dst, "", nil); err != nil {
			return dst, err
		}
	}
	d.ended = true
	return dst, nil
}

// chunk reads one GenerateContentResponse.
func (d *decoder) chunk(dst []llm.Event, data []byte) ([]llm.Event, error) {
	var object jsonedit.Object
	if err := jsonedit.Scan(data, noFields, &object); err != nil {
		return dst, err
	}
	var candidates, usage, feedback, model, id llm.Raw
	for name, value := range jsonedit.Members(data) {
		switch string(name) {
		case `"error"`:
			if llm.Raw(value).Given() {
				return dst, faultOf(0, value, 0).Error()
			}
		case `"candidates"`:
			candidates = value
		case `"usageMetadata"`:
			usage = value
		case `"promptFeedback"`:
			feedback = value
		case `"modelVersion"`:
			model = value
		case `"responseId"`:
			id = value
		}
	}
	if !d.started {
		d.started = true
		if id.IsText() {
			d.id = id.Clone()
		}
		dst = append(dst, llm.Start{ID: d.id, Model: text(model)})
	}
	known := d.use(usage)
	if known {
		dst = append(dst, d.total())
	}
	at := 0
	for candidate := range jsonedit.Elements(candidates) {
		var err error
		if dst, err = d.candidate(dst, at, candidate); err != nil {
			return dst, err
		}
		at++
	}
	if d.moreSearches() {
		dst = append(dst, d.total())
	}
	if reason := dialect.Text(feedback, "blockReason"); reason != "" && len(d.choices) == 0 {
		dst = d.promptBlocked(dst, reason)
	}
	if known && (d.finished() || d.token != nil) {
		d.settled = true
	}
	return dst, nil
}

// text is a value if it is a string.
func text(value llm.Raw) llm.Raw {
	if value.IsText() {
		return value
	}
	return nil
}

// promptBlocked tells that the prompt was refused: an answer, not a failure,
// as no other try would do better.
func (d *decoder) promptBlocked(dst []llm.Event, reason string) []llm.Event {
	c := d.choice(0)
	c.blocked = true
	dst = c.begin(dst, llm.MessageItem)
	dst = append(dst, llm.Delta{Item: c.open, Channel: llm.RefusalChannel, Data: llm.Quote("Prompt blocked: " + reason)})
	dst = c.end(dst)
	c.finished = true
	return append(dst, llm.Finish{Reason: llm.Filtered})
}

// candidate reads what one candidate has to add.
func (d *decoder) candidate(dst []llm.Event, at int, candidate []byte) ([]llm.Event, error) {
	var content, reason, logprobs, token llm.Raw
	index := int64(at)
	var grounding, citations llm.Raw
	for name, value := range jsonedit.Members(candidate) {
		switch string(name) {
		case `"index"`:
			index, _ = count(value)
		case `"content"`:
			content = value
		case `"finishReason"`:
			reason = text(value)
		case `"logprobsResult"`:
			logprobs = value
		case `"continuationToken"`:
			token = text(value)
		case `"groundingMetadata"`:
			grounding = value
		case `"citationMetadata"`:
			citations = value
		}
	}
	if index < 0 || index >= maxIndex {
		return dst, dialect.Malformed(errCandidate)
	}
	c := d.choice(int(index))
	if c.finished || d.token != nil {
		return dst, nil // the first finish counts
	}
	c.logprobs = appendLogprobs(c.logprobs, logprobs)
	for part := range jsonedit.Elements(dialect.Member(content, "parts")) {
		var err error
		if dst, err = c.part(dst, part); err != nil {
			return dst, err
		}
	}
	if grounding.Given() {
		c.grounding = grounding.Clone() // the last one is whole
		c.searched = queries(c.grounding)
	}
	if citations.Given() {
		c.citations = citations.Clone()
	}
	if reason.Blank() {
		return dst, nil
	}
	if reason.Text() == continued && d.pauses(token) {
		return c.pause(dst), nil
	}
	return c.finish(dst, reason.Text(), dialect.Member(candidate, "finishMessage"))
}

func (d *decoder) choice(index int) *choice {
	for _, c := range d.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{decoder: d, index: index, open: -1}
	d.choices = append(d.choices, c)
	return c
}

// callID makes an ID for a call that has none: the same for the same answer,
// another for every call of it.
func (d *decoder) callID(name, args []byte) llm.Raw {
	h := sha256.New()
	h.Write(d.id)
	if d.id == nil { // then only what is called tells one answer from the next
		h.Write(name)
		h.Write(args)
	}
	fmt.Fprintf(h, "/%d", d.calls)
	d.calls++
	return llm.Quote("call_" + hex.EncodeToString(h.Sum(nil)[:12]))
}

// count reads a whole number, which may be written as a string.
func count(value []byte) (int64, bool) {
	if s, ok := jsonedit.Unquote(value); ok {
		value = []byte(s)
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}
