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
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
)

var _ route.Viewer = (*keys.Key)(nil)

// resolve finds the model that a call asks for. What is unknown right after a
// start may be in a list that has yet to come.
func (g *Gateway) resolve(c *Call) (err error) {
	if c.model != nil { // of a trial, which asks for one target
		return nil
	}
	if c.model = g.models.Table().Find(c.Key, c.Request.Model); c.model == nil {
		g.models.Await()
		c.model, err = g.models.Table().Resolve(c.Key, c.Request.Model)
	}
	return err
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

// post sends a request and returns its answer once that has a status of
// success.
func (a *attempt) post(out outgoing) (*http.Response, error) {
	if err := a.hold.cover(); err != nil {
		a.unpaid = true
		return nil, err
	}
	a.requests++
	a.answer.enter(waiting)
	resp, err := a.Target.Upstream.Post(a.ctx, out.path, out.body, a.Request.Stream, out.header)
	var dial *net.OpError
	a.sent = a.sent || err == nil || !errors.As(err, &dial) || dial.Op != "dial"
	if err != nil {
		return nil, a.unreached(err)
	}
	if a.firstByte == 0 {
		a.firstByte = time.Since(a.Started)
	}
	a.answer.enter(relaying)
	if id := resp.Header.Get("X-Request-Id"); len(id) <= maxName {
		a.upstreamID = id
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, a.upstreamError(resp)
	}
	return resp, nil
}

// unreached explains that a request to the target has no answer.
func (a *attempt) unreached(err error) error {
	if a.ctx.Err() != nil {
		return ended(a.ctx, err)
	}
	return &llm.Error{Kind: llm.Upstream, Message: "The upstream could not be reached, or broke off before it answered.", Err: fmt.Errorf("%s: %w", a.Target.Upstream.Name, err)}
}

// maxErrorBody bounds what is read of an upstream's refusal.
const maxErrorBody = 64 << 10

func (a *attempt) upstreamError(resp *http.Response) error {
	body, err := readAll(io.LimitReader(resp.Body, maxErrorBody), -1, maxErrorBody, func(int) {})
	if err != nil {
		return a.readError(err)
	}
	defer buffer.Put(body)
	a.wait = retryAfter(resp.Header, time.Now())
	e := a.refusal(resp.StatusCode, *body, a.wait)
	e.Message = a.Target.Upstream.Redact(e.Message)
	if a.there.lost(resp.StatusCode, *body) {
		return a.there.past.Gone()
	}
	return e
}

// readError explains a failure to read an upstream's answer.
func (a *attempt) readError(err error) error {
	var e *llm.Error
	switch {
	case a.ctx.Err() != nil:
		return ended(a.ctx, err)
	case errors.As(err, &e): // of another request for the same answer
		return e
	case errors.Is(err, errOver):
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream's answer is larger than this gateway takes.", NoRetry: true, Err: err}
	}
	e = dialect.Truncated()
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
