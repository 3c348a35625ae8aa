package upstream

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is one way of misbehaving. It takes a call over, or bends the answer that
// would have been correct; the empty one does neither.
type Fault struct {
	Name string
	Doc  string // one line; N is the scenario's argument

	take func(*exchange)
	bend func(*exchange, *answer)
}

// scenario is a fault and its argument.
type scenario struct {
	fault Fault
	arg   string
}

// parseScenario reads "NAME", "NAME VALUE", "NAME arg=VALUE" or "NAME=VALUE".
func parseScenario(s string) (scenario, error) {
	name, arg := s, ""
	if i := strings.IndexAny(s, " ="); i >= 0 {
		name, arg = s[:i], strings.TrimPrefix(s[i+1:], "arg=")
	}
	if name == "" {
		return scenario{}, nil
	}
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return scenario{}, fmt.Errorf("upstream: no fault is called %q", name)
	}
	return scenario{faults[i], arg}, nil
}

// Faults lists them by name.
func Faults() []Fault {
	return slices.SortedFunc(slices.Values(faults), func(a, b Fault) int { return strings.Compare(a.Name, b.Name) })
}

// number is the scenario's argument, or what it is by default.
func (x *exchange) number(otherwise int) int {
	if n, err := strconv.Atoi(x.arg); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func (x *exchange) milliseconds(otherwise int) time.Duration {
	return time.Duration(x.number(otherwise)) * time.Millisecond
}

var faults = slices.Concat(connectionFaults, statusFaults(), answerFaults, streamFaults, framingFaults, usageFaults, socketFaults)

// connectionFaults are those of the connection and of HTTP itself.
var connectionFaults = []Fault{
	{Name: "hang", Doc: "never answers", take: (*exchange).hold},
	{Name: "hang-headers", Doc: "sends the status line, then nothing", take: func(x *exchange) {
		x.raw(func(c *net.TCPConn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			x.holdRaw(c)
		})
	}},
	{Name: "slow-headers", Doc: "sends headers without end, a byte every N ms (1000)", take: slowHeaders},
	{Name: "reset", Doc: "resets the connection before any byte", take: (*exchange).reset},
	{Name: "reset-headers", Doc: "resets the connection in the middle of the headers", take: func(x *exchange) {
		x.raw(func(c *net.TCPConn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/ev")
			c.SetLinger(0)
		})
	}},
	{Name: "reset-mid", Doc: "resets the connection after N frames (3), or half the JSON", bend: func(x *exchange, a *answer) {
		a.endAt, a.end = x.number(3), func(x *exchange, _ *answer) { x.reset() }
	}},
	{Name: "cut", Doc: "ends the body cleanly after N frames (3), or half the JSON, without a terminal", bend: func(x *exchange, a *answer) {
		a.endAt, a.end = x.number(3), func(*exchange, *answer) {}
	}},
	{Name: "stall", Doc: "sends N frames (3), or half the JSON, then nothing, the connection open", bend: func(x *exchange, a *answer) {
		a.endAt, a.end = x.number(3), func(x *exchange, _ *answer) { x.hold() }
	}},
	{Name: "early-hints", Doc: "sends N times (1000) 103, then the answer", bend: func(x *exchange, _ *answer) {
		x.w.Header().Set("Link", "</style.css>; rel=preload")
		for range x.number(1000) {
			x.w.WriteHeader(http.StatusEarlyHints)
		}
		x.w.Header().Del("Link")
	}},
	{Name: "early-answer", Doc: "answers before it reads the body; by X-Fault or the default only", take: (*exchange).answerEarly},
	{Name: "redirect", Doc: "302 to /v1/redirected, which the ledger counts", take: func(x *exchange) {
		x.w.Header().Set("Location", x.srv.URL()+"/redirected")
		x.fail(http.StatusFound, x.leaky("Moved.", "", ""))
	}},
	{Name: "short-length", Doc: "declares 100 bytes more than it sends", take: func(x *exchange) { x.sendWithLength(100, "") }},
	{Name: "long-length", Doc: "sends a second answer, marked smuggled, behind the declared length", take: func(x *exchange) {
		x.sendWithLength(0, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n"+`{"id":"limen-smuggled"}`)
	}},
	{Name: "gzip-bomb", Doc: "16 GiB of zeros in gzip", take: gzipBomb},
	{Name: "trailers", Doc: "sends trailers and hop-by-hop headers", bend: func(_ *exchange, a *answer) {
		a.header = http.Header{
			"Content-Length":     nil, // trailers need a chunked body
			"Trailer":            {"X-Upstream-Trailer"},
			"X-Upstream-Trailer": {"canary"},
			"Keep-Alive":         {"timeout=1"},
			"Proxy-Authenticate": {"Basic realm=upstream"},
			"Upgrade":            {"h2c"},
		}
	}},
	{Name: "set-cookie", Doc: "sets a cookie and headers of its own", bend: func(_ *exchange, a *answer) {
		a.header = http.Header{
			"Set-Cookie":        {"upstream=canary; Path=/"},
			"X-Upstream-Canary": {"canary"},
			"Server":            {"upstream"},
		}
	}},
}

// statusFaults answer with an error, its body as vendors write it.
func statusFaults() []Fault {
	var list []Fault
	for _, s := range []struct {
		name    string
		status  int
		kind    string
		code    string
		message string
		header  http.Header
	}{
		{"status-400", 400, "invalid_request_error", "invalid_value", "Invalid value: 'x'.", nil},
		{"context", 400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.", nil},
		{"status-401", 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.", nil},
		{"status-402", 402, "insufficient_quota", "insufficient_quota", "Insufficient credits.", nil},
		{"status-403", 403, "invalid_request_error", "unsupported_country_region_territory", "Country, region, or territory not supported.", nil},
		{"status-404", 404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.", nil},
		{"status-408", 408, "timeout", "request_timeout", "Request timed out.", nil},
		{"status-409", 409, "invalid_request_error", "conversation_locked", "Another process is currently operating on this conversation.", nil},
		{"status-413", 413, "invalid_request_error", "request_too_large", "Request too large.", nil},
		{"status-422", 422, "invalid_request_error", "", "Unprocessable entity.", nil},
		{"status-429", 429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached. Please try again in 7s.", http.Header{"Retry-After": {"7"}}},
		{"quota", 429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", nil},
		{"status-500", 500, "server_error", "", "The server had an error while processing your request.", nil},
		{"status-502", 502, "server_error", "bad_gateway", "Bad gateway.", nil},
		{"status-503", 503, "server_error", "server_is_overloaded", "The engine is currently overloaded, please try again later.", nil},
		{"status-504", 504, "server_error", "upstream_timeout", "The gateway timed out.", nil},
		{"status-529", 529, "overloaded_error", "", "Overloaded.", nil},
		{"status-999", 999, "server_error", "", "No such status.", nil},
	} {
		list = append(list, Fault{
			Name: s.name,
			Doc:  strings.TrimSpace(fmt.Sprintf("%d %s %s; the text tells the key and this server's URL", s.status, s.kind, s.code)),
			take: func(x *exchange) {
				message := s.message
				if s.name == "context" {
					message = x.vendor.tooLong
				}
				a := x.vendor.failure(x, s.status, x.leaky(message, s.kind, s.code))
				maps.Copy(a.header, s.header)
				x.send(a)
			},
		})
	}
	return list
}

// answerFaults are those of the answer as a whole.
var answerFaults = []Fault{
	{Name: "html", Doc: "200 with a page of HTML", take: func(x *exchange) { x.sendPage(http.StatusOK) }},
	{Name: "html-502", Doc: "502 with a page of HTML", take: func(x *exchange) { x.sendPage(http.StatusBadGateway) }},
	{Name: "empty", Doc: "200 with an empty body", take: func(x *exchange) { x.w.WriteHeader(http.StatusOK) }},
	{Name: "text-plain", Doc: "the correct answer as text/plain", bend: func(_ *exchange, a *answer) {
		a.header = http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	}},
	{Name: "json-to-stream", Doc: "a JSON answer, though a stream was asked for", bend: func(x *exchange, a *answer) {
		x.prompt.stream = false
		*a = *x.correct()
	}},
	{Name: "stream-to-json", Doc: "a stream, though a JSON answer was asked for", bend: func(x *exchange, a *answer) {
		x.prompt.stream = true
		*a = *x.correct()
	}},
	{Name: "error-in-200", Doc: "200 with a JSON error", take: func(x *exchange) { x.fail(http.StatusOK, x.broken()) }},
	{Name: "error-null", Doc: `"error":null in every object`, bend: func(_ *exchange, a *answer) {
		if c, ok := a.body.(*chatCompletion); ok {
			c.Error = null
		}
		for c := range each[*chatChunk](a) {
			c.Error = null
		}
		for e := range each[*event](a) {
			e.Error = null
		}
	}},
	{Name: "drop-id", Doc: "no id on the answer, its items and its tool calls", bend: func(_ *exchange, a *answer) { dropIDs(a) }},
	{Name: "pretty", Doc: "indented JSON", bend: func(_ *exchange, a *answer) { a.pretty = true }},
	{Name: "slow", Doc: "N ms (50) before each frame", bend: func(x *exchange, a *answer) { a.delay = x.milliseconds(50) }},
	{Name: "pause", Doc: "N ms (1000) before the first byte", bend: func(x *exchange, a *answer) { a.pause = x.milliseconds(1000) }},
	{Name: "pause-mid", Doc: "N ms (1000) after two frames, or in half the JSON", bend: func(x *exchange, a *answer) {
		a.pause, a.pauseAt = x.milliseconds(1000), 2
		if a.body != nil {
			a.pauseAt = 1
		}
	}},
	{Name: "linger", Doc: "keeps the connection open N ms (40) after the end of its stream", bend: func(x *exchange, a *answer) {
		if a.body == nil {
			a.after = x.milliseconds(40)
		}
	}},
	{Name: "bytes", Doc: "3 bytes a write", bend: func(_ *exchange, a *answer) { a.pieceSize = 3 }},
	{Name: "trickle", Doc: "a byte every N ms (100)", bend: func(x *exchange, a *answer) { a.pieceSize, a.delay = 1, x.milliseconds(100) }},
}

// streamFaults are those of the events of a stream; a JSON answer they leave correct.
var streamFaults = []Fault{
	{Name: "error-first", Doc: "an error in place of the first frame", bend: func(x *exchange, a *answer) { x.failAt(a, 0, flat) }},
	{Name: "error-mid", Doc: "an error after N frames (3)", bend: func(x *exchange, a *answer) { x.failAt(a, x.number(3), flat) }},
	{Name: "error-late", Doc: "error-mid, 300 ms after what came before it", bend: func(x *exchange, a *answer) {
		a.pause, a.pauseAt = 300*time.Millisecond, x.number(3)
		x.failAt(a, x.number(3), flat)
	}},
	{Name: "error-mid-nested", Doc: "error-mid; a Responses error event as in Open Responses", bend: func(x *exchange, a *answer) { x.failAt(a, x.number(3), nested) }},
	{Name: "failed-mid", Doc: "error-mid; of Responses, response.failed alone", bend: func(x *exchange, a *answer) { x.failAt(a, x.number(3), failedOnly) }},
	{Name: "no-done", Doc: "finish and usage, but no [DONE]", bend: func(_ *exchange, a *answer) {
		a.drop(func(f frame) bool { return f.terminal && f.event == "" })
	}},
	{Name: "no-finish", Doc: "[DONE] without a finish_reason", bend: func(_ *exchange, a *answer) {
		a.drop(func(f frame) bool { return finishes(f) })
	}},
	{Name: "no-completed", Doc: "all but the end: no response.completed; no finish, usage and [DONE]", bend: func(_ *exchange, a *answer) {
		a.drop(func(f frame) bool { return f.terminal || finishes(f) || reportsUsage(f) })
	}},
	{Name: "no-role", Doc: "no delta has a role", bend: func(_ *exchange, a *answer) {
		for c := range choices(a) {
			c.Delta.Role = ""
		}
	}},
	{Name: "tool-no-index", Doc: "no fragment of a tool call has an index", bend: func(_ *exchange, a *answer) {
		for c := range choices(a) {
			for i := range c.Delta.ToolCalls {
				c.Delta.ToolCalls[i].Index = nil
			}
		}
	}},
	{Name: "bad-json", Doc: "a frame that is no JSON after N frames (2)", bend: func(x *exchange, a *answer) {
		a.insert(x.number(2), frame{data: json.RawMessage(`{"id":"chatcmpl-1","choices":[{"delta":{"content":"bro`)})
	}},
	{Name: "long-line", Doc: "a line of N MiB (64) as the second frame", bend: func(x *exchange, a *answer) {
		a.insert(1, frame{data: json.RawMessage(`{"padding":"` + strings.Repeat("a", x.number(64)<<20) + `"}`)})
	}},
	{Name: "unknown-event", Doc: "an event of a type nobody knows after N frames (2)", bend: func(x *exchange, a *answer) {
		a.insert(x.number(2), frame{event: "acme.unheard_of", data: json.RawMessage(`{"type":"acme.unheard_of"}`)})
	}},
	{Name: "comments-only", Doc: "comments without end, one every N ms (50)", take: func(x *exchange) {
		x.w.Header().Set("Content-Type", "text/event-stream")
		for x.write([]byte(": keepalive\n\n")) && x.sleep(x.milliseconds(50)) {
		}
	}},
	{Name: "endless", Doc: "frames without end, the second over and over, one every N ms (1)", bend: func(x *exchange, a *answer) {
		if len(a.frames) < 2 {
			return
		}
		again := chunk{bytes: a.framing.encode(a.frames[1], false, false)}
		a.endAt, a.end = 2, func(x *exchange, a *answer) {
			for x.writeChunk(a, again) && x.sleep(x.milliseconds(1)) {
			}
		}
	}},
}

// framingFaults are odd but legal event streams, most of them.
var framingFaults = []Fault{
	{Name: "crlf", Doc: "lines end with CR LF", bend: func(_ *exchange, a *answer) { a.framing.newline = "\r\n" }},
	{Name: "cr", Doc: "lines end with CR", bend: func(_ *exchange, a *answer) { a.framing.newline = "\r" }},
	{Name: "no-space", Doc: "no space after the colon", bend: func(_ *exchange, a *answer) { a.framing.noSpace = true }},
	{Name: "bom", Doc: "a byte order mark first", bend: func(_ *exchange, a *answer) { a.framing.bom = true }},
	{Name: "comments", Doc: "a comment before each frame", bend: func(_ *exchange, a *answer) { a.framing.comments = true }},
	{Name: "multi-line", Doc: "indented JSON over several data lines", bend: func(_ *exchange, a *answer) { a.framing.multiLine = true }},
	{Name: "no-blank-end", Doc: "no blank line after the last frame", bend: func(_ *exchange, a *answer) { a.framing.openEnd = true }},
}

// usageFaults are those of the figures that money is made of.
var usageFaults = []Fault{
	{Name: "no-usage", Doc: "no usage", bend: func(_ *exchange, a *answer) { dropUsage(a) }},
	{Name: "usage-every-chunk", Doc: "the usage in every chunk", bend: func(x *exchange, a *answer) {
		for c := range each[*chatChunk](a) {
			c.Usage = chatUsage(x.usage)
		}
	}},
	{Name: "usage-on-finish", Doc: "the usage in the chunk with the finish_reason", bend: func(x *exchange, a *answer) {
		a.drop(reportsUsage)
		for c := range each[*chatChunk](a) {
			if len(c.Choices) > 0 && c.Choices[0].FinishReason != nil {
				c.Usage = chatUsage(x.usage)
			}
		}
	}},
	{Name: "lying-usage", Doc: "N: negative (the default), huge, infinite, string, or null", bend: func(x *exchange, a *answer) {
		lie := map[string]string{"huge": "9223372036854775808", "infinite": "1e400", "string": `"12"`, "null": "null"}[x.arg]
		if lie == "" {
			lie = "-1"
		}
		x.usage = lyingUsage(lie)
		*a = *x.correct()
	}},
}

// leaky is an error whose text tells what must never reach a client: the vendor's
// key and address.
func (x *exchange) leaky(message, kind, code string) apiError {
	e := apiError{Message: fmt.Sprintf("%s (key %s, %s)", message, x.key(), x.srv.URL()), Type: kind}
	if code != "" {
		e.Code = &code
	}
	return e
}

// broken is the error of a vendor that fails in the middle.
func (x *exchange) broken() apiError {
	return x.leaky("The server had an error while processing your request.", "server_error", "server_error")
}

// failAt replaces what follows the first n frames by an error.
func (x *exchange) failAt(a *answer, n int, shape errorShape) {
	if a.body == nil {
		n = min(n, len(a.frames)-1)
		a.frames = append(a.frames[:n:n], x.door.failure(x.entry.ID, x.broken(), shape)...)
	}
}

// insert puts a frame before the n-th, and always before the last.
func (a *answer) insert(n int, f frame) {
	if a.body == nil {
		a.frames = slices.Insert(a.frames, min(n, len(a.frames)-1), f)
	}
}

func (a *answer) drop(bad func(frame) bool) { a.frames = slices.DeleteFunc(a.frames, bad) }

// each yields the frames' data of one type.
func each[T any](a *answer) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, f := range a.frames {
			if v, ok := f.data.(T); ok && !yield(v) {
				return
			}
		}
	}
}

// choices yields the choices of all chunks.
func choices(a *answer) iter.Seq[*chunkChoice] {
	return func(yield func(*chunkChoice) bool) {
		for c := range each[*chatChunk](a) {
			for i := range c.Choices {
				if !yield(&c.Choices[i]) {
					return
				}
			}
		}
	}
}

func finishes(f frame) bool {
	if f.finish {
		return true
	}
	c, ok := f.data.(*chatChunk)
	return ok && len(c.Choices) > 0 && c.Choices[0].FinishReason != nil
}

func reportsUsage(f frame) bool {
	c, ok := f.data.(*chatChunk)
	return ok && len(c.Choices) == 0
}

func dropUsage(a *answer) {
	switch b := a.body.(type) {
	case *chatCompletion:
		b.Usage = nil
	case *response:
		b.Usage = nil
	case *anthropicAnswer:
		b.Usage = nil
	case *geminiAnswer:
		b.UsageMetadata = nil
	case *bedrockAnswer:
		b.Usage = nil
	}
	a.drop(reportsUsage)
	for e := range each[*anthropicEvent](a) {
		e.Usage = nil
		if e.Message != nil {
			e.Message.Usage = nil
		}
	}
	for c := range each[*geminiAnswer](a) {
		c.UsageMetadata = nil
	}
	for e := range each[*bedrockEvent](a) {
		e.Usage = nil
	}
	for e := range each[*event](a) {
		if e.Response != nil {
			e.Response.Usage = nil
		}
	}
}

func dropIDs(a *answer) {
	switch b := a.body.(type) {
	case *chatCompletion:
		b.ID = ""
		for i := range b.Choices {
			dropCallIDs(b.Choices[i].Message.ToolCalls)
		}
	case *response:
		dropResponseIDs(b)
	}
	for c := range each[*chatChunk](a) {
		c.ID = ""
	}
	for c := range choices(a) {
		dropCallIDs(c.Delta.ToolCalls)
	}
	for e := range each[*event](a) {
		e.ItemID = ""
		if e.Item != nil {
			e.Item.ID = ""
		}
		if e.Response != nil {
			dropResponseIDs(e.Response)
		}
	}
}

func dropCallIDs(calls []chatCall) {
	for i := range calls {
		calls[i].ID = ""
	}
}

func dropResponseIDs(r *response) {
	r.ID = ""
	for i := range r.Output {
		r.Output[i].ID = ""
	}
}

// sendPage answers as a proxy in front of the vendor would.
func (x *exchange) sendPage(status int) {
	x.w.Header().Set("Content-Type", "text/html")
	x.w.WriteHeader(status)
	fmt.Fprintf(x.w, "<html><head><title>%d</title></head><body><h1>%[1]d</h1><p>key %s, %s</p></body></html>\n", status, x.key(), x.srv.URL())
}

// sendWithLength sends the JSON answer with a length that is extra too much, and
// what follows it.
func (x *exchange) sendWithLength(extra int, following string) {
	body := marshal(x.door.whole(x.entry.ID, x.reply, x.usage))
	x.raw(func(c *net.TCPConn) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s", len(body)+extra, body, following)
		if following != "" {
			x.holdRaw(c) // a client that reuses the connection must be able to
		}
	})
}

func slowHeaders(x *exchange) {
	x.raw(func(c *net.TCPConn) {
		line := "HTTP/1.1 200 OK\r\n"
		for n := 0; ; n++ {
			for i := range len(line) {
				if _, err := io.WriteString(c, line[i:i+1]); err != nil || !x.sleep(x.milliseconds(1000)) {
					x.gone()
					return
				}
			}
			line = fmt.Sprintf("X-Slow-%d: 1\r\n", n)
		}
	})
}

// gzipBomb repeats one small gzip member: members may follow one another, and the
// server's own cost stays small. All of them together are more than the buffers of a
// connection hold, so that a client that leaves is always seen.
func gzipBomb(x *exchange) {
	const each, total = 1 << 20, 16 << 30
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	z.Write(make([]byte, each))
	z.Close()
	h := x.w.Header()
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Type", "application/json")
	if x.prompt.stream {
		h.Set("Content-Type", "text/event-stream")
	}
	for range total / each {
		if !x.write(member.Bytes()) {
			x.gone()
			return
		}
	}
}

func isEarly(text string) bool {
	sc, err := parseScenario(text)
	return err == nil && sc.fault.Name == "early-answer"
}

// answerEarly needs no body: what a prompt says cannot choose it.
func (x *exchange) answerEarly() {
	x.note(func(e *Request) { e.Fault = "early-answer" })
	http.NewResponseController(x.w).EnableFullDuplex()
	x.w.Header().Set("Connection", "close")
	r := &chatRequest{Model: "small"}
	said := reply{text: "Hello from small."}
	x.send(&answer{body: r.whole(x.entry.ID, said, count(nil, prompt{}, said))})
}
