package gateway

import (
	"time"

	"github.com/limen-gateway/limen/internal/arrivals"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
)

// clientAPI are the operations whose requests are from clients: not those of
// probes, operators and browsers. An unknown path has none.
var clientAPI = map[string]bool{"": true, "about": true, keys.OpModels: true, keys.OpChat: true, keys.OpResponses: true, keys.OpMessages: true}

// arrival is what is remembered of a request. Keys in it are masked.
func (x *exchange) arrival(now time.Time) *arrivals.Arrival {
	credential := credential(x.r.Header)
	prefix, id := keys.Public(credential)
	a := &arrivals.Arrival{
		RequestID: x.requestID, Time: now.UTC(), Address: keys.AddressOf(x.r.RemoteAddr), Method: x.r.Method, Path: keys.Mask(x.r.URL.Path),
		Agent: keys.Mask(x.r.UserAgent()), Clients: arrivals.Clients(x.r.Header), Key: id, KeyPrefix: prefix, Operation: x.operation,
	}
	if x.key != nil {
		a.Key, a.KeyPrefix = x.key.ID, x.key.Prefix
	}
	return a
}

// fails says of an arrival what the client was told.
func fails(a *arrivals.Arrival, x *exchange, e *llm.Error) {
	a.Status, a.Error, a.Code = x.failures.Status(e), e.Kind.String(), e.Code
	a.Message = keys.Mask(keys.Hide(e.Message, credential(x.r.Header)))
}

// turnAway remembers that a request was refused before it became a call.
func (g *Gateway) turnAway(x *exchange, e *llm.Error) {
	if !clientAPI[x.operation] || e.Kind == llm.NoSocket || ofPage(x) {
		return
	}
	a := x.arrival(time.Now())
	fails(a, x, e)
	g.arrivals.Refuse(a)
}

// ofPage reports whether a browser asks for a page or what belongs to one,
// such as its icon, and no script of a page.
func ofPage(x *exchange) bool {
	mode := x.r.Header.Get("Sec-Fetch-Mode")
	return mode == "navigate" || mode == "no-cors"
}

// comes remembers that a request of the client API is served, or begins to
// be, where somebody watches.
func (g *Gateway) comes(x *exchange, underWay bool) {
	now := time.Now()
	if !g.arrivals.Watched(now) {
		return
	}
	a := x.arrival(now)
	if a.UnderWay = underWay; !underWay {
		a.Status, a.TotalMs = 200, millis(now.Sub(x.started))
	}
	g.arrivals.Serve(a)
	x.watched = underWay
}

// came remembers what became of a call: always where the request was to blame
// and no provider was asked, else where somebody watches.
func (g *Gateway) came(c *Call, x *exchange) {
	now := time.Now()
	refused := c.Err != nil && c.at == nil && blames(c.Err.Kind)
	if x.r == nil || !refused && !x.watched && !g.arrivals.Watched(now) {
		return
	}
	a := x.arrival(now)
	a.Model, a.Stream, a.Recorded = keys.Mask(c.Request.Model), c.streams, !c.launched && !c.there.looked()
	a.Status, a.FirstByteMs, a.TotalMs = 200, millis(c.FirstByte), millis(now.Sub(c.Started))
	if c.Err != nil {
		fails(a, x, c.Err)
	}
	if refused {
		g.arrivals.Refuse(a)
		return
	}
	g.arrivals.Serve(a)
}

// blames reports whether a failure is of what the client sent, and not of how
// much was asked of the gateway, or when.
func blames(k llm.Kind) bool {
	switch k {
	case llm.Invalid, llm.Unsupported, llm.Forbidden, llm.NoModel, llm.NotFound, llm.TooLarge, llm.BadMedia, llm.SlowBody, llm.Conflict:
		return true
	}
	return false
}
