package anthropic

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// class is how one kind of failure looks to a Messages client. SDKs choose
// their error class, and whether to try again, by the status.
type class struct {
	status int
	typ    string
}

// The types of errors.
const (
	invalidRequest = "invalid_request_error"
	apiError       = "api_error"
	timeoutError   = "timeout_error"
)

// The two statuses that the standard library has no names for: Anthropic's
// own for too much load, and nginx's for a client that left.
const (
	statusOverloaded   = 529
	statusClientClosed = 499
)

// classes maps every kind. What concerns the operator's account is the
// gateway's failure: a client that reads 401 believes that its own key is bad.
var classes = [...]class{
	llm.Internal:          {http.StatusInternalServerError, apiError},
	llm.Invalid:           {http.StatusBadRequest, invalidRequest},
	llm.Unsupported:       {http.StatusBadRequest, invalidRequest},
	llm.Unauthenticated:   {http.StatusUnauthorized, "authentication_error"},
	llm.Forbidden:         {http.StatusForbidden, "permission_error"},
	llm.NoModel:           {http.StatusNotFound, "not_found_error"},
	llm.NotFound:          {http.StatusNotFound, "not_found_error"},
	llm.BadMethod:         {http.StatusMethodNotAllowed, invalidRequest},
	llm.NoSocket:          {http.StatusUpgradeRequired, invalidRequest},
	llm.WrongHost:         {http.StatusMisdirectedRequest, invalidRequest},
	llm.TooLarge:          {http.StatusRequestEntityTooLarge, "request_too_large"},
	llm.HeadersTooLarge:   {http.StatusRequestHeaderFieldsTooLarge, invalidRequest},
	llm.BadMedia:          {http.StatusUnsupportedMediaType, invalidRequest},
	llm.SlowBody:          {http.StatusRequestTimeout, timeoutError},
	llm.Conflict:          {http.StatusConflict, invalidRequest},
	llm.RateLimited:       {http.StatusTooManyRequests, "rate_limit_error"},
	llm.OverBudget:        {http.StatusTooManyRequests, "rate_limit_error"},
	llm.Overloaded:        {statusOverloaded, "overloaded_error"},
	llm.Unavailable:       {http.StatusServiceUnavailable, apiError},
	llm.Upstream:          {http.StatusBadGateway, apiError},
	llm.UpstreamInvalid:   {http.StatusBadGateway, apiError},
	llm.UpstreamTruncated: {http.StatusBadGateway, apiError},
	llm.UpstreamAuth:      {http.StatusBadGateway, apiError},
	llm.UpstreamQuota:     {http.StatusBadGateway, apiError},
	llm.UpstreamTimeout:   {http.StatusGatewayTimeout, timeoutError},
	llm.Canceled:          {statusClientClosed, apiError},
}

// Status is the HTTP status of a failure.
func Status(e *llm.Error) int { return classes[e.Kind].status }

// AppendError appends the body of a failed call. Without a request ID the
// member is left out.
func AppendError(dst []byte, e *llm.Error, requestID string) []byte {
	w := jsonedit.NewWriter(dst)
	w.BeginObject()
	w.SetText("type", "error")
	w.Object("error")
	w.SetText("type", classes[e.Kind].typ)
	w.SetText("message", e.Message)
	w.EndObject()
	if requestID != "" {
		w.SetText("request_id", requestID)
	}
	w.EndObject()
	return w.Bytes()
}

// statuses are what the types of errors stand for, in events that have no
// status of their own.
var statuses = map[string]int{
	invalidRequest:         http.StatusBadRequest,
	"authentication_error": http.StatusUnauthorized,
	"billing_error":        http.StatusPaymentRequired,
	"permission_error":     http.StatusForbidden,
	"not_found_error":      http.StatusNotFound,
	"request_too_large":    http.StatusRequestEntityTooLarge,
	"rate_limit_error":     http.StatusTooManyRequests,
	timeoutError:           http.StatusGatewayTimeout,
	"overloaded_error":     statusOverloaded,
}

// eventError is the failure that an error object within a 200 answer tells of,
// whole or streamed.
func eventError(object []byte) *llm.Error {
	typ := dialect.Text(object, "type")
	status, ok := statuses[typ]
	if !ok {
		status = http.StatusBadGateway
	}
	e := fault(status, object, 0)
	e.Err = fmt.Errorf("upstream sent an error event: type %q", typ)
	return e
}

// fault reads an error object.
func fault(status int, object []byte, wait time.Duration) *llm.Error {
	said := dialect.Text(object, "message")
	e := dialect.Fault{
		Status:  status,
		Quota:   dialect.Text(object, "type") == "billing_error" || strings.Contains(said, "credit balance is too low"),
		Message: said,
		Param:   place(said),
		Wait:    wait,
	}.Error()
	if e.Code == "reasoning_signature_rejected" {
		e.Message += " Send the earlier turns as they came, or without their reasoning."
	}
	return e
}

// place is the member that an upstream's message begins with, as in
// "messages.1.content.0: …": the message it is in, as that is all that other
// dialects share.
func place(message string) string {
	path, _, found := strings.Cut(message, ": ")
	if !found || strings.ContainsAny(path, " \n") {
		return ""
	}
	first, rest, _ := strings.Cut(path, ".")
	switch first {
	case "messages", "tools":
		index, _, _ := strings.Cut(rest, ".")
		if index != "" && strings.Trim(index, "0123456789") == "" {
			return first + "[" + index + "]"
		}
		return first
	case "max_tokens", "system", "temperature", "top_p", "top_k", "thinking", "tool_choice", "stop_sequences", "metadata", "output_config":
		return first
	}
	return ""
}

// failed reads the body of an answer with a status of failure.
func failed(status int, body []byte, wait time.Duration) *llm.Error {
	for first := range jsonedit.Elements(body) { // as Vertex sends them
		body = first
		break
	}
	object := dialect.Member(body, "error")
	if object.Kind() != jsonedit.KindObject {
		object = body
	}
	return fault(status, object, wait)
}
