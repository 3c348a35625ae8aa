package anthropic

import (
	"bytes"
	"fmt"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// words are the names that Messages has for places and members.
var words = &llm.Words{
	Items: "messages",
	Parts: "content",
	Params: map[string]string{
		"max_completion_tokens": "max_tokens",
		"reasoning_effort":      "output_config.effort",
		"reasoning_content":     "thinking",
		"reasoning_details":     "thinking",
		"response_format":       "output_config.format",
		"stop":                  "stop_sequences",
		"parallel_tool_calls":   "tool_choice.disable_parallel_tool_use",
		"user":                  "metadata.user_id",
		"safety_identifier":     "metadata.user_id",
		"web_search_options":    "tools",
		"tool_call_id":          "tool_use_id",
	},
	MarksCache: true,
	Shows:      []llm.ServerKind{llm.WebSearch},
}

// systemTurn is the index of what `system` says, which is before all messages.
const systemTurn = -1

// Decode implements dialect.Inbound.
func (Dialect) Decode(body []byte, key seal.Key) (*llm.Request, error) {
	d := decoder{key: key, req: &llm.Request{Words: words, Size: len(body), WantsUsage: true}}
	var choice, messages []byte
	for name, value := range jsonedit.Members(body) {
		if !given(value) {
			continue
		}
		var err error
		switch string(name) {
		case `"messages"`:
			messages = value
		case `"tool_choice"`:
			choice = value // names tools, which may stand after it
		case `"system"`:
			err = d.system(value)
		case `"tools"`:
			err = d.tools(value)
		default:
			err = d.member(string(name), value)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := d.toolChoice(choice); err != nil {
		return nil, err
	}
	if jsonedit.KindOf(messages) != jsonedit.KindArray {
		return nil, openai.Missing("messages")
	}
	index := 0
	for message := range jsonedit.Elements(messages) {
		if err := d.message(index, message); err != nil {
			return nil, err
		}
		index++
	}
	d.req.Items = append(d.instructions, d.req.Items...)
	return d.req, nil
}

// decoder reads one request.
type decoder struct {
	key          seal.Key
	req          *llm.Request
	instructions []llm.Item // of `system`, wherever it stands in the body
}

// member reads a member of the request that is neither messages, tools nor
// instructions; name has its quotes.
func (d *decoder) member(name string, value []byte) (err error) {
	r := d.req
	switch name {
	case `"model"`, `"anthropic_version"`, `"anthropic_beta"`:
	case `"max_tokens"`:
		return d.maxTokens(value)
	case `"metadata"`:
		return d.metadata(value)
	case `"output_config"`:
		return d.outputConfig(value)
	case `"thinking"`:
		return d.thinking(value)
	case `"stream"`:
		r.Stream, err = openai.Flag("stream", value)
	case `"temperature"`:
		r.Sampling.Temperature, err = wanted("temperature", value, jsonedit.KindNumber)
	case `"top_p"`:
		r.Sampling.TopP, err = wanted("top_p", value, jsonedit.KindNumber)
	case `"top_k"`:
		r.Sampling.TopK, err = wanted("top_k", value, jsonedit.KindNumber)
	case `"stop_sequences"`:
		return d.stop(value)
	case `"service_tier"`:
		return d.tier(value)
	case `"cache_control"`:
		r.Cache.Auto, err = d.breakpoint("cache_control", value)
	case `"speed"`:
		if text(value) != "standard" {
			r.Notes.Drop("speed")
		}
	case `"inference_geo"`:
		if text(value) != "global" {
			return dialect.NotServed("inference_geo", "'inference_geo' cannot be promised for this model, whose upstream is not Anthropic's; leave it out or use a model at Anthropic.")
		}
	case `"container"`, `"mcp_servers"`, `"thread"`:
		if jsonedit.KindOf(value) == jsonedit.KindArray && openai.EmptyArray(value) {
			return nil
		}
		member, _ := jsonedit.Unquote([]byte(name))
		return dialect.NotServed(member, "'%s' is served by Anthropic only and cannot be taken over for this model; leave it out or use a model at Anthropic.", member)
	default:
		member, _ := jsonedit.Unquote([]byte(name))
		r.Notes.Drop(member)
	}
	return err
}

func (d *decoder) maxTokens(value []byte) error {
	n, err := tokens("max_tokens", value)
	if err != nil {
		return err
	}
	if n == 0 {
		return dialect.NotPossible("max_tokens", "'max_tokens' of 0 only warms Anthropic's cache, which this model's upstream has no word for; ask for at least 1 token.")
	}
	d.req.Limits.MaxTokens = &n
	return nil
}

// tokens reads a number of tokens.
func tokens(param string, value []byte) (int64, error) {
	n, ok := count(value)
	if ok {
		return n, nil
	}
	if jsonedit.KindOf(value) != jsonedit.KindNumber {
		return 0, openai.WrongType(param, "a whole number", value)
	}
	return 0, llm.InvalidParam("invalid_value", param, "Invalid value for '%s': a whole number of tokens that is not negative is needed.", param)
}

// wanted checks the type of a value.
func wanted(param string, value []byte, kind jsonedit.Kind) (llm.Raw, error) {
	if jsonedit.KindOf(value) == kind {
		return value, nil
	}
	article := "a "
	if kind == jsonedit.KindArray || kind == jsonedit.KindObject {
		article = "an "
	}
	return nil, openai.WrongType(param, article+kind.String(), value)
}

// optional is wanted, but for a value that may be absent or null.
func optional(param string, value []byte, kind jsonedit.Kind) (llm.Raw, error) {
	if !given(value) {
		return nil, nil
	}
	return wanted(param, value, kind)
}

func (d *decoder) metadata(value []byte) (err error) {
	if _, err := wanted("metadata", value, jsonedit.KindObject); err != nil {
		return err
	}
	d.req.Meta.SafetyID, err = optional("metadata.user_id", member(value, "user_id"), jsonedit.KindString)
	return err
}

func (d *decoder) outputConfig(value []byte) (err error) {
	if _, err := wanted("output_config", value, jsonedit.KindObject); err != nil {
		return err
	}
	for name, value := range jsonedit.Members(value) {
		if !given(value) {
			continue
		}
		switch string(name) {
		case `"effort"`:
			if _, err = wanted("output_config.effort", value, jsonedit.KindString); err != nil {
				return err
			}
			d.req.Reasoning.Effort = text(value)
		case `"format"`:
			if err = d.format(value); err != nil {
				return err
			}
		default:
			member, _ := jsonedit.Unquote(name)
			d.req.Notes.Drop("output_config." + member)
		}
	}
	return nil
}

func (d *decoder) format(value []byte) (err error) {
	if _, err := wanted("output_config.format", value, jsonedit.KindObject); err != nil {
		return err
	}
	if kind := dialect.Text(value, "type"); kind != "json_schema" {
		return dialect.NotServed("output_config.format.type", "The 'output_config.format.type' %q is not known to this gateway; 'json_schema' is.", kind)
	}
	d.req.Format.Kind = llm.JSONSchema
	d.req.Format.Schema, err = wanted("output_config.format.schema", member(value, "schema"), jsonedit.KindObject)
	return err
}

func (d *decoder) thinking(value []byte) error {
	if _, err := wanted("thinking", value, jsonedit.KindObject); err != nil {
		return err
	}
	wish := &d.req.Reasoning
	wish.Native = value
	wish.Display = dialect.Text(value, "display")
	switch kind := dialect.Text(value, "type"); kind {
	case "disabled":
		wish.Mode = llm.ThinkingOff
	case "adaptive":
		wish.Mode = llm.ThinkingAdaptive
	case "between_tools":
		wish.Mode = llm.ThinkingBetweenTools
	case "enabled":
		wish.Mode = llm.ThinkingOn
		if budget := member(value, "budget_tokens"); budget != nil {
			n, err := tokens("thinking.budget_tokens", budget)
			if err != nil {
				return err
			}
			wish.Budget = n
		}
	default:
		return llm.InvalidParam("invalid_value", "thinking.type", "Invalid value for 'thinking.type': %q is none of 'enabled', 'disabled', 'adaptive' and 'between_tools'.", kind)
	}
	return nil
}

func (d *decoder) stop(value []byte) error {
	if _, err := wanted("stop_sequences", value, jsonedit.KindArray); err != nil {
		return err
	}
	for s := range jsonedit.Elements(value) {
		if jsonedit.KindOf(s) != jsonedit.KindString {
			return openai.WrongType(fmt.Sprintf("stop_sequences[%d]", len(d.req.Limits.Stop)), "a string", s)
		}
		d.req.Limits.Stop = append(d.req.Limits.Stop, s)
	}
	return nil
}

// tier reads the service tier, in the words of Chat Completions.
func (d *decoder) tier(value []byte) error {
	if _, err := wanted("service_tier", value, jsonedit.KindString); err != nil {
		return err
	}
	d.req.Meta.ServiceTier = text(value)
	if d.req.Meta.ServiceTier == "standard_only" {
		d.req.Meta.ServiceTier = "default"
	}
	return nil
}

// breakpoint reads a cache_control.
func (d *decoder) breakpoint(param string, value []byte) (*llm.Breakpoint, error) {
	if !given(value) {
		return nil, nil
	}
	if _, err := wanted(param, value, jsonedit.KindObject); err != nil {
		return nil, err
	}
	return &llm.Breakpoint{TTL: dialect.Text(value, "ttl")}, nil
}

// system reads the instructions that stand before all messages.
func (d *decoder) system(value []byte) error {
	m := &llm.Message{Pos: llm.Pos{Item: systemTurn, Part: -1}, Role: llm.System}
	switch jsonedit.KindOf(value) {
	case jsonedit.KindString:
		m.Parts = []llm.Part{&llm.Text{Pos: m.Pos, Text: value}}
	case jsonedit.KindArray:
		for block := range jsonedit.Elements(value) {
			path := fmt.Sprintf("system[%d]", len(m.Parts))
			pos := llm.Pos{Item: systemTurn, Part: len(m.Parts)}
			if kind := dialect.Text(block, "type"); kind != "text" {
				return unknownBlock(path, kind, block)
			}
			part, err := d.text(pos, path, block)
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, part)
		}
	default:
		return openai.WrongType("system", "a string or an array of text blocks", value)
	}
	d.instructions = append(d.instructions, m)
	return nil
}

// unknownBlock refuses a block that has no place in other dialects.
func unknownBlock(path, kind string, block []byte) error {
	if jsonedit.KindOf(block) != jsonedit.KindObject {
		return openai.WrongType(path, "an object", block)
	}
	if kind == "" {
		return openai.Missing(path + ".type")
	}
	return dialect.NotServed(path+".type", "A block of type %q cannot be taken over for this model ('%s.type'); leave it out or use a model at Anthropic.", kind, path)
}

// choiceModes are the types of tool_choice.
var choiceModes = map[string]llm.ChoiceMode{"auto": llm.ChoiceAuto, "any": llm.ChoiceRequired, "none": llm.ChoiceNone, "tool": llm.ChoiceNamed}

func (d *decoder) toolChoice(value []byte) error {
	if value == nil {
		return nil
	}
	if _, err := wanted("tool_choice", value, jsonedit.KindObject); err != nil {
		return err
	}
	kind := dialect.Text(value, "type")
	mode, known := choiceModes[kind]
	if !known {
		return llm.InvalidParam("invalid_value", "tool_choice.type", "Invalid value for 'tool_choice.type': %q is none of 'auto', 'any', 'tool' and 'none'.", kind)
	}
	c := &d.req.ToolChoice
	c.Mode = mode
	alone, err := openai.Flag("tool_choice.disable_parallel_tool_use", member(value, "disable_parallel_tool_use"))
	if err != nil {
		return err
	}
	if alone {
		d.req.Parallel = new(bool)
	}
	if mode != llm.ChoiceNamed {
		return nil
	}
	name, err := wanted("tool_choice.name", member(value, "name"), jsonedit.KindString)
	if err != nil {
		return err
	}
	for i := range d.req.Tools {
		if t := &d.req.Tools[i]; t.Server != nil && t.Name == name.Text() {
			c.Hosted, c.Server = true, t.Server.Kind
			return nil
		}
	}
	c.Names = []llm.ToolName{{Name: name.Text()}}
	return nil
}

// message reads one message.
func (d *decoder) message(index int, message []byte) error {
	path := fmt.Sprintf("messages[%d]", index)
	if _, err := wanted(path, message, jsonedit.KindObject); err != nil {
		return err
	}
	content := member(message, "content")
	m := turn{decoder: d, index: index, path: path + ".content"}
	switch role := dialect.Text(message, "role"); role {
	case "user":
		m.role = llm.User
	case "assistant":
		m.role = llm.Assistant
	case "system":
		m.role = llm.System
	default:
		return llm.InvalidParam("invalid_value", path+".role", "Invalid value for '%s.role': %q is none of 'user', 'assistant' and 'system'.", path, role)
	}
	for name := range jsonedit.Members(message) {
		switch string(name) {
		case `"role"`, `"content"`:
		default:
			member, _ := jsonedit.Unquote(name)
			d.req.Notes.Drop(member)
		}
	}
	switch content.Kind() {
	case jsonedit.KindString:
		m.say(&llm.Text{Pos: llm.Pos{Item: index, Part: -1}, Text: content})
	case jsonedit.KindArray:
		part := 0
		for block := range jsonedit.Elements(content) {
			if err := m.block(part, block); err != nil {
				return err
			}
			part++
		}
	default:
		if content == nil {
			return openai.Missing(path + ".content")
		}
		return openai.WrongType(path+".content", "a string or an array of blocks", content)
	}
	d.req.Items = append(d.req.Items, m.done()...)
	return nil
}

// sameText reports whether two strings are written alike.
func sameText(a, b llm.Raw) bool { return bytes.Equal(a, b) }
