// Package mcp is a client of servers that speak the Model Context Protocol over
// streamable HTTP: it lists their tools and calls them.
//
// It speaks every version of the protocol that has this transport: those that
// open a session with a handshake, 2024-11-05 to 2025-11-25, and 2026-07-28,
// where each request stands for itself. It offers servers nothing of its own:
// what they ask of it, but for a ping, is not served.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// sessions are the versions with a handshake, the newest first, which is the
// one that is offered.
var sessions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// single is the version whose requests stand for themselves.
const single = "2026-07-28"

// Session is what a server and its client have said to each other. It belongs
// to one goroutine.
type Session struct {
	client *http.Client
	url    string

	version string // "" until the server has said it
	id      string // "" where the server keeps no session
	last    int64  // the number of the last request
	left    int64  // the number of the request that was not waited for; 0 is none
}

// Tool is a tool of a server.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage
}

// Page is a part of the list of tools. Next asks for the part after it; it is
// "" for the last.
type Page struct {
	Tools []Tool
	Next  string `json:"nextCursor"`
}

// Result is what a tool gave. Failed says that it tells of a failure.
type Result struct {
	Content    []Content
	Structured json.RawMessage `json:"structuredContent"`
	Failed     bool            `json:"isError"`
}

// Content is a piece of what a tool gave. Type says which of its fields count:
// Text of a text, Data of an image or a sound, URI of a resource_link, Resource
// of a resource.
type Content struct {
	Type     string
	Text     string
	MIME     string `json:"mimeType"`
	Data     []byte // base64 on the wire
	URI      string
	Resource *Resource
}

// Resource is a resource that came with a result.
type Resource struct {
	URI  string
	MIME string `json:"mimeType"`
	Text string
}

// Error is what a server said of a request that it did not serve.
type Error struct {
	Code    int64
	Message string
}

// Error implements error.
func (e *Error) Error() string { return "mcp: the server refused: " + e.Message }

var (
	errVersion  = errors.New("mcp: the server speaks another version of the protocol")
	errAnswer   = errors.New("mcp: the answer is none")
	errCut      = errors.New("mcp: the stream ended before the answer")
	errLost     = errors.New("mcp: the session is gone")
	errQuestion = errors.New("mcp: the server asks for more")
)

// Open begins a session. The client decides what may be reached, and what is
// read of an answer at most.
func Open(ctx context.Context, client *http.Client, url string) (*Session, error) {
	s := &Session{client: client, url: url}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// about is who asks.
const about = `{"name":"limen","version":"1"}`

// open says which version is spoken. A server that refuses the handshake may
// know only the version that has none.
func (s *Session) open(ctx context.Context) error {
	s.version, s.id, s.left = "", "", 0
	err := s.shake(ctx)
	var refused *Error
	if s.id != "" || err != failure(http.StatusBadRequest) && !errors.As(err, &refused) {
		return err
	}
	if s.discover(ctx) != nil {
		s.version = ""
		return err
	}
	return nil
}

func (s *Session) shake(ctx context.Context) error {
	params := `{"protocolVersion":"` + sessions[0] + `","capabilities":{},"clientInfo":` + about + `}`
	answer, err := s.exchange(ctx, request{method: "initialize", params: []byte(params)})
	if err != nil {
		return err
	}
	var said struct{ ProtocolVersion string }
	if err := json.Unmarshal(answer, &said); err != nil {
		return err
	}
	if !slices.Contains(sessions, said.ProtocolVersion) {
		return errVersion
	}
	s.version = said.ProtocolVersion
	return s.notify(ctx, "notifications/initialized", nil)
}

// discover asks whether the server speaks the version without a handshake.
func (s *Session) discover(ctx context.Context) error {
	s.version = single
	w := s.params()
	w.EndObject()
	answer, err := s.exchange(ctx, request{method: "server/discover", params: w.Bytes()})
	if err != nil {
		return err
	}
	var said struct{ SupportedVersions []string }
	if err := json.Unmarshal(answer, &said); err != nil {
		return err
	}
	if !slices.Contains(said.SupportedVersions, single) {
		return errVersion
	}
	return nil
}

// params begins the parameters of a request.
func (s *Session) params() *jsonedit.Writer {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	if s.version == single {
		w.Object("_meta")
		w.SetText("io.modelcontextprotocol/protocolVersion", single)
		w.SetRaw("io.modelcontextprotocol/clientInfo", []byte(about))
		w.SetRaw("io.modelcontextprotocol/clientCapabilities", []byte("{}"))
		w.EndObject()
	}
	return w
}

// Tools asks for a part of the list of tools: the first, with no cursor.
func (s *Session) Tools(ctx context.Context, cursor string) (*Page, error) {
	w := s.params()
	if cursor != "" {
		w.SetText("cursor", cursor)
	}
	w.EndObject()
	answer, err := s.ask(ctx, request{method: "tools/list", params: w.Bytes()})
	if err != nil {
		return nil, err
	}
	page := &Page{}
	if err := json.Unmarshal(answer, page); err != nil {
		return nil, err
	}
	if s.version == single {
		page.Tools = slices.DeleteFunc(page.Tools, func(t Tool) bool { _, ok := fields(t.Schema); return !ok })
	}
	return page, nil
}

// Call calls a tool with arguments, which are an object. Where the schema of
// the tool wants some of them told in header fields, they are; it may be nil.
func (s *Session) Call(ctx context.Context, name string, args, schema []byte) (*Result, error) {
	w := s.params()
	w.SetText("name", name)
	w.SetRaw("arguments", args)
	w.EndObject()
	r := request{method: "tools/call", name: name, params: w.Bytes()}
	if s.version == single {
		r.told = told(schema, args)
	}
	answer, err := s.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	if err := json.Unmarshal(answer, result); err != nil {
		return nil, err
	}
	return result, nil
}

// ask returns what the server answers. A server that no longer has the session
// did not look at the request: it gets it once more, in a new one.
func (s *Session) ask(ctx context.Context, r request) ([]byte, error) {
	answer, err := s.exchange(ctx, r)
	if err != errLost {
		return answer, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return s.exchange(ctx, r)
}

// parting is how long a server has to hear that the session ends.
const parting = 5 * time.Second

// Close ends the session. A request that was not waited for is taken back
// before.
func (s *Session) Close() {
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	if s.left != 0 {
		_ = s.notify(ctx, "notifications/cancelled", []byte(`{"requestId":`+strconv.FormatInt(s.left, 10)+`}`)) // who does not hear it sees the end
	}
	if s.id == "" { // it was gone already
		return
	}
	if resp, err := s.send(ctx, http.MethodDelete, nil, nil); err == nil {
		release(resp.Body)
	}
	s.id = ""
}
