package jsonedit

import "strconv"

// Writer writes one JSON document by appending. Values that are JSON already
// go in as they are ([Writer.Raw]): most of what passes from one format to
// another never has to be decoded. The zero Writer is ready for use.
//
// Whoever writes is responsible for the grammar: a name before every value of
// an object, and as many ends as beginnings.
type Writer struct {
	buf   []byte
	comma bool // something stands before what comes next
}

// NewWriter returns a writer that appends to dst.
func NewWriter(dst []byte) *Writer { return &Writer{buf: dst} }

// Bytes is what was written so far.
func (w *Writer) Bytes() []byte { return w.buf }

// Len is the number of bytes written so far.
func (w *Writer) Len() int { return len(w.buf) }

func (w *Writer) sep() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

// BeginObject begins an object as the next value.
func (w *Writer) BeginObject() {
	w.sep()
	w.buf, w.comma = append(w.buf, '{'), false
}

// EndObject ends the object that was begun last.
func (w *Writer) EndObject() { w.buf, w.comma = append(w.buf, '}'), true }

// BeginArray begins an array as the next value.
func (w *Writer) BeginArray() {
	w.sep()
	w.buf, w.comma = append(w.buf, '['), false
}

// EndArray ends the array that was begun last.
func (w *Writer) EndArray() { w.buf, w.comma = append(w.buf, ']'), true }

// Name writes the name of a member, which must need no escapes.
func (w *Writer) Name(name string) {
	w.sep()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf, w.comma = append(w.buf, '"', ':'), false
}

// RawName writes a name that is a JSON string already.
func (w *Writer) RawName(name []byte) {
	w.sep()
	w.buf = append(w.buf, name...)
	w.buf, w.comma = append(w.buf, ':'), false
}

// Raw writes a value that is JSON already.
func (w *Writer) Raw(value []byte) {
	w.sep()
	w.buf = append(w.buf, value...)
}

// Text writes a string.
func (w *Writer) Text(s string) {
	w.sep()
	w.buf = AppendQuote(w.buf, s)
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	w.sep()
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// Bool writes a boolean.
func (w *Writer) Bool(b bool) {
	w.sep()
	w.buf = strconv.AppendBool(w.buf, b)
}

// Null writes null.
func (w *Writer) Null() { w.Raw([]byte("null")) }

// The members below are a name and a value in one.

// SetRaw writes a member whose value is JSON already; nil writes nothing.
func (w *Writer) SetRaw(name string, value []byte) {
	if value != nil {
		w.Name(name)
		w.Raw(value)
	}
}

// SetText writes a member that is a string.
func (w *Writer) SetText(name, value string) {
	w.Name(name)
	w.Text(value)
}

// SetInt writes a member that is an integer.
func (w *Writer) SetInt(name string, n int64) {
	w.Name(name)
	w.Int(n)
}

// SetBool writes a member that is a boolean.
func (w *Writer) SetBool(name string, b bool) {
	w.Name(name)
	w.Bool(b)
}

// Object begins a member that is an object.
func (w *Writer) Object(name string) {
	w.Name(name)
	w.BeginObject()
}

// Array begins a member that is an array.
func (w *Writer) Array(name string) {
	w.Name(name)
	w.BeginArray()
}

// Compact appends a JSON value without the white space between its tokens.
func Compact(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch c := value[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end, bad := text(value, i)
			if bad != ok {
				return append(dst, value[i:]...)
			}
			dst = append(dst, value[i:end]...)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}
