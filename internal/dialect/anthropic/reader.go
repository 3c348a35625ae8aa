package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// reader reads the answer of an upstream, whole or as a stream.
type reader struct {
	origin string
	events []llm.Event // that are being appended to

	started, finished, done bool
	id                      llm.Raw // of the message
	items                   int     // opened so far
	calls                   int
	counts                  counts
	blocks                  []*answerBlock // in the order in which they began
	said                    *openText      // the message that takes texts; nil when none is open
	servers                 map[string]*llm.ServerCall
	waiting                 []*llm.ServerCall // calls whose result has not come

	body      []byte // of the request
	rounds    int    // how often the upstream may be asked to go on
	paused    bool   // it waits for that
	resumed   bool   // it was, and its message has not begun
	spent     llm.Usage
	base      int     // blocks that came with the requests before
	container llm.Raw // in which the upstream's tools run

	event jsonedit.Object // scratch
}

func newReader(caps *llm.Caps) *reader { return &reader{origin: caps.Origin} }

var _ dialect.Resumer = (*reader)(nil)

// openText is a message item, which goes on over blocks: the upstream splits a
// text at every citation.
type openText struct {
	item   int
	points int // characters so far
}

// answerBlock is a block of the answer. Blocks are kept until the end, because
// only then it is known whether the turn must go back as it is.
type answerBlock struct {
	index     int64
	kind      blockClass
	open      bool
	item      int
	raw       llm.Raw // as it began
	text      llm.Raw // what came of it: text, thinking, or the text of the input
	signature llm.Raw
	citations []llm.Raw
	start     int  // of its text within the item
	lost      bool // something came of it that nobody knows
}

// blockClass says what becomes of a block.
type blockClass uint8

const (
	skippedBlock blockClass = iota // of a kind that nobody knows
	spokenText
	reasoned
	redacted
	clientUse
	serverUse
	serverResult
	kept // goes back as it came, and is not shown
)

// Done implements dialect.Decoder.
func (r *reader) Done() bool { return r.done && !r.paused }

// End implements dialect.Decoder.
func (r *reader) End(dst []llm.Event) ([]llm.Event, error) {
	if r.Done() {
		return dst, nil
	}
	return dst, dialect.Truncated()
}

func (r *reader) add(e llm.Event) { r.events = append(r.events, e) }

var (
	errNoName  = errors.New("a tool call without a name")
	errNoStart = errors.New("an event before message_start")
)

// Frame implements dialect.Decoder.
func (r *reader) Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error) {
	if r.done {
		return dst, nil
	}
	if isDone(f.Data) {
		return dst, dialect.Truncated() // message_stop comes first
	}
	if err := jsonedit.Scan(f.Data, eventFields, &r.event); err != nil {
		return dst, dialect.Malformed(err)
	}
	r.events = dst
	err := r.frame()
	dst, r.events = r.events, nil
	return dst, err
}

func (r *reader) frame() error {
	value := r.event.Value
	kind := text(value(eventType))
	switch kind {
	case "error":
		return eventError(value(eventFault))
	case "":
		if e := value(eventFault); given(e) {
			return eventError(e)
		}
		return dialect.Malformed(errNoType)
	case "message_start":
		return r.start(value(eventMessage))
	}
	if !r.started {
		if kind == "ping" {
			return nil
		}
		return dialect.Malformed(errNoStart)
	}
	switch kind {
	case "ping":
		r.add(llm.Ping{})
	case "content_block_start":
		if r.finished || r.paused {
			return nil
		}
		index, _ := count(value(eventIndex))
		return r.begin(index, value(eventBlock))
	case "content_block_delta":
		return r.delta(value(eventIndex), value(eventDelta))
	case "content_block_stop":
		if b := r.at(value(eventIndex)); b != nil {
			return r.close(b)
		}
	case "message_delta":
		r.used(value(eventUsage))
		delta := llm.Raw(value(eventDelta))
		r.runsIn(delta)
		if reason := member(delta, "stop_reason"); reason.IsText() {
			return r.finish(reason.Text(), member(delta, "stop_sequence"), member(delta, "stop_details"))
		}
	case "message_stop":
		r.done = true
		return r.finish("", nil, nil)
	}
	return nil
}

// Whole implements dialect.Decoder.
func (r *reader) Whole(dst []llm.Event, body []byte) ([]llm.Event, error) {
	var object jsonedit.Object
	if err := readMessage(body, &object); err != nil {
		return dst, err
	}
	r.events = dst
	err := r.whole(body, &object)
	dst, r.events = r.events, nil
	return dst, err
}

func (r *reader) whole(body []byte, object *jsonedit.Object) error {
	if err := r.start(body); err != nil {
		return err
	}
	r.done = true
	return r.finish(text(object.Value(messageStopReason)), object.Value(messageStopSequence), object.Value(messageStopDetails))
}

// start begins the answer. Blocks that the message has already are told as if
// they had come.
func (r *reader) start(message llm.Raw) error {
	switch {
	case r.resumed:
		r.resumed = false
	case r.started:
		return nil
	default:
		r.started = true
		r.id = member(message, "id").Clone()
		model := member(message, "model")
		if !model.IsText() {
			model = nil
		}
		r.add(llm.Start{ID: r.id, Model: model})
	}
	r.runsIn(message)
	r.used(member(message, "usage"))
	index := int64(0)
	for block := range jsonedit.Elements(member(message, "content")) {
		if err := r.begin(index, block); err != nil {
			return err
		}
		if b := r.blocks[len(r.blocks)-1]; b.open {
			if err := r.close(b); err != nil {
				return err
			}
		}
		index++
	}
	return nil
}

func (r *reader) used(usage llm.Raw) {
	if usage.Kind() != jsonedit.KindObject {
		return
	}
	r.counts.merge(usage)
	r.add(llm.Used{Usage: r.spent.Plus(r.counts.usage()), Known: r.counts.known})
}

// at is the open block of an index; nil when there is none.
func (r *reader) at(index []byte) *answerBlock {
	n, _ := count(index)
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if b := r.blocks[i]; b.open && b.index == n {
			return b
		}
	}
	return nil
}

// openItem begins an item and returns its number.
func (r *reader) openItem(o llm.Open) int {
	o.Item = r.items
	r.items++
	r.add(o)
	return o.Item
}

// closeText ends the message that takes texts.
func (r *reader) closeText() {
	if r.said != nil {
		r.add(llm.Close{Item: r.said.item})
		r.said = nil
	}
}

// classes of blocks by their types.
var blockClasses = map[string]blockClass{
	"text": spokenText, "thinking": reasoned, "redacted_thinking": redacted, "tool_use": clientUse,
	"server_tool_use": serverUse, "mcp_tool_use": serverUse,
	"container_upload": kept, "compaction": kept, "fallback": kept,
}

// begin begins a block.
func (r *reader) begin(index int64, raw llm.Raw) error {
	kind := dialect.Text(raw, "type")
	class, known := blockClasses[kind]
	if !known && strings.HasSuffix(kind, "_tool_result") {
		class, known = serverResult, true
	}
	b := &answerBlock{index: index, kind: class, open: true, raw: raw.Clone()}
	r.blocks = append(r.blocks, b)
	if !known {
		var skipped llm.Notes
		skipped.Skip("block:" + kind)
		r.add(llm.Note{Notes: skipped})
		return nil
	}
	if class != spokenText {
		r.closeText()
	}
	switch class {
	case spokenText:
		r.beginText(b)
	case reasoned:
		b.item = r.openItem(llm.Open{Kind: llm.ReasoningItem, Block: r.base + int(index)})
		r.think(b, member(b.raw, "thinking"))
		b.signature = ownText(member(b.raw, "signature"))
	case redacted:
		b.item = r.openItem(llm.Open{Kind: llm.ReasoningItem, Block: r.base + int(index)})
	case clientUse:
		return r.beginUse(b)
	case serverUse:
		r.expectServer()
	}
	return nil
}

// ownText is a text to append to; nil for what is none.
func ownText(said llm.Raw) llm.Raw {
	if !said.IsText() || said.Blank() {
		return nil
	}
	return said.Clone()
}

func (r *reader) beginText(b *answerBlock) {
	if r.said == nil {
		r.said = &openText{item: r.openItem(llm.Open{Kind: llm.MessageItem, Block: r.base + int(b.index)})}
	}
	b.item, b.start = r.said.item, r.said.points
	for citation := range jsonedit.Elements(member(b.raw, "citations")) {
		b.citations = append(b.citations, citation)
	}
	r.speak(b, member(b.raw, "text"))
}

// grow adds a piece to a text.
func grow(said *llm.Raw, piece llm.Raw) {
	if *said == nil {
		*said = append(make(llm.Raw, 0, 2*len(piece)), '"')
	} else {
		*said = (*said)[:len(*said)-1]
	}
	*said = append(append(*said, piece.Inner()...), '"')
}

func (r *reader) speak(b *answerBlock, piece llm.Raw) {
	if !piece.IsText() || piece.Blank() || r.said == nil {
		return
	}
	grow(&b.text, piece)
	r.said.points += codePoints(piece)
	r.add(llm.Delta{Item: b.item, Channel: llm.TextChannel, Data: piece})
}

func (r *reader) think(b *answerBlock, piece llm.Raw) {
	if !piece.IsText() || piece.Blank() {
		return
	}
	grow(&b.text, piece)
	r.add(llm.Delta{Item: b.item, Channel: llm.ThinkingChannel, Data: piece})
}

func (r *reader) beginUse(b *answerBlock) error {
	name := dialect.Text(b.raw, "name")
	if name == "" {
		return dialect.Malformed(errNoName)
	}
	id := member(b.raw, "id")
	if !id.IsText() || id.Blank() {
		id = r.callID()
	}
	r.calls++
	b.item = r.openItem(llm.Open{Kind: llm.CallItem, Block: r.base + int(b.index), CallID: id, Name: name})
	if input := member(b.raw, "input"); input.Kind() == jsonedit.KindObject && !empty(input) {
		b.text = llm.QuoteJSON(input)
		r.add(llm.Delta{Item: b.item, Channel: llm.ArgsChannel, Data: b.text})
	}
	return nil
}

// callID is the ID of a call that the upstream gave none.
func (r *reader) callID() llm.Raw {
	sum := sha256.Sum256([]byte(r.id.Text() + "/" + strconv.Itoa(r.calls)))
	return llm.Quote("call_" + hex.EncodeToString(sum[:12]))
}

// delta takes a piece of a block. Kinds of pieces that nobody knows are left
// out.
func (r *reader) delta(index []byte, delta llm.Raw) error {
	b := r.at(index)
	if b == nil {
		return nil
	}
	kind := dialect.Text(delta, "type")
	switch {
	case kind == "text_delta" && b.kind == spokenText:
		r.speak(b, member(delta, "text"))
	case kind == "citations_delta" && b.kind == spokenText:
		if citation := member(delta, "citation"); citation != nil {
			b.citations = append(b.citations, citation.Clone())
		}
	case kind == "thinking_delta" && b.kind == reasoned:
		r.think(b, member(delta, "thinking"))
	case kind == "signature_delta" && b.kind == reasoned:
		if piece := member(delta, "signature"); piece.IsText() {
			grow(&b.signature, piece)
		}
	case kind == "input_json_delta" && (b.kind == clientUse || b.kind == serverUse):
		piece := member(delta, "partial_json")
		if !piece.IsText() || piece.Blank() {
			return nil
		}
		grow(&b.text, piece)
		if b.kind == clientUse {
			r.add(llm.Delta{Item: b.item, Channel: llm.ArgsChannel, Data: piece})
		}
	default:
		b.lost = true
	}
	return nil
}

// close ends a block, and the item that it is.
func (r *reader) close(b *answerBlock) error {
	b.open = false
	switch b.kind {
	case spokenText:
		r.annotate(b)
	case reasoned:
		if !b.signature.Blank() {
			r.add(llm.Seal{Item: b.item, Opaque: r.state(llm.Signature, b.signature)})
		}
		r.add(llm.Close{Item: b.item})
	case redacted:
		if data := member(b.raw, "data"); data.IsText() {
			r.add(llm.Seal{Item: b.item, Opaque: r.state(llm.Redacted, data)})
		}
		r.add(llm.Close{Item: b.item})
	case clientUse:
		if b.text == nil {
			r.add(llm.Delta{Item: b.item, Channel: llm.ArgsChannel, Data: llm.Raw(`"{}"`)})
		}
		r.add(llm.Close{Item: b.item})
	case serverUse:
		r.closeServerUse(b)
	case serverResult:
		r.serverResult(b)
	}
	return nil
}

func (r *reader) state(kind llm.OpaqueKind, data llm.Raw) llm.Opaque {
	return llm.Opaque{Kind: kind, Vendor: vendor, Origin: r.origin, Data: data}
}

// annotate cites the sources of a block's text: only now it is known how long
// that is. Citations of what the client sent itself have no URL.
func (r *reader) annotate(b *answerBlock) {
	if r.said == nil || r.said.item != b.item {
		return
	}
	for _, citation := range b.citations {
		url := member(citation, "url")
		if !url.IsText() {
			var skipped llm.Notes
			skipped.Skip("citation")
			r.add(llm.Note{Notes: skipped})
			continue
		}
		r.add(llm.Annotate{Item: b.item, Annotation: llm.Annotation{
			URL: url, Title: member(citation, "title"), Start: b.start, End: r.said.points, Native: citation,
		}})
	}
}

// expectServer makes room for calls of the upstream's own tools.
func (r *reader) expectServer() {
	if r.servers == nil {
		r.servers = map[string]*llm.ServerCall{}
	}
}

// closeServerUse reads the call, whose input is whole now.
func (r *reader) closeServerUse(b *answerBlock) {
	call := newServerCall(b.whole())
	r.servers[call.ID.Text()] = call
	r.waiting = append(r.waiting, call)
}

// serverResult tells a call of the upstream's own tool with what came of it.
func (r *reader) serverResult(b *answerBlock) {
	id := member(b.raw, "tool_use_id")
	call := r.servers[id.Text()]
	if call == nil {
		call = &llm.ServerCall{ID: id}
	}
	delete(r.servers, id.Text())
	r.waiting = slices.DeleteFunc(r.waiting, func(c *llm.ServerCall) bool { return c == call })
	finishServerCall(call, b.raw)
	r.tellServer(call, b.index)
}

func (r *reader) tellServer(call *llm.ServerCall, index int64) {
	id := call.ID
	if !id.IsText() {
		id = nil
	}
	item := r.openItem(llm.Open{Kind: llm.ServerItem, Block: r.base + int(index), ID: id, Server: call.Kind})
	r.add(llm.Close{Item: item, Server: call})
}
