package provider

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
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
		m, ok := Facts(test.vendor, test.id)
		if !ok {
			t.Errorf("%s %s is not known", test.vendor, test.id)
			continue
		}
		got := want{m.Name, m.Context, m.MaxOutput, m.Tools, m.Reasoning, m.Vision, strings.Join(m.Efforts, " ")}
		if got != test.want {
			t.Errorf("%s %s: got %v, want %v", test.vendor, test.id, got, test.want)
		}
	}

	m, _ := Facts("openai", "gpt-5")
	released := time.Date(2025, 8, 7, 0, 0, 0, 0, time.UTC).Unix()
	if m.Created != released || m.Knowledge != "2024-09-30" || m.Structured != Yes || m.Attachments != Yes || m.Temperature != No {
		t.Errorf("gpt-5: got %+v", m)
	}
	if m, _ := Facts("deepseek", "deepseek-chat"); m.Structured != Unknown {
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
		if m, ok := Facts(test[0], test[1]); ok || m.ID != "" {
			t.Errorf("%q %q: got %+v", test[0], test[1], m)
		}
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]string{
		"vertex": "gemini-3.5-flash", "vertex-anthropic": "claude-opus-4-8@default", "bedrock": "us.anthropic.claude-opus-4-8",
	} {
		v, _ := Lookup(name)
		known := v.Known()
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
	if known := append(openai.Known(), Vendor{}.Known()...); len(known) > 0 {
		t.Errorf("%d models stand in for a list that there is", len(known))
	}
}

// The home of every maker has facts, or the entry is a misspelling.
func TestHomesHaveFacts(t *testing.T) {
	facts := loadFacts()
	for maker, home := range homes {
		if !slices.Contains(facts.makers, home) {
			t.Errorf("%s: no facts of %s", maker, home)
		}
	}
}

func TestFactsFile(t *testing.T) {
	if len(factsFile) > 60_000 {
		t.Errorf("the file has %d bytes, want at most 60000", len(factsFile))
	}
	facts := loadFacts()
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

func TestParseFactsRefuses(t *testing.T) {
	const good = "lab\tm\tM\t2026-01-01\t1\t1\ttext\ttext\tyn-yy\t\t2025"
	if _, err := parseFacts(factsSchema + "\n# about\n" + good + "\n"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"",
		good,
		"# limen model facts, schema 2\n" + good,
		factsSchema + "\nlab\tm",
		factsSchema + "\n" + strings.Replace(good, "2026-01-01", "soon", 1),
		factsSchema + "\n" + strings.Replace(good, "\t1\t", "\tone\t", 1),
		factsSchema + "\n" + strings.Replace(good, "yn-yy", "y", 1),
	} {
		if _, err := parseFacts(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestMerge(t *testing.T) {
	facts := Model{
		ID: "M", Created: 1000, OwnedBy: "maker", Name: "M", Description: "d", Context: 100, MaxOutput: 10,
		Input: []string{"text", "image"}, Output: []string{"text"}, Tools: Yes, Reasoning: Yes, Structured: Yes, Vision: Yes,
		Attachments: Yes, Temperature: No, Efforts: []string{"low"}, Thinking: []string{"enabled"}, Knowledge: "2025",
	}
	listed := Model{
		ID: "m", Created: 900, OwnedBy: "me", Name: "mine", Description: "e", Context: 50, MaxOutput: 5,
		Input: []string{"text"}, Output: []string{"audio"}, Tools: No, Reasoning: No, Structured: No, Vision: No,
		Attachments: No, Temperature: Yes, Efforts: []string{"high"}, Thinking: []string{"adaptive"}, Knowledge: "2026",
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
	table, err := readFacts(factsFile)
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
		if _, err := readFacts(factsFile); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFacts(b *testing.B) {
	for b.Loop() {
		Facts("lab", "moonshotai/Kimi-K2.6")
	}
}
