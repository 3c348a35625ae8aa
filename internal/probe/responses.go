package probe

import (
	"encoding/json"
	"fmt"
	"slices"
)

// What Responses can have wrong.
var (
	respNoCreated   = &fault{"the stream does not begin with response.created", "send response.created first", []string{"openai-js"}}
	respNoTerminal  = &fault{"the stream ends without response.completed", "end every stream with response.completed, response.incomplete, or an error event and response.failed", []string{"codex", "opencode", "qwen-code", "vercel-ai", "openai-agents"}}
	respNoAdded     = &fault{"an item has no response.output_item.added", "send it before anything else of the item", []string{"openai-js", "opencode", "vercel-ai", "langchain"}}
	respNoDone      = &fault{"an item has no response.output_item.done", "send it with the whole item at its end", []string{"codex", "vercel-ai", "openai-go", "opencode", "qwen-code"}}
	respNoDelta     = &fault{"the text did not come as response.output_text.delta", "send at least one delta for every text", []string{"opencode", "qwen-code", "openai-js", "vercel-ai", "langchain", "openai-go"}}
	respNoItemID    = &fault{"deltas have no item_id", "send the item's id with every event of it", []string{"opencode", "openai-js", "vercel-ai"}}
	respOtherItemID = &fault{"an item's id is not the same in all events", "send the same id in added, deltas, done and completed", []string{"opencode", "openai-js"}}
	respNoIndex     = &fault{"events have no output_index", "send output_index with every event of an item, counted from 0", []string{"opencode", "openai-js", "vercel-ai"}}
	respNoSequence  = &fault{"events have no sequence_number", "number the events from 0", []string{"openai-python"}}
	respEmptyOutput = &fault{"the response has no output", "repeat all items in 'output', in response.completed too", []string{"openai-js", "openai-agents", "openai-go", "copilot"}}
	respNoUsage     = &fault{"response.completed has no usage", "send usage with it: a client takes the answer for incomplete and asks again", []string{"opencode"}}
	respUsage       = &fault{"usage lacks input_tokens, output_tokens or total_tokens", "send all three as whole numbers", []string{"codex"}}
	respDetails     = &fault{"the details of usage are an empty object", "send them whole (cached_tokens, reasoning_tokens) or null", []string{"codex"}}
	respAnnotations = &fault{"an output_text has no annotations", "send 'annotations': []", []string{"langchain", "vercel-ai"}}
	respNoSummary   = &fault{"a reasoning item has no summary", "send 'summary': []", []string{"vercel-ai", "openai-agents"}}
	respItemNoID    = &fault{"an item of the output has no id", "send an id with every item", []string{"vercel-ai"}}
	respNoCallID    = &fault{"a function_call has no call_id", "send a call_id: the result is given back by it", everyone}
	respObject      = &fault{"the answer is no response: 'object' is not \"response\"", "answer with a response object", everyone}
)

// respUsageOf is the usage of a response.
type respUsageOf struct {
	Input         *int            `json:"input_tokens"`
	Output        *int            `json:"output_tokens"`
	Total         *int            `json:"total_tokens"`
	InputDetails  json.RawMessage `json:"input_tokens_details"`
	OutputDetails json.RawMessage `json:"output_tokens_details"`
}

// response is a response object.
type response struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Status   string            `json:"status"`
	Output   []json.RawMessage `json:"output"`
	Usage    *respUsageOf      `json:"usage"`
	Previous string            `json:"previous_response_id"`
	Error    *struct {
		Message string `json:"message"`
	} `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// item is an item of the output.
type item struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Summary   json.RawMessage `json:"summary"`
	Content   []struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Annotations json.RawMessage `json:"annotations"`
	} `json:"content"`
}

// read is what an item says.
func (i *item) read(s *said) (faults []*fault) {
	if i.ID == "" {
		faults = append(faults, respItemNoID)
	}
	switch i.Type {
	case "message":
		for _, part := range i.Content {
			s.text += part.Text
			if part.Type == "output_text" && !present(part.Annotations) {
				faults = append(faults, respAnnotations)
			}
		}
	case "function_call":
		arguments, wrong := argumentsText(i.Arguments)
		faults = append(faults, wrong...)
		if i.CallID == "" {
			return append(faults, respNoCallID)
		}
		s.calls = append(s.calls, toolCall{i.CallID, i.Name, arguments})
		faults = append(faults, callsWell(s.calls[len(s.calls)-1:])...)
	case "reasoning":
		if !present(i.Summary) {
			faults = append(faults, respNoSummary)
		}
	}
	return faults
}

func readItems(items []json.RawMessage, s *said) (faults []*fault) {
	for _, raw := range items {
		var i item
		if json.Unmarshal(raw, &i) != nil {
			return append(faults, jsonInvalid)
		}
		faults = append(faults, i.read(s)...)
	}
	s.items = items
	return faults
}

// ended looks at a response that is over.
func (r *response) ended() (faults []*fault) {
	if r.Object != "response" {
		return []*fault{respObject}
	}
	if r.Status != "completed" && r.Status != "incomplete" {
		message := "the response is " + r.Status
		if r.Error != nil {
			message += ": " + r.Error.Message
		}
		return []*fault{{message, "see what the message says, and the server's log; failures before the first output belong into the HTTP status", everyone}}
	}
	if len(r.Output) == 0 && r.Status == "completed" {
		faults = append(faults, respEmptyOutput)
	}
	switch u := r.Usage; {
	case u == nil:
		faults = append(faults, respNoUsage)
	case u.Input == nil || u.Output == nil || u.Total == nil:
		faults = append(faults, respUsage)
	case string(u.InputDetails) == "{}" || string(u.OutputDetails) == "{}":
		faults = append(faults, respDetails)
	}
	return faults
}

// readResponse reads an answer that is no stream.
func readResponse(a *answer) (s said, r response, faults []*fault) {
	if faults = a.decode(&r); !json.Valid(a.body) {
		return s, r, faults
	}
	if at := slices.Index(faults, okError); at >= 0 {
		if r.Object != "response" {
			return s, r, faults
		}
		faults = slices.Delete(faults, at, at+1) // a response that failed has an error
	}
	faults = append(faults, r.ended()...)
	s.id, s.usage = r.ID, r.Usage != nil
	return s, r, append(faults, readItems(r.Output, &s)...)
}

// respEvent is an event.
type respEvent struct {
	Type     string          `json:"type"`
	Sequence *int            `json:"sequence_number"`
	Index    *int            `json:"output_index"`
	ItemID   string          `json:"item_id"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Message  string          `json:"message"`
	Error    struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"error"`
}

// respReader follows the events of a response.
type respReader struct {
	faults []*fault
	ids    map[int]string // of items that were added, by output_index
	done   []json.RawMessage
	deltas bool
	over   bool
	first  bool
	last   response
}

func (r *respReader) fault(f *fault) {
	if !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
}

// readEvents reads a response that came in events.
func readEvents(events [][]byte, cut bool) (s said, last response, faults []*fault) {
	r := &respReader{ids: map[int]string{}}
	for _, raw := range events {
		var e respEvent
		if json.Unmarshal(raw, &e) != nil {
			r.fault(streamNotJSON)
			continue
		}
		if e.Type == "error" {
			message := e.Error.Message
			if message == "" {
				message = e.Message
			}
			r.fault(&fault{"the stream ends in an error: " + message, "see what the message says, and the server's log", everyone})
			return s, r.last, r.faults
		}
		r.event(&e)
	}
	if cut && !r.over {
		return s, r.last, append(r.faults, streamCut)
	}
	return r.end()
}

func (r *respReader) event(e *respEvent) {
	if !r.first {
		r.first = true
		if e.Type != "response.created" {
			r.fault(respNoCreated)
		}
	}
	if e.Sequence == nil {
		r.fault(respNoSequence)
	}
	var i item
	if len(e.Item) > 0 {
		json.Unmarshal(e.Item, &i) // what is wrong shows in what is missing
	}
	switch e.Type {
	case "response.output_item.added":
		if e.Index == nil {
			r.fault(respNoIndex)
			return
		}
		r.ids[*e.Index] = i.ID
	case "response.output_item.done":
		r.done = append(r.done, e.Item)
		r.belongs(e.Index, i.ID)
	case "response.output_text.delta":
		r.deltas = true
		if e.ItemID == "" {
			r.fault(respNoItemID)
			return
		}
		r.belongs(e.Index, e.ItemID)
	case "response.completed", "response.incomplete", "response.failed":
		r.over = true
		json.Unmarshal(e.Response, &r.last)
	}
}

// belongs looks whether an event is of an item that was added.
func (r *respReader) belongs(index *int, id string) {
	if index == nil {
		r.fault(respNoIndex)
		return
	}
	added, ok := r.ids[*index]
	switch {
	case !ok:
		r.fault(respNoAdded)
	case added != id:
		r.fault(respOtherItemID)
	}
}

func (r *respReader) end() (s said, last response, faults []*fault) {
	if !r.over {
		r.fault(respNoTerminal)
		return s, r.last, r.faults
	}
	for _, f := range r.last.ended() {
		r.fault(f)
	}
	items := r.last.Output
	if len(items) == 0 {
		items = r.done
	}
	if len(r.done) < len(items) {
		r.fault(respNoDone)
	}
	for _, f := range readItems(items, &s) {
		r.fault(f)
	}
	if s.text != "" && !r.deltas {
		r.fault(respNoDelta)
	}
	s.id, s.usage = r.last.ID, r.last.Usage != nil
	return s, r.last, r.faults
}

func (r *response) say() string {
	if r.Status == "incomplete" {
		return fmt.Sprintf("incomplete (%s)", r.Incomplete.Reason)
	}
	return r.Status
}
