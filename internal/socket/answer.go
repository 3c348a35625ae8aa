package socket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/sse"
)

// answer is what a socket says to one call, as the body of an event stream.
// Closing it before its end closes the socket, which cancels the call; after
// the end the socket serves again.
type answer struct {
	socket    *socket
	ctx       context.Context // of the call
	release   func() bool     // undoes the link to it
	recorder  *recorder       // nil when nothing can go on from the response
	continued bool            // the upstream was told only what is new

	frame []byte // of the event that is read
	rest  []byte // of frame
	err   error  // after rest
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		e, err := a.next()
		if err == nil {
			a.show(e)
			continue
		}
		if a.err = a.abandon(); errors.Is(err, sse.ErrTooLong) || a.ctx.Err() != nil {
			a.err = err
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (a *answer) Close() error {
	if a.err == nil {
		a.err = a.abandon()
	}
	return nil
}

// maxFrame is how large a frame's memory is kept for the next.
const maxFrame = 64 << 10

// show makes a frame of an event, to be read.
func (a *answer) show(e event) {
	if cap(a.frame) > maxFrame {
		a.frame = nil
	}
	a.frame = sse.Append(a.frame[:0], []byte(e.kind), a.told(e))
	a.rest = a.frame
	switch {
	case !e.terminal:
	case e.kind == "error": // something may stand behind it
		a.abandon()
		a.err = io.EOF
	default:
		a.end(e)
		a.err = io.EOF
	}
}

// told is an event as it is told. That the gateway sent only what is new is its
// own affair: who sent the whole went on from nothing.
func (a *answer) told(e event) []byte {
	inner := e.object.Value(eventResponse)
	if !a.continued || inner == nil {
		return e.data
	}
	return jsonedit.Edited(e.data, &e.object, jsonedit.Set(eventResponse, standalone(inner)))
}

var previousField = jsonedit.NewFields("previous_response_id")

// standalone is a response that goes on from no other.
func standalone(response []byte) []byte {
	var o jsonedit.Object
	if jsonedit.Scan(response, previousField, &o) != nil || !o.Has(0) {
		return response
	}
	return jsonedit.Edited(response, &o, jsonedit.Set(0, []byte("null")))
}

// end ends the call with its last event. The socket serves the next one, if the
// call's context did not end in this very moment.
func (a *answer) end(last event) {
	s := a.socket
	if !a.release() {
		s.close()
		return
	}
	if last.kind == "response.completed" {
		s.memory = a.recorder.memory(last.object.Value(eventResponse))
	}
	s.transport.put(s)
}

// abandon ends the call and the socket.
func (a *answer) abandon() error {
	a.release()
	a.socket.close()
	return errEnded
}

// whole waits for the end of an answer that is wanted as one document.
func (a *answer) whole(e event) (*http.Response, error) {
	for !e.terminal {
		var err error
		if e.kind == "" {
			err = errors.New("socket: a message is no event")
		} else {
			e, err = a.next()
		}
		if err != nil {
			return nil, errors.Join(a.abandon(), err)
		}
	}
	if e.kind == "error" {
		a.abandon()
		return e.refusal(), nil
	}
	a.end(e)
	body := e.object.Value(eventResponse)
	if a.continued {
		body = standalone(body)
	}
	return response(http.StatusOK, "application/json", io.NopCloser(bytes.NewReader(body)), len(body)), nil
}

// refusal is an error event as the answer that HTTP would have brought. One
// that says no status is an error in a good answer, which HTTP has too.
func (e *event) refusal() *http.Response {
	object := e.object.Value(eventError)
	if jsonedit.KindOf(object) != jsonedit.KindObject {
		object = e.data
	}
	body := bytes.Join([][]byte{[]byte(`{"error":`), object, {'}'}}, nil)
	status := e.status()
	if status == 0 {
		status = http.StatusOK
	}
	resp := response(status, "", io.NopCloser(bytes.NewReader(body)), len(body))
	for name, value := range jsonedit.Members(e.object.Value(eventHeaders)) {
		field, _ := jsonedit.Unquote(name)
		text, ok := jsonedit.Unquote(value)
		if !ok {
			text = string(value) // a number
		}
		resp.Header.Set(field, text)
	}
	resp.Header.Set("Content-Type", "application/json")
	return resp
}

func response(status int, media string, body io.ReadCloser, length int) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {media}}, Body: body, ContentLength: int64(length),
	}
}
