package anthropic

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// The roles of messages.
const (
	userRole      = "user"
	assistantRole = "assistant"
	systemRole    = "system"
)

// bodyTurn is a message of the body.
type bodyTurn struct {
	role   string
	blocks []block
	at     llm.Pos     // of what it began with
	calls  []*openCall // whose results must follow
}

// hasResults reports whether the turn begins with results of tools.
func (t *bodyTurn) hasResults() bool { return len(t.blocks) > 0 && t.blocks[0].kind == resultBlock }

// onlyResults reports whether the turn has nothing but results of tools.
func (t *bodyTurn) onlyResults() bool {
	return t.role == userRole && t.hasResults() && t.blocks[len(t.blocks)-1].kind == resultBlock
}

// openCall is a call that needs a result.
type openCall struct {
	id     llm.Raw
	at     llm.Pos
	result *llm.ToolResult
}

// conversation makes the turns of the items.
func (o *outgoing) conversation() error {
	items := o.readable(o.req.Items)
	answers, err := o.pair(items)
	if err != nil {
		return err
	}
	b := builder{outgoing: o, answers: answers}
	lead := true
	for i := 0; i < len(items); i++ {
		if m, ok := items[i].(*llm.Message); ok && m.Role.Instructs() {
			if lead {
				err = b.lead(m)
			} else {
				run := instructions(items[i:])
				i += len(run) - 1
				err = b.instruct(run, items[i+1:])
			}
		} else {
			lead = false
			err = b.item(items[i])
		}
		if err != nil {
			return err
		}
	}
	if err := b.endTurn(); err != nil {
		return err
	}
	return o.checkEnds()
}

// readable takes sealed turns apart that this model cannot read.
func (o *outgoing) readable(items []llm.Item) []llm.Item {
	whole := true
	for _, item := range items {
		if t, ok := item.(*llm.NativeTurn); ok && !o.reads(t) {
			whole = false
		}
	}
	if whole {
		return items
	}
	var out []llm.Item
	for _, item := range items {
		if t, ok := item.(*llm.NativeTurn); ok && !o.reads(t) {
			o.notes.Drop(o.param("reasoning_details"))
			out = append(out, t.Items...)
			continue
		}
		out = append(out, item)
	}
	return out
}

func (o *outgoing) reads(t *llm.NativeTurn) bool {
	return o.caps.Reads(t.Opaque) && t.Opaque.Data.Kind() == jsonedit.KindArray
}

// pair finds the result of every call: that of the latest call of its ID which
// has none yet. The answers of an item are those of the calls in it.
func (o *outgoing) pair(items []llm.Item) (map[llm.Item][]*openCall, error) {
	answers := map[llm.Item][]*openCall{}
	var calls []*openCall
	add := func(item llm.Item, id llm.Raw, at llm.Pos) {
		c := &openCall{id: id, at: at}
		calls = append(calls, c)
		answers[item] = append(answers[item], c)
	}
	for _, item := range items {
		switch item := item.(type) {
		case *llm.ToolCall:
			add(item, item.ID, item.Pos)
		case *llm.NativeTurn:
			for block := range jsonedit.Elements(item.Opaque.Data) {
				if dialect.Text(block, "type") == "tool_use" {
					add(item, member(block, "id"), item.Pos)
				}
			}
		case *llm.ToolResult:
			if !answer(calls, item) {
				return nil, o.unpaired(item.Pos, "The result at '%s' answers no call before it; send the call as well.")
			}
		}
	}
	for _, c := range calls {
		if c.result == nil {
			return nil, o.unpaired(c.at, "The call at '%s' has no result; send one for every call.")
		}
	}
	return answers, nil
}

func answer(calls []*openCall, r *llm.ToolResult) bool {
	id := r.ID.Text()
	for i := len(calls) - 1; i >= 0; i-- {
		if c := calls[i]; c.result == nil && (sameText(c.id, r.ID) || c.id.Text() == id) {
			c.result = r
			return true
		}
	}
	return false
}

// place is where an item or part stood in the client's request.
func (o *outgoing) place(at llm.Pos, suffix string) string {
	if at.Item == systemTurn {
		return o.words.Within(systemRole, at.Part) + suffix
	}
	return o.words.Place(at, suffix)
}

func (o *outgoing) unpaired(at llm.Pos, format string) error {
	if o.words != words { // other dialects have calls beside the parts
		at.Part = -1
	}
	param := o.place(at, "."+o.param("tool_call_id"))
	return dialect.NotPossible(param, format, param)
}

// checkEnds looks at how the conversation begins and ends.
func (o *outgoing) checkEnds() error {
	items := o.words.List()
	if len(o.turns) == 0 {
		return dialect.NotPossible(items, "'%s' without any text of the user is not possible with this model; add a message of the user.", items)
	}
	if first := o.turns[0]; first.role != userRole {
		first.at.Part = -1
		param := o.place(first.at, "")
		return dialect.NotPossible(param, "A conversation that begins with '%s' is not possible with this model; begin it with a message of the user.", param)
	}
	last := o.turns[len(o.turns)-1]
	if last.role != assistantRole {
		return nil
	}
	if o.caps.NoPrefill {
		last.at.Part = -1
		param := o.place(last.at, "")
		return dialect.NotPossible(param, "An answer that is begun in '%s' is not possible with this model; end with a message of the user.", param)
	}
	end := &last.blocks[len(last.blocks)-1]
	if end.kind != sayBlock {
		return nil
	}
	said := end.text.Text()
	if trimmed := strings.TrimRight(said, " \t\r\n"); len(trimmed) < len(said) {
		end.text = llm.Quote(trimmed)
	}
	return nil
}

// builder puts items into turns.
type builder struct {
	*outgoing
	answers map[llm.Item][]*openCall
	turn    *bodyTurn // that is open; nil when the next item begins one
	err     error     // of results, which are told when their calls' turn ends
}

// to is the open turn of a role.
func (b *builder) to(role string, at llm.Pos) *bodyTurn {
	if b.turn == nil || b.turn.role != role {
		b.closeTurn()
		b.turn = &bodyTurn{role: role, at: at}
		if n := len(b.turns); n > 0 && b.turns[n-1].role == role {
			b.turn = b.turns[n-1] // what stood between has vanished
			return b.turn
		}
		b.turns = append(b.turns, b.turn)
	}
	return b.turn
}

// closeTurn ends the open turn: the results of its calls follow it.
func (b *builder) closeTurn() {
	t := b.turn
	b.turn = nil
	if t == nil || len(t.calls) == 0 {
		return
	}
	results := &bodyTurn{role: userRole, at: t.calls[0].result.Pos}
	for _, c := range t.calls {
		block, err := b.result(c.result)
		if err != nil && b.err == nil {
			b.err = err
		}
		results.blocks = append(results.blocks, block)
	}
	t.calls = nil
	b.turns = append(b.turns, results)
	b.turn = results
}

// endTurn ends the last turn, and tells what went wrong on the way.
func (b *builder) endTurn() error {
	b.closeTurn()
	return b.err
}

func (b *builder) item(item llm.Item) error {
	switch item := item.(type) {
	case *llm.Message:
		if item.Role == llm.Assistant {
			return b.assistant(item)
		}
		return b.user(item)
	case *llm.Reasoning:
		b.reasoning(item)
	case *llm.ToolCall:
		t := b.to(assistantRole, item.Pos)
		t.blocks = append(t.blocks, b.toolUse(item))
		t.calls = append(t.calls, b.answers[item]...)
	case *llm.ToolResult:
		b.closeTurn() // it stands with its call already
	case *llm.ServerCall:
		b.serverCall(item)
	case *llm.NativeTurn:
		b.nativeTurn(item)
	case *llm.Compaction:
		if !item.Text.Blank() {
			return b.user(&llm.Message{Pos: item.Pos, Parts: []llm.Part{&llm.Text{Pos: item.Pos, Text: item.Text}}})
		}
		at := item.Pos
		at.Part = -1
		param := b.place(at, "")
		return dialect.NotPossible(param, "The compaction at '%s' cannot be read by this model; send the conversation that it stands for.", param)
	}
	return nil
}
