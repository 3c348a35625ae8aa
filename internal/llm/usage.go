// Package llm is the vocabulary that the other packages share: what a call
// used, and how it failed. It knows no wire format and no HTTP.
package llm

// Usage counts the tokens of one call in disjoint counters: no token is in two
// of them. Dialects that count cached tokens within the input, or reasoning
// within the output, are taken apart when they are decoded.
type Usage struct {
	Input      int64 // neither read from nor written to a cache
	CacheRead  int64
	CacheWrite int64
	Output     int64 // without reasoning
	Reasoning  int64

	// Estimated: the upstream sent no figures, these are the gateway's own.
	Estimated bool
}

// Total is the sum of the counters.
func (u Usage) Total() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning
}

// Plus is what two requests used together.
func (u Usage) Plus(v Usage) Usage {
	sum := func(a, b int64) int64 { return min(a+b, maxTokens) }
	return Usage{
		Input: sum(u.Input, v.Input), CacheRead: sum(u.CacheRead, v.CacheRead), CacheWrite: sum(u.CacheWrite, v.CacheWrite),
		Output: sum(u.Output, v.Output), Reasoning: sum(u.Reasoning, v.Reasoning), Estimated: u.Estimated || v.Estimated,
	}
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
