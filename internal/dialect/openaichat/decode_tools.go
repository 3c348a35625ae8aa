package openaichat

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// tools reads the tools and which of them must be called.
func (d *requestDecoder) tools() error {
	late, req := &d.late, d.req
	for tool := range jsonedit.Elements(late.tools) {
		if err := d.tool("tools["+strconv.Itoa(len(req.Tools))+"]", tool); err != nil {
			return err
		}
	}
	choice, param := late.choice, "tool_choice"
	if len(req.Tools) == 0 {
		for function := range jsonedit.Elements(late.functions) {
			if err := d.function("functions["+strconv.Itoa(len(req.Tools))+"]", function, function); err != nil {
				return err
			}
		}
		if len(req.Tools) > 0 {
			req.Words = oldWords
			choice, param = late.oldChoice, "function_call"
		}
	}
	if late.search != nil {
		req.Tools = append(req.Tools, searchTool(len(req.Tools), late.search))
	}
	if len(req.Tools) == 0 || choice == nil {
		return nil // a choice of nothing means nothing
	}
	return d.choice(param, choice)
}

func (d *requestDecoder) tool(param string, value llm.Raw) error {
	if _, err := kept(param, jsonedit.KindObject, value); err != nil {
		return err
	}
	switch kind := dialect.Text(value, "type"); kind {
	case "function":
		said := dialect.Member(value, "function")
		if _, err := kept(param+".function", jsonedit.KindObject, said); err != nil {
			return err
		}
		return d.function(param+".function", value, said)
	case "custom":
		said := dialect.Member(value, "custom")
		if _, err := kept(param+".custom", jsonedit.KindObject, said); err != nil {
			return err
		}
		return d.custom(param+".custom", value, said)
	case "":
		return openai.Missing(param + ".type")
	default:
		return dialect.NotServed(param+".type", "There is no translation of the tool type %q in '%s.type'. Use tools of type function or custom.", kind, param)
	}
}

// function reads a function; whole is what stands in the client's list.
func (d *requestDecoder) function(param string, whole, said llm.Raw) (err error) {
	if _, err := kept(param, jsonedit.KindObject, said); err != nil {
		return err
	}
	t := llm.Tool{Index: len(d.req.Tools), Kind: llm.FunctionCall, Native: whole, Cache: breakpoint(dialect.Member(whole, "cache_control"))}
	if t.Name, err = named(param, said); err != nil {
		return err
	}
	t.Desc = dialect.Member(said, "description")
	if schema := dialect.Member(said, "parameters"); schema != nil {
		if t.Schema, err = kept(param+".parameters", jsonedit.KindObject, schema); err != nil {
			return err
		}
	}
	if strict := dialect.Member(said, "strict"); strict != nil {
		if t.Strict, err = flag(param+".strict", strict); err != nil {
			return err
		}
	}
	d.req.Tools = append(d.req.Tools, t)
	return nil
}

func (d *requestDecoder) custom(param string, whole, said llm.Raw) (err error) {
	t := llm.Tool{Index: len(d.req.Tools), Kind: llm.CustomCall, Native: whole, Desc: dialect.Member(said, "description")}
	if t.Name, err = named(param, said); err != nil {
		return err
	}
	if format := dialect.Member(said, "format"); dialect.Text(format, "type") == "grammar" {
		var w jsonedit.Writer // flat, as Responses writes it
		w.BeginObject()
		w.SetText("type", "grammar")
		w.SetRaw("syntax", dialect.Member(format, "grammar", "syntax"))
		w.SetRaw("definition", dialect.Member(format, "grammar", "definition"))
		w.EndObject()
		t.Grammar = w.Bytes()
	}
	d.req.Tools = append(d.req.Tools, t)
	return nil
}

// named reads the name of a tool.
func named(param string, said llm.Raw) (string, error) {
	value := dialect.Member(said, "name")
	if value.Blank() {
		return "", openai.Missing(param + ".name")
	}
	return text(param+".name", value)
}

// searchTool is web_search_options as a tool, after the client's own.
func searchTool(index int, options llm.Raw) llm.Tool {
	return llm.Tool{Index: index, Native: options, Server: &llm.ServerTool{
		Kind:     llm.WebSearch,
		Type:     "web_search_options",
		Location: dialect.Member(options, "user_location", "approximate"),
	}}
}

// choice reads tool_choice and function_call.
func (d *requestDecoder) choice(param string, value llm.Raw) error {
	c := &d.req.ToolChoice
	if value.IsText() {
		switch word := value.Text(); word {
		case "auto":
			c.Mode = llm.ChoiceAuto
		case "none":
			c.Mode = llm.ChoiceNone
		case "required", "any": // the second is Mistral's
			c.Mode = llm.ChoiceRequired
		default:
			return llm.InvalidParam("invalid_value", param, "Invalid value for '%s': %q. Use none, auto, required or an object that names a tool.", param, word)
		}
		return nil
	}
	if value.Kind() != jsonedit.KindObject {
		return openai.WrongType(param, "a string or an object", value)
	}
	kind := dialect.Text(value, "type")
	switch {
	case kind == "function" || kind == "custom":
		param, value = param+"."+kind, dialect.Member(value, kind)
		if _, err := kept(param, jsonedit.KindObject, value); err != nil {
			return err
		}
	case kind == "allowed_tools":
		return d.allowed(param+".allowed_tools", dialect.Member(value, "allowed_tools"))
	case kind != "":
		return llm.InvalidParam("invalid_value", param+".type", "Invalid value for '%s.type': %q. Use function, custom or allowed_tools.", param, kind)
	}
	name, err := named(param, value)
	if err != nil {
		return err
	}
	c.Mode, c.Names = llm.ChoiceNamed, []llm.ToolName{{Name: name}}
	return nil
}

func (d *requestDecoder) allowed(param string, value llm.Raw) error {
	if _, err := kept(param, jsonedit.KindObject, value); err != nil {
		return err
	}
	c := &d.req.ToolChoice
	c.Mode, c.Allowed = llm.ChoiceAuto, true
	if dialect.Text(value, "mode") == "required" {
		c.Mode = llm.ChoiceRequired
	}
	for tool := range jsonedit.Elements(dialect.Member(value, "tools")) {
		at := param + ".tools[" + strconv.Itoa(len(c.Names)) + "]"
		kind := dialect.Text(tool, "type")
		name, err := named(at+"."+kind, dialect.Member(tool, kind))
		if err != nil {
			return err
		}
		c.Names = append(c.Names, llm.ToolName{Name: name})
	}
	return nil
}
