package openairesponses

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

func TestInspect(t *testing.T) {
	type seen struct {
		model  string
		stream bool
	}
	for body, want := range map[string]seen{
		`{"model":"a/b","input":"hi"}`:                            {"a/b", false},
		`{"input":[],"model":"a","stream":true}`:                  {"a", true},
		`{"model":"a","input":"hi","stream":null}`:                {"a", false},
		`{"model":"a"}`:                                           {"a", false}, // a prompt, or a chain, may stand for the input
		`{"model":"a","input":null,"messages":[{}]}`:              {"a", false},
		`{"model":"a","input":"x","messages":[{}],"tools":null}`:  {"a", false},
		`{"model":"a","input":"x","client_metadata":{"Model":1}}`: {"a", false},
	} {
		var req dialect.Request
		if err := (Dialect{}).Inspect([]byte(body), &req); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if got := (seen{req.Model, req.Stream}); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func TestInspectRefuses(t *testing.T) {
	for body, want := range map[string]struct{ code, param, text string }{
		``:                                  {"", "", "could not parse the JSON body"},
		`[1]`:                               {"", "", "could not parse the JSON body"},
		`{"model":"a","input":"x"`:          {"", "", "could not parse the JSON body"},
		`{"input":"x"}`:                     {"missing_required_parameter", "model", "'model'"},
		`{"model":null,"input":"x"}`:        {"missing_required_parameter", "model", "'model'"},
		`{"model":"","input":"x"}`:          {"invalid_value", "model", "empty"},
		`{"model":["a"],"input":"x"}`:       {"invalid_type", "model", "an array"},
		`{"model":"a","messages":[{}]}`:     {"missing_required_parameter", "input", "/v1/chat/completions"},
		`{"model":"a","input":{}}`:          {"invalid_type", "input", "an object"},
		`{"model":"a","input":5}`:           {"invalid_type", "input", "a number"},
		`{"model":"a","input":true}`:        {"invalid_type", "input", "a boolean"},
		`{"model":"a","stream":"yes"}`:      {"invalid_type", "stream", "a string"},
		`{"model":"a","input":1,"input":1}`: {"invalid_value", "input", "ambiguous"},
		`{"model":"a","Stream":true}`:       {"invalid_value", "stream", "ambiguous"},
	} {
		var req dialect.Request
		err := Dialect{}.Inspect([]byte(body), &req)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Invalid || e.Code != want.code || e.Param != want.param || !strings.Contains(e.Message, want.text) {
			t.Errorf("%s: got %v, want %+v", body, err, want)
		}
	}
}

func TestForward(t *testing.T) {
	const body = ` {"n":12345678901234567890, "input":[{"type":"message","Model":"a"}] , "model" : "a\u0062","x":1e400,"store":null,"stream":true } `
	const want = ` {"n":12345678901234567890, "input":[{"type":"message","Model":"a"}] , "model" : "up/é\"","x":1e400,"store":null,"stream":true } `
	var req dialect.Request
	doc := []byte(body)
	if err := (Dialect{}).Inspect(doc, &req); err != nil || req.Model != "ab" {
		t.Fatalf("got %q, %v", req.Model, err)
	}
	for range 2 { // for another attempt, too
		segments, size := Dialect{}.Forward([][]byte{nil}, doc, &req, dialect.Upstream{Model: `up/é"`, AskUsage: true})
		if got := bytes.Join(segments, nil); string(got) != want || size != len(got) {
			t.Errorf("got  %s (%d)\nwant %s", got, size, want)
		}
	}
	if string(doc) != body {
		t.Error("the client's own bytes were changed")
	}
}

func TestAnswer(t *testing.T) {
	good := llm.Usage{Input: 6, CacheRead: 4, Output: 3, Reasoning: 2}
	const usage = `"usage":{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}`
	for body, want := range map[string]struct {
		usage llm.Usage
		known bool
		kind  llm.Kind // Canceled stands for no error
	}{
		`{"status":"completed","output":[],` + usage + `}`:                                         {good, true, llm.Canceled},
		`{"error":null,"status":"incomplete","output":[{}],` + usage + `}`:                         {good, true, llm.Canceled},
		`{"status":"queued","output":[],"usage":null}`:                                             {llm.Usage{}, false, llm.Canceled},
		`{"status":"failed","output":[],"error":{"code":"server_error","message":"m"}}`:            {kind: llm.Upstream},
		`{"status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"m"}}`:     {kind: llm.RateLimited},
		`{"status":"failed","output":[],"error":{"code":"context_length_exceeded","message":"m"}}`: {kind: llm.Invalid},
		`{"status":"failed","output":[],"error":null}`:                                             {kind: llm.Upstream},
		`{"error":{"message":"m"}}`:                                                                {kind: llm.Upstream},
		`{"error":"m"}`:                                                                            {kind: llm.UpstreamInvalid},
		`{"status":"completed"}`:                                                                   {kind: llm.UpstreamInvalid},
		`{"status":"completed","output":null}`:                                                     {kind: llm.UpstreamInvalid},
		`{"output":[]}`:                                                                            {kind: llm.UpstreamInvalid},
		`{"choices":[{}]}`:                                                                         {kind: llm.UpstreamInvalid},
		`{}`:                                                                                       {kind: llm.UpstreamInvalid},
		``:                                                                                         {kind: llm.UpstreamInvalid},
		`<html>`:                                                                                   {kind: llm.UpstreamInvalid},
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
