package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// viewer sees the models that match its patterns.
type viewer struct {
	name string
	sees config.Pattern
}

func (v viewer) KeyName() string        { return v.name }
func (v viewer) Sees(model string) bool { return v.sees.Match(model) }

func newTable() *Table {
	return NewTable([]*Model{
		{ID: "team", VisibleTo: []config.Pattern{"team-*", "boss"}, Targets: []Target{{Model: "own"}}},
		{ID: "openai/gpt-5", Targets: []Target{{Model: "gpt-5"}}},
		{ID: "openai/gpt-5-mini", Targets: []Target{{Model: "gpt-5-mini"}}},
		{ID: "anthropic/claude-sonnet", Targets: []Target{{Model: "claude-sonnet"}}},
		{ID: "openai/gpt-5", Targets: []Target{{Model: "a second one"}}},
	})
}

func ids(models []*Model) []string {
	list := []string{}
	for _, m := range models {
		list = append(list, m.ID)
	}
	return list
}

func TestVisible(t *testing.T) {
	table := newTable()
	all := []string{"anthropic/claude-sonnet", "openai/gpt-5", "openai/gpt-5-mini", "team"}
	if got := ids(table.All()); !slices.Equal(got, all) {
		t.Errorf("All() = %q, want %q", got, all)
	}
	for v, want := range map[viewer][]string{
		{"team-a", "*"}:        all,
		{"boss", "*"}:          all,
		{"someone", "*"}:       all[:3],
		{"team-a", "openai/*"}: all[1:3],
		{"team-a", "team"}:     all[3:],
		{"someone", "team"}:    {},
		{"team-a", "gpt-5"}:    {}, // the upstream's name is no ID
	} {
		if got := ids(table.Visible(v)); !slices.Equal(got, want) {
			t.Errorf("%v sees %q, want %q", v, got, want)
		}
		for _, m := range table.All() {
			got, err := table.Resolve(v, m.ID)
			if usable := slices.Contains(want, m.ID); usable != (err == nil) || usable && got != m {
				t.Errorf("%v resolves %s to %v, %v", v, m.ID, got, err)
			}
		}
	}
}

func TestOfTwoModelsTheFirstCounts(t *testing.T) {
	m, err := newTable().Resolve(viewer{"x", "*"}, "openai/gpt-5")
	if err != nil || m.Targets[0].Model != "gpt-5" {
		t.Errorf("got %v, %v", m, err)
	}
}

// A model that is hidden from a key cannot be told from one that is not there.
func TestResolveHidesModels(t *testing.T) {
	table := newTable()
	someone := viewer{"someone", "*"}
	_, hidden := table.Resolve(someone, "team")
	_, missing := table.Resolve(someone, "tean")
	text := func(err error) string {
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.NoModel || e.Param != "model" {
			t.Fatalf("got %v, want that there is no such model", err)
		}
		return e.Message
	}
	if got, want := text(hidden), strings.ReplaceAll(text(missing), "tean", "team"); got != want {
		t.Errorf("hidden: %q\nmissing: %q", got, want)
	}
	if _, rest, _ := strings.Cut(text(missing), "access to it."); strings.Contains(rest, "team") {
		t.Errorf("a hidden model is suggested: %q", rest)
	}
	if got := text(func() error { _, err := table.Resolve(viewer{"x", "nothing"}, "a"); return err }()); !strings.Contains(got, "No model is visible") {
		t.Errorf("a key that sees nothing is told %q", got)
	}
}

func TestResolveExactly(t *testing.T) {
	for _, id := range []string{"", "OpenAI/gpt-5", "openai/gpt-5 ", "openai//gpt-5", "gpt-5", strings.Repeat("x", 1<<20), "\x00\xff"} {
		_, err := newTable().Resolve(viewer{"x", "*"}, id)
		if err == nil {
			t.Errorf("%.20q is resolved", id)
		} else if n := len(err.Error()); n > 500 {
			t.Errorf("%.20q is answered with %d bytes", id, n)
		}
	}
}

func TestNearest(t *testing.T) {
	table := newTable()
	for id, want := range map[string]string{
		"gpt-5":             "openai/gpt-5",
		"gpt5":              "openai/gpt-5",
		"OpenAI/GPT-5":      "openai/gpt-5",
		"gpt-5-mni":         "openai/gpt-5-mini",
		"claude":            "anthropic/claude-sonnet",
		"claude-sonet":      "anthropic/claude-sonnet",
		"antropic/sonnet":   "anthropic/claude-sonnet",
		"openai/gpt-5-nano": "openai/gpt-5-mini",
	} {
		if got := nearest(table.All(), id); len(got) != 3 || got[0] != want {
			t.Errorf("nearest to %q are %q, want %s first", id, got, want)
		}
	}
	if got := nearest(table.All()[:1], "x"); len(got) != 1 {
		t.Errorf("of one model %d are near", len(got))
	}
}

// A wrong name must not cost more than serving a good one.
func BenchmarkResolveUnknown(b *testing.B) {
	var models []*Model
	for i := range 2000 {
		models = append(models, &Model{ID: fmt.Sprintf("provider-%d/some-model-with-a-name-%d", i%7, i)})
	}
	table := NewTable(models)
	for b.Loop() {
		table.Resolve(viewer{"x", "*"}, strings.Repeat("x", 1000))
	}
}

// TestMetersOutliveTables has a model's limits change, go and come.
func TestMetersOutliveTables(t *testing.T) {
	r, now := NewRegistry(), time.Now()
	use := func(m *limit.Meter) bool {
		_, refused := limit.Enter(now, limit.Need{}, m)
		return refused == nil
	}
	if m := r.Meter("m", limit.Rates{Requests: 1}); m.Owner != limit.OfModel || !use(m) || use(m) {
		t.Error("a limit of one let in none or two")
	}
	r.Sweep()
	if use(r.Meter("m", limit.Rates{Requests: 1})) || !use(r.Meter("other", limit.Rates{Requests: 1})) {
		t.Error("what was used is forgotten, or is another model's")
	}
	if !use(r.Meter("m", limit.Rates{Requests: 2})) {
		t.Error("a higher limit does not count")
	}
	r.Sweep()
	r.Sweep() // nobody asked for it in between
	if !use(r.Meter("m", limit.Rates{Requests: 1})) {
		t.Error("what nobody asked for is kept")
	}
}
