package anthropic

import (
	"encoding/base64"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// bodyKind is a kind of block in a body.
type bodyKind uint8

const (
	sayBlock     bodyKind = iota
	thoughtBlock          // thinking with its signature
	redactedBlock
	useBlock // a call of a client's tool
	resultBlock
	mediaBlock
	foundBlock // a search result
	toolBlock  // in the list of tools
	rawBlock   // written already
)

// block is a block of a body. Texts and media are written once, when all of
// the body is.
type block struct {
	kind   bodyKind
	text   llm.Raw // said or thought
	data   llm.Raw // signature, redacted data, input, source of media, or the whole
	id     llm.Raw
	name   string
	media  *llm.Media
	found  *llm.SearchResult
	tool   *dialect.Function
	parts  []block // of a result
	listed bool    // the client gave the result as a list
	failed bool
	cache  *llm.Breakpoint
}

// thinks reports whether the block is thinking that somebody signed.
func (b *block) thinks() bool {
	if b.kind != rawBlock {
		return b.kind == thoughtBlock || b.kind == redactedBlock
	}
	kind := dialect.Text(b.data, "type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// size is the length of what the model reads of a block.
func (b *block) size() int {
	n := len(b.text) + len(b.data)
	for i := range b.parts {
		n += b.parts[i].size()
	}
	if b.tool != nil {
		n += len(b.tool.Desc) + len(b.tool.Schema)
	}
	return n
}

// dropNames notes what a message says beside its parts.
func (b *builder) dropNames(m *llm.Message) {
	if m.Name.Given() {
		b.notes.Drop(b.param("name"))
	}
	if m.Phase.Given() {
		b.notes.Drop(b.param("phase"))
	}
}

// user adds what the user says.
func (b *builder) user(m *llm.Message) error {
	b.dropNames(m)
	for _, p := range m.Parts {
		block, err := b.part(p)
		if err != nil {
			return err
		}
		if block != nil {
			t := b.to(userRole, m.Pos)
			t.blocks = append(t.blocks, *block)
		}
	}
	return nil
}

// lead adds instructions that stand before the conversation.
func (b *builder) lead(m *llm.Message) error {
	texts, err := b.instruction(m)
	b.system = append(b.system, texts...)
	return err
}

// instruction is what an operator says: text, part by part.
func (b *builder) instruction(m *llm.Message) (texts []block, err error) {
	b.dropNames(m)
	for _, p := range m.Parts {
		t, ok := p.(*llm.Text)
		if !ok {
			param := b.place(m.Pos, "")
			return nil, dialect.NotPossible(param, "Instructions other than text are not possible with this model ('%s'); give them as a message of the user.", param)
		}
		if !t.Text.White() {
			texts = append(texts, block{kind: sayBlock, text: t.Text, cache: t.Cache})
		}
	}
	return texts, nil
}

// instructions are the messages of operators that items begin with.
func instructions(items []llm.Item) []*llm.Message {
	var run []*llm.Message
	for _, item := range items {
		m, ok := item.(*llm.Message)
		if !ok || !m.Role.Instructs() {
			break
		}
		run = append(run, m)
	}
	return run
}

// instruct adds instructions within the conversation: as messages of their own
// where the model and the place allow it, and marked as such in the user's
// turn where not.
func (b *builder) instruct(run []*llm.Message, rest []llm.Item) error {
	var texts []block
	for _, m := range run {
		more, err := b.instruction(m)
		if err != nil {
			return err
		}
		texts = append(texts, more...)
	}
	if len(texts) == 0 {
		return nil
	}
	at := run[0].Pos
	b.closeTurn()
	b.turn = nil
	if n := len(b.turns); b.caps.MidSystem && n > 0 && b.turns[n-1].role == userRole && assistantNext(rest) {
		b.turns = append(b.turns, &bodyTurn{role: systemRole, blocks: texts, at: at})
		return nil
	}
	b.notes.Degrade("mid_system")
	t := b.to(userRole, at)
	for _, said := range texts {
		said.text = llm.Concat("", llm.Raw(`"<system>\n"`), said.text, llm.Raw(`"\n</system>"`))
		t.blocks = append(t.blocks, said)
	}
	return nil
}

// assistantNext reports whether the assistant speaks next, or nobody.
func assistantNext(rest []llm.Item) bool {
	for _, item := range rest {
		switch item := item.(type) {
		case *llm.ToolResult: // stands with its call
		case *llm.Message:
			if len(item.Parts) == 0 || item.Role.Instructs() {
				continue
			}
			if t, ok := item.Parts[0].(*llm.Text); ok && len(item.Parts) == 1 && t.Text.White() {
				continue
			}
			return item.Role == llm.Assistant
		case *llm.Compaction:
			return false
		default:
			return true
		}
	}
	return true
}

// assistant adds what the assistant said.
func (b *builder) assistant(m *llm.Message) error {
	b.dropNames(m)
	for _, p := range m.Parts {
		said := block{kind: sayBlock}
		switch p := p.(type) {
		case *llm.Text:
			said.text, said.cache = p.Text, p.Cache
		case *llm.Refusal:
			said.text = p.Text
			b.notes.Degrade("refusal")
		case *llm.Media:
			if p.Kind != llm.Audio || p.Transcript.Blank() {
				return b.noMedia(p, "this model takes none in its own turns; describe it in text")
			}
			said.text = p.Transcript
			b.notes.Degrade("audio")
		default:
			continue
		}
		if said.text.White() {
			continue
		}
		t := b.to(assistantRole, m.Pos)
		t.blocks = append(t.blocks, said)
	}
	return nil
}

// reasoning adds thinking that this model, or one that shares its state, has
// signed. The rest it would refuse.
func (b *builder) reasoning(r *llm.Reasoning) {
	foreign, marked, sent := false, false, false
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
			b.thought(r, block{kind: thoughtBlock, text: llm.Concat("", texts...), data: o.Data})
			sent = true
		case o.Kind == llm.Redacted:
			b.thought(r, block{kind: redactedBlock, data: o.Data})
			sent = true
		default:
			foreign = true
		}
	}
	switch {
	case sent:
	case foreign:
		b.notes.Drop(b.param("reasoning_details"))
	case marked || len(r.Texts) > 0:
		b.notes.Drop(b.param("reasoning_content"))
	}
}

func (b *builder) thought(r *llm.Reasoning, thought block) {
	t := b.to(assistantRole, r.Pos)
	t.blocks = append(t.blocks, thought)
}

// toolUse is a call of a client's tool. Arguments that are no object, as those
// of a call that was cut, are kept as a text.
func (b *builder) toolUse(c *llm.ToolCall) block {
	args := c.Args
	if c.Kind == llm.CustomCall {
		args = dialect.Wrapped(args)
	}
	if _, ok := args.Object(); !ok {
		b.notes.Degrade("tool_arguments")
	}
	return block{kind: useBlock, id: c.ID, name: b.names.Wire(c.Namespace, c.Name), data: inputOf(args)}
}

// serverNames are what calls of the upstream's own tools are called in notes.
var serverNames = map[llm.ServerKind]string{
	llm.WebSearch:       "web_search_call",
	llm.WebFetch:        "web_fetch_call",
	llm.CodeExecution:   "code_interpreter_call",
	llm.FileSearch:      "file_search_call",
	llm.ImageGeneration: "image_generation_call",
	llm.MCP:             "mcp_call",
	llm.ComputerUse:     "computer_call",
}

// serverCall adds a call that an upstream of this dialect ran itself. Those of
// others have nothing to do here.
func (b *builder) serverCall(c *llm.ServerCall) {
	if native(c) {
		t := b.to(assistantRole, c.Pos)
		for _, whole := range c.Native {
			t.blocks = append(t.blocks, block{kind: rawBlock, data: whole})
		}
		return
	}
	name := serverNames[c.Kind]
	if name == "" {
		name = "server_call"
	}
	b.notes.Drop(name)
}

// nativeTurn adds a turn as it came. Empty texts, which may come, may not be
// sent.
func (b *builder) nativeTurn(n *llm.NativeTurn) {
	t := b.to(assistantRole, n.Pos)
	for whole := range jsonedit.Elements(n.Opaque.Data) {
		if dialect.Text(whole, "type") == "text" && member(whole, "text").Blank() {
			continue
		}
		t.blocks = append(t.blocks, block{kind: rawBlock, data: whole})
	}
	t.calls = append(t.calls, b.answers[n]...)
}

// result is what a tool gave.
func (b *builder) result(r *llm.ToolResult) (block, error) {
	out := block{kind: resultBlock, id: r.ID, failed: r.IsError}
	for _, p := range r.Parts {
		if t, ok := p.(*llm.Text); ok && t.Pos.Part >= 0 && b.words != words {
			out.listed = true
		}
		part, err := b.part(p)
		if err != nil {
			return out, err
		}
		if part != nil {
			if part.cache != nil { // a breakpoint stands on the result
				out.cache, part.cache = part.cache, nil
			}
			out.parts = append(out.parts, *part)
		}
	}
	return out, nil
}

// part is a part of a user's message or of a tool's result; nil for one that
// says nothing.
func (b *builder) part(p llm.Part) (*block, error) {
	switch p := p.(type) {
	case *llm.Text:
		if p.Text.White() {
			return nil, nil
		}
		return &block{kind: sayBlock, text: p.Text, cache: p.Cache}, nil
	case *llm.Refusal:
		b.notes.Degrade("refusal")
		return &block{kind: sayBlock, text: p.Text}, nil
	case *llm.SearchResult:
		return &block{kind: foundBlock, found: p, cache: p.Cache}, nil
	case *llm.ToolReference:
		var w jsonedit.Writer
		w.BeginObject()
		w.SetText("type", "tool_reference")
		w.SetText("tool_name", b.names.Wire("", p.Name))
		w.EndObject()
		return &block{kind: rawBlock, data: w.Bytes()}, nil
	case *llm.Media:
		return b.media(p)
	}
	return nil, nil
}

// media is an image or a document, with its source as it is written here.
func (b *builder) media(m *llm.Media) (*block, error) {
	if m.Detail.Given() {
		b.notes.Drop(b.param("detail"))
	}
	var w jsonedit.Writer
	w.BeginObject()
	switch {
	case m.Kind == llm.Audio || m.Kind == llm.Video:
		return nil, b.noMedia(m, "this model takes no audio or video; give its text or use another model")
	case m.FileID.Given() && b.words == words:
		w.SetText("type", "file")
		w.SetRaw("file_id", m.FileID)
	case m.FileID.Given():
		return nil, b.noMedia(m, "its 'file_id' is of another vendor; send the file inline")
	case m.Kind == llm.File:
		if why := document(&w, m); why != "" {
			return nil, b.noMedia(m, why)
		}
	case m.Data != nil:
		w.SetText("type", "base64")
		w.SetText("media_type", imageType(m.MIME))
		w.SetRaw("data", m.Data)
	default:
		if why := remote(&w, m); why != "" {
			return nil, b.noMedia(m, why)
		}
	}
	w.EndObject()
	return &block{kind: mediaBlock, media: m, data: w.Bytes(), cache: m.Cache}, nil
}

// noMedia refuses media with the place of its source.
func (b *builder) noMedia(m *llm.Media, why string) error {
	param := b.place(m.Pos, m.At)
	return dialect.NotPossible(param, "The media at '%s' is not possible: %s.", param, why)
}

// imageType is a media type in its proper spelling.
func imageType(mime string) string {
	if mime == "image/jpg" {
		return "image/jpeg"
	}
	return mime
}

// remote writes a source at a URL; it says why it cannot.
func remote(w *jsonedit.Writer, m *llm.Media) (why string) {
	url := strings.ToLower(m.URL.Text())
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return "this model takes media inline or from https only; send it so"
	}
	w.SetText("type", "url")
	w.SetRaw("url", m.URL)
	return ""
}

// document writes the source of a document; it says why it cannot.
func document(w *jsonedit.Writer, m *llm.Media) (why string) {
	const other = "this model takes documents as PDF or plain text only; convert it"
	mime, _, _ := strings.Cut(m.MIME, ";")
	if mime == "" && strings.HasSuffix(strings.ToLower(m.Name.Text()), ".pdf") {
		mime = pdf
	}
	said := m.Text
	switch {
	case said != nil:
	case m.Data == nil && (mime == "" || mime == pdf):
		return remote(w, m)
	case m.Data != nil && mime == pdf:
		w.SetText("type", "base64")
		w.SetText("media_type", pdf)
		w.SetRaw("data", m.Data)
		return ""
	case m.Data == nil || mime != plain:
		return other
	default:
		raw, err := base64.StdEncoding.DecodeString(m.Data.Text())
		if err != nil {
			return "its data is not base64; encode it"
		}
		said = llm.Quote(string(raw))
	}
	w.SetText("type", "text")
	w.SetText("media_type", plain)
	w.SetRaw("data", said)
	return ""
}
