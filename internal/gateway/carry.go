package gateway

import (
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
	if !c.model.Continue || c.ctx.Err() != nil || !a.translated() || !brokeOff(e) || !a.way.translation.Continues() {
		return nil
	}
	a.done(e)
	a.leaveProvider()
	for {
		t, err := c.next()
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
		next.failed(llm.AsError(err))
		next.close()
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

// goOn has an attempt take over the answer of another.
func (g *Gateway) goOn(from, to *attempt) error {
	translation, s := from.way.translation, from.stream
	to.notes = slices.Clip(from.notes)
	call, err := translation.Continue(to.way.outbound, to.way.caps)
	if err != nil {
		return err
	}
	if err := g.enterProvider(to); err != nil {
		return err
	}
	sent := said(call)
	defer sent.body.Done()
	if to.resp, err = to.post(sent); err != nil {
		return err
	}
	if !isStream(to.media()) {
		return dialect.Truncated()
	}
	if to.deadline != nil && !to.begins() {
		return to.late()
	}
	s.out = translation.Resumed(s.out, call, to.way.outbound, to.way.caps, to.noted)
	to.way.translation = translation
	translation.Watch(g.memory.watch(to))
	s.reader.Close()
	to.stream = &stream{reader: to.frames(to.resp.Body), follower: translation, buf: s.buf, out: s.out}
	to.body, from.body = from.body, nil
	from.stream = nil
	to.firstToken = time.Since(to.began)
	return nil
}
