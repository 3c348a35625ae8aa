package store

import (
	"errors"
	"reflect"
	"testing"
)

func TestUsers(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		ann := User{ID: "u1", Name: "ann", Role: "viewer", Hash: "h1", Created: 5}
		bob := User{ID: "u2", Name: "bob", Role: "member", TeamID: "t1", Hash: "h2", Created: 4}
		mustDo(t, s.CreateUser(ctx, &bob))
		mustDo(t, s.CreateUser(ctx, &ann))
		if err := s.CreateUser(ctx, &User{ID: "u3", Name: "ann"}); !errors.Is(err, ErrConflict) {
			t.Errorf("a name twice: %v", err)
		}
		if all, err := s.Users(ctx); err != nil || !reflect.DeepEqual(all, []User{ann, bob}) {
			t.Errorf("got %+v, %v", all, err)
		}
		mustDo(t, s.AddSession(ctx, Session{ID: "a", UserID: "u1", Created: 1, Seen: 1}, 0, 0))
		mustDo(t, s.AddSession(ctx, Session{ID: "b", UserID: "u2", Created: 1, Seen: 1}, 0, 0))
		sessions := func(want int) {
			t.Helper()
			if list, err := s.Sessions(ctx); len(list) != want || err != nil {
				t.Errorf("%d sessions, %v, want %d", len(list), err, want)
			}
		}
		mustDo(t, s.AddSession(ctx, Session{ID: "c", UserID: "u2", Created: 7, Seen: 7}, 0, 0))
		mustDo(t, s.DeleteSession(ctx, "c"))
		logins := func(want map[string]int64) {
			t.Helper()
			if got, err := s.LastLogins(ctx); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("last logins: %v, %v, want %v", got, err, want)
			}
		}
		logins(map[string]int64{"u1": 1, "u2": 7})
		ann.Role = "admin"
		mustDo(t, s.UpdateUser(ctx, &ann))
		sessions(2)
		ann.Hash = "h3"
		mustDo(t, s.UpdateUser(ctx, &ann))
		sessions(1)
		for _, ref := range []string{"u1", "ann"} {
			if got, err := s.User(ctx, ref); err != nil || *got != ann {
				t.Errorf("%s: got %+v, %v", ref, got, err)
			}
		}
		mustDo(t, s.CreateTeam(ctx, Team{ID: "t1", Name: "web"}, anyTeams))
		if err := s.DeleteTeam(ctx, "t1"); !errors.Is(err, ErrInUse) {
			t.Errorf("a team with a user is deleted: %v", err)
		}
		mustDo(t, s.DeleteUser(ctx, "u2"))
		sessions(0)
		logins(map[string]int64{"u1": 1})
		mustDo(t, s.DeleteTeam(ctx, "t1"))
		for _, err := range []error{s.DeleteUser(ctx, "u2"), s.UpdateUser(ctx, &bob)} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("a user that is gone: %v", err)
			}
		}
	})
}
