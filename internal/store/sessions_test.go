package store

import (
	"errors"
	"slices"
	"testing"
)

func TestSessions(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		check := func(want ...string) {
			t.Helper()
			all, err := s.Sessions(ctx)
			mustDo(t, err)
			var got []string
			for _, n := range all {
				got = append(got, n.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the sessions are %q, want %q", got, want)
			}
		}
		a := Session{ID: "a", Hash: "ff", UserID: "admin", Address: "10.0.0.1", Agent: "Browser", Created: 100, Seen: 100}
		b := Session{ID: "b", Hash: "ee", UserID: "u1", Created: 110, Seen: 150}
		c := Session{ID: "c", Hash: "dd", UserID: "u1", Created: 300, Seen: 300}
		mustDo(t, s.AddSession(ctx, a, 0, 0))
		mustDo(t, s.AddSession(ctx, b, 0, 0))
		check("b", "a")
		mustDo(t, s.SeeSession(ctx, "a", 200))
		mustDo(t, s.SeeSession(ctx, "a", 199)) // somebody was later
		if got, err := s.Session(ctx, "a"); err != nil || got.Seen != 200 || got.Hash != "ff" || got.Address != "10.0.0.1" || got.Agent != "Browser" || got.UserID != "admin" || got.Created != 100 {
			t.Errorf("got %+v, %v", got, err)
		}
		mustDo(t, s.AddSession(ctx, c, 50, 150)) // b was seen last at 150
		check("c", "a")
		mustDo(t, s.AddSession(ctx, b, 100, 0)) // a began at 100
		check("c", "b")
		mustDo(t, s.DeleteSessionsOf(ctx, "u1"))
		mustDo(t, s.DeleteSessionsOf(ctx, "u1"))
		check()
		if _, err := s.Session(ctx, "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a session that is gone: %v", err)
		}
		if err := s.DeleteSession(ctx, "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("the end of a session that is gone: %v", err)
		}
	})
}
