package anthropic

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// serverKinds are the upstream's own tools by their names.
var serverKinds = map[string]llm.ServerKind{
	"web_search":                 llm.WebSearch,
	"web_fetch":                  llm.WebFetch,
	"code_execution":             llm.CodeExecution,
	"bash_code_execution":        llm.CodeExecution,
	"text_editor_code_execution": llm.CodeExecution,
}

// newServerCall reads the block that begins a call of the upstream's own tool.
// Its result is another block.
func newServerCall(block []byte) *llm.ServerCall {
	call := &llm.ServerCall{ID: member(block, "id"), Input: member(block, "input"), Native: []llm.Raw{block}}
	if dialect.Text(block, "type") == "mcp_tool_use" {
		call.Kind = llm.MCP
		return call
	}
	call.Kind = serverKinds[dialect.Text(block, "name")]
	switch call.Kind {
	case llm.WebSearch:
		if query := member(call.Input, "query"); query.IsText() {
			call.Queries = []llm.Raw{query}
		}
	case llm.CodeExecution:
		for _, name := range [...]string{"code", "command"} {
			if code := member(call.Input, name); code.IsText() && call.Code == nil {
				call.Code = code
			}
		}
	}
	return call
}

// finishServerCall takes over the block with a call's result.
func finishServerCall(call *llm.ServerCall, block []byte) {
	call.Native = append(call.Native, block)
	content := member(block, "content")
	if strings.HasSuffix(dialect.Text(content, "type"), "_error") || string(member(block, "is_error")) == "true" {
		call.Failed = true
	}
	switch call.Kind {
	case llm.WebSearch:
		for found := range jsonedit.Elements(content) {
			if url := member(found, "url"); url.IsText() {
				call.Sources = append(call.Sources, llm.Source{URL: url, Title: member(found, "title")})
			}
		}
	case llm.WebFetch:
		if url := member(content, "url"); url.IsText() {
			call.Sources = []llm.Source{{URL: url}}
		}
	case llm.CodeExecution:
		for _, name := range [...]string{"stdout", "stderr"} {
			if out := member(content, name); out.IsText() && !out.Blank() {
				call.Outputs = append(call.Outputs, out)
			}
		}
	}
}

// native reports whether a call is written in this dialect's blocks.
func native(call *llm.ServerCall) bool {
	for _, block := range call.Native {
		kind := dialect.Text(block, "type")
		if !strings.HasSuffix(kind, "_tool_use") && !strings.HasSuffix(kind, "_tool_result") {
			return false
		}
	}
	return len(call.Native) > 0
}

// serverBlocks are the blocks of a call that the upstream ran itself. Of what
// other dialects report, only searches have a form here.
func serverBlocks(call *llm.ServerCall) []llm.Raw {
	if native(call) {
		return call.Native
	}
	if call.Kind != llm.WebSearch || call.ID.Blank() {
		return nil
	}
	id := "srvtoolu_" + call.ID.Text()
	var use, result jsonedit.Writer
	use.BeginObject()
	use.SetText("type", "server_tool_use")
	use.SetText("id", id)
	use.SetText("name", "web_search")
	use.Object("input")
	if len(call.Queries) > 0 {
		use.SetRaw("query", llm.Concat(" ", call.Queries...))
	}
	use.EndObject()
	use.EndObject()

	result.BeginObject()
	result.SetText("type", "web_search_tool_result")
	result.SetText("tool_use_id", id)
	result.Array("content")
	for _, s := range call.Sources {
		result.BeginObject()
		result.SetText("type", "web_search_result")
		result.SetRaw("url", s.URL)
		title := s.Title
		if title == nil {
			title = s.URL
		}
		result.SetRaw("title", title)
		result.SetText("encrypted_content", "")
		result.SetRaw("page_age", []byte("null"))
		result.EndObject()
	}
	result.EndArray()
	result.EndObject()
	return []llm.Raw{use.Bytes(), result.Bytes()}
}
