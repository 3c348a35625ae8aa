package store

import (
	"errors"
	"reflect"
	"sync"
	"testing"
)

func TestKeys(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		if keys, revision, err := s.Keys(ctx); len(keys) != 0 || revision != 0 || err != nil {
			t.Fatalf("new store has %v, revision %d, %v", keys, revision, err)
		}
		full := Key{
			ID: "b", Name: "Ключ \"1\"", Owner: "o", Prefix: "sk-", Hash: "aa", OldHash: "bb", OldUntil: 7,
			Models: []string{"a/*", "x\"y"}, Operations: []string{"chat"}, Strict: true, Created: 2, Expires: 3, Revoked: 4, LastUsed: 5,
		}
		plain := Key{ID: "a", Name: "second", Prefix: "limen_", Hash: "cc", Created: 2}
		oldest := Key{ID: "z", Name: "first", Prefix: "limen_", Hash: "dd", Created: 1}
		want := []Key{oldest, plain, full} // by creation, then by ID
		for i, k := range []Key{full, plain, oldest} {
			mustDo(t, s.CreateKey(ctx, k))
			if revision, err := s.KeysRevision(ctx); revision != int64(i+1) || err != nil {
				t.Errorf("revision after %d changes is %d, %v", i+1, revision, err)
			}
		}
		check := func(revision int64) {
			t.Helper()
			got, at, err := s.Keys(ctx)
			mustDo(t, err)
			for i := range got {
				if got[i].Models == nil {
					got[i].Models = []string{}
				}
				if got[i].Operations == nil {
					got[i].Operations = []string{}
				}
			}
			for i := range want {
				if want[i].Models == nil {
					want[i].Models = []string{}
				}
				if want[i].Operations == nil {
					want[i].Operations = []string{}
				}
			}
			if !reflect.DeepEqual(got, want) || at != revision {
				t.Errorf("got  %+v at revision %d\nwant %+v at %d", got, at, want, revision)
			}
		}
		check(3)

		mustDo(t, s.SetKeyRevoked(ctx, "a", 99))
		want[1].Revoked = 99
		check(4)
		mustDo(t, s.SetKeyRevoked(ctx, "a", 0))
		want[1].Revoked = 0
		check(5)
		mustDo(t, s.RotateKey(ctx, "a", "ee", 1000))
		want[1].OldHash, want[1].OldUntil, want[1].Hash = "cc", 1000, "ee"
		check(6)

		// What changes nothing does not count as a change.
		for name, err := range map[string]error{
			"revoke": s.SetKeyRevoked(ctx, "none", 1),
			"rotate": s.RotateKey(ctx, "none", "ff", 1),
		} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s of a missing key: got %v, want ErrNotFound", name, err)
			}
		}
		if err := s.CreateKey(ctx, plain); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("second key of one ID: got %v", err)
		}
		check(6)
	})
}

// Every change is counted, also when several are made at once.
func TestKeysRevisionCountsAll(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		stores := []*Store{open(), open()}
		mustDo(t, stores[0].CreateKey(t.Context(), Key{ID: "a"}))
		const each = 10
		var wg sync.WaitGroup
		for _, s := range stores {
			for range 2 {
				wg.Go(func() {
					for i := range each {
						if err := s.SetKeyRevoked(t.Context(), "a", int64(i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		want := int64(1 + 2*len(stores)*each)
		if got, err := stores[0].KeysRevision(t.Context()); got != want || err != nil {
			t.Errorf("revision is %d, %v, want %d", got, err, want)
		}
	})
}
