package openairesponses

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Anew implements dialect.Dialect.
func (Dialect) Anew(body []byte, _ *llm.Caps) bool { return dialect.Sealed(body) }
