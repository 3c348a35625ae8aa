package gateway

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/state"
	"github.com/limen-gateway/limen/internal/upstream"
)

// A provider can be left to keep responses itself. Requests then pass with what
// they say of state, and here is only whose a response is: no key reaches what
// another made there. What was begun here goes on here, and what was begun
// there goes on there.

// there is a response that its upstream keeps. A nil one is none.
type there struct {
	keeper *state.Keeper
	past   *state.Elsewhere // what the call goes on from; nil is nothing
	store  bool             // others may go on from the response
	owned  *state.Elsewhere // the response, once it is kept whose it is
	looks  bool             // it was made before: to look at it is no call of a model
}

// keptThere reports whether the upstream of a call that begins something keeps
// its response. Where an input refers to items, these are here.
func (g *Gateway) keptThere(c *Call, body []byte) (bool, error) {
	ask := c.Request.Context
	if c.unanswered || ask.Previous != "" || ask.Conversation != "" {
		return false, nil
	}
	keeps := func(t *route.Target) bool { return t.KeepsState }
	if !slices.ContainsFunc(c.model.Targets, func(t route.Target) bool { return t.KeepsState }) {
		return false, nil
	}
	refers, err := state.Refers(ask.Input)
	if err != nil {
		return false, err
	}
	if refers {
		ask.Itemized = true // none goes there unread: it may be another's
		return false, nil
	}
	first, err := g.first(c)
	if err != nil || !ask.Store || !first.Target.KeepsState || !g.passes(first, body) {
		return false, err
	}
	c.only(keeps)
	c.there = &there{keeper: g.state, store: true}
	return true, nil
}

// goOnThere has a call go to the provider that keeps what it goes on from.
func (g *Gateway) goOnThere(c *Call, past *state.Elsewhere, body []byte) error {
	c.only(func(t *route.Target) bool { return t.Account == past.Provider })
	first, err := g.first(c)
	if err != nil {
		return past
	}
	switch refers, err := state.Refers(c.Request.Context.Input); {
	case err != nil:
		return err
	case refers:
		return llm.InvalidParam("unsupported_parameter", "input", "An item_reference cannot go together with 'previous_response_id' where the provider keeps responses: send the item itself.")
	case !g.passes(first, body):
		return llm.InvalidParam("unsupported_parameter", "previous_response_id", "This request needs all that came before, which only the provider '%s' has: send the whole history in 'input', without 'previous_response_id'.", past.Provider)
	}
	c.there = &there{keeper: g.state, past: past, store: c.Request.Context.Store}
	return nil
}

// only has a call served by those of its model's targets that fit, in its own
// dialect.
func (c *Call) only(fits func(*route.Target) bool) {
	c.fits = func(t *route.Target) bool { return fits(t) && slices.Contains(t.Upstream.Speaks, c.Dialect.Name()) }
}

// passes reports whether a request goes to its target as it is written.
func (g *Gateway) passes(a *attempt, body []byte) bool {
	return a.way.outbound == nil && !a.summed() && !a.way.caps.Retold && !a.Dialect.Anew(body, a.way.caps) && !g.standsIn(a, body)
}

// notOnlyBegun refuses a request whose answer is not wanted yet.
func (t *there) notOnlyBegun() error {
	return llm.InvalidParam("unsupported_parameter", "generate", "The provider '%s' keeps what this request goes on from, and takes none without an answer: leave 'generate' out.", t.past.Provider)
}

// lost reports whether an upstream's refusal says that it does not have any
// more what the call goes on from.
func (t *there) lost(status int, body []byte) bool {
	return t != nil && t.past != nil && status == http.StatusNotFound && dialect.Text(body, "error", "code") != "model_not_found"
}

// knowsMore reports whether the upstream's prompt is longer than the request.
func (t *there) knowsMore() bool { return t != nil && t.past != nil }

// goesOn reports whether the upstream goes on with the response without its
// client: what it used is known when its end is seen.
func (t *there) goesOn() bool { return t != nil && t.owned != nil && t.owned.Running }

// looked reports whether there is no call to be recorded.
func (t *there) looked() bool { return t != nil && t.looks }

// commit keeps what is to be kept of a response that is about to be told.
func (t *there) commit(c *Call, response []byte) error {
	switch {
	case t.looks:
		return t.see(c, response)
	case !t.store:
		return nil
	}
	return t.own(c, response)
}

// own keeps whose a response is.
func (t *there) own(c *Call, response []byte) error {
	t.owned = &state.Elsewhere{
		Owner: c.Key.ID, ID: dialect.Text(response, "id"), Provider: c.at.Target.Account,
		Running: state.Running(dialect.Text(response, "status")), Model: clip(c.Request.Model),
	}
	if t.owned.Running {
		c.at.Usage = llm.Usage{}
	}
	return t.keeper.Own(c.ctx, t.owned)
}

// announced keeps whose a response is that is made in the background, before
// its client reads the ID: from then on it can leave.
func (t *there) announced(c *Call, frames []byte) error {
	if t == nil || t.looks || t.owned != nil || !t.store || !c.Request.Context.Background {
		return nil
	}
	for data := range eventsOf(frames) {
		if response := dialect.Member(data, "response"); response != nil {
			return t.own(c, response)
		}
	}
	return nil
}

// see notes how far a response is that the upstream makes in the background.
// What it used is recorded by whoever sees its end first.
func (t *there) see(c *Call, response []byte) error {
	if !t.owned.Running || state.Running(dialect.Text(response, "status")) {
		return nil
	}
	first, err := t.keeper.End(c.ctx, t.owned)
	usage, known := openai.DecodeUsage(dialect.Member(response, "usage"))
	if err != nil || !first || !known {
		return err
	}
	held, err := c.Key.Payer.Hold(c.ctx, 0, c.Started) // nothing can be refused any more
	if err != nil {
		return err
	}
	c.hold = &hold{budgets: held}
	t.looks, c.at.Usage = false, usage
	c.Request.Model, c.at.Target.Model = t.owned.Model, clip(dialect.Text(response, "model"))
	return nil
}

// objectThere does an operation on a response where it is. The path is below
// that of the response.
func (g *Gateway) objectThere(x *exchange, c *Call, kept *state.Elsewhere, path string, stream bool) {
	c.there = &there{keeper: g.state, owned: kept, looks: true}
	err := g.doThere(c, x.r, kept, path, stream)
	if err != nil {
		g.fail(c, err)
		g.logRefusal(x, c.Err)
	}
	if c.record != nil {
		g.metrics.Begin()
		g.finish(c, x)
	}
}

func (g *Gateway) doThere(c *Call, r *http.Request, kept *state.Elsewhere, path string, stream bool) error {
	up, err := g.provider(kept)
	if err != nil {
		return err
	}
	if err := g.admit(c); err != nil { // it waits for the upstream, as calls do
		return err
	}
	c.Request.Stream = stream
	if stream {
		c.answer.wantStream()
	}
	c.at = c.preview(&route.Target{Upstream: up}, way{})
	if err := g.enterProvider(c.at); err != nil {
		return err
	}
	err = c.at.object(r.Method, c.Dialect.Path()+"/"+url.PathEscape(kept.ID)+path+queryThere(r, stream))
	if err != nil && llm.AsError(err).Status == http.StatusNotFound {
		err = kept.NotFound()
		if r.Method == http.MethodDelete {
			err = cmp.Or(g.state.Disown(c.ctx, kept), err)
		}
	}
	if err != nil {
		return err
	}
	c.at.choose()
	if r.Method == http.MethodDelete {
		answer, err := deleted(kept.ID, "response", g.state.Disown(c.ctx, kept))
		if err != nil {
			return err
		}
		return c.answer.writeJSON(http.StatusOK, answer)
	}
	return g.relayObject(c.at, path)
}

// relayObject hands on what an upstream answers about a response.
func (g *Gateway) relayObject(a *attempt, path string) error {
	switch streamed := strings.HasPrefix(a.resp.Header.Get("Content-Type"), "text/event-stream"); {
	case a.Request.Stream && streamed:
		if err := a.beginStream(); err != nil {
			return err
		}
		return g.relayStream(a)
	case a.Request.Stream:
		return llm.Errorf(llm.Unsupported, "The upstream does not give the stream of a response again: read the response itself.")
	}
	body, err := readAll(a.resp.Body, a.resp.ContentLength, a.set.MaxAnswer, func(int) { a.answer.progress() })
	if err != nil {
		return a.readError(err)
	}
	defer buffer.Put(body)
	if jsonedit.KindOf(*body) != jsonedit.KindObject {
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream's answer is not an object."}
	}
	if path != itemsPath {
		if err := a.commit(*body, false); err != nil {
			return err
		}
	}
	return g.conclude(a, *body, false)
}

// itemsPath is that of a response's input, below the response's own.
const itemsPath = "/input_items"

// provider finds who keeps a response.
func (g *Gateway) provider(kept *state.Elsewhere) (*upstream.Upstream, error) {
	if up := g.models.Table().Upstream(kept.Provider); up != nil {
		return up, nil
	}
	g.models.Await()
	if up := g.models.Table().Upstream(kept.Provider); up != nil {
		return up, nil
	}
	return nil, llm.Errorf(llm.NotFound, "The response is kept by the provider '%s', which this gateway does not have now.", kept.Provider)
}

// object sends a request about a response, and has its answer when that has a
// status of success.
func (a *attempt) object(method, path string) (err error) {
	a.answer.enter(waiting)
	if a.resp, err = a.Target.Upstream.Object(a.ctx, method, path, a.Request.Stream); err != nil {
		return a.unreached(err)
	}
	a.answer.enter(relaying)
	if a.resp.StatusCode < 200 || a.resp.StatusCode > 299 {
		return a.upstreamError(a.resp)
	}
	return nil
}

// queried are the members of a query that go on to an upstream.
var queried = []string{"after", "before", "limit", "order", "include", "include[]", "include_obfuscation", "starting_after"}

func queryThere(r *http.Request, stream bool) string {
	sent, query := r.URL.Query(), url.Values{}
	for _, name := range queried {
		if values, ok := sent[name]; ok {
			query[name] = values
		}
	}
	if stream {
		query.Set("stream", "true")
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}
