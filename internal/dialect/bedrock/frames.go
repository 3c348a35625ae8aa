package bedrock

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/sse"
)

// What a message of application/vnd.amazon.eventstream consists of: the
// prelude (its length, the length of its headers, their checksum), headers,
// payload, and a checksum of all before it.
const (
	preludeSize = 12
	trailerSize = 4
	lengthSize  = 4
)

// minRead is the room for one read.
const minRead = 4 << 10

var (
	errPrelude = errors.New("bedrock: the checksum of a message's prelude is wrong: no event stream")
	errSum     = errors.New("bedrock: the checksum of a message is wrong")
	errLengths = errors.New("bedrock: the lengths of a message cannot be")
	errHeaders = errors.New("bedrock: the headers of a message cannot be read")
	errClosed  = errors.New("bedrock: reader is closed")
)

// reader reads the messages of an event stream. It belongs to one goroutine.
// The name of a frame is the type of its event, or "exception:" and the type
// of the exception.
type reader struct {
	src   io.Reader
	limit int // bytes of a message
	buf   []byte
	start int // buf[start:] is not yet handed out
	err   error
}

var _ dialect.Frames = (*reader)(nil)

func newReader(src io.Reader, limit int) *reader { return &reader{src: src, limit: limit} }

// Next implements dialect.Frames. What cannot be read is told by the next
// Fill.
func (r *reader) Next() (sse.Frame, bool) {
	size, ok := r.size()
	if !ok || len(r.buf)-r.start < size {
		return sse.Frame{}, false
	}
	message := r.buf[r.start : r.start+size : r.start+size]
	r.start += size
	body := message[:size-trailerSize]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(message[size-trailerSize:]) {
		r.fail(errSum)
		return sse.Frame{}, false
	}
	end := preludeSize + int(binary.BigEndian.Uint32(message[lengthSize:]))
	h, ok := readHeaders(body[preludeSize:end])
	if !ok {
		r.fail(errHeaders)
		return sse.Frame{}, false
	}
	f := sse.Frame{Raw: message, Event: h.event, Data: body[end:]}
	switch string(h.kind) {
	case "exception":
		f.Event = append([]byte(exceptionPrefix), h.exception...)
	case "error": // the stream itself failed: there is no payload
		f.Event = append([]byte(exceptionPrefix), h.code...)
		var w jsonedit.Writer
		w.BeginObject()
		w.SetText("message", string(h.message))
		w.EndObject()
		f.Data = w.Bytes()
	}
	return f, true
}

// exceptionPrefix begins the name of a frame that tells of a failure.
const exceptionPrefix = "exception:"

// headers are those of a message that matter.
type headers struct{ kind, event, exception, code, message []byte }

// The types of a header's value.
const (
	typeTrue = iota
	typeFalse
	typeByte
	typeShort
	typeInt
	typeLong
	typeBytes
	typeString
	typeTime
	typeUUID
)

// sizes are those of values that have one length, -1 where it is written.
var sizes = [...]int{typeTrue: 0, typeFalse: 0, typeByte: 1, typeShort: 2, typeInt: 4, typeLong: 8, typeBytes: -1, typeString: -1, typeTime: 8, typeUUID: 16}

// readHeaders reads headers: the length of a name, the name, a type, a value.
func readHeaders(b []byte) (h headers, ok bool) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+1 {
			return h, false
		}
		name, kind := b[1:1+n], int(b[1+n])
		b = b[2+n:]
		if kind >= len(sizes) {
			return h, false
		}
		size := sizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return h, false
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return h, false
		}
		if kind == typeString {
			h.set(name, b[:size:size])
		}
		b = b[size:]
	}
	return h, true
}

func (h *headers) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		h.kind = value
	case ":event-type":
		h.event = value
	case ":exception-type":
		h.exception = value
	case ":error-code":
		h.code = value
	case ":error-message":
		h.message = value
	}
}

// size is the length of the message that comes next, when its prelude is
// there.
func (r *reader) size() (int, bool) {
	if r.err != nil && r.err != io.EOF || len(r.buf)-r.start < preludeSize {
		return 0, false
	}
	prelude := r.buf[r.start:]
	if crc32.ChecksumIEEE(prelude[:2*lengthSize]) != binary.BigEndian.Uint32(prelude[2*lengthSize:]) {
		r.fail(errPrelude)
		return 0, false
	}
	total, headers := uint64(binary.BigEndian.Uint32(prelude)), uint64(binary.BigEndian.Uint32(prelude[lengthSize:]))
	if total < preludeSize+trailerSize+headers {
		r.fail(errLengths)
		return 0, false
	}
	if total > uint64(max(r.limit, 0)) {
		r.fail(sse.ErrTooLong)
		return 0, false
	}
	return int(total), true
}

func (r *reader) fail(err error) {
	r.err, r.buf, r.start = err, nil, 0
}

// Fill implements dialect.Frames. A stream that ends within a message gives
// io.ErrUnexpectedEOF.
func (r *reader) Fill() error {
	if r.err == io.EOF && len(r.buf) > r.start {
		return io.ErrUnexpectedEOF
	}
	if r.err != nil {
		return r.err
	}
	r.makeRoom()
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf, r.err = r.buf[:len(r.buf)+n], err
	switch {
	case n > 0:
		return nil
	case err == io.EOF && len(r.buf) > r.start:
		return io.ErrUnexpectedEOF
	}
	return err
}

// makeRoom moves what is pending to the front, into a larger buffer when the
// message that has begun needs one.
func (r *reader) makeRoom() {
	pending := r.buf[r.start:]
	want := len(pending) + minRead
	if size, ok := r.size(); ok {
		want = max(size, minRead)
	}
	if r.err != nil {
		want, pending = minRead, nil
	}
	if cap(r.buf) < want || cap(r.buf) > 4*want && cap(r.buf) > 16*minRead {
		r.buf = append(make([]byte, 0, want), pending...)
	} else {
		r.buf = r.buf[:copy(r.buf[:cap(r.buf)], pending)]
	}
	r.start = 0
}

// Close implements dialect.Frames.
func (r *reader) Close() { r.fail(errClosed) }
