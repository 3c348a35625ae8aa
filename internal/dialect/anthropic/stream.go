package anthropic

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Encode implements dialect.Inbound.
func (Dialect) Encode(ask *dialect.Ask) dialect.Encoder {
	return &encoder{ask: ask, sealer: sealer{ask}, serial: dialect.NewSerial(), others: map[int]bool{}}
}

// encoder tells an answer as the events of Messages: one block at a time, and
// the usage at the end.
type encoder struct {
	frames
	sealer
	ask    *dialect.Ask
	serial *dialect.Serial
	serve  []llm.Event  // scratch
	others map[int]bool // items of choices that this dialect has no place for

	head   *llm.Start // of a message whose start is not told yet
	told   bool       // message_start was told
	index  int64      // of the next block
	block  blockKind  // that is open
	part   int        // of the open item that the block tells
	item   llm.Open   // that is open
	states []llm.Opaque
	asked  bool // the item has told something

	held   bool      // a thinking block is over but for its signature
	owed   []llm.Raw // signatures of the text before, which are told when something follows it
	called bool
	finish llm.Finish
	usage  llm.Usage
	known  bool
}

// blockKind is a kind of block that is told in deltas.
type blockKind uint8

const (
	noBlock blockKind = iota
	textBlock
	thinkingBlock
	callBlock
)

// Event implements dialect.Encoder.
func (e *encoder) Event(dst []byte, event llm.Event) []byte {
	e.dst = dst
	e.serve = e.serial.Event(e.serve[:0], event)
	for _, event := range e.serve {
		e.tell(event)
	}
	return e.dst
}

func (e *encoder) tell(event llm.Event) {
	switch event := event.(type) {
	case llm.Start:
		event.ID, event.Model = event.ID.Clone(), event.Model.Clone()
		e.head = &event
	case llm.Used:
		e.usage, e.known = event.Usage, event.Known
	case llm.Ping:
		e.begin("ping")
		e.end()
	case llm.Open:
		if event.Choice > 0 {
			e.others[event.Item] = true
			return
		}
		e.openItem(event)
	case llm.Delta:
		if !e.others[event.Item] {
			e.deltaOf(event)
		}
	case llm.Picture:
		e.ask.Skip("image")
	case llm.Annotate:
		if !ownCitation(event.Annotation) {
			e.ask.Skip("citation")
			break
		}
		if !e.others[event.Item] {
			e.openBlock(textBlock)
			e.delta(e.index, "citations_delta", "citation", event.Annotation.Native)
		}
	case llm.Seal:
		if !e.others[event.Item] {
			o := event.Opaque
			o.Data, o.For = o.Data.Clone(), o.For.Clone()
			e.states = append(e.states, o)
		}
	case llm.Close:
		if !e.others[event.Item] {
			e.closeItem(event)
		}
	case llm.Finish:
		if event.Choice == 0 {
			event.StopSeq, event.Detail = event.StopSeq.Clone(), event.Detail.Clone()
			e.finish = event
		}
	}
}

// ownCitation reports whether a citation is in this dialect's form. Those of
// other upstreams have none: a client would give them back, and an Anthropic
// upstream refuse them.
func ownCitation(a llm.Annotation) bool {
	kind := dialect.Text(a.Native, "type")
	return len(kind) > len("_location") && kind[len(kind)-len("_location"):] == "_location"
}

// start tells the head of the message, before anything else of it.
func (e *encoder) start() {
	if e.told {
		return
	}
	e.told = true
	e.begin("message_start")
	e.Object("message")
	writeHead(&e.Writer, e.ask, e.model())
	e.Array("content")
	e.EndArray()
	e.Name("stop_reason")
	e.Null()
	e.Name("stop_sequence")
	e.Null()
	if e.known {
		writeUsage(&e.Writer, e.usage, true, nil) // what it costs is known at the end
	} else {
		noUsage(&e.Writer, nil)
	}
	e.EndObject()
	e.end()
}

func (e *encoder) model() llm.Raw {
	if e.head != nil {
		return e.head.Model
	}
	return nil
}

// writeHead writes what every message begins with. model is what the upstream
// says that answered.
func writeHead(w *jsonedit.Writer, ask *dialect.Ask, model llm.Raw) {
	w.SetText("id", "msg_"+ask.ID)
	w.SetText("type", "message")
	w.SetText("role", "assistant")
	if model.Blank() || !model.IsText() {
		model = llm.Quote(ask.Model)
	}
	w.SetRaw("model", model)
}

// openItem begins an item. Blocks begin with what is told in them.
func (e *encoder) openItem(o llm.Open) {
	o.ID, o.CallID = o.ID.Clone(), o.CallID.Clone()
	e.item, e.states, e.part, e.asked = o, nil, 0, false
	for _, signature := range e.owed {
		e.thought(signature)
	}
	e.owed = nil
	if o.Kind != llm.CallItem {
		return
	}
	state := callState(o.Opaque)
	switch {
	case state != nil && e.held:
		e.sign(e.callSignature(o.CallID, *state))
	case state != nil:
		e.thought(e.callSignature(o.CallID, *state))
	}
	e.called = true
	e.openBlock(callBlock)
}

// openBlock makes a block of a kind the one that is open.
func (e *encoder) openBlock(kind blockKind) {
	if e.block == kind && !e.held {
		return
	}
	e.closeBlock()
	e.start()
	e.block, e.asked = kind, true
	switch kind {
	case textBlock:
		e.frames.start(e.index, []byte(`{"type":"text","text":""}`))
	case thinkingBlock:
		e.frames.start(e.index, []byte(`{"type":"thinking","thinking":"","signature":""}`))
	case callBlock:
		var w jsonedit.Writer
		w.BeginObject()
		w.SetText("type", "tool_use")
		w.SetRaw("id", e.item.CallID)
		w.SetText("name", e.item.Name)
		w.SetRaw("input", emptyObject)
		w.EndObject()
		e.frames.start(e.index, w.Bytes())
	}
}

// closeBlock ends the open block. Thinking whose signature nobody brought is
// marked as such.
func (e *encoder) closeBlock() {
	if e.held {
		e.sign(e.signature(nil, nil))
	}
	if e.block == noBlock {
		return
	}
	e.stop(e.index)
	e.index++
	e.block = noBlock
}

// sign ends the open thinking block with its signature.
func (e *encoder) sign(signature llm.Raw) {
	e.held = false
	e.delta(e.index, "signature_delta", "signature", signature)
	e.closeBlock()
}

// thought tells a thinking block that has nothing but a signature.
func (e *encoder) thought(signature llm.Raw) {
	e.openBlock(thinkingBlock)
	e.sign(signature)
}

// whole tells a block in one.
func (e *encoder) whole(block llm.Raw) {
	e.closeBlock()
	e.start()
	e.frames.start(e.index, block)
	e.stop(e.index)
	e.index++
}

func (e *encoder) deltaOf(d llm.Delta) {
	if len(d.Data) <= len(`""`) {
		return
	}
	switch d.Channel {
	case llm.TextChannel, llm.RefusalChannel, llm.TranscriptChannel:
		if d.Part != e.part {
			e.closeBlock()
		}
		e.openBlock(textBlock)
		e.delta(e.index, "text_delta", "text", d.Data)
	case llm.ThinkingChannel, llm.SummaryChannel:
		again := e.asked
		e.openBlock(thinkingBlock)
		if again && d.Part != e.part {
			e.delta(e.index, "thinking_delta", "thinking", []byte(paragraph))
		}
		e.delta(e.index, "thinking_delta", "thinking", d.Data)
	case llm.AudioChannel:
		e.ask.Skip("audio")
	case llm.ArgsChannel:
		if e.item.Call != llm.CustomCall {
			e.delta(e.index, "input_json_delta", "partial_json", d.Data)
			break
		}
		e.delta(e.index, "input_json_delta", "partial_json", dialect.Wrapped(d.Data))
	}
	e.part = d.Part
}

// paragraph stands between the texts of one reasoning, as a JSON string.
const paragraph = `"\n\n"`

func (e *encoder) closeItem(c llm.Close) {
	switch e.item.Kind {
	case llm.ReasoningItem:
		e.closeReasoning()
	case llm.MessageItem:
		index := e.index
		e.closeBlock()
		for _, o := range e.states {
			if o.Kind == llm.ThoughtSignature {
				e.owed = append(e.owed, e.textSignature(index, o))
			}
		}
	case llm.CallItem:
		e.closeBlock()
		if callState(e.item.Opaque) == nil {
			if state := callState(e.states); state != nil {
				e.thought(e.callSignature(e.item.CallID, *state))
			}
		}
	case llm.ServerItem:
		if c.Server == nil {
			break
		}
		if c.Server.Image != nil {
			e.ask.Skip("image")
		}
		if blocks := serverBlocks(c.Server); blocks != nil {
			for _, block := range blocks {
				e.whole(block)
			}
		}
	}
}

// closeReasoning ends a reasoning item. One that has no signature of its own
// waits for that of a call right behind it.
func (e *encoder) closeReasoning() {
	for _, o := range e.states {
		if o.Kind == llm.Redacted {
			e.whole(e.redactedBlock(o))
		}
	}
	state := chosen(e.states)
	switch {
	case state != nil:
		e.openBlock(thinkingBlock)
		e.sign(e.signature(e.item.ID, state))
	case e.block == thinkingBlock:
		e.held = true
	}
}

func (s sealer) redactedBlock(o llm.Opaque) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", "redacted_thinking")
	w.SetRaw("data", s.redactedData(o))
	w.EndObject()
	return w.Bytes()
}

// End implements dialect.Encoder. A signature of the last text stays untold:
// clients take the last block for the answer, and no upstream insists on it.
func (e *encoder) End(dst []byte) []byte {
	e.dst = dst
	if e.owed != nil {
		e.ask.Skip("signature:text")
	}
	e.start()
	e.closeBlock()
	e.begin("message_delta")
	e.Object("delta")
	writeStop(&e.Writer, &e.finish, e.called)
	e.EndObject()
	writeUsage(&e.Writer, e.usage, e.known, e.ask.Cost)
	e.end()
	e.begin("message_stop")
	e.end()
	return e.dst
}

// Fail implements dialect.Encoder.
func (e *encoder) Fail(dst []byte, err *llm.Error) []byte { return appendFailure(dst, err) }

// stopReasons are the words for why an answer ended.
var stopReasons = [...]string{
	llm.Stopped:       "end_turn",
	llm.LengthReached: "max_tokens",
	llm.ToolsCalled:   "tool_use",
	llm.Filtered:      "refusal",
	llm.Refused:       "refusal",
	llm.Paused:        "pause_turn",
	llm.WindowFull:    "model_context_window_exceeded",
	llm.Compacted:     "compaction",
}

// writeStop writes why the message ended. called says that it has calls: a
// client runs them only when told so.
func writeStop(w *jsonedit.Writer, f *llm.Finish, called bool) {
	reason := stopReasons[f.Reason]
	switch {
	case f.Reason == llm.Stopped && called:
		reason = stopReasons[llm.ToolsCalled]
	case f.Reason == llm.Stopped && f.StopSeq.IsText():
		reason = "stop_sequence"
	}
	w.SetText("stop_reason", reason)
	if f.StopSeq.IsText() {
		w.SetRaw("stop_sequence", f.StopSeq)
	} else {
		w.Name("stop_sequence")
		w.Null()
	}
	if reason == "refusal" && f.Detail.IsText() {
		w.Object("stop_details")
		w.SetText("type", "refusal")
		w.Name("category")
		w.Null()
		w.SetRaw("explanation", f.Detail)
		w.EndObject()
	}
}
