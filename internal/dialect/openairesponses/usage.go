package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// usageOf is what a response that is over says that it used. Searches that took
// a fee are counted beside the tokens, or else they are the items that tell of
// one; heard is how many of those came in a stream, of which the list in the
// last event may be a part.
func usageOf(response *jsonedit.Object, heard int64) (u llm.Usage, known bool) {
	u, known = openai.DecodeUsage(response.Value(responseUsage))
	u.Service = dialect.ServiceOf(response.Value(responseService))
	counted := dialect.Member(response.Value(responseTools), "web_search", "num_requests")
	if n, err := strconv.ParseInt(string(counted), 10, 64); err == nil {
		u.Searches, _ = llm.Within(n, 0)
	}
	if counted != nil || u.Searches > 0 {
		return u, known
	}
	listed := int64(0)
	for item := range jsonedit.Elements(response.Value(responseOutput)) {
		if searches(item) {
			listed++
		}
	}
	u.Searches = max(listed, heard)
	return u, known
}

// searches reports whether an item is a search that takes a fee: to open a page
// that was found, or to look within it, takes none.
func searches(item llm.Raw) bool {
	if dialect.Text(item, "type") != "web_search_call" {
		return false
	}
	action := dialect.Text(item, "action", "type")
	return action == "search" || action == ""
}

// writeUsage writes the counters as this dialect has them: the cached within
// the input, reasoning within the output. Sound and pictures are told where
// there are any.
func writeUsage(w *jsonedit.Writer, u llm.Usage, known bool, cost dialect.Cost) {
	w.BeginObject()
	w.SetInt("input_tokens", u.Prompt())
	w.Object("input_tokens_details")
	w.SetInt("cached_tokens", u.CacheRead)
	w.SetInt("cache_write_tokens", u.CacheWrite+u.HourWrite)
	openai.WriteSome(w, "audio_tokens", u.AudioIn)
	w.EndObject()
	w.SetInt("output_tokens", u.Completion())
	w.Object("output_tokens_details")
	w.SetInt("reasoning_tokens", u.Reasoning)
	openai.WriteSome(w, "audio_tokens", u.AudioOut)
	openai.WriteSome(w, "image_tokens", u.ImageOut)
	w.EndObject()
	w.SetInt("total_tokens", u.Total())
	cost.Write(w, u, known)
	w.EndObject()
}
