package tools

import (
	"context"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// standIn runs what an upstream would run of a kind, for one call of the
// gateway.
type standIn struct {
	builtin
	tool *llm.ServerTool
	name llm.ToolName // of the function that stands for it
}

// builtin is a tool that has no server of its own.
type builtin interface {
	// function is what the model is told of it. What is lost of the client's
	// tool is noted.
	function(notes *llm.Notes) llm.Tool
	run(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult
	// past is how the model knows a call of an earlier turn: its arguments, a
	// JSON string, and what came of it.
	past(item *llm.ServerCall) (args, text llm.Raw)
	close()
}

// standIn finds who runs a tool.
func (r *Run) standIn(req *llm.Request, tool *llm.Tool) (err error) {
	s := &standIn{tool: tool.Server}
	switch tool.Server.Kind {
	case llm.WebSearch:
		s.builtin = &searcher{tools: r.tools, tool: tool.Server}
	case llm.FileSearch:
		s.builtin, err = r.fileSearcher(req, tool)
	case llm.CodeExecution:
		s.builtin = r.interpreter(req)
	case llm.ImageGeneration:
		s.builtin = &painter{tools: r.tools, wish: tool.Server.Picture, paint: r.paint, left: maxPictures}
	default:
		return nil
	}
	if err == nil {
		r.standIns[tool.Server.Kind] = s
	}
	return err
}

// standing is the function that stands for a tool. It has a namespace only
// where the client has a function of that name.
func (r *Run) standing(req *llm.Request, asked *llm.Tool) llm.Tool {
	s := r.standIns[asked.Server.Kind]
	f := s.function(&req.Notes)
	f.Index = asked.Index
	for i := range req.Tools {
		if t := &req.Tools[i]; t.Server == nil && t.Name == f.Name && t.Namespace == "" {
			f.Namespace = "hosted"
		}
	}
	s.name = llm.ToolName{Namespace: f.Namespace, Name: f.Name}
	r.Host.Tools[s.name] = &dialect.HostedTool{Kind: asked.Server.Kind, Name: f.Name}
	return f
}

// again is a call of an earlier turn as the model knows it.
func (s *standIn) again(item *llm.ServerCall) (*llm.ToolCall, *llm.ToolResult) {
	args, text := s.past(item)
	return paired(item, s.name, args, text, item.Failed)
}

// Arguments of the functions.
var (
	queryArgument  = llm.Raw(`{"type":"object","properties":{"query":{"type":"string","description":"What to search for."}},"required":["query"],"additionalProperties":false}`)
	codeArgument   = llm.Raw(`{"type":"object","properties":{"code":{"type":"string","description":"The code to run."}},"required":["code"],"additionalProperties":false}`)
	promptArgument = llm.Raw(`{"type":"object","properties":{"prompt":{"type":"string","description":"What the image shall show, in every detail that matters."}},"required":["prompt"],"additionalProperties":false}`)
)

// asked is a call as the client is told, as far as its arguments say.
func asked(call *dialect.HostedCall) *llm.ServerCall {
	object, _ := call.Args.Object()
	text := func(name string) llm.Raw {
		if v := dialect.Member(object, name); v.IsText() && !v.Blank() {
			return v
		}
		return nil
	}
	told := &llm.ServerCall{Kind: call.Tool.Kind}
	switch told.Kind {
	case llm.CodeExecution:
		told.Code = text("code")
	case llm.ImageGeneration:
		told.Prompt = text("prompt")
	default:
		if query := text("query"); query != nil {
			told.Queries = []llm.Raw{query}
		}
	}
	return told
}

// noQuery is what the model is told of a search for nothing.
const noQuery = "The search needs a query."

// failed is a call that came to nothing, and why.
func failed(told *llm.ServerCall, why string) *dialect.HostedResult {
	told.Failed = true
	return &dialect.HostedResult{Call: told, Text: llm.Quote(why), Failed: true}
}

// argument are arguments of one text.
func argument(name string, text llm.Raw) llm.Raw {
	if !text.IsText() {
		text = llm.Raw(`""`)
	}
	return llm.QuoteJSON(append(append(llm.Raw(`{"`+name+`":`), text...), '}'))
}

// first is the first of a list; nil when there is none.
func first(list []llm.Raw) llm.Raw {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
