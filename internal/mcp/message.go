package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// message is what a server says: an answer, a request, or, without an ID, a
// notification.
type message struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *Error
}

// parse reads what a server said at once: a message, or, in version 2025-03-26,
// several.
func parse(data []byte) ([]message, error) {
	if !utf8.Valid(data) {
		return nil, errAnswer
	}
	if jsonedit.KindOf(bytes.TrimLeft(data, " \t\r\n")) == jsonedit.KindArray {
		var all []message
		return all, json.Unmarshal(data, &all)
	}
	var one message
	if err := json.Unmarshal(data, &one); err != nil {
		return nil, err
	}
	return []message{one}, nil
}

// asks reports whether a message is a request.
func (m *message) asks() bool { return m.Method != "" && m.numbered() }

func (m *message) numbered() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// answers reports whether a message is the answer of a request. A server that
// could not read the number of a request refuses it without one.
func (m *message) answers(id string) bool {
	return m.Method == "" && (string(m.ID) == id || m.Error != nil && !m.numbered())
}

// answer is what a message says of a request: an object, or why there is none.
func (m *message) answer() ([]byte, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	if jsonedit.KindOf(m.Result) != jsonedit.KindObject {
		return nil, errAnswer
	}
	if kind, ok := jsonedit.Get(m.Result, "resultType"); ok && string(kind) != `"complete"` {
		return nil, errQuestion
	}
	return m.Result, nil
}

// find looks for the answer of a request among messages; nil is none.
func find(all []message, id string) *message {
	for i := range all {
		if all[i].answers(id) {
			return &all[i]
		}
	}
	return nil
}

// say writes a message. The ID is nil for a notification.
func say(id []byte, method string, params []byte) []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("jsonrpc", "2.0")
	w.SetRaw("id", id)
	w.SetText("method", method)
	w.SetRaw("params", params)
	w.EndObject()
	return w.Bytes()
}

// reply writes the answer of a server's request: we are there, and can do
// nothing for it.
func (m *message) reply() []byte {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("jsonrpc", "2.0")
	w.SetRaw("id", m.ID)
	if m.Method == "ping" {
		w.SetRaw("result", []byte("{}"))
	} else {
		w.SetRaw("error", []byte(`{"code":-32601,"message":"Method not found"}`))
	}
	w.EndObject()
	return w.Bytes()
}
