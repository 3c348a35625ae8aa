package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/limen-gateway/limen/internal/tokens"
	"github.com/tiktoken-go/tokenizer/codec"
)

// reference is an encoding by its definition: the expression, looked for by a
// library that looks ahead, and of the tokens that could be made the one of the
// lowest rank, until none is left. The library of the vocabulary is none: its
// compiled expressions miss a few texts, such as "\x7f".
type reference struct {
	own     *tokens.Tokenizer
	library *codec.Codec
	pieces  *regexp2.Regexp
	ranks   map[string]int
}

var references = []*reference{
	newReference(codec.NewO200kBase(), `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`),
	newReference(codec.NewCl100kBase(), `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+`+
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`),
}

func newReference(library *codec.Codec, expression string) *reference {
	r := &reference{own: tokens.Named(library.GetName()), library: library, ranks: map[string]int{}}
	// A blank group keeps the expression from being found among compiled ones.
	r.pieces = regexp2.MustCompile("(?:"+expression+")", regexp2.None)
	for rank := 0; ; rank++ {
		token, err := library.Decode([]uint{uint(rank)})
		if err != nil {
			return r
		}
		r.ranks[token] = rank
	}
}

func (r *reference) count(t *testing.T, text string) (n int64) {
	t.Helper()
	match, err := r.pieces.FindStringMatch(text)
	for ; match != nil && err == nil; match, err = r.pieces.FindNextMatch(match) {
		n += r.merge(match.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *reference) merge(piece string) int64 {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		at, lowest := -1, len(r.ranks)
		for i := range len(parts) - 1 {
			if rank, ok := r.ranks[parts[i]+parts[i+1]]; ok && rank < lowest {
				at, lowest = i, rank
			}
		}
		if at < 0 {
			return int64(len(parts))
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

func agree(t *testing.T, text string) {
	t.Helper()
	text = strings.ToValidUTF8(text, "\ufffd")
	for _, r := range references {
		if got, want := r.own.Count(text), r.count(t, text); got != want {
			t.Errorf("%s: %.200q has %d tokens, want %d", r.library.GetName(), text, got, want)
		}
	}
}

// kinds are characters of all classes that the expressions tell apart.
var kinds = []string{
	"a", "z", "A", "Z", "é", "É", "ß", "ǅ", "ʰ", "日", "本", "한", "ا", "ֿ", "\u0301", "\u20dd", "1", "23", "٣", "Ⅷ", "²",
	" ", "  ", "\t", "\u00a0", "\u3000", "\u0085", "\n", "\r", "\r\n", "\n\n", ".", "!!", "/", "//", "'", "'s", "'LL", "'re", "'VE", "'d", "'m", "'t", "’s",
	"😀", "👩‍👩‍👧", "🇩🇪", "\u200b", "\ufffd", "\xff", "\xc3", "\xe6\x97", "\x00", "\u2028", "<|endoftext|>", "𝒳", "𝔞", "𐐀", "𐐨", "𑁦", "ſ", "İ",
	"the", " the", "The", " Hello", "getElementById", "HTTPServer", "iPhone", "I'm", "don't", "DON'T", "_", "__", "->", "{}", "\"",
}

func TestMixed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(kinds[r.IntN(len(kinds))])
		}
		agree(t, b.String())
		if t.Failed() {
			return
		}
	}
}

func TestBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		text := make([]byte, 1+r.IntN(40))
		for i := range text {
			text[i] = byte(r.IntN(256))
		}
		agree(t, string(text))
		if t.Failed() {
			return
		}
	}
}

// TestEveryCharacter also finds where the tables of Unicode differ.
func TestEveryCharacter(t *testing.T) {
	for c := rune(0); c <= 0x10ffff; c++ {
		if c%7 == 0 || c < 0x3000 {
			agree(t, "a"+string(c)+"B"+string(c)+" "+string(c)+"1")
		}
	}
}

func TestTree(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".txtar") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) < 1<<20 {
			agree(t, string(text))
			n++
		}
		return err
	})
	if err != nil || n < 100 {
		t.Errorf("got %v after %d files", err, n)
	}
}

func TestRuns(t *testing.T) {
	for _, s := range []string{"a", "ab", "A", "é", "日本", "!", " ", "\n", "1", "'", "😀", "\u0301", "a\u0301", "aA", "\xff"} {
		for _, n := range []int{1, 2, 3, 7, 100, 300} {
			agree(t, strings.Repeat(s, n))
		}
	}
	for _, s := range []string{"a", "ab", "é", "日本", "!", "😀"} { // which the library splits well
		text := strings.Repeat(s, 2500)
		for _, r := range references {
			want, err := r.library.Count(text)
			if got := r.own.Count(text); err != nil || got != int64(want) {
				t.Errorf("%s: 2500 times %q has %d tokens, want %d (%v)", r.library.GetName(), s, got, want, err)
			}
		}
	}
}

func FuzzAgree(f *testing.F) {
	for _, s := range kinds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { agree(t, text[:min(len(text), 4096)]) })
}

func TestPack(t *testing.T) {
	for _, r := range references {
		packed, err := pack(r.library)
		if err != nil {
			t.Fatal(err)
		}
		if there, err := os.ReadFile(file(r.library)); err != nil || !bytes.Equal(there, packed) {
			t.Errorf("%s is not what this module writes (%v)", file(r.library), err)
		}
	}
}

// BenchmarkLibrary is what package tokens is to be compared with, by its own
// benchmark.
func BenchmarkLibrary(b *testing.B) {
	var code strings.Builder
	files, err := filepath.Glob("../../gateway/*.go")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		code.Write(text)
	}
	for name, text := range map[string]string{
		"code": code.String(), "japanese": strings.Repeat("私は東京に住んでいます。今日は天気がいいですね。", 1500), "a": strings.Repeat("a", 100_000),
	} {
		b.Run(name, func(b *testing.B) {
			text := text[:100_000]
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				references[0].library.Count(text)
			}
		})
	}
}
