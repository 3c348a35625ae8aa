package tools

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// server is a server of tools within one call of the gateway: there is one
// session with it, from when it is needed to the end of the call.
type server struct {
	tools  *Tools
	tool   *llm.MCPServer
	url    string
	header http.Header
	public bool

	client  *client
	session *mcp.ClientSession
	known   map[string]*known // its tools, once they are listed
	listed  llm.Raw           // as the client is told
}

// known is a tool of a server.
type known struct {
	name     string
	desc     string
	schema   llm.Raw
	readOnly bool
	hints    llm.Raw // its annotations, as the client is told
}

// connect begins the session.
func (s *server) connect(ctx context.Context) (*mcp.ClientSession, error) {
	if s.session != nil {
		return s.session, nil
	}
	s.client = s.tools.client(s.header, s.public)
	c := mcp.NewClient(&mcp.Implementation{Name: "limen", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &s.client.Client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: 2 * maxResult,
	}, nil)
	if err != nil {
		s.client.close()
		return nil, err
	}
	s.session = session
	return session, nil
}

// close ends the session.
func (s *server) close() {
	if s.session != nil {
		s.session.Close()
		s.client.close()
		s.session = nil
	}
}

// Bounds of what a server may list.
const (
	maxTools = 512
	maxPages = 64
)

var errManyTools = errors.New("the server lists more than 512 tools")

// list asks the server for its tools.
func (s *server) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.tools.config.Timeout)
	defer cancel()
	session, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all []*known
	cursor := ""
	for range maxPages {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, t := range page.Tools {
			one, err := toolOf(t)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		if len(all) > maxTools {
			return errManyTools
		}
		if cursor = page.NextCursor; cursor == "" {
			s.listed = writeTools(all)
			s.learn(all)
			return nil
		}
	}
	return errManyTools
}

func (s *server) learn(all []*known) {
	s.known = make(map[string]*known, len(all))
	for _, k := range all {
		s.known[k.name] = k
	}
}

func toolOf(t *mcp.Tool) (*known, error) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	if jsonedit.KindOf(schema) != jsonedit.KindObject {
		schema = []byte(`{"type":"object","properties":{}}`)
	}
	k := &known{name: t.Name, desc: t.Description, schema: schema, hints: llm.Raw("null")}
	if t.Annotations != nil {
		k.readOnly = t.Annotations.ReadOnlyHint
		if k.hints, err = json.Marshal(t.Annotations); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// writeTools is the list as the client is told.
func writeTools(all []*known) llm.Raw {
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	for _, k := range all {
		w.BeginObject()
		w.SetText("name", k.name)
		w.SetText("description", k.desc)
		w.SetRaw("input_schema", k.schema)
		w.SetRaw("annotations", k.hints)
		w.EndObject()
	}
	w.EndArray()
	return w.Bytes()
}

// readTools reads such a list.
func readTools(list llm.Raw) (all []*known) {
	for v := range jsonedit.Elements(list) {
		get := func(name string) llm.Raw { value, _ := jsonedit.Get(v, name); return value }
		k := &known{name: get("name").Text(), desc: get("description").Text(), schema: get("input_schema")}
		flag, _ := jsonedit.Get(v, "annotations", "readOnlyHint")
		k.readOnly = string(flag) == "true"
		if k.name != "" && k.schema.Kind() == jsonedit.KindObject {
			all = append(all, k)
		}
	}
	return all
}

// call calls a tool. failed says that the text tells of a failure.
func (s *server) call(ctx context.Context, name string, args llm.Raw) (text string, failed bool) {
	object, ok := args.Object()
	if !ok {
		return "The arguments are no JSON object.", true
	}
	result, text := s.use(ctx, name, object)
	return text, result == nil || result.IsError
}

// use calls a tool and returns what it gave, and that as a text. Without a
// result the text is why.
func (s *server) use(ctx context.Context, name string, args llm.Raw) (*mcp.CallToolResult, string) {
	ctx, cancel := context.WithTimeout(ctx, s.tools.config.Timeout)
	defer cancel()
	session, err := s.connect(ctx)
	if err != nil {
		return nil, s.fault(ctx, err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		why := s.fault(ctx, err)
		if refusal(err) == nil {
			s.close() // the next call begins anew
		}
		return nil, why
	}
	text := textOf(result)
	if len(text) > maxResult {
		return nil, errTooMuch.Error()
	}
	return result, text
}

// textOf is what a tool gave as the model is told.
func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				parts = append(parts, c.Resource.Text)
			} else if c.Resource != nil {
				parts = append(parts, "["+c.Resource.MIMEType+" at "+c.Resource.URI+"]")
			}
		case *mcp.ResourceLink:
			parts = append(parts, c.URI)
		case *mcp.ImageContent:
			parts = append(parts, "["+c.MIMEType+"]")
		case *mcp.AudioContent:
			parts = append(parts, "["+c.MIMEType+"]")
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if whole, err := json.Marshal(r.StructuredContent); err == nil {
			return string(whole)
		}
	}
	return strings.Join(parts, "\n")
}

// maxFault bounds what is told of a failure.
const maxFault = 500

// fault is a failure in words for the client and the model: without what the
// operator keeps to itself.
func (s *server) fault(ctx context.Context, err error) string {
	if rule := s.client.rule(); rule != nil {
		return rule.Error()
	}
	said := refusal(err)
	switch {
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return "The server did not answer in time."
	case said != nil:
		return clip(said.Message)
	case errors.Is(err, errManyTools):
		return err.Error()
	}
	return "The server could not be reached, or gave no answer."
}

// refusal is what the server said of a request that it did not serve; nil when
// it said nothing. Errors of the way to it have codes as well.
func refusal(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code <= codeUnknown && e.Code >= codeRejected {
		return nil
	}
	return e
}

// Codes that stand for no answer of the server, from one to the other.
const (
	codeUnknown  = -32001
	codeRejected = -32005
)

func clip(text string) string {
	if len(text) > maxFault {
		text = strings.ToValidUTF8(text[:maxFault], "")
	}
	return text
}
