package provider

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/price"
)

func TestFacts(t *testing.T) {
	type want struct {
		name               string
		context, maxOutput int
		tools, reasoning   Ability
		vision             Ability
		efforts            string
	}
	gpt5 := want{"GPT-5", 400000, 128000, Yes, Yes, Yes, "minimal low medium high"}
	tests := []struct {
		vendor, id string
		want       want
	}{
		{"openai", "gpt-5", gpt5},
		{"openai", "gpt-5-2025-08-07", gpt5},
		{"openai", "gpt-5-20250807", gpt5},
		{"lab", "gpt-5", gpt5},        // at OpenAI and Azure: the maker's counts
		{"lab", "openai/gpt-5", gpt5}, // three resellers have it so, and the maker
		{"openai", "gpt-4o", want{"GPT-4o", 128000, 16384, Yes, No, Yes, ""}},
		{"anthropic", "claude-sonnet-4-5-20250929", want{"Claude Sonnet 4.5", 200000, 64000, Yes, Yes, Yes, ""}},
		{"deepseek", "deepseek-v4-pro", want{"DeepSeek V4 Pro", 1000000, 384000, Yes, Yes, No, "high max"}},
		{"groq", "openai/gpt-oss-120b", want{"GPT OSS 120B", 131072, 65536, Yes, Yes, No, "low medium high"}},
		{"vllm", "moonshotai/Kimi-K2.6", want{"Kimi K2.6", 262144, 262144, Yes, Yes, Yes, ""}},
		{"vllm", "zai-org/GLM-4.7", want{"GLM-4.7", 204800, 131072, Yes, Yes, No, ""}},
		{"xai", "grok-4.3", want{"Grok 4.3", 1000000, 30000, Yes, Yes, Yes, "none low medium high"}},
		{"bedrock", "apac.anthropic.claude-opus-4-8-v1:0", want{"Claude Opus 4.8", 1000000, 128000, Yes, Yes, Yes, "low medium high xhigh max"}},
		{"bedrock", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-8", want{"Claude Opus 4.8", 1000000, 128000, Yes, Yes, Yes, "low medium high xhigh max"}},
		{"vertex-anthropic", "claude-opus-4-8@default", want{"Claude Opus 4.8", 1000000, 128000, Yes, Yes, Yes, "low medium high xhigh max"}},
		{"vertex", "gemini-3.5-flash", want{"Gemini 3.5 Flash", 1048576, 65536, Yes, Yes, Yes, "minimal low medium high"}},
		{"cerebras", "gpt-oss-120b", want{"GPT OSS 120B", 131072, 40960, Yes, Yes, No, "low medium high"}},
	}
	for _, test := range tests {
		m, ok := Embedded().Model(test.vendor, test.id)
		if !ok {
			t.Errorf("%s %s is not known", test.vendor, test.id)
			continue
		}
		got := want{m.Name, m.Context, m.MaxOutput, m.Tools, m.Reasoning, m.Vision, strings.Join(m.Efforts, " ")}
		if got != test.want {
			t.Errorf("%s %s: got %v, want %v", test.vendor, test.id, got, test.want)
		}
	}

	m, _ := Embedded().Model("openai", "gpt-5")
	released := time.Date(2025, 8, 7, 0, 0, 0, 0, time.UTC).Unix()
	if m.Created != released || m.Knowledge != "2024-09-30" || m.Structured != Yes || m.Attachments != Yes || m.Temperature != No {
		t.Errorf("gpt-5: got %+v", m)
	}
	if m, _ := Embedded().Model("deepseek", "deepseek-chat"); m.Structured != Unknown {
		t.Errorf("deepseek-chat: structured %v, want unknown: nobody said", m.Structured)
	}
}

func TestFactsNotKnown(t *testing.T) {
	for _, test := range [][2]string{
		{"openai", "no-such-model"},
		{"openai", ""},
		{"openai", "-2025-08-07"},
		{"", ""},
		{"lab", "openai/"},
		{"lab", "openai/gpt-oss-120b"}, // many serve it, each with other limits, and none is its maker
	} {
		if m, ok := Embedded().Model(test[0], test[1]); ok || m.ID != "" {
			t.Errorf("%q %q: got %+v", test[0], test[1], m)
		}
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]string{
		"vertex": "gemini-3.5-flash", "vertex-anthropic": "claude-opus-4-8@default", "bedrock": "us.anthropic.claude-opus-4-8",
	} {
		v, _ := Lookup(name)
		known := Embedded().Known(v)
		has := func(id string) bool {
			return slices.ContainsFunc(known, func(m Model) bool { return m.ID == id })
		}
		if !has(want) || name == "vertex" && has("claude-opus-4-8@default") {
			t.Errorf("%s: %d models, want %s among them and those only that are its own", name, len(known), want)
		}
		if !slices.IsSortedFunc(known, func(a, b Model) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("%s: not sorted", name)
		}
	}
	openai, _ := Lookup("openai")
	if known := append(Embedded().Known(openai), Embedded().Known(Vendor{})...); len(known) > 0 {
		t.Errorf("%d models stand in for a list that there is", len(known))
	}
}

// Prices are those of the vendor that is asked, never of another that has the
// same model.
func TestFactsPrices(t *testing.T) {
	for _, test := range []struct{ vendor, id, want string }{
		{"openai", "gpt-5", "1.25,10,0.125"},
		{"openai", "gpt-5-2025-08-07", "1.25,10,0.125"},
		{"openai", "openai/gpt-5", "1.25,10,0.125"},
		{"azure", "gpt-5.5", "5,30,0.5;272000:10,45,1"},
		{"lab", "gpt-5", ""},
		{"lab", "openai/gpt-5", ""},
		{"vllm", "moonshotai/Kimi-K2.6", ""},
		{"bedrock", "apac.anthropic.claude-opus-4-8-v1:0", ""},
		{"minimax", "MiniMax-M2.1", "0.3,1.2,0.03,0.375"}, // by other names
		{"bedrock", "google.gemma-3-12b-it", "0.05,0.1"},  // 0.049999999999999996 and 0.09999999999999999 there
		{"github-models", "openai/gpt-4.1", "0,0"},        // stated, and nothing to pay
		{"ollama", "gpt-oss:120b", ""},                    // nobody said
	} {
		m, ok := Embedded().Model(test.vendor, test.id)
		if got := m.Prices.String(); !ok || got != test.want {
			t.Errorf("%s %s: %q, %v, want %q", test.vendor, test.id, got, ok, test.want)
		}
	}
}

func TestSince(t *testing.T) {
	facts := func(rows ...Row) *Facts {
		t.Helper()
		packed, err := PackFacts(Origin{"s", "2026-01-01"}, rows)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ReadFacts(packed)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	row := func(id string, context int, input int64) Row {
		return Row{"lab", Model{ID: id, Name: id, Context: context, Prices: price.List{Rates: price.Rates{Input: price.RateOf(input)}}}}
	}
	old := facts(row("same", 1, 1), row("longer", 1, 1), row("dearer", 1, 1), row("both", 1, 1), row("gone", 1, 1))
	now := facts(row("same", 1, 1), row("longer", 2, 1), row("dearer", 1, 2), row("both", 2, 2), row("new", 1, 1), row("newer", 1, 1))
	if got, want := now.Since(old), (Changes{New: 2, Gone: 1, Changed: 2, Prices: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := now.Since(now); got != (Changes{}) {
		t.Errorf("nothing changed: %+v", got)
	}
}

// The home of every maker has facts, or the entry is a misspelling.
func TestHomesHaveFacts(t *testing.T) {
	facts := Embedded()
	for maker, home := range homes {
		if !slices.Contains(facts.makers, home) {
			t.Errorf("%s: no facts of %s", maker, home)
		}
	}
}

func TestFactsFile(t *testing.T) {
	if len(embedded) > 60_000 {
		t.Errorf("the file has %d bytes, want at most 60000", len(embedded))
	}
	facts := Embedded()
	if n := len(facts.models); n < 1500 {
		t.Errorf("%d models, want all of the file", n)
	}
	for key, m := range facts.models {
		if m.ID == "" || m.Name == "" || m.Created <= 0 || m.Context < 0 || m.MaxOutput < 0 ||
			len(m.Input) == 0 || len(m.Output) == 0 || m.Tools == Unknown || m.Reasoning == Unknown {
			t.Errorf("%v: %+v", key, m)
		}
	}
}

func TestMerge(t *testing.T) {
	facts := Model{
		ID: "M", Created: 1000, OwnedBy: "maker", Name: "M", Description: "d", Context: 100, MaxOutput: 10,
		Input: []string{"text", "image"}, Output: []string{"text"}, Tools: Yes, Reasoning: Yes, Structured: Yes, Vision: Yes,
		Attachments: Yes, Temperature: No, Efforts: []string{"low"}, Thinking: []string{"enabled"}, Knowledge: "2025",
		Prices: price.List{Rates: price.Rates{Input: price.RateOf(1), Output: price.RateOf(2)}, Tiers: []price.Tier{{Over: 1}}},
	}
	listed := Model{
		ID: "m", Created: 900, OwnedBy: "me", Name: "mine", Description: "e", Context: 50, MaxOutput: 5,
		Input: []string{"text"}, Output: []string{"audio"}, Tools: No, Reasoning: No, Structured: No, Vision: No,
		Attachments: No, Temperature: Yes, Efforts: []string{"high"}, Thinking: []string{"adaptive"}, Knowledge: "2026",
		Prices: price.List{Rates: price.Rates{Input: price.RateOf(3), Output: price.RateOf(0)}, Tiers: []price.Tier{{Over: 2}}},
	}
	for i, v, w := 0, reflect.ValueOf(listed), reflect.ValueOf(facts); i < v.NumField(); i++ {
		if v.Field(i).IsZero() || w.Field(i).IsZero() {
			t.Fatalf("the test leaves out %s", v.Type().Field(i).Name)
		}
	}
	tests := []struct {
		name                string
		listed, facts, want Model
	}{
		{"the list wins", listed, facts, listed},
		{"facts fill the gaps", Model{}, facts, facts},
		{"no facts", listed, Model{}, listed},
		{"prices one by one", Model{Prices: price.List{Rates: price.Rates{Input: price.RateOf(3)}}}, facts, Model{
			ID: "M", Created: 1000, OwnedBy: "maker", Name: "M", Description: "d", Context: 100, MaxOutput: 10,
			Input: facts.Input, Output: facts.Output, Tools: Yes, Reasoning: Yes, Structured: Yes, Vision: Yes,
			Attachments: Yes, Temperature: No, Efforts: facts.Efforts, Thinking: facts.Thinking, Knowledge: "2025",
			Prices: price.List{Rates: price.Rates{Input: price.RateOf(3), Output: price.RateOf(2)}, Tiers: facts.Prices.Tiers},
		}},
		{"the time of the call is no release", Model{ID: "m", Created: 2000}, Model{Created: 1000}, Model{ID: "m", Created: 1000}},
	}
	for _, test := range tests {
		if got := Merge(test.listed, test.facts); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestFactsMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table, err := readFacts(strings.NewReader(embedded))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d models hold %d KB", len(table.models), held>>10)
	if held > 1_500_000 {
		t.Errorf("the facts hold %d bytes, want at most 1500000", held)
	}
}

func BenchmarkReadFacts(b *testing.B) {
	for b.Loop() {
		if _, err := readFacts(strings.NewReader(embedded)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFacts(b *testing.B) {
	for b.Loop() {
		Embedded().Model("lab", "moonshotai/Kimi-K2.6")
	}
}
