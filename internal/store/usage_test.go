package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// subsets makes all choices of dimensions, each in its order and in reverse.
func subsets(rest []Dimension) [][]Dimension {
	all := [][]Dimension{nil}
	for _, d := range rest {
		for _, chosen := range slices.Clone(all) {
			all = append(all, append(slices.Clone(chosen), d))
		}
	}
	for _, chosen := range slices.Clone(all) {
		if len(chosen) > 1 {
			slices.Reverse(chosen)
			all = append(all, chosen)
		}
	}
	return all
}

// groupsOf are the groups that a call is in, the slow way.
func groupsOf(c *Call, by []Dimension, zone *time.Location) [][]string {
	all := [][]string{nil}
	at := c.Started.Truncate(time.Hour).In(zone)
	for _, d := range by {
		values := []string{map[Dimension]string{
			ByKey: c.KeyID, ByTeam: c.Team, ByModel: c.Model, ByProvider: c.Provider, ByUpstreamModel: c.UpstreamModel,
			ByHour: at.Format(time.RFC3339), ByDay: at.Format("2006-01-02"), ByMonth: at.Format("2006-01"),
			ByWeek: at.AddDate(0, 0, -map[time.Weekday]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 0: 6}[at.Weekday()]).Format("2006-01-02"),
		}[d]}
		if d == ByTag {
			values = strings.FieldsFunc(c.Tags, func(r rune) bool { return r == '\n' })
		}
		var longer [][]string
		for _, group := range all {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(group), value))
			}
		}
		all = longer
	}
	return all
}

// sum is what Usage must give, the slow way.
func sum(calls []Call, f Filter, by []Dimension, zone *time.Location) []UsageRow {
	rows := map[string]*UsageRow{}
	if len(by) == 0 {
		rows[""] = &UsageRow{Group: []string{}} // sums without groups are always there
	}
	f.Since, f.Until = f.Since.Truncate(time.Hour), f.Until.Truncate(time.Hour)
	for _, c := range calls {
		if !f.takes(c) {
			continue
		}
		for _, group := range groupsOf(&c, by, zone) {
			name, own := f.Tag, strings.Join(group, "\x00")
			if i := slices.Index(by, ByTag); i >= 0 && name != "" && group[i] != name && !strings.HasPrefix(group[i], name+"=") {
				continue // another tag of a call that has the one that is asked for
			}
			r := rows[own]
			if r == nil {
				r = &UsageRow{Group: slices.Clip(group)}
				if group == nil {
					r.Group = []string{}
				}
				rows[own] = r
			}
			one := Sums{
				Calls: 1, BytesIn: c.BytesIn, BytesOut: c.BytesOut, Cost: c.Cost, Charge: c.Charge, totalUs: c.Total.Microseconds(), firstByteUs: c.FirstByte.Microseconds(),
				Usage: llm.Usage{Input: c.Usage.Input, CacheRead: c.Usage.CacheRead, CacheWrite: c.Usage.CacheWrite, HourWrite: c.Usage.HourWrite, AudioIn: c.Usage.AudioIn,
					Output: c.Usage.Output, Reasoning: c.Usage.Reasoning, AudioOut: c.Usage.AudioOut, ImageOut: c.Usage.ImageOut, Searches: c.Usage.Searches},
			}
			for n, is := range map[*int64]bool{&one.Failed: c.Error != "", &one.Estimated: c.Usage.Estimated, &one.Unpriced: !c.Priced, &one.begun: c.FirstByte > 0} {
				if is {
					*n = 1
				}
			}
			r.plus(&one)
		}
	}
	var list []UsageRow
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b UsageRow) int { return slices.Compare(a.Group, b.Group) })
	return list
}

func checkUsage(t *testing.T, s *Store, calls []Call, f Filter, by []Dimension, zone *time.Location) {
	t.Helper()
	got, err := s.Usage(t.Context(), f, by, zone)
	mustDo(t, err)
	want := sum(calls, f, by, zone)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("by %v in %s, %+v:\ngot  %+v\nwant %+v", by, zone, f, got, want)
	}
}

func TestUsage(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, calls := open(), someCalls()
		mustDo(t, s.AddCalls(t.Context(), calls))
		for _, by := range subsets([]Dimension{ByKey, ByModel, ByDay, ByTag}) {
			for _, f := range []Filter{{}, {Since: day0, Model: "m2"}, {KeyID: "nobody"}, {Tag: "a"}, {Tag: "a=2", Teams: []string{"t0"}}, {Provider: "p1"}} {
				checkUsage(t, s, calls, f, by, time.UTC)
			}
		}
		for _, d := range Dimensions {
			checkUsage(t, s, calls, Filter{}, []Dimension{d}, time.UTC)
		}
		rows, err := s.Usage(t.Context(), Filter{}, nil, time.UTC)
		mustDo(t, err)
		if got := rows[0].MeanTotal(); got != time.Second {
			t.Errorf("a call took %v on average, want 1s", got)
		}
		if got := rows[0].MeanFirstByte(); got != 2500*time.Microsecond { // of the four fifths that had one
			t.Errorf("the first byte took %v on average, want 2.5ms", got)
		}
	})
}

// Whatever the batches and their order, whatever comes twice and is changed in
// between: the sums are those of the records.
func TestSumsAreThoseOfTheRecords(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		random := rand.New(rand.NewPCG(1, 2))
		s := open()
		var calls []Call
		for i := range 300 {
			at := day0.Add(time.Duration(random.IntN(100*24*60)-20*24*60) * time.Minute)
			c := newCall(at, i)
			c.KeyID, c.Team, c.Model = fmt.Sprint("k", random.IntN(3)), fmt.Sprint("t", random.IntN(2)), fmt.Sprint("m", random.IntN(3))
			c.Provider, c.UpstreamModel = fmt.Sprint("p", random.IntN(2)), fmt.Sprint("u", random.IntN(2))
			u := &c.Usage
			for _, n := range []*int64{&u.Input, &u.CacheRead, &u.CacheWrite, &u.HourWrite, &u.AudioIn, &u.Output, &u.Reasoning, &u.AudioOut, &u.ImageOut, &u.Searches, &c.BytesIn, &c.BytesOut} {
				*n = random.Int64N(1 << 40)
			}
			u.Estimated, c.Priced = random.IntN(3) == 0, random.IntN(3) > 0
			c.Cost, c.Charge = money.Amount(random.Int64N(1<<40)), money.Amount(random.Int64N(1<<40))
			c.FirstByte, c.Total = time.Duration(random.IntN(3)*1000)*time.Microsecond, time.Duration(random.IntN(9000))*time.Millisecond
			c.Tags = []string{"", "", "x=1", "x=2", "x=1\ny=é z", "y=\"'"}[random.IntN(6)]
			if random.IntN(4) == 0 {
				c.Status, c.Error = 500, "upstream"
			}
			calls = append(calls, c)
		}
		todo := slices.Clone(calls)
		for len(todo) > 0 {
			n := min(1+random.IntN(60), len(todo))
			batch := slices.Clone(todo[:n])
			todo = todo[n:]
			for range random.IntN(20) { // the journal again, after a crash
				again := calls[random.IntN(len(calls)-len(todo))]
				batch = append(batch, again)
			}
			mustDo(t, s.AddCalls(t.Context(), batch))
		}
		berlin, kolkata := zoneOf(t, "Europe/Berlin"), zoneOf(t, "Asia/Kolkata")
		for range 300 {
			var by []Dimension
			for _, d := range Dimensions {
				if random.IntN(5) == 0 {
					by = append(by, d)
				}
			}
			random.Shuffle(len(by), func(i, k int) { by[i], by[k] = by[k], by[i] })
			pick := func(list ...string) string { return list[random.IntN(len(list))] }
			f := Filter{KeyID: pick("", "", "k1"), Teams: [][]string{nil, nil, {"t1"}, {"t0", "t1"}}[random.IntN(4)], Model: pick("", "", "m1"), Provider: pick("", "", "p1"), Tag: pick("", "", "", "x", "y", "x=1", "z")}
			if random.IntN(2) == 0 {
				f.Since = day0.Add(time.Duration(random.IntN(100*24*60)-20*24*60) * time.Minute)
			}
			if random.IntN(2) == 0 {
				f.Until = day0.Add(time.Duration(random.IntN(100*24*60)-20*24*60) * time.Minute)
			}
			checkUsage(t, s, calls, f, by, []*time.Location{time.UTC, berlin, kolkata}[random.IntN(3)])
		}
	})
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	mustDo(t, err)
	return zone
}

// Hours stay apart when a clock goes back, and are told in the zone.
func TestUsageHoursOfAZone(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		at := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
		mustDo(t, s.AddCalls(t.Context(), []Call{newCall(at, 1), newCall(at.Add(time.Hour), 2), newCall(at.Add(-3*time.Hour), 3)}))
		rows, err := s.Usage(t.Context(), Filter{}, []Dimension{ByDay, ByHour}, zoneOf(t, "Europe/Berlin"))
		mustDo(t, err)
		var got [][]string
		for _, r := range rows {
			got = append(got, r.Group)
		}
		want := [][]string{{"2026-10-24", "2026-10-24T23:00:00+02:00"}, {"2026-10-25", "2026-10-25T02:00:00+02:00"}, {"2026-10-25", "2026-10-25T02:00:00+01:00"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestUsageRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		if _, err := s.Usage(t.Context(), Filter{}, []Dimension{ByKey, "key_id; DROP TABLE calls"}, time.UTC); err == nil || !strings.Contains(err.Error(), "dimension") {
			t.Errorf("got %v, want an error about the dimension", err)
		}
	})
	g := newGroups([]Dimension{ByKey}, time.UTC)
	for i := range maxGroups {
		g.rows[fmt.Sprint(i)] = &UsageRow{}
	}
	s, err := Open(t.Context(), t.TempDir(), "")
	mustDo(t, err)
	defer s.Close()
	mustDo(t, s.AddCalls(t.Context(), []Call{newCall(day0, 1)}))
	query, args := usageQuery(&Filter{}, g.by, time.UTC)
	rows, err := s.read.Query(query, args...)
	mustDo(t, err)
	defer rows.Close()
	if rows.Next(); !errors.Is(g.scan(rows), ErrTooManyGroups) {
		t.Error("a group beyond the limit was taken")
	}
}

// Clients choose the values of tags: beyond the limit they share one, in this
// process and in the next.
func TestTagValuesAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		tagged := func(from, n int, tags string) []Call {
			var calls []Call
			for i := range n {
				c := newCall(day0, from+i)
				c.Tags = fmt.Sprintf(tags, from+i)
				calls = append(calls, c)
			}
			return calls
		}
		mustDo(t, s.AddCalls(t.Context(), tagged(0, MaxTagValues-1, "user=%d")))
		mustDo(t, s.AddCalls(t.Context(), tagged(5000, 10, "user=%d\nteam=%[1]d")))
		mustDo(t, s.Close())
		s = open()
		mustDo(t, s.AddCalls(t.Context(), tagged(6000, 10, "user=%d")))
		again := newCall(day0, 7000)
		again.Tags = "user=7"
		next := newCall(day0.Add(time.Hour), 7001)
		next.Tags = "user=new"
		mustDo(t, s.AddCalls(t.Context(), []Call{again, next}))
		rows, err := s.Usage(t.Context(), Filter{Tag: "user"}, []Dimension{ByTag}, time.UTC)
		mustDo(t, err)
		counts := map[string]int64{}
		for _, r := range rows {
			counts[r.Group[0]] = r.Calls
		}
		want := map[string]int64{"user=0": 1, "user=7": 2, "user=5000": 1, "user=5001": 0, "user=6000": 0, "user=" + OtherValue: 19, "user=new": 1}
		for tag, n := range want {
			if counts[tag] != n {
				t.Errorf("%s has %d calls, want %d", tag, counts[tag], n)
			}
		}
		if len(counts) != MaxTagValues+2 { // the rest, and the one of another hour
			t.Errorf("%d tags have sums, want %d", len(counts), MaxTagValues+2)
		}
		if rows, err = s.Usage(t.Context(), Filter{Tag: "team"}, nil, time.UTC); err != nil || rows[0].Calls != 10 {
			t.Errorf("another name: %+v, %v, want 10 calls", rows, err)
		}
	})
}

// A price that is wrong by far does not stop the records.
func TestSumsOfMoneyEnd(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for i := range 3 {
			c := newCall(day0, i)
			c.Cost, c.Charge = money.Max, money.Max
			mustDo(t, s.AddCalls(t.Context(), []Call{c}))
		}
		rows, err := s.Usage(t.Context(), Filter{}, []Dimension{ByHour}, time.UTC)
		if err != nil || rows[0].Calls != 3 || rows[0].Cost != maxSum || rows[0].Charge != maxSum {
			t.Errorf("got %+v, %v, want 3 calls that cost %d", rows, err, maxSum)
		}
	})
}
