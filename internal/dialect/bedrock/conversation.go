package bedrock

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// The roles of messages.
const (
	userRole      = "user"
	assistantRole = "assistant"
	systemRole    = "system"
)

// turn is a message of the body: roles come by turns.
type turn struct {
	role   string
	blocks []block
	at     llm.Pos
	calls  []*llm.ToolCall // whose results must follow
}

func (t *turn) has(kind blockKind) bool {
	for i := range t.blocks {
		if t.blocks[i].kind == kind {
			return true
		}
	}
	return false
}

func (t *turn) only(kind blockKind) bool {
	for i := range t.blocks {
		if t.blocks[i].kind != kind {
			return false
		}
	}
	return len(t.blocks) > 0
}

// builder puts items into turns.
type builder struct {
	*encoder
	turn    *turn // that is open; nil when the next item begins one
	results map[string][]*llm.ToolResult
}

// conversation makes the turns of the items.
func (e *encoder) conversation() error {
	items := e.items()
	b := &builder{encoder: e, results: map[string][]*llm.ToolResult{}}
	for _, item := range items {
		if r, ok := item.(*llm.ToolResult); ok {
			id := r.ID.Text()
			b.results[id] = append(b.results[id], r)
		}
	}
	lead := true
	for i, item := range items {
		m, ok := item.(*llm.Message)
		instructs := ok && m.Role.Instructs()
		lead = lead && instructs
		var err error
		switch {
		case lead:
			e.system, err = b.instruction(e.system, m)
		case instructs:
			err = b.late(m, items[i+1:])
		default:
			err = b.item(item)
		}
		if err != nil {
			return err
		}
	}
	if err := b.close(); err != nil {
		return err
	}
	return e.checkEnds()
}

// items are those of the request. A sealed turn, which is another dialect's,
// is told by what the client was shown of it.
func (e *encoder) items() []llm.Item {
	var flat []llm.Item
	for _, item := range e.req.Items {
		if turn, ok := item.(*llm.NativeTurn); ok {
			e.notes.Drop(e.param("reasoning_details"))
			flat = append(flat, turn.Items...)
			continue
		}
		flat = append(flat, item)
	}
	return flat
}

// checkEnds looks at how the conversation begins and ends.
func (e *encoder) checkEnds() error {
	if len(e.turns) == 0 {
		p := e.req.Words.List()
		return dialect.NotPossible(p, "'%s' has nothing but instructions or empty texts, and this model needs a message to answer. Add a user message.", p)
	}
	if first := e.turns[0]; first.role != userRole {
		p := e.place(llm.Pos{Item: first.at.Item, Part: -1})
		return dialect.NotPossible(p, "'%s' cannot begin the conversation with this model. Begin it with a user message.", p)
	}
	last := e.turns[len(e.turns)-1]
	if last.role == assistantRole && e.caps.NoPrefill {
		p := e.place(llm.Pos{Item: last.at.Item, Part: -1})
		return dialect.NotPossible(p, "'%s' begins the answer, which this model does not take. End with a user message.", p)
	}
	if end := &last.blocks[len(last.blocks)-1]; last.role == assistantRole && end.kind == textBlock {
		end.text = trimmed(end.text)
	}
	for _, t := range e.turns { // a document must be spoken of
		if t.role == userRole && t.has(documentBlock) && !t.has(textBlock) {
			t.blocks = append(t.blocks, block{kind: textBlock, text: llm.Raw(`"(document attached)"`)})
		}
	}
	return nil
}

// to is the open turn of a role.
func (b *builder) to(role string, at llm.Pos) (*turn, error) {
	if b.turn == nil || b.turn.role != role {
		if err := b.close(); err != nil {
			return nil, err
		}
	}
	if b.turn != nil && b.turn.role == role {
		return b.turn, nil
	}
	if n := len(b.turns); n > 0 && b.turns[n-1].role == role {
		b.turn = b.turns[n-1] // what stood between has vanished
		return b.turn, nil
	}
	b.turn = &turn{role: role, at: at}
	b.turns = append(b.turns, b.turn)
	return b.turn, nil
}

func (b *builder) add(role string, at llm.Pos, blocks ...block) error {
	if len(blocks) == 0 {
		return nil
	}
	t, err := b.to(role, at)
	if err != nil {
		return err
	}
	t.blocks = append(t.blocks, blocks...)
	return nil
}

// close ends the open turn: the results of its calls follow, in their order.
func (b *builder) close() error {
	t := b.turn
	b.turn = nil
	if t == nil || len(t.calls) == 0 {
		return nil
	}
	next := &turn{role: userRole}
	for _, call := range t.calls {
		id := call.ID.Text()
		waiting := b.results[id]
		if len(waiting) == 0 {
			return b.unpaired(call.Pos)
		}
		b.results[id] = waiting[1:]
		next.at = waiting[0].Pos
		blocks, err := b.result(waiting[0])
		if err != nil {
			return err
		}
		next.blocks = append(next.blocks, blocks...)
	}
	t.calls = nil
	b.turns = append(b.turns, next)
	b.turn = next
	return nil
}

// unpaired is the refusal of a result without its call, or of a call without
// its result.
func (b *builder) unpaired(p llm.Pos) error {
	if b.req.Words == nil || b.req.Words.Params["tool_call_id"] == "" {
		p.Part = -1 // calls stand beside the parts
	}
	at := b.place(p) + "." + b.param("tool_call_id")
	return dialect.NotPossible(at, "'%s' has no counterpart: this model needs a result for every tool call, and a call for every result. Send both, or leave both out.", at)
}

func (b *builder) item(item llm.Item) error {
	switch item := item.(type) {
	case *llm.Message:
		return b.message(item)
	case *llm.Reasoning:
		return b.add(assistantRole, item.Pos, b.reasoning(item)...)
	case *llm.ToolCall:
		if err := b.add(assistantRole, item.Pos, b.use(item)); err != nil {
			return err
		}
		b.turn.calls = append(b.turn.calls, item)
	case *llm.ToolResult: // stands with its call, if that came before
		if err := b.close(); err != nil {
			return err
		}
		for _, waiting := range b.results[item.ID.Text()] {
			if waiting == item {
				return b.unpaired(item.Pos)
			}
		}
	case *llm.ServerCall:
		b.notes.Drop(serverCalls[item.Kind])
	case *llm.Compaction:
		if item.Text.Blank() {
			at := b.place(llm.Pos{Item: item.Pos.Item, Part: -1})
			return dialect.NotPossible(at, "'%s' is a compaction that only its own model can read. Send the conversation that it stands for.", at)
		}
		return b.add(userRole, item.Pos, block{kind: textBlock, text: item.Text})
	}
	return nil
}

// serverCalls are what notes call the calls that upstreams ran.
var serverCalls = [...]string{
	llm.OtherServerTool: "server_call", llm.WebSearch: "web_search_call", llm.WebFetch: "web_fetch_call",
	llm.CodeExecution: "code_interpreter_call", llm.FileSearch: "file_search_call", llm.ImageGeneration: "image_generation_call",
	llm.MCP: "mcp_call", llm.ComputerUse: "computer_call",
}

// message adds what user or assistant say.
func (b *builder) message(m *llm.Message) error {
	b.dropNames(m)
	role := userRole
	if m.Role == llm.Assistant {
		role = assistantRole
	}
	var blocks []block
	for _, p := range m.Parts {
		more, err := b.part(p)
		if err != nil {
			return err
		}
		blocks = append(blocks, more...)
	}
	return b.add(role, m.Pos, blocks...)
}

// dropNames notes what a message says beside its parts.
func (e *encoder) dropNames(m *llm.Message) {
	if m.Name.Given() {
		e.notes.Drop(e.param("name"))
	}
	if m.Phase.Given() {
		e.notes.Drop(e.param("phase"))
	}
}

// instruction appends what an operator says: text, part by part.
func (b *builder) instruction(dst []block, m *llm.Message) ([]block, error) {
	b.dropNames(m)
	for _, p := range m.Parts {
		t, ok := p.(*llm.Text)
		if !ok {
			at := b.place(m.Pos)
			return nil, dialect.NotPossible(at, "'%s' is no text, and instructions to this model are text only. Put it into a user message.", at)
		}
		if !t.Text.White() {
			dst = append(dst, block{kind: textBlock, text: t.Text, cache: t.Cache})
		}
	}
	return dst, nil
}

// late adds an instruction within the conversation: in its own role where the
// model and the place allow it, and marked as such in the user's turn where
// not.
func (b *builder) late(m *llm.Message, rest []llm.Item) error {
	blocks, err := b.instruction(nil, m)
	if err != nil || len(blocks) == 0 {
		return err
	}
	if err := b.close(); err != nil {
		return err
	}
	b.turn = nil
	n := len(b.turns)
	if n > 0 && b.turns[n-1].role == systemRole { // two in a row are one
		b.turns[n-1].blocks = append(b.turns[n-1].blocks, blocks...)
		return nil
	}
	if b.caps.MidSystem && n > 0 && b.turns[n-1].role == userRole && answered(rest) {
		b.turns = append(b.turns, &turn{role: systemRole, blocks: blocks, at: m.Pos})
		return nil
	}
	b.notes.Degrade("mid_system")
	for i := range blocks {
		blocks[i].text = llm.Concat("\n", llm.Raw(`"<system>"`), blocks[i].text, llm.Raw(`"</system>"`))
	}
	return b.add(userRole, m.Pos, blocks...)
}

// answered reports whether the assistant speaks next, or nobody.
func answered(rest []llm.Item) bool {
	for _, item := range rest {
		switch item := item.(type) {
		case *llm.ToolResult: // stands with its call
		case *llm.Message:
			if item.Role.Instructs() {
				continue
			}
			return item.Role == llm.Assistant
		default:
			return true
		}
	}
	return true
}
