package probe

import (
	"encoding/json"
	"slices"
)

// What streams of Messages can have wrong: Claude Code reads them strictly.
var (
	msgNoStart = &fault{"the stream does not begin with message_start", "send message_start first", []string{"claude"}}
	msgNoStop  = &fault{"the stream ends without message_stop", "end with message_delta and message_stop", []string{"claude"}}
	msgReason  = &fault{"no stop_reason came", "send stop_reason in message_delta", []string{"claude"}}
	msgNoID    = &fault{"a tool_use has no id", "send an id with every tool_use: the result is given back by it", []string{"claude"}}
	msgUsage   = &fault{"no usage came", "send usage in message_start and message_delta", nil}
)

// msgEvent is an event of a message.
type msgEvent struct {
	Type    string `json:"type"`
	Message struct {
		ID    string          `json:"id"`
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Block msgBlock `json:"content_block"`
	Delta struct {
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// msgBlock is a block of content, as clients give it back.
type msgBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"` // of thinking that is not shown
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// msgReader follows the events of a message.
type msgReader struct {
	said
	blocks []msgBlock
	inputs []string // of blocks that are calls
	reason string
}

// readMessage reads a message that came in events.
func readMessage(st *stream) (said, []*fault) {
	r := &msgReader{}
	var faults []*fault
	for n, raw := range st.events {
		var e msgEvent
		if json.Unmarshal(raw, &e) != nil {
			return r.said, append(faults, streamNotJSON)
		}
		if e.Type == "error" {
			return r.said, append(faults, streamError(e.Error))
		}
		if n == 0 && e.Type != "message_start" {
			faults = append(faults, msgNoStart)
		}
		r.event(&e)
	}
	faults = append(append(faults, st.broken()...), r.end()...)
	switch {
	case slices.Contains(faults, streamCut):
	case !st.ended:
		faults = append(faults, msgNoStop)
	case r.reason == "":
		faults = append(faults, msgReason)
	}
	return r.said, faults
}

func (r *msgReader) event(e *msgEvent) {
	switch e.Type {
	case "message_start":
		r.id, r.usage = e.Message.ID, present(e.Message.Usage)
	case "content_block_start":
		r.blocks, r.inputs = append(r.blocks, e.Block), append(r.inputs, "")
	case "content_block_delta":
		r.delta(e)
	case "message_delta":
		r.reason, r.usage = e.Delta.StopReason, r.usage || present(e.Usage)
	}
}

func (r *msgReader) delta(e *msgEvent) {
	if len(r.blocks) == 0 {
		return
	}
	at := len(r.blocks) - 1
	b := &r.blocks[at]
	b.Text += e.Delta.Text
	b.Signature += e.Delta.Signature
	r.inputs[at] += e.Delta.Partial
	if e.Delta.Thinking != "" {
		thought := e.Delta.Thinking
		if b.Thinking != nil {
			thought = *b.Thinking + thought
		}
		b.Thinking = &thought
	}
}

// end makes of the blocks what was said, and what is given back.
func (r *msgReader) end() (faults []*fault) {
	for i := range r.blocks {
		b := &r.blocks[i]
		r.text += b.Text
		if b.Type == "tool_use" {
			if b.ID == "" {
				faults = append(faults, msgNoID)
			}
			input := r.inputs[i]
			if input == "" {
				input = "{}"
			}
			if !json.Valid([]byte(input)) {
				faults = append(faults, toolInvalid)
				continue
			}
			b.Input = json.RawMessage(input)
			r.calls = append(r.calls, toolCall{b.ID, b.Name, input})
		}
		if raw, err := json.Marshal(b); err == nil {
			r.items = append(r.items, raw)
		}
	}
	if !r.usage {
		faults = append(faults, msgUsage)
	}
	return faults
}
