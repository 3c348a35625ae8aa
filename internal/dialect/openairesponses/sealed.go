package openairesponses

import (
	"bytes"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Kinds of seals. What is before the dot reads what is in them.
const (
	sealThinking = "anthropic.thinking"
	sealRedacted = "anthropic.redacted"
	sealTurn     = "anthropic.turn"
	sealItem     = "openai.item"
	sealCall     = "google.call"
	sealText     = "google.text"
	sealPlain    = "plain"
)

// sealed is a signature that came in a reasoning item and belongs to another
// one: to the call with its ID, or to a text beside it.
type sealed struct {
	at     int // in the items, where the reasoning item stood
	opaque llm.Opaque
}

// nativeVendor made the encrypted content that is not sealed.
const nativeVendor = "openai"

// reasoning reads a reasoning item, whose encrypted content is the upstream's
// own or has been sealed here for another dialect's state.
func (d *requestDecoder) reasoning(i int, it *rawItem) error {
	if it.encrypted != nil && !it.encrypted.IsText() {
		return missingText(itemPath(i, ".encrypted_content"), it.encrypted)
	}
	r := &llm.Reasoning{Pos: llm.Pos{Item: i, Part: -1}, ID: it.id, Texts: thoughts(it)}
	switch {
	case it.encrypted.Blank():
	case !seal.Is(string(it.encrypted.Inner())):
		r.Opaque = []llm.Opaque{{Kind: llm.Encrypted, Vendor: nativeVendor, Data: it.encrypted}}
	default:
		s, ok := d.key.Open(it.encrypted.Text())
		if !ok {
			d.req.Notes.Drop(includeReasoning) // not sealed by this gateway
			break
		}
		if d.unseal(r, s) {
			return nil
		}
	}
	if len(r.Texts) > 0 || len(r.Opaque) > 0 {
		d.add(r)
	}
	return nil
}

func thoughts(it *rawItem) []llm.Thought {
	var out []llm.Thought
	for _, list := range [...]struct {
		parts   llm.Raw
		summary bool
	}{{it.summary, true}, {it.content, false}} {
		for part := range jsonedit.Elements(list.parts) {
			if text := dialect.Member(part, "text"); text.IsText() && !text.Blank() {
				out = append(out, llm.Thought{Text: text, Summary: list.summary})
			}
		}
	}
	return out
}

// unseal puts what was sealed where it belongs. It reports true when nothing
// is left of the reasoning item.
func (d *requestDecoder) unseal(r *llm.Reasoning, s seal.Sealed) bool {
	vendor, _, _ := strings.Cut(s.Kind, ".")
	o := llm.Opaque{Vendor: vendor, Origin: llm.Raw(s.Get("o")).Text()}
	switch s.Kind {
	case sealThinking:
		text := llm.Raw(s.Get("t"))
		if !text.IsText() {
			text = llm.Raw(`""`)
		}
		r.Texts = []llm.Thought{{Text: text}} // which is what was signed, whatever the client made of the summary
		o.Kind, o.Data = llm.Signature, s.Get("s")
	case sealRedacted:
		o.Kind, o.Data = llm.Redacted, s.Get("d")
	case sealItem:
		if id := llm.Raw(s.Get("id")); id.IsText() {
			r.ID = id
		}
		o.Kind, o.Data = llm.Encrypted, s.Get("e")
	case sealCall, sealText:
		o.Kind, o.Data, o.For = llm.ThoughtSignature, s.Get("s"), s.Get("c")
		d.seals = append(d.seals, sealed{len(d.req.Items), o})
		return len(r.Texts) == 0
	case sealPlain:
		o.Kind = llm.PlainMark
	case sealTurn:
		o.Kind, o.Data = llm.WholeTurn, s.Get("b")
		return d.wholeTurn(o, r)
	default:
		d.req.Notes.Drop(includeReasoning)
		return false
	}
	if o.Data == nil && o.Kind != llm.PlainMark {
		d.req.Notes.Drop(includeReasoning)
		return false
	}
	r.Opaque = []llm.Opaque{o}
	return false
}

// wholeTurn replaces the items since the last ones of the user's by the turn
// that was sealed with them, unless the client has changed them.
func (d *requestDecoder) wholeTurn(o llm.Opaque, r *llm.Reasoning) bool {
	items := d.req.Items
	first := len(items)
	for first > 0 && ofAssistant(items[first-1]) {
		first--
	}
	if len(r.Texts) > 0 || !dialect.Unchanged(o.Data, items[first:]) {
		return true
	}
	pos := r.Pos
	if first < len(items) {
		pos.Item = items[first].Turn()
	}
	turn := &llm.NativeTurn{Pos: pos, Opaque: o, Items: slices.Clone(items[first:])}
	d.req.Items = append(items[:first], turn)
	return true
}

// ofAssistant reports whether an item is the model's own.
func ofAssistant(item llm.Item) bool {
	switch item := item.(type) {
	case *llm.Message:
		return item.Role == llm.Assistant
	case *llm.Reasoning, *llm.ToolCall, *llm.ServerCall:
		return true
	}
	return false
}

// attachSeals gives signatures to the calls and texts that they belong to.
// What has no such place any more is let go: it signs nothing.
func (d *requestDecoder) attachSeals() {
	for _, s := range d.seals {
		if s.opaque.For != nil {
			if opaque := d.stateOf(s.opaque.For); opaque != nil {
				*opaque = append(*opaque, s.opaque)
			}
			continue
		}
		if text := d.textBeside(s.at); text != nil {
			text.Opaque = append(text.Opaque, s.opaque)
		}
	}
}

// stateOf is the state of a call with that ID, or of one that an item with it
// stands for; nil when there is neither.
func (d *requestDecoder) stateOf(id llm.Raw) *[]llm.Opaque {
	for _, item := range d.req.Items {
		switch call := item.(type) {
		case *llm.ToolCall:
			if bytes.Equal(call.ID, id) {
				return &call.Opaque
			}
		case *llm.ServerCall:
			if bytes.Equal(call.ID, id) {
				return &call.Opaque
			}
		}
	}
	return nil
}

// textBeside is the text that a signature belongs to: that of the message
// after it or, for a signature that came last in a stream, before it.
func (d *requestDecoder) textBeside(at int) *llm.Text {
	items := d.req.Items
	for i := at; i < len(items) && ofAssistant(items[i]); i++ {
		if m, ok := items[i].(*llm.Message); ok {
			return textOf(m, false)
		}
		if _, thinking := items[i].(*llm.Reasoning); !thinking {
			break
		}
	}
	for i := min(at, len(items)) - 1; i >= 0 && ofAssistant(items[i]); i-- {
		if m, ok := items[i].(*llm.Message); ok {
			return textOf(m, true)
		}
	}
	return nil
}

// textOf is the first or the last text of a message.
func textOf(m *llm.Message, last bool) (found *llm.Text) {
	for _, p := range m.Parts {
		if t, ok := p.(*llm.Text); ok {
			if found = t; !last {
				return found
			}
		}
	}
	return found
}

// compaction reads what stands for a history. Only what was sealed here can
// be read by another upstream.
func (d *requestDecoder) compaction(i int, it *rawItem) error {
	at := itemPath(i, ".encrypted_content")
	if !it.encrypted.IsText() {
		return missingText(at, it.encrypted)
	}
	s, ok := d.key.Open(it.encrypted.Text())
	if !ok {
		return llm.InvalidParam("invalid_value", at, "The model's upstream cannot read the 'encrypted_content' of this compaction: send the history itself in 'input'.")
	}
	c := &llm.Compaction{Pos: llm.Pos{Item: i, Part: -1}, ID: it.id, Text: s.Get("t")}
	if data := s.Get("e"); data != nil {
		vendor, _, _ := strings.Cut(s.Kind, ".")
		c.Opaque = []llm.Opaque{{Kind: llm.Encrypted, Vendor: vendor, Origin: llm.Raw(s.Get("o")).Text(), Data: data}}
	}
	d.add(c)
	return nil
}
