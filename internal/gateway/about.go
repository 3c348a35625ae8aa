package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

// live answers that the process runs.
func (g *Gateway) live(x *exchange) { reply(x, http.StatusOK, map[string]string{"status": "ok"}) }

// ready answers whether new calls can be served.
func (g *Gateway) ready(x *exchange) {
	if problems := g.health.Problems(); len(problems) > 0 {
		reply(x, http.StatusServiceUnavailable, struct {
			Status   string   `json:"status"`
			Problems []string `json:"problems"`
		}{"unready", problems})
		return
	}
	reply(x, http.StatusOK, map[string]string{"status": "ok"})
}

// about explains to a person, or to a client's connection test, where it is.
func (g *Gateway) about(x *exchange) {
	base := g.baseURL(x)
	reply(x, http.StatusOK, struct {
		Object     string   `json:"object"`
		Message    string   `json:"message"`
		BaseURL    string   `json:"base_url"`
		Operations []string `json:"operations"`
	}{
		"gateway",
		"This is Limen, an OpenAI-compatible gateway. Set a client's base URL to " + base + ", give it a key, and take a model ID from the list.",
		base,
		served,
	})
}

// consolePath is where people are sent that open the address in a browser.
const consolePath = "/console/"

// wantsPage reports whether a person's browser asks, not a client.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && credential(r.Header) == ""
}

func (g *Gateway) showConsole(x *exchange) { g.console.ServeHTTP(x.w, x.r) }

// served are the operations of /v1, as they are shown.
var served = []string{
	"GET /v1/models", "GET /v1/models/{model}",
	"POST /v1/chat/completions",
	"POST /v1/responses", "GET /v1/responses (WebSocket)",
	"GET /v1/responses/{response}", "DELETE /v1/responses/{response}",
	"POST /v1/responses/{response}/cancel", "GET /v1/responses/{response}/input_items",
	"POST /v1/responses/compact", "POST /v1/responses/input_tokens",
	"POST /v1/conversations",
	"GET /v1/conversations/{conversation}", "POST /v1/conversations/{conversation}", "DELETE /v1/conversations/{conversation}",
	"GET /v1/conversations/{conversation}/items", "POST /v1/conversations/{conversation}/items",
	"GET /v1/conversations/{conversation}/items/{item}", "DELETE /v1/conversations/{conversation}/items/{item}",
	"POST /v1/messages", "POST /v1/messages/count_tokens",
}

// reply answers with a small JSON document.
func reply(x *exchange, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		body = []byte(`{}`)
	}
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"] = contentJSON, noStore
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		x.w.Write(body)
	}
}

// finish makes the log line and the metrics of a call from its record, once,
// at its end. A call that a panic ended is recorded here.
func (g *Gateway) finish(c *Call, x *exchange) {
	if p := recover(); p != nil {
		g.logPanic(x, p)
		g.fail(c, fmt.Errorf("panic: %v", p))
	}
	g.came(c, x)
	if c.launched {
		return
	}
	now := time.Now()
	if c.record == nil || c.Err != nil && c.record.Error == "" { // it failed after it was recorded: the client did not take its end
		c.record = c.newRecord(now)
	}
	g.observe(c, now)
}

// observe makes the log line and the metrics of a call from its record.
func (g *Gateway) observe(c *Call, now time.Time) {
	g.metrics.Observe(c.record)
	level, cause := slog.LevelInfo, ""
	if c.Err != nil {
		if level = failureLevel(c.Err); level == slog.LevelError {
			cause = c.cause()
		}
	}
	g.calls.Log(level, c.requestID, c.record, cause, now)
}

// cause is why a call failed, for the operator. What an upstream said is not
// in it, its address and credential neither.
func (c *Call) cause() string {
	if c.Err.Err == nil {
		return c.Err.Message
	}
	text := c.Err.Err.Error()
	if c.Err.Status != 0 {
		text = fmt.Sprintf("upstream status %d: %s", c.Err.Status, text)
	}
	if c.at != nil {
		text = c.at.Target.Upstream.Redact(text)
	}
	return text
}

// failureLevel tells what the operator should look at from what clients do.
func failureLevel(e *llm.Error) slog.Level {
	switch e.Kind {
	case llm.Internal, llm.Upstream, llm.UpstreamInvalid, llm.UpstreamTruncated, llm.UpstreamAuth, llm.UpstreamQuota, llm.UpstreamTimeout, llm.Overloaded, llm.Unavailable:
		return slog.LevelError
	}
	return slog.LevelInfo
}

// logRefusal logs and remembers an exchange that did not become a call.
func (g *Gateway) logRefusal(x *exchange, e *llm.Error) {
	g.turnAway(x, e)
	attrs := []slog.Attr{
		slog.String("request_id", x.requestID), slog.String("operation", x.operation),
		slog.String("method", clip(x.r.Method)), slog.Int("status", x.failures.Status(e)), slog.String("error", e.Kind.String()),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("cause", e.Err.Error()))
	}
	g.log.LogAttrs(x.r.Context(), failureLevel(e), "refused", attrs...)
}

func (g *Gateway) logPanic(x *exchange, p any) {
	g.log.Error("a request made the gateway panic; please report it", "request_id", x.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}
