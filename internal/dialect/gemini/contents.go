package gemini

import (
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// sentinel stands in for a signature that the client has lost. The API's own
// documents name it.
var sentinel = llm.Quote("skip_thought_signature_validator")

// contents writes the conversation: turns of user and model by turns, with
// neighbours of one role in one content. Answers of functions have a content
// of their own.
type contents struct {
	*encoder
	w       *jsonedit.Writer
	names   *dialect.Names
	role    string // of the content that is open; "" when none is
	apart   bool   // it holds answers of functions
	written bool
	results map[string][]*llm.ToolResult // that have not been written, by the call's ID
}

// conversation writes systemInstruction and contents.
func (e *encoder) conversation(w *jsonedit.Writer, names *dialect.Names) error {
	items := e.items()
	lead := 0
	for lead < len(items) {
		m, ok := items[lead].(*llm.Message)
		if !ok || !m.Role.Instructs() {
			break
		}
		lead++
	}
	if err := e.instructions(w, items[:lead]); err != nil {
		return err
	}
	c := &contents{encoder: e, w: w, names: names, results: map[string][]*llm.ToolResult{}}
	for _, item := range items {
		if r, ok := item.(*llm.ToolResult); ok {
			id := r.ID.Text()
			c.results[id] = append(c.results[id], r)
		}
	}
	w.Array("contents")
	if err := c.items(items[lead:]); err != nil {
		return err
	}
	c.close()
	w.EndArray()
	if !c.written {
		p := e.param("messages")
		return dialect.NotPossible(p, "'%s' has nothing but instructions or empty texts, and this model needs a message to answer. Add a user message.", p)
	}
	return nil
}

// items are those of the request. A sealed turn of another upstream is told by
// what the client was shown of it.
func (e *encoder) items() []llm.Item {
	items := e.req.Items
	for i, item := range items {
		turn, ok := item.(*llm.NativeTurn)
		if !ok || e.caps.Reads(turn.Opaque) {
			continue
		}
		flat := append([]llm.Item(nil), items[:i]...)
		for _, item := range items[i:] {
			if turn, ok := item.(*llm.NativeTurn); ok && !e.caps.Reads(turn.Opaque) {
				e.notes.Drop(e.param("reasoning_details"))
				flat = append(flat, turn.Items...)
				continue
			}
			flat = append(flat, item)
		}
		return flat
	}
	return items
}

func (e *encoder) instructions(w *jsonedit.Writer, items []llm.Item) error {
	begun := false
	for _, item := range items {
		m := item.(*llm.Message)
		e.dropNames(m)
		for _, p := range m.Parts {
			text, err := e.instruction(m, p)
			if err != nil {
				return err
			}
			if text.Blank() {
				continue
			}
			if !begun {
				w.Object("systemInstruction")
				w.Array("parts")
				begun = true
			}
			w.BeginObject()
			w.SetRaw("text", text)
			w.EndObject()
		}
	}
	if begun {
		w.EndArray()
		w.EndObject()
	}
	return nil
}

// instruction is a part of an instruction, which must be text.
func (e *encoder) instruction(m *llm.Message, p llm.Part) (llm.Raw, error) {
	t, ok := p.(*llm.Text)
	if !ok {
		at := e.place(m.Pos)
		if media, ok := p.(*llm.Media); ok {
			at = e.place(media.Pos)
		}
		return nil, dialect.NotPossible(at, "'%s' is no text, and instructions to this model are text only. Put it into a user message.", at)
	}
	if t.Cache != nil {
		e.dropBreakpoint()
	}
	return t.Text, nil
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

// open makes sure that a content of a role is open.
func (c *contents) open(role string, apart bool) {
	if c.role == role && c.apart == apart {
		return
	}
	c.close()
	c.role, c.apart, c.written = role, apart, true
	c.w.BeginObject()
	c.w.SetText("role", role)
	c.w.Array("parts")
}

func (c *contents) close() {
	if c.role == "" {
		return
	}
	c.role = ""
	c.w.EndArray()
	c.w.EndObject()
}

func (c *contents) items(items []llm.Item) error {
	for i := 0; i < len(items); {
		end := i
		for end < len(items) && isModels(items[end]) {
			end++
		}
		if end > i {
			if err := c.turn(items[i:end]); err != nil {
				return err
			}
			i = end
			continue
		}
		if err := c.users(items[i]); err != nil {
			return err
		}
		i++
	}
	return nil
}

// isModels reports whether an item is part of a turn of the model.
func isModels(item llm.Item) bool {
	switch item := item.(type) {
	case *llm.Message:
		return item.Role == llm.Assistant
	case *llm.Reasoning, *llm.ToolCall, *llm.ServerCall, *llm.NativeTurn:
		return true
	}
	return false
}

// users writes an item that is not the model's.
func (c *contents) users(item llm.Item) error {
	switch item := item.(type) {
	case *llm.ToolResult:
		for _, waiting := range c.results[item.ID.Text()] {
			if waiting == item {
				return c.unpaired(item.Pos)
			}
		}
	case *llm.Message:
		c.dropNames(item)
		if item.Role.Instructs() {
			return c.late(item)
		}
		for _, p := range item.Parts {
			if err := c.part("user", item, p); err != nil {
				return err
			}
		}
	case *llm.Compaction:
		if item.Text.Blank() {
			at := c.place(item.Pos)
			return dialect.NotPossible(at, "'%s' is a compaction that only its own model can read. Send the conversation that it stands for.", at)
		}
		c.text("user", item.Text, nil)
	}
	return nil
}

// unpaired is the refusal of a result without its call, or of a call without
// its result: the API wants as many of one as of the other.
func (c *contents) unpaired(p llm.Pos) error {
	if c.req.Words == nil || c.req.Words.Params["tool_call_id"] == "" {
		p.Part = -1 // calls stand beside the parts
	}
	at := c.place(p) + "." + c.param("tool_call_id")
	return dialect.NotPossible(at, "'%s' has no counterpart: this model needs a result for every tool call, and a call for every result. Send both, or leave both out.", at)
}

// late says an instruction that stands within the conversation. There is no
// role for it.
func (c *contents) late(m *llm.Message) error {
	for _, p := range m.Parts {
		text, err := c.instruction(m, p)
		if err != nil {
			return err
		}
		if !text.Blank() {
			c.notes.Degrade("mid_system")
			c.text("user", llm.Concat("\n", llm.Raw(`"<system>"`), text, llm.Raw(`"</system>"`)), nil)
		}
	}
	return nil
}

func (c *contents) text(role string, text, signature llm.Raw) {
	if text.Blank() {
		if signature == nil {
			return
		}
		text = llm.Raw(`""`)
	}
	c.open(role, false)
	c.w.BeginObject()
	c.w.SetRaw("text", text)
	c.w.SetRaw("thoughtSignature", signature)
	c.w.EndObject()
}

// turn is what the model said from one word of the user's to the next.
type turn struct {
	*contents
	signed map[string]llm.Raw // signatures that came apart from their calls
	loose  []llm.Raw          // signatures of texts that have not been met
	calls  []*llm.ToolCall
}

func (c *contents) turn(items []llm.Item) error {
	t := &turn{contents: c}
	for _, item := range items {
		if r, ok := item.(*llm.Reasoning); ok {
			t.gather(r)
		}
	}
	for _, item := range items {
		if err := t.item(item); err != nil {
			return err
		}
	}
	for _, signature := range t.loose {
		c.text("model", nil, signature)
	}
	return c.answers(t.calls)
}

// gather finds the signatures of calls, which may stand apart from them.
func (t *turn) gather(r *llm.Reasoning) {
	for _, o := range r.Opaque {
		if t.readable(o) && o.For.IsText() {
			if t.signed == nil {
				t.signed = map[string]llm.Raw{}
			}
			t.signed[o.For.Text()] = o.Data
		}
	}
}

// readable reports whether an opaque state goes back to this model. What it
// cannot read is left out.
func (t *turn) readable(o llm.Opaque) bool {
	if o.Kind == llm.PlainMark {
		return false
	}
	if o.Kind == llm.ThoughtSignature && t.caps.Reads(o) && !o.Data.Blank() {
		return true
	}
	t.notes.Drop(t.param("reasoning_details"))
	return false
}

// signature is the one of a part. A part has one: any others get parts of
// their own.
func (t *turn) signature(list []llm.Opaque) (first llm.Raw) {
	for _, o := range list {
		switch {
		case !t.readable(o):
		case first == nil:
			first = o.Data
		default:
			t.loose = append(t.loose, o.Data)
		}
	}
	return first
}

func (t *turn) item(item llm.Item) error {
	switch item := item.(type) {
	case *llm.Message:
		t.dropNames(item)
		return t.message(item)
	case *llm.Reasoning: // thoughts themselves are not played back
		for _, o := range item.Opaque {
			if t.readable(o) && !o.For.IsText() {
				t.loose = append(t.loose, o.Data)
			}
		}
	case *llm.ToolCall:
		t.call(item)
	case *llm.ServerCall:
		t.served(item)
	case *llm.NativeTurn:
		for part := range jsonedit.Elements(item.Opaque.Data) {
			t.open("model", false)
			t.w.Raw(part)
		}
		for _, shown := range item.Items {
			if call, ok := shown.(*llm.ToolCall); ok {
				t.calls = append(t.calls, call)
			}
		}
	}
	return nil
}

func (t *turn) message(m *llm.Message) error {
	for _, p := range m.Parts {
		text, ok := p.(*llm.Text)
		if !ok {
			if err := t.part("model", m, p); err != nil {
				return err
			}
			continue
		}
		if text.Cache != nil {
			t.dropBreakpoint()
		}
		signature := t.signature(text.Opaque)
		if signature == nil && len(t.loose) > 0 && !text.Text.Blank() {
			signature, t.loose = t.loose[0], t.loose[1:]
		}
		t.text("model", text.Text, signature)
	}
	return nil
}

func (t *turn) call(call *llm.ToolCall) {
	first := len(t.calls) == 0
	t.calls = append(t.calls, call)
	signature := t.signature(call.Opaque)
	if signature == nil {
		signature = t.signed[call.ID.Text()]
	}
	if signature == nil && first && t.caps.Gemini.NeedsSignature {
		signature = sentinel
		t.notes.Degrade("signature_sentinel")
	}
	t.open("model", false)
	t.w.BeginObject()
	t.w.Object("functionCall")
	t.id(call)
	t.w.SetText("name", t.names.Wire(call.Namespace, call.Name))
	t.w.SetRaw("args", t.arguments(call))
	t.w.EndObject()
	t.w.SetRaw("thoughtSignature", signature)
	t.w.EndObject()
}

// arguments are those of a call as an object.
func (t *turn) arguments(call *llm.ToolCall) llm.Raw {
	args := call.Args
	if call.Kind == llm.CustomCall {
		args = dialect.Wrapped(args)
	}
	object, ok := args.Object()
	if ok {
		return object
	}
	t.notes.Degrade("tool_arguments")
	if !args.IsText() {
		args = llm.QuoteJSON(args)
	}
	return append(append(llm.Raw(`{"_raw":`), args...), '}')
}

// id writes the ID of a call, where the host takes one.
func (c *contents) id(call *llm.ToolCall) {
	if c.caps.Gemini.FunctionIDs {
		c.w.SetRaw("id", call.ID)
	}
}

// served says a call that an upstream ran itself. Only this dialect's own can
// be told again.
func (t *turn) served(s *llm.ServerCall) {
	own := false
	for _, part := range s.Native {
		for name := range jsonedit.Members(part) {
			switch string(name) {
			case `"executableCode"`, `"codeExecutionResult"`, `"toolCall"`, `"toolResponse"`:
				own = true
				t.open("model", false)
				t.w.Raw(part)
			}
		}
	}
	if !own {
		t.notes.Drop(serverCalls[s.Kind])
	}
}

// serverCalls are what notes call the calls that upstreams ran.
var serverCalls = [...]string{
	llm.OtherServerTool: "server_call", llm.WebSearch: "web_search_call", llm.WebFetch: "web_fetch_call",
	llm.CodeExecution: "code_interpreter_call", llm.FileSearch: "file_search_call", llm.ImageGeneration: "image_generation_call",
	llm.MCP: "mcp_call", llm.ComputerUse: "computer_call",
}

// answers writes the results of a turn's calls, in the order of the calls.
func (c *contents) answers(calls []*llm.ToolCall) error {
	var apart []*llm.Media
	for _, call := range calls {
		id := call.ID.Text()
		waiting := c.results[id]
		if len(waiting) == 0 {
			return c.unpaired(call.Pos)
		}
		c.results[id] = waiting[1:]
		media, err := c.answer(call, waiting[0])
		if err != nil {
			return err
		}
		apart = append(apart, media...)
	}
	for _, m := range apart {
		if err := c.media("user", true, m); err != nil {
			return err
		}
	}
	if len(calls) > 0 {
		c.close()
	}
	return nil
}

// answer writes one result, and returns its media where they do not go into
// it.
func (c *contents) answer(call *llm.ToolCall, r *llm.ToolResult) ([]*llm.Media, error) {
	var texts []llm.Raw
	var media []*llm.Media
	for _, p := range r.Parts {
		if m, ok := p.(*llm.Media); ok && m.Text == nil {
			media = append(media, m)
			continue
		}
		texts = append(texts, c.textOf(p))
	}
	output := llm.Concat("\n", texts...)
	if output.Blank() && len(media) > 0 {
		output = attached[media[0].Kind]
	}
	name := "output"
	if r.IsError {
		name = "error"
	}
	c.open("user", true)
	c.w.BeginObject()
	c.w.Object("functionResponse")
	c.id(call)
	c.w.SetText("name", c.names.Wire(call.Namespace, call.Name))
	c.w.Object("response")
	c.w.SetRaw(name, output)
	c.w.EndObject()
	if c.caps.Gemini.ResponseParts && len(media) > 0 {
		c.w.Array("parts")
		for _, m := range media {
			if err := c.writeMedia(m); err != nil {
				return nil, err
			}
		}
		c.w.EndArray()
		media = nil
	}
	c.w.EndObject()
	c.w.EndObject()
	return media, nil
}

// attached is the text of a result that has none.
var attached = [...]llm.Raw{
	llm.Image: llm.Raw(`"(image attached)"`), llm.Audio: llm.Raw(`"(audio attached)"`),
	llm.Video: llm.Raw(`"(video attached)"`), llm.File: llm.Raw(`"(file attached)"`),
}
