package store

import (
	"errors"
	"reflect"
	"testing"
)

func TestAdminTokens(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		b := AdminToken{ID: "1", Name: "b", Hash: "ff", Scopes: []string{"read", "keys"}, By: "admin", Created: 5, Expires: 9}
		a := AdminToken{ID: "2", Name: "a", Hash: "ee", Scopes: []string{"usage"}, By: "socket", Created: 6}
		mustDo(t, s.CreateAdminToken(ctx, &b))
		mustDo(t, s.CreateAdminToken(ctx, &a))
		if err := s.CreateAdminToken(ctx, &AdminToken{ID: "3", Name: "a"}); !errors.Is(err, ErrConflict) {
			t.Errorf("a name twice: %v", err)
		}
		if got, err := s.AdminTokens(ctx); err != nil || !reflect.DeepEqual(got, []AdminToken{a, b}) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := s.AdminToken(ctx, "1"); err != nil || !reflect.DeepEqual(*got, b) {
			t.Errorf("got %+v, %v", got, err)
		}
		mustDo(t, s.DeleteAdminToken(ctx, "1"))
		if err := s.DeleteAdminToken(ctx, "1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a second time: %v", err)
		}
		if _, err := s.AdminToken(ctx, "1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a token that is gone: %v", err)
		}
	})
}
