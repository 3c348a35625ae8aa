package openai

import (
	"errors"
	"math"
	"strconv"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// counter is a number of a usage object, if it is there.
type counter struct {
	n     int64
	known bool
}

// set takes the first number that is said.
func (c *counter) set(value []byte) {
	if !c.known {
		c.n, c.known = count(value)
	}
}

// counts are what a usage object says. Chat says prompt and completion where
// Responses says input and output.
type counts struct {
	in, out, total                      counter
	read, otherRead, written, reasoning counter
}

// DecodeUsage reads a usage object of either OpenAI dialect. Cached tokens are
// counted within the input, reasoning within the output; the result is
// disjoint. known is false when raw is no object, has no counts, or has some
// that cannot be.
func DecodeUsage(raw []byte) (u llm.Usage, known bool) {
	var c counts
	for name, value := range jsonedit.Members(raw) {
		c.take(name, value)
	}
	if !c.in.known && !c.out.known || !plausible(c.in.n) || !plausible(c.out.n) {
		return u, false
	}
	in, out, reasoning := c.in.n, c.out.n, c.reasoning.n
	if c.total.known && reasoning > 0 && c.total.n == in+out+reasoning {
		out += reasoning // this upstream counts reasoning beside the output
	}
	if !c.read.known {
		c.read = c.otherRead
	}
	in, u.CacheRead = llm.Within(in, c.read.n)
	u.Input, u.CacheWrite = llm.Within(in, c.written.n)
	u.Output, u.Reasoning = llm.Within(out, reasoning)
	return u, true
}

// take reads a member of a usage object; name has its quotes.
func (c *counts) take(name, value []byte) {
	switch string(name) {
	case `"prompt_tokens"`, `"input_tokens"`:
		c.in.set(value)
	case `"completion_tokens"`, `"output_tokens"`:
		c.out.set(value)
	case `"total_tokens"`:
		c.total.set(value)
	case `"prompt_tokens_details"`, `"input_tokens_details"`:
		for name, value := range jsonedit.Members(value) {
			switch string(name) {
			case `"cached_tokens"`:
				c.read.set(value)
			case `"cache_write_tokens"`:
				c.written.set(value)
			}
		}
	case `"completion_tokens_details"`, `"output_tokens_details"`:
		for name, value := range jsonedit.Members(value) {
			if string(name) == `"reasoning_tokens"` {
				c.reasoning.set(value)
			}
		}
	case `"prompt_cache_hit_tokens"`, `"cached_tokens"`, `"cache_read_input_tokens"`: // other servers' words
		c.otherRead.set(value)
	}
}

// plausible reports whether a count can be that of a call.
func plausible(n int64) bool { return n >= 0 && n < math.MaxInt32 }

// count reads a number, also one that is written as a string. Fractions are
// cut, and what is too large is MaxInt32.
func count(value []byte) (int64, bool) {
	if s, ok := jsonedit.Unquote(value); ok {
		value = []byte(s)
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return min(n, math.MaxInt32), true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return int64(min(max(f, -1), math.MaxInt32)), true
	}
	return 0, false
}
