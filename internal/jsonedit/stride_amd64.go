//go:build !purego

package jsonedit

import "golang.org/x/sys/cpu"

func stride(doc []byte, i int) int {
	if n := len(doc) - i; n >= 64 && cpu.X86.HasAVX2 && cpu.X86.HasBMI1 {
		return i + strideAVX2(&doc[i], n)
	}
	return strideGo(doc, i)
}

// strideAVX2 does for the n bytes at p, n >= 64, more than strideGo does: it
// also goes over well-formed UTF-8 and \u sequences. It takes blocks of 64 bytes,
// and where strideGo has a branch for each escape sequence, which no processor
// can predict, it has none. It returns the number of bytes it went over, and
// stops before something right only when no whole block is left or when there
// is malformed UTF-8 less than 64 bytes ahead.
//
//go:noescape
func strideAVX2(p *byte, n int) int
