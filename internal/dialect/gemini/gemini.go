// Package gemini is the dialect of generateContent, as the Gemini API and
// Vertex AI speak it: the way of its clients in, and the way out to both of
// its hosts. It knows no models: what they can do is told by llm.Caps.
package gemini

import (
	"io"
	"net/url"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Dialect is generateContent, as clients speak it.
type Dialect struct{}

// Upstream is generateContent, as upstreams speak it to clients of other
// dialects.
type Upstream struct{}

var (
	_ dialect.Inbound  = Dialect{}
	_ dialect.Failures = Dialect{}
	_ dialect.Outbound = Upstream{}
)

// Name is the dialect's name.
func (Dialect) Name() dialect.Name { return dialect.Gemini }

// Frames implements dialect.Outbound.
func (Upstream) Frames(r io.Reader, limit int) dialect.Frames { return dialect.SSE(r, limit) }

// vendor reads thought signatures.
const vendor = "google"

// noFields is for documents of which no member is sought by its offset.
var noFields = jsonedit.NewFields()

// path is where a model is asked, below the base URL of its host.
func path(caps *llm.Caps, stream bool) string {
	model := url.PathEscape(strings.TrimPrefix(caps.Model, "models/"))
	verb := ":generateContent"
	if stream {
		verb = ":streamGenerateContent?alt=sse"
	}
	if !caps.Gemini.Vertex {
		return "/models/" + model + verb
	}
	return "/projects/" + url.PathEscape(caps.Gemini.Project) + "/locations/" + url.PathEscape(caps.Gemini.Location) +
		"/publishers/google/models/" + model + verb
}
