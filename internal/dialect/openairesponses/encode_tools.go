package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// writeTools writes the tools and which of them must be called.
func (e *requestEncoder) writeTools() error {
	if len(e.req.Tools) == 0 {
		return e.toolChoice(false)
	}
	var list jsonedit.Writer
	list.BeginArray()
	said := 0
	next := 0
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		if t.Server != nil {
			wrote, err := e.hosted(&list, t)
			if err != nil {
				return err
			}
			if wrote {
				said++
			}
			continue
		}
		if next < len(e.tools) && e.tools[next].Tool == t { // others are there twice
			e.tool(&list, &e.tools[next])
			next++
			said++
		}
	}
	list.EndArray()
	if said > 0 {
		e.w.SetRaw("tools", list.Bytes())
	}
	return e.toolChoice(said > 0)
}

func (e *requestEncoder) tool(w *jsonedit.Writer, f *dialect.Function) {
	if f.Kind > llm.CustomCall && f.Tool.Native != nil {
		w.Raw(f.Tool.Native)
		return
	}
	w.BeginObject()
	if f.Kind == llm.CustomCall && !e.caps.Chat.NoCustom {
		w.SetText("type", "custom")
		w.SetText("name", f.Name)
		if f.Desc.Given() {
			w.SetRaw("description", f.Desc)
		}
		w.SetRaw("format", f.Tool.Grammar)
		w.EndObject()
		return
	}
	w.SetText("type", "function")
	w.SetText("name", f.Name)
	if f.Desc.Given() {
		w.SetRaw("description", f.Desc)
	}
	w.SetRaw("parameters", f.Schema)
	strict := f.Tool.Strict != nil && *f.Tool.Strict
	if strict && e.caps.NoStrictTools {
		strict = false
		e.notes.Drop("strict")
	}
	w.SetBool("strict", strict) // absent it would be true
	w.EndObject()
}

// hosted writes a tool that the upstream runs. Those that it does not have are
// left out, unless the answer depends on them.
func (e *requestEncoder) hosted(w *jsonedit.Writer, t *llm.Tool) (bool, error) {
	s := t.Server
	switch s.Kind {
	case llm.WebSearch:
		w.BeginObject()
		w.SetText("type", "web_search")
		if len(s.Domains) > 0 {
			w.Object("filters")
			w.Name("allowed_domains")
			writeList(w, s.Domains)
			w.EndObject()
		}
		if len(s.Blocked) > 0 {
			e.notes.Drop("blocked_domains")
		}
		if s.MaxUses.Given() {
			e.notes.Drop("max_uses")
		}
		if s.Location.Given() {
			w.Object("user_location")
			w.SetText("type", "approximate")
			for name, v := range jsonedit.Members(withoutType(s.Location)) {
				w.RawName(name)
				w.Raw(v)
			}
			w.EndObject()
		}
		w.SetRaw("search_context_size", dialect.Member(t.Native, "search_context_size"))
		w.EndObject()
		return true, nil
	case llm.CodeExecution:
		w.Raw([]byte(`{"type":"code_interpreter","container":{"type":"auto"}}`))
		return true, nil
	case llm.ImageGeneration:
		w.Raw([]byte(`{"type":"image_generation"}`))
		return true, nil
	}
	at := "tools[" + strconv.Itoa(t.Index) + "]"
	c := &e.req.ToolChoice
	if len(e.req.Tools) == 1 || c.Hosted && c.Server == s.Kind {
		return false, dialect.NotPossible(at, "The model's upstream does not have the tool %q of '%s': leave it out, or offer a function instead.", s.Type, at)
	}
	e.notes.Drop(s.Type)
	return false, nil
}

// upstreamTools are the tools that upstreams run, by kind.
var upstreamTools = map[llm.ServerKind]string{llm.WebSearch: "web_search", llm.CodeExecution: "code_interpreter", llm.ImageGeneration: "image_generation"}

func (e *requestEncoder) toolChoice(tools bool) error {
	c, w := &e.req.ToolChoice, e.w
	if c.Mode == llm.ChoiceUnset {
		return nil
	}
	forced := c.Mode == llm.ChoiceRequired || c.Mode == llm.ChoiceNamed
	if forced && !tools {
		return dialect.NotPossible("tool_choice", "A 'tool_choice' that demands a tool needs one that the model's upstream can call: offer a function, or set it to auto.")
	}
	if forced && e.caps.NoForcedTool {
		e.notes.Degrade("tool_choice")
		w.SetText("tool_choice", "auto")
		return nil
	}
	word := map[llm.ChoiceMode]string{llm.ChoiceAuto: "auto", llm.ChoiceNone: "none", llm.ChoiceRequired: "required"}[c.Mode]
	switch {
	case c.Hosted:
		w.Object("tool_choice")
		w.SetText("type", upstreamTools[c.Server])
		w.EndObject()
	case c.Allowed:
		w.Object("tool_choice")
		w.SetText("type", "allowed_tools")
		w.SetText("mode", word)
		w.Array("tools")
		for _, name := range c.Names {
			w.BeginObject()
			e.chosen(name)
			w.EndObject()
		}
		for _, served := range c.Served {
			if kind := upstreamTools[served.Kind]; kind != "" {
				w.BeginObject()
				w.SetText("type", kind)
				w.EndObject()
			}
		}
		w.EndArray()
		w.EndObject()
	case c.Mode == llm.ChoiceNamed && len(c.Names) > 0:
		w.Object("tool_choice")
		e.chosen(c.Names[0])
		w.EndObject()
	case word != "":
		w.SetText("tool_choice", word)
	}
	return nil
}

// chosen writes the type and the name of a tool.
func (e *requestEncoder) chosen(name llm.ToolName) {
	wire := e.names.Wire(name.Namespace, name.Name)
	kind := "function"
	if f := e.names.Tool(wire); f != nil && f.Kind != llm.FunctionCall {
		switch {
		case f.Kind > llm.CustomCall:
			e.w.SetText("type", f.Tool.Name)
			return
		case !e.caps.Chat.NoCustom:
			kind = "custom"
		}
	}
	e.w.SetText("type", kind)
	e.w.SetText("name", wire)
}
