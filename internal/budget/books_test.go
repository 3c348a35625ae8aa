package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
	"github.com/limen-gateway/limen/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tempDir is a directory in memory, where there is one.
func tempDir(t *testing.T) string {
	t.Helper()
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "limen-")
	mustDo(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), tempDir(t), "")
	mustDo(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// onEach runs a test on SQLite and, where LIMEN_TEST_POSTGRES_URL names a
// server, on Postgres.
func onEach(t *testing.T, test func(t *testing.T, open func() *store.Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, func() *store.Store { return openStore(t) }) })
	t.Run("postgres", func(t *testing.T) {
		test(t, func() *store.Store {
			st, err := store.Open(t.Context(), "", storetest.Postgres(t))
			mustDo(t, err)
			t.Cleanup(func() { st.Close() })
			return st
		})
	})
}

// openBooks opens the books of a gateway.
func openBooks(t *testing.T, bank Bank, node string, alone bool) *Books {
	t.Helper()
	b := NewBooks(bank, node, alone, slog.New(slog.DiscardHandler))
	mustDo(t, b.Start(t.Context()))
	mustDo(t, b.CloseFormer(t.Context()))
	return b
}

// run runs books until the test is over.
func run(t *testing.T, b *Books, alert func(Alert)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx, alert) })
	return func() { cancel(); running.Wait() }
}

func parse(t *testing.T, texts ...string) (list []Budget) {
	t.Helper()
	for _, text := range texts {
		b, err := Parse(text)
		mustDo(t, err)
		list = append(list, b)
	}
	return list
}

// kindOf is the kind of a refusal, "" when there is none.
func kindOf(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err.Error()
	}
	return e.Kind.String()
}

// hold holds and fails the test when it cannot.
func hold(t *testing.T, p *Payer, amount money.Amount) *Hold {
	t.Helper()
	h, err := p.Hold(t.Context(), amount, time.Now())
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return h
}

// wantRefused wants a hold to be refused for want of money.
func wantRefused(t *testing.T, p *Payer, amount money.Amount, now time.Time) {
	t.Helper()
	if h, err := p.Hold(t.Context(), amount, now); kindOf(err) != "over_budget" {
		t.Errorf("held are %d, %v; want a refusal", h.Amount(), err)
	}
}

var calls atomic.Int64

// record books a call as the ledger does.
func record(t *testing.T, b *Books, h *Hold, charge money.Amount) {
	t.Helper()
	c := store.Call{ID: fmt.Sprintf("%032x", calls.Add(1)), Charge: charge, Balances: h.Balances(), Started: time.Now()}
	mustDo(t, b.AddCalls(t.Context(), []store.Call{c}))
}

// wantStands says what the store has of a total.
func wantStands(t *testing.T, st *store.Store, owner string, spent, leased money.Amount) {
	t.Helper()
	at, err := st.Standing(t.Context(), store.Balance{Owner: owner, Period: "total"})
	if err != nil || at.Spent != spent || at.Leased != leased {
		t.Errorf("of %s are spent %d and leased %d, %v; want %d and %d", owner, at.Spent, at.Leased, err, spent, leased)
	}
}

// Two hundred callers at once on a budget for ten: ten are served, whoever
// serves them.
func TestExactlyWhatFits(t *testing.T) {
	for name, gateways := range map[string]int{"one": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func() *store.Store) {
				st := open()
				var books []*Books
				for i := range gateways {
					books = append(books, openBooks(t, st, fmt.Sprint("g", i), gateways == 1))
				}
				for round := range 20 {
					var served atomic.Int64
					var wg sync.WaitGroup
					for _, b := range books {
						team := b.Payer(fmt.Sprint("t", round), "team", parse(t, "0.000000100/total"), nil)
						key := b.Payer(fmt.Sprint("k", round), "key", parse(t, "0.000000500/day"), team)
						for range 200 / gateways {
							wg.Go(func() {
								h, err := key.Hold(t.Context(), 10, time.Now())
								switch {
								case err == nil && h.Active():
									served.Add(1)
								case kindOf(err) != "over_budget":
									t.Errorf("%+v", err)
								}
							})
						}
					}
					wg.Wait()
					if n := served.Load(); n != 10 {
						t.Fatalf("%d calls were served, want 10", n)
					}
				}
				for _, b := range books {
					mustDo(t, b.Close(t.Context()))
				}
			})
		})
	}
}

// A call is paid by its key and by all teams above, or by none of them.
func TestAllOrNone(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	top := b.Payer("top", "top", parse(t, "0.000000100/total"), nil)
	left := b.Payer("left", "left", parse(t, "0.000000080/total"), top)
	right := b.Payer("right", "right", parse(t, "0.000000080/total", "0.000000050/day"), top)
	bare := b.Payer("bare", "bare", nil, left)

	first := hold(t, left, 70)
	wantRefused(t, left, 20, time.Now())
	wantRefused(t, bare, 20, time.Now())
	wantRefused(t, right, 40, time.Now()) // top has 30
	second := hold(t, bare, 10)
	third := hold(t, right, 20) // and nothing was kept of what was refused
	wantRefused(t, bare, 1, time.Now())
	first.Settle(5)
	first.Settle(70) // counts once
	hold(t, bare, 65).Settle(0)
	wantRefused(t, right, 31, time.Now()) // of its day
	second.Settle(30)                     // more than it held
	wantRefused(t, left, 46, time.Now())
	hold(t, left, 45)
	third.Settle(0)
	hold(t, right, 20)
	wantRefused(t, bare, 1, time.Now())
}

// What has no budget needs no store, no journal and no lock.
func TestWithoutBudgets(t *testing.T) {
	b := NewBooks(nil, "g", false, slog.New(slog.DiscardHandler)) // which the store has never heard of
	if p := b.Payer("k", "k", nil, nil); p != nil {
		t.Errorf("a payer without budgets is %v", p)
	}
	var none *Payer
	h, err := none.Hold(t.Context(), money.Max, time.Now())
	if h != nil || err != nil || h.Active() || h.Balances() != "" || h.Amount() != 0 || h.More(5) != nil {
		t.Errorf("held are %v, %v", h, err)
	}
	h.Settle(5)

	soft := b.Payer("k", "k", parse(t, "0.01/total soft", "0.02/month soft"), nil)
	h, err = soft.Hold(t.Context(), money.Max, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	if err != nil || h.Active() || h.More(money.Max) != nil {
		t.Fatalf("held are %v, %v", h, err)
	}
	if want := b.holder + "\nk total\nk month 1793491200000"; h.Balances() != want {
		t.Errorf("balances are %q, want %q", h.Balances(), want)
	}
	h.Settle(5)
}

// What costs nothing is never refused, and what is below zero gives nothing.
func TestAmountsThatAreNone(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	p := b.Payer("k", "k", parse(t, "0.000000010/total"), nil)
	hold(t, p, 10).Settle(15) // below zero now
	hold(t, p, 0).Settle(-50)
	hold(t, p, -50).Settle(0)
	wantRefused(t, p, 1, time.Now())
	wantRefused(t, p, money.Max, time.Now())
	over := b.Payer("k2", "k2", parse(t, "9223372036.854775807/total"), nil)
	one, other := hold(t, over, 1), hold(t, over, money.Max-1)
	one.Settle(money.Max)
	other.Settle(money.Max)
	wantRefused(t, over, 1, time.Now())
}

// A refusal says which budget it is, and when to come again.
func TestRefusal(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	for text, want := range map[string]string{
		"0/total":                "The budget of key ci, $0/total, does not have enough left for this request. It does not renew; ask the operator for more.",
		"0.5/month":              "The budget of key ci, $0.5/month, does not have enough left for this request. It renews at 2026-12-01T00:00:00Z.",
		"0.5/week@Europe/Berlin": "The budget of key ci, $0.5/week@Europe/Berlin, does not have enough left for this request. It renews at 2026-11-22T23:00:00Z.",
	} {
		p := b.Payer(text, "key ci", parse(t, text, "7/day soft"), nil)
		_, err := p.Hold(t.Context(), money.Dollar, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.OverBudget || !e.NoRetry || e.Message != want {
			t.Errorf("%s: %+v", text, err)
		}
	}
}

// More is held for a call that goes on, or it stays as it was.
func TestMore(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	p := b.Payer("k", "k", parse(t, "0.000000100/total"), nil)
	h := hold(t, p, 40)
	mustDo(t, h.More(30))
	if err := h.More(40); kindOf(err) != "over_budget" {
		t.Errorf("more is held: %v", err)
	}
	mustDo(t, h.More(0))
	if h.Amount() != 70 {
		t.Errorf("held are %d, want 70", h.Amount())
	}
	hold(t, p, 30)
	wantRefused(t, p, 1, time.Now())
	h.Settle(50)
	hold(t, p, 20)
	wantRefused(t, p, 1, time.Now())
}

// A window is granted once, however often the clock comes by, and a call is
// settled in the window in which it was held.
func TestClocksThatAreSet(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	p := b.Payer("k", "k", parse(t, "0.000000100/day"), nil)
	monday := time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)
	tuesday := monday.Add(time.Hour)
	at := func(now time.Time, amount money.Amount) *Hold {
		t.Helper()
		h, err := p.Hold(t.Context(), amount, now)
		mustDo(t, err)
		return h
	}
	early := at(monday, 60)
	at(tuesday, 80)
	wantRefused(t, p, 41, monday)
	at(monday, 40)
	wantRefused(t, p, 21, tuesday)
	early.Settle(10)
	wantRefused(t, p, 21, tuesday)
	at(monday, 50)
	wantRefused(t, p, 1, monday)
	record(t, b, early, 10)
	for day, spent := range map[time.Time]money.Amount{monday: 10, tuesday: 0} {
		list, err := b.Balances(t.Context(), "k", parse(t, "0.000000100/day"), day)
		if err != nil || list[0].Spent != spent || list[0].Window != day.Truncate(24*time.Hour) || list[0].Renews != list[0].Window.Add(24*time.Hour) {
			t.Errorf("it stands %+v, %v", list, err)
		}
	}
}

// A snapshot of keys does not change what was spent; a limit that is raised
// counts at once, and of one that is lowered what is free goes back.
func TestBudgetsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := openStore(t)
		b := openBooks(t, st, "g", true)
		payer := func(text string) *Payer { return b.Payer("k", "k", parse(t, text), nil) }
		p := payer("0.000000100/total")
		h := hold(t, p, 60)
		wantRefused(t, p, 41, time.Now())
		p = payer("0.000000100/total")
		wantRefused(t, p, 41, time.Now())
		p = payer("0.000000150/total")
		hold(t, p, 90).Settle(0)
		wantStands(t, st, "k", 0, 150)

		p = payer("0.000000080/total")
		wantRefused(t, p, 21, time.Now())
		wantStands(t, st, "k", 0, 60)
		hold(t, p, 20).Settle(0)
		wantStands(t, st, "k", 0, 80)

		p = payer("0.000000050/total")
		wantRefused(t, p, 1, time.Now())
		h.Settle(30)
		hold(t, p, 15).Settle(0) // it is this gateway's, and within the limit
		record(t, b, h, 30)
		time.Sleep(time.Minute)
		wantStands(t, st, "k", 30, 30)
		p = payer("0.000000049/total")
		wantRefused(t, p, 20, time.Now())
		hold(t, p, 19)
		wantStands(t, st, "k", 30, 19)

		// The same budget as a hint only.
		old := p
		soft := payer("0.000000049/total soft")
		hold(t, soft, money.Max)
		hold(t, old, 500) // a call that still has the old snapshot
		mustDo(t, b.Close(t.Context()))
	})
}

// faulty is a store that fails when it is asked to.
type faulty struct {
	*store.Store
	fail atomic.Bool
	lose atomic.Bool                   // what was done
	late atomic.Pointer[chan struct{}] // until when answers are kept back
}

var errAway = errors.New("the store is away")

func (f *faulty) TakeLease(ctx context.Context, holder string, b store.Balance, limit money.Amount, choose func(money.Amount) money.Amount) (store.Lease, error) {
	if f.fail.Load() {
		return store.Lease{}, errAway
	}
	l, err := f.Store.TakeLease(ctx, holder, b, limit, choose)
	if late := f.late.Load(); late != nil {
		<-*late
	}
	if f.lose.Load() {
		return store.Lease{}, errAway
	}
	return l, err
}

func (f *faulty) CloseLeases(ctx context.Context, list ...store.Holding) error {
	err := f.Store.CloseLeases(ctx, list...)
	if late := f.late.Load(); late != nil {
		<-*late
	}
	return err
}

func (f *faulty) Beat(ctx context.Context, node string, within time.Duration) (int, error) {
	if f.fail.Load() {
		return 0, errAway
	}
	return f.Store.Beat(ctx, node, within)
}

// While the store is away, calls with budgets go on as long as the lease has
// something for them and cannot be over.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &faulty{Store: openStore(t)}
		b := openBooks(t, st, "g", false)
		defer run(t, b, nil)()
		p := b.Payer("k", "k", parse(t, "0.000008000/total"), nil)
		soft := b.Payer("s", "s", parse(t, "1/total soft"), nil)
		held := hold(t, p, 10) // and a thousand is leased
		st.fail.Store(true)
		for range 8 {
			hold(t, p, 10).Settle(10)
			time.Sleep(time.Second)
		}
		for range 3 { // what goes back now would only be lost
			time.Sleep(10 * time.Second)
			hold(t, p, 10).Settle(10)
		}
		if _, err := p.Hold(t.Context(), 5000, time.Now()); kindOf(err) != "unavailable" {
			t.Errorf("more than is leased, from a store that is away: %v", err)
		}
		time.Sleep(10 * time.Second)
		for _, amount := range []money.Amount{1, 5000} {
			if _, err := p.Hold(t.Context(), amount, time.Now()); kindOf(err) != "unavailable" {
				t.Errorf("the lease may be over, and %d are held: %v", amount, err)
			}
		}
		hold(t, p, 0)
		hold(t, soft, 10)
		if err := held.More(10); kindOf(err) != "unavailable" {
			t.Errorf("the lease may be over, and more is held: %v", err)
		}
		st.fail.Store(false)
		time.Sleep(beatEvery)
		hold(t, p, 10)
	})
}

// A lease that was taken, and nobody was told, is found again.
func TestLostAnswer(t *testing.T) {
	for name, alone := range map[string]bool{"one": true, "several": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &faulty{Store: openStore(t)}
				b := openBooks(t, st, "g", alone)
				p := b.Payer("k", "k", parse(t, "0.000000010/total"), nil)
				st.lose.Store(true)
				if _, err := p.Hold(t.Context(), 10, time.Now()); kindOf(err) != "unavailable" {
					t.Errorf("the answer was lost: %v", err)
				}
				st.lose.Store(false)
				hold(t, p, 10)
				wantStands(t, st.Store, "k", 0, 10)
			})
		})
	}
}

// While an answer of the store is under way, calls that need no more go on, and
// what they cost is not forgotten when it comes.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &faulty{Store: openStore(t)}
		b := openBooks(t, st, "g", false)
		p := b.Payer("k", "k", parse(t, "0.000000080/total"), nil)
		hold(t, p, 1).Settle(0) // ten are leased
		late := make(chan struct{})
		st.late.Store(&late)
		big := make(chan *Hold)
		go func() {
			h, err := p.Hold(context.Background(), 20, time.Now())
			if err != nil {
				t.Error(err)
			}
			big <- h
		}()
		synctest.Wait()
		small := hold(t, p, 5)
		small.Settle(5)
		record(t, b, small, 5)
		st.late.Store(nil)
		close(late)
		<-big
		n := 0
		for ; ; n++ {
			if _, err := p.Hold(t.Context(), 5, time.Now()); err != nil {
				break
			}
		}
		if n != 11 {
			t.Errorf("%d more calls of 5 are served, want 11: of 80 are 5 spent and 20 held", n)
		}
	})
}

// A call that comes while a lease goes back, and needs nothing of it yet, can
// hold more later.
func TestMoreOfWhatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &faulty{Store: openStore(t)}
		b := openBooks(t, st, "g", false)
		p := b.Payer("k", "k", parse(t, "0.000000080/total"), nil)
		hold(t, p, 1).Settle(0)
		late := make(chan struct{})
		st.late.Store(&late)
		time.Sleep(idleTime)
		b.giveBackIdle()
		synctest.Wait()
		h := hold(t, p, 0)
		st.late.Store(nil)
		close(late)
		synctest.Wait()
		mustDo(t, h.More(80))
		wantStands(t, st.Store, "k", 0, 80)
	})
}

// What nobody has used for a while goes back, so that another gateway can spend
// it; and all of it when nothing is paid from it any more.
func TestIdleLeasesGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := openStore(t)
		a, b := openBooks(t, st, "a", false), openBooks(t, st, "b", false)
		stopA, stopB := run(t, a, func(Alert) {}), run(t, b, func(Alert) {})
		defer stopA()
		defer stopB()
		budgets := parse(t, "0.000000800/total")
		one, other := a.Payer("k", "k", budgets, nil), b.Payer("k", "k", budgets, nil)
		h := hold(t, one, 10)
		wantStands(t, st, "k", 0, 100)
		wantRefused(t, other, 701, time.Now())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantStands(t, st, "k", 0, 10)
		big := hold(t, other, 790)
		wantRefused(t, one, 1, time.Now())
		h.Settle(4)
		time.Sleep(5 * time.Second)
		wantStands(t, st, "k", 0, 794) // its end is not in the store yet
		record(t, a, h, 4)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantStands(t, st, "k", 4, 790)
		big.Settle(0)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantStands(t, st, "k", 4, 0)
		hold(t, one, 796)
		if a.Nodes() != 2 || b.Nodes() != 2 {
			t.Errorf("there are %d and %d nodes, want 2", a.Nodes(), b.Nodes())
		}
	})
}

// Where there is plenty, a lease is made greater before calls have to wait.
func TestRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &faulty{Store: openStore(t)}
		b := openBooks(t, st, "g", false)
		p := b.Payer("k", "k", parse(t, "0.000008000/total"), nil)
		for range 51 { // of a hundred
			hold(t, p, 10)
		}
		synctest.Wait()
		wantStands(t, st.Store, "k", 0, 1000+870)
		st.fail.Store(true)
		for range 136 {
			hold(t, p, 10)
		}
		if _, err := p.Hold(t.Context(), 10, time.Now()); kindOf(err) != "unavailable" {
			t.Errorf("there is more than was leased: %v", err)
		}
		st.fail.Store(false)
		scarce := b.Payer("s", "s", parse(t, "0.000000160/total"), nil)
		hold(t, scarce, 10)
		hold(t, scarce, 10)
		synctest.Wait()
		wantStands(t, st.Store, "s", 0, 20) // what is left is for those who need it
	})
}

// What a gateway that is gone had leased counts as spent. Its successor gives
// back what was not.
func TestGatewayGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := openStore(t)
		gone, here := openBooks(t, st, "a", false), openBooks(t, st, "b", false)
		stop := run(t, here, func(Alert) {})
		defer stop()
		budgets := parse(t, "0.000000800/total")
		h := hold(t, gone.Payer("k", "k", budgets, nil), 10)
		p := here.Payer("k", "k", budgets, nil)
		time.Sleep(leaseTime + 2*sweepEvery)
		synctest.Wait()
		wantStands(t, st, "k", 100, 0)
		wantRefused(t, p, 701, time.Now())
		if here.Nodes() != 1 {
			t.Errorf("there are %d nodes, want 1", here.Nodes())
		}
		next := NewBooks(st, "a", false, slog.New(slog.DiscardHandler))
		mustDo(t, next.Start(t.Context()))
		record(t, next, h, 7) // from the journal
		wantStands(t, st, "k", 100, 0)
		if _, err := next.Payer("k", "k", budgets, nil).Hold(t.Context(), 701, time.Now()); kindOf(err) != "unavailable" {
			t.Errorf("it is not known yet what is left: %v", err)
		}
		mustDo(t, next.CloseFormer(t.Context()))
		wantStands(t, st, "k", 7, 0)
		time.Sleep(poorTime)
		hold(t, p, 701)
	})
}

// A gateway that ends gives back its leases, but for those of calls that the
// store has not heard of: the next process does.
func TestClose(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	for _, owner := range []string{"done", "unbooked", "open"} {
		h := hold(t, b.Payer(owner, owner, parse(t, "0.000000100/total"), nil), 10)
		if owner == "open" {
			continue
		}
		h.Settle(4)
		if owner == "done" {
			record(t, b, h, 4)
		}
	}
	mustDo(t, b.Close(t.Context()))
	wantStands(t, st, "done", 4, 0)
	wantStands(t, st, "unbooked", 0, 100)
	wantStands(t, st, "open", 0, 100)
	if _, err := b.Payer("k", "k", parse(t, "1/total"), nil).Hold(t.Context(), 1, time.Now()); kindOf(err) != "unavailable" {
		t.Errorf("held after the end: %v", err)
	}
	mustDo(t, openBooks(t, st, "g", true).Close(t.Context()))
	wantStands(t, st, "unbooked", 0, 0)
	wantStands(t, st, "open", 0, 0)
}

// A client that leaves does not wait for the store.
func TestClientLeaves(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := b.Payer("k", "k", parse(t, "0.000000100/total"), nil)
	if _, err := p.Hold(ctx, 10, time.Now()); err != nil && kindOf(err) != "client_closed" {
		t.Errorf("the client left: %v", err)
	}
	hold(t, p, 90)
}

// Each threshold is told of once, by one gateway; of several that are crossed at
// once, the greatest.
func TestAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := openStore(t)
		var mu sync.Mutex
		var told []string
		alert := func(a Alert) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%s %s: %s at %d of %d, %s to %s", a.Owner, a.Name, a.Budget, a.Spent, a.Threshold, a.Window.UTC().Format(time.DateOnly), a.Renews.UTC().Format(time.DateOnly)))
		}
		var books []*Books
		var payers []*Payer
		for _, node := range []string{"a", "b", "c"} {
			b := openBooks(t, st, node, false)
			defer run(t, b, alert)()
			team := b.Payer("t", "team x", parse(t, "0.000000500/total soft"), nil)
			books, payers = append(books, b), append(payers, b.Payer("k", "key x", parse(t, "0.000001000/month", "0.000000200/month soft", "0.000000300/month soft"), team))
		}
		spend := func(charge money.Amount, want ...string) {
			t.Helper()
			told = nil
			for i, p := range payers {
				h, err := p.Hold(t.Context(), 0, time.Now())
				mustDo(t, err)
				h.Settle(charge)
				record(t, books[i], h, charge)
			}
			time.Sleep(2 * lookEvery)
			synctest.Wait()
			slices.Sort(told)
			if strings.Join(told, "\n") != strings.Join(want, "\n") {
				t.Errorf("told is\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
			}
		}
		spend(66)
		spend(1, "k key x: 0.0000002/month soft at 201 of 200, 2000-01-01 to 2000-02-01")
		spend(30)
		spend(110,
			"k key x: 0.0000003/month soft at 621 of 300, 2000-01-01 to 2000-02-01",
			"t team x: 0.0000005/total soft at 621 of 500, 0001-01-01 to 0001-01-01")
		spend(60, "k key x: 0.000001/month at 801 of 800, 2000-01-01 to 2000-02-01")
		spend(66)
		spend(1, "k key x: 0.000001/month at 1002 of 1000, 2000-01-01 to 2000-02-01")
		spend(100)
	})
}

// How it stands with budgets, as operators see it: what this gateway could
// spend and does not is not held.
func TestBalances(t *testing.T) {
	st := openStore(t)
	b := openBooks(t, st, "g", true)
	budgets := parse(t, "0.000000100/total", "0.000000050/total soft", "0.000000070/week")
	p := b.Payer("k", "k", budgets, nil)
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	h, err := p.Hold(t.Context(), 30, now)
	mustDo(t, err)
	if _, err := p.Hold(t.Context(), 20, now); err != nil {
		t.Fatal(err)
	}
	h.Settle(10)
	record(t, b, h, 10)
	got, err := b.Balances(t.Context(), "k", budgets, now)
	mustDo(t, err)
	monday := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	want := []Balance{
		{budgets[0], 10, 20, time.Time{}, time.Time{}},
		{budgets[1], 10, 20, time.Time{}, time.Time{}},
		{budgets[2], 10, 20, monday, monday.AddDate(0, 0, 7)},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got, err := b.Balances(t.Context(), "nobody", budgets[:1], now); err != nil || got[0].Spent != 0 || got[0].Held != 0 {
		t.Errorf("of nobody: %v, %v", got, err)
	}
}
