package gateway

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/sse"
	"github.com/limen-gateway/limen/internal/upstream"
)

// way is how a call goes from the client's dialect to the target's. Where both
// are the same, bodies and frames pass; the zero way is that.
type way struct {
	outbound    dialect.Outbound
	caps        *llm.Caps
	translation *dialect.Translation // once the request is said in the target's dialect
	// asks: only the request is said anew, for a server that is particular;
	// the answer passes.
	asks bool
}

// wayTo is how a call goes to a target: in the client's own dialect where the
// target understands that. ok is false when it does not fit, or speaks nothing that can be said.
func (g *Gateway) wayTo(c *Call, t *route.Target) (w way, ok bool) {
	own := c.Dialect.Name()
	if c.fits != nil && !c.fits(t) {
		return w, false
	}
	if slices.Contains(t.Upstream.Speaks, own) {
		return way{caps: t.Caps[own]}, true
	}
	for _, d := range t.Upstream.Speaks {
		if out := g.outbound[d]; out != nil {
			return way{outbound: out, caps: t.Caps[d]}, true
		}
	}
	return way{}, false
}

// first is a call as it goes to its first target when nothing is in the way.
func (g *Gateway) first(c *Call) (*attempt, error) {
	m := c.model
	for i := range m.Targets {
		if w, ok := g.wayTo(c, &m.Targets[i]); ok {
			return c.preview(&m.Targets[i], w), nil
		}
	}
	e := llm.Errorf(llm.Unsupported, "The upstream of model '%s' does not speak %s; it speaks %s.", c.Request.Model, c.Dialect.Name(), spoken(m))
	e.Param = "model"
	return nil, e
}

// outgoing is a call as it goes to the upstream.
type outgoing struct {
	path   string
	header http.Header // besides the upstream's own
	body   *upstream.Body
}

// prepare says the client's request as the target takes it.
func (g *Gateway) prepare(a *attempt, header http.Header, body *sharedBody) (out outgoing, err error) {
	if !g.anew(a, *body.buf) {
		out, err = a.forward(header, body)
	} else {
		out, err = g.translate(a, body)
	}
	if err != nil {
		return out, err
	}
	if len(a.notes) > 0 && (a.Key.Strict || a.Target.Strict || asksStrict(header)) {
		if err = refuseNotes(a.notes); err != nil {
			out.body.Done()
		}
	}
	return out, err
}

// anew reports whether the client's request has to be said anew: in another
// dialect, or in its own for what the target takes in another way.
func (g *Gateway) anew(a *attempt, body []byte) bool {
	switch {
	case a.way.outbound != nil:
	case g.standsIn(a, body):
		a.way.outbound = g.outbound[a.Dialect.Name()]
	case a.model.Continue && a.Request.Stream && a.there == nil: // what is said has to be known
		a.way.outbound = g.outbound[a.Dialect.Name()]
	case a.way.caps.Retold || a.Dialect.Anew(body, a.way.caps):
		a.way.outbound, a.way.asks = g.outbound[a.Dialect.Name()], !a.way.caps.Retold
	}
	return a.way.outbound != nil
}

// forward passes the client's own bytes.
func (a *attempt) forward(header http.Header, client *sharedBody) (outgoing, error) {
	up := a.Target.Upstream
	if a.Request.Model != a.Target.Model {
		a.notes.Rename("model")
	}
	content, notes, err := up.Fitter.Fit(a.Dialect.Name(), *client.buf, a.Target.Reasons)
	if err == nil && len(notes) > 0 {
		a.notes.Add(notes)
		a.Request.Object = jsonedit.Object{} // the members stand elsewhere now
		err = a.Dialect.Inspect(content, &a.Request)
	}
	if err != nil {
		return outgoing{}, openai.ScanError(err)
	}
	to := dialect.Upstream{Model: a.Target.Model, AskUsage: up.Vendor.Quirks.StreamUsage == provider.UsageAsked}
	segments, size := a.Dialect.Forward(nil, content, &a.Request, to)
	out := outgoing{path: a.Dialect.Path(), body: upstream.NewBody(segments, size, client.hold().release)}
	out.add(a.Dialect.Passed(header.Get))
	return out, nil
}

// translate says the request anew. The client's bytes are kept until the attempt
// ends: its answer may repeat them.
func (g *Gateway) translate(a *attempt, client *sharedBody) (outgoing, error) {
	a.body = client.hold()
	req, translation, err := g.say(a, *client.buf)
	if err != nil {
		return outgoing{}, err
	}
	a.way.translation = translation
	translation.Watch(g.memory.watch(a))
	if a.model.Continue && a.Request.Stream {
		translation.Carry(req)
	}
	if a.tools != nil {
		translation.Host(a.tools.Host, req)
	}
	call := translation.Call
	call.Rounds = maxRounds
	a.notes.Add(call.Notes)
	return said(call), nil
}

// say says the request in the target's dialect.
func (g *Gateway) say(a *attempt, body []byte) (*llm.Request, *dialect.Translation, error) {
	req, err := a.Dialect.Decode(body, g.seal)
	if err != nil {
		return nil, nil, err
	}
	if err := g.runTools(a, req); err != nil {
		return nil, nil, err
	}
	g.memory.recall(a, req)
	translation := g.aside(a, req)
	if translation == nil {
		translation, err = dialect.Translate(req, a.Dialect, a.way.outbound, a.way.caps, g.ask(a, req))
	}
	return req, translation, err
}

// said is a call that a dialect has said.
func said(call *dialect.Call) outgoing {
	out := outgoing{path: call.Path, body: upstream.NewBody([][]byte{call.Body}, len(call.Body), func() {})}
	out.add(call.Header)
	return out
}

func (g *Gateway) ask(a *attempt, req *llm.Request) *dialect.Ask {
	return &dialect.Ask{
		Request: req, ID: a.id(), Model: a.Request.Model, Begun: a.Started,
		Vendor: a.way.caps.Vendor, Origin: a.way.caps.Origin, Seal: g.seal, Told: a.Request.Told,
		Cost: a.Request.Cost, Noted: a.noted,
	}
}

// aside takes a request that wants both tools and thinking past a chat in
// which the model does not do both, to the upstream's Responses. It returns nil
// where there is no such need, or something that can only be said in the chat.
func (g *Gateway) aside(a *attempt, req *llm.Request) *dialect.Translation {
	caps, out := a.Target.Caps[dialect.OpenAIResponses], g.outbound[dialect.OpenAIResponses]
	if !a.way.caps.ThinkingTools(req) || caps == nil || out == nil {
		return nil
	}
	chat := a.way
	a.way = way{outbound: out, caps: caps}
	translation, err := dialect.Translate(req, a.Dialect, out, caps, g.ask(a, req))
	if err != nil {
		a.way = chat
		return nil
	}
	return translation
}

func (o *outgoing) add(fields []dialect.Header) {
	for _, f := range fields {
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Set(f.Name, f.Value)
	}
}

// strictHeader asks that nothing be said in another way than it was written.
const strictHeader = "X-Limen-Strict"

func asksStrict(header http.Header) bool { return isOn(header.Get(strictHeader)) }

// isOn reads a header field that switches something on.
func isOn(value string) bool {
	value = strings.ToLower(value)
	return value == "true" || value == "1"
}

// refuseNotes refuses a call that must go as it is written or not at all. That
// the upstream calls something by another name changes nothing.
func refuseNotes(notes llm.Notes) error {
	lost := slices.DeleteFunc(slices.Clone(notes), func(n string) bool { return strings.HasPrefix(n, "rename:") })
	if len(lost) == 0 {
		return nil
	}
	_, param, _ := strings.Cut(lost[0], ":")
	return dialect.NotPossible(param, "The model's upstream cannot take this request as it is written (%s), and the key, the model or the header %s is strict. Leave out what is named.", lost, strictHeader)
}

// translated reports whether the answer comes in another dialect.
func (a *attempt) translated() bool { return a.way.translation != nil && !a.way.asks }

// follow starts to follow the answer's stream.
func (a *attempt) follow() dialect.Follower {
	if a.translated() {
		return a.way.translation
	}
	return a.Dialect.Follow(&a.Request)
}

// frames reads the frames of the answer's stream.
func (a *attempt) frames(r io.Reader) dialect.Frames {
	if a.translated() {
		return &rounds{Frames: a.way.outbound.Frames(r, a.set.MaxEvent), of: a}
	}
	return sse.NewReader(r, a.set.MaxEvent)
}

// wholeOf makes what the client gets of an answer that came whole, and notes
// what it used. dst is what was made of the answer before it was paused.
func (a *attempt) wholeOf(dst, body []byte) ([]byte, error) {
	if a.translated() {
		out, err := a.way.translation.Whole(dst, body, a.Request.Stream)
		a.Usage = a.way.translation.Usage(a.BytesIn)
		return out, err
	}
	usage, known, err := a.Dialect.Answer(body)
	if err != nil {
		return nil, err
	}
	if !known {
		usage = llm.Estimate(a.BytesIn, int64(len(body)))
	}
	a.Usage = usage
	if a.Request.Stream {
		return a.Dialect.Replay(nil, body, &a.Request), nil
	}
	body = a.Dialect.Priced(body, &a.Request)
	if a.turn != nil {
		return a.stateful().Tell(body, a.Request.Told), nil
	}
	return body, nil
}

// refusal reads an upstream's.
func (a *attempt) refusal(status int, body []byte, wait time.Duration) *llm.Error {
	if a.translated() {
		return a.way.outbound.Failed(status, body, wait)
	}
	return openai.UpstreamError(status, body, wait)
}
