package anthropic

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// The members of a request that goes on with a paused turn.
const (
	resumeMessages = iota
	resumeContainer
)

var resumeFields = jsonedit.NewFields("messages", "container")

// runsIn takes over the container that the upstream's tools run in.
func (r *reader) runsIn(object llm.Raw) {
	if id := member(member(object, "container"), "id"); id.IsText() {
		r.container = id.Clone()
	}
}

// resumable reports whether the turn can be given back as it came. A turn with
// calls of the client's tools is the client's to go on with.
func (r *reader) resumable() bool {
	if r.rounds == 0 || r.calls > 0 || len(r.blocks) == 0 {
		return false
	}
	for _, b := range r.blocks {
		if b.lost {
			return false
		}
		if b.kind != serverUse {
			continue
		}
		if _, ok := b.text.Object(); !ok {
			return false
		}
	}
	return true
}

// Resume implements dialect.Resumer: the turn goes back as it came.
func (r *reader) Resume(bool) []byte {
	var request jsonedit.Object
	if !r.paused || !r.done || jsonedit.Scan(r.body, resumeFields, &request) != nil {
		return nil
	}
	messages := request.Value(resumeMessages)
	messages = append(bytes.Clone(messages[:len(messages)-1]), `,{"role":"assistant","content":[`...)
	first := true
	for _, b := range r.blocks {
		whole := b.whole()
		if b.kind == spokenText && member(whole, "text").Blank() {
			continue // may come, and may not be sent
		}
		if !first {
			messages = append(messages, ',')
		}
		first = false
		messages = append(messages, whole...)
	}
	messages = append(messages, "]}]"...)
	edits := request.Edits(nil, jsonedit.Set(resumeMessages, messages), jsonedit.Set(resumeContainer, r.container))
	segments, _ := jsonedit.Splice(nil, r.body, edits)

	r.spent, r.counts = r.spent.Plus(r.counts.usage()), counts{known: r.counts.known}
	r.paused, r.done, r.resumed = false, false, true
	r.rounds--
	r.base = len(r.blocks)
	return bytes.Join(segments, nil)
}
