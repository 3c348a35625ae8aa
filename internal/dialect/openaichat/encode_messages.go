package openaichat

import (
	"slices"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// turn is what becomes one message of the assistant.
type turn struct {
	at       int  // index of its last item
	open     bool // it belongs to a tool loop that goes on
	name     llm.Raw
	details  llm.Raw // its reasoning_details, where they go back as they came
	parts    []llm.Part
	other    []llm.Member
	thoughts []*llm.Reasoning
	places   []int // of the thoughts, among the blocks of the turn
	calls    []*llm.ToolCall
	blocks   int
}

// history writes the messages. Results follow the turn of their calls, in the
// order of the calls, wherever they came.
type history struct {
	*requestEncoder
	items   []llm.Item
	done    []bool            // results that are written
	results map[string][]int  // by ID, in order
	called  map[string]string // wire names of the calls so far, by ID
	lastAsk int               // index of the last message of the user

	late    []llm.Raw  // instructions that wait for the user's next turn
	moved   []llm.Part // of results, for the user's next turn
	answers bool       // the last message was a tool's
	pending *userTurn
}

func (e *requestEncoder) messages() error {
	h := &history{requestEncoder: e, results: map[string][]int{}, called: map[string]string{}, lastAsk: -1}
	h.items = flat(e.req.Items)
	h.done = make([]bool, len(h.items))
	for i, item := range h.items {
		switch item := item.(type) {
		case *llm.ToolResult:
			h.results[string(item.ID)] = append(h.results[string(item.ID)], i)
		case *llm.Message:
			if item.Role == llm.User {
				h.lastAsk = i
			}
		}
	}
	e.w.Array("messages")
	at, err := h.lead()
	for err == nil && at < len(h.items) {
		at, err = h.next(at)
	}
	if err == nil {
		err = h.end()
	}
	e.w.EndArray()
	return err
}

// flat takes whole turns of other dialects apart.
func flat(items []llm.Item) []llm.Item {
	if !slices.ContainsFunc(items, func(i llm.Item) bool { _, native := i.(*llm.NativeTurn); return native }) {
		return items
	}
	var out []llm.Item
	for _, item := range items {
		if native, ok := item.(*llm.NativeTurn); ok {
			out = append(out, native.Items...)
			continue
		}
		out = append(out, item)
	}
	return out
}

// lead writes the instructions that come first.
func (h *history) lead() (at int, err error) {
	var texts []llm.Raw
	for ; at < len(h.items); at++ {
		m, ok := h.items[at].(*llm.Message)
		if !ok || !m.Role.Instructs() {
			break
		}
		if h.chat.OneSystem {
			texts = append(texts, textsOf(m.Parts)...)
			h.unnamed(m)
			continue
		}
		if err := h.instruction(m); err != nil {
			return at, err
		}
	}
	if h.guide != nil {
		texts = append(texts, h.guide)
	}
	if len(texts) > 0 {
		h.w.BeginObject()
		h.w.SetText("role", "system")
		h.w.SetRaw("content", llm.Concat("\n\n", texts...))
		h.w.EndObject()
	}
	return at, nil
}

func (h *history) unnamed(m *llm.Message) {
	if m.Name.Given() {
		h.drop("name")
	}
}

// textsOf are the texts among parts.
func textsOf(parts []llm.Part) (texts []llm.Raw) {
	for _, p := range parts {
		if t, ok := p.(*llm.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return texts
}

// instruction writes a message of the operator in its place.
func (h *history) instruction(m *llm.Message) error {
	role := "system"
	if !h.chat.NoDeveloper && (m.Role == llm.Developer || !h.own && h.chat.Native) {
		role = "developer"
	}
	h.w.BeginObject()
	h.w.SetText("role", role)
	h.name(m.Name)
	err := h.content(m.Parts)
	h.w.EndObject()
	h.answers = false
	return err
}

// next writes what the item at an index begins, and returns the index of what
// comes after it.
func (h *history) next(at int) (int, error) {
	switch item := h.items[at].(type) {
	case *llm.ToolResult:
		if h.done[at] {
			return at + 1, nil
		}
		h.done[at] = true
		return at + 1, h.result(item, item.Name)
	case *llm.Compaction:
		return at + 1, h.compaction(item)
	case *llm.Message:
		switch {
		case item.Role.Instructs() && h.chat.OneSystem:
			h.notes.Degrade("mid_system")
			h.late = append(h.late, llm.Concat("", llm.Quote("<system>\n"), llm.Concat("\n\n", textsOf(item.Parts)...), llm.Quote("\n</system>")))
			h.unnamed(item)
			return at + 1, nil
		case item.Role.Instructs():
			if err := h.flush(); err != nil {
				return at, err
			}
			return at + 1, h.instruction(item)
		case item.Role == llm.User:
			return at + 1, h.user(item)
		}
	}
	return h.assistant(at)
}

// compaction is the summary that stands for what came before.
func (h *history) compaction(c *llm.Compaction) error {
	if c.Text.Blank() {
		param := h.place(llm.Pos{Item: c.Pos.Item, Part: -1}, "")
		return dialect.NotPossible(param, "The model's upstream cannot read the compacted history in '%s': send the messages themselves.", param)
	}
	return h.user(&llm.Message{Pos: c.Pos, Parts: []llm.Part{&llm.Text{Pos: llm.Pos{Item: c.Pos.Item, Part: -1}, Text: c.Text}}})
}

// userTurn is a message of the user that may still grow.
type userTurn struct {
	name  llm.Raw
	parts []llm.Part
}

// user takes a message of the user. Servers with one place for instructions
// mostly want turns to alternate, too: there, neighbours become one message.
func (h *history) user(m *llm.Message) error {
	if h.pending != nil && !h.chat.OneSystem {
		if err := h.flush(); err != nil {
			return err
		}
	}
	parts := h.waiting()
	if h.pending == nil {
		h.pending = &userTurn{name: m.Name}
	}
	h.pending.parts = slices.Concat(h.pending.parts, parts, m.Parts)
	return nil
}

// waiting are the parts that waited for a turn of the user.
func (h *history) waiting() (parts []llm.Part) {
	parts, h.moved = h.moved, nil
	for _, text := range h.late {
		parts = append(parts, &llm.Text{Pos: llm.Pos{Part: -1}, Text: text})
	}
	h.late = nil
	return parts
}

// end writes what is left. Instructions that no turn of the user followed end
// the last one.
func (h *history) end() error {
	if parts := h.waiting(); len(parts) > 0 {
		if h.pending == nil {
			h.pending = &userTurn{}
		}
		h.pending.parts = slices.Concat(h.pending.parts, parts)
	}
	return h.flush()
}

// flush writes the user's message, and what has moved out of results.
func (h *history) flush() error {
	t := h.pending
	if t == nil && len(h.moved) > 0 {
		t, h.moved = &userTurn{parts: h.moved}, nil
	}
	if t == nil {
		return nil
	}
	h.pending = nil
	if h.answers && h.chat.AnswerFirst {
		h.notes.Degrade("user_after_tool")
		h.w.BeginObject()
		h.w.SetText("role", "assistant")
		h.w.SetText("content", "OK.")
		h.w.EndObject()
	}
	h.answers = false
	h.w.BeginObject()
	h.w.SetText("role", "user")
	h.name(t.name)
	parts := t.parts
	if h.chat.OneSystem && len(parts) > 1 && allText(parts) {
		parts = []llm.Part{&llm.Text{Pos: llm.Pos{Part: -1}, Text: llm.Concat("\n\n", textsOf(parts)...)}}
	}
	err := h.content(parts)
	h.w.EndObject()
	return err
}

func allText(parts []llm.Part) bool {
	return !slices.ContainsFunc(parts, func(p llm.Part) bool { _, ok := p.(*llm.Text); return !ok })
}

func (h *history) name(name llm.Raw) {
	switch {
	case !name.Given():
	case h.chat.NoNames:
		h.drop("name")
	default:
		h.w.SetRaw("name", name)
	}
}

// assistant writes the turn that begins at an index, and the results of its
// calls.
func (h *history) assistant(at int) (int, error) {
	if err := h.flush(); err != nil {
		return at, err
	}
	t := &turn{open: at > h.lastAsk}
	first := h.items[at].Turn()
	if list := h.req.Details[first]; !dialect.Sealed(list) {
		t.details = list
	}
	for ; at < len(h.items); at++ {
		item := h.items[at]
		if h.own && item.Turn() != first || !h.take(t, item) {
			break
		}
		t.at = at
	}
	if err := h.write(t); err != nil {
		return at, err
	}
	return at, h.answer(t)
}

// take adds an item to a turn. It reports false for one that ends it.
func (h *history) take(t *turn, item llm.Item) bool {
	switch item := item.(type) {
	case *llm.Message:
		if item.Role != llm.Assistant {
			return false
		}
		if item.Name.Given() {
			t.name = item.Name
		}
		if item.Phase.Given() {
			h.drop("phase")
		}
		t.other = append(t.other, item.Other...)
		t.parts, t.blocks = append(t.parts, item.Parts...), t.blocks+len(item.Parts)
	case *llm.Reasoning:
		t.thoughts, t.places, t.blocks = append(t.thoughts, item), append(t.places, t.blocks), t.blocks+1
	case *llm.ToolCall:
		t.calls, t.blocks = append(t.calls, item), t.blocks+1
	case *llm.ServerCall:
		h.notes.Drop(serverCalls[item.Kind])
	default:
		return false
	}
	return true
}

// serverCalls are what calls are named that an upstream ran itself. Their
// results have no place in this dialect.
var serverCalls = map[llm.ServerKind]string{
	llm.OtherServerTool: "server_tool_call", llm.WebSearch: "web_search_call", llm.WebFetch: "web_fetch_call", llm.CodeExecution: "code_interpreter_call",
	llm.FileSearch: "file_search_call", llm.ImageGeneration: "image_generation_call", llm.MCP: "mcp_call", llm.ComputerUse: "computer_call",
}

func (h *history) write(t *turn) error {
	if len(t.parts) == 0 && len(t.calls) == 0 {
		// Reasoning alone is no message, unless the server wants it back.
		if len(t.thoughts) == 0 || !h.echoes(t.open) {
			if len(t.thoughts) > 0 {
				h.thoughtsOf(t)
			}
			return nil
		}
	}
	w := &h.w
	w.BeginObject()
	w.SetText("role", "assistant")
	h.name(t.name)
	inContent := h.thoughtsOf(t)
	if err := h.said(t, inContent); err != nil {
		return err
	}
	if len(t.calls) > 0 {
		w.Array("tool_calls")
		for _, c := range t.calls {
			h.called[string(c.ID)] = h.names.Wire(c.Namespace, c.Name)
			h.call(c)
		}
		w.EndArray()
	}
	for _, m := range t.other {
		if h.own && !h.chat.Strict {
			w.SetRaw(m.Name, m.Value)
		} else {
			h.drop(m.Name)
		}
	}
	w.EndObject()
	h.answers = false
	return nil
}

// said writes the content of an assistant's turn, and what stands beside it.
// Beside calls, a turn without text has the content null, which every server
// knows: some refuse "" there. Servers that check every member (Strict) are
// the exception. They want a text.
func (h *history) said(t *turn, thought llm.Raw) error {
	var texts []llm.Part
	for _, p := range t.parts {
		switch p := p.(type) {
		case *llm.Text:
			if p.Text.Blank() && len(t.parts)+len(t.calls) > 1 {
				continue
			}
			h.dropReasoning(&llm.Reasoning{Opaque: p.Opaque}) // state of a text has no place here
			texts = append(texts, p)
		case *llm.Refusal:
			if h.own || h.chat.Native {
				h.w.SetRaw("refusal", p.Text)
				continue
			}
			texts = append(texts, &llm.Text{Pos: llm.Pos{Part: -1}, Text: p.Text})
		case *llm.Media:
			if err := h.shown(p); err != nil {
				return err
			}
		default:
			texts = append(texts, p)
		}
	}
	switch {
	case !thought.Blank() && h.chat.EchoTags:
		h.w.SetRaw("content", llm.Concat("", slices.Concat([]llm.Raw{llm.Quote(thinkBegin), thought, llm.Quote(thinkEnd)}, textsOf(texts))...))
	case !thought.Blank():
		h.thoughtParts(thought, texts)
	case len(texts) == 0 && h.chat.Strict:
		h.w.SetText("content", "")
	case len(texts) == 0:
		h.w.Name("content")
		h.w.Null()
	default:
		return h.content(texts)
	}
	return nil
}

// thoughtParts writes thinking as a part before the text, as Mistral has it.
func (h *history) thoughtParts(thought llm.Raw, texts []llm.Part) {
	w := &h.w
	w.Array("content")
	w.BeginObject()
	w.SetText("type", "thinking")
	w.Array("thinking")
	writeText(w, thought)
	w.EndArray()
	w.EndObject()
	for _, t := range textsOf(texts) {
		writeText(w, t)
	}
	w.EndArray()
}

func writeText(w *jsonedit.Writer, text llm.Raw) {
	w.BeginObject()
	w.SetText("type", "text")
	w.SetRaw("text", text)
	w.EndObject()
}

// shown writes sound and images of the assistant, which have members of their
// own. Only whoever made them knows them.
func (h *history) shown(m *llm.Media) error {
	param := h.place(m.Pos, m.At)
	switch {
	case m.Kind == llm.Audio && m.FileID != nil && h.own && !h.chat.Strict:
		h.w.Object("audio")
		h.w.SetRaw("id", m.FileID)
		h.w.EndObject()
	case m.Kind == llm.Image && h.own && !h.chat.Strict && !h.chat.Native:
		h.w.Array("images")
		writeImage(&h.w, m)
		h.w.EndArray()
	default:
		return dialect.NotPossible(param, "The model's upstream takes no media of an assistant, as in '%s': send it in a user message, or leave it out.", param)
	}
	return nil
}

// answer writes the results of a turn's calls.
func (h *history) answer(t *turn) error {
	for _, c := range t.calls {
		id := string(c.ID)
		for len(h.results[id]) > 0 {
			i := h.results[id][0]
			h.results[id] = h.results[id][1:]
			if i <= t.at || h.done[i] {
				continue // of an earlier call with the same ID
			}
			h.done[i] = true
			if err := h.result(h.items[i].(*llm.ToolResult), c.Name); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// result writes a tool's message. What is not text moves on to the user's
// next message: tools can only speak.
func (h *history) result(r *llm.ToolResult, name string) error {
	if h.pending != nil {
		if err := h.flush(); err != nil {
			return err
		}
	}
	var texts []llm.Part
	for _, p := range r.Parts {
		m, ok := p.(*llm.Media)
		switch {
		case ok && m.Text == nil && m.Kind == llm.Image:
			h.notes.Move("tool_images")
			h.moved = append(h.moved, p)
		case ok && m.Text == nil:
			h.notes.Move("tool_files")
			h.moved = append(h.moved, p)
		default:
			texts = append(texts, p)
		}
	}
	if len(texts) == 0 && len(r.Parts) > 0 {
		texts = []llm.Part{&llm.Text{Pos: llm.Pos{Part: -1}, Text: llm.Quote(attached(r.Parts))}}
	}
	said, err := h.texts(texts)
	if err != nil {
		return err
	}
	if r.IsError {
		if len(said) == 0 {
			said = []llm.Raw{llm.Raw(`""`)}
		}
		said[0] = append(llm.Raw(`"Error: `), said[0][1:]...)
	}
	w := &h.w
	w.BeginObject()
	w.SetText("role", "tool")
	w.SetRaw("tool_call_id", h.id(r.ID))
	if h.chat.NamedTools {
		if wire, ok := h.called[string(r.ID)]; ok {
			name = wire
		}
		if name != "" {
			w.SetText("name", name)
		}
	}
	w.Name("content")
	if len(said) > 1 && (h.own || h.chat.Native) {
		w.BeginArray()
		for _, t := range said {
			writeText(w, t)
		}
		w.EndArray()
	} else {
		w.Raw(llm.Concat("\n", said...))
	}
	w.EndObject()
	h.answers = true
	return nil
}

// attached says in a tool's message what has moved out of it.
func attached(parts []llm.Part) string {
	for _, p := range parts {
		if m, ok := p.(*llm.Media); ok && m.Kind != llm.Image {
			return "(file attached)"
		}
	}
	return "(image attached)"
}
