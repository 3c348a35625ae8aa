package provider

import (
	"encoding/json"
	"github.com/limen-gateway/limen/internal/dialect"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestVendorNames(t *testing.T) {
	want := []string{
		"openai", "azure", "deepseek", "groq", "mistral", "xai", "openrouter", "together", "fireworks", "cerebras",
		"ollama", "vllm", "sglang", "llamacpp", "lmstudio", "moonshot", "qwen", "zhipu", "minimax", "gemini", "bedrock",
		"anthropic", "gemini-openai", "vertex", "vertex-anthropic", "bedrock-mantle",
	}
	seen := map[string]bool{}
	for _, v := range Vendors() {
		if seen[v.Name] {
			t.Errorf("%s is there twice", v.Name)
		}
		seen[v.Name] = true
		if got, ok := Lookup(v.Name); !ok || got.BaseURL != v.BaseURL {
			t.Errorf("Lookup(%q) = %q, %v", v.Name, got.BaseURL, ok)
		}
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if v, ok := Lookup("nobody"); ok {
		t.Errorf("Lookup(nobody) = %v", v.Name)
	}
}

func TestVendorAddresses(t *testing.T) {
	ports := map[string]string{}
	for _, v := range Vendors() {
		base := v.BaseURL
		for _, f := range v.Fill {
			if !strings.Contains(base+v.Place.Project+v.Place.Location, f.Mark) || len(f.Env) == 0 {
				t.Errorf("%s: %s is not in %s, or no variable fills it", v.Name, f.Mark, base)
			}
			base = strings.ReplaceAll(base, f.Mark, "x")
		}
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || strings.HasSuffix(base, "/") || strings.ContainsAny(base, "{}") {
			t.Errorf("%s: bad base URL %q: %v", v.Name, v.BaseURL, err)
			continue
		}
		if v.Local() {
			if other, taken := ports[u.Port()]; taken {
				t.Errorf("%s and %s share port %s", v.Name, other, u.Port())
			}
			ports[u.Port()] = v.Name
			continue
		}
		if u.Scheme != "https" {
			t.Errorf("%s: scheme %q, want https", v.Name, u.Scheme)
		}
		if len(v.KeyEnv)+len(v.Means) == 0 {
			t.Errorf("%s: no variable for its key", v.Name)
		}
		if v.OwnedBy != "" || v.Cloud != "" {
			t.Errorf("%s: OwnedBy and Cloud are for local servers", v.Name)
		}
	}
}

func TestVendorDialects(t *testing.T) {
	for _, v := range Vendors() {
		if v.Title == "" || len(v.Speaks) == 0 {
			t.Errorf("%s: no title or no dialect", v.Name)
		}
		for i, d := range v.Speaks {
			if !slices.Contains(dialects, d) || slices.Contains(v.Speaks[:i], d) {
				t.Errorf("%s: speaks %v", v.Name, v.Speaks)
			}
		}
		// Servers of the other dialects list, sign and are called otherwise.
		openai := slices.Contains(v.Speaks, dialect.OpenAIChat)
		if !openai && len(v.Speaks) > 1 || openai && v.AuthOf(v.Speaks) > APIKeyHeader {
			t.Errorf("%s: speaks %v with one address and credential", v.Name, v.Speaks)
		}
		if (v.Listed != Listed{}) != (v.Listing(v.Speaks).Path == "") {
			t.Errorf("%s: it has a list and facts that stand in for one, or neither", v.Name)
		}
		if v.Quirks.Stateless && !slices.Contains(v.Speaks, dialect.OpenAIResponses) {
			t.Errorf("%s: stateless, but without Responses", v.Name)
		}
	}
}

var dialects = []dialect.Name{dialect.OpenAIChat, dialect.OpenAIResponses, dialect.Anthropic, dialect.Gemini, dialect.Bedrock}

func TestAuthOf(t *testing.T) {
	vendor := func(name string) Vendor { v, _ := Lookup(name); return v }
	for _, tt := range []struct {
		name   string
		vendor Vendor
		speaks []dialect.Name
		want   Auth
	}{
		{"nothing is known", Vendor{}, nil, Bearer},
		{"a server of Chat", Vendor{}, []dialect.Name{dialect.OpenAIChat}, Bearer},
		{"a server of Messages", Vendor{}, []dialect.Name{dialect.Anthropic}, XAPIKey},
		{"a server of Gemini's dialect", Vendor{}, []dialect.Name{dialect.Gemini}, GoogAPIKey},
		{"a server of Converse", Vendor{}, []dialect.Name{dialect.Bedrock}, SigV4},
		{"Azure", vendor("azure"), []dialect.Name{dialect.OpenAIChat}, APIKeyHeader},
		{"a vendor in a dialect that it is not known for", vendor("deepseek"), []dialect.Name{dialect.Anthropic, dialect.OpenAIChat}, XAPIKey},
		{"Claude on Vertex AI", vendor("vertex-anthropic"), []dialect.Name{dialect.Anthropic}, GoogleOAuth},
		{"Claude from its maker", vendor("anthropic"), []dialect.Name{dialect.Anthropic}, XAPIKey},
	} {
		if got := tt.vendor.AuthOf(tt.speaks); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Members that carry the question itself. To drop one would answer another.
var essential = []string{
	"model", "messages", "tools", "functions", "audio", "modalities", "stream",
	"max_tokens", "max_completion_tokens", "response_format", "n",
}

func TestQuirksEdit(t *testing.T) {
	for _, v := range Vendors() {
		q := v.Quirks
		for _, drop := range [][]string{q.Drop, q.DropReasoning} {
			if !slices.IsSorted(drop) || len(slices.Compact(slices.Clone(drop))) != len(drop) {
				t.Errorf("%s: %v is not sorted or not unique", v.Name, drop)
			}
			for _, name := range drop {
				if slices.Contains(essential, name) {
					t.Errorf("%s: drops %s", v.Name, name)
				}
			}
		}
		var names []string
		for _, r := range q.Rename {
			names = append(names, r.From, r.To)
			if slices.Contains(q.Drop, r.From) || slices.Contains(q.Drop, r.To) {
				t.Errorf("%s: drops what it renames: %v", v.Name, r)
			}
			limit := q.TokenLimit
			if limit == "" {
				limit = "max_tokens"
			}
			if strings.HasPrefix(r.From, "max_") && r.To != limit {
				t.Errorf("%s: renames %s to %s, but its limit is %s", v.Name, r.From, r.To, limit)
			}
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != 2*len(q.Rename) {
			t.Errorf("%s: a name is in two renames: %v", v.Name, q.Rename)
		}
		if slices.Contains(q.Drop, "stream_options") && q.StreamUsage != UsageAlways {
			t.Errorf("%s: usage can be asked for only with stream_options, which is dropped", v.Name)
		}
	}
}

func TestQuirksWords(t *testing.T) {
	choices := []string{"none", "auto", "required", "function"}
	formats := []string{"json_object", "json_schema"}
	finishes := []string{"stop", "length", "tool_calls", "content_filter", "error"}
	within := func(words, all []string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) })
	}
	for _, v := range Vendors() {
		q := v.Quirks
		if q.TokenLimit != "" && q.TokenLimit != "max_completion_tokens" {
			t.Errorf("%s: token limit %q", v.Name, q.TokenLimit)
		}
		if !within(q.Formats, formats) {
			t.Errorf("%s: formats %v", v.Name, q.Formats)
		}
		if !within(q.Tools.Choice, choices) || !within(q.Tools.Thinking, choices) {
			t.Errorf("%s: tool choices %v, %v", v.Name, q.Tools.Choice, q.Tools.Thinking)
		}
		for _, f := range q.Answer.Finish {
			if !slices.Contains(finishes, f.To) {
				t.Errorf("%s: finish reason %v", v.Name, f)
			}
		}
		for _, e := range q.Reasoning.EffortAs {
			if q.Reasoning.Efforts != nil && !slices.Contains(q.Reasoning.Efforts, e.To) {
				t.Errorf("%s: effort %v is not one of %v", v.Name, e, q.Reasoning.Efforts)
			}
		}
		for _, variant := range append([]Variant{{Tools: &q.Tools, Reasoning: &q.Reasoning, Temperature: &q.Temperature}}, q.Variants...) {
			checkVariant(t, v.Name, variant)
		}
		if _, err := regexp.Compile(q.Tools.CallID); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func checkVariant(t *testing.T, vendor string, v Variant) {
	var objects []string
	if r := v.Reasoning; r != nil {
		objects = append(objects, r.On, r.Off, r.Hide)
		if (r.Echo != EchoNever || r.EchoTags) && r.Out == "" {
			t.Errorf("%s: gives back reasoning that never came", vendor)
		}
		if r.EchoTags && r.Echo == EchoNever {
			t.Errorf("%s: says how reasoning goes back that does not", vendor)
		}
	}
	if v.Tools != nil {
		objects = append(objects, v.Tools.Stream)
	}
	if v.Temperature != nil {
		objects = append(objects, v.Temperature.Zero)
	}
	for _, o := range objects {
		var members map[string]json.RawMessage
		if o != "" && (json.Unmarshal([]byte(o), &members) != nil || len(members) != 1) {
			t.Errorf("%s: %s is no object of one member", vendor, o)
		}
	}
	for _, p := range v.Names {
		if _, err := path.Match(p, "x"); err != nil {
			t.Errorf("%s: %s: %v", vendor, p, err)
		}
	}
}

// What callers have met as errors, so that no edit of the table loses it.
func TestQuirksKnown(t *testing.T) {
	renames := map[string][]Pair{
		"mistral":  {{"max_completion_tokens", "max_tokens"}, {"seed", "random_seed"}},
		"zhipu":    {{"max_completion_tokens", "max_tokens"}, {"user", "user_id"}},
		"moonshot": {{"max_tokens", "max_completion_tokens"}},
		"minimax":  {{"max_tokens", "max_completion_tokens"}},
		"openai":   nil,
		"groq":     nil,
	}
	for name, want := range renames {
		v, _ := Lookup(name)
		if got := v.Quirks.Rename; !slices.Equal(got, want) {
			t.Errorf("%s: renames %v, want %v", name, got, want)
		}
	}
	drops := map[string][]string{
		"openai":     nil,
		"openrouter": nil,
		"ollama":     nil, // it ignores what it does not know
		"vllm":       nil,
		"groq":       {"logit_bias", "logprobs", "top_logprobs"},
		"cerebras":   {"frequency_penalty", "logit_bias", "presence_penalty"},
	}
	for name, want := range drops {
		v, _ := Lookup(name)
		if got := v.Quirks.Drop; !slices.Equal(got, want) {
			t.Errorf("%s: drops %v, want %v", name, got, want)
		}
	}
	mistral, _ := Lookup("mistral")
	for _, name := range []string{"store", "stream_options", "user", "logit_bias", "logprobs", "service_tier"} {
		if !slices.Contains(mistral.Quirks.Drop, name) {
			t.Errorf("mistral keeps %s", name)
		}
	}
}
