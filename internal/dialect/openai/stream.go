package openai

import "bytes"

// DoneFrame ends every stream to a client.
const DoneFrame = "data: [DONE]\n\n"

// Null is JSON's.
var Null = []byte("null")

// IsDone reports whether the data of a frame is the word that ends a stream.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// OrElse is a raw value, or another where there is none.
func OrElse(raw []byte, other string) []byte {
	if len(raw) == 0 {
		return []byte(other)
	}
	return raw
}
