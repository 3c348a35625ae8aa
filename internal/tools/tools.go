// Package tools runs built-in tools of Responses for models whose upstream has
// none: those of servers that speak the Model Context Protocol, searches of the
// web and of files, an interpreter of code, and the making of images. The model
// is told of functions; their calls are run here.
//
// Only what the operator has configured is called: servers by name, URLs of
// clients that fit a pattern, one search engine, one server of files, and one
// model for images. Nothing that a client or a model says leads elsewhere.
package tools

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/upstream"
)

// Config is what may be called.
type Config struct {
	Servers   []Server
	Allow     []string // patterns of URLs that clients may name
	Search    *Search  // nil is none
	Files     *Files   // nil is none
	Code      *Code    // nil is none
	Images    *Images  // nil is none
	Timeout   time.Duration
	Connect   time.Duration // of dialling
	UserAgent string
}

// Server is a server of tools that clients name by its label.
type Server struct {
	Label   string
	URL     string
	Headers map[string]string
}

// Search is a search engine.
type Search struct {
	URL     string
	Post    bool // the words go in a JSON body
	Headers map[string]string
}

// Files is a server of vector stores, as OpenAI's API has them.
type Files struct {
	URL     string
	Headers map[string]string
}

// Code is a tool of one of the servers that runs code.
type Code struct {
	Server   string // its label
	Tool     string
	Argument string // which takes the code
}

// Images is a model that makes images.
type Images struct {
	Model   string // its ID
	Timeout time.Duration
}

// Tools can be called. It is safe for concurrent use, and never changes.
type Tools struct {
	config Config
	allow  []pattern
}

// New prepares what is configured; nothing is dialled.
func New(c Config) (*Tools, error) {
	t := &Tools{config: c}
	for _, text := range c.Allow {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		t.allow = append(t.allow, p)
	}
	return t, nil
}

// Runs reports whether there is a stand-in for a kind of tool.
func (t *Tools) Runs(kind llm.ServerKind) bool {
	switch kind {
	case llm.MCP:
		return len(t.config.Servers) > 0 || len(t.allow) > 0
	case llm.WebSearch:
		return t.config.Search != nil
	case llm.FileSearch:
		return t.config.Files != nil
	case llm.CodeExecution:
		return t.config.Code != nil
	case llm.ImageGeneration:
		return t.config.Images != nil
	}
	return false
}

// Images is the model that makes images; nil when there is none.
func (t *Tools) Images() *Images { return t.config.Images }

// maxResult bounds what a tool may give, in bytes.
const maxResult = 1 << 20

var (
	errTooMuch  = errors.New("the answer is larger than 1 MiB")
	errRedirect = errors.New("the server points to another address, which is not followed")
)

// client calls one address, with fixed header fields, and reads bounded
// answers. Close ends its connections.
type client struct {
	http.Client
	transport *http.Transport
	header    http.Header
	broken    atomic.Pointer[error] // a rule that the last answer broke
}

func (t *Tools) client(header http.Header, public bool) *client {
	c := &client{header: header, transport: &http.Transport{
		DialContext:         upstream.DialTools(t.config.Connect, public),
		TLSHandshakeTimeout: t.config.Connect, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}}
	if !public {
		c.transport.Proxy = http.ProxyFromEnvironment
	}
	header.Set("User-Agent", t.config.UserAgent)
	c.Transport = c
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return c.breaks(errRedirect) }
	return c
}

// RoundTrip implements http.RoundTripper.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	for name, values := range c.header {
		own.Header[name] = values
	}
	resp, err := c.transport.RoundTrip(own)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{ReadCloser: resp.Body, client: c, left: maxResult + maxFrame}
	return resp, nil
}

// breaks notes that an answer breaks a rule: who reads it may not hand on why
// it could not.
func (c *client) breaks(rule error) error {
	c.broken.Store(&rule)
	return rule
}

// rule is the rule that the last answer broke; nil when it broke none.
func (c *client) rule() error {
	if c == nil {
		return nil
	}
	if broken := c.broken.Swap(nil); broken != nil {
		return *broken
	}
	return nil
}

// maxFrame is the room for what is around a result.
const maxFrame = 16 << 10

func (c *client) close() {
	if c != nil {
		c.transport.CloseIdleConnections()
	}
}

// read sends a request and returns its answer, which must be a success.
func (c *client) read(r *http.Request) ([]byte, error) {
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResult+maxFrame+1)) // one more, which is refused
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("status " + strconv.Itoa(resp.StatusCode))
	}
	return body, nil
}

// fault is a failure to read in words for the client and the model.
func (c *client) fault(ctx context.Context, err error, who string) string {
	if rule := c.rule(); rule != nil {
		return rule.Error()
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return who + " took too long."
	}
	return who + " could not be reached, or gave no answer."
}

// bounded is a body of which no more than so much is read.
type bounded struct {
	io.ReadCloser
	client *client
	left   int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.client.breaks(errTooMuch)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// headers makes header fields of configured ones.
func headers(fields map[string]string) http.Header {
	h := http.Header{}
	for name, value := range fields {
		h.Set(name, value)
	}
	return h
}
