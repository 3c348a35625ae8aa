package provider

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
)

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

// cloudPlace are the variables that say where in Google Cloud to call.
var (
	cloudProject  = []string{"GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT"}
	cloudLocation = []string{"GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION"}
	cloudHosts    = []Pair{
		{"global", "aiplatform"}, {"eu", "aiplatform.eu.rep"}, {"us", "aiplatform.us.rep"}, {"*", "*-aiplatform"},
	}
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
			TokenLimit:  "max_completion_tokens",
			Developer:   true,
			Native:      true,
			Breakpoints: true,
			Reasoning:   Reasoning{EffortAs: []Pair{{"max", "xhigh"}}},
		},
	},
	// https://docs.anthropic.com/en/docs/about-claude/models
	{
		Name:    "anthropic",
		Title:   "Anthropic",
		BaseURL: "https://api.anthropic.com/v1",
		BaseEnv: []BaseVar{{Env: "ANTHROPIC_BASE_URL", Path: "/v1"}},
		KeyEnv:  []string{"ANTHROPIC_API_KEY"},
		Auth:    XAPIKey,
		Speaks:  []dialect.Name{dialect.Anthropic},
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
		// What its models encrypt, no other account can read.
		Opaque: "azure",
		Quirks: Quirks{
			NoFiles:    true,
			TokenLimit: "max_completion_tokens",
			Developer:  true,
			Native:     true,
			Reasoning:  Reasoning{EffortAs: []Pair{{"max", "xhigh"}}},
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
			Rename:   []Pair{oldLimit},
			Formats:  []string{"json_object"},
			JSONWord: true,
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
			SchemaWhole: true,
			Reasoning:   Reasoning{Out: "reasoning"},
			Variants: []Variant{
				{Names: []string{"gpt-oss*"}, Reasoning: &Reasoning{Hide: `{"include_reasoning":false}`, Out: "reasoning"}},
				// They think in their text unless told otherwise.
				{Names: []string{"qwen*"}, Reasoning: &Reasoning{
					Hide:    `{"reasoning_format":"hidden"}`,
					Efforts: []string{"none", "default"},
					EffortAs: []Pair{
						{"minimal", "default"}, {"low", "default"}, {"medium", "default"}, {"high", "default"}, {"xhigh", "default"}, {"max", "default"},
					},
					Out:  "reasoning",
					Tags: true,
				}},
			},
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
			DocumentURL: true,
			Tools: Tools{
				Words:       []Pair{{"required", "any"}},
				CallID:      `^[a-zA-Z0-9]{9}$`,
				AnswerFirst: true,
				Named:       true,
			},
			Reasoning: Reasoning{
				Efforts: []string{"none", "high"},
				Out:     "content",
				Echo:    EchoAlways,
			},
			Answer: Answer{Finish: []Pair{{"model_length", "length"}}},
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
			Answer:        Answer{ReasoningApart: true},
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
			StreamUsage:  UsageAlways,
			Developer:    true,
			CacheControl: true,
			TopK:         true,
			Stateless:    true,
			Reasoning: Reasoning{
				On:   `{"reasoning":{"enabled":true}}`,
				Off:  `{"reasoning":{"enabled":false}}`,
				Out:  "reasoning_details",
				Echo: EchoAlways,
			},
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
			Rename:   []Pair{oldLimit},
			ManyOnly: true,
			TopK:     true,
			Reasoning: Reasoning{
				On:   `{"reasoning":{"enabled":true}}`,
				Off:  `{"reasoning":{"enabled":false}}`,
				Out:  "reasoning",
				Tags: true, // of some models
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
			TopK:   true,
			Reasoning: Reasoning{
				EffortAs: []Pair{{"minimal", "low"}},
				Budget:   "reasoning_effort", // which may be a number
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
			SchemaWhole: true,
			Tools:       Tools{Choice: []string{"none", "auto", "required"}, StrictAlike: true},
			Reasoning: Reasoning{
				On:   `{"disable_reasoning":false}`,
				Off:  `{"disable_reasoning":true}`,
				Hide: `{"reasoning_format":"hidden"}`,
				Out:  "reasoning",
			},
			Variants: []Variant{
				{Names: []string{"zai-glm-*", "glm-*"}, Reasoning: &Reasoning{
					On:       `{"disable_reasoning":false}`,
					Off:      `{"disable_reasoning":true}`,
					Hide:     `{"reasoning_format":"hidden"}`,
					Out:      "reasoning",
					Echo:     EchoAlways,
					EchoTags: true,
				}},
			},
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
			TopK:       true,
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
			TopK:      true,
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
			TopK:      true,
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
			TopK:    true,
			Formats: []string{"json_schema"},
			// Or "reasoning", by a setting of the server.
			Reasoning: Reasoning{Out: "reasoning_content"},
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
			TypedAnyOf:  true,
			OneChoice:   true,
			TokenLimit:  "max_completion_tokens",
			Reasoning: Reasoning{
				On:   `{"thinking":{"type":"enabled"}}`,
				Off:  `{"thinking":{"type":"disabled"}}`,
				Out:  "reasoning_content",
				Echo: EchoTools,
			},
			Variants: []Variant{
				{Names: []string{"kimi-k2.[67]*"}, Tools: &Tools{Choice: []string{"none", "auto", "function"}}},
			},
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
			Drop:         []string{"frequency_penalty"},
			NoFiles:      true,
			AudioURL:     true,
			CacheControl: true,
			MaxMarks:     4,
			TopK:         true,
			NoThinkJSON:  true,
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
			Tools:   Tools{Choice: []string{"auto"}, Stream: `{"tool_stream":true}`},
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
			Variants: []Variant{
				{Names: []string{"glm-4", "glm-4-*", "glm-4v*", "glm-3*"}, Temperature: &Temperature{Zero: `{"do_sample":false}`}},
			},
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
			Tools:      Tools{Choice: []string{}}, // some models know no tool_choice
			Reasoning: Reasoning{
				On:   `{"thinking":{"type":"adaptive"}}`,
				Off:  `{"thinking":{"type":"disabled"}}`,
				Out:  "reasoning_content",
				Echo: EchoTools,
				Tags: true,
			},
			Variants: []Variant{
				{Names: []string{"minimax-m2*", "minimax-m1*"}, Temperature: &Temperature{Low: 0.01, High: 1}, Reasoning: &Reasoning{
					Out: "reasoning_content", Echo: EchoTools, Tags: true, EchoTags: true, Snapshots: true,
				}},
			},
		},
	},
	// https://ai.google.dev/gemini-api/docs/models
	{
		Name:    "gemini",
		Title:   "Google Gemini",
		BaseURL: "https://generativelanguage.googleapis.com/v1beta",
		BaseEnv: []BaseVar{{Env: "GOOGLE_GEMINI_BASE_URL", Path: "/v1beta"}},
		KeyEnv:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		Auth:    GoogAPIKey,
		Speaks:  []dialect.Name{dialect.Gemini},
	},
	// https://ai.google.dev/gemini-api/docs/openai
	// Many members are ignored there: for those who must have the bytes pass.
	{
		Name:    "gemini-openai",
		Title:   "Google Gemini (OpenAI)",
		BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
		KeyEnv:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		ByName:  true,
		Speaks:  []dialect.Name{dialect.OpenAIChat},
		Same:    "gemini",
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
		},
	},
	// https://cloud.google.com/vertex-ai/generative-ai/docs/models
	{
		Name:    "vertex",
		Title:   "Vertex AI",
		BaseURL: "https://{host}.googleapis.com/v1",
		Fill: []Fill{
			{Mark: "{host}", Env: cloudLocation, Words: cloudHosts},
			{Mark: "{location}", Env: cloudLocation},
			{Mark: "{project}", Env: cloudProject},
		},
		Place:  Place{Project: "{project}", Location: "{location}"},
		Means:  []string{"GOOGLE_APPLICATION_CREDENTIALS"},
		Auth:   GoogleOAuth,
		Speaks: []dialect.Name{dialect.Gemini},
		Listed: Listed{Vendor: "google-vertex", Models: "gemini-*"},
	},
	// https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude
	// Claude on Vertex AI: another dialect at other paths.
	{
		Name:    "vertex-anthropic",
		Title:   "Vertex AI (Claude)",
		BaseURL: "https://{host}.googleapis.com/v1/projects/{project}/locations/{location}/publishers/anthropic/models",
		Fill: []Fill{
			{Mark: "{host}", Env: cloudLocation, Words: cloudHosts},
			{Mark: "{location}", Env: cloudLocation},
			{Mark: "{project}", Env: cloudProject},
		},
		Means:  []string{"GOOGLE_APPLICATION_CREDENTIALS"},
		Auth:   GoogleOAuth,
		ByName: true,
		Speaks: []dialect.Name{dialect.Anthropic},
		Listed: Listed{Vendor: "google-vertex-anthropic", Models: "claude-*"},
		Quirks: Quirks{InPath: true},
	},
	// https://docs.aws.amazon.com/bedrock/latest/userguide/models-supported.html
	{
		Name:    "bedrock",
		Title:   "Amazon Bedrock",
		BaseURL: "https://bedrock-runtime.{region}.amazonaws.com",
		Fill:    []Fill{{Mark: "{region}", Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}}},
		BaseEnv: []BaseVar{{Env: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}},
		KeyEnv:  []string{"AWS_BEARER_TOKEN_BEDROCK"},
		Means:   []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
		Auth:    SigV4,
		Speaks:  []dialect.Name{dialect.Bedrock},
		Listed:  Listed{Vendor: "bedrock", Models: "*"},
	},
	// Bedrock in OpenAI's dialects: the way to gpt, gpt-oss and grok there.
	{
		Name:    "bedrock-mantle",
		Title:   "Amazon Bedrock (OpenAI)",
		BaseURL: "https://bedrock-mantle.{region}.api.aws/v1",
		Fill:    []Fill{{Mark: "{region}", Env: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}}},
		KeyEnv:  []string{"AWS_BEARER_TOKEN_BEDROCK"},
		ByName:  true,
		Speaks:  []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses},
		Same:    "bedrock",
		Quirks: Quirks{
			TokenLimit: "max_completion_tokens",
			Developer:  true,
		},
	},
}
