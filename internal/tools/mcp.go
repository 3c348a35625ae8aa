package tools

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/mcp"
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
	session *mcp.Session
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
func (s *server) connect(ctx context.Context) (*mcp.Session, error) {
	if s.session != nil {
		return s.session, nil
	}
	s.client = s.tools.client(s.header, s.public)
	session, err := mcp.Open(ctx, &s.client.Client, s.url)
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
		page, err := session.Tools(ctx, cursor)
		if err != nil {
			return err
		}
		for i := range page.Tools {
			all = append(all, toolOf(&page.Tools[i]))
		}
		if len(all) > maxTools {
			return errManyTools
		}
		if cursor = page.Next; cursor == "" {
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

func toolOf(t *mcp.Tool) *known {
	k := &known{name: t.Name, desc: t.Description, schema: jsonedit.Compact(nil, t.Schema), hints: llm.Raw("null")}
	if k.schema.Kind() != jsonedit.KindObject {
		k.schema = llm.Raw(`{"type":"object","properties":{}}`)
	}
	if hints := llm.Raw(t.Annotations); hints.Kind() == jsonedit.KindObject {
		k.hints = jsonedit.Compact(nil, hints)
		flag, _ := jsonedit.Get(hints, "readOnlyHint")
		k.readOnly = string(flag) == "true"
	}
	return k
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
	return text, result == nil || result.Failed
}

// use calls a tool and returns what it gave, and that as a text. Without a
// result the text is why.
func (s *server) use(ctx context.Context, name string, args llm.Raw) (*mcp.Result, string) {
	ctx, cancel := context.WithTimeout(ctx, s.tools.config.Timeout)
	defer cancel()
	session, err := s.connect(ctx)
	if err != nil {
		return nil, s.fault(ctx, err)
	}
	var schema llm.Raw
	if k := s.known[name]; k != nil {
		schema = k.schema
	}
	result, err := session.Call(ctx, name, args, schema)
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
func textOf(r *mcp.Result) string {
	var parts []string
	for _, c := range r.Content {
		switch {
		case c.Type == "text":
			parts = append(parts, c.Text)
		case c.Type == "resource" && c.Resource != nil && c.Resource.Text != "":
			parts = append(parts, c.Resource.Text)
		case c.Type == "resource" && c.Resource != nil:
			parts = append(parts, "["+c.Resource.MIME+" at "+c.Resource.URI+"]")
		case c.Type == "resource_link":
			parts = append(parts, c.URI)
		case c.Type == "image", c.Type == "audio":
			parts = append(parts, "["+c.MIME+"]")
		}
	}
	if len(parts) == 0 && llm.Raw(r.Structured).Given() {
		return string(jsonedit.Compact(nil, r.Structured))
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
// it said nothing.
func refusal(err error) *mcp.Error {
	var e *mcp.Error
	if !errors.As(err, &e) {
		return nil
	}
	return e
}

func clip(text string) string {
	if len(text) > maxFault {
		text = strings.ToValidUTF8(text[:maxFault], "")
	}
	return text
}
