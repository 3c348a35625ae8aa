package gateway

import (
	"errors"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/state"
)

// recall opens the turn of a call that stands on others, and returns the
// request as one that stands for itself, or as it is where its upstream knows
// what came before. It takes over body.
func (g *Gateway) recall(c *Call, body *[]byte) (*[]byte, error) {
	context := c.Request.Context
	if context == nil {
		return body, nil
	}
	if c.Key.NoStore {
		if err := c.keepNothing(context); err != nil {
			buffer.Put(body)
			return nil, err
		}
	}
	kept, err := g.keptThere(c, *body)
	if err != nil {
		buffer.Put(body)
		return nil, err
	}
	if kept {
		return body, nil
	}
	turn, err := g.state.Open(c.ctx, c.Key.ID, c.id(), context, c.session)
	if past, ok := errors.AsType[*state.Elsewhere](err); ok {
		err = g.goOnThere(c, past, *body)
	}
	if err != nil {
		buffer.Put(body)
		return nil, err
	}
	if turn == nil {
		return body, nil
	}
	defer buffer.Put(body)
	c.turn = turn
	input, size := turn.Input()
	if limit := int(c.set.MaxBody); size > limit {
		return nil, llm.Errorf(llm.TooLarge, "With what it goes on from, the request is larger than the %d bytes that are allowed. Begin a new conversation, or compact this one.", limit)
	}
	if err := g.reserve(c, int64(len(*body)+size)); err != nil {
		return nil, err
	}
	whole := buffer.Get(len(*body) + size + len(`"include":["reasoning.encrypted_content"],"store":false,"input":[],`))
	*whole = c.stateful().Standalone(*whole, *body, &c.Request, input)
	if err := c.Dialect.Inspect(*whole, &c.Request); err != nil {
		buffer.Put(whole)
		return nil, err
	}
	c.Request.Told = turn.Told()
	return whole, nil
}

// keepNothing makes a request one of which nothing is kept, here or upstream,
// as its key has it.
func (c *Call) keepNothing(context *dialect.Context) error {
	switch {
	case context.Background:
		return llm.InvalidParam("unsupported_parameter", "background", "Nothing is kept for this key, so there would be nothing to read later: leave 'background' out.")
	case context.Conversation != "":
		return llm.InvalidParam("unsupported_parameter", "conversation", "Nothing is kept for this key: leave 'conversation' out and send the whole history in 'input'.")
	case context.Store && context.StoreSaid:
		c.notes.Drop("store")
	}
	context.Itemized = context.Itemized || context.Store // said anew, so that the upstream keeps nothing either
	context.Store = false
	return nil
}

// stateful is the dialect of a call that has a turn.
func (c *Call) stateful() dialect.Stateful { return c.Dialect.(dialect.Stateful) }

// commit keeps the turn of a call that is about to end well, with what the
// client will be told last, a body or the frames of a stream: only then may it
// be told.
func (c *Call) commit(told []byte, stream bool) error {
	if c.turn == nil && c.there == nil {
		return nil
	}
	response := c.stateful().Final(told, stream)
	if response == nil {
		return llm.Errorf(llm.UpstreamInvalid, "The upstream's answer has no response that could be stored.")
	}
	if c.there != nil {
		return c.there.commit(c, response)
	}
	return c.turn.Commit(c.ctx, response)
}
