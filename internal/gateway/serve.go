package gateway

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/llm"
)

// call serves one call of a model: it sets the record up, lets serve do the
// work, and tells the client of a failure in the way that is still open. It
// returns that failure.
func (g *Gateway) call(x *exchange, d Door) (failed *llm.Error) {
	c := g.begin(x, d)
	c.meters = x.key.Meters
	g.comes(x, true)
	defer c.end()
	defer func() { failed = c.Err }()
	g.carryOut(c, x, x.r)
	return nil
}

// carryOut makes a call that is set up, to its end.
func (g *Gateway) carryOut(c *Call, x *exchange, r *http.Request) {
	g.metrics.Begin()
	defer g.finish(c, x) // also when a panic goes by
	if err := g.serve(c, r); err != nil {
		g.fail(c, err)
	}
}

// begin sets the record of a call up.
func (g *Gateway) begin(x *exchange, d Door) *Call {
	ctx, cancel := context.WithCancelCause(x.r.Context())
	return &Call{
		requestID: x.requestID, Operation: x.operation, Started: x.started, Dialect: d, Key: x.key,
		set: x.set, ctx: ctx, cancel: cancel, answer: newAnswer(x, cancel), session: x.session, compaction: x.compaction,
		held: &held{room: &g.room}, patience: x.set.Queue,
	}
}

// end gives back all that the call holds.
func (c *Call) end() {
	if c.at != nil {
		c.at.close()
	}
	if c.turn != nil {
		c.turn.Close(c.ctx)
	}
	if c.held != nil {
		c.held.release()
	}
	c.leave()
	c.hold.settle(c.charge)
	c.answer.close()
	c.cancel(nil)
}

// serve is the way of a call, from top to bottom. Who calls was settled by the
// route.
func (g *Gateway) serve(c *Call, r *http.Request) error {
	// Can the call be accounted for?
	if err := g.ledger.Ready(); err != nil {
		return unrecorded(err)
	}

	// Is there room?
	if err := g.admit(c); err != nil {
		return err
	}

	// What do they want?
	body, err := g.readBody(c, r)
	if err != nil {
		return err
	}
	c.BytesIn = int64(len(*body))
	if err := c.Dialect.Inspect(*body, &c.Request); err != nil {
		buffer.Put(body)
		return mediaError(r, err)
	}
	c.streams = c.Request.Stream
	c.compaction = c.compactionOf(*body)
	if c.set.Tags != nil {
		prompt := c.Dialect.Prompt(&c.Request)
		c.tags = c.set.Tags.of(r.Header, prompt.Metadata)
	}

	// Which model?
	if err := g.resolve(c); err != nil {
		buffer.Put(body)
		return err
	}

	// Do its limits let it in?
	if err := g.meter(c, *body); err != nil {
		buffer.Put(body)
		return err
	}

	// What came before?
	if body, err = g.recall(c, body); err != nil {
		return err
	}

	// Who can do it?
	first, err := g.first(c)
	if err != nil {
		buffer.Put(body)
		return err
	}
	g.plan(c, r.Header)

	// Can they pay?
	if err := g.afford(c, *body); err != nil {
		buffer.Put(body)
		return err
	}

	// Send it, and hand on what comes back.
	if c.turn != nil && c.turn.Background() {
		return g.launch(c, r.Header, body)
	}
	if first.summed() {
		return g.compact(c, r.Header, body)
	}
	return g.deliver(c, r.Header, body)
}

// deliver gets an answer and hands it on. It takes over body.
func (g *Gateway) deliver(c *Call, header http.Header, body *[]byte) error {
	a, err := g.obtain(c, header, body)
	if err != nil {
		return err
	}
	return g.relay(a)
}

// fail tells the client: by status and body while nothing is out, within the
// stream otherwise. The record is written before.
func (g *Gateway) fail(c *Call, err error) {
	c.Err = llm.AsError(err)
	if c.at != nil {
		if c.record == nil && !c.at.settled && !c.there.goesOn() {
			c.at.use(c.at.spent(c.Err))
		}
		c.at.done(c.Err)
		c.at.tell()
	}
	c.BytesOut = c.answer.sent() // without the words of the failure
	g.account(c)
	c.tellCost()
	g.tellLimitsOfRefusal(c)
	if c.turn != nil {
		c.turn.Close(c.ctx) // whoever hears of the failure may try again
	}
	if c.answer.refuse(c.Err) || c.Err.Kind == llm.Canceled {
		return
	}
	if c.unkept != nil {
		c.answer.write(c.stateful().Unkept(c.unkept, c.Err))
		return
	}
	if c.at == nil {
		c.answer.write(c.Dialect.Follow(&c.Request).Fail(nil, c.Err))
		return
	}
	c.answer.write(c.at.fail(c.Err))
}

// account writes the record of a call to the journal, once. A call that ended
// well is only told so afterwards.
func (g *Gateway) account(c *Call) error {
	if c.record != nil || c.there.looked() {
		return nil
	}
	c.leave()
	now := time.Now()
	if c.Err == nil && c.print != nil {
		seen := &turnSeen{print: c.print, account: c.at.Target.Account, model: c.at.Target.Model, at: now}
		c.cacheMiss = g.caches.see(c.thread, seen, c.Usage)
	}
	c.record = c.newRecord(now)
	err := g.ledger.Append(c.record)
	c.hold.settle(c.charge)
	if err != nil {
		g.log.Error("a call could not be recorded", "request_id", c.requestID, "error", err)
		failed := &llm.Error{Kind: llm.Unavailable, Message: "The gateway could not record the usage of this call, so it does not give the answer out. Please try again in 2s.", RetryAfter: 2 * time.Second, Err: err}
		c.record.Status, c.record.Error = c.Dialect.Status(failed), failed.Kind.String()
		g.ledger.Owe(c.record)
		return failed
	}
	return nil
}

// processingTime notes in the header how long the answer took to come.
func (c *Call) processingTime() {
	c.answer.header("Openai-Processing-Ms", strconv.FormatInt(time.Since(c.Started).Milliseconds(), 10))
}
