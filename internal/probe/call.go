package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds what is read of an answer.
const maxBody = 16 << 20

// call is a request.
type call struct {
	method, path string
	header       http.Header // nil is the usual one
	body         string      // JSON; "" is none
}

// answer is what a call brought.
type answer struct {
	status int
	header http.Header
	media  string
	body   []byte // of a stream, nothing
	stream *stream
	took   time.Duration
}

// sight is what is remembered of an answer for the checks that look at all.
type sight struct {
	operation string
	requestID bool
	stream    *stream
}

// usual is the header that all SDKs send.
func (v *visit) usual(key string) http.Header {
	h := http.Header{"Accept": {"application/json"}, "User-Agent": {"limen-doctor"}}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

func (v *visit) get(ctx context.Context, path string) (*answer, error) {
	return v.do(ctx, call{method: http.MethodGet, path: path})
}

func (v *visit) post(ctx context.Context, path, template string) (*answer, error) {
	body, err := v.fill(template)
	if err != nil {
		return nil, err
	}
	return v.do(ctx, call{method: http.MethodPost, path: path, body: body})
}

// do makes a call below the base URL and reads its answer.
func (v *visit) do(ctx context.Context, c call) (*answer, error) {
	a, err := v.doURL(ctx, v.Base+c.path, c)
	if err != nil {
		return nil, unreachable(err, v.Base)
	}
	path, _, _ := strings.Cut(c.path, "?")
	v.seen = append(v.seen, sight{operation: c.method + " " + path, requestID: a.requestID() != "", stream: a.stream})
	return a, nil
}

// doURL makes a call to an address.
func (v *visit) doURL(ctx context.Context, url string, c call) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, url, strings.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header
	if c.header == nil {
		req.Header = v.usual(v.Key)
	}
	if c.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	} else if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	begun := time.Now()
	resp, err := v.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	a := &answer{status: resp.StatusCode, header: resp.Header, media: strings.ToLower(strings.TrimSpace(media))}
	body := io.LimitReader(resp.Body, maxBody)
	if a.streams(c) {
		a.stream = readStream(body, cancel)
		a.stream.headers(a)
	} else if a.body, err = io.ReadAll(io.LimitReader(body, maxBody)); err != nil {
		return nil, &fault{"the answer broke off: " + err.Error(), "look into the server's log, and at proxies on the way", everyone}
	}
	a.took = time.Since(begun)
	return a, nil
}

// streams tells whether the answer is to be read as events: also where its type
// is wrong, since then that is the fault.
func (a *answer) streams(c call) bool {
	if a.status != http.StatusOK {
		return false
	}
	return a.media == "text/event-stream" || wantsStream(c.body) && a.media != "application/json" && a.media != "text/html"
}

func wantsStream(body string) bool {
	var wish struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal([]byte(body), &wish) == nil && wish.Stream
}

func (a *answer) requestID() string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Oai-Request-Id", "Cf-Ray"} {
		if id := a.header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

func (a *answer) millis() string { return fmt.Sprintf("%d ms", a.took.Milliseconds()) }

// failure is an error in the shape that SDKs read.
type failure struct {
	Error *struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Param   string          `json:"param"`
		Code    json.RawMessage `json:"code"`
	} `json:"error"`
}

// failure is the error of the answer, its message and code; ok tells whether it
// has one in that shape.
func (a *answer) failure() (message, code string, ok bool) {
	var f failure
	if json.Unmarshal(a.body, &f) != nil || f.Error == nil || f.Error.Message == "" {
		return "", "", false
	}
	return f.Error.Message, strings.Trim(string(f.Error.Code), `"`), true
}

// Faults of any answer.
var (
	jsonMedia   = &fault{"the answer is JSON, but its content type says otherwise", "send 'Content-Type: application/json'", []string{"openai-go", "openai-js", "langchain"}}
	jsonInvalid = &fault{"the answer is no JSON", "answer with one JSON object", everyone}
	okError     = &fault{"HTTP 200 with an error in its body", "answer failures with a status of 400 or more", []string{"openai-js", "openai-go", "langchain"}}
)

// served is the error of an answer that is not 200: absent where the server has
// no such operation, else a fault. what names the operation, users who uses it.
func (a *answer) served(what string, users []string) error {
	if a.status == http.StatusOK {
		return nil
	}
	message, code, shaped := a.failure()
	switch {
	case code == "unsupported_by_upstream":
		return &errAbsent{why: message, clients: users}
	case a.missing() && code != "model_not_found":
		return &errAbsent{why: fmt.Sprintf("the server has no %s (HTTP %d)", what, a.status), clients: users}
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return &fault{why: fmt.Sprintf("HTTP %d: %s", a.status, orNothing(message)), change: keyAdvice, breaks: everyone}
	case shaped:
		return &fault{why: fmt.Sprintf("HTTP %d: %s", a.status, message), change: "see what the message says, and the server's log for " + orNothing(a.requestID()), breaks: everyone}
	case a.page():
		return &fault{why: fmt.Sprintf("HTTP %d with a web page", a.status), change: "ask what stands in front of the server, a proxy or a login page, to let the API through", breaks: everyone}
	}
	return &fault{why: fmt.Sprintf("HTTP %d, and no error in OpenAI's shape", a.status), change: shapeAdvice, breaks: everyone}
}

const (
	keyAdvice   = "give a key that this server knows, with --key or in OPENAI_API_KEY"
	shapeAdvice = `send {"error":{"message":…,"type":…,"param":…,"code":…}}`
)

// missing tells that there is nothing at the address.
func (a *answer) missing() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented
}

// page tells that a person was meant.
func (a *answer) page() bool {
	head := strings.ToLower(string(a.body[:min(len(a.body), 512)]))
	return a.media == "text/html" || strings.Contains(head, "<!doctype html") || strings.Contains(head, "<html")
}

// decode reads an answer that is 200.
func (a *answer) decode(into any) []*fault {
	var faults []*fault
	if err := json.Unmarshal(a.body, into); err != nil {
		if a.page() {
			return []*fault{{"HTTP 200 with a web page instead of JSON", "ask what stands in front of the server, a proxy or a login page, to let the API through", everyone}}
		}
		return []*fault{jsonInvalid}
	}
	if a.media != "application/json" {
		faults = append(faults, jsonMedia)
	}
	if _, _, failed := a.failure(); failed {
		faults = append(faults, okError)
	}
	return faults
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing said)"
	}
	return s
}

// refuses tells that the server said no to what was asked, in so many words.
func (a *answer) refuses() bool {
	return a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity
}
