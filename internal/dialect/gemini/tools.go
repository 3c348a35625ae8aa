package gemini

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// maxName is the length of a function's name.
const maxName = 128

func begins(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

// native are the tools of this dialect's hosts.
var native = map[llm.ServerKind]string{llm.WebSearch: "googleSearch", llm.WebFetch: "urlContext", llm.CodeExecution: "codeExecution"}

var _ dialect.Runner = Upstream{}

// Runs implements dialect.Runner.
func (Upstream) Runs(kind llm.ServerKind, functions bool, caps *llm.Caps) bool {
	return kind == llm.ImageGeneration && caps.Gemini.Images || native[kind] != "" && (!functions || caps.Gemini.ToolsAndSearch)
}

// tools writes tools and toolConfig, and returns the names of functions.
func (e *encoder) tools(w *jsonedit.Writer) (*dialect.Names, error) {
	functions, names := dialect.Functions(e.req.Tools, &dialect.Grammar{MaxName: maxName, First: begins}, e.notes)
	e.call.Names, e.call.Tools = names, len(functions) > 0
	served, err := e.served(len(functions) > 0)
	if err != nil {
		return nil, err
	}
	if len(functions) > 0 || len(served) > 0 {
		w.Array("tools")
		if len(functions) > 0 {
			w.BeginObject()
			w.Array("functionDeclarations")
			for i := range functions {
				e.function(w, &functions[i])
			}
			w.EndArray()
			w.EndObject()
		}
		for _, t := range served {
			w.BeginObject()
			w.Object(native[t.Server.Kind])
			if t.Server.Kind == llm.WebSearch {
				e.search(w, t)
			}
			w.EndObject()
			w.EndObject()
		}
		w.EndArray()
	}
	if e.req.Parallel != nil && !*e.req.Parallel {
		e.notes.Drop(e.param("parallel_tool_calls"))
	}
	if len(functions) > 0 {
		e.choice(w, names)
	}
	return names, nil
}

func (e *encoder) function(w *jsonedit.Writer, f *dialect.Function) {
	if f.Tool.Cache != nil {
		e.dropBreakpoint()
	}
	w.BeginObject()
	w.SetText("name", f.Name)
	if f.Desc.Given() {
		w.SetRaw("description", f.Desc)
	}
	w.SetRaw("parametersJsonSchema", f.Schema)
	w.EndObject()
}

// search narrows a search. Only Vertex can leave domains out, nothing can keep
// to some.
func (e *encoder) search(w *jsonedit.Writer, t *llm.Tool) {
	s := t.Server
	if dialect.Member(t.Native, "search_context_size") != nil {
		e.notes.Drop("search_context_size")
	}
	if len(s.Domains) > 0 {
		e.notes.Drop("allowed_domains")
	}
	if len(s.Blocked) > 0 && e.caps.Gemini.Vertex {
		w.Array("excludeDomains")
		for _, d := range s.Blocked {
			w.Raw(d)
		}
		w.EndArray()
	} else if len(s.Blocked) > 0 {
		e.notes.Drop("blocked_domains")
	}
	if s.Location.Given() {
		e.notes.Drop("user_location")
	}
	if s.MaxUses.Given() {
		e.notes.Drop("max_uses")
	}
}

// served are the tools that the upstream runs. What it does not have is left
// out where the model may do without; it is refused where the client demands
// it, or has nothing else.
func (e *encoder) served(functions bool) (list []*llm.Tool, err error) {
	choice := &e.req.ToolChoice
	if choice.Mode == llm.ChoiceNone {
		return nil, nil // NONE holds for functions only: the others would still run
	}
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		switch {
		case t.Server == nil, t.Server.Kind == llm.ImageGeneration && e.caps.Gemini.Images:
		case native[t.Server.Kind] != "" && (!functions || e.caps.Gemini.ToolsAndSearch):
			list = append(list, t)
		case choice.Hosted && choice.Server == t.Server.Kind, len(e.req.Tools) == 1:
			at := e.param("tools") + "[" + strconv.Itoa(t.Index) + "]"
			if t.Server.Type == "web_search_options" {
				at = t.Server.Type
			}
			return nil, dialect.NotPossible(at, "'%s' is a tool that this model's upstream does not run here. Leave it out, or choose another model.", at)
		default:
			e.notes.Drop(t.Server.Type)
		}
	}
	return list, nil
}

// choice writes toolConfig.
func (e *encoder) choice(w *jsonedit.Writer, names *dialect.Names) {
	c := e.req.ToolChoice
	if c.Hosted || e.caps.NoForcedTool && (c.Mode == llm.ChoiceRequired || c.Mode == llm.ChoiceNamed) {
		e.notes.Degrade("tool_choice")
		c = llm.ToolChoice{Mode: llm.ChoiceAuto, Allowed: c.Allowed && !c.Hosted, Names: c.Names}
	}
	mode := ""
	switch c.Mode {
	case llm.ChoiceUnset:
		return
	case llm.ChoiceAuto:
		mode = "AUTO"
		if c.Allowed {
			mode = "VALIDATED"
		}
	case llm.ChoiceNone:
		mode = "NONE"
	case llm.ChoiceRequired, llm.ChoiceNamed:
		mode = "ANY"
	}
	w.Object("toolConfig")
	w.Object("functionCallingConfig")
	w.SetText("mode", mode)
	if c.Mode == llm.ChoiceNamed || c.Allowed {
		w.Array("allowedFunctionNames")
		for _, n := range c.Names {
			w.Text(names.Wire(n.Namespace, n.Name))
		}
		w.EndArray()
	}
	w.EndObject()
	w.EndObject()
}

// dropBreakpoint notes a mark for the prompt cache, which is kept without
// marks here.
func (e *encoder) dropBreakpoint() { e.notes.Drop(e.param("prompt_cache_breakpoint")) }
