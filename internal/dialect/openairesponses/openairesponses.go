// Package openairesponses is the Responses dialect. Between clients and
// upstreams that both speak it, requests and answers pass as they are, but for
// the model's name and what clients are known to break on. Towards other
// dialects it translates: Dialect is the way of clients in, Upstream the way
// out.
package openairesponses

import (
	"errors"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Dialect is Responses.
type Dialect struct{ openai.Door }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() dialect.Name { return dialect.OpenAIResponses }

// Path implements dialect.Dialect.
func (Dialect) Path() string { return "/responses" }

// The members of a request that the gateway acts on.
const (
	fieldModel = iota
	fieldStream
	fieldInput
	fieldMessages
	fieldStore
	fieldPrevious
	fieldConversation
	fieldBackground
	fieldInclude
	fieldInstructions
	fieldTools
	fieldText
	fieldMaxOutputTokens
	fieldPromptCacheKey
	fieldMetadata
	fieldServiceTier
)

var requestFields = jsonedit.NewFields("model", "stream", "input", "messages", "store", "previous_response_id", "conversation", "background", "include",
	"instructions", "tools", "text", "max_output_tokens", "prompt_cache_key", "metadata", "service_tier")

// shows are the types of parts that a model looks at.
var shows = []string{"input_image", "input_file"}

// Prompt implements dialect.Dialect.
func (Dialect) Prompt(req *dialect.Request) dialect.Prompt {
	value := req.Object.Value
	format, _ := jsonedit.Get(value(fieldText), "format")
	return dialect.Prompt{
		Tools: value(fieldTools), Instructions: value(fieldInstructions), Items: value(fieldInput), Format: format,
		MaxOutput: value(fieldMaxOutputTokens), Thread: value(fieldPromptCacheKey), Metadata: value(fieldMetadata), Shows: shows,
		Service: value(fieldServiceTier),
	}
}

// Inspect implements dialect.Dialect.
func (Dialect) Inspect(body []byte, req *dialect.Request) (err error) {
	if err := jsonedit.Scan(body, requestFields, &req.Object); err != nil {
		return openai.ScanError(err)
	}
	value := req.Object.Value
	if req.Model, err = openai.Model(value(fieldModel)); err != nil {
		return err
	}
	input := value(fieldInput)
	switch kind := jsonedit.KindOf(input); {
	case input == nil && value(fieldMessages) != nil:
		return llm.InvalidParam("missing_required_parameter", "input",
			"This is a Chat Completions request: it has 'messages' and no 'input'. Send it to /v1/chat/completions, or set the client to Responses.")
	case input != nil && kind != jsonedit.KindString && kind != jsonedit.KindArray && kind != jsonedit.KindNull:
		return openai.WrongType("input", "a string or an array of items", input)
	}
	if req.Stream, err = openai.Flag("stream", value(fieldStream)); err != nil {
		return err
	}
	req.Context, err = readContext(&req.Object)
	return err
}

// Forward implements dialect.Dialect.
func (Dialect) Forward(dst [][]byte, body []byte, req *dialect.Request, up dialect.Upstream) ([][]byte, int) {
	model := jsonedit.Set(fieldModel, jsonedit.AppendQuote(nil, up.Model))
	return jsonedit.Splice(dst, body, req.Object.Edits(nil, model))
}

// The members of a Response that are looked at.
const (
	responseID = iota
	responseStatus
	responseError
	responseUsage
	responseOutput
	responseModel
	responseCreatedAt
	responseCompletedAt
	responseService
	responseTools
)

var responseFields = jsonedit.NewFields("id", "status", "error", "usage", "output", "model", "created_at", "completed_at", "service_tier", "tool_usage")

var (
	errNoResponse = errors.New("the answer has no status and no output")
	errFailed     = errors.New("the answer is a failed response")
)

// Answer implements dialect.Dialect. A response that failed in the foreground
// is an error: clients take a 200 for an answer.
func (Dialect) Answer(body []byte) (usage llm.Usage, known bool, err error) {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, responseFields, &object); err != nil {
		return usage, false, dialect.NotAnAnswer(err)
	}
	if e := object.Value(responseError); jsonedit.KindOf(e) == jsonedit.KindObject {
		return usage, false, openai.EventError(e)
	}
	status, ok := jsonedit.Unquote(object.Value(responseStatus))
	switch {
	case !ok || jsonedit.KindOf(object.Value(responseOutput)) != jsonedit.KindArray:
		return usage, false, dialect.NotAnAnswer(errNoResponse)
	case status == "failed":
		return usage, false, &llm.Error{Kind: llm.Upstream, Message: "The upstream reported that the response failed.", Err: errFailed}
	}
	usage, known = usageOf(&object, 0)
	return usage, known, nil
}

// Priced implements dialect.Dialect.
func (Dialect) Priced(body []byte, req *dialect.Request) []byte {
	var object jsonedit.Object
	if req.Cost == nil || jsonedit.Scan(body, responseFields, &object) != nil {
		return body
	}
	usage, known := usageOf(&object, 0)
	return jsonedit.Edited(body, &object, jsonedit.Set(responseUsage, req.Cost.In(object.Value(responseUsage), usage, known)))
}
