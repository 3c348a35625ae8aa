package bedrock

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

var (
	errNoOutput = errors.New("the answer has no output")
	errNoCall   = errors.New("a tool use has no name or no ID")
)

// decoder reads an answer. Blocks come one after the other; those of text and
// reasoning may come without a beginning.
type decoder struct {
	model   llm.Raw
	vendor  string
	started bool
	items   int

	open  int // the item that is open; -1 when none is
	kind  llm.ItemKind
	block int64
	args  bool // the call that is open has arguments

	text  []byte // of the message that is open, as written, for the offsets of sources
	from  int    // where in it the block begins
	cited []llm.Annotation

	stopped bool
	used    bool
	ended   bool
}

// Answers implements dialect.Outbound. The service does not say which model
// answered.
func (Upstream) Answers(_ *dialect.Call, caps *llm.Caps) dialect.Decoder {
	d := &decoder{open: -1, block: -1, vendor: familyAnthropic}
	if caps != nil {
		d.model = llm.Quote(caps.Model)
		if caps.Vendor != "" {
			d.vendor = caps.Vendor
		}
	}
	return d
}

// Frame implements dialect.Decoder.
func (d *decoder) Frame(dst []llm.Event, f sse.Frame) ([]llm.Event, error) {
	event := string(f.Event)
	if name, failed := strings.CutPrefix(event, exceptionPrefix); failed {
		return dst, thrown(name, f.Data)
	}
	if f.Data == nil {
		return dst, nil
	}
	var object jsonedit.Object
	if err := jsonedit.Scan(f.Data, noFields, &object); err != nil {
		return dst, dialect.Malformed(err)
	}
	dst = d.start(dst)
	if event == "metadata" {
		return d.usage(dst, f.Data), nil
	}
	if d.stopped {
		return dst, nil
	}
	switch event {
	case "contentBlockStart":
		return d.begin(dst, index(f.Data), dialect.Member(f.Data, "start"))
	case "contentBlockDelta":
		return d.delta(dst, index(f.Data), dialect.Member(f.Data, "delta"))
	case "contentBlockStop":
		return d.endBlock(dst), nil
	case "messageStop":
		return d.stop(dst, dialect.Text(f.Data, "stopReason"))
	}
	return dst, nil
}

func index(data []byte) int64 {
	n, _ := strconv.ParseInt(string(dialect.Member(data, "contentBlockIndex")), 10, 32)
	return n
}

// End implements dialect.Decoder. The usage follows the stop, and may be
// missing.
func (d *decoder) End(dst []llm.Event) ([]llm.Event, error) {
	if !d.stopped {
		return dst, dialect.Truncated()
	}
	d.ended = true
	return dst, nil
}

// Done implements dialect.Decoder.
func (d *decoder) Done() bool { return d.ended || d.stopped && d.used }

// Whole implements dialect.Decoder.
func (d *decoder) Whole(dst []llm.Event, body []byte) ([]llm.Event, error) {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, noFields, &object); err != nil {
		return dst, dialect.NotAnAnswer(err)
	}
	message := dialect.Member(body, "output", "message")
	if message.Kind() != jsonedit.KindObject {
		return dst, dialect.NotAnAnswer(errNoOutput)
	}
	dst = d.start(dst)
	n := int64(0)
	for block := range jsonedit.Elements(dialect.Member(message, "content")) {
		var err error
		if dst, err = d.whole(dst, n, block); err != nil {
			return dst, err
		}
		dst = d.endBlock(dst)
		n++
	}
	dst = d.usage(dst, body)
	dst, err := d.stop(dst, dialect.Text(body, "stopReason"))
	d.ended = err == nil
	return dst, err
}

// whole reads a block that came whole: what it has goes the way of a stream.
func (d *decoder) whole(dst []llm.Event, n int64, block []byte) ([]llm.Event, error) {
	for quoted, value := range jsonedit.Members(block) {
		value := llm.Raw(value)
		switch name := llm.Raw(quoted).Text(); name {
		case "toolUse":
			dst, err := d.begin(dst, n, block)
			if err != nil || d.open < 0 {
				return dst, err
			}
			if input := dialect.Member(value, "input"); input != nil {
				dst = d.arguments(dst, llm.QuoteJSON(input))
			}
			return dst, nil
		case "reasoningContent":
			inner := dialect.Member(value, "reasoningText")
			if inner == nil {
				inner = value
			}
			return d.reasoning(dst, n, inner), nil
		case "citationsContent":
			for part := range jsonedit.Elements(dialect.Member(value, "content")) {
				dst = d.say(dst, n, dialect.Member(part, "text"))
			}
			for source := range jsonedit.Elements(dialect.Member(value, "citations")) {
				dst = d.cite(dst, n, source)
			}
			return dst, nil
		default:
			return d.piece(dst, n, name, value), nil
		}
	}
	return dst, nil
}

func (d *decoder) start(dst []llm.Event) []llm.Event {
	if d.started {
		return dst
	}
	d.started = true
	return append(dst, llm.Start{Model: d.model})
}

// begin reads the beginning of a block, of which only tools' uses say
// something.
func (d *decoder) begin(dst []llm.Event, n int64, start llm.Raw) ([]llm.Event, error) {
	use := dialect.Member(start, "toolUse")
	if use == nil {
		return dst, nil
	}
	dst = d.close(dst)
	if kind := dialect.Text(use, "type"); strings.HasPrefix(kind, "server") {
		return append(dst, llm.Note{Notes: llm.Notes{"skip:block:" + kind}}), nil
	}
	id, name := dialect.Member(use, "toolUseId"), dialect.Text(use, "name")
	if !id.IsText() || id.Blank() || name == "" {
		return dst, dialect.Malformed(errNoCall)
	}
	o := d.next(llm.CallItem, n)
	o.CallID, o.Name = id, name
	return append(dst, o), nil
}

// next numbers an item that begins.
func (d *decoder) next(kind llm.ItemKind, n int64) llm.Open {
	d.open, d.kind, d.block, d.args = d.items, kind, n, false
	d.items++
	return llm.Open{Item: d.open, Kind: kind, Block: int(n)}
}

// to makes sure that an item for a block is open. Blocks of text that follow
// each other are one message: the model parts them where it cites.
func (d *decoder) to(dst []llm.Event, kind llm.ItemKind, n int64) []llm.Event {
	if d.open >= 0 && d.kind == kind && (d.block == n || kind == llm.MessageItem) {
		d.block = n
		return dst
	}
	dst = d.close(dst)
	d.text, d.from = d.text[:0], 0
	return append(dst, d.next(kind, n))
}

func (d *decoder) delta(dst []llm.Event, n int64, delta llm.Raw) ([]llm.Event, error) {
	for quoted, value := range jsonedit.Members(delta) {
		value := llm.Raw(value)
		switch name := llm.Raw(quoted).Text(); name {
		case "toolUse":
			if d.open < 0 || d.kind != llm.CallItem {
				return dst, nil // of a tool that the upstream runs
			}
			return d.arguments(dst, dialect.Member(value, "input")), nil
		case "reasoningContent":
			return d.reasoning(dst, n, value), nil
		case "citation":
			return d.cite(dst, n, value), nil
		default:
			return d.piece(dst, n, name, value), nil
		}
	}
	return dst, nil
}

// piece reads what is written alike in a stream and in a whole answer.
func (d *decoder) piece(dst []llm.Event, n int64, name string, value llm.Raw) []llm.Event {
	switch name {
	case "text":
		return d.say(dst, n, value)
	case "image":
		data := dialect.Member(value, "source", "bytes")
		if data.IsText() {
			dst = d.to(dst, llm.MessageItem, n)
			return append(dst, llm.Picture{Item: d.open, Media: &llm.Media{Kind: llm.Image, Data: data, MIME: mimeOf(dialect.Text(value, "format"))}})
		}
	}
	return append(dst, llm.Note{Notes: llm.Notes{"skip:block:" + name}})
}

func mimeOf(format string) string {
	if format == "" {
		format = "png"
	}
	return "image/" + format
}

func (d *decoder) say(dst []llm.Event, n int64, text llm.Raw) []llm.Event {
	if !text.IsText() || text.Blank() {
		return dst
	}
	dst = d.to(dst, llm.MessageItem, n)
	d.text = append(d.text, text.Inner()...)
	return append(dst, llm.Delta{Item: d.open, Channel: llm.TextChannel, Data: text})
}

func (d *decoder) arguments(dst []llm.Event, input llm.Raw) []llm.Event {
	if !input.IsText() || input.Blank() {
		return dst
	}
	d.args = true
	return append(dst, llm.Delta{Item: d.open, Channel: llm.ArgsChannel, Data: input})
}

// reasoning reads thinking, its signature, and thinking that may not be read.
func (d *decoder) reasoning(dst []llm.Event, n int64, content llm.Raw) []llm.Event {
	for name, value := range jsonedit.Members(content) {
		value := llm.Raw(value)
		if !value.IsText() || value.Blank() {
			continue
		}
		switch string(name) {
		case `"text"`:
			dst = d.to(dst, llm.ReasoningItem, n)
			dst = append(dst, llm.Delta{Item: d.open, Channel: llm.ThinkingChannel, Data: value})
		case `"signature"`:
			dst = d.seal(dst, n, llm.Signature, value)
		case `"redactedContent"`:
			dst = d.seal(dst, n, llm.Redacted, value)
		}
	}
	return dst
}

func (d *decoder) seal(dst []llm.Event, n int64, kind llm.OpaqueKind, data llm.Raw) []llm.Event {
	dst = d.to(dst, llm.ReasoningItem, n)
	return append(dst, llm.Seal{Item: d.open, Opaque: llm.Opaque{Kind: kind, Vendor: d.vendor, Data: data}})
}

// cite keeps a source until its block ends: what it is cited for is the block.
func (d *decoder) cite(dst []llm.Event, n int64, source []byte) []llm.Event {
	url := dialect.Member(source, "location", "web", "url")
	if !url.IsText() {
		return append(dst, llm.Note{Notes: llm.Notes{"skip:citation"}})
	}
	dst = d.to(dst, llm.MessageItem, n)
	title := dialect.Member(source, "title")
	d.cited = append(d.cited, llm.Annotation{URL: url.Clone(), Title: title.Clone()})
	return dst
}

// endBlock ends a block. A message stays open: the next block may be more of
// its text.
func (d *decoder) endBlock(dst []llm.Event) []llm.Event {
	if d.open < 0 {
		return dst
	}
	if d.kind != llm.MessageItem {
		return d.close(dst)
	}
	if len(d.cited) > 0 {
		start, end := points(d.text[:d.from]), points(d.text)
		for _, a := range d.cited {
			a.Start, a.End = start, end
			dst = append(dst, llm.Annotate{Item: d.open, Annotation: a})
		}
		d.cited = d.cited[:0]
	}
	d.from = len(d.text)
	return dst
}

// points counts the code points of a text as it is written between its quotes.
func points(written []byte) int {
	text, _ := jsonedit.Unquote(append(append([]byte{'"'}, written...), '"'))
	return utf8.RuneCountInString(text)
}

func (d *decoder) close(dst []llm.Event) []llm.Event {
	if d.open < 0 {
		return dst
	}
	if d.kind == llm.MessageItem {
		dst = d.endBlock(dst)
	}
	if d.kind == llm.CallItem && !d.args {
		dst = append(dst, llm.Delta{Item: d.open, Channel: llm.ArgsChannel, Data: llm.Raw(`"{}"`)})
	}
	item := d.open
	d.open = -1
	return append(dst, llm.Close{Item: item})
}

// reasons are the words for a stop.
var reasons = map[string]llm.Reason{
	"end_turn": llm.Stopped, "stop_sequence": llm.Stopped, "tool_use": llm.ToolsCalled, "max_tokens": llm.LengthReached,
	"model_context_window_exceeded": llm.WindowFull, "guardrail_intervened": llm.Filtered, "content_filtered": llm.Filtered, "refusal": llm.Refused,
}

func (d *decoder) stop(dst []llm.Event, word string) ([]llm.Event, error) {
	if strings.HasPrefix(word, "malformed_") {
		return dst, malformedOutput(word)
	}
	reason, known := reasons[word]
	if !known {
		dst = append(dst, llm.Note{Notes: llm.Notes{"assume:finish_reason"}})
	}
	dst = d.close(dst)
	d.stopped = true
	return append(dst, llm.Finish{Reason: reason}), nil
}

// usage reads the counts, in which the cache is not within the input, and the
// service that was given, from what has both.
func (d *decoder) usage(dst []llm.Event, answer []byte) []llm.Event {
	u := llm.Usage{Service: dialect.ServiceOf(dialect.Member(answer, "serviceTier", "type"))}
	var written, hour int64
	known := false
	for name, value := range jsonedit.Members(dialect.Member(answer, "usage")) {
		if string(name) == `"cacheDetails"` {
			hour = hourWrites(value)
			continue
		}
		n, ok := count(value)
		if !ok {
			continue
		}
		switch string(name) {
		case `"inputTokens"`:
			u.Input, known = n, true
		case `"outputTokens"`:
			u.Output, known = n, true
		case `"cacheReadInputTokens"`:
			u.CacheRead = n
		case `"cacheWriteInputTokens"`:
			written = n
		}
	}
	d.used = true
	if !known {
		return dst
	}
	u.CacheWrite, u.HourWrite = llm.Within(written, hour)
	return append(dst, llm.Used{Usage: u, Known: true})
}

// hourWrites are the tokens that were written to be kept for an hour.
func hourWrites(details []byte) (hour int64) {
	for detail := range jsonedit.Elements(details) {
		if n, _ := count(dialect.Member(detail, "inputTokens")); dialect.Text(detail, "ttl") == "1h" {
			hour, _ = llm.Within(hour+n, 0)
		}
	}
	return hour
}

// count reads a number, within what is plausible.
func count(value []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	n, _ = llm.Within(n, 0)
	return n, err == nil
}
