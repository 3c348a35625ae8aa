package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

var (
	monthOfK = Balance{"k", "month@Europe/Berlin", 1730415600000}
	totalOfT = Balance{"t", "total", 0}
)

// charged is a call that pays from balances, out of the leases of a holder.
func charged(n int, charge money.Amount, holder string, balances ...Balance) Call {
	c := newCall(day0, n)
	c.Charge, c.Balances = charge, EncodeBalances(holder, balances)
	return c
}

func all(left money.Amount) money.Amount { return left }

func just(n money.Amount) func(money.Amount) money.Amount {
	return func(money.Amount) money.Amount { return n }
}

// wantBalance says how it stands with a balance, and with its leases, by holder:
// what is leased, and what was interrupted.
func wantBalance(t *testing.T, s *Store, b Balance, spent, leased money.Amount, leases map[string][2]money.Amount) {
	t.Helper()
	at, err := s.Standing(t.Context(), b)
	if err != nil || at.Balance != b || at.Spent != spent || at.Leased != leased {
		t.Errorf("it stands %+v, %v; want %d spent and %d leased", at, err, spent, leased)
	}
	got, err := leasesOf(t.Context(), s, b)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(leases) {
		t.Errorf("leases are %v, %v, want %v", got, err, leases)
	}
}

func leasesOf(ctx context.Context, s *Store, b Balance) (map[string][2]money.Amount, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT holder, amount, interrupted FROM leases WHERE owner = $1 AND period = $2 AND window_ms = $3", b.Owner, b.Period, b.Window)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	got := map[string][2]money.Amount{}
	for rows.Next() {
		var holder string
		var l [2]money.Amount
		if err := rows.Scan(&holder, &l[0], &l[1]); err != nil {
			return nil, err
		}
		got[holder] = l
	}
	return got, rows.Err()
}

func TestBalancesText(t *testing.T) {
	for text, want := range map[string][]Balance{
		"":  nil,
		"h": nil,
		"h\nk month@Europe/Berlin 1730415600000\nt total": {monthOfK, totalOfT},
		"h\nk day -86400000":                              {{"k", "day", -86400000}},
		"\nt total":                                       {totalOfT},
		"h\n\nnonsense\nt total\nk day x":                 {totalOfT, {"k", "day", 0}},
	} {
		holder, got := DecodeBalances(text)
		if !slices.Equal(got, want) || len(text) > 0 && text[0] == 'h' && holder != "h" {
			t.Errorf("%q is read as %q %v, want %v", text, holder, got, want)
		}
	}
	list := []Balance{monthOfK, totalOfT, {"k", "day", -1}}
	if holder, got := DecodeBalances(EncodeBalances("h", list)); holder != "h" || !slices.Equal(got, list) {
		t.Errorf("%v become %q %v", list, holder, got)
	}
	if text := EncodeBalances("h", nil); text != "" {
		t.Errorf("no balances are %q", text)
	}
}

// What is leased and spent is never more than the limit, and what is asked for
// beyond it is not given.
func TestTakeLease(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for _, step := range []struct {
			holder string
			limit  money.Amount
			choose func(money.Amount) money.Amount
			want   Lease
		}{
			{"a", 100, just(0), Lease{0, 0, 100}},
			{"a", 100, just(30), Lease{30, 30, 70}},
			{"b", 100, just(200), Lease{70, 70, 0}},
			{"a", 100, just(1), Lease{0, 30, 0}},
			{"a", 50, all, Lease{0, 30, -50}},
			{"a", 110, just(-5), Lease{0, 30, 10}},
			{"a", 110, all, Lease{10, 40, 0}},
			{"a", money.Max, all, Lease{money.Max - 110, money.Max - 70, 0}},
		} {
			got, err := s.TakeLease(t.Context(), step.holder, monthOfK, step.limit, step.choose)
			if err != nil || got != step.want {
				t.Errorf("%s of %d: %+v, %v, want %+v", step.holder, step.limit, got, err, step.want)
			}
		}
		wantBalance(t, s, monthOfK, 0, money.Max, map[string][2]money.Amount{"a": {money.Max - 70, 0}, "b": {70, 0}})
		wantBalance(t, s, totalOfT, 0, 0, map[string][2]money.Amount{})
	})
}

// A charge is paid by the lease of who made the call, once.
func TestCallsAreBooked(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		take := func(holder string, b Balance, n money.Amount) {
			t.Helper()
			if got, err := s.TakeLease(t.Context(), holder, b, 100, just(n)); err != nil || got.Taken != n {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		take("a", monthOfK, 40)
		take("b", monthOfK, 30)
		take("a", totalOfT, 20)
		batch := []Call{
			charged(1, 5, "a", monthOfK, totalOfT), charged(2, 7, "b", monthOfK), charged(1, 5, "a", monthOfK, totalOfT), // the first twice
			charged(3, 0, "a", monthOfK), charged(4, -9, "a", monthOfK), // nobody is given money
			charged(5, 3, "c", totalOfT), // without a lease
		}
		for range 2 {
			mustDo(t, s.AddCalls(t.Context(), batch))
			wantBalance(t, s, monthOfK, 12, 58, map[string][2]money.Amount{"a": {35, 0}, "b": {23, 0}})
			wantBalance(t, s, totalOfT, 8, 15, map[string][2]money.Amount{"a": {15, 0}})
		}
		// More than the lease: the rest is spent all the same.
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(6, 50, "b", monthOfK)}))
		wantBalance(t, s, monthOfK, 62, 35, map[string][2]money.Amount{"a": {35, 0}, "b": {0, 0}})
		// More than can be counted.
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(7, money.Max, "a", totalOfT), charged(8, money.Max, "a", totalOfT)}))
		wantBalance(t, s, totalOfT, money.Max, 0, map[string][2]money.Amount{"a": {0, 0}})
		if got, err := s.TakeLease(t.Context(), "a", totalOfT, money.Max, all); err != nil || got.Taken != 0 {
			t.Errorf("of nothing is taken %+v, %v", got, err)
		}
	})
}

// What a holder that was not heard of has leased is spent, until it tells what
// it did spend, or that it is over.
func TestInterruptedLeases(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for _, node := range []string{"a", "b"} {
			_, err := s.Beat(t.Context(), node, time.Hour)
			mustDo(t, err)
		}
		for _, holder := range []string{"a", "b", "never"} {
			_, err := s.TakeLease(t.Context(), holder, monthOfK, 100, just(30))
			mustDo(t, err)
		}
		interrupt := func(silence time.Duration, want int) {
			t.Helper()
			if n, err := s.InterruptLeases(t.Context(), silence); err != nil || n != want {
				t.Errorf("%d leases are interrupted, %v, want %d", n, err, want)
			}
		}
		interrupt(time.Hour, 1)
		wantBalance(t, s, monthOfK, 30, 60, map[string][2]money.Amount{"a": {30, 0}, "b": {30, 0}, "never": {0, 30}})
		mustDo(t, s.ForgetNode(t.Context(), "a"))
		interrupt(time.Hour, 1)
		interrupt(time.Hour, 0)
		wantBalance(t, s, monthOfK, 60, 30, map[string][2]money.Amount{"a": {0, 30}, "b": {30, 0}, "never": {0, 30}})

		// It tells after all, and goes on.
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(1, 10, "a", monthOfK)}))
		wantBalance(t, s, monthOfK, 60, 30, map[string][2]money.Amount{"a": {0, 20}, "b": {30, 0}, "never": {0, 30}})
		got, err := s.TakeLease(t.Context(), "a", monthOfK, 100, just(6))
		if err != nil || got != (Lease{6, 26, 4}) {
			t.Errorf("taken is %+v, %v", got, err)
		}
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(2, 22, "a", monthOfK)}))
		wantBalance(t, s, monthOfK, 62, 34, map[string][2]money.Amount{"a": {4, 0}, "b": {30, 0}, "never": {0, 30}})
		mustDo(t, s.ReturnLease(t.Context(), "never", monthOfK, 12))
		wantBalance(t, s, monthOfK, 50, 34, map[string][2]money.Amount{"a": {4, 0}, "b": {30, 0}, "never": {0, 18}})

		former, err := s.FormerLeases(t.Context(), "", "b")
		if err != nil || len(former) != 2 {
			t.Errorf("former leases are %v, %v", former, err)
		}
		mustDo(t, s.CloseLeases(t.Context(), append(former, former[0], Holding{"nobody", totalOfT})...))
		wantBalance(t, s, monthOfK, 32, 30, map[string][2]money.Amount{"b": {30, 0}})
		mustDo(t, s.ReturnLease(t.Context(), "b", monthOfK, 99)) // as far as it goes
		wantBalance(t, s, monthOfK, 32, 0, map[string][2]money.Amount{"b": {0, 0}})
		mustDo(t, s.ReturnLease(t.Context(), "nobody", monthOfK, 99))
		wantBalance(t, s, monthOfK, 32, 0, map[string][2]money.Amount{"b": {0, 0}})
	})
}

func TestFormerLeases(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for _, holder := range []string{"N-1", "N-2", "M-1", "NN-1"} {
			_, err := s.TakeLease(t.Context(), holder, totalOfT, 100, just(5))
			mustDo(t, err)
		}
		got, err := s.FormerLeases(t.Context(), "N-", "N-2")
		if want := []Holding{{"N-1", totalOfT}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	})
}

func TestNodes(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		for i, step := range []struct {
			node   string
			within time.Duration
			want   int
		}{{"a", time.Hour, 1}, {"a", time.Hour, 1}, {"b", time.Hour, 2}, {"c", -time.Hour, 0}} {
			if n, err := s.Beat(t.Context(), step.node, step.within); err != nil || n != step.want {
				t.Errorf("beat %d: %d nodes, %v, want %d", i, n, err, step.want)
			}
		}
		mustDo(t, s.ForgetNode(t.Context(), "a"))
		if n, err := s.Beat(t.Context(), "b", time.Hour); err != nil || n != 2 {
			t.Errorf("%d nodes, %v, want b and c", n, err)
		}
	})
}

// Of an amount is alerted once, and of a smaller one not after it.
func TestRaiseAlert(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(1, 50, "a", monthOfK)}))
		for i, step := range []struct {
			amount money.Amount
			want   bool
		}{{40, true}, {40, false}, {30, false}, {50, true}} {
			if first, err := s.RaiseAlert(t.Context(), monthOfK, step.amount); err != nil || first != step.want {
				t.Errorf("step %d: %v, %v", i, first, err)
			}
		}
		mustDo(t, s.AddCalls(t.Context(), []Call{charged(2, 5, "a", monthOfK)}))
		if at, err := s.Standing(t.Context(), monthOfK); err != nil || at.Alerted != 50 || at.Spent != 55 {
			t.Errorf("it stands %+v, %v", at, err)
		}
	})
}

func TestForgetBalances(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		later := monthOfK
		later.Window++
		for _, b := range []Balance{monthOfK, later, totalOfT} {
			_, err := s.TakeLease(t.Context(), "a", b, 100, just(5))
			mustDo(t, err)
		}
		mustDo(t, s.ForgetBalances(t.Context(), time.UnixMilli(later.Window)))
		wantBalance(t, s, monthOfK, 0, 0, map[string][2]money.Amount{})
		wantBalance(t, s, later, 0, 5, map[string][2]money.Amount{"a": {5, 0}})
		wantBalance(t, s, totalOfT, 0, 5, map[string][2]money.Amount{"a": {5, 0}})
	})
}

// Gateways that all change the same balances at once get in no one's way, and
// the sums agree with the calls and the leases.
func TestBalancesTogether(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		var balances []Balance
		for i := range 12 {
			balances = append(balances, Balance{fmt.Sprint("o", i), "day", 86400000})
		}
		const limit = 5000
		var mu sync.Mutex
		spent := map[Balance]money.Amount{}
		work := func(worker int) error {
			rnd := rand.New(rand.NewPCG(uint64(worker), 5))
			holder := fmt.Sprint("h", worker%3)
			some := func() []Balance {
				return []Balance{balances[rnd.IntN(12)], balances[rnd.IntN(12)], balances[rnd.IntN(12)]}
			}
			for i := range 40 {
				var err error
				switch rnd.IntN(6) {
				case 0, 1:
					_, err = s.TakeLease(t.Context(), holder, balances[rnd.IntN(12)], limit, just(money.Amount(rnd.IntN(300))))
				case 2:
					err = s.ReturnLease(t.Context(), holder, balances[rnd.IntN(12)], money.Amount(rnd.IntN(50)))
				case 3:
					var list []Holding
					for _, b := range some() {
						list = append(list, Holding{holder, b})
					}
					err = s.CloseLeases(t.Context(), list...)
				case 4:
					_, err = s.InterruptLeases(t.Context(), 0)
				default:
					var calls []Call
					for j := range 5 {
						of := slices.Compact(slices.SortedFunc(slices.Values(some()), Balance.Compare))
						c := charged(worker*10_000+i*10+j, money.Amount(rnd.IntN(40)), holder, of...)
						c.KeyID = of[0].Owner
						calls = append(calls, c)
						mu.Lock()
						for _, b := range of {
							spent[b] += c.Charge
						}
						mu.Unlock()
					}
					err = s.AddCalls(t.Context(), calls)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		for i := range 12 {
			mustDo(t, s.CreateKey(t.Context(), Key{ID: fmt.Sprint("o", i), Name: fmt.Sprint("o", i)}))
		}
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				if err := work(worker); err != nil {
					t.Errorf("worker %d: %v", worker, err)
				}
			})
		}
		wg.Wait()
		for _, b := range balances {
			leases, err := leasesOf(t.Context(), s, b)
			mustDo(t, err)
			var leased, interrupted money.Amount
			for _, l := range leases {
				leased, interrupted = leased+l[0], interrupted+l[1]
			}
			at, err := s.Standing(t.Context(), b)
			mustDo(t, err)
			if at.Leased != leased || at.Spent != spent[b]+interrupted {
				t.Errorf("%v has spent %d and leased %d; calls cost %d, leases are %d and %d", b, at.Spent, at.Leased, spent[b], leased, interrupted)
			}
		}
	})
}
