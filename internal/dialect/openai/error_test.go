package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// SDKs choose their error class and whether to try again by the status;
// agents act on the code.
func TestClasses(t *testing.T) {
	want := map[llm.Kind]struct {
		status    int
		typ, code string
	}{
		llm.Internal:          {500, "server_error", "internal_error"},
		llm.Invalid:           {400, "invalid_request_error", ""},
		llm.Unsupported:       {400, "invalid_request_error", "unsupported_by_upstream"},
		llm.Unauthenticated:   {401, "invalid_request_error", ""},
		llm.Forbidden:         {403, "invalid_request_error", ""},
		llm.NoModel:           {404, "invalid_request_error", "model_not_found"},
		llm.NotFound:          {404, "invalid_request_error", ""},
		llm.BadMethod:         {405, "invalid_request_error", "method_not_supported"},
		llm.NoSocket:          {426, "invalid_request_error", "websocket_not_supported"},
		llm.WrongHost:         {421, "invalid_request_error", "wrong_host"},
		llm.TooLarge:          {413, "invalid_request_error", "request_too_large"},
		llm.HeadersTooLarge:   {431, "invalid_request_error", "headers_too_large"},
		llm.BadMedia:          {415, "invalid_request_error", "unsupported_media_type"},
		llm.SlowBody:          {408, "timeout", "request_timeout"},
		llm.Conflict:          {409, "invalid_request_error", ""},
		llm.RateLimited:       {429, "rate_limit_error", "rate_limit_exceeded"},
		llm.OverBudget:        {429, "insufficient_quota", "insufficient_quota"},
		llm.Overloaded:        {503, "server_error", "server_is_overloaded"},
		llm.Unavailable:       {503, "server_error", "service_unavailable"},
		llm.Upstream:          {502, "server_error", "upstream_error"},
		llm.UpstreamInvalid:   {502, "server_error", "upstream_invalid_response"},
		llm.UpstreamTruncated: {502, "server_error", "upstream_stream_truncated"},
		llm.UpstreamAuth:      {502, "server_error", "upstream_auth"},
		llm.UpstreamQuota:     {502, "server_error", "upstream_quota"},
		llm.UpstreamTimeout:   {504, "server_error", "upstream_timeout"},
		llm.Canceled:          {499, "server_error", "client_closed_request"},
	}
	for kind := llm.Internal; kind <= llm.Canceled; kind++ {
		w, ok := want[kind]
		if !ok {
			t.Fatalf("no row for %s", kind)
		}
		e := &llm.Error{Kind: kind, Message: "m"}
		if got := Status(e); got != w.status {
			t.Errorf("%s: status %d, want %d", kind, got, w.status)
		}
		if got := Code(e); got != w.code {
			t.Errorf("%s: code %q, want %q", kind, got, w.code)
		}
		code := "null"
		if w.code != "" {
			code = `"` + w.code + `"`
		}
		if got, want := string(AppendError(nil, e)), `{"error":{"message":"m","type":"`+w.typ+`","param":null,"code":`+code+`}}`; got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestAppendError(t *testing.T) {
	e := &llm.Error{Kind: llm.Invalid, Message: "a \"b\"\n<é>\xff", Param: "messages[0]", Code: "exact", Err: errors.New("canary")}
	const want = `x{"error":{"message":"a \"b\"\n<é>` + "\ufffd" + `","type":"invalid_request_error","param":"messages[0]","code":"exact"}}`
	if got := string(AppendError([]byte("x"), e)); got != want || !json.Valid([]byte(got[1:])) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestScanError(t *testing.T) {
	fields := jsonedit.NewFields("model")
	for body, want := range map[string]struct{ code, param, text string }{
		``:                        {"", "", "could not parse the JSON body"},
		`{"model":`:               {"", "", "could not parse the JSON body"},
		`[]`:                      {"", "", "could not parse the JSON body"},
		"\ufeff{}":                {"", "", "byte order mark"},
		`{"a":"` + "\xff" + `"}`:  {"", "", "UTF-8"},
		`{"model":1,"model":2}`:   {"invalid_value", "model", "ambiguous"},
		`{"Model":1}`:             {"invalid_value", "model", "ambiguous"},
		strings.Repeat("[", 9999): {"", "", "could not parse the JSON body"},
	} {
		var object jsonedit.Object
		e := ScanError(jsonedit.Scan([]byte(body), fields, &object))
		if e.Kind != llm.Invalid || e.Code != want.code || e.Param != want.param || !strings.Contains(e.Message, want.text) {
			t.Errorf("%.20s: got %+v, want %+v", body, e, want)
		}
	}
}

func TestModel(t *testing.T) {
	for value, want := range map[string]string{
		`"a"`: "a", `"a\/\u0062"`: "a/b", `" "`: " ", `"` + "é" + `"`: "é",
		"": "!missing_required_parameter", "null": "!missing_required_parameter", `""`: "!invalid_value",
		"1": "!invalid_type", "true": "!invalid_type", `["a"]`: "!invalid_type", `{"id":"a"}`: "!invalid_type",
	} {
		var raw []byte
		if value != "" {
			raw = []byte(value)
		}
		got, err := Model(raw)
		var e *llm.Error
		if errors.As(err, &e) {
			got = "!" + e.Code
			if e.Param != "model" || e.Kind != llm.Invalid {
				t.Errorf("%s: got %+v", value, e)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

func TestFlag(t *testing.T) {
	for value, want := range map[string]string{
		"": "false", "null": "false", "false": "false", "true": "true",
		"0": "a number", `"true"`: "a string", "[]": "an array", "{}": "an object",
	} {
		var raw []byte
		if value != "" {
			raw = []byte(value)
		}
		flag, err := Flag("a.b", raw)
		if err == nil {
			if got := map[bool]string{true: "true", false: "false"}[flag]; got != want {
				t.Errorf("%s: got %s, want %s", value, got, want)
			}
			continue
		}
		var e *llm.Error
		if !errors.As(err, &e) || e.Code != "invalid_type" || e.Param != "a.b" || !strings.Contains(e.Message, "'a.b'") || !strings.Contains(e.Message, want) {
			t.Errorf("%s: got %v, want an error with %q", value, err, want)
		}
	}
}
