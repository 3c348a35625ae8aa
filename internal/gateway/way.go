package gateway

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
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

// choose takes the first target that can be spoken to, in the client's own
// dialect where it understands that.
func (g *Gateway) choose(c *Call, m *route.Model) (*route.Target, way, error) {
	for i := range m.Targets {
		t := &m.Targets[i]
		own := c.Dialect.Name()
		if slices.Contains(t.Upstream.Speaks, own) {
			return t, way{caps: t.Caps[own]}, nil
		}
		for _, d := range t.Upstream.Speaks {
			if out := g.outbound[d]; out != nil {
				return t, way{outbound: out, caps: t.Caps[d]}, nil
			}
		}
	}
	e := llm.Errorf(llm.Unsupported, "The upstream of model '%s' does not speak %s; it speaks %s.", c.Request.Model, c.Dialect.Name(), spoken(m))
	e.Param = "model"
	return nil, way{}, e
}

// outgoing is a call as it goes to the upstream.
type outgoing struct {
	path   string
	header http.Header // besides the upstream's own
	body   *upstream.Body
}

// prepare says the client's request as the target takes it. It takes over
// body.
func (g *Gateway) prepare(c *Call, header http.Header, body *[]byte) (out outgoing, err error) {
	switch {
	case c.way.outbound != nil:
	case g.standsIn(c, *body):
		c.way.outbound = g.outbound[c.Dialect.Name()]
	case c.way.caps.Retold || c.Dialect.Anew(*body, c.way.caps):
		c.way.outbound, c.way.asks = g.outbound[c.Dialect.Name()], !c.way.caps.Retold
	}
	if c.way.outbound == nil {
		out, err = c.forward(header, body)
	} else {
		out, err = g.translate(c, body)
	}
	if err != nil {
		return out, err
	}
	if len(c.notes) > 0 {
		c.answer.header("X-Limen-Notes", c.notes.String())
		if c.Key.Strict || c.Target.Strict || asksStrict(header) {
			err = refuseNotes(c.notes)
		}
	}
	if err != nil {
		out.body.Done()
	}
	return out, err
}

// forward passes the client's own bytes.
func (c *Call) forward(header http.Header, client *[]byte) (outgoing, error) {
	up := c.Target.Upstream
	if c.Request.Model != c.Target.Model {
		c.notes.Rename("model")
	}
	content, notes, err := up.Fitter.Fit(c.Dialect.Name(), *client, c.Target.Reasons)
	if err == nil && len(notes) > 0 {
		c.notes.Add(notes)
		err = c.Dialect.Inspect(content, &c.Request) // the members stand elsewhere now
	}
	if err != nil {
		buffer.Put(client)
		return outgoing{}, openai.ScanError(err)
	}
	to := dialect.Upstream{Model: c.Target.Model, AskUsage: up.Vendor.Quirks.StreamUsage == provider.UsageAsked}
	segments, size := c.Dialect.Forward(nil, content, &c.Request, to)
	out := outgoing{path: c.Dialect.Path(), body: upstream.NewBody(segments, size, func() { buffer.Put(client) })}
	out.add(c.Dialect.Passed(header.Get))
	return out, nil
}

// translate says the request anew. The client's bytes are kept until the call
// ends: its answer may repeat them.
func (g *Gateway) translate(c *Call, client *[]byte) (outgoing, error) {
	c.release = func() { buffer.Put(client) }
	req, err := c.Dialect.Decode(*client, g.seal)
	if err != nil {
		return outgoing{}, err
	}
	if err := c.runTools(req); err != nil {
		return outgoing{}, err
	}
	g.memory.recall(c, req)
	translation := g.aside(c, req)
	if translation == nil {
		translation, err = dialect.Translate(req, c.Dialect, c.way.outbound, c.way.caps, g.ask(c, req))
	}
	if err != nil {
		return outgoing{}, err
	}
	c.way.translation = translation
	translation.Watch(g.memory.watch(c))
	if c.tools != nil {
		translation.Host(c.tools.Host, req)
	}
	call := translation.Call
	call.Rounds = maxRounds
	c.notes.Add(call.Notes)
	return said(call), nil
}

// said is a call that a dialect has said.
func said(call *dialect.Call) outgoing {
	out := outgoing{path: call.Path, body: upstream.NewBody([][]byte{call.Body}, len(call.Body), func() {})}
	out.add(call.Header)
	return out
}

func (g *Gateway) ask(c *Call, req *llm.Request) *dialect.Ask {
	return &dialect.Ask{
		Request: req, ID: c.id(), Model: c.Request.Model, Begun: c.Started,
		Vendor: c.way.caps.Vendor, Origin: c.way.caps.Origin, Seal: g.seal, Told: c.Request.Told,
		Noted: func(n llm.Notes) {
			c.notes.Add(n)
			c.answer.header("X-Limen-Notes", c.notes.String())
		},
	}
}

// aside takes a request that wants both tools and thinking past a chat in
// which the model does not do both, to the upstream's Responses. It returns nil
// where there is no such need, or something that can only be said in the chat.
func (g *Gateway) aside(c *Call, req *llm.Request) *dialect.Translation {
	caps, out := c.Target.Caps[dialect.OpenAIResponses], g.outbound[dialect.OpenAIResponses]
	if !c.way.caps.ThinkingTools(req) || caps == nil || out == nil {
		return nil
	}
	chat := c.way
	c.way = way{outbound: out, caps: caps}
	translation, err := dialect.Translate(req, c.Dialect, out, caps, g.ask(c, req))
	if err != nil {
		c.way = chat
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

func asksStrict(header http.Header) bool {
	on := strings.ToLower(header.Get(strictHeader))
	return on == "true" || on == "1"
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
func (c *Call) translated() bool { return c.way.translation != nil && !c.way.asks }

// follow starts to follow the answer's stream.
func (c *Call) follow() dialect.Follower {
	if c.translated() {
		return c.way.translation
	}
	return c.Dialect.Follow(&c.Request)
}

// frames reads the frames of the answer's stream.
func (c *Call) frames(r io.Reader) dialect.Frames {
	if c.translated() {
		return &rounds{Frames: c.way.outbound.Frames(r, c.set.MaxEvent), call: c}
	}
	return sse.NewReader(r, c.set.MaxEvent)
}

// whole makes what the client gets of an answer that came whole, and notes
// what it used. dst is what was made of the answer before it was paused.
func (c *Call) whole(dst, body []byte) ([]byte, error) {
	if c.translated() {
		out, err := c.way.translation.Whole(dst, body, c.Request.Stream)
		c.Usage = c.way.translation.Usage(c.BytesIn)
		return out, err
	}
	usage, known, err := c.Dialect.Answer(body)
	if err != nil {
		return nil, err
	}
	if !known {
		usage = llm.Estimate(c.BytesIn, int64(len(body)))
	}
	c.Usage = usage
	if c.Request.Stream {
		return c.Dialect.Replay(nil, body, &c.Request), nil
	}
	if c.turn != nil {
		return c.stateful().Tell(body, c.Request.Told), nil
	}
	return body, nil
}

// failed reads an upstream's refusal.
func (c *Call) failed(status int, body []byte, wait time.Duration) *llm.Error {
	if c.translated() {
		return c.way.outbound.Failed(status, body, wait)
	}
	return openai.UpstreamError(status, body, wait)
}
