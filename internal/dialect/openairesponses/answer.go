package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// answer tells an answer as events, and gathers the items that its last one
// repeats. It implements dialect.Encoder; a whole answer takes the same way
// with its frames thrown away.
//
// One item is open at a time. An item that is over is held back, all but its
// last event, until it shows what comes next: an answer that was cut leaves
// its last item incomplete, and a call may bring a signature, which only the
// reasoning before it has room for.
type answer struct {
	ask    *dialect.Ask
	serial *dialect.Serial
	events []llm.Event // scratch
	ignore map[int]bool

	w        jsonedit.Writer // the data of the frame that is made
	dst      []byte
	quiet    bool // no frames are wanted
	sequence int64

	begun  bool
	model  llm.Raw
	tail   []byte // of each snapshot of the response
	output [][]byte
	told   int // items that were told of
	open   *openItem
	held   *openItem

	spoke, refused bool // there was text, there was a refusal
	finish         llm.Finish
	finished       bool
	usage          llm.Usage
	known          bool
	seen           int64 // bytes of text
}

var _ dialect.Encoder = (*answer)(nil)

// Encode implements dialect.Inbound.
func (Dialect) Encode(ask *dialect.Ask) dialect.Encoder { return newAnswer(ask) }

func newAnswer(ask *dialect.Ask) *answer { return &answer{ask: ask, serial: dialect.NewSerial()} }

// Event implements dialect.Encoder.
func (a *answer) Event(dst []byte, e llm.Event) []byte {
	a.dst = dst
	switch e := e.(type) {
	case llm.Note:
	case llm.Ping:
		if a.begun {
			a.dst = append(a.dst, ": ping\n\n"...)
		}
	case llm.Start:
		a.start(e.Model)
	default:
		a.start(nil)
		a.events = a.serial.Event(a.events[:0], e)
		for _, e := range a.events {
			a.tell(e)
		}
	}
	return a.dst
}

// start tells that the answer begins.
func (a *answer) start(model llm.Raw) {
	if a.begun {
		return
	}
	a.begun = true
	if a.model = model.Clone(); !a.model.IsText() || a.model.Blank() {
		a.model = llm.Quote(a.ask.Model)
	}
	a.tail = appendEcho(nil, a.ask.Request, a.ask.Told)
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		w := a.event(kind)
		w.Name("response")
		a.writeResponse(w, "in_progress", nil)
		a.send(kind)
	}
}

// event begins the data of a frame.
func (a *answer) event(kind string) *jsonedit.Writer {
	a.w = *jsonedit.NewWriter(a.w.Bytes()[:0])
	a.w.BeginObject()
	a.w.SetText("type", kind)
	a.w.SetInt("sequence_number", a.sequence)
	a.sequence++
	return &a.w
}

// itemEvent begins the data of a frame about an item.
func (a *answer) itemEvent(kind string, it *openItem) *jsonedit.Writer {
	w := a.event(kind)
	w.SetText("item_id", it.id)
	w.SetInt("output_index", int64(it.index))
	return w
}

// send ends the data of a frame and sends it.
func (a *answer) send(kind string) {
	a.w.EndObject()
	if !a.quiet {
		a.dst = sse.Append(a.dst, []byte(kind), a.w.Bytes())
	}
}

func (a *answer) tell(e llm.Event) {
	switch e := e.(type) {
	case llm.Open:
		if e.Choice != 0 { // this dialect has one
			if a.ignore == nil {
				a.ignore = map[int]bool{}
			}
			a.ignore[e.Item] = true
			return
		}
		a.begin(e)
	case llm.Used:
		a.usage, a.known = e.Usage, e.Known
	case llm.Finish:
		if e.Choice == 0 {
			a.end(e)
		}
	default:
		a.inside(e)
	}
}

// inside tells an event of the item that is open.
func (a *answer) inside(e llm.Event) {
	it := a.open
	switch e := e.(type) {
	case llm.Delta:
		if !a.ignore[e.Item] && it != nil {
			a.delta(it, e)
		}
	case llm.Annotate:
		if !a.ignore[e.Item] && it != nil {
			a.annotate(it, e.Annotation)
		}
	case llm.Logprobs:
		if !a.ignore[e.Item] && it != nil {
			p := a.part(it, outputText, 0)
			for _, token := range e.Tokens {
				p.logprobs = append(p.logprobs, token.Clone())
			}
		}
	case llm.Picture:
		if !a.ignore[e.Item] && it != nil {
			picture := *e.Media
			picture.Data, picture.URL = picture.Data.Clone(), picture.URL.Clone()
			it.pictures = append(it.pictures, &picture)
		}
	case llm.Seal:
		if !a.ignore[e.Item] && it != nil {
			it.keep(e.Opaque)
		}
	case llm.Running:
		if it != nil {
			a.runs(it)
		}
	case llm.Close:
		if !a.ignore[e.Item] && it != nil {
			a.close(it, e)
		}
	}
}

// begin begins an item. It is told of when there is something in it.
func (a *answer) begin(e llm.Open) {
	it := &openItem{kind: e.Kind, call: e.Call, callID: e.CallID.Clone(), name: e.Name, space: e.Space, phase: e.Phase.Clone(), block: e.Block, index: -1}
	if e.Kind == llm.CallItem || e.Kind == llm.MessageItem {
		a.settle("completed", a.seals(it, e.Opaque))
	} else {
		a.settle("completed", nil)
		for _, o := range e.Opaque {
			it.keep(o)
		}
	}
	a.open = it
	switch {
	case e.Kind == llm.CallItem && e.Call <= llm.CustomCall:
		a.add(it)
	case e.Live:
		a.goOn(it, e.Server)
	}
}

// add tells of an item.
func (a *answer) add(it *openItem) {
	if it.index >= 0 {
		return
	}
	it.index = a.told
	a.told++
	it.id = it.prefix() + a.ask.ID + "_" + strconv.Itoa(it.index)
	a.addition(it)
}

func (a *answer) addition(it *openItem) {
	const kind = "response.output_item.added"
	w := a.event(kind)
	w.SetInt("output_index", int64(it.index))
	w.Name("item")
	it.write(w, "in_progress", "")
	a.send(kind)
}

// delta tells a piece of an item's text.
func (a *answer) delta(it *openItem, e llm.Delta) {
	if len(e.Data.Inner()) == 0 {
		return
	}
	a.seen += int64(len(e.Data))
	var form *partForm
	switch e.Channel {
	case llm.ArgsChannel:
		a.args(it, e.Data)
		return
	case llm.TextChannel, llm.TranscriptChannel:
		form, a.spoke = outputText, true
	case llm.RefusalChannel:
		form, a.refused = refusalPart, true
	case llm.ThinkingChannel:
		form = reasoningText
		if a.ask.Vendor == signingVendor {
			form = summaryText
		}
	case llm.SummaryChannel:
		form = summaryText
	default: // sound, which a client of this dialect cannot ask for
		a.ask.Skip("audio")
		return
	}
	p := a.part(it, form, e.Part)
	p.grow(e.Data)
	w := a.itemEvent(form.delta, it)
	w.SetInt(form.index, int64(p.at))
	w.SetRaw("delta", e.Data)
	if form == outputText {
		w.SetRaw("logprobs", noElements)
	}
	a.send(form.delta)
}

// signingVendor signs what its models think, which they tell as a summary.
const signingVendor = "anthropic"

func (a *answer) args(it *openItem, data llm.Raw) {
	it.args = grown(it.args, data)
	kind := "response.function_call_arguments.delta"
	switch it.call {
	case llm.FunctionCall:
		switch {
		case it.form == codeForm:
			kind = codeEvent + "delta"
		case it.kind == llm.ServerItem:
			kind = "response.mcp_call_arguments.delta"
		}
	case llm.CustomCall:
		kind = "response.custom_tool_call_input.delta"
	default:
		return // told when it is whole
	}
	a.itemEvent(kind, it).SetRaw("delta", data)
	a.send(kind)
}

// part is the part that text of a form belongs to: the one that is open, or a
// new one. Neighbouring texts of a message are one part, as upstreams cut
// where they cite; those of reasoning stay apart.
func (a *answer) part(it *openItem, form *partForm, number int) *toldPart {
	if p := it.current; p != nil {
		if p.form == form && (p.number == number || it.kind == llm.MessageItem) {
			return p
		}
		a.closePart(it)
	}
	a.add(it)
	list := it.list(form)
	p := &toldPart{form: form, number: number, at: len(*list)}
	*list = append(*list, p)
	it.current = p
	w := a.itemEvent(form.added, it)
	w.SetInt(form.index, int64(p.at))
	w.Name("part")
	p.write(w)
	a.send(form.added)
	return p
}

func (a *answer) closePart(it *openItem) {
	p := it.current
	if p == nil {
		return
	}
	it.current = nil
	w := a.itemEvent(p.form.done, it)
	w.SetInt(p.form.index, int64(p.at))
	w.SetRaw(p.form.member, p.whole())
	if p.form == outputText {
		w.Name("logprobs")
		writeList(w, p.logprobs)
	}
	a.send(p.form.done)
	w = a.itemEvent(p.form.closed, it)
	w.SetInt(p.form.index, int64(p.at))
	w.Name("part")
	p.write(w)
	a.send(p.form.closed)
}

func (a *answer) annotate(it *openItem, note llm.Annotation) {
	if !note.URL.IsText() {
		return // the other kinds point to files of the upstream
	}
	p := a.part(it, outputText, 0)
	var citation jsonedit.Writer
	writeAnnotation(&citation, note)
	const kind = "response.output_text.annotation.added"
	w := a.itemEvent(kind, it)
	w.SetInt("content_index", int64(p.at))
	w.SetInt("annotation_index", int64(len(p.annotations)))
	w.SetRaw("annotation", citation.Bytes())
	a.send(kind)
	p.annotations = append(p.annotations, citation.Bytes())
}

// close ends an item, all but its last event.
func (a *answer) close(it *openItem, e llm.Close) {
	a.open = nil
	switch it.kind {
	case llm.ServerItem:
		switch {
		case e.Server == nil:
		case it.form.kind != "":
			a.wentOn(it, e.Server)
		default:
			a.serve(e.Server)
		}
		return
	case llm.CallItem:
		a.add(it)
		a.closeArgs(it)
	default:
		a.closePart(it)
	}
	a.held = it
}

func (a *answer) closeArgs(it *openItem) {
	switch it.call {
	case llm.FunctionCall:
		if len(it.args) == 0 { // LangChain takes the arguments from the deltas alone
			a.args(it, llm.Raw(`"{}"`))
		}
		const kind = "response.function_call_arguments.done"
		w := a.itemEvent(kind, it)
		w.SetRaw("arguments", closed(it.args))
		w.SetText("name", it.name)
		a.send(kind)
	case llm.CustomCall:
		const kind = "response.custom_tool_call_input.done"
		a.itemEvent(kind, it).SetRaw("input", closed(it.args))
		a.send(kind)
	}
}

// settle tells the last of the item that is held back. seals belong to what
// follows: the first rides in the item, when that is reasoning without one of
// its own.
func (a *answer) settle(status string, seals []string) {
	it := a.held
	a.held = nil
	if it != nil {
		switch it.kind {
		case llm.ReasoningItem:
			seals = append(a.seals(it, it.opaque), seals...)
			if len(seals) > 0 {
				a.add(it)
				a.done(it, status, seals[0])
				seals = seals[1:]
			} else if it.index >= 0 {
				a.done(it, status, "")
			}
		default:
			if it.index >= 0 {
				a.done(it, status, "")
			}
			for _, picture := range it.pictures {
				a.serve(&llm.ServerCall{Kind: llm.ImageGeneration, Image: picture})
			}
			seals = append(a.seals(it, it.opaque), seals...)
		}
	}
	for _, s := range seals {
		carrier := &openItem{kind: llm.ReasoningItem, index: -1}
		a.add(carrier)
		a.done(carrier, "completed", s)
	}
}

// done tells that an item is over.
func (a *answer) done(it *openItem, status, sealed string) {
	var item jsonedit.Writer
	it.write(&item, status, sealed)
	a.over(it, item.Bytes())
}

// over tells that an item, which is written, is over.
func (a *answer) over(it *openItem, item []byte) {
	const kind = "response.output_item.done"
	w := a.event(kind)
	w.SetInt("output_index", int64(it.index))
	w.SetRaw("item", item)
	a.send(kind)
	a.output = append(a.output, item)
}

// end takes the end of the answer. Its last event waits for End: usage may
// still come.
func (a *answer) end(f llm.Finish) {
	f.StopSeq, f.Detail = nil, f.Detail.Clone()
	a.finish, a.finished = f, true
	if f.Reason == llm.Refused && !a.refused {
		a.refuse(f.Detail)
	}
	status := "completed"
	if a.incomplete() != "" && a.held.cut() {
		status = "incomplete"
	}
	a.settle(status, nil)
	if f.Turn != nil {
		a.settle("completed", a.seals(&openItem{}, []llm.Opaque{*f.Turn}))
	}
}

// refuse tells of a refusal that had no words of its own. What was said before
// stays.
func (a *answer) refuse(why llm.Raw) {
	if why.Blank() || !why.IsText() {
		why = llm.Quote("The model refused to answer.")
	}
	if a.held == nil || a.held.kind != llm.MessageItem {
		a.settle("completed", nil)
		a.held = &openItem{kind: llm.MessageItem, index: -1}
	}
	a.delta(a.held, llm.Delta{Channel: llm.RefusalChannel, Data: why})
	a.closePart(a.held)
}

// incomplete is why the answer is not complete; "" when it is. A filter that
// gave a refusal instead of an answer has cut nothing.
func (a *answer) incomplete() string {
	switch a.finish.Reason {
	case llm.LengthReached, llm.WindowFull:
		return "max_output_tokens"
	case llm.Filtered:
		if a.spoke || !a.refused {
			return "content_filter"
		}
	}
	return ""
}

// End implements dialect.Encoder.
func (a *answer) End(dst []byte) []byte {
	a.dst = dst
	kind, _ := a.last()
	w := a.event(kind)
	w.Name("response")
	a.writeResponse(w, kind[len("response."):], nil)
	a.send(kind)
	return append(a.dst, openai.DoneFrame...)
}

// last ends what is still open, and is the name of the last event.
func (a *answer) last() (kind, why string) {
	a.start(nil)
	if !a.finished {
		a.end(llm.Finish{})
	}
	if why = a.incomplete(); why != "" {
		return "response.incomplete", why
	}
	return "response.completed", ""
}

// Fail implements dialect.Encoder. What SDKs and agents need is what a
// follower tells them.
func (a *answer) Fail(dst []byte, e *llm.Error) []byte {
	a.dst = dst
	a.start(nil)
	a.settle("completed", nil)
	a.event("error")
	data := appendFault(a.w.Bytes(), e)
	a.dst = sse.Append(a.dst, []byte("error"), append(data, '}'))
	const kind = "response.failed"
	w := a.event(kind)
	w.Name("response")
	a.writeResponse(w, "failed", e)
	a.send(kind)
	return append(a.dst, openai.DoneFrame...)
}

// AppendAnswer implements dialect.Inbound.
func (Dialect) AppendAnswer(dst []byte, whole *llm.Answer, ask *dialect.Ask) []byte {
	a := newAnswer(ask)
	a.quiet = true
	a.start(whole.Model)
	if len(whole.Choices) > 0 {
		for _, item := range whole.Choices[0].Items {
			a.item(item)
		}
		a.end(whole.Choices[0].Finish)
	}
	a.usage, a.known = whole.Usage, whole.Known
	kind, _ := a.last()
	w := jsonedit.NewWriter(dst)
	a.writeResponse(w, kind[len("response."):], nil)
	return w.Bytes()
}

// item tells an item of a whole answer.
func (a *answer) item(item llm.Item) {
	switch item := item.(type) {
	case *llm.Reasoning:
		a.begin(llm.Open{Kind: llm.ReasoningItem, Opaque: item.Opaque})
		for i, t := range item.Texts {
			channel := llm.ThinkingChannel
			if t.Summary {
				channel = llm.SummaryChannel
			}
			a.inside(llm.Delta{Part: i, Channel: channel, Data: t.Text})
		}
		a.inside(llm.Close{})
	case *llm.ToolCall:
		a.begin(llm.Open{Kind: llm.CallItem, CallID: item.ID, Name: item.Name, Space: item.Namespace, Call: item.Kind, Opaque: item.Opaque})
		a.inside(llm.Delta{Channel: llm.ArgsChannel, Data: item.Args})
		a.inside(llm.Close{})
	case *llm.ServerCall:
		a.begin(llm.Open{Kind: llm.ServerItem})
		a.inside(llm.Close{Server: item})
	case *llm.Message:
		a.message(item)
	}
}

func (a *answer) message(m *llm.Message) {
	open := llm.Open{Kind: llm.MessageItem, Phase: m.Phase, Block: m.Pos.Part}
	for _, p := range m.Parts {
		if t, ok := p.(*llm.Text); ok {
			open.Opaque = append(open.Opaque, t.Opaque...)
		}
	}
	a.begin(open)
	for i, p := range m.Parts {
		switch p := p.(type) {
		case *llm.Text:
			a.inside(llm.Delta{Part: i, Channel: llm.TextChannel, Data: p.Text})
			for _, note := range p.Annotations {
				a.inside(llm.Annotate{Annotation: note})
			}
			if p.Logprobs != nil {
				a.inside(llm.Logprobs{Tokens: p.Logprobs})
			}
		case *llm.Refusal:
			a.inside(llm.Delta{Part: i, Channel: llm.RefusalChannel, Data: p.Text})
		case *llm.Media:
			switch {
			case p.Kind == llm.Image:
				a.inside(llm.Picture{Media: p})
			case p.Transcript == nil:
				a.ask.Skip("audio")
			default:
				a.inside(llm.Delta{Part: i, Channel: llm.TranscriptChannel, Data: p.Transcript})
			}
		}
	}
	a.inside(llm.Close{})
}
