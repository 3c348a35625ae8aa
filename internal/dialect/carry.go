package dialect

import (
	"slices"

	"github.com/limen-gateway/limen/internal/llm"
)

// carry knows what was said of an answer, so that another upstream can go on
// with it when the one that answers breaks off.
type carry struct {
	req    *llm.Request
	said   []byte     // the inside of a JSON string: the texts of the messages
	open   []llm.Open // the client's items that are open
	next   int        // number of the client's next item
	closed bool       // there was something that nobody else can go on with
	usage  llm.Usage  // of those that broke off

	// Of the answer that goes on:
	items map[int]int // the client's numbers by the upstream's; notTold for none. nil before
	held  int         // the client's message that broke off and did not go on yet; notTold for none
}

// notTold is an item that has no place within what is told.
const notTold = -1

// Carry has what is said remembered, so that Continue is possible.
func (t *Translation) Carry(req *llm.Request) { t.carry = &carry{req: req, held: notTold} }

// see takes note of an event that the client is told.
func (c *carry) see(e llm.Event) {
	switch e := e.(type) {
	case llm.Open:
		c.open, c.next = append(c.open, e), e.Item+1
		c.closed = c.closed || e.Choice > 0 || e.Kind == llm.CallItem || e.Kind == llm.ServerItem
	case llm.Delta:
		switch e.Channel {
		case llm.TextChannel:
			if len(e.Data) > len(`""`) {
				c.said = append(c.said, e.Data[1:len(e.Data)-1]...)
			}
		case llm.RefusalChannel, llm.AudioChannel, llm.TranscriptChannel:
			c.closed = true
		}
	case llm.Picture, llm.Annotate, llm.Logprobs, llm.Finish:
		c.closed = true
	case llm.Close:
		c.open = slices.DeleteFunc(c.open, func(o llm.Open) bool { return o.Item == e.Item })
	}
}

// event returns what the client is told of an event of the answer that goes on.
// A text goes on in the message that it is in; thoughts have no place there.
func (c *carry) event(e llm.Event) (told llm.Event, ok bool) {
	switch e := e.(type) {
	case llm.Start:
		return nil, false
	case llm.Open:
		switch {
		case c.held != notTold && e.Kind == llm.MessageItem:
			c.items[e.Item], c.held = c.held, notTold
			return nil, false
		case c.held != notTold:
			c.items[e.Item] = notTold
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

// ends reports whether the message that broke off does not go on: what comes
// stands behind it.
func (c *carry) ends(e llm.Event) bool {
	if c.held == notTold {
		return false
	}
	switch e := e.(type) {
	case llm.Open:
		return e.Kind == llm.CallItem || e.Kind == llm.ServerItem
	case llm.Finish:
		return true
	}
	return false
}

// Continues reports whether another upstream could go on with what was said so
// far: only texts and thoughts, and no call of a tool. One that is held to JSON
// would begin anew.
func (t *Translation) Continues() bool {
	c := t.carry
	return c != nil && !c.closed && !t.ended && t.loop == nil && (len(c.said) == 0 || c.req.Format.Kind == llm.FreeText)
}

// goOn is what the model is told behind what was said.
var goOn = llm.Quote("Your answer broke off. Go on exactly where it ends: repeat nothing of it, and say nothing about this.")

// Continue returns the call that has another upstream go on with an answer that
// broke off. Its error is that the upstream cannot take the request.
func (t *Translation) Continue(out Outbound, caps *llm.Caps) (*Call, error) {
	c := t.carry
	req := *c.req
	if len(c.said) > 0 {
		turn := nextTurn(req.Items)
		text := slices.Concat([]byte{'"'}, c.said, []byte{'"'})
		req.Items = append(req.Items[:len(req.Items):len(req.Items)], message(llm.Assistant, turn, text), message(llm.User, turn+1, goOn))
	}
	return out.Encode(&req, caps)
}

// Resumed has what comes from now on told as the rest of the same answer: it is
// that to a call of Continue, from an upstream with those abilities. dst gets
// what is told in between, and noted what cannot be said.
func (t *Translation) Resumed(dst []byte, call *Call, out Outbound, caps *llm.Caps, noted func(llm.Notes)) []byte {
	c := t.carry
	c.held = notTold
	for _, o := range slices.Clone(c.open) {
		if o.Kind == llm.MessageItem {
			c.held = o.Item
			continue
		}
		dst = t.put(dst, llm.Close{Item: o.Item})
	}
	c.usage = t.Usage(int64(len(t.Call.Body)))
	c.usage.Output, c.usage.Estimated = max(c.usage.Output, llm.Estimate(0, t.seen).Output), true // its last count may not have come
	c.items = map[int]int{}
	t.outbound, t.caps, t.Call, t.known, t.seen = out, caps, call, false, 0
	t.decoder, t.restore = out.Answers(call, caps), NewRestore(call.Names)
	t.ask.Vendor, t.ask.Origin, t.ask.Noted = caps.Vendor, caps.Origin, noted
	t.ask.Note(llm.Notes{"assume:continuation"})
	t.ask.Note(call.Notes)
	return dst
}

func message(role llm.Role, turn int, text llm.Raw) *llm.Message {
	pos := llm.Pos{Item: turn, Part: -1}
	return &llm.Message{Pos: pos, Role: role, Parts: []llm.Part{&llm.Text{Pos: pos, Text: text}}}
}
