package openai

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Door is what the two OpenAI dialects have in common towards clients.
type Door struct{}

var _ dialect.Failures = Door{}

// Status implements dialect.Failures.
func (Door) Status(e *llm.Error) int { return Status(e) }

// AppendError implements dialect.Failures.
func (Door) AppendError(dst []byte, e *llm.Error, _ string) []byte { return AppendError(dst, e) }

// RequestIDHeader implements dialect.Failures.
func (Door) RequestIDHeader() string { return "X-Request-Id" }

// Passed implements dialect.Dialect.
func (Door) Passed(sent func(string) string) []dialect.Header {
	var out []dialect.Header
	for _, name := range [...]string{"Openai-Beta", "Idempotency-Key"} {
		if value := sent(name); value != "" {
			out = append(out, dialect.Header{Name: name, Value: value})
		}
	}
	return out
}
