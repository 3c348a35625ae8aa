package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/sse"
)

// Replay implements dialect.Dialect: the events that would have led to the
// response, each text in one delta. A follower mends them as it would the
// stream.
func (d Dialect) Replay(dst, body []byte, req *dialect.Request) []byte {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, responseFields, &object); err != nil {
		return dst // cannot be: Answer accepted it
	}
	var r replay
	begun := jsonedit.Edited(body, &object,
		jsonedit.Set(responseStatus, []byte(`"in_progress"`)), jsonedit.Set(responseOutput, []byte("[]")),
		jsonedit.Set(responseUsage, openai.Null), jsonedit.Set(responseCompletedAt, openai.Null))
	r.event("response.created", toldMember{"response", begun})
	r.event("response.in_progress", toldMember{"response", begun})
	index := 0
	for item := range jsonedit.Elements(object.Value(responseOutput)) {
		r.item(item, strconv.AppendInt(nil, int64(index), 10))
		index++
	}
	terminal := "response.completed"
	if status, _ := jsonedit.Unquote(object.Value(responseStatus)); status == "incomplete" {
		terminal = "response.incomplete"
	}
	r.event(terminal, toldMember{"response", body})
	return dialect.Refollow(dst, r.dst, d.Follow(req))
}

// replay writes events with growing sequence numbers.
type replay struct {
	dst      []byte
	sequence int64
}

// toldMember is a member of an event; value is JSON.
type toldMember struct {
	name  string
	value []byte
}

// event appends an event.
func (r *replay) event(kind string, members ...toldMember) {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("type", kind)
	w.SetInt("sequence_number", r.sequence)
	r.sequence++
	for _, m := range members {
		w.SetRaw(m.name, m.value)
	}
	w.EndObject()
	r.dst = sse.Append(r.dst, []byte(kind), w.Bytes())
}

var itemFields = jsonedit.NewFields("type", "id", "status", "content", "arguments", "summary", "input", "name")

const (
	itemType = iota
	itemID
	itemStatus
	itemContent
	itemArguments
	itemSummary
	itemInput
	itemName
)

func (r *replay) item(item, index []byte) {
	var o jsonedit.Object
	if err := jsonedit.Scan(item, itemFields, &o); err != nil {
		return
	}
	id := openai.OrElse(o.Value(itemID), `""`)
	var open []jsonedit.Change
	if o.Has(itemStatus) {
		open = append(open, jsonedit.Set(itemStatus, []byte(`"in_progress"`)))
	}
	kind, _ := jsonedit.Unquote(o.Value(itemType))
	switch kind {
	case "message":
		r.added(item, &o, index, append(open, jsonedit.Set(itemContent, []byte("[]"))))
		r.parts(o.Value(itemContent), id, index)
	case "function_call":
		r.added(item, &o, index, append(open, jsonedit.Set(itemArguments, []byte(`""`))))
		r.whole("response.function_call_arguments", "arguments", o.Value(itemArguments), id, index, toldMember{"name", openai.OrElse(o.Value(itemName), `""`)})
	case "custom_tool_call":
		r.added(item, &o, index, append(open, jsonedit.Set(itemInput, []byte(`""`))))
		r.whole("response.custom_tool_call_input", "input", o.Value(itemInput), id, index)
	case "reasoning":
		r.added(item, &o, index, append(open, jsonedit.Set(itemSummary, []byte("[]"))))
		r.summary(o.Value(itemSummary), id, index)
	default:
		r.added(item, &o, index, nil)
	}
	r.event("response.output_item.done", toldMember{"output_index", index}, toldMember{"item", item})
}

func (r *replay) added(item []byte, o *jsonedit.Object, index []byte, changes []jsonedit.Change) {
	r.event("response.output_item.added", toldMember{"output_index", index}, toldMember{"item", jsonedit.Edited(item, o, changes...)})
}

// whole sends a value as one delta and as done.
func (r *replay) whole(name, member string, value, id, index []byte, more ...toldMember) {
	value = openai.OrElse(value, `""`)
	r.event(name+".delta", toldMember{"item_id", id}, toldMember{"output_index", index}, toldMember{"delta", value})
	r.event(name+".done", append([]toldMember{{"item_id", id}, {"output_index", index}, {member, value}}, more...)...)
}

var partFields = jsonedit.NewFields("type", "text", "refusal", "logprobs", "annotations")

const (
	partType = iota
	partText
	partRefusal
	partLogprobs
	partAnnotations
)

func (r *replay) parts(content, id, index []byte) {
	n := 0
	for part := range jsonedit.Elements(content) {
		at := strconv.AppendInt(nil, int64(n), 10)
		n++
		var o jsonedit.Object
		if err := jsonedit.Scan(part, partFields, &o); err != nil {
			continue
		}
		where := []toldMember{{"item_id", id}, {"output_index", index}, {"content_index", at}}
		with := func(more ...toldMember) []toldMember { return append(where[:len(where):len(where)], more...) }
		kind, _ := jsonedit.Unquote(o.Value(partType))
		switch kind {
		case "output_text":
			empty := jsonedit.Edited(part, &o, jsonedit.Set(partText, []byte(`""`)))
			if o.Has(partAnnotations) {
				empty = jsonedit.Edited(part, &o, jsonedit.Set(partText, []byte(`""`)), jsonedit.Set(partAnnotations, []byte("[]")))
			}
			logprobs := openai.OrElse(o.Value(partLogprobs), "[]")
			r.event("response.content_part.added", with(toldMember{"part", empty})...)
			r.event("response.output_text.delta", with(toldMember{"delta", openai.OrElse(o.Value(partText), `""`)}, toldMember{"logprobs", logprobs})...)
			r.event("response.output_text.done", with(toldMember{"text", openai.OrElse(o.Value(partText), `""`)}, toldMember{"logprobs", logprobs})...)
		case "refusal":
			r.event("response.content_part.added", with(toldMember{"part", jsonedit.Edited(part, &o, jsonedit.Set(partRefusal, []byte(`""`)))})...)
			r.event("response.refusal.delta", with(toldMember{"delta", openai.OrElse(o.Value(partRefusal), `""`)})...)
			r.event("response.refusal.done", with(toldMember{"refusal", openai.OrElse(o.Value(partRefusal), `""`)})...)
		default:
			r.event("response.content_part.added", with(toldMember{"part", part})...)
		}
		r.event("response.content_part.done", with(toldMember{"part", part})...)
	}
}

func (r *replay) summary(parts, id, index []byte) {
	n := 0
	for part := range jsonedit.Elements(parts) {
		at := strconv.AppendInt(nil, int64(n), 10)
		n++
		text, ok := jsonedit.Get(part, "text")
		if !ok {
			continue
		}
		where := []toldMember{{"item_id", id}, {"output_index", index}, {"summary_index", at}}
		with := func(more ...toldMember) []toldMember { return append(where[:len(where):len(where)], more...) }
		r.event("response.reasoning_summary_part.added", with(toldMember{"part", []byte(`{"type":"summary_text","text":""}`)})...)
		r.event("response.reasoning_summary_text.delta", with(toldMember{"delta", text})...)
		r.event("response.reasoning_summary_text.done", with(toldMember{"text", text})...)
		r.event("response.reasoning_summary_part.done", with(toldMember{"part", part})...)
	}
}
