package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
)

// vendorsOf are who reads opaque state behind an upstream dialect.
var vendorsOf = map[string]string{"anthropic.messages": "anthropic", "bedrock.converse": "anthropic", "google.generateContent": "google", "openai.responses": "openai", "openai.chat": "openai"}

// caps are the abilities that a case gives its target.
func (c *golden) caps(t *testing.T) *llm.Caps {
	caps := &llm.Caps{Vendor: vendorsOf[c.Upstream]}
	if profile, ok := strings.CutPrefix(c.Upstream, "compat."); ok {
		caps = profileCaps(t, profile, c.model(t))
	}
	if c.Upstream == "openai.chat" {
		caps.Chat.Native = true
	}
	switch c.Upstream {
	case "anthropic.messages":
		caps.Reasons, caps.ReasonsKnown = true, true
	case "bedrock.converse":
		caps.Bedrock.Family = "anthropic"
	}
	for name, value := range c.Config {
		c.setCap(t, caps, name, value)
	}
	return caps
}

// setCap takes over one value of a case's config. Some have other types for
// other upstreams.
func (c *golden) setCap(t *testing.T, caps *llm.Caps, name string, value json.RawMessage) {
	text := func() (s string) { c.read(t, name, value, &s); return s }
	flag := func() (b bool) { c.read(t, name, value, &b); return b }
	list := func() (l []string) { c.read(t, name, value, &l); return l }
	number := func() (n int64) { c.read(t, name, value, &n); return n }
	gemini := c.Upstream == "google.generateContent"
	switch name {
	case "model":
		caps.Model = text()
	case "api_version":
		caps.Anthropic.Version = text()
	case "thinking":
		if gemini {
			caps.Reasons, caps.ReasonsKnown = text() != "none", true
		} else {
			caps.Thinking = list()
		}
	case "efforts":
		if caps.Efforts = list(); caps.Efforts == nil {
			caps.Efforts = []string{}
		}
	case "sampling":
		caps.NoSampling = !flag()
	case "forced_tool":
		caps.NoForcedTool = !flag()
	case "mid_system":
		if value[0] == '"' {
			caps.Chat.OneSystem = caps.Chat.OneSystem || text() == "user_wrap"
		} else {
			caps.MidSystem = flag()
		}
	case "structured":
		caps.NoStructured = !flag()
	case "strict_tools":
		caps.NoStrictTools = !flag()
	case "prefill":
		caps.NoPrefill = !flag()
	case "max_output":
		caps.MaxOutput = number()
	case "default_max_tokens":
		caps.DefaultMaxTokens = number()
	case "preserved_thinking":
		caps.Preserved = flag()
	case "flavour":
		caps.Gemini.Vertex = text() == "vertex"
		caps.Gemini.Project, caps.Gemini.Location = "p", "l"
	case "levels":
		caps.Gemini.Levels = list()
	case "budget":
		c.read(t, name, value, &caps.Gemini.Budget)
	case "function_response_parts":
		caps.Gemini.ResponseParts = flag()
	case "function_call_ids":
		caps.Gemini.FunctionIDs = flag()
	case "needs_signature":
		caps.Gemini.NeedsSignature = flag()
	case "remote_file_uri":
		caps.RemoteMedia = flag()
	case "logprobs":
		caps.Logprobs = flag()
	case "developer_role":
		caps.Chat.NoDeveloper = !flag()
	case "reasoning":
		caps.Reasons, caps.ReasonsKnown = flag(), true
	case "max_tokens_field":
		caps.Chat.TokenLimit = text()
	case "seed_field":
		caps.Chat.Seed = text()
	case "forbid_extra":
		caps.Chat.Strict = flag()
	case "tool_id":
		caps.Chat.CallID = text()
	case "roles":
		caps.Chat.NoDeveloper = !strings.Contains(string(value), `"developer"`)
	case "structured_with_tools":
		caps.SchemaAlone = !flag()
	case "tool_choice_required":
		if !flag() {
			caps.Chat.ToolChoice = []string{"none", "auto", "function"}
		}
	case "reasoning_field":
		caps.Chat.Reasoning = text()
	case "reasoning_echo":
		caps.Chat.Echo = map[string]llm.Echo{"always": llm.EchoAlways, "tools": llm.EchoTools, "never": llm.EchoNever}[text()]
	case "system":
		caps.Chat.OneSystem = text() == "single_leading"
	case "response_formats":
		caps.Chat.Formats = list()
	case "force_stream_usage":
		caps.Chat.AskUsage = flag()
	case "response_store", "fetch_remote_media", "emulate_json_tool", "passthrough_unknown":
		if flag() && name != "passthrough_unknown" {
			t.Fatalf("config %s is not known to the test", name)
		}
	default:
		t.Fatalf("config %s is not known to the test", name)
	}
}

func (c *golden) model(t *testing.T) (name string) {
	if value := c.Config["model"]; value != nil {
		c.read(t, "model", value, &name)
	}
	return name
}

func (c *golden) read(t *testing.T, name string, value json.RawMessage, into any) {
	if err := json.Unmarshal(value, into); err != nil {
		t.Fatalf("config %s: %v", name, err)
	}
}

// profileCaps are those of a vendor's row.
func profileCaps(t *testing.T, profile, model string) *llm.Caps {
	if profile == "generic" {
		return &llm.Caps{}
	}
	vendor, ok := provider.Lookup(profile)
	if !ok {
		t.Fatalf("there is no vendor %s", profile)
	}
	return provider.Caps(vendor, model, provider.Model{ID: model}, dialect.OpenAIChat)
}
