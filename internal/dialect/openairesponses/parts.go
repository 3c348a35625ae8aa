package openairesponses

import (
	"bytes"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// rawPart is what is looked at of a part. What is absent or null is nil.
type rawPart struct {
	kind string

	text, refusal, annotations, logprobs, breakpoint   llm.Raw
	imageURL, fileID, detail, fileData, fileURL, named llm.Raw
	audio, videoURL                                    llm.Raw
}

func readPart(value []byte) rawPart {
	var p rawPart
	for name, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		switch string(name) {
		case `"type"`:
			p.kind = llm.Raw(v).Text()
		case `"text"`:
			p.text = v
		case `"refusal"`:
			p.refusal = v
		case `"annotations"`:
			p.annotations = v
		case `"logprobs"`:
			p.logprobs = v
		case `"prompt_cache_breakpoint"`:
			p.breakpoint = v
		case `"image_url"`:
			p.imageURL = v
		case `"file_id"`:
			p.fileID = v
		case `"detail"`:
			p.detail = v
		case `"file_data"`:
			p.fileData = v
		case `"file_url"`:
			p.fileURL = v
		case `"filename"`:
			p.named = v
		case `"input_audio"`:
			p.audio = v
		case `"video_url"`:
			p.videoURL = v
		}
	}
	return p
}

// parts reads a text or a list of parts. member is its name, with a dot.
func (d *requestDecoder) parts(i int, member string, value llm.Raw) ([]llm.Part, error) {
	switch value.Kind() {
	case jsonedit.KindInvalid:
		return nil, nil
	case jsonedit.KindString:
		return []llm.Part{&llm.Text{Pos: llm.Pos{Item: i, Part: -1}, Text: value}}, nil
	case jsonedit.KindArray:
	default:
		return nil, openai.WrongType(itemPath(i, member), "a string or an array of parts", value)
	}
	var list []llm.Part
	j := 0
	for v := range jsonedit.Elements(value) {
		at := func(suffix string) string { return itemPath(i, member+"["+strconv.Itoa(j)+"]"+suffix) }
		if jsonedit.KindOf(v) != jsonedit.KindObject {
			return nil, openai.WrongType(at(""), "an object", v)
		}
		p := readPart(v)
		part, err := p.part(llm.Pos{Item: i, Part: j}, at)
		if err != nil {
			return nil, err
		}
		list = append(list, part)
		j++
	}
	return list, nil
}

// part reads one part. Clients also write what Chat Completions calls a part.
func (p *rawPart) part(pos llm.Pos, at func(string) string) (llm.Part, error) {
	switch p.kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if !p.text.IsText() {
			return nil, missingText(at(".text"), p.text)
		}
		return &llm.Text{Pos: pos, Text: p.text, Annotations: annotations(p.annotations), Logprobs: elements(p.logprobs), Cache: p.cache()}, nil
	case "refusal":
		if !p.refusal.IsText() {
			return nil, missingText(at(".refusal"), p.refusal)
		}
		return &llm.Refusal{Pos: pos, Text: p.refusal}, nil
	case "input_image", "image_url":
		return p.image(pos, at)
	case "input_file", "file":
		return p.file(pos, at)
	case "input_audio":
		return p.sound(pos, at)
	case "input_video":
		if !p.videoURL.IsText() {
			return nil, missingText(at(".video_url"), p.videoURL)
		}
		return p.media(&llm.Media{Pos: pos, Kind: llm.Video}, p.videoURL, ".video_url"), nil
	case "":
		return nil, openai.Missing(at(".type"))
	}
	return nil, dialect.NotServed(at(".type"), "A part of the type %q in 'input' cannot be sent to the model's upstream: leave it out, or say it as text.", p.kind)
}

func (p *rawPart) cache() *llm.Breakpoint {
	if p.breakpoint == nil {
		return nil
	}
	return &llm.Breakpoint{TTL: dialect.Text(p.breakpoint, "ttl")}
}

func (p *rawPart) image(pos llm.Pos, at func(string) string) (llm.Part, error) {
	m := &llm.Media{Pos: pos, Kind: llm.Image, Detail: p.detail}
	url, path := p.imageURL, ".image_url"
	if url.Kind() == jsonedit.KindObject { // as in Chat Completions
		m.Detail = dialect.Member(url, "detail")
		url, path = dialect.Member(url, "url"), ".image_url.url"
	}
	switch {
	case url == nil && p.fileID.IsText():
		m.FileID, m.At, m.Cache = p.fileID, ".file_id", p.cache()
		return m, nil
	case !url.IsText():
		return nil, missingText(at(path), url)
	}
	return p.media(m, url, path), nil
}

func (p *rawPart) file(pos llm.Pos, at func(string) string) (llm.Part, error) {
	m := &llm.Media{Pos: pos, Kind: llm.File, Name: p.named, Detail: p.detail}
	switch {
	case p.fileData.IsText():
		return p.media(m, p.fileData, ".file_data"), nil
	case p.fileURL.IsText():
		return p.media(m, p.fileURL, ".file_url"), nil
	case p.fileID.IsText():
		m.FileID, m.At, m.Cache = p.fileID, ".file_id", p.cache()
		return m, nil
	}
	return nil, missingText(at(".file_data"), p.fileData)
}

func (p *rawPart) sound(pos llm.Pos, at func(string) string) (llm.Part, error) {
	data := dialect.Member(p.audio, "data")
	if !data.IsText() {
		return nil, missingText(at(".input_audio.data"), data)
	}
	m := &llm.Media{Pos: pos, Kind: llm.Audio, Data: data, At: ".input_audio.data", Cache: p.cache()}
	if format := dialect.Text(p.audio, "format"); format != "" {
		m.MIME = "audio/" + format
	}
	return m, nil
}

// media fills in where a medium is: in a data URL, at another URL, or, for a
// file, in bare base64.
func (p *rawPart) media(m *llm.Media, source llm.Raw, at string) *llm.Media {
	m.At, m.Cache = at, p.cache()
	mime, data, ok := dataURL(source)
	switch {
	case ok:
		m.MIME, m.Data = mime, data
	case at == ".file_data":
		m.Data = source
		if m.MIME = mimeOf(m.Name.Text()); m.MIME == "" {
			m.MIME = "application/pdf"
		}
	default:
		m.URL = source
	}
	return m
}

// dataURL takes a data URL in base64 apart.
func dataURL(url llm.Raw) (mime string, data llm.Raw, ok bool) {
	inner := url.Inner()
	if !bytes.HasPrefix(inner, []byte("data:")) {
		return "", nil, false
	}
	if bytes.IndexByte(inner, '\\') >= 0 { // slashes may be escaped
		url = llm.Quote(url.Text())
		inner = url.Inner()
	}
	head, body, found := bytes.Cut(inner, []byte(","))
	kind, based := bytes.CutSuffix(head[len("data:"):], []byte(";base64"))
	if !found || !based {
		return "", nil, false
	}
	kind, _, _ = bytes.Cut(kind, []byte(";"))
	data = make(llm.Raw, 0, len(body)+2)
	data = append(append(append(data, '"'), body...), '"')
	return string(kind), data, true
}

// mimeOf is the type of the files that are sent most, by their names.
func mimeOf(name string) string {
	for suffix, mime := range map[string]string{".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/plain", ".csv": "text/csv", ".json": "application/json", ".html": "text/html"} {
		if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
			return mime
		}
	}
	return ""
}

// annotations are flat in this dialect.
func annotations(list llm.Raw) []llm.Annotation {
	var out []llm.Annotation
	for v := range jsonedit.Elements(list) {
		out = append(out, annotation(v))
	}
	return out
}

func annotation(v llm.Raw) llm.Annotation {
	a := llm.Annotation{Native: v}
	for name, v := range jsonedit.Members(v) {
		switch string(name) {
		case `"url"`:
			a.URL = v
		case `"title"`:
			a.Title = v
		case `"start_index"`:
			a.Start, _ = strconv.Atoi(string(v))
		case `"end_index"`:
			a.End, _ = strconv.Atoi(string(v))
		}
	}
	return a
}

// elements are those of an array.
func elements(array llm.Raw) []llm.Raw {
	var out []llm.Raw
	for v := range jsonedit.Elements(array) {
		out = append(out, v)
	}
	return out
}
