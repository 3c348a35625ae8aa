package gateway

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/tools"
)

// standsIn reports whether a request to a server of the client's own dialect
// asks for a tool that the gateway runs. OpenAI's service runs its own.
func (g *Gateway) standsIn(a *attempt, body []byte) bool {
	d, ok := a.Dialect.(dialect.Hosting)
	if !ok || a.set.Tools == nil || a.Target.Upstream.Vendor.Quirks.Native || a.compaction != notCompacted {
		return false
	}
	for _, kind := range d.Hosted(body) {
		if g.hosts(a.Call, kind) {
			return true
		}
	}
	return false
}

// hosts reports whether there is a stand-in for a kind of tool that a call may
// use.
func (g *Gateway) hosts(c *Call, kind llm.ServerKind) bool {
	return c.set.Tools.Runs(kind) && (kind != llm.ImageGeneration || g.hasImages(c))
}

// runTools has the gateway run those tools of a request that its upstream
// does not. What was consented to is run now, unless the request is only
// counted.
func (g *Gateway) runTools(a *attempt, req *llm.Request) (err error) {
	_, hosting := a.Dialect.(dialect.Hosting)
	if !hosting || a.set.Tools == nil || a.way.asks || a.compaction != notCompacted {
		return nil
	}
	own, _ := a.way.outbound.(dialect.Runner)
	here := func(kind llm.ServerKind, functions bool) bool {
		return g.hosts(a.Call, kind) && (own == nil || !own.Runs(kind, functions, a.way.caps))
	}
	functions := false
	for i := range req.Tools {
		t := &req.Tools[i]
		functions = functions || t.Server == nil || here(t.Server.Kind, false)
	}
	a.answer.enter(waiting)
	if a.Request.Stream {
		a.answer.wantStream()
	}
	hosts := func(kind llm.ServerKind) bool { return here(kind, functions) }
	if a.Request.Counting {
		a.tools, err = a.set.Tools.Tell(a.ctx, req, hosts)
	} else {
		a.tools, err = a.set.Tools.Begin(a.ctx, req, hosts, g.paint(a))
	}
	if err != nil && a.ctx.Err() != nil {
		return ended(a.ctx, err)
	}
	return err
}

// runCalls runs the calls that an answer waits for, tells of each when it is
// done, and goes on with the answer. tell is given what is new for the client;
// what it leaves is returned with the last, which begins at last.
func (a *attempt) runCalls(out []byte, tell func([]byte) ([]byte, error)) (_ []byte, last int, err error) {
	t := a.way.translation
	calls, _ := t.Waiting()
	for _, call := range calls {
		var result *dialect.HostedResult
		if t.Cut() {
			result = tools.Skipped(call, "The answer was cut within this call.")
		} else {
			a.answer.enter(waiting)
			result = a.tools.Do(a.ctx, call)
		}
		if err := a.ctx.Err(); err != nil {
			return out, 0, ended(a.ctx, err)
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
func (a *attempt) paused() bool {
	if !a.translated() || a.tools == nil {
		return false
	}
	_, paused := a.way.translation.Waiting()
	return paused
}
