package openai

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// maxMessage bounds the text of an upstream's error that is passed on.
const maxMessage = 2000

// UpstreamError turns an upstream's failed answer into the error that the
// client gets. What the upstream says of the client's request is passed on;
// what it says of the operator's account is not: a client that reads 401
// believes that its own key is bad. wait is what the headers ask for, 0 when
// they ask for nothing.
func UpstreamError(status int, body []byte, wait time.Duration) *llm.Error {
	said := decodeError(body)
	e := &llm.Error{Status: status, RetryAfter: wait, Err: fmt.Errorf("upstream answered %d", status)}
	switch {
	case said.quota(status):
		e.Kind, e.NoRetry, e.RetryAfter = llm.UpstreamQuota, true, 0
		e.Message = "The upstream account of this gateway has no quota left. Your own key is fine; tell the operator."
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind, e.NoRetry = llm.UpstreamAuth, true
		e.Message = "The upstream refused the gateway's credential. Your own key is fine; tell the operator."
	case status == http.StatusTooManyRequests:
		e.Kind = llm.RateLimited
		e.RetryAfter = max(wait, time.Second)
		e.Message = fmt.Sprintf("The upstream's rate limit is reached. Please try again in %s.", e.RetryAfter)
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		e.Kind = llm.UpstreamTimeout
		e.Message = "The upstream took too long to answer."
	case status == http.StatusServiceUnavailable || status == 529:
		e.Kind = llm.Overloaded
		e.RetryAfter = max(wait, time.Second)
		e.Message = "The upstream is overloaded. Please try again later."
	case status == http.StatusNotFound && said.param != "" && said.param != "model":
		said.into(e, llm.Invalid) // an object that the request names, not the route or the model
	case status == http.StatusNotFound:
		e.Kind, e.NoRetry = llm.Upstream, true
		e.Message = "The upstream does not know the model or the route that this gateway is set to use; tell the operator."
	case status == http.StatusRequestEntityTooLarge:
		said.into(e, llm.TooLarge)
	case status == http.StatusConflict:
		said.into(e, llm.Conflict)
	case status >= 400 && status < 500:
		said.into(e, llm.Invalid)
	default:
		e.Kind = llm.Upstream
		e.Message = fmt.Sprintf("The upstream failed (HTTP %d).", status)
	}
	return e
}

// EventError turns an error object from within a 200 answer, whole or
// streamed, into the error that the client gets.
func EventError(object []byte) *llm.Error {
	said := decodeErrorObject(object)
	status := http.StatusBadGateway
	switch said.code {
	case "rate_limit_exceeded":
		status = http.StatusTooManyRequests
	case "server_is_overloaded", "slow_down", "overloaded_error":
		status = http.StatusServiceUnavailable
	case "context_length_exceeded", "invalid_prompt", "content_filter", "cyber_policy",
		"content_policy_violation", "previous_response_not_found":
		status = http.StatusBadRequest
	case "invalid_api_key":
		status = http.StatusUnauthorized
	}
	switch {
	case said.quota(status):
		status = http.StatusPaymentRequired
	case said.typ == invalidRequest && status == http.StatusBadGateway:
		status = http.StatusBadRequest
	}
	body := append([]byte(`{"error":`), object...)
	e := UpstreamError(status, append(body, '}'), 0)
	if e.Kind == llm.Upstream {
		e.Message = "The upstream reported an error within its answer."
	}
	e.Err = fmt.Errorf("upstream sent an error event: type %q, code %q", said.typ, said.code)
	return e
}

// upstreamError is what could be read of an upstream's error body.
type upstreamError struct {
	message, typ, param, code string
}

func (u upstreamError) quota(status int) bool {
	return status == http.StatusPaymentRequired || u.code == "insufficient_quota" || u.typ == "insufficient_quota"
}

// into fills e with what the upstream said of the client's request.
func (u upstreamError) into(e *llm.Error, kind llm.Kind) {
	e.Kind, e.Message, e.Param, e.Code, e.NoRetry = kind, u.message, u.param, u.code, kind == llm.Conflict
	if e.Message == "" {
		e.Message = fmt.Sprintf("The upstream refused the request (HTTP %d).", e.Status)
	}
	if tooLong(u.message) {
		e.Code = "context_length_exceeded"
	}
}

// tooLong recognises the ways in which servers say that the prompt does not
// fit; agents compact their history on the code.
func tooLong(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context_length_exceeded", "exceeds the context window", "prompt is too long",
		"context size", "maximum prompt length", "maximum number of tokens allowed", "maximum model length", "exceeded model token limit",
	} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

// decodeError reads the shapes that compatible servers use:
// {error:{…}}, {error:"…"}, {message,code}, {detail}, {object:"error",…}.
func decodeError(body []byte) upstreamError {
	object, ok := jsonedit.Get(body, "error")
	if !ok {
		return decodeErrorObject(body)
	}
	if text, isString := jsonedit.Unquote(object); isString {
		return upstreamError{message: clean(text), code: str(body, "code")}
	}
	return decodeErrorObject(object)
}

func decodeErrorObject(object []byte) upstreamError {
	u := upstreamError{
		message: clean(str(object, "message")),
		typ:     str(object, "type"),
		param:   clean(str(object, "param")),
		code:    clean(str(object, "code")),
	}
	if u.message == "" {
		u.message = clean(detail(object))
	}
	return u
}

// detail reads what FastAPI servers say: a text, or a list of {"msg":…}.
func detail(object []byte) string {
	v, _ := jsonedit.Get(object, "detail")
	if text, ok := jsonedit.Unquote(v); ok {
		return text
	}
	var texts []string
	for e := range jsonedit.Elements(v) {
		if text := str(e, "msg"); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// str reads a string member; anything else is "".
func str(object []byte, name string) string {
	v, ok := jsonedit.Get(object, name)
	if !ok {
		return ""
	}
	s, _ := jsonedit.Unquote(v)
	return s
}

// clean bounds a text of an upstream and takes control characters out of it.
func clean(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
