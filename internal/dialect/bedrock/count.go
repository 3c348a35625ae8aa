package bedrock

import (
	"regexp"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

var _ dialect.Counter = Upstream{}

// countable are the members of ConverseTokensRequest.
var countable = map[string]bool{`"messages"`: true, `"system"`: true, `"toolConfig"`: true, `"additionalModelRequestFields"`: true}

// profile is what the name of a model has in front where a profile chooses the
// region. Tokens are counted by models alone.
var profile = regexp.MustCompile(`^/model/(?:us|us-gov|eu|apac|au|jp|ca|sa|me|af|global)\.`)

// Count implements dialect.Counter, by the operation CountTokens. Not all
// models have it.
func (Upstream) Count(call *dialect.Call) *dialect.Call {
	model := call.Path[:strings.LastIndexByte(call.Path, '/')]
	w := jsonedit.NewWriter(make([]byte, 0, len(call.Body)+32))
	w.BeginObject()
	w.Object("input")
	w.SetRaw("converse", dialect.Only(call.Body, countable))
	w.EndObject()
	w.EndObject()
	return &dialect.Call{Path: profile.ReplaceAllString(model, "/model/") + "/count-tokens", Header: call.Header, Body: w.Bytes()}
}

// Counted implements dialect.Counter.
func (Upstream) Counted(body []byte) (int64, error) { return dialect.CountIn(body, "inputTokens") }
