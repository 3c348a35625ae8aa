package openaichat

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// tools writes the tools and which of them must be called.
func (e *requestEncoder) tools() error {
	e.functions, e.names = dialect.Functions(e.req.Tools, &dialect.Grammar{Native: e.native}, &e.notes)
	if err := e.hosted(); err != nil {
		return err
	}
	if len(e.functions) == 0 {
		return nil
	}
	if e.req.ToolChoice.Mode == llm.ChoiceNone && !e.chooses("none") {
		e.notes.Degrade("tool_choice")
		e.functions = nil // what is not there is not called
		return nil
	}
	e.strictAlike()
	e.w.Array("tools")
	for i := range e.functions {
		e.tool(&e.functions[i])
	}
	e.w.EndArray()
	e.choice()
	p := e.req.Parallel
	if p == nil && e.chat.ParallelOff {
		e.put("parallel_tool_calls", jsonTrue) // as everywhere else
	}
	if p != nil {
		switch {
		case !e.caps.NoParallel:
			e.put("parallel_tool_calls", llm.Raw(strconv.FormatBool(*p)))
		case !*p:
			e.drop("parallel_tool_calls")
		}
	}
	return nil
}

// strictAlike has no function be strict where some are not and the server
// wants them alike.
func (e *requestEncoder) strictAlike() {
	strict := func(f dialect.Function) bool { return f.Tool.Strict != nil && *f.Tool.Strict }
	if !e.chat.StrictAlike || !slices.ContainsFunc(e.functions, strict) {
		return
	}
	for _, f := range e.functions {
		if !strict(f) {
			e.unstrict = true
			e.notes.Drop("strict")
			return
		}
	}
}

// native reports whether the server has tools of a kind. Custom ones are
// OpenAI's own.
func (e *requestEncoder) native(kind llm.CallKind) bool {
	return kind == llm.CustomCall && e.chat.Native && !e.chat.NoCustom && !e.chat.NoGrammar
}

// hosted are the tools that an upstream would run, which servers of this
// dialect do not have but for the search.
func (e *requestEncoder) hosted() error {
	c := &e.req.ToolChoice
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		if t.Server == nil {
			continue
		}
		if e.own && t.Server.Kind == llm.WebSearch && e.takes("web_search_options") {
			e.put("web_search_options", t.Native)
			continue
		}
		forced := c.Hosted && c.Server == t.Server.Kind && c.Mode >= llm.ChoiceRequired
		if forced || !e.hasFunctions() {
			param := e.param("tools") + "[" + strconv.Itoa(t.Index) + "]"
			if e.own {
				param = t.Server.Type
			}
			return dialect.NotPossible(param, "The model's upstream has no tool like '%s', which '%s' asks for: use a function of your own instead.", t.Server.Type, param)
		}
		e.notes.Drop(t.Server.Type)
	}
	return nil
}

func (e *requestEncoder) tool(f *dialect.Function) {
	w := &e.w
	w.BeginObject()
	if f.Kind == llm.CustomCall && e.native(f.Kind) {
		w.SetText("type", "custom")
		w.Object("custom")
		w.SetText("name", f.Name)
		w.SetRaw("description", given(f.Desc))
		if definition := dialect.Member(f.Tool.Grammar, "definition"); definition != nil {
			w.Object("format")
			w.SetText("type", "grammar")
			w.Object("grammar")
			w.SetRaw("syntax", dialect.Member(f.Tool.Grammar, "syntax"))
			w.SetRaw("definition", definition)
			w.EndObject()
			w.EndObject()
		}
		w.EndObject()
		w.EndObject()
		return
	}
	w.SetText("type", "function")
	w.Object("function")
	w.SetText("name", f.Name)
	w.SetRaw("description", given(f.Desc))
	w.SetRaw("parameters", e.schema(f.Schema))
	if strict := f.Tool.Strict; strict != nil && f.Kind == llm.FunctionCall && !e.unstrict {
		switch {
		case e.caps.NoStrictTools && *strict:
			e.notes.Drop("strict")
		case !e.caps.NoStrictTools && (e.own || *strict): // false is what servers take it for
			w.SetBool("strict", *strict)
		}
	}
	w.EndObject()
	if f.Tool.Cache != nil {
		if e.marked() {
			w.SetRaw("cache_control", ephemeral(f.Tool.Cache))
		} else {
			e.dropBreakpoint()
		}
	}
	w.EndObject()
}

func (e *requestEncoder) dropBreakpoint() {
	if e.own {
		e.notes.Drop("prompt_cache_breakpoint")
		return
	}
	e.drop("cache_control")
}

// given is a value, nil when it is null.
func given(r llm.Raw) llm.Raw {
	if !r.Given() {
		return nil
	}
	return r
}

// chooses reports whether the server takes a word of tool_choice.
func (e *requestEncoder) chooses(word string) bool {
	words := e.chat.ToolChoice
	if e.chat.ThinkingChoice != nil && e.thinks(true) {
		words = e.chat.ThinkingChoice
	}
	return words == nil || slices.Contains(words, word)
}

func (e *requestEncoder) choice() {
	c := e.req.ToolChoice
	if c.Hosted {
		return // of a tool that is not there
	}
	if c.Allowed && c.Mode == llm.ChoiceRequired && len(c.Names) == 1 {
		c.Mode, c.Allowed = llm.ChoiceNamed, false
	}
	if c.Allowed {
		if e.chat.Native {
			e.allowed(&c)
			return
		}
		e.notes.Degrade("tool_choice")
	}
	demands := c.Mode == llm.ChoiceRequired || c.Mode == llm.ChoiceNamed
	switch {
	case demands && e.caps.NoForcedTool:
		e.weaken("auto")
	case c.Mode == llm.ChoiceNamed && len(c.Names) > 0 && e.chooses("function"):
		e.named(c.Names[0])
	case c.Mode == llm.ChoiceNamed && len(e.functions) == 1 && e.chooses("required"):
		e.word("required")
	case c.Mode == llm.ChoiceNamed:
		e.weaken("auto")
	case c.Mode == llm.ChoiceRequired && !e.chooses("required"):
		e.weaken("auto")
	case c.Mode == llm.ChoiceRequired:
		e.word("required")
	case c.Mode == llm.ChoiceNone:
		e.word("none")
	case c.Mode == llm.ChoiceAuto && e.chooses("auto"):
		e.word("auto")
	}
}

// weaken leaves to the model what cannot be demanded of it.
func (e *requestEncoder) weaken(word string) {
	e.notes.Degrade("tool_choice")
	if e.chooses(word) {
		e.word(word)
	}
}

func (e *requestEncoder) word(word string) {
	for _, pair := range e.chat.ToolWords {
		if pair[0] == word {
			word = pair[1]
			break
		}
	}
	e.set("tool_choice", llm.Quote(word))
}

func (e *requestEncoder) named(tool llm.ToolName) {
	name := e.names.Wire(tool.Namespace, tool.Name)
	e.w.Name("tool_choice")
	e.ref(name)
}

// ref names a tool by its kind.
func (e *requestEncoder) ref(name string) {
	kind := "function"
	if f := e.names.Tool(name); f != nil && f.Kind == llm.CustomCall && e.native(f.Kind) {
		kind = "custom"
	}
	e.w.BeginObject()
	e.w.SetText("type", kind)
	e.w.Object(kind)
	e.w.SetText("name", name)
	e.w.EndObject()
	e.w.EndObject()
}

func (e *requestEncoder) allowed(c *llm.ToolChoice) {
	mode := "auto"
	if c.Mode == llm.ChoiceRequired {
		mode = "required"
	}
	w := &e.w
	w.Object("tool_choice")
	w.SetText("type", "allowed_tools")
	w.Object("allowed_tools")
	w.SetText("mode", mode)
	w.Array("tools")
	for _, tool := range c.Names {
		e.ref(e.names.Wire(tool.Namespace, tool.Name))
	}
	w.EndArray()
	w.EndObject()
	w.EndObject()
}

// call writes a call in the history.
func (e *requestEncoder) call(c *llm.ToolCall) {
	w := &e.w
	name, args := e.names.Wire(c.Namespace, c.Name), c.Args
	kind := llm.FunctionCall
	switch {
	case c.Kind == llm.CustomCall && e.native(c.Kind):
		kind = llm.CustomCall
	case c.Kind == llm.CustomCall:
		args = dialect.Wrapped(args)
	case args.Blank():
		args = llm.Raw(`"{}"`)
	}
	var sent []llm.Opaque
	for _, o := range c.Opaque {
		switch {
		case e.chat.Reasoning == reasoningDetails && e.reads(o):
			// It stands among the details.
		case e.caps.Reads(o):
			sent = append(sent, o)
		case e.own: // others have said more of their reasoning, which is noted
			e.notes.Drop("extra_content")
		}
	}
	w.BeginObject()
	writeCall(w, e.id(c.ID), kind, name, orEmpty(args), sent)
	w.EndObject()
}

// id is a call's ID as the server takes it: where it must have a form, one is
// made of the client's, the same in every turn.
func (e *requestEncoder) id(id llm.Raw) llm.Raw {
	if e.callID == nil || e.callID.MatchString(id.Text()) {
		return id
	}
	letters := hash(id.Text())
	for _, size := range [...]int{24, 9, 40, 32, 16, 12, 8} {
		if made := letters[:size]; e.callID.MatchString(made) {
			e.notes.Rename("tool_call_id")
			return llm.Quote(made)
		}
	}
	return id
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// hash is 40 letters and digits that stand for a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	out := make([]byte, 0, 40)
	for part := range 4 {
		n := binary.BigEndian.Uint64(sum[8*part:])
		for range 10 {
			out, n = append(out, base62[n%62]), n/62
		}
	}
	return string(out)
}

// madeID is the ID of a call that came without one, of where it stands.
func madeID(where string, n ...int) string { return "call_" + hash(fmt.Sprint(where, n))[:24] }
