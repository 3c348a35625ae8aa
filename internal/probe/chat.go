package probe

import (
	"encoding/json"
	"slices"
	"strconv"
)

// What Chat Completions can have wrong.
var (
	chatNoChoices   = &fault{"the answer has no choice", "send 'choices' with at least one element", everyone}
	chatNoFinish    = &fault{"no finish_reason came", "send a finish_reason with the end of every choice, and an error event when an upstream ends without one", []string{"opencode", "qwen-code", "cline", "openai-js", "vercel-ai", "copilot"}}
	chatBadFinish   = &fault{"finish_reason is none of stop, length, tool_calls, content_filter and function_call", "say one of these instead of a vendor's own word", []string{"pydantic-ai"}}
	chatNoDone      = &fault{"the stream does not end with [DONE]", "end the stream with 'data: [DONE]'", nil}
	chatNoRole      = &fault{"no delta has a role", "send 'role': 'assistant' with the first delta", []string{"openai-js", "langchain"}}
	chatNoID        = &fault{"the answer has no id", "send the same id with every chunk", nil}
	chatIDs         = &fault{"the chunks have different ids", "send the same id with every chunk, that of the usage too", []string{"openai-go"}}
	chatCreated     = &fault{"'created' is no integer", "send the time as whole seconds", []string{"vercel-ai", "pydantic-ai", "zed"}}
	chatNoUsage     = &fault{"no usage came", "send usage: with 'include_usage', in a chunk of its own before [DONE]", nil}
	chatUsageChunk  = &fault{"the chunk with the usage has no 'choices'", "send 'choices': [] with it", []string{"openai-js", "vercel-ai", "zed"}}
	chatUsageEach   = &fault{"every chunk has running totals of the usage", "send usage once, in the last chunk", []string{"openai-go"}}
	chatErrorNull   = &fault{"chunks have 'error': null", "leave 'error' out of good chunks", []string{"openai-go", "vercel-ai"}}
	chatNoMessage   = &fault{"the message has neither content nor calls of tools", "send 'content', null where the message calls tools", nil}
	toolNoIndex     = &fault{"fragments of a tool call have no index", "send 'index' with every fragment: without it calls are refused or merged", []string{"openai-js", "vercel-ai", "opencode", "continue", "openai-go", "zed"}}
	toolNoID        = &fault{"a tool call has no id", "send an id with the first fragment of every call: the result is given back by it", everyone}
	toolNoType      = &fault{"a tool call has no type", "send 'type': 'function' with the first fragment", []string{"openai-js"}}
	toolObject      = &fault{"the arguments of a tool call are an object", "send them as a string that holds JSON", []string{"opencode", "qwen-code", "continue", "cline", "openai-js", "vercel-ai", "langchain"}}
	toolNameAgain   = &fault{"the name of a tool comes again with later fragments", "send id, type and name with the first fragment only", []string{"openai-go"}}
	toolInvalid     = &fault{"the arguments of a tool call are no JSON", "raise the limit of output tokens, or look how the server parses calls", everyone}
	toolUnknownName = &fault{"the model calls a tool by another name than it was given", "give names back as the client sent them", everyone}
)

// chatMessage is a message, or a delta.
type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		Index    *int    `json:"index"`
		ID       *string `json:"id"`
		Type     *string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// completion is an answer, or a chunk of it.
type completion struct {
	ID      string          `json:"id"`
	Created json.RawMessage `json:"created"`
	Choices []struct {
		Message      chatMessage `json:"message"`
		Delta        chatMessage `json:"delta"`
		FinishReason *string     `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// present tells whether a member is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (c *completion) createdWell() bool {
	_, err := strconv.ParseInt(string(c.Created), 10, 64)
	return err == nil || len(c.Created) == 0
}

// readChat reads an answer that is no stream.
func readChat(a *answer) (s said, faults []*fault) {
	var c completion
	if faults = a.decode(&c); slices.Contains(faults, jsonInvalid) || !json.Valid(a.body) {
		return s, faults
	}
	if slices.Contains(faults, okError) {
		return s, faults
	}
	if len(c.Choices) == 0 {
		return s, append(faults, chatNoChoices)
	}
	choice := c.Choices[0]
	faults = append(faults, finished(choice.FinishReason)...)
	if !c.createdWell() {
		faults = append(faults, chatCreated)
	}
	if c.ID == "" {
		faults = append(faults, chatNoID)
	}
	if len(choice.Message.Content) == 0 && len(choice.Message.ToolCalls) == 0 {
		faults = append(faults, chatNoMessage)
	}
	if s.usage = present(c.Usage); !s.usage {
		faults = append(faults, chatNoUsage)
	}
	json.Unmarshal(choice.Message.Content, &s.text)
	for _, call := range choice.Message.ToolCalls {
		arguments, wrong := argumentsText(call.Function.Arguments)
		faults = append(faults, wrong...)
		one := toolCall{name: call.Function.Name, arguments: arguments}
		if call.ID != nil {
			one.id = *call.ID
		}
		s.calls = append(s.calls, one)
	}
	s.id = c.ID
	return s, append(faults, callsWell(s.calls)...)
}

func finished(reason *string) []*fault {
	switch {
	case reason == nil:
		return []*fault{chatNoFinish}
	case !slices.Contains([]string{"stop", "length", "tool_calls", "content_filter", "function_call"}, *reason):
		return []*fault{chatBadFinish}
	}
	return nil
}

// argumentsText is what a fragment has of a call's arguments.
func argumentsText(raw json.RawMessage) (string, []*fault) {
	var text string
	if !present(raw) || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	return string(raw), []*fault{toolObject}
}

// callsWell looks at calls that are whole.
func callsWell(calls []toolCall) (faults []*fault) {
	for _, c := range calls {
		if c.id == "" {
			faults = append(faults, toolNoID)
		}
		if c.arguments != "" && !json.Valid([]byte(c.arguments)) {
			faults = append(faults, toolInvalid)
		}
	}
	return faults
}

// readChatStream reads an answer that came in chunks.
func readChatStream(st *stream, wantsUsage bool) (s said, faults []*fault) {
	r := chatReader{}
	for _, event := range st.events {
		var c completion
		if json.Unmarshal(event, &c) != nil {
			faults = append(faults, streamNotJSON)
			continue
		}
		if fatal := streamError(c.Error); fatal != nil {
			return r.said, append(faults, fatal)
		}
		r.chunk(&c, event)
	}
	return r.said, append(append(faults, st.broken()...), r.end(st, wantsUsage)...)
}

// streamError is the failure that a server tells of within a stream.
func streamError(raw json.RawMessage) *fault {
	if !present(raw) {
		return nil
	}
	var told struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &told) != nil || told.Message == "" {
		told.Message = string(raw)
	}
	return &fault{why: "the stream ends in an error: " + told.Message, change: "see what the message says, and the server's log", breaks: everyone}
}

// chatReader follows the chunks of a stream.
type chatReader struct {
	said
	faults         []*fault
	role, choice   bool
	finish         *string
	chunks, usages int
}

func (r *chatReader) fault(f *fault) {
	if !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
}

func (r *chatReader) chunk(c *completion, raw []byte) {
	r.chunks++
	if !c.createdWell() {
		r.fault(chatCreated)
	}
	switch {
	case r.chunks == 1:
		r.id = c.ID
	case c.ID != r.id:
		r.fault(chatIDs)
	}
	if string(c.Error) == "null" {
		r.fault(chatErrorNull)
	}
	if present(c.Usage) {
		r.usages, r.usage = r.usages+1, true
		if c.Choices == nil {
			r.fault(chatUsageChunk)
		}
	}
	for _, choice := range c.Choices {
		r.choice = true
		r.role = r.role || choice.Delta.Role != ""
		if choice.FinishReason != nil {
			r.finish = choice.FinishReason
		}
		var text string
		json.Unmarshal(choice.Delta.Content, &text)
		r.text += text
		r.fragments(&choice.Delta)
	}
}

// fragments adds what a delta has of tool calls.
func (r *chatReader) fragments(d *chatMessage) {
	for _, f := range d.ToolCalls {
		at := max(len(r.calls)-1, 0)
		if f.Index == nil {
			r.fault(toolNoIndex)
			if f.ID != nil && *f.ID != "" && len(r.calls) > 0 && r.calls[at].id != *f.ID {
				at++
			}
		} else {
			at = *f.Index
		}
		if at < 0 || at > len(r.calls) {
			r.fault(toolNoIndex)
			at = len(r.calls)
		}
		if at == len(r.calls) {
			r.calls = append(r.calls, toolCall{name: f.Function.Name})
			if f.Type == nil {
				r.fault(toolNoType)
			}
		} else if f.Function.Name != "" && r.calls[at].name != "" {
			r.fault(toolNameAgain)
		}
		call := &r.calls[at]
		if call.id == "" && f.ID != nil {
			call.id = *f.ID
		}
		arguments, wrong := argumentsText(f.Function.Arguments)
		for _, w := range wrong {
			r.fault(w)
		}
		call.arguments += arguments
	}
}

// end is what was wrong with the stream as a whole.
func (r *chatReader) end(st *stream, wantsUsage bool) []*fault {
	switch {
	case !r.choice:
		return append(r.faults, chatNoChoices)
	case st.cut != nil && !st.done:
		return r.faults // it broke off: what is missing would have come
	}
	for _, f := range finished(r.finish) {
		r.fault(f)
	}
	if !r.role {
		r.fault(chatNoRole)
	}
	if !st.done {
		r.fault(chatNoDone)
	}
	if wantsUsage && r.usages == 0 {
		r.fault(chatNoUsage)
	}
	if r.usages > 2 && r.usages >= r.chunks-1 {
		r.fault(chatUsageEach)
	}
	return append(r.faults, callsWell(r.calls)...)
}
