package provider

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// outgoing is what a vendor is sent of a client's chat, by the way that the
// gateway takes: the client's own bytes where they do, the request said anew
// where they do not.
func outgoing(t *testing.T, vendor, model, body string) (out, notes string) {
	t.Helper()
	v, _ := Lookup(vendor)
	caps := of(vendor, model, dialect.OpenAIChat)
	chat := openaichat.Dialect{}
	if caps.Retold || chat.Anew([]byte(body), caps) {
		req, err := chat.Decode([]byte(body), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		call, err := openaichat.Upstream{}.Encode(req, caps)
		if err != nil {
			t.Fatal(err)
		}
		return string(call.Body), call.Notes.String()
	}
	fitted, said, err := NewFitter(v.Quirks).Fit(dialect.OpenAIChat, []byte(body), caps.Reasons)
	if err != nil {
		t.Fatal(err)
	}
	var req dialect.Request
	if err := chat.Inspect(fitted, &req); err != nil {
		t.Fatal(err)
	}
	segments, _ := chat.Forward(nil, fitted, &req, dialect.Upstream{Model: model, AskUsage: v.Quirks.StreamUsage == UsageAsked})
	return string(bytes.Join(segments, nil)), llm.Notes(said).String()
}

const (
	asked  = `"messages":[{"role":"user","content":"x"}]`
	aTool  = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	strict = `{"type":"function","function":{"name":"g","parameters":{"type":"object"},"strict":true}}`
	aCall  = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	schema = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`
	thread = `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","reasoning_content":"t","tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]`
)

func TestQuirksOfRequests(t *testing.T) {
	for _, tt := range []struct{ name, vendor, model, in, want, notes string }{
		{
			"nothing to do, and usage asked for", "openai", "gpt-4.1",
			`{"model":"a","stream":true,"seed":1,"max_completion_tokens":5,` + asked + `}`,
			`{"model":"gpt-4.1","stream":true,"seed":1,"max_completion_tokens":5,` + asked + `,"stream_options":{"include_usage":true}}`, "",
		},
		{
			"tools while it thinks", "openai", "gpt-5.6-sol",
			`{"model":"a","tools":[` + aTool + `],` + asked + `}`,
			`{"model":"gpt-5.6-sol","reasoning_effort":"none","tools":[` + aTool + `],` + asked + `}`, "default:reasoning_effort",
		},
		{
			"tools while it would think", "openai", "gpt-5.4",
			`{"model":"a","reasoning_effort":"high","tools":[` + aTool + `],` + asked + `}`,
			`{"model":"gpt-5.4","reasoning_effort":"none","tools":[` + aTool + `],` + asked + `}`, "drop:reasoning_effort",
		},
		{
			"tools while it does not", "openai", "gpt-5.4",
			`{"model":"a","tools":[` + aTool + `],` + asked + `}`,
			`{"model":"gpt-5.4","tools":[` + aTool + `],` + asked + `}`, "",
		},
		{
			"temperature while it thinks", "openai", "gpt-5.2",
			`{"model":"a","reasoning_effort":"low","temperature":0.5,` + asked + `}`,
			`{"model":"gpt-5.2","reasoning_effort":"low",` + asked + `}`, "drop:temperature",
		},
		{
			"temperature while it does not", "openai", "gpt-5.2",
			`{"model":"a","reasoning_effort":"none","temperature":0.5,` + asked + `}`,
			`{"model":"gpt-5.2","temperature":0.5,"reasoning_effort":"none",` + asked + `}`, "",
		},
		{
			"developer", "azure", "gpt-4.1",
			`{"model":"a","messages":[{"role":"developer","content":"d"},{"role":"user","content":"x"}]}`,
			`{"model":"gpt-4.1","messages":[{"role":"developer","content":"d"},{"role":"user","content":"x"}]}`, "",
		},
		{
			"choice while it thinks", "deepseek", "deepseek-v4-pro",
			`{"model":"a","max_completion_tokens":5,"tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"deepseek-v4-pro","max_tokens":5,"tools":[` + aTool + `],"tool_choice":"auto",` + asked + `}`, "rename:max_tokens,degrade:tool_choice",
		},
		{
			"choice while it does not", "deepseek", "deepseek-v4-pro",
			`{"model":"a","thinking":{"type":"disabled"},"tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"deepseek-v4-pro","thinking":{"type":"disabled"},"tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`, "",
		},
		{
			"schema, and efforts", "deepseek", "deepseek-v4-pro",
			`{"model":"a","reasoning_effort":"medium",` + schema + `,` + asked + `}`,
			`{"model":"deepseek-v4-pro","response_format":{"type":"json_object"},"thinking":{"type":"enabled"},"reasoning_effort":"high","messages":[{"role":"system","content":"Answer with a JSON object that matches this JSON schema:\n{\"type\":\"object\"}"},{"role":"user","content":"x"}]}`, "degrade:response_format,clamp:reasoning_effort",
		},
		{
			"JSON that nobody speaks of", "deepseek", "deepseek-chat",
			`{"model":"a","response_format":{"type":"json_object"},` + asked + `}`,
			`{"model":"deepseek-chat","response_format":{"type":"json_object"},"messages":[{"role":"system","content":"Answer with a JSON object."},{"role":"user","content":"x"}]}`, "degrade:response_format",
		},
		{
			"JSON that is spoken of", "deepseek", "deepseek-chat",
			`{"model":"a","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"as Json"}]}`,
			`{"model":"deepseek-chat","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"as Json"}]}`, "",
		},
		{
			"thoughts go back always", "deepseek", "deepseek-v4-pro",
			`{"model":"a","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"},{"role":"assistant","content":"w","reasoning_content":"t","prefix":true}]}`,
			`{"model":"deepseek-v4-pro","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"","content":"y"},{"role":"user","content":"z"},{"role":"assistant","reasoning_content":"t","content":"w","prefix":true}]}`, "",
		},
		{
			"thoughts never go back", "deepseek", "deepseek-r1",
			`{"model":"a",` + thread + `}`,
			`{"model":"deepseek-r1","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, "drop:reasoning_content",
		},
		{
			"choice of a model that does not think", "deepseek", "deepseek-chat",
			`{"model":"a","tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"deepseek-chat","tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`, "",
		},
		{
			"names and n", "groq", "llama-3.3-70b",
			`{"model":"a","n":1,"logprobs":true,"messages":[{"role":"user","name":"u","content":"x"}]}`,
			`{"model":"llama-3.3-70b",` + asked + `}`, "drop:logprobs,drop:name",
		},
		{
			"efforts", "groq", "qwen/qwen3-32b",
			`{"model":"a","reasoning_effort":"high","include_reasoning":false,` + asked + `}`,
			`{"model":"qwen/qwen3-32b","reasoning_format":"hidden","reasoning_effort":"default",` + asked + `}`, "clamp:reasoning_effort",
		},
		{
			"hidden", "groq", "openai/gpt-oss-120b",
			`{"model":"a","reasoning_effort":"none","include_reasoning":false,` + asked + `}`,
			`{"model":"openai/gpt-oss-120b","include_reasoning":false,"reasoning_effort":"low",` + asked + `}`, "degrade:effort_none",
		},
		{
			"schema", "groq", "openai/gpt-oss-120b",
			`{"model":"a","stream":true,` + schema + `,` + asked + `}`,
			`{"model":"openai/gpt-oss-120b",` + schema + `,` + asked + `}`, "degrade:stream",
		},
		{
			"ids and choice", "mistral", "mistral-large-latest",
			`{"model":"a","max_completion_tokens":5,"seed":1,"user":"u","tools":[` + aTool + `],"tool_choice":"required","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"},{"role":"user","content":"y"}]}`,
			`{"model":"mistral-large-latest","max_tokens":5,"random_seed":1,"tools":[` + aTool + `],"tool_choice":"any","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"6UaBcmiUS","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"6UaBcmiUS","name":"f","content":"r"},{"role":"assistant","content":"OK."},{"role":"user","content":"y"}]}`, "rename:max_tokens,rename:seed,drop:user,rename:tool_call_id,degrade:user_after_tool",
		},
		{
			"files", "mistral", "mistral-large-latest",
			`{"model":"a","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}]}]}`,
			`{"model":"mistral-large-latest","messages":[{"role":"user","content":[{"type":"document_url","document_url":"data:application/pdf;base64,AA=="}]}]}`, "",
		},
		{
			"document", "mistral", "mistral-large-latest",
			`{"model":"a","messages":[{"role":"user","content":[{"type":"document_url","document_url":"https://x.test/a.pdf"}]}]}`,
			`{"model":"mistral-large-latest","messages":[{"role":"user","content":[{"type":"document_url","document_url":"https://x.test/a.pdf"}]}]}`, "",
		},
		{
			"thoughts", "mistral", "magistral-medium-latest",
			`{"model":"a","reasoning_effort":"medium",` + thread + `}`,
			`{"model":"magistral-medium-latest","reasoning_effort":"high","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}],"tool_calls":[{"id":"6UaBcmiUS","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"6UaBcmiUS","name":"f","content":"r"}]}`, "clamp:reasoning_effort,rename:tool_call_id",
		},
		{
			"what reasoning models refuse", "xai", "grok-4.5",
			`{"model":"a","stop":["x"],"presence_penalty":1,` + asked + `}`,
			`{"model":"grok-4.5",` + asked + `}`, "drop:stop,drop:presence_penalty",
		},
		{
			"effort none", "xai", "grok-4.5",
			`{"model":"a","reasoning_effort":"none",` + asked + `}`,
			`{"model":"grok-4.5","reasoning_effort":"low",` + asked + `}`, "degrade:effort_none",
		},
		{
			"wish", "openrouter", "openai/gpt-5.2",
			`{"model":"a","reasoning":{"enabled":true,"effort":"high"},` + asked + `}`,
			`{"model":"openai/gpt-5.2","reasoning":{"enabled":true,"effort":"high"},` + asked + `}`, "",
		},
		{
			"details", "openrouter", "openai/gpt-5.2",
			`{"model":"a","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","format":"unknown","index":0},{"index":1, "type":"reasoning.encrypted","data":"E","id":"rs","format":"openai-responses-v1"}]}]}`,
			`{"model":"openai/gpt-5.2","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"t","format":"unknown","index":0},{"index":1, "type":"reasoning.encrypted","data":"E","id":"rs","format":"openai-responses-v1"}],"content":"y"}]}`, "",
		},
		{
			"signed calls", "openrouter", "google/gemini-3.5-flash",
			`{"model":"a","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + aCall + `],"reasoning_details":[{"type":"reasoning.encrypted","data":"S","id":"c","format":"google-gemini-v1","index":0}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`,
			`{"model":"google/gemini-3.5-flash","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"S","id":"c","format":"google-gemini-v1","index":0}],"content":null,"tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, "",
		},
		{
			"signed calls of others", "openrouter", "google/gemini-3.5-flash",
			`{"model":"a","reasoning_effort":"low","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`,
			`{"model":"google/gemini-3.5-flash","reasoning":{"enabled":true},"reasoning_effort":"low","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"S","id":"c","format":"google-gemini-v1","index":0}],"content":null,"tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, "",
		},
		{
			"n", "together", "meta-llama/Llama-4",
			`{"model":"a","max_completion_tokens":5,"n":1,` + asked + `}`,
			`{"model":"meta-llama/Llama-4","max_tokens":5,` + asked + `}`, "rename:max_tokens",
		},
		{
			"no thinking", "together", "Qwen/Qwen3-235B",
			`{"model":"a","n":2,"reasoning_effort":"none",` + asked + `}`,
			`{"model":"Qwen/Qwen3-235B","n":2,"reasoning":{"enabled":false},` + asked + `}`, "",
		},
		{
			"budget", "fireworks", "kimi-k2.6",
			`{"model":"a","reasoning_effort":2000,` + asked + `}`,
			`{"model":"kimi-k2.6","reasoning_effort":2000,` + asked + `}`, "",
		},
		{
			"minimal", "fireworks", "gpt-oss-120b",
			`{"model":"a","reasoning_effort":"minimal",` + asked + `}`,
			`{"model":"gpt-oss-120b","reasoning_effort":"low",` + asked + `}`, "clamp:reasoning_effort",
		},
		{
			"strict", "cerebras", "gpt-oss-120b",
			`{"model":"a","logit_bias":{},"tools":[` + aTool + `,` + strict + `],` + asked + `}`,
			`{"model":"gpt-oss-120b","tools":[` + aTool + `,{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}],` + asked + `}`, "drop:logit_bias,drop:strict",
		},
		{
			"strict all", "cerebras", "qwen-3-coder",
			`{"model":"a","stream":true,"tools":[` + strict + `],` + schema + `,` + asked + `}`,
			`{"model":"qwen-3-coder",` + schema + `,"tools":[` + strict + `],` + asked + `}`, "degrade:stream",
		},
		{
			"history", "cerebras", "zai-glm-4.7",
			`{"model":"a","reasoning_effort":"none","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"t"},{"role":"user","content":"z"}]}`,
			`{"model":"zai-glm-4.7","disable_reasoning":true,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"<think>t</think>y"},{"role":"user","content":"z"}]}`, "",
		},
		{
			"system", "ollama", "qwen3",
			`{"model":"a","max_completion_tokens":5,"messages":[{"role":"developer","content":"d"},{"role":"system","content":"s"},{"role":"user","content":"x"}]}`,
			`{"model":"qwen3","max_tokens":5,"messages":[{"role":"system","content":"d\n\ns"},{"role":"user","content":"x"}]}`, "rename:max_tokens",
		},
		{
			"no thinking", "vllm", "Qwen/Qwen3-8B",
			`{"model":"a","reasoning_effort":"none",` + asked + `}`,
			`{"model":"Qwen/Qwen3-8B","chat_template_kwargs":{"enable_thinking":false},` + asked + `}`, "",
		},
		{
			"limit", "sglang", "Qwen/Qwen3-8B",
			`{"model":"a","max_completion_tokens":5,` + asked + `}`,
			`{"model":"Qwen/Qwen3-8B","max_tokens":5,` + asked + `}`, "rename:max_completion_tokens",
		},
		{
			"one place for instructions", "sglang", "Qwen/Qwen3-8B",
			`{"model":"a","messages":[{"role":"user","content":"x"},{"role":"developer","content":"d"}]}`,
			`{"model":"Qwen/Qwen3-8B","messages":[{"role":"user","content":"x\n\n<system>\nd\n</system>"}]}`, "degrade:mid_system",
		},
		{
			"parallel", "llamacpp", "m",
			`{"model":"a","tools":[` + aTool + `],` + asked + `}`,
			`{"model":"m","tools":[` + aTool + `],"parallel_tool_calls":true,` + asked + `}`, "",
		},
		{
			"parallel said", "llamacpp", "m",
			`{"model":"a","tools":[` + aTool + `],"parallel_tool_calls":false,` + asked + `}`,
			`{"model":"m","tools":[` + aTool + `],"parallel_tool_calls":false,` + asked + `}`, "",
		},
		{
			"json", "lmstudio", "m",
			`{"model":"a","response_format":{"type":"json_object"},` + asked + `}`,
			`{"model":"m","response_format":{"type":"json_schema","json_schema":{"name":"json_object","schema":{"type":"object"}}},` + asked + `}`, "degrade:response_format",
		},
		{
			"limit", "lmstudio", "m",
			`{"model":"a","max_completion_tokens":5,` + asked + `}`,
			`{"model":"m","max_tokens":5,` + asked + `}`, "rename:max_completion_tokens",
		},
		{
			"choice", "moonshot", "kimi-k2.6",
			`{"model":"a","max_tokens":5,"temperature":0.3,"tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"kimi-k2.6","max_completion_tokens":5,"tools":[` + aTool + `],"tool_choice":"auto",` + asked + `}`, "rename:max_tokens,drop:temperature,degrade:tool_choice",
		},
		{
			"partial", "moonshot", "kimi-k2.6",
			`{"model":"a","thinking":{"type":"disabled"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","partial":true}]}`,
			`{"model":"kimi-k2.6","thinking":{"type":"disabled"},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","partial":true}]}`, "",
		},
		{
			"alternatives of schemas", "moonshot", "kimi-k2.5",
			`{"model":"a","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"p":{"description":"d","type":"string","anyOf":[{"minLength":1},{"type":"null"}]},` +
				`"q":{"anyOf":[{"enum":[1]},{"properties":{"r":{"anyOf":[{"const":true},{"$ref":"#"}]}}}]}}}}}],` + asked + `}`,
			`{"model":"kimi-k2.5","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"p":{"description":"d","anyOf":[{"type":"string","minLength":1},{"type":"null"}]},` +
				`"q":{"anyOf":[{"type":"number","enum":[1]},{"type":"object","properties":{"r":{"anyOf":[{"type":"boolean","const":true},{"$ref":"#"}]}}}]}}}}}],` + asked + `}`, "",
		},
		{
			"effort", "moonshot", "kimi-k3",
			`{"model":"a","reasoning_effort":"medium","tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"kimi-k3","reasoning_effort":"low","tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`, "clamp:reasoning_effort",
		},
		{
			"parallel", "qwen", "qwen3-max",
			`{"model":"a","frequency_penalty":1,"tools":[` + aTool + `],` + asked + `}`,
			`{"model":"qwen3-max","tools":[` + aTool + `],"parallel_tool_calls":true,` + asked + `}`, "drop:frequency_penalty",
		},
		{
			"audio", "qwen", "qwen3-omni",
			`{"model":"a","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}},{"type":"input_audio","input_audio":{"data":"https://x.test/a.wav","format":"wav"}}]}]}`,
			`{"model":"qwen3-omni","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"data:audio/mp3;base64,AA==","format":"mp3"}},{"type":"input_audio","input_audio":{"data":"https://x.test/a.wav","format":"wav"}}]}]}`, "",
		},
		{
			"json while it thinks", "qwen", "my-qwen",
			`{"model":"a","reasoning_effort":"high","response_format":{"type":"json_object"},` + asked + `}`,
			`{"model":"my-qwen","enable_thinking":true,"reasoning_effort":"high","messages":[{"role":"system","content":"Answer with a JSON object."},{"role":"user","content":"x"}]}`, "degrade:response_format",
		},
		{
			"markers", "qwen", "qwen3-max",
			`{"model":"a","messages":[{"role":"user","content":[{"type":"text","text":"1","cache_control":{"type":"ephemeral"}},{"type":"text","text":"2","cache_control":{"type":"ephemeral"}},{"type":"text","text":"3","cache_control":{"type":"ephemeral"}},{"type":"text","text":"4","cache_control":{"type":"ephemeral"}},{"type":"text","text":"5","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"model":"qwen3-max","messages":[{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2","cache_control":{"type":"ephemeral"}},{"type":"text","text":"3","cache_control":{"type":"ephemeral"}},{"type":"text","text":"4","cache_control":{"type":"ephemeral"}},{"type":"text","text":"5","cache_control":{"type":"ephemeral"}}]}]}`, "drop:prompt_cache_breakpoint",
		},
		{
			"no thinking", "qwen", "my-qwen",
			`{"model":"a","reasoning_effort":"none",` + asked + `}`,
			`{"model":"my-qwen","enable_thinking":false,` + asked + `}`, "",
		},
		{
			"temperature", "zhipu", "glm-4-plus",
			`{"model":"a","temperature":0.0,"user":"u",` + asked + `}`,
			`{"model":"glm-4-plus","do_sample":false,"user_id":"u",` + asked + `}`, "rename:temperature,rename:user",
		},
		{
			"tools in a stream", "zhipu", "glm-4.7",
			`{"model":"a","stream":true,"tools":[` + aTool + `],"tool_choice":"required",` + asked + `}`,
			`{"model":"glm-4.7","tools":[` + aTool + `],"tool_choice":"auto",` + asked + `,"stream":true,"tool_stream":true,"stream_options":{"include_usage":true}}`, "degrade:tool_choice",
		},
		{
			"no thinking, no choice", "zhipu", "glm-5.2",
			`{"model":"a","reasoning_effort":"none","tools":[` + aTool + `],"tool_choice":"none",` + asked + `}`,
			`{"model":"glm-5.2","thinking":{"type":"disabled"},` + asked + `}`, "degrade:tool_choice",
		},
		{
			"temperature and thoughts", "minimax", "MiniMax-M2.5",
			`{"model":"a","temperature":1.5,"max_tokens":5,"store":true,"tools":[` + aTool + `],"tool_choice":"auto",` + thread + `}`,
			`{"model":"MiniMax-M2.5","max_completion_tokens":5,"temperature":1,"tools":[` + aTool + `],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"<think>t</think>","tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, "rename:max_tokens,clamp:temperature,drop:store",
		},
		{
			"no thinking", "minimax", "MiniMax-M3.1",
			`{"model":"a","reasoning_effort":"none","metadata":{},` + thread + `}`,
			`{"model":"MiniMax-M3.1","thinking":{"type":"disabled"},"messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","content":"","tool_calls":[` + aCall + `]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, "drop:metadata",
		},
		{
			"limit", "gemini-openai", "gemini-3.5-flash",
			`{"model":"a","max_tokens":5,"extra_body":{"google":{}},` + asked + `}`,
			`{"model":"gemini-3.5-flash","max_tokens":5,"extra_body":{"google":{}},` + asked + `}`, "",
		},
		{
			"developer", "bedrock-mantle", "openai.gpt-oss-120b",
			`{"model":"a","messages":[{"role":"developer","content":"d"},{"role":"user","content":"x"}]}`,
			`{"model":"openai.gpt-oss-120b","messages":[{"role":"developer","content":"d"},{"role":"user","content":"x"}]}`, "",
		},
	} {
		t.Run(tt.vendor+": "+tt.name, func(t *testing.T) {
			out, notes := outgoing(t, tt.vendor, tt.model, tt.in)
			if out != tt.want || notes != tt.notes {
				t.Errorf("got  %s %q\nwant %s %q", out, notes, tt.want, tt.notes)
			}
		})
	}
}

// A budget of thinking goes where the server has a member for it.
func TestQuirksOfBudgets(t *testing.T) {
	const in = `{"model":"a","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":5000},"messages":[{"role":"user","content":"x"}]}`
	for _, tt := range []struct{ vendor, model, want string }{
		{"vllm", "m", `{"model":"m","max_completion_tokens":9000,"chat_template_kwargs":{"enable_thinking":true},"thinking_token_budget":5000,` + asked + `}`},
		{"llamacpp", "m", `{"model":"m","max_tokens":9000,"thinking_budget_tokens":5000,` + asked + `}`},
		{"qwen", "m", `{"model":"m","max_tokens":9000,"enable_thinking":true,"thinking_budget":5000,` + asked + `}`},
		{"fireworks", "m", `{"model":"m","max_tokens":9000,"reasoning_effort":5000,` + asked + `}`},
		{"openrouter", "m", `{"model":"m","max_tokens":9000,"reasoning":{"max_tokens":5000},` + asked + `}`},
		{"groq", "openai/gpt-oss-20b", `{"model":"openai/gpt-oss-20b","max_completion_tokens":9000,"reasoning_effort":"medium",` + asked + `}`},
	} {
		req, err := anthropic.Dialect{}.Decode([]byte(in), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		call, err := openaichat.Upstream{}.Encode(req, of(tt.vendor, tt.model, dialect.OpenAIChat))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(call.Body); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.vendor, got, tt.want)
		}
	}
}

// received is what a client of Chat Completions gets of a vendor's stream, by
// the way that the gateway takes.
func received(t *testing.T, vendor, model string, data ...string) string {
	t.Helper()
	caps, chat := of(vendor, model, dialect.OpenAIChat), openaichat.Dialect{}
	follower := chat.Follow(&dialect.Request{})
	if caps.Retold {
		req, err := chat.Decode([]byte(`{"model":"a","stream":true,`+asked+`}`), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		ask := &dialect.Ask{Request: req, ID: "1", Model: "m", Begun: time.Unix(1, 0), Vendor: caps.Vendor}
		if follower, err = dialect.Translate(req, chat, openaichat.Upstream{}, caps, ask); err != nil {
			t.Fatal(err)
		}
	}
	var out []byte
	for _, d := range data {
		f := sse.Frame{Data: []byte(d), Canonical: true}
		pass, err := false, error(nil)
		if out, pass, err = follower.Frame(out, f); err != nil {
			t.Fatal(err)
		}
		if pass {
			out = sse.Append(out, nil, f.Data)
		}
	}
	// What all chunks have is left out.
	short := strings.NewReplacer("data: ", "", "\n\n", "\n", head, "", `,"logprobs":null,"finish_reason":null}]}`, "")
	return short.Replace(string(out))
}

const head = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`

// deltas makes chunks of deltas, and the end of a stream.
func deltas(members ...string) (data []string) {
	for _, m := range members {
		data = append(data, head+"{"+m+`},"logprobs":null,"finish_reason":null}]}`)
	}
	return append(data, head+`{},"logprobs":null,"finish_reason":"stop"}]}`, "[DONE]")
}

func TestQuirksOfAnswers(t *testing.T) {
	const (
		begin = `{"role":"assistant","content":"","refusal":null}` + "\n"
		told  = begin + `{"reasoning_content":"hm"}` + "\n" + `{"content":"x"}` + "\n"
		end   = `{},"logprobs":null,"finish_reason":"stop"}]}` + "\n[DONE]\n"
	)
	for _, tt := range []struct {
		name, vendor, model string
		in                  []string
		want                string
	}{
		{"thinking in tags", "together", "deepseek-ai/DeepSeek-R1", deltas(`"content":"<th"`, `"content":"ink>hm</think>\n\nx"`), told + end},
		{"thinking in tags", "groq", "qwen/qwen3-32b", deltas(`"content":"<think>hm</think>x"`), told + end},
		{"thinking apart", "groq", "openai/gpt-oss-120b", deltas(`"role":"assistant","content":"","reasoning":"hm"`, `"content":"x"`),
			`{"role":"assistant","content":"","reasoning":"hm"}` + "\n" + `{"content":"x"}` + "\n" + end},
		{"thinking in tags", "minimax", "MiniMax-M2.5", deltas(`"content":"<think>hm</think>x"`), told + end},
		{"snapshots", "minimax", "MiniMax-M2.5", deltas(
			`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"h"}]`,
			`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm"}]`,
			`"content":"x","reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm"}]`),
			begin + `{"reasoning_content":"h"}` + "\n" + `{"reasoning_content":"m"}` + "\n" + `{"content":"x"}` + "\n" + end},
		{"thinking in parts", "mistral", "magistral-medium-latest", deltas(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`, `"content":[{"type":"text","text":"x"}]`), told + end},
		{"no thinking", "mistral", "mistral-large-latest", deltas(`"role":"assistant","content":"<think>hm</think>x"`), `{"role":"assistant","content":"<think>hm</think>x"}` + "\n" + end},
		{"details pass", "openrouter", "anthropic/claude-opus-4.8", deltas(`"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","signature":"S","format":"anthropic-claude-v1","index":0}]`),
			`{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","signature":"S","format":"anthropic-claude-v1","index":0}]}` + "\n" + end},
		{"a finish in another word", "together", "moonshotai/Kimi-K2-Instruct", []string{head + `{"content":"x"},"finish_reason":"eos"}]}`, "[DONE]"}, `{"content":"x","role":"assistant"},"finish_reason":"stop"}]}` + "\n[DONE]\n"},
	} {
		t.Run(tt.vendor+": "+tt.name, func(t *testing.T) {
			if got := received(t, tt.vendor, tt.model, tt.in...); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// What a stream of many vendors' models brings of signed thinking comes back
// unchanged and in its order, also from clients of another dialect.
func TestQuirksOfSignedThinking(t *testing.T) {
	for _, tt := range []struct {
		name, model string
		in          []string
		want        string // the message that goes back
	}{
		{
			"Claude", "anthropic/claude-opus-4.8",
			deltas(`"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","format":"anthropic-claude-v1","index":0}]`,
				`"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","format":"anthropic-claude-v1","index":0}]`,
				`"reasoning_details":[{"type":"reasoning.text","signature":"S","format":"anthropic-claude-v1","index":0}]`,
				`"reasoning_details":[{"type":"reasoning.encrypted","data":"R","format":"anthropic-claude-v1","index":1}]`,
				`"tool_calls":[{"index":0,`+aCall[1:]+`]`),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"S","format":"anthropic-claude-v1","index":0},` +
				`{"type":"reasoning.encrypted","data":"R","format":"anthropic-claude-v1","index":1}],"content":null,"tool_calls":[` + aCall + `]}`,
		},
		{
			"GPT", "openai/gpt-5.4",
			deltas(`"reasoning":"hm","reasoning_details":[{"type":"reasoning.summary","summary":"hm","id":"rs","format":"openai-responses-v1","index":0}]`,
				`"reasoning_details":[{"type":"reasoning.encrypted","data":"E","id":"rs","format":"openai-responses-v1","index":0}]`,
				`"tool_calls":[{"index":0,`+aCall[1:]+`]`),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.summary","summary":"hm","id":"rs","format":"openai-responses-v1","index":0},` +
				`{"type":"reasoning.encrypted","data":"E","id":"rs","format":"openai-responses-v1","index":0}],"content":null,"tool_calls":[` + aCall + `]}`,
		},
		{
			"Gemini", "google/gemini-3.5-flash",
			deltas(`"reasoning_details":[{"type":"reasoning.encrypted","data":"S","id":"c","format":"google-gemini-v1","index":0}],"tool_calls":[{"index":0,` + aCall[1:] + `]`),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"S","id":"c","format":"google-gemini-v1","index":0}],"content":null,"tool_calls":[` + aCall + `]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			caps, key := of("openrouter", tt.model, dialect.OpenAIChat), seal.Key{}
			first := `{"model":"a","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"}`
			req, err := anthropic.Dialect{}.Decode([]byte(first+"]}"), key)
			if err != nil {
				t.Fatal(err)
			}
			decoder, fold := openaichat.Upstream{}.Answers(&dialect.Call{}, caps), &llm.Folder{}
			for _, d := range tt.in {
				events, err := decoder.Frame(nil, sse.Frame{Data: []byte(d)})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					fold.Add(e)
				}
			}
			answer := anthropic.Dialect{}.AppendAnswer(nil, &fold.Answer, &dialect.Ask{Request: req, ID: "1", Model: "m", Vendor: caps.Vendor, Seal: key})
			content := dialect.Member(answer, "content")
			second := first + `,{"role":"assistant","content":` + string(content) + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}`
			if req, err = (anthropic.Dialect{}).Decode([]byte(second), key); err != nil {
				t.Fatal(err)
			}
			call, err := openaichat.Upstream{}.Encode(req, caps)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(call.Body), tt.want) {
				t.Errorf("the client has %s\ngot  %s\nwant %s", content, call.Body, tt.want)
			}
		})
	}
}
