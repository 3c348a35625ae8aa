package seal

import (
	"bytes"
	"errors"
	"testing"
)

const owner = "key_a"

var key = bytes.Repeat([]byte{7}, KeySize)

// TestBox closes and opens, and changes every byte in between.
func TestBox(t *testing.T) {
	b, err := NewBox(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, worthDeflating - 1, worthDeflating, 100 << 10} {
		content := bytes.Repeat([]byte("ab"), size)[:size]
		closed := b.Close(owner, content)
		got, err := b.Open([]byte("before"), owner, closed)
		if err != nil || string(got) != "before"+string(content) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if size > 4*worthDeflating && len(closed) > size/10 {
			t.Errorf("%d bytes take %d closed", size, len(closed))
		}
		for i := range closed {
			changed := bytes.Clone(closed)
			changed[i] ^= 1
			if _, err := b.Open(nil, owner, changed); !errors.Is(err, ErrBox) {
				t.Fatalf("%d bytes, byte %d changed: %v", size, i, err)
			}
			if _, err := b.Open(nil, owner, closed[:i]); !errors.Is(err, ErrBox) {
				t.Fatalf("%d bytes, cut at %d: %v", size, i, err)
			}
		}
		if _, err := b.Open(nil, "key_b", closed); !errors.Is(err, ErrBox) {
			t.Errorf("%d bytes, for another owner: %v", size, err)
		}
		other, err := NewBox(bytes.Repeat([]byte{8}, KeySize))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Open(nil, owner, closed); !errors.Is(err, ErrBox) {
			t.Errorf("%d bytes, with another key: %v", size, err)
		}
		if again := b.Close(owner, content); bytes.Equal(again, closed) {
			t.Errorf("%d bytes: closed twice, the same came out", size)
		}
	}
	for _, size := range []int{0, 16, KeySize - 1, KeySize + 1} {
		if _, err := NewBox(make([]byte, size)); err == nil {
			t.Errorf("a key of %d bytes was taken", size)
		}
	}
}
