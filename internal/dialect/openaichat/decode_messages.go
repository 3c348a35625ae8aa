package openaichat

import (
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// message is one of the client's messages, member by member.
type message struct {
	at   int
	path string
	role string

	content, name, cache llm.Raw
	// Of the assistant.
	refusal, calls, oldCall, audio, images  llm.Raw
	reasoning, details, thinking, signature llm.Raw
	other                                   []llm.Member
	// Of a tool.
	callID  llm.Raw
	isError bool
}

func (d *requestDecoder) messages(list llm.Raw) error {
	at := 0
	for value := range jsonedit.Elements(list) {
		m := &message{at: at, path: "messages[" + strconv.Itoa(at) + "]"}
		if err := m.read(value); err != nil {
			return err
		}
		if err := d.message(m); err != nil {
			return err
		}
		at++
	}
	return nil
}

func (m *message) read(value llm.Raw) (err error) {
	if _, err := kept(m.path, jsonedit.KindObject, value); err != nil {
		return err
	}
	role := llm.Raw(nil)
	plain := [3]llm.Raw{} // the names under which reasoning comes, best first
	for quoted, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		switch string(quoted) {
		case `"role"`:
			role = v
		case `"content"`:
			m.content = v
		case `"name"`:
			m.name, err = kept(m.path+".name", jsonedit.KindString, v)
		case `"cache_control"`:
			m.cache = v
		case `"refusal"`:
			m.refusal, err = kept(m.path+".refusal", jsonedit.KindString, v)
		case `"tool_calls"`:
			m.calls, err = kept(m.path+".tool_calls", jsonedit.KindArray, v)
		case `"function_call"`:
			m.oldCall, err = kept(m.path+".function_call", jsonedit.KindObject, v)
		case `"audio"`:
			m.audio = v
		case `"images"`:
			m.images = v
		case `"reasoning_content"`:
			plain[0] = v
		case `"reasoning"`:
			plain[1] = v
		case `"thinking"`:
			plain[2] = v
		case `"reasoning_details"`:
			m.details, err = kept(m.path+".reasoning_details", jsonedit.KindArray, v)
		case `"thinking_blocks"`:
			m.thinking, err = kept(m.path+".thinking_blocks", jsonedit.KindArray, v)
		case `"extra_content"`, `"provider_specific_fields"`:
			if s := signatureOf(v); s != nil {
				m.signature = s
			}
		case `"tool_call_id"`:
			m.callID, err = kept(m.path+".tool_call_id", jsonedit.KindString, v)
		case `"is_error"`:
			m.isError, err = openai.Flag(m.path+".is_error", v)
		case `"annotations"`: // of an answer: nobody takes them back
		default:
			m.other = append(m.other, llm.Member{Name: memberName(quoted), Value: v})
		}
		if err != nil {
			return err
		}
	}
	for _, p := range plain {
		if p.IsText() && !p.Blank() && m.reasoning == nil {
			m.reasoning = p
		}
	}
	m.role, err = text(m.path+".role", role)
	return err
}

func (d *requestDecoder) message(m *message) error {
	switch m.role {
	case "system":
		return d.spoken(m, llm.System)
	case "developer":
		return d.spoken(m, llm.Developer)
	case "user":
		return d.spoken(m, llm.User)
	case "assistant":
		return d.assistant(m)
	case "tool":
		return d.toolResult(m)
	case "function":
		return d.functionResult(m)
	}
	return llm.InvalidParam("invalid_value", m.path+".role", "Invalid value for '%s.role': %q. Use developer, system, user, assistant or tool.", m.path, m.role)
}

// spoken is a message of anyone but the assistant.
func (d *requestDecoder) spoken(m *message, role llm.Role) error {
	parts, err := d.parts(m)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, isText := p.(*llm.Text); role.Instructs() && !isText {
			return llm.InvalidParam("invalid_value", m.path+".content", "Invalid value for '%s.content': instructions consist of text. Put other parts into a user message.", m.path)
		}
	}
	if role == llm.User && m.content == nil {
		return openai.Missing(m.path + ".content")
	}
	d.add(&llm.Message{Pos: llm.Pos{Item: m.at, Part: -1}, Role: role, Name: m.name, Parts: parts})
	return nil
}

func (d *requestDecoder) add(items ...llm.Item) { d.req.Items = append(d.req.Items, items...) }

// parts reads the content of a message. A text without parts is one of no
// number.
func (d *requestDecoder) parts(m *message) (parts []llm.Part, err error) {
	switch {
	case m.content == nil:
		return nil, nil
	case m.content.IsText():
		parts = []llm.Part{&llm.Text{Pos: llm.Pos{Item: m.at, Part: -1}, Text: m.content}}
	case m.content.Kind() != jsonedit.KindArray:
		return nil, openai.WrongType(m.path+".content", "a string or an array of parts", m.content)
	}
	n := 0
	for value := range jsonedit.Elements(m.content) {
		part, err := d.part(m, n, value)
		if err != nil {
			return nil, err
		}
		if part != nil {
			parts = append(parts, part)
		}
		n++
	}
	if cache := breakpoint(m.cache); cache != nil && len(parts) > 0 {
		mark(parts[len(parts)-1], cache)
	}
	return parts, nil
}

// mark sets the breakpoint of a part that has none.
func mark(part llm.Part, cache *llm.Breakpoint) {
	switch p := part.(type) {
	case *llm.Text:
		if p.Cache == nil {
			p.Cache = cache
		}
	case *llm.Media:
		if p.Cache == nil {
			p.Cache = cache
		}
	}
}

// part reads one part; nil is none. Thinking within the content of an
// assistant goes to its reasoning.
func (d *requestDecoder) part(m *message, n int, value llm.Raw) (llm.Part, error) {
	path := m.path + ".content[" + strconv.Itoa(n) + "]"
	if value.IsText() {
		return &llm.Text{Pos: llm.Pos{Item: m.at, Part: n}, Text: value}, nil
	}
	if _, err := kept(path, jsonedit.KindObject, value); err != nil {
		return nil, err
	}
	pos := llm.Pos{Item: m.at, Part: n}
	cache := breakpoint(dialect.Member(value, "prompt_cache_breakpoint"))
	if cache == nil {
		cache = breakpoint(dialect.Member(value, "cache_control"))
	}
	kind := dialect.Text(value, "type")
	switch kind {
	case "text":
		said, err := kept(path+".text", jsonedit.KindString, dialect.Member(value, "text"))
		if err != nil {
			return nil, err
		}
		return &llm.Text{Pos: pos, Text: said, Cache: cache}, nil
	case "refusal":
		said, err := kept(path+".refusal", jsonedit.KindString, dialect.Member(value, "refusal"))
		if err != nil {
			return nil, err
		}
		return &llm.Refusal{Pos: pos, Text: said}, nil
	case "thinking":
		if m.role == "assistant" {
			if m.reasoning == nil {
				m.reasoning = thinkingText(dialect.Member(value, "thinking"))
			}
			return nil, nil
		}
	case "image_url", "input_audio", "file", "video_url", "document_url":
		media, err := media(path, kind, value)
		if err != nil {
			return nil, err
		}
		media.Pos, media.Cache = pos, cache
		return media, nil
	case "":
		return nil, openai.Missing(path + ".type")
	}
	return nil, dialect.NotServed(path+".type", "There is no translation of the content type %q in '%s.type'. Use text, image_url, input_audio or file.", kind, path)
}

// thinkingText is the text of a thinking part: a string, or parts of text.
func thinkingText(value llm.Raw) llm.Raw {
	if value.IsText() {
		return value
	}
	var texts []llm.Raw
	for part := range jsonedit.Elements(value) {
		texts = append(texts, dialect.Member(part, "text"))
	}
	if len(texts) == 0 {
		return nil
	}
	return llm.Concat("", texts...)
}

// media reads a part that is not text. Where it came from is told by At.
func media(path, kind string, value llm.Raw) (m *llm.Media, err error) {
	m = &llm.Media{At: "." + kind}
	said := dialect.Member(value, kind)
	if said == nil {
		return nil, openai.Missing(path + m.At)
	}
	source, format := said, "" // some servers take the URL itself
	if said.Kind() == jsonedit.KindObject {
		switch kind {
		case "input_audio":
			m.At, source, format = m.At+".data", dialect.Member(said, "data"), dialect.Text(said, "format")
		case "file":
			if id := dialect.Member(said, "file_id"); id != nil {
				m.At, m.Kind, m.Name = m.At+".file_id", llm.File, dialect.Member(said, "filename")
				m.FileID, err = kept(path+m.At, jsonedit.KindString, id)
				return m, err
			}
			m.At, source, m.Name = m.At+".file_data", dialect.Member(said, "file_data"), dialect.Member(said, "filename")
		default:
			m.At, source, m.Detail = m.At+".url", dialect.Member(said, "url"), dialect.Member(said, "detail")
		}
	}
	if _, err := kept(path+m.At, jsonedit.KindString, source); err != nil {
		return nil, err
	}
	data, mime, isData := dataURL(source)
	switch kind {
	case "image_url":
		m.Kind = llm.Image
	case "video_url":
		m.Kind = llm.Video
	case "input_audio":
		m.Kind = llm.Audio
		if !isData && !isURL(source) {
			data, isData = source, true
		}
		if format != "" {
			mime = "audio/" + format
		}
	default:
		m.Kind = llm.File
		if kind == "file" && !isData && !isURL(source) {
			data, mime, isData = source, typeOf(m.Name.Text()), true
		}
	}
	m.MIME = mime
	switch {
	case isData && m.Kind == llm.File && strings.HasPrefix(mime, "text/plain"):
		if m.Text = plainText(data); m.Text == nil {
			return nil, notBase64(path + m.At)
		}
	case isData:
		m.Data = data
	case strings.HasPrefix(source.Text(), "data:"):
		return nil, notBase64(path + m.At)
	default:
		m.URL = source
	}
	return m, nil
}

func notBase64(param string) error {
	return llm.InvalidParam("invalid_value", param, "Invalid value for '%s': expected a URL, or data as data:TYPE;base64,DATA.", param)
}

// assistant lays a message out as items, in the order in which the model made
// them.
func (d *requestDecoder) assistant(m *message) error {
	parts, err := d.parts(m)
	if err != nil {
		return err
	}
	more, err := d.shown(m)
	if err != nil {
		return err
	}
	parts = append(parts, more...)
	calls, err := d.calls(m)
	if err != nil {
		return err
	}
	if len(calls) > 0 && len(parts) == 1 {
		if t, ok := parts[0].(*llm.Text); ok && t.Text.Blank() {
			parts = nil // an empty text beside calls says nothing
		}
	}
	if m.details != nil {
		if d.req.Details == nil {
			d.req.Details = map[int]llm.Raw{}
		}
		d.req.Details[m.at] = m.details
	}
	thought := d.reasonings(m, calls)
	var said *llm.Message
	if len(parts) > 0 {
		said = &llm.Message{Pos: llm.Pos{Item: m.at, Part: -1}, Role: llm.Assistant, Name: m.name, Parts: parts, Other: m.other}
	}
	thought.signText(said, calls, m)
	items := thought.lay(said, calls)
	if turn := thought.turn; turn != nil && dialect.Unchanged(turn.Data, items) {
		items = []llm.Item{&llm.NativeTurn{Pos: llm.Pos{Item: m.at, Part: -1}, Opaque: *turn, Items: items}}
	}
	d.add(items...)
	return nil
}

// shown are the parts of an assistant's message that stand beside its content.
func (d *requestDecoder) shown(m *message) (parts []llm.Part, err error) {
	pos := llm.Pos{Item: m.at, Part: -1}
	if !m.refusal.Blank() {
		parts = append(parts, &llm.Refusal{Pos: pos, Text: m.refusal})
	}
	if m.audio != nil {
		id := dialect.Member(m.audio, "id")
		if _, err := kept(m.path+".audio.id", jsonedit.KindString, id); err != nil {
			return nil, err
		}
		parts = append(parts, &llm.Media{Pos: pos, Kind: llm.Audio, FileID: id, Transcript: dialect.Member(m.audio, "transcript"), At: ".audio.id"})
	}
	n := 0
	for value := range jsonedit.Elements(m.images) {
		at := ".images[" + strconv.Itoa(n) + "]"
		image, err := media(m.path+at, "image_url", value)
		if err != nil {
			return nil, err
		}
		image.Pos, image.At = pos, at+image.At
		parts = append(parts, image)
		n++
	}
	return parts, nil
}

func (d *requestDecoder) calls(m *message) (calls []*llm.ToolCall, err error) {
	for value := range jsonedit.Elements(m.calls) {
		call, err := d.call(m, m.path+".tool_calls["+strconv.Itoa(len(calls))+"]", value)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	if m.oldCall == nil {
		return calls, nil
	}
	call := &llm.ToolCall{Pos: llm.Pos{Item: m.at, Part: -1}, ID: llm.Quote(madeID("function_call", m.at))}
	if call.Name, err = named(m.path+".function_call", m.oldCall); err != nil {
		return nil, err
	}
	if call.Args, err = arguments(m.path+".function_call.arguments", dialect.Member(m.oldCall, "arguments")); err != nil {
		return nil, err
	}
	d.oldCalls[call.Name] = append(d.oldCalls[call.Name], call.ID)
	return append(calls, call), nil
}

func (d *requestDecoder) call(m *message, path string, value llm.Raw) (call *llm.ToolCall, err error) {
	if _, err := kept(path, jsonedit.KindObject, value); err != nil {
		return nil, err
	}
	call = &llm.ToolCall{Pos: llm.Pos{Item: m.at, Part: -1}}
	id := dialect.Member(value, "id")
	if id.Blank() {
		return nil, openai.Missing(path + ".id")
	}
	if _, err := kept(path+".id", jsonedit.KindString, id); err != nil {
		return nil, err
	}
	var glued llm.Raw
	call.ID, glued = unglued(id)
	kind, member := dialect.Text(value, "type"), "arguments"
	switch kind {
	case "", "function":
		kind = "function"
	case "custom":
		call.Kind, member = llm.CustomCall, "input"
	default:
		return nil, dialect.NotServed(path+".type", "There is no translation of the call type %q in '%s.type'. Use function or custom.", kind, path)
	}
	said := dialect.Member(value, kind)
	if _, err := kept(path+"."+kind, jsonedit.KindObject, said); err != nil {
		return nil, err
	}
	path += "." + kind
	if call.Name, err = named(path, said); err != nil {
		return nil, err
	}
	if call.Args, err = arguments(path+"."+member, dialect.Member(said, member)); err != nil {
		return nil, err
	}
	for _, s := range []llm.Raw{
		signatureOf(dialect.Member(value, "extra_content")), signatureOf(dialect.Member(value, "provider_specific_fields")),
		signatureOf(dialect.Member(said, "provider_specific_fields")), glued,
	} {
		if s != nil {
			call.Opaque = append(call.Opaque, llm.Opaque{Kind: llm.ThoughtSignature, Vendor: google, Data: s})
			break
		}
	}
	d.kinds[string(call.ID)] = call.Kind
	return call, nil
}

// arguments is the text of a call's arguments, also where a client wrote the
// object itself.
func arguments(path string, value llm.Raw) (llm.Raw, error) {
	switch value.Kind() {
	case jsonedit.KindString:
		return value, nil
	case jsonedit.KindInvalid:
		return llm.Raw(`""`), nil
	case jsonedit.KindObject:
		return llm.QuoteJSON(value), nil
	}
	return nil, openai.WrongType(path, "a string", value)
}

func (d *requestDecoder) toolResult(m *message) error {
	if m.callID.Blank() {
		return openai.Missing(m.path + ".tool_call_id")
	}
	parts, err := d.parts(m)
	if err != nil {
		return err
	}
	id, _ := unglued(m.callID)
	d.add(&llm.ToolResult{
		Pos: llm.Pos{Item: m.at, Part: -1}, ID: id, Kind: d.kinds[string(id)], Name: m.name.Text(), IsError: m.isError, Parts: parts,
	})
	return nil
}

// functionResult is the result of the latest call of that name.
func (d *requestDecoder) functionResult(m *message) error {
	parts, err := d.parts(m)
	if err != nil {
		return err
	}
	name := m.name.Text()
	if calls := d.oldCalls[name]; len(calls) > 0 {
		last := len(calls) - 1
		d.oldCalls[name] = calls[:last]
		d.add(&llm.ToolResult{Pos: llm.Pos{Item: m.at, Part: -1}, ID: calls[last], Name: name, Parts: parts})
		return nil
	}
	return llm.InvalidParam("invalid_value", m.path+".name", "Invalid value for '%s.name': no function_call before it has this name and no result. Put the result after its call.", m.path)
}
