package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// call reads a function call. One without an ID gets one by its place, which
// is the same in every later turn.
func (c *contentDecoder) call(at string, v, signature llm.Raw) error {
	call := &llm.ToolCall{Pos: c.pos(), Name: dialect.Text(v, "name"), ID: text(dialect.Member(v, "id")), Opaque: c.signed(signature)}
	if call.Name == "" {
		return openai.Missing(at + ".name")
	}
	if call.ID.Blank() {
		sum := sha256.Sum256(fmt.Appendf(nil, "contents/%d/%d", c.index, c.calls))
		call.ID = llm.Quote("call_" + hex.EncodeToString(sum[:12]))
	}
	c.calls++
	args := dialect.Member(v, "args")
	switch args.Kind() {
	case jsonedit.KindObject:
		call.Args = llm.QuoteJSON(args)
	case jsonedit.KindInvalid: // absent
		call.Args = llm.Raw(`"{}"`)
	default:
		return openai.WrongType(at+".args", "an object", args)
	}
	c.waiting = append(c.waiting, waitingCall{call.ID, call.Name})
	c.add(call)
	return nil
}

// response reads what a function gave. It belongs to the call with its ID, or
// to the first of its name that has no result.
func (c *contentDecoder) response(at string, v llm.Raw) error {
	name, id := dialect.Text(v, "name"), text(dialect.Member(v, "id"))
	found := -1
	for i, w := range c.waiting {
		if !id.Blank() && w.id.Text() == id.Text() {
			found = i
			break
		}
		if found < 0 && w.name == name {
			found = i
		}
	}
	if found < 0 {
		return llm.InvalidParam("invalid_value", at, "Invalid value for '%s': no function call named '%s' waits for a result. Send the call before it.", at, name)
	}
	r := &llm.ToolResult{Pos: c.pos(), ID: c.waiting[found].id, Name: name}
	c.waiting = append(c.waiting[:found], c.waiting[found+1:]...)
	if output := c.output(r, dialect.Member(v, "response")); output != nil {
		r.Parts = append(r.Parts, &llm.Text{Pos: r.Pos, Text: output})
	}
	for part := range jsonedit.Elements(dialect.Member(v, "parts")) {
		for quoted, value := range jsonedit.Members(part) {
			kind := camel(llm.Raw(quoted).Text())
			if kind != "inlineData" && kind != "fileData" {
				continue
			}
			m, err := c.media(at+".parts."+kind, kind, value)
			if err != nil {
				return err
			}
			m.At = ".functionResponse.parts" + m.At
			r.Parts = append(r.Parts, m)
		}
	}
	c.add(r)
	return nil
}

// output is the text of a response: the API's own members for output and
// error by themselves, else the whole of it.
func (c *contentDecoder) output(r *llm.ToolResult, response llm.Raw) llm.Raw {
	if response == nil {
		return nil
	}
	said, members := response, 0
	for name, value := range jsonedit.Members(response) {
		members++
		switch string(name) {
		case `"error"`:
			r.IsError, said = true, value
		case `"output"`:
			said = value
		}
	}
	if members != 1 {
		r.IsError, said = false, response
	}
	switch {
	case members == 0 && response.Kind() == jsonedit.KindObject:
		return nil
	case said.IsText():
		return said
	}
	return llm.QuoteJSON(said)
}

func (c *contentDecoder) media(at, name string, v llm.Raw) (*llm.Media, error) {
	m := &llm.Media{Pos: c.pos(), At: "." + name}
	for quoted, value := range jsonedit.Members(v) {
		member, value := camel(llm.Raw(quoted).Text()), llm.Raw(value)
		if !value.Given() {
			continue
		}
		if err := isString(at+"."+member, value); err != nil {
			return nil, err
		}
		switch member {
		case "mimeType":
			m.MIME = value.Text()
		case "data":
			m.Data, m.At = value, "."+name+".data"
		case "fileUri":
			m.URL, m.At = value, "."+name+".fileUri"
		case "displayName":
			m.Name = value
		}
	}
	if m.Data == nil && m.URL == nil {
		member := map[string]string{"inlineData": ".data", "fileData": ".fileUri"}[name]
		return nil, openai.Missing(at + member)
	}
	m.Kind = kindOf(m.MIME)
	return m, nil
}

// execution reads code that the model had run, and its result.
func (c *contentDecoder) execution(name string, v, part llm.Raw) {
	if c.code == nil || name == "executableCode" {
		c.code = &llm.ServerCall{Pos: c.pos(), Kind: llm.CodeExecution, ID: text(dialect.Member(v, "id"))}
		c.add(c.code)
	}
	c.code.Native = append(c.code.Native, part)
	if name == "executableCode" {
		c.code.Code = text(dialect.Member(v, "code"))
		return
	}
	if output := text(dialect.Member(v, "output")); output != nil {
		c.code.Outputs = append(c.code.Outputs, output)
	}
	c.code.Failed = dialect.Text(v, "outcome") != "OUTCOME_OK"
	c.code = nil
}

// hosted are the tools that upstreams run, by this dialect's names.
var hosted = map[string]llm.ServerKind{
	"googleSearch": llm.WebSearch, "googleSearchRetrieval": llm.WebSearch, "enterpriseWebSearch": llm.WebSearch,
	"urlContext": llm.WebFetch, "codeExecution": llm.CodeExecution, "fileSearch": llm.FileSearch,
	"computerUse": llm.ComputerUse, "mcpServers": llm.MCP,
}

func (d *requestDecoder) tools(v llm.Raw) error {
	if v == nil {
		return nil
	}
	if err := isArray("tools", v); err != nil {
		return err
	}
	index := 0
	for tool := range jsonedit.Elements(v) {
		at := fmt.Sprintf("tools[%d]", index)
		if err := isObject(at, tool); err != nil {
			return err
		}
		for quoted, value := range jsonedit.Members(tool) {
			name, value := camel(llm.Raw(quoted).Text()), llm.Raw(value)
			if !value.Given() {
				continue
			}
			if name == "functionDeclarations" {
				if err := d.functions(at+"."+name, index, value); err != nil {
					return err
				}
				continue
			}
			d.req.Tools = append(d.req.Tools, llm.Tool{Index: index, Native: tool, Server: &llm.ServerTool{Kind: hosted[name], Type: name}})
		}
		index++
	}
	return nil
}

func (d *requestDecoder) functions(at string, index int, v llm.Raw) error {
	if err := isArray(at, v); err != nil {
		return err
	}
	n := 0
	for function := range jsonedit.Elements(v) {
		at := fmt.Sprintf("%s[%d]", at, n)
		if err := isObject(at, function); err != nil {
			return err
		}
		t := llm.Tool{Index: index, Name: dialect.Text(function, "name"), Desc: text(dialect.Member(function, "description")), Native: function}
		if t.Name == "" {
			return openai.Missing(at + ".name")
		}
		for quoted, value := range jsonedit.Members(function) {
			value := llm.Raw(value)
			if !value.Given() {
				continue
			}
			switch camel(llm.Raw(quoted).Text()) {
			case "parameters":
				if err := isObject(at+".parameters", value); err != nil {
					return err
				}
				t.Schema = jsonSchema(value)
			case "parametersJsonSchema":
				t.Schema = value
			}
		}
		d.req.Tools = append(d.req.Tools, t)
		n++
	}
	return nil
}

func (d *requestDecoder) toolConfig(v llm.Raw) error {
	if err := isObject("toolConfig", v); err != nil {
		return err
	}
	for quoted, value := range jsonedit.Members(v) {
		name := camel(llm.Raw(quoted).Text())
		if name != "functionCallingConfig" {
			d.req.Notes.Drop("toolConfig." + name)
			continue
		}
		if err := d.calling(value); err != nil {
			return err
		}
	}
	return nil
}

func (d *requestDecoder) calling(v llm.Raw) error {
	const at = "toolConfig.functionCallingConfig"
	if !v.Given() {
		return nil
	}
	if err := isObject(at, v); err != nil {
		return err
	}
	choice := &d.req.ToolChoice
	mode := ""
	for quoted, value := range jsonedit.Members(v) {
		switch name := camel(llm.Raw(quoted).Text()); name {
		case "mode":
			mode = llm.Raw(value).Text()
		case "allowedFunctionNames":
			for name := range jsonedit.Elements(value) {
				choice.Names = append(choice.Names, llm.ToolName{Name: llm.Raw(name).Text()})
			}
		default:
			d.req.Notes.Drop(at + "." + name)
		}
	}
	choice.Allowed = len(choice.Names) > 0
	switch strings.ToUpper(mode) {
	case "", "MODE_UNSPECIFIED":
		*choice = llm.ToolChoice{}
	case "AUTO", "VALIDATED":
		choice.Mode = llm.ChoiceAuto
	case "NONE":
		*choice = llm.ToolChoice{Mode: llm.ChoiceNone}
	case "ANY":
		choice.Mode = llm.ChoiceRequired
		if len(choice.Names) == 1 {
			choice.Mode, choice.Allowed = llm.ChoiceNamed, false
		}
	default:
		return llm.InvalidParam("invalid_value", at+".mode", "Invalid value for '%s.mode': '%s'. It must be AUTO, ANY, NONE or VALIDATED.", at, mode)
	}
	return nil
}
