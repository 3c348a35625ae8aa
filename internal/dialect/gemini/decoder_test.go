package gemini

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// told is a list of events in a short form, one a line.
func toldAs(events []llm.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e := e.(type) {
		case llm.Start:
			fmt.Fprintf(&b, "start %s %s\n", e.ID, e.Model)
		case llm.Open:
			fmt.Fprintf(&b, "open %d of %d: %s at %d", e.Item, e.Choice, [...]string{"message", "reasoning", "call", "server"}[e.Kind], e.Block)
			if e.Kind == llm.CallItem {
				fmt.Fprintf(&b, " %s %s", e.CallID, e.Name)
			}
			for _, o := range e.Opaque {
				fmt.Fprintf(&b, " signed %s", o.Data)
			}
			b.WriteByte('\n')
		case llm.Delta:
			fmt.Fprintf(&b, "%s %d.%d: %s\n", [...]string{"text", "refusal", "audio", "transcript", "thinking", "summary", "args"}[e.Channel], e.Item, e.Part, e.Data)
		case llm.Annotate:
			fmt.Fprintf(&b, "cite %d: %s %s %d-%d\n", e.Item, e.Annotation.URL, e.Annotation.Title, e.Annotation.Start, e.Annotation.End)
		case llm.Picture:
			fmt.Fprintf(&b, "picture %d: %s %s\n", e.Item, e.Media.MIME, e.Media.Data)
		case llm.Logprobs:
			fmt.Fprintf(&b, "logprobs %d: %s\n", e.Item, e.Tokens)
		case llm.Seal:
			fmt.Fprintf(&b, "seal %d: %s %s for %s\n", e.Item, e.Opaque.Vendor, e.Opaque.Data, e.Opaque.For)
		case llm.Close:
			fmt.Fprintf(&b, "close %d", e.Item)
			if s := e.Server; s != nil {
				fmt.Fprintf(&b, " code %s outputs %s failed %v queries %s sources %s native %s", s.Code, s.Outputs, s.Failed, s.Queries, s.Sources, s.Native)
			}
			b.WriteByte('\n')
		case llm.Used:
			u := e.Usage
			fmt.Fprintf(&b, "used %d+%d %d+%d\n", u.Input, u.CacheRead, u.Output, u.Reasoning)
		case llm.Finish:
			fmt.Fprintf(&b, "finish %d: %s\n", e.Choice, [...]string{"stopped", "length", "tools", "filtered", "refused", "paused", "window", "compacted"}[e.Reason])
		case llm.Note:
			fmt.Fprintf(&b, "note %s\n", e.Notes)
		}
	}
	return b.String()
}

// streamed decodes chunks, one a line.
func streamed(chunks string) ([]llm.Event, dialect.Decoder, error) {
	d := Upstream{}.Answers(nil, nil)
	var events []llm.Event
	for chunk := range strings.Lines(chunks) {
		var err error
		if events, err = d.Frame(events, sse.Frame{Data: []byte(chunk)}); err != nil {
			return events, d, err
		}
	}
	events, err := d.End(events)
	return events, d, err
}

const start = "start \"r1\" \"m\"\n"

// one is a chunk with parts and other members of a candidate.
func one(parts, rest string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + rest + `}],"responseId":"r1","modelVersion":"m"}` + "\n"
}

const stop = `,"finishReason":"STOP"`

func TestDecoder(t *testing.T) {
	for name, c := range map[string]struct{ chunks, want string }{
		"signed text over chunks": {
			one(`{"text":"a"}`, "") + one(`{"text":"b"}`, "") + one(`{"text":"","thoughtSignature":"S"}`, stop),
			start + "open 0 of 0: message at 0\ntext 0.0: \"a\"\ntext 0.0: \"b\"\nseal 0: google \"S\" for 0\nclose 0\nfinish 0: stopped\n",
		},
		"a signed text and what follows are parts of their own": {
			one(`{"text":"t","thought":true},{"text":"a","thoughtSignature":"S"},{"text":"b"}`, stop),
			start + "open 0 of 0: reasoning at 0\nsummary 0.0: \"t\"\nclose 0\nopen 1 of 0: message at 1\ntext 1.0: \"a\"\nseal 1: google \"S\" for 1\ntext 1.1: \"b\"\nclose 1\nfinish 0: stopped\n",
		},
		"a signature of nothing": {
			one(`{"functionCall":{"id":"g","name":"f"}},{"text":"","thoughtSignature":"S"}`, stop),
			start + "open 0 of 0: call at 0 \"g\" f\nargs 0.0: \"{}\"\nclose 0\nopen 1 of 0: reasoning at 1\nseal 1: google \"S\" for 1\nclose 1\nfinish 0: tools\n",
		},
		"arguments are compact text": {
			one(`{"functionCall":{"id":"g","name":"f","args":{"a" : [1, "x y"]}},"thoughtSignature":"S"}`, `,"finishReason":"SAFETY"`),
			start + "open 0 of 0: call at 0 \"g\" f signed \"S\"\nargs 0.0: \"{\\\"a\\\":[1,\\\"x y\\\"]}\"\nclose 0\nfinish 0: filtered\n",
		},
		"arguments in pieces": {
			one(`{"functionCall":{"id":"g","name":"f","willContinue":true}}`, "") +
				one(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}`, "") +
				one(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"\"y"},{"jsonPath":"$.b[0].c","numberValue":1},{"jsonPath":"$.b[1]","boolValue":true},{"jsonPath":"$.d","nullValue":"NULL_VALUE"}],"willContinue":true}}`, "") +
				one(`{"functionCall":{}}`, stop),
			start + "open 0 of 0: call at 0 \"g\" f\nargs 0.0: \"{\\\"a\\\":\\\"x\"\n" +
				"args 0.0: \"\\\\\\\"y\\\",\\\"b\\\":[{\\\"c\\\":1},true],\\\"d\\\":null\"\nargs 0.0: \"}\"\nclose 0\nfinish 0: tools\n",
		},
		"arguments that are cut stay cut": {
			one(`{"functionCall":{"id":"g","name":"f","partialArgs":[{"jsonPath":"$.city","stringValue":"Bos","willContinue":true}],"willContinue":true}}`, `,"finishReason":"MAX_TOKENS"`),
			start + "open 0 of 0: call at 0 \"g\" f\nargs 0.0: \"{\\\"city\\\":\\\"Bos\"\nclose 0\nfinish 0: length\n",
		},
		"picture, sound and what nobody knows": {
			one(`{"inlineData":{"mimeType":"image/png","data":"P"}},{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"A"}},{"inlineData":{"mimeType":"x/y","data":"Z"}},{"hologram":{}}`, stop),
			start + "open 0 of 0: message at 0\npicture 0: image/png \"P\"\naudio 0.0: \"A\"\nnote skip:part:inlineData\nnote skip:part:hologram\nclose 0\nfinish 0: stopped\n",
		},
		"code and its result are one call": {
			one(`{"executableCode":{"language":"PYTHON","code":"1+1"}}`, "") + one(`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},{"text":"so"}`, stop),
			start + "open 0 of 0: server at 0\nclose 0 code \"1+1\" outputs [\"2\"] failed false queries [] sources [] native [{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1+1\"}} {\"codeExecutionResult\":{\"outcome\":\"OUTCOME_OK\",\"output\":\"2\"}}]\n" +
				"open 1 of 0: message at 1\ntext 1.0: \"so\"\nclose 1\nfinish 0: stopped\n",
		},
		"sources count bytes": {
			one(`{"text":"äö "}`, "") + one(`{"text":"x\u00e9"}`, `,"groundingMetadata":{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"u0","title":"t0"}},{"web":{"uri":"u1","title":"t1"}}],"groundingSupports":[{"segment":{"startIndex":5,"endIndex":8},"groundingChunkIndices":[0,1]},{"segment":{"endIndex":2},"groundingChunkIndices":[1,7]}]}`+stop),
			start + "open 0 of 0: message at 0\ntext 0.0: \"äö \"\ntext 0.0: \"x\\u00e9\"\ncite 0: \"u0\" \"t0\" 3-5\ncite 0: \"u1\" \"t1\" 3-5\ncite 0: \"u1\" \"t1\" 0-1\nclose 0\n" +
				"open 1 of 0: server at 1\nclose 1 code  outputs [] failed false queries [\"q\"] sources [{\"u0\" \"t0\"} {\"u1\" \"t1\"}] native []\nfinish 0: stopped\n",
		},
		"blocked prompt": {
			`{"promptFeedback":{"blockReason":"JAILBREAK"},"responseId":"r1","modelVersion":"m","usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}`,
			start + "used 3+0 0+0\nopen 0 of 0: message at 0\nrefusal 0.0: \"Prompt blocked: JAILBREAK\"\nclose 0\nfinish 0: filtered\n",
		},
		"a finish of no known meaning": {
			one(`{"text":"a"}`, `,"finishReason":"OTHER"`),
			start + "open 0 of 0: message at 0\ntext 0.0: \"a\"\nnote assume:finish_reason\nclose 0\nfinish 0: stopped\n",
		},
		"continuation ends as a limit does": {
			one(`{"text":"a"}`, `,"finishReason":"CONTINUATION"`),
			start + "open 0 of 0: message at 0\ntext 0.0: \"a\"\nclose 0\nfinish 0: length\n",
		},
		"the first finish counts, later usage too": {
			one(`{"text":"a"}`, stop) + one(`{"text":"b"}`, `,"finishReason":"SAFETY"`) + `{"usageMetadata":{"promptTokenCount":"5","toolUsePromptTokenCount":2,"cachedContentTokenCount":4,"candidatesTokenCount":1,"thoughtsTokenCount":3}}`,
			start + "open 0 of 0: message at 0\ntext 0.0: \"a\"\nclose 0\nfinish 0: stopped\nused 3+4 1+3\n",
		},
		"tokens of a message that comes later": {
			one(`{"text":"t","thought":true}`, `,"logprobsResult":{"chosenCandidates":[{"token":"a","logProbability":-1}]}`) + one(`{"text":"a"}`, stop),
			start + "open 0 of 0: reasoning at 0\nsummary 0.0: \"t\"\nclose 0\nopen 1 of 0: message at 1\ntext 1.0: \"a\"\nlogprobs 1: [{\"token\":\"a\",\"logprob\":-1,\"bytes\":null,\"top_logprobs\":[]}]\nclose 1\nfinish 0: stopped\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			events, _, err := streamed(c.chunks)
			if err != nil {
				t.Fatal(err)
			}
			if got := toldAs(events); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if err := dialecttest.Check(events, true); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDecoderFails(t *testing.T) {
	for name, c := range map[string]struct {
		chunks, code string
		kind         llm.Kind
	}{
		"cut":                 {one(`{"text":"a"}`, ""), "", llm.UpstreamTruncated},
		"empty":               {"", "", llm.UpstreamTruncated},
		"malformed call":      {one(`{"text":"a"}`, "") + one("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"x"`), "upstream_malformed_output", llm.UpstreamInvalid},
		"unexpected call":     {one("", `,"finishReason":"UNEXPECTED_TOOL_CALL"`), "upstream_malformed_output", llm.UpstreamInvalid},
		"too many calls":      {one("", `,"finishReason":"TOO_MANY_TOOL_CALLS"`), "upstream_malformed_output", llm.UpstreamInvalid},
		"no name":             {one(`{"functionCall":{"args":{}}}`, ""), "upstream_malformed_output", llm.UpstreamInvalid},
		"nothing":             {one("", `,"finishReason":"NO_IMAGE"`), "", llm.UpstreamInvalid},
		"no JSON":             {"<html>", "upstream_malformed_output", llm.UpstreamInvalid},
		"index":               {one("", `,"index":-1`), "upstream_malformed_output", llm.UpstreamInvalid},
		"error with a number": {`{"error":{"code":429,"message":"slow","details":[{"@type":"x.RetryInfo","retryDelay":"13s"}]}}`, "upstream_rate_limited", llm.RateLimited},
		"error with a word":   {`{"error":{"message":"m","status":"UNAVAILABLE"}}`, "upstream_overloaded", llm.Overloaded},
		"error with neither":  {`{"error":{"message":"m"}}`, "", llm.Upstream},
	} {
		_, _, err := streamed(c.chunks)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Code != c.code {
			t.Errorf("%s: got %#v, want kind %v and code %q", name, err, c.kind, c.code)
		}
	}
}

func TestWhole(t *testing.T) {
	d := Upstream{}.Answers(nil, nil)
	events, err := d.Whole(nil, []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"b"}]}}],"responseId":"r1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := dialecttest.Check(events, true); err != nil {
		t.Error(err)
	}
	first, second := events[1].(llm.Open).CallID.Text(), events[4].(llm.Open).CallID.Text()
	if first == second || len(first) != len("call_")+24 {
		t.Errorf("got the IDs %s and %s, want two of 24 digits", first, second)
	}
	if last := events[len(events)-1]; last.(llm.Finish).Choice != 1 {
		t.Errorf("got %v last, want the finish of the second choice", last)
	}
	if _, err := (Upstream{}).Answers(nil, nil).Whole(nil, []byte(`{"usageMetadata":{}}`)); llm.AsError(err).Kind != llm.UpstreamInvalid {
		t.Errorf("an answer without candidates: got %v", err)
	}
}

func TestDone(t *testing.T) {
	call := &dialect.Call{Body: []byte(`{"generationConfig":{"candidateCount":2},"contents":[]}`)}
	d := Upstream{}.Answers(call, nil)
	for i, c := range []struct {
		chunk string
		done  bool
	}{
		{`{"candidates":[{"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1}}`, false},
		{`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","index":1}]}`, false},
		{`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`, true},
	} {
		if _, err := d.Frame(nil, sse.Frame{Data: []byte(c.chunk)}); err != nil {
			t.Fatal(err)
		}
		if d.Done() != c.done {
			t.Errorf("after chunk %d: done is %v", i, d.Done())
		}
	}
}

func TestFailed(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   llm.Kind
		code   string
		wait   string
	}{
		{400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, llm.UpstreamAuth, "", "0s"},
		{429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13s"}]}}`, llm.RateLimited, "upstream_rate_limited", "13s"},
		{400, `[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}]`, llm.Invalid, "context_length_exceeded", "0s"},
		{400, `{"error":{"message":"Function call is missing a thought_signature in functionCall parts."}}`, llm.Invalid, "reasoning_signature_rejected", "0s"},
		{403, `{"error":{"message":"no"}}`, llm.UpstreamAuth, "", "0s"},
		{503, `<html>`, llm.Overloaded, "upstream_overloaded", "1s"},
	} {
		e := Upstream{}.Failed(c.status, []byte(c.body), 0)
		if e.Kind != c.kind || e.Code != c.code || e.RetryAfter.String() != c.wait {
			t.Errorf("%d %s: got %v, code %q, wait %v", c.status, c.body, e.Kind, e.Code, e.RetryAfter)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(one(`{"text":"a","thoughtSignature":"S"},{"functionCall":{"name":"f","args":{"a":1}}}`, stop))
	f.Add(one(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[0]['b']","stringValue":"x","willContinue":true}],"willContinue":true}}`, "") + one(`{"functionCall":{"name":"g"}}`, stop))
	f.Add(one(`{"executableCode":{}},{"codeExecutionResult":{}}`, `,"groundingMetadata":{"groundingChunks":[{}],"groundingSupports":[{"groundingChunkIndices":[0]}]}`+stop))
	f.Add(`{"promptFeedback":{"blockReason":"X"}}` + "\n" + `{"error":{}}`)
	f.Fuzz(func(t *testing.T, chunks string) {
		events, _, err := streamed(chunks)
		if broken := dialecttest.Check(events, err == nil); broken != nil {
			t.Fatalf("%v in\n%s", broken, toldAs(events))
		}
		var fold llm.Folder
		ask := &dialect.Ask{ID: "i", Model: "m"}
		var out []byte
		encoder := Dialect{}.Encode(ask)
		for _, e := range events {
			fold.Add(e)
			out = encoder.Event(out, e)
		}
		if err == nil {
			Dialect{}.AppendAnswer(nil, &fold.Answer, ask)
			encoder.End(out)
		}
		whole, err := Upstream{}.Answers(nil, nil).Whole(nil, []byte(chunks))
		if broken := dialecttest.Check(whole, err == nil); broken != nil {
			t.Fatalf("%v in\n%s", broken, toldAs(whole))
		}
	})
}
