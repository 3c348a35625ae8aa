package openai

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestUpstreamError(t *testing.T) {
	const said = `{"error":{"message":"canary said","type":"invalid_request_error","param":"messages[1]","code":"bad_thing"}}`
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		wait    time.Duration
		kind    llm.Kind
		code    string // of the client's error
		shows   bool   // what the upstream said
		noRetry bool
		after   time.Duration
	}{
		{"400", 400, said, 0, llm.Invalid, "bad_thing", true, false, 0},
		{"400 that waits", 400, said, time.Second, llm.Invalid, "bad_thing", true, false, time.Second},
		{"401", 401, said, 0, llm.UpstreamAuth, "upstream_auth", false, true, 0},
		{"403", 403, said, 0, llm.UpstreamAuth, "upstream_auth", false, true, 0},
		{"402", 402, said, time.Minute, llm.UpstreamQuota, "upstream_quota", false, true, 0},
		{"404", 404, `{"error":{"message":"canary"}}`, 0, llm.Upstream, "upstream_error", false, true, 0},
		{"404 of the model", 404, `{"error":{"message":"canary","param":"model","code":"model_not_found"}}`, 0, llm.Upstream, "upstream_error", false, true, 0},
		{"404 of an object", 404, `{"error":{"message":"canary said","param":"previous_response_id","code":"previous_response_not_found"}}`, 0, llm.Invalid, "previous_response_not_found", true, false, 0},
		{"404 page", 404, "<html>canary</html>", 0, llm.Upstream, "upstream_error", false, true, 0},
		{"405", 405, said, 0, llm.Invalid, "bad_thing", true, false, 0},
		{"408", 408, said, 0, llm.UpstreamTimeout, "upstream_timeout", false, false, 0},
		{"409", 409, said, 0, llm.Conflict, "bad_thing", true, true, 0},
		{"413", 413, `{"error":{"message":"canary said"}}`, 0, llm.TooLarge, "request_too_large", true, false, 0},
		{"415", 415, said, 0, llm.Invalid, "bad_thing", true, false, 0},
		{"422", 422, `{"detail":"canary said"}`, 0, llm.Invalid, "", true, false, 0},
		{"429", 429, said, 0, llm.RateLimited, "rate_limit_exceeded", false, false, time.Second},
		{"429 with a wait", 429, said, 90 * time.Second, llm.RateLimited, "rate_limit_exceeded", false, false, 90 * time.Second},
		{"429 with a short wait", 429, said, 20 * time.Millisecond, llm.RateLimited, "rate_limit_exceeded", false, false, time.Second},
		{"429 quota by code", 429, `{"error":{"message":"canary","code":"insufficient_quota"}}`, time.Hour, llm.UpstreamQuota, "upstream_quota", false, true, 0},
		{"429 quota by type", 429, `{"error":{"message":"canary","type":"insufficient_quota","code":null}}`, 0, llm.UpstreamQuota, "upstream_quota", false, true, 0},
		{"403 quota", 403, `{"error":{"message":"canary","code":"insufficient_quota"}}`, 0, llm.UpstreamQuota, "upstream_quota", false, true, 0},
		{"500", 500, said, 0, llm.Upstream, "upstream_error", false, false, 0},
		{"500 page", 500, "<html>canary</html>", 0, llm.Upstream, "upstream_error", false, false, 0},
		{"501", 501, said, 0, llm.Upstream, "upstream_error", false, false, 0},
		{"502", 502, said, 0, llm.Upstream, "upstream_error", false, false, 0},
		{"503", 503, said, 7 * time.Second, llm.Overloaded, "server_is_overloaded", false, false, 7 * time.Second},
		{"504", 504, said, 0, llm.UpstreamTimeout, "upstream_timeout", false, false, 0},
		{"529", 529, said, 0, llm.Overloaded, "server_is_overloaded", false, false, time.Second},
		{"599", 599, said, 0, llm.Upstream, "upstream_error", false, false, 0},
		{"redirect", 302, "canary", 0, llm.Upstream, "upstream_error", false, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := UpstreamError(tt.status, []byte(tt.body), tt.wait)
			if e.Kind != tt.kind || Code(e) != tt.code || e.NoRetry != tt.noRetry || e.RetryAfter != tt.after || e.Status != tt.status {
				t.Errorf("got %+v of code %q, want kind %s, code %q, no retry %v, wait %v", e, Code(e), tt.kind, tt.code, tt.noRetry, tt.after)
			}
			if status := Status(e); status == 401 || status == 403 || status == 404 {
				t.Errorf("the client gets %d, as if it were at fault", status)
			}
			if got := strings.Contains(e.Message, "canary"); got != tt.shows {
				t.Errorf("message %q repeats the upstream: %v, want %v", e.Message, got, tt.shows)
			}
			if body := string(AppendError(nil, e)); !tt.shows && strings.Contains(body, "canary") {
				t.Errorf("the client gets %s", body)
			}
			if strings.Contains(e.Err.Error(), "canary") || !strings.Contains(e.Err.Error(), fmt.Sprint(tt.status)) {
				t.Errorf("cause is %v, want the status alone", e.Err)
			}
			if e.Message == "" {
				t.Error("no message")
			}
		})
	}
}

func TestUpstreamErrorShapes(t *testing.T) {
	for body, want := range map[string]struct{ message, param, code string }{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:         {"m", "p", "c"},
		`{"error":{"message":"m","param":null,"code":null}}`:                  {"m", "", ""},
		`{"error":{"message":"m","code":400}}`:                                {"m", "", ""},
		`{"error":"m"}`:                                                       {"m", "", ""},
		`{"error":"m","code":"c"}`:                                            {"m", "", "c"},
		`{"code":"c","error":"m"}`:                                            {"m", "", "c"},
		`{"message":"m","code":"c"}`:                                          {"m", "", "c"},
		`{"object":"error","message":"m","param":"p","code":40303}`:           {"m", "p", ""},
		`{"detail":"m"}`:                                                      {"m", "", ""},
		`{"detail":[{"loc":["body","messages"],"msg":"m","type":"missing"}]}`: {"m", "", ""},
		`{"error":{"message":"m"}} trailing`:                                  {"m", "", ""},
		`{"error":{}}`:                                                        {"The upstream refused the request (HTTP 400).", "", ""},
		`{}`:                                                                  {"The upstream refused the request (HTTP 400).", "", ""},
		``:                                                                    {"The upstream refused the request (HTTP 400).", "", ""},
		`<html>`:                                                              {"The upstream refused the request (HTTP 400).", "", ""},
		`{"error":{"message":["m"]}}`:                                         {"The upstream refused the request (HTTP 400).", "", ""},
		`{"error":{"message":"a\nb\u0000c\u001b[31m\u007f"}}`:                 {"a\nb c [31m ", "", ""},
	} {
		e := UpstreamError(400, []byte(body), 0)
		if e.Message != want.message || e.Param != want.param || e.Code != want.code {
			t.Errorf("%s: got %q, %q, %q, want %+v", body, e.Message, e.Param, e.Code, want)
		}
	}
	e := UpstreamError(400, []byte(`{"error":{"message":"`+strings.Repeat("é", 5000)+`"}}`), 0)
	if n := len(e.Message); n > maxMessage+10 || !strings.HasSuffix(e.Message, "é…") {
		t.Errorf("a long message is passed on with %d bytes", n)
	}
}

// Agents compact their history when they read context_length_exceeded, and
// give up on anything else.
func TestContextLength(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"OpenAI", `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`},
		{"older OpenAI, vLLM", `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000.","type":"BadRequestError","code":400}}`},
		{"Anthropic", `{"error":{"message":"prompt is too long: 200001 tokens > 199999 maximum","type":"invalid_request_error"}}`},
		{"code of another name", `{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"invalid_request_error"}}`},
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`},
		{"xAI", `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`},
		{"Gemini", `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`},
		{"newer vLLM", `{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`},
		{"Moonshot", `{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e := UpstreamError(400, []byte(tt.body), 0); e.Code != "context_length_exceeded" || e.Kind != llm.Invalid {
				t.Errorf("got %s %q for %q", e.Kind, e.Code, e.Message)
			}
		})
	}
	for _, body := range []string{`{"error":{"message":"The tool's name is too long."}}`, `{"error":{"message":"max_tokens must be at least 1"}}`} {
		if e := UpstreamError(400, []byte(body), 0); e.Code != "" {
			t.Errorf("%s: got code %q", body, e.Code)
		}
	}
}

func TestEventError(t *testing.T) {
	for object, want := range map[string]struct {
		kind  llm.Kind
		code  string
		shows bool
	}{
		`{"message":"canary"}`:                                          {llm.Upstream, "upstream_error", false},
		`{"message":"canary","type":"server_error"}`:                    {llm.Upstream, "upstream_error", false},
		`{"message":"canary","code":"rate_limit_exceeded"}`:             {llm.RateLimited, "rate_limit_exceeded", false},
		`{"message":"canary","code":"server_is_overloaded"}`:            {llm.Overloaded, "server_is_overloaded", false},
		`{"message":"canary","code":"slow_down"}`:                       {llm.Overloaded, "server_is_overloaded", false},
		`{"message":"canary","code":"insufficient_quota"}`:              {llm.UpstreamQuota, "upstream_quota", false},
		`{"message":"canary","type":"insufficient_quota"}`:              {llm.UpstreamQuota, "upstream_quota", false},
		`{"message":"canary","code":"invalid_api_key"}`:                 {llm.UpstreamAuth, "upstream_auth", false},
		`{"message":"canary","code":"context_length_exceeded"}`:         {llm.Invalid, "context_length_exceeded", true},
		`{"message":"canary","code":"invalid_prompt"}`:                  {llm.Invalid, "invalid_prompt", true},
		`{"message":"canary","code":"content_filter"}`:                  {llm.Invalid, "content_filter", true},
		`{"message":"canary","type":"invalid_request_error"}`:           {llm.Invalid, "", true},
		`{"message":"canary","type":"error","code":"x","param":null}`:   {llm.Upstream, "upstream_error", false},
		`{"message":"canary prompt is too long","type":"server_error"}`: {llm.Upstream, "upstream_error", false},
		`"canary"`: {llm.Upstream, "upstream_error", false},
		`{}`:       {llm.Upstream, "upstream_error", false},
		`[]`:       {llm.Upstream, "upstream_error", false},
		`1`:        {llm.Upstream, "upstream_error", false},
	} {
		e := EventError([]byte(object))
		if e.Kind != want.kind || Code(e) != want.code {
			t.Errorf("%s: got %s of code %q, want %+v", object, e.Kind, Code(e), want)
		}
		if got := strings.Contains(string(AppendError(nil, e)), "canary"); got != want.shows {
			t.Errorf("%s: the client is told %q", object, e.Message)
		}
		if strings.Contains(fmt.Sprint(e.Err), "canary") || e.Err == nil {
			t.Errorf("%s: the log is told %v", object, e.Err)
		}
	}
}
