package upstream

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
)

// tongue is how a test speaks one of the strict dialects.
type tongue struct {
	path, live string // of a whole answer and of a stream
	header     http.Header
	// body is a request: contents of messages, and further members.
	body func(content, more string) string
	user func(parts ...string) string
	text func(text string) string
}

func joined(parts []string) string { return strings.Join(parts, ",") }

var tongues = map[string]tongue{
	"anthropic": {
		path: "/v1/messages", live: "/v1/messages", header: http.Header{"Anthropic-Version": {"2023-06-01"}},
		body: func(messages, more string) string {
			return `{"model":"small","max_tokens":5000,"messages":[` + messages + `]` + more + `}`
		},
		user: func(parts ...string) string { return `{"role":"user","content":[` + joined(parts) + `]}` },
		text: func(s string) string { return `{"type":"text","text":` + string(quoted(s)) + `}` },
	},
	"gemini": {
		path: "/v1beta/models/small:generateContent", live: "/v1beta/models/small:streamGenerateContent?alt=sse",
		body: func(contents, more string) string { return `{"contents":[` + contents + `]` + more + `}` },
		user: func(parts ...string) string { return `{"role":"user","parts":[` + joined(parts) + `]}` },
		text: func(s string) string { return `{"text":` + string(quoted(s)) + `}` },
	},
	"bedrock": {
		path: "/model/small/converse", live: "/model/small/converse-stream",
		body: func(messages, more string) string { return `{"messages":[` + messages + `]` + more + `}` },
		user: func(parts ...string) string { return `{"role":"user","content":[` + joined(parts) + `]}` },
		text: func(s string) string { return `{"text":` + string(quoted(s)) + `}` },
	},
}

func (g tongue) ask(t *testing.T, s *Server, c *http.Client, path, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Host()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range g.header {
		r.Header[name] = values
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestDialectReplies(t *testing.T) {
	thinking := signature("thinking", "Let me think.")
	for _, tt := range []struct {
		dialect, name, content, more string
		want                         []string // of the whole answer
	}{
		{"anthropic", "plain", tongues["anthropic"].user(tongues["anthropic"].text("hi")), "", []string{`"content":[{"type":"text","text":"Hello from small."}]`, `"stop_reason":"end_turn"`, `"cache_read_input_tokens":0`}},
		{"anthropic", "cached", `{"role":"user","content":"cached"}`, "", []string{`"input_tokens":14,"cache_creation_input_tokens":2,"cache_read_input_tokens":5`}},
		{"anthropic", "calls", `{"role":"user","content":"call2 f {\"a\":1}"}`, `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`,
			[]string{`{"type":"tool_use","id":"toolu_1_0","name":"f","input":{"a":1}`, `"id":"toolu_1_1"`, `"stop_reason":"tool_use"`}},
		{"anthropic", "result", `{"role":"user","content":"call f"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"warm"}]}]}`,
			`,"tools":[{"name":"f","input_schema":{"type":"object"}}]`, []string{`"The tool said: warm"`}},
		{"anthropic", "thinking", `{"role":"user","content":"hi"}`, `,"thinking":{"type":"adaptive"}`, []string{`{"type":"thinking","thinking":"Let me think.","signature":"` + thinking + `"}`}},
		{"anthropic", "hidden thinking", `{"role":"user","content":"hi"}`, `,"thinking":{"type":"adaptive","display":"omitted"}`, []string{`{"type":"thinking","thinking":"","signature":"`}},
		{"anthropic", "thinking that comes back", `{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"Let me think.","signature":"` + thinking + `"},{"type":"text","text":"x"}]},{"role":"user","content":"hi"}`, "", []string{"Hello"}},
		{"anthropic", "schema", `{"role":"user","content":"hi"}`, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}}}`, []string{`"text":"{\"n\":1,\"s\":\"Hello\"}"`}},
		{"anthropic", "image", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`, "", []string{"I see an image of image/png."}},
		{"gemini", "plain", tongues["gemini"].user(tongues["gemini"].text("hi")), "", []string{`"parts":[{"text":"Hello from small."}]`, `"finishReason":"STOP"`}},
		{"gemini", "calls", `{"role":"user","parts":[{"text":"call2 f {\"a\":1}"}]}`, `,"tools":[{"functionDeclarations":[{"name":"f"}]}]`, []string{`{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall"`}},
		{"gemini", "thinking", `{"role":"user","parts":[{"text":"hi"}]}`, `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`, []string{`{"text":"Let me think.","thought":true},{"text":"Hello from small.","thoughtSignature":"` + signature("text") + `"}`}},
		{"gemini", "result", `{"role":"user","parts":[{"text":"call f"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"` + signature("call", "f", "{}") + `"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"warm"}}}]}`, "", []string{"The tool said: warm"}},
		{"gemini", "the next order", `{"role":"user","parts":[{"text":"call f then call g {\"a\":1}"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"` + signature("call", "f", "{}") + `"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"warm"}}}]}`, `,"tools":[{"functionDeclarations":[{"name":"f"}]}]`, []string{`{"functionCall":{"name":"g","args":{"a":1}}`}},
		{"gemini", "schema", `{"role":"user","parts":[{"text":"hi"}]}`, `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`, []string{`"{\"n\":1}"`}},
		{"gemini", "image", `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`, "", []string{"I see an image of image/png."}},
		{"bedrock", "plain", tongues["bedrock"].user(tongues["bedrock"].text("hi")), "", []string{`"content":[{"text":"Hello from small."}]`, `"stopReason":"end_turn"`, `"totalTokens":18`}},
		{"bedrock", "calls", `{"role":"user","content":[{"text":"call2 f {\"a\":1}"}]}`, `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`,
			[]string{`{"toolUse":{"toolUseId":"tooluse_1_0","name":"f","input":{"a":1}}},{"toolUse"`, `"stopReason":"tool_use"`}},
		{"bedrock", "thinking", `{"role":"user","content":[{"text":"hi"}]}`, `,"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}`, []string{`{"reasoningContent":{"reasoningText":{"text":"Let me think.","signature":"` + thinking + `"}}}`}},
		{"bedrock", "image", `{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"text":"hi"}]}`, "", []string{"I see an image of image/png."}},
	} {
		t.Run(tt.dialect+" "+tt.name, func(t *testing.T) {
			s, c := start(t)
			g := tongues[tt.dialect]
			resp, body := g.ask(t, s, c, g.path, g.body(tt.content, tt.more))
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("got %d %s, want %s", resp.StatusCode, body, want)
				}
			}
			more := tt.more
			if tt.dialect == "anthropic" {
				more += `,"stream":true`
			}
			resp, body = g.ask(t, s, c, g.live, g.body(tt.content, more))
			if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || strings.Contains(kind, "json") {
				t.Errorf("stream: got %d %s %s", resp.StatusCode, kind, body)
			}
			if r := s.Requests(); !r[1].Terminal || r[1].Frames < 2 {
				t.Errorf("stream: got %d frames, terminal %t", r[1].Frames, r[1].Terminal)
			}
		})
	}
}

func TestDialectRefusals(t *testing.T) {
	const (
		tools  = `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`
		hi     = `{"role":"user","content":"hi"}`
		gHi    = `{"role":"user","parts":[{"text":"hi"}]}`
		gCall  = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
		bHi    = `{"role":"user","content":[{"text":"hi"}]}`
		bCall  = `{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}`
		bTools = `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`
	)
	for _, tt := range []struct{ dialect, content, more, want string }{
		{"anthropic", hi, `,"seed":1`, "seed: Extra inputs are not permitted"},
		{"anthropic", `{"role":"user","content":[{"type":"text","text":"hi","name":"x"}]}`, "", "messages.0.content.0.text.name: Extra inputs"},
		{"anthropic", ``, "", "at least one message"},
		{"anthropic", `{"role":"assistant","content":"hi"}`, "", `first message must use the \"user\" role`},
		{"anthropic", `{"role":"user","content":""}`, "", "text content blocks must be non-empty"},
		{"anthropic", `{"role":"user","content":[]}`, "", "must have non-empty content"},
		{"anthropic", hi + "," + call, tools, "without `tool_result` blocks immediately after: x"},
		{"anthropic", hi + "," + call + `,{"role":"user","content":[{"type":"text","text":"so"},{"type":"tool_result","tool_use_id":"x"}]}`, tools, "without `tool_result` blocks"},
		{"anthropic", hi + `,{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}`, tools, "unexpected `tool_use_id`"},
		{"anthropic", hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"Let me thinK.","signature":"` + signature("thinking", "Let me think.") + `"},{"type":"text","text":"a"}]},` + hi, "", "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"anthropic", hi + "," + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}`, tools + `,"thinking":{"type":"enabled","budget_tokens":1024}`, "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		{"anthropic", hi, `,"thinking":{"type":"enabled","budget_tokens":5000}`, "`max_tokens` must be greater"},
		{"anthropic", hi, `,"temperature":1.5`, "temperature: range: 0..1"},
		{"anthropic", hi, `,"tool_choice":{"type":"auto"}`, "only be specified while providing tools"},
		{"anthropic", hi, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}}}`, "'minimum' is not supported"},
		{"gemini", gHi, `,"seed":1`, `Unknown name \"seed\"`},
		{"gemini", gHi, `,"generationConfig":{"max_tokens":1}`, `Unknown name \"max_tokens\"`},
		{"gemini", ``, "", "contents is not specified"},
		{"gemini", `{"role":"assistant","parts":[{"text":"hi"}]}`, "", "valid role"},
		{"gemini", `{"role":"user","parts":[{"text":""}]}`, "", "required oneof field 'data'"},
		{"gemini", gHi + "," + gHi, "", "alternate between user and model"},
		{"gemini", gHi + "," + gCall + "," + gHi, "", "number of function response parts is equal"},
		{"gemini", gHi + "," + gCall + `,{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}}]}`, "", "does not match function call"},
		{"gemini", gHi + "," + gCall + `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":"warm"}}]}`, "", "function_response.response"},
		{"gemini", gHi + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"AAAA"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`, "", "Corrupted thought signature."},
		{"gemini", gHi, `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW","thinkingBudget":1}}`, "only one of thinking budget"},
		{"gemini", gHi, `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","additionalProperties":false}}]}]`, `Unknown name \"additionalProperties\"`},
		{"bedrock", bHi, `,"max_tokens":1`, "extraneous key [max_tokens]"},
		{"bedrock", bHi + "," + bHi, "", "must alternate between user and assistant"},
		{"bedrock", `{"role":"assistant","content":[{"text":"hi"}]}`, "", "must start with a user message"},
		{"bedrock", `{"role":"user","content":[{"text":""}]}`, "", "is blank"},
		{"bedrock", bHi + "," + bCall + `,{"role":"user","content":[{"toolResult":{"toolUseId":"x","content":[{"text":"a"}]}}]}`, "", "The toolConfig field must be defined"},
		{"bedrock", bHi + "," + bCall + "," + bHi, bTools, "Expected toolResult blocks at messages.2.content for the following Ids: x"},
		{"bedrock", bHi + `,{"role":"assistant","content":[{"text":"a"}]},{"role":"user","content":[{"toolResult":{"toolUseId":"x","content":[]}}]}`, bTools, "exceeds the number of toolUse blocks"},
		{"bedrock", bHi, `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"none":{}}}`, "extraneous key [none]"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			s, c := start(t)
			g := tongues[tt.dialect]
			resp, body := g.ask(t, s, c, g.path, g.body(tt.content, tt.more))
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want 400 %s", resp.StatusCode, body, tt.want)
			}
			if s.Requests()[0].Refused == "" {
				t.Error("the ledger does not tell")
			}
		})
	}
}

func TestGeminiWantsSignatures(t *testing.T) {
	s, c := start(t, WithModels("gemini-3-x"))
	turn := func(part string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"call f"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}` + part + `}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"warm"}}}]}]}`
	}
	for part, want := range map[string]int{"": 400, `,"thoughtSignature":"skip_thought_signature_validator"`: 200, `,"thoughtSignature":"` + signature("call", "f", "{}") + `"`: 200} {
		resp, body := tongue{}.ask(t, s, c, "/v1beta/models/gemini-3-x:generateContent", turn(part))
		if resp.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", part, resp.StatusCode, body, want)
		}
	}
}

func TestDialectErrors(t *testing.T) {
	for _, tt := range []struct{ dialect, fault, want, header string }{
		{"anthropic", "status-529", `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded.`, ""},
		{"anthropic", "context", "prompt is too long", ""},
		{"gemini", "status-429", `"retryDelay":"7s"`, ""},
		{"gemini", "status-503", `"status":"UNAVAILABLE"`, ""},
		{"bedrock", "status-429", `{"message":"Rate limit`, "ThrottlingException"},
	} {
		t.Run(tt.dialect+" "+tt.fault, func(t *testing.T) {
			s, c := start(t)
			g := tongues[tt.dialect]
			resp, body := g.ask(t, s, c, g.path, g.body(g.user(g.text("[[fault:"+tt.fault+"]]")), ""))
			if !strings.Contains(body, tt.want) || resp.Header.Get("X-Amzn-Errortype") != tt.header {
				t.Errorf("got %d %v %s, want %s", resp.StatusCode, resp.Header, body, tt.want)
			}
		})
	}
	for dialect, want := range map[string]string{
		"anthropic": "event: error\ndata: {\"type\":\"error\"", "gemini": `data: {"error":{"code":500`, "bedrock": ":exception-type\x07\x00\x17internalServerException",
	} {
		s, c := start(t)
		g := tongues[dialect]
		more := ""
		if dialect == "anthropic" {
			more = `,"stream":true`
		}
		if _, body := g.ask(t, s, c, g.live, g.body(g.user(g.text("[[fault:error-mid]]")), more)); !strings.Contains(body, want) {
			t.Errorf("%s: got %q, want %q", dialect, body, want)
		}
	}
}

// TestEventStream reads a stream as the AWS SDK does.
func TestEventStream(t *testing.T) {
	s, c := start(t)
	g := tongues["bedrock"]
	_, body := g.ask(t, s, c, g.live, g.body(g.user(g.text("hi")), ""))
	var kinds []string
	for b := []byte(body); len(b) > 0; {
		total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if got, want := crc32.ChecksumIEEE(b[:8]), binary.BigEndian.Uint32(b[8:]); got != want {
			t.Fatalf("prelude: got %x, want %x", got, want)
		}
		if got, want := crc32.ChecksumIEEE(b[:total-4]), binary.BigEndian.Uint32(b[total-4:]); got != want {
			t.Fatalf("message: got %x, want %x", got, want)
		}
		payload := b[12+headers : total-4]
		if !json.Valid(payload) {
			t.Fatalf("got %q, want JSON", payload)
		}
		name := int(b[12])
		value := b[12+1+name+1:]
		kinds = append(kinds, string(value[2:2+binary.BigEndian.Uint16(value)]))
		b = b[total:]
	}
	if got, want := fmt.Sprint(kinds), "[messageStart contentBlockDelta contentBlockDelta contentBlockDelta contentBlockStop messageStop metadata]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestModelLists(t *testing.T) {
	s, c := start(t)
	for path, want := range map[string]string{"/v1/models": `{"data":[{"type":"model","id":"small"`, "/v1beta/models": `{"models":[{"name":"models/small"`} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Host()+path, nil)
		r.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
	g := tongues["anthropic"]
	if _, body := g.ask(t, s, c, "/v1/messages/count_tokens", `{"model":"small","messages":[{"role":"user","content":"hi"}]}`); body != `{"input_tokens":16}` {
		t.Errorf("count: got %s", body)
	}
}

func TestSignatureIsBase64(t *testing.T) {
	if _, err := base64.StdEncoding.DecodeString(signature("x")); err != nil {
		t.Error(err)
	}
}
