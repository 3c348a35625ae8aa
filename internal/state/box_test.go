package state

import (
	"bytes"
	"errors"
	"testing"
)

// TestBox closes and opens, and changes every byte in between.
func TestBox(t *testing.T) {
	b, err := newBox(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, worthDeflating - 1, worthDeflating, 100 << 10} {
		content := bytes.Repeat([]byte("ab"), size)[:size]
		closed := b.close(owner, content)
		got, err := b.open([]byte("before"), owner, closed)
		if err != nil || string(got) != "before"+string(content) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if size > 4*worthDeflating && len(closed) > size/10 {
			t.Errorf("%d bytes take %d closed", size, len(closed))
		}
		for i := range closed {
			changed := bytes.Clone(closed)
			changed[i] ^= 1
			if _, err := b.open(nil, owner, changed); !errors.Is(err, errBox) {
				t.Fatalf("%d bytes, byte %d changed: %v", size, i, err)
			}
			if _, err := b.open(nil, owner, closed[:i]); !errors.Is(err, errBox) {
				t.Fatalf("%d bytes, cut at %d: %v", size, i, err)
			}
		}
		if _, err := b.open(nil, "key_b", closed); !errors.Is(err, errBox) {
			t.Errorf("%d bytes, for another owner: %v", size, err)
		}
		other, err := newBox(bytes.Repeat([]byte{8}, KeySize))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.open(nil, owner, closed); !errors.Is(err, errBox) {
			t.Errorf("%d bytes, with another key: %v", size, err)
		}
		if again := b.close(owner, content); bytes.Equal(again, closed) {
			t.Errorf("%d bytes: closed twice, the same came out", size)
		}
	}
	for _, size := range []int{0, 16, KeySize - 1, KeySize + 1} {
		if _, err := newBox(make([]byte, size)); err == nil {
			t.Errorf("a key of %d bytes was taken", size)
		}
	}
}

// TestBoxOfAnother moves what is kept from one owner to another, within the
// database, as somebody could who can only write there.
func TestBoxOfAnother(t *testing.T) {
	k, another, exec := keepers(t)
	id := take(t, k, "a", "", "mine")
	for _, table := range []string{"responses", "threads", "items"} {
		exec("UPDATE " + table + " SET owner = 'key_b'")
	}
	if _, err := another().Open(t.Context(), "key_b", "x", ask(id, user("x")), nil); !errors.Is(err, errBox) {
		t.Errorf("gone on from: %v", err)
	}
	if body, err := k.Response(t.Context(), "key_b", id); !errors.Is(err, errBox) {
		t.Errorf("read: %s, %v", body, err)
	}
	if body, err := k.InputItems(t.Context(), "key_b", id, Page{Limit: 1}); !errors.Is(err, errBox) {
		t.Errorf("its input: %s, %v", body, err)
	}
}
