package anthropic

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Anew implements dialect.Dialect: a host that takes the model in its path
// takes another body.
func (Dialect) Anew(body []byte, c *llm.Caps) bool { return c.Anthropic.InPath || dialect.Sealed(body) }
