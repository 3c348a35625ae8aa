package price

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// What a cost is made of comes to the cost.
func TestParts(t *testing.T) {
	list := List{Rates: Rates{Input: RateOf(3_000_000), Output: RateOf(15_000_000), CacheRead: RateOf(300_000)}, Flex: 50, Search: FeeOf(10_000_000)}
	for _, test := range []struct {
		usage llm.Usage
		want  map[string]money.Amount
	}{
		{llm.Usage{}, map[string]money.Amount{}},
		{llm.Usage{Input: 100, CacheRead: 1000, Output: 10, Reasoning: 20}, map[string]money.Amount{"input": 300_000, "cache_read": 300_000, "output": 150_000, "reasoning": 300_000}},
		{llm.Usage{Input: 100, Service: llm.Flex}, map[string]money.Amount{"input": 150_000}},
		{llm.Usage{Output: 1, Searches: 2}, map[string]money.Amount{"output": 15_000, "fees": 20_000_000}},
		{llm.Usage{Input: 1, AudioIn: 1}, map[string]money.Amount{}},         // sound has no price
		{llm.Usage{Input: 1, Service: llm.Other}, map[string]money.Amount{}}, // nor has the service
	} {
		parts := list.Parts(&test.usage)
		var sum money.Amount
		for _, part := range parts {
			if want, ok := test.want[part.Kind]; !ok || part.Cost != want {
				t.Errorf("%+v: %s costs %s, want %s", test.usage, part.Kind, part.Cost, want)
			}
			sum = sum.Plus(part.Cost)
		}
		if cost, _ := list.Cost(&test.usage); sum != cost || len(parts) != len(test.want) {
			t.Errorf("%+v: %d parts of %s in all, want %d of %s", test.usage, len(parts), sum, len(test.want), cost)
		}
	}
}
