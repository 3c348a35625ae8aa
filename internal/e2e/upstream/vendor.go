package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// vendor is what one vendor's operations have in common: where the key stands and
// how errors are told.
type vendor struct {
	keys      []string // header fields that hold the API key
	requestID string   // the header field of a call's ID
	tooLong   string   // says that the prompt is beyond the model's context
	noModel   func(model string) (int, apiError)
	badKey    func(key string) (int, apiError)
	failure   func(x *exchange, status int, e apiError) *answer
}

var openAI = &vendor{
	keys:      []string{"Authorization", "X-Api-Key", "Api-Key"},
	requestID: "X-Request-Id",
	tooLong:   "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
	noModel: func(model string) (int, apiError) {
		return http.StatusNotFound, apiError{
			Message: "The model '" + model + "' does not exist or you do not have access to it.",
			Type:    "invalid_request_error", Param: new("model"), Code: new("model_not_found"),
		}
	},
	badKey: func(key string) (int, apiError) {
		return http.StatusUnauthorized, apiError{
			Message: "Incorrect API key provided: " + key + ".",
			Type:    "invalid_request_error", Code: new("invalid_api_key"),
		}
	},
	failure: func(_ *exchange, status int, e apiError) *answer {
		return &answer{status: status, header: http.Header{}, body: errorBody{e}}
	},
}

var anthropic = &vendor{
	keys:      []string{"X-Api-Key", "Authorization"},
	requestID: "Request-Id",
	tooLong:   "prompt is too long: 205042 tokens > 200000 maximum",
	noModel: func(model string) (int, apiError) {
		return http.StatusNotFound, apiError{Message: "model: " + model}
	},
	badKey: func(string) (int, apiError) {
		return http.StatusUnauthorized, apiError{Message: "invalid x-api-key"}
	},
	failure: func(x *exchange, status int, e apiError) *answer {
		return &answer{status: status, header: http.Header{}, body: anthropicFailure(x.entry.ID, status, e)}
	},
}

type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Details *struct{} `json:"details"`
		Type    string    `json:"type"`
		Message string    `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

var anthropicKinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 422: "invalid_request_error", 429: "rate_limit_error",
	503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
}

func anthropicFailure(id, status int, e apiError) anthropicError {
	body := anthropicError{Type: "error", RequestID: "req_" + strconv.Itoa(id)}
	body.Error.Type, body.Error.Message = "api_error", e.Message
	if kind := anthropicKinds[status]; kind != "" {
		body.Error.Type = kind
	}
	return body
}

var gemini = &vendor{
	keys:      []string{"X-Goog-Api-Key"},
	requestID: "X-Request-Id",
	tooLong:   "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
	noModel: func(model string) (int, apiError) {
		return http.StatusNotFound, apiError{Message: "models/" + model + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	},
	badKey: func(string) (int, apiError) {
		return http.StatusBadRequest, apiError{Message: "API key not valid. Please pass a valid API key.", Code: new("API_KEY_INVALID")}
	},
	failure: func(_ *exchange, status int, e apiError) *answer {
		return &answer{status: status, header: http.Header{}, body: geminiFailure(status, e)}
	},
}

type geminiError struct {
	Error struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Status  string            `json:"status"`
		Details []json.RawMessage `json:"details,omitempty"`
	} `json:"error"`
}

var geminiKinds = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func geminiFailure(status int, e apiError) geminiError {
	var body geminiError
	body.Error.Code, body.Error.Message, body.Error.Status = status, e.Message, "UNKNOWN"
	if kind := geminiKinds[status]; kind != "" {
		body.Error.Status = kind
	}
	switch {
	case status == http.StatusTooManyRequests:
		body.Error.Details = []json.RawMessage{json.RawMessage(`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}`)}
	case e.Code != nil && *e.Code == "API_KEY_INVALID":
		body.Error.Details = []json.RawMessage{json.RawMessage(`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`)}
	}
	return body
}

var bedrock = &vendor{
	keys:      []string{"Authorization"},
	requestID: "X-Amzn-Requestid",
	tooLong:   "Input is too long for requested model.",
	noModel: func(string) (int, apiError) {
		return http.StatusBadRequest, apiError{Message: "The provided model identifier is invalid."}
	},
	badKey: func(string) (int, apiError) {
		return http.StatusForbidden, apiError{Message: "The security token included in the request is invalid."}
	},
	failure: func(_ *exchange, status int, e apiError) *answer {
		kind := bedrockKinds[status]
		if kind == "" {
			kind = "InternalServerException"
		}
		return &answer{status: status, header: http.Header{"X-Amzn-Errortype": {kind}}, body: bedrockError{e.Message}}
	},
}

type bedrockError struct {
	Message string `json:"message"`
}

var bedrockKinds = map[int]string{
	400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException",
	424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
}

// refusal is what a vendor says of a request that breaks its rules.
type refusal string

func (r refusal) Error() string { return string(r) }

func refusedf(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
