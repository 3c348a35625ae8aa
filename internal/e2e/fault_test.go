package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// impatient are limits that a fault exceeds within a test's time.
const impatient = `
timeouts: {connect: 1s, first_byte: 5s, idle: 5s, total: 12s, heartbeat: 3s, drain: 1s}
limits: {event: 256KiB, answer: 4MiB}
log: {level: debug}
`

// manners are the four ways in which clients ask.
var manners = []struct {
	name   string
	path   string
	stream bool
}{
	{"chat", "/chat/completions", false},
	{"chat-stream", "/chat/completions", true},
	{"responses", "/responses", false},
	{"responses-stream", "/responses", true},
}

// TestUpstreamFaults takes every fault of the upstream through every manner of
// asking. An outcome is how the client sees it and how it is recorded:
//
//	answer                    200 with a whole JSON answer
//	stream                    a stream with its own end
//	502 upstream_error        refused before the first byte
//	stream, 502 upstream_…    failed within the stream, and recorded with 502
//	stream?, 502 upstream_…   either of these two: frames that come together
//	                          with the failure need not have begun the answer
//
// "estimated" follows when the recorded tokens are an estimate.
func TestUpstreamFaults(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	early := newUpstream(t)
	g := start(t, impatient+"retries: {attempts: 1}\n"+provider(up)+fmt.Sprintf("  early: {base_url: %q, api_key: %s, speaks: [openai-chat, openai-responses], models: [small], headers: {X-Fault: early-answer}}\n", early.URL(), canary))

	// Most cases wait; more of them run at once than there are processors.
	var running sync.WaitGroup
	slots := make(chan struct{}, 24)
	tested := map[string]bool{}
	for _, c := range faultCases {
		fault, _, _ := strings.Cut(c.scenario, " ")
		tested[fault] = true
		for i, m := range manners {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				t.Run(c.scenario+"/"+m.name, func(t *testing.T) {
					if fault == "early-answer" {
						g.fault(t, early, "early/small", c.scenario, i, c.want[i])
						return
					}
					g.fault(t, up, "up/small", c.scenario, i, c.want[i])
				})
			})
		}
	}
	running.Wait()
	for _, f := range upstream.Faults() {
		if !tested[f.Name] {
			t.Errorf("fault %s has no case", f.Name)
		}
	}

	if code := g.stop(); code != 0 {
		t.Errorf("exit code: got %d, want 0", code)
	}
	for _, s := range []*upstream.Server{up, early} {
		checkSecrets(t, "the log", g.log.String(), s)
		for _, r := range s.Requests() {
			if r.Path == "/v1/redirected" {
				t.Error("a redirect of the upstream was followed")
			}
		}
	}
	for line := range strings.Lines(g.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}

// fault makes one call that meets a fault and checks its outcome.
func (g *gateway) fault(t *testing.T, s *upstream.Server, model, scenario string, manner int, want string) {
	m := manners[manner]
	prompt := fmt.Sprintf("%s [[fault:%s]]", t.Name(), scenario)
	body := chatBody(m.stream, prompt)
	if m.path == "/responses" {
		body = responsesBody(m.stream, prompt)
	}
	body = strings.Replace(body, "up/small", model, 1)
	got := g.post(t, m.path, body)
	if got.err != nil {
		t.Errorf("the answer broke off: %v\n%s", got.err, got.body)
	}
	outcome := observe(t, m.path, got)
	rec := g.record(t, got.id())
	if strings.HasPrefix(outcome, "stream, ") {
		outcome = fmt.Sprintf("stream, %d %s", rec.Status, strings.TrimPrefix(outcome, "stream, "))
	} else if rec.Status != got.status {
		t.Errorf("recorded status: got %d, want %d as the client saw", rec.Status, got.status)
	}
	if rec.Estimated {
		outcome += ", estimated"
	}
	if rec.Input < 0 || rec.Output < 0 || rec.Total > 1<<40 {
		t.Errorf("recorded tokens: got %d in, %d out, %d in all", rec.Input, rec.Output, rec.Total)
	}
	if rest, either := strings.CutPrefix(want, "stream?, "); either && (outcome == rest || outcome == "stream, "+rest) {
		want = outcome
	}
	if outcome != want {
		t.Errorf("outcome: got %q, want %q\n%.2000s", outcome, want, got.body)
	}
	var header strings.Builder
	got.header.Write(&header)
	checkSecrets(t, "the answer", header.String()+got.body, s)
	for _, name := range []string{"Set-Cookie", "X-Upstream-Canary", "X-Upstream-Trailer", "Proxy-Authenticate", "Keep-Alive", "Upgrade", "Server", "Link", "Location"} {
		if value := got.header.Get(name); value != "" {
			t.Errorf("the upstream's header %s: %q reached the client", name, value)
		}
	}
	if scenario != "early-answer" { // which is sent before the body is read
		if n := attempts(s, t.Name()+" "); n != 1 {
			t.Errorf("attempts upstream: got %d, want 1", n)
		}
	}
	if got := g.do(t, g.request(t, t.Context(), http.MethodGet, "/models", nil)); got.status != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", got.status)
	}
}

// TestSecretHeaders: an upstream's credential may be in a header of the
// operator's own, and it says that back too.
func TestSecretHeaders(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, fmt.Sprintf("log: {level: debug}\nproviders:\n  up: {base_url: %q, headers: {X-Api-Key: %s}}\n", up.URL(), canary))
	for _, c := range []struct {
		fault  string
		stream bool
	}{{"status-400", false}, {"context", true}, {"status-409", false}, {"error-mid", true}, {"error-in-200", false}} {
		got := g.post(t, "/chat/completions", chatBody(c.stream, "[[fault:"+c.fault+"]]"))
		checkSecrets(t, "the answer to "+c.fault, got.body, up)
	}
	checkSecrets(t, "the log", g.log.String(), up)
}

// attempts counts the calls that reached an upstream with a text in their body.
func attempts(s *upstream.Server, mark string) (n int) {
	for _, r := range s.Requests() {
		if strings.Contains(r.Body, mark) {
			n++
		}
	}
	return n
}

// checkSecrets looks for what must not leave the gateway.
func checkSecrets(t *testing.T, where, text string, s *upstream.Server) {
	t.Helper()
	for _, secret := range []string{canary, s.Host(), "limen-smuggled"} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s has %q in it: …%s…", where, secret, text[max(0, i-200):min(len(text), i+200)])
		}
	}
}

// errorObject is OpenAI's; all four members must be there.
type errorObject struct {
	Message *string         `json:"message"`
	Type    *string         `json:"type"`
	Param   json.RawMessage `json:"param"`
	Code    json.RawMessage `json:"code"`
}

// code is the code of an error, after a check of its shape.
func (e *errorObject) code(t *testing.T) string {
	t.Helper()
	if e == nil || e.Message == nil || *e.Message == "" || e.Type == nil || *e.Type == "" || e.Param == nil || e.Code == nil {
		t.Errorf("error: got %+v, want message, type, param and code", e)
		return ""
	}
	code := ""
	if err := json.Unmarshal(e.Code, &code); err != nil {
		t.Errorf("code: got %s, want a string or null", e.Code)
	}
	return code
}

// observe describes an answer as its client sees it, and checks its shape.
func observe(t *testing.T, path string, r reply) string {
	t.Helper()
	media := r.header.Get("Content-Type")
	switch {
	case r.status != http.StatusOK:
		var body struct{ Error *errorObject }
		if err := json.Unmarshal([]byte(r.body), &body); err != nil || media != "application/json" {
			t.Errorf("error body: got %s %q, want JSON", media, r.body)
		}
		return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, body.Error.code(t)))
	case strings.HasPrefix(media, "text/event-stream"):
		return observeStream(t, path, r.body)
	default:
		return observeAnswer(t, path, r)
	}
}

func observeAnswer(t *testing.T, path string, r reply) string {
	t.Helper()
	var body struct {
		Object  string
		Choices []json.RawMessage
		Output  []json.RawMessage
		Error   json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		t.Errorf("answer: got %q, want JSON", r.body)
	}
	want := map[string]string{"/chat/completions": "chat.completion", "/responses": "response"}[path]
	if body.Object != want || len(body.Choices)+len(body.Output) == 0 {
		t.Errorf("answer: got %s, want a %s with content", r.body, want)
	}
	return "answer"
}

// event is a frame of a stream; data is "[DONE]" or JSON.
type event struct{ name, data string }

// frames takes a stream apart. It accepts only what all clients do: one data
// line a frame, at most one event line before it, comments between frames.
func frames(t *testing.T, stream string) []event {
	t.Helper()
	if stream != "" && !strings.HasSuffix(stream, "\n\n") {
		t.Errorf("the stream's last frame has no blank line: …%q", stream[max(0, len(stream)-100):])
	}
	var list []event
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		var e event
		rest := block
		if strings.HasPrefix(block, ":") {
			continue
		}
		if line, after, ok := strings.Cut(rest, "\n"); ok && strings.HasPrefix(line, "event: ") {
			e.name, rest = strings.TrimPrefix(line, "event: "), after
		}
		data, ok := strings.CutPrefix(rest, "data: ")
		if !ok || strings.ContainsAny(data, "\r\n") {
			t.Errorf("frame: got %q, want one data line", block)
		}
		e.data = data
		list = append(list, e)
	}
	return list
}

func observeStream(t *testing.T, path, stream string) string {
	t.Helper()
	list := frames(t, stream)
	if n := len(list); n == 0 || list[n-1] != (event{"", "[DONE]"}) {
		t.Errorf("the stream does not end with [DONE]:\n%.2000s", stream)
		return "no end"
	}
	list = list[:len(list)-1]
	if path == "/responses" {
		return observeResponses(t, list)
	}
	return observeChat(t, list)
}

func observeChat(t *testing.T, list []event) string {
	t.Helper()
	finished, failed, id := false, "", ""
	for i, e := range list {
		var chunk struct {
			ID      string
			Error   *errorObject
			Choices []struct {
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil || e.name != "" {
			t.Errorf("chunk: got %+v, want JSON without an event name", e)
		}
		var members map[string]json.RawMessage
		json.Unmarshal([]byte(e.data), &members)
		switch {
		case chunk.Error != nil:
			if i != len(list)-1 || len(members) != 1 {
				t.Errorf("error frame: got %s as frame %d of %d, want it alone and last", e.data, i+1, len(list))
			}
			failed = chunk.Error.code(t)
			continue
		case members["error"] != nil:
			t.Errorf("chunk: got %s, want no error member", e.data)
		case members["choices"] == nil || string(members["choices"]) == "null":
			t.Errorf("chunk: got %s, want choices", e.data)
		case id != "" && chunk.ID != id:
			t.Errorf("chunk: got id %q, want %q as in the first", chunk.ID, id)
		}
		id = chunk.ID
		for _, c := range chunk.Choices {
			finished = finished || c.FinishReason != ""
		}
	}
	switch {
	case failed != "":
		return "stream, " + failed
	case !finished:
		t.Errorf("the stream ended well without a finish_reason")
		return "no end"
	}
	return "stream"
}

func observeResponses(t *testing.T, list []event) string {
	t.Helper()
	last := -1
	terminal, failed, disorder := "", "", ""
	for i, e := range list {
		var ev struct {
			Type     string
			Sequence *int `json:"sequence_number"`
			Error    *errorObject
			Code     json.RawMessage
			Message  *string
			Param    json.RawMessage
			Response struct {
				Status string
				Error  *struct{ Code, Message string }
			}
		}
		if err := json.Unmarshal([]byte(e.data), &ev); err != nil || ev.Type == "" || ev.Type != e.name {
			t.Errorf("event: got %+v, want JSON whose type is the event's name", e)
		}
		if ev.Sequence != nil {
			if *ev.Sequence <= last && disorder == "" {
				disorder = fmt.Sprintf("event %s: got sequence number %d after %d", ev.Type, *ev.Sequence, last)
			}
			last = *ev.Sequence
		}
		switch ev.Type {
		case "error":
			failed = ev.Error.code(t)
			if ev.Code == nil || ev.Message == nil || ev.Param == nil {
				t.Errorf("error event: got %s, want the flat shape too", e.data)
			}
			if i != len(list)-2 {
				t.Errorf("error event: got it as event %d of %d, want it right before response.failed", i+1, len(list))
			}
		case "response.completed", "response.incomplete", "response.failed":
			if terminal != "" || i != len(list)-1 {
				t.Errorf("event %s: got it as event %d of %d after %q, want one terminal event, last", ev.Type, i+1, len(list), terminal)
			}
			terminal = ev.Type
			if r := ev.Response; ev.Type == "response.failed" && (r.Status != "failed" || r.Error == nil || r.Error.Code == "" || r.Error.Message == "") {
				t.Errorf("response.failed: got %s, want status failed and an error", e.data)
			}
		}
	}
	switch {
	case terminal == "response.failed" && failed != "":
		return "stream, " + failed
	case terminal == "" || terminal == "response.failed" || failed != "":
		t.Errorf("the stream has terminal %q and error %q", terminal, failed)
		return "no end"
	case disorder != "": // of a failed stream it is the upstream's own
		t.Error(disorder)
	}
	return "stream"
}

// The outcomes that many faults share, in the order of manners.
var (
	// fine is what becomes of faults that are none to a client.
	fine = outcomes{"answer", "stream", "answer", "stream"}
	// unmetered is fine where the upstream sent no figures to go by.
	unmetered = outcomes{"answer, estimated", "stream, estimated", "answer, estimated", "stream, estimated"}
	// unanswered is an upstream that was asked and gave nothing: it may well
	// have worked, so that zero tokens would be a lie.
	unanswered = same("502 upstream_error, estimated")
	// silent is an upstream that was waited for too long. Streams have had
	// heartbeats by then.
	silent = split("504 upstream_timeout, estimated", "stream, 504 upstream_timeout, estimated")
	// brokenStream strikes streams alone.
	brokenStream = split("answer", "stream?, 502 upstream_error, estimated")
)

type outcomes [4]string

// same is an outcome that does not depend on the manner of asking.
func same(outcome string) outcomes { return outcomes{outcome, outcome, outcome, outcome} }

// split is an outcome by whether a stream was asked for.
func split(whole, stream string) outcomes { return outcomes{whole, stream, whole, stream} }

// faultCases are scenarios of the upstream, and what becomes of them.
var faultCases = []struct {
	scenario string
	want     outcomes
}{
	// The connection and HTTP.
	{"hang", silent},
	{"hang-headers", silent},
	{"slow-headers arg=300", silent},
	{"reset", unanswered},
	{"reset-headers", unanswered},
	{"reset-mid", split("502 upstream_stream_truncated, estimated", "stream?, 502 upstream_stream_truncated, estimated")},
	{"cut", split("502 upstream_invalid_response, estimated", "stream, 502 upstream_stream_truncated, estimated")},
	{"stall", silent},
	{"short-length", same("502 upstream_stream_truncated, estimated")},
	{"long-length", fine},
	{"early-hints arg=3", fine},
	{"early-hints", unanswered},
	{"early-answer", outcomes{"answer", "stream", "502 upstream_invalid_response, estimated", "502 upstream_invalid_response, estimated"}},
	{"redirect", same("502 upstream_error")},
	{"gzip-bomb", split("502 upstream_invalid_response, estimated", "502 upstream_malformed_output, estimated")},
	{"trailers", fine},
	{"set-cookie", fine},

	// Refusals: nothing was used.
	{"status-400", same("400 invalid_value")},
	{"context", same("400 context_length_exceeded")},
	{"status-401", same("502 upstream_auth")},
	{"status-402", same("502 upstream_quota")},
	{"status-403", same("502 upstream_auth")},
	{"status-404", same("502 upstream_error")},
	{"status-408", same("504 upstream_timeout")},
	{"status-409", same("409 conversation_locked")},
	{"status-413", same("413 request_too_large")},
	{"status-422", same("400")},
	{"status-429", same("429 rate_limit_exceeded")},
	{"quota", same("502 upstream_quota")},
	{"status-500", same("502 upstream_error")},
	{"status-502", same("502 upstream_error")},
	{"status-503", same("503 server_is_overloaded")},
	{"status-504", same("504 upstream_timeout")},
	{"status-529", same("503 server_is_overloaded")},
	{"status-999", same("502 upstream_error")},
	{"html-502", same("502 upstream_error")},

	// The answer as a whole.
	{"html", same("502 upstream_invalid_response, estimated")},
	{"empty", split("502 upstream_invalid_response, estimated", "502 upstream_stream_truncated, estimated")},
	{"text-plain", fine},
	{"json-to-stream", fine},
	{"stream-to-json", split("502 upstream_invalid_response, estimated", "stream")},
	{"error-in-200", same("502 upstream_error")},
	{"error-null", fine},
	{"drop-id", fine},
	{"pretty", fine},
	{"slow arg=20", fine},
	{"pause arg=500", fine},
	{"pause-mid arg=500", fine},
	{"bytes", fine},
	{"linger", fine},
	{"trickle arg=400", silent}, // the limit of silence counts events, that of a call everything

	// The events of a stream.
	{"error-first", split("answer", "502 upstream_error, estimated")},
	{"error-mid", brokenStream},
	{"error-late", brokenStream},
	{"error-mid-nested", brokenStream},
	{"failed-mid", brokenStream},
	{"no-done", fine},
	{"no-finish", fine}, // of chat alone: the upstream itself said that it was done
	{"no-completed", split("answer", "stream, 502 upstream_stream_truncated, estimated")},
	{"no-role", fine},
	{"tool-no-index", fine},
	{"bad-json", split("answer", "stream?, 502 upstream_malformed_output, estimated")},
	{"long-line arg=1", split("answer", "stream?, 502 upstream_malformed_output, estimated")},
	{"unknown-event", fine},
	{"comments-only", silent},
	{"endless", split("answer", "stream, 504 upstream_timeout, estimated")},

	// Framing.
	{"crlf", fine},
	{"cr", fine},
	{"no-space", fine},
	{"bom", fine},
	{"comments", fine},
	{"multi-line", fine},
	{"no-blank-end", fine},

	// The figures.
	{"no-usage", unmetered},
	{"usage-every-chunk", fine},
	{"usage-on-finish", fine},
	{"lying-usage", unmetered},
	{"lying-usage arg=huge", unmetered},
	{"lying-usage arg=infinite", unmetered},
	{"lying-usage arg=string", fine}, // a figure all the same
	{"lying-usage arg=null", unmetered},

	// Sockets, which these calls do not take.
	{"socket-stale", fine},
	{"socket-refuse", fine},
	{"socket-hang-up", fine},
	{"socket-forget", fine},
	{"socket-limit", fine},
	{"socket-stray", fine},
	{"socket-binary", fine},
}
