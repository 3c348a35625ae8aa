package gemini

import (
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// words are this dialect's names of places and members.
var words = &llm.Words{Items: "contents", Parts: "parts", Params: map[string]string{
	"messages":                "contents",
	"max_completion_tokens":   "generationConfig.maxOutputTokens",
	"max_tokens":              "generationConfig.maxOutputTokens",
	"temperature":             "generationConfig.temperature",
	"top_p":                   "generationConfig.topP",
	"top_k":                   "generationConfig.topK",
	"n":                       "generationConfig.candidateCount",
	"stop":                    "generationConfig.stopSequences",
	"seed":                    "generationConfig.seed",
	"presence_penalty":        "generationConfig.presencePenalty",
	"frequency_penalty":       "generationConfig.frequencyPenalty",
	"logprobs":                "generationConfig.responseLogprobs",
	"top_logprobs":            "generationConfig.logprobs",
	"response_format":         "generationConfig.responseMimeType",
	"modalities":              "generationConfig.responseModalities",
	"audio":                   "generationConfig.speechConfig",
	"reasoning_effort":        "generationConfig.thinkingConfig",
	"reasoning_details":       "thought_parts",
	"tool_choice":             "toolConfig",
	"tool_call_id":            "functionResponse",
	"metadata":                "labels",
	"safety_settings":         "safetySettings",
	"service_tier":            "serviceTier",
	"prompt_cache_breakpoint": "cachedContent",
}, Shows: []llm.ServerKind{llm.CodeExecution}}

// requestDecoder reads one request.
type requestDecoder struct {
	req     *llm.Request
	key     seal.Key
	waiting []waitingCall
}

// waitingCall is a call that has no result yet.
type waitingCall struct {
	id   llm.Raw
	name string
}

// Decode implements dialect.Inbound. The model and whether to stream stand in
// the path: whoever calls this knows them.
func (Dialect) Decode(body []byte, key seal.Key) (*llm.Request, error) {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, noFields, &object); err != nil {
		return nil, openai.ScanError(err)
	}
	d := &requestDecoder{req: &llm.Request{Words: words, Size: len(body), WantsUsage: true}, key: key}
	var contents, system, tools llm.Raw
	for quoted, value := range jsonedit.Members(body) {
		name, v := camel(llm.Raw(quoted).Text()), llm.Raw(value)
		if !v.Given() {
			continue
		}
		var err error
		switch name {
		case "contents":
			contents = v
		case "systemInstruction":
			system = v
		case "tools":
			tools = v
		case "toolConfig":
			err = d.toolConfig(v)
		case "generationConfig":
			err = d.config(v)
		case "safetySettings":
			d.req.Meta.Safety = v // upstreams without such filters note it
		case "labels":
			d.req.Meta.Metadata, err = v, isObject(name, v)
		case "serviceTier":
			err = d.tier(v)
		case "model": // stands in the path
		case "cachedContent":
			err = dialect.NotServed(name, "'cachedContent' names a cache at the vendor, which this gateway cannot reach for this model. Send the content itself.")
		default:
			d.req.Other = append(d.req.Other, llm.Member{Name: name, Value: v})
		}
		if err != nil {
			return nil, err
		}
	}
	if err := d.system(system); err != nil {
		return nil, err
	}
	if err := d.contents(contents); err != nil {
		return nil, err
	}
	if err := d.tools(tools); err != nil {
		return nil, err
	}
	return d.req, nil
}

func isObject(at string, v llm.Raw) error {
	if v.Kind() != jsonedit.KindObject {
		return openai.WrongType(at, "an object", v)
	}
	return nil
}

func isArray(at string, v llm.Raw) error {
	if v.Kind() != jsonedit.KindArray {
		return openai.WrongType(at, "an array", v)
	}
	return nil
}

func isString(at string, v llm.Raw) error {
	if !v.IsText() {
		return openai.WrongType(at, "a string", v)
	}
	return nil
}

func integer(at string, v llm.Raw) (int64, error) {
	n, ok := count(v)
	if !ok {
		return 0, openai.WrongType(at, "an integer", v)
	}
	return n, nil
}

func (d *requestDecoder) tier(v llm.Raw) error {
	if err := isString("serviceTier", v); err != nil {
		return err
	}
	tier := strings.ToLower(v.Text())
	if tier == "standard" {
		tier = "default"
	}
	d.req.Meta.ServiceTier = tier
	return nil
}

// system reads systemInstruction, a content or a text.
func (d *requestDecoder) system(v llm.Raw) error {
	if v == nil {
		return nil
	}
	m := &llm.Message{Pos: llm.Pos{Part: -1}, Role: llm.System}
	if v.IsText() {
		m.Parts = []llm.Part{&llm.Text{Pos: m.Pos, Text: v}}
	} else if err := isObject("systemInstruction", v); err != nil {
		return err
	}
	at := 0
	for part := range jsonedit.Elements(partsOf(v)) {
		t := text(dialect.Member(part, "text"))
		if t == nil {
			p := "systemInstruction.parts[" + strconv.Itoa(at) + "]"
			return dialect.NotServed(p, "'%s' is no text, and instructions are text only. Put it into a user content.", p)
		}
		m.Parts = append(m.Parts, &llm.Text{Pos: m.Pos, Text: t})
		at++
	}
	d.req.Items = append(d.req.Items, m)
	return nil
}

// partsOf are the parts of a content; one alone may stand without a list.
func partsOf(content llm.Raw) llm.Raw {
	parts := dialect.Member(content, "parts")
	if parts.Kind() == jsonedit.KindObject {
		return append(append(llm.Raw{'['}, parts...), ']')
	}
	return parts
}

func (d *requestDecoder) contents(v llm.Raw) error {
	switch {
	case v == nil:
		return openai.Missing("contents")
	case v.Kind() == jsonedit.KindObject:
		v = append(append(llm.Raw{'['}, v...), ']')
	}
	if err := isArray("contents", v); err != nil {
		return err
	}
	index := 0
	for content := range jsonedit.Elements(v) {
		if err := d.content(index, content); err != nil {
			return err
		}
		index++
	}
	if index == 0 {
		return llm.InvalidParam("invalid_value", "contents", "Invalid value for 'contents': it is empty. At least one content is needed.")
	}
	return nil
}

func (d *requestDecoder) content(index int, content llm.Raw) error {
	at := "contents[" + strconv.Itoa(index) + "]"
	if err := isObject(at, content); err != nil {
		return err
	}
	c := &contentDecoder{requestDecoder: d, at: at, index: index}
	switch role := dialect.Text(content, "role"); role {
	case "", "user", "function":
	case "model":
		c.role = llm.Assistant
	default:
		return llm.InvalidParam("invalid_value", at+".role", "Invalid value for '%s.role': '%s'. It must be 'user' or 'model'.", at, role)
	}
	parts := partsOf(content)
	if parts != nil {
		if err := isArray(at+".parts", parts); err != nil {
			return err
		}
	}
	n := 0
	for part := range jsonedit.Elements(parts) {
		c.part = n
		if err := c.read(part); err != nil {
			return err
		}
		n++
	}
	c.endThoughts()
	return nil
}

// contentDecoder lays one content out in items.
type contentDecoder struct {
	*requestDecoder
	at       string
	index    int
	role     llm.Role
	part     int
	calls    int
	message  *llm.Message // that takes the next text or medium
	thoughts int          // that were read and have no seal of ours
	code     *llm.ServerCall
}

func (c *contentDecoder) pos() llm.Pos { return llm.Pos{Item: c.index, Part: c.part} }

func (c *contentDecoder) path() string { return c.at + ".parts[" + strconv.Itoa(c.part) + "]" }

func (c *contentDecoder) add(item llm.Item) {
	c.message = nil
	c.req.Items = append(c.req.Items, item)
}

// say adds a part to the message that is open.
func (c *contentDecoder) say(p llm.Part) {
	if c.message == nil {
		m := &llm.Message{Pos: llm.Pos{Item: c.index, Part: -1}, Role: c.role}
		c.add(m)
		c.message = m
	}
	c.message.Parts = append(c.message.Parts, p)
}

// endThoughts notes thoughts that nobody but their model could use.
func (c *contentDecoder) endThoughts() {
	if c.thoughts > 0 {
		c.req.Notes.Drop("thought_parts")
		c.thoughts = 0
	}
}

func (c *contentDecoder) read(part llm.Raw) error {
	if err := isObject(c.path(), part); err != nil {
		return err
	}
	var words, signature, name, value llm.Raw
	thought := false
	for quoted, v := range jsonedit.Members(part) {
		switch camel(llm.Raw(quoted).Text()) {
		case "text":
			words = v
		case "thought":
			thought = string(v) == "true"
		case "thoughtSignature":
			signature = text(v)
		case "videoMetadata", "mediaResolution", "partMetadata":
			c.req.Notes.Drop(camel(llm.Raw(quoted).Text()))
		default:
			name, value = quoted, v
		}
	}
	if thought && name == nil {
		return c.thought(words, signature)
	}
	c.endThoughts()
	switch {
	case name != nil:
		return c.other(camel(name.Text()), value, part, signature)
	case words == nil && signature == nil:
		return llm.InvalidParam("invalid_value", c.path(), "Invalid value for '%s': it has no data. A part needs a text, or another kind of content.", c.path())
	case words != nil:
		if err := isString(c.path()+".text", words); err != nil {
			return err
		}
	default:
		words = llm.Raw(`""`)
	}
	c.say(&llm.Text{Pos: c.pos(), Text: words, Opaque: c.signed(signature)})
	return nil
}

// signed is the opaque state of a signature of the vendor's own.
func (c *contentDecoder) signed(signature llm.Raw) []llm.Opaque {
	if signature.Blank() || seal.Is(signature.Text()) {
		return nil
	}
	return []llm.Opaque{opaque(signature)}
}

// thought reads a part of thinking. What this gateway has sealed becomes what
// it was; the vendor's own thoughts are never played back.
func (c *contentDecoder) thought(words, signature llm.Raw) error {
	if words != nil {
		if err := isString(c.path()+".text", words); err != nil {
			return err
		}
	}
	sealed, ok := c.key.Open(signature.Text())
	if !ok {
		c.thoughts++
		return nil
	}
	c.thoughts = 0
	r := &llm.Reasoning{Pos: c.pos()}
	o := llm.Opaque{Origin: llm.Raw(sealed.Get("o")).Text()}
	switch sealed.Kind {
	case "anthropic.thinking":
		o.Kind, o.Vendor, o.Data = llm.Signature, "anthropic", sealed.Get("s")
		words = sealed.Get("t") // the text that was signed, not what became of it
	case "anthropic.redacted":
		o.Kind, o.Vendor, o.Data = llm.Redacted, "anthropic", sealed.Get("d")
	case "openai.item":
		o.Kind, o.Vendor, o.Data = llm.Encrypted, "openai", sealed.Get("e")
		r.ID = sealed.Get("id")
	case "plain":
		o.Kind = llm.PlainMark
	default:
		return nil
	}
	r.Opaque = []llm.Opaque{o}
	if text(words) != nil && (!words.Blank() || o.Kind == llm.Signature) {
		r.Texts = []llm.Thought{{Text: words, Summary: o.Kind == llm.Encrypted}}
	}
	c.add(r)
	return nil
}

// other reads a part that is more than text.
func (c *contentDecoder) other(name string, value, part, signature llm.Raw) error {
	if !value.Given() {
		return nil
	}
	at := c.path() + "." + name
	if err := isObject(at, value); err != nil {
		return err
	}
	switch name {
	case "functionCall":
		return c.call(at, value, signature)
	case "functionResponse":
		return c.response(at, value)
	case "inlineData", "fileData":
		m, err := c.media(at, name, value)
		if err != nil {
			return err
		}
		c.say(m)
		return nil
	case "executableCode", "codeExecutionResult":
		c.execution(name, value, part)
		return nil
	}
	return dialect.NotServed(at, "'%s' cannot be taken over for this model. Leave the part out, or say it as text.", at)
}
