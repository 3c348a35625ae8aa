package openairesponses

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

var _ dialect.Inbound = Dialect{}

// words are what clients of Responses call places and members.
var words = &llm.Words{Items: "input", Parts: "content", Params: map[string]string{
	"messages":              "input",
	"max_completion_tokens": "max_output_tokens",
	"max_tokens":            "max_output_tokens",
	"reasoning_effort":      "reasoning.effort",
	"response_format":       "text.format",
	"verbosity":             "text.verbosity",
	"logprobs":              "include",
	"web_search_options":    "tools",
}, Shows: []llm.ServerKind{llm.WebSearch, llm.WebFetch, llm.CodeExecution, llm.FileSearch, llm.ImageGeneration}}

// topWords are the words of a client that asks for probabilities by their
// number alone.
func topWords() *llm.Words {
	own := *words
	own.Params = maps.Clone(words.Params)
	own.Params["logprobs"] = "top_logprobs"
	return &own
}

// The entries of `include` that mean something to other dialects.
const (
	includeReasoning = "reasoning.encrypted_content"
	includeLogprobs  = "message.output_text.logprobs"
)

// requestDecoder reads one request.
type requestDecoder struct {
	req   *llm.Request
	key   seal.Key
	late  []lateTools // tools that came as items
	seals []sealed
}

// Decode implements dialect.Inbound.
func (Dialect) Decode(body []byte, key seal.Key) (*llm.Request, error) {
	body = bytes.TrimSpace(body)
	if jsonedit.KindOf(body) != jsonedit.KindObject {
		return nil, openai.WrongType("body", "an object", body)
	}
	d := &requestDecoder{req: &llm.Request{Words: words, Size: len(body)}, key: key}
	var input, tools, choice llm.Raw
	for name, value := range jsonedit.Members(body) {
		if jsonedit.KindOf(value) == jsonedit.KindNull {
			continue // as if it were not there
		}
		var err error
		switch string(name) {
		case `"input"`:
			input = value
		case `"tools"`:
			tools = value
		case `"tool_choice"`:
			choice = value
		default:
			err = d.member(string(name[1:len(name)-1]), value)
		}
		if err != nil {
			return nil, err
		}
		if echoed[string(name)] {
			d.req.Echo = append(d.req.Echo, llm.Member{Name: string(name[1 : len(name)-1]), Value: value})
		}
	}
	if err := d.input(input); err != nil {
		return nil, err
	}
	if err := d.allTools(tools); err != nil {
		return nil, err
	}
	if err := d.toolChoice(choice); err != nil {
		return nil, err
	}
	d.attachSeals()
	if d.req.TopLogprob != nil && !slices.Contains(d.req.State.Include, includeLogprobs) {
		d.req.Words = topWords()
	}
	return d.req, nil
}

// echoed are the members that an answer repeats.
var echoed = map[string]bool{
	`"instructions"`: true, `"tools"`: true, `"tool_choice"`: true, `"parallel_tool_calls"`: true, `"temperature"`: true, `"top_p"`: true,
	`"presence_penalty"`: true, `"frequency_penalty"`: true, `"top_logprobs"`: true, `"max_output_tokens"`: true, `"max_tool_calls"`: true,
	`"text"`: true, `"reasoning"`: true, `"metadata"`: true, `"user"`: true, `"safety_identifier"`: true, `"prompt_cache_key"`: true,
}

// member reads a member that is neither input nor tools. value is not null.
func (d *requestDecoder) member(name string, value llm.Raw) (err error) {
	req := d.req
	switch name {
	case "model", "stream_options": // an answer of this dialect always tells the usage
	case "stream":
		req.Stream, err = openai.Flag(name, value)
	case "instructions":
		return d.instructions(value)
	case "previous_response_id", "conversation", "prompt":
		return notStored(name)
	case "background":
		if req.State.Background, err = openai.Flag(name, value); err == nil && req.State.Background {
			return notStored(name)
		}
	case "store":
		var store bool
		store, err = openai.Flag(name, value)
		req.State.Store = &store
	case "parallel_tool_calls":
		var parallel bool
		parallel, err = openai.Flag(name, value)
		req.Parallel = &parallel
	case "include":
		return d.include(value)
	case "context_management":
		req.State.Context, err = ofKind(name, value, jsonedit.KindArray)
	case "reasoning":
		return d.reasoningWish(name, value)
	case "text":
		return d.text(name, value)
	case "max_output_tokens":
		var limit int64
		limit, err = wholeNumber(name, value)
		req.Limits.MaxTokens = &limit
	case "max_tool_calls":
		req.Limits.MaxToolCalls, err = ofKind(name, value, jsonedit.KindNumber)
	case "truncation":
		var how llm.Raw
		if how, err = ofKind(name, value, jsonedit.KindString); err == nil && how.Text() != "disabled" {
			req.Limits.Truncation = how
		}
	case "temperature":
		req.Sampling.Temperature, err = ofKind(name, value, jsonedit.KindNumber)
	case "top_p":
		req.Sampling.TopP, err = ofKind(name, value, jsonedit.KindNumber)
	case "presence_penalty":
		req.Sampling.Presence, err = ofKind(name, value, jsonedit.KindNumber)
	case "frequency_penalty":
		req.Sampling.Frequency, err = ofKind(name, value, jsonedit.KindNumber)
	case "top_logprobs":
		if req.TopLogprob, err = ofKind(name, value, jsonedit.KindNumber); err == nil && string(value) == "0" {
			req.TopLogprob = nil // none are asked for
		}
		req.Logprobs = req.Logprobs || req.TopLogprob != nil
	case "prompt_cache_key":
		req.Cache.Key, err = ofKind(name, value, jsonedit.KindString)
	case "prompt_cache_options":
		if _, err = ofKind(name, value, jsonedit.KindObject); err == nil {
			req.Cache.Mode, req.Cache.TTL = dialect.Text(value, "mode"), dialect.Text(value, "ttl")
		}
	case "service_tier":
		_, err = ofKind(name, value, jsonedit.KindString)
		req.Meta.ServiceTier = value.Text()
	case "metadata":
		req.Meta.Metadata, err = ofKind(name, value, jsonedit.KindObject)
	case "user":
		req.Meta.User, err = ofKind(name, value, jsonedit.KindString)
	case "safety_identifier":
		req.Meta.SafetyID, err = ofKind(name, value, jsonedit.KindString)
	case "moderation":
		req.Meta.Moderation = value
	default:
		req.Other = append(req.Other, llm.Member{Name: name, Value: value})
	}
	return err
}

// notStored refuses a member that stands for what is kept somewhere: an answer
// without it would look fine and be wrong.
func notStored(name string) error {
	switch name {
	case "background":
		return dialect.NotServed(name, "The model's upstream cannot run in the background: leave 'background' out, and read the answer as a stream.")
	case "prompt":
		return dialect.NotServed(name, "The model's upstream knows no stored prompts, as 'prompt' names one: send its text in 'instructions' and 'input'.")
	}
	return dialect.NotServed(name, "The model's upstream keeps no earlier turns, which '%s' stands for: leave it out and send the whole history in 'input'.", name)
}

// instructions come before all items, which are read after the members.
func (d *requestDecoder) instructions(value llm.Raw) error {
	text, err := ofKind("instructions", value, jsonedit.KindString)
	if err != nil || text.Blank() {
		return err
	}
	nowhere := llm.Pos{Item: -1, Part: -1}
	d.add(&llm.Message{Pos: nowhere, Role: llm.System, Parts: []llm.Part{&llm.Text{Pos: nowhere, Text: text}}})
	return nil
}

func (d *requestDecoder) include(value llm.Raw) error {
	if _, err := ofKind("include", value, jsonedit.KindArray); err != nil {
		return err
	}
	i := 0
	for entry := range jsonedit.Elements(value) {
		name, ok := jsonedit.Unquote(entry)
		if !ok {
			return openai.WrongType("include["+strconv.Itoa(i)+"]", "a string", entry)
		}
		i++
		d.req.State.Include = append(d.req.State.Include, name)
		switch name {
		case includeReasoning:
			d.req.Reasoning.Sealed = true
		case includeLogprobs:
			d.req.Logprobs = true
		}
	}
	return nil
}

func (d *requestDecoder) reasoningWish(at string, value llm.Raw) error {
	if _, err := ofKind(at, value, jsonedit.KindObject); err != nil {
		return err
	}
	wish := &d.req.Reasoning
	for name, v := range jsonedit.Members(value) {
		v := llm.Raw(v)
		switch string(name) {
		case `"effort"`:
			if !v.Given() {
				continue
			}
			if !v.IsText() {
				return openai.WrongType(at+".effort", "a string", v)
			}
			wish.Effort = v.Text()
		case `"summary"`, `"generate_summary"`:
			if v.Given() && !v.IsText() {
				return openai.WrongType(at+"."+string(name[1:len(name)-1]), "a string", v)
			}
			if v.Given() || !wish.Summary.Given() {
				wish.Summary = v
			}
		}
	}
	return nil
}

// text reads the form of the answer.
func (d *requestDecoder) text(at string, value llm.Raw) error {
	if _, err := ofKind(at, value, jsonedit.KindObject); err != nil {
		return err
	}
	for name, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		var err error
		switch string(name) {
		case `"format"`:
			err = d.format(at+".format", v)
		case `"verbosity"`:
			d.req.Verbosity, err = ofKind(at+".verbosity", v, jsonedit.KindString)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *requestDecoder) format(at string, value llm.Raw) (err error) {
	if _, err := ofKind(at, value, jsonedit.KindObject); err != nil {
		return err
	}
	f := llm.Format{}
	switch kind := dialect.Text(value, "type"); kind {
	case "text":
	case "json_object":
		f.Kind = llm.JSONObject
	case "json_schema":
		f.Kind = llm.JSONSchema
		f.Name, f.Desc, f.Schema = dialect.Member(value, "name"), dialect.Member(value, "description"), dialect.Member(value, "schema")
		if f.Schema.Kind() != jsonedit.KindObject {
			return openai.Missing(at + ".schema")
		}
		f.Strict, err = optionalFlag(at+".strict", dialect.Member(value, "strict"))
	case "":
		return openai.Missing(at + ".type")
	default:
		return dialect.NotServed(at+".type", "There is no '%s' of the type %q: use text, json_object or json_schema.", at, kind)
	}
	d.req.Format = f
	return err
}

// ofKind is a value that must be of one kind.
func ofKind(at string, value llm.Raw, kind jsonedit.Kind) (llm.Raw, error) {
	if value.Kind() == kind {
		return value, nil
	}
	want := "a " + kind.String()
	if kind == jsonedit.KindObject || kind == jsonedit.KindArray {
		want = "an " + kind.String()
	}
	return nil, openai.WrongType(at, want, value)
}

func wholeNumber(at string, value llm.Raw) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err == nil && n > 0:
		return n, nil
	case value.Kind() != jsonedit.KindNumber:
		return 0, openai.WrongType(at, "an integer", value)
	}
	return 0, llm.InvalidParam("invalid_value", at, "Invalid value for '%s': expected a positive integer.", at)
}

// optionalFlag is nil where nothing is said.
func optionalFlag(at string, value llm.Raw) (*bool, error) {
	if !value.Given() {
		return nil, nil
	}
	flag, err := openai.Flag(at, value)
	return &flag, err
}
