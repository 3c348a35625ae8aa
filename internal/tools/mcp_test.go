package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// theirs are the answers of a server of the tools look, which only reads,
// touch and break.
var theirs = map[string]string{
	"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
	"tools/list": `"result":{"tools":[{"name":"break","inputSchema":{"type":"object"}},` +
		`{"name":"look","description":"Looks.","annotations":{ "readOnlyHint": true },"inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}},` +
		`{"name":"touch","inputSchema":true}]}`,
	"look":  `"result":{"content":[{"type":"text","text":"one"},{"type":"image","mimeType":"image/png","data":"eA=="},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///y","text":"two"}},{"type":"resource","resource":{"uri":"file:///z","mimeType":"a/b","blob":"eA=="}}]}`,
	"touch": `"result":{"content":[],"structuredContent":{"had": %s}}`,
	"break": `"result":{"content":[{"type":"text","text":"it broke"}],"isError":true}`,
}

// question is what a server is asked.
type question struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Cursor    string
		Arguments json.RawMessage
	}
}

// serve answers as a server does: with events, but for the handshake.
func serve(w http.ResponseWriter, r *http.Request) {
	var q question
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &q)
	answer, ok := theirs[q.Method]
	if q.Method == "tools/call" {
		answer, ok = theirs[q.Params.Name]
		answer = strings.Replace(answer, "%s", string(q.Params.Arguments), 1)
	}
	switch {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case q.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case !ok:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, q.ID)
	case q.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "s-1")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n\n", q.ID, answer)
	}
}

// newServer is such a server, with something around it.
func newServer(t *testing.T, around func(http.Handler) http.Handler) *httptest.Server {
	var handler http.Handler = http.HandlerFunc(serve)
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func mcpTool(server llm.MCPServer) llm.Tool {
	return llm.Tool{Server: &llm.ServerTool{Kind: llm.MCP, Type: "mcp", MCP: &server}}
}

func TestCallsOfServers(t *testing.T) {
	server := newServer(t, nil)
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: server.URL}}})
	req := &llm.Request{Tools: []llm.Tool{mcpTool(llm.MCPServer{Label: "s", Never: &llm.MCPFilter{}})}}
	run, err := tools.Begin(t.Context(), req, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if len(req.Tools) != 3 || req.Tools[1].Name != "look" || req.Tools[1].Namespace != "mcp__s" || string(req.Tools[1].Desc) != `"Looks."` || !strings.Contains(string(req.Tools[1].Schema), `"x"`) {
		t.Fatalf("the model is told of %+v", req.Tools)
	}
	if len(run.Host.Told) != 1 || run.Host.Told[0].MCP.Kind != llm.MCPListed || run.Host.Told[0].Failed {
		t.Fatalf("the client is told of %+v", run.Host.Told)
	}
	for _, c := range []struct {
		name, args, want string
		failed           bool
	}{
		{"look", `{}`, "one\n[image/png]\nfile:///x\ntwo\n[a/b at file:///z]", false},
		{"touch", `{"x":"1"}`, `{"had":{"x":"1"}}`, false},
		{"touch", ``, `{"had":{}}`, false},
		{"break", `{}`, "it broke", true},
		{"touch", `[1]`, "The arguments are no JSON object.", true},
	} {
		call := &dialect.HostedCall{Tool: run.Host.Tools[llm.ToolName{Namespace: "mcp__s", Name: c.name}], Args: llm.Quote(c.args)}
		got := run.Do(t.Context(), call)
		if got.Text.Text() != c.want || got.Failed != c.failed || (got.Call.MCP.Error != nil) != c.failed || (got.Call.MCP.Output != nil) == c.failed {
			t.Errorf("%s(%s): got %s, %+v", c.name, c.args, got.Text, got.Call.MCP)
		}
	}
}

// A server that goes away, and comes back, within one call of the gateway.
func TestServerComesBack(t *testing.T) {
	var mu sync.Mutex
	away := false
	set := func(now bool) { mu.Lock(); defer mu.Unlock(); away = now }
	server := newServer(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			gone := away
			mu.Unlock()
			if gone && r.Method != http.MethodDelete { // else the session of the test's server stays
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: server.URL}}})
	run, err := tools.Begin(t.Context(), &llm.Request{Tools: []llm.Tool{mcpTool(llm.MCPServer{Label: "s"})}}, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	call := &dialect.HostedCall{Tool: run.Host.Tools[llm.ToolName{Namespace: "mcp__s", Name: "touch"}], Args: llm.Quote("{}")}
	for _, gone := range []bool{false, true, true, false} {
		set(gone)
		if got := run.Do(t.Context(), call); got.Failed != gone || gone && !strings.Contains(got.Text.Text(), "could not be reached") {
			t.Errorf("away %t: got %s", gone, got.Text)
		}
	}
}

// began is a run with a server that answers some requests in another way, and
// a call of its tool touch.
func began(t *testing.T, answers func(w http.ResponseWriter, r *http.Request, q *question) bool) (*Run, *dialect.HostedCall) {
	t.Helper()
	server := newServer(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			q := &question{}
			_ = json.Unmarshal(body, q)
			if !answers(w, r, q) {
				h.ServeHTTP(w, r)
			}
		})
	})
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: server.URL}}})
	run, err := tools.Begin(t.Context(), &llm.Request{Tools: []llm.Tool{mcpTool(llm.MCPServer{Label: "s"})}}, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Close)
	return run, &dialect.HostedCall{Tool: run.Host.Tools[llm.ToolName{Namespace: "mcp__s", Name: "touch"}], Args: llm.Quote("{}")}
}

// The list of tools may come in parts, but not without end.
func TestPagesOfTools(t *testing.T) {
	page := func(w http.ResponseWriter, q *question, tool, next string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":%q,"inputSchema":{"type":"object"}}],"nextCursor":%q}}`, q.ID, tool, next)
	}
	run, call := began(t, func(w http.ResponseWriter, r *http.Request, q *question) bool {
		switch {
		case q.Method != "tools/list":
			return false
		case q.Params.Cursor == "":
			page(w, q, "touch", "2")
		default:
			page(w, q, "look"+q.Params.Cursor, "")
		}
		return true
	})
	if len(run.Host.Tools) != 2 || call.Tool == nil || run.Host.Tools[llm.ToolName{Namespace: "mcp__s", Name: "look2"}] == nil {
		t.Errorf("got %v", run.Host.Tools)
	}
	var pages atomic.Int64
	run, _ = began(t, func(w http.ResponseWriter, r *http.Request, q *question) bool {
		if q.Method != "tools/list" {
			return false
		}
		page(w, q, fmt.Sprint("t", pages.Add(1)), "again")
		return true
	})
	if step := run.Host.Told[0].MCP; step.Error.Text() != errManyTools.Error() || pages.Load() != maxPages || len(run.Host.Tools) != 0 {
		t.Errorf("got %s after %d pages", step.Error, pages.Load())
	}
}

// What a server does instead of an answer, as the model is told, and what
// becomes of the next call.
func TestFaultsOfServers(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request)
		says  string // "" where the call is made good
	}{
		"session lost": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) }, ""},
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Not for you"}}`)
		}, "Not for you"},
		"too much": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(make([]byte, 2<<20))
		}, errTooMuch.Error()},
		"too much in a stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, strings.Repeat("data: {}\n\n", 2<<17))
		}, errTooMuch.Error()},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/x", http.StatusTemporaryRedirect)
		}, errRedirect.Error()},
		"silence": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "The server did not answer in time."},
		"cut": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "The server could not be reached, or gave no answer."},
	} {
		var broken atomic.Bool
		run, call := began(t, func(w http.ResponseWriter, r *http.Request, q *question) bool {
			if q.Method != "tools/call" || !broken.CompareAndSwap(true, false) {
				return false
			}
			c.fault(w, r)
			return true
		})
		broken.Store(true)
		if name == "silence" {
			run.tools.config.Timeout = 100 * time.Millisecond
		}
		if got := run.Do(t.Context(), call); got.Failed != (c.says != "") || got.Failed && got.Text.Text() != c.says {
			t.Errorf("%s: got %s", name, got.Text)
		}
		run.tools.config.Timeout = 20 * time.Second
		if got := run.Do(t.Context(), call); got.Failed || got.Text.Text() != `{"had":{}}` {
			t.Errorf("%s: then got %s", name, got.Text)
		}
	}
}
