package llm

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of failure an Error is. Each client dialect has one
// table that maps kinds to its status, type and code.
type Kind uint8

const (
	// Internal is the zero value: a fault of the gateway itself.
	Internal Kind = iota
	// Invalid: the request cannot be served as it is, and never will be.
	Invalid
	// Unsupported: the request is well formed, the model's upstream cannot say it.
	Unsupported
	// Unauthenticated: no key, or one that does not open anything.
	Unauthenticated
	// Forbidden: a good key that may not do this.
	Forbidden
	// NoModel: the model does not exist, or not for this key.
	NoModel
	// NotFound: no such object or route.
	NotFound
	// BadMethod: the route exists, the method does not.
	BadMethod
	// NoSocket: a WebSocket was asked for where there is none; clients that
	// know the answer go on over plain HTTP.
	NoSocket
	// WrongHost: a browser came by a name that is not the gateway's.
	WrongHost
	// TooLarge: the body is over the limit.
	TooLarge
	// HeadersTooLarge: too many or too long header fields.
	HeadersTooLarge
	// BadMedia: content type or content encoding that cannot be read.
	BadMedia
	// SlowBody: the client stopped sending its body.
	SlowBody
	// Conflict: the object is busy.
	Conflict
	// RateLimited: the upstream, or a limit of the key, asks to wait.
	RateLimited
	// OverBudget: the client's budget does not have enough left.
	OverBudget
	// Overloaded: no capacity now.
	Overloaded
	// Unavailable: the gateway cannot decide now (store away, draining).
	Unavailable
	// Upstream: the upstream failed.
	Upstream
	// UpstreamInvalid: the upstream's answer is no answer (HTML, bad JSON, empty).
	UpstreamInvalid
	// UpstreamTruncated: the upstream's stream ended before its terminal event.
	UpstreamTruncated
	// UpstreamAuth: the upstream refused the operator's credential.
	UpstreamAuth
	// UpstreamQuota: the operator's account with the upstream is empty.
	UpstreamQuota
	// UpstreamTimeout: the upstream was silent for too long.
	UpstreamTimeout
	// Canceled: the client left. Nobody reads this answer.
	Canceled
)

// String is the kind's name in records, logs and metrics.
func (k Kind) String() string { return kindNames[k] }

var kindNames = [...]string{
	Internal: "internal", Invalid: "invalid", Unsupported: "unsupported", Unauthenticated: "unauthenticated",
	Forbidden: "forbidden", NoModel: "no_model", NotFound: "not_found", BadMethod: "bad_method", NoSocket: "no_socket", WrongHost: "wrong_host", TooLarge: "too_large",
	HeadersTooLarge: "headers_too_large", BadMedia: "bad_media", SlowBody: "slow_body", Conflict: "conflict",
	RateLimited: "rate_limited", OverBudget: "over_budget", Overloaded: "overloaded", Unavailable: "unavailable", Upstream: "upstream",
	UpstreamInvalid: "upstream_invalid", UpstreamTruncated: "upstream_truncated", UpstreamAuth: "upstream_auth",
	UpstreamQuota: "upstream_quota", UpstreamTimeout: "upstream_timeout", Canceled: "client_closed",
}

// Error is the one failure type on the request path. What is not an *Error is
// internal: logged in full with the request ID, shown as "internal error".
type Error struct {
	Kind    Kind
	Message string // safe to show to the client
	Param   string // the member at fault, as a path; may be empty
	Code    string // more exact than the kind's own code; may be empty

	RetryAfter time.Duration // how long the client should wait; 0 when unknown
	NoRetry    bool          // the same request will fail the same way again
	Status     int           // as seen upstream; 0 when there was no answer
	Err        error         // the cause: logged, never shown
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error; anything else becomes an internal one that
// carries err as its cause.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Message: "The gateway had an internal error. Try again, and give the request ID to the operator if it stays.", Err: err}
}

// Errorf makes an Error of a kind whose message is safe to show.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// InvalidParam makes an Invalid error about one member of the request.
func InvalidParam(code, param, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}
