package jsonedit

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

var strides = map[string]func([]byte, int) int{"stride": stride, "strideGo": strideGo}

// checkStrides compares all strides, and text with them, over s with a walk
// byte by byte. The strides get s with a backslash before it, at which they
// must not look back, and with innocent bytes after its end, which they must
// not look at.
func checkStrides(t *testing.T, s []byte) {
	t.Helper()
	may := make([]bool, len(s)+1) // stop here
	last, plain := 0, -1          // plain is where the first of what strideGo does not know begins
	var end int                   // of the string
	var bad Reason
	for may[0] = true; ; may[last] = true {
		c, n := at(s, last), 1
		switch {
		case c == '"':
			n, end, bad = 0, last+1, ok
		case c < ' ':
			n, end, bad = 0, last, Syntax
		case c == '\\':
			if end, bad = escape(s, last); bad != ok {
				n = 0
			} else {
				n = end - last
			}
		case c >= utf8.RuneSelf:
			if _, n = utf8.DecodeRune(s[last:]); n == 1 {
				n, end, bad = 0, last, UTF8
			}
		}
		if plain < 0 && (n == 0 || n == 6 || c >= utf8.RuneSelf) {
			plain = last
		}
		if n == 0 {
			break
		}
		last += n
	}

	doc := append([]byte(`"`), s...)
	if gotEnd, gotBad := text(doc, 0); gotEnd != end+1 || gotBad != bad {
		t.Fatalf("text(%q) = %d, %d, want %d, %d", doc, gotEnd, gotBad, end+1, bad)
	}

	buf := append(append([]byte(`\`), s...), bytes.Repeat([]byte{'a'}, 64)...)
	doc = buf[:1+len(s)]
	for name, f := range strides {
		got := f(doc, 1) - 1
		if got < 0 || got > last || !may[got] {
			t.Fatalf("%s(%q) stops at %d, past %d or inside a character or an escape sequence", name, s, got, last)
		}
		if len(s)-got <= 64 {
			continue
		}
		if knowsAll(f) {
			// Malformed UTF-8 turns away all of a block but plain ASCII.
			turned := !utf8.Valid(s) && last-got < 64 && (s[got] >= utf8.RuneSelf || bytes.HasPrefix(s[got:], []byte(`\u`)))
			if got < last && !turned {
				t.Fatalf("%s(%q) stops at %d, want %d", name, s, got, last)
			}
		} else if got < plain && s[got] != '#' && s[got] != ']' {
			// Only these two can be taken for a quote or a backslash by a borrow.
			t.Fatalf("%s(%q) stops at %d, want %d", name, s, got, plain)
		}
	}
}

// knowsAll tells whether a stride goes over UTF-8 and \u sequences.
func knowsAll(f func([]byte, int) int) bool {
	return f([]byte(strings.Repeat("é", 64)), 0) > 0
}

// Every byte, escaped or not, is met at every place of the first two blocks.
func TestStrideEveryByte(t *testing.T) {
	for at := range 131 {
		s := bytes.Repeat([]byte{'a'}, 200)
		for c := range 256 {
			s[at+1] = byte(c)
			s[at] = 'a'
			checkStrides(t, s)
			s[at] = '\\'
			checkStrides(t, s)
		}
	}
}

// Every two bytes are met inside a block, and before, at and after its end.
func TestStrideEveryTwoBytes(t *testing.T) {
	for _, at := range []int{7, 61, 62, 63} {
		s := bytes.Repeat([]byte{'0'}, 140)
		for n := range 1 << 16 {
			s[at], s[at+1] = byte(n), byte(n>>8)
			checkStrides(t, s)
		}
	}
}

// Every character is met at every place of a block.
func TestStrideEveryCharacter(t *testing.T) {
	var all []byte
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all = utf8.AppendRune(all, r)
		}
	}
	for name, f := range strides {
		if !knowsAll(f) {
			continue
		}
		for before := range 64 {
			s := append(bytes.Repeat([]byte{' '}, before), all...)
			if got := f(s, 0); len(s)-got >= 64 || !utf8.Valid(s[got:]) {
				t.Fatalf("%s stops at %d of %d, before % x", name, got, len(s), s[got:min(got+4, len(s))])
			}
		}
	}
}

// All sequences of four bytes that are at the edge of something are met across
// the end of a block.
func TestStrideUTF8Edges(t *testing.T) {
	edges := []byte{0x22, 0x5c, 0x75, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
		0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff}
	s := bytes.Repeat([]byte{'a'}, 140)
	for n := range len(edges) * len(edges) * len(edges) * len(edges) {
		at := 59 + n%6
		for i, rest := 0, n; i < 4; i++ {
			s[at+i] = edges[rest%len(edges)]
			rest /= len(edges)
		}
		checkStrides(t, s)
		copy(s[59:], "aaaaaaaaa")
	}
}

// Characters and escape sequences, right and wrong, begin at every place, alone
// and among others of their kind.
func TestStrideSequences(t *testing.T) {
	for _, seq := range []string{
		"é", "中", "😀", "\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff", "aé中😀",
		"\x80", "é\x80", "中\xbf", "😀\x80", "\x80\x80\x80\x80", // continuation without a lead
		"\xc3", "\xe4\xb8", "\xe4", "\xf0\x9f\x98", "\xf0\x9f", "\xf0", "\xc3中", "\xe4\xb8é", "\xf0\x9f\x98\xf0\x9f\x98\x80", // cut
		"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", // longer than needed
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80", // surrogates
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff", // too large
		`\u00e9`, `\uD83D\uDE00`, `\ud800`, `\uABCD\uabcd\u0189`, `\u00e9\n\\\u00e9\"`, `\\u00e9`, `\\\u00e9`, `\\u12"`,
		`\u`, `\u1`, `\u12`, `\u123`, `\u123"`, `\u12 4`, `\ug000`, `\u000G`, `\u00:0`, `\u0/00`, "\\u00@0", "\\u00`0", `\U0041`, `\u\u0041`, `\u00\u0041`, "\\u00\x110", "\\u00\xb10",
		`é\u00e9中\u4e2d`, `\é`, `\中`, "\\\xc3", "é\\", "\\u00é", "😀\\u12\xf0",
	} {
		for at := range 131 {
			for _, around := range []string{"a", "é", "中", "😀", `\u4E2d`, `\n`} {
				before := strings.Repeat("a", at%len(around)) + strings.Repeat(around, at/len(around))
				checkStrides(t, []byte(before+seq+strings.Repeat(around, 140/len(around))))
				checkStrides(t, []byte(before+seq))
				checkStrides(t, []byte(before+seq+`","x`+strings.Repeat("\xff", 70)))
			}
		}
	}
}

// Every byte stands at each place of four digits, in and across a block.
func TestStrideHex(t *testing.T) {
	for at := 50; at < 66; at++ {
		for digit := range 4 {
			s := []byte(strings.Repeat("f", at) + `\u09aF` + strings.Repeat("0", 140-at))
			for c := range 256 {
				s[at+2+digit] = byte(c)
				checkStrides(t, s)
			}
		}
	}
}

// Runs of backslashes of every length begin at every place, so that blocks end
// in and between escape sequences in every way.
func TestStrideBackslashes(t *testing.T) {
	for at := range 131 {
		for n := range 140 {
			for _, after := range []string{"n", "u", "u00e9é", `"`, `#\n]\\\"`} {
				s := strings.Repeat(" ", at) + strings.Repeat(`\`, n) + after + strings.Repeat("~", 70)
				checkStrides(t, []byte(s))
				checkStrides(t, []byte(s[:at+n]))
			}
		}
	}
}

func FuzzStride(f *testing.F) {
	for _, s := range []string{``, `"`, strings.Repeat(`ab\n\"\\\t]#`, 20), strings.Repeat("a", 63) + `\` + "n\x00", strings.Repeat(`\`, 129) + "é",
		strings.Repeat(`\/\b\f\r `, 15) + `\u0041`, strings.Repeat("z", 127) + `\"#]"`, strings.Repeat(`é中\u4e2D😀`, 20), strings.Repeat("中", 60) + "\xed\xa0\x80" + strings.Repeat("a", 70)} {
		f.Add([]byte(s))
	}
	f.Fuzz(checkStrides)
}
