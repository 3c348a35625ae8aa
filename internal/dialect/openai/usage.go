package openai

import (
	"errors"
	"math"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
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
	audioIn, audioOut, imageOut         counter
	searches, sources                   counter
	ticks                               money.Amount
	costs                               bool // a cost is stated in dollars
}

// DecodeUsage reads a usage object of either OpenAI dialect. Cached tokens are
// counted within the input, reasoning within the output; the result is
// disjoint. known is false when raw is no object, has no counts, or has some
// that cannot be. The service is not in it.
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
	in, u.CacheWrite = llm.Within(in, c.written.n)
	u.Input, u.AudioIn = llm.Within(in, c.audioIn.n)
	out, u.Reasoning = llm.Within(out, reasoning)
	out, u.AudioOut = llm.Within(out, c.audioOut.n)
	u.Output, u.ImageOut = llm.Within(out, c.imageOut.n)
	if !c.searches.known {
		c.searches = c.sources
	}
	u.Searches, _ = llm.Within(c.searches.n, 0)
	if u.Stated = c.ticks; c.costs && u.Stated == 0 {
		u.Stated = dialect.Stated(raw)
	}
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
			case `"cache_write_tokens"`, `"cache_creation_input_tokens"`: // the second is Qwen's
				c.written.set(value)
			case `"audio_tokens"`:
				c.audioIn.set(value)
			}
		}
	case `"completion_tokens_details"`, `"output_tokens_details"`:
		for name, value := range jsonedit.Members(value) {
			switch string(name) {
			case `"reasoning_tokens"`:
				c.reasoning.set(value)
			case `"audio_tokens"`:
				c.audioOut.set(value)
			case `"image_tokens"`:
				c.imageOut.set(value)
			}
		}
	case `"prompt_cache_hit_tokens"`, `"cached_tokens"`, `"cache_read_input_tokens"`: // other servers' words
		c.otherRead.set(value)
	case `"num_sources_used"`: // of xAI before it counted searches
		c.sources.set(value)
	case `"cost"`:
		c.costs = true
	case `"cost_in_usd_ticks"`:
		c.ticks = dialect.Ticks(value)
	default:
		c.takeSearches(name, value)
	}
}

// takeSearches reads a member that counts searches: Perplexity's,
// OpenRouter's, and xAI's, which are of the web and of X.
func (c *counts) takeSearches(name, value []byte) {
	switch string(name) {
	case `"num_search_queries"`:
		c.searches.set(value)
	case `"server_tool_use"`:
		c.searches.set(dialect.Member(value, "web_search_requests"))
	case `"server_side_tool_usage_details"`:
		web, known := count(dialect.Member(value, "web_search_calls"))
		x, alsoKnown := count(dialect.Member(value, "x_search_calls"))
		c.searches = counter{max(web, 0) + max(x, 0), known || alsoKnown}
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

// WriteSome writes a member that counts, where it counts anything.
func WriteSome(w *jsonedit.Writer, name string, n int64) {
	if n > 0 {
		w.SetInt(name, n)
	}
}

// serviceTiers are the words of OpenAI's dialects for the services.
var serviceTiers = [...]string{llm.Flex: "flex", llm.Priority: "priority", llm.Batch: "batch"}

// ServiceTier is the word for a service that was given, where it is none of the
// usual ones: otherwise it is "".
func ServiceTier(s llm.Service) string {
	if int(s) < len(serviceTiers) {
		return serviceTiers[s]
	}
	return ""
}
