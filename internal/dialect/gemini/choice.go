package gemini

import (
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// choice is one candidate while its chunks come. Parts of one kind that follow
// each other are one item; where a stream cuts a text is of no meaning.
type choice struct {
	*decoder
	index int

	open   int // the item that is open; -1 when none is
	kind   llm.ItemKind
	block  int  // position of the part that is open, among the parts
	blocks int  // parts that were begun
	piece  int  // of the open item's texts
	signed bool // the text so far has its signature: what follows is another part

	text    []byte // of messages, as it is written, for the offsets of sources
	from    int    // where in it the present request's begins
	points  int    // characters before that
	partial *partial
	code    *llm.ServerCall // that has been shown and not yet run

	grounding, citations llm.Raw
	searched             int64     // searches behind the present request's grounding
	logprobs             []llm.Raw // that no message was open for

	called   bool // a function was
	said     bool // there was anything at all
	blocked  bool
	finished bool
}

// begin makes sure that an item of a kind is open.
func (c *choice) begin(dst []llm.Event, kind llm.ItemKind) []llm.Event {
	if c.open >= 0 && c.kind == kind {
		if c.signed {
			c.signed = false
			c.piece++
			c.block = c.blocks
			c.blocks++
		}
		return dst
	}
	dst = c.end(dst)
	o := c.next(kind)
	return append(dst, o)
}

// next numbers an item that begins.
func (c *choice) next(kind llm.ItemKind) llm.Open {
	c.open, c.kind, c.block, c.piece, c.signed, c.said = c.items, kind, c.blocks, 0, false, true
	c.items++
	c.blocks++
	return llm.Open{Item: c.open, Choice: c.index, Kind: kind, Block: c.block}
}

// end closes what is open.
func (c *choice) end(dst []llm.Event) []llm.Event {
	if c.open < 0 {
		return dst
	}
	e := llm.Close{Item: c.open}
	switch {
	case c.kind == llm.ServerItem:
		e.Server, c.code = c.code, nil
	case c.partial != nil:
		if !c.partial.begun {
			dst = append(dst, llm.Delta{Item: c.open, Channel: llm.ArgsChannel, Data: llm.Raw(`"{}"`)})
		}
		c.partial = nil
	}
	c.open = -1
	return append(dst, e)
}

// facets are members of a part that say something about it.
var facets = []string{`"thought"`, `"thoughtSignature"`, `"videoMetadata"`, `"mediaResolution"`, `"partMetadata"`}

// part reads one part.
func (c *choice) part(dst []llm.Event, part []byte) ([]llm.Event, error) {
	var words, signature, call, inline, file, code, result llm.Raw
	thought := false
	unknown := ""
	for name, value := range jsonedit.Members(part) {
		switch string(name) {
		case `"text"`:
			words = text(value)
		case `"thought"`:
			thought = string(value) == "true"
		case `"thoughtSignature"`:
			signature = text(value)
		case `"functionCall"`:
			call = value
		case `"inlineData"`:
			inline = value
		case `"fileData"`:
			file = value
		case `"executableCode"`:
			code = value
		case `"codeExecutionResult"`:
			result = value
		default:
			if !slices.Contains(facets, string(name)) {
				unknown = llm.Raw(name).Text()
			}
		}
	}
	if signature.Blank() {
		signature = nil
	}
	switch {
	case call.Given():
		return c.call(dst, call, signature)
	case inline.Given():
		return c.media(dst, inline, "inlineData", thought), nil
	case file.Given():
		return c.media(dst, file, "fileData", thought), nil
	case code.Given(), result.Given():
		return c.execution(dst, part, code, result), nil
	case words != nil, signature != nil:
		return c.words(dst, words, signature, thought), nil
	case unknown != "":
		c.said = true
		return append(dst, llm.Note{Notes: llm.Notes{"skip:part:" + unknown}}), nil
	}
	return dst, nil
}

// words reads a text or a thought. A signature comes with its text, or after
// it with an empty one.
func (c *choice) words(dst []llm.Event, words, signature llm.Raw, thought bool) []llm.Event {
	kind, channel := llm.MessageItem, llm.TextChannel
	if thought {
		kind, channel = llm.ReasoningItem, llm.SummaryChannel
	}
	if words.Blank() {
		if signature == nil {
			return dst
		}
		if c.open < 0 || c.kind != kind || c.signed {
			dst = c.begin(dst, llm.ReasoningItem) // of nothing that is shown
		}
		return c.seal(dst, signature)
	}
	dst = c.begin(dst, kind)
	if kind == llm.MessageItem {
		c.text = append(c.text, words.Inner()...)
	}
	dst = append(dst, llm.Delta{Item: c.open, Part: c.piece, Channel: channel, Data: words})
	dst = c.tokens(dst)
	if signature != nil {
		dst = c.seal(dst, signature)
	}
	return dst
}

// seal tells the signature of the part that is open.
func (c *choice) seal(dst []llm.Event, signature llm.Raw) []llm.Event {
	c.signed = true
	o := opaque(signature)
	o.For = strconv.AppendInt(nil, int64(c.block), 10)
	return append(dst, llm.Seal{Item: c.open, Opaque: o})
}

func opaque(signature llm.Raw) llm.Opaque {
	return llm.Opaque{Kind: llm.ThoughtSignature, Vendor: vendor, Data: signature}
}

// tokens tells the probabilities that wait for a message.
func (c *choice) tokens(dst []llm.Event) []llm.Event {
	if len(c.logprobs) > 0 && c.open >= 0 && c.kind == llm.MessageItem {
		dst = append(dst, llm.Logprobs{Item: c.open, Tokens: c.logprobs})
		c.logprobs = nil
	}
	return dst
}

// call reads a function call, whole or the beginning, middle or end of one
// whose arguments come in pieces.
func (c *choice) call(dst []llm.Event, call, signature llm.Raw) ([]llm.Event, error) {
	var id, name, args, pieces llm.Raw
	more := false
	for member, value := range jsonedit.Members(call) {
		switch string(member) {
		case `"id"`:
			id = text(value)
		case `"name"`:
			name = text(value)
		case `"args"`:
			args = value
		case `"partialArgs"`:
			pieces = value
		case `"willContinue"`:
			more = string(value) == "true"
		}
	}
	if c.partial != nil && name.Blank() {
		return c.pieces(dst, pieces, more), nil
	}
	if name.Blank() {
		return dst, malformedOutput(errNoName)
	}
	if c.partial != nil { // the one before has no end of its own
		dst = c.pieces(dst, nil, false)
	}
	dst = c.end(dst)
	if id.Blank() {
		id = c.callID(name, args)
	}
	c.called = true
	o := c.next(llm.CallItem)
	o.CallID, o.Name = id, name.Text()
	if signature != nil {
		o.Opaque = []llm.Opaque{opaque(signature)}
	}
	dst = append(dst, o)
	if more || pieces.Given() {
		c.partial = &partial{}
		return c.pieces(dst, pieces, more), nil
	}
	whole := llm.Raw(`"{}"`)
	if args.Given() {
		whole = llm.QuoteJSON(args)
	}
	dst = append(dst, llm.Delta{Item: c.open, Channel: llm.ArgsChannel, Data: whole})
	return c.end(dst), nil
}

// pieces tells pieces of the arguments of the call that is open.
func (c *choice) pieces(dst []llm.Event, pieces llm.Raw, more bool) []llm.Event {
	var said []byte
	for piece := range jsonedit.Elements(pieces) {
		said = c.partial.add(said, piece)
	}
	if !more {
		said = c.partial.end(said)
	}
	if len(said) > 0 {
		dst = append(dst, llm.Delta{Item: c.open, Channel: llm.ArgsChannel, Data: llm.Quote(string(said))})
	}
	if !more {
		dst = c.end(dst)
	}
	return dst
}

// media reads a picture or sound that the model made.
func (c *choice) media(dst []llm.Event, blob llm.Raw, name string, thought bool) []llm.Event {
	mime := dialect.Text(blob, "mimeType")
	data, uri := text(dialect.Member(blob, "data")), text(dialect.Member(blob, "fileUri"))
	c.said = true
	switch kind := kindOf(mime); {
	case thought || data == nil && uri == nil:
	case kind == llm.Image:
		dst = c.begin(dst, llm.MessageItem)
		return append(dst, llm.Picture{Item: c.open, Media: &llm.Media{Kind: llm.Image, Data: data, URL: uri, MIME: mime}})
	case kind == llm.Audio && data != nil:
		dst = c.begin(dst, llm.MessageItem)
		return append(dst, llm.Delta{Item: c.open, Channel: llm.AudioChannel, Data: data})
	}
	return append(dst, llm.Note{Notes: llm.Notes{"skip:part:" + name}})
}

// execution reads code that the upstream ran, and what it printed. Both are
// one call: Responses shows it, and every client may give it back.
func (c *choice) execution(dst []llm.Event, part []byte, code, result llm.Raw) []llm.Event {
	if c.code == nil || code.Given() {
		dst = c.end(dst)
		o := c.next(llm.ServerItem)
		o.Server = llm.CodeExecution
		o.ID = text(dialect.Member(code, "id"))
		dst = append(dst, o)
		if !c.decoder.words.CanShow(llm.CodeExecution) {
			name := "executableCode"
			if !code.Given() {
				name = "codeExecutionResult"
			}
			dst = append(dst, llm.Note{Notes: llm.Notes{"skip:part:" + name}})
		}
		c.code = &llm.ServerCall{Kind: llm.CodeExecution, ID: o.ID.Clone()}
	}
	c.code.Native = append(c.code.Native, llm.Raw(part).Clone())
	if code.Given() {
		c.code.Code = text(dialect.Member(code, "code")).Clone()
	}
	if !result.Given() {
		return dst
	}
	if output := text(dialect.Member(result, "output")); output != nil {
		c.code.Outputs = append(c.code.Outputs, output.Clone())
	}
	c.code.Failed = dialect.Text(result, "outcome") != "OUTCOME_OK"
	return c.end(dst)
}

// reasons are the finishes with a meaning of their own.
var reasons = map[string]llm.Reason{
	"STOP": llm.Stopped, "MAX_TOKENS": llm.LengthReached, continued: llm.LengthReached,
	"SAFETY": llm.Filtered, "RECITATION": llm.Filtered, "LANGUAGE": llm.Filtered, "BLOCKLIST": llm.Filtered, "PROHIBITED_CONTENT": llm.Filtered,
	"SPII": llm.Filtered, "IMAGE_SAFETY": llm.Filtered, "IMAGE_PROHIBITED_CONTENT": llm.Filtered, "IMAGE_RECITATION": llm.Filtered,
}

// finish ends the candidate. Gemini has no word for the wish to have tools
// called: a stop after a call is one.
func (c *choice) finish(dst []llm.Event, word string, message llm.Raw) ([]llm.Event, error) {
	switch word {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS":
		return dst, malformedOutput(badFinish(word, message))
	}
	reason, known := reasons[word]
	if !known {
		if !c.said {
			return dst, dialect.NotAnAnswer(errNothing)
		}
		dst = append(dst, llm.Note{Notes: llm.Notes{"assume:finish_reason"}})
	}
	if word == "STOP" && c.called {
		reason = llm.ToolsCalled
	}
	dst = c.tokens(dst)
	if len(c.logprobs) > 0 {
		dst = append(dst, llm.Note{Notes: llm.Notes{"skip:logprobs"}})
	}
	dst = c.sources(dst)
	dst = c.end(dst)
	dst = c.search(dst)
	c.finished = true
	return append(dst, llm.Finish{Choice: c.index, Reason: reason}), nil
}
