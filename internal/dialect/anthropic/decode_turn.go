package anthropic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// turn gathers the items of one message.
type turn struct {
	*decoder
	index int
	path  string // of the content
	role  llm.Role
	items []llm.Item
	open  *llm.Message // takes text and media, until something else comes

	calls   map[string]*llm.ToolCall
	signed  []*llm.Reasoning // hold signatures of calls that have not come yet
	texts   []llm.Opaque     // of the text that comes next
	servers map[string]*llm.ServerCall
	whole   *llm.Opaque // the turn as it was sealed
}

// say adds text or media.
func (t *turn) say(p llm.Part) {
	if t.open == nil {
		pos := llm.Pos{Item: t.index, Part: -1}
		t.open = &llm.Message{Pos: pos, Role: t.role}
		t.items = append(t.items, t.open)
	}
	if said, ok := p.(*llm.Text); ok && t.texts != nil {
		said.Opaque, t.texts = append(said.Opaque, t.texts...), nil
	}
	t.open.Parts = append(t.open.Parts, p)
}

// add adds an item of another kind.
func (t *turn) add(item llm.Item) {
	t.open = nil
	t.items = append(t.items, item)
}

// done is what the message says. A turn that came back sealed stands for its
// items, unless the client has changed them.
func (t *turn) done() []llm.Item {
	if t.whole != nil && dialect.Unchanged(t.whole.Data, t.items) {
		return []llm.Item{&llm.NativeTurn{Pos: llm.Pos{Item: t.index, Part: -1}, Opaque: *t.whole, Items: t.items}}
	}
	return t.items
}

// block reads a block of the message's content.
func (t *turn) block(part int, block []byte) error {
	path := fmt.Sprintf("%s[%d]", t.path, part)
	pos := llm.Pos{Item: t.index, Part: part}
	kind := dialect.Text(block, "type")
	switch {
	case kind == "text":
		said, err := t.decoder.text(pos, path, block)
		if err != nil {
			return err
		}
		t.cite(said, block)
		t.say(said)
		return nil
	case t.role == llm.System:
		return unknownBlock(path, kind, block)
	case t.role == llm.Assistant:
		return t.assistantBlock(pos, path, kind, block)
	case kind == "tool_result":
		return t.result(pos, path, block)
	}
	p, err := t.part(pos, path, "", kind, block)
	if err != nil {
		return err
	}
	t.say(p)
	return nil
}

func (t *turn) assistantBlock(pos llm.Pos, path, kind string, block []byte) error {
	switch kind {
	case "thinking":
		return t.thinkingBlock(pos, path, block)
	case "redacted_thinking":
		data, err := wanted(path+".data", member(block, "data"), jsonedit.KindString)
		if err != nil {
			return err
		}
		t.reason(&llm.Reasoning{Pos: pos}, data, llm.Redacted)
		return nil
	case "tool_use":
		return t.call(pos, path, block)
	case "server_tool_use", "mcp_tool_use":
		t.serverUse(pos, block)
		return nil
	case "container_upload", "compaction", "fallback":
		return unknownBlock(path, kind, block)
	}
	if strings.HasSuffix(kind, "_tool_result") && kind != "tool_result" {
		t.serverResult(pos, block)
		return nil
	}
	return unknownBlock(path, kind, block)
}

func (t *turn) thinkingBlock(pos llm.Pos, path string, block []byte) error {
	thought, err := wanted(path+".thinking", member(block, "thinking"), jsonedit.KindString)
	if err != nil {
		return err
	}
	signature, err := optional(path+".signature", member(block, "signature"), jsonedit.KindString)
	if err != nil {
		return err
	}
	r := &llm.Reasoning{Pos: pos}
	if !thought.Blank() {
		r.Texts = []llm.Thought{{Text: thought}}
	}
	t.reason(r, signature, llm.Signature)
	return nil
}

// reason adds reasoning with its state, which is Anthropic's own or sealed. A
// seal that cannot be opened is no state of anybody.
func (t *turn) reason(r *llm.Reasoning, state llm.Raw, kind llm.OpaqueKind) {
	switch sealed, ok := t.key.Open(sealText(state)); {
	case ok:
		if !t.unseal(r, sealed) {
			return
		}
	case !state.Blank() && !isSeal(state):
		r.Opaque = []llm.Opaque{{Kind: kind, Vendor: vendor, Data: state}}
	}
	t.add(r)
}

// vendor is who reads Anthropic's opaque state.
const vendor = "anthropic"

func isSeal(state llm.Raw) bool {
	return strings.HasPrefix(string(state.Inner()), seal.Prefix)
}

func sealText(state llm.Raw) string {
	if !isSeal(state) {
		return ""
	}
	return state.Text()
}

// unseal puts sealed state where it belongs. It reports false when nothing is
// left of the reasoning that carried it.
func (t *turn) unseal(r *llm.Reasoning, s seal.Sealed) bool {
	who, what, _ := strings.Cut(s.Kind, ".")
	o := llm.Opaque{Vendor: who, Origin: text(s.Get("o"))}
	get := func(name string) llm.Raw { return s.Get(name) }
	switch {
	case s.Kind == "plain":
		o.Kind = llm.PlainMark
	case what == "thinking":
		o.Kind, o.Data = llm.Signature, get("s")
		if thought := get("t"); thought.IsText() { // the sealed text wins over what can be edited
			r.Texts = []llm.Thought{{Text: thought}}
		}
	case what == "redacted":
		o.Kind, o.Data = llm.Redacted, get("d")
	case what == "item":
		o.Kind, o.Data, r.ID = llm.Encrypted, get("e"), get("id")
		for i := range r.Texts {
			r.Texts[i].Summary = true
		}
	case what == "call":
		o.Kind, o.Data, o.For = llm.ThoughtSignature, get("s"), get("c")
		if call := t.calls[o.For.Text()]; call != nil {
			o.For = nil
			call.Opaque = append(call.Opaque, o)
			return len(r.Texts) > 0
		}
		r.Opaque = append(r.Opaque, o)
		t.signed = append(t.signed, r)
		return true
	case what == "text":
		o.Kind, o.Data = llm.ThoughtSignature, get("s")
		i, _ := strconv.Atoi(string(get("i")))
		t.signText(o, i > r.Pos.Part)
		return len(r.Texts) > 0
	case what == "turn":
		o.Kind, o.Data = llm.WholeTurn, get("b")
		if o.Data.Kind() == jsonedit.KindArray {
			t.whole = &o
		}
		return len(r.Texts) > 0
	default:
		return true
	}
	if o.Kind != llm.PlainMark && !o.Data.IsText() {
		return true
	}
	r.Opaque = append(r.Opaque, o)
	return true
}

// signText gives the signature of a text to the one that comes, or to the one
// before it, where it was told after that.
func (t *turn) signText(o llm.Opaque, comes bool) {
	if t.open != nil && !comes {
		if said, ok := t.open.Parts[len(t.open.Parts)-1].(*llm.Text); ok {
			said.Opaque = append(said.Opaque, o)
			return
		}
	}
	t.texts = append(t.texts, o)
}

func (t *turn) call(pos llm.Pos, path string, block []byte) error {
	id, err := wanted(path+".id", member(block, "id"), jsonedit.KindString)
	if err != nil {
		return err
	}
	name, err := wanted(path+".name", member(block, "name"), jsonedit.KindString)
	if err != nil {
		return err
	}
	input, err := optional(path+".input", member(block, "input"), jsonedit.KindObject)
	if err != nil {
		return err
	}
	if input == nil {
		input = emptyObject
	}
	call := &llm.ToolCall{Pos: pos, ID: id, Name: name.Text(), Args: llm.QuoteJSON(input)}
	if given(member(block, "cache_control")) {
		t.req.Notes.Drop("cache_control") // calls have no place for it
	}
	t.takeSigned(call)
	if t.calls == nil {
		t.calls = map[string]*llm.ToolCall{}
	}
	t.calls[id.Text()] = call
	t.add(call)
	return nil
}

// takeSigned moves the signatures that came before a call onto it.
func (t *turn) takeSigned(call *llm.ToolCall) {
	for _, r := range t.signed {
		kept := r.Opaque[:0]
		for _, o := range r.Opaque {
			if o.For != nil && sameText(o.For, call.ID) {
				o.For = nil
				call.Opaque = append(call.Opaque, o)
				continue
			}
			kept = append(kept, o)
		}
		r.Opaque = kept
	}
}

func (t *turn) result(pos llm.Pos, path string, block []byte) error {
	id, err := wanted(path+".tool_use_id", member(block, "tool_use_id"), jsonedit.KindString)
	if err != nil {
		return err
	}
	r := &llm.ToolResult{Pos: pos, ID: id}
	if r.IsError, err = openai.Flag(path+".is_error", member(block, "is_error")); err != nil {
		return err
	}
	content := member(block, "content")
	switch content.Kind() {
	case jsonedit.KindString:
		r.Parts = []llm.Part{&llm.Text{Pos: pos, Text: content}}
	case jsonedit.KindArray:
		n := 0
		for inner := range jsonedit.Elements(content) {
			at := fmt.Sprintf(".content[%d]", n)
			p, err := t.part(pos, path+at, at, dialect.Text(inner, "type"), inner)
			if err != nil {
				return err
			}
			r.Parts = append(r.Parts, p)
			n++
		}
	default:
		if content != nil {
			return openai.WrongType(path+".content", "a string or an array of blocks", content)
		}
	}
	cache, err := t.breakpoint(path+".cache_control", member(block, "cache_control"))
	if err != nil {
		return err
	}
	if cache != nil && !mark(r.Parts, cache) {
		t.req.Notes.Drop("cache_control")
	}
	t.add(r)
	return nil
}

// mark puts a breakpoint at the end of parts; it reports false when they have
// no place for it.
func mark(parts []llm.Part, cache *llm.Breakpoint) bool {
	if len(parts) == 0 {
		return false
	}
	switch p := parts[len(parts)-1].(type) {
	case *llm.Text:
		p.Cache = cache
	case *llm.Media:
		p.Cache = cache
	case *llm.SearchResult:
		p.Cache = cache
	default:
		return false
	}
	return true
}

// serverUse reads a call that the upstream ran itself; its result comes in a
// block of its own.
func (t *turn) serverUse(pos llm.Pos, block []byte) {
	id := member(block, "id")
	call := newServerCall(block)
	call.Pos = pos
	if t.servers == nil {
		t.servers = map[string]*llm.ServerCall{}
	}
	t.servers[id.Text()] = call
	t.add(call)
}

func (t *turn) serverResult(pos llm.Pos, block []byte) {
	call := t.servers[dialect.Text(block, "tool_use_id")]
	if call == nil {
		call = &llm.ServerCall{Pos: pos, ID: member(block, "tool_use_id")}
		t.add(call)
	}
	finishServerCall(call, block)
}
