// Package llm is the vocabulary that the other packages share: what a call
// used, and how it failed. It knows no wire format and no HTTP.
package llm

import "github.com/limen-gateway/limen/internal/money"

// Usage counts the tokens of one call in disjoint counters: no token is in two
// of them. Dialects that count cached tokens within the input, or reasoning
// within the output, are taken apart when they are decoded.
type Usage struct {
	Input      int64 // text and pictures, neither read from nor written to a cache
	CacheRead  int64
	CacheWrite int64 // for the cache's usual time
	HourWrite  int64 // written to be kept for an hour
	AudioIn    int64
	Output     int64 // without reasoning
	Reasoning  int64
	AudioOut   int64
	ImageOut   int64

	Searches int64        // that the upstream ran and takes money for, each
	Service  Service      // that the upstream says it gave
	Stated   money.Amount // what the upstream says that the call costs; 0: it does not say

	// Longest is the prompt of the longest of several requests that this is the
	// sum of, where that is less than Prompt: a price goes by the prompt of each.
	Longest int64

	// Estimated: the upstream sent no figures, these are the gateway's own.
	Estimated bool
}

// Service is the kind of service that an upstream gave a call, for which its
// prices differ.
type Service uint8

// The kinds of service.
const (
	Standard Service = iota
	Flex
	Priority
	Batch
	Other // one that is none of these, such as capacity that was bought before
)

// String is the word for the service in records; "" for the usual one.
func (s Service) String() string { return [...]string{"", "flex", "priority", "batch", "other"}[s] }

// ServiceOf is the service with a word of String.
func ServiceOf(word string) Service {
	for s := range Other + 1 {
		if s.String() == word {
			return s
		}
	}
	return Standard
}

// Prompt is the sum of the counters of what the model was given.
func (u Usage) Prompt() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.HourWrite + u.AudioIn
}

// Completion is the sum of the counters of what the model made.
func (u Usage) Completion() int64 { return u.Output + u.Reasoning + u.AudioOut + u.ImageOut }

// Total is the sum of the counters of tokens.
func (u Usage) Total() int64 { return u.Prompt() + u.Completion() }

// LongestPrompt is the longest prompt of a single request.
func (u Usage) LongestPrompt() int64 {
	if u.Longest > 0 {
		return u.Longest
	}
	return u.Prompt()
}

// Plus is what two requests used together.
func (u Usage) Plus(v Usage) Usage {
	longest := max(u.LongestPrompt(), v.LongestPrompt())
	mine, others := u.counters(), v.counters()
	for i, n := range mine {
		*n = min(*n+*others[i], maxTokens)
	}
	u.Service = max(u.Service, v.Service)
	u.Stated = u.Stated.Plus(v.Stated)
	if u.Longest = longest; longest == u.Prompt() {
		u.Longest = 0
	}
	u.Estimated = u.Estimated || v.Estimated
	return u
}

func (u *Usage) counters() [10]*int64 {
	return [...]*int64{&u.Input, &u.CacheRead, &u.CacheWrite, &u.HourWrite, &u.AudioIn, &u.Output, &u.Reasoning, &u.AudioOut, &u.ImageOut, &u.Searches}
}

// maxTokens bounds a counter: no model takes or gives as much, and sums of
// such counters cannot overflow.
const maxTokens = 1 << 40

// Within takes part out of whole where the part is counted in the whole, and
// clamps both to what is plausible: an upstream may send anything.
func Within(whole, part int64) (rest, clamped int64) {
	whole = min(max(whole, 0), maxTokens)
	part = min(max(part, 0), whole)
	return whole - part, part
}

// bytesPerToken is the rule of thumb for estimates (English prose and code).
const bytesPerToken = 4

// Estimate is the usage of a call whose upstream sent no figures, from the
// sizes of what was sent and received, in bytes.
func Estimate(in, out int64) Usage {
	return Usage{
		Input:     (in + bytesPerToken - 1) / bytesPerToken,
		Output:    (out + bytesPerToken - 1) / bytesPerToken,
		Estimated: true,
	}
}
