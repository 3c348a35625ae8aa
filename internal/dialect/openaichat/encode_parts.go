package openaichat

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// place is the client's name of where a part stands.
func (e *requestEncoder) place(pos llm.Pos, at string) string { return e.req.Words.Place(pos, at) }

// content writes the content of a message: a text alone as a string, unless
// the client itself, in this dialect, wrote it as a part.
func (e *requestEncoder) content(parts []llm.Part) error {
	if len(parts) == 0 {
		e.w.SetText("content", "")
		return nil
	}
	if t, ok := parts[0].(*llm.Text); ok && len(parts) == 1 && !e.asPart(t) {
		if t.Cache != nil {
			e.dropBreakpoint()
		}
		e.w.SetRaw("content", t.Text)
		return nil
	}
	e.w.Array("content")
	for _, p := range parts {
		if err := e.part(p); err != nil {
			return err
		}
	}
	e.w.EndArray()
	return nil
}

func (e *requestEncoder) asPart(t *llm.Text) bool {
	return e.own && t.Pos.Part >= 0 || t.Cache != nil && (e.chat.Breakpoints || e.chat.CacheControl)
}

func (e *requestEncoder) part(p llm.Part) error {
	w := &e.w
	if m, ok := p.(*llm.Media); ok && m.Text == nil {
		return e.media(m)
	}
	said, err := e.texts([]llm.Part{p})
	if err != nil {
		return err
	}
	var cache *llm.Breakpoint
	switch p := p.(type) {
	case *llm.Text:
		cache = p.Cache
	case *llm.Media:
		cache = p.Cache
	case *llm.SearchResult:
		cache = p.Cache
	}
	w.BeginObject()
	w.SetText("type", "text")
	w.SetRaw("text", llm.Concat("\n", said...))
	e.breakpoint(cache)
	w.EndObject()
	return nil
}

func (e *requestEncoder) breakpoint(b *llm.Breakpoint) {
	switch {
	case b == nil:
	case e.chat.Breakpoints:
		e.w.Object("prompt_cache_breakpoint")
		e.w.SetText("mode", "explicit")
		if b.TTL != "" {
			e.w.SetText("ttl", b.TTL)
		}
		e.w.EndObject()
	case e.marked():
		e.w.SetRaw("cache_control", ephemeral(b))
	default:
		e.dropBreakpoint()
	}
}

// marked reports whether the next breakpoint is written as cache_control.
func (e *requestEncoder) marked() bool {
	if e.marks > 0 {
		e.marks--
		return false
	}
	return e.chat.CacheControl
}

// countMarks finds how many breakpoints there are beyond what the server
// takes. The last ones end the longest prefixes, so they stay.
func (e *requestEncoder) countMarks() {
	if e.chat.MaxMarks == 0 {
		return
	}
	n := 0
	count := func(b *llm.Breakpoint) {
		if b != nil {
			n++
		}
	}
	count(e.req.Cache.Auto)
	for i := range e.req.Tools {
		count(e.req.Tools[i].Cache)
	}
	for _, item := range flat(e.req.Items) {
		m, ok := item.(*llm.Message)
		if !ok {
			continue
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *llm.Text:
				count(p.Cache)
			case *llm.Media:
				count(p.Cache)
			case *llm.SearchResult:
				count(p.Cache)
			}
		}
	}
	e.marks = max(n-e.chat.MaxMarks, 0)
}

// texts are parts as texts, for what this dialect has no parts of its own.
func (e *requestEncoder) texts(parts []llm.Part) (texts []llm.Raw, err error) {
	for _, p := range parts {
		switch p := p.(type) {
		case *llm.Text:
			texts = append(texts, p.Text)
		case *llm.Refusal:
			texts = append(texts, p.Text)
		case *llm.ToolReference:
			e.notes.Degrade("tool_reference")
			texts = append(texts, llm.Quote("[tool loaded: "+p.Name+"]"))
		case *llm.SearchResult:
			e.notes.Degrade("search_result")
			texts = append(texts, searchResult(p))
		case *llm.Media:
			texts = append(texts, document(p))
		}
	}
	return texts, nil
}

// document is a plain-text document, with what tells it from other text.
func document(m *llm.Media) llm.Raw {
	head := "[document]\n"
	if !m.Name.Blank() {
		head = "[document: " + m.Name.Text() + "]\n"
	}
	if !m.Context.Blank() {
		head += m.Context.Text() + "\n"
	}
	return llm.Concat("", llm.Quote(head), m.Text)
}

func searchResult(s *llm.SearchResult) llm.Raw {
	head := "[search result: " + s.Title.Text()
	if s.Title.Blank() {
		head = "[search result"
	}
	if !s.Source.Blank() {
		head += " (" + s.Source.Text() + ")"
	}
	return llm.Concat("", llm.Quote(head+"]\n"), llm.Concat("\n", s.Texts...))
}

// media writes a part that is not text.
func (e *requestEncoder) media(m *llm.Media) error {
	if m.Citations {
		e.notes.Drop("citations")
	}
	w := &e.w
	param := e.place(m.Pos, m.At)
	switch {
	case m.FileID != nil && (m.Kind != llm.File || !e.own || e.chat.NoFiles):
		return dialect.NotPossible(param, "The model's upstream does not have the file that '%s' names: send its data instead.", param)
	case m.URL != nil && !isWeb(m.URL):
		return dialect.NotPossible(param, "The model's upstream cannot read what '%s' names: send its data, or an https URL.", param)
	}
	w.BeginObject()
	defer w.EndObject()
	switch m.Kind {
	case llm.Image:
		w.SetText("type", "image_url")
		w.Object("image_url")
		w.SetRaw("url", imageURL(m))
		w.SetRaw("detail", given(m.Detail))
		w.EndObject()
	case llm.Audio:
		if m.Data == nil && !(e.chat.AudioURL && m.URL != nil) {
			return dialect.NotPossible(param, "The model's upstream takes sound only as data: send the bytes of '%s' in base64.", param)
		}
		w.SetText("type", "input_audio")
		w.Object("input_audio")
		switch {
		case m.Data == nil:
			w.SetRaw("data", m.URL)
		case e.chat.AudioURL:
			w.SetRaw("data", inlineURL(m, audioType(m.MIME)))
		default:
			w.SetRaw("data", m.Data)
		}
		w.SetText("format", audioFormat(m.MIME))
		w.EndObject()
	case llm.Video:
		if !e.own || e.chat.Native {
			return dialect.NotPossible(param, "The model's upstream takes no video, as in '%s': send pictures of it instead.", param)
		}
		url := m.URL
		if m.Data != nil {
			url = inlineURL(m, m.MIME)
		}
		w.SetText("type", "video_url")
		w.Object("video_url")
		w.SetRaw("url", url)
		w.EndObject()
	case llm.File:
		if err := e.file(m, param); err != nil {
			return err
		}
	}
	e.breakpoint(m.Cache)
	return nil
}

func (e *requestEncoder) file(m *llm.Media, param string) error {
	switch {
	case e.chat.NoFiles:
		return dialect.NotPossible(param, "The model's upstream takes no files, as in '%s': send the text of it, or pictures of its pages.", param)
	case e.chat.DocumentURL && m.FileID == nil:
		e.document(m)
		return nil
	case m.FileID == nil && m.Data == nil:
		return dialect.NotPossible(param, "The model's upstream takes files only as data: send the bytes of '%s' in base64.", param)
	}
	w := &e.w
	w.SetText("type", "file")
	w.Object("file")
	defer w.EndObject()
	if m.FileID != nil {
		w.SetRaw("file_id", m.FileID)
		return nil
	}
	mime := m.MIME
	if mime == "" {
		mime = "application/pdf"
	}
	name := m.Name
	if name.Blank() {
		name = llm.Quote("document" + extension(mime))
	}
	w.SetRaw("filename", name)
	w.SetRaw("file_data", inlineURL(m, mime))
	return nil
}

// document writes a file as Mistral has it.
func (e *requestEncoder) document(m *llm.Media) {
	url := m.URL
	if m.Data != nil {
		mime := m.MIME
		if mime == "" {
			mime = "application/pdf"
		}
		url = inlineURL(m, mime)
	}
	e.w.SetText("type", "document_url")
	e.w.SetRaw("document_url", url)
}

func extension(mime string) string {
	if mime == "application/pdf" {
		return ".pdf"
	}
	return ""
}

// isWeb reports whether a URL is one that any server can get.
func isWeb(url llm.Raw) bool {
	s := strings.ToLower(url.Text())
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// audioType is a type of sound, where it may not be known.
func audioType(mime string) string {
	if mime == "" {
		return "audio/wav"
	}
	return mime
}

// audioFormat is the short word for a type of sound.
func audioFormat(mime string) string {
	format := strings.TrimPrefix(strings.TrimPrefix(mime, "audio/"), "x-")
	switch format {
	case "mpeg":
		return "mp3"
	case "wave", "":
		return "wav"
	}
	return format
}
