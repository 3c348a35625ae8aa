package gateway

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/tools"
)

// standsIn reports whether a request to a server of the client's own dialect
// asks for a tool that the gateway runs. OpenAI's service runs its own.
func (g *Gateway) standsIn(c *Call, body []byte) bool {
	d, ok := c.Dialect.(dialect.Hosting)
	if !ok || c.set.Tools == nil || c.Target.Upstream.Vendor.Quirks.Native || c.compaction != notCompacted {
		return false
	}
	for _, kind := range d.Hosted(body) {
		if c.set.Tools.Runs(kind) {
			return true
		}
	}
	return false
}

// runTools has the gateway run those tools of a request that its upstream
// does not. What was consented to is run now.
func (c *Call) runTools(req *llm.Request) (err error) {
	_, hosting := c.Dialect.(dialect.Hosting)
	if !hosting || c.set.Tools == nil || c.way.asks || c.compaction != notCompacted {
		return nil
	}
	functions := false
	for i := range req.Tools {
		t := &req.Tools[i]
		functions = functions || t.Server == nil || t.Server.Kind == llm.MCP && c.set.Tools.Runs(llm.MCP)
	}
	own, _ := c.way.outbound.(dialect.Runner)
	c.answer.enter(waiting)
	if c.Request.Stream {
		c.answer.wantStream()
	}
	c.tools, err = c.set.Tools.Begin(c.ctx, req, func(kind llm.ServerKind) bool {
		return own == nil || !own.Runs(kind, functions, c.way.caps)
	})
	if err != nil && c.ctx.Err() != nil {
		return c.ended(err)
	}
	return err
}

// runCalls runs the calls that an answer waits for, tells of each when it is
// done, and goes on with the answer. tell is given what is new for the client;
// what it leaves is returned with the last, which begins at last.
func (c *Call) runCalls(out []byte, tell func([]byte) ([]byte, error)) (_ []byte, last int, err error) {
	t := c.way.translation
	calls, _ := t.Waiting()
	for _, call := range calls {
		var result *dialect.HostedResult
		if t.Cut() {
			result = tools.Skipped(call, "The answer was cut within this call.")
		} else {
			c.answer.enter(waiting)
			result = c.tools.Do(c.ctx, call)
		}
		if err := c.ctx.Err(); err != nil {
			return out, 0, c.ended(err)
		}
		if out, err = tell(t.Ran(out, call, result)); err != nil {
			return out, 0, err
		}
	}
	last = len(out)
	out, err = t.Proceed(out)
	return out, last, err
}

// paused reports whether the answer waits for tools of the gateway's.
func (c *Call) paused() bool {
	if !c.translated() || c.tools == nil {
		return false
	}
	_, paused := c.way.translation.Waiting()
	return paused
}
