package gateway

import (
	"errors"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// carryOn has another target go on with a stream that broke off, where the
// model's configuration has it so. It returns the attempt that goes on, or nil
// when there is none.
func (g *Gateway) carryOn(a *attempt, cause error) *attempt {
	c := a.Call
	e := llm.AsError(cause)
	if !c.model.Continue || !a.translated() || !brokeOff(e) || !a.way.translation.Continues() {
		return nil
	}
	for {
		a.done(e)
		a.leaveProvider()
		t, err := c.plan.Next(time.Now())
		if err != nil {
			return nil
		}
		next := g.attempt(c, t)
		if next.way.outbound == nil {
			next.way.outbound = g.outbound[c.Dialect.Name()]
		}
		if err = g.goOn(a, next); err == nil {
			next.choose()
			c.take(next)
			return next
		}
		e = llm.AsError(err)
		next.failed(e)
		next.close()
		if errors.Is(err, errNoWay) || c.ctx.Err() != nil {
			return nil
		}
	}
}

// brokeOff reports whether a failure is the upstream's, so that another may do
// better.
func brokeOff(e *llm.Error) bool {
	switch e.Kind {
	case llm.Upstream, llm.UpstreamTruncated, llm.UpstreamTimeout, llm.UpstreamInvalid, llm.Overloaded:
		return true
	}
	return false
}

// errNoWay is a request that no other target can be asked to go on with.
var errNoWay = errors.New("the answer cannot be gone on with")

// goOn has an attempt take over the answer of another.
func (g *Gateway) goOn(from, to *attempt) error {
	translation, s := from.way.translation, from.stream
	to.notes = slices.Clip(from.notes)
	call, out, err := translation.Continue(s.out, to.way.outbound, to.way.caps, to.noted)
	s.out = out
	if err != nil {
		return errors.Join(errNoWay, err)
	}
	if err := g.enterProvider(to); err != nil {
		return err
	}
	sent := said(call)
	defer sent.body.Done()
	if to.resp, err = to.post(sent); err != nil {
		return err
	}
	if !to.isStream() {
		return dialect.Truncated()
	}
	to.way.translation = translation
	translation.Watch(g.memory.watch(to))
	s.reader.Close()
	to.stream = &stream{reader: to.frames(to.resp.Body), follower: translation, buf: s.buf, out: s.out}
	to.body, from.body = from.body, nil
	from.stream = nil
	to.firstToken = time.Since(to.began)
	if to.deadline != nil {
		to.deadline.Stop()
	}
	return nil
}
