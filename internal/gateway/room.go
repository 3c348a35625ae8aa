package gateway

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// room is what all calls share: how many are served at once, and the memory
// for the bodies of their requests.
type room struct {
	calls, bodies *limit.Gate
}

func newRoom() room { return room{limit.NewGate(0), limit.NewGate(0)} }

// Bodies is the memory for the bodies of requests, in bytes.
func (g *Gateway) Bodies() int64 { return g.room.bodies.InUse() }

// held is what a call has of the room.
type held struct {
	room     *room
	admitted bool
	body     atomic.Int64 // bytes
}

// release gives all back.
func (h *held) release() {
	h.releaseBody()
	if h.admitted {
		h.admitted = false
		h.room.calls.Leave(1)
	}
}

// releaseBody gives the memory of the body back, which may be before the call
// ends, and by whoever read the body last.
func (h *held) releaseBody() {
	if bytes := h.body.Swap(0); bytes > 0 {
		h.room.bodies.Leave(bytes)
	}
}

// admit lets a call in, or refuses it. That is before its body is read, so that
// a refusal costs little.
func (g *Gateway) admit(c *Call) error {
	if err := g.enter(c.ctx, c, g.room.calls, 1, "calls", "none"); err != nil {
		c.answer.skipBody()
		return err
	}
	c.held.admitted = true
	return nil
}

// reserve has room for a body of so many bytes in all before there is memory
// for it.
func (g *Gateway) reserve(c *Call, bytes int64) error {
	more := bytes - c.held.body.Load()
	if more <= 0 {
		return nil
	}
	if err := g.enter(c.ctx, c, g.room.bodies, more, "bodies", "none"); err != nil {
		c.answer.skipBody()
		return err
	}
	c.held.body.Add(more)
	return nil
}

// enterProvider lets an attempt in at its target's provider, where it stays for
// all its requests.
func (g *Gateway) enterProvider(a *attempt) error {
	up := a.Target.Upstream
	if !up.Gate.Try(1) {
		a.answer.enter(queued)
		if err := g.enter(a.ctx, a.Call, up.Gate, 1, "provider", up.Name); err != nil {
			return err
		}
	}
	a.provider = up.Gate
	return nil
}

func (a *attempt) leaveProvider() {
	if a.provider != nil {
		a.provider.Leave(1)
		a.provider = nil
	}
}

// tooFull is what is said where a limit has no room.
var tooFull = map[string]string{
	"calls":    "The gateway serves as many calls as it may at once. Please try again in a moment.",
	"bodies":   "The gateway holds as many bytes of requests as it may at once. Please try again in a moment.",
	"provider": "As many calls as may be are under way to the model's upstream. Please try again in a moment.",
}

// enter waits for room as long as the call does. A refusal says when to try
// again, not to all the same: those that were refused together would be again.
func (g *Gateway) enter(ctx context.Context, c *Call, gate *limit.Gate, weight int64, name, provider string) error {
	if gate.Try(weight) {
		return nil
	}
	over := g.metrics.Wait()
	err := gate.Enter(ctx, weight, c.patience)
	over()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx, err)
	}
	g.metrics.Refuse(name, provider)
	return &llm.Error{Kind: llm.Overloaded, Message: tooFull[name], RetryAfter: time.Second + rand.N(time.Second)}
}
