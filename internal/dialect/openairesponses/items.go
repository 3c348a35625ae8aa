package openairesponses

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// itemPath is the path of a member of an item.
func itemPath(i int, suffix string) string { return "input[" + strconv.Itoa(i) + "]" + suffix }

func (d *requestDecoder) add(item llm.Item) { d.req.Items = append(d.req.Items, item) }

// input reads what is asked: a text, or items.
func (d *requestDecoder) input(value llm.Raw) error {
	switch value.Kind() {
	case jsonedit.KindInvalid: // absent
		return nil
	case jsonedit.KindString:
		pos := llm.Pos{Part: -1}
		d.add(&llm.Message{Pos: pos, Role: llm.User, Parts: []llm.Part{&llm.Text{Pos: pos, Text: value}}})
		return nil
	case jsonedit.KindArray:
	default:
		return openai.WrongType("input", "a string or an array of items", value)
	}
	i := 0
	for v := range jsonedit.Elements(value) {
		if jsonedit.KindOf(v) != jsonedit.KindObject {
			return openai.WrongType(itemPath(i, ""), "an object", v)
		}
		if err := d.item(i, readItem(v)); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (d *requestDecoder) item(i int, it rawItem) error {
	if it.kind == "" {
		switch {
		case it.role != nil || it.content != nil:
			it.kind = "message"
		case it.id != nil:
			it.kind = "item_reference"
		default:
			return openai.Missing(itemPath(i, ".type"))
		}
	}
	if call, ok := callTypes[it.kind]; ok && it.client() {
		return d.call(i, &it, call)
	}
	if kind, ok := outputTypes[it.kind]; ok && it.client() {
		return d.output(i, &it, kind)
	}
	if call := serverCall(&it); call != nil {
		call.Pos = llm.Pos{Item: i, Part: -1}
		d.add(call)
		return nil
	}
	switch it.kind {
	case "message":
		return d.message(i, &it)
	case "reasoning":
		return d.reasoning(i, &it)
	case "compaction":
		return d.compaction(i, &it)
	case "additional_tools":
		d.late = append(d.late, lateTools{itemPath(i, ".tools"), it.tools})
		return nil
	case "configuration_update":
		return d.configure(i, &it)
	case "item_reference":
		return dialect.NotServed(itemPath(i, ""), "The model's upstream keeps no items, which an item_reference points to: send the item itself in 'input'.")
	case "compaction_trigger":
		return dialect.NotServed(itemPath(i, ""), "The model's upstream cannot compact a conversation, as a compaction_trigger asks: send a shorter history in 'input'.")
	}
	return dialect.NotServed(itemPath(i, ".type"), "An item of the type %q in 'input' cannot be sent to the model's upstream: leave it out, or say it as a message.", it.kind)
}

// configure takes over settings that apply from an item on. Only those of the
// answer that is due matter, so the last ones count.
func (d *requestDecoder) configure(i int, it *rawItem) error {
	if it.reasoning != nil {
		if err := d.reasoningWish(itemPath(i, ".reasoning"), it.reasoning); err != nil {
			return err
		}
	}
	if it.text != nil {
		if err := d.text(itemPath(i, ".text"), it.text); err != nil {
			return err
		}
	}
	d.req.Notes.Move("configuration_update")
	return nil
}

var roles = map[string]llm.Role{"user": llm.User, "assistant": llm.Assistant, "system": llm.System, "developer": llm.Developer}

func (d *requestDecoder) message(i int, it *rawItem) error {
	role, ok := roles[it.role.Text()]
	switch {
	case it.role == nil:
		return openai.Missing(itemPath(i, ".role"))
	case !ok:
		return llm.InvalidParam("invalid_value", itemPath(i, ".role"), "Invalid value for '%s': expected user, assistant, system or developer.", itemPath(i, ".role"))
	case it.content == nil && role != llm.Assistant:
		return openai.Missing(itemPath(i, ".content"))
	}
	parts, err := d.parts(i, ".content", it.content)
	d.add(&llm.Message{Pos: llm.Pos{Item: i, Part: -1}, Role: role, ID: it.id, Phase: it.phase, Parts: parts})
	return err
}

func (d *requestDecoder) call(i int, it *rawItem, call callType) error {
	c := &llm.ToolCall{Pos: llm.Pos{Item: i, Part: -1}, ItemID: it.id, ID: it.callID, Kind: call.kind, Name: call.name, Namespace: it.space.Text()}
	if c.ID == nil {
		c.ID = it.id // the older items have no other
	}
	if !c.ID.IsText() || c.ID.Blank() {
		return missingText(itemPath(i, ".call_id"), it.callID)
	}
	if call.name == "" {
		if c.Name = it.name.Text(); c.Name == "" {
			return missingText(itemPath(i, ".name"), it.name)
		}
	}
	if c.Args = it.args(call.kind); !c.Args.IsText() {
		return d.noArgs(i, it, call.kind)
	}
	if it.async != nil && it.async[0] == 't' {
		d.req.Notes.Drop("async")
	}
	d.add(c)
	return nil
}

// missingText is the error about a text that must be there.
func missingText(at string, value llm.Raw) error {
	if value == nil || value.IsText() {
		return openai.Missing(at)
	}
	return openai.WrongType(at, "a string", value)
}

// noArgs is the error about a call whose arguments are absent or of another
// type.
func (d *requestDecoder) noArgs(i int, it *rawItem, kind llm.CallKind) error {
	switch kind {
	case llm.FunctionCall:
		return missingText(itemPath(i, ".arguments"), it.arguments)
	case llm.CustomCall:
		return missingText(itemPath(i, ".input"), it.input)
	}
	name, value := ".action", it.action
	switch kind {
	case llm.ApplyPatchCall:
		name, value = ".operation", it.operation
	case llm.ToolSearchCall:
		name, value = ".arguments", it.arguments
	}
	if value == nil {
		return openai.Missing(itemPath(i, name))
	}
	return openai.WrongType(itemPath(i, name), "an object", value)
}

func (d *requestDecoder) output(i int, it *rawItem, kind llm.CallKind) error {
	r := &llm.ToolResult{Pos: llm.Pos{Item: i, Part: -1}, ID: it.callID, Kind: kind, Name: it.name.Text()}
	if r.ID == nil {
		r.ID = it.id
	}
	if !r.ID.IsText() || r.ID.Blank() {
		return missingText(itemPath(i, ".call_id"), it.callID)
	}
	switch {
	case kind == llm.ToolSearchCall:
		if err := d.found(i, it, r); err != nil {
			return err
		}
	case kind == llm.ApplyPatchCall && it.output == nil && it.status.IsText():
		r.IsError = it.status.Text() == "failed"
		r.Parts = []llm.Part{&llm.Text{Pos: r.Pos, Text: it.status}}
	case it.output == nil:
		return openai.Missing(itemPath(i, ".output"))
	case kind == llm.ShellCall && !it.output.IsText():
		// What each command printed and how it ended: a model reads it as it is.
		r.Parts = []llm.Part{&llm.Text{Pos: r.Pos, Text: llm.QuoteJSON(it.output)}}
	default:
		parts, err := d.parts(i, ".output", it.output)
		if err != nil {
			return err
		}
		r.Parts, r.IsError = parts, kind == llm.ApplyPatchCall && it.status.Text() == "failed"
	}
	d.add(r)
	return nil
}

// found reads the tools that a search of the client has found. From here on
// the model may call them.
func (d *requestDecoder) found(i int, it *rawItem, r *llm.ToolResult) error {
	if it.tools == nil {
		return openai.Missing(itemPath(i, ".tools"))
	}
	tools, err := readTools(itemPath(i, ".tools"), it.tools)
	if err != nil {
		return err
	}
	d.late = append(d.late, lateTools{itemPath(i, ".tools"), it.tools})
	for _, t := range tools {
		name := t.Name
		if t.Namespace != "" {
			name = t.Namespace + "__" + name
		}
		if t.Server == nil {
			r.Parts = append(r.Parts, &llm.ToolReference{Pos: r.Pos, Name: name})
		}
	}
	return nil
}
