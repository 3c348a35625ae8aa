package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/store"
)

// aged appends the record of a call that began so long before now.
func aged(t *testing.T, l *Ledger, now time.Time, age time.Duration) string {
	t.Helper()
	at := now.Add(-age)
	c := newCall(fmt.Sprintf("%012x7%019x", at.UnixMilli(), int64(age)))
	c.Started = at
	if err := l.Append(c); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func sums(t *testing.T, st *store.Store) int64 {
	t.Helper()
	rows, err := st.Usage(context.Background(), store.Filter{}, nil, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return rows[0].Calls
}

func keptCalls(t *testing.T, st *store.Store) (ids []string) {
	t.Helper()
	calls, err := st.Calls(context.Background(), store.CallFilter{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

// What is over its time goes, and is not counted again when a crash has the
// journal read again.
func TestSweep(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	st := openStore(t, dir)
	l := open(t, dir, st)
	l.Apply(&Retention{Age: 24 * time.Hour, MaxBytes: 1 << 30})
	aged(t, l, now, 30*time.Hour)
	aged(t, l, now, 25*time.Hour)
	young := aged(t, l, now, 23*time.Hour)
	drain(t, l)
	if err := l.sweep(t.Context(), st, now); err != nil {
		t.Fatal(err)
	}
	if ids := keptCalls(t, st); len(ids) != 1 || ids[0] != young {
		t.Errorf("kept are %q, want only the one of a day, %s", ids, young)
	}
	again := open(t, dir, st) // as after a crash
	drain(t, again)
	if n, ids := sums(t, st), keptCalls(t, st); n != 3 || len(ids) != 1 {
		t.Errorf("after a crash %d calls are counted and %d kept, want 3 and 1", n, len(ids))
	}
}

// What is too much goes from the oldest on, but for what is of the last hour.
func TestSweepOfTooMuch(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	st := openStore(t, dir)
	l := open(t, dir, st)
	l.Apply(&Retention{Age: 24 * time.Hour, MaxBytes: 1})
	aged(t, l, now, 5*time.Hour)
	aged(t, l, now, 2*time.Hour)
	young := aged(t, l, now, 10*time.Minute)
	if err := l.sweep(t.Context(), st, now); err != nil {
		t.Fatal(err)
	}
	if ids := keptCalls(t, st); len(ids) != 1 || ids[0] != young {
		t.Errorf("kept are %q, want only the youngest, %s", ids, young)
	}
	if n := sums(t, st); n != 3 {
		t.Errorf("%d calls are counted, want 3", n)
	}
}

// While the store is away nothing goes, and the end of ctx is the end.
func TestSweepEnds(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	l.Apply(&Retention{Age: time.Hour, MaxBytes: 1})
	add(t, l, "1")
	st.Close()
	if err := l.sweep(t.Context(), st, time.Now()); err == nil {
		t.Error("a store that is away did not fail the sweep")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Sweep(ctx, st)
}
