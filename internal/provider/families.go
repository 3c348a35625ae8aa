package provider

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// A family is models of one maker, and what they can do. Of the facts of single
// models only those are here that no list and no file of facts has.
type family struct {
	names []string // patterns of path.Match
	// maker is who reads the models' opaque state, in whatever dialect.
	maker string
	// in are the dialects for which the lines hold; nil is all.
	in    []dialect.Name
	lines []line
}

// A line is what some models of a family can do. The first that matches holds.
type line struct {
	names []string
	in    dialect.Name // the only one for which it holds; empty is all of the family's
	caps  llm.Caps
	// noSwitch: thinking cannot be switched there, whatever the vendor's row
	// says.
	noSwitch bool
	// noEcho: what it thought is an error when it comes back.
	noEcho bool
}

var (
	none      = []string{}
	threeWays = []string{"low", "medium", "high"}
	fourWays  = []string{"low", "medium", "high", "max"}
	fiveWays  = []string{"low", "medium", "high", "xhigh", "max"}

	messages = []dialect.Name{dialect.Anthropic, dialect.Bedrock}
	chats    = []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses}

	levels4 = []string{"minimal", "low", "medium", "high"}
	claude  = llm.BedrockCaps{Family: "anthropic"}
	latest  = llm.AnthropicCaps{Version: "2026-10-21"}
)

// State of 2026-11-20, after the makers' documents and the types of their SDKs
// of that day. Models that those do not name stand with their nearest relatives.
// What Claude's own list says of ways to think and of efforts goes before this.
//
// A name may end in more than is written here, such as "-fast"; a date, a
// cloud's prefix and what stands before a slash are taken off before.
var families = []family{
	// Anthropic
	{
		names: []string{"claude-*"},
		maker: "anthropic",
		in:    messages,
		lines: []line{
			{names: []string{"claude-sonnet-5?5*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive", "between_tools"}, Efforts: fiveWays, Preserved: true,
				NoSampling: true, NoForcedTool: true, MidSystem: true, NoPrefill: true, Anthropic: latest, Bedrock: claude,
			}},
			{names: []string{"claude-haiku-5?5*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive", "disabled"}, Efforts: fiveWays, Preserved: true,
				NoSampling: true, MidSystem: true, NoPrefill: true, Anthropic: latest, Bedrock: claude,
			}},
			{names: []string{"claude-opus-5?5*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive"}, Efforts: fiveWays, Preserved: true,
				NoSampling: true, NoForcedTool: true, MidSystem: true, NoPrefill: true, Anthropic: latest, Bedrock: claude,
			}},
			{names: []string{"claude-fable-5?[12]*", "claude-mythos-5?[12]*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive"}, Efforts: fiveWays, Preserved: true,
				NoSampling: true, NoForcedTool: true, MidSystem: true, NoPrefill: true, Bedrock: claude,
			}},
			{names: []string{"claude-fable-5*", "claude-mythos-5*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive"}, Efforts: fiveWays,
				NoSampling: true, MidSystem: true, NoPrefill: true, Bedrock: claude,
			}},
			{names: []string{"claude-opus-5*", "claude-sonnet-5*", "claude-opus-4?8*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive", "disabled"}, Efforts: fiveWays,
				NoSampling: true, MidSystem: true, NoPrefill: true, Bedrock: claude,
			}},
			{names: []string{"claude-opus-4?7*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive", "disabled"}, Efforts: fiveWays,
				NoSampling: true, NoPrefill: true, Bedrock: claude,
			}},
			{names: []string{"claude-*-4?6*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive", "enabled", "disabled"}, Efforts: fourWays,
				NoPrefill: true, Bedrock: claude,
			}},
			{names: []string{"claude-opus-4?5*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"enabled", "disabled"}, Efforts: threeWays, Bedrock: claude,
			}},
			{names: []string{"claude-*-4?5*", "claude-opus-4?1*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"enabled", "disabled"}, Efforts: none, Bedrock: claude,
			}},
			{names: []string{"claude-*-4", "claude-*-4?0*", "claude-3?7*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"enabled", "disabled"}, Efforts: none,
				NoStructured: true, NoStrictTools: true, Bedrock: claude,
			}},
			{names: []string{"claude-3*", "claude-2*", "claude-instant*"}, caps: llm.Caps{
				Thinking: none, Efforts: none, NoStructured: true, NoStrictTools: true, Bedrock: llm.BedrockCaps{Family: "anthropic", NoCachePoints: true},
			}},
			// What is newer than this table is asked for as little as possible.
			{names: []string{"*"}, caps: llm.Caps{
				Reasons: true, Thinking: []string{"adaptive"}, Efforts: fiveWays, Preserved: true,
				NoSampling: true, NoForcedTool: true, MidSystem: true, NoPrefill: true, Bedrock: claude,
			}},
		},
	},
	// Google
	{
		names: []string{"gemini-*"},
		maker: "google",
		in:    []dialect.Name{dialect.Gemini},
		lines: []line{
			{names: []string{"gemini-*-tts*"}, caps: llm.Caps{
				SchemaAlone: true, Gemini: llm.GeminiCaps{Speech: true, NoPenalties: true},
			}},
			{names: []string{"gemini-2.*-image*"}, caps: llm.Caps{
				SchemaAlone: true, Gemini: llm.GeminiCaps{Images: true, NoPenalties: true},
			}},
			{names: []string{"gemini-*-pro-image*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: []string{"low", "high"}, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true, Images: true},
			}},
			{names: []string{"gemini-*-image*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: []string{"minimal", "high"}, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true, Images: true},
			}},
			{names: []string{"gemini-2.5-pro*"}, caps: llm.Caps{
				Reasons: true, SchemaAlone: true, Logprobs: true, Gemini: llm.GeminiCaps{Budget: [2]int64{128, 32768}, NoPenalties: true},
			}},
			{names: []string{"gemini-2.5-*"}, caps: llm.Caps{
				Reasons: true, SchemaAlone: true, Logprobs: true, Gemini: llm.GeminiCaps{Budget: [2]int64{0, 24576}, NoPenalties: true},
			}},
			{names: []string{"gemini-[12].*"}, caps: llm.Caps{
				SchemaAlone: true, Logprobs: true, Gemini: llm.GeminiCaps{NoPenalties: true},
			}},
			{names: []string{"gemini-3-pro*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: []string{"low", "high"}, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true},
			}},
			{names: []string{"gemini-4-hydrogen*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: []string{"low", "medium", "high", "xhigh"}, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true},
			}},
			{names: []string{"gemini-*flash*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: levels4, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true},
			}},
			{names: []string{"*"}, caps: llm.Caps{
				Reasons: true, Gemini: llm.GeminiCaps{Levels: threeWays, NeedsSignature: true, ResponseParts: true, ToolsAndSearch: true},
			}},
		},
	},
	// OpenAI. The efforts of 5.5 and before are in the facts.
	{
		names: []string{"gpt-*", "chatgpt-*", "o[134]", "o[134]-*", "codex-*"},
		maker: "openai",
		lines: []line{
			{names: []string{"gpt-oss*"}, noSwitch: true, caps: llm.Caps{
				Reasons: true, Efforts: threeWays, Bedrock: llm.BedrockCaps{Family: "gpt-oss", NoStopSeqs: true},
			}},
			{in: dialect.Bedrock, names: []string{"gpt-[5-9]*"}, caps: llm.Caps{
				Reasons: true, NoSampling: true, Bedrock: llm.BedrockCaps{Family: "openai", NoStopSeqs: true},
			}},
			{names: []string{"gpt-[34]*", "gpt-5*-chat*", "chatgpt-*", "gpt-image*", "gpt-audio*", "gpt-realtime*"}},
			{names: []string{"gpt-5*-pro*", "gpt-5.[12]-codex*"}, caps: llm.Caps{
				Reasons: true, NoSampling: true, Chat: llm.ChatCaps{ThinksUnasked: true},
			}},
			// Up to 5.5 they think only when told to, from 5.1 on.
			{names: []string{"gpt-5.[123]*"}, caps: llm.Caps{
				Reasons: true, Chat: llm.ChatCaps{NoThinkingSampling: true},
			}},
			{names: []string{"gpt-5.[45]*"}, caps: llm.Caps{
				Reasons: true, Chat: llm.ChatCaps{NoThinkingTools: true, NoThinkingSampling: true},
			}},
			{names: []string{"gpt-5.6*"}, caps: llm.Caps{
				Reasons: true, NoSampling: true, Chat: llm.ChatCaps{NoThinkingTools: true, ThinksUnasked: true},
			}},
			{names: []string{"*"}, caps: llm.Caps{
				Reasons: true, NoSampling: true, Chat: llm.ChatCaps{ThinksUnasked: true},
			}},
		},
	},
	// xAI
	{
		names: []string{"grok-*"},
		maker: "xai",
		in:    chats,
		lines: []line{
			{names: []string{"grok-3-mini*"}, caps: llm.Caps{Reasons: true, Efforts: []string{"low", "high"}}},
			{names: []string{"grok-*-non-reasoning*", "grok-[12]*", "grok-3*"}, caps: llm.Caps{Efforts: none}},
			{names: []string{"grok-4.20-multi-agent*"}, caps: llm.Caps{Reasons: true, Efforts: []string{"low", "medium", "high", "xhigh"}}},
			{names: []string{"grok-4.3*"}, caps: llm.Caps{Reasons: true, Efforts: []string{"none", "low", "medium", "high"}}},
			{names: []string{"grok-4", "grok-4-*", "grok-4.[12]*", "grok-code*", "grok-build*"}, caps: llm.Caps{Reasons: true, Efforts: none}},
			{names: []string{"*"}, caps: llm.Caps{Reasons: true, Efforts: threeWays}},
		},
	},
	// Moonshot AI
	{
		names: []string{"kimi-*"},
		in:    chats,
		lines: []line{
			{names: []string{"kimi-k2-thinking*"}, noSwitch: true, caps: llm.Caps{
				Reasons: true, Efforts: none, Chat: llm.ChatCaps{Echo: llm.EchoTools},
			}},
			{names: []string{"kimi-k2.[56]*"}, caps: llm.Caps{
				Reasons: true, Efforts: none, NoSampling: true, Chat: llm.ChatCaps{Echo: llm.EchoTools},
			}},
			{names: []string{"kimi-k2.*"}, noSwitch: true, caps: llm.Caps{
				Reasons: true, Efforts: none, NoSampling: true, Chat: llm.ChatCaps{Echo: llm.EchoTools},
			}},
			{names: []string{"kimi-k2*"}, noSwitch: true, caps: llm.Caps{Efforts: none}},
			{names: []string{"kimi-k[3-9]*"}, noSwitch: true, caps: llm.Caps{
				Reasons: true, Efforts: []string{"low", "high", "max"}, NoSampling: true, Chat: llm.ChatCaps{Echo: llm.EchoTools},
			}},
		},
	},
	// DeepSeek
	{
		names: []string{"deepseek-*"},
		in:    chats,
		lines: []line{
			{names: []string{"deepseek-r1*"}, noSwitch: true, noEcho: true, caps: llm.Caps{
				Reasons: true, Efforts: none, Chat: llm.ChatCaps{ThinksUnasked: true},
			}},
			{names: []string{"deepseek-v4*", "deepseek-reasoner"}, caps: llm.Caps{Reasons: true, Chat: llm.ChatCaps{ThinksUnasked: true}}},
		},
	},
	// Zhipu
	{
		names: []string{"glm-*"},
		in:    chats,
		lines: []line{
			{names: []string{"glm-5.[2-9]*", "glm-[6-9]*"}, caps: llm.Caps{Reasons: true}},
			{names: []string{"*"}, caps: llm.Caps{Reasons: true, Efforts: none}},
		},
	},
	// MiniMax
	{
		names: []string{"minimax-m*"},
		in:    chats,
		lines: []line{
			{names: []string{"minimax-m2*"}, noSwitch: true, caps: llm.Caps{
				Reasons: true, Efforts: none, Chat: llm.ChatCaps{Echo: llm.EchoTools},
			}},
			{names: []string{"*"}, caps: llm.Caps{Reasons: true, Chat: llm.ChatCaps{Echo: llm.EchoTools}}},
		},
	},
	// Amazon
	{
		names: []string{"nova-*"},
		in:    []dialect.Name{dialect.Bedrock},
		lines: []line{
			{names: []string{"nova-2*"}, caps: llm.Caps{
				Reasons: true, Efforts: threeWays, Bedrock: llm.BedrockCaps{Family: "nova"},
			}},
			{names: []string{"*"}, caps: llm.Caps{Efforts: none, Bedrock: llm.BedrockCaps{Family: "nova"}}},
		},
	},
}
