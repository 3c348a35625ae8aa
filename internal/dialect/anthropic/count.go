package anthropic

import "github.com/limen-gateway/limen/internal/dialect"

var _ dialect.Counter = Upstream{}

// countable are the members of a request that its tokens depend on, as
// MessageCountTokensParams of Anthropic's SDKs has them.
var countable = map[string]bool{
	`"model"`: true, `"messages"`: true, `"system"`: true, `"tools"`: true, `"tool_choice"`: true, `"thinking"`: true,
	`"output_config"`: true, `"cache_control"`: true, `"mcp_servers"`: true, `"context_management"`: true,
}

// Count implements dialect.Counter.
func (Upstream) Count(call *dialect.Call) *dialect.Call {
	return &dialect.Call{Path: call.Path + "/count_tokens", Header: call.Header, Body: dialect.Only(call.Body, countable)}
}

// Counted implements dialect.Counter.
func (Upstream) Counted(body []byte) (int64, error) { return dialect.CountIn(body, "input_tokens") }
