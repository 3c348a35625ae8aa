package gateway

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// countPaths are where tokens are counted, below the operations of the
// dialects that have a place for it, and how the answer begins.
var countPaths = map[dialect.Name]struct{ path, begin string }{
	dialect.Anthropic:       {"/count_tokens", `{"input_tokens":`},
	dialect.OpenAIResponses: {"/input_tokens", `{"object":"response.input_tokens","input_tokens":`},
}

// estimateHeader marks a count that the gateway made itself.
const estimateHeader = "X-Limen-Estimate"

// countTokens answers how many tokens a request has: the upstream's own count
// where it counts, else an estimate of the request as the upstream would get
// it, so that tools and instructions are in it. It is no call of a model, and
// is not recorded as one.
func (g *Gateway) countTokens(x *exchange, d Door, begin string) {
	c := g.begin(x, d)
	defer c.end()
	tokens, err := g.count(c, x.r)
	if err != nil {
		g.refuseObject(x, c, err)
		return
	}
	c.answer.writeJSON(http.StatusOK, append(strconv.AppendInt([]byte(begin), tokens, 10), '}'))
}

func (g *Gateway) count(c *Call, r *http.Request) (int64, error) {
	if err := g.admit(c); err != nil {
		return 0, err
	}
	body, err := g.readBody(c, r)
	if err != nil {
		return 0, err
	}
	c.Request.Counting = true
	if err := c.Dialect.Inspect(*body, &c.Request); err != nil {
		buffer.Put(body)
		return 0, mediaError(r, err)
	}
	if c.Request.Context != nil {
		c.Request.Context.Store, c.Request.Context.Background = false, false
	}
	if body, err = g.recall(c, body); err != nil {
		return 0, err
	}
	defer buffer.Put(body)
	if err := g.resolve(c); err != nil {
		return 0, err
	}
	a, err := g.first(c)
	if err != nil {
		return 0, err
	}
	call, err := g.counted(a, *body)
	if err != nil {
		return 0, err
	}
	if tokens, err := g.countThere(a, r.Header, call); err == nil {
		return tokens, nil
	}
	c.answer.header(estimateHeader, "true")
	return llm.Estimate(int64(len(call.Body)), 0).Input, nil
}

// counted is the request as the upstream would get it.
func (g *Gateway) counted(a *attempt, body []byte) (*dialect.Call, error) {
	if a.way.outbound == nil {
		a.way.outbound = g.outbound[a.Dialect.Name()]
		segments, _ := a.Dialect.Forward(nil, body, &a.Request, dialect.Upstream{Model: a.Target.Model})
		return &dialect.Call{Path: a.Dialect.Path(), Body: bytes.Join(segments, nil)}, nil
	}
	req, err := a.Dialect.Decode(body, g.seal)
	if err != nil {
		return nil, err
	}
	return a.way.outbound.Encode(req, a.way.caps)
}

// countThere asks the upstream.
func (g *Gateway) countThere(a *attempt, header http.Header, call *dialect.Call) (int64, error) {
	counter, ok := a.way.outbound.(dialect.Counter)
	if !ok {
		return 0, llm.Errorf(llm.Unsupported, "The upstream counts no tokens.")
	}
	gate := a.Target.Upstream.Gate
	if !gate.Try(1) {
		return 0, llm.Errorf(llm.Overloaded, "The upstream has no room for a count.")
	}
	defer gate.Leave(1)
	out := said(counter.Count(call))
	if a.way.translation == nil {
		out.add(a.Dialect.Passed(header.Get))
	}
	a.answer.enter(waiting)
	resp, err := a.Target.Upstream.Post(a.ctx, out.path, out.body, false, out.header)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := readAll(resp.Body, resp.ContentLength, maxErrorBody, func(int) {})
	if err != nil {
		return 0, err
	}
	defer buffer.Put(answer)
	if resp.StatusCode != http.StatusOK {
		return 0, a.failed(resp.StatusCode, *answer, 0)
	}
	return counter.Counted(*answer)
}
