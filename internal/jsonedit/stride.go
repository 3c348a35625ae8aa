package jsonedit

import (
	"encoding/binary"
	"math/bits"
)

// A stride goes from i, which is inside a string and between characters, over
// what is right there, many bytes at a time, and returns how far it came. It may
// stop wherever it likes as long as no character and no escape sequence is cut:
// the caller looks at what is there in its own way. Each platform has its
// stride; strideGo is the one that all have.

// strideGo knows printable ASCII and short escape sequences and takes blocks of
// 32 bytes. It stops before the first byte of another kind, sometimes before an innocent one, or when the document has no whole
// block left.
func strideGo(doc []byte, i int) int {
	for len(doc)-i >= 32 {
		b := (*[32]byte)(doc[i:])
		s0, s1, s2, s3 := special(b[0:]), special(b[8:]), special(b[16:]), special(b[24:])
		next := i + 32
		if (s0|s1|s2|s3)&highBits != 0 {
			stops := gather(s0) | gather(s1)<<8 | gather(s2)<<16 | gather(s3)<<24
			for stops != 0 {
				n := bits.TrailingZeros32(stops)
				if doc[i+n] != '\\' || !short[at(doc, i+n+1)] {
					return i + n
				}
				stops &^= 3 << n
				next = max(next, i+n+2) // an escape sequence may begin in the last byte
			}
		}
		i = next
	}
	return i
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x80 * lowBits
)

// special looks at the first eight bytes of b at once. The high bit is set for
// each byte that is a quote, a backslash, a control character or no ASCII, and
// for none below the first of them. Above it the bit may be set for other bytes
// too, because a subtraction may have borrowed from them.
//
// Flipping the second bit brings the quote (0x22) down to 0x20, next to the
// control characters, and lifts the space above it, so that one comparison
// finds both kinds.
func special(b []byte) uint64 {
	w := binary.LittleEndian.Uint64(b)
	return w | ((w ^ 0x02*lowBits) - 0x21*lowBits) | ((w ^ '\\'*lowBits) - lowBits)
}

// gather packs the eight high bits of w into a byte.
func gather(w uint64) uint32 {
	return uint32((((w & highBits) >> 7) * 0x0102040810204080) >> 56)
}
