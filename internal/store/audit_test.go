package store

import (
	"reflect"
	"testing"
)

func TestAudit(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		first := Change{ID: "a", At: 1, Who: "admin", Via: "session", Address: "10.0.0.1", Operation: "POST /keys"}
		second := Change{ID: "b", At: 2, Who: "socket", Via: "socket", Operation: "DELETE /teams/{team}", Object: "web", Status: 409}
		mustDo(t, s.BeginChange(ctx, &first))
		mustDo(t, s.BeginChange(ctx, &second))
		check := func(before string, limit int, want ...Change) {
			t.Helper()
			got, err := s.Changes(ctx, before, limit)
			mustDo(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
		check("", 10, second, first)
		first.Object, first.Members, first.Status = "k1", "name,team", 200
		mustDo(t, s.EndChange(ctx, &first))
		check("", 1, second)
		check("b", 10, first)
		check("a", 10)
	})
}
