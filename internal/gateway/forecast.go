package gateway

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
)

// Inquiry is a call that is not to be made.
type Inquiry struct {
	Key       *keys.Key // nil: an operator, who sees all models
	Model     string    // in place of the body's, if there is one
	Operation string    // empty: what the body looks like
	Header    http.Header
	Body      []byte // empty: a short greeting
}

// Forecast tells which targets a call would go to, and what the request would
// be there. Nothing is sent, run, kept or recorded.
func (g *Gateway) Forecast(ctx context.Context, in *Inquiry) (*route.Forecast, error) {
	d, body, err := g.asIfSent(in)
	if err != nil {
		return nil, err
	}
	now, key := time.Now(), in.Key
	if key == nil {
		key = &keys.Key{}
	}
	r := (&http.Request{Header: in.Header}).WithContext(ctx)
	set := *g.settings.Load()
	c := g.begin(&exchange{
		w: nowhere{}, r: r, requestID: newRequestID(now), started: now, set: &set, operation: operations[d.Name()], failures: d, key: key,
	}, d)
	defer c.end()
	if err := mayUse(key, c.Operation); err != nil {
		return nil, err
	}
	if err := g.understand(c, in, &body); err != nil {
		return nil, err
	}
	defer func() { buffer.Put(body) }()
	first, err := g.first(c)
	if err != nil {
		return nil, err
	}
	g.inquire(c, in.Header)
	if first.summed() {
		summary, err := c.summarize(*body)
		if err != nil {
			return nil, err
		}
		buffer.Put(body)
		body = summary
	}
	hosts := c.hosts(*body)
	if !hosts {
		set.Tools = nil // nobody asks for any
	}
	return g.router.Forecast(c.model, &c.query, now, func(o *route.Outlook) *llm.Error {
		return g.foresee(c, o, in.Header, *body, hosts)
	}), nil
}

// asIfSent is the door that an inquiry would come in by, and what it would
// bring.
func (g *Gateway) asIfSent(in *Inquiry) (Door, *[]byte, error) {
	operation := in.Operation
	if operation == "" {
		operation = keys.OpChat
		if dialect.Member(in.Body, "input") != nil {
			operation = keys.OpResponses
		}
	}
	i := slices.IndexFunc(g.doors, func(d Door) bool { return operations[d.Name()] == operation })
	if i < 0 {
		return nil, nil, llm.InvalidParam("invalid_value", "operation", "The operation is chat, responses or messages, not %q.", clip(operation))
	}
	text := in.Body
	if len(text) == 0 {
		text = []byte(greetings[g.doors[i].Name()])
	}
	if _, named := jsonedit.Get(text, "model"); !named && jsonedit.KindOf(text) == jsonedit.KindObject {
		text = withModel(text, in.Model)
	}
	body := buffer.Get(len(text))
	*body = append(*body, text...)
	return g.doors[i], body, nil
}

// greetings are what is asked when nothing else is said.
var greetings = map[dialect.Name]string{
	dialect.OpenAIChat:      `{"messages":[{"role":"user","content":"Hello"}]}`,
	dialect.OpenAIResponses: `{"input":"Hello","store":false}`,
	dialect.Anthropic:       `{"max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}`,
}

// withModel puts a model into an object that has none.
func withModel(object []byte, model string) []byte {
	rest := bytes.TrimLeft(object, " \t\r\n")[1:]
	out := jsonedit.AppendQuote([]byte(`{"model":`), model)
	if !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// understand does what serve does before it knows who can serve. The body is
// another afterwards.
func (g *Gateway) understand(c *Call, in *Inquiry, body **[]byte) error {
	c.BytesIn = int64(len(**body))
	if err := c.Dialect.Inspect(**body, &c.Request); err != nil {
		return err
	}
	c.Request.Model = in.Model
	c.compaction = c.compactionOf(**body)
	g.models.Await()
	var viewer route.Viewer // an operator
	if in.Key != nil {
		viewer = in.Key
	}
	var err error
	if c.model, err = g.models.Table().Resolve(viewer, in.Model); err != nil {
		return err
	}
	if c.Request.Context != nil && c.Request.Context.Conversation != "" { // it would be taken for a turn
		return llm.InvalidParam("unsupported_parameter", "conversation", "What is not sent takes no part in a conversation: leave 'conversation' out, or go on from its last response with 'previous_response_id'.")
	}
	*body, err = g.recall(c, *body)
	c.Request.Model = in.Model
	return err
}

// foresee says the request to a target, and notes what it would be there.
func (g *Gateway) foresee(c *Call, o *route.Outlook, header http.Header, body []byte, hosts bool) *llm.Error {
	w, _ := g.wayTo(c, o.Target)
	a := c.preview(o.Target, w)
	defer a.close()
	own := buffer.Get(len(body))
	*own = append(*own, body...)
	shared := c.share(own)
	defer shared.release()
	if g.anew(a, *own) && hosts {
		o.Says = g.speaks(a)
		o.Unsaid = "Not said: the gateway may have to run tools for it, which are not asked now."
		return nil
	}
	out, err := g.prepare(a, header, shared)
	o.Says, o.Notes = g.speaks(a), a.notes
	if err != nil {
		return llm.AsError(err)
	}
	out.body.Done()
	return nil
}

// speaks is the dialect in which the attempt's request is said.
func (g *Gateway) speaks(a *attempt) dialect.Name {
	for name, out := range g.outbound {
		if out == a.way.outbound {
			return name
		}
	}
	return a.Dialect.Name()
}

// nowhere is where the answer to a call goes that is not made.
type nowhere struct{}

func (nowhere) Header() http.Header             { return http.Header{} }
func (nowhere) WriteHeader(int)                 {}
func (nowhere) Write(p []byte) (n int, _ error) { return len(p), nil }
