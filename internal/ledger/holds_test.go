package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

var total = store.Balance{Owner: "k", Period: "total"}

// heldCall is a call that pays from the total of its key.
func heldCall(id string, charge money.Amount) *store.Call {
	c := newCall(id)
	c.Charge, c.Balances = charge, store.EncodeBalances("h", []store.Balance{total})
	return c
}

func holdCalls(t *testing.T, l *Ledger, estimate money.Amount, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := l.Hold(heldCall(id, 0), estimate); err != nil {
			t.Fatal(err)
		}
	}
}

func endCalls(t *testing.T, l *Ledger, charge money.Amount, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := l.Append(heldCall(id, charge)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantEnds says how calls ended: "id code charge".
func wantEnds(t *testing.T, st *store.Store, want ...string) {
	t.Helper()
	calls, err := st.Calls(t.Context(), store.CallFilter{}, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var sum money.Amount
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%s %s %d", c.ID, c.Error, c.Charge))
		sum = sum.Plus(c.Charge)
		if (c.Error == interrupted) != (c.Status == 500) || c.Error == interrupted && (!c.Usage.Estimated || c.KeyID != "k" || c.Operation != "chat" || c.Model != "m" || c.Started.UnixMilli() != 1732000000123) {
			t.Errorf("recorded is %+v", c)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("recorded are %q, want %q", got, want)
	}
	at, err := st.Standing(t.Context(), total)
	if err != nil || at.Spent != sum {
		t.Errorf("spent are %d, %v, want the sum of the calls, %d", at.Spent, err, sum)
	}
}

// A hold is not a call. Its end is, and without one it becomes a call that was
// interrupted, as soon as the next process looks.
func TestHolds(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	holdCalls(t, l, 50, "a", "b", "c")
	holdCalls(t, l, 70, "c") // it may cost more now
	endCalls(t, l, 3, "a")
	drain(t, l)
	wantEnds(t, st, "a  3")
	if n := l.Pending(); n != 0 {
		t.Errorf("%d records wait, want none: holds do not", n)
	}
	endCalls(t, l, 4, "b")

	for range 2 { // and the second time it changes nothing
		dir := crashed(t, dir)
		l := open(t, dir, st)
		drain(t, l)
		wantEnds(t, st, "c interrupted 70", "b  4", "a  3")
		if n := l.Pending(); n != 0 {
			t.Errorf("%d records wait, want none", n)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if files := journalFiles(t, dir); len(files) != 0 {
			t.Errorf("files are left: %v", files)
		}
	}
}

// After a crash between any two records, or within one, a call whose hold was written is
// recorded once, as it ended or as interrupted; also when there is a second crash
// before anything was stored.
func TestHoldsOverCrashes(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	var ends []int64 // of the file after each record
	note := func() {
		_, size := l.journal.position()
		ends = append(ends, size)
	}
	for _, write := range []func(){
		func() { holdCalls(t, l, 50, "a") }, func() { holdCalls(t, l, 60, "b") }, func() { endCalls(t, l, 3, "a") },
		func() { holdCalls(t, l, 80, "b") }, func() { endCalls(t, l, 4, "b") },
	} {
		write()
		note()
	}
	want := [][]string{
		nil, {"a interrupted 50"}, {"b interrupted 60", "a interrupted 50"}, {"b interrupted 60", "a  3"}, {"b interrupted 80", "a  3"}, {"b  4", "a  3"},
	}
	for i := range 2*len(ends) + 1 {
		whole, size := i/2, int64(0)
		if whole > 0 {
			size = ends[whole-1]
		}
		if i%2 == 1 { // half of the next is there
			size = (size + ends[whole]) / 2
		}
		dir := crashed(t, dir)
		if err := os.Truncate(segmentPath(filepath.Join(dir, "journal"), 1), size); err != nil {
			t.Fatal(err)
		}
		second := open(t, dir, nil)
		if i%3 > 0 { // it recovers, and is killed before it stores anything
			if err := second.recoverHolds(); err != nil {
				t.Fatal(err)
			}
		}
		dir = crashed(t, dir)
		st := openStore(t, dir)
		third := open(t, dir, st)
		drain(t, third)
		wantEnds(t, st, want[whole]...)
		if err := third.Close(t.Context()); err != nil {
			t.Error(err)
		}
		st.Close()
	}
}

// A hold lasts as long as its call, however many files the journal has come to
// by then: the file that has it is removed, and the hold is not.
func TestHoldsMove(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	holdCalls(t, l, 50, "long", "longer")
	fill := func(name string) {
		for i := range 80 { // more than a file
			c := newCall(fmt.Sprint(name, i))
			c.KeyID, c.Steps = "other", strings.Repeat("s", 60_000)
			if err := l.Append(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"x", "y", "z"} {
		fill(name)
		drain(t, l)
		if files := journalFiles(t, dir); len(files) > 2 {
			t.Fatalf("files are %v", files)
		}
	}
	endCalls(t, l, 3, "long")
	drain(t, l)
	drain(t, l) // what moved is read, too
	if len(l.open) != 1 || l.open["longer"] == nil {
		t.Errorf("open are %v, want longer", l.open)
	}
	next := open(t, crashed(t, dir), st)
	drain(t, next)
	for id, want := range map[string]string{"long": "", "longer": interrupted} {
		c, err := st.Call(t.Context(), id)
		if err != nil || c.Error != want {
			t.Errorf("%s ended as %q, %v, want %q", id, c.Error, err, want)
		}
	}
	endCalls(t, l, 9, "longer") // the first process lives on in this test; the call is recorded already
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if at, err := st.Standing(t.Context(), total); err != nil || at.Spent != 53 {
		t.Errorf("spent are %d, %v, want 53", at.Spent, err)
	}
}

// A call that ends while its hold is moved is not opened again by what moved.
func TestHoldEndsWhileItMoves(t *testing.T) {
	for name, test := range map[string]struct {
		records []entry // after the hold of a in file 1, which moves
		open    int
	}{
		"it moves, then ends":           {[]entry{{*heldCall("a", 50), ofMoved}, {*heldCall("a", 3), ofCall}}, 0},
		"it ends, then moves":           {[]entry{{*heldCall("a", 3), ofCall}, {*heldCall("a", 50), ofMoved}}, 0},
		"it grows, moves, ends":         {[]entry{{*heldCall("a", 80), ofHold}, {*heldCall("a", 50), ofMoved}, {*heldCall("a", 3), ofCall}}, 0},
		"it grows, ends, moves":         {[]entry{{*heldCall("a", 80), ofHold}, {*heldCall("a", 3), ofCall}, {*heldCall("a", 50), ofMoved}}, 0},
		"it moves, grows, and is there": {[]entry{{*heldCall("a", 50), ofMoved}, {*heldCall("a", 80), ofHold}}, 1},
		"it grows, moves, and is there": {[]entry{{*heldCall("a", 80), ofHold}, {*heldCall("a", 50), ofMoved}}, 1},
	} {
		dir := t.TempDir()
		l := open(t, dir, nil)
		l.seq = l.own
		holds := openHolds{}
		holds.follow(nil, []hold{{*heldCall("a", 50), ofHold, 0}}, l.seq)
		l.open = holds
		if err := l.moveHolds(); err != nil {
			t.Fatal(err)
		}
		for _, e := range test.records {
			if e.kind == ofCall {
				holds.follow([]store.Call{e.call}, nil, 2)
				continue
			}
			holds.follow(nil, []hold{{e.call, e.kind, 0}}, 2)
		}
		if len(holds) != test.open {
			t.Errorf("%s: %d are open, want %d", name, len(holds), test.open)
		}
		if h := holds["a"]; h != nil && (h.call.Charge != 80 || h.seq != 2 || h.again != 0 || h.ended) {
			t.Errorf("%s: open is %+v", name, h)
		}
	}
}

// Calls that never ended, and should have, are recorded when the journal is
// closed.
func TestCloseInterrupts(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	holdCalls(t, l, 50, "a", "b")
	endCalls(t, l, 3, "a")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEnds(t, st, "b interrupted 50", "a  3")
	if files := journalFiles(t, dir); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
}

// A record of a hold is read as it was written.
func TestHoldRoundTrip(t *testing.T) {
	c := store.Call{ID: "i", KeyID: "k", Team: "t", Operation: "chat", Model: "m/é", Started: time.UnixMilli(1732000000123), Balances: "h\nk total", Charge: money.Max}
	for _, of := range []kind{ofHold, ofMoved} {
		record := appendRecord(nil, &c, of)
		got, rest, err := readRecord(append(record, "rest"...), names{})
		want := c
		want.Status, want.Error, want.Usage.Estimated = 500, interrupted, true
		if err != nil || got.kind != of || got.call != want || string(rest) != "rest" {
			t.Errorf("got  %+v, %q, %v\nwant %+v", got, rest, err, want)
		}
		for n := range record {
			if _, _, err := readRecord(record[:n], names{}); err != errTorn {
				t.Errorf("cut at %d: %v", n, err)
			}
		}
	}
}

// BenchmarkHeldCall is what a call costs that pays from the budgets of its key
// and two teams, beside one that pays from none.
func BenchmarkHeldCall(b *testing.B) {
	st, err := store.Open(b.Context(), b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	books := booksOf(st)
	if err := books.CloseFormer(b.Context()); err != nil {
		b.Fatal(err)
	}
	l, err := Open(b.TempDir(), books, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer l.journal.close()
	budgets := []budget.Budget{{Amount: money.Max, Period: budget.Month, Zone: "Europe/Berlin"}, {Amount: money.Max, Period: budget.Month, Soft: true}}
	payer := books.Payer("team", "team", budgets, books.Payer("top", "top", budgets, nil))
	payer = books.Payer("key", "key", budgets, payer)
	for name, payer := range map[string]*budget.Payer{"held": payer, "free": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					h, err := payer.Hold(b.Context(), money.Dollar, time.Now())
					if err != nil {
						b.Error(err)
						return
					}
					c := newCall("0193500000007abc0193500000007abc")
					c.Charge, c.Balances = 1, h.Balances()
					if h.Active() {
						err = l.Hold(c, money.Dollar)
					}
					if err = errors.Join(err, l.Append(c)); err != nil {
						b.Error(err)
						return
					}
					h.Settle(1)
				}
			})
		})
	}
	if err := books.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
