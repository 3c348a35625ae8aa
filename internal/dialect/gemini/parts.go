package gemini

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// part writes a part of a message.
func (c *contents) part(role string, m *llm.Message, p llm.Part) error {
	switch p := p.(type) {
	case *llm.Text:
		if p.Cache != nil {
			c.dropBreakpoint()
		}
		c.text(role, p.Text, nil)
		return nil
	case *llm.Media:
		return c.messageMedia(role, p)
	default:
		c.text(role, c.textOf(p), nil)
		return nil
	}
}

// textOf says a part as text that is not a medium of its own.
func (c *contents) textOf(p llm.Part) llm.Raw {
	switch p := p.(type) {
	case *llm.Text:
		if p.Cache != nil {
			c.dropBreakpoint()
		}
		return p.Text
	case *llm.Refusal:
		c.notes.Degrade("refusal")
		return p.Text
	case *llm.SearchResult:
		if p.Cache != nil {
			c.dropBreakpoint()
		}
		c.notes.Degrade("search_result")
		heading := llm.Concat(" ", llm.Raw(`"[search result:"`), p.Title, llm.Concat("", llm.Raw(`"<"`), p.Source, llm.Raw(`">]"`)))
		return llm.Concat("\n", append([]llm.Raw{heading}, p.Texts...)...)
	case *llm.ToolReference:
		c.notes.Degrade("tool_reference")
		return llm.Quote("[tool loaded: " + p.Name + "]")
	case *llm.Media:
		c.dropFacets(p)
		return document(p)
	}
	return nil
}

// document is a plain-text document with its title in front.
func document(m *llm.Media) llm.Raw {
	if m.Name.Blank() {
		return llm.Concat("\n", m.Context, m.Text)
	}
	return llm.Concat("\n", llm.Concat("", llm.Raw(`"[document: "`), m.Name, llm.Raw(`"]"`)), m.Context, m.Text)
}

// dropFacets notes what is said about a medium and has no place.
func (c *contents) dropFacets(m *llm.Media) {
	if m.Cache != nil {
		c.dropBreakpoint()
	}
	if m.Citations {
		c.notes.Drop("citations")
	}
	if m.Detail.Given() && m.Detail.Text() != "auto" {
		c.notes.Drop("detail")
	}
}

func (c *contents) messageMedia(role string, m *llm.Media) error {
	switch {
	case m.Text != nil:
		c.text(role, c.textOf(m), nil)
		return nil
	case m.Data == nil && m.URL == nil && m.Transcript.Given():
		c.notes.Degrade("audio")
		c.text(role, m.Transcript, nil)
		return nil
	}
	if !m.Context.Blank() {
		c.text(role, m.Context, nil)
	}
	return c.media(role, false, m)
}

// media writes a medium as a part of its own.
func (c *contents) media(role string, apart bool, m *llm.Media) error {
	c.open(role, apart)
	return c.writeMedia(m)
}

func (c *contents) writeMedia(m *llm.Media) error {
	c.dropFacets(m)
	at := c.place(m.Pos) + m.At
	mime := mediaType(m)
	switch {
	case m.Data != nil && mime == "":
		return dialect.NotPossible(at, "'%s' does not say its media type, which this model needs. Send it as a data: URL with its type.", at)
	case m.Data != nil:
		c.w.BeginObject()
		c.w.Object("inlineData")
		c.w.SetText("mimeType", mime)
		c.w.SetRaw("data", m.Data)
		c.w.EndObject()
		c.w.EndObject()
		return nil
	case m.URL == nil:
		return dialect.NotPossible(at, "'%s' names a file that is stored with another vendor. Send its content inline as a data: URL.", at)
	case !c.caps.RemoteMedia:
		return dialect.NotPossible(at, "'%s' is a remote URL, and this model takes none. Send the content inline as a data: URL.", at)
	case mime == "":
		return dialect.NotPossible(at, "'%s' is a URL that does not show its media type, which this model needs. Send the content inline as a data: URL.", at)
	}
	c.w.BeginObject()
	c.w.Object("fileData")
	c.w.SetText("mimeType", mime)
	c.w.SetRaw("fileUri", m.URL)
	c.w.EndObject()
	c.w.EndObject()
	return nil
}

// spellings are other names of media types that the API knows by one.
var spellings = map[string]string{
	"image/jpg": "image/jpeg", "audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav",
}

// endings are media types by the ending of a file's name.
var endings = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif", ".heic": "image/heic",
	".pdf": "application/pdf", ".txt": "text/plain", ".mp3": "audio/mp3", ".wav": "audio/wav", ".mp4": "video/mp4", ".webm": "video/webm",
}

// mediaType is the type of a medium, as said or by its name; "" when neither
// tells.
func mediaType(m *llm.Media) string {
	if mime := strings.ToLower(m.MIME); mime != "" {
		if one := spellings[mime]; one != "" {
			return one
		}
		return m.MIME
	}
	name := m.Name.Text()
	if m.URL != nil {
		name, _, _ = strings.Cut(m.URL.Text(), "?")
		name, _, _ = strings.Cut(name, "#")
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return endings[strings.ToLower(name[dot:])]
	}
	return ""
}
