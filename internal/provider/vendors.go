// Package provider holds what is known of the vendors that Limen can call, as
// data: their addresses, the names of the variables that hold their keys, how
// they depart from the OpenAI dialect, and what their models can do. It also
// finds vendors in an environment and on this machine, and reads their model
// lists.
//
// It knows nothing of calls, routes and prices, and it never holds a key: only
// the name of the variable to read it from.
package provider

import (
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
)

// A Vendor is one company or server program that serves models.
type Vendor struct {
	Name  string // in configuration and logs: lower case, never changes
	Title string // for people

	// BaseURL is everything before "/chat/completions", without a final slash;
	// the model list is at BaseURL + "/models". Marks such as {region} are
	// filled from the environment as Fill says.
	BaseURL string
	Fill    []Fill
	// Cloud is the vendor's own service, for a server that is otherwise local.
	Cloud string
	// BaseEnv are the variables that replace BaseURL. The first that is set wins.
	BaseEnv []BaseVar

	KeyEnv []string // variables that hold the key; the first that is set wins
	Auth   Auth

	// Speaks lists the OpenAI dialects served under BaseURL. The first carries
	// the most, and is the one to translate to.
	Speaks []dialect.Name

	// OwnedBy is what a local server writes as "owned_by" in its model list,
	// where that tells it from others on the same port. Empty: the port tells.
	OwnedBy string

	Quirks Quirks
}

// A Fill names the variables whose first set value replaces Mark in a base URL.
type Fill struct {
	Mark string
	Env  []string
}

// A BaseVar is a variable that holds the address of a server. Path is appended
// where the value does not end in it already.
type BaseVar struct {
	Env  string
	Path string
}

// Auth says how a credential is sent.
type Auth uint8

const (
	Bearer       Auth = iota // Authorization: Bearer KEY
	APIKeyHeader             // api-key: KEY
)

// Quirks are a vendor's departures from the OpenAI dialect. They hold for its
// service as a whole; what one model can or cannot do is in Model. The zero
// value is right for a server of which nothing more is known.
//
// Member names are those of a Chat Completions body.
type Quirks struct {
	// Drop, Rename and StreamUsage also hold where a client's own bytes pass.
	// Drop names top-level members that the vendor answers with an error. What
	// it merely ignores is not here.
	Drop []string
	// DropReasoning is as Drop, but only for models that reason.
	DropReasoning []string
	// Rename moves top-level members. One whose new name is taken is dropped.
	Rename      []Pair
	StreamUsage StreamUsage

	Strict    bool // an unknown member is an error: none may be added
	OneChoice bool // n other than 1 is an error
	NoNames   bool // messages[].name is an error
	NoFiles   bool // no content part of type "file"

	TokenLimit string // the member that limits the answer; empty is "max_tokens"
	Developer  bool   // takes the role "developer"; otherwise it is sent as "system"
	// OneSystem: the chat template may demand a single system message, and
	// that it comes first.
	OneSystem bool
	// Stateless: Responses are served, but none is stored.
	Stateless bool

	// Formats lists what response_format.type may be besides "text". Nil is
	// "json_object" and "json_schema".
	Formats []string
	// SchemaAlone: some models take no json_schema beside tools or in a stream.
	SchemaAlone bool

	Tools     Tools
	Reasoning Reasoning
	Answer    Answer
}

// A Pair maps one word of the OpenAI dialect to a vendor's, or, in Answer, a
// vendor's to OpenAI's.
type Pair struct{ From, To string }

// StreamUsage says how the token counts of a streamed answer are had.
type StreamUsage uint8

const (
	UsageAsked  StreamUsage = iota // by sending stream_options.include_usage
	UsageAlways                    // they come unasked
)

// Tools are departures in calling tools.
type Tools struct {
	// Choice lists what tool_choice may be: "none", "auto", "required", or
	// "function" for a named one. Nil is all four.
	Choice []string
	// Thinking is Choice while the model thinks. Nil is the same as Choice.
	Thinking []string
	Words    []Pair // other spellings of the words of tool_choice

	NoParallelFlag bool // parallel_tool_calls is not known
	ParallelOff    bool // one call at a time unless parallel_tool_calls is true
	// CallID is the pattern of every call's ID. Empty is any.
	CallID string
	// AnswerFirst: no user message directly after a tool's.
	AnswerFirst bool
}

// Reasoning is how thinking is asked for, shown and given back.
type Reasoning struct {
	// On and Off are JSON objects whose members switch thinking. Empty: no switch.
	On, Off string
	Budget  string // the member that limits thinking tokens; a dot goes one level down
	// Efforts are the values of reasoning_effort taken; EffortAs says which of
	// them stands for another. Nil: as the model says.
	Efforts  []string
	EffortAs []Pair
	// Out names where thinking appears in messages and deltas: a member, or
	// "content" for parts within it. Empty: it is not shown.
	Out  string
	Echo Echo
}

// Echo says when reasoning goes back to the vendor, in the member it came in.
type Echo uint8

const (
	EchoNever  Echo = iota
	EchoTools       // on the assistant messages of an open tool loop
	EchoAlways      // on every assistant message, unchanged
)

// Answer is what differs in what comes back.
type Answer struct {
	// UsageAt is where a stream's usage stands, when not at the top of a chunk.
	UsageAt string
	// ReasoningApart: completion_tokens leave the reasoning tokens out.
	ReasoningApart bool
	Finish         []Pair // finish reasons; "error" is a failed answer
	Error          ErrorShape
	// ErrorIn200: an error may come with status 200.
	ErrorIn200 bool
}

// ErrorShape is the form of an error body.
type ErrorShape uint8

const (
	ErrorObject   ErrorShape = iota // {"error":{"message","type","param","code"}}
	ErrorText                       // {"error":"text"}, perhaps with "code" beside it
	ErrorFlat                       // {"message","type","param","code"}
	ErrorDetail                     // {"detail":[…]} or {"object":"error","message",…}
	ErrorBaseResp                   // {"base_resp":{"status_code","status_msg"}}
)

// Local reports whether the vendor is a program on this machine, which needs
// no key and is found by Probe.
func (v Vendor) Local() bool { return strings.HasPrefix(v.BaseURL, "http://127.0.0.1:") }

// Vendors returns all vendors. What the elements point to must not be changed.
func Vendors() []Vendor { return slices.Clone(vendors) }

// Lookup returns the vendor of that name.
func Lookup(name string) (Vendor, bool) {
	for _, v := range vendors {
		if v.Name == name {
			return v, true
		}
	}
	return Vendor{}, false
}

var (
	oldLimit = Pair{"max_completion_tokens", "max_tokens"}
	newLimit = Pair{"max_tokens", "max_completion_tokens"}
)

// State of 2026-11-20. Above each row is the page that documents its vendor's
// models, where there is one.
var vendors = []Vendor{
	// https://platform.openai.com/docs/models
	{
		Name:    "openai",
		Title:   "OpenAI",
		BaseURL: "https://api.openai.com/v1",
		BaseEnv: []BaseVar{{Env: "OPENAI_BASE_URL"}},
		KeyEnv:  []string{"OPENAI_API_KEY"},
		// Newer models refuse tools together with reasoning on chat.
		Speaks: []dialect.Name{dialect.OpenAIResponses, dialect.OpenAIChat},
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
			Developer:  true,
		},
	},
	// https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/models
	// The model of a request is the name of a deployment.
	{
		Name:    "azure",
		Title:   "Azure OpenAI",
		BaseURL: "https://{resource}.openai.azure.com/openai/v1",
		Fill:    []Fill{{Mark: "{resource}", Env: []string{"AZURE_RESOURCE_NAME"}}},
		BaseEnv: []BaseVar{{Env: "AZURE_OPENAI_ENDPOINT", Path: "/openai/v1"}},
		KeyEnv:  []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"},
		Auth:    APIKeyHeader,
		Speaks:  []dialect.Name{dialect.OpenAIResponses, dialect.OpenAIChat},
		Quirks: Quirks{
			NoFiles:    true,
			TokenLimit: "max_completion_tokens",
			Developer:  true,
		},
	},
	// https://api-docs.deepseek.com/quick_start/pricing
	{
		Name:    "deepseek",
		Title:   "DeepSeek",
		BaseURL: "https://api.deepseek.com",
		KeyEnv:  []string{"DEEPSEEK_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename:  []Pair{oldLimit},
			Formats: []string{"json_object"},
			Tools: Tools{
				Thinking:       []string{"none", "auto"},
				NoParallelFlag: true,
			},
			Reasoning: Reasoning{
				On:      `{"thinking":{"type":"enabled"}}`,
				Off:     `{"thinking":{"type":"disabled"}}`,
				Efforts: []string{"low", "high", "max"},
				EffortAs: []Pair{
					{"minimal", "low"}, {"medium", "high"}, {"xhigh", "high"}, {"ultra", "max"},
				},
				Out: "reasoning_content",
				// V4 wants it on every assistant message, "" where there was none.
				Echo: EchoAlways,
			},
			Answer: Answer{Finish: []Pair{{"insufficient_system_resource", "error"}}},
		},
	},
	// https://console.groq.com/docs/models
	{
		Name:    "groq",
		Title:   "Groq",
		BaseURL: "https://api.groq.com/openai/v1",
		KeyEnv:  []string{"GROQ_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Drop:        []string{"logit_bias", "logprobs", "top_logprobs"},
			StreamUsage: UsageAlways,
			OneChoice:   true,
			NoNames:     true,
			TokenLimit:  "max_completion_tokens",
			Developer:   true,
			Stateless:   true,
			SchemaAlone: true,
			Reasoning:   Reasoning{Out: "reasoning"},
			Answer:      Answer{UsageAt: "x_groq.usage"},
		},
	},
	// https://docs.mistral.ai/getting-started/models/
	{
		Name:    "mistral",
		Title:   "Mistral",
		BaseURL: "https://api.mistral.ai/v1",
		KeyEnv:  []string{"MISTRAL_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Quirks: Quirks{
			// Every member outside its own schema is a 422. Listed are those that
			// may go; one that changes the question ("functions", "audio") stays,
			// so that the caller hears of it.
			Drop: []string{
				"logit_bias", "logprobs", "moderation", "prompt_cache_options",
				"prompt_cache_retention", "safety_identifier", "service_tier",
				"store", "stream_options", "top_logprobs", "user", "verbosity",
			},
			Rename:      []Pair{oldLimit, {"seed", "random_seed"}},
			StreamUsage: UsageAlways,
			Strict:      true,
			Tools: Tools{
				Words:       []Pair{{"required", "any"}},
				CallID:      `^[a-zA-Z0-9]{9}$`,
				AnswerFirst: true,
			},
			Reasoning: Reasoning{
				Efforts: []string{"none", "high"},
				Out:     "content",
				Echo:    EchoAlways,
			},
			Answer: Answer{
				Finish: []Pair{{"model_length", "length"}},
				Error:  ErrorDetail,
			},
		},
	},
	// https://docs.x.ai/docs/models
	{
		Name:    "xai",
		Title:   "xAI",
		BaseURL: "https://api.x.ai/v1",
		KeyEnv:  []string{"XAI_API_KEY"},
		// Chat is deprecated there, and returns no reasoning to send back.
		Speaks: []dialect.Name{dialect.OpenAIResponses, dialect.OpenAIChat},
		Quirks: Quirks{
			DropReasoning: []string{"frequency_penalty", "presence_penalty", "stop"},
			TokenLimit:    "max_completion_tokens",
			Developer:     true,
			Answer:        Answer{ReasoningApart: true, Error: ErrorText},
		},
	},
	// https://openrouter.ai/models
	{
		Name:    "openrouter",
		Title:   "OpenRouter",
		BaseURL: "https://openrouter.ai/api/v1",
		KeyEnv:  []string{"OPENROUTER_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			StreamUsage: UsageAlways,
			Developer:   true,
			Stateless:   true,
			Reasoning: Reasoning{
				On:     `{"reasoning":{"enabled":true}}`,
				Off:    `{"reasoning":{"enabled":false}}`,
				Budget: "reasoning.max_tokens",
				Out:    "reasoning_details",
				Echo:   EchoAlways,
			},
			Answer: Answer{ErrorIn200: true},
		},
	},
	// https://docs.together.ai/docs/serverless-models
	{
		Name:    "together",
		Title:   "Together AI",
		BaseURL: "https://api.together.ai/v1",
		KeyEnv:  []string{"TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Quirks: Quirks{
			Rename: []Pair{oldLimit},
			Reasoning: Reasoning{
				On:  `{"reasoning":{"enabled":true}}`,
				Off: `{"reasoning":{"enabled":false}}`,
				Out: "reasoning",
			},
			Answer: Answer{Finish: []Pair{{"eos", "stop"}}},
		},
	},
	// https://fireworks.ai/docs/
	{
		Name:    "fireworks",
		Title:   "Fireworks AI",
		BaseURL: "https://api.fireworks.ai/inference/v1",
		KeyEnv:  []string{"FIREWORKS_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename: []Pair{oldLimit},
			Reasoning: Reasoning{
				EffortAs: []Pair{{"minimal", "low"}},
				Out:      "reasoning_content",
			},
		},
	},
	// https://inference-docs.cerebras.ai/models/overview
	{
		Name:    "cerebras",
		Title:   "Cerebras",
		BaseURL: "https://api.cerebras.ai/v1",
		KeyEnv:  []string{"CEREBRAS_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Quirks: Quirks{
			Drop:        []string{"frequency_penalty", "logit_bias", "presence_penalty"},
			TokenLimit:  "max_completion_tokens",
			SchemaAlone: true,
			Tools:       Tools{Choice: []string{"none", "auto", "required"}},
			Reasoning: Reasoning{
				On:  `{"disable_reasoning":false}`,
				Off: `{"disable_reasoning":true}`,
				Out: "reasoning",
			},
			Answer: Answer{Error: ErrorFlat},
		},
	},
	// https://docs.ollama.com/cloud
	{
		Name:    "ollama",
		Title:   "Ollama",
		BaseURL: "http://127.0.0.1:11434/v1",
		Cloud:   "https://ollama.com/v1",
		BaseEnv: []BaseVar{
			{Env: "OLLAMA_BASE_URL", Path: "/v1"},
			{Env: "OLLAMA_HOST", Path: "/v1"},
		},
		KeyEnv: []string{"OLLAMA_API_KEY"},
		Speaks: []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename:    []Pair{oldLimit},
			OneSystem: true,
			Stateless: true,
			Tools:     Tools{NoParallelFlag: true},
			Reasoning: Reasoning{Out: "reasoning"},
		},
	},
	{
		Name:    "vllm",
		Title:   "vLLM",
		BaseURL: "http://127.0.0.1:8000/v1",
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		OwnedBy: "vllm",
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
			OneSystem:  true,
			Reasoning: Reasoning{
				On:     `{"chat_template_kwargs":{"enable_thinking":true}}`,
				Off:    `{"chat_template_kwargs":{"enable_thinking":false}}`,
				Budget: "thinking_token_budget",
				Out:    "reasoning",
			},
		},
	},
	{
		Name:    "sglang",
		Title:   "SGLang",
		BaseURL: "http://127.0.0.1:30000/v1",
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		OwnedBy: "sglang",
		Quirks: Quirks{
			Rename:    []Pair{oldLimit},
			OneSystem: true,
			Reasoning: Reasoning{Out: "reasoning_content"},
		},
	},
	{
		Name:    "llamacpp",
		Title:   "llama.cpp",
		BaseURL: "http://127.0.0.1:8080/v1", // Limen's own default port, too
		KeyEnv:  []string{"LLAMA_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		OwnedBy: "llamacpp",
		Quirks: Quirks{
			Rename:    []Pair{oldLimit},
			OneSystem: true,
			Tools:     Tools{ParallelOff: true},
			Reasoning: Reasoning{
				Budget: "thinking_budget_tokens",
				Out:    "reasoning_content",
			},
		},
	},
	// https://lmstudio.ai/models
	{
		Name:    "lmstudio",
		Title:   "LM Studio",
		BaseURL: "http://127.0.0.1:1234/v1",
		KeyEnv:  []string{"LMSTUDIO_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename:  []Pair{oldLimit},
			Formats: []string{"json_schema"},
			// Or "reasoning", by a setting of the server.
			Reasoning: Reasoning{Out: "reasoning_content"},
			Answer:    Answer{Error: ErrorText},
		},
	},
	// https://platform.moonshot.ai/docs/api/chat
	{
		Name:    "moonshot",
		Title:   "Moonshot AI",
		BaseURL: "https://api.moonshot.ai/v1",
		KeyEnv:  []string{"MOONSHOT_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename:      []Pair{newLimit},
			StreamUsage: UsageAlways,
			OneChoice:   true,
			TokenLimit:  "max_completion_tokens",
			Tools:       Tools{Choice: []string{"none", "auto", "function"}},
			Reasoning: Reasoning{
				On:   `{"thinking":{"type":"enabled"}}`,
				Off:  `{"thinking":{"type":"disabled"}}`,
				Out:  "reasoning_content",
				Echo: EchoTools,
			},
			Answer: Answer{UsageAt: "choices.usage"},
		},
	},
	// https://www.alibabacloud.com/help/en/model-studio/models
	{
		Name:    "qwen",
		Title:   "Alibaba Qwen",
		BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
		KeyEnv:  []string{"DASHSCOPE_API_KEY", "ALIBABA_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			NoFiles: true,
			Tools: Tools{
				Thinking:    []string{"none", "auto", "function"},
				ParallelOff: true,
			},
			Reasoning: Reasoning{
				On:     `{"enable_thinking":true}`,
				Off:    `{"enable_thinking":false}`,
				Budget: "thinking_budget",
				Out:    "reasoning_content",
			},
		},
	},
	// https://docs.z.ai/guides/overview/pricing
	{
		Name:    "zhipu",
		Title:   "Zhipu GLM",
		BaseURL: "https://api.z.ai/api/paas/v4",
		KeyEnv:  []string{"ZAI_API_KEY", "ZHIPUAI_API_KEY", "ZHIPU_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Quirks: Quirks{
			Rename:  []Pair{oldLimit, {"user", "user_id"}},
			Formats: []string{"json_object"},
			Tools:   Tools{Choice: []string{"auto"}},
			Reasoning: Reasoning{
				On:   `{"thinking":{"type":"enabled"}}`,
				Off:  `{"thinking":{"type":"disabled"}}`,
				Out:  "reasoning_content",
				Echo: EchoAlways,
			},
			Answer: Answer{Finish: []Pair{
				{"sensitive", "content_filter"},
				{"network_error", "error"},
				{"model_context_window_exceeded", "length"},
			}},
		},
	},
	// https://platform.minimax.io/docs/guides/quickstart
	{
		Name:    "minimax",
		Title:   "MiniMax",
		BaseURL: "https://api.minimax.io/v1",
		KeyEnv:  []string{"MINIMAX_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			Rename:     []Pair{newLimit},
			Strict:     true,
			OneChoice:  true,
			TokenLimit: "max_completion_tokens",
			Reasoning: Reasoning{
				On:   `{"thinking":{"type":"adaptive"}}`,
				Off:  `{"thinking":{"type":"disabled"}}`,
				Out:  "reasoning_content",
				Echo: EchoTools,
			},
			Answer: Answer{Error: ErrorBaseResp, ErrorIn200: true},
		},
	},
	// https://ai.google.dev/gemini-api/docs/models
	{
		Name:    "gemini",
		Title:   "Google Gemini",
		BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
		KeyEnv:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
		},
	},
	// https://docs.aws.amazon.com/bedrock/latest/userguide/models-supported.html
	{
		Name:    "bedrock",
		Title:   "Amazon Bedrock",
		BaseURL: "https://bedrock-mantle.{region}.api.aws/v1",
		Fill:    []Fill{{Mark: "{region}", Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}}},
		KeyEnv:  []string{"AWS_BEARER_TOKEN_BEDROCK"},
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
			Developer:  true,
		},
	},
}
