// Package sse reads and writes server-sent events.
//
// It reads every legal stream, and those that are slightly illegal in the ways
// that model servers are, and it tells of each event whether the very bytes it
// came in may be handed on: most may, and then nothing is copied or written anew.
//
// The package knows frames. It knows nothing of what their data says, of
// dialects or of HTTP.
package sse

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/limen-gateway/limen/internal/buffer"
)

// ErrTooLong is returned for a frame that has not ended within the limit.
var ErrTooLong = errors.New("sse: frame is too long")

var errClosed = errors.New("sse: reader is closed")

// Frame is one event, or a piece of the stream that carries none. Its slices
// are good until the next call of Fill or Close.
type Frame struct {
	// Raw is the bytes of the frame, with the end of the empty line that ends
	// it. The frames that Next returns between two calls of Fill follow each
	// other in memory, so that several may be written as one slice.
	Raw   []byte
	Event []byte // the event's name; nil when there is none
	Data  []byte // the data lines, joined by \n; nil when there are none

	// Canonical tells that Raw is what Append makes of Event and Data: at most
	// one line "event: e", one line "data: d" that is not empty, one empty line,
	// all ended by \n, and nothing else.
	Canonical bool
}

// IsComment tells that the frame carries no event: comments, empty lines, id
// and retry fields.
func (f Frame) IsComment() bool { return f.Data == nil && f.Event == nil }

// Field returns the value of the last field of a name, as id or retry; nil when
// the frame has none.
func (f Frame) Field(name string) (value []byte) {
	for rest := f.Raw; len(rest) > 0; {
		line := rest
		rest = nil
		if n := indexLineEnd(line); n >= 0 {
			line, rest = line[:n], line[n+1:]
		}
		if found, after, _ := bytes.Cut(line, []byte(":")); string(found) == name {
			value = append([]byte{}, bytes.TrimPrefix(after, []byte(" "))...)
		}
	}
	return value
}

// Reader splits a stream into frames. It belongs to one goroutine.
//
// A frame ends at the first byte that ends an empty line. Of an empty line
// ended by CR LF that is the CR: whether LF follows is not known before it
// comes, and an event must not wait for it. The LF then counts to the frame
// after it.
type Reader struct {
	src io.Reader
	max int

	buf        *[]byte
	start, end int  // the bytes of buf that are not yet handed out
	scan       int  // no line ends in buf[line:scan]
	line       int  // where the current line begins
	lines      int  // lines of the current frame that have ended
	first      int  // where the first of them ended
	hasCR      bool // the current frame has a CR, or begins with the LF of one
	afterCR    bool // the last line end, in this frame or the one before, was CR
	begun      bool // a frame has been returned
	last       bool // what is left is the last frame, though no empty line ends it

	scratch []byte // data of more than one line
	err     error  // what the source ended with
}

// NewReader returns a Reader of src for frames of at most max bytes.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, max: max, buf: newBuffer(0)}
}

// minBuffer is what a stream begins with, and goes back to.
const minBuffer = 4 << 10

// newBuffer returns a buffer of at least size bytes.
func newBuffer(size int) *[]byte {
	b := buffer.Get(size)
	*b = (*b)[:cap(*b)]
	return b
}

// Close gives the memory back. It does not close the source.
func (r *Reader) Close() {
	if r.err != errClosed {
		buffer.Put(r.buf)
		*r = Reader{err: errClosed, buf: new([]byte)}
	}
}

// Next returns the next whole frame of what has been read, and false when more
// must be read first. It never blocks, so a caller can take all frames that
// have arrived and hand them on together.
func (r *Reader) Next() (f Frame, ok bool) {
	for {
		n := r.lineEnd()
		if n < 0 {
			if r.last && r.left() {
				return r.take(r.end), true
			}
			return Frame{}, false
		}
		cr := (*r.buf)[n] == '\r'
		empty := n == r.line
		half := empty && !cr && r.afterCR // the LF of a CR LF
		r.hasCR = r.hasCR || cr || half
		r.afterCR = cr
		if empty && !half {
			return r.take(n + 1), true
		}
		if !empty {
			if r.lines++; r.lines == 1 {
				r.first = n
			}
		}
		r.line, r.scan = n+1, n+1
	}
}

// lineEnd returns where the current line ends, or -1. Every byte is looked at
// once, however many reads a line takes.
func (r *Reader) lineEnd() int {
	n := indexLineEnd((*r.buf)[r.scan:r.end])
	if n < 0 {
		r.scan = r.end
		return -1
	}
	r.scan += n
	return r.scan
}

// indexLineEnd returns the index of the first CR or LF of b, or -1. It searches
// piece by piece, lest an LF far away be searched for anew from each of many CRs.
func indexLineEnd(b []byte) int {
	const piece = 1024
	for from := 0; from < len(b); from += piece {
		p := b[from:min(from+piece, len(b))]
		n := bytes.IndexByte(p, '\n')
		if n >= 0 {
			p = p[:n]
		}
		if cr := bytes.IndexByte(p, '\r'); cr >= 0 {
			n = cr
		}
		if n >= 0 {
			return from + n
		}
	}
	return -1
}

// left tells whether a frame has begun that has not ended.
func (r *Reader) left() bool { return r.lines > 0 || r.line < r.end }

// take returns what lies before end as a frame and goes on behind it.
func (r *Reader) take(end int) Frame {
	f := Frame{Raw: (*r.buf)[r.start:end:end]}
	if !r.canonical(&f) {
		r.parse(&f)
	}
	r.start, r.scan, r.line = end, end, end
	r.lines, r.hasCR, r.begun = 0, false, true
	return f
}

// canonical sets f's event and data if it is in canonical form.
func (r *Reader) canonical(f *Frame) bool {
	if r.hasCR || r.last {
		return false
	}
	var event []byte
	data := f.Raw
	if r.lines == 2 {
		n := r.first - r.start
		var ok bool
		if event, ok = bytes.CutPrefix(data[:n], []byte("event: ")); !ok || len(event) == 0 {
			return false
		}
		data = data[n+1:]
	} else if r.lines != 1 {
		return false
	}
	const prefix, suffix = "data: ", "\n\n"
	if len(data) <= len(prefix+suffix) || string(data[:len(prefix)]) != prefix {
		return false
	}
	f.Event, f.Data, f.Canonical = event, data[len(prefix):len(data)-len(suffix)], true
	return true
}

// parse sets f's event and data by the rules of the standard. The two halves of
// a CR LF are two line ends here: empty lines within a frame mean nothing.
func (r *Reader) parse(f *Frame) {
	rest := f.Raw
	if !r.begun {
		rest = bytes.TrimPrefix(rest, []byte("\uFEFF"))
	}
	joined := -1 // where in scratch the data of several lines begin
	for len(rest) > 0 {
		line := rest
		if n := indexLineEnd(rest); n >= 0 {
			line, rest = rest[:n], rest[n+1:]
		} else {
			rest = nil
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			value = []byte{}
		} else if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(name) {
		case "event":
			if f.Event = value; len(value) == 0 {
				f.Event = nil
			}
		case "data":
			if f.Data == nil {
				f.Data = value
				continue
			}
			if joined < 0 {
				joined = len(r.scratch)
				r.scratch = append(r.scratch, f.Data...)
			}
			r.scratch = append(r.scratch, '\n')
			r.scratch = append(r.scratch, value...)
			f.Data = r.scratch[joined:len(r.scratch):len(r.scratch)]
		}
	}
}

// Fill reads once from the source, which may block. Call it when Next has
// returned false. It returns io.EOF at the end of the stream. When the stream
// ends in the middle of a frame, what is there of it is first made available to
// Next; when it breaks with another error, it is dropped and the error returned
// as it is. ErrTooLong says that a frame is longer than the limit.
func (r *Reader) Fill() error {
	if r.err == nil {
		if !r.makeRoom() {
			r.err = ErrTooLong
			return r.err
		}
		n, err := r.src.Read((*r.buf)[r.end:min(len(*r.buf), r.max)])
		r.end += n
		r.err = err
		if n > 0 || err == nil {
			return nil
		}
	}
	if r.err == io.EOF && r.left() {
		r.last = true
		return nil
	}
	return r.err
}

// maxScratch is how much memory for joined data lines an idle stream keeps.
const maxScratch = 64 << 10

// makeRoom makes space to read into: at least half of the buffer is free
// afterwards, unless the limit does not allow it. A buffer that a large frame
// needed is exchanged for a small one, so that no idle stream holds it. It
// reports false when the pending frame has reached the limit.
func (r *Reader) makeRoom() bool {
	if r.scratch = r.scratch[:0]; cap(r.scratch) > maxScratch {
		r.scratch = nil
	}
	pending := r.end - r.start
	if pending >= r.max {
		return false
	}
	old := r.buf
	size := len(*old)
	if pending <= minBuffer/2 {
		size = minBuffer
	} else if pending > size/2 && size < r.max {
		size *= 2
	}
	if size != len(*old) {
		r.buf = newBuffer(size)
	}
	if size != len(*old) || r.start > 0 {
		copy(*r.buf, (*old)[r.start:r.end])
	}
	if r.buf != old {
		buffer.Put(old)
	}
	r.scan -= r.start
	r.line -= r.start
	r.first -= r.start
	r.start, r.end = 0, pending
	return true
}

// All yields the frames of a stream, and the error that it ends with unless
// that is io.EOF. A frame is good until the next one.
func All(src io.Reader, max int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		r := NewReader(src, max)
		defer r.Close()
		for {
			for f, ok := r.Next(); ok; f, ok = r.Next() {
				if !yield(f, nil) {
					return
				}
			}
			if err := r.Fill(); err != nil {
				if err != io.EOF {
					yield(Frame{}, err)
				}
				return
			}
		}
	}
}

// Append appends the canonical frame of an event: its name, when there is one,
// and its data on one line. Line ends in data are left out; in JSON, where they
// can only stand between tokens, they mean nothing.
func Append(dst, event, data []byte) []byte {
	if len(event) > 0 {
		dst = append(dst, "event: "...)
		dst = appendLine(dst, event)
	}
	dst = append(dst, "data: "...)
	dst = appendLine(dst, data)
	return append(dst, '\n')
}

func appendLine(dst, text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		dst = append(dst, text...)
		return append(dst, '\n')
	}
	for _, c := range text {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}
