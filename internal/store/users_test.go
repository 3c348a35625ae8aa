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

// Somebody at a provider is one user for ever.
func TestUsersOfProvider(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		ann := User{ID: "u1", Name: "ann", Role: "viewer", Via: ViaOIDC, Issuer: "https://a", Subject: "1", Mapped: true}
		invited := User{ID: "u2", Name: "bob@example.com", Role: "viewer", Via: ViaOIDC}
		plain := User{ID: "u3", Name: "carol", Role: "viewer", Hash: "h", Via: ViaPassword}
		for _, u := range []User{ann, invited, plain} {
			mustDo(t, s.CreateUser(ctx, &u))
		}
		if got, err := s.UserOf(ctx, "https://a", "1"); err != nil || *got != ann {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, who := range [][2]string{{"https://b", "1"}, {"https://a", "2"}, {"", ""}} {
			if _, err := s.UserOf(ctx, who[0], who[1]); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q is somebody: %v", who, err)
			}
		}
		twin := User{ID: "u4", Name: "ann's twin", Via: ViaOIDC, Issuer: "https://a", Subject: "1"}
		for what, err := range map[string]error{
			"two users are one":           s.CreateUser(ctx, &twin),
			"bound to who is known":       s.BindUser(ctx, "u2", "https://a", "1"),
			"bound with a password":       s.BindUser(ctx, "u3", "https://a", "3"),
			"bound twice":                 errors.Join(s.BindUser(ctx, "u2", "https://a", "2"), s.BindUser(ctx, "u2", "https://a", "3")),
			"bound to one who is invited": s.BindUser(ctx, "u1", "https://a", "4"),
		} {
			if !errors.Is(err, ErrConflict) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got, err := s.UserOf(ctx, "https://a", "2"); err != nil || got.ID != "u2" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
