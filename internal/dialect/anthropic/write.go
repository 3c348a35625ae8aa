package anthropic

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// writeBlock writes a block of the body.
func (o *outgoing) writeBlock(b *block) {
	w := &o.w
	if b.kind == rawBlock {
		o.writeRaw(b)
		return
	}
	w.BeginObject()
	switch b.kind {
	case sayBlock:
		w.SetText("type", "text")
		w.SetRaw("text", b.text)
	case thoughtBlock:
		w.SetText("type", "thinking")
		w.SetRaw("thinking", b.text)
		w.SetRaw("signature", b.data)
	case redactedBlock:
		w.SetText("type", "redacted_thinking")
		w.SetRaw("data", b.data)
	case useBlock:
		w.SetText("type", "tool_use")
		w.SetRaw("id", b.id)
		w.SetText("name", b.name)
		w.SetRaw("input", b.data)
	case resultBlock:
		o.writeResult(b)
	case mediaBlock:
		writeMedia(w, b)
	case foundBlock:
		writeFound(w, b.found)
	case toolBlock:
		o.writeTool(b)
	}
	o.writeMark(b)
	w.EndObject()
}

// writeRaw writes a block that is written already, with its breakpoint.
func (o *outgoing) writeRaw(b *block) {
	if b.cache == nil {
		o.w.Raw(b.data)
		return
	}
	o.w.BeginObject()
	for name, value := range jsonedit.Members(b.data) {
		if string(name) != `"cache_control"` {
			o.w.RawName(name)
			o.w.Raw(value)
		}
	}
	o.writeMark(b)
	o.w.EndObject()
}

// writeResult writes the members of a result. One that is a text is a string.
func (o *outgoing) writeResult(b *block) {
	w := &o.w
	w.SetText("type", "tool_result")
	w.SetRaw("tool_use_id", b.id)
	switch {
	case len(b.parts) == 0:
		w.SetText("content", "")
	case len(b.parts) == 1 && b.parts[0].kind == sayBlock && !b.listed:
		w.SetRaw("content", b.parts[0].text)
	default:
		w.Array("content")
		for i := range b.parts {
			o.writeBlock(&b.parts[i])
		}
		w.EndArray()
	}
	if b.failed {
		w.SetBool("is_error", true)
	}
}

func writeMedia(w *jsonedit.Writer, b *block) {
	m := b.media
	if m.Kind != llm.File {
		w.SetText("type", "image")
		w.SetRaw("source", b.data)
		return
	}
	w.SetText("type", "document")
	w.SetRaw("source", b.data)
	if !m.Name.Blank() {
		w.SetRaw("title", m.Name)
	}
	if !m.Context.Blank() {
		w.SetRaw("context", m.Context)
	}
	if m.Citations {
		w.SetRaw("citations", []byte(`{"enabled":true}`))
	}
}

func writeFound(w *jsonedit.Writer, r *llm.SearchResult) {
	w.SetText("type", "search_result")
	w.SetRaw("source", r.Source)
	w.SetRaw("title", r.Title)
	w.Array("content")
	for _, t := range r.Texts {
		w.BeginObject()
		w.SetText("type", "text")
		w.SetRaw("text", t)
		w.EndObject()
	}
	w.EndArray()
	if r.Citations {
		w.SetRaw("citations", []byte(`{"enabled":true}`))
	}
}

func (o *outgoing) writeMark(b *block) {
	if b.cache != nil {
		o.w.Name("cache_control")
		o.writeCache(b.cache)
	}
}

// writeCache writes a breakpoint, whose time to live is settled already.
func (o *outgoing) writeCache(c *llm.Breakpoint) {
	o.w.BeginObject()
	o.w.SetText("type", "ephemeral")
	if c.TTL != "" {
		o.w.SetText("ttl", c.TTL)
	}
	o.w.EndObject()
}
