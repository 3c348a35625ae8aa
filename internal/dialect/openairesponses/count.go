package openairesponses

import "github.com/limen-gateway/limen/internal/dialect"

var _ dialect.Counter = Upstream{}

// countable are the members of a request that its tokens depend on, as
// ResponseInputTokenCountParams of OpenAI's SDKs has them.
var countable = map[string]bool{
	`"model"`: true, `"input"`: true, `"instructions"`: true, `"tools"`: true, `"tool_choice"`: true, `"parallel_tool_calls"`: true,
	`"reasoning"`: true, `"text"`: true, `"truncation"`: true, `"previous_response_id"`: true,
}

// Count implements dialect.Counter.
func (Upstream) Count(call *dialect.Call) *dialect.Call {
	return &dialect.Call{Path: call.Path + "/input_tokens", Header: call.Header, Body: dialect.Only(call.Body, countable)}
}

// Counted implements dialect.Counter.
func (Upstream) Counted(body []byte) (int64, error) { return dialect.CountIn(body, "input_tokens") }
