package openairesponses

import (
	"bytes"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Where no upstream compacts a conversation, its model is asked for a summary,
// which is sealed: any model reads it on the next turn.

// summaryWish is what the model is asked for, after all that was said.
const summaryWish = "The conversation above is about to be cut off here. Write down what whoever goes on with it needs to know, and nothing else: " +
	"what was asked for and why; what was decided, with the reasons; what was done, with the names of files, commands, identifiers and values as they are; " +
	"what tools answered that still matters; what is open, and what was to come next. Leave out greetings and what led nowhere. Write the summary alone, call no tools."

// summaryHead introduces the summary where it stands for the conversation.
const summaryHead = "This conversation was longer. What came before is summed up here:\n\n"

// sealSummary is the kind under which a summary is sealed.
const sealSummary = "limen.compaction"

// Compacts implements dialect.Stateful.
func (Dialect) Compacts(body []byte, req *dialect.Request) bool {
	if !bytes.Contains(body, []byte(`"compaction_trigger"`)) {
		return false
	}
	var last []byte
	for item := range jsonedit.Elements(req.Object.Value(fieldInput)) {
		last = item
	}
	return dialect.Text(last, "type") == "compaction_trigger"
}

var summaryFields = jsonedit.NewFields("input", "stream", "tool_choice", "text", "max_output_tokens", "max_tool_calls", "context_management")

const (
	summaryInput = iota
	summaryStream
	summaryChoice
	summaryForm
	summaryLimit
	summaryCalls
	summaryContext
)

// Summarize implements dialect.Stateful. The tools stay: some upstreams take no
// calls in a history without them.
func (Dialect) Summarize(dst, body []byte) []byte {
	var o jsonedit.Object
	if err := jsonedit.Scan(body, summaryFields, &o); err != nil {
		return append(dst, body...) // cannot be: Inspect accepted it
	}
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	input := llm.Raw(o.Value(summaryInput))
	if input.IsText() {
		writeUser(w, input)
	}
	for item := range jsonedit.Elements(input) {
		if dialect.Text(item, "type") != "compaction_trigger" {
			w.Raw(item)
		}
	}
	writeUser(w, llm.Quote(summaryWish))
	w.EndArray()
	changes := []jsonedit.Change{
		jsonedit.Set(summaryInput, w.Bytes()), jsonedit.Remove(summaryStream), jsonedit.Remove(summaryForm),
		jsonedit.Remove(summaryLimit), jsonedit.Remove(summaryCalls), jsonedit.Remove(summaryContext),
	}
	if tools, ok := jsonedit.Get(body, "tools"); ok && jsonedit.KindOf(tools) == jsonedit.KindArray && string(tools) != "[]" {
		changes = append(changes, jsonedit.Set(summaryChoice, []byte(`"none"`)))
	} else {
		changes = append(changes, jsonedit.Remove(summaryChoice))
	}
	return append(dst, jsonedit.Edited(body, &o, changes...)...)
}

func writeUser(w *jsonedit.Writer, text llm.Raw) {
	w.BeginObject()
	w.SetText("type", "message")
	w.SetText("role", "user")
	w.Array("content")
	w.BeginObject()
	w.SetText("type", "input_text")
	w.SetRaw("text", text)
	w.EndObject()
	w.EndArray()
	w.EndObject()
}

// Compacted implements dialect.Stateful.
func (Dialect) Compacted(response []byte, id string, key seal.Key) (item []byte, err error) {
	var texts []llm.Raw
	for out := range jsonedit.Elements(dialect.Member(response, "output")) {
		for part := range jsonedit.Elements(dialect.Member(out, "content")) {
			if dialect.Text(part, "type") == "output_text" {
				texts = append(texts, dialect.Member(part, "text"))
			}
		}
	}
	summary := llm.Concat("", texts...)
	if summary.Blank() {
		return nil, &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The model was asked to sum the conversation up, and gave no summary. Try again, or send a shorter history in 'input'."}
	}
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("id", "cmp_"+id)
	w.SetText("type", "compaction")
	w.SetText("encrypted_content", key.Seal(sealSummary, seal.Field{Name: "t", Value: llm.Concat("", llm.Quote(summaryHead), summary)}))
	w.EndObject()
	return w.Bytes(), nil
}

// WithOutput implements dialect.Stateful.
func (Dialect) WithOutput(response, item []byte) []byte {
	var o jsonedit.Object
	if err := jsonedit.Scan(response, responseFields, &o); err != nil {
		return response
	}
	return jsonedit.Edited(response, &o, jsonedit.Set(responseOutput, bytes.Join([][]byte{{'['}, item, {']'}}, nil)))
}

// retained is how much of what users said a compaction keeps, in bytes.
const retained = 64 << 10

// Compaction implements dialect.Stateful: what users said last stays as it is,
// the rest is in the item.
func (Dialect) Compaction(body, response, item []byte, id string, created int64) []byte {
	var said [][]byte
	for in := range jsonedit.Elements(dialect.Member(body, "input")) {
		if dialect.Text(in, "type") == "message" && dialect.Text(in, "role") == "user" {
			said = append(said, in)
		}
	}
	first := len(said)
	for size := 0; first > 0 && size+len(said[first-1]) <= retained; first-- {
		size += len(said[first-1])
	}
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("id", "resp_"+id)
	w.SetText("object", "response.compaction")
	w.SetInt("created_at", created)
	w.Array("output")
	for _, in := range said[first:] {
		w.Raw(in)
	}
	w.Raw(item)
	w.EndArray()
	w.SetRaw("usage", dialect.Member(response, "usage"))
	w.EndObject()
	return w.Bytes()
}
