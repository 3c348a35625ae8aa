package openai

import (
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
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

// Limits implements dialect.Failures.
func (Door) Limits(s limit.Standing, _ time.Time) []dialect.Header {
	return append(fields("Requests", s.Requests), fields("Tokens", s.Tokens)...)
}

func fields(of string, l limit.Level) []dialect.Header {
	if l.Limit == 0 {
		return nil
	}
	return []dialect.Header{
		{Name: "X-Ratelimit-Limit-" + of, Value: strconv.FormatInt(l.Limit, 10)},
		{Name: "X-Ratelimit-Remaining-" + of, Value: strconv.FormatInt(l.Remaining, 10)},
		{Name: "X-Ratelimit-Reset-" + of, Value: l.Reset.String()},
	}
}

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
