package openaichat

import (
	"bytes"
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Anew implements dialect.Dialect. It looks for words of what the server takes
// only in its own way; some may be text, and then nothing is lost but time.
func (Dialect) Anew(body []byte, c *llm.Caps) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(body, []byte(w)) })
	}
	q := &c.Chat
	switch {
	case q.ZeroTemperature != "" && has(`"temperature"`), q.Temperature[1] > 0 && has(`"temperature"`),
		dialect.Sealed(body),
		q.NoDeveloper && has(`"developer"`),
		q.OneSystem && (has(`"developer"`) || bytes.Count(body, []byte(`"system"`)) > 1),
		(q.CallID != "" || q.NamedTools || q.AnswerFirst) && has(`"tool_call_id"`),
		(q.ToolChoice != nil || q.ThinkingChoice != nil || q.ToolWords != nil || c.NoForcedTool) && has(`"tool_choice"`),
		(q.Formats != nil || c.SchemaAlone || c.NoStructured) && has(`"response_format"`),
		q.NoCustom && has(`"custom"`),
		(q.NoFiles || q.DocumentURL) && has(`"file"`),
		q.AudioURL && has(`"input_audio"`),
		q.NoNames && has(`"name"`),
		(q.OneChoice || q.ManyOnly) && has(`"n"`),
		q.TypedAnyOf && has(`"anyOf"`),
		q.StrictAlike && has(`"strict"`),
		q.MaxMarks > 0 && has(`"cache_control"`),
		(q.NoThinkingTools || q.ParallelOff || q.ToolStream != "") && has(`"tools"`),
		(q.SchemaWhole || q.NoThinkingJSON) && has(`"response_format"`),
		q.NoThinkingSampling && has(`"reasoning_effort"`) && has(`"temperature"`, `"top_p"`, `_penalty"`),
		q.Hide != "" && has(`"include_reasoning"`),
		c.NoSampling && has(`"temperature"`, `"top_p"`),
		(q.Reasoning != "" || q.Echo != llm.EchoNever) && has(`"reasoning`, `"thinking`),
		c.Efforts != nil && has(`"reasoning_effort"`):
		return true
	}
	return false
}
