package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/mcp"
	"github.com/limen-gateway/limen/internal/tools"
)

const schema = `{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}`

// server is a server of the SDK, and what it was asked.
type server struct {
	*httptest.Server
	sdk       *sdk.Server
	cancelled chan struct{}

	mu      sync.Mutex
	methods []string // of HTTP
	version string   // that was spoken last
}

func newServer(t *testing.T, options sdk.ServerOptions, transport sdk.StreamableHTTPOptions) *server {
	s := &server{sdk: sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, &options), cancelled: make(chan struct{})}
	add := func(tool *sdk.Tool, answer sdk.ToolHandler) {
		tool.InputSchema = json.RawMessage(schema)
		s.sdk.AddTool(tool, answer)
	}
	text := func(said string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: said}}}, nil
	}
	add(&sdk.Tool{Name: "look", Description: "Looks.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("x")}, &sdk.ResourceLink{URI: "file:///x", Name: "x"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "two"}},
		}}, nil
	})
	add(&sdk.Tool{Name: "touch"}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"had": json.RawMessage(r.Params.Arguments)}}, nil
	})
	add(&sdk.Tool{Name: "break"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("it broke")
	})
	add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1})
		return text(fmt.Sprintf("%v, %t", r.Session.Ping(ctx, nil), err != nil))
	})
	add(&sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case <-ctx.Done():
			close(s.cancelled)
		case <-t.Context().Done():
		}
		return nil, ctx.Err()
	})
	add(&sdk.Tool{Name: "part"}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: time.Millisecond})
		return text("after all")
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &transport)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.methods = append(s.methods, r.Method)
		s.version = r.Header.Get("Mcp-Protocol-Version")
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// open begins a session that the test ends.
func (s *server) open(t *testing.T) *mcp.Session {
	t.Helper()
	session, err := mcp.Open(t.Context(), s.Client(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func (s *server) spoken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// asked is how often a method of HTTP was used.
func (s *server) asked(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.methods {
		if m == method {
			n++
		}
	}
	return n
}

// ways are those in which the SDK serves.
var ways = map[string]sdk.StreamableHTTPOptions{
	"sessions":           {},
	"sessions, JSON":     {JSONResponse: true},
	"sessions, resumed":  {EventStore: sdk.NewMemoryEventStore(nil)},
	"no sessions":        {Stateless: true},
	"no sessions, JSON":  {Stateless: true, JSONResponse: true},
	"sessions of a user": {SessionTimeout: time.Minute},
}

// versions are those that servers may insist on.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func TestToolsAndCalls(t *testing.T) {
	for name, transport := range ways {
		for _, version := range versions {
			if version == "2026-07-28" && !transport.Stateless {
				continue // which the SDK does not serve
			}
			t.Run(name+" "+version, func(t *testing.T) {
				s := newServer(t, sdk.ServerOptions{PageSize: 2, SupportedProtocolVersions: []string{version}}, transport)
				session := s.open(t)
				names, cursor := []string{}, ""
				for range 3 {
					page, err := session.Tools(t.Context(), cursor)
					if err != nil {
						t.Fatal(err)
					}
					for _, tool := range page.Tools {
						names = append(names, tool.Name)
						if !strings.Contains(string(tool.Schema), `"x-mcp-header"`) {
							t.Errorf("%s has the schema %s", tool.Name, tool.Schema)
						}
					}
					cursor = page.Next
				}
				if want := []string{"ask", "break", "hang", "look", "part", "touch"}; !slices.Equal(names, want) || cursor != "" {
					t.Errorf("got %v and %q, want %v", names, cursor, want)
				}
				if got := s.spoken(); got != version {
					t.Errorf("spoke %s", got)
				}
				r, err := session.Call(t.Context(), "touch", []byte(`{"x":" ü "}`), []byte(schema))
				if err != nil || string(r.Structured) != `{"had":{"x":" ü "}}` {
					t.Errorf("got %+v, %v", r, err)
				}
				var said *mcp.Error
				if _, err := session.Call(t.Context(), "none", []byte(`{}`), nil); !errors.As(err, &said) || !strings.Contains(said.Message, "none") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// What the server asks while it works is answered.
func TestServerAsks(t *testing.T) {
	s := newServer(t, sdk.ServerOptions{}, sdk.StreamableHTTPOptions{})
	r, err := s.open(t).Call(t.Context(), "ask", []byte(`{}`), nil)
	if err != nil || r.Content[0].Text != "<nil>, true" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestSessionIsLost(t *testing.T) {
	s := newServer(t, sdk.ServerOptions{}, sdk.StreamableHTTPOptions{})
	session := s.open(t)
	for ss := range s.sdk.Sessions() {
		ss.Close()
	}
	r, err := session.Call(t.Context(), "touch", []byte(`{}`), nil)
	if err != nil || string(r.Structured) != `{"had":{}}` {
		t.Errorf("got %+v, %v", r, err)
	}
	session.Close()
	for range s.sdk.Sessions() {
		t.Error("the session was not ended")
	}
}

func TestCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		transport sdk.StreamableHTTPOptions
		version   string
	}{
		"session": {sdk.StreamableHTTPOptions{}, "2025-06-18"},
		"none":    {sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, "2026-07-28"},
	} {
		s := newServer(t, sdk.ServerOptions{SupportedProtocolVersions: []string{c.version}}, c.transport)
		session := s.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := session.Call(ctx, "hang", []byte(`{}`), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
		session.Close()
		select {
		case <-s.cancelled:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the server still works", name)
		}
	}
}

func TestResume(t *testing.T) {
	s := newServer(t, sdk.ServerOptions{}, sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})
	r, err := s.open(t).Call(t.Context(), "part", []byte(`{}`), nil)
	if err != nil || r.Content[0].Text != "after all" || s.asked(http.MethodGet) == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The gateway's tools, as models are told of them.
func TestCallsOfServers(t *testing.T) {
	for name, transport := range ways {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, sdk.ServerOptions{}, transport)
			all, err := tools.New(tools.Config{Servers: []tools.Server{{Label: "s", URL: s.URL}}, Timeout: 20 * time.Second, Connect: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			req := &llm.Request{Tools: []llm.Tool{{Server: &llm.ServerTool{Kind: llm.MCP, Type: "mcp", MCP: &llm.MCPServer{Label: "s", Never: &llm.MCPFilter{}}}}}}
			run, err := all.Begin(t.Context(), req, func(llm.ServerKind) bool { return true }, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if told := run.Host.Told; len(told) != 1 || told[0].Failed || !strings.Contains(string(told[0].MCP.Tools), `"readOnlyHint":true`) {
				t.Fatalf("the client is told of %s", told[0].MCP.Tools)
			}
			for _, c := range []struct {
				name, args, want string
				failed           bool
			}{
				{"look", `{}`, "one\n[image/png]\nfile:///x\ntwo", false},
				{"touch", `{"x":"1"}`, `{"had":{"x":"1"}}`, false},
				{"break", `{}`, "it broke", true},
			} {
				call := &dialect.HostedCall{Tool: run.Host.Tools[llm.ToolName{Namespace: "mcp__s", Name: c.name}], Args: llm.Quote(c.args)}
				if got := run.Do(t.Context(), call); got.Text.Text() != c.want || got.Failed != c.failed {
					t.Errorf("%s(%s): got %s", c.name, c.args, got.Text)
				}
			}
		})
	}
}
