package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// openItem is an item of an answer while it is told.
type openItem struct {
	kind   llm.ItemKind
	call   llm.CallKind
	id     string
	index  int // -1 until it is told of
	callID llm.Raw
	name   string
	space  string
	phase  llm.Raw
	block  int
	form   servedForm // of an item that is told while it goes on

	content, summary []*toldPart
	current          *toldPart
	args             llm.Raw // without the closing quote
	opaque           []llm.Opaque
	pictures         []*llm.Media // which come as items of their own
}

// partForm is a kind of part, and the events that tell of it.
type partForm struct {
	kind, member, index        string
	added, delta, done, closed string
}

var (
	outputText    = &partForm{"output_text", "text", "content_index", "response.content_part.added", "response.output_text.delta", "response.output_text.done", "response.content_part.done"}
	refusalPart   = &partForm{"refusal", "refusal", "content_index", "response.content_part.added", "response.refusal.delta", "response.refusal.done", "response.content_part.done"}
	reasoningText = &partForm{"reasoning_text", "text", "content_index", "response.content_part.added", "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part.done"}
	summaryText   = &partForm{"summary_text", "text", "summary_index", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part.done"}
)

// toldPart is a part of an item while it is told.
type toldPart struct {
	form        *partForm
	number      int // of the upstream's
	at          int
	text        llm.Raw // without the closing quote
	annotations [][]byte
	logprobs    []llm.Raw
}

var noElements = []byte("[]")

// grown is a text, without its closing quote, and a piece more of it.
func grown(text, piece llm.Raw) llm.Raw {
	if text == nil {
		text = llm.Raw{'"'}
	}
	return append(text, piece.Inner()...)
}

// closed is a grown text with its quote.
func closed(text llm.Raw) llm.Raw {
	if text == nil {
		return llm.Raw(`""`)
	}
	return append(text, '"')
}

func (p *toldPart) grow(piece llm.Raw) { p.text = grown(p.text, piece) }
func (p *toldPart) whole() llm.Raw     { return closed(p.text) }

func (p *toldPart) write(w *jsonedit.Writer) {
	w.BeginObject()
	w.SetText("type", p.form.kind)
	w.SetRaw(p.form.member, p.whole())
	if p.form == outputText {
		w.Array("annotations")
		for _, note := range p.annotations {
			w.Raw(note)
		}
		w.EndArray()
		w.Name("logprobs")
		writeList(w, p.logprobs)
	}
	w.EndObject()
}

func writeList(w *jsonedit.Writer, list []llm.Raw) {
	w.BeginArray()
	for _, v := range list {
		w.Raw(v)
	}
	w.EndArray()
}

func writeAnnotation(w *jsonedit.Writer, note llm.Annotation) {
	title := note.Title
	if !title.IsText() {
		title = llm.Raw(`""`)
	}
	w.BeginObject()
	w.SetText("type", "url_citation")
	w.SetRaw("url", note.URL)
	w.SetRaw("title", title)
	w.SetInt("start_index", int64(note.Start))
	w.SetInt("end_index", int64(note.End))
	w.EndObject()
}

// prefix is that of the item's ID.
func (it *openItem) prefix() string {
	switch it.kind {
	case llm.MessageItem:
		return "msg_"
	case llm.ReasoningItem:
		return "rs_"
	}
	return itemNames[it.call].prefix
}

// list is where parts of a form stand.
func (it *openItem) list(form *partForm) *[]*toldPart {
	if form == summaryText {
		return &it.summary
	}
	return &it.content
}

// keep keeps opaque state beyond the frame that it came from.
func (it *openItem) keep(o llm.Opaque) {
	o.Data, o.For = o.Data.Clone(), o.For.Clone()
	it.opaque = append(it.opaque, o)
}

// cut reports whether the end of an answer can have cut the item. A call whose
// arguments are an object is whole.
func (it *openItem) cut() bool {
	if it == nil {
		return false
	}
	if it.kind != llm.CallItem || it.call == llm.CustomCall {
		return true
	}
	_, whole := closed(it.args).Object()
	return !whole || it.args == nil
}

// write writes the item as far as it has come. sealed is the encrypted content
// of reasoning; "" is none, and then there is no such member: null fails most
// of Open Responses' tests.
func (it *openItem) write(w *jsonedit.Writer, status, sealed string) {
	w.BeginObject()
	w.SetText("id", it.id)
	switch it.kind {
	case llm.ReasoningItem:
		w.SetText("type", "reasoning")
		w.Name("summary")
		it.writeParts(w, it.summary)
		if len(it.content) > 0 {
			w.Name("content")
			it.writeParts(w, it.content)
		}
		if sealed != "" {
			w.SetText("encrypted_content", sealed)
		}
	case llm.MessageItem:
		w.SetText("type", "message")
		w.SetText("role", "assistant")
		if it.phase.IsText() {
			w.SetRaw("phase", it.phase)
		}
		w.Name("content")
		it.writeParts(w, it.content)
	case llm.CallItem:
		w.SetText("type", itemNames[it.call].call)
		writeCall(w, it.call, it.callID, it.name, it.space, closed(it.args))
	}
	w.SetText("status", status)
	w.EndObject()
}

func (it *openItem) writeParts(w *jsonedit.Writer, parts []*toldPart) {
	w.BeginArray()
	for _, p := range parts {
		p.write(w)
	}
	w.EndArray()
}

// thinking is all the text of reasoning.
func (it *openItem) thinking() llm.Raw {
	var texts []llm.Raw
	for _, list := range [...][]*toldPart{it.content, it.summary} {
		for _, p := range list {
			texts = append(texts, p.whole())
		}
	}
	if len(texts) == 0 {
		return llm.Raw(`""`)
	}
	return llm.Concat("", texts...)
}

// seals are the encrypted contents that carry an item's opaque state, when the
// client takes them back.
func (a *answer) seals(it *openItem, opaque []llm.Opaque) []string {
	if a.ask.Request == nil || !a.ask.Request.Reasoning.Sealed {
		return nil
	}
	var out []string
	for _, o := range opaque {
		var origin []byte
		if a.ask.Origin != "" {
			origin = llm.Quote(a.ask.Origin)
		}
		if kind, fields := it.fields(o); kind != "" {
			out = append(out, a.ask.Seal.Seal(kind, append(fields, seal.Field{Name: "o", Value: origin})...))
		}
	}
	return out
}

// fields are what is sealed of opaque state.
func (it *openItem) fields(o llm.Opaque) (kind string, fields []seal.Field) {
	switch o.Kind {
	case llm.Signature:
		return sealThinking, []seal.Field{{Name: "t", Value: it.thinking()}, {Name: "s", Value: o.Data}}
	case llm.Redacted:
		return sealRedacted, []seal.Field{{Name: "d", Value: o.Data}}
	case llm.Encrypted:
		return sealItem, []seal.Field{{Name: "e", Value: o.Data}}
	case llm.WholeTurn:
		return sealTurn, []seal.Field{{Name: "b", Value: o.Data}}
	case llm.PlainMark:
		return sealPlain, nil
	case llm.ThoughtSignature:
		call := o.For
		if it.kind == llm.CallItem {
			call = it.callID
		}
		if call.IsText() {
			return sealCall, []seal.Field{{Name: "c", Value: call}, {Name: "s", Value: o.Data}}
		}
		return sealText, []seal.Field{{Name: "i", Value: strconv.AppendInt(nil, int64(it.block), 10)}, {Name: "s", Value: o.Data}}
	}
	return "", nil
}
