// Package tokens counts the tokens of texts as models of known vocabularies
// read them: byte-pair encodings that are public. It knows no models and no
// wire formats.
package tokens

import (
	_ "embed" // the vocabularies are part of the binary
	"sync"
)

// Tokenizer is how a kind of models splits texts. It is safe for concurrent
// use.
type Tokenizer struct {
	words func() *vocabulary
	next  func(text string) int // length of the first piece
}

// Written by the module in ./genvocabulary, which says where they are from.
var (
	//go:embed o200k_base.bz2
	o200kPacked []byte
	//go:embed cl100k_base.bz2
	cl100kPacked []byte
)

// tokenizers by the names that their maker gave them. Each is unpacked when
// something is counted with it for the first time, and kept.
var tokenizers = map[string]*Tokenizer{
	"o200k_base":  {once(&o200kPacked), nextO200k},
	"cl100k_base": {once(&cl100kPacked), nextCl100k},
}

func once(packed *[]byte) func() *vocabulary {
	return sync.OnceValue(func() *vocabulary { return unpack(*packed) })
}

// Named is the tokenizer of a name; nil when there is none.
func Named(name string) *Tokenizer { return tokenizers[name] }

// Count is how many tokens a text has. What looks like a special token is
// text. It takes time in proportion to the text.
func (t *Tokenizer) Count(text string) int64 {
	words := t.words()
	var m merger
	var tokens int64
	for len(text) > 0 {
		n := t.next(text)
		for piece := text[:n]; len(piece) > 0; {
			part := piece[:min(len(piece), maxPiece)]
			piece = piece[len(part):]
			tokens += int64(m.count(words, part))
		}
		text = text[n:]
	}
	return tokens
}

// maxPiece bounds the memory of a merge. Nobody writes a word of that length:
// of such, a token or two for each seam may be counted too many.
const maxPiece = 16 << 10
