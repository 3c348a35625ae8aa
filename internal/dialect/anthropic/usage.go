package anthropic

import (
	"math"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// counts are what the usage objects of an answer say: each replaces what came
// before it, member by member, on the input side too. Null erases nothing.
type counts struct {
	input, read, output, thinking int64
	written, brief, hour          int64 // to a cache: in all, and for how long
	searches                      int64
	service                       llm.Service
	fast                          bool
	stated                        money.Amount
	known                         bool

	// Of an answer that took several turns of the model:
	compacting llm.Usage // what is not in the other counts
	longest    int64     // prompt
}

// merge takes over a usage object.
func (c *counts) merge(usage []byte) {
	for name, value := range jsonedit.Members(usage) {
		switch string(name) {
		case `"iterations"`:
			if jsonedit.KindOf(value) == jsonedit.KindArray {
				c.iterations(value)
			}
		case `"cost"`:
			c.stated = dialect.Stated(usage)
		default:
			c.take(name, value)
		}
	}
}

// iterations reads what each turn of the model used. To compact the
// conversation is a turn that takes money and is not in the sums.
func (c *counts) iterations(list []byte) {
	c.compacting, c.longest = llm.Usage{}, 0
	for turn := range jsonedit.Elements(list) {
		var used counts
		for name, value := range jsonedit.Members(turn) {
			used.take(name, value)
		}
		if dialect.Text(turn, "type") == "compaction" {
			c.compacting = c.compacting.Plus(used.usage())
		} else {
			c.longest = max(c.longest, used.usage().Prompt())
		}
	}
}

// take takes over a member of a usage object; name has its quotes.
func (c *counts) take(name, value []byte) {
	switch string(name) {
	case `"input_tokens"`:
		c.set(&c.input, value)
	case `"cache_read_input_tokens"`:
		c.set(&c.read, value)
	case `"cache_creation_input_tokens"`:
		c.set(&c.written, value)
	case `"cache_creation"`:
		set(&c.brief, member(value, "ephemeral_5m_input_tokens"))
		set(&c.hour, member(value, "ephemeral_1h_input_tokens"))
	case `"output_tokens"`:
		c.set(&c.output, value)
	case `"output_tokens_details"`:
		set(&c.thinking, member(value, "thinking_tokens"))
	case `"server_tool_use"`:
		set(&c.searches, member(value, "web_search_requests"))
	case `"service_tier"`:
		if given(value) {
			c.service = dialect.ServiceOf(value)
		}
	case `"speed"`:
		if given(value) {
			c.fast = text(value) == "fast"
		}
	}
}

func (c *counts) set(n *int64, value []byte) {
	if set(n, value) {
		c.known = true
	}
}

func set(n *int64, value []byte) bool {
	v, ok := count(value)
	if ok {
		*n = v
	}
	return ok
}

// usage is what was counted, in disjoint counters. A fast answer has a price
// that is none of the services'.
func (c *counts) usage() (u llm.Usage) {
	u.Input, _ = llm.Within(c.input, 0)
	u.CacheRead, _ = llm.Within(c.read, 0)
	u.CacheWrite, u.HourWrite = llm.Within(max(c.written, c.brief+c.hour), c.hour)
	u.Output, u.Reasoning = llm.Within(c.output, c.thinking)
	u.Searches, u.Service, u.Stated = c.searches, c.service, c.stated
	if c.fast {
		u.Service = llm.Other
	}
	if c.longest < u.Prompt() {
		u.Longest = c.longest
	}
	return u.Plus(c.compacting)
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
func writeUsage(w *jsonedit.Writer, u llm.Usage, known bool, cost dialect.Cost) {
	w.Object("usage")
	if known {
		w.SetInt("input_tokens", u.Input+u.AudioIn)
		setSome(w, "cache_creation_input_tokens", u.CacheWrite+u.HourWrite)
		setSome(w, "cache_read_input_tokens", u.CacheRead)
	}
	w.SetInt("output_tokens", u.Completion())
	if u.Reasoning > 0 {
		w.Object("output_tokens_details")
		w.SetInt("thinking_tokens", u.Reasoning)
		w.EndObject()
	}
	if u.HourWrite > 0 {
		w.Object("cache_creation")
		w.SetInt("ephemeral_5m_input_tokens", u.CacheWrite)
		w.SetInt("ephemeral_1h_input_tokens", u.HourWrite)
		w.EndObject()
	}
	if u.Searches > 0 {
		w.Object("server_tool_use")
		w.SetInt("web_search_requests", u.Searches)
		w.EndObject()
	}
	if u.Service == llm.Priority || u.Service == llm.Batch {
		w.SetText("service_tier", u.Service.String())
	}
	cost.Write(w, u, known)
	w.EndObject()
}

func setSome(w *jsonedit.Writer, name string, n int64) {
	if n > 0 {
		w.SetInt(name, n)
	}
}

// noUsage writes the usage object where nothing is known.
func noUsage(w *jsonedit.Writer, cost dialect.Cost) {
	w.Object("usage")
	w.SetInt("input_tokens", 0)
	w.SetInt("output_tokens", 0)
	cost.Write(w, llm.Usage{}, false)
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
