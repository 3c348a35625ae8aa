package dialect

import (
	"slices"

	"github.com/limen-gateway/limen/internal/llm"
)

// carry knows what was said of an answer, so that another upstream can go on
// with it when the one that answers breaks off.
type carry struct {
	req     *llm.Request
	said    []byte // the inside of a JSON string: the texts of the messages
	open    int    // the client's item that is open; -1 for none
	kind    llm.ItemKind
	next    int  // number of the client's next item
	closed  bool // there was something that nobody else can go on with
	resumed bool
	usage   llm.Usage // of those that broke off

	// Of the answer that goes on:
	items map[int]int // the client's numbers by the upstream's; -1 is not told
}

// notTold is an item that has no place within what is told.
const notTold = -1

// Carry has what is said remembered, so that Continue is possible.
func (t *Translation) Carry(req *llm.Request) { t.carry = &carry{req: req, open: -1} }

// see takes note of an event that the client is told.
func (c *carry) see(e llm.Event) {
	switch e := e.(type) {
	case llm.Open:
		c.open, c.kind, c.next = e.Item, e.Kind, e.Item+1
		c.closed = c.closed || e.Choice > 0 || e.Kind == llm.CallItem || e.Kind == llm.ServerItem
	case llm.Delta:
		if e.Channel == llm.TextChannel && len(e.Data) > 1 {
			c.said = append(c.said, e.Data[1:len(e.Data)-1]...)
		}
		c.closed = c.closed || c.kind == llm.MessageItem && e.Channel != llm.TextChannel
	case llm.Picture, llm.Annotate, llm.Logprobs, llm.Finish:
		c.closed = true
	case llm.Close:
		c.open = -1
	}
}

// event returns what the client is told of an event of the answer that goes on.
func (c *carry) event(e llm.Event) (told llm.Event, ok bool) {
	switch e := e.(type) {
	case llm.Start:
		return nil, false
	case llm.Open:
		switch {
		case c.open >= 0 && e.Kind == llm.MessageItem:
			c.items[e.Item] = c.open // the text goes on in the item that it is in
			return nil, false
		case c.open >= 0:
			c.items[e.Item] = notTold // nothing stands within a text
			return nil, false
		}
		c.items[e.Item] = c.next
		e.Item = c.next
		return e, true
	case llm.Used:
		e.Usage = e.Usage.Plus(c.usage)
		return e, true
	}
	at := itemOf(e)
	if at < 0 {
		return e, true
	}
	item := c.items[at]
	return moved(e, item), item != notTold
}

// Continues reports whether another upstream could go on with what was said so
// far: only texts and thoughts, and no call of a tool.
func (t *Translation) Continues() bool {
	return t.carry != nil && !t.carry.closed && !t.ended && t.loop == nil
}

// goOn is what the model is told behind what was said.
var goOn = llm.Quote("Your answer broke off. Go on exactly where it ends: repeat nothing of it, and say nothing about this.")

// Continue returns the call that has another upstream go on with an answer that
// broke off. What then comes is told as the rest of the same answer; dst gets
// what is told in between, and noted what cannot be said. Its error is that the
// upstream cannot take the request.
func (t *Translation) Continue(dst []byte, out Outbound, caps *llm.Caps, noted func(llm.Notes)) (*Call, []byte, error) {
	c := t.carry
	req := *c.req
	if len(c.said) > 0 {
		turn := len(req.Items)
		if turn > 0 {
			turn = max(turn, req.Items[turn-1].Turn()+1)
		}
		text := slices.Concat([]byte{'"'}, c.said, []byte{'"'})
		req.Items = append(req.Items[:len(req.Items):len(req.Items)], message(llm.Assistant, turn, text), message(llm.User, turn+1, goOn))
	}
	call, err := out.Encode(&req, caps)
	if err != nil {
		return nil, dst, err
	}
	if c.open >= 0 && c.kind == llm.ReasoningItem {
		dst = t.put(dst, llm.Close{Item: c.open})
	}
	c.usage = t.Usage(int64(len(t.Call.Body)))
	c.usage.Output, c.usage.Estimated = max(c.usage.Output, llm.Estimate(0, t.seen).Output), true // its last count may not have come
	c.resumed, c.items = true, map[int]int{}
	t.outbound, t.caps, t.Call, t.known, t.seen = out, caps, call, false, 0
	t.decoder, t.restore = out.Answers(call, caps), NewRestore(call.Names)
	t.ask.Vendor, t.ask.Origin, t.ask.Noted = caps.Vendor, caps.Origin, noted
	t.ask.Note(llm.Notes{"assume:continuation"})
	t.ask.Note(call.Notes)
	return call, dst, nil
}

func message(role llm.Role, turn int, text llm.Raw) *llm.Message {
	pos := llm.Pos{Item: turn, Part: -1}
	return &llm.Message{Pos: pos, Role: role, Parts: []llm.Part{&llm.Text{Pos: pos, Text: text}}}
}
