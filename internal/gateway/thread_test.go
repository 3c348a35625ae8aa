package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

func TestThreadOf(t *testing.T) {
	opening := dialect.Prompt{Items: []byte(`[{"role":"user","content":"a"},{"role":"assistant"}]`)}
	longer := dialect.Prompt{Items: []byte(`[{"role":"user","content":"a"},{"role":"assistant"},{"role":"user"}]`)}
	named := dialect.Prompt{Items: opening.Items, Thread: []byte(`"t"`)}
	session := http.Header{"Session-Id": {"s"}}
	if threadOf(&opening, nil) != threadOf(&longer, nil) {
		t.Error("two turns of one conversation are two threads")
	}
	if threadOf(&opening, session) == threadOf(&opening, nil) || threadOf(&named, session) == threadOf(&opening, session) {
		t.Error("a name of the conversation does not count")
	}
	if threadOf(&named, session) != threadOf(&named, nil) {
		t.Error("the body's name does not go before the header's")
	}
}

// Why a cache was not read is told, and only where one was to be expected.
func TestCacheMissed(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	items := func(turns int) []byte {
		return []byte(`[{"role":"user","content":"` + strings.Repeat("long ", 2000) + `"}` + strings.Repeat(`,{"role":"assistant","content":"so"},{"role":"user","content":"and"}`, turns) + `]`)
	}
	turn := func(p dialect.Prompt, account string, after time.Duration) *turnSeen {
		return &turnSeen{print: fingerprintOf(&p), account: account, model: "m", at: begun.Add(after)}
	}
	first := dialect.Prompt{Items: items(0)}
	second := dialect.Prompt{Items: items(1)}
	edited := dialect.Prompt{Items: []byte(strings.Replace(string(second.Items), "long long", "long song", 1))}
	late := dialect.Prompt{Items: append([]byte(strings.TrimSuffix(string(second.Items), `nd"}]`)), `s"}]`...)}
	instructed := dialect.Prompt{Items: second.Items, Instructions: []byte(`"be brief"`)}
	tools := dialect.Prompt{Items: second.Items, Tools: []byte(`[{}]`)}
	cut := dialect.Prompt{Items: append(second.Items[:5000:5000], `"}]`...)}
	for name, tt := range map[string]struct {
		turn  *turnSeen
		usage llm.Usage
		want  string
	}{
		"read":               {turn(second, "a", time.Second), llm.Usage{CacheRead: 1}, ""},
		"estimated":          {turn(second, "a", time.Second), llm.Usage{Estimated: true}, ""},
		"short":              {turn(dialect.Prompt{Items: []byte(`[]`)}, "a", time.Second), llm.Usage{}, ""},
		"another account":    {turn(second, "a#2", time.Second), llm.Usage{}, "another account answered: a#2 after a"},
		"other tools":        {turn(tools, "a", time.Second), llm.Usage{}, "the tools changed"},
		"other instructions": {turn(instructed, "a", time.Second), llm.Usage{}, "the instructions changed"},
		"edited":             {turn(edited, "a", time.Second), llm.Usage{}, "the conversation changed between its bytes 0 and 256"},
		"cut":                {turn(cut, "a", time.Second), llm.Usage{}, "the conversation changed between its bytes 4864 and 5120"},
		"edited at its end":  {turn(late, "a", time.Second), llm.Usage{}, "the upstream did not read it, 1s after the turn before"},
		"late":               {turn(second, "a", 6*time.Minute), llm.Usage{}, "6m0s had passed since the turn before"},
		"no reason":          {turn(second, "a", 2*time.Second), llm.Usage{}, "the upstream did not read it, 2s after the turn before"},
	} {
		w := newCacheWatch()
		if got := w.see(7, turn(first, "a", 0), llm.Usage{CacheWrite: 2000}); got != "" {
			t.Fatalf("the first turn missed a cache: %s", got)
		}
		if got := w.see(7, tt.turn, tt.usage); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	w := newCacheWatch()
	w.see(7, turn(first, "a", 0), llm.Usage{})
	if got := w.see(7, turn(second, "a", time.Second), llm.Usage{}); got != "" {
		t.Errorf("of an upstream that has no cache: %s", got)
	}
}
