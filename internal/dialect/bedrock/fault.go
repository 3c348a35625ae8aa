package bedrock

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// exceptions are what the names of failures stand for. The service says 424
// where a model failed, which is no fault of the request, and 400 where the
// account has reached a limit.
var exceptions = map[string]int{
	"validationexception": http.StatusBadRequest, "accessdeniedexception": http.StatusForbidden, "resourcenotfoundexception": http.StatusNotFound,
	"modeltimeoutexception": http.StatusRequestTimeout, "modelerrorexception": http.StatusBadGateway, "modelstreamerrorexception": http.StatusBadGateway,
	"throttlingexception": http.StatusTooManyRequests, "modelnotreadyexception": http.StatusTooManyRequests, "servicequotaexceededexception": http.StatusTooManyRequests,
	"internalserverexception": http.StatusInternalServerError, "serviceunavailableexception": http.StatusServiceUnavailable,
	"conflictexception": http.StatusConflict, "expiredtokenexception": http.StatusForbidden, "unrecognizedclientexception": http.StatusForbidden,
	"invalidsignatureexception": http.StatusForbidden, "missingauthenticationtokenexception": http.StatusForbidden, "incompletesignatureexception": http.StatusForbidden,
}

// Failed implements dialect.Outbound.
func (Upstream) Failed(status int, body []byte, wait time.Duration) *llm.Error {
	if known := statusOf(typeOf(body)); known != 0 {
		status = known
	}
	if status == http.StatusFailedDependency {
		status = http.StatusBadGateway
	}
	return dialect.Fault{Status: status, Message: message(body), Wait: wait}.Error()
}

// typeOf is the type that a body of failure names.
func typeOf(body []byte) string {
	if t := dialect.Text(body, "__type"); t != "" {
		return t
	}
	return dialect.Text(body, "Output", "__type")
}

// statusOf is the status for the name of a failure, 0 when it is not known.
// Names may have a namespace in front ("com.amazon…#X") and a URL behind.
func statusOf(name string) int {
	if _, after, found := strings.Cut(name, "#"); found {
		name = after
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(name)
	if !strings.HasSuffix(name, "exception") {
		name += "exception"
	}
	return exceptions[name]
}

func message(body []byte) string {
	if m := dialect.Text(body, "message"); m != "" {
		return m
	}
	return dialect.Text(body, "Message")
}

// thrown is the failure that a frame of a stream tells of.
func thrown(name string, payload []byte) *llm.Error {
	status := statusOf(name)
	if status == 0 {
		status = http.StatusBadGateway
	}
	e := dialect.Fault{Status: status, Message: message(payload)}.Error()
	e.Err = fmt.Errorf("upstream sent the exception %s", name)
	return e
}

// malformedOutput is the failure of a model to write its own format: another
// try may do better.
func malformedOutput(reason string) *llm.Error {
	return &llm.Error{Kind: llm.UpstreamInvalid, Code: "upstream_malformed_output", Message: "The model's output was malformed. Please try again.", Err: fmt.Errorf("stop reason %s", reason)}
}
