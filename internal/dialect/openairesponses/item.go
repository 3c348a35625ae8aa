package openairesponses

import (
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// rawItem is what is looked at of an item, of a request or of an answer. What
// is absent or null is nil.
type rawItem struct {
	kind  string // the type; "" when there is none
	whole llm.Raw

	role, content, id, status, phase      llm.Raw
	name, callID, arguments, space, async llm.Raw
	input, output, action, operation      llm.Raw
	summary, encrypted, tools, execution  llm.Raw
	reasoning, text, queries, code        llm.Raw
	outputs, result, format               llm.Raw
}

func readItem(value []byte) rawItem {
	it := rawItem{whole: value}
	for name, v := range jsonedit.Members(value) {
		if jsonedit.KindOf(v) == jsonedit.KindNull {
			continue
		}
		if string(name) == `"type"` {
			it.kind = llm.Raw(v).Text()
			continue
		}
		if at := it.member(string(name)); at != nil {
			*at = v
		}
	}
	return it
}

// member is where a member belongs; name has its quotes.
func (it *rawItem) member(name string) *llm.Raw {
	switch name {
	case `"role"`:
		return &it.role
	case `"content"`:
		return &it.content
	case `"id"`:
		return &it.id
	case `"status"`:
		return &it.status
	case `"phase"`:
		return &it.phase
	case `"name"`:
		return &it.name
	case `"call_id"`:
		return &it.callID
	case `"arguments"`:
		return &it.arguments
	case `"namespace"`:
		return &it.space
	case `"async"`:
		return &it.async
	case `"input"`:
		return &it.input
	case `"output"`:
		return &it.output
	case `"action"`:
		return &it.action
	case `"operation"`:
		return &it.operation
	case `"summary"`:
		return &it.summary
	case `"encrypted_content"`:
		return &it.encrypted
	case `"tools"`:
		return &it.tools
	case `"execution"`:
		return &it.execution
	case `"reasoning"`:
		return &it.reasoning
	case `"text"`:
		return &it.text
	case `"queries"`:
		return &it.queries
	case `"code"`:
		return &it.code
	case `"outputs"`:
		return &it.outputs
	case `"result"`:
		return &it.result
	case `"output_format"`:
		return &it.format
	}
	return nil
}

// callType is an item that calls a tool of the client's, with the names of
// its parts. Tools of a fixed form have their type for a name.
type callType struct {
	kind llm.CallKind
	name string // of the tool, where the form is fixed
}

// callTypes are the calls of tools that clients run, by their items' types.
var callTypes = map[string]callType{
	"function_call":    {kind: llm.FunctionCall},
	"custom_tool_call": {kind: llm.CustomCall},
	"shell_call":       {llm.ShellCall, "shell"},
	"local_shell_call": {llm.LocalShellCall, "local_shell"},
	"apply_patch_call": {llm.ApplyPatchCall, "apply_patch"},
	"tool_search_call": {llm.ToolSearchCall, "tool_search"},
}

// outputTypes are the results of those calls.
var outputTypes = map[string]llm.CallKind{
	"function_call_output":    llm.FunctionCall,
	"custom_tool_call_output": llm.CustomCall,
	"shell_call_output":       llm.ShellCall,
	"local_shell_call_output": llm.LocalShellCall,
	"apply_patch_call_output": llm.ApplyPatchCall,
	"tool_search_output":      llm.ToolSearchCall,
}

// itemNames are the item types of calls, by kind, and the prefixes of their
// items' IDs.
var itemNames = [...]struct{ call, output, prefix string }{
	llm.FunctionCall:   {"function_call", "function_call_output", "fc_"},
	llm.CustomCall:     {"custom_tool_call", "custom_tool_call_output", "ctc_"},
	llm.ShellCall:      {"shell_call", "shell_call_output", "sh_"},
	llm.LocalShellCall: {"local_shell_call", "local_shell_call_output", "lsh_"},
	llm.ApplyPatchCall: {"apply_patch_call", "apply_patch_call_output", "apc_"},
	llm.ToolSearchCall: {"tool_search_call", "tool_search_output", "tsc_"},
}

// client reports whether the client runs the call of an item. Only searches
// for tools may be the upstream's own.
func (it *rawItem) client() bool {
	return it.kind != "tool_search_call" && it.kind != "tool_search_output" || it.execution.Text() == "client"
}

// args are the arguments of a call as a JSON string, which for tools of a
// fixed form are those of the function that stands for them; nil when there
// are none.
func (it *rawItem) args(kind llm.CallKind) llm.Raw {
	switch kind {
	case llm.FunctionCall:
		return it.arguments
	case llm.CustomCall:
		return it.input
	case llm.ShellCall, llm.LocalShellCall:
		if it.action.Kind() == jsonedit.KindObject {
			return llm.QuoteJSON(withoutType(it.action))
		}
	case llm.ApplyPatchCall:
		if it.operation.Kind() == jsonedit.KindObject {
			return llm.QuoteJSON(append(append(llm.Raw(`{"operation":`), it.operation...), '}'))
		}
	case llm.ToolSearchCall:
		if it.arguments.Kind() == jsonedit.KindObject {
			return llm.QuoteJSON(it.arguments)
		}
		return it.arguments
	}
	return nil
}

// withoutType is an object without its type, and without what is null.
func withoutType(object llm.Raw) llm.Raw {
	var w jsonedit.Writer
	w.BeginObject()
	for name, v := range jsonedit.Members(object) {
		if string(name) != `"type"` && jsonedit.KindOf(v) != jsonedit.KindNull {
			w.RawName(name)
			w.Raw(v)
		}
	}
	w.EndObject()
	return w.Bytes()
}

// writeCall writes the members of a call's item that say what is called, with
// the arguments as the kind has them. Arguments that are no object, as those
// of a call that was cut, are empty where the form is fixed.
func writeCall(w *jsonedit.Writer, kind llm.CallKind, callID llm.Raw, name, space string, args llm.Raw) {
	if kind == llm.ToolSearchCall {
		w.SetText("execution", "client")
	}
	w.SetRaw("call_id", callID)
	if kind == llm.FunctionCall || kind == llm.CustomCall {
		w.SetText("name", name)
		if space != "" {
			w.SetText("namespace", space)
		}
	}
	switch kind {
	case llm.FunctionCall:
		w.SetRaw("arguments", args)
		return
	case llm.CustomCall:
		w.SetRaw("input", args)
		return
	}
	object, ok := args.Object()
	if !ok {
		object = llm.Raw("{}")
	}
	switch kind {
	case llm.ToolSearchCall:
		w.SetRaw("arguments", object)
	case llm.ApplyPatchCall:
		if operation, found := jsonedit.Get(object, "operation"); found && jsonedit.KindOf(operation) == jsonedit.KindObject {
			object = operation
		}
		w.SetRaw("operation", object)
	case llm.ShellCall:
		writeAction(w, object, "", "commands", "[]")
	case llm.LocalShellCall:
		writeAction(w, object, "exec", "command", "[]", "env", "{}")
	}
}

// writeAction writes what a shell is to do, with the members that its schema
// wants.
func writeAction(w *jsonedit.Writer, object llm.Raw, kind string, required ...string) {
	w.Object("action")
	if kind != "" {
		w.SetText("type", kind)
	}
	for name, v := range jsonedit.Members(withoutType(object)) {
		w.RawName(name)
		w.Raw(v)
	}
	for i := 0; i < len(required); i += 2 {
		if _, there := jsonedit.Get(object, required[i]); !there {
			w.SetRaw(required[i], []byte(required[i+1]))
		}
	}
	w.EndObject()
}
