package provider

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// of are the abilities of a model at a vendor, as the catalogue has them.
func of(vendor, model string, d dialect.Name) *llm.Caps {
	v, _ := Lookup(vendor)
	m, _ := Embedded().Model(vendor, model)
	return Caps(v, model, m, d)
}

// abilities lists what a model can and cannot do, as far as it is not usual.
func abilities(c *llm.Caps) string {
	var words []string
	add := func(word string, holds bool) {
		if holds {
			words = append(words, word)
		}
	}
	add("reasons", c.Reasons && c.ReasonsKnown)
	add("preserved", c.Preserved)
	add("no-sampling", c.NoSampling)
	add("no-forced-tool", c.NoForcedTool)
	add("mid-system", c.MidSystem)
	add("no-structured", c.NoStructured)
	add("schema-alone", c.SchemaAlone)
	add("no-strict", c.NoStrictTools)
	add("no-prefill", c.NoPrefill)
	add("signature", c.Gemini.NeedsSignature)
	add("response-parts", c.Gemini.ResponseParts)
	add("ids", c.Gemini.FunctionIDs)
	add("no-penalties", c.Gemini.NoPenalties)
	add("tools-apart", c.Chat.NoThinkingTools)
	add("unasked", c.Chat.ThinksUnasked)
	return strings.Join(words, " ")
}

func TestCapsOfModels(t *testing.T) {
	for _, tt := range []struct {
		vendor, model string
		d             dialect.Name
		thinking      string // ways, levels or the budget's bounds
		efforts       string // "-" is none, "" any
		max           int64
		abilities     string
	}{
		{"anthropic", "claude-sonnet-5-5", dialect.Anthropic, "adaptive between_tools", "low medium high xhigh max", 0, "reasons preserved no-sampling no-forced-tool mid-system no-prefill"},
		{"anthropic", "claude-opus-5-5-20261001", dialect.Anthropic, "adaptive", "low medium high xhigh max", 0, "reasons preserved no-sampling no-forced-tool mid-system no-prefill"},
		{"anthropic", "claude-haiku-5-5", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 0, "reasons preserved no-sampling mid-system no-prefill"},
		{"anthropic", "claude-fable-5", dialect.Anthropic, "adaptive", "low medium high xhigh max", 128000, "reasons no-sampling mid-system no-prefill"},
		{"anthropic", "claude-fable-5-2", dialect.Anthropic, "adaptive", "low medium high xhigh max", 0, "reasons preserved no-sampling no-forced-tool mid-system no-prefill"},
		{"anthropic", "claude-opus-4-8", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 128000, "reasons no-sampling mid-system no-prefill"},
		{"anthropic", "claude-opus-4-7", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 128000, "reasons no-sampling no-prefill"},
		{"anthropic", "claude-sonnet-5", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 128000, "reasons no-sampling mid-system no-prefill"},
		{"anthropic", "claude-sonnet-4-6", dialect.Anthropic, "adaptive enabled disabled", "low medium high max", 64000, "reasons no-prefill"},
		{"anthropic", "claude-opus-4-5-20251101", dialect.Anthropic, "enabled disabled", "low medium high", 64000, "reasons"},
		{"anthropic", "claude-sonnet-4-5", dialect.Anthropic, "enabled disabled", "-", 64000, "reasons"},
		{"anthropic", "claude-opus-4-20250514", dialect.Anthropic, "enabled disabled", "-", 32000, "reasons no-structured no-strict"},
		{"anthropic", "claude-3-7-sonnet-20250219", dialect.Anthropic, "enabled disabled", "-", 64000, "reasons no-structured no-strict"},
		{"anthropic", "claude-3-haiku-20240307", dialect.Anthropic, "-", "-", 4096, "no-structured no-strict"},
		{"anthropic", "claude-saga-9", dialect.Anthropic, "adaptive", "low medium high xhigh max", 0, "reasons preserved no-sampling no-forced-tool mid-system no-prefill"},
		{"vertex-anthropic", "claude-opus-4-8@default", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 128000, "reasons no-sampling mid-system no-prefill"},
		{"bedrock", "eu.anthropic.claude-sonnet-4-6", dialect.Bedrock, "adaptive enabled disabled", "low medium high max", 64000, "reasons no-prefill"},
		{"", "anthropic/claude-opus-4.8", dialect.Anthropic, "adaptive disabled", "low medium high xhigh max", 0, "reasons no-sampling mid-system no-prefill"},

		{"gemini", "gemini-3.5-flash", dialect.Gemini, "minimal low medium high", "minimal low medium high", 65536, "reasons signature response-parts ids"},
		{"vertex", "gemini-3.5-flash", dialect.Gemini, "minimal low medium high", "minimal low medium high", 65536, "reasons signature response-parts"},
		{"gemini", "gemini-3.1-pro-preview", dialect.Gemini, "low medium high", "low medium high", 65536, "reasons signature response-parts ids"},
		{"gemini", "gemini-4-hydrogen", dialect.Gemini, "low medium high xhigh", "", 0, "reasons signature response-parts ids"},
		{"gemini", "gemini-2.5-pro", dialect.Gemini, "128..32768", "", 65536, "reasons schema-alone ids no-penalties"},
		{"vertex", "gemini-2.5-flash", dialect.Gemini, "0..24576", "", 65536, "reasons schema-alone"},
		{"gemini", "gemini-2.0-flash", dialect.Gemini, "", "", 8192, "schema-alone ids no-penalties"},

		{"openai", "gpt-5", dialect.OpenAIChat, "", "minimal low medium high", 128000, "reasons no-sampling unasked"},
		{"openai", "gpt-5.2", dialect.OpenAIChat, "", "none low medium high xhigh", 128000, "reasons"},
		{"openai", "gpt-5.4-mini", dialect.OpenAIChat, "", "none low medium high xhigh", 128000, "reasons tools-apart"},
		{"openai", "gpt-5.6-sol", dialect.OpenAIChat, "", "", 0, "reasons no-sampling tools-apart unasked"},
		{"openai", "gpt-4.1", dialect.OpenAIChat, "", "", 32768, ""},
		{"openai", "o3", dialect.OpenAIResponses, "", "low medium high", 100000, "reasons no-sampling unasked"},
		{"openrouter", "openai/gpt-5.4", dialect.OpenAIChat, "", "none low medium high xhigh", 128000, "reasons"},
		{"bedrock", "openai.gpt-5.4", dialect.Bedrock, "", "none low medium high xhigh", 128000, "reasons no-sampling"},
		{"bedrock", "amazon.nova-2-lite-v1:0", dialect.Bedrock, "", "low medium high", 4096, "reasons"},
		{"xai", "grok-4-0709", dialect.OpenAIResponses, "", "-", 0, "reasons"},
		{"xai", "grok-4.5", dialect.OpenAIResponses, "", "low medium high", 0, "reasons"},
		{"moonshot", "kimi-k2.7-code", dialect.OpenAIChat, "", "-", 262144, "reasons no-sampling"},
		{"moonshot", "kimi-k3", dialect.OpenAIChat, "", "low high max", 0, "reasons no-sampling"},
		{"deepseek", "deepseek-v4-pro", dialect.OpenAIChat, "", "low high max", 384000, "reasons unasked"},
		{"zhipu", "glm-4.7", dialect.OpenAIChat, "", "-", 131072, "reasons"},
		{"zhipu", "glm-5.2", dialect.OpenAIChat, "", "high max", 131072, "reasons"},
		{"mistral", "mistral-large-latest", dialect.OpenAIChat, "", "none high", 262144, ""},
		{"", "who-knows", dialect.OpenAIChat, "", "", 0, ""},
	} {
		c := of(tt.vendor, tt.model, tt.d)
		list := func(words []string) string {
			if words != nil && len(words) == 0 {
				return "-"
			}
			return strings.Join(words, " ")
		}
		thinking := list(c.Thinking)
		switch {
		case c.Gemini.Levels != nil:
			thinking = list(c.Gemini.Levels)
		case c.Gemini.Budget[1] == 24576:
			thinking = "0..24576"
		case c.Gemini.Budget == [2]int64{128, 32768}:
			thinking = "128..32768"
		}
		if thinking != tt.thinking || list(c.Efforts) != tt.efforts || c.MaxOutput != tt.max || abilities(c) != tt.abilities {
			t.Errorf("%s/%s in %s:\ngot  %q %q %d %q\nwant %q %q %d %q", tt.vendor, tt.model, tt.d,
				thinking, list(c.Efforts), c.MaxOutput, abilities(c), tt.thinking, tt.efforts, tt.max, tt.abilities)
		}
		if c.Model != tt.model {
			t.Errorf("the model is %q, want %q as the upstream calls it", c.Model, tt.model)
		}
	}
}

// What one model encrypts, only those read who have its maker's key.
func TestCapsReader(t *testing.T) {
	for _, tt := range []struct {
		vendor, model string
		d             dialect.Name
		want          string
	}{
		{"anthropic", "claude-opus-4-8", dialect.Anthropic, "anthropic"},
		{"vertex-anthropic", "claude-opus-4-8@default", dialect.Anthropic, "anthropic"},
		{"bedrock", "us.anthropic.claude-opus-4-8", dialect.Bedrock, "anthropic"},
		{"openrouter", "anthropic/claude-opus-4.8", dialect.OpenAIChat, "anthropic"},
		{"azure", "claude-opus-4-8", dialect.Anthropic, "anthropic"},
		{"", "house-model", dialect.Anthropic, "anthropic"},
		{"bedrock", "amazon.nova-pro-v1:0", dialect.Bedrock, "bedrock"},
		{"gemini", "gemini-3.5-flash", dialect.Gemini, "google"},
		{"vertex", "tuned", dialect.Gemini, "google"},
		{"gemini-openai", "gemini-3.5-flash", dialect.OpenAIChat, "google"},
		{"openai", "gpt-5.4", dialect.OpenAIResponses, "openai"},
		{"openai", "ft:house", dialect.OpenAIResponses, "openai"},
		{"azure", "gpt-5.4", dialect.OpenAIResponses, "azure"},
		{"azure", "my-deployment", dialect.OpenAIChat, "azure"},
		{"xai", "grok-4.5", dialect.OpenAIResponses, "xai"},
		{"deepseek", "deepseek-v4-pro", dialect.OpenAIChat, "deepseek"},
		{"", "house-model", dialect.OpenAIResponses, "openai"},
		{"", "house-model", dialect.OpenAIChat, ""},
	} {
		if got := of(tt.vendor, tt.model, tt.d).Vendor; got != tt.want {
			t.Errorf("%s/%s in %s: got %q, want %q", tt.vendor, tt.model, tt.d, got, tt.want)
		}
	}
}

func TestCapsOfChat(t *testing.T) {
	for _, tt := range []struct {
		vendor, model string
		want          llm.ChatCaps
	}{
		{"", "who-knows", llm.ChatCaps{TokenLimit: "max_tokens", AskUsage: true}},
		{"openai", "gpt-4.1", llm.ChatCaps{TokenLimit: "max_completion_tokens", AskUsage: true, Native: true, Breakpoints: true, EffortAs: [][2]string{{"max", "xhigh"}}}},
		{"mistral", "mistral-large-latest", llm.ChatCaps{
			NoDeveloper: true, TokenLimit: "max_tokens", Seed: "random_seed", Strict: true, DocumentURL: true, NoStreamUsage: true, NoCustom: true, NoGrammar: true,
			ToolWords: [][2]string{{"required", "any"}}, CallID: "^[a-zA-Z0-9]{9}$", AnswerFirst: true, NamedTools: true,
			Reasoning: "content", Echo: llm.EchoAlways, Finish: [][2]string{{"model_length", "length"}},
		}},
		{"moonshot", "kimi-k2.6", llm.ChatCaps{
			NoDeveloper: true, TokenLimit: "max_completion_tokens", OneChoice: true, TypedAnyOf: true, NoCustom: true, NoGrammar: true, ToolChoice: []string{"none", "auto", "function"},
			Reasoning: "reasoning_content", Echo: llm.EchoTools, On: `{"thinking":{"type":"enabled"}}`, Off: `{"thinking":{"type":"disabled"}}`,
		}},
		{"moonshot", "kimi-k3", llm.ChatCaps{
			NoDeveloper: true, TokenLimit: "max_completion_tokens", OneChoice: true, TypedAnyOf: true, NoCustom: true, NoGrammar: true,
			Reasoning: "reasoning_content", Echo: llm.EchoTools,
		}},
		{"zhipu", "glm-4.7", llm.ChatCaps{
			NoDeveloper: true, TokenLimit: "max_tokens", Rename: [][2]string{{"user", "user_id"}}, NoCustom: true, NoGrammar: true, AskUsage: true,
			ToolChoice: []string{"auto"}, ToolStream: `{"tool_stream":true}`, Formats: []string{"json_object"}, Reasoning: "reasoning_content", Echo: llm.EchoAlways,
			On: `{"thinking":{"type":"enabled"}}`, Off: `{"thinking":{"type":"disabled"}}`,
			Finish: [][2]string{{"sensitive", "content_filter"}, {"network_error", "error"}, {"model_context_window_exceeded", "length"}},
		}},
		{"deepseek", "deepseek-v4-pro", llm.ChatCaps{
			NoDeveloper: true, TokenLimit: "max_tokens", NoCustom: true, NoGrammar: true, AskUsage: true, ThinksUnasked: true, JSONWord: true,
			ThinkingChoice: []string{"none", "auto"}, Formats: []string{"json_object"}, Reasoning: "reasoning_content", Echo: llm.EchoAlways,
			On: `{"thinking":{"type":"enabled"}}`, Off: `{"thinking":{"type":"disabled"}}`,
			EffortAs: [][2]string{{"minimal", "low"}, {"medium", "high"}, {"xhigh", "high"}, {"ultra", "max"}},
			Finish:   [][2]string{{"insufficient_system_resource", "error"}},
		}},
		{"vllm", "moonshotai/Kimi-K2-Thinking", llm.ChatCaps{
			NoDeveloper: true, OneSystem: true, TokenLimit: "max_completion_tokens", NoCustom: true, NoGrammar: true, AskUsage: true, TopK: true,
			Reasoning: "reasoning", Echo: llm.EchoTools, Budget: "thinking_token_budget",
		}},
		{"llamacpp", "m", llm.ChatCaps{
			NoDeveloper: true, OneSystem: true, TokenLimit: "max_tokens", NoCustom: true, NoGrammar: true, AskUsage: true, TopK: true, ParallelOff: true,
			Reasoning: "reasoning_content", Budget: "thinking_budget_tokens",
		}},
		{"xai", "grok-4.5", llm.ChatCaps{
			TokenLimit: "max_completion_tokens", NoCustom: true, NoGrammar: true, AskUsage: true, ReasoningApart: true,
			Drop: []string{"frequency_penalty", "presence_penalty", "stop"},
		}},
		{"groq", "openai/gpt-oss-120b", llm.ChatCaps{
			TokenLimit: "max_completion_tokens", NoNames: true, OneChoice: true, NoCustom: true, NoGrammar: true, Reasoning: "reasoning",
			SchemaWhole: true, Hide: `{"include_reasoning":false}`,
			Drop: []string{"logit_bias", "logprobs", "top_logprobs"},
		}},
	} {
		got := of(tt.vendor, tt.model, dialect.OpenAIChat).Chat
		if tt.vendor == "mistral" {
			v, _ := Lookup("mistral")
			tt.want.Drop = v.Quirks.Drop
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s/%s:\ngot  %+v\nwant %+v", tt.vendor, tt.model, got, tt.want)
		}
	}
	if c := of("deepseek", "deepseek-chat", dialect.OpenAIChat); c.Chat.ThinkingChoice != nil || !c.NoParallel {
		t.Errorf("a model that does not think: %+v", c)
	}
	if c := of("groq", "llama", dialect.OpenAIChat); !c.SchemaAlone {
		t.Error("groq takes a schema beside tools")
	}
}

// Some models of a vendor are otherwise than its others.
func TestCapsOfVariants(t *testing.T) {
	for _, tt := range []struct {
		vendor, model string
		holds         func(*llm.Caps) bool
	}{
		{"groq", "qwen/qwen3-32b", func(c *llm.Caps) bool {
			return c.Chat.Tags && slices.Equal(c.Efforts, []string{"none", "default"}) && strings.Contains(c.Chat.Hide, "reasoning_format")
		}},
		{"groq", "openai/gpt-oss-120b", func(c *llm.Caps) bool {
			return !c.Chat.Tags && !c.Retold && c.Chat.Hide == `{"include_reasoning":false}`
		}},
		{"cerebras", "zai-glm-4.7", func(c *llm.Caps) bool { return c.Chat.EchoTags && c.Chat.Echo == llm.EchoAlways }},
		{"cerebras", "gpt-oss-120b", func(c *llm.Caps) bool { return !c.Chat.EchoTags && c.Chat.Echo == llm.EchoNever && c.Chat.Off == "" }},
		{"moonshot", "kimi-k2.5", func(c *llm.Caps) bool { return c.Chat.ToolChoice == nil }},
		{"moonshot", "kimi-k2.7-code", func(c *llm.Caps) bool { return len(c.Chat.ToolChoice) == 3 }},
		{"zhipu", "glm-4-plus", func(c *llm.Caps) bool { return c.Chat.ZeroTemperature != "" }},
		{"zhipu", "glm-4.7", func(c *llm.Caps) bool { return c.Chat.ZeroTemperature == "" }},
		{"minimax", "MiniMax-M2.5", func(c *llm.Caps) bool {
			return c.Retold && c.Chat.Tags && c.Chat.EchoTags && c.Chat.Snapshots && c.Chat.Off == "" && c.Chat.Temperature == [2]float64{0.01, 1}
		}},
		{"minimax", "MiniMax-M3.1", func(c *llm.Caps) bool {
			return c.Retold && c.Chat.Off != "" && !c.Chat.EchoTags && !c.Chat.Snapshots && c.Chat.Temperature == [2]float64{}
		}},
		{"deepseek", "deepseek-reasoner", func(c *llm.Caps) bool { return c.Chat.Echo == llm.EchoAlways && c.Chat.ThinksUnasked }},
		{"deepseek", "deepseek-r1", func(c *llm.Caps) bool { return c.Chat.Echo == llm.EchoNever }},
		{"mistral", "magistral-medium-latest", func(c *llm.Caps) bool { return c.Retold }},
		{"mistral", "mistral-large-latest", func(c *llm.Caps) bool { return !c.Retold }},
		{"together", "deepseek-ai/DeepSeek-R1", func(c *llm.Caps) bool { return c.Retold && c.Chat.Tags && c.Chat.Echo == llm.EchoNever }},
		{"openai", "gpt-5.2", func(c *llm.Caps) bool { return c.Chat.NoThinkingSampling && !c.Retold }},
		{"openrouter", "openai/gpt-5.2", func(c *llm.Caps) bool { return !c.Chat.NoThinkingSampling }},
	} {
		if c := of(tt.vendor, tt.model, dialect.OpenAIChat); !tt.holds(c) {
			t.Errorf("%s/%s: %+v", tt.vendor, tt.model, c)
		}
	}
	for vendor, want := range map[string]bool{"openai": true, "azure": true, "deepseek": true, "": true} {
		if c := of(vendor, "m", dialect.OpenAIResponses); c.Bound != want {
			t.Errorf("state of %s is bound to an account: %v", c.Vendor, c.Bound)
		}
	}
	if of("anthropic", "claude-opus-4-8", dialect.Anthropic).Bound || of("vertex", "gemini-3.5-flash", dialect.Gemini).Bound || of("", "m", dialect.OpenAIChat).Bound {
		t.Error("state is bound to an account that any account reads")
	}
	if of("openai", "gpt-5.4", dialect.OpenAIResponses).Chat.NoThinkingTools {
		t.Error("Responses refuse tools")
	}
}

func TestCapsOfHosts(t *testing.T) {
	vertex, _ := Lookup("vertex")
	vertex.Place = Place{"acme", "eu"}
	if g := Caps(vertex, "gemini-3.5-flash", Model{}, dialect.Gemini).Gemini; !g.Vertex || g.Project != "acme" || g.Location != "eu" || !g.ToolsAndSearch {
		t.Errorf("Gemini on Vertex AI: %+v", g)
	}
	for vendor, want := range map[string]llm.AnthropicCaps{
		"anthropic":        {},
		"vertex-anthropic": {InPath: true},
	} {
		c := of(vendor, "claude-opus-4-8", dialect.Anthropic)
		if !reflect.DeepEqual(c.Anthropic, want) || c.DefaultMaxTokens != unsaidMax {
			t.Errorf("%s: %+v, default limit %d", vendor, c.Anthropic, c.DefaultMaxTokens)
		}
	}
	if c := of("anthropic", "claude-sonnet-5-5", dialect.Anthropic); c.Anthropic.Version != "2026-10-21" || c.DefaultMaxTokens != 0 {
		t.Errorf("Sonnet 5.5: %+v, default limit %d", c.Anthropic, c.DefaultMaxTokens)
	}
	for model, want := range map[string]llm.BedrockCaps{
		"us.anthropic.claude-opus-4-8": {Family: "anthropic"},
		"amazon.nova-2-lite-v1:0":      {Family: "nova"},
		"amazon.nova-pro-v1:0":         {Family: "nova"},
		"anthropic.claude-3-haiku-v1":  {Family: "anthropic", NoCachePoints: true},
		"openai.gpt-oss-120b-1:0":      {Family: "gpt-oss", NoStopSeqs: true},
		"openai.gpt-5.5":               {Family: "openai", NoStopSeqs: true},
	} {
		if got := of("bedrock", model, dialect.Bedrock).Bedrock; got != want {
			t.Errorf("%s: got %+v, want %+v", model, got, want)
		}
	}
	for _, tt := range []struct {
		vendor, model string
		d             dialect.Name
		want          bool
	}{
		{"anthropic", "claude-opus-4-8", dialect.Anthropic, true},
		{"vertex-anthropic", "claude-sonnet-4-5@20250929", dialect.Anthropic, true},
		{"bedrock", "us.anthropic.claude-opus-4-8", dialect.Bedrock, true},
		{"bedrock", "amazon.nova-pro-v1:0", dialect.Bedrock, true},
		{"bedrock", "openai.gpt-5.5", dialect.Bedrock, false},
		{"deepseek", "deepseek-v4-pro", dialect.Anthropic, false},
		{"openrouter", "anthropic/claude-opus-4.8", dialect.OpenAIChat, false},
	} {
		if c := of(tt.vendor, tt.model, tt.d); c.PlaceCache != tt.want {
			t.Errorf("%s/%s: PlaceCache is %t", tt.vendor, tt.model, c.PlaceCache)
		}
	}
	for model, want := range map[string][2]bool{"gemini-2.5-flash-image": {true, false}, "gemini-2.5-flash-preview-tts": {false, true}, "gemini-3.5-flash": {}} {
		if g := of("gemini", model, dialect.Gemini).Gemini; [2]bool{g.Images, g.Speech} != want {
			t.Errorf("%s: %+v", model, g)
		}
	}
}

// What the vendor lists goes before the table.
func TestCapsOfList(t *testing.T) {
	listed := Model{ID: "claude-opus-4-8", MaxOutput: 500, Reasoning: Yes, Structured: No, Thinking: []string{"enabled"}}
	v, _ := Lookup("anthropic")
	c := Caps(v, listed.ID, listed, dialect.Anthropic)
	if !slices.Equal(c.Thinking, []string{"enabled", "disabled"}) || c.Efforts == nil || len(c.Efforts) != 0 ||
		c.MaxOutput != 500 || c.DefaultMaxTokens != 500 || !c.NoStructured || !c.NoStrictTools {
		t.Errorf("got %+v", c)
	}
	listed = Model{Reasoning: No}
	if c := Caps(v, "claude-opus-4-8", listed, dialect.Anthropic); c.Reasons || !c.ReasonsKnown {
		t.Errorf("got %+v", c)
	}
}

func TestOwnName(t *testing.T) {
	for id, want := range map[string]string{
		"claude-opus-4-8":                            "claude-opus-4-8",
		"claude-opus-4-1-20250805":                   "claude-opus-4-1",
		"claude-opus-4-1@20250805":                   "claude-opus-4-1",
		"us.anthropic.claude-opus-4-1-20250805-v1:0": "claude-opus-4-1",
		"us-gov.anthropic.claude-sonnet-4-5":         "claude-sonnet-4-5",
		"anthropic/claude-opus-4.8":                  "claude-opus-4.8",
		"moonshotai/Kimi-K2.6:free":                  "kimi-k2.6",
		"models/gemini-3.5-flash":                    "gemini-3.5-flash",
		"gpt-5.4-2026-03-01":                         "gpt-5.4",
		"openai.gpt-oss-120b-1:0":                    "gpt-oss-120b",
		"deepseek-v3":                                "deepseek-v3",
		"llama3:latest":                              "llama3",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1": "claude-opus-4-6",
		"": "",
	} {
		if got := ownName(id); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}

// The table is data: what is misspelt in it, no compiler finds.
func TestFamilies(t *testing.T) {
	words := func(what string, got, known []string) {
		t.Helper()
		for _, w := range got {
			if !slices.Contains(known, w) {
				t.Errorf("%s: %q is none of %v", what, w, known)
			}
		}
	}
	for _, f := range families {
		for _, d := range f.in {
			words(f.names[0], []string{string(d)}, []string{string(dialect.OpenAIChat), string(dialect.OpenAIResponses), string(dialect.Anthropic), string(dialect.Gemini), string(dialect.Bedrock)})
		}
		for _, l := range f.lines {
			for _, p := range slices.Concat(f.names, l.names) {
				if _, err := path.Match(p, "x"); err != nil {
					t.Errorf("%s: %v", p, err)
				}
			}
			c, name := l.caps, l.names[0]
			words(name, c.Thinking, []string{"adaptive", "enabled", "disabled", "between_tools"})
			words(name, c.Efforts, []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"})
			words(name, c.Gemini.Levels, []string{"minimal", "low", "medium", "high", "xhigh"})
			words(name, []string{c.Bedrock.Family}, []string{"", "anthropic", "nova", "gpt-oss", "openai"})
			if c.Gemini.Levels != nil && c.Gemini.Budget != [2]int64{} {
				t.Errorf("%s: levels and a budget are an error together", name)
			}
			if c.Vendor != "" || c.Model != "" || c.ReasonsKnown || c.MaxOutput != 0 {
				t.Errorf("%s: says what a table cannot know", name)
			}
		}
	}
}

// What is shared must not change.
func TestCapsShareNothingThatChanges(t *testing.T) {
	v, _ := Lookup("xai")
	v.Quirks.Drop = append(make([]string, 0, 8), "seed")
	first := Caps(v, "grok-4.5", Model{}, dialect.OpenAIChat)
	Caps(v, "grok-3", Model{}, dialect.OpenAIChat)
	if want := []string{"seed", "frequency_penalty", "presence_penalty", "stop"}; !slices.Equal(first.Chat.Drop, want) {
		t.Errorf("got %v, want %v", first.Chat.Drop, want)
	}
}
