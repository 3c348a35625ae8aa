package gemini

import (
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// Searches are known with the grounding, which may come before the usage and
// after it, and with each request of an answer that goes on.
func TestSearches(t *testing.T) {
	const queries = `"groundingMetadata":{"webSearchQueries":["a","b"]}`
	for name, test := range map[string]struct {
		chunks []string
		want   llm.Usage
	}{
		"grounding behind the usage": {[]string{
			`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
			`{"candidates":[{"finishReason":"STOP",` + queries + `}]}`,
		}, llm.Usage{Input: 5, Output: 1, Searches: 2}},
		"grounding before it": {[]string{
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP",` + queries + `}]}`,
			`{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
		}, llm.Usage{Input: 5, Output: 1, Searches: 2}},
		"the last grounding is whole": {[]string{
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},` + queries + `}],"usageMetadata":{"promptTokenCount":5}}`,
			`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b","c"]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
		}, llm.Usage{Input: 5, Output: 1, Searches: 3}},
		"what is billed goes first": {[]string{
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP",` + queries + `}],` +
				`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"billedToolCalls":[{"tool":"google_search","successfulToolCallCount":1}]}}`,
		}, llm.Usage{Input: 5, Output: 1, Searches: 1}},
		"two requests": {[]string{
			`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"CONTINUATION","continuationToken":"T",` + queries + `}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
			`{"candidates":[{"content":{"parts":[{"text":"y"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["c"]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`,
		}, llm.Usage{Input: 14, Output: 2, Searches: 3, Longest: 9}},
	} {
		d := longAnswer(1)
		var events []llm.Event
		for _, chunk := range test.chunks {
			var err error
			if events, err = d.Frame(events, sse.Frame{Data: []byte(chunk)}); err != nil {
				t.Fatal(name, err)
			}
			d.Resume(false)
		}
		var got llm.Usage
		for _, e := range events {
			if used, ok := e.(llm.Used); ok {
				got = used.Usage
			}
		}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// No part is more than its whole, and none is negative.
func TestUsageLies(t *testing.T) {
	for raw, want := range map[string]llm.Usage{
		`{"promptTokenCount":10,"cachedContentTokenCount":8,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":99}]}`:                                                                   {CacheRead: 8, AudioIn: 2},
		`{"promptTokenCount":10,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":-4}],"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":3}]}`:                                    {Input: 10},
		`{"candidatesTokenCount":10,"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":9223372036854775807},{"modality":"AUDIO","tokenCount":6}]}`:                                  {AudioOut: 6, ImageOut: 4},
		`{"candidatesTokenCount":10,"billedToolCalls":[{"tool":"GOOGLE_SEARCH","successfulToolCallCount":-3},{"tool":"GOOGLE_MAPS","successfulToolCallCount":2}],"trafficType":"A_NEW_ONE"}`: {Output: 10, Service: llm.Other},
	} {
		if got, known, _ := decodeUsage(llm.Raw(raw)); got != want || !known {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", raw, got, known, want)
		}
	}
}
