// Package anthropic is the Messages dialect. Clients and upstreams that both
// speak it meet in Dialect, where bodies and frames pass as they are. Dialect
// also reads and writes for clients whose upstream speaks another dialect, and
// Upstream for upstreams whose clients do.
package anthropic

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Dialect is Messages, as clients speak it.
type Dialect struct{}

var (
	_ dialect.Dialect = Dialect{}
	_ dialect.Inbound = Dialect{}
)

// Name implements dialect.Dialect.
func (Dialect) Name() dialect.Name { return dialect.Anthropic }

// Path implements dialect.Dialect.
func (Dialect) Path() string { return "/messages" }

// Status implements dialect.Failures.
func (Dialect) Status(e *llm.Error) int { return Status(e) }

// AppendError implements dialect.Failures.
func (Dialect) AppendError(dst []byte, e *llm.Error, requestID string) []byte {
	return AppendError(dst, e, requestID)
}

// RequestIDHeader implements dialect.Failures.
func (Dialect) RequestIDHeader() string { return "Request-Id" }

// Limits implements dialect.Failures. A reset is a moment, in whole seconds.
func (Dialect) Limits(s limit.Standing, now time.Time) []dialect.Header {
	return append(fields("Requests", s.Requests, now), fields("Tokens", s.Tokens, now)...)
}

func fields(of string, l limit.Level, now time.Time) []dialect.Header {
	if l.Limit == 0 {
		return nil
	}
	reset := now.Add(l.Reset + time.Second - 1).UTC().Format(time.RFC3339)
	return []dialect.Header{
		{Name: "Anthropic-Ratelimit-" + of + "-Limit", Value: strconv.FormatInt(l.Limit, 10)},
		{Name: "Anthropic-Ratelimit-" + of + "-Remaining", Value: strconv.FormatInt(l.Remaining, 10)},
		{Name: "Anthropic-Ratelimit-" + of + "-Reset", Value: reset},
	}
}

// Passed implements dialect.Dialect: the client's version and betas belong to
// its body and win over the gateway's own, but a version there must be.
func (Dialect) Passed(sent func(string) string) []dialect.Header {
	var out []dialect.Header
	if sent(versionHeader) == "" {
		out = append(out, dialect.Header{Name: versionHeader, Value: firstVersion})
	}
	for _, name := range [...]string{versionHeader, betaHeader, "Idempotency-Key"} {
		if value := sent(name); value != "" {
			out = append(out, dialect.Header{Name: name, Value: value})
		}
	}
	return out
}

// Header fields of the dialect.
const (
	versionHeader = "Anthropic-Version"
	betaHeader    = "Anthropic-Beta"
)

// The members of a request that the gateway acts on, or knows another dialect
// by.
const (
	fieldModel = iota
	fieldMaxTokens
	fieldMessages
	fieldStream
	fieldInput
	fieldMaxCompletionTokens
	fieldSystem
	fieldTools
	fieldOutputConfig
	fieldMetadata
	fieldServiceTier
)

var requestFields = jsonedit.NewFields("model", "max_tokens", "messages", "stream", "input", "max_completion_tokens",
	"system", "tools", "output_config", "metadata", "service_tier")

// shows are the types of parts that a model looks at.
var shows = []string{"image", "document"}

// Prompt implements dialect.Dialect. A user's ID names the conversation where
// it has that of a session, as agents write it.
func (Dialect) Prompt(req *dialect.Request) dialect.Prompt {
	value := req.Object.Value
	format, _ := jsonedit.Get(value(fieldOutputConfig), "format")
	p := dialect.Prompt{
		Tools: value(fieldTools), Instructions: value(fieldSystem), Items: value(fieldMessages), Format: format,
		MaxOutput: value(fieldMaxTokens), Metadata: value(fieldMetadata), Shows: shows,
		Service: value(fieldServiceTier),
	}
	if user, _ := jsonedit.Get(p.Metadata, "user_id"); bytes.Contains(user, []byte("session")) {
		p.Thread = user
	}
	return p
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
	messages := value(fieldMessages)
	switch {
	case messages == nil && value(fieldInput) != nil:
		return llm.InvalidParam("missing_required_parameter", "messages",
			"This is a Responses request: it has 'input' and no 'messages'. Send it to /v1/responses, or set the client to Anthropic Messages.")
	case messages == nil:
		return openai.Missing("messages")
	case jsonedit.KindOf(messages) != jsonedit.KindArray:
		return openai.WrongType("messages", "an array of messages", messages)
	case openai.EmptyArray(messages):
		return llm.InvalidParam("invalid_value", "messages", "Invalid value for 'messages': it is empty. At least one message is needed.")
	}
	if limit := value(fieldMaxTokens); limit != nil || !req.Counting {
		if err := inspectLimit(limit, value(fieldMaxCompletionTokens)); err != nil {
			return err
		}
	}
	req.WantsUsage = true // answers of this dialect always have it
	req.Stream, err = openai.Flag("stream", value(fieldStream))
	return err
}

// inspectLimit checks max_tokens, which must be there. other is the name that
// Chat Completions has for it.
func inspectLimit(limit, other []byte) error {
	switch {
	case limit == nil && other != nil:
		return llm.InvalidParam("missing_required_parameter", "max_tokens",
			"This looks like a Chat Completions request: it has 'max_completion_tokens' and no 'max_tokens'. Send it to /v1/chat/completions, or say 'max_tokens'.")
	case limit == nil || jsonedit.KindOf(limit) == jsonedit.KindNull:
		return openai.Missing("max_tokens")
	}
	_, err := tokens("max_tokens", limit)
	return err
}

// Forward implements dialect.Dialect.
func (Dialect) Forward(dst [][]byte, body []byte, req *dialect.Request, up dialect.Upstream) ([][]byte, int) {
	model := jsonedit.Set(fieldModel, jsonedit.AppendQuote(nil, up.Model))
	return jsonedit.Splice(dst, body, req.Object.Edits(nil, model))
}

// The members of a message that are looked at.
const (
	messageType = iota
	messageContent
	messageUsage
	messageError
	messageID
	messageModel
	messageStopReason
	messageStopSequence
	messageStopDetails
)

var messageFields = jsonedit.NewFields("type", "content", "usage", "error", "id", "model", "stop_reason", "stop_sequence", "stop_details")

var errNoContent = errors.New("the answer has no content")

// readMessage checks a whole answer.
func readMessage(body []byte, object *jsonedit.Object) error {
	if err := jsonedit.Scan(body, messageFields, object); err != nil {
		return dialect.NotAnAnswer(err)
	}
	if given(object.Value(messageError)) || text(object.Value(messageType)) == "error" {
		return eventError(object.Value(messageError))
	}
	if jsonedit.KindOf(object.Value(messageContent)) != jsonedit.KindArray {
		return dialect.NotAnAnswer(errNoContent)
	}
	return nil
}

// Answer implements dialect.Dialect.
func (Dialect) Answer(body []byte) (usage llm.Usage, known bool, err error) {
	var object jsonedit.Object
	if err := readMessage(body, &object); err != nil {
		return usage, false, err
	}
	var c counts
	c.merge(object.Value(messageUsage))
	return c.usage(), c.known, nil
}

// Priced implements dialect.Dialect.
func (Dialect) Priced(body []byte, req *dialect.Request) []byte {
	var object jsonedit.Object
	if req.Cost == nil || readMessage(body, &object) != nil {
		return body
	}
	usage := object.Value(messageUsage)
	var c counts
	c.merge(usage)
	return jsonedit.Edited(body, &object, jsonedit.Set(messageUsage, req.Cost.In(usage, c.usage(), c.known)))
}

// given reports whether a value is there and is not null.
func given(value []byte) bool { return llm.Raw(value).Given() }

// text is the string that a value is; anything else reads "".
func text(value []byte) string { return llm.Raw(value).Text() }
