package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
)

// plan begins the way of a call through the targets of its model.
func (g *Gateway) plan(c *Call, header http.Header) {
	g.inquire(c, header)
	c.plan = g.router.Plan(c.model, &c.query, time.Now())
	if err := c.plan.RuleError(); err != nil {
		g.log.Warn("a rule failed on a call, so its target is left out", "model", c.model.ID, "request_id", c.requestID, "error", err)
	}
}

// inquire works out what the call asks of a plan.
func (g *Gateway) inquire(c *Call, header http.Header) {
	prompt := c.Dialect.Prompt(&c.Request)
	if !c.there.knowsMore() {
		c.print = fingerprintOf(&prompt)
	}
	several := len(c.model.Targets) > 1
	if c.print != nil || several {
		c.thread = threadOf(&prompt, header)
	}
	q := &c.query
	q.Speaks = func(t *route.Target) bool { _, ok := g.wayTo(c, t); return ok }
	q.Vars = &ruleVars{call: c, header: header, metadata: prompt.Metadata}
	q.Region = header.Get(regionHeader)
	if isOn(header.Get(retentionHeader)) {
		q.Needs |= route.NeedsZeroRetention
	}
	if c.mustKnow() {
		q.Priced = c.priced
	}
	if several { // what is known of the only target may be wrong: it says so itself
		q.Sticky = c.thread
		q.Tokens = llm.Estimate(c.BytesIn, 0).Input
		q.MaxOutput = prompt.Limit()
		q.Needs |= needs(&prompt)
		q.Origin = prompt.Origins(g.seal)
	}
}

// The client's own conditions on who serves it.
const (
	regionHeader    = "X-Limen-Region"
	retentionHeader = "X-Limen-Zero-Retention"
)

func needs(p *dialect.Prompt) (n route.Needs) {
	if p.HasPictures() {
		n |= route.NeedsVision
	}
	if p.HasTools() {
		n |= route.NeedsTools
	}
	if p.HasSchema() {
		n |= route.NeedsSchema
	}
	return n
}

// ruleVars tells rules about a call.
type ruleVars struct {
	call     *Call
	header   http.Header
	metadata []byte
}

// Var implements rule.Vars.
func (v *ruleVars) Var(name string) any {
	switch name {
	case "key":
		return v.call.Key.Name
	case "team":
		return v.call.Key.TeamName()
	case "model":
		return v.call.Request.Model
	case "operation":
		return v.call.Operation
	case "stream":
		return v.call.Request.Stream
	case "tokens":
		return llm.Estimate(v.call.BytesIn, 0).Input
	case "headers":
		return headerVars(v.header)
	case "metadata":
		return metadataVars(v.metadata)
	}
	return nil
}

// headerVars are the fields by their names in lower case, without credentials.
func headerVars(header http.Header) map[string]string {
	fields := make(map[string]string, len(header))
	for name, values := range header {
		if len(values) > 0 && !slices.Contains(credentialHeaders, name) {
			fields[strings.ToLower(name)] = values[0]
		}
	}
	return fields
}

func metadataVars(object []byte) map[string]string {
	fields := map[string]string{}
	for name, value := range jsonedit.Members(object) {
		n, _ := jsonedit.Unquote(name)
		if text, ok := jsonedit.Unquote(value); ok {
			fields[n] = text
		}
	}
	return fields
}

// obtain makes attempts until the answer of one has something for the client.
// It takes over body.
func (g *Gateway) obtain(c *Call, header http.Header, buf *[]byte) (*attempt, error) {
	body := c.share(buf)
	defer body.release()
	for {
		t, err := c.next()
		if err != nil {
			return nil, err
		}
		if err := c.breathe(t); err != nil {
			c.plan.Done(t, route.Outcome{Canceled: true}, time.Now())
			return nil, err
		}
		a := g.attempt(c, t)
		if h := c.model.Hedge; h != nil && !c.hosts(*buf) {
			a, err = g.race(a, header, body)
		} else {
			err = g.open(a, header, body)
		}
		if err == nil {
			c.take(a)
			a.choose()
			return a, nil
		}
		c.take(a)
		e := llm.AsError(err)
		a.failed(e)
		if forgetting, err := a.forget(e, header, body); err != nil {
			return nil, err
		} else if forgetting != nil {
			c.take(forgetting)
			if err := g.open(forgetting, header, forgetting.body); err != nil {
				return nil, err
			}
			forgetting.choose()
			return forgetting, nil
		}
	}
}

// forget is another attempt at the same target without the state that it did
// not take: of another account, or too old. It is nil where that is not what
// failed, or may not be done.
func (a *attempt) forget(e *llm.Error, header http.Header, body *sharedBody) (*attempt, error) {
	d, ok := a.Dialect.(dialect.Forgetful)
	if !ok || !dialect.RejectsState(e) || a.way.outbound != nil || a.there != nil || a.Key.Strict || a.Target.Strict || asksStrict(header) {
		return nil, nil
	}
	less := buffer.Get(len(*body.buf))
	var notes llm.Notes
	*less, notes = d.Forget(*less, *body.buf, &a.Call.Request)
	own := a.share(less)
	if len(notes) == 0 {
		own.release()
		return nil, nil
	}
	again := a.preview(a.Target, a.way)
	again.body, again.notes = own, append(again.notes, notes...)
	again.Request.Object = jsonedit.Object{}
	return again, a.Dialect.Inspect(*less, &again.Request)
}

// next is the target for the next attempt, or why there is none. What upstreams
// are silent for ends only the attempts at them, if there may be others.
func (c *Call) next() (*route.Target, error) {
	if c.ctx.Err() != nil {
		return nil, ended(c.ctx, c.ctx.Err())
	}
	t, err := c.plan.Next(time.Now())
	if err != nil {
		return nil, err
	}
	c.upstream = c.ctx
	if len(c.model.Targets) > 1 {
		var giveUp context.CancelCauseFunc
		c.upstream, giveUp = context.WithCancelCause(c.ctx)
		c.answer.try(giveUp)
	}
	return t, nil
}

// take makes an attempt the call's, in place of one that failed.
func (c *Call) take(a *attempt) {
	if c.at != nil && c.at != a {
		c.at.close()
	}
	c.at = a
}

// breathe waits a moment before a target that failed is tried again.
func (c *Call) breathe(t *route.Target) error {
	if c.at == nil || c.at.Target != t {
		return nil
	}
	timer := time.NewTimer(againAfter + rand.N(againAfter))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return ended(c.ctx, c.ctx.Err())
	}
}

// againAfter is how long a target that failed is left alone at least before
// the same call tries it again, and at most twice that.
const againAfter = 25 * time.Millisecond

// attempt begins one; its end is close.
func (g *Gateway) attempt(c *Call, t *route.Target) *attempt {
	w, _ := g.wayTo(c, t)
	a := c.preview(t, w)
	a.ctx = c.upstream
	limit := c.model.FirstToken
	slow := false
	if limit > 0 {
		a.exit, slow = c.plan.Leave()
	}
	if slow || c.model.Hedge != nil {
		a.ctx, a.cancel = context.WithCancelCause(c.upstream)
	}
	if slow {
		a.deadline = time.AfterFunc(limit, func() { a.leave(limit) })
	}
	return a
}

// leave gives an attempt up that did not begin to answer within the limit, if
// there may be another one. Else it is looked at again after as long.
func (a *attempt) leave(limit time.Duration) {
	switch {
	case a.beginning.Load() != undecided:
	case !a.exit.Take(time.Now()):
		time.AfterFunc(limit, func() { a.leave(limit) })
	case a.beginning.CompareAndSwap(undecided, tooLate):
		a.cancel(a.late())
	}
}

// begins reports whether the attempt was not given up before it began to answer.
func (a *attempt) begins() bool {
	a.deadline.Stop()
	return a.beginning.CompareAndSwap(undecided, inTime)
}

// late is why an attempt was given up.
func (a *attempt) late() *llm.Error {
	return llm.Errorf(llm.UpstreamTimeout, "The upstream did not begin its answer within %s.", a.model.FirstToken)
}

// preview is an attempt that the plan knows nothing of.
func (c *Call) preview(t *route.Target, w way) *attempt {
	a := &attempt{
		Call: c, Target: t, Request: c.Request, notes: slices.Clip(c.notes), way: w,
		ctx: c.ctx, cancel: func(error) {}, began: time.Now(),
	}
	a.Request.Cost = c.costOf(t)
	return a
}

// failed notes what came of an attempt that failed before it had anything for
// the client.
func (a *attempt) failed(e *llm.Error) {
	a.done(e)
	a.leaveProvider()
	a.use(a.spent(e))
	a.settled = true
}

// done tells the plan what came of the attempt, once.
func (a *attempt) done(e *llm.Error) {
	if a.told {
		return
	}
	a.told = true
	a.Call.sent = a.Call.sent || a.sent
	if a.deadline != nil {
		a.begins() // or never will: there is nothing to give up any more
	}
	now := time.Now()
	a.plan.Done(a.Target, route.Outcome{
		Err: e, FirstToken: a.firstToken, Wait: a.wait, Dialed: a.sent, Left: a.beginning.Load() == tooLate,
		Canceled: a.lost || a.unpaid || e != nil && e.Kind == llm.Canceled,
	}, now)
}
