package provider

import (
	"bytes"
	"compress/gzip"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/price"
)

var sampleRows = []Row{
	{"zhipu", Model{ID: "glm", Name: "G\tL  M", Created: 1767312000, Context: 1, MaxOutput: 1}},
	{"openai", Model{
		ID: "GPT", Name: "GPT", Created: 1754006400, Context: 400, MaxOutput: 100, Input: []string{"text", "image"}, Output: []string{"text"},
		Tools: Yes, Reasoning: No, Attachments: Yes, Efforts: []string{"low", "high"}, Knowledge: "2024-09",
		Prices: price.List{
			Rates: price.Rates{Input: price.RateOf(1_250_000), CacheRead: price.RateOf(0), AudioOut: price.RateOf(1)},
			Tiers: []price.Tier{{Over: 200_000, Rates: price.Rates{Output: price.RateOf(10_000_000)}}, {Over: 400_000}},
		},
	}},
	{"zhipu", Model{ID: "glm", Name: "Second", Created: 1767312000}},
}

func TestPackFacts(t *testing.T) {
	want := factsSchema + "\n# source: models.dev\n# date: 2026-07-02\n" + factsAbout +
		"openai\tGPT\tGPT\t2025-08-01\t400\t100\ttext,image\ttext\tyn-y-\tlow,high\t2024-09\t1.25,,0,,,,0.000001;200000:,10;400000:\n" +
		"zhipu\tglm\tG L M\t2026-01-02\t1\t1\t\t\t-----\t\t\t\n"
	origin := Origin{"models.dev", "2026-07-02"}
	packed, err := PackFacts(origin, sampleRows)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != want {
		t.Errorf("got\n%s%v, want\n%s", got, err, want)
	}
	if again, err := PackFacts(origin, sampleRows); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("the same rows gave other bytes, or %v", err)
	}

	facts, err := ReadFacts(packed)
	if err != nil {
		t.Fatal(err)
	}
	gpt := sampleRows[1].Model
	gpt.Vision = Yes
	if got, ok := facts.Model("openai", "gpt"); !ok || !reflect.DeepEqual(got, gpt) {
		t.Errorf("got %+v, want %+v", got, gpt)
	}
	if facts.Origin() != origin || facts.Len() != 2 {
		t.Errorf("%d models from %v", facts.Len(), facts.Origin())
	}
}

// An origin cannot add lines of its own.
func TestPackFactsOrigin(t *testing.T) {
	packed, err := PackFacts(Origin{"a\n# date: 1999-01-01\nlab\tm", "2026-07-02"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := ReadFacts(packed)
	if err != nil || facts.Len() != 0 || facts.Origin() != (Origin{"a # date: 1999-01-01 lab m", "2026-07-02"}) {
		t.Errorf("got %+v, %v", facts, err)
	}
}

func TestEmbeddedOrigin(t *testing.T) {
	if got := EmbeddedOrigin(); got != Embedded().Origin() || got.Source != "models.dev" || len(got.Date) != len("2026-07-02") {
		t.Errorf("got %+v", got)
	}
}

func TestParseFactsRefuses(t *testing.T) {
	const (
		header = factsSchema + "\n# source: s\n# date: 2026-01-01\n"
		good   = "lab\tm\tM\t2026-01-01\t1\t1\ttext\ttext\tyn-yy\t\t2025\t1,2;1000:3"
		next   = "lab\tn\tN\t2026-01-01\t1\t1\ttext\ttext\tyn-yy\t\t2025\t"
	)
	if _, err := parseFacts(header + "# about\n" + good + "\n" + next + "\n"); err != nil {
		t.Fatal(err)
	}
	if f, err := parseFacts(strings.Replace(header, factsSchema, olderSchema, 1) + good + "\n"); err != nil || f.Len() != 1 {
		t.Errorf("the older schema is not read: %v", err)
	}
	for _, text := range []string{
		"",
		good,
		strings.Replace(header, "schema 3", "schema 1", 1) + good,
		strings.Replace(header, "# source", "# origin", 1) + good,
		strings.Replace(header, "2026-01-01", "today", 1) + good,
		header + "lab\tm",
		header + next + "\n" + good,
		header + good + "\n" + good,
		header + strings.Replace(good, "2026-01-01", "soon", 1),
		header + strings.Replace(good, "\t1\t", "\tone\t", 1),
		header + strings.Replace(good, "\t1\t", "\t-1\t", 1),
		header + strings.Replace(good, "yn-yy", "y", 1),
		header + strings.Replace(good, "1,2", "-1,2", 1),
		header + strings.Replace(good, "1,2", "1,2,3,4,5,6,7,8,9,10", 1),
		header + strings.Replace(good, "1000:3", "1000:x", 1),
		header + strings.Replace(good, "1000:3", "0:3", 1),
		header + strings.Replace(good, "1000:3", "1000:3;10:3", 1),
	} {
		if _, err := parseFacts(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestReadFactsIsBounded(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, factsSchema+"\n# source: s\n# date: 2026-01-01\n"+strings.Repeat("# more of it\n", factsSize/13))
	z.Close()
	if _, err := ReadFacts(packed.Bytes()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadFacts([]byte("no gzip")); err == nil {
		t.Error("it was read")
	}
}
