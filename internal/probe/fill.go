package probe

import (
	"bytes"
	"encoding/json"
	"strings"
)

// toolCall is a call of a function that an answer asks for.
type toolCall struct {
	id, name  string
	arguments string // JSON
}

// said is what an answer says, in whichever dialect.
type said struct {
	id    string
	text  string
	calls []toolCall
	items []json.RawMessage // of the output, as they are given back
	usage bool
}

// fill puts what is known into a body: the model, and what the last answer
// said. A body that gives back the result of a call cannot be made without one.
//
//	{{model}} {{run}}                           the model's ID; an ID of this run
//	{{id}} {{text}}                             of the last answer
//	{{call_id}} {{call_name}} {{call_arguments}} of its first call, arguments as a string
//	"{{items}}"                                 all items of its output
func (v *visit) fill(template string) (string, error) {
	var call toolCall
	if len(v.said.calls) > 0 {
		call = v.said.calls[0]
	}
	if strings.Contains(template, "{{call_") && call.id == "" || strings.Contains(template, `"{{items}}"`) && len(v.said.items) == 0 {
		return "", errSkip{"the model did not call the tool, so there is no result to give back; name a model that calls tools with --model"}
	}
	return strings.NewReplacer(
		`"{{items}}"`, string(bytes.Join(rawBytes(v.said.items), []byte(","))),
		"{{model}}", within(v.Model), "{{run}}", v.run,
		"{{id}}", within(v.said.id), "{{text}}", within(v.said.text),
		"{{call_id}}", within(call.id), "{{call_name}}", within(call.name), "{{call_arguments}}", within(call.arguments),
	).Replace(template), nil
}

func rawBytes(items []json.RawMessage) [][]byte {
	all := make([][]byte, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

// within is a text as it stands within a JSON string.
func within(s string) string {
	text, _ := json.Marshal(s) // a string cannot fail
	return string(text[1 : len(text)-1])
}
