package tokens

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Before anything is merged, a text is split into pieces that no token
// crosses. The encodings define the pieces by regular expressions that look
// ahead; here they are written out, so that no text takes long.
//
//	o200k_base    [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	              |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	              |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k_base   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+
//	              |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+

// class is what a character is to the expressions.
type class uint8

// The classes. A mark is no letter, although words may have it.
const (
	upper   class = 1 << iota // Lu, Lt
	lower                     // Ll
	neither                   // Lm, Lo
	mark                      // M
	number                    // N
	space                     // \s, but for the next
	newline                   // \r, \n

	letter  = upper | lower | neither
	blank   = space | newline
	notMark = letter | number | blank // what is in none of them is a sign, a mark as well
)

// classes are those of the first characters, which nearly all texts are made
// of.
var classes = sync.OnceValue(func() *[1 << 16]class {
	var table [1 << 16]class
	for _, r := range ranges {
		for _, run := range r.table.R16 {
			for c := uint32(run.Lo); c <= uint32(run.Hi); c += uint32(run.Stride) {
				table[c] = r.class
			}
		}
	}
	table['\r'], table['\n'] = newline, newline
	return &table
})

var ranges = []struct {
	table *unicode.RangeTable
	class class
}{
	{unicode.Lu, upper}, {unicode.Lt, upper}, {unicode.Ll, lower}, {unicode.Lm, neither}, {unicode.Lo, neither},
	{unicode.M, mark}, {unicode.N, number}, {unicode.White_Space, space},
}

// scan looks at the characters of a text.
type scan struct {
	text    string
	classes *[1 << 16]class
}

// at is the class of the character at an offset, and where the next begins.
// The end is of no class, and its own next. A byte that is not UTF-8 is a sign.
func (s scan) at(i int) (class, int) {
	if i >= len(s.text) {
		return 0, i
	}
	if c := s.text[i]; c < utf8.RuneSelf {
		return s.classes[c], i + 1
	}
	r, size := utf8.DecodeRuneInString(s.text[i:])
	if r < 1<<16 {
		return s.classes[r], i + size
	}
	for _, r2 := range ranges {
		if unicode.Is(r2.table, r) {
			return r2.class, i + size
		}
	}
	return 0, i + size
}

// run is where characters of some classes end, of max at most.
func (s scan) run(i int, of class, max int) int {
	for ; max > 0; max-- {
		c, next := s.at(i)
		if c&of == 0 {
			break
		}
		i = next
	}
	return i
}

// anyLength is no bound of a run.
const anyLength = int(^uint(0) >> 1)

func nextO200k(text string) int {
	s := scan{text, classes()}
	c, second := s.at(0)
	switch {
	case c&letter != 0:
		end, found := s.lowerWord(0)
		if !found {
			end = s.run(0, upper, anyLength)
		}
		return s.contraction(end)
	case c&(number|newline) == 0: // one sign, mark or space may stand before a word
		end, found := s.lowerWord(second)
		if !found && c == mark {
			end, found = s.lowerWord(0)
		}
		if !found {
			end = s.run(second, upper, anyLength)
			found = end > second
		}
		if found {
			return s.contraction(end)
		}
	}
	return s.rest(c, second, '/')
}

// lowerWord is the end of a word that ends in other than capitals: any of
// those and of what has no case, and then at least one that is no capital.
func (s scan) lowerWord(i int) (end int, found bool) {
	for {
		c, next := s.at(i)
		if c&(upper|neither|mark) == 0 {
			break
		}
		if i = next; c != upper {
			end, found = i, true
		}
	}
	if c, next := s.at(i); c == lower {
		return s.run(next, lower|neither|mark, anyLength), true
	}
	return end, found
}

func nextCl100k(text string) int {
	s := scan{text, classes()}
	if end := s.contraction(0); end > 0 {
		return end
	}
	c, second := s.at(0)
	if c&letter != 0 {
		return s.run(second, letter, anyLength)
	}
	if c&(number|newline) == 0 {
		if end := s.run(second, letter, anyLength); end > second {
			return end
		}
	}
	return s.rest(c, second, 0)
}

// rest is the end of what is no word: numbers, signs and space. c is the class
// of the first character, second where the next begins. Behind signs come
// newlines, and also a character of the encoding's own.
func (s scan) rest(c class, second int, behind byte) int {
	if c == number {
		return s.run(second, number, 2)
	}
	signs := 0
	if s.text[0] == ' ' {
		signs = second
	}
	if end := s.signs(signs); end > signs {
		for end < len(s.text) && (s.text[end] == '\r' || s.text[end] == '\n' || s.text[end] == behind && behind != 0) {
			end++
		}
		return end
	}
	return s.blanks()
}

// signs is the end of what is no letter, number or space.
func (s scan) signs(i int) int {
	for i < len(s.text) {
		c, next := s.at(i)
		if c&notMark != 0 {
			break
		}
		i = next
	}
	return i
}

// blanks is the end of space: at the last newline, if there is any, else
// before the last blank, which belongs to what follows.
func (s scan) blanks() int {
	last, newlines, end := 0, 0, 0
	for {
		c, next := s.at(end)
		if c&blank == 0 {
			break
		}
		if last, end = end, next; c == newline {
			newlines = end
		}
	}
	switch {
	case newlines > 0:
		return newlines
	case end < len(s.text) && last > 0:
		return last
	}
	return end
}

// longS is an s in another case as well.
const longS = "ſ"

// contraction is the end of 's, 't, 're, 've, 'm, 'll or 'd, in either case, at
// an offset; the offset itself when there is none.
func (s scan) contraction(i int) int {
	if i+1 >= len(s.text) || s.text[i] != '\'' {
		return i
	}
	if strings.HasPrefix(s.text[i+1:], longS) {
		return i + 1 + len(longS)
	}
	switch first := s.text[i+1] | 0x20; first {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 < len(s.text) {
			if second := s.text[i+2] | 0x20; second == 'e' && first != 'l' || second == 'l' && first == 'l' {
				return i + 3
			}
		}
	}
	return i
}
