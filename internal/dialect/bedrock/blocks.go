package bedrock

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

type blockKind uint8

// The kinds of blocks.
const (
	textBlock     blockKind = iota
	thoughtBlock            // thinking with its signature
	redactedBlock           // thinking that may not be read
	useBlock                // a call of a tool
	resultBlock
	imageBlock
	documentBlock
)

// block is a block of a message.
type block struct {
	kind   blockKind
	text   llm.Raw
	data   llm.Raw // signature, redacted data, input, or base64 of a medium
	uri    llm.Raw // of a medium that is stored at the vendor
	id     llm.Raw
	name   string
	format string
	parts  []block // of a result
	failed bool
	cache  *llm.Breakpoint
}

// part is a part of a message or of a result as blocks.
func (b *builder) part(p llm.Part) ([]block, error) {
	switch p := p.(type) {
	case *llm.Text:
		return said(p.Text, p.Cache), nil
	case *llm.Refusal:
		b.notes.Degrade("refusal")
		return said(p.Text, nil), nil
	case *llm.SearchResult:
		b.notes.Degrade("search_result")
		heading := llm.Concat(" ", llm.Raw(`"[search result:"`), p.Title, llm.Concat("", llm.Raw(`"<"`), p.Source, llm.Raw(`">]"`)))
		return said(llm.Concat("\n", append([]llm.Raw{heading}, p.Texts...)...), p.Cache), nil
	case *llm.ToolReference:
		b.notes.Degrade("tool_reference")
		return said(llm.Quote("[tool loaded: "+p.Name+"]"), nil), nil
	case *llm.Media:
		return b.media(p)
	}
	return nil, nil
}

// said is a text, which may not be empty.
func said(text llm.Raw, cache *llm.Breakpoint) []block {
	if text.White() {
		return nil
	}
	return []block{{kind: textBlock, text: text, cache: cache}}
}

// trimmed is a text without white space at its end, where a model refuses it.
func trimmed(s llm.Raw) llm.Raw {
	text := s.Text()
	if cut := strings.TrimRight(text, " \t\r\n"); len(cut) < len(text) {
		return llm.Quote(cut)
	}
	return s
}

// images and documents are the formats of media by their types.
var (
	images = map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}

	documents = map[string]string{
		"application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/plain": "txt", "text/markdown": "md",
		"application/msword": "doc", "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
		"application/vnd.ms-excel": "xls", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
	}
)

// stored begins URLs of what the service can read itself.
const stored = "s3://"

func (b *builder) media(m *llm.Media) ([]block, error) {
	if m.Detail.Given() && m.Detail.Text() != "auto" {
		b.notes.Drop(b.param("detail"))
	}
	if m.Citations {
		b.notes.Drop("citations")
	}
	at := b.place(m.Pos) + m.At
	out := block{kind: imageBlock, data: m.Data, format: images[strings.ToLower(m.MIME)], cache: m.Cache}
	if m.Kind == llm.File {
		out.kind, out.format = documentBlock, format(m)
	}
	switch {
	case m.Text != nil:
		out.format, out.data = "txt", base64Of(m.Text)
	case m.Kind == llm.Audio && !m.Transcript.Blank():
		b.notes.Degrade("audio")
		return said(m.Transcript, m.Cache), nil
	case m.Kind == llm.Audio || m.Kind == llm.Video:
		return nil, dialect.NotPossible(at, "'%s' is audio or video, which this model does not take. Send a transcript as text.", at)
	case m.Data == nil && strings.HasPrefix(m.URL.Text(), stored):
		out.uri = m.URL
	case m.Data == nil && m.URL != nil:
		return nil, dialect.NotPossible(at, "'%s' is a remote URL, and this model takes none. Send the content inline as a data: URL.", at)
	case m.Data == nil:
		return nil, dialect.NotPossible(at, "'%s' names a file that is stored with another vendor. Send its content inline as a data: URL.", at)
	}
	if out.format == "" {
		return nil, dialect.NotPossible(at, "'%s' has a media type that this model does not take. Send an image as PNG, JPEG, GIF or WebP, a document as PDF or text.", at)
	}
	var blocks []block
	if out.kind == documentBlock {
		out.name = b.document(m.Name.Text())
		blocks = said(m.Context, nil)
	}
	return append(blocks, out), nil
}

// format is that of a document, by its type or its name.
func format(m *llm.Media) string {
	mime, _, _ := strings.Cut(strings.ToLower(m.MIME), ";")
	if f := documents[mime]; f != "" {
		return f
	}
	name := strings.ToLower(m.Name.Text())
	ending := name[strings.LastIndexByte(name, '.')+1:]
	for _, f := range documents {
		if f == ending && m.MIME == "" {
			return f
		}
	}
	return ""
}

func base64Of(text llm.Raw) llm.Raw {
	return llm.Quote(base64.StdEncoding.EncodeToString([]byte(text.Text())))
}

// maxDocument is the length of a document's name.
const maxDocument = 200

// document is a name for a document in the letters that it may have, and that
// no other document has.
func (e *encoder) document(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot]
	}
	clean := make([]byte, 0, len(name))
	for i := 0; i < len(name) && len(clean) < maxDocument; i++ {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-()[]", c) >= 0:
		case len(clean) > 0 && clean[len(clean)-1] == ' ':
			continue // no two spaces in a row
		default:
			c = ' '
		}
		clean = append(clean, c)
	}
	base := strings.Trim(string(clean), " ")
	if base == "" {
		base = "document"
	}
	name = base
	for n := 2; e.documents[name]; n++ {
		name = base + " " + strconv.Itoa(n)
	}
	e.documents[name] = true
	return name
}

// reasoning is thinking that this model, or one that shares its state, has
// signed. The rest it would refuse.
func (b *builder) reasoning(r *llm.Reasoning) (blocks []block) {
	foreign, marked := false, false
	for _, o := range r.Opaque {
		switch {
		case o.Kind == llm.PlainMark:
			marked = true
		case !b.caps.Reads(o):
			foreign = true
		case o.Kind == llm.Signature:
			texts := make([]llm.Raw, len(r.Texts))
			for i, t := range r.Texts {
				texts[i] = t.Text
			}
			blocks = append(blocks, block{kind: thoughtBlock, text: llm.Concat("", texts...), data: o.Data})
		case o.Kind == llm.Redacted:
			blocks = append(blocks, block{kind: redactedBlock, data: o.Data})
		default:
			foreign = true
		}
	}
	switch {
	case len(blocks) > 0:
	case foreign:
		b.notes.Drop(b.param("reasoning_details"))
	case marked || len(r.Texts) > 0:
		b.notes.Drop(b.param("reasoning_content"))
	}
	return blocks
}

// use is a call of a tool, told as text where no tool blocks may be.
func (b *builder) use(c *llm.ToolCall) block {
	args := c.Args
	if c.Kind == llm.CustomCall {
		args = dialect.Wrapped(args)
	}
	name := b.names.Wire(c.Namespace, c.Name)
	if b.flat {
		b.notes.Degrade("tool_history_text")
		return block{kind: textBlock, text: llm.Quote("[tool call " + c.ID.Text() + ": " + name + "(" + args.Text() + ")]")}
	}
	input, ok := args.Object()
	if !ok {
		b.notes.Degrade("tool_arguments")
		input = append(append(llm.Raw(`{"_raw":`), args...), '}')
	}
	return block{kind: useBlock, id: c.ID, name: name, data: input}
}

// result is what a tool gave, told as text where no tool blocks may be.
func (b *builder) result(r *llm.ToolResult) ([]block, error) {
	var parts []block
	for _, p := range r.Parts {
		more, err := b.part(p)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	if !b.flat {
		out := block{kind: resultBlock, id: r.ID, parts: parts, failed: r.IsError}
		for i := range parts { // a breakpoint stands behind the result
			if parts[i].cache != nil {
				out.cache, parts[i].cache = parts[i].cache, nil
			}
		}
		return []block{out}, nil
	}
	b.notes.Degrade("tool_history_text")
	var texts, media []block
	var joined []llm.Raw
	for _, p := range parts {
		if p.kind == textBlock {
			joined = append(joined, p.text)
			continue
		}
		media = append(media, p)
	}
	label := "[tool result "
	if r.IsError {
		label = "[tool error "
	}
	texts = append(texts, block{kind: textBlock, text: llm.Concat("", llm.Quote(label+r.ID.Text()+": "), llm.Concat("\n", joined...), llm.Raw(`"]"`))})
	return append(texts, media...), nil
}

func (e *encoder) writeBlocks(w *jsonedit.Writer, member string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	w.Array(member)
	for i := range blocks {
		e.writeBlock(w, &blocks[i])
	}
	w.EndArray()
}

func (e *encoder) writeBlock(w *jsonedit.Writer, b *block) {
	w.BeginObject()
	switch b.kind {
	case textBlock:
		w.SetRaw("text", b.text)
	case thoughtBlock:
		w.Object("reasoningContent")
		w.Object("reasoningText")
		w.SetRaw("text", b.text)
		w.SetRaw("signature", b.data)
		w.EndObject()
		w.EndObject()
	case redactedBlock:
		w.Object("reasoningContent")
		w.SetRaw("redactedContent", b.data)
		w.EndObject()
	case useBlock:
		w.Object("toolUse")
		w.SetRaw("toolUseId", b.id)
		w.SetText("name", b.name)
		w.SetRaw("input", b.data)
		w.EndObject()
	case resultBlock:
		w.Object("toolResult")
		w.SetRaw("toolUseId", b.id)
		w.Array("content")
		for i := range b.parts {
			e.writeBlock(w, &b.parts[i])
		}
		w.EndArray()
		if b.failed {
			w.SetText("status", "error")
		}
		w.EndObject()
	case imageBlock:
		w.Object("image")
		writeMedia(w, b)
		w.EndObject()
	case documentBlock:
		w.Object("document")
		w.SetText("name", b.name)
		writeMedia(w, b)
		w.EndObject()
	}
	w.EndObject()
	writeBreakpoint(w, b.cache)
}

func writeMedia(w *jsonedit.Writer, b *block) {
	w.SetText("format", b.format)
	w.Object("source")
	if b.uri != nil {
		w.Object("s3Location")
		w.SetRaw("uri", b.uri)
		w.EndObject()
	}
	w.SetRaw("bytes", b.data)
	w.EndObject()
}
