// Package buffer lends memory in sizes of powers of two, so that what one call
// needed serves the next, and a large buffer does not serve small needs.
package buffer

import (
	"math/bits"
	"sync"
)

const (
	minBits = 12 // 4 KiB
	maxBits = 26 // 64 MiB; larger ones are not kept
)

var pools [maxBits - minBits + 1]sync.Pool

// Get returns an empty slice with room for at least n bytes.
func Get(n int) *[]byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minBits)
	if class > maxBits {
		b := make([]byte, 0, n)
		return &b
	}
	if b, ok := pools[class-minBits].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, 1<<class)
	return &b
}

// Put gives a slice back; nothing may refer to its memory any more. One that
// Get did not make is welcome, too.
func Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1
	if class < minBits || class > maxBits {
		return
	}
	*b = (*b)[:0]
	pools[class-minBits].Put(b)
}
