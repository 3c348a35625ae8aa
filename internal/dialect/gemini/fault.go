package gemini

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// statuses are what the API's own words for failures stand for.
var statuses = map[string]int{
	"INVALID_ARGUMENT": http.StatusBadRequest, "FAILED_PRECONDITION": http.StatusBadRequest, "OUT_OF_RANGE": http.StatusBadRequest,
	"UNAUTHENTICATED": http.StatusUnauthorized, "PERMISSION_DENIED": http.StatusForbidden, "NOT_FOUND": http.StatusNotFound,
	"ABORTED": http.StatusConflict, "ALREADY_EXISTS": http.StatusConflict, "RESOURCE_EXHAUSTED": http.StatusTooManyRequests,
	"CANCELLED": http.StatusServiceUnavailable, "INTERNAL": http.StatusInternalServerError, "UNKNOWN": http.StatusInternalServerError,
	"UNIMPLEMENTED": http.StatusNotFound, "UNAVAILABLE": http.StatusServiceUnavailable, "DEADLINE_EXCEEDED": http.StatusGatewayTimeout,
}

// Failed implements dialect.Outbound.
func (Upstream) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	object := dialect.Member(body, "error")
	for element := range jsonedit.Elements(body) { // a stream that was refused is a list
		object = dialect.Member(element, "error")
		break
	}
	return faultOf(status, object, wait).Error()
}

// faultOf reads an error object. status is that of HTTP, 0 within an answer
// that came with 200.
func faultOf(status int, object llm.Raw, wait time.Duration) dialect.Fault {
	f := dialect.Fault{Status: status, Message: dialect.Text(object, "message"), Wait: wait}
	if status == 0 {
		if n, ok := count(dialect.Member(object, "code")); ok && n >= 400 && n < 600 {
			f.Status = int(n)
		} else if f.Status = statuses[dialect.Text(object, "status")]; f.Status == 0 {
			f.Status = http.StatusBadGateway
		}
	}
	bad := strings.Contains(f.Message, "API key not valid") || strings.Contains(f.Message, "API_KEY_INVALID")
	for detail := range jsonedit.Elements(dialect.Member(object, "details")) {
		if delay, err := time.ParseDuration(dialect.Text(detail, "retryDelay")); err == nil && delay > f.Wait {
			f.Wait = delay
		}
		bad = bad || dialect.Text(detail, "reason") == "API_KEY_INVALID"
	}
	if bad && f.Status == http.StatusBadRequest {
		f.Status = http.StatusUnauthorized // the operator's key, not the client's request
	}
	return f
}

// malformedOutput is the failure of a model to write its own format: another
// try may do better.
func malformedOutput(cause error) *llm.Error {
	return &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The model's output was malformed. Please try again.", Err: cause}
}

func badFinish(word string, message llm.Raw) error {
	return fmt.Errorf("finish reason %s: %s", word, strconv.Quote(message.Text()))
}

// class is how a kind of failure looks to a client of this dialect.
type class struct {
	code   int
	status string
}

var (
	invalid     = class{http.StatusBadRequest, "INVALID_ARGUMENT"}
	notFound    = class{http.StatusNotFound, "NOT_FOUND"}
	unavailable = class{http.StatusServiceUnavailable, "UNAVAILABLE"}
	badGateway  = class{http.StatusBadGateway, "INTERNAL"}
)

var classes = [...]class{
	llm.Internal:          {http.StatusInternalServerError, "INTERNAL"},
	llm.Invalid:           invalid,
	llm.Unsupported:       invalid,
	llm.Unauthenticated:   {http.StatusUnauthorized, "UNAUTHENTICATED"},
	llm.Forbidden:         {http.StatusForbidden, "PERMISSION_DENIED"},
	llm.NoModel:           notFound,
	llm.NotFound:          notFound,
	llm.BadMethod:         {http.StatusMethodNotAllowed, "INVALID_ARGUMENT"},
	llm.NoSocket:          {http.StatusUpgradeRequired, "INVALID_ARGUMENT"},
	llm.WrongHost:         {http.StatusMisdirectedRequest, "INVALID_ARGUMENT"},
	llm.TooLarge:          {http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT"},
	llm.HeadersTooLarge:   {http.StatusRequestHeaderFieldsTooLarge, "INVALID_ARGUMENT"},
	llm.BadMedia:          {http.StatusUnsupportedMediaType, "INVALID_ARGUMENT"},
	llm.SlowBody:          {http.StatusRequestTimeout, "DEADLINE_EXCEEDED"},
	llm.Conflict:          {http.StatusConflict, "ABORTED"},
	llm.RateLimited:       {http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
	llm.OverBudget:        {http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
	llm.Overloaded:        unavailable,
	llm.Unavailable:       unavailable,
	llm.Upstream:          badGateway,
	llm.UpstreamInvalid:   badGateway,
	llm.UpstreamTruncated: badGateway,
	llm.UpstreamAuth:      badGateway,
	llm.UpstreamQuota:     badGateway,
	llm.UpstreamTimeout:   {http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
	llm.Canceled:          {statusClientClosed, "CANCELLED"},
}

// statusClientClosed is nginx's 499: for the record only, nobody reads it.
const statusClientClosed = 499

// Status implements dialect.Failures.
func (Dialect) Status(e *llm.Error) int { return classes[e.Kind].code }

// RequestIDHeader implements dialect.Failures.
func (Dialect) RequestIDHeader() string { return "X-Request-Id" }

// Limits implements dialect.Failures: the API has no fields for them.
func (Dialect) Limits(limit.Standing, time.Time) []dialect.Header { return nil }

// AppendError implements dialect.Failures. The API's errors do not name the
// request.
func (Dialect) AppendError(dst []byte, e *llm.Error, _ string) []byte {
	c := classes[e.Kind]
	w := jsonedit.NewWriter(dst)
	w.BeginObject()
	w.Object("error")
	w.SetInt("code", int64(c.code))
	w.SetText("message", e.Message)
	w.SetText("status", c.status)
	if e.RetryAfter > 0 {
		w.Array("details")
		w.BeginObject()
		w.SetText("@type", "type.googleapis.com/google.rpc.RetryInfo")
		w.SetText("retryDelay", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10)+"s")
		w.EndObject()
		w.EndArray()
	}
	w.EndObject()
	w.EndObject()
	return w.Bytes()
}
