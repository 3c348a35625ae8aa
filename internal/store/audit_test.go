package store

import (
	"reflect"
	"testing"
)

func TestAudit(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		first := Change{ID: "a", At: 1, Who: "admin", Via: "session", Address: "10.0.0.1", Operation: "POST /keys", Times: 1}
		second := Change{ID: "b", At: 2, Who: "socket", Via: "socket", Operation: "DELETE /teams/{team}", Object: "web", Status: 409, Times: 1}
		mustDo(t, s.BeginChange(ctx, &first))
		mustDo(t, s.BeginChange(ctx, &second))
		check := func(before string, limit int, want ...Change) {
			t.Helper()
			got, err := s.Changes(ctx, ChangeFilter{}, before, limit)
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
		mustDo(t, s.CountChange(ctx, "b", 3))
		second.Times = 3
		check("", 1, second)
		for _, c := range []struct {
			f    ChangeFilter
			want []Change
		}{
			{ChangeFilter{Who: "admin"}, []Change{first}},
			{ChangeFilter{On: "teams"}, []Change{second}},
			{ChangeFilter{On: "team"}, nil},
			{ChangeFilter{On: "keys"}, []Change{first}},
			{ChangeFilter{Object: "EB"}, []Change{second}},
			{ChangeFilter{Object: "%"}, nil},
			{ChangeFilter{Failed: true}, []Change{second}},
			{ChangeFilter{Who: "admin", Failed: true}, nil},
		} {
			if got, err := s.Changes(ctx, c.f, "", 10); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v: got %+v, %v", c.f, got, err)
			}
		}
	})
}
