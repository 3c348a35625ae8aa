package gemini

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

var _ dialect.Counter = Upstream{}

// Count implements dialect.Counter. The Gemini API counts a request as a whole;
// Vertex, whose paths name a publisher, takes its members.
func (Upstream) Count(call *dialect.Call) *dialect.Call {
	model, _, _ := strings.Cut(call.Path, ":")
	counted := &dialect.Call{Path: model + ":countTokens", Header: call.Header, Body: call.Body}
	if strings.Contains(model, "/publishers/") {
		return counted
	}
	w := jsonedit.NewWriter(make([]byte, 0, len(call.Body)+128))
	w.BeginObject()
	w.Object("generateContentRequest")
	w.SetText("model", strings.TrimPrefix(model, "/"))
	for name, value := range jsonedit.Members(call.Body) {
		w.RawName(name)
		w.Raw(value)
	}
	w.EndObject()
	w.EndObject()
	counted.Body = w.Bytes()
	return counted
}

// Counted implements dialect.Counter.
func (Upstream) Counted(body []byte) (int64, error) { return dialect.CountIn(body, "totalTokens") }
