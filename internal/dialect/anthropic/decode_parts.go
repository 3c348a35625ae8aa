package anthropic

import (
	"fmt"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// text reads a text block.
func (d *decoder) text(pos llm.Pos, path string, block []byte) (*llm.Text, error) {
	said, err := wanted(path+".text", member(block, "text"), jsonedit.KindString)
	if err != nil {
		return nil, err
	}
	cache, err := d.breakpoint(path+".cache_control", member(block, "cache_control"))
	return &llm.Text{Pos: pos, Text: said, Cache: cache}, err
}

// cite reads the citations of a text block. Offsets count from the first text
// of the message that the block goes to.
func (t *turn) cite(said *llm.Text, block []byte) {
	start := -1
	for citation := range jsonedit.Elements(member(block, "citations")) {
		if start < 0 {
			start = 0
			if t.open != nil {
				for _, p := range t.open.Parts {
					if before, ok := p.(*llm.Text); ok {
						start += codePoints(before.Text)
					}
				}
			}
		}
		said.Annotations = append(said.Annotations, llm.Annotation{
			URL: member(citation, "url"), Title: member(citation, "title"),
			Start: start, End: start + codePoints(said.Text), Native: citation,
		})
	}
}

// part reads a part of a user's message or of a tool's result. at is where the
// block stands below its part.
func (d *decoder) part(pos llm.Pos, path, at, kind string, block []byte) (llm.Part, error) {
	switch kind {
	case "text":
		return d.text(pos, path, block)
	case "image":
		return d.media(&llm.Media{Pos: pos, Kind: llm.Image, At: at + ".source"}, path, block)
	case "document":
		return d.document(pos, path, at, block)
	case "search_result":
		return d.searchResult(pos, path, block)
	case "tool_reference":
		name, err := wanted(path+".tool_name", member(block, "tool_name"), jsonedit.KindString)
		return &llm.ToolReference{Pos: pos, Name: name.Text()}, err
	}
	return nil, unknownBlock(path, kind, block)
}

// media reads the source of an image or a document.
func (d *decoder) media(m *llm.Media, path string, block []byte) (_ *llm.Media, err error) {
	if m.Cache, err = d.breakpoint(path+".cache_control", member(block, "cache_control")); err != nil {
		return nil, err
	}
	path += ".source"
	source, err := wanted(path, member(block, "source"), jsonedit.KindObject)
	if err != nil {
		return nil, err
	}
	kind := dialect.Text(source, "type")
	switch kind {
	case "base64":
		m.MIME = dialect.Text(source, "media_type")
		m.Data, err = wanted(path+".data", member(source, "data"), jsonedit.KindString)
	case "url":
		m.URL, err = wanted(path+".url", member(source, "url"), jsonedit.KindString)
	case "file":
		m.FileID, err = wanted(path+".file_id", member(source, "file_id"), jsonedit.KindString)
	default:
		if m.Kind == llm.File {
			return m, d.inlineDocument(m, path, kind, source)
		}
		return nil, unknownBlock(path, kind, source)
	}
	return m, err
}

func (d *decoder) document(pos llm.Pos, path, at string, block []byte) (*llm.Media, error) {
	m := &llm.Media{Pos: pos, Kind: llm.File, At: at + ".source"}
	var err error
	if m.Name, err = optional(path+".title", member(block, "title"), jsonedit.KindString); err != nil {
		return nil, err
	}
	if m.Context, err = optional(path+".context", member(block, "context"), jsonedit.KindString); err != nil {
		return nil, err
	}
	if m.Citations, err = openai.Flag(path+".citations.enabled", member(member(block, "citations"), "enabled")); err != nil {
		return nil, err
	}
	if m, err = d.media(m, path, block); err == nil && m.MIME == "" && m.URL != nil {
		m.MIME = pdf // the only documents that are taken by URL
	}
	return m, err
}

const (
	pdf   = "application/pdf"
	plain = "text/plain"
)

// inlineDocument reads the text of a document: plain, or as blocks of which
// all are text.
func (d *decoder) inlineDocument(m *llm.Media, path, kind string, source []byte) (err error) {
	m.MIME = plain
	switch kind {
	case "text":
		m.Text, err = wanted(path+".data", member(source, "data"), jsonedit.KindString)
		return err
	case "content":
	default:
		return unknownBlock(path, kind, source)
	}
	content := member(source, "content")
	if content.IsText() {
		m.Text = content
		return nil
	}
	if _, err := wanted(path+".content", content, jsonedit.KindArray); err != nil {
		return err
	}
	var texts []llm.Raw
	for block := range jsonedit.Elements(content) {
		at := fmt.Sprintf("%s.content[%d]", path, len(texts))
		if kind := dialect.Text(block, "type"); kind != "text" {
			return unknownBlock(at, kind, block)
		}
		text, err := wanted(at+".text", member(block, "text"), jsonedit.KindString)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	m.Text = llm.Concat("\n\n", texts...)
	return nil
}

func (d *decoder) searchResult(pos llm.Pos, path string, block []byte) (_ *llm.SearchResult, err error) {
	r := &llm.SearchResult{Pos: pos}
	if r.Source, err = wanted(path+".source", member(block, "source"), jsonedit.KindString); err != nil {
		return nil, err
	}
	if r.Title, err = optional(path+".title", member(block, "title"), jsonedit.KindString); err != nil {
		return nil, err
	}
	if r.Citations, err = openai.Flag(path+".citations.enabled", member(member(block, "citations"), "enabled")); err != nil {
		return nil, err
	}
	if r.Cache, err = d.breakpoint(path+".cache_control", member(block, "cache_control")); err != nil {
		return nil, err
	}
	content, err := wanted(path+".content", member(block, "content"), jsonedit.KindArray)
	if err != nil {
		return nil, err
	}
	for inner := range jsonedit.Elements(content) {
		text, err := wanted(fmt.Sprintf("%s.content[%d].text", path, len(r.Texts)), member(inner, "text"), jsonedit.KindString)
		if err != nil {
			return nil, err
		}
		r.Texts = append(r.Texts, text)
	}
	return r, nil
}

// codePoints counts the characters of a JSON string. Both halves of a
// surrogate pair are one.
func codePoints(s llm.Raw) int {
	n := 0
	in := s.Inner()
	for i := 0; i < len(in); {
		switch c := in[i]; {
		case c == '\\' && i+1 < len(in) && in[i+1] == 'u':
			if i+5 >= len(in) || !lowHalf(in[i+2:i+4]) {
				n++
			}
			i += 6
		case c == '\\':
			n++
			i += 2
		default:
			if c&0xC0 != 0x80 {
				n++
			}
			i++
		}
	}
	return n
}

// lowHalf reports whether the two digits begin the second half of a pair.
func lowHalf(digits []byte) bool {
	return (digits[0] == 'd' || digits[0] == 'D') && (digits[1] >= 'c' && digits[1] <= 'f' || digits[1] >= 'C' && digits[1] <= 'F')
}
