package gateway

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/tokens"
)

// countPaths are where tokens are counted, below the operations of the
// dialects that have a place for it, and how the answer begins.
var countPaths = map[dialect.Name]struct{ path, begin string }{
	dialect.Anthropic:       {"/count_tokens", `{"input_tokens":`},
	dialect.OpenAIResponses: {"/input_tokens", `{"object":"response.input_tokens","input_tokens":`},
}

// Header fields that tell how a count was made. Without them it is the
// upstream's own.
const (
	tokenizerHeader = "X-Limen-Tokenizer" // the vocabulary that the gateway counted with
	estimateHeader  = "X-Limen-Estimate"  // not all of the count is known to be so
)

// countTokens answers how many tokens a request has: the upstream's own count
// where it counts, else one with the model's tokenizer, else an estimate; all
// of them of the request as the upstream would get it, with the tools that the
// gateway runs. It is no call of a model, and is not recorded as one.
func (g *Gateway) countTokens(x *exchange, d Door, begin string) {
	c := g.begin(x, d)
	defer c.end()
	n, err := g.count(c, x.r)
	if err != nil {
		g.refuseObject(x, c, err)
		return
	}
	c.answer.writeJSON(http.StatusOK, append(strconv.AppendInt([]byte(begin), n, 10), '}'))
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
	c.Request.Stream = false
	if c.Request.Context != nil {
		c.Request.Context.Store, c.Request.Context.Background = false, false
	}
	if err := g.resolve(c); err != nil {
		buffer.Put(body)
		return 0, err
	}
	if body, err = g.recall(c, body); err != nil {
		return 0, err
	}
	defer buffer.Put(body)
	a, err := g.first(c)
	if err != nil {
		return 0, err
	}
	defer a.close()
	if g.anew(a, *body) {
		return g.countSaid(a, *body)
	}
	return g.countPassed(a, r.Header, *body)
}

// countSaid counts a request that is said anew.
func (g *Gateway) countSaid(a *attempt, body []byte) (int64, error) {
	req, translation, err := g.say(a, body)
	if err != nil {
		return 0, err
	}
	call := translation.Call
	if n, err := g.countThere(a, call, nil); err == nil {
		return n, nil
	}
	return g.countHere(a, call, req), nil
}

// countPassed counts a request that the upstream gets as the client wrote it.
func (g *Gateway) countPassed(a *attempt, header http.Header, body []byte) (int64, error) {
	a.way.outbound = g.outbound[a.Dialect.Name()]
	segments, _ := a.Dialect.Forward(nil, body, &a.Request, dialect.Upstream{Model: a.Target.Model})
	call := &dialect.Call{Path: a.Dialect.Path(), Body: bytes.Join(segments, nil)}
	if n, err := g.countThere(a, call, a.Dialect.Passed(header.Get)); err == nil {
		return n, nil
	}
	req, err := a.Dialect.Decode(body, g.seal)
	if err != nil { // then the upstream takes what the neutral form does not
		req = nil
	}
	return g.countHere(a, call, req), nil
}

// countThere asks the upstream.
func (g *Gateway) countThere(a *attempt, call *dialect.Call, passed []dialect.Header) (int64, error) {
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
	out.add(passed)
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
		return 0, a.refusal(resp.StatusCode, *answer, 0)
	}
	return counter.Counted(*answer)
}

// maxCounted bounds the texts that a tokenizer gets of one request, in bytes:
// no model takes as much.
const maxCounted = 8 << 20

// countHere counts with the model's tokenizer where that is known, else it
// estimates. What a model's server makes of a request is known of chats. One in
// another dialect is counted as it would be said there, which comes near.
func (g *Gateway) countHere(a *attempt, call *dialect.Call, req *llm.Request) int64 {
	by := &a.way.caps.Tokenizer
	tokenizer := tokens.Named(by.Vocabulary)
	measurer, exact := a.way.outbound.(dialect.Measurer)
	if tokenizer != nil && !exact && req != nil {
		if near, err := g.outbound[dialect.OpenAIChat].Encode(req, &llm.Caps{}); err == nil {
			measurer, _ = g.outbound[dialect.OpenAIChat].(dialect.Measurer)
			call = near
		}
	}
	if tokenizer == nil || measurer == nil {
		a.answer.header(estimateHeader, "true")
		return estimate(len(call.Body))
	}
	a.answer.header(tokenizerHeader, by.Vocabulary)
	left := maxCounted
	count, known := measurer.Measure(call.Body, by, func(text string) int64 {
		if left -= len(text); left < 0 || a.ctx.Err() != nil {
			exact = false
			return estimate(len(text))
		}
		return tokenizer.Count(text)
	})
	if !exact || !known {
		a.answer.header(estimateHeader, "true")
	}
	return count
}

func estimate(size int) int64 { return llm.Estimate(int64(size), 0).Input }
