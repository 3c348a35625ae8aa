package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	chatPath = "/chat/completions"

	question = "Reply with the one word: pong"
	order    = "What is the weather in Oslo? Call the tool weather."

	weather = `{"name":"weather","description":"The weather in a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}`

	chatBody       = `{"model":"{{model}}","messages":[{"role":"user","content":"` + question + `"}]}`
	chatStreamBody = `{"model":"{{model}}","messages":[{"role":"user","content":"` + question + `"}],"stream":true,"stream_options":{"include_usage":true}}`
	chatToolBody   = `{"model":"{{model}}","messages":[{"role":"user","content":"` + order + `"}],"tools":[{"type":"function","function":` + weather + `}],"stream":true,"stream_options":{"include_usage":true}}`
	chatResultBody = `{"model":"{{model}}","messages":[{"role":"user","content":"` + order + `"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"{{call_id}}","type":"function","function":{"name":"{{call_name}}","arguments":"{{call_arguments}}"}}]},` +
		`{"role":"tool","tool_call_id":"{{call_id}}","content":"sunny"}],"tools":[{"type":"function","function":` + weather + `}],"stream":true,"stream_options":{"include_usage":true}}`
	chatSchemaBody = `{"model":"{{model}}","messages":[{"role":"user","content":"Name the capital of Norway."}],"response_format":{"type":"json_schema","json_schema":{"name":"capital","strict":true,` +
		`"schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}}`
)

// Who uses what a server may lack.
var (
	chatUsers   = []string{"aider", "cline", "continue", "cursor", "langchain", "librechat", "opencode", "openwebui", "qwen-code", "zed"}
	toolUsers   = []string{"claude", "cline", "codex", "continue", "cursor", "opencode", "qwen-code", "zed"}
	schemaUsers = []string{"langchain", "openai-js", "openai-python", "vercel-ai"}
)

func (v *visit) chat(ctx context.Context) (verdict, error) {
	a, err := v.post(ctx, chatPath, chatBody)
	if err != nil {
		return verdict{}, err
	}
	if err := a.served("POST "+chatPath, chatUsers); err != nil {
		return verdict{}, err
	}
	s, faults := readChat(a)
	return verdict{fmt.Sprintf("%q in %s", shorten(s.text), a.millis()), faults}, nil
}

func (v *visit) chatStream(ctx context.Context) (verdict, error) {
	_, found, err := v.streamChat(ctx, chatStreamBody, "streams of chats", chatUsers)
	return found, err
}

func (v *visit) streamChat(ctx context.Context, body, what string, users []string) (said, verdict, error) {
	a, err := v.post(ctx, chatPath, body)
	if err != nil {
		return said{}, verdict{}, err
	}
	if err := a.served(what, users); err != nil {
		return said{}, verdict{}, err
	}
	st, err := a.events()
	if err != nil {
		return said{}, verdict{}, err
	}
	s, faults := readChatStream(st, true)
	return s, verdict{fmt.Sprintf("%s in %s", plural(len(st.events), "event"), a.millis()), faults}, nil
}

func (v *visit) chatTool(ctx context.Context) (verdict, error) {
	v.said = said{}
	s, found, err := v.streamChat(ctx, chatToolBody, "calls of tools", toolUsers)
	if err != nil || len(found.faults) > 0 {
		return found, withoutTools(err)
	}
	v.said = s
	return called(s, found)
}

// called looks at the calls of an answer to the order.
func called(s said, found verdict) (verdict, error) {
	if len(s.calls) == 0 {
		return found, errSkip{"the model answered in words; name a model that calls tools with --model"}
	}
	c := s.calls[0]
	if c.name != "weather" {
		found.faults = append(found.faults, toolUnknownName)
	}
	found.detail = fmt.Sprintf("%s(%s)", c.name, shorten(c.arguments))
	return found, nil
}

// withoutTools makes the refusal of a request with tools something that is
// absent: the same request without tools was answered.
func withoutTools(err error) error {
	var f *fault
	if f, _ = err.(*fault); f == nil || !strings.HasPrefix(f.why, "HTTP 400: ") && !strings.HasPrefix(f.why, "HTTP 422: ") {
		return err
	}
	return &errAbsent{"tools are refused: " + f.why, "name a model that calls tools with --model; some servers must be started with a parser for calls", toolUsers}
}

func (v *visit) chatToolResult(ctx context.Context) (verdict, error) {
	s, found, err := v.streamChat(ctx, chatResultBody, "results of tools", toolUsers)
	if err == nil && len(found.faults) == 0 {
		found.detail = fmt.Sprintf("%q", shorten(s.text))
	}
	return found, err
}

func (v *visit) chatStructured(ctx context.Context) (verdict, error) {
	a, err := v.post(ctx, chatPath, chatSchemaBody)
	if err != nil {
		return verdict{}, err
	}
	if a.refuses() {
		message, _, _ := a.failure()
		return verdict{}, &errAbsent{"response_format with a schema is refused: " + orNothing(message), "", schemaUsers}
	}
	if err := a.served("structured output", schemaUsers); err != nil {
		return verdict{}, err
	}
	s, faults := readChat(a)
	if len(faults) > 0 {
		return verdict{faults: faults}, nil
	}
	var capital struct {
		City *string `json:"city"`
	}
	if json.Unmarshal([]byte(s.text), &capital) != nil {
		return verdict{}, &errAbsent{fmt.Sprintf("response_format with a schema is ignored: the answer is %q", shorten(s.text)), "refuse with HTTP 400 what the model cannot do, so that clients can tell", schemaUsers}
	}
	if capital.City == nil {
		return verdict{}, &fault{fmt.Sprintf("the answer is JSON, but not what the schema asks for: %s", shorten(s.text)), "hold the model to the schema, or refuse it with HTTP 400", schemaUsers}
	}
	return verdict{detail: shorten(s.text)}, nil
}
