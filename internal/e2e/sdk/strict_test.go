package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// TestFits: one wrong member, however deep, is found and named.
func TestFits(t *testing.T) {
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}`, ""},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","content":null}]}`, ""},
		{"/v1/chat/completions", `{"model":"m"}`, `messages: is missing`},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi","x":1}]}`, `messages[0].x: is unknown to openai.ChatCompletionUserMessageParam`},
		{"/v1/chat/completions", `{"model":"m","messages":[],"reasoning_effort":"huge"}`, `reasoning_effort: "huge" is none of shared.ReasoningEffort`},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"picture","image_url":{"url":"u"}}]}]}`, `messages[0].content[0]: {"type":"picture"`},
		{"/v1/chat/completions", `{"model":"m","model":"m","messages":[]}`, `model: comes twice`},
		{"/v1/chat/completions", `{"model":"m","messages":[],"max_tokens":"9"}`, `max_tokens: "9" is no int64`},
		{"/v1/chat/completions", `{"model":"m","messages":[],"max_tokens":9.5}`, `max_tokens: 9.5 is no int64`},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":"Hi"},{"type":"function_call_output","call_id":"c","output":"sunny"}]}`, ""},
		{"/v1/responses", `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f"}]}`, `input[0].arguments: is missing`},
		{"/v1/responses", `{"model":"m","input":"Hi","reasoning":{"effort":"huge"}}`, `reasoning.effort: "huge" is none of shared.ReasoningEffort`},
		{"/v1/messages", `{"model":"m","max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`, ""},
		{"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`, `max_tokens: is missing`},
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a","x":1}]}]}]}`, `messages[0].content[0].content[0].x: is unknown to anthropic.TextBlockParam`},
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":{"type":"string"}}]}`, `tools[0]`},
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"tool","content":"Hi"}]}`, `messages[0].role: "tool" is none of`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"topK":5}}`, ""},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"stream":true}`, `stream: is unknown`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"txt":"Hi"}]}]}`, `contents[0].parts[0].txt: is unknown to genai.Part`},
		{"/v1beta/models/m:generateContent", `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingLevel":"HUGE"}}}`, `generationConfig.thinkingConfig.thinkingLevel: "HUGE" is none of`},
		{"/v1beta/models/m:generateContent", `{"contents":[],"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}`, `streamFunctionCallArguments parameter is only supported in`},
		{"/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`, ""},
		{"/model/m/converse", `{"modelId":"m","messages":[]}`, `modelId: is unknown to ConverseRequest`},
		{"/model/m/converse", `{"messages":[{"role":"tool","content":[]}]}`, `messages[0].role: "tool" is no ConversationRole`},
		{"/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"Hi","image":{}}]}]}`, `messages[0].content[0]: has 2 members of the union ContentBlock`},
		{"/model/m/converse", `{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"schema":{}}}}]}}`, `toolConfig.tools[0].toolSpec.inputSchema.schema: is unknown to ToolInputSchema`},
		{"/model/m/converse", `{"messages":[],"inferenceConfig":{"maxTokens":9.5}}`, `inferenceConfig.maxTokens: 9.5 is no int32`},
	} {
		got := ""
		if err := fits(t.Context(), upstream.Request{Path: c.path, Body: c.body}); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.path, c.body, got, c.want)
		}
	}
	answer := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi","x":1}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	if err := (checker{answer: true}).check(json.RawMessage(answer), reflect.TypeFor[anthropic.Message]()); err == nil || err.Error() != "content[0].x: is unknown to anthropic.ContentBlockUnion" {
		t.Errorf("the answer: got %v", err)
	}
}
