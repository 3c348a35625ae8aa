package jsonedit

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The functions in this file check one piece of JSON each. They take the
// offset where the piece begins and return the offset where it ends, or, with
// a reason other than ok, the offset of the first byte that cannot stand where
// it stands. They never read past the end of doc, whatever it holds.

// value checks the value at i, which depth containers surround. White space
// before it is skipped.
//
// It keeps its own stack, of one bit for each container, because a body is
// made of small values and a call for each of them would be most of the cost.
func value(doc []byte, i, depth int) (int, Reason) {
	outside := depth
	var objects uint64 // a bit for each container entered here, the innermost lowest: 1 is an object
	for {
		i = space(doc, i)
		var bad Reason
		switch at(doc, i) {
		case '"':
			i, bad = text(doc, i)
		case '{':
			if depth == MaxDepth {
				return i, Depth
			}
			depth++
			objects = objects<<1 | 1
			if i = space(doc, i+1); at(doc, i) != '}' {
				if _, i, bad = name(doc, i); bad != ok {
					return i, bad
				}
				continue
			}
		case '[':
			if depth == MaxDepth {
				return i, Depth
			}
			depth++
			objects <<= 1
			if i = space(doc, i+1); at(doc, i) != ']' {
				continue
			}
		case 't':
			i, bad = literal(doc, i, "true")
		case 'f':
			i, bad = literal(doc, i, "false")
		case 'n':
			i, bad = literal(doc, i, "null")
		default:
			i, bad = number(doc, i)
		}
		if bad != ok {
			return i, bad
		}

		// A value is complete, and so may be the containers around it.
		for depth > outside {
			i = space(doc, i)
			c := at(doc, i)
			if c == ',' {
				break
			}
			if objects&1 == 1 && c != '}' || objects&1 == 0 && c != ']' {
				return i, Syntax
			}
			i++
			depth--
			objects >>= 1
		}
		if depth == outside {
			return i, ok
		}
		i++ // the comma
		if objects&1 == 1 {
			if _, i, bad = name(doc, space(doc, i)); bad != ok {
				return i, bad
			}
		}
	}
}

// enter returns the offset of the first item of the object or array whose
// opening bracket is at i, and whether it has one.
func enter(doc []byte, i int, closing byte) (int, bool) {
	i = space(doc, i+1)
	return i, at(doc, i) != closing
}

// next takes the end of an item and returns the offset of the item after it,
// or of the closing bracket and false.
func next(doc []byte, i int, closing byte) (_ int, more bool, bad Reason) {
	i = space(doc, i)
	switch at(doc, i) {
	case ',':
		return space(doc, i+1), true, ok
	case closing:
		return i, false, ok
	}
	return i, false, Syntax
}

// name checks a member's name at i and the colon after it. It returns the end
// of the name and the offset after the colon.
func name(doc []byte, i int) (end, after int, bad Reason) {
	if at(doc, i) != '"' {
		return i, i, Syntax
	}
	if end, bad = text(doc, i); bad != ok {
		return end, end, bad
	}
	if i = space(doc, end); at(doc, i) != ':' {
		return end, i, Syntax
	}
	return end, i + 1, ok
}

// brief is how many bytes of a string text looks at before it leaves even what
// is no plain ASCII to stride, which may know it too. A call of stride costs
// more than a short string.
const brief = 32

// text checks the string whose opening quote is at i. Nearly all of a body
// passes through here: what is short through the first lines of the loop, the
// rest through stride.
func text(doc []byte, i int) (int, Reason) {
	i++
	start := i
	for {
		if len(doc)-i >= 8 {
			if stops := special(doc[i:]) & highBits; stops == 0 {
				i = stride(doc, i+8)
			} else if i += bits.TrailingZeros64(stops) / 8; i-start >= brief && doc[i] != '"' {
				i = stride(doc, i)
			}
		}
		switch c := at(doc, i); {
		case c == '"':
			return i + 1, ok
		case c == '\\':
			var bad Reason
			if i, bad = escape(doc, i); bad != ok {
				return i, bad
			}
		case c >= utf8.RuneSelf:
			end := multibyte(doc, i)
			if end == i {
				return i, UTF8
			}
			i = end
		case c < ' ': // a control character, or the end of the document
			return i, Syntax
		default: // where stride gave up, or one of the last seven bytes
			i++
		}
	}
}

// multibyte returns the end of the run of well-formed characters beyond ASCII
// that begins at i; i itself when the first of them is malformed. It may stop
// inside a long run, which is a matter for stride.
func multibyte(doc []byte, i int) int {
	for limit := min(i+brief, len(doc)-8); i <= limit; {
		w := binary.LittleEndian.Uint64(doc[i:])
		if w&0xC0C0F0C0C0F0 == 0x8080E08080E0 && isRune3(w) && isRune3(w>>24) {
			i += 6 // two characters of three bytes: most of Chinese, Japanese and Korean
			continue
		}
		n := runeLen(w)
		if n == 0 {
			return i
		}
		i += n
	}
	for len(doc)-i < 8 && i < len(doc) && doc[i] >= utf8.RuneSelf {
		_, n := utf8.DecodeRune(doc[i:])
		if n == 1 {
			return i
		}
		i += n
	}
	return i
}

// runeLen returns the length of the character beyond ASCII that begins in the
// lowest byte of w, or 0 when there is none or it is malformed: a lead byte
// without its continuation bytes, a longer form than needed, a surrogate, or
// more than U+10FFFF.
func runeLen(w uint64) int {
	switch {
	case w&0xC0C0F0 == 0x8080E0:
		if isRune3(w) {
			return 3
		}
	case w&0xC0E0 == 0x80C0:
		if w&0x1E != 0 {
			return 2
		}
	case w&0xC0C0C0F8 == 0x808080F0:
		if x := w & 0x3007; x == 4 || x != 0 && x&7 < 4 {
			return 4
		}
	}
	return 0
}

// isRune3 tells whether three bytes of the right form are neither longer than
// needed nor a surrogate.
func isRune3(w uint64) bool {
	x := w & 0x200F
	return x != 0 && x != 0x200D
}

// escape checks the escape sequence whose backslash is at i. Half a surrogate
// pair is let through: clients cut strings in the middle of a pair and send
// what is left.
func escape(doc []byte, i int) (int, Reason) {
	i++
	switch c := at(doc, i); {
	case short[c]:
		return i + 1, ok
	case c == 'u':
		for range 4 {
			i++
			if hex[at(doc, i)] < 0 {
				return i, Syntax
			}
		}
		return i + 1, ok
	}
	return i, Syntax
}

// short holds the characters that make a whole escape sequence with the
// backslash before them.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// hex holds the value of each hexadecimal digit, and -1 for all other bytes.
var hex = func() (t [256]int8) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9':
			t[c] = int8(c - '0')
		case 'a' <= (c|0x20) && (c|0x20) <= 'f':
			t[c] = int8((c | 0x20) - 'a' + 10)
		default:
			t[c] = -1
		}
	}
	return t
}()

// number checks the number at i.
func number(doc []byte, i int) (int, Reason) {
	if at(doc, i) == '-' {
		i++
	}
	if at(doc, i) == '0' {
		i++
	} else if end := digits(doc, i); end > i {
		i = end
	} else {
		return i, Syntax
	}
	if at(doc, i) == '.' {
		end := digits(doc, i+1)
		if end == i+1 {
			return end, Syntax
		}
		i = end
	}
	if at(doc, i)|0x20 == 'e' {
		i++
		if c := at(doc, i); c == '+' || c == '-' {
			i++
		}
		end := digits(doc, i)
		if end == i {
			return end, Syntax
		}
		i = end
	}
	return i, ok
}

// digits returns the end of the run of digits at i.
func digits(doc []byte, i int) int {
	for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
		i++
	}
	return i
}

// literal checks that want is at i.
func literal(doc []byte, i int, want string) (int, Reason) {
	if i+len(want) <= len(doc) && string(doc[i:i+len(want)]) == want {
		return i + len(want), ok
	}
	for k := 0; at(doc, i) == want[k]; k++ {
		i++
	}
	return i, Syntax
}

// space returns the offset of the first byte at or after i that is not white
// space.
func space(doc []byte, i int) int {
	for i < len(doc) && doc[i] <= ' ' && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\r' || doc[i] == '\t') {
		i++
	}
	return i
}

// at returns the byte at i, or 0, which is never right, past the end.
func at(doc []byte, i int) byte {
	if i < len(doc) {
		return doc[i]
	}
	return 0
}
