package dialect

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

// Fault is what an upstream of any dialect said of its failure.
type Fault struct {
	Status  int    // of HTTP, or what the upstream's own word stands for
	Quota   bool   // the operator's account is empty
	Message string // "" when it said nothing
	Param   string // the member at fault, in the upstream's words
	Code    string // the upstream's own, when clients know it
	Wait    time.Duration
}

// maxFault bounds the text of an upstream that is passed on.
const maxFault = 2000

// Error is the failure as the client is told it. What an upstream says of the
// client's request is passed on; what it says of the operator's account is
// not: a client that reads 401 believes that its own key is bad.
func (f Fault) Error() *llm.Error {
	e := &llm.Error{Status: f.Status, RetryAfter: f.Wait, Message: printable(f.Message), Err: fmt.Errorf("upstream answered %d", f.Status)}
	otherwise := ""
	switch s := f.Status; {
	case f.Quota || s == http.StatusPaymentRequired:
		e.Kind, e.NoRetry, e.RetryAfter = llm.UpstreamQuota, true, 0
		e.Message = "The upstream account of this gateway has no quota left. Your own key is fine; tell the operator."
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Kind, e.NoRetry = llm.UpstreamAuth, true
		e.Message = "The upstream refused the gateway's credential. Your own key is fine; tell the operator."
	case s == http.StatusTooManyRequests:
		e.Kind, e.Code, otherwise = llm.RateLimited, "upstream_rate_limited", "The upstream's rate limit is reached."
		e.RetryAfter = max(f.Wait, time.Second)
	case s == http.StatusRequestTimeout || s == http.StatusGatewayTimeout:
		e.Kind, otherwise = llm.UpstreamTimeout, "The upstream took too long to answer."
	case s == http.StatusServiceUnavailable || s == 529:
		e.Kind, e.Code, otherwise = llm.Overloaded, "upstream_overloaded", "The upstream is overloaded. Please try again later."
		e.RetryAfter = max(f.Wait, time.Second)
	case s == http.StatusNotFound:
		e.Kind, e.NoRetry = llm.Upstream, true
		e.Message = "The upstream does not know the model or the route that this gateway is set to use; tell the operator."
	case s == http.StatusRequestEntityTooLarge:
		e.Kind, otherwise = llm.TooLarge, "The upstream finds the request too large."
	case s == http.StatusConflict:
		e.Kind, e.NoRetry, otherwise = llm.Conflict, true, "The upstream is busy with what the request names."
	case s >= 400 && s < 500:
		e.Kind, e.Param, e.Code, otherwise = llm.Invalid, f.Param, f.Code, fmt.Sprintf("The upstream refused the request (HTTP %d).", s)
		switch {
		case TooLong(f.Message):
			e.Code = "context_length_exceeded"
		case badSignature(f.Message):
			e.Code = "reasoning_signature_rejected"
		}
	default:
		e.Kind, otherwise = llm.Upstream, fmt.Sprintf("The upstream failed (HTTP %d).", s)
	}
	if e.Message == "" {
		e.Message = otherwise
	}
	return e
}

// TooLong recognises the ways in which servers say that the prompt does not
// fit; agents compact their history on the code.
func TooLong(message string) bool {
	return containsAny(message, "maximum context length", "context length exceeded", "context_length_exceeded", "exceeds the context window",
		"prompt is too long", "context size", "maximum prompt length", "maximum number of tokens allowed", "maximum model length",
		"exceeded model token limit", "input is too long", "exceeds the maximum number of tokens", "input token count")
}

// badSignature recognises that state of a model was not taken back.
func badSignature(message string) bool {
	return containsAny(message, "invalid `signature`", "invalid signature", "thought_signature", "thought signature", "invalid_encrypted_content", "encrypted content", "bound to a different")
}

func containsAny(message string, words ...string) bool {
	m := strings.ToLower(message)
	for _, w := range words {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// printable bounds a text of an upstream and takes control characters out.
func printable(s string) string {
	if len(s) > maxFault {
		s = strings.ToValidUTF8(s[:maxFault], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// NotAnAnswer is the error about a whole answer, sent with 200, that is none.
func NotAnAnswer(cause error) *llm.Error {
	return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream's answer could not be read.", Err: cause}
}

// Malformed is the error about a frame of a stream that cannot be read.
func Malformed(cause error) *llm.Error {
	return &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The upstream's stream could not be read.", Err: cause}
}

// Truncated is the error about a stream that ended before its terminal event.
func Truncated() *llm.Error {
	return &llm.Error{Kind: llm.UpstreamTruncated, Message: "The upstream's stream ended before the answer was complete."}
}

// NotPossible is the refusal of what an upstream cannot do, with the client's
// name of the place.
func NotPossible(param, format string, args ...any) *llm.Error {
	e := llm.Errorf(llm.Unsupported, format, args...)
	e.Param = param
	return e
}

// NotServed is the refusal of what this gateway cannot take over into another
// dialect.
func NotServed(param, format string, args ...any) *llm.Error {
	return llm.InvalidParam("unsupported_parameter", param, format, args...)
}
