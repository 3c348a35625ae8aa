package tools

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Run is what is run for one call of the gateway. Close ends its sessions.
type Run struct {
	// Host is what the answer needs to know.
	Host *dialect.Host

	tools    *Tools
	paint    Painter
	servers  map[string]*server // by label
	standIns map[llm.ServerKind]*standIn
	own      map[*dialect.HostedTool]*server
}

// Bounds of one answer: servers that it names, calls that are run for it.
const (
	maxServers = 16
	maxCalls   = 128
)

// maxRequests is how often an upstream is asked for one answer.
const maxRequests = 10

// Begin says a request anew for an upstream that does not run some of its
// tools: they become functions, and what was run before becomes calls of
// those. hosts reports whether a kind of tool is to be run here; paint makes the
// images, where those are. The result is nil when there is none. What the
// request asks for and nobody may have is an *llm.Error.
func (t *Tools) Begin(ctx context.Context, req *llm.Request, hosts func(llm.ServerKind) bool, paint Painter) (*Run, error) {
	return t.begin(ctx, req, hosts, paint, maxCalls)
}

// Tell says a request anew as Begin does, to see what becomes of it: servers
// are asked for their tools, but nothing is run.
func (t *Tools) Tell(ctx context.Context, req *llm.Request, hosts func(llm.ServerKind) bool) (*Run, error) {
	return t.begin(ctx, req, hosts, nil, 0)
}

func (t *Tools) begin(ctx context.Context, req *llm.Request, hosts func(llm.ServerKind) bool, paint Painter, calls int) (*Run, error) {
	r := &Run{
		tools: t, paint: paint, servers: map[string]*server{}, standIns: map[llm.ServerKind]*standIn{}, own: map[*dialect.HostedTool]*server{},
		Host: &dialect.Host{Tools: map[llm.ToolName]*dialect.HostedTool{}, Calls: calls, Requests: maxRequests},
	}
	if err := r.find(req, hosts); err != nil {
		return nil, err
	}
	if len(r.servers) == 0 && len(r.standIns) == 0 {
		return nil, nil
	}
	err := r.rewrite(ctx, req)
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends what the run holds open.
func (r *Run) Close() {
	for _, s := range r.servers {
		s.close()
	}
	for _, s := range r.standIns {
		s.close()
	}
}

// find finds the tools that are to be run here, before any is asked for
// anything.
func (r *Run) find(req *llm.Request, hosts func(llm.ServerKind) bool) error {
	for i := range req.Tools {
		tool := &req.Tools[i]
		switch {
		case tool.Server == nil || !hosts(tool.Server.Kind) || !r.tools.Runs(tool.Server.Kind):
		case tool.Server.MCP != nil:
			if err := r.server(tool); err != nil {
				return err
			}
		case r.standIns[tool.Server.Kind] == nil && !tool.Server.Offline:
			if err := r.standIn(req, tool); err != nil {
				return err
			}
		}
	}
	return nil
}

// server finds the server that a client's tool names.
func (r *Run) server(tool *llm.Tool) error {
	asked := tool.Server.MCP
	at := "tools[" + strconv.Itoa(tool.Index) + "]"
	switch {
	case asked.Label == "":
		return llm.InvalidParam("missing_required_parameter", at+".server_label", "Missing required parameter: '%s.server_label'.", at)
	case r.servers[asked.Label] != nil:
		return llm.InvalidParam("invalid_value", at+".server_label", "Invalid '%s.server_label': there is another server with that label.", at)
	case len(r.servers) == maxServers:
		return llm.InvalidParam("invalid_value", at, "Invalid 'tools': at most %d servers can be named.", maxServers)
	case asked.Connector != "":
		return dialect.NotServed(at+".connector_id", "The model's upstream has no connectors, as '%s.connector_id' names one: name a server in '%s.server_url'.", at, at)
	}
	s := &server{tools: r.tools, tool: asked}
	if !r.configured(s) {
		if asked.URL == "" {
			return llm.InvalidParam("invalid_value", at+".server_label", "There is no server with the label of '%s.server_label' here: use one of those that the gateway's operator has set up.", at)
		}
		u, private, ok := r.tools.allowed(asked.URL)
		if !ok {
			return llm.InvalidParam("invalid_value", at+".server_url", "The server of '%s.server_url' may not be called from here: use one that the gateway's operator allows.", at)
		}
		s.url, s.public, s.header = u.String(), !private, http.Header{}
	}
	for _, field := range asked.Headers {
		if name := http.CanonicalHeaderKey(field.Name); field.Value.IsText() && s.header[name] == nil {
			s.header[name] = []string{field.Value.Text()}
		}
	}
	if asked.Authorization != "" && s.header.Get("Authorization") == "" {
		s.header.Set("Authorization", "Bearer "+asked.Authorization)
	}
	r.servers[asked.Label] = s
	return nil
}

// configured takes the address of a server from the operator, if it is one of
// theirs. Their header fields go before those of clients.
func (r *Run) configured(s *server) bool {
	for _, c := range r.tools.config.Servers {
		if c.Label == s.tool.Label && (s.tool.URL == "" || s.tool.URL == c.URL) {
			s.url, s.header = c.URL, headers(c.Headers)
			return true
		}
	}
	return false
}

// rewrite says the request anew.
func (r *Run) rewrite(ctx context.Context, req *llm.Request) error {
	r.relearn(req.Items)
	tools := make([]llm.Tool, 0, len(req.Tools)+16)
	others := false
	for i := range req.Tools {
		tool := &req.Tools[i]
		switch {
		case tool.Server == nil:
			tools = append(tools, *tool)
		case tool.Server.MCP != nil && r.servers[tool.Server.MCP.Label] != nil:
			tools = r.offer(ctx, tools, tool, r.servers[tool.Server.MCP.Label])
		case r.standIns[tool.Server.Kind] != nil && r.standIns[tool.Server.Kind].tool == tool.Server:
			tools = append(tools, r.standing(req, tool))
		case r.standIns[tool.Server.Kind] != nil: // said twice
		default:
			others = true
			tools = append(tools, *tool)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if limit, err := strconv.Atoi(string(req.Limits.MaxToolCalls)); err == nil {
		r.Host.Calls = min(max(limit, 0), r.Host.Calls)
		if !others { // else the upstream counts as well
			req.Limits.MaxToolCalls = nil
		}
	}
	req.Tools = tools
	if err := r.choose(&req.ToolChoice, tools); err != nil {
		return err
	}
	return r.remember(ctx, req)
}

// relearn takes the tools of servers from earlier turns: a server is asked
// once in a conversation, and its tools are told to the model in the same
// words.
func (r *Run) relearn(items []llm.Item) {
	for _, item := range items {
		step := stepOf(item)
		if step == nil || step.Kind != llm.MCPListed || step.Error != nil {
			continue
		}
		if s := r.servers[step.Label]; s != nil {
			s.listed = step.Tools
			s.learn(readTools(step.Tools))
		}
	}
}

// space is the namespace of a server's tools: their names at the upstream
// begin with it.
func space(label string) string { return "mcp__" + label }

// offer adds the tools of a server, in its order.
func (r *Run) offer(ctx context.Context, tools []llm.Tool, asked *llm.Tool, s *server) []llm.Tool {
	if s.known == nil {
		step := &llm.MCPStep{Kind: llm.MCPListed, Label: s.tool.Label}
		if err := s.list(ctx); err != nil {
			step.Error = llm.Quote(s.fault(ctx, err))
		}
		step.Tools = s.listed
		r.Host.Told = append(r.Host.Told, &llm.ServerCall{Kind: llm.MCP, Failed: step.Error != nil, MCP: step})
	}
	for _, k := range readTools(s.listed) {
		if !s.offers(k) {
			continue
		}
		name := llm.ToolName{Namespace: space(s.tool.Label), Name: k.name}
		if r.Host.Tools[name] != nil {
			continue
		}
		hosted := &dialect.HostedTool{Kind: llm.MCP, Label: s.tool.Label, Name: k.name, Asks: s.asks(k)}
		r.Host.Tools[name], r.own[hosted] = hosted, s
		tools = append(tools, llm.Tool{Index: asked.Index, Name: name.Name, Namespace: name.Namespace, Desc: llm.Quote(k.desc), Schema: k.schema})
	}
	return tools
}

// offers reports whether the client lets the model call a tool.
func (s *server) offers(k *known) bool {
	return k != nil && (s.tool.Allowed == nil || s.tool.Allowed.Fits(k.name, k.readOnly))
}

// asks reports whether a call needs the client's consent, which it does unless
// the client has said otherwise.
func (s *server) asks(k *known) bool {
	return s.tool.Always.Fits(k.name, k.readOnly) || !s.tool.Never.Fits(k.name, k.readOnly)
}

// choose says a choice of tools that are run here as one of functions.
func (r *Run) choose(c *llm.ToolChoice, tools []llm.Tool) error {
	r.Host.After = llm.ToolChoice{Mode: llm.ChoiceAuto}
	switch {
	case c.Allowed:
		r.allow(c, tools)
		return nil
	case !c.Hosted:
		return nil
	}
	names := r.named(llm.ServedTool{Kind: c.Server, Label: c.Label, Name: c.Tool}, tools)
	switch {
	case len(names) == 1:
		*c = llm.ToolChoice{Mode: llm.ChoiceNamed, Names: names}
	case len(names) > 1:
		*c = llm.ToolChoice{Mode: llm.ChoiceRequired, Allowed: true, Names: names}
	case c.Server == llm.MCP:
		return llm.InvalidParam("invalid_value", "tool_choice", "There is no such tool as 'tool_choice' names among 'tools', or its server is away.")
	}
	return nil
}

// allow says which of the tools that are run here may be called. The others are
// not run, whatever the upstream makes of the choice.
func (r *Run) allow(c *llm.ToolChoice, tools []llm.Tool) {
	var others []llm.ServedTool
	for _, served := range c.Served {
		names := r.named(served, tools)
		if len(names) == 0 {
			others = append(others, served)
		}
		c.Names = append(c.Names, names...)
	}
	c.Served = others
	for name, hosted := range r.Host.Tools {
		hosted.Barred = !slices.Contains(c.Names, name)
	}
	r.Host.After = *c
	r.Host.After.Mode = llm.ChoiceAuto
}

// named are the functions that stand for a tool as a client names it.
func (r *Run) named(served llm.ServedTool, tools []llm.Tool) (names []llm.ToolName) {
	for i := range tools {
		name := llm.ToolName{Namespace: tools[i].Namespace, Name: tools[i].Name}
		hosted := r.Host.Tools[name]
		switch {
		case tools[i].Server != nil || hosted == nil || hosted.Kind != served.Kind:
		case served.Kind == llm.MCP && (hosted.Label != served.Label || served.Name != "" && served.Name != hosted.Name):
		default:
			names = append(names, name)
		}
	}
	return names
}

// Do runs a call.
func (r *Run) Do(ctx context.Context, call *dialect.HostedCall) *dialect.HostedResult {
	if s := r.standIns[call.Tool.Kind]; s != nil {
		return s.run(ctx, call)
	}
	text, failed := r.own[call.Tool].call(ctx, call.Tool.Name, call.Args)
	return called(call, text, failed)
}

// Skipped is what comes of a call that is not run, and why.
func Skipped(call *dialect.HostedCall, why string) *dialect.HostedResult {
	if call.Tool.Kind == llm.MCP {
		return called(call, why, true)
	}
	return failed(asked(call), why)
}

// called is what came of a call of a server's tool.
func called(call *dialect.HostedCall, text string, failed bool) *dialect.HostedResult {
	said := llm.Quote(text)
	step := &llm.MCPStep{Label: call.Tool.Label, Name: call.Tool.Name, Args: call.Args}
	if failed {
		step.Error = said
	} else {
		step.Output = said
	}
	return &dialect.HostedResult{Call: &llm.ServerCall{Kind: llm.MCP, Failed: failed, MCP: step}, Text: said, Failed: failed}
}
