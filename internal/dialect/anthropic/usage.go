package anthropic

import (
	"math"
	"strconv"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// counts are what the usage objects of an answer say: each replaces what came
// before it, member by member, on the input side too. Null erases nothing.
type counts struct {
	input, read, written, output, thinking int64
	known                                  bool
}

// merge takes over a usage object.
func (c *counts) merge(usage []byte) {
	for name, value := range jsonedit.Members(usage) {
		switch string(name) {
		case `"input_tokens"`:
			c.set(&c.input, value)
		case `"cache_read_input_tokens"`:
			c.set(&c.read, value)
		case `"cache_creation_input_tokens"`:
			c.set(&c.written, value)
		case `"output_tokens"`:
			c.set(&c.output, value)
		case `"output_tokens_details"`:
			if n, ok := count(llm.Raw(member(value, "thinking_tokens"))); ok {
				c.thinking = n
			}
		}
	}
}

func (c *counts) set(n *int64, value []byte) {
	if v, ok := count(value); ok {
		*n, c.known = v, true
	}
}

// usage is what was counted, in disjoint counters.
func (c *counts) usage() (u llm.Usage) {
	u.Input, _ = llm.Within(c.input, 0)
	u.CacheRead, _ = llm.Within(c.read, 0)
	u.CacheWrite, _ = llm.Within(c.written, 0)
	u.Output, u.Reasoning = llm.Within(c.output, c.thinking)
	return u
}

// count reads a count of tokens; what cannot be one is none.
func count(value []byte) (int64, bool) {
	if jsonedit.KindOf(value) != jsonedit.KindNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || f != math.Trunc(f) {
			return 0, false
		}
		n = int64(min(max(f, -1), math.MaxInt32))
	}
	if n < 0 || n >= math.MaxInt32 {
		return 0, false
	}
	return n, true
}

// writeUsage writes the members of a usage object. Nothing but the output is
// said of a call whose upstream sent no figures.
func writeUsage(w *jsonedit.Writer, u llm.Usage, known bool) {
	w.Object("usage")
	if known {
		w.SetInt("input_tokens", u.Input)
		if u.CacheWrite > 0 {
			w.SetInt("cache_creation_input_tokens", u.CacheWrite)
		}
		if u.CacheRead > 0 {
			w.SetInt("cache_read_input_tokens", u.CacheRead)
		}
	}
	w.SetInt("output_tokens", u.Output+u.Reasoning)
	if u.Reasoning > 0 {
		w.Object("output_tokens_details")
		w.SetInt("thinking_tokens", u.Reasoning)
		w.EndObject()
	}
	w.EndObject()
}

// member returns a member of an object, nil when it is absent or null.
func member(object []byte, name string) llm.Raw {
	v, ok := jsonedit.Get(object, name)
	if !ok || jsonedit.KindOf(v) == jsonedit.KindNull {
		return nil
	}
	return v
}
