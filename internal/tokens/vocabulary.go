package tokens

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"hash/maphash"
	"io"
	"math/bits"
)

// vocabulary are tokens by their bytes. A token's rank is its number in the
// order in which the encoding learnt them: of two that could be made, the one
// of the lower rank is.
type vocabulary struct {
	text  string   // of all tokens, by rank
	ends  []uint32 // in text
	slots []uint32 // a hash table: some bits of the hash above rank+1; 0 is free
	mask  uint32
	seed  maphash.Seed
	long  int // length of the longest token
}

// rankBits are enough for the rank+1 of any token.
const (
	rankBits = 18
	rankMask = 1<<rankBits - 1
)

// noRank is that of bytes that are no token.
const noRank = 1 << 31

// maxUnpacked bounds what is read of a packed vocabulary.
const maxUnpacked = 8 << 20

// unpack reads what the generator has written: the number of tokens, their
// lengths, a byte each, and their texts.
func unpack(packed []byte) *vocabulary {
	all, err := io.ReadAll(io.LimitReader(bzip2.NewReader(bytes.NewReader(packed)), maxUnpacked))
	if err != nil {
		panic(err)
	}
	n := int(binary.LittleEndian.Uint32(all))
	lengths, text := all[4:4+n], all[4+n:]
	size := 1 << bits.Len(uint(2*n))
	v := &vocabulary{
		text: string(text), ends: make([]uint32, n), slots: make([]uint32, size), mask: uint32(size - 1), seed: maphash.MakeSeed(),
	}
	end := uint32(0)
	for rank, length := range lengths {
		start := end
		end += uint32(length)
		v.ends[rank] = end
		v.long = max(v.long, int(length))
		at, tag := v.hash(v.text[start:end])
		for v.slots[at] != 0 {
			at = (at + 1) & v.mask
		}
		v.slots[at] = tag | uint32(rank+1)
	}
	return v
}

// hash is where the search for a token begins, and what is kept of its hash.
func (v *vocabulary) hash(token string) (at, tag uint32) {
	h := maphash.String(v.seed, token)
	return uint32(h) & v.mask, uint32(h>>32) &^ rankMask
}

// rank is that of the token with those bytes; noRank when there is none.
func (v *vocabulary) rank(token string) uint32 {
	if len(token) > v.long {
		return noRank
	}
	at, tag := v.hash(token)
	for {
		slot := v.slots[at]
		if slot == 0 {
			return noRank
		}
		if slot&^rankMask == tag {
			if rank := slot&rankMask - 1; v.token(rank) == token {
				return rank
			}
		}
		at = (at + 1) & v.mask
	}
}

func (v *vocabulary) token(rank uint32) string {
	start := uint32(0)
	if rank > 0 {
		start = v.ends[rank-1]
	}
	return v.text[start:v.ends[rank]]
}
