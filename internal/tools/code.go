package tools

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/mcp"
)

// interpreter runs code with a tool of a server, in one session for one call
// of the gateway.
type interpreter struct {
	server    *server
	config    *Code
	container llm.Raw
	shows     bool // the client wants to have what the code gave
}

// includeOutputs is the wish for what code gave.
const includeOutputs = "code_interpreter_call.outputs"

func (r *Run) interpreter(req *llm.Request) *interpreter {
	c := r.tools.config.Code
	s := &server{tools: r.tools, tool: &llm.MCPServer{Label: c.Server}}
	r.configured(s)
	return &interpreter{
		server: s, config: c, container: llm.Quote("cntr_" + strings.ToLower(rand.Text())),
		shows: slices.Contains(req.State.Include, includeOutputs),
	}
}

var codeFunction = llm.Tool{
	Name:   "code_interpreter",
	Desc:   llm.Quote("Runs Python code in a sandbox and returns what it prints."),
	Schema: codeArgument,
}

func (i *interpreter) function(*llm.Notes) llm.Tool { return codeFunction }

func (i *interpreter) run(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult {
	told := asked(call)
	told.Container, told.Withheld = i.container, !i.shows
	if told.Code == nil {
		return failed(told, "There is no code to run.")
	}
	args := append(append(append(llm.Quote(i.config.Argument), ':'), told.Code...), '}')
	result, text := i.server.use(ctx, i.config.Tool, append(llm.Raw{'{'}, args...))
	if i.shows {
		told.Outputs, told.Images = []llm.Raw{llm.Quote(text)}, drawn(result)
	}
	if result == nil || result.Failed {
		return failed(told, text)
	}
	if text == "" {
		text = "The code ran and printed nothing."
	}
	return &dialect.HostedResult{Call: told, Text: llm.Quote(text)}
}

// drawn are the images of a result, as URLs that hold them.
func drawn(r *mcp.Result) (urls []llm.Raw) {
	if r == nil {
		return nil
	}
	for _, content := range r.Content {
		if content.Type == "image" {
			urls = append(urls, llm.Quote("data:"+content.MIME+";base64,"+base64.StdEncoding.EncodeToString(content.Data)))
		}
	}
	return urls
}

// past is code of an earlier turn, whose outputs the client may have wanted.
func (i *interpreter) past(item *llm.ServerCall) (args, text llm.Raw) {
	text = llm.Quote("The code ran. What it printed is not kept.")
	if !item.Withheld {
		text = llm.Concat("\n", item.Outputs...)
	}
	return argument("code", item.Code), text
}

func (i *interpreter) close() { i.server.close() }
