package openaichat

import (
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

var _ dialect.Inbound = Dialect{}

// The names of places in a request. The neutral form took its names from this
// dialect, so that only those of clients with the old functions differ.
var (
	words    = &llm.Words{Items: "messages", Parts: "content"}
	oldWords = &llm.Words{Items: "messages", Parts: "content", Params: map[string]string{
		"tools": "functions", "tool_choice": "function_call",
	}}
)

// isOwn reports whether a request was written in this dialect: an upstream of
// Chat Completions can then be told even what the neutral form has no name for.
func isOwn(req *llm.Request) bool { return req.Words == words || req.Words == oldWords }

// isOld reports whether a client asked with functions instead of tools, and
// wants to be answered in that form.
func isOld(req *llm.Request) bool { return req != nil && req.Words == oldWords }

// requestDecoder decodes one request.
type requestDecoder struct {
	req *llm.Request
	key seal.Key

	kinds    map[string]llm.CallKind // of the calls so far, by ID
	oldCalls map[string][]llm.Raw    // IDs of calls of the old form that no result has answered, by name
	late     lateMembers
}

// lateMembers are read when all others are known.
type lateMembers struct {
	messages, tools, functions, choice, oldChoice, search llm.Raw
	newLimit, oldLimit                                    *int64
}

// Decode implements dialect.Inbound.
func (Dialect) Decode(body []byte, key seal.Key) (*llm.Request, error) {
	d := &requestDecoder{req: &llm.Request{Words: words, Size: len(body)}, key: key, kinds: map[string]llm.CallKind{}, oldCalls: map[string][]llm.Raw{}}
	// Whoever speaks this dialect gets reasoning_details, and gives them back.
	d.req.Reasoning.Sealed = true
	for quoted, value := range jsonedit.Members(body) {
		if jsonedit.KindOf(value) == jsonedit.KindNull {
			continue // as if it were absent
		}
		name := memberName(quoted)
		if err := d.member(name, value); err != nil {
			return nil, err
		}
	}
	if err := d.finish(); err != nil {
		return nil, err
	}
	return d.req, nil
}

// memberName is a name without its quotes and escapes.
func memberName(quoted []byte) string {
	name, _ := jsonedit.Unquote(quoted)
	return name
}

func (d *requestDecoder) finish() error {
	req, late := d.req, &d.late
	req.Limits.MaxTokens = late.newLimit
	if late.newLimit == nil && late.oldLimit != nil {
		req.Limits.MaxTokens, req.Limits.MaxTokensRaw = late.oldLimit, "max_tokens"
	}
	if err := d.tools(); err != nil {
		return err
	}
	if late.messages == nil {
		return openai.Missing("messages")
	}
	return d.messages(late.messages)
}

// member reads one member, whose value is not null.
func (d *requestDecoder) member(name string, value llm.Raw) (err error) {
	req := d.req
	switch name {
	case "model":
	case "messages":
		d.late.messages, err = kept(name, jsonedit.KindArray, value)
	case "tools":
		d.late.tools, err = kept(name, jsonedit.KindArray, value)
	case "functions":
		d.late.functions, err = kept(name, jsonedit.KindArray, value)
	case "tool_choice":
		d.late.choice = value
	case "function_call":
		d.late.oldChoice = value
	case "web_search_options":
		d.late.search, err = kept(name, jsonedit.KindObject, value)
	case "stream":
		req.Stream, err = openai.Flag(name, value)
	case "stream_options":
		err = d.streamOptions(value)
	case "max_completion_tokens":
		d.late.newLimit, err = count(name, value)
	case "max_tokens":
		d.late.oldLimit, err = count(name, value)
	case "n":
		var n *int64
		if n, err = count(name, value); err == nil {
			req.Choices = int(*n)
		}
	case "stop":
		err = d.stop(value)
	case "parallel_tool_calls":
		req.Parallel, err = flag(name, value)
	case "logprobs":
		req.Logprobs, err = openai.Flag(name, value)
	case "store":
		req.State.Store, err = flag(name, value)
	case "response_format":
		req.Format, err = format(name, value)
	case "modalities":
		err = d.modalities(value)
	case "service_tier":
		req.Meta.ServiceTier, err = text(name, value)
	default:
		var known bool
		if known, err = d.rawMember(name, value); !known && err == nil {
			known, err = d.reasoningMember(name, value)
		}
		if !known && err == nil {
			req.Other = append(req.Other, llm.Member{Name: name, Value: value})
		}
	}
	return err
}

// rawMember keeps a member that is only passed on.
func (d *requestDecoder) rawMember(name string, value llm.Raw) (known bool, err error) {
	req := d.req
	place, kind := (*llm.Raw)(nil), jsonedit.KindNumber
	switch name {
	case "temperature":
		place = &req.Sampling.Temperature
	case "top_p":
		place = &req.Sampling.TopP
	case "top_k":
		place = &req.Sampling.TopK
	case "min_p":
		place = &req.Sampling.MinP
	case "seed":
		place = &req.Sampling.Seed
	case "presence_penalty":
		place = &req.Sampling.Presence
	case "frequency_penalty":
		place = &req.Sampling.Frequency
	case "repetition_penalty":
		place = &req.Sampling.Repetition
	case "top_logprobs":
		place = &req.TopLogprob
	case "logit_bias":
		place, kind = &req.Sampling.LogitBias, jsonedit.KindObject
	case "audio":
		place, kind = &req.Audio, jsonedit.KindObject
	case "metadata":
		place, kind = &req.Meta.Metadata, jsonedit.KindObject
	case "prediction":
		place, kind = &req.Meta.Prediction, jsonedit.KindObject
	case "moderation":
		place, kind = &req.Meta.Moderation, jsonedit.KindObject
	case "safety_settings":
		place, kind = &req.Meta.Safety, jsonedit.KindArray
	case "verbosity":
		place, kind = &req.Verbosity, jsonedit.KindString
	case "user":
		place, kind = &req.Meta.User, jsonedit.KindString
	case "safety_identifier":
		place, kind = &req.Meta.SafetyID, jsonedit.KindString
	case "prompt_cache_key":
		place, kind = &req.Cache.Key, jsonedit.KindString
	case "prompt_cache_options":
		if _, err := kept(name, jsonedit.KindObject, value); err != nil {
			return true, err
		}
		req.Cache.Mode, req.Cache.TTL = dialect.Text(value, "mode"), dialect.Text(value, "ttl")
		return true, nil
	case "cache_control": // of Anthropic: the end of the prompt is the breakpoint
		req.Cache.Auto = breakpoint(value)
		return true, nil
	default:
		return false, nil
	}
	*place, err = kept(name, kind, value)
	return true, err
}

// reasoningMember reads the ways in which clients of other services wish for
// thinking.
func (d *requestDecoder) reasoningMember(name string, value llm.Raw) (known bool, err error) {
	wish := &d.req.Reasoning
	switch name {
	case "reasoning_effort":
		if n, ok := integer(value); ok { // as Fireworks has it
			wish.Mode, wish.Budget = llm.ThinkingOn, n
			return true, nil
		}
		wish.Effort, err = text(name, value)
	case "thinking":
		if _, err = kept(name, jsonedit.KindObject, value); err == nil {
			d.thinking(value)
		}
	case "reasoning":
		if _, err = kept(name, jsonedit.KindObject, value); err == nil {
			wish.Router = value
			err = d.reasoning(value)
		}
	case "output_config":
		if _, err = kept(name, jsonedit.KindObject, value); err == nil {
			err = d.outputConfig(value)
		}
	case "include_reasoning":
		var shown bool
		if shown, err = openai.Flag(name, value); err == nil && !shown {
			wish.Display = "omitted"
		}
	default:
		return false, nil
	}
	return true, err
}

// thinking is Anthropic's member; DeepSeek, Kimi and GLM have one like it.
func (d *requestDecoder) thinking(value llm.Raw) {
	wish := &d.req.Reasoning
	wish.Native = value
	switch dialect.Text(value, "type") {
	case "disabled":
		wish.Mode = llm.ThinkingOff
	case "enabled":
		wish.Mode = llm.ThinkingOn
	case "adaptive":
		wish.Mode = llm.ThinkingAdaptive
	case "between_tools":
		wish.Mode = llm.ThinkingBetweenTools
	}
	wish.Budget, _ = integer(dialect.Member(value, "budget_tokens"))
	if display := dialect.Text(value, "display"); display != "" {
		wish.Display = display
	}
}

// reasoning is OpenRouter's member.
func (d *requestDecoder) reasoning(value llm.Raw) error {
	wish := &d.req.Reasoning
	for quoted, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		var err error
		switch name := memberName(quoted); name {
		case "effort":
			wish.Effort, err = text("reasoning.effort", v)
		case "max_tokens":
			var n *int64
			if n, err = count("reasoning.max_tokens", v); err == nil {
				wish.Mode, wish.Budget = llm.ThinkingOn, *n
			}
		case "exclude":
			var hidden bool
			if hidden, err = openai.Flag("reasoning.exclude", v); hidden {
				wish.Display = "omitted"
			}
		case "enabled":
			var on bool
			if on, err = openai.Flag("reasoning.enabled", v); err == nil && !on {
				wish.Mode = llm.ThinkingOff
			}
		case "summary":
			wish.Summary = v
		default:
			d.req.Notes.Drop("reasoning." + name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// outputConfig is Anthropic's member.
func (d *requestDecoder) outputConfig(value llm.Raw) error {
	for quoted, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		var err error
		switch name := memberName(quoted); name {
		case "effort":
			d.req.Reasoning.Effort, err = text("output_config.effort", v)
		case "format":
			schema := dialect.Member(v, "schema")
			if _, err = kept("output_config.format.schema", jsonedit.KindObject, schema); err == nil {
				d.req.Format = llm.Format{Kind: llm.JSONSchema, Schema: schema}
			}
		default:
			d.req.Notes.Drop("output_config." + name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *requestDecoder) streamOptions(value llm.Raw) (err error) {
	if _, err := kept("stream_options", jsonedit.KindObject, value); err != nil {
		return err
	}
	usage, _ := jsonedit.Get(value, "include_usage")
	d.req.WantsUsage, err = openai.Flag("stream_options.include_usage", usage)
	return err
}

func (d *requestDecoder) stop(value llm.Raw) error {
	if value.IsText() {
		d.req.Limits.Stop = []llm.Raw{value}
		return nil
	}
	if _, err := kept("stop", jsonedit.KindArray, value); err != nil {
		return openai.WrongType("stop", "a string or an array of strings", value)
	}
	for s := range jsonedit.Elements(value) {
		if _, err := kept("stop["+strconv.Itoa(len(d.req.Limits.Stop))+"]", jsonedit.KindString, s); err != nil {
			return err
		}
		d.req.Limits.Stop = append(d.req.Limits.Stop, s)
	}
	return nil
}

func (d *requestDecoder) modalities(value llm.Raw) error {
	if _, err := kept("modalities", jsonedit.KindArray, value); err != nil {
		return err
	}
	d.req.Modalities = []string{}
	for m := range jsonedit.Elements(value) {
		s, err := text("modalities["+strconv.Itoa(len(d.req.Modalities))+"]", m)
		if err != nil {
			return err
		}
		d.req.Modalities = append(d.req.Modalities, s)
	}
	return nil
}

// format reads response_format.
func format(param string, value llm.Raw) (f llm.Format, err error) {
	if _, err := kept(param, jsonedit.KindObject, value); err != nil {
		return f, err
	}
	switch kind := dialect.Text(value, "type"); kind {
	case "text":
		return f, nil
	case "json_object":
		f.Kind = llm.JSONObject
		return f, nil
	case "json_schema":
	case "":
		return f, openai.Missing(param + ".type")
	default:
		return f, dialect.NotServed(param+".type", "There is no translation of '%s.type' %q. Use text, json_object or json_schema.", param, kind)
	}
	param += ".json_schema"
	said := dialect.Member(value, "json_schema")
	if said == nil {
		return f, openai.Missing(param)
	}
	if _, err := kept(param, jsonedit.KindObject, said); err != nil {
		return f, err
	}
	f.Kind = llm.JSONSchema
	f.Name, f.Desc = dialect.Member(said, "name"), dialect.Member(said, "description")
	if schema := dialect.Member(said, "schema"); schema != nil {
		if f.Schema, err = kept(param+".schema", jsonedit.KindObject, schema); err != nil {
			return f, err
		}
	}
	if f.Schema == nil {
		f.Schema = openObject
	}
	if strict := dialect.Member(said, "strict"); strict != nil {
		f.Strict, err = flag(param+".strict", strict)
	}
	return f, err
}

// openObject is the schema of any object.
var openObject = llm.Raw(`{"type":"object"}`)

// breakpoint reads cache_control or prompt_cache_breakpoint; nil when there is
// none.
func breakpoint(value llm.Raw) *llm.Breakpoint {
	if value.Kind() != jsonedit.KindObject {
		return nil
	}
	return &llm.Breakpoint{TTL: dialect.Text(value, "ttl")}
}

// The readers of values below refuse what is of another type than it must be.

func kept(param string, kind jsonedit.Kind, value llm.Raw) (llm.Raw, error) {
	if value.Kind() == kind {
		return value, nil
	}
	if value == nil {
		return nil, openai.Missing(param)
	}
	article := "a "
	if strings.IndexByte("aeiou", kind.String()[0]) >= 0 {
		article = "an "
	}
	return nil, openai.WrongType(param, article+kind.String(), value)
}

func text(param string, value llm.Raw) (string, error) {
	if _, err := kept(param, jsonedit.KindString, value); err != nil {
		return "", err
	}
	return value.Text(), nil
}

func flag(param string, value llm.Raw) (*bool, error) {
	b, err := openai.Flag(param, value)
	if err != nil {
		return nil, err
	}
	return &b, nil
}

// count reads a number of things, of which there is at least one.
func count(param string, value llm.Raw) (*int64, error) {
	n, ok := integer(value)
	switch {
	case !ok:
		return nil, openai.WrongType(param, "an integer", value)
	case n < 1 || n > 1<<40:
		return nil, llm.InvalidParam("invalid_value", param, "Invalid value for '%s': expected an integer of at least 1.", param)
	}
	return &n, nil
}

// integer reads a whole number, also one that is written with a fraction of 0.
func integer(value llm.Raw) (int64, bool) {
	if value.Kind() != jsonedit.KindNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}
