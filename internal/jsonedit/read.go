package jsonedit

import (
	"bytes"
	"iter"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind uint8

const (
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[k]
}

// KindOf tells the type of a value by its first byte. It does not check the rest.
func KindOf(value []byte) Kind {
	switch c := at(value, 0); {
	case c == '{':
		return KindObject
	case c == '[':
		return KindArray
	case c == '"':
		return KindString
	case c == 't', c == 'f':
		return KindBool
	case c == 'n':
		return KindNull
	case c == '-', '0' <= c && c <= '9':
		return KindNumber
	}
	return KindInvalid
}

// Get returns the value at a path of member names, and whether there is one.
// Names must match exactly; of duplicates the first counts. The document may be
// anything: it is checked no further than the end of the value.
func Get(doc []byte, path ...string) ([]byte, bool) {
	i := space(doc, 0)
	for depth, want := range path {
		var found bool
		if i, found = find(doc, i, depth+1, want); !found {
			return nil, false
		}
	}
	end, bad := value(doc, i, len(path))
	if bad != ok {
		return nil, false
	}
	return doc[i:end:end], true
}

// find returns the offset of the value of the member called want of the object
// at i, which is at the given depth.
func find(doc []byte, i, depth int, want string) (int, bool) {
	if at(doc, i) != '{' {
		return i, false
	}
	i, more := enter(doc, i, '}')
	for more {
		start := i + 1
		end, after, bad := name(doc, i)
		if bad != ok {
			break
		}
		i = space(doc, after)
		if reads(doc[start:end-1], want) {
			return i, true
		}
		if i, bad = value(doc, i, depth); bad != ok {
			break
		}
		i, more, _ = next(doc, i, '}')
	}
	return i, false
}

// reads tells whether a name, given as it is written between its quotes, reads
// exactly as want.
func reads(written []byte, want string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written) == want
	}
	_, exact := compare(written, want)
	return exact
}

// Members yields the members of an object in their order: the name as it is
// written, with its quotes, and the value. It stops where the bytes are no
// longer JSON, and yields nothing for what is not an object.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := space(object, 0)
		if at(object, i) != '{' {
			return
		}
		i, more := enter(object, i, '}')
		for more {
			start := i
			nameEnd, after, bad := name(object, i)
			if bad != ok {
				return
			}
			i = space(object, after)
			end, bad := value(object, i, 1)
			if bad != ok || !yield(object[start:nameEnd:nameEnd], object[i:end:end]) {
				return
			}
			i, more, _ = next(object, end, '}')
		}
	}
}

// Elements yields the elements of an array in their order. It stops where the
// bytes are no longer JSON, and yields nothing for what is not an array.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := space(array, 0)
		if at(array, i) != '[' {
			return
		}
		i, more := enter(array, i, ']')
		for more {
			end, bad := value(array, i, 1)
			if bad != ok || !yield(array[i:end:end]) {
				return
			}
			i, more, _ = next(array, end, ']')
		}
	}
}

// Unquote decodes a JSON string, given with its quotes. Half a surrogate pair
// becomes U+FFFD. It reports false for anything else than a well-formed string.
func Unquote(value []byte) (string, bool) {
	if at(value, 0) != '"' {
		return "", false
	}
	if end, bad := text(value, 0); bad != ok || end != len(value) {
		return "", false
	}
	s := value[1 : len(value)-1]
	n := bytes.IndexByte(s, '\\')
	if n < 0 {
		return string(s), true
	}
	var b strings.Builder
	b.Grow(len(s)) // no character is longer than its escape
	for n >= 0 {
		b.Write(s[:n])
		r, size := char(s[n:])
		b.WriteRune(r)
		s = s[n+size:]
		n = bytes.IndexByte(s, '\\')
	}
	b.Write(s)
	return b.String(), true
}

// AppendQuote appends s as a JSON string. Only what must be escaped is; what is
// not well-formed UTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := len(dst)
	dst = append(dst, s...)
	end := clean(dst, start)
	if end == len(dst) {
		return append(dst, '"')
	}
	dst, s = dst[:end], s[end-start:]
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c < ' ' {
				dst = append(dst, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}

// clean returns the offset of the first byte at or after i that AppendQuote
// does not copy as it is, or the end of s.
func clean(s []byte, i int) int {
	for len(s)-i >= 8 {
		if stops := special(s[i:]) & highBits; stops != 0 {
			return i + bits.TrailingZeros64(stops)/8
		}
		i += 8
	}
	for i < len(s) && s[i] < utf8.RuneSelf && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
