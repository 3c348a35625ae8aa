package openairesponses

import (
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// lateTools are tools that an item brought.
type lateTools struct {
	at   string
	list llm.Raw
}

// fixedTools are the tools whose form is their type's own and which the client
// runs, by type.
var fixedTools = map[string]llm.CallKind{"shell": llm.ShellCall, "local_shell": llm.LocalShellCall, "apply_patch": llm.ApplyPatchCall}

// hostedTools are the tools that an upstream runs, by type without the date
// of a version.
var hostedTools = map[string]llm.ServerKind{
	"web_search":                llm.WebSearch,
	"web_search_preview":        llm.WebSearch,
	"file_search":               llm.FileSearch,
	"code_interpreter":          llm.CodeExecution,
	"image_generation":          llm.ImageGeneration,
	"mcp":                       llm.MCP,
	"computer":                  llm.ComputerUse,
	"computer_use_preview":      llm.ComputerUse,
	"programmatic_tool_calling": llm.OtherServerTool,
}

// hosted is what an upstream's tool does.
func hosted(kind string) (llm.ServerKind, bool) {
	for _, version := range [...]string{"", "_2025_08_26", "_2025_03_11"} {
		if name, ok := strings.CutSuffix(kind, version); ok {
			if k, known := hostedTools[name]; known {
				return k, true
			}
		}
	}
	return 0, false
}

// allTools reads the tools of the request, and after them those of its items:
// what came later stands later.
func (d *requestDecoder) allTools(list llm.Raw) error {
	for _, l := range append([]lateTools{{"tools", list}}, d.late...) {
		if l.list == nil {
			continue
		}
		tools, err := readTools(l.at, l.list)
		if err != nil {
			return err
		}
		for _, t := range tools {
			if t.search {
				d.req.Notes.Degrade("tool_search") // all that it could find is there
				continue
			}
			d.req.Tools = append(d.req.Tools, t.Tool)
		}
	}
	return nil
}

// readTool is a tool, and who searches with it.
type readTool struct {
	llm.Tool
	search bool // is tool_search, run by the upstream
}

// readTools reads a list of tools. Those of namespaces are laid out flat.
// Tools that are to be loaded later are loaded now: no other dialect knows
// when.
func readTools(at string, list llm.Raw) ([]readTool, error) {
	if list.Kind() != jsonedit.KindArray {
		return nil, openai.WrongType(at, "an array", list)
	}
	var out []readTool
	i := 0
	for v := range jsonedit.Elements(list) {
		at := at + "[" + strconv.Itoa(i) + "]"
		if jsonedit.KindOf(v) != jsonedit.KindObject {
			return nil, openai.WrongType(at, "an object", v)
		}
		tools, err := toolsOf(at, v)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			t.Index = i
			out = append(out, t)
		}
		i++
	}
	return out, nil
}

// toolsOf are the tools that an entry of a list stands for.
func toolsOf(at string, value llm.Raw) ([]readTool, error) {
	if dialect.Text(value, "type") == "namespace" {
		return namespace(at, value)
	}
	t, err := tool(at, value)
	return []readTool{t}, err
}

func namespace(at string, value llm.Raw) ([]readTool, error) {
	space := dialect.Text(value, "name")
	if space == "" {
		return nil, missingText(at+".name", dialect.Member(value, "name"))
	}
	list := dialect.Member(value, "tools")
	if list == nil {
		return nil, nil
	}
	tools, err := readTools(at+".tools", list)
	for i := range tools {
		tools[i].Namespace = space
	}
	return tools, err
}

func tool(at string, value llm.Raw) (t readTool, err error) {
	t.Native = value
	var search llm.Raw
	kind := ""
	for name, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		switch string(name) {
		case `"type"`:
			kind = llm.Raw(v).Text()
		case `"name"`:
			t.Name = llm.Raw(v).Text()
		case `"description"`:
			t.Desc, err = ofKind(at+".description", v, jsonedit.KindString)
		case `"parameters"`:
			t.Schema, err = ofKind(at+".parameters", v, jsonedit.KindObject)
		case `"strict"`:
			t.Strict, err = optionalFlag(at+".strict", v)
		case `"format"`:
			t.Grammar = v
		case `"execution"`:
			search = v
		}
		if err != nil {
			return t, err
		}
	}
	return t, t.become(at, kind, search)
}

// become makes of a tool what its type says it is.
func (t *readTool) become(at, kind string, execution llm.Raw) error {
	switch kind {
	case "function":
	case "custom":
		t.Kind = llm.CustomCall
	case "tool_search":
		t.Kind, t.Name = llm.ToolSearchCall, kind
		t.search = execution.Text() != "client"
		return nil
	case "":
		return openai.Missing(at + ".type")
	default:
		if fixed, ok := fixedTools[kind]; ok && !inContainer(t.Native) {
			t.Kind, t.Name = fixed, kind
			return nil
		}
		return t.serve(at, kind)
	}
	if t.Name == "" {
		return missingText(at+".name", dialect.Member(t.Native, "name"))
	}
	return nil
}

// inContainer reports whether a shell is the upstream's own.
func inContainer(tool llm.Raw) bool {
	return strings.HasPrefix(dialect.Text(tool, "environment", "type"), "container")
}

// serve makes a tool of the upstream's.
func (t *readTool) serve(at, kind string) error {
	k, ok := hosted(kind)
	if !ok && kind != "shell" {
		return dialect.NotServed(at+".type", "A tool of the type %q in 'tools' cannot be given to the model's upstream: leave it out, or offer a function instead.", kind)
	}
	t.Name = ""
	t.Server = &llm.ServerTool{
		Kind: k, Type: kind,
		Domains: elements(dialect.Member(t.Native, "filters", "allowed_domains")),
		Blocked: elements(dialect.Member(t.Native, "filters", "blocked_domains")),
	}
	if where := dialect.Member(t.Native, "user_location"); where.Kind() == jsonedit.KindObject {
		t.Server.Location = withoutType(where)
	}
	switch k {
	case llm.WebSearch:
		t.Server.Size = dialect.Text(t.Native, "search_context_size")
		t.Server.Offline = offline(t.Native)
	case llm.MCP:
		t.Server.MCP = mcpServer(t.Native)
	case llm.FileSearch:
		t.Server.Files = &llm.FileStores{
			IDs: elements(dialect.Member(t.Native, "vector_store_ids")), Limit: dialect.Member(t.Native, "max_num_results"),
			Filters: dialect.Member(t.Native, "filters"), Ranking: dialect.Member(t.Native, "ranking_options"),
		}
	case llm.ImageGeneration:
		t.Server.Picture = pictureWish(t.Native)
	}
	return nil
}

// pictureMembers are members of image_generation that say how an image shall
// look, by their names.
var pictureMembers = map[string]bool{"size": true, "quality": true, "background": true, "output_format": true, "output_compression": true, "moderation": true}

func pictureWish(tool llm.Raw) *llm.PictureWish {
	wish := &llm.PictureWish{}
	for quoted, v := range jsonedit.Members(tool) {
		name := llm.Raw(quoted).Text()
		switch {
		case name == "type", jsonedit.KindOf(v) == jsonedit.KindNull:
		case pictureMembers[name]:
			wish.Members = append(wish.Members, llm.Member{Name: name, Value: v})
		default:
			wish.Others = append(wish.Others, name)
		}
	}
	return wish
}

func (d *requestDecoder) toolChoice(value llm.Raw) error {
	c := &d.req.ToolChoice
	if value == nil {
		return nil
	}
	if value.IsText() {
		mode, ok := choiceMode(value.Text())
		if !ok {
			return llm.InvalidParam("invalid_value", "tool_choice", "Invalid value for 'tool_choice': expected none, auto, required or an object.")
		}
		c.Mode = mode
		return nil
	}
	if value.Kind() != jsonedit.KindObject {
		return openai.WrongType("tool_choice", "a string or an object", value)
	}
	kind := dialect.Text(value, "type")
	if kind == "allowed_tools" {
		return d.allowedTools(value)
	}
	if name, ok := chosen(kind, value); ok {
		if name.Name == "" {
			return missingText("tool_choice.name", dialect.Member(value, "name"))
		}
		c.Mode, c.Names = llm.ChoiceNamed, []llm.ToolName{d.spaced(name)}
		return nil
	}
	server, ok := hosted(kind)
	if !ok {
		return dialect.NotServed("tool_choice.type", "A 'tool_choice' of the type %q cannot be given to the model's upstream: use auto, required or a function.", kind)
	}
	c.Mode, c.Hosted, c.Server = llm.ChoiceRequired, true, server
	c.Label, c.Tool = dialect.Text(value, "server_label"), dialect.Text(value, "name")
	return nil
}

func choiceMode(word string) (llm.ChoiceMode, bool) {
	switch word {
	case "auto":
		return llm.ChoiceAuto, true
	case "none":
		return llm.ChoiceNone, true
	case "required":
		return llm.ChoiceRequired, true
	}
	return 0, false
}

// chosen is the tool of the client's that a choice names. It reports false
// when it is one of the upstream's.
func chosen(kind string, value llm.Raw) (llm.ToolName, bool) {
	switch kind {
	case "function", "custom":
		return llm.ToolName{Namespace: dialect.Text(value, "namespace"), Name: dialect.Text(value, "name")}, true
	case "shell", "local_shell", "apply_patch", "tool_search":
		return llm.ToolName{Name: kind}, true
	}
	return llm.ToolName{}, false
}

// spaced finds the namespace of a tool that is named without it.
func (d *requestDecoder) spaced(name llm.ToolName) llm.ToolName {
	found := name
	for i := range d.req.Tools {
		t := &d.req.Tools[i]
		if t.Name == name.Name && t.Namespace == name.Namespace {
			return name
		}
		if t.Name == name.Name && name.Namespace == "" {
			found.Namespace = t.Namespace
		}
	}
	return found
}

func (d *requestDecoder) allowedTools(value llm.Raw) error {
	c := &d.req.ToolChoice
	mode, ok := choiceMode(dialect.Text(value, "mode"))
	if !ok || mode == llm.ChoiceNone {
		return llm.InvalidParam("invalid_value", "tool_choice.mode", "Invalid value for 'tool_choice.mode': expected auto or required.")
	}
	c.Mode, c.Allowed = mode, true
	for v := range jsonedit.Elements(dialect.Member(value, "tools")) {
		kind := dialect.Text(v, "type")
		if name, ok := chosen(kind, v); ok {
			c.Names = append(c.Names, d.spaced(name))
			continue
		}
		if server, ok := hosted(kind); ok {
			c.Served = append(c.Served, llm.ServedTool{Kind: server, Label: dialect.Text(v, "server_label"), Name: dialect.Text(v, "name")})
		}
	}
	return nil
}
