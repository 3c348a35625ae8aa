package openaichat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

func inspect(t *testing.T, body string) *dialect.Request {
	t.Helper()
	var req dialect.Request
	if err := (Dialect{}).Inspect([]byte(body), &req); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return &req
}

func TestInspect(t *testing.T) {
	type seen struct {
		model              string
		stream, wantsUsage bool
	}
	const m = `"messages":[{"role":"user","content":"hi"}]`
	for body, want := range map[string]seen{
		`{"model":"a/b",` + m + `}`:                                                           {"a/b", false, false},
		`{` + m + `,"model":"\u0061"}`:                                                        {"a", false, false},
		`{"model":"a",` + m + `,"stream":true}`:                                               {"a", true, false},
		`{"model":"a",` + m + `,"stream":false,"stream_options":null}`:                        {"a", false, false},
		`{"model":"a",` + m + `,"stream":null}`:                                               {"a", false, false},
		`{"model":"a",` + m + `,"stream":true,"stream_options":{"include_usage":true}}`:       {"a", true, true},
		`{"model":"a",` + m + `,"stream":true,"stream_options":{"include_usage":false}}`:      {"a", true, false},
		`{"model":"a",` + m + `,"stream":true,"stream_options":{"include_usage":null}}`:       {"a", true, false},
		`{"model":"a",` + m + `,"stream":true,"stream_options":{"x":{"include_usage":true}}}`: {"a", true, false},
		`{"model":"a","input":"x",` + m + `}`:                                                 {"a", false, false},
		`{"model":"a","messages":[null]}`:                                                     {"a", false, false},
		`{"model":"a",` + m + `,"tools":null,"temperature":null,"stop":[],"Temperature":1}`:   {"a", false, false},
		"\n {\"model\" : \"a\" , " + m + "}\n":                                                {"a", false, false},
	} {
		req := inspect(t, body)
		if got := (seen{req.Model, req.Stream, req.WantsUsage}); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func TestInspectRefuses(t *testing.T) {
	const m = `"messages":[{}]`
	for body, want := range map[string]struct{ code, param, text string }{
		``:                          {"", "", "could not parse the JSON body"},
		`not JSON`:                  {"", "", "could not parse the JSON body"},
		`[]`:                        {"", "", "could not parse the JSON body"},
		`{"model":"a",` + m:         {"", "", "could not parse the JSON body"},
		`{"model":"a",` + m + `}{}`: {"", "", "could not parse the JSON body"},
		`{"model":"a","messages":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`: {"", "", "nested"},
		`{` + m + `}`:                                                      {"missing_required_parameter", "model", "'model'"},
		`{"model":null,` + m + `}`:                                         {"missing_required_parameter", "model", "'model'"},
		`{"model":"",` + m + `}`:                                           {"invalid_value", "model", "empty"},
		`{"model":5,` + m + `}`:                                            {"invalid_type", "model", "a number"},
		`{"model":"a"}`:                                                    {"missing_required_parameter", "messages", "'messages'"},
		`{"model":"a","input":"x"}`:                                        {"missing_required_parameter", "messages", "/v1/responses"},
		`{"model":"a","messages":null}`:                                    {"invalid_type", "messages", "null"},
		`{"model":"a","messages":"hi"}`:                                    {"invalid_type", "messages", "a string"},
		`{"model":"a","messages":[ ]}`:                                     {"invalid_value", "messages", "empty"},
		`{"model":"a",` + m + `,"stream":"true"}`:                          {"invalid_type", "stream", "a string"},
		`{"model":"a",` + m + `,"stream":1}`:                               {"invalid_type", "stream", "a number"},
		`{"model":"a",` + m + `,"stream_options":[]}`:                      {"invalid_type", "stream_options", "an array"},
		`{"model":"a",` + m + `,"stream_options":{"include_usage":"yes"}}`: {"invalid_type", "stream_options.include_usage", "a string"},
		`{"model":"a",` + m + `,"stream_options":{"include_usage":true,"include_usage":false}}`: {"invalid_value", "include_usage", "ambiguous"},
		`{"model":"a","model":"b",` + m + `}`:                                                   {"invalid_value", "model", "ambiguous"},
		`{"model":"a","Model":"b",` + m + `}`:                                                   {"invalid_value", "model", "ambiguous"},
		`{"model":"a",` + m + `,"\u0073tream":true,"stream":false}`:                             {"invalid_value", "stream", "ambiguous"},
		`{"model":"a",` + m + `,"ſtream":true}`:                                                 {"invalid_value", "stream", "ambiguous"},
	} {
		var req dialect.Request
		err := Dialect{}.Inspect([]byte(body), &req)
		var e *llm.Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: got %v, want an error", body, err)
			continue
		}
		if e.Kind != llm.Invalid || e.Code != want.code || e.Param != want.param || !strings.Contains(e.Message, want.text) {
			t.Errorf("%.80s: got %s %q %q %q, want %+v", body, e.Kind, e.Code, e.Param, e.Message, want)
		}
	}
}

func TestForward(t *testing.T) {
	const m = `"messages":[{"role":"user","content":"h\u0069 <&>","seed":12345678901234567890}]`
	for name, tt := range map[string]struct {
		body string
		ask  bool
		want string
	}{
		"all else stays": {
			` { "z" : 1e21 , "model" : "alias" , ` + m + ` , "seed": 9007199254740993 , "a":null,"a":[ ],"x":{"model":"alias"} } `, true,
			` { "z" : 1e21 , "model" : "up/\"m\"" , ` + m + ` , "seed": 9007199254740993 , "a":null,"a":[ ],"x":{"model":"alias"} } `,
		},
		"usage is asked for":           {`{"model":"a",` + m + `,"stream":true}`, true, `{"model":"up/\"m\"",` + m + `,"stream":true,"stream_options":{"include_usage":true}}`},
		"null options":                 {`{"stream_options": null ,"model":"a",` + m + `,"stream":true}`, true, `{"stream_options": {"include_usage":true} ,"model":"up/\"m\"",` + m + `,"stream":true}`},
		"empty options":                {`{"stream_options":{},"model":"a",` + m + `,"stream":true}`, true, `{"stream_options":{"include_usage":true},"model":"up/\"m\"",` + m + `,"stream":true}`},
		"other options":                {`{"stream_options":{"x": 1},"model":"a",` + m + `,"stream":true}`, true, `{"stream_options":{"x": 1,"include_usage":true},"model":"up/\"m\"",` + m + `,"stream":true}`},
		"not wanted":                   {`{"stream_options":{"include_usage":false,"x":1},"model":"a",` + m + `,"stream":true}`, true, `{"stream_options":{"include_usage":true,"x":1},"model":"up/\"m\"",` + m + `,"stream":true}`},
		"wanted already":               {`{"stream_options":{"x":1, "include_usage":true},"model":"a",` + m + `,"stream":true}`, true, `{"stream_options":{"x":1, "include_usage":true},"model":"up/\"m\"",` + m + `,"stream":true}`},
		"the upstream sends it anyway": {`{"model":"a",` + m + `,"stream":true}`, false, `{"model":"up/\"m\"",` + m + `,"stream":true}`},
		"no stream":                    {`{"model":"a",` + m + `,"stream_options":{"include_usage":false}}`, true, `{"model":"up/\"m\"",` + m + `,"stream_options":{"include_usage":false}}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(tt.body)
			req := inspect(t, tt.body)
			if err := (Dialect{}).Inspect(body, req); err != nil {
				t.Fatal(err)
			}
			up := dialect.Upstream{Model: `up/"m"`, AskUsage: tt.ask}
			for range 2 { // for another attempt, too
				segments, size := Dialect{}.Forward([][]byte{[]byte("before")}, body, req, up)
				got := bytes.Join(segments[1:], nil)
				if string(got) != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if size != len(got) {
					t.Errorf("size is %d, want %d", size, len(got))
				}
			}
			if string(body) != tt.body {
				t.Error("the client's own bytes were changed")
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	good := llm.Usage{Input: 6, CacheRead: 4, Output: 5}
	const usage = `"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}`
	for body, want := range map[string]struct {
		usage llm.Usage
		known bool
		kind  llm.Kind // Canceled stands for no error
	}{
		`{"choices":[{}],` + usage + `}`:                                        {good, true, llm.Canceled},
		`{"error":null,"choices":[{"message":{}}],` + usage + `}`:               {good, true, llm.Canceled},
		`{"choices":[{}]}`:                                                      {llm.Usage{}, false, llm.Canceled},
		`{"choices":[{}],"usage":null}`:                                         {llm.Usage{}, false, llm.Canceled},
		"\n\n{\"choices\":[\n{}\n]}\n":                                          {llm.Usage{}, false, llm.Canceled},
		`{"error":{"message":"m"}}`:                                             {kind: llm.Upstream},
		`{"error":{"message":"m","code":"rate_limit_exceeded"},"choices":[{}]}`: {kind: llm.RateLimited},
		`{"error":"m"}`:                                                         {kind: llm.Upstream},
		`{"choices":[]}`:                                                        {kind: llm.UpstreamInvalid},
		`{"choices":null}`:                                                      {kind: llm.UpstreamInvalid},
		`{"choices":{}}`:                                                        {kind: llm.UpstreamInvalid},
		`{"object":"error","message":"m"}`:                                      {kind: llm.Upstream},
		`{"message":"m","type":"t","param":null,"code":"x"}`:                    {kind: llm.Upstream},
		`{"detail":"m"}`:                                                        {kind: llm.Upstream},
		`{"base_resp":{"status_code":1002,"status_msg":"m"},"choices":null}`: {kind: llm.RateLimited},
		`{"base_resp":{"status_code":1008,"status_msg":"m"},"choices":[{}]}`: {kind: llm.UpstreamQuota},
		`{"base_resp":{"status_code":0},"choices":[{}],` + usage + `}`:       {good, true, llm.Canceled},
		`{}`:              {kind: llm.UpstreamInvalid},
		``:                {kind: llm.UpstreamInvalid},
		`<html></html>`:   {kind: llm.UpstreamInvalid},
		`{"choices":[{}]`: {kind: llm.UpstreamInvalid},
	} {
		usage, known, err := Dialect{}.Answer([]byte(body))
		kind := llm.Canceled
		var e *llm.Error
		if err != nil && errors.As(err, &e) {
			kind = e.Kind
		}
		if usage != want.usage || known != want.known || kind != want.kind {
			t.Errorf("%s: got %+v, %v, %v, want %+v", body, usage, known, err, want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte(`{"model":"a","messages":[{}],"stream":true,"stream_options":{"include_usage":false,"x":1}}`))
	f.Add([]byte(`{"stream_options":null,"messages":[1],"model":"\u0061","stream":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var req, again dialect.Request
		if (Dialect{}).Inspect(body, &req) != nil {
			return
		}
		segments, size := Dialect{}.Forward(nil, body, &req, dialect.Upstream{Model: "up", AskUsage: true})
		out := bytes.Join(segments, nil)
		if len(out) != size || !json.Valid(out) {
			t.Fatalf("%q became %q", body, out)
		}
		if err := (Dialect{}).Inspect(out, &again); err != nil || again.Model != "up" || again.Stream != req.Stream || again.WantsUsage != (req.WantsUsage || req.Stream) {
			t.Errorf("%q became %q: %+v, %v", body, out, again, err)
		}
	})
}
