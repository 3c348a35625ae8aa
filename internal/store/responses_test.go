package store

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"time"
)

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestResponseRoundTrip(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		full := Response{
			Owner: owner, ID: "r", Conversation: "c", From: 1, Inputs: 2, Length: 3, Status: "in_progress", Provider: "p", Runner: "host:1",
			Created: time.UnixMilli(1732000000123), Expires: time.UnixMilli(time.Now().UnixMilli() + 1e6), Body: []byte{0, 0xff, '\''},
		}
		plain := Response{Owner: owner, ID: "q", Status: "queued", Body: []byte("x")}
		for _, want := range []Response{full, plain} {
			mustDo(t, s.InsertResponse(ctx, &want))
			got, err := s.Response(ctx, owner, want.ID)
			if err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
			}
		}
		wantErr(t, "second of one ID", s.InsertResponse(ctx, &plain), ErrConflict)
		plain.Owner = "key2"
		mustDo(t, s.InsertResponse(ctx, &plain))
	})
}

func TestResponseMisses(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		commit(t, s, newTurn("a", "", 0))
		over := newTurn("over", "", 0)
		over.Response.Expires = time.Now().Add(-time.Millisecond)
		commit(t, s, over)
		for name, of := range map[string][2]string{"missing": {owner, "none"}, "another's": {"key2", "a"}, "NUL": {owner, "a\x00"}, "over": {owner, "over"}} {
			_, err := s.Response(ctx, of[0], of[1])
			wantErr(t, name, err, ErrNotFound)
			if name != "over" {
				wantErr(t, "delete "+name, s.DeleteResponse(ctx, of[0], of[1]), ErrNotFound)
			}
			changed, err := s.UpdateResponse(ctx, of[0], of[1], []string{"completed"}, "failed", nil)
			if changed || err != nil {
				t.Errorf("update of %s: %v, %v", name, changed, err)
			}
		}
		wantErr(t, "base of another", s.CommitTurn(ctx, &Turn{Response: Response{Owner: "key2", ID: "b"}, Base: "a", BaseLength: 2}), ErrNotFound)
		wantErr(t, "base is shorter", s.CommitTurn(ctx, newTurn("b", "a", 3)), ErrNotFound)
		wantErr(t, "taken ID", s.CommitTurn(ctx, newTurn("a", "a", 2)), ErrConflict)
		wantErr(t, "taken ID, without a base", s.CommitTurn(ctx, newTurn("a", "", 0)), ErrConflict)
		wantErr(t, "no conversation", s.CommitTurn(ctx, &Turn{Response: Response{Owner: owner, ID: "b", Conversation: "none"}}), ErrNotFound)
		wantItems(t, s, "a", 0, 9, "a.in a.out") // nothing of these is left
		wantBytes(t, s)
	})
}

func TestUpdateResponse(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: "r", Status: "queued", Runner: "x", Body: []byte("a")}))
		for i, step := range []struct {
			from         []string
			to           string
			want         bool
			status, body string
			runner       string
		}{
			{[]string{"in_progress"}, "completed", false, "queued", "a", "x"},
			{nil, "completed", false, "queued", "a", "x"},
			{[]string{"failed", "queued"}, "in_progress", true, "in_progress", "body 2", "x"},
			{[]string{"queued", "in_progress"}, "cancelled", true, "cancelled", "body 3", ""},
			{[]string{"queued", "in_progress"}, "failed", false, "cancelled", "body 3", ""},
			{[]string{"cancelled"}, "completed", false, "cancelled", "body 3", ""}, // it has ended
		} {
			changed, err := s.UpdateResponse(ctx, owner, "r", step.from, step.to, []byte("body "+strconv.Itoa(i)))
			if changed != step.want || err != nil {
				t.Errorf("step %d: changed is %v, %v, want %v", i, changed, err, step.want)
			}
			r, err := s.Response(ctx, owner, "r")
			mustDo(t, err)
			if r.Status != step.status || string(r.Body) != step.body || r.Runner != step.runner {
				t.Errorf("step %d: it is %s, %q, runner %q, want %s, %q, %q", i, r.Status, r.Body, r.Runner, step.status, step.body, step.runner)
			}
			wantBytes(t, s)
		}
	})
}

func TestDeleteResponse(t *testing.T) {
	for name, tt := range map[string]struct {
		delete []string
		left   string // items of any thread
		reads  map[string]string
	}{
		"the last":          {[]string{"b"}, "a.in a.out f.in f.out", map[string]string{"a": "a.in a.out", "f": "a.in a.out f.in f.out"}},
		"the first":         {[]string{"a"}, "a.in a.out b.in b.out f.in f.out", map[string]string{"b": "a.in a.out b.in b.out", "f": "a.in a.out f.in f.out"}},
		"the fork":          {[]string{"f"}, "a.in a.out b.in b.out", map[string]string{"b": "a.in a.out b.in b.out"}},
		"all but the fork":  {[]string{"a", "b"}, "a.in a.out f.in f.out", map[string]string{"f": "a.in a.out f.in f.out"}},
		"all but the first": {[]string{"f", "b"}, "a.in a.out", map[string]string{"a": "a.in a.out"}},
		"all, fork last":    {[]string{"b", "a", "f"}, "", nil},
		"all, fork first":   {[]string{"f", "a", "b"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func() *Store) {
				s, ctx := open(), t.Context()
				a := commit(t, s, newTurn("a", "", 0))
				turns := map[string]Response{"a": a, "b": commit(t, s, newTurn("b", a.Thread, a.Length)), "f": commit(t, s, newTurn("f", a.Thread, a.Length))}
				for _, id := range tt.delete {
					mustDo(t, s.DeleteResponse(ctx, owner, id))
					wantErr(t, "again", s.DeleteResponse(ctx, owner, id), ErrNotFound)
				}
				items, err := s.queryItems(ctx, "SELECT id, seq, created_ms, body FROM items ORDER BY id")
				if got := idsOf(items); got != tt.left || err != nil {
					t.Errorf("items left are %q, %v, want %q", got, err, tt.left)
				}
				for id, want := range tt.reads {
					wantItems(t, s, turns[id].Thread, 0, turns[id].Length, want)
				}
				wantBytes(t, s)
				if tt.left == "" {
					wantEmpty(t, s)
				}
			})
		})
	}
}

// The numbers of items that are gone are not given again: who saw those, and
// commits late, must not go on from others.
func TestNumbersAreNotGivenTwice(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		a := commit(t, s, newTurn("a", "", 0))
		b := commit(t, s, newTurn("b", a.Thread, a.Length))
		mustDo(t, s.DeleteResponse(ctx, owner, "b"))
		again := commit(t, s, newTurn("c", a.Thread, a.Length))
		wantItems(t, s, again.Thread, 0, again.Length, "a.in a.out c.in c.out")
		wantErr(t, "a turn after what was deleted", s.CommitTurn(ctx, newTurn("d", b.Thread, b.Length)), ErrNotFound)
	})
}

// More rows than one transaction deletes.
func TestDeleteMany(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		ids := make([]string, 2*rowsPerTx+7)
		for i := range ids {
			ids[i] = "i" + strconv.Itoa(i)
		}
		long := newTurn("a", "", 0)
		long.Output = newItems(ids...)
		a := commit(t, s, long)
		commit(t, s, newTurn("f", a.Thread, 1))
		for i := range rowsPerTx + 1 {
			mustDo(t, s.AppendEvents(ctx, owner, "a", int64(i), []byte("x")))
		}
		mustDo(t, s.DeleteResponse(ctx, owner, "a"))
		wantItems(t, s, "f", 0, 3, "a.in f.in f.out")
		if n := rowsOf(t, s, "items") + rowsOf(t, s, "response_events"); n != 3 {
			t.Errorf("%d rows are left, want 3 items", n)
		}
		wantBytes(t, s)
		mustDo(t, s.DeleteResponse(ctx, owner, "f"))
		wantEmpty(t, s)
	})
}

// run is a background run that goes on from a turn.
func run(id string, base Response) *Response {
	return &Response{
		Owner: owner, ID: id, Thread: base.Thread, From: base.Length, Inputs: base.Length, Length: base.Length,
		Status: "queued", Runner: "host:1", Created: day0, Body: []byte("running"),
	}
}

// endOfRun is the turn that ends a run.
func endOfRun(id, base string, baseLength int64) *Turn {
	turn := newTurn(id, base, baseLength)
	turn.Response.Runner = "host:1"
	return turn
}

func TestRunEndsWithATurn(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		a := commit(t, s, newTurn("a", "", 0))
		mustDo(t, s.InsertResponse(ctx, run("b", a)))
		mustDo(t, s.InsertResponse(ctx, run("c", a)))
		mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: "n", Status: "queued", Runner: "host:1"}))
		mustDo(t, s.DeleteResponse(ctx, owner, "a")) // the runs keep its items
		b := commit(t, s, endOfRun("b", a.Thread, a.Length))
		c := commit(t, s, endOfRun("c", a.Thread, a.Length))
		n := commit(t, s, endOfRun("n", "", 0))
		wantItems(t, s, b.Thread, 0, b.Length, "a.in a.out b.in b.out")
		wantItems(t, s, c.Thread, 0, c.Length, "a.in a.out c.in c.out")
		wantItems(t, s, n.Thread, 0, n.Length, "n.in n.out")
		got, err := s.Response(ctx, owner, "c")
		mustDo(t, err)
		if got.Status != "completed" || got.Runner != "" || string(got.Body) != "body of c" || got.Thread != c.Thread || got.Inputs != 3 {
			t.Errorf("the run became %+v", got)
		}
		wantBytes(t, s)
		for _, id := range []string{"b", "c", "n"} {
			mustDo(t, s.DeleteResponse(ctx, owner, id))
		}
		wantEmpty(t, s)
	})
}

func TestRunThatEndedMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		a := commit(t, s, newTurn("a", "", 0))
		mustDo(t, s.InsertResponse(ctx, run("b", a)))
		mustDo(t, s.InsertResponse(ctx, run("c", a)))
		if changed, err := s.UpdateResponse(ctx, owner, "b", []string{"queued"}, "cancelled", []byte("gone")); !changed || err != nil {
			t.Fatal(changed, err)
		}
		mustDo(t, s.DeleteResponse(ctx, owner, "c"))
		for _, runner := range []string{"", "host:1"} {
			turn := newTurn("b", a.Thread, a.Length)
			turn.Response.Runner = runner
			before := fmt.Sprint(turn)
			wantErr(t, "commit of a cancelled run", s.CommitTurn(ctx, turn), ErrConflict)
			if after := fmt.Sprint(turn); after != before {
				t.Errorf("the turn was changed:\n%s\n%s", before, after)
			}
		}
		wantErr(t, "commit of a deleted run", s.CommitTurn(ctx, endOfRun("c", a.Thread, a.Length)), ErrNotFound)
		wantItems(t, s, a.Thread, 0, 9, "a.in a.out")
		if b, err := s.Response(ctx, owner, "b"); err != nil || b.Status != "cancelled" || string(b.Body) != "gone" {
			t.Errorf("the cancelled run is %+v, %v", b, err)
		}
		wantErr(t, "a run on what is gone", s.InsertResponse(ctx, run("d", Response{Thread: "none", Length: 1})), ErrNotFound)
		_, err := s.Response(ctx, owner, "d")
		wantErr(t, "its row", err, ErrNotFound)
	})
}

func TestStaleRuns(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		now := day0.Add(time.Hour)
		insert := func(id, status, runner string, touched time.Time) {
			mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: id, Status: status, Runner: runner, Created: touched, Body: []byte("as it was")}))
		}
		for i := range runsAtOnce + 10 {
			insert("old"+strconv.Itoa(i), "in_progress", "x", now.Add(-61*time.Second))
		}
		insert("oldest", "queued", "x", now.Add(-time.Hour))
		insert("fresh", "in_progress", "x", now.Add(-60*time.Second))
		insert("touched", "in_progress", "x", now.Add(-time.Hour))
		insert("provider's", "in_progress", "", now.Add(-time.Hour))
		mustDo(t, s.TouchRun(ctx, owner, "touched", "x", now))
		wantErr(t, "another's touch", s.TouchRun(ctx, owner, "oldest", "y", now), ErrNotFound)

		list, err := s.StaleRuns(ctx, now)
		if len(list) != runsAtOnce || list[0].ID != "oldest" || err != nil {
			t.Errorf("stale are %d, %v, want %d from the oldest on", len(list), err, runsAtOnce)
		}
		n, err := s.MarkStale(ctx, now, func(r Response) []byte { return []byte("failed after " + string(r.Body)) })
		if n != runsAtOnce+11 || err != nil {
			t.Errorf("%d were marked, %v, want %d", n, err, runsAtOnce+11)
		}
		r, err := s.Response(ctx, owner, "oldest")
		if err != nil || r.Status != "failed" || string(r.Body) != "failed after as it was" || r.Runner != "" {
			t.Errorf("a stale run became %+v, %v", r, err)
		}
		for _, id := range []string{"fresh", "touched", "provider's"} {
			if r, err := s.Response(ctx, owner, id); err != nil || r.Status != "in_progress" {
				t.Errorf("%s became %+v, %v", id, r, err)
			}
		}
		wantErr(t, "touch of one that failed", s.TouchRun(ctx, owner, "oldest", "x", now), ErrNotFound)
		if n, err := s.MarkStale(ctx, now, nil); n != 0 || err != nil {
			t.Errorf("%d were marked again, %v", n, err)
		}
		wantBytes(t, s)
	})
}

func TestEvents(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		wantErr(t, "events of nothing", s.AppendEvents(ctx, owner, "r", 0, []byte("x")), ErrNotFound)
		mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: "r", Status: "in_progress", Runner: "x"}))
		wantErr(t, "events of another's", s.AppendEvents(ctx, "key2", "r", 0, []byte("x")), ErrNotFound)
		for _, from := range []int64{0, 3, 7} {
			mustDo(t, s.AppendEvents(ctx, owner, "r", from, []byte{0, byte(from)}))
		}
		if err := s.AppendEvents(ctx, owner, "r", 7, []byte("again")); err == nil {
			t.Error("a part was stored twice")
		}
		wantBytes(t, s)
		for after, want := range map[int64]string{
			-1: "[{0 [0 0]} {3 [0 3]} {7 [0 7]}]",
			0:  "[{0 [0 0]} {3 [0 3]} {7 [0 7]}]",
			1:  "[{0 [0 0]} {3 [0 3]} {7 [0 7]}]",
			2:  "[{3 [0 3]} {7 [0 7]}]",
			5:  "[{3 [0 3]} {7 [0 7]}]",
			6:  "[{7 [0 7]}]",
			99: "[{7 [0 7]}]",
		} {
			if got, err := s.Events(ctx, owner, "r", after); fmt.Sprint(got) != want || err != nil {
				t.Errorf("after %d: got %v, %v, want %s", after, got, err, want)
			}
		}
		if got, err := s.Events(ctx, "key2", "r", -1); len(got) != 0 || err != nil {
			t.Errorf("another's events are %v, %v", got, err)
		}
		mustDo(t, s.DeleteResponse(ctx, owner, "r"))
		wantEmpty(t, s)
	})
}
