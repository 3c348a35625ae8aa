// Package bedrock is the way out to Amazon Bedrock's Converse. Nobody's client
// speaks it. It knows neither credentials nor regions: who sends a call signs
// it.
package bedrock

import (
	"io"
	"net/url"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Upstream is Converse.
type Upstream struct{}

var _ dialect.Outbound = Upstream{}

// Name is the dialect's name.
func (Upstream) Name() dialect.Name { return dialect.Bedrock }

// Frames implements dialect.Outbound.
func (Upstream) Frames(r io.Reader, limit int) dialect.Frames { return newReader(r, limit) }

// The families of models that say some things in their own way.
const (
	familyAnthropic = "anthropic"
	familyNova      = "nova"
	familyOSS       = "gpt-oss"
	familyOpenAI    = "openai"
)

// noFields is for documents of which no member is sought by its offset.
var noFields = jsonedit.NewFields()

// path is where a model is asked. Names of models have colons, and slashes
// where they are ARNs.
func path(caps *llm.Caps, stream bool) string {
	model := strings.ReplaceAll(url.PathEscape(caps.Model), ":", "%3A")
	if stream {
		return "/model/" + model + "/converse-stream"
	}
	return "/model/" + model + "/converse"
}
