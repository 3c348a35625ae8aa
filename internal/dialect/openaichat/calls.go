package openaichat

import (
	"bytes"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// choiceCalls are the tool calls of one choice, in order.
type choiceCalls []toolCall

type toolCall struct {
	id    []byte // raw; nil while the server gave none
	index string // raw, as the server counts; "" when it does not
	name  string
	named bool
	twin  bool // its ID is another call's
	made  bool // its ID was made here
}

// mendCalls makes the fragments of tool calls such that clients neither merge
// two calls nor fail on one: every fragment has an index, dense and in order;
// type and name come with the first fragment of a call only; arguments are a
// string. It returns nil when they are so already.
func (f *follower) mendCalls(fragments []byte, choice int) ([]byte, error) {
	for len(f.calls) <= choice {
		f.calls = append(f.calls, nil)
	}
	calls := &f.calls[choice]
	changed := false
	var list [][]byte
	for fragment := range jsonedit.Elements(fragments) {
		if err := jsonedit.Scan(fragment, callFields, &f.call); err != nil {
			return nil, dialect.Malformed(err)
		}
		changes := f.mendCall(calls, choice)
		if len(changes) > 0 {
			fragment, changed = jsonedit.Edited(fragment, &f.call, changes...), true
		}
		list = append(list, fragment)
	}
	if !changed {
		return nil, nil
	}
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']'), nil
}

func (f *follower) mendCall(calls *choiceCalls, choice int) (changes []jsonedit.Change) {
	id := f.call.Value(callID)
	if jsonedit.KindOf(id) != jsonedit.KindString || len(id) == len(`""`) {
		id = nil
	}
	name, _ := jsonedit.Get(f.call.Value(callFunction), "name")
	called, _ := jsonedit.Unquote(name)
	at, first := calls.place(string(f.call.Value(callIndex)), id, called)
	if want := strconv.Itoa(at); string(f.call.Value(callIndex)) != want {
		changes = append(changes, jsonedit.Set(callIndex, []byte(want)))
	}
	switch call := &(*calls)[at]; {
	case first && (id == nil || call.twin):
		call.made = true
		changes = append(changes, jsonedit.Set(callID, llm.Quote(madeID(llm.Raw(f.head.id).Text(), choice, at))))
	case call.made && f.call.Value(callID) != nil:
		changes = append(changes, jsonedit.Remove(callID)) // the client has one
	}
	function := f.call.Value(callFunction)
	if first && f.call.Value(callType) == nil && function != nil {
		changes = append(changes, jsonedit.Set(callType, []byte(`"function"`)))
	}
	if better := mendFunction(function, &(*calls)[at].named); better != nil {
		changes = append(changes, jsonedit.Set(callFunction, better))
	}
	return changes
}

// place finds the call that a fragment belongs to: the one with its id, unless
// another index and a name tell that a server gives all calls the same; else
// the latest with its index, as servers count from 0, from 1, or not at all;
// else the one that was last spoken of. A name begins a call anew where that
// one has a name, unless only the name comes again. first says that the
// fragment begins a call.
func (c *choiceCalls) place(index string, id []byte, name string) (at int, first bool) {
	latest, named := -1, -1
	for i, call := range *c {
		switch same := id != nil && bytes.Equal(call.id, id); {
		case same && (index == call.index || index == "" || call.index == ""):
			return i, false
		case same:
			named = i
		case call.index == index:
			latest = i
		}
	}
	if named >= 0 && (name == "" || (*c)[named].name == "") {
		return named, false
	}
	if latest < 0 && id == nil && index == "" {
		latest = len(*c) - 1
	}
	if latest >= 0 && (id == nil || (*c)[latest].id == nil) && !(*c)[latest].over(name) {
		call := &(*c)[latest]
		if id != nil {
			call.id = bytes.Clone(id)
		}
		if call.name == "" {
			call.name = name
		}
		return latest, false
	}
	*c = append(*c, toolCall{id: bytes.Clone(id), index: index, name: name, twin: named >= 0})
	return len(*c) - 1, true
}

// over reports whether a name is that of another call. Servers that give IDs
// give one to every call, so that there the same name is the same call's.
func (t *toolCall) over(name string) bool {
	return name != "" && t.name != "" && (t.id == nil || t.name != name)
}

var functionFields = jsonedit.NewFields("name", "arguments")

// mendFunction returns the function of a fragment anew when its arguments are
// no string or its name comes again.
func mendFunction(function []byte, named *bool) []byte {
	var object jsonedit.Object
	if jsonedit.KindOf(function) != jsonedit.KindObject || jsonedit.Scan(function, functionFields, &object) != nil {
		return nil
	}
	var changes []jsonedit.Change
	if name := object.Value(0); len(name) > len(`""`) && jsonedit.KindOf(name) == jsonedit.KindString {
		if *named {
			changes = append(changes, jsonedit.Remove(0))
		}
		*named = true
	}
	if arguments := object.Value(1); arguments != nil && jsonedit.KindOf(arguments) != jsonedit.KindString {
		text := ""
		if jsonedit.KindOf(arguments) != jsonedit.KindNull {
			text = string(arguments)
		}
		changes = append(changes, jsonedit.Set(1, jsonedit.AppendQuote(nil, text)))
	}
	if len(changes) == 0 {
		return nil
	}
	return jsonedit.Edited(function, &object, changes...)
}
