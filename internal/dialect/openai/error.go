// Package openai holds what the two OpenAI dialects share: the shape of an
// error and the table from kinds of failure to status, type and code.
package openai

import (
	"net/http"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// class is how one kind of failure looks to a client. Official SDKs choose
// their error class by status, agents act on code.
type class struct {
	status int
	typ    string
	code   string // "" is null
}

const invalidRequest = "invalid_request_error"

// classes maps every kind. Permanent failures are 4xx: clients repeat a 5xx,
// some of them thirty times.
var classes = [...]class{
	llm.Internal:          {http.StatusInternalServerError, "server_error", "internal_error"},
	llm.Invalid:           {http.StatusBadRequest, invalidRequest, ""},
	llm.Unsupported:       {http.StatusBadRequest, invalidRequest, "unsupported_by_upstream"},
	llm.Unauthenticated:   {http.StatusUnauthorized, invalidRequest, ""},
	llm.Forbidden:         {http.StatusForbidden, invalidRequest, ""},
	llm.NoModel:           {http.StatusNotFound, invalidRequest, "model_not_found"},
	llm.NotFound:          {http.StatusNotFound, invalidRequest, ""},
	llm.BadMethod:         {http.StatusMethodNotAllowed, invalidRequest, "method_not_supported"},
	llm.NoSocket:          {http.StatusUpgradeRequired, invalidRequest, "websocket_not_supported"},
	llm.WrongHost:         {http.StatusMisdirectedRequest, invalidRequest, "wrong_host"},
	llm.TooLarge:          {http.StatusRequestEntityTooLarge, invalidRequest, "request_too_large"},
	llm.HeadersTooLarge:   {http.StatusRequestHeaderFieldsTooLarge, invalidRequest, "headers_too_large"},
	llm.BadMedia:          {http.StatusUnsupportedMediaType, invalidRequest, "unsupported_media_type"},
	llm.SlowBody:          {http.StatusRequestTimeout, "timeout", "request_timeout"},
	llm.Conflict:          {http.StatusConflict, invalidRequest, ""},
	llm.RateLimited:       {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"},
	llm.OverBudget:        {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota"},
	llm.Overloaded:        {http.StatusServiceUnavailable, "server_error", "server_is_overloaded"},
	llm.Unavailable:       {http.StatusServiceUnavailable, "server_error", "service_unavailable"},
	llm.Upstream:          {http.StatusBadGateway, "server_error", "upstream_error"},
	llm.UpstreamInvalid:   {http.StatusBadGateway, "server_error", "upstream_invalid_response"},
	llm.UpstreamTruncated: {http.StatusBadGateway, "server_error", "upstream_stream_truncated"},
	llm.UpstreamAuth:      {http.StatusBadGateway, "server_error", "upstream_auth"},
	llm.UpstreamQuota:     {http.StatusBadGateway, "server_error", "upstream_quota"},
	llm.UpstreamTimeout:   {http.StatusGatewayTimeout, "server_error", "upstream_timeout"},
	llm.Canceled:          {statusClientClosed, "server_error", "client_closed_request"},
}

// statusClientClosed is nginx's 499: for the record only, nobody reads it.
const statusClientClosed = 499

// Status is the HTTP status of a failure.
func Status(e *llm.Error) int { return classes[e.Kind].status }

// Code is the error code of a failure; "" stands for null.
func Code(e *llm.Error) string {
	if e.Code != "" {
		return e.Code
	}
	return classes[e.Kind].code
}

// AppendError appends the body of a failed call, {"error":{…}} with all four
// members that SDKs read.
func AppendError(dst []byte, e *llm.Error) []byte {
	dst = append(dst, `{"error":`...)
	dst = AppendErrorObject(dst, e)
	return append(dst, '}')
}

// AppendErrorObject appends {"message","type","param","code"}.
func AppendErrorObject(dst []byte, e *llm.Error) []byte {
	dst = append(dst, `{"message":`...)
	dst = jsonedit.AppendQuote(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = jsonedit.AppendQuote(dst, classes[e.Kind].typ)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, Code(e))
	return append(dst, '}')
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonedit.AppendQuote(dst, s)
}
