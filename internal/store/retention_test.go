package store

import (
	"slices"
	"testing"
	"time"
)

// The oldest records go, so many at a time; what they add up to stays.
func TestDropCalls(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		var calls []Call
		for i := range 10 {
			calls = append(calls, newCall(day0.Add(time.Duration(i)*time.Hour), i))
		}
		mustDo(t, s.AddCalls(ctx, calls))
		for _, want := range []int{3, 2, 0} { // of those before the fifth hour
			if n, err := s.DropCalls(ctx, day0.Add(5*time.Hour), 3); n != want || err != nil {
				t.Errorf("%d records went, %v, want %d", n, err, want)
			}
		}
		left, err := s.Calls(ctx, CallFilter{}, "", 100)
		mustDo(t, err)
		if want := newestFirst(calls[5:]); !slices.Equal(left, want) {
			t.Errorf("%d records are left, want the %d newest", len(left), len(want))
		}
		rows, err := s.Usage(ctx, Filter{}, nil, time.UTC)
		if err != nil || rows[0].Calls != 10 {
			t.Errorf("the sums are of %d calls, %v, want 10", rows[0].Calls, err)
		}
	})
}

func TestFullSince(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		if since, err := s.FullSince(ctx, 1); !since.IsZero() || err != nil {
			t.Errorf("without records: %v, %v", since, err)
		}
		var calls []Call
		begin := day0.Truncate(time.Hour)
		for i := range 40 {
			c := newCall(begin.Add(time.Duration(i)*15*time.Minute), i) // four an hour
			c.Tags = "a=1"
			calls = append(calls, c)
		}
		mustDo(t, s.AddCalls(ctx, calls))
		each, oldest, err := s.callSize(ctx)
		if err != nil || each < 250 || each > 400 || oldest != begin.UnixMilli() {
			t.Fatalf("a record takes %d bytes, the oldest is of %d, %v", each, oldest, err)
		}
		for _, tt := range []struct {
			records int64 // for which there is room
			want    time.Duration
		}{{40, 0}, {39, time.Hour}, {36, time.Hour}, {35, 2 * time.Hour}, {3, 10 * time.Hour}} {
			since, err := s.FullSince(ctx, tt.records*each)
			mustDo(t, err)
			if want := begin.Add(tt.want); !since.Equal(want) && !(tt.want == 0 && since.IsZero()) {
				t.Errorf("room for %d: since %v, want %v", tt.records, since.UTC(), want)
			}
		}
		if _, err := s.DropCalls(ctx, begin.Add(5*time.Hour), 100); err != nil {
			t.Fatal(err)
		}
		if since, err := s.FullSince(ctx, 20*each); !since.IsZero() || err != nil { // the sums of what is gone do not count
			t.Errorf("after half is gone: %v, %v", since, err)
		}
	})
}
