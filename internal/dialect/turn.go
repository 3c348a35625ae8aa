package dialect

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Unchanged reports whether the items that a client gave back are still what
// it was shown of a turn, whose blocks are an array in Anthropic's form: the
// joined text, and the calls with their arguments compared as JSON. A client
// may have edited its history; then the items win over the sealed turn.
func Unchanged(blocks llm.Raw, items []llm.Item) bool {
	var text []byte
	var calls []shownCall
	for block := range jsonedit.Elements(blocks) {
		switch Text(block, "type") {
		case "text":
			text = append(text, Member(block, "text").Inner()...)
		case "tool_use":
			calls = append(calls, shownCall{Text(block, "id"), seal.Sorted(nil, Member(block, "input"))})
		}
	}
	var shown []byte
	for _, item := range items {
		switch item := item.(type) {
		case *llm.Message:
			for _, p := range item.Parts {
				if t, ok := p.(*llm.Text); ok {
					shown = append(shown, t.Text.Inner()...)
				}
			}
		case *llm.ToolCall:
			args, ok := item.Args.Object()
			if !ok || len(calls) == 0 || !calls[0].is(item.ID.Text(), args) {
				return false
			}
			calls = calls[1:]
		}
	}
	return len(calls) == 0 && bytes.Equal(text, shown)
}

type shownCall struct {
	id    string
	input []byte
}

func (c shownCall) is(id string, args llm.Raw) bool {
	return c.id == id && bytes.Equal(c.input, seal.Sorted(nil, args))
}
