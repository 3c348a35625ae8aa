package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

var day0 = time.Date(2026, 11, 20, 23, 59, 59, 999e6, time.UTC)

// newCall makes a call whose ID is that of a call made at a time: the first 12
// digits are its milliseconds.
func newCall(at time.Time, n int) Call {
	return Call{
		ID: fmt.Sprintf("%012x7%019x", at.UnixMilli(), n), KeyID: "k1", Operation: "chat", Model: "m", Provider: "p", UpstreamModel: "um",
		Status: 200, Started: time.UnixMilli(at.UnixMilli()), Total: time.Second,
	}
}

// someCalls differ in all that usage is grouped and filtered by. They start
// in two days, which begin and end within them.
func someCalls() []Call {
	var calls []Call
	for i := range 40 {
		c := newCall(day0.Add(time.Duration(i%4-1)*time.Millisecond), i)
		c.KeyID, c.Model, c.Provider = "k"+strconv.Itoa(i%3), "m"+strconv.Itoa(i%5), "p"+strconv.Itoa(i%2)
		c.Usage = llm.Usage{Input: int64(i), CacheRead: int64(2 * i), CacheWrite: 3, Output: int64(i * i), Reasoning: 1 << 35, Estimated: i%7 == 0}
		c.BytesIn, c.BytesOut = int64(i*1000), 1<<33
		if i%6 == 0 {
			c.Status, c.Error = 502, "upstream"
		}
		c.Team, c.Priced, c.Cost, c.Charge = "t"+strconv.Itoa(i%2), i%8 != 0, money.Amount(i), money.Amount(2*i)
		c.Tags = []string{"", "a=1", "a=2\nb=1", "b=%"}[i%4]
		c.FirstByte = time.Duration(i%5) * time.Millisecond
		calls = append(calls, c)
	}
	return calls
}

func TestCallsRoundTrip(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		full := Call{
			ID: "0193500000007abc", KeyID: "k", Operation: "responses", Model: "a/b é \"'", Provider: "p", UpstreamModel: "b", Stream: true,
			Status: 502, Error: "upstream_truncated", Started: time.UnixMilli(1732000000123), FirstByte: 1234567 * time.Microsecond, Total: 2 * time.Hour,
			BytesIn: 1 << 40, BytesOut: 1 << 41, Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 1 << 40, Estimated: true}, Notes: "drop:seed,rename:model",
			Account: "p#2", Steps: EncodeSteps([]Step{{Target: "p/b", Account: "p#2", Result: "ok", Tried: true, AtMs: 1.5}}), CacheMiss: "other account",
		}
		empty := Call{ID: "0193500000007abd", Started: time.UnixMilli(0)}
		mustDo(t, s.AddCalls(t.Context(), []Call{full, empty}))
		got, err := s.Calls(t.Context(), CallFilter{}, "", 10)
		if want := []Call{empty, full}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
		if got, err := s.Call(t.Context(), full.ID); err != nil || got != full {
			t.Errorf("one call: got %+v, %v\nwant %+v", got, err, full)
		}
		if got, err := s.Call(t.Context(), "0193500000007abe"); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown call: got %+v, %v, want ErrNotFound", got, err)
		}
	})
}

// The journal may be read again after a crash: a record that is there already
// stays as it is, and the new ones beside it are stored.
func TestAddCallsAgain(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, calls := open(), someCalls()
		mustDo(t, s.AddCalls(t.Context(), nil))
		mustDo(t, s.AddCalls(t.Context(), calls[:20]))
		changed := slices.Clone(calls[:30])
		for i := range changed[:20] {
			changed[i].Usage.Input += 1000
		}
		mustDo(t, s.AddCalls(t.Context(), changed))
		mustDo(t, s.AddCalls(t.Context(), append(calls[20:], calls[39], calls[0])))
		got, err := s.Calls(t.Context(), CallFilter{}, "", 1000)
		mustDo(t, err)
		if want := newestFirst(calls); !slices.Equal(got, want) {
			t.Errorf("got %d calls, want the %d first versions", len(got), len(want))
		}
	})
}

func newestFirst(calls []Call) []Call {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(b.ID, a.ID) })
	return calls
}

func TestAddCallsNotesTheLastUse(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		mustDo(t, s.CreateKey(ctx, Key{ID: "k1"}))
		mustDo(t, s.CreateKey(ctx, Key{ID: "k2", LastUsed: 9e15}))
		revision, err := s.KeysRevision(ctx)
		mustDo(t, err)
		late, early := newCall(day0.Add(time.Minute), 1), newCall(day0, 2)
		other := newCall(day0, 3)
		other.KeyID = "k2"
		nobody := newCall(day0, 4)
		nobody.KeyID = "gone"
		mustDo(t, s.AddCalls(ctx, []Call{late, early, other, nobody}))
		mustDo(t, s.AddCalls(ctx, []Call{newCall(day0.Add(time.Second), 5)}))
		keys, at, err := s.Keys(ctx)
		mustDo(t, err)
		if got, want := keys[0].LastUsed, late.Started.UnixMilli(); got != want {
			t.Errorf("last use is %d, want that of the latest call, %d", got, want)
		}
		if got := keys[1].LastUsed; got != 9e15 {
			t.Errorf("last use went back to %d", got)
		}
		if at != revision {
			t.Errorf("a call changed the revision of the keys from %d to %d", revision, at)
		}
	})
}

// filters are combined with each other.
func filters() []CallFilter {
	var all []CallFilter
	for _, since := range []time.Time{{}, day0, day0.Add(time.Hour)} {
		for _, until := range []time.Time{{}, day0.Add(time.Millisecond), day0.Add(-time.Hour)} {
			for _, key := range []string{"", "k1", "k9"} {
				for _, model := range []string{"", "m2"} {
					f := Filter{Since: since, Until: until, KeyID: key, Model: model}
					all = append(all, CallFilter{Filter: f})
					f.Since, f.Until = time.Time{}, time.Time{}
					all = append(all, CallFilter{Filter: f, Failed: true}, CallFilter{Filter: f, Status: 502}, CallFilter{Filter: f, Status: 200}, CallFilter{Filter: f, MinCost: 20})
					for _, more := range []Filter{{Teams: []string{"t1"}}, {Teams: []string{"t1", "t0"}}, {Provider: "p1"}, {Tag: "a=1"}, {Tag: "a"}, {Tag: "b"}, {Tag: "b=%"}, {Tag: "A=1"}} {
						more.KeyID, more.Model = key, model
						all = append(all, CallFilter{Filter: more})
					}
				}
			}
		}
	}
	return all
}

func (f Filter) takes(c Call) bool {
	tagged := f.Tag == "" || slices.ContainsFunc(strings.Split(c.Tags, "\n"), func(tag string) bool {
		return tag == f.Tag || strings.HasPrefix(tag, f.Tag+"=") && !strings.Contains(f.Tag, "=")
	})
	return (f.Since.IsZero() || !c.Started.Before(f.Since)) && (f.Until.IsZero() || c.Started.Before(f.Until)) && tagged &&
		(f.KeyID == "" || f.KeyID == c.KeyID) && (f.Model == "" || f.Model == c.Model) && (len(f.Teams) == 0 || slices.Contains(f.Teams, c.Team)) && (f.Provider == "" || f.Provider == c.Provider)
}

func (f CallFilter) takes(c Call) bool {
	return f.Filter.takes(c) && (!f.Failed || c.Error != "") && (f.Status == 0 || f.Status == c.Status) && c.Cost >= f.MinCost
}

func TestCallsFilter(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, calls := open(), someCalls()
		mustDo(t, s.AddCalls(t.Context(), calls))
		sizes := map[int]bool{}
		for _, f := range filters() {
			got, err := s.Calls(t.Context(), f, "", 1000)
			mustDo(t, err)
			want := slices.DeleteFunc(newestFirst(calls), func(c Call) bool { return !f.takes(c) })
			if !slices.Equal(got, want) {
				t.Errorf("%+v: got %d calls, want %d", f, len(got), len(want))
			}
			sizes[len(want)] = true
		}
		if len(sizes) < 8 {
			t.Errorf("the filters choose only %d different numbers of calls", len(sizes))
		}
	})
}

func TestCallsPaging(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, calls := open(), someCalls()
		mustDo(t, s.AddCalls(t.Context(), calls))
		filter := CallFilter{Filter: Filter{Since: day0, KeyID: "k1"}}
		want := slices.DeleteFunc(newestFirst(calls), func(c Call) bool { return !filter.takes(c) })
		for _, limit := range []int{1, 3, len(want), len(want) + 1} {
			var got []Call
			before := ""
			for {
				page, err := s.Calls(t.Context(), filter, before, limit)
				mustDo(t, err)
				if len(page) == 0 {
					break
				}
				if len(page) > limit {
					t.Fatalf("a page of at most %d has %d", limit, len(page))
				}
				got = append(got, page...)
				before = page[len(page)-1].ID
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: got %d calls, want %d", limit, len(got), len(want))
			}
		}
	})
}

func TestEachCall(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		var calls []Call
		for i := range 2*callsPerPage + 1 {
			c := newCall(day0, i)
			c.KeyID = "k" + strconv.Itoa(i%2)
			calls = append(calls, c)
		}
		mustDo(t, s.AddCalls(t.Context(), calls))
		for _, f := range []CallFilter{{}, {Filter: Filter{KeyID: "k1"}}, {Filter: Filter{KeyID: "k9"}}} {
			var got []Call
			mustDo(t, s.EachCall(t.Context(), f, func(c *Call) error {
				got = append(got, *c)
				return nil
			}))
			if want := slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return !f.takes(c) }); !slices.Equal(got, want) {
				t.Errorf("%+v: got %d calls, want %d in order", f, len(got), len(want))
			}
		}
		enough, n := errors.New("enough"), 0
		err := s.EachCall(t.Context(), CallFilter{}, func(*Call) error {
			n++
			return enough
		})
		if err != enough || n != 1 {
			t.Errorf("after an error of the reader: %v after %d calls", err, n)
		}
	})
}

// A model's name is the client's. Whatever it is, the record must be taken:
// the journal gives it again and again until it is.
func TestAddCallsTakesAnyName(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for i, name := range []string{"\x00", "a\x00b", "é"[:1], "\xff\xfe", strings.Repeat("x", 1<<16)} {
			c := newCall(day0, i)
			c.Model = name
			if err := s.AddCalls(t.Context(), []Call{c}); err != nil {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		if got, err := s.Calls(t.Context(), CallFilter{}, "", 10); len(got) != 5 || err != nil {
			t.Errorf("%d calls are stored, %v, want 5", len(got), err)
		}
	})
}
