package state

import (
	"bytes"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// item is one item of a conversation, in the form that is kept: with a type and,
// for a message, a list of parts. An ID that was made here stands beside it:
// upstreams take none of what clients write. What is sent upstream is that form
// from the first turn on, so that a turn that goes on from it begins with the
// same bytes.
type item struct {
	id   string
	json []byte

	// call is the ID of the call that the item is, or whose result it is.
	call   string
	result bool

	compaction bool // it stands for all that came before it
	passing    bool // it asks for something now, and is not kept
}

var itemFields = jsonedit.NewFields("type", "id", "call_id", "role", "content", "status")

const (
	itemType = iota
	itemID
	itemCall
	itemRole
	itemContent
	itemStatus
)

// longestID is the most bytes that an item's ID may have.
const longestID = 512

// referenceType is the type of an item that stands for one that is kept.
const referenceType = "item_reference"

// prefixes of the IDs that items get, by type.
var prefixes = map[string]string{
	"message": "msg_", "reasoning": "rs_", "compaction": "cmp_",
	"function_call": "fc_", "function_call_output": "fco_",
	"custom_tool_call": "ctc_", "custom_tool_call_output": "ctco_",
}

// calls are the types of the calls that clients run, with those of their
// results.
var calls = map[string]string{
	"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
	"local_shell_call": "local_shell_call_output", "shell_call": "shell_call_output",
	"apply_patch_call": "apply_patch_call_output", "computer_call": "computer_call_output",
}

var results = func() map[string]bool {
	set := map[string]bool{}
	for _, result := range calls {
		set[result] = true
	}
	return set
}()

// readInput lays out a request's input as items; refs are those that only
// refer to kept ones, by their place. ids makes the IDs of items without one;
// nil makes none.
func readInput(input llm.Raw, ids func(prefix string) string) (items []item, refs map[int]string, err error) {
	if input.IsText() {
		w := jsonedit.NewWriter(nil)
		w.BeginObject()
		w.SetText("type", "message")
		w.SetText("role", "user")
		w.SetRaw("content", textPart("input_text", input))
		w.EndObject()
		it, _, err := readItem(w.Bytes(), 0, ids)
		return []item{it}, nil, err
	}
	for value := range jsonedit.Elements(input) {
		it, ref, err := readItem(value, len(items), ids)
		if err != nil {
			return nil, nil, err
		}
		if ref != "" {
			if refs == nil {
				refs = map[int]string{}
			}
			refs[len(items)] = ref
		}
		items = append(items, it)
	}
	return items, refs, nil
}

// numbered makes IDs that have a unique part in common.
func numbered(unique string) func(prefix string) string {
	n := 0
	return func(prefix string) string {
		n++
		return prefix + unique + "_" + strconv.Itoa(n)
	}
}

// checkIDs refuses IDs that the store cannot look up. An upstream's own may be
// longer: it is kept, and found by its first bytes.
func checkIDs(items []item) error {
	for at, it := range items {
		if len(it.id) > longestID {
			path := itemPath(at) + ".id"
			return llm.InvalidParam("string_above_max_length", path, "Invalid '%s': an ID has at most %d bytes.", path, longestID)
		}
	}
	return nil
}

func itemPath(at int) string { return "input[" + strconv.Itoa(at) + "]" }

// readItem reads one item. ref is the ID of the one that it refers to.
func readItem(value []byte, at int, ids func(prefix string) string) (it item, ref string, err error) {
	var o jsonedit.Object
	if err := jsonedit.Scan(value, itemFields, &o); err != nil {
		path := itemPath(at)
		return it, "", llm.InvalidParam("invalid_type", path, "Invalid type for '%s': expected an object.", path)
	}
	text := func(field int) string {
		s, _ := jsonedit.Unquote(o.Value(field))
		return s
	}
	given := func(field int) bool { return llm.Raw(o.Value(field)).Given() }
	if given(itemType) && !llm.Raw(o.Value(itemType)).IsText() {
		return it, "", openai.WrongType(itemPath(at)+".type", "a string", o.Value(itemType))
	}
	it.id = text(itemID)
	kind := text(itemType)
	switch {
	case kind == "" && text(itemRole) != "":
		kind = "message"
	case kind == "" && it.id != "", kind == referenceType:
		if it.id == "" {
			return it, "", openai.Missing(itemPath(at) + ".id")
		}
		return it, it.id, nil
	case kind == "":
		return it, "", openai.Missing(itemPath(at) + ".type")
	}
	it.compaction = kind == "compaction"
	if kind == "compaction_trigger" {
		it.json, it.passing = bytes.Clone(value), true
		return it, "", nil
	}
	it.result = results[kind]
	if _, ok := calls[kind]; ok || it.result {
		it.call = text(itemCall)
	}
	var room [4]jsonedit.Change
	changes := room[:0]
	if kind != text(itemType) {
		changes = append(changes, jsonedit.Set(itemType, jsonedit.AppendQuote(nil, kind)))
	}
	answer := kind == "message" && text(itemRole) == "assistant"
	if it.id == "" && ids != nil {
		prefix, ok := prefixes[kind]
		if !ok {
			prefix = "item_"
		}
		it.id = ids(prefix)
		if answer { // which has one whoever writes it
			changes = append(changes, jsonedit.Set(itemID, jsonedit.AppendQuote(nil, it.id)))
		} else {
			changes = append(changes, jsonedit.Remove(itemID))
		}
	}
	if kind == "message" {
		if content := llm.Raw(o.Value(itemContent)); content.IsText() {
			part := "input_text"
			if answer {
				part = "output_text"
			}
			changes = append(changes, jsonedit.Set(itemContent, textPart(part, content)))
		}
		if !given(itemStatus) {
			changes = append(changes, jsonedit.Set(itemStatus, []byte(`"completed"`)))
		}
	}
	it.json = jsonedit.Edited(value, &o, changes...)
	return it, "", nil
}

// shown is the item as clients see it: with its ID.
func (it item) shown() []byte {
	var o jsonedit.Object
	if err := jsonedit.Scan(it.json, itemFields, &o); err != nil || llm.Raw(o.Value(itemID)).Given() {
		return it.json
	}
	return jsonedit.Edited(it.json, &o, jsonedit.Set(itemID, jsonedit.AppendQuote(nil, it.id)))
}

// textPart is a list of one part of text.
func textPart(kind string, text llm.Raw) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	w.BeginObject()
	w.SetText("type", kind)
	w.SetRaw("text", text)
	if kind == "output_text" {
		w.SetRaw("annotations", []byte("[]"))
	}
	w.EndObject()
	w.EndArray()
	return w.Bytes()
}
