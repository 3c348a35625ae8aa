package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Grammar of an upstream's tools: what of a client's tools must be said as
// something else there.
type Grammar struct {
	MaxName int               // bytes of a name; 0 is 64
	Letter  func(c byte) bool // may stand in a name; nil is [a-zA-Z0-9_-]
	First   func(c byte) bool // may begin one; nil is Letter
	// Native reports whether the upstream has tools of that kind itself. Those
	// are left to the encoder. Nil is functions only.
	Native func(kind llm.CallKind) bool
	// Namespaces: the upstream has them.
	Namespaces bool
}

// Function is one of a client's tools as the upstream knows it. Tools of
// other kinds have become functions, unless the upstream has their kind.
type Function struct {
	Name   string // on the wire
	Kind   llm.CallKind
	Desc   llm.Raw
	Schema llm.Raw // never nil for a function
	Tool   *llm.Tool
}

// Names maps the names of tools between a client and an upstream. Names that
// are in no table pass as they are.
type Names struct {
	grammar *Grammar
	byWire  map[string]*Function
	byTool  map[llm.ToolName]*Function
}

// Wire is the name of a tool at the upstream.
func (n *Names) Wire(space, name string) string {
	if n == nil {
		return name
	}
	if f := n.byTool[llm.ToolName{Namespace: space, Name: name}]; f != nil {
		return f.Name
	}
	return n.grammar.name(space, name, nil)
}

// Tool is the client's tool that an upstream's name stands for; nil when the
// client has none of that name.
func (n *Names) Tool(wire string) *Function {
	if n == nil {
		return nil
	}
	return n.byWire[wire]
}

// Schemas of tools that have become functions.
var (
	noArguments    = llm.Raw(`{"type":"object","properties":{}}`)
	textArgument   = llm.Raw(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`)
	patchArgument  = llm.Raw(`{"type":"object","properties":{"operation":{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string"}},"required":["type","path"]}},"required":["operation"]}`)
	shellArgument  = llm.Raw(`{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"}},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}`)
	localArgument  = llm.Raw(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}},"timeout_ms":{"type":"integer"},"user":{"type":"string"},"working_directory":{"type":"string"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}`)
	searchArgument = llm.Raw(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)
)

// fixed are the tools whose form is their type's own.
var fixed = map[llm.CallKind]struct{ desc, schema llm.Raw }{
	llm.ShellCall:      {llm.Quote("Runs shell commands and returns what they print."), shellArgument},
	llm.LocalShellCall: {llm.Quote("Runs a command on the user's machine and returns what it prints."), localArgument},
	llm.ApplyPatchCall: {llm.Quote("Creates, updates or deletes a file. The diff is in the V4A format."), patchArgument},
	llm.ToolSearchCall: {llm.Quote("Searches for tools that can then be called."), searchArgument},
}

// Functions says the client's own tools as an upstream takes them, in their
// order, and how their names map. Tools that the upstream would run are not
// among them.
func Functions(tools []llm.Tool, g *Grammar, notes *llm.Notes) ([]Function, *Names) {
	if g == nil {
		g = &Grammar{}
	}
	n := &Names{grammar: g, byWire: make(map[string]*Function, len(tools)), byTool: make(map[llm.ToolName]*Function, len(tools))}
	list := make([]Function, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		if t.Server != nil {
			continue
		}
		id := llm.ToolName{Namespace: t.Namespace, Name: t.Name}
		if n.byTool[id] != nil {
			continue // delivered twice, as additional_tools may be
		}
		f := Function{Kind: t.Kind, Desc: t.Desc, Schema: t.Schema, Tool: t}
		if t.Kind == llm.FunctionCall || g.Native == nil || !g.Native(t.Kind) {
			f.become(t, notes)
		}
		f.Name = g.name(t.Namespace, t.Name, n.byWire)
		if g.Namespaces {
			f.Name = t.Name
		}
		list = append(list, f)
		at := &list[len(list)-1]
		n.byWire[f.Name], n.byTool[id] = at, at
	}
	return list, n
}

// become makes a function of a tool.
func (f *Function) become(t *llm.Tool, notes *llm.Notes) {
	switch {
	case t.Kind == llm.CustomCall:
		f.Schema = textArgument
		if text := grammarText(t.Grammar); text != "" {
			f.Desc = llm.Concat("\n\n", t.Desc, llm.Quote(text))
			notes.Degrade("grammar")
		}
	case t.Kind != llm.FunctionCall:
		if !f.Desc.Given() {
			f.Desc = fixed[t.Kind].desc
		}
		if !f.Schema.Given() {
			f.Schema = fixed[t.Kind].schema
		}
	case !f.Schema.Given():
		f.Schema = noArguments
	}
}

func grammarText(format llm.Raw) string {
	definition := Text(format, "definition")
	if definition == "" {
		return ""
	}
	return "The input must match this " + Text(format, "syntax") + " grammar:\n" + definition
}

// Wrapped are the arguments of a call of a custom tool at an upstream that
// knows functions only.
func Wrapped(input llm.Raw) llm.Raw {
	if !input.IsText() {
		input = llm.Raw(`""`)
	}
	return llm.QuoteJSON(append(append(llm.Raw(`{"input":`), input...), '}'))
}

// Unwrapped is the input of a custom tool from the arguments of the function
// that stood for it. What is no such object is the input itself.
func Unwrapped(args llm.Raw) llm.Raw {
	object, ok := args.Object()
	if !ok {
		return args
	}
	input, found := jsonedit.Get(object, "input")
	if !found || jsonedit.KindOf(input) != jsonedit.KindString {
		return args
	}
	return input
}

// name is a tool's name as the upstream takes it: with the namespace in front
// where that is needed to tell it from the others, and cut with a hash of the
// whole where it is too long or has characters that the upstream does not
// take. The same tool has the same name in every turn.
func (g *Grammar) name(space, name string, taken map[string]*Function) string {
	whole := name
	if space != "" {
		whole = space + "__" + name
	}
	limit := g.MaxName
	if limit == 0 {
		limit = 64
	}
	clean := make([]byte, 0, len(whole))
	for i := range len(whole) {
		c := whole[i]
		if !g.letter(c) {
			c = '_'
		}
		clean = append(clean, c)
	}
	if len(clean) > 0 && g.First != nil && !g.First(clean[0]) {
		clean = append([]byte{'_'}, clean...)
	}
	if string(clean) == whole && len(whole) <= limit && taken[whole] == nil {
		return whole
	}
	if string(clean) != whole && len(clean) <= limit && taken[string(clean)] == nil && strings.HasSuffix(string(clean), whole) {
		return string(clean)
	}
	sum := sha256.Sum256([]byte(whole))
	mark := "_" + hex.EncodeToString(sum[:4])
	if len(clean) > limit-len(mark) {
		clean = clean[:limit-len(mark)]
	}
	return string(clean) + mark
}

func (g *Grammar) letter(c byte) bool {
	if g.Letter != nil {
		return g.Letter(c)
	}
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// Restore gives calls back the names and kinds that the client knows. Calls of
// custom tools are held back until they are whole: what they were wrapped in
// may be cut anywhere.
type Restore struct {
	names *Names
	held  map[int]*heldCall
}

type heldCall struct{ args llm.Raw }

// NewRestore restores what Functions has changed.
func NewRestore(names *Names) *Restore { return &Restore{names: names} }

// Event appends what becomes of an event.
func (r *Restore) Event(dst []llm.Event, e llm.Event) []llm.Event {
	switch e := e.(type) {
	case llm.Open:
		if e.Kind != llm.CallItem {
			break
		}
		f := r.names.Tool(e.Name)
		if f == nil {
			break
		}
		e.Name, e.Space = f.Tool.Name, f.Tool.Namespace
		if f.Kind == llm.CustomCall && e.Call == llm.FunctionCall {
			if r.held == nil {
				r.held = map[int]*heldCall{}
			}
			r.held[e.Item] = &heldCall{args: llm.Raw{'"'}}
		}
		e.Call = f.Kind
		return append(dst, e)
	case llm.Delta:
		if h := r.held[e.Item]; h != nil {
			h.args = append(h.args, e.Data.Inner()...)
			return dst
		}
	case llm.Close:
		if h := r.held[e.Item]; h != nil {
			delete(r.held, e.Item)
			dst = append(dst, llm.Delta{Item: e.Item, Channel: llm.ArgsChannel, Data: Unwrapped(append(h.args, '"'))})
		}
	}
	return append(dst, e)
}
