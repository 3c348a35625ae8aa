package gateway

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestMetered(t *testing.T) {
	for _, c := range []struct {
		usage  llm.Usage
		weight int
		want   int64
	}{
		{llm.Usage{}, 100, 0},
		{llm.Usage{Input: 5, CacheRead: 100, CacheWrite: 7, HourWrite: 3, AudioIn: 1, Output: 20, Reasoning: 4, AudioOut: 2, ImageOut: 8}, 100, 150},
		{llm.Usage{Input: 5, CacheRead: 101, Output: 20}, 10, 36},
		{llm.Usage{Input: 5, CacheRead: 100, Output: 20}, 0, 25},
		{llm.Usage{Input: 1 << 40, CacheRead: 1 << 40, Output: 1 << 40}, 100, mostMetered},
	} {
		call := &Call{Usage: c.usage, set: &Settings{CacheRead: c.weight}}
		if got := call.metered(); got != c.want {
			t.Errorf("%+v with %d %%: %d tokens count, want %d", c.usage, c.weight, got, c.want)
		}
	}
}
