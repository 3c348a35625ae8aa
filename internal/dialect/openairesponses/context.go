package openairesponses

import (
	"bytes"
	"strconv"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

var _ dialect.Stateful = Dialect{}

// readContext reads what a request says of others.
func readContext(o *jsonedit.Object) (*dialect.Context, error) {
	c := &dialect.Context{Store: true, Input: o.Value(fieldInput)}
	var err error
	if store := llm.Raw(o.Value(fieldStore)); store.Given() {
		c.StoreSaid = true
		if c.Store, err = openai.Flag("store", store); err != nil {
			return nil, err
		}
	}
	if c.Background, err = openai.Flag("background", o.Value(fieldBackground)); err != nil {
		return nil, err
	}
	if previous := llm.Raw(o.Value(fieldPrevious)); previous.Given() {
		if !previous.IsText() {
			return nil, openai.WrongType("previous_response_id", "a string", previous)
		}
		c.Previous = previous.Text()
	}
	conversation := llm.Raw(o.Value(fieldConversation))
	if conversation.Kind() == jsonedit.KindObject {
		conversation = dialect.Member(conversation, "id")
	} else if !conversation.Given() {
		return c, nil
	}
	if !conversation.IsText() || conversation.Blank() {
		return nil, openai.WrongType("conversation", "the ID of a conversation, or an object with its 'id'", o.Value(fieldConversation))
	}
	c.Conversation = conversation.Text()
	return c, nil
}

// Standalone implements dialect.Stateful. What a model thought comes back
// encrypted, so that later turns can give it back.
func (Dialect) Standalone(dst, body []byte, req *dialect.Request, input [][]byte) []byte {
	whole := append([]byte{'['}, bytes.Join(input, nil)...)
	stream := req.Object.Value(fieldStream)
	if req.Context.Background {
		stream = []byte("true") // so that it can be seen how far it is
	}
	segments, _ := jsonedit.Splice(nil, body, req.Object.Edits(nil,
		jsonedit.Set(fieldStream, stream),
		jsonedit.Set(fieldInput, append(whole, ']')),
		jsonedit.Set(fieldStore, []byte("false")),
		jsonedit.Set(fieldInclude, withReasoning(req.Object.Value(fieldInclude))),
		jsonedit.Remove(fieldPrevious), jsonedit.Remove(fieldConversation), jsonedit.Remove(fieldBackground)))
	for _, s := range segments {
		dst = append(dst, s...)
	}
	return dst
}

// Queued implements dialect.Stateful.
func (Dialect) Queued(ask *dialect.Ask) []byte {
	a := newAnswer(ask)
	a.model, a.tail = llm.Quote(ask.Model), appendEcho(nil, ask.Request, ask.Told)
	w := jsonedit.NewWriter(nil)
	a.writeResponse(w, "queued", nil)
	return w.Bytes()
}

// Fault implements dialect.Stateful.
func (Dialect) Fault(e *llm.Error) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("code", failedCode(e))
	w.SetText("message", e.Message)
	w.EndObject()
	return w.Bytes()
}

// withReasoning is an `include` with the encrypted reasoning.
func withReasoning(include llm.Raw) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	for entry := range jsonedit.Elements(include) {
		if name, _ := jsonedit.Unquote(entry); name == includeReasoning {
			return include
		}
		w.Raw(entry)
	}
	w.Text(includeReasoning)
	w.EndArray()
	return w.Bytes()
}

var toldFields = jsonedit.NewFields("id", "previous_response_id", "conversation", "store", "background")

// Tell implements dialect.Stateful.
func (Dialect) Tell(response []byte, told []llm.Member) []byte {
	var o jsonedit.Object
	if err := jsonedit.Scan(response, toldFields, &o); err != nil {
		return response
	}
	changes := make([]jsonedit.Change, 0, len(told))
	for _, m := range told {
		if field := toldFields.Index(m.Name); field >= 0 {
			changes = append(changes, jsonedit.Set(field, m.Value))
		}
	}
	return jsonedit.Edited(response, &o, changes...)
}

// Final implements dialect.Stateful.
func (Dialect) Final(told []byte, stream bool) []byte {
	if !stream {
		return told
	}
	for frame, err := range sse.All(bytes.NewReader(told), len(told)+1) {
		if err != nil {
			return nil
		}
		switch string(frame.Event) {
		case "response.completed", "response.incomplete":
			response, _ := jsonedit.Get(frame.Data, "response")
			return bytes.Clone(response)
		}
	}
	return nil
}

// Unkept implements dialect.Stateful: what came before the end, and the
// failure with the end's number.
func (Dialect) Unkept(told []byte, e *llm.Error) (frames []byte) {
	for frame, err := range sse.All(bytes.NewReader(told), len(told)+1) {
		if err != nil {
			return frames
		}
		switch string(frame.Event) {
		case "response.completed", "response.incomplete":
			return append(frames, failedEnd(frame.Data, e)...)
		}
		frames = append(frames, frame.Raw...)
	}
	return frames
}

var endFields = jsonedit.NewFields("status", "error", "completed_at", "incomplete_details")

// failedEnd is an end that became a failure.
func failedEnd(end []byte, e *llm.Error) []byte {
	number, _ := jsonedit.Get(end, "sequence_number")
	before, _ := strconv.ParseInt(string(number), 10, 64)
	f := follower{sequence: before - 1}
	frames := sse.Append(nil, []byte("error"), append(appendFault(f.beginEvent("error"), e), '}'))

	response, _ := jsonedit.Get(end, "response")
	var o jsonedit.Object
	if err := jsonedit.Scan(response, endFields, &o); err == nil {
		response = jsonedit.Edited(response, &o, jsonedit.Set(0, []byte(`"failed"`)), jsonedit.Set(1, Dialect{}.Fault(e)),
			jsonedit.Set(2, openai.Null), jsonedit.Set(3, openai.Null))
	}
	data := append(f.beginEvent("response.failed"), `,"response":`...)
	data = append(append(data, response...), '}')
	return append(sse.Append(frames, []byte("response.failed"), data), openai.DoneFrame...)
}
