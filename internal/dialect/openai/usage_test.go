package openai

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestDecodeUsage(t *testing.T) {
	unknown := llm.Usage{Input: -1} // stands for "known is false"
	for raw, want := range map[string]llm.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`: {Input: 10, Output: 5},
		`{"input_tokens":10,"output_tokens":5,"total_tokens":15}`:      {Input: 10, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`: {Input: 3, CacheRead: 4, CacheWrite: 3, Output: 3, Reasoning: 2},
		`{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}`:                                  {Input: 6, CacheRead: 4, Output: 3, Reasoning: 2},
		`{"prompt_tokens":10}`:                      {Input: 10},
		`{"completion_tokens":0}`:                   {},
		`{"prompt_tokens":0,"completion_tokens":0}`: {},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":{}}`: {Input: 10, Output: 5},

		// Other servers' spellings.
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`:                   {Input: 6, CacheRead: 4, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4}`:                                                          {Input: 6, CacheRead: 4, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":4}`:                                                {Input: 6, CacheRead: 4, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"prompt_cache_hit_tokens":9}`:    {Input: 6, CacheRead: 4, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":null},"prompt_cache_hit_tokens":4}`: {Input: 6, CacheRead: 4, Output: 5},
		`{"prompt_tokens":"10","completion_tokens":"5"}`:                                                                        {Input: 10, Output: 5},
		`{"prompt_tokens":10.0,"completion_tokens":5.9}`:                                                                        {Input: 10, Output: 5},
		`{"prompt_tokens":1e3,"completion_tokens":5}`:                                                                           {Input: 1000, Output: 5},
		`{"prompt_tokens":null,"input_tokens":10,"completion_tokens":5}`:                                                        {Input: 10, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":null}`:                                                                         {Input: 10},

		// xAI counts reasoning beside the answer, and the total tells.
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}`: {Input: 10, Output: 5, Reasoning: 7},
		`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":7}}`: {Input: 10, Output: 2, Reasoning: 7},
		`{"prompt_tokens":10,"completion_tokens":9,"total_tokens":99,"completion_tokens_details":{"reasoning_tokens":7}}`: {Input: 10, Output: 2, Reasoning: 7},

		// Sound and pictures are within their sides, behind what is cached or thought.
		`{"prompt_tokens":10,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":5},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":3,"image_tokens":4}}`: {Input: 1, CacheRead: 4, AudioIn: 5, Output: 11, Reasoning: 2, AudioOut: 3, ImageOut: 4},
		`{"input_tokens":10,"output_tokens":20,"input_tokens_details":{"cached_tokens":4,"audio_tokens":99},"output_tokens_details":{"reasoning_tokens":15,"audio_tokens":4,"image_tokens":99}}`:        {CacheRead: 4, AudioIn: 6, Reasoning: 15, AudioOut: 4, ImageOut: 1},
		`{"input_tokens":10,"output_tokens":1290,"output_tokens_details":{"image_tokens":1290,"text_tokens":0}}`:                                                                                        {Input: 10, ImageOut: 1290},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"audio_tokens":-5},"completion_tokens_details":{"audio_tokens":"x"}}`:                                                       {Input: 10, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2,"cache_creation_input_tokens":3}}`:                                                                        {Input: 5, CacheRead: 2, CacheWrite: 3, Output: 5},

		// Searches: sources are counted where searches are not.
		`{"prompt_tokens":10,"num_search_queries":3}`:                                                                                {Input: 10, Searches: 3},
		`{"prompt_tokens":10,"server_tool_use":{"web_search_requests":2,"tool_calls_requested":5}}`:                                  {Input: 10, Searches: 2},
		`{"prompt_tokens":10,"num_sources_used":4}`:                                                                                  {Input: 10, Searches: 4},
		`{"prompt_tokens":10,"num_sources_used":4,"server_side_tool_usage_details":{"web_search_calls":0,"x_search_calls":0}}`:       {Input: 10},
		`{"prompt_tokens":10,"server_side_tool_usage_details":{"web_search_calls":1,"x_search_calls":2,"code_interpreter_calls":9}}`: {Input: 10, Searches: 3},
		`{"prompt_tokens":10,"num_search_queries":-3,"server_tool_use":null}`:                                                        {Input: 10},

		// What it costs.
		`{"prompt_tokens":10,"cost":0.95}`:                                                                {Input: 10, Stated: 950_000_000},
		`{"prompt_tokens":10,"cost":1.4e-05}`:                                                             {Input: 10, Stated: 14_000},
		`{"prompt_tokens":10,"cost":0.00000000049}`:                                                       {Input: 10},
		`{"prompt_tokens":10,"cost":"0.25"}`:                                                              {Input: 10, Stated: 250_000_000},
		`{"prompt_tokens":10,"cost":null}`:                                                                {Input: 10},
		`{"prompt_tokens":10,"cost":-1}`:                                                                  {Input: 10},
		`{"prompt_tokens":10,"cost":1e30}`:                                                                {Input: 10},
		`{"prompt_tokens":10,"cost":0.95,"cost_details":{"upstream_inference_cost":0.95}}`:                {Input: 10, Stated: 950_000_000},
		`{"prompt_tokens":10,"cost":0.05,"is_byok":true,"cost_details":{"upstream_inference_cost":1}}`:    {Input: 10, Stated: 1_050_000_000},
		`{"prompt_tokens":10,"cost":0.05,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}`: {Input: 10, Stated: 50_000_000},
		`{"prompt_tokens":10,"cost":{"input_tokens_cost":0.1,"total_cost":0.409}}`:                        {Input: 10, Stated: 409_000_000},
		`{"prompt_tokens":10,"cost":{"currency":"USD","total_cost":0.409}}`:                               {Input: 10, Stated: 409_000_000},
		`{"prompt_tokens":10,"cost":{"currency":"EUR","total_cost":0.409}}`:                               {Input: 10},
		`{"prompt_tokens":10,"cost_in_usd_ticks":37756000}`:                                               {Input: 10, Stated: 3_775_600},
		`{"prompt_tokens":10,"cost_in_usd_ticks":37756005,"cost":9}`:                                      {Input: 10, Stated: 3_775_601},

		// Lies: no counter is negative, no part is larger than its whole.
		`{"prompt_tokens":-1,"completion_tokens":-1}`:                                                                               unknown,
		`{"prompt_tokens":9223372036854775808,"completion_tokens":1}`:                                                               unknown,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":1}`:                                                               unknown,
		`{"prompt_tokens":1e400,"completion_tokens":-1e400}`:                                                                        unknown,
		`{"prompt_tokens":1,"completion_tokens":1e-400}`:                                                                            {Input: 1},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99}}`:                                   {CacheRead: 10, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-9}}`:                                   {Input: 10, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":6}}`:             {CacheRead: 6, CacheWrite: 4, Output: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":99}}`:                            {Input: 10, Reasoning: 5},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":"x","prompt_tokens_details":[1],"completion_tokens_details":"y"}`: {Input: 10, Output: 5},

		// Nothing that can be counted.
		``: unknown, `null`: unknown, `{}`: unknown, `[]`: unknown, `"10"`: unknown, `5`: unknown, `{`: unknown,
		`{"prompt_tokens":null,"completion_tokens":null}`:   unknown,
		`{"prompt_tokens":"many","completion_tokens":true}`: unknown,
		`{"prompt_tokens":"","completion_tokens":[5]}`:      unknown,
		`{"prompt_tokens":"NaN"}`:                           unknown,
		`{"prompt_tokens":"Infinity"}`:                      unknown,
		`{"total_tokens":15}`:                               unknown,
		`{"prompt_tokens_details":{"cached_tokens":4}}`:     unknown,
	} {
		got, known := DecodeUsage([]byte(raw))
		if !known {
			if got != (llm.Usage{}) {
				t.Errorf("%s: unknown usage is %+v", raw, got)
			}
			got = unknown
		}
		if got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", raw, got, want)
		}
	}
}

func FuzzDecodeUsage(f *testing.F) {
	f.Add([]byte(`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7},"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}`))
	f.Add([]byte(`{"input_tokens":10,"output_tokens":20,"input_tokens_details":{"audio_tokens":5},"output_tokens_details":{"audio_tokens":3,"image_tokens":4},"num_search_queries":1e9,"cost":1.2e-5,"is_byok":true,"cost_details":{"upstream_inference_cost":"9"},"cost_in_usd_ticks":5,"server_side_tool_usage_details":{"web_search_calls":9223372036854775807}}`))
	f.Add([]byte(`{"input_tokens":-1,"output_tokens":1e400}`))
	f.Add([]byte(`{"prompt_tokens":"0x10","cached_tokens":"1_0"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, known := DecodeUsage(raw)
		if !known && u != (llm.Usage{}) {
			t.Errorf("unknown usage is %+v", u)
		}
		for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.AudioIn, u.Output, u.Reasoning, u.AudioOut, u.ImageOut, u.Searches} {
			if n < 0 || n > 1<<33 {
				t.Errorf("implausible usage %+v", u)
			}
		}
		if u.Stated < 0 || u.Prompt() > 1<<33 || u.Completion() > 1<<33 {
			t.Errorf("implausible usage %+v", u)
		}
	})
}
