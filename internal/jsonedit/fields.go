package jsonedit

import (
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Fields is a set of member names that a caller acts on. It is made once, at
// the start of the program, and does not change. A field is known by its
// position in the list that the set was made from.
type Fields struct {
	names   []string
	inserts [][]byte    // `,"name":` for each field
	byFirst [256]uint64 // for each byte, the fields that can be written with it in front
}

// NewFields makes a set of at most 64 names. They consist of lower-case
// letters, digits and underscores; NewFields panics when one does not, or is
// there twice.
func NewFields(names ...string) *Fields {
	f := &Fields{names: slices.Clone(names)}
	for i, name := range names {
		if i == 64 || !isLower(name) || slices.Contains(names[:i], name) {
			panic("jsonedit: bad field " + name)
		}
		f.inserts = append(f.inserts, []byte(`,"`+name+`":`))
		for c := range f.byFirst {
			if c == '\\' || c >= utf8.RuneSelf || fold(rune(c)) == rune(name[0]) {
				f.byFirst[c] |= 1 << i
			}
		}
	}
	return f
}

// Index is the position of a field by its name, -1 when it is none.
func (f *Fields) Index(name string) int { return slices.Index(f.names, name) }

func isLower(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// find returns the field that a name is, or would be in another case, and
// whether it is exactly that. The name is given as it is written between its
// quotes. The field is -1 when there is none.
func (f *Fields) find(written []byte) (field int, exact bool) {
	if len(written) == 0 {
		return -1, false
	}
	for set := f.byFirst[written[0]]; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		name := f.names[i]
		if len(written) < len(name) { // no character is written shorter than it is
			continue
		}
		if string(written) == name {
			return i, true
		}
		if folded, exact := compare(written, name); folded {
			return i, exact
		}
	}
	return -1, false
}

// compare tells whether a name, given as it is written between its quotes,
// reads as want, apart from the case of letters and exactly.
func compare(written []byte, want string) (folded, exact bool) {
	exact = true
	for _, w := range want {
		if len(written) == 0 {
			return false, false
		}
		r, n := rune(written[0]), 1
		if r == '\\' || r >= utf8.RuneSelf {
			r, n = char(written)
		}
		if r != w {
			if exact = false; fold(r) != w {
				return false, false
			}
		}
		written = written[n:]
	}
	return len(written) == 0, len(written) == 0 && exact
}

// fold returns the lower-case ASCII letter that r is another case of, by
// Unicode's simple folding, or r.
func fold(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\u212A': // the Kelvin sign
		return 'k'
	case r == '\u017F': // the long s
		return 's'
	}
	return r
}

// char decodes the first character of what a well-formed string has between
// its quotes, and returns how many bytes it takes there. Half a surrogate pair
// is U+FFFD.
func char(s []byte) (rune, int) {
	if s[0] != '\\' {
		return utf8.DecodeRune(s)
	}
	switch c := s[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(s[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	default:
		return rune(c), 2
	}
}

// hex4 returns the value of four hexadecimal digits.
func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		r = r<<4 | rune(hex[c])
	}
	return r
}
