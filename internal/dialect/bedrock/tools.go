package bedrock

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// hosted looks at tools that an upstream would run: Converse runs none.
func (e *encoder) hosted() error {
	choice := &e.req.ToolChoice
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		if t.Server == nil {
			continue
		}
		if choice.Mode != llm.ChoiceNone && (choice.Hosted && choice.Server == t.Server.Kind || len(e.req.Tools) == 1) {
			at := e.param("tools") + "[" + strconv.Itoa(t.Index) + "]"
			if t.Server.Type == "web_search_options" {
				at = t.Server.Type
			}
			return dialect.NotPossible(at, "'%s' is a tool that this model's upstream does not run. Leave it out, or choose another model.", at)
		}
		e.notes.Drop(t.Server.Type)
	}
	return nil
}

// toolConfig writes the tools and which of them must be called. The choice is
// returned instead where it has to say what only Anthropic's own can.
func (e *encoder) toolConfig(w *jsonedit.Writer) (claude llm.Raw) {
	single := e.req.Parallel != nil && !*e.req.Parallel
	if !e.tools {
		if single && len(e.functions) == 0 {
			e.notes.Drop(e.param("parallel_tool_calls"))
		}
		return nil
	}
	w.Object("toolConfig")
	w.Array("tools")
	for i := range e.functions {
		e.function(w, &e.functions[i])
		writeBreakpoint(w, e.toolMarks[i])
	}
	w.EndArray()
	kind, name := e.choice()
	switch {
	case single && e.caps.Bedrock.Family == familyAnthropic:
		claude = singleChoice(kind, name)
	case kind != "":
		w.Object("toolChoice")
		w.Object(kind)
		if name != "" {
			w.SetText("name", name)
		}
		w.EndObject()
		w.EndObject()
	}
	w.EndObject()
	if single && claude == nil {
		e.notes.Drop(e.param("parallel_tool_calls"))
	}
	return claude
}

// singleChoice is Anthropic's tool choice for one call at a time.
func singleChoice(kind, name string) llm.Raw {
	if kind == "" {
		kind = "auto"
	}
	var w jsonedit.Writer
	w.BeginObject()
	w.SetText("type", kind)
	if name != "" {
		w.SetText("name", name)
	}
	w.SetBool("disable_parallel_tool_use", true)
	w.EndObject()
	return w.Bytes()
}

func (e *encoder) function(w *jsonedit.Writer, f *dialect.Function) {
	if f.Tool.Strict != nil && *f.Tool.Strict {
		e.notes.Drop(e.param("strict"))
	}
	w.BeginObject()
	w.Object("toolSpec")
	w.SetText("name", f.Name)
	if !f.Desc.Blank() {
		w.SetRaw("description", f.Desc)
	}
	w.Object("inputSchema")
	w.SetRaw("json", f.Schema)
	w.EndObject()
	w.EndObject()
	w.EndObject()
}

// choice is the kind of toolChoice and the name of the tool; "" says nothing.
// A choice of some tools has no words here.
func (e *encoder) choice() (kind, name string) {
	c := &e.req.ToolChoice
	forced := c.Mode == llm.ChoiceRequired || c.Mode == llm.ChoiceNamed
	one := len(c.Names) == 1 && forced
	if c.Hosted || forced && (e.caps.NoForcedTool || e.budgeted) || c.Allowed && !one {
		e.notes.Degrade("tool_choice")
		if !c.Hosted && forced && !e.caps.NoForcedTool && !e.budgeted {
			return "any", ""
		}
		return "auto", ""
	}
	switch {
	case one:
		return "tool", e.names.Wire(c.Names[0].Namespace, c.Names[0].Name)
	case forced:
		return "any", ""
	case c.Mode == llm.ChoiceAuto:
		return "auto", ""
	}
	return "", ""
}
