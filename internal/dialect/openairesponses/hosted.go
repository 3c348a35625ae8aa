package openairesponses

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// serverCalls are the types of items that tell what an upstream ran itself.
var serverCalls = map[string]llm.ServerKind{
	"web_search_call":       llm.WebSearch,
	"file_search_call":      llm.FileSearch,
	"code_interpreter_call": llm.CodeExecution,
	"image_generation_call": llm.ImageGeneration,
	"mcp_list_tools":        llm.MCP,
	"mcp_call":              llm.MCP,
	"mcp_approval_request":  llm.MCP,
	"mcp_approval_response": llm.MCP,
	"tool_search_call":      llm.OtherServerTool,
	"tool_search_output":    llm.OtherServerTool,
}

// serverCall reads an item of a tool that the upstream ran; nil for others.
func serverCall(it *rawItem) *llm.ServerCall {
	kind, ok := serverCalls[it.kind]
	if !ok {
		return nil
	}
	c := &llm.ServerCall{Kind: kind, ID: it.id, Failed: it.status.Text() == "failed", Native: []llm.Raw{it.whole}}
	switch kind {
	case llm.WebSearch:
		c.Input = it.action
		c.Queries = elements(dialect.Member(it.action, "queries"))
		if query := dialect.Member(it.action, "query"); c.Queries == nil && query != nil {
			c.Queries = []llm.Raw{query}
		}
		for source := range jsonedit.Elements(dialect.Member(it.action, "sources")) {
			c.Sources = append(c.Sources, llm.Source{URL: dialect.Member(source, "url"), Title: dialect.Member(source, "title")})
		}
	case llm.FileSearch:
		c.Queries = elements(it.queries)
		c.Files = foundFiles(dialect.Member(it.whole, "results"))
	case llm.CodeExecution:
		c.Code, c.Container = it.code, dialect.Member(it.whole, "container_id")
		c.Withheld = it.outputs == nil
		for output := range jsonedit.Elements(it.outputs) {
			if logs := dialect.Member(output, "logs"); logs != nil {
				c.Outputs = append(c.Outputs, logs)
			}
			if at := dialect.Member(output, "url"); at != nil {
				c.Images = append(c.Images, at)
			}
		}
	case llm.ImageGeneration:
		c.Image, c.Prompt = generated(it), dialect.Member(it.whole, "revised_prompt")
	case llm.MCP:
		c.Input, _ = it.arguments.Object()
		c.MCP = mcpStep(it)
	}
	return c
}

// foundFiles are the results of a file_search_call; nil when they are not
// there.
func foundFiles(list llm.Raw) (files []llm.FoundFile) {
	if list.Kind() != jsonedit.KindArray {
		return nil
	}
	files = []llm.FoundFile{}
	for v := range jsonedit.Elements(list) {
		files = append(files, llm.FoundFile{
			ID: dialect.Member(v, "file_id"), Name: dialect.Member(v, "filename"), Text: dialect.Member(v, "text"),
			Score: dialect.Member(v, "score"), Attributes: dialect.Member(v, "attributes"),
		})
	}
	return files
}

// generated is the picture of an image_generation_call; nil when there is none.
func generated(it *rawItem) *llm.Media {
	if !it.result.IsText() || it.result.Blank() {
		return nil
	}
	format := it.format.Text()
	if format == "" {
		format = "png"
	}
	return &llm.Media{Kind: llm.Image, Data: it.result, MIME: "image/" + format}
}
