//go:build !amd64 || purego

package jsonedit

func stride(doc []byte, i int) int { return strideGo(doc, i) }
