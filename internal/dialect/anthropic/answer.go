package anthropic

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// AppendAnswer implements dialect.Inbound. It says what the stream says.
func (Dialect) AppendAnswer(dst []byte, a *llm.Answer, ask *dialect.Ask) []byte {
	w := message{Writer: jsonedit.NewWriter(dst), sealer: sealer{ask}}
	var c llm.Choice
	if len(a.Choices) > 0 {
		c = a.Choices[0]
	}
	w.BeginObject()
	writeHead(w.Writer, ask, a.Model)
	w.Array("content")
	for i, item := range c.Items {
		var next llm.Item
		if i+1 < len(c.Items) {
			next = c.Items[i+1]
		}
		w.item(item, next)
	}
	w.EndArray()
	writeStop(w.Writer, &c.Finish, w.called)
	if a.Known {
		writeUsage(w.Writer, a.Usage, true, ask.Cost)
	} else {
		noUsage(w.Writer, ask.Cost)
	}
	w.EndObject()
	return w.Bytes()
}

// message writes a whole message.
type message struct {
	*jsonedit.Writer
	sealer
	index  int64 // of the next block
	called bool
	signed llm.Item // the call whose signature is told already
}

// begin begins a block.
func (m *message) begin(kind string) {
	m.index++
	m.BeginObject()
	m.SetText("type", kind)
}

// item writes the blocks of an item; next is the one after it.
func (m *message) item(item, next llm.Item) {
	switch item := item.(type) {
	case *llm.Message:
		m.message(item)
	case *llm.Reasoning:
		m.reasoning(item, next)
	case *llm.ToolCall:
		m.call(item)
	case *llm.ServerCall:
		if item.Image != nil {
			m.ask.Skip("image")
		}
		for _, block := range serverBlocks(item) {
			m.index++
			m.Raw(block)
		}
	}
}

// message writes the blocks of what was said. The signature of a text stands
// before it: clients take the last block for the answer.
func (m *message) message(said *llm.Message) {
	for _, p := range said.Parts {
		switch p := p.(type) {
		case *llm.Text:
			for _, o := range p.Opaque {
				if o.Kind == llm.ThoughtSignature {
					m.thought(nil, m.textSignature(m.index+1, o))
				}
			}
			m.text(p.Text, p.Annotations)
		case *llm.Refusal:
			m.text(p.Text, nil)
		case *llm.Media:
			if p.Kind == llm.Image {
				m.ask.Skip("image")
			} else {
				m.ask.Skip("audio")
			}
			m.text(p.Transcript, nil)
		}
	}
}

func (m *message) text(said llm.Raw, citations []llm.Annotation) {
	if said.Blank() {
		return
	}
	m.begin("text")
	m.SetRaw("text", said)
	cited := false
	for _, a := range citations {
		if !ownCitation(a) {
			m.ask.Skip("citation")
			continue
		}
		if !cited {
			m.Array("citations")
			cited = true
		}
		m.Raw(a.Native)
	}
	if cited {
		m.EndArray()
	}
	m.EndObject()
}

func (m *message) reasoning(r *llm.Reasoning, next llm.Item) {
	for _, o := range r.Opaque {
		if o.Kind == llm.Redacted {
			m.index++
			m.Raw(m.redactedBlock(o))
		}
	}
	texts := make([]llm.Raw, len(r.Texts))
	said := false
	for i, t := range r.Texts {
		texts[i] = t.Text
		said = said || !t.Text.Blank()
	}
	thought := llm.Concat("\n\n", texts...)
	state := chosen(r.Opaque)
	call, calls := next.(*llm.ToolCall)
	switch {
	case state != nil:
		m.thought(thought, m.signature(r.ID, state))
	case !said:
	case calls && callState(call.Opaque) != nil:
		m.signed = call
		m.thought(thought, m.callSignature(call.ID, *callState(call.Opaque)))
	default:
		m.thought(thought, m.signature(nil, nil))
	}
}

// thought writes a thinking block.
func (m *message) thought(said, signature llm.Raw) {
	m.begin("thinking")
	if said == nil {
		said = emptyText
	}
	m.SetRaw("thinking", said)
	m.SetRaw("signature", signature)
	m.EndObject()
}

func (m *message) call(c *llm.ToolCall) {
	m.called = true
	if state := callState(c.Opaque); state != nil && m.signed != llm.Item(c) {
		m.thought(nil, m.callSignature(c.ID, *state))
	}
	m.begin("tool_use")
	m.SetRaw("id", c.ID)
	m.SetText("name", c.Name)
	args := c.Args
	if c.Kind == llm.CustomCall {
		args = dialect.Wrapped(args)
	}
	m.SetRaw("input", inputOf(args))
	m.EndObject()
}

// inputOf is a call's input as an object: what is none is kept as a text.
func inputOf(args llm.Raw) llm.Raw {
	if object, ok := args.Object(); ok {
		return object
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.SetRaw("_raw", args)
	w.EndObject()
	return w.Bytes()
}
