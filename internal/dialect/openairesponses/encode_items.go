package openairesponses

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// input writes the conversation. Items are as flat here as there, and stay in
// their order: the upstream knows a result by its call's ID.
func (e *requestEncoder) input() error {
	e.calls = map[string]llm.CallKind{}
	e.w.BeginArray()
	err := e.items(e.req.Items)
	e.w.EndArray()
	return err
}

func (e *requestEncoder) items(items []llm.Item) error {
	for _, item := range items {
		if err := e.item(item); err != nil {
			return err
		}
	}
	return nil
}

func (e *requestEncoder) item(item llm.Item) error {
	switch item := item.(type) {
	case *llm.Message:
		return e.message(item)
	case *llm.Reasoning:
		e.thinking(item)
	case *llm.ToolCall:
		e.call(item)
	case *llm.ToolResult:
		return e.result(item)
	case *llm.ServerCall:
		e.notes.Drop(serverWords[item.Kind])
	case *llm.NativeTurn:
		return e.items(item.Items)
	case *llm.Compaction:
		return e.compaction(item)
	}
	return nil
}

// serverWords name what upstreams ran, for notes.
var serverWords = [...]string{
	llm.OtherServerTool: "server_tool_call", llm.WebSearch: "web_search_call", llm.WebFetch: "web_fetch_call", llm.CodeExecution: "code_execution_call",
	llm.FileSearch: "file_search_call", llm.ImageGeneration: "image_generation_call", llm.MCP: "mcp_call", llm.ComputerUse: "computer_call",
}

var roleWords = [...]string{llm.User: "user", llm.Assistant: "assistant", llm.System: "system", llm.Developer: "developer"}

// path is the client's name of a place.
func (e *requestEncoder) path(pos llm.Pos, suffix string) string {
	return e.req.Words.Place(pos, suffix)
}

func (e *requestEncoder) message(m *llm.Message) error {
	if len(m.Parts) == 0 {
		return nil
	}
	if m.Name.Given() {
		e.notes.Drop("name")
	}
	w := e.w
	w.BeginObject()
	w.SetText("type", "message")
	w.SetText("role", roleWords[m.Role])
	if m.Phase.IsText() {
		w.SetRaw("phase", m.Phase)
	}
	w.Name("content")
	err := e.content(m.Parts, m.Role == llm.Assistant, "")
	w.EndObject()
	return err
}

// content writes parts, or one text as a string. before is put in front of
// the first text.
func (e *requestEncoder) content(parts []llm.Part, assistant bool, before string) error {
	if len(parts) == 0 {
		e.w.Text(before)
		return nil
	}
	if len(parts) == 1 {
		if t, ok := parts[0].(*llm.Text); ok && !e.breaks(t.Cache) {
			e.w.Raw(prefixed(before, t.Text))
			return nil
		}
	}
	e.w.BeginArray()
	for _, p := range parts {
		var err error
		if t, ok := p.(*llm.Text); ok && before != "" {
			own := *t
			own.Text = prefixed(before, t.Text)
			p, before = &own, ""
		}
		if err = e.part(p, assistant); err != nil {
			return err
		}
	}
	if before != "" {
		e.plain(llm.Quote(before), assistant, nil)
	}
	e.w.EndArray()
	return nil
}

func prefixed(before string, text llm.Raw) llm.Raw {
	if before == "" {
		return text
	}
	quoted := llm.Quote(before)
	return append(append(quoted[:len(quoted)-1], text.Inner()...), '"')
}

// breaks reports whether a cache breakpoint is written. Upstreams that do not
// know them refuse them.
func (e *requestEncoder) breaks(b *llm.Breakpoint) bool {
	if b != nil && !e.caps.Chat.Breakpoints {
		e.notes.Drop(e.param("prompt_cache_breakpoint"))
		return false
	}
	return b != nil
}

func (e *requestEncoder) breakpoint(b *llm.Breakpoint) {
	if !e.breaks(b) {
		return
	}
	e.w.Object("prompt_cache_breakpoint")
	e.w.SetText("mode", "explicit")
	switch b.TTL {
	case "", "5m":
	case "30m", "12h":
		e.w.SetText("ttl", b.TTL)
	default:
		e.notes.Clamp("cache_ttl")
		e.w.SetText("ttl", "30m")
	}
	e.w.EndObject()
}

func (e *requestEncoder) plain(text llm.Raw, assistant bool, cache *llm.Breakpoint) {
	kind := "input_text"
	if assistant {
		kind = "output_text"
	}
	e.w.BeginObject()
	e.w.SetText("type", kind)
	e.w.SetRaw("text", text)
	e.breakpoint(cache)
	e.w.EndObject()
}

func (e *requestEncoder) part(p llm.Part, assistant bool) error {
	switch p := p.(type) {
	case *llm.Text:
		e.plain(p.Text, assistant, p.Cache)
	case *llm.Refusal:
		if !assistant {
			e.plain(p.Text, false, nil)
			break
		}
		e.w.BeginObject()
		e.w.SetText("type", "refusal")
		e.w.SetRaw("refusal", p.Text)
		e.w.EndObject()
	case *llm.Media:
		return e.media(p, assistant)
	case *llm.SearchResult:
		e.notes.Degrade("search_result")
		e.plain(searchText(p), assistant, p.Cache)
	case *llm.ToolReference:
		e.notes.Degrade("tool_reference")
		e.plain(llm.Quote("[tool loaded: "+p.Name+"]"), assistant, nil)
	}
	return nil
}

// searchText is a source of the client's, and what it says.
func searchText(r *llm.SearchResult) llm.Raw {
	head := llm.Concat(" ", llm.Quote("[search result:"), r.Title, r.Source, llm.Quote("]"))
	return llm.Concat("\n", append([]llm.Raw{head}, r.Texts...)...)
}

// media writes a medium, or refuses what the upstream cannot take in.
func (e *requestEncoder) media(m *llm.Media, assistant bool) error {
	at := e.path(m.Pos, m.At)
	switch {
	case m.Transcript != nil && (assistant || m.Data == nil):
		e.notes.Degrade("audio")
		e.plain(m.Transcript, assistant, m.Cache)
		return nil
	case assistant:
		return dialect.NotPossible(at, "The model's upstream takes no media in the assistant's own messages, as '%s' has: send it in a user message.", at)
	case m.Kind == llm.Video:
		return dialect.NotPossible(at, "The model's upstream takes no video, as '%s' has: send pictures of it.", at)
	case m.FileID != nil && e.param("max_completion_tokens") != "max_completion_tokens":
		// The words of clients of OpenAI's own dialect are those that members
		// are named by here; files of other vendors are not there.
		return dialect.NotPossible(at, "The model's upstream does not have the file that '%s' names: send its content.", at)
	case m.Kind == llm.File && m.Text != nil:
		e.plain(documentText(m), false, m.Cache)
		return nil
	case m.Kind == llm.Audio && m.Data == nil:
		return dialect.NotPossible(at, "The model's upstream takes audio only as data: send the sound itself in '%s'.", at)
	}
	w := e.w
	w.BeginObject()
	switch m.Kind {
	case llm.Image:
		w.SetText("type", "input_image")
		e.source(m, "image_url", "image_url")
		if m.Detail.Given() {
			w.SetRaw("detail", m.Detail)
		}
	case llm.Audio:
		w.SetText("type", "input_audio")
		w.Object("input_audio")
		w.SetRaw("data", m.Data)
		w.SetText("format", audioFormat(m.MIME))
		w.EndObject()
	default:
		w.SetText("type", "input_file")
		if m.Data != nil {
			w.SetRaw("filename", e.filename(m))
		}
		e.source(m, "file_data", "file_url")
	}
	e.breakpoint(m.Cache)
	w.EndObject()
	return nil
}

// source writes where a medium is.
func (e *requestEncoder) source(m *llm.Media, data, url string) {
	switch {
	case m.Data != nil:
		mime := m.MIME
		if mime == "" {
			mime = map[bool]string{true: "image/png", false: "application/pdf"}[m.Kind == llm.Image]
		}
		e.w.Name(data)
		e.w.Raw(prefixed("data:"+mime+";base64,", m.Data))
	case m.URL != nil:
		e.w.SetRaw(url, m.URL)
	default:
		e.w.SetRaw("file_id", m.FileID)
	}
}

// filename is the name of a file, which must have one.
func (e *requestEncoder) filename(m *llm.Media) llm.Raw {
	if m.Name.IsText() && !m.Name.Blank() {
		return m.Name
	}
	e.notes.Default("filename")
	if m.MIME == "" || m.MIME == "application/pdf" {
		return llm.Raw(`"document.pdf"`)
	}
	return llm.Raw(`"document.txt"`)
}

func documentText(m *llm.Media) llm.Raw {
	head := llm.Raw(`"[document]"`)
	if m.Name.IsText() && !m.Name.Blank() {
		head = llm.Concat("", llm.Quote("[document: "), m.Name, llm.Quote("]"))
	}
	return llm.Concat("\n", head, m.Text)
}

// audioFormat is the dialect's word for a type of sound.
func audioFormat(mime string) string {
	switch mime {
	case "audio/mp3", "audio/mpeg":
		return "mp3"
	case "", "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	}
	return mime[len("audio/"):]
}

// thinking writes reasoning whose state the upstream can read. What others
// thought is none of its own.
func (e *requestEncoder) thinking(r *llm.Reasoning) {
	for _, o := range r.Opaque {
		if o.Kind != llm.Encrypted || !e.caps.Reads(o) {
			continue
		}
		w := e.w
		w.BeginObject()
		w.SetText("type", "reasoning")
		if r.ID.IsText() {
			w.SetRaw("id", r.ID)
		}
		w.Array("summary")
		for _, t := range r.Texts {
			if t.Text.Blank() {
				continue
			}
			w.BeginObject()
			w.SetText("type", "summary_text")
			w.SetRaw("text", t.Text)
			w.EndObject()
		}
		w.EndArray()
		w.SetRaw("encrypted_content", o.Data)
		w.EndObject()
		return
	}
	e.notes.Drop(e.param("reasoning_content"))
}

func (e *requestEncoder) call(c *llm.ToolCall) {
	kind, args := c.Kind, c.Args
	if kind == llm.CustomCall && e.caps.Chat.NoCustom {
		kind, args = llm.FunctionCall, dialect.Wrapped(args)
	}
	if kind == llm.FunctionCall && args.Blank() {
		args = llm.Raw(`"{}"`)
	}
	e.calls[string(c.ID)] = kind
	e.w.BeginObject()
	e.w.SetText("type", itemNames[kind].call)
	writeCall(e.w, kind, c.ID, e.names.Wire(c.Namespace, c.Name), "", args)
	e.w.EndObject()
}

// failedPrefix marks the result of a call that failed: there is no member for
// it.
const failedPrefix = "Error: "

func (e *requestEncoder) result(r *llm.ToolResult) error {
	kind, known := e.calls[string(r.ID)]
	if !known {
		kind = r.Kind
	}
	if kind > llm.CustomCall { // their outputs have forms of their own, which a text does not
		return dialect.NotPossible(e.path(r.Pos, ""), "The model's upstream cannot take the result in '%s' of a tool of its own form: offer a function instead.", e.path(r.Pos, ""))
	}
	before := ""
	if r.IsError {
		before = failedPrefix
	}
	e.w.BeginObject()
	e.w.SetText("type", itemNames[kind].output)
	e.w.SetRaw("call_id", r.ID)
	e.w.Name("output")
	err := e.content(r.Parts, false, before)
	e.w.EndObject()
	return err
}

// compaction writes what stands for a history: as it is where the upstream can
// read it, else what it says.
func (e *requestEncoder) compaction(c *llm.Compaction) error {
	for _, o := range c.Opaque {
		if e.caps.Reads(o) {
			e.w.BeginObject()
			e.w.SetText("type", "compaction")
			e.w.SetRaw("encrypted_content", o.Data)
			e.w.EndObject()
			return nil
		}
	}
	if !c.Text.IsText() {
		at := e.path(c.Pos, "")
		return dialect.NotPossible(at, "The model's upstream cannot read the compacted history in '%s': send the history itself.", at)
	}
	return e.message(&llm.Message{Pos: c.Pos, Role: llm.User, Parts: []llm.Part{&llm.Text{Pos: c.Pos, Text: c.Text}}})
}
