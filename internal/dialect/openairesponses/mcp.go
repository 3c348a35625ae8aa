package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// mcpServer reads a tool of the type mcp. Whether what it says can be done is
// for those who do it.
func mcpServer(tool llm.Raw) *llm.MCPServer {
	s := &llm.MCPServer{
		Label: dialect.Text(tool, "server_label"), URL: dialect.Text(tool, "server_url"),
		Connector: dialect.Text(tool, "connector_id"), Authorization: dialect.Text(tool, "authorization"),
	}
	for name, v := range jsonedit.Members(dialect.Member(tool, "headers")) {
		s.Headers = append(s.Headers, llm.Member{Name: llm.Raw(name).Text(), Value: v})
	}
	s.Allowed = mcpFilter(dialect.Member(tool, "allowed_tools"))
	switch rule := dialect.Member(tool, "require_approval"); rule.Kind() {
	case jsonedit.KindString:
		if rule.Text() == "never" {
			s.Never = &llm.MCPFilter{}
		}
	case jsonedit.KindObject:
		s.Always, s.Never = mcpFilter(dialect.Member(rule, "always")), mcpFilter(dialect.Member(rule, "never"))
	}
	return s
}

// mcpFilter reads a list of names, or an object that has one; nil where
// nothing is said.
func mcpFilter(value llm.Raw) *llm.MCPFilter {
	f := &llm.MCPFilter{}
	names := value
	switch value.Kind() {
	case jsonedit.KindArray:
	case jsonedit.KindObject:
		names = dialect.Member(value, "tool_names")
		if flag := dialect.Member(value, "read_only"); flag.Kind() == jsonedit.KindBool {
			only := string(flag) == "true"
			f.ReadOnly = &only
		}
	default:
		return nil
	}
	if names.Kind() == jsonedit.KindArray {
		f.Names = []string{}
		for _, name := range elements(names) {
			f.Names = append(f.Names, name.Text())
		}
	}
	return f
}

var mcpKinds = map[string]llm.MCPKind{
	"mcp_call": llm.MCPCalled, "mcp_list_tools": llm.MCPListed, "mcp_approval_request": llm.MCPAsked, "mcp_approval_response": llm.MCPAnswered,
}

// mcpStep reads an item that tells of a server of tools.
func mcpStep(it *rawItem) *llm.MCPStep {
	s := &llm.MCPStep{
		Kind: mcpKinds[it.kind], Name: it.name.Text(), Args: it.arguments, Output: it.output, Tools: it.tools,
		Label: dialect.Text(it.whole, "server_label"), Approval: dialect.Member(it.whole, "approval_request_id"),
		Error: dialect.Member(it.whole, "error"), Reason: dialect.Member(it.whole, "reason"),
	}
	s.Approved = string(dialect.Member(it.whole, "approve")) == "true"
	if s.Error != nil && !s.Error.IsText() {
		s.Error = llm.QuoteJSON(s.Error)
	}
	return s
}

// mcpForms are the items of steps, and the prefixes of their IDs.
var mcpForms = [...]servedForm{
	llm.MCPCalled: {kind: "mcp_call", prefix: "mcp_"},
	llm.MCPListed: {kind: "mcp_list_tools", prefix: "mcpl_"},
	llm.MCPAsked:  {kind: "mcp_approval_request", prefix: "mcpr_"},
}

// goOn begins an item that is told while it goes on.
func (a *answer) goOn(it *openItem, kind llm.ServerKind) {
	it.form = servedForms[kind]
	if kind == llm.MCP {
		it.form = mcpForms[llm.MCPCalled]
	}
	a.addServed(it)
	a.step(it.form, it, "in_progress")
}

// runs tells that an item has all that it was asked with.
func (a *answer) runs(it *openItem) {
	switch {
	case it.form == mcpForms[llm.MCPCalled]:
		a.argsDone(it, "response.mcp_call_arguments.done", "arguments")
		return
	case it.form == codeForm:
		a.argsDone(it, codeEvent+"done", "code")
	}
	a.step(it.form, it, it.form.working)
}

func (a *answer) argsDone(it *openItem, kind, member string) {
	a.itemEvent(kind, it).SetRaw(member, closed(it.args))
	a.send(kind)
}

// addServed tells that an item of the gateway's own begins.
func (a *answer) addServed(it *openItem) {
	it.index = a.told
	a.told++
	it.id = it.form.prefix + a.ask.ID + "_" + strconv.Itoa(it.index)
	const kind = "response.output_item.added"
	w := a.event(kind)
	w.SetInt("output_index", int64(it.index))
	w.Name("item")
	switch it.form {
	case mcpForms[llm.MCPCalled]:
		writeMCP(w, it, "in_progress", &llm.MCPStep{Label: it.space, Name: it.name})
	case mcpForms[llm.MCPListed]:
		writeMCP(w, it, "", &llm.MCPStep{Kind: llm.MCPListed, Label: it.space})
	case mcpForms[llm.MCPAsked]:
		writeMCP(w, it, "", &llm.MCPStep{Kind: llm.MCPAsked, Label: it.space, Name: it.name, Args: it.args})
	default:
		it.form.begin(w, it, "in_progress")
		w.EndObject()
	}
	a.send(kind)
}

// wentOn ends an item that was told while it went on.
func (a *answer) wentOn(it *openItem, c *llm.ServerCall) {
	what := ending(c)
	if c.MCP == nil {
		what = "completed" // there is no other event for the tools without a server
	}
	a.step(it.form, it, what)
	a.served(it.form, it, c)
}

func ending(c *llm.ServerCall) string {
	if c.Failed {
		return "failed"
	}
	return "completed"
}

// tellMCP tells of a step that is known whole.
func (a *answer) tellMCP(c *llm.ServerCall) {
	if c.MCP == nil || c.MCP.Kind == llm.MCPAnswered {
		return // clients know no item for what upstreams ran in other dialects
	}
	s := c.MCP
	it := &openItem{kind: llm.ServerItem, name: s.Name, space: s.Label, form: mcpForms[s.Kind]}
	switch s.Kind {
	case llm.MCPCalled:
		a.goOn(it, llm.MCP)
		a.args(it, orEmpty(s.Args))
		a.runs(it)
		a.wentOn(it, c)
	case llm.MCPListed:
		a.addServed(it)
		a.step(it.form, it, "in_progress")
		a.step(it.form, it, ending(c))
		a.served(it.form, it, c)
	case llm.MCPAsked:
		it.args = s.Args
		a.addServed(it)
		a.served(it.form, it, c)
	}
}

// writeMCP writes the item of a step.
func writeMCP(w *jsonedit.Writer, it *openItem, status string, s *llm.MCPStep) {
	w.BeginObject()
	w.SetText("id", it.id)
	w.SetText("type", it.form.kind)
	w.SetText("server_label", s.Label)
	if s.Kind == llm.MCPListed {
		tools := s.Tools
		if tools == nil {
			tools = llm.Raw("[]")
		}
		w.SetRaw("tools", tools)
		w.SetRaw("error", orNull(s.Error))
		w.EndObject()
		return
	}
	w.SetText("name", s.Name)
	w.SetRaw("arguments", orEmpty(s.Args))
	if s.Kind == llm.MCPCalled {
		w.SetRaw("output", orNull(s.Output))
		w.SetRaw("error", orNull(s.Error))
		w.SetRaw("approval_request_id", orNull(s.Approval))
		w.SetText("status", status)
	}
	w.EndObject()
}

func orEmpty(text llm.Raw) llm.Raw {
	if text == nil {
		return llm.Raw(`""`)
	}
	return text
}

func orNull(value llm.Raw) llm.Raw {
	if value == nil {
		return llm.Raw("null")
	}
	return value
}

// offline reports whether a search may not reach the live web.
func offline(tool llm.Raw) bool {
	return string(dialect.Member(tool, "external_web_access")) == "false"
}

var _ dialect.Hosting = Dialect{}

// Hosted implements dialect.Hosting.
func (Dialect) Hosted(body []byte) (kinds []llm.ServerKind) {
	for tool := range jsonedit.Elements(dialect.Member(body, "tools")) {
		if kind, ok := hosted(dialect.Text(tool, "type")); ok && !offline(tool) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
