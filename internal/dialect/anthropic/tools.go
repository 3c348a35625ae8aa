package anthropic

import (
	"fmt"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// webSearch is the name of the search tool, and firstWebSearch its type where
// nothing newer is wished for.
const (
	webSearch      = "web_search"
	firstWebSearch = "web_search_20250305"
)

// hosted are the tools that the upstream runs, which are searches of the web
// unless the client wrote them for this dialect.
func (o *outgoing) hosted() ([]block, error) {
	var out []block
	for i := range o.req.Tools {
		t := &o.req.Tools[i]
		switch {
		case t.Server == nil:
		case o.words == words && t.Native != nil && t.Server.Kind != llm.MCP:
			out = append(out, block{kind: rawBlock, data: t.Native, cache: t.Cache})
		case t.Server.Kind == llm.WebSearch:
			if member(t.Native, "search_context_size") != nil {
				o.notes.Drop("search_context_size")
			}
			out = append(out, block{kind: rawBlock, data: o.webSearch(t.Server), cache: t.Cache})
		case !o.needs(t.Server):
			o.notes.Drop(t.Server.Type)
		default:
			param := fmt.Sprintf("%s[%d]", o.param("tools"), t.Index)
			return nil, dialect.NotPossible(param, "The tool %q at '%s' is not possible with this model, whose upstream does not run it; leave it out or use a model that has it.", t.Server.Type, param)
		}
	}
	return out, nil
}

var _ dialect.Runner = Upstream{}

// Runs implements dialect.Runner.
func (Upstream) Runs(kind llm.ServerKind, _ bool, _ *llm.Caps) bool { return kind == llm.WebSearch }

// needs reports whether the request makes no sense without one of the
// upstream's tools: it is the only one, or must be called.
func (o *outgoing) needs(s *llm.ServerTool) bool {
	c := &o.req.ToolChoice
	return c.Mode != llm.ChoiceNone && (len(o.req.Tools) == 1 || c.Hosted && c.Server == s.Kind)
}

func (o *outgoing) webSearch(s *llm.ServerTool) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	kind := o.caps.Anthropic.WebSearch
	if kind == "" {
		kind = firstWebSearch
	}
	w.SetText("type", kind)
	w.SetText("name", webSearch)
	if s.MaxUses.Given() {
		w.SetRaw("max_uses", s.MaxUses)
	}
	writeList(&w, "allowed_domains", s.Domains)
	writeList(&w, "blocked_domains", s.Blocked)
	if s.Location.Given() && !empty(s.Location) {
		w.Object("user_location")
		w.SetText("type", "approximate")
		for _, name := range locationNames {
			w.SetRaw(name, member(s.Location, name))
		}
		w.EndObject()
	}
	w.EndObject()
	return w.Bytes()
}

func writeList(w *jsonedit.Writer, name string, values []llm.Raw) {
	if len(values) == 0 {
		return
	}
	w.Array(name)
	for _, v := range values {
		w.Raw(v)
	}
	w.EndArray()
}

// toolList are all tools: the client's own, then those of the upstream.
func (o *outgoing) toolList(hosted []block) []block {
	tools := make([]block, 0, len(o.functions)+len(hosted))
	searches := false
	for i := range hosted {
		searches = searches || strings.HasPrefix(dialect.Text(hosted[i].data, "type"), "tool_search_tool")
	}
	for i := range o.functions {
		f := &o.functions[i]
		b := block{kind: toolBlock, tool: f, name: f.Name, cache: f.Tool.Cache}
		if f.Tool.Deferred && searches { // else nothing would load it
			b.id = llm.Raw("true")
		}
		tools = append(tools, b)
	}
	return append(tools, hosted...)
}

// writeTool writes the members of one of the client's own tools.
func (o *outgoing) writeTool(b *block) {
	w, f := &o.w, b.tool
	w.SetText("name", f.Name)
	if !f.Desc.Blank() {
		w.SetRaw("description", f.Desc)
	}
	schema := f.Schema
	strict := f.Tool.Strict != nil && *f.Tool.Strict
	if strict && o.caps.NoStrictTools {
		o.notes.Drop(o.param("strict"))
		strict = false
	}
	if strict {
		schema = o.fitSchema(schema, false)
	}
	w.SetRaw("input_schema", objectSchema(schema))
	if strict {
		w.SetBool("strict", true)
	}
	w.SetRaw("defer_loading", b.id)
}

// objectSchema is a schema that says that arguments are an object, which must
// be said.
func objectSchema(schema llm.Raw) llm.Raw {
	if schema.Kind() != jsonedit.KindObject {
		return llm.Raw(`{"type":"object","properties":{}}`)
	}
	if member(schema, "type") != nil {
		return schema
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", "object")
	for name, value := range jsonedit.Members(schema) {
		if string(name) != `"type"` {
			w.RawName(name)
			w.Raw(value)
		}
	}
	w.EndObject()
	return w.Bytes()
}

// toolChoice writes which tools may or must be called. Whether calls may come
// several at a time is said within it.
func (o *outgoing) toolChoice(tools bool) {
	mode, name := o.choice()
	alone := o.req.Parallel != nil && !*o.req.Parallel
	switch {
	case !tools:
		if mode == "any" || mode == "tool" {
			o.notes.Drop(o.param("tool_choice"))
		}
		return
	case mode == "" && !alone:
		return
	case mode == "":
		mode = "auto"
	}
	o.w.Object("tool_choice")
	o.w.SetText("type", mode)
	if mode == "tool" {
		o.w.SetText("name", name)
	}
	if alone && mode != "none" {
		o.w.SetBool("disable_parallel_tool_use", true)
	}
	o.w.EndObject()
}

// choice is the type of tool_choice, "" when nothing is said, and the tool's
// name. To filter the tools would break the cache, so that a choice of several
// is weakened instead.
func (o *outgoing) choice() (mode, name string) {
	c := o.req.ToolChoice
	switch {
	case c.Hosted && c.Server == llm.WebSearch:
		mode, name = "tool", webSearch
	case c.Hosted:
		mode = "any"
		o.notes.Degrade("tool_choice")
	case c.Allowed && c.Mode != llm.ChoiceNone && c.Mode != llm.ChoiceAuto && len(c.Names) == 1, c.Mode == llm.ChoiceNamed && len(c.Names) > 0:
		mode, name = "tool", o.names.Wire(c.Names[0].Namespace, c.Names[0].Name)
	case c.Mode == llm.ChoiceAuto:
		mode = "auto"
	case c.Mode == llm.ChoiceNone:
		mode = "none"
	case c.Mode == llm.ChoiceRequired:
		mode = "any"
	}
	if c.Allowed && mode != "tool" && mode != "none" {
		mode = "auto"
		o.notes.Degrade("tool_choice")
	}
	if (mode == "any" || mode == "tool") && (o.caps.NoForcedTool || o.budgeted) {
		mode = "auto"
		o.notes.Degrade("tool_choice")
	}
	return mode, name
}
