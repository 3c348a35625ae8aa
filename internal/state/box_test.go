package state

import (
	"errors"
	"testing"

	"github.com/limen-gateway/limen/internal/seal"
)

// TestBoxOfAnother moves what is kept from one owner to another, within the
// database, as somebody could who can only write there.
func TestBoxOfAnother(t *testing.T) {
	k, another, exec := keepers(t)
	id := take(t, k, "a", "", "mine")
	for _, table := range []string{"responses", "threads", "items"} {
		exec("UPDATE " + table + " SET owner = 'key_b'")
	}
	if _, err := another().Open(t.Context(), "key_b", "x", ask(id, user("x")), nil); !errors.Is(err, seal.ErrBox) {
		t.Errorf("gone on from: %v", err)
	}
	if body, err := k.Response(t.Context(), "key_b", id); !errors.Is(err, seal.ErrBox) {
		t.Errorf("read: %s, %v", body, err)
	}
	if body, err := k.InputItems(t.Context(), "key_b", id, Page{Limit: 1}); !errors.Is(err, seal.ErrBox) {
		t.Errorf("its input: %s, %v", body, err)
	}
}
