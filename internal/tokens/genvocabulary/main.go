// Command genvocabulary writes the vocabularies that package tokens embeds, one
// folder up:
//
//	go run .
//
// They are taken from github.com/tiktoken-go/tokenizer, which has them from
// OpenAI's tiktoken; both are under the MIT License, see NOTICE. The same
// version always gives the same bytes.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsnet/compress/bzip2"
	"github.com/tiktoken-go/tokenizer/codec"
)

func main() {
	for _, c := range []*codec.Codec{codec.NewO200kBase(), codec.NewCl100kBase()} {
		packed, err := pack(c)
		if err == nil {
			err = os.WriteFile(file(c), packed, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "genvocabulary:", err)
			os.Exit(1)
		}
	}
}

// file is where the package has a vocabulary.
func file(c *codec.Codec) string { return filepath.Join("..", c.GetName()+".bz2") }

// pack is a vocabulary as the package unpacks it: how many tokens there are, the
// length of each and their bytes, by rank.
func pack(c *codec.Codec) ([]byte, error) {
	var lengths, text []byte
	for rank := uint(0); ; rank++ {
		token, err := c.Decode([]uint{rank})
		if err != nil { // behind the last
			break
		}
		if len(token) > 255 {
			return nil, fmt.Errorf("%s: token %d has %d bytes", c.GetName(), rank, len(token))
		}
		lengths = append(lengths, byte(len(token)))
		text = append(text, token...)
	}
	var packed bytes.Buffer
	// It packs them into four fifths of what deflate needs.
	z, err := bzip2.NewWriter(&packed, &bzip2.WriterConfig{Level: bzip2.BestCompression})
	if err != nil {
		return nil, err
	}
	z.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(lengths))))
	z.Write(lengths)
	z.Write(text)
	err = z.Close()
	return packed.Bytes(), err
}
