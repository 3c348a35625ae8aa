package openaichat

import (
	"bytes"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

// choiceCalls are the tool calls of one choice, in order.
type choiceCalls []toolCall

type toolCall struct {
	id    []byte // raw; nil while the server gave none
	index string // raw, as the server counts; "" when it does not
	named bool
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
			return nil, openai.Malformed(err)
		}
		changes := f.mendCall(calls)
		if len(changes) > 0 {
			fragment, changed = openai.Edited(fragment, &f.call, changes...), true
		}
		list = append(list, fragment)
	}
	if !changed {
		return nil, nil
	}
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']'), nil
}

func (f *follower) mendCall(calls *choiceCalls) (changes []jsonedit.Change) {
	id := f.call.Value(callID)
	if jsonedit.KindOf(id) != jsonedit.KindString || len(id) == len(`""`) {
		id = nil
	}
	at, first := calls.place(string(f.call.Value(callIndex)), id)
	if want := strconv.Itoa(at); string(f.call.Value(callIndex)) != want {
		changes = append(changes, jsonedit.Set(callIndex, []byte(want)))
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

// place finds the call that a fragment belongs to: the one with its id; else
// the latest with its index, as servers count from 0, from 1, or not at all;
// else the one that was last spoken of. first says that the fragment begins a
// call.
func (c *choiceCalls) place(index string, id []byte) (at int, first bool) {
	latest := -1
	for i, call := range *c {
		if id != nil && bytes.Equal(call.id, id) {
			return i, false
		}
		if call.index == index {
			latest = i
		}
	}
	switch {
	case latest >= 0 && (id == nil || (*c)[latest].id == nil):
		if id != nil {
			(*c)[latest].id = bytes.Clone(id)
		}
		return latest, false
	case id == nil && index == "" && len(*c) > 0:
		return len(*c) - 1, false
	}
	*c = append(*c, toolCall{id: bytes.Clone(id), index: index})
	return len(*c) - 1, true
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
	return openai.Edited(function, &object, changes...)
}
