package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/upstream"
)

var _ route.Viewer = (*keys.Key)(nil)

// resolve finds the model that a call asks for. What is unknown right after a
// start may be in a list that has yet to come.
func (g *Gateway) resolve(c *Call) (*route.Model, error) {
	if model := g.models.Table().Find(c.Key, c.Request.Model); model != nil {
		return model, nil
	}
	g.models.Await()
	return g.models.Table().Resolve(c.Key, c.Request.Model)
}

// choose takes the first target that speaks the client's dialect.
func (c *Call) choose(m *route.Model) (*route.Target, error) {
	for i := range m.Targets {
		if slices.Contains(m.Targets[i].Upstream.Speaks, c.Dialect.Name()) {
			return &m.Targets[i], nil
		}
	}
	e := llm.Errorf(llm.Unsupported, "The upstream of model '%s' does not speak %s; it speaks %s.", c.Request.Model, c.Dialect.Name(), spoken(m))
	e.Param = "model"
	return nil, e
}

func spoken(m *route.Model) string {
	var names []string
	for _, t := range m.Targets {
		for _, d := range t.Upstream.Speaks {
			if !slices.Contains(names, string(d)) {
				names = append(names, string(d))
			}
		}
	}
	return strings.Join(names, ", ")
}

// passedHeaders go from the client to the upstream. Everything else stays
// here: credentials, cookies, addresses.
var passedHeaders = []string{"Openai-Beta", "Idempotency-Key"}

// send calls the target and returns its answer once that has a status of
// success. It takes over body.
func (g *Gateway) send(c *Call, header http.Header, body *[]byte) (*http.Response, error) {
	out, err := c.body(body)
	if err != nil {
		return nil, err
	}
	defer out.Done()
	if c.Request.Stream {
		c.answer.wantStream()
	}
	c.answer.enter(waiting)
	var extra http.Header
	for _, name := range passedHeaders {
		if values := header[name]; len(values) > 0 {
			if extra == nil {
				extra = http.Header{}
			}
			extra[name] = values
		}
	}
	resp, err := c.Target.Upstream.Post(c.ctx, c.Dialect.Path(), out, c.Request.Stream, extra)
	var dial *net.OpError
	c.sent = err == nil || !errors.As(err, &dial) || dial.Op != "dial"
	if err != nil {
		if c.ctx.Err() != nil {
			return nil, c.ended(err)
		}
		return nil, &llm.Error{Kind: llm.Upstream, Message: "The upstream could not be reached, or broke off before it answered.", Err: fmt.Errorf("%s: %w", c.Target.Upstream.Name, err)}
	}
	c.FirstByte = time.Since(c.Started)
	c.answer.enter(relaying)
	if id := resp.Header.Get("X-Request-Id"); id != "" && len(id) <= maxName {
		c.answer.header("X-Limen-Upstream-Request-Id", id)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.upstreamError(resp)
	}
	return resp, nil
}

// body makes the client's body fit for the target.
func (c *Call) body(client *[]byte) (*upstream.Body, error) {
	up := c.Target.Upstream
	content, notes, err := up.Fitter.Fit(c.Dialect.Name(), *client, c.Target.Reasons)
	if err == nil && len(notes) > 0 {
		c.answer.header("X-Limen-Notes", strings.Join(notes, ","))
		err = c.Dialect.Inspect(content, &c.Request) // the members stand elsewhere now
	}
	if err != nil {
		buffer.Put(client)
		return nil, openai.ScanError(err)
	}
	to := dialect.Upstream{Model: c.Target.Model, AskUsage: up.Vendor.Quirks.StreamUsage == provider.UsageAsked}
	segments, size := c.Dialect.Forward(nil, content, &c.Request, to)
	return upstream.NewBody(segments, size, func() { buffer.Put(client) }), nil
}

// maxErrorBody bounds what is read of an upstream's refusal.
const maxErrorBody = 64 << 10

func (c *Call) upstreamError(resp *http.Response) error {
	body, err := readAll(io.LimitReader(resp.Body, maxErrorBody), -1, maxErrorBody, func(int) {})
	if err != nil {
		return c.readError(err)
	}
	defer buffer.Put(body)
	e := openai.UpstreamError(resp.StatusCode, *body, retryAfter(resp.Header, time.Now()))
	e.Message = c.Target.Upstream.Redact(e.Message)
	return e
}

// readError explains a failure to read an upstream's answer.
func (c *Call) readError(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return c.ended(err)
	case errors.Is(err, errOver):
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream's answer is larger than this gateway takes.", NoRetry: true, Err: err}
	}
	e := openai.Truncated()
	e.Err = err
	return e
}

// retryAfter is how long an upstream asks to wait: by retry-after-ms, by
// retry-after in seconds or as a date; 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampWait(time.Duration(min(ms, 1e9) * float64(time.Millisecond)))
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return clampWait(time.Duration(min(seconds, 1e6) * float64(time.Second)))
	}
	if at, err := http.ParseTime(text); err == nil {
		return clampWait(at.Sub(now))
	}
	return 0
}

// maxWait is the longest wait that is passed on.
const maxWait = time.Hour

func clampWait(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }
