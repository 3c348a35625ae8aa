package socket

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"net/http"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/http1"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

// message is a request as a socket takes it.
type message struct {
	header http.Header // of the handshake
	body   *[]byte     // the request's, whole
	object jsonedit.Object
	stream bool
	// input is the inside of the list of items, where the upstream is not told
	// of what came before in any other way; nil elsewhere.
	input []byte
}

// The members of a request that are looked at.
const (
	requestType = iota
	requestStream
	requestOptions
	requestBackground
	requestInput
	requestPrevious
	requestConversation
)

var requestFields = jsonedit.NewFields("type", "stream", "stream_options", "background", "input", "previous_response_id", "conversation")

// newMessage reads a request; nil when a message cannot say it: a socket knows
// neither options of streams nor answers in the background.
func newMessage(req *http.Request) *message {
	body, ok := req.Body.(http1.Segmented)
	if !ok {
		return nil
	}
	m := &message{body: buffer.Get(int(req.ContentLength))}
	for _, s := range body.Segments() {
		*m.body = append(*m.body, s...)
	}
	o := &m.object
	if err := jsonedit.Scan(*m.body, requestFields, o); err != nil || given(o.Value(requestOptions)) || string(o.Value(requestBackground)) == "true" {
		m.release()
		return nil
	}
	m.stream = string(o.Value(requestStream)) == "true"
	input := o.Value(requestInput)
	if jsonedit.KindOf(input) == jsonedit.KindArray && !given(o.Value(requestPrevious)) && !given(o.Value(requestConversation)) {
		m.input = bytes.TrimSpace(input[1 : len(input)-1])
	}
	m.header = req.Header.Clone()
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Type"} {
		m.header.Del(name) // of one request, not of a socket
	}
	return m
}

func given(value []byte) bool { return value != nil && jsonedit.KindOf(value) != jsonedit.KindNull }

func (m *message) release() { buffer.Put(m.body) }

// create is the message that asks for a response. after is what the socket
// remembers and the input begins with: then only what is new is sent.
func (m *message) create(after *memory) *[]byte {
	changes := []jsonedit.Change{
		jsonedit.Set(requestType, []byte(`"response.create"`)),
		jsonedit.Remove(requestStream), jsonedit.Remove(requestOptions), jsonedit.Remove(requestBackground),
	}
	if after != nil {
		rest := append([]byte{'['}, m.input[after.size+1:]...)
		changes = append(changes,
			jsonedit.Set(requestInput, append(rest, ']')),
			jsonedit.Set(requestPrevious, jsonedit.AppendQuote(nil, after.id)))
	}
	segments, size := jsonedit.Splice(nil, *m.body, m.object.Edits(nil, changes...))
	out := buffer.Get(size)
	for _, s := range segments {
		*out = append(*out, s...)
	}
	return out
}

// memory is what the upstream remembers of a socket: its last response. What
// it stands for, the whole input and the output behind it, is kept as a hash.
type memory struct {
	id   string // of the response; "" when nothing is remembered
	size int    // of what it stands for, in bytes
	sum  [sha256.Size]byte
	tail []byte // the last of these bytes
}

// maxTail is how much of the end is kept, to tell conversations apart without
// hashing each.
const maxTail = 64

// mayPrecede reports whether an input looks as if it went on from what is
// remembered.
func (m *memory) mayPrecede(input []byte) bool {
	return m.id != "" && len(input) > m.size && input[m.size] == ',' && bytes.HasSuffix(input[:m.size], m.tail)
}

// precedes reports whether an input goes on from what is remembered.
func (m *memory) precedes(input []byte) bool {
	return m.mayPrecede(input) && sha256.Sum256(input[:m.size]) == m.sum
}

// recorder makes the memory of a response while it is told.
type recorder struct {
	hash hash.Hash
	size int
	tail []byte
}

// newRecorder begins with the whole input; nil for a request whose input
// nothing can go on from.
func newRecorder(input []byte) *recorder {
	if len(input) == 0 {
		return nil
	}
	r := &recorder{hash: sha256.New()}
	r.add(input)
	return r
}

func (r *recorder) add(b []byte) {
	r.hash.Write(b)
	r.size += len(b)
	r.tail = append(r.tail[:0], b[max(len(b)-maxTail, 0):]...)
}

var outputFields = jsonedit.NewFields("id", "output")

// memory is what the upstream remembers once it has completed a response.
func (r *recorder) memory(response []byte) (m memory) {
	var o jsonedit.Object
	if r == nil || jsonedit.Scan(response, outputFields, &o) != nil {
		return m
	}
	m.id, _ = jsonedit.Unquote(o.Value(0))
	for item := range jsonedit.Elements(o.Value(1)) {
		r.add([]byte{','})
		r.add(item)
	}
	m.size, m.tail = r.size, r.tail
	r.hash.Sum(m.sum[:0])
	return m
}
