package gateway

import (
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// meter lets a call in by the limits of its key, of the key's teams and of its
// model, or refuses it.
func (g *Gateway) meter(c *Call, body []byte) error {
	c.meters = append(slices.Clip(c.meters), c.model.Meter)
	if !slices.ContainsFunc(c.meters, (*limit.Meter).Limits) {
		return nil
	}
	if err := g.pass(c, limit.Need{Input: inputOf(body), Output: c.outputLimit()}); err != nil {
		return err
	}
	c.tellLimits(c.pass.Standing)
	return nil
}

// pass has a call pass its meters, if they let it. Its end is leave.
func (g *Gateway) pass(c *Call, need limit.Need) error {
	need.Nodes = g.nodes()
	var refused *limit.Refusal
	if c.pass, refused = limit.Enter(time.Now(), need, c.meters...); refused != nil {
		return &llm.Error{Kind: llm.RateLimited, Message: refused.String(), RetryAfter: refused.Wait, NoRetry: refused.Wait == 0}
	}
	return nil
}

// mediaTokens is what a picture, a document or a sound counts that is within a
// request: its bytes say little of it.
const mediaTokens = 1000

// inputOf is an estimate of what a request brings.
func inputOf(body []byte) int64 {
	media, size := dialect.Embedded(body)
	return llm.Estimate(int64(len(body)-size), 0).Input + int64(media)*mediaTokens
}

// unsaidOutput is what is held for an answer whose length the request does not
// limit. Most are shorter.
const unsaidOutput = 500

// outputLimit is how long the answer may become: not longer than the model's can.
func (c *Call) outputLimit() int64 {
	p := c.Dialect.Prompt(&c.Request)
	length, most := min(p.Limit(), limit.MaxRate), int64(c.model.Facts.MaxOutput)
	if length == 0 {
		length = unsaidOutput
	}
	if most > 0 {
		length = min(length, most)
	}
	return length * min(p.Answers(), maxAnswers)
}

// maxAnswers is how many answers to one request anybody makes.
const maxAnswers = 128

// tellLimits says in the answer's header how it stands with the limits.
func (c *Call) tellLimits(s limit.Standing) {
	for _, h := range c.Dialect.Limits(s, time.Now()) {
		c.answer.header(h.Name, h.Value)
	}
}

// tellLimitsOfRefusal is tellLimits for a call that was not let in, whatever the
// reason.
func (g *Gateway) tellLimitsOfRefusal(c *Call) {
	if c.pass == nil {
		c.tellLimits(limit.Look(time.Now(), g.nodes(), c.meters...))
	}
}

// leave ends the call for its limits: what it used counts, in the place of what
// it held. A call of which nothing was sent has used nothing. The next one may
// come as soon as this one's end is told.
func (c *Call) leave() {
	if c.Err != nil && !c.sent && (c.at == nil || !c.at.sent) {
		c.pass.Return()
		return
	}
	c.pass.Settle(c.metered())
	c.pass.Leave()
}

// metered are the tokens that count for limits.
func (c *Call) metered() int64 {
	u := &c.Usage
	return min(u.Total()-u.CacheRead+(u.CacheRead*int64(c.set.CacheRead)+99)/100, mostMetered)
}

// mostMetered is what a call counts at most, so that an upstream that tells
// nonsense does not close a limit for years.
const mostMetered = 1 << 24
