package tokens

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// counts are by the encodings' definitions, which genvocabulary has.
var counts = []struct {
	text          string
	o200k, cl100k int64
}{
	{"", 0, 0},
	{"a", 1, 1},
	{"Hello, world!", 4, 4},
	{"Hi", 1, 1},
	{"tiktoken is great!", 6, 6},
	{"antidisestablishmentarianism", 6, 6},
	{"2 + 2 = 4", 7, 7},
	{"12345678901", 4, 4},
	{"お誕生日おめでとう", 8, 9},
	{"私は東京に住んでいます。今日は天気がいいですね。", 15, 24},
	{"你好,世界!我們在這裡。", 10, 16},
	{"안녕하세요 세계", 3, 9},
	{"Привет, как дела?", 6, 8},
	{"مرحبا بالعالم", 4, 10},
	{"नमस्ते दुनिया", 5, 13},
	{"สวัสดีชาวโลก", 7, 13},
	{"😀", 1, 2},
	{"👩\u200d👩\u200d👧 family", 9, 14},
	{"🇩🇪🇫🇷", 8, 12},
	{"naïve café", 4, 4},
	{"café naïve", 6, 8},
	{"ǅungla ʰa", 8, 8},
	{"I'm sure they'll say it's what we've DON'T you'd", 9, 15},
	{"WE'RE 'll ' 's", 8, 7},
	{"it'ſ", 3, 4},
	{"HTTPServer getElementById iPhoneX XMLHttpRequest2", 12, 8},
	{"   leading", 2, 2},
	{"trailing   ", 3, 3},
	{"a  b   c    d", 7, 7},
	{"\n\n\n", 1, 1},
	{"a\n \nb", 3, 3},
	{"  \n  \n  x", 3, 3},
	{"\t\tif x {\n\t\t\treturn nil\n\t\t}\n", 11, 11},
	{"a\r\nb\r\n", 4, 4},
	{"tab\tand\u00a0space\u3000wide", 6, 6},
	{"func (v *vocabulary) rank(token []byte) uint32 {\n\tif len(token) > v.long {\n\t\treturn noRank\n\t}\n", 30, 30},
	{"SELECT id, name FROM users WHERE age >= 21 AND email LIKE '%@example.com';", 19, 19},
	{"https://example.com/a/b?c=d&e=%20f#g", 14, 14},
	{"//////// ----- ****** !?!?!?", 6, 8},
	{"{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Zürich\"}}", 14, 14},
	{"/* x */\n//\n", 4, 4},
	{"<|endoftext|><|im_start|>user", 13, 13},
	{"\x7f\x00\x1b[0m", 6, 5},
	{"٣٤٥ Ⅷ ²³", 9, 12},
	{"_snake_case__ and kebab-case", 8, 8},
	{"a\u200bb", 3, 3},
	{"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", 21, 21},
	{strings.Repeat("a", 1000), 125, 125},
	{strings.Repeat(" ", 1000), 9, 9},
	{strings.Repeat("\n", 1000), 63, 32},
	{strings.Repeat("ab", 1000), 500, 1000},
	{strings.Repeat("日本", 1000), 1000, 2000},
	{strings.Repeat("!", 1000), 63, 125},
}

func TestCount(t *testing.T) {
	for _, tt := range counts {
		if o, c := Named("o200k_base").Count(tt.text), Named("cl100k_base").Count(tt.text); o != tt.o200k || c != tt.cl100k {
			t.Errorf("%.80q: got %d and %d, want %d and %d", tt.text, o, c, tt.o200k, tt.cl100k)
		}
	}
	if Named("p50k_base") != nil {
		t.Error("there is a tokenizer whose vocabulary is not here")
	}
}

// A piece that is counted in parts has no more than a token or two too many for
// each seam.
func TestLongPiece(t *testing.T) {
	for name, tokenizer := range tokenizers {
		whole, parts := tokenizer.Count(strings.Repeat("a", maxPiece)), tokenizer.Count(strings.Repeat("a", 10*maxPiece+1))
		if parts < 10*whole-20 || parts > 10*whole+20 {
			t.Errorf("%s: got %d for ten times what has %d", name, parts, whole)
		}
	}
}

// naive merges by the definition.
func naive(v *vocabulary, piece string) int64 {
	ends := make([]int, len(piece)+1) // where parts begin, and the end
	for i := range ends {
		ends[i] = i
	}
	for {
		at, lowest := 0, uint32(noRank)
		for i := 1; i+1 < len(ends); i++ {
			if rank := v.rank(piece[ends[i-1]:ends[i+1]]); rank < lowest {
				at, lowest = i, rank
			}
		}
		if at == 0 {
			return int64(len(ends) - 1)
		}
		ends = slices.Delete(ends, at, at+1)
	}
}

func FuzzCount(f *testing.F) {
	for _, tt := range counts {
		f.Add(tt.text)
	}
	f.Add("\xff\xc3\xe6\x97 \xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		for name, tokenizer := range tokenizers {
			var want int64
			short := true
			for rest := text; len(rest) > 0; {
				n := tokenizer.next(rest)
				if n <= 0 || n > len(rest) {
					t.Fatalf("%s: a piece of %d bytes, of %d", name, n, len(rest))
				}
				if short = short && n <= 300; short {
					want += naive(tokenizer.words(), rest[:n])
				}
				rest = rest[n:]
			}
			got := tokenizer.Count(text)
			if short && got != want || len(text) > 0 && got == 0 || got > int64(len(text)) {
				t.Errorf("%s: got %d tokens of %d bytes, want %d", name, got, len(text), want)
			}
		}
	})
}

func BenchmarkCount(b *testing.B) {
	var code []byte
	files, err := filepath.Glob("../gateway/*.go")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		code = append(code, text...)
	}
	for name, text := range map[string]string{
		"code": string(code), "japanese": strings.Repeat("私は東京に住んでいます。今日は天気がいいですね。", 1500), "a": strings.Repeat("a", 100_000),
	} {
		b.Run(name, func(b *testing.B) {
			text := text[:100_000]
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			tokenizer := Named("o200k_base")
			for b.Loop() {
				tokenizer.Count(text)
			}
		})
	}
}

func BenchmarkUnpack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		unpack(o200kPacked)
	}
}
