package anthropic

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

var _ dialect.Counter = Upstream{}

// countable are the members of a request that its tokens depend on, as
// MessageCountTokensParams of Anthropic's SDKs has them.
var countable = map[string]bool{
	`"model"`: true, `"messages"`: true, `"system"`: true, `"tools"`: true, `"tool_choice"`: true, `"thinking"`: true,
	`"output_config"`: true, `"cache_control"`: true, `"mcp_servers"`: true, `"context_management"`: true,
}

// Count implements dialect.Counter. Where models are named by paths, counting
// is a model, and the request names its own.
func (Upstream) Count(call *dialect.Call) *dialect.Call {
	at := strings.LastIndexByte(call.Path, ':')
	if at < 0 {
		return &dialect.Call{Path: call.Path + "/count_tokens", Header: call.Header, Body: dialect.Only(call.Body, countable)}
	}
	model, _ := url.PathUnescape(call.Path[1:at]) // which was escaped here
	w := jsonedit.NewWriter(make([]byte, 0, len(call.Body)+len(model)+32))
	w.BeginObject()
	w.SetText("model", model)
	for name, value := range jsonedit.Members(call.Body) {
		if countable[string(name)] || bytes.HasPrefix(name, []byte(`"anthropic_`)) { // version and betas
			w.RawName(name)
			w.Raw(value)
		}
	}
	w.EndObject()
	return &dialect.Call{Path: "/count-tokens:rawPredict", Header: call.Header, Body: w.Bytes()}
}

// Counted implements dialect.Counter.
func (Upstream) Counted(body []byte) (int64, error) { return dialect.CountIn(body, "input_tokens") }
