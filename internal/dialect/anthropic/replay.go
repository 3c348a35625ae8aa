package anthropic

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Replay implements dialect.Dialect: the events that would have led to the
// message, each text in one delta.
func (d Dialect) Replay(dst, body []byte, req *dialect.Request) []byte {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, messageFields, &object); err != nil {
		return dst // cannot be: Answer accepted it
	}
	f := frames{}
	f.begin("message_start")
	f.SetRaw("message", jsonedit.Edited(body, &object, jsonedit.Set(messageContent, []byte("[]")),
		jsonedit.Set(messageStopReason, openai.Null), jsonedit.Set(messageStopSequence, openai.Null), jsonedit.Remove(messageStopDetails)))
	f.end()
	index := int64(0)
	for block := range jsonedit.Elements(object.Value(messageContent)) {
		f.replayBlock(index, block)
		index++
	}
	f.begin("message_delta")
	f.Object("delta")
	f.SetRaw("stop_reason", openai.OrElse(object.Value(messageStopReason), "null"))
	f.SetRaw("stop_sequence", openai.OrElse(object.Value(messageStopSequence), "null"))
	f.SetRaw("stop_details", object.Value(messageStopDetails))
	f.EndObject()
	f.SetRaw("usage", object.Value(messageUsage))
	f.end()
	f.begin("message_stop")
	f.end()
	return dialect.Refollow(dst, f.dst, d.Follow(req))
}

// The members of a block that come in deltas.
const (
	blockType = iota
	blockText
	blockThinking
	blockSignature
	blockInput
	blockCitations
)

var blockFields = jsonedit.NewFields("type", "text", "thinking", "signature", "input", "citations")

var (
	emptyText   = []byte(`""`)
	emptyObject = []byte("{}")
	emptyArray  = []byte("[]")
)

// replayBlock tells one block: what comes in deltas is taken out of its
// beginning.
func (f *frames) replayBlock(index int64, block []byte) {
	var o jsonedit.Object
	if jsonedit.Scan(block, blockFields, &o) != nil {
		return
	}
	kind := text(o.Value(blockType))
	begun := block
	switch kind {
	case "text":
		begun = jsonedit.Edited(block, &o, jsonedit.Set(blockText, emptyText))
		if given(o.Value(blockCitations)) {
			begun = jsonedit.Edited(block, &o, jsonedit.Set(blockText, emptyText), jsonedit.Set(blockCitations, emptyArray))
		}
	case "thinking":
		begun = jsonedit.Edited(block, &o, jsonedit.Set(blockThinking, emptyText), jsonedit.Set(blockSignature, emptyText))
	case "tool_use", "server_tool_use", "mcp_tool_use":
		begun = jsonedit.Edited(block, &o, jsonedit.Set(blockInput, emptyObject))
	}
	f.start(index, begun)
	switch kind {
	case "text":
		for citation := range jsonedit.Elements(o.Value(blockCitations)) {
			f.delta(index, "citations_delta", "citation", citation)
		}
		f.delta(index, "text_delta", "text", o.Value(blockText))
	case "thinking":
		f.delta(index, "thinking_delta", "thinking", o.Value(blockThinking))
		f.delta(index, "signature_delta", "signature", o.Value(blockSignature))
	case "tool_use", "server_tool_use", "mcp_tool_use":
		if input := o.Value(blockInput); given(input) {
			f.delta(index, "input_json_delta", "partial_json", jsonedit.AppendQuote(nil, string(jsonedit.Compact(nil, input))))
		}
	}
	f.stop(index)
}
