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
	case dialect.Sealed(body),
		q.NoDeveloper && has(`"developer"`),
		q.OneSystem && (has(`"developer"`) || bytes.Count(body, []byte(`"system"`)) > 1),
		(q.CallID != "" || q.NamedTools || q.AnswerFirst) && has(`"tool_call_id"`),
		(q.ToolChoice != nil || q.ToolWords != nil || c.NoForcedTool) && has(`"tool_choice"`),
		(q.Formats != nil || c.SchemaAlone || c.NoStructured) && has(`"response_format"`),
		q.NoCustom && has(`"custom"`),
		q.NoFiles && has(`"file"`),
		c.NoSampling && has(`"temperature"`, `"top_p"`),
		(q.Reasoning != "" || q.Echo != llm.EchoNever) && has(`"reasoning`, `"thinking`),
		c.Efforts != nil && has(`"reasoning_effort"`):
		return true
	}
	return false
}
