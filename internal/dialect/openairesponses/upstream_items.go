package openairesponses

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// added begins an item. Items that are only told whole wait until they are
// over.
func (d *answerDecoder) added(dst []llm.Event, index int, it rawItem) []llm.Event {
	if d.byIndex[index] != nil {
		return dst
	}
	switch it.kind {
	case "message":
		dst, _ = d.open(dst, index, llm.Open{Kind: llm.MessageItem, ID: it.id, Phase: it.phase})
	case "reasoning":
		dst, _ = d.open(dst, index, llm.Open{Kind: llm.ReasoningItem, ID: it.id})
	case "function_call", "custom_tool_call":
		if it.name.Text() == "" || it.callID.Blank() {
			break // both may come with the last event
		}
		dst, _ = d.openCall(dst, index, &it, callTypes[it.kind])
	}
	return dst
}

// open begins an item of the answer.
func (d *answerDecoder) open(dst []llm.Event, index int, o llm.Open) ([]llm.Event, *heard) {
	h := &heard{number: d.items, kind: o.Kind, call: o.Call, index: index, parts: map[heardPart]bool{}}
	o.Item, o.Block = d.items, index
	d.items++
	d.order = append(d.order, h)
	d.byIndex[index] = h
	return append(dst, o), h
}

func (d *answerDecoder) openCall(dst []llm.Event, index int, it *rawItem, call callType) ([]llm.Event, *heard) {
	name := call.name
	if name == "" {
		name = it.name.Text()
	}
	d.calls = true
	return d.open(dst, index, llm.Open{Kind: llm.CallItem, ID: it.id, CallID: d.callID(it), Name: name, Space: it.space.Text(), Call: call.kind})
}

// deltaChannels are where the pieces of text belong, by their events.
var deltaChannels = map[string]struct {
	kind    llm.ItemKind
	channel llm.Channel
	part    int // the field that counts the parts
}{
	"response.output_text.delta":             {llm.MessageItem, llm.TextChannel, partEventContent},
	"response.refusal.delta":                 {llm.MessageItem, llm.RefusalChannel, partEventContent},
	"response.reasoning_summary_text.delta":  {llm.ReasoningItem, llm.SummaryChannel, partEventSummary},
	"response.reasoning_text.delta":          {llm.ReasoningItem, llm.ThinkingChannel, partEventContent},
	"response.reasoning.delta":               {llm.ReasoningItem, llm.ThinkingChannel, partEventContent},
	"response.function_call_arguments.delta": {llm.CallItem, llm.ArgsChannel, -1},
	"response.custom_tool_call_input.delta":  {llm.CallItem, llm.ArgsChannel, -1},
}

// delta tells a piece of text. Other events tell nothing that the end of the
// item does not tell again.
func (d *answerDecoder) delta(dst []llm.Event, kind string) []llm.Event {
	where, ok := deltaChannels[kind]
	data := llm.Raw(d.event.Value(partEventDelta))
	if !ok || !data.IsText() || data.Blank() {
		return dst
	}
	index := d.number(partEventOutput)
	h := d.byIndex[index]
	if h == nil {
		if where.kind == llm.CallItem {
			return dst // it cannot be told before its name
		}
		dst, h = d.open(dst, index, llm.Open{Kind: where.kind})
	}
	if h.closed || h.kind != where.kind {
		return dst
	}
	part := 0
	if where.part >= 0 {
		part = d.number(where.part)
		h.parts[heardPart{where.channel, part}] = true
	} else {
		h.args = true
	}
	dst = append(dst, llm.Delta{Item: h.number, Part: part, Channel: where.channel, Data: data})
	if tokens := elements(d.event.Value(partEventLogprobs)); len(tokens) > 0 && where.channel == llm.TextChannel {
		h.logprobs = true
		dst = append(dst, llm.Logprobs{Item: h.number, Tokens: tokens})
	}
	return dst
}

// cited tells an annotation.
func (d *answerDecoder) cited(dst []llm.Event) []llm.Event {
	h := d.byIndex[d.number(partEventOutput)]
	note := d.event.Value(partEventAnnotation)
	if h == nil || h.closed || h.kind != llm.MessageItem || jsonedit.KindOf(note) != jsonedit.KindObject {
		return dst
	}
	h.annotations++
	return cite(dst, h, annotation(note))
}

// cite tells an annotation that has a URL. Other dialects have no place for
// the others, which name the vendor's files.
func cite(dst []llm.Event, h *heard, a llm.Annotation) []llm.Event {
	if a.URL == nil {
		return append(dst, note("skip", "annotation:"+dialect.Text(a.Native, "type")))
	}
	return append(dst, llm.Annotate{Item: h.number, Annotation: a})
}

// over ends an item, and tells what of it has not been told in pieces.
func (d *answerDecoder) over(dst []llm.Event, index int, it rawItem) []llm.Event {
	h := d.byIndex[index]
	if h != nil && h.closed {
		return dst
	}
	call, isCall := callTypes[it.kind]
	switch {
	case it.kind == "message":
		if h == nil {
			dst, h = d.open(dst, index, llm.Open{Kind: llm.MessageItem, ID: it.id, Phase: it.phase})
		}
		if h.kind == llm.MessageItem {
			dst = d.message(dst, h, &it)
		}
	case it.kind == "reasoning":
		if h == nil {
			dst, h = d.open(dst, index, llm.Open{Kind: llm.ReasoningItem, ID: it.id})
		}
		if h.kind == llm.ReasoningItem {
			dst = d.reasoning(dst, h, &it)
		}
	case isCall && d.forClient(&it, call):
		if h == nil {
			if call.name == "" && it.name.Text() == "" {
				return append(dst, note("skip", "item:"+it.kind))
			}
			dst, h = d.openCall(dst, index, &it, call)
		}
		if args := it.args(call.kind); h.kind == llm.CallItem && !h.args && args.IsText() && !args.Blank() {
			h.args = true
			dst = append(dst, llm.Delta{Item: h.number, Channel: llm.ArgsChannel, Data: args})
		}
	case h == nil:
		return d.hosted(dst, index, &it)
	}
	return d.close(dst, h)
}

// forClient reports whether the client is to run a call. A shell may be the
// upstream's own: then the client has no such tool.
func (d *answerDecoder) forClient(it *rawItem, call callType) bool {
	return it.client() && (call.name == "" || d.names.Tool(call.name) != nil)
}

// hosted tells what the upstream ran itself. Clients of all dialects are shown
// pictures, of some also searches and the like.
func (d *answerDecoder) hosted(dst []llm.Event, index int, it *rawItem) []llm.Event {
	call := serverCall(it)
	if call == nil || call.Kind != llm.ImageGeneration && !d.words.CanShow(call.Kind) {
		kind := it.kind
		if kind == "" {
			kind = "unknown"
		}
		dst = append(dst, note("skip", "item:"+kind))
	}
	if call == nil {
		return dst
	}
	dst, h := d.open(dst, index, llm.Open{Kind: llm.ServerItem, ID: it.id, Server: call.Kind})
	h.closed = true
	return append(dst, llm.Close{Item: h.number, Server: call})
}

// spokenParts are the parts of messages that are texts.
var spokenParts = []string{"output_text", "refusal", "text", ""}

// message tells the texts of a message that did not come in pieces.
func (d *answerDecoder) message(dst []llm.Event, h *heard, it *rawItem) []llm.Event {
	part, noted := 0, 0
	for v := range jsonedit.Elements(it.content) {
		p := readPart(v)
		text, channel := p.text, llm.TextChannel
		if p.kind == "refusal" {
			text, channel = p.refusal, llm.RefusalChannel
		}
		if !slices.Contains(spokenParts, p.kind) {
			dst = append(dst, note("skip", "part:"+p.kind))
		}
		if text.IsText() && !text.Blank() && !h.parts[heardPart{channel, part}] {
			dst = append(dst, llm.Delta{Item: h.number, Part: part, Channel: channel, Data: text})
		}
		part++
		for _, a := range annotations(p.annotations) {
			if noted++; noted > h.annotations {
				dst = cite(dst, h, a)
			}
		}
		if tokens := elements(p.logprobs); len(tokens) > 0 && !h.logprobs {
			dst = append(dst, llm.Logprobs{Item: h.number, Tokens: tokens})
		}
	}
	return dst
}

// reasoning tells the texts of reasoning that did not come in pieces, and the
// state that must go back.
func (d *answerDecoder) reasoning(dst []llm.Event, h *heard, it *rawItem) []llm.Event {
	for _, list := range [...]struct {
		parts   llm.Raw
		channel llm.Channel
	}{{it.summary, llm.SummaryChannel}, {it.content, llm.ThinkingChannel}} {
		part := 0
		for v := range jsonedit.Elements(list.parts) {
			if text := dialect.Member(v, "text"); text.IsText() && !text.Blank() && !h.parts[heardPart{list.channel, part}] {
				dst = append(dst, llm.Delta{Item: h.number, Part: part, Channel: list.channel, Data: text})
			}
			part++
		}
	}
	if it.encrypted.IsText() && !it.encrypted.Blank() {
		vendor := d.caps.Vendor
		if vendor == "" {
			vendor = nativeVendor
		}
		dst = append(dst, llm.Seal{Item: h.number, Opaque: llm.Opaque{Kind: llm.Encrypted, Vendor: vendor, Origin: d.caps.Origin, Data: it.encrypted}})
	}
	return dst
}

// close ends an item. Arguments that never came are an empty object, or an
// empty text.
func (d *answerDecoder) close(dst []llm.Event, h *heard) []llm.Event {
	if h.closed {
		return dst
	}
	h.closed = true
	if h.kind == llm.CallItem && !h.args {
		args := `"{}"`
		if h.call == llm.CustomCall {
			args = `""`
		}
		dst = append(dst, llm.Delta{Item: h.number, Channel: llm.ArgsChannel, Data: llm.Raw(args)})
	}
	return append(dst, llm.Close{Item: h.number})
}
