package openaichat

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// decodedCall is a call as far as it came. It is told when its name is known,
// and complete when its choice is finished: never because what came of its
// arguments happens to be JSON.
type decodedCall struct {
	item   openItem
	kind   llm.CallKind
	name   string
	args   []byte // so far, as they are written
	opaque []llm.Opaque
	sealed bool // the signature is told
}

// fragment takes a piece of a call.
func (d *answerDecoder) fragment(c *decodedChoice, fragment llm.Raw) error {
	var id, index, function, extra llm.Raw
	kind, member := llm.FunctionCall, "arguments"
	for quoted, v := range jsonedit.Members(fragment) {
		switch string(quoted) {
		case `"id"`:
			if llm.Raw(v).IsText() && !llm.Raw(v).Blank() {
				id = v
			}
		case `"index"`:
			if jsonedit.KindOf(v) != jsonedit.KindNull {
				index = v
			}
		case `"function"`:
			function = v
		case `"custom"`:
			if jsonedit.KindOf(v) == jsonedit.KindObject {
				function, kind, member = v, llm.CustomCall, "input"
			}
		case `"extra_content"`:
			extra = v
		}
	}
	name := dialect.Text(function, "name")
	at, first := c.table.place(string(index), id, name)
	if first {
		c.calls = append(c.calls, &decodedCall{kind: kind})
	}
	call := c.calls[at]
	if call.name == "" {
		call.name = name
	}
	if s := signatureOf(extra); s != nil && len(call.opaque) == 0 {
		call.opaque = []llm.Opaque{{Kind: llm.ThoughtSignature, Vendor: google, Data: s.Clone()}}
	}
	return d.grow(c, at, dialect.Member(function, member))
}

// oldCall takes a piece of the one call that the old form knows.
func (d *answerDecoder) oldCall(c *decodedChoice, function llm.Raw) error {
	at, first := c.table.place("", nil, "")
	if first {
		c.calls = append(c.calls, &decodedCall{})
	}
	if c.calls[at].name == "" {
		c.calls[at].name = dialect.Text(function, "name")
	}
	return d.grow(c, at, dialect.Member(function, "arguments"))
}

// grow takes a piece of a call's arguments: a text, or the object itself.
func (d *answerDecoder) grow(c *decodedChoice, at int, piece llm.Raw) error {
	call := c.calls[at]
	switch piece.Kind() {
	case jsonedit.KindObject, jsonedit.KindArray:
		piece = llm.QuoteJSON(piece)
	case jsonedit.KindString, jsonedit.KindInvalid:
	default:
		return dialect.Malformed(nil)
	}
	if call.repeats(piece) {
		piece = nil
	}
	if call.name == "" { // nobody can be told of it yet
		call.args = append(call.args, piece.Inner()...)
		return nil
	}
	if !call.item.is {
		d.openCall(c, at)
		piece = append(append(append(make(llm.Raw, 0, len(call.args)+len(piece)+2), '"'), call.args...), orEmpty(piece).Inner()...)
		piece, call.args = append(piece, '"'), call.args[:0]
	}
	if len(call.opaque) > 0 && !call.sealed {
		call.sealed = true
		d.tell(llm.Seal{Item: call.item.number, Opaque: call.opaque[0]})
	}
	if piece.Blank() {
		return nil
	}
	call.args = append(call.args, piece.Inner()...)
	d.tell(llm.Delta{Item: call.item.number, Channel: llm.ArgsChannel, Data: piece})
	return nil
}

// repeats reports whether a piece is all over again what came already: some
// servers end a call with the whole of it.
func (call *decodedCall) repeats(piece llm.Raw) bool {
	said := piece.Inner()
	if len(said) <= len("{}") || !bytes.Equal(said, call.args) {
		return false
	}
	_, whole := piece.Object()
	return whole
}

func (d *answerDecoder) openCall(c *decodedChoice, at int) {
	d.untag(c)
	d.close(&c.reasoning)
	d.close(&c.message)
	call := c.calls[at]
	id := llm.Raw(c.table[at].id)
	if id.Blank() || c.table[at].twin {
		id = llm.Quote(madeID(d.id.Text(), c.index, at))
	}
	call.sealed = len(call.opaque) > 0
	call.item = d.open(llm.Open{Choice: c.index, Kind: llm.CallItem, Block: d.items, CallID: id, Name: call.name, Call: call.kind, Opaque: call.opaque})
}

// complete tells what a call lacks at the end: arguments that are none are an
// empty object.
func (d *answerDecoder) complete(c *decodedChoice, at int) error {
	call := c.calls[at]
	switch {
	case call.name == "" && len(call.args) == 0:
		return nil
	case call.name == "":
		return dialect.Malformed(errNoName)
	case len(call.args) == 0:
		d.tell(llm.Delta{Item: call.item.number, Channel: llm.ArgsChannel, Data: llm.Raw(`"{}"`)})
	}
	return nil
}
