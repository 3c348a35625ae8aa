package openaichat

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Failed implements dialect.Outbound.
func (Upstream) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	f := readFault(body)
	f.Status, f.Wait = status, wait
	return f.Error()
}

// failedWithin is the failure that an answer with status 200 tells of.
func failedWithin(body []byte) *llm.Error {
	f := readFault(body)
	if f.Status == 0 {
		f.Status = http.StatusBadGateway
	}
	return f.Error()
}

// isFault reports whether a whole body or a chunk tells of a failure instead
// of answering. chunk was scanned from it.
func isFault(body []byte, chunk *jsonedit.Object) bool {
	if e := llm.Raw(chunk.Value(chunkError)); !e.Blank() || string(chunk.Value(chunkObject)) == `"error"` {
		return true
	}
	if base := chunk.Value(chunkBaseResp); base != nil {
		if code, ok := integer(dialect.Member(base, "status_code")); ok && code != 0 {
			return true
		}
	}
	if chunk.Value(chunkChoices) != nil {
		return false
	}
	return dialect.Member(body, "detail") != nil || dialect.Member(body, "message") != nil && dialect.Member(body, "code") != nil
}

// readFault reads the shapes that servers use: {error:{…}}, {error:"…"} with
// or without a code beside it, {message,code}, {detail}, {object:"error",…} and
// {base_resp}. What is none of them says nothing.
func readFault(body []byte) (f dialect.Fault) {
	object := llm.Raw(body)
	e := dialect.Member(body, "error")
	switch {
	case e.Kind() == jsonedit.KindObject:
		object = e
	case e.IsText():
		f.Message = e.Text()
	}
	if base := dialect.Member(body, "base_resp"); base != nil && e == nil {
		f.Message = dialect.Text(base, "status_msg")
		code, _ := integer(dialect.Member(base, "status_code"))
		f.Status = baseCodes[code]
		f.Quota = code == 1008
		return f
	}
	if f.Message == "" {
		f.Message = dialect.Text(object, "message")
	}
	if f.Message == "" {
		f.Message = detailText(object)
	}
	f.Param = dialect.Text(object, "param")
	code, kind := dialect.Member(object, "code"), dialect.Text(object, "type")
	if n, ok := numeric(code); ok {
		f.Status = int(n)
		if n < 400 || n > 599 { // a server's own number
			f.Status = ownCodes[n].status
			f.Quota = ownCodes[n].quota
		}
	} else {
		f.Code = code.Text()
	}
	for _, word := range [...]string{f.Code, kind} {
		if f.Status == 0 {
			f.Status = wordCodes[strings.ToLower(word)]
		}
		f.Quota = f.Quota || strings.EqualFold(word, "insufficient_quota")
	}
	if strings.EqualFold(f.Code, "DataInspectionFailed") {
		f.Code = "content_filter"
	}
	return f
}

// numeric reads a code that is a number, also one that is written as a text.
func numeric(code llm.Raw) (int64, bool) {
	if n, ok := integer(code); ok {
		return n, true
	}
	n, err := strconv.ParseInt(code.Text(), 10, 64)
	return n, err == nil
}

// detailText reads what FastAPI servers say: a text, or a list of {"msg":…}.
func detailText(object []byte) string {
	v := dialect.Member(object, "detail")
	if v.IsText() {
		return v.Text()
	}
	var texts []string
	for e := range jsonedit.Elements(v) {
		if text := dialect.Text(e, "msg"); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// wordCodes are the statuses that codes and types stand for.
var wordCodes = map[string]int{
	"rate_limit_exceeded": http.StatusTooManyRequests, "rate_limit_error": http.StatusTooManyRequests, "too_many_requests": http.StatusTooManyRequests,
	"server_is_overloaded": http.StatusServiceUnavailable, "slow_down": http.StatusServiceUnavailable, "overloaded_error": http.StatusServiceUnavailable,
	"unavailable_error": http.StatusServiceUnavailable, "service_unavailable": http.StatusServiceUnavailable,
	"context_length_exceeded": http.StatusBadRequest, "invalid_prompt": http.StatusBadRequest, "content_filter": http.StatusBadRequest,
	"cyber_policy": http.StatusBadRequest, "content_policy_violation": http.StatusBadRequest, "datainspectionfailed": http.StatusBadRequest,
	"invalid_request_error": http.StatusBadRequest, "tool_use_failed": http.StatusBadRequest,
	"invalid_api_key": http.StatusUnauthorized, "authentication_error": http.StatusUnauthorized, "permission_error": http.StatusForbidden,
	"insufficient_quota": http.StatusPaymentRequired, "timeout": http.StatusGatewayTimeout, "timeout_error": http.StatusGatewayTimeout,
}

// ownCodes are numbers of Zhipu that a client or the operator can act on.
var ownCodes = map[int64]struct {
	status int
	quota  bool
}{
	1113: {http.StatusPaymentRequired, true},
	1301: {http.StatusBadRequest, false},
	1302: {http.StatusTooManyRequests, false},
	1303: {http.StatusTooManyRequests, false},
}

// baseCodes are MiniMax's.
var baseCodes = map[int64]int{
	1001: http.StatusGatewayTimeout, 1002: http.StatusTooManyRequests, 1004: http.StatusUnauthorized, 1008: http.StatusPaymentRequired,
	1026: http.StatusBadRequest, 1027: http.StatusBadRequest, 1039: http.StatusTooManyRequests, 2013: http.StatusBadRequest,
}
