package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/state"
)

// Below these paths are the responses and conversations that are kept.
const (
	responsesPath     = "/v1/responses/"
	conversationsPath = "/v1/conversations/"
)

// object is one operation on something that is kept: what it does with the IDs
// in its path and the request's body.
type object struct {
	method string
	path   string // below its collection; * stands for an ID
	do     func(ctx context.Context, x *exchange, ids []string, body []byte) ([]byte, error)
}

// responseObjects are the operations on responses.
func (g *Gateway) responseObjects() []object {
	s := g.state
	return []object{
		{http.MethodGet, "*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return s.Response(ctx, x.key.ID, ids[0])
		}},
		{http.MethodDelete, "*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return deleted(ids[0], "response", s.DeleteResponse(ctx, x.key.ID, ids[0]))
		}},
		{http.MethodPost, "*/cancel", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return s.Cancel(ctx, x.key.ID, ids[0])
		}},
		{http.MethodGet, "*/input_items", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			page, err := pageOf(x.r)
			if err != nil {
				return nil, err
			}
			return s.InputItems(ctx, x.key.ID, ids[0], page)
		}},
	}
}

// conversationObjects are the operations on conversations.
func (g *Gateway) conversationObjects() []object {
	s := g.state
	return []object{
		{http.MethodPost, "", func(ctx context.Context, x *exchange, _ []string, body []byte) ([]byte, error) {
			if x.key.NoStore {
				return nil, llm.Errorf(llm.Forbidden, "Nothing is kept for this key: send the whole history in 'input' of each request.")
			}
			return s.CreateConversation(ctx, x.key.ID, x.unique(), body)
		}},
		{http.MethodGet, "*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return s.Conversation(ctx, x.key.ID, ids[0])
		}},
		{http.MethodPost, "*", func(ctx context.Context, x *exchange, ids []string, body []byte) ([]byte, error) {
			return s.UpdateConversation(ctx, x.key.ID, ids[0], body)
		}},
		{http.MethodDelete, "*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return deleted(ids[0], "conversation.deleted", s.DeleteConversation(ctx, x.key.ID, ids[0]))
		}},
		{http.MethodGet, "*/items", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			page, err := pageOf(x.r)
			if err != nil {
				return nil, err
			}
			return s.ConversationItems(ctx, x.key.ID, ids[0], page)
		}},
		{http.MethodPost, "*/items", func(ctx context.Context, x *exchange, ids []string, body []byte) ([]byte, error) {
			return s.AddItems(ctx, x.key.ID, ids[0], x.unique(), body)
		}},
		{http.MethodGet, "*/items/*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return s.Item(ctx, x.key.ID, ids[0], ids[1])
		}},
		{http.MethodDelete, "*/items/*", func(ctx context.Context, x *exchange, ids []string, _ []byte) ([]byte, error) {
			return s.DeleteItem(ctx, x.key.ID, ids[0], ids[1])
		}},
	}
}

// stored serves the operations on the objects of a collection.
func (g *Gateway) stored(collection string, objects []object, d Door) func(*exchange) {
	return func(x *exchange) {
		path := cleanPath(x.r.URL.Path)
		below, _ := strings.CutPrefix(path+"/", collection)
		parts := strings.Split(strings.TrimSuffix(below, "/"), "/")
		var methods []string
		for _, o := range objects {
			ids, ok := match(o.path, parts)
			if !ok {
				continue
			}
			if o.method == x.r.Method {
				g.serveObject(x, d, collection, o, ids)
				return
			}
			methods = append(methods, o.method)
		}
		if methods == nil || g.serves("/v1/"+below) { // an operation's path, added to that of another
			g.refuse(x, g.unknownURL(x, path))
			return
		}
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		x.w.Header()["Allow"] = []string{allow}
		g.refuse(x, llm.Errorf(llm.BadMethod, "%s takes %s, not %s.", path, allow, x.r.Method))
	}
}

// match returns the parts of a path that stand where a pattern has a star.
func match(pattern string, parts []string) (ids []string, ok bool) {
	want := strings.Split(pattern, "/")
	if len(want) != len(parts) {
		return nil, false
	}
	for i, w := range want {
		switch {
		case w == "*" && parts[i] != "":
			ids = append(ids, parts[i])
		case w != parts[i]:
			return nil, false
		}
	}
	return ids, true
}

// serveObject does one operation. It is no call of a model, and is not
// recorded as one.
func (g *Gateway) serveObject(x *exchange, d Door, collection string, o object, ids []string) {
	c := g.begin(x, d)
	defer c.end()
	lent, err := g.readBody(c, x.r)
	if err != nil {
		g.refuseObject(x, c, err)
		return
	}
	body := bytes.Clone(*lent) // what is kept of it outlives the buffer
	buffer.Put(lent)
	if collection == responsesPath && o.method == http.MethodGet && o.path == "*" && wantsEvents(x.r, body) {
		g.resume(x, c, ids[0])
		return
	}
	answer, err := o.do(c.ctx, x, ids, body)
	if kept, ok := errors.AsType[*state.Elsewhere](err); ok {
		g.objectThere(x, c, kept, o.path[1:], false)
		return
	}
	if err != nil {
		g.refuseObject(x, c, err)
		return
	}
	c.answer.writeJSON(http.StatusOK, answer)
}

// wantsEvents reports whether a response is asked for as a stream. OpenAI's SDK
// for Go says so in a body, though the request is a GET.
func wantsEvents(r *http.Request, body []byte) bool {
	return r.URL.Query().Get("stream") == "true" || string(dialect.Member(body, "stream")) == "true"
}

// refuseObject tells of a failure of an operation that is no call of a model.
func (g *Gateway) refuseObject(x *exchange, c *Call, err error) {
	e := llm.AsError(err)
	c.answer.refuse(e)
	g.logRefusal(x, e)
}

// unique is the exchange's own part of its request ID.
func (x *exchange) unique() string { return x.requestID[len(requestIDPrefix):] }

// deleted is the answer that an object is gone.
func deleted(id, kind string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("id", id)
	w.SetText("object", kind)
	w.SetBool("deleted", true)
	w.EndObject()
	return w.Bytes(), nil
}

// The number of elements on a page.
const (
	usualPage  = 20
	largestOne = 100
)

// pageOf reads what part of a list is asked for.
func pageOf(r *http.Request) (state.Page, error) {
	q := r.URL.Query()
	p := state.Page{After: q.Get("after"), Limit: usualPage}
	switch order := q.Get("order"); order {
	case "", "desc":
	case "asc":
		p.Ascending = true
	default:
		return p, llm.InvalidParam("invalid_value", "order", "Invalid 'order': use asc or desc.")
	}
	if limit := q.Get("limit"); limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > largestOne {
			return p, llm.InvalidParam("invalid_value", "limit", "Invalid 'limit': use a number from 1 to %d.", largestOne)
		}
		p.Limit = n
	}
	return p, nil
}
