package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

// TestSearch compares what is found among the calls of some days with a look at
// all of them.
func TestSearch(t *testing.T) { onEach(t, search) }

func search(t *testing.T, open func() *Store) {
	s, ctx := open(), t.Context()
	random := rand.New(rand.NewPCG(3, 5))
	begin := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	var calls []Call
	for n := range 600 {
		at := begin.Add(time.Duration(random.IntN(70)) * time.Hour) // hours with many, and with none
		if random.IntN(3) > 0 {
			at = at.Add(time.Duration(random.Int64N(int64(time.Hour))))
		}
		if random.IntN(9) == 0 {
			at = at.Truncate(time.Hour).Add(time.Hour - time.Millisecond)
		}
		c := newCall(at, n)
		c.KeyID, c.Team, c.Model, c.Provider = fmt.Sprint("k", random.IntN(3)), fmt.Sprint("t", random.IntN(4)*random.IntN(2)), fmt.Sprint("m", random.IntN(3)), fmt.Sprint("p", random.IntN(30)/14)
		c.Cost, c.Priced = money.Amount(random.IntN(1000)*random.IntN(2)), true
		c.Charge = c.Cost
		if random.IntN(9) == 0 {
			c.Status, c.Error = 500+random.IntN(4), "upstream"
		}
		c.Tags = []string{"", fmt.Sprint("a=", random.IntN(5)), fmt.Sprint("a=", random.IntN(40), "\nb=", random.IntN(3))}[random.IntN(3)]
		calls = append(calls, c)
	}
	many := begin.Add(75 * time.Hour)
	for n := range MaxTagValues + 20 { // more values than an hour has sums for
		c := newCall(many.Add(time.Duration(n)*time.Second), 1000+n)
		c.Tags = fmt.Sprint("user=", n)
		calls = append(calls, c)
	}
	mustDo(t, s.AddCalls(ctx, calls))
	for i := range 40 { // some cost something else by now
		c := &calls[random.IntN(600)]
		was, now := *c, money.Amount(900+10*i)
		_, err := s.Reprice(ctx, []Repriced{{&was, now, now}})
		mustDo(t, err)
		c.Cost, c.Charge = now, now
	}
	sorted := newestFirst(calls)

	filters := []CallFilter{{Filter: Filter{Tag: fmt.Sprint("user=", MaxTagValues+7)}}, {Filter: Filter{Tag: "user"}}, {Filter: Filter{Provider: "nobody"}}, {MinCost: 5000}, {Status: 499}}
	one := func(names ...string) string { return names[random.IntN(len(names))] }
	for range 150 {
		f := CallFilter{Filter: Filter{KeyID: one("", "", "k1"), Model: one("", "", "m2"), Provider: one("", "", "", "p0", "p2", "p7"), Tag: one("", "", "", "", "a", "a=3", "a=30", "b=1", "c")}}
		f.Status, f.Failed, f.MinCost = []int{0, 0, 0, 0, 502, 404}[random.IntN(6)], random.IntN(9) == 0, []money.Amount{0, 0, 0, 1, 950, 1290, 4000}[random.IntN(7)]
		if random.IntN(3) == 0 {
			f.Teams = []string{"t1", "t3"}
		}
		if random.IntN(2) == 0 {
			f.Since = begin.Add(time.Duration(random.Int64N(int64(80 * time.Hour)))).Truncate(time.Millisecond)
		}
		if random.IntN(2) == 0 {
			f.Until = begin.Add(time.Duration(random.Int64N(int64(80 * time.Hour)))).Truncate(time.Millisecond)
		}
		filters = append(filters, f)
	}
	sizes := map[int]bool{}
	for _, f := range filters {
		want := slices.DeleteFunc(slices.Clone(sorted), func(c Call) bool { return !f.takes(c) })
		sizes[len(want)] = true
		limit := 1 + random.IntN(40)
		var got []Call
		for before := ""; ; {
			page, err := s.Calls(ctx, f, before, limit)
			mustDo(t, err)
			got = append(got, page...)
			if len(page) < limit || len(got) > len(want) {
				break
			}
			before = page[limit-1].ID
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v in pages of %d: got %d calls, want %d", f, limit, len(got), len(want))
		}
		all, _, whole, err := s.Latencies(ctx, f.Filter, nil, time.UTC)
		mustDo(t, err)
		ended := slices.DeleteFunc(slices.Clone(sorted), func(c Call) bool { return !f.Filter.takes(c) || c.Error != "" })
		if int(all.Calls) != len(ended) || !whole {
			t.Errorf("%+v: %d calls are timed, want %d", f.Filter, all.Calls, len(ended))
		}
	}
	if len(sizes) < 20 {
		t.Errorf("the filters choose only %d different numbers of calls", len(sizes))
	}
	for _, before := range []string{"0", "zz", strings.Repeat("f", 40)} { // no IDs
		if _, err := s.Calls(ctx, CallFilter{MinCost: 1}, before, 10); err != nil {
			t.Errorf("before %q: %v", before, err)
		}
	}
}
