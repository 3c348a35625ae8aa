// Package openaichat is the Chat Completions dialect. So far it serves
// clients and upstreams that both speak it: requests and answers pass as they
// are, but for the model's name, the asking for usage, and what clients are
// known to break on.
package openaichat

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Dialect is Chat Completions.
type Dialect struct{ openai.Door }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() dialect.Name { return dialect.OpenAIChat }

// Path implements dialect.Dialect.
func (Dialect) Path() string { return "/chat/completions" }

// The members of a request that the gateway acts on.
const (
	fieldModel = iota
	fieldMessages
	fieldInput
	fieldStream
	fieldStreamOptions
	fieldTools
	fieldResponseFormat
	fieldMaxCompletionTokens
	fieldMaxTokens
	fieldPromptCacheKey
	fieldMetadata
	fieldN
	fieldModalities
	fieldServiceTier
)

var requestFields = jsonedit.NewFields("model", "messages", "input", "stream", "stream_options",
	"tools", "response_format", "max_completion_tokens", "max_tokens", "prompt_cache_key", "metadata", "n", "modalities", "service_tier")

var (
	optionFields = jsonedit.NewFields("include_usage")
	askUsage     = []byte(`{"include_usage":true}`)
	jsonTrue     = []byte("true")
)

// Inspect implements dialect.Dialect.
func (Dialect) Inspect(body []byte, req *dialect.Request) (err error) {
	if err := jsonedit.Scan(body, requestFields, &req.Object); err != nil {
		return openai.ScanError(err)
	}
	value := req.Object.Value
	if req.Model, err = openai.Model(value(fieldModel)); err != nil {
		return err
	}
	messages := value(fieldMessages)
	switch {
	case messages == nil && value(fieldInput) != nil:
		return llm.InvalidParam("missing_required_parameter", "messages",
			"This is a Responses request: it has 'input' and no 'messages'. Send it to /v1/responses, or set the client to Chat Completions.")
	case messages == nil:
		return openai.Missing("messages")
	case jsonedit.KindOf(messages) != jsonedit.KindArray:
		return openai.WrongType("messages", "an array of messages", messages)
	case openai.EmptyArray(messages):
		return llm.InvalidParam("invalid_value", "messages", "Invalid value for 'messages': it is empty. At least one message is needed.")
	}
	if req.Stream, err = openai.Flag("stream", value(fieldStream)); err != nil {
		return err
	}
	return inspectOptions(value(fieldStreamOptions), req)
}

// shows are the types of parts that a model looks at.
var shows = []string{"image_url", "file"}

// Prompt implements dialect.Dialect.
func (Dialect) Prompt(req *dialect.Request) dialect.Prompt {
	value := req.Object.Value
	limit := value(fieldMaxCompletionTokens)
	if limit == nil {
		limit = value(fieldMaxTokens)
	}
	return dialect.Prompt{
		Tools: value(fieldTools), Items: value(fieldMessages), Format: value(fieldResponseFormat), MaxOutput: limit,
		Thread: value(fieldPromptCacheKey), Metadata: value(fieldMetadata), Shows: shows,
		Choices: value(fieldN), Modalities: value(fieldModalities), Service: value(fieldServiceTier),
	}
}

func inspectOptions(options []byte, req *dialect.Request) (err error) {
	switch {
	case options == nil || jsonedit.KindOf(options) == jsonedit.KindNull:
		return nil
	case jsonedit.KindOf(options) != jsonedit.KindObject:
		return openai.WrongType("stream_options", "an object", options)
	}
	var object jsonedit.Object
	if err := jsonedit.Scan(options, optionFields, &object); err != nil {
		return openai.ScanError(err)
	}
	req.WantsUsage, err = openai.Flag("stream_options.include_usage", object.Value(0))
	return err
}

// Forward implements dialect.Dialect.
func (Dialect) Forward(dst [][]byte, body []byte, req *dialect.Request, up dialect.Upstream) ([][]byte, int) {
	changes := make([]jsonedit.Change, 0, 2)
	changes = append(changes, jsonedit.Set(fieldModel, jsonedit.AppendQuote(nil, up.Model)))
	if req.Stream && up.AskUsage && !req.WantsUsage {
		changes = append(changes, jsonedit.Set(fieldStreamOptions, asking(req.Object.Value(fieldStreamOptions))))
	}
	return jsonedit.Splice(dst, body, req.Object.Edits(nil, changes...))
}

// asking returns stream_options with include_usage on and all else as it was.
func asking(options []byte) []byte {
	if jsonedit.KindOf(options) != jsonedit.KindObject {
		return askUsage
	}
	var object jsonedit.Object
	if err := jsonedit.Scan(options, optionFields, &object); err != nil {
		return askUsage // cannot be: Inspect has scanned it
	}
	return jsonedit.Edited(options, &object, jsonedit.Set(0, jsonTrue))
}

// Answer implements dialect.Dialect.
func (Dialect) Answer(body []byte) (usage llm.Usage, known bool, err error) {
	var object jsonedit.Object
	if err := jsonedit.Scan(body, chunkFields, &object); err != nil {
		return usage, false, dialect.NotAnAnswer(err)
	}
	if e := object.Value(chunkError); e != nil && jsonedit.KindOf(e) != jsonedit.KindNull {
		return usage, false, openai.EventError(e)
	}
	if isFault(body, &object) {
		return usage, false, failedWithin(body)
	}
	if choices := object.Value(chunkChoices); jsonedit.KindOf(choices) != jsonedit.KindArray || openai.EmptyArray(choices) {
		return usage, false, dialect.NotAnAnswer(errNoChoices)
	}
	usage, known = usageOf(&object)
	return usage, known, nil
}

// usageOf is what a whole answer says that it used.
func usageOf(answer *jsonedit.Object) (u llm.Usage, known bool) {
	u, known = openai.DecodeUsage(answer.Value(chunkUsage))
	u.Service = dialect.ServiceOf(answer.Value(chunkService))
	return u, known
}

// Priced implements dialect.Dialect.
func (Dialect) Priced(body []byte, req *dialect.Request) []byte {
	var object jsonedit.Object
	if req.Cost == nil || jsonedit.Scan(body, chunkFields, &object) != nil {
		return body
	}
	usage, known := usageOf(&object)
	return jsonedit.Edited(body, &object, jsonedit.Set(chunkUsage, req.Cost.In(object.Value(chunkUsage), usage, known)))
}

// Replay implements dialect.Dialect: what the stream would have said, with
// each message in one delta. A follower mends it as it would the stream.
func (d Dialect) Replay(dst, body []byte, req *dialect.Request) []byte {
	var compact bytes.Buffer // an answer may be set out in lines, a frame is one
	var object jsonedit.Object
	if json.Compact(&compact, body) != nil || jsonedit.Scan(compact.Bytes(), chunkFields, &object) != nil {
		return dst // cannot be: Answer accepted it
	}
	head := chunkHead{id: object.Value(chunkID), created: object.Value(chunkCreated), model: object.Value(chunkModel)}
	var stream []byte
	for choice := range jsonedit.Elements(object.Value(chunkChoices)) {
		index, _ := jsonedit.Get(choice, "index")
		message, _ := jsonedit.Get(choice, "message")
		finish, _ := jsonedit.Get(choice, "finish_reason")
		stream = head.append(stream, index, delta(message), openai.Null)
		stream = head.append(stream, index, emptyObject, finish)
	}
	if usage := object.Value(chunkUsage); jsonedit.KindOf(usage) == jsonedit.KindObject {
		stream = head.appendUsage(stream, usage)
	}
	f := newFollower(req)
	f.service = dialect.ServiceOf(object.Value(chunkService))
	return dialect.Refollow(dst, append(stream, openai.DoneFrame...), f)
}

// delta is a message as the delta of a chunk: tool calls get an index there.
func delta(message []byte) []byte {
	var object jsonedit.Object
	if err := jsonedit.Scan(message, messageFields, &object); err != nil {
		return emptyObject
	}
	calls := object.Value(0)
	if jsonedit.KindOf(calls) != jsonedit.KindArray {
		return message
	}
	indexed := []byte{'['}
	n := 0
	for call := range jsonedit.Elements(calls) {
		if n > 0 {
			indexed = append(indexed, ',')
		}
		var c jsonedit.Object
		if err := jsonedit.Scan(call, callFields, &c); err == nil {
			call = jsonedit.Edited(call, &c, jsonedit.Set(callIndex, strconv.AppendInt(nil, int64(n), 10)))
		}
		indexed = append(indexed, call...)
		n++
	}
	return jsonedit.Edited(message, &object, jsonedit.Set(0, append(indexed, ']')))
}
