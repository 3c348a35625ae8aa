package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// hostedTool is a tool that takes one text. Its answer is what a result says.
type hostedTool struct {
	name, argument string
	readOnly       bool
	answer         func(text string) (content string, failed bool)
}

// said is the content that is one text.
func said(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"type":"text","text":` + string(quoted) + `}`
}

// toolHandler serves tools over the Model Context Protocol, in sessions, with
// an event for each answer. The official server does so as well, which is
// tested by itself.
type toolHandler struct {
	tools []hostedTool

	mu       sync.Mutex
	sessions map[string]bool
}

func newToolHandler(tools ...hostedTool) *toolHandler {
	return &toolHandler{tools: tools, sessions: map[string]bool{}}
}

// ServeHTTP implements http.Handler.
func (h *toolHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments map[string]json.RawMessage
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_ = json.Unmarshal(body, &q)
	if q.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", h.begin())
		answer(w, q.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		return
	}
	switch session := r.Header.Get("Mcp-Session-Id"); {
	case !h.known(session, r.Method == http.MethodDelete):
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case q.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case q.Method == "tools/list":
		answer(w, q.ID, h.list())
	default:
		h.call(w, q.ID, q.Params.Name, q.Params.Arguments)
	}
}

func (h *toolHandler) begin() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := "session-" + strconv.Itoa(len(h.sessions))
	h.sessions[id] = true
	return id
}

// known reports whether a session is open, and ends it.
func (h *toolHandler) known(session string, ends bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := h.sessions[session]
	h.sessions[session] = open && !ends
	return open
}

func (h *toolHandler) list() string {
	var list []string
	for _, t := range h.tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"description":"Does %s.","annotations":{"readOnlyHint":%t},"inputSchema":{"type":"object","properties":{%q:{"type":"string"}},"required":[%q],"additionalProperties":false}}`,
			t.name, t.name, t.readOnly, t.argument, t.argument))
	}
	return `{"tools":[` + strings.Join(list, ",") + `]}`
}

func (h *toolHandler) call(w http.ResponseWriter, id json.RawMessage, name string, args map[string]json.RawMessage) {
	for _, t := range h.tools {
		if t.name != name {
			continue
		}
		content, failed := said(fmt.Sprintf("The argument %q is no text.", t.argument)), true
		var text string
		if json.Unmarshal(args[t.argument], &text) == nil {
			content, failed = t.answer(text)
		}
		answer(w, id, fmt.Sprintf(`{"content":[%s],"isError":%t}`, content, failed))
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool %s"}}`, id, name)
}

func answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, result)
}
