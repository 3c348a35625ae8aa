package gemini

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// TestDecode says requests of clients again to an upstream of the dialect.
func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ body, want, notes string }{
		"calls without IDs": {
			`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"S"},{"functionCall":{"name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"f","response":{"error":"two"}}}]}]}`,
			`"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"S"},{"functionCall":{"name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"f","response":{"error":"two"}}}]}]`, "",
		},
		"schemas": {
			`{"contents":{"parts":[{"text":"x"}]},"tools":[{"function_declarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true},"l":{"type":"ARRAY","minItems":"1","items":{"type":"INTEGER"}},"o":{"anyOf":[{"type":"STRING"}],"nullable":true}}}}]}],` +
				`"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"BOOLEAN"}}}`,
			`"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"boolean"}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"type":{"type":["string","null"]},"l":{"type":"array","minItems":1,"items":{"type":"integer"}},"o":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}]}],` +
				`"contents":[{"role":"user","parts":[{"text":"x"}]}]`, "",
		},
		"settings": {
			`{"contents":[{"parts":[{"text":"x"},{"inlineData":{"mimeType":"image/png","data":"P"}}]}],"safetySettings":[],"generation_config":{"max_output_tokens":7,"temperature":1,"topK":2,"candidateCount":3,"stopSequences":["a"],"responseModalities":["TEXT"],"mediaResolution":"X"},` +
				`"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}],"toolConfig":{"functionCallingConfig":{"mode":"any","allowedFunctionNames":["f"]}},"serviceTier":"FLEX","newThing":1}`,
			`"generationConfig":{"maxOutputTokens":7,"stopSequences":["a"],"candidateCount":3,"temperature":1,"topK":2},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},` +
				`"contents":[{"role":"user","parts":[{"text":"x"},{"inlineData":{"mimeType":"image/png","data":"P"}}]}],"serviceTier":"flex","safetySettings":[]`, "drop:generationConfig.mediaResolution,drop:newThing",
		},
		"thoughts and other parts": {
			`{"systemInstruction":"be","contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"t","thought":true},{"text":"a","thoughtSignature":"S"},{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}]},{"parts":[{"text":"y"}]}]}`,
			`"systemInstruction":{"parts":[{"text":"be"}]},"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"a","thoughtSignature":"S"},{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}]},{"role":"user","parts":[{"text":"y"}]}]`, "drop:thought_parts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := Dialect{}.Decode([]byte(c.body), seal.Key{})
			if err != nil {
				t.Fatal(err)
			}
			call, err := Upstream{}.Encode(req, &llm.Caps{Model: "g", Vendor: "google", ReasonsKnown: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(call.Body); got != "{"+c.want+"}" {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("got notes %q, want %q", got, c.notes)
			}
		})
	}
}

func TestDecodeRefusals(t *testing.T) {
	for _, c := range []struct{ body, param, code string }{
		{`{}`, "contents", "missing_required_parameter"},
		{`{"contents":[]}`, "contents", "invalid_value"},
		{`{"contents":[{"role":"system"}]}`, "contents[0].role", "invalid_value"},
		{`{"contents":[{"parts":[{"text":1}]}]}`, "contents[0].parts[0].text", "invalid_type"},
		{`{"contents":[{"parts":[{"text":"x"},{}]}]}`, "contents[0].parts[1]", "invalid_value"},
		{`{"contents":[{"parts":[{"hologram":{}}]}]}`, "contents[0].parts[0].hologram", "unsupported_parameter"},
		{`{"contents":[{"parts":[{"functionResponse":{"name":"f"}}]}]}`, "contents[0].parts[0].functionResponse", "invalid_value"},
		{`{"contents":[{"parts":[{"inlineData":{"mimeType":"x"}}]}]}`, "contents[0].parts[0].inlineData.data", "missing_required_parameter"},
		{`{"contents":[{"parts":[{"text":"x"}]}],"cachedContent":"c"}`, "cachedContent", "unsupported_parameter"},
		{`{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":"many"}}`, "generationConfig.maxOutputTokens", "invalid_type"},
		{`{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"responseMimeType":"text/x.enum"}}`, "generationConfig.responseMimeType", "unsupported_parameter"},
		{`{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{}]}]}`, "tools[0].functionDeclarations[0].name", "missing_required_parameter"},
		{`{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[{"inlineData":{}}]}}`, "systemInstruction.parts[0]", "unsupported_parameter"},
		{`[`, "", ""},
	} {
		_, err := Dialect{}.Decode([]byte(c.body), seal.Key{})
		if e := llm.AsError(err); err == nil || e.Kind != llm.Invalid || e.Param != c.param || e.Code != c.code {
			t.Errorf("%s: got %v, param %q, code %q", c.body, err, e.Param, e.Code)
		}
	}
}

func TestSealsComeBack(t *testing.T) {
	key := seal.NewKey([]byte("k"))
	ask := &dialect.Ask{ID: "i", Model: "m", Origin: "acct", Seal: key}
	for _, c := range []struct {
		o    llm.Opaque
		text string
	}{
		{llm.Opaque{Kind: llm.Signature, Vendor: "anthropic", Origin: "acct", Data: llm.Raw(`"S"`)}, "think"},
		{llm.Opaque{Kind: llm.Redacted, Vendor: "anthropic", Origin: "acct", Data: llm.Raw(`"R"`)}, ""},
		{llm.Opaque{Kind: llm.Encrypted, Vendor: "openai", Origin: "acct", Data: llm.Raw(`"E"`)}, ""},
	} {
		events := []llm.Event{llm.Start{}, llm.Open{Kind: llm.ReasoningItem, ID: llm.Raw(`"rs"`)},
			llm.Delta{Channel: llm.ThinkingChannel, Data: llm.Quote(c.text)}, llm.Seal{Opaque: c.o}, llm.Close{}, llm.Finish{}}
		encoder := Dialect{}.Encode(ask)
		var fold llm.Folder
		var stream []byte
		for _, e := range events {
			fold.Add(e)
			stream = encoder.Event(stream, e)
		}
		parts := ""
		for frame := range strings.SplitSeq(string(stream), "\n\n") {
			for part := range strings.SplitSeq(string(dialect.Member([]byte(strings.TrimPrefix(frame, "data: ")), "candidates")), "[") {
				if inner, _, ok := strings.Cut(part, "]"); ok && inner != "" {
					parts += "," + inner
				}
			}
		}
		req, err := Dialect{}.Decode([]byte(`{"contents":[{"role":"model","parts":[`+strings.TrimPrefix(parts, ",")+`]}]}`), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(req.Items) != 1 || len(req.Notes) > 0 {
			t.Fatalf("%s: got %v, notes %q", stream, req.Items, req.Notes)
		}
		r := req.Items[0].(*llm.Reasoning)
		if o := r.Opaque[0]; o.Kind != c.o.Kind || o.Vendor != c.o.Vendor || o.Origin != "acct" || string(o.Data) != string(c.o.Data) {
			t.Errorf("got %+v, want %+v", o, c.o)
		}
		if c.text != "" && (len(r.Texts) != 1 || r.Texts[0].Text.Text() != c.text) {
			t.Errorf("got texts %v, want %q", r.Texts, c.text)
		}
	}
}

const answerEvents = `{"text":"tü","thought":true},{"text":"ä b","thoughtSignature":"S"},{"functionCall":{"id":"g","name":"f","args":{"a":1}},"thoughtSignature":"C"}`

func TestAnswer(t *testing.T) {
	chunk := one(answerEvents, `,"finishReason":"STOP"`)
	events, _, err := streamed(chunk + `{"usageMetadata":{"promptTokenCount":5,"cachedContentTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4}}`)
	if err != nil {
		t.Fatal(err)
	}
	ask := &dialect.Ask{ID: "i", Model: "alias"}
	encoder := Dialect{}.Encode(ask)
	var fold llm.Folder
	var stream []byte
	for _, e := range events {
		fold.Add(e)
		stream = encoder.Event(stream, e)
	}
	stream = encoder.End(stream)
	const rest = `"usageMetadata":{"promptTokenCount":5,"cachedContentTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":12},"modelVersion":"m","responseId":"i"}`
	whole := string(Dialect{}.AppendAnswer(nil, &fold.Answer, ask))
	if want := `{"candidates":[{"content":{"role":"model","parts":[` + answerEvents + `]},"finishReason":"STOP","index":0}],` + rest; whole != want {
		t.Errorf("whole: got\n%s\nwant\n%s", whole, want)
	}
	part := func(p string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[` + p + `]},"index":0}],"modelVersion":"m","responseId":"i"}` + "\n\n"
	}
	want := part(`{"text":"tü","thought":true}`) + part(`{"text":"ä b"}`) + part(`{"text":"","thoughtSignature":"S"}`) +
		part(`{"functionCall":{"id":"g","name":"f","args":{"a":1}},"thoughtSignature":"C"}`) +
		`data: {"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP","index":0}],` + rest + "\n\n"
	if string(stream) != want {
		t.Errorf("stream: got\n%s\nwant\n%s", stream, want)
	}
}

func TestAnswerEnds(t *testing.T) {
	for reason, want := range map[llm.Reason]string{llm.LengthReached: "MAX_TOKENS", llm.Filtered: "SAFETY", llm.Refused: "SAFETY", llm.WindowFull: "MAX_TOKENS", llm.Paused: "STOP"} {
		a := &llm.Answer{Choices: []llm.Choice{{Finish: llm.Finish{Reason: reason}}}}
		if got := string(Dialect{}.AppendAnswer(nil, a, &dialect.Ask{})); !strings.Contains(got, `"finishReason":"`+want+`"`) {
			t.Errorf("reason %d: got %s, want %s", reason, got, want)
		}
	}
	cited := []llm.Event{llm.Start{}, llm.Open{}, llm.Delta{Data: llm.Raw(`"äö x"`)}, llm.Annotate{Annotation: llm.Annotation{URL: llm.Raw(`"u"`), Title: llm.Raw(`"t"`), Start: 1, End: 4}}, llm.Close{}, llm.Finish{}}
	encoder := Dialect{}.Encode(&dialect.Ask{})
	var stream []byte
	for _, e := range cited {
		stream = encoder.Event(stream, e)
	}
	stream = encoder.End(nil)
	if want := `"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u","title":"t"}}],"groundingSupports":[{"segment":{"startIndex":2,"endIndex":6},"groundingChunkIndices":[0]}]}`; !strings.Contains(string(stream), want) {
		t.Errorf("got %s", stream)
	}
	failed := string(Dialect{}.Encode(&dialect.Ask{}).Fail(nil, &llm.Error{Kind: llm.Overloaded, Message: "m", RetryAfter: 1}))
	if want := `data: {"error":{"code":503,"message":"m","status":"UNAVAILABLE","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}` + "\n\n"; failed != want {
		t.Errorf("got %s, want %s", failed, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"contents":[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"gw1.e30"},{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","response":{"output":{}},"parts":[{"inlineData":{"mimeType":"image/png","data":"P"}}]}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}],"googleSearch":{}}],"generationConfig":{"thinkingConfig":{"thinkingBudget":1}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Dialect{}.Decode(body, seal.Key{})
		if err != nil {
			if e := llm.AsError(err); e.Kind == llm.Internal {
				t.Fatal(err)
			}
			return
		}
		for _, caps := range []*llm.Caps{three(), pro()} {
			call, err := Upstream{}.Encode(req, caps)
			if err != nil {
				continue
			}
			if _, err := (Dialect{}).Decode(call.Body, seal.Key{}); err != nil && strings.Contains(err.Error(), "parse") {
				t.Fatalf("%v in %s", err, call.Body)
			}
		}
	})
}
