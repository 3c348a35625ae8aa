package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

func TestLatencies(t *testing.T) { onEach(t, latencies) }

func latencies(t *testing.T, open func() *Store) {
	s, ctx := open(), t.Context()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	var calls []Call
	add := func(hours int, model, failed string, firstByte, total time.Duration) {
		started := at.Add(time.Duration(hours)*time.Hour + time.Duration(len(calls))*time.Second)
		calls = append(calls, Call{
			ID: fmt.Sprintf("%012x7%03x", started.UnixMilli(), len(calls)), KeyID: "k1", Model: model, Error: failed, Started: started, FirstByte: firstByte, Total: total,
			Usage: llm.Usage{Input: 1}, Tags: "project=red\nuser=a",
		})
	}
	for i := range 100 { // 1 to 100 ms, in no order
		add(0, "fast", "", time.Duration(i*37%100+1)*time.Millisecond, time.Duration(i*37%100+101)*time.Millisecond)
	}
	add(0, "fast", "upstream", time.Hour, time.Hour) // what failed does not count
	add(2, "slow", "", 0, time.Second)               // no first byte; the next day in Berlin
	if err := s.AddCalls(ctx, calls); err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	fast := Latency{100, Percentiles{150 * ms, 195 * ms}, Percentiles{50 * ms, 95 * ms}}
	slow := Latency{1, Percentiles{time.Second, time.Second}, Percentiles{}}
	whole := Filter{Since: at, Until: at.Add(24 * time.Hour)}
	for _, test := range []struct {
		by   []Dimension
		zone *time.Location
		f    Filter
		want string
	}{
		{nil, time.UTC, Filter{}, fmt.Sprint(Latency{101, Percentiles{151 * ms, 196 * ms}, fast.FirstByte}, []LatencyRow(nil))},
		{nil, time.UTC, Filter{Model: "slow"}, fmt.Sprint(slow, []LatencyRow(nil))},
		{nil, time.UTC, Filter{KeyID: "k2"}, fmt.Sprint(Latency{}, []LatencyRow(nil))},
		{[]Dimension{ByModel}, time.UTC, Filter{Model: "fast"}, fmt.Sprint(fast, []LatencyRow{{[]string{"fast"}, fast}})},
		{[]Dimension{ByDay}, berlin, whole, fmt.Sprint(Latency{101, Percentiles{151 * ms, 196 * ms}, fast.FirstByte}, []LatencyRow{{[]string{"2026-03-01"}, fast}, {[]string{"2026-03-02"}, slow}})},
		{[]Dimension{ByHour, ByModel}, time.UTC, Filter{Since: at.Add(time.Hour), Until: whole.Until}, fmt.Sprint(slow, []LatencyRow{{[]string{"2026-03-02T00:00:00Z", "slow"}, slow}})},
		{[]Dimension{ByTag}, time.UTC, Filter{Model: "slow"}, fmt.Sprint(slow, []LatencyRow{{[]string{"project=red"}, slow}, {[]string{"user=a"}, slow}})},
	} {
		all, rows, complete, err := s.Latencies(ctx, test.f, test.by, test.zone)
		if err != nil || !complete {
			t.Fatalf("%v: %t, %v", test.by, complete, err)
		}
		if got := fmt.Sprint(all, rows); got != test.want {
			t.Errorf("%v of %+v:\n got %s\nwant %s", test.by, test.f, got, test.want)
		}
	}
	if _, _, _, err := s.Latencies(ctx, Filter{Since: at.AddDate(-1, 0, 0)}, []Dimension{ByHour}, time.UTC); !errors.Is(err, ErrTooManyPeriods) {
		t.Errorf("a year by the hour: %v", err)
	}
}

// Of more calls than are looked at, the newest are, and that is said.
func TestLatencySample(t *testing.T) { onEach(t, latencySamples) }

func latencySamples(t *testing.T, open func() *Store) {
	s, ctx := open(), t.Context()
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	calls := make([]Call, periodSample+1)
	for i := range calls {
		started := at.Add(time.Duration(i) * time.Millisecond)
		calls[i] = Call{ID: fmt.Sprintf("%012x7", started.UnixMilli()), KeyID: "k1", Started: started, Total: time.Second}
	}
	calls[0].Total = time.Hour
	if err := s.AddCalls(ctx, calls); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[Dimension]bool{ByDay: false, ByKey: true} {
		all, _, whole, err := s.Latencies(ctx, Filter{Since: at, Until: at.Add(time.Hour)}, []Dimension{by}, time.UTC)
		if err != nil || whole != want || all.Calls != int64(len(calls)) && want || all.Calls != periodSample && !want {
			t.Errorf("by %s: %+v, whole %t, %v", by, all, whole, err)
		}
	}
}
