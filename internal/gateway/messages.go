package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/upstream"
)

// anthropicModel is a model as clients of Anthropic's API list it.
type anthropicModel struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens int    `json:"max_input_tokens,omitempty"`
	MaxTokens      int    `json:"max_tokens,omitempty"`
}

var anthropicForm = modelsForm{"anthropic", listAnthropic, func(m *route.Model) []byte { return document(newAnthropicModel(m)) }}

func newAnthropicModel(m *route.Model) anthropicModel {
	o := newModelObject(m)
	name := o.Name
	if name == "" {
		name = o.ID
	}
	return anthropicModel{
		Type: "model", ID: o.ID, DisplayName: name, CreatedAt: time.Unix(o.Created, 0).UTC().Format(time.RFC3339),
		MaxInputTokens: o.ContextLength, MaxTokens: o.MaxOutputTokens,
	}
}

func listAnthropic(models []*route.Model) []byte {
	page := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{Data: []anthropicModel{}}
	for _, m := range models {
		page.Data = append(page.Data, newAnthropicModel(m))
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	return document(page)
}

// estimateHeader marks a count that the gateway made itself.
const estimateHeader = "X-Limen-Estimate"

// countTokens answers how many tokens a Messages request has: the upstream's
// own count where it counts for that dialect, else an estimate of the request
// as the upstream would get it, so that tools and instructions are in it. It
// is no call of a model, and is not recorded as one.
func (g *Gateway) countTokens(x *exchange, d Door) {
	c := g.begin(x, d)
	defer c.end()
	tokens, err := g.count(c, x.r)
	if err != nil {
		g.refuseObject(x, c, err)
		return
	}
	c.answer.writeJSON(http.StatusOK, append(strconv.AppendInt([]byte(`{"input_tokens":`), tokens, 10), '}'))
}

func (g *Gateway) count(c *Call, r *http.Request) (int64, error) {
	body, err := c.readBody(r)
	if err != nil {
		return 0, err
	}
	defer buffer.Put(body)
	c.Request.Counting = true
	if err := c.Dialect.Inspect(*body, &c.Request); err != nil {
		return 0, mediaError(r, err)
	}
	model, err := g.resolve(c)
	if err != nil {
		return 0, err
	}
	if c.Target, c.way, err = g.choose(c, model); err != nil {
		return 0, err
	}
	size := int64(len(*body))
	if c.way.outbound != nil {
		req, err := c.Dialect.Decode(*body, g.seal)
		if err != nil {
			return 0, err
		}
		call, err := c.way.outbound.Encode(req, c.way.caps)
		if err != nil {
			return 0, err
		}
		size = int64(len(call.Body))
	} else if tokens, err := g.countThere(c, r.Header, *body); err == nil {
		return tokens, nil
	}
	c.answer.header(estimateHeader, "true")
	return llm.Estimate(size, 0).Input, nil
}

// countThere asks an upstream of the client's own dialect.
func (g *Gateway) countThere(c *Call, header http.Header, body []byte) (int64, error) {
	c.answer.enter(waiting)
	segments, size := c.Dialect.Forward(nil, body, &c.Request, dialect.Upstream{Model: c.Target.Model})
	out := outgoing{body: upstream.NewBody(segments, size, func() {})}
	out.add(c.Dialect.Passed(header.Get))
	resp, err := c.Target.Upstream.Post(c.ctx, c.Dialect.Path()+countPath, out.body, false, out.header)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := readAll(resp.Body, resp.ContentLength, maxErrorBody, func(int) {})
	if err != nil {
		return 0, err
	}
	defer buffer.Put(answer)
	if resp.StatusCode != http.StatusOK {
		return 0, c.failed(resp.StatusCode, *answer, 0)
	}
	tokens, err := strconv.ParseInt(string(dialect.Member(*answer, "input_tokens")), 10, 64)
	if err != nil {
		return 0, dialect.NotAnAnswer(err)
	}
	return tokens, nil
}

// countPath is where tokens are counted, below an operation.
const countPath = "/count_tokens"
