package openaichat

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// Answers implements dialect.Outbound.
func (Upstream) Answers(_ *dialect.Call, caps *llm.Caps) dialect.Decoder {
	return &answerDecoder{caps: caps}
}

// Frames implements dialect.Outbound.
func (Upstream) Frames(r io.Reader, limit int) dialect.Frames { return dialect.SSE(r, limit) }

// answerDecoder decodes one answer of a server of this dialect.
type answerDecoder struct {
	caps *llm.Caps

	id, model llm.Raw
	created   int64
	service   llm.Service
	started   bool
	done      bool
	items     int // opened so far
	choices   []*decodedChoice
	dst       []llm.Event

	chunk jsonedit.Object // scratch
}

// decodedChoice is one choice as far as it came. Servers mix texts and calls
// as they like: an item of text ends where one of another kind begins, calls
// stay open until the choice is finished.
type decodedChoice struct {
	index    int
	finished bool

	message   openItem
	parts     int         // texts of the message that is open
	channel   llm.Channel // of its last part
	reasoning openItem
	thought   thoughtKey
	snapshot  []byte // what came of it, where pieces repeat it
	tags      tags
	table     choiceCalls
	calls     []*decodedCall // beside table
}

// openItem is an item that is open.
type openItem struct {
	number int
	is     bool
}

// thoughtKey tells pieces of reasoning apart that the server keeps apart.
type thoughtKey struct {
	index int
	id    string
}

var noThought = thoughtKey{index: -1}

// Done implements dialect.Decoder.
func (d *answerDecoder) Done() bool { return d.done }

// Frame implements dialect.Decoder.
func (d *answerDecoder) Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error) {
	d.dst = dst
	if openai.IsDone(f.Data) {
		return d.ended()
	}
	if err := jsonedit.Scan(f.Data, chunkFields, &d.chunk); err != nil {
		return dst, dialect.Malformed(err)
	}
	if isFault(f.Data, &d.chunk) {
		return dst, failedWithin(f.Data)
	}
	d.readHead()
	for choice := range jsonedit.Elements(d.chunk.Value(chunkChoices)) {
		if err := d.readChoice(choice, "delta"); err != nil {
			return d.dst, err
		}
	}
	if usage := d.chunk.Value(chunkUsage); jsonedit.KindOf(usage) == jsonedit.KindObject {
		d.use(usage)
	} else if x := d.chunk.Value(chunkXGroq); x != nil {
		d.use(dialect.Member(x, "usage"))
	}
	return d.dst, nil
}

// readHead remembers who answers: the first chunks may leave it open.
func (d *answerDecoder) readHead() {
	if id := llm.Raw(d.chunk.Value(chunkID)); d.id == nil && id.IsText() && !id.Blank() {
		d.id = id.Clone()
	}
	if model := llm.Raw(d.chunk.Value(chunkModel)); d.model == nil && model.IsText() && !model.Blank() {
		d.model = model.Clone()
	}
	if d.created == 0 {
		d.created, _ = integer(d.chunk.Value(chunkCreated))
	}
	if service := llm.Raw(d.chunk.Value(chunkService)); service.Given() {
		d.service = dialect.ServiceOf(service)
	}
}

func (d *answerDecoder) tell(e llm.Event) {
	if !d.started {
		d.started = true
		d.dst = append(d.dst, llm.Start{ID: d.id, Model: d.model, Created: max(d.created, 0)})
	}
	d.dst = append(d.dst, e)
}

// use tells a usage object, wherever it stood.
func (d *answerDecoder) use(raw llm.Raw) {
	u, known := openai.DecodeUsage(raw)
	if !known {
		return
	}
	if d.caps.Chat.ReasoningApart && dialect.Member(raw, "total_tokens") == nil {
		u.Output, u.Reasoning = apart(raw, u)
	}
	u.Service = d.service
	d.tell(llm.Used{Usage: u, Known: true})
}

// apart are output and reasoning at a server that counts them beside each
// other, where no total tells that it does.
func apart(raw llm.Raw, u llm.Usage) (output, reasoning int64) {
	reasoning, ok := integer(dialect.Member(raw, "completion_tokens_details", "reasoning_tokens"))
	if !ok || reasoning < 0 {
		return u.Output, u.Reasoning
	}
	_, reasoning = llm.Within(reasoning, reasoning)
	return u.Output + u.Reasoning, reasoning
}

func (d *answerDecoder) choice(raw []byte) *decodedChoice {
	index, err := strconv.Atoi(string(raw))
	if err != nil || index < 0 || index >= maxChoices {
		index = 0
	}
	for _, c := range d.choices {
		if c.index == index {
			return c
		}
	}
	c := &decodedChoice{index: index, thought: noThought}
	d.choices = append(d.choices, c)
	return c
}

// readChoice reads a choice of a chunk, or of a whole answer, where the member
// with the content is called otherwise.
func (d *answerDecoder) readChoice(raw []byte, content string) error {
	var index, delta, finish, logprobs, usage, stop llm.Raw
	for quoted, v := range jsonedit.Members(raw) {
		switch string(quoted) {
		case `"index"`:
			index = v
		case `"delta"`, `"message"`:
			if string(quoted[1:len(quoted)-1]) == content || delta == nil {
				delta = v
			}
		case `"finish_reason"`:
			finish = v
		case `"logprobs"`:
			logprobs = v
		case `"usage"`:
			usage = v
		case `"stop_reason"`, `"matched_stop"`: // vLLM's and SGLang's
			if llm.Raw(v).IsText() {
				stop = v
			}
		}
	}
	d.use(usage)
	c := d.choice(index)
	if c.finished {
		return nil // the first one counts
	}
	if delta.Kind() == jsonedit.KindObject {
		if err := d.readDelta(c, delta); err != nil {
			return err
		}
	}
	d.logprobs(c, logprobs)
	if finish.Kind() == jsonedit.KindObject { // of older SGLang
		finish = dialect.Member(finish, "type")
	}
	if finish.Blank() || !finish.IsText() {
		return nil
	}
	return d.finish(c, finish.Text(), stop)
}

// readDelta tells what a delta or a message brings. What thinks comes first,
// then what speaks, then what calls, whatever their order.
func (d *answerDecoder) readDelta(c *decodedChoice, delta llm.Raw) error {
	var thoughts [3]llm.Raw
	var details, content, refusal, calls, oldCall, annotations, images, audio, extra llm.Raw
	for quoted, v := range jsonedit.Members(delta) {
		switch string(quoted) {
		case `"content"`:
			content = v
		case `"reasoning_content"`:
			thoughts[0] = v
		case `"reasoning"`:
			thoughts[1] = v
		case `"thinking"`:
			thoughts[2] = v
		case `"reasoning_details"`:
			details = v
		case `"refusal"`:
			refusal = v
		case `"tool_calls"`:
			calls = v
		case `"function_call"`:
			oldCall = v
		case `"annotations"`:
			annotations = v
		case `"images"`:
			images = v
		case `"audio"`:
			audio = v
		case `"extra_content"`:
			extra = v
		}
	}
	said := d.details(c, details)
	for _, t := range thoughts {
		if !said && t.IsText() && !t.Blank() {
			d.think(c, noThought, llm.ThinkingChannel, t)
			said = true // the others repeat it
		}
	}
	d.content(c, content)
	if refusal.IsText() && !refusal.Blank() {
		d.speak(c, llm.RefusalChannel, refusal)
	}
	if s := signatureOf(extra); s != nil && c.message.is {
		d.tell(llm.Seal{Item: c.message.number, Opaque: llm.Opaque{Kind: llm.ThoughtSignature, Vendor: google, Data: s}})
	}
	d.sound(c, audio)
	for v := range jsonedit.Elements(images) {
		if m, err := media("images", "image_url", v); err == nil {
			d.openMessage(c)
			d.tell(llm.Picture{Item: c.message.number, Media: m})
		}
	}
	d.annotate(c, annotations)
	for fragment := range jsonedit.Elements(calls) {
		if err := d.fragment(c, fragment); err != nil {
			return err
		}
	}
	if oldCall.Kind() == jsonedit.KindObject {
		return d.oldCall(c, oldCall)
	}
	return nil
}

// content tells a text, or the parts of one.
func (d *answerDecoder) content(c *decodedChoice, content llm.Raw) {
	if content.IsText() {
		switch {
		case content.Blank():
		case d.caps.Chat.Tags && c.tags.at != tagsOver:
			d.tagged(c, content)
		default:
			d.speak(c, llm.TextChannel, content)
		}
		return
	}
	for part := range jsonedit.Elements(content) {
		switch dialect.Text(part, "type") {
		case "thinking":
			if t := thinkingText(dialect.Member(part, "thinking")); !t.Blank() {
				d.think(c, noThought, llm.ThinkingChannel, t)
			}
		case "text":
			if t := dialect.Member(part, "text"); t.IsText() && !t.Blank() {
				d.speak(c, llm.TextChannel, t)
			}
		case "refusal":
			if t := dialect.Member(part, "refusal"); t.IsText() && !t.Blank() {
				d.speak(c, llm.RefusalChannel, t)
			}
		default:
			d.skip("part:" + dialect.Text(part, "type"))
		}
	}
}

func (d *answerDecoder) skip(what string) { d.note(func(n *llm.Notes) { n.Skip(what) }) }

func (d *answerDecoder) note(add func(*llm.Notes)) {
	var n llm.Notes
	add(&n)
	d.tell(llm.Note{Notes: n})
}

// open begins an item.
func (d *answerDecoder) open(e llm.Open) openItem {
	e.Item = d.items
	d.items++
	d.tell(e)
	return openItem{number: e.Item, is: true}
}

func (d *answerDecoder) close(item *openItem) {
	if item.is {
		d.tell(llm.Close{Item: item.number})
		item.is = false
	}
}

func (d *answerDecoder) openMessage(c *decodedChoice) {
	d.close(&c.reasoning)
	if !c.message.is {
		c.message = d.open(llm.Open{Choice: c.index, Kind: llm.MessageItem, Block: d.items})
		c.parts = 0
	}
}

// speak tells a piece of a text. Text and refusal are parts of one message.
func (d *answerDecoder) speak(c *decodedChoice, channel llm.Channel, text llm.Raw) {
	d.openMessage(c)
	if c.parts == 0 || c.channel != channel {
		c.parts, c.channel = c.parts+1, channel
	}
	d.tell(llm.Delta{Item: c.message.number, Part: c.parts - 1, Channel: channel, Data: text})
}

// think tells a piece of reasoning.
func (d *answerDecoder) think(c *decodedChoice, key thoughtKey, channel llm.Channel, text llm.Raw) {
	d.openReasoning(c, key)
	d.tell(llm.Delta{Item: c.reasoning.number, Channel: channel, Data: text})
}

func (d *answerDecoder) openReasoning(c *decodedChoice, key thoughtKey) {
	if c.reasoning.is && (c.thought == key || key.id != "" && c.thought.id == key.id) {
		return
	}
	d.close(&c.reasoning)
	d.close(&c.message)
	block := d.items
	var id llm.Raw
	if key != noThought {
		block = key.index
		if key.id != "" {
			id = llm.Quote(key.id)
		}
	}
	c.reasoning, c.thought = d.open(llm.Open{Choice: c.index, Kind: llm.ReasoningItem, ID: id, Block: block}), key
}

// details tells reasoning_details. It reports whether there was a text among
// them: then the plain members are its twins.
func (d *answerDecoder) details(c *decodedChoice, details llm.Raw) (said bool) {
	for entry := range jsonedit.Elements(details) {
		text, channel := dialect.Member(entry, "text"), llm.ThinkingChannel
		if dialect.Text(entry, "type") == "reasoning.summary" {
			text, channel = dialect.Member(entry, "summary"), llm.SummaryChannel
		}
		key := thoughtKey{id: dialect.Text(entry, "id")}
		if n, ok := integer(dialect.Member(entry, "index")); ok && n >= 0 && n < 1<<20 {
			key.index = int(n)
		}
		if text.IsText() && !text.Blank() {
			said = true
			if d.caps.Chat.Snapshots {
				text = c.unsaid(key, text)
			}
			if !text.Blank() {
				d.think(c, key, channel, text)
			}
		}
		vendor := readers[dialect.Text(entry, "format")]
		if vendor == "" {
			vendor = d.caps.Vendor
		}
		opaque := llm.Opaque{Kind: llm.Signature, Vendor: vendor, Data: dialect.Member(entry, "signature")}
		if dialect.Text(entry, "type") == "reasoning.encrypted" {
			opaque.Kind, opaque.Data = llm.Encrypted, dialect.Member(entry, "data")
			switch vendor {
			case anthropic:
				opaque.Kind = llm.Redacted
			case google:
				opaque.Kind = llm.ThoughtSignature
				if id := dialect.Member(entry, "id"); id.IsText() && !id.Blank() {
					opaque.For = id
				}
			}
		}
		if opaque.Data.IsText() && !opaque.Data.Blank() {
			d.openReasoning(c, key)
			d.tell(llm.Seal{Item: c.reasoning.number, Opaque: opaque})
		}
	}
	return said
}

func (d *answerDecoder) sound(c *decodedChoice, audio llm.Raw) {
	for _, m := range [...]struct {
		name    string
		channel llm.Channel
	}{{"data", llm.AudioChannel}, {"transcript", llm.TranscriptChannel}} {
		if v := dialect.Member(audio, m.name); v.IsText() && !v.Blank() {
			d.openMessage(c)
			d.tell(llm.Delta{Item: c.message.number, Channel: m.channel, Data: v})
		}
	}
}

func (d *answerDecoder) annotate(c *decodedChoice, annotations llm.Raw) {
	for v := range jsonedit.Elements(annotations) {
		cited := dialect.Member(v, "url_citation")
		if cited == nil || !c.message.is {
			d.skip("annotation:" + dialect.Text(v, "type"))
			continue
		}
		a := llm.Annotation{URL: dialect.Member(cited, "url"), Title: dialect.Member(cited, "title")}
		start, _ := integer(dialect.Member(cited, "start_index"))
		end, _ := integer(dialect.Member(cited, "end_index"))
		a.Start, a.End = int(start), int(end)
		d.tell(llm.Annotate{Item: c.message.number, Annotation: a})
	}
}

func (d *answerDecoder) logprobs(c *decodedChoice, logprobs llm.Raw) {
	var tokens []llm.Raw
	for t := range jsonedit.Elements(dialect.Member(logprobs, "content")) {
		tokens = append(tokens, t)
	}
	if len(tokens) > 0 && c.message.is {
		d.tell(llm.Logprobs{Item: c.message.number, Tokens: tokens})
	}
}

// finish ends a choice by a server's word for why.
func (d *answerDecoder) finish(c *decodedChoice, said string, stop llm.Raw) error {
	word := said
	for _, pair := range d.caps.Chat.Finish {
		if strings.EqualFold(pair[0], said) {
			word = pair[1]
		}
	}
	word = strings.ToLower(word)
	if faultReasons[word] {
		return &llm.Error{Kind: llm.Upstream, Message: "The upstream broke off its answer.", Err: errors.New("finish_reason " + said)}
	}
	d.untag(c)
	if err := d.closeAll(c); err != nil {
		return err
	}
	e := llm.Finish{Choice: c.index, Reason: reasons[finishReasons[word]]}
	switch {
	case finishReasons[word] == "":
		d.note(func(n *llm.Notes) { n.Assume("finish_reason") })
	case e.Reason == llm.Stopped && len(c.calls) > 0:
		e.Reason = llm.ToolsCalled
	case e.Reason == llm.ToolsCalled && len(c.calls) == 0:
		e.Reason = llm.Stopped
		d.note(func(n *llm.Notes) { n.Assume("finish_reason") })
	case e.Reason == llm.Stopped:
		e.StopSeq = stop
	}
	c.finished = true
	d.tell(e)
	return nil
}

// reasons are what the words of finishReasons mean.
var reasons = map[string]llm.Reason{
	"stop": llm.Stopped, "length": llm.LengthReached, "tool_calls": llm.ToolsCalled, "function_call": llm.ToolsCalled, "content_filter": llm.Filtered,
}

// assumeFinish ends a choice whose server said that it is done and not why.
func (d *answerDecoder) assumeFinish(c *decodedChoice) error {
	d.note(func(n *llm.Notes) { n.Assume("finish_reason") })
	return d.finish(c, "stop", nil)
}

// End implements dialect.Decoder: half an answer is none.
func (d *answerDecoder) End(dst []llm.Event) ([]llm.Event, error) {
	if !d.begun() || slices.ContainsFunc(d.choices, func(c *decodedChoice) bool { return !c.finished }) {
		return dst, dialect.Truncated()
	}
	d.done = true
	return dst, nil
}

// begun reports whether the answer has anything that was told.
func (d *answerDecoder) begun() bool { return d.started && len(d.choices) > 0 }

// ended takes the word that ends a stream, after which a choice may lack its
// finish.
func (d *answerDecoder) ended() ([]llm.Event, error) {
	if !d.begun() {
		return d.dst, dialect.Truncated()
	}
	for _, c := range d.choices {
		if !c.finished {
			if err := d.assumeFinish(c); err != nil {
				return d.dst, err
			}
		}
	}
	d.done = true
	return d.dst, nil
}

// Whole implements dialect.Decoder.
func (d *answerDecoder) Whole(dst []llm.Event, body []byte) ([]llm.Event, error) {
	d.dst = dst
	if err := jsonedit.Scan(body, chunkFields, &d.chunk); err != nil {
		return dst, dialect.NotAnAnswer(err)
	}
	if isFault(body, &d.chunk) {
		return dst, failedWithin(body)
	}
	choices := d.chunk.Value(chunkChoices)
	if jsonedit.KindOf(choices) != jsonedit.KindArray || openai.EmptyArray(choices) {
		return dst, dialect.NotAnAnswer(errNoChoices)
	}
	d.readHead()
	for choice := range jsonedit.Elements(choices) {
		if err := d.readChoice(choice, "message"); err != nil {
			return d.dst, err
		}
	}
	for _, c := range d.choices {
		if !c.finished {
			if err := d.assumeFinish(c); err != nil {
				return d.dst, err
			}
		}
	}
	d.use(d.chunk.Value(chunkUsage))
	d.done = true
	return d.dst, nil
}

// closeAll closes the items of a choice that are open, in the order in which
// they began.
func (d *answerDecoder) closeAll(c *decodedChoice) error {
	var open []*openItem
	for _, item := range []*openItem{&c.reasoning, &c.message} {
		if item.is {
			open = append(open, item)
		}
	}
	for i, call := range c.calls {
		if err := d.complete(c, i); err != nil {
			return err
		}
		if call.item.is {
			open = append(open, &call.item)
		}
	}
	slices.SortFunc(open, func(a, b *openItem) int { return a.number - b.number })
	for _, item := range open {
		d.close(item)
	}
	return nil
}
