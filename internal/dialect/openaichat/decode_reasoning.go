package openaichat

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// The vendors whose state has a form of its own in this dialect.
const (
	anthropic = "anthropic"
	google    = "google"
)

// formats are the forms of reasoning_details, by who reads them.
var formats = map[string]string{
	anthropic: "anthropic-claude-v1",
	google:    "google-gemini-v1",
	"openai":  "openai-responses-v1",
	"azure":   "azure-openai-responses-v1",
	"xai":     "xai-responses-v1",
}

var readers = func() map[string]string {
	m := map[string]string{}
	for vendor, format := range formats {
		m[format] = vendor
	}
	return m
}()

// thoughts are what a message of the assistant says of its reasoning.
type thoughts struct {
	at     int
	blocks []*thoughtBlock
	byID   map[string]*thoughtBlock
	// texts are signatures of the message's text, calls those of its calls.
	texts, calls []llm.Opaque
	turn         *llm.Opaque // the whole turn, as its model made it
}

// thoughtBlock is one piece of reasoning; index is its position among the
// blocks of the turn, -1 when it only comes before all else.
type thoughtBlock struct {
	index  int
	vendor string
	item   *llm.Reasoning
	pieces []llm.Raw // of the text at grows
	grows  int
}

// join puts the pieces of a text together.
func (b *thoughtBlock) join() {
	if len(b.pieces) > 0 {
		b.item.Texts[b.grows].Text = llm.Concat("", b.pieces...)
	}
}

func (d *requestDecoder) reasonings(m *message, calls []*llm.ToolCall) *thoughts {
	t := &thoughts{at: m.at, byID: map[string]*thoughtBlock{}}
	switch {
	case m.details != nil:
		for entry := range jsonedit.Elements(m.details) {
			if !t.entry(entry, d.key) {
				d.req.Notes.Drop("reasoning_details")
			}
		}
	case m.thinking != nil:
		for block := range jsonedit.Elements(m.thinking) {
			t.block(block)
		}
	}
	if m.reasoning != nil && !slices.ContainsFunc(t.blocks, func(b *thoughtBlock) bool { return len(b.item.Texts) > 0 }) {
		// Otherwise it is the twin of what the details tell in full.
		b := t.add(-1, "", nil)
		b.item.Texts = []llm.Thought{{Text: m.reasoning}}
	}
	for _, b := range t.blocks {
		b.join()
	}
	t.signCalls(calls)
	return t
}

// signCalls gives the signatures of calls to the calls.
func (t *thoughts) signCalls(calls []*llm.ToolCall) {
	if len(t.calls) == 0 {
		return
	}
	byID := make(map[string]*llm.ToolCall, len(calls))
	for _, c := range calls {
		byID[string(c.ID)] = c
	}
	for _, o := range t.calls {
		if c := byID[string(o.For)]; c != nil && len(c.Opaque) == 0 {
			o.For = nil
			c.Opaque = append(c.Opaque, o)
		}
	}
}

func (t *thoughts) add(index int, vendor string, id llm.Raw) *thoughtBlock {
	b := &thoughtBlock{index: index, vendor: vendor, item: &llm.Reasoning{Pos: llm.Pos{Item: t.at, Part: -1}, ID: id}}
	t.blocks = append(t.blocks, b)
	if id != nil {
		t.byID[vendor+string(id)] = b
	}
	return b
}

// find is the block that an entry belongs to: entries of one item share its
// ID, pieces of one text its index.
func (t *thoughts) find(index int, vendor string, id llm.Raw) *thoughtBlock {
	if b := t.byID[vendor+string(id)]; b != nil && id != nil {
		return b
	}
	if vendor != anthropic {
		index = -1
	}
	return t.add(index, vendor, id)
}

// entry reads one of reasoning_details. It reports false for what is of no use.
func (t *thoughts) entry(entry llm.Raw, key seal.Key) bool {
	vendor := readers[dialect.Text(entry, "format")]
	id, index := dialect.Member(entry, "id"), -1
	if n, ok := integer(dialect.Member(entry, "index")); ok && n >= 0 && n < 1<<20 {
		index = int(n)
	}
	said, summary := dialect.Member(entry, "text"), dialect.Member(entry, "summary")
	switch dialect.Text(entry, "type") {
	case "reasoning.text":
		return t.text(index, vendor, id, said, dialect.Member(entry, "signature"), key)
	case "reasoning.summary":
		if summary.IsText() {
			b := t.find(index, vendor, id)
			b.item.Texts = append(b.item.Texts, llm.Thought{Text: summary, Summary: true})
		}
		return true
	case "reasoning.encrypted":
		data := dialect.Member(entry, "data")
		switch {
		case data.Blank() || !data.IsText():
			return false
		case seal.Is(data.Text()):
			return t.open(index, data.Text(), key)
		case vendor == google && id != nil:
			t.calls = append(t.calls, llm.Opaque{Kind: llm.ThoughtSignature, Vendor: google, Data: data, For: id})
		case vendor == google:
			t.texts = append(t.texts, llm.Opaque{Kind: llm.ThoughtSignature, Vendor: google, Data: data})
		case vendor == anthropic:
			b := t.add(index, vendor, nil)
			b.item.Opaque = []llm.Opaque{{Kind: llm.Redacted, Vendor: vendor, Data: data}}
		default:
			b := t.find(index, vendor, id)
			b.item.Opaque = append(b.item.Opaque, llm.Opaque{Kind: llm.Encrypted, Vendor: vendor, Data: data})
		}
		return true
	}
	return false
}

// text is a piece of a text or its signature. Clients that only collect what
// was streamed give a text back in pieces.
func (t *thoughts) text(index int, vendor string, id, said, signature llm.Raw, key seal.Key) bool {
	if !said.IsText() && signature.Blank() {
		return false
	}
	if seal.Is(signature.Text()) {
		return t.open(index, signature.Text(), key)
	}
	var b *thoughtBlock
	if n := len(t.blocks); n > 0 && id == nil && index >= 0 {
		last := t.blocks[n-1]
		if last.index == index && last.vendor == vendor && len(last.item.Opaque) == 0 && len(last.item.Texts) == 1 {
			b = last
		}
	}
	if b == nil {
		b = t.find(index, vendor, id)
		b.join()
		b.grows, b.pieces = len(b.item.Texts), nil
		b.item.Texts = append(b.item.Texts, llm.Thought{Text: llm.Raw(`""`)})
	}
	if said.IsText() {
		b.pieces = append(b.pieces, said)
	}
	if !signature.Blank() {
		b.item.Opaque = append(b.item.Opaque, llm.Opaque{Kind: llm.Signature, Vendor: vendor, Data: signature})
	}
	return true
}

// block reads one of LiteLLM's thinking_blocks.
func (t *thoughts) block(block llm.Raw) {
	switch dialect.Text(block, "type") {
	case "thinking":
		b := t.add(-1, anthropic, nil)
		said := dialect.Member(block, "thinking")
		if !said.IsText() {
			said = llm.Raw(`""`)
		}
		b.item.Texts = []llm.Thought{{Text: said}}
		if s := dialect.Member(block, "signature"); !s.Blank() {
			b.item.Opaque = []llm.Opaque{{Kind: llm.Signature, Vendor: anthropic, Data: s}}
		}
	case "redacted_thinking":
		b := t.add(-1, anthropic, nil)
		b.item.Opaque = []llm.Opaque{{Kind: llm.Redacted, Vendor: anthropic, Data: dialect.Member(block, "data")}}
	}
}

// open reads what this gateway has sealed. It reports false for what it has
// not.
func (t *thoughts) open(index int, text string, key seal.Key) bool {
	s, ok := key.Open(text)
	if !ok {
		return false
	}
	vendor, _, _ := strings.Cut(s.Kind, ".")
	origin := llm.Raw(s.Get("o")).Text()
	opaque := func(kind llm.OpaqueKind, field string) llm.Opaque {
		return llm.Opaque{Kind: kind, Vendor: vendor, Origin: origin, Data: s.Get(field)}
	}
	switch s.Kind {
	case "anthropic.turn":
		turn := opaque(llm.WholeTurn, "b")
		t.turn = &turn
	case "anthropic.thinking":
		b := t.add(index, vendor, nil)
		b.item.Texts = []llm.Thought{{Text: s.Get("t")}}
		b.item.Opaque = []llm.Opaque{opaque(llm.Signature, "s")}
	case "anthropic.redacted":
		b := t.add(index, vendor, nil)
		b.item.Opaque = []llm.Opaque{opaque(llm.Redacted, "d")}
	case "openai.item":
		b := t.add(-1, vendor, s.Get("id"))
		b.item.Opaque = []llm.Opaque{opaque(llm.Encrypted, "e")}
	case "google.call":
		o := opaque(llm.ThoughtSignature, "s")
		o.For = s.Get("c")
		t.calls = append(t.calls, o)
	case "google.text":
		t.texts = append(t.texts, opaque(llm.ThoughtSignature, "s"))
	case "plain":
	default:
		return false
	}
	return true
}

// signText gives the signatures of the text to the text. That of the message is
// none when a call has it too: OpenAI's Agents SDK repeats on the message what
// a call came with.
func (t *thoughts) signText(said *llm.Message, calls []*llm.ToolCall, m *message) {
	ofCall := slices.ContainsFunc(calls, func(c *llm.ToolCall) bool {
		return slices.ContainsFunc(c.Opaque, func(o llm.Opaque) bool { return bytes.Equal(o.Data, m.signature) })
	})
	if m.signature != nil && !ofCall && len(t.texts) == 0 {
		t.texts = append(t.texts, llm.Opaque{Kind: llm.ThoughtSignature, Vendor: google, Data: m.signature})
	}
	if len(t.texts) == 0 {
		return
	}
	if said != nil {
		for i := len(said.Parts) - 1; i >= 0; i-- {
			if text, ok := said.Parts[i].(*llm.Text); ok {
				text.Opaque = append(text.Opaque, t.texts...)
				return
			}
		}
	}
	b := t.add(-1, google, nil)
	b.item.Opaque = t.texts
}

// lay puts reasoning, text and calls in the order in which the model made
// them. Where the positions of blocks are known, text and calls fill the
// places between them.
func (t *thoughts) lay(said *llm.Message, calls []*llm.ToolCall) (items []llm.Item) {
	var placed []*thoughtBlock
	for _, b := range t.blocks {
		if b.index >= 0 && b.vendor == anthropic {
			placed = append(placed, b)
			continue
		}
		items = append(items, b.item)
	}
	slices.SortStableFunc(placed, func(a, b *thoughtBlock) int { return a.index - b.index })
	at := 0
	before := func() {
		for len(placed) > 0 && placed[0].index <= at {
			items, placed, at = append(items, placed[0].item), placed[1:], max(at, placed[0].index+1)
		}
	}
	if said != nil {
		before()
		items, at = append(items, said), at+len(said.Parts)
	}
	for _, c := range calls {
		before()
		items, at = append(items, c), at+1
	}
	for _, b := range placed {
		items = append(items, b.item)
	}
	return items
}

// signatureOf finds a thought signature where Google's own endpoint and
// LiteLLM put it.
func signatureOf(extra llm.Raw) llm.Raw {
	if s := dialect.Member(extra, "google", "thought_signature"); s.IsText() && !s.Blank() {
		return s
	}
	if s := dialect.Member(extra, "thought_signature"); s.IsText() && !s.Blank() {
		return s
	}
	for s := range jsonedit.Elements(dialect.Member(extra, "thought_signatures")) {
		if llm.Raw(s).IsText() {
			return s
		}
	}
	return nil
}

// glue is what LiteLLM puts between the ID of a call and its signature.
const glue = "__thought__"

// unglued takes a signature off the ID of a call.
func unglued(id llm.Raw) (clean, signature llm.Raw) {
	before, after, found := strings.Cut(id.Text(), glue)
	if !found || before == "" {
		return id, nil
	}
	return llm.Quote(before), llm.Quote(after)
}

// dataURL takes a data URL apart. The data stays as it is written.
func dataURL(source llm.Raw) (data llm.Raw, mime string, ok bool) {
	const scheme = `"data:`
	if !strings.HasPrefix(string(source[:min(len(source), len(scheme))]), scheme) {
		return nil, "", false
	}
	head, _, found := strings.Cut(string(source[:min(len(source), 200)]), ",")
	if !found {
		return nil, "", false
	}
	kind, isBase64 := strings.CutSuffix(llm.Raw(head+`"`).Text(), ";base64")
	if !isBase64 {
		return nil, "", false
	}
	mime, _, _ = strings.Cut(strings.TrimPrefix(kind, "data:"), ";")
	mime = strings.ToLower(mime)
	if mime == "image/jpg" {
		mime = "image/jpeg"
	}
	data = append(make(llm.Raw, 0, len(source)-len(head)), '"')
	return append(data, source[len(head)+1:]...), mime, true
}

// isURL reports whether a string names a place, by its first bytes.
func isURL(source llm.Raw) bool {
	head := string(source[:min(len(source), 40)])
	return strings.Contains(head, "://") || strings.Contains(head, `:\/\/`)
}

// plainText decodes the base64 of a text; nil when it is none.
func plainText(data llm.Raw) llm.Raw {
	text, err := base64.StdEncoding.DecodeString(data.Text())
	if err != nil || !utf8.Valid(text) {
		return nil
	}
	return llm.Quote(string(text))
}

// typeOf guesses the type of a file by its name.
func typeOf(name string) string {
	switch name := strings.ToLower(name); {
	case strings.HasSuffix(name, ".txt"), strings.HasSuffix(name, ".md"):
		return "text/plain"
	default:
		return "application/pdf"
	}
}
