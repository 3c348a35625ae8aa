package anthropic

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestCounts(t *testing.T) {
	for name, test := range map[string]struct {
		usages []string
		want   llm.Usage
	}{
		"writes by time alone": {[]string{`{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}}`}, llm.Usage{Input: 1, CacheWrite: 2, HourWrite: 3}},
		"writes in all alone":  {[]string{`{"input_tokens":1,"cache_creation_input_tokens":5,"cache_creation":null}`}, llm.Usage{Input: 1, CacheWrite: 5}},
		"a part too large": {[]string{`{"input_tokens":1,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":9}}`},
			llm.Usage{Input: 1, HourWrite: 9}},
		"replaced, not added": {[]string{
			`{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":3},"server_tool_use":{"web_search_requests":1},"service_tier":"priority","output_tokens":1}`,
			`{"output_tokens":9,"server_tool_use":{"web_search_requests":2}}`,
		}, llm.Usage{Input: 1, HourWrite: 3, Output: 9, Searches: 2, Service: llm.Priority}},
		"null erases nothing": {[]string{
			`{"input_tokens":1,"server_tool_use":{"web_search_requests":1},"service_tier":"batch","speed":"fast","iterations":[{"type":"compaction","input_tokens":7}]}`,
			`{"input_tokens":null,"server_tool_use":null,"service_tier":null,"speed":null,"iterations":null}`,
		}, llm.Usage{Input: 8, Searches: 1, Service: llm.Other, Longest: 7}},
		"each turn of the model": {[]string{`{"input_tokens":300,"cache_read_input_tokens":50,"output_tokens":9,"iterations":[` +
			`{"type":"message","input_tokens":100,"output_tokens":4},{"type":"message","input_tokens":200,"cache_read_input_tokens":50,"output_tokens":5}]}`},
			llm.Usage{Input: 300, CacheRead: 50, Output: 9, Longest: 250}},
		"turns within turns":    {[]string{`{"input_tokens":1,"iterations":[{"type":"compaction","input_tokens":2,"iterations":[{"type":"compaction","input_tokens":4}]}]}`}, llm.Usage{Input: 3, Longest: 2}},
		"what cannot be":        {[]string{`{"input_tokens":1,"cache_creation":[1],"server_tool_use":{"web_search_requests":-1},"service_tier":"a new one"}`}, llm.Usage{Input: 1, Service: llm.Other}},
		"a cost that is stated": {[]string{`{"input_tokens":1,"output_tokens":1,"cost":2.5e-3}`}, llm.Usage{Input: 1, Output: 1, Stated: 2_500_000}},
	} {
		var c counts
		for _, usage := range test.usages {
			c.merge([]byte(usage))
		}
		if got := c.usage(); got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, test.want)
		}
	}
}
