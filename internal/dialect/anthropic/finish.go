package anthropic

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// reasons are what the words for why an answer ended mean.
var reasons = map[string]llm.Reason{
	"end_turn": llm.Stopped, "stop_sequence": llm.Stopped, "max_tokens": llm.LengthReached, "tool_use": llm.ToolsCalled,
	"pause_turn": llm.Paused, "refusal": llm.Refused, "model_context_window_exceeded": llm.WindowFull, "compaction": llm.Compacted,
}

// finish ends the answer, once. said is the upstream's word for why; "" when
// it said none.
func (r *reader) finish(said string, sequence, details llm.Raw) error {
	if r.finished || r.paused {
		return nil
	}
	for _, b := range r.blocks {
		if b.open {
			if err := r.close(b); err != nil {
				return err
			}
		}
	}
	if r.paused = reasons[said] == llm.Paused && r.resumable(); r.paused {
		return nil
	}
	r.closeText()
	for _, call := range r.waiting { // a turn that was paused
		r.tellServer(call, 0)
	}
	r.finished = true
	reason, known := reasons[said]
	if !known {
		var assumed llm.Notes
		assumed.Assume("stop_reason")
		r.add(llm.Note{Notes: assumed})
	}
	f := llm.Finish{Reason: r.reason(reason), Turn: r.turn()}
	if sequence.IsText() {
		f.StopSeq = sequence
	}
	if why := member(details, "explanation"); why.IsText() {
		f.Detail = why
	}
	r.add(f)
	return nil
}

// reason is why the answer ended, given that calls are there or not: a client
// runs them only when told so.
func (r *reader) reason(said llm.Reason) llm.Reason {
	switch {
	case r.calls > 0 && (said == llm.Stopped || said == llm.Paused):
		return llm.ToolsCalled
	case r.calls == 0 && said == llm.ToolsCalled:
		return llm.Stopped
	}
	return said
}

// turn is the whole turn where other dialects cannot show enough of it to put
// it together again: tools of the upstream, and several texts around thinking
// that is signed. It is nil for other turns, and for one that was cut within
// an input.
func (r *reader) turn() *llm.Opaque {
	texts, signed, needed := 0, false, false
	for _, b := range r.blocks {
		switch b.kind {
		case spokenText:
			if b.text != nil {
				texts++
			}
		case reasoned:
			signed = signed || !b.signature.Blank()
		case redacted:
			signed = true
		case serverUse, serverResult, kept:
			needed = true
		}
	}
	if !needed && (!signed || texts < 2) {
		return nil
	}
	data := llm.Raw{'['}
	for _, b := range r.blocks {
		if b.kind == skippedBlock {
			continue
		}
		if b.kind == clientUse || b.kind == serverUse {
			if _, ok := b.text.Object(); !ok {
				return nil
			}
		}
		if len(data) > 1 {
			data = append(data, ',')
		}
		data = seal.Sorted(data, b.whole())
	}
	turn := r.state(llm.WholeTurn, append(data, ']'))
	return &turn
}

// whole is the block as it is when all of it has come.
func (b *answerBlock) whole() llm.Raw {
	switch b.kind {
	case spokenText:
		return b.with("text", orEmpty(b.text), "citations", b.allCitations())
	case reasoned:
		return b.with("thinking", orEmpty(b.text), "signature", orEmpty(b.signature))
	case clientUse, serverUse:
		input, ok := b.text.Object()
		if b.text == nil || !ok {
			return b.raw
		}
		return b.with("input", input, "", nil)
	}
	return b.raw
}

func orEmpty(said llm.Raw) llm.Raw {
	if said == nil {
		return emptyText
	}
	return said
}

// allCitations are the citations of a text as an array; nil when they are as
// the block began.
func (b *answerBlock) allCitations() llm.Raw {
	if len(b.citations) == 0 {
		return nil
	}
	var w jsonedit.Writer
	w.BeginArray()
	for _, c := range b.citations {
		w.Raw(c)
	}
	w.EndArray()
	return w.Bytes()
}

// with is the block with two members set; one without a value stays as it is.
func (b *answerBlock) with(first string, one llm.Raw, second string, two llm.Raw) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	for quoted, value := range jsonedit.Members(b.raw) {
		switch name, _ := jsonedit.Unquote(quoted); {
		case name == first && one != nil, name == second && two != nil:
		default:
			w.RawName(quoted)
			w.Raw(value)
		}
	}
	w.SetRaw(first, one)
	if two != nil {
		w.SetRaw(second, two)
	}
	w.EndObject()
	return w.Bytes()
}
