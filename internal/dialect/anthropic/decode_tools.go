package anthropic

import (
	"fmt"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// serverTools are the tools that the upstream runs, by what their types begin
// with: versions follow.
var serverTools = []struct {
	prefix string
	kind   llm.ServerKind
}{
	{"web_search_", llm.WebSearch},
	{"web_fetch_", llm.WebFetch},
	{"code_execution_", llm.CodeExecution},
	{"mcp_toolset", llm.MCP},
	{"tool_search_tool_", llm.OtherServerTool},
}

// clientTools are tools that the client runs, whose form Anthropic's models
// know. Other models are told it.
var clientTools = []struct {
	prefix       string
	desc, schema llm.Raw
}{
	{"bash_", llm.Quote("Runs a command in a shell that keeps its state, and returns what it prints."),
		llm.Raw(`{"type":"object","properties":{"command":{"type":"string"},"restart":{"type":"boolean"}}}`)},
	{"text_editor_", llm.Quote("Views, creates and edits files. A text that is replaced must occur exactly once."),
		llm.Raw(`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"}},"required":["command","path"]}`)},
}

func (d *decoder) tools(value []byte) error {
	if _, err := wanted("tools", value, jsonedit.KindArray); err != nil {
		return err
	}
	for tool := range jsonedit.Elements(value) {
		t := llm.Tool{Index: len(d.req.Tools), Native: tool}
		if err := d.tool(&t, fmt.Sprintf("tools[%d]", t.Index)); err != nil {
			return err
		}
		d.req.Tools = append(d.req.Tools, t)
	}
	return nil
}

func (d *decoder) tool(t *llm.Tool, path string) (err error) {
	if _, err := wanted(path, t.Native, jsonedit.KindObject); err != nil {
		return err
	}
	kind := dialect.Text(t.Native, "type")
	t.Name = dialect.Text(t.Native, "name")
	if t.Cache, err = d.breakpoint(path+".cache_control", member(t.Native, "cache_control")); err != nil {
		return err
	}
	for _, s := range serverTools {
		if strings.HasPrefix(kind, s.prefix) {
			t.Server = serverTool(s.kind, kind, t.Native)
			return nil
		}
	}
	if t.Name == "" {
		return openai.Missing(path + ".name")
	}
	for _, c := range clientTools {
		if strings.HasPrefix(kind, c.prefix) {
			t.Desc, t.Schema = c.desc, c.schema
			d.req.Notes.Degrade(strings.TrimSuffix(c.prefix, "_"))
			return nil
		}
	}
	if kind != "" && kind != "custom" {
		return dialect.NotServed(path+".type", "A tool of type %q cannot be taken over for this model ('%s.type'); declare it as a custom tool or use a model at Anthropic.", kind, path)
	}
	return d.function(t, path)
}

// function reads a tool that has a schema.
func (d *decoder) function(t *llm.Tool, path string) (err error) {
	for name, value := range jsonedit.Members(t.Native) {
		if !given(value) {
			continue
		}
		switch string(name) {
		case `"description"`:
			t.Desc, err = wanted(path+".description", value, jsonedit.KindString)
		case `"input_schema"`:
			t.Schema, err = wanted(path+".input_schema", value, jsonedit.KindObject)
		case `"strict"`:
			var strict bool
			strict, err = openai.Flag(path+".strict", value)
			t.Strict = &strict
		case `"defer_loading"`:
			t.Deferred, err = openai.Flag(path+".defer_loading", value)
		case `"type"`, `"name"`, `"cache_control"`, `"eager_input_streaming"`:
		case `"allowed_callers"`:
			if string(jsonedit.Compact(nil, value)) != `["direct"]` {
				d.req.Notes.Drop("allowed_callers")
			}
		default:
			member, _ := jsonedit.Unquote(name)
			d.req.Notes.Drop(member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func serverTool(kind llm.ServerKind, typ string, tool []byte) *llm.ServerTool {
	s := &llm.ServerTool{Kind: kind, Type: typ, MaxUses: member(tool, "max_uses")}
	for domain := range jsonedit.Elements(member(tool, "allowed_domains")) {
		s.Domains = append(s.Domains, domain)
	}
	for domain := range jsonedit.Elements(member(tool, "blocked_domains")) {
		s.Blocked = append(s.Blocked, domain)
	}
	if place := member(tool, "user_location"); place != nil {
		var w jsonedit.Writer
		w.BeginObject()
		for _, name := range locationNames {
			w.SetRaw(name, member(place, name))
		}
		w.EndObject()
		s.Location = w.Bytes()
	}
	return s
}

// locationNames are what a user's location says.
var locationNames = [...]string{"country", "city", "region", "timezone"}
