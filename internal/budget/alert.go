package budget

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// Alert says that so much was spent of a budget that somebody should know.
type Alert struct {
	Owner     string // ID of a key or a team
	Name      string
	Budget    Budget
	Spent     money.Amount
	Threshold money.Amount // that it went over
	Window    time.Time    // when it begins; zero for a total
	Renews    time.Time    // zero for a total
}

// alertAll looks at all balances that something was booked to.
func (b *Books) alertAll(ctx context.Context, alert func(Alert)) error {
	b.mu.Lock()
	touched := b.touched
	b.touched = map[store.Balance]bool{}
	b.mu.Unlock()
	var failed error
	for balance := range touched {
		if failed == nil {
			failed = b.alertOne(ctx, balance, alert)
		}
		if failed != nil { // and all behind it are looked at again
			b.mu.Lock()
			b.touched[balance] = true
			b.mu.Unlock()
		}
	}
	return failed
}

// alertOne tells of the greatest threshold that a balance went over, unless
// that was told.
func (b *Books) alertOne(ctx context.Context, balance store.Balance, alert func(Alert)) error {
	b.mu.Lock()
	a := b.accounts[accountName{balance.Owner, balance.Period}]
	b.mu.Unlock()
	if a == nil {
		return nil // of a former process, or the budgets are gone
	}
	at, err := b.bank.Standing(ctx, balance)
	if err != nil {
		return err
	}
	over := slices.DeleteFunc(a.thresholds(), func(t threshold) bool { return t.amount > at.Spent || t.amount <= at.Alerted })
	if len(over) == 0 {
		return nil
	}
	most := slices.MaxFunc(over, func(x, y threshold) int { return cmp.Compare(x.amount, y.amount) })
	first, err := b.bank.RaiseAlert(ctx, balance, most.amount)
	if err != nil || !first {
		return err
	}
	told := Alert{Owner: balance.Owner, Name: a.name, Budget: most.budget, Spent: at.Spent, Threshold: most.amount}
	told.Window, told.Renews = windowOf(most.budget, balance)
	b.log.Warn("a budget was reached", "owner", told.Owner, "name", told.Name, "budget", told.Budget.String(), "spent", told.Spent.String(), "threshold", told.Threshold.String(), "renews", told.Renews)
	alert(told)
	return nil
}

// windowOf is the window of a balance of a budget.
func windowOf(of Budget, balance store.Balance) (begins, renews time.Time) {
	if balance.Window == 0 {
		return time.Time{}, time.Time{}
	}
	return of.Window(time.UnixMilli(balance.Window))
}

// Balance is how it stands with a budget.
type Balance struct {
	Budget
	Spent  money.Amount // as far as the store knows
	Held   money.Amount // for calls under way, and by other gateways to be spent
	Window time.Time    // when it began; zero for a total
	Renews time.Time    // zero for a total
}

// Balances is how it stands with the budgets of an owner, hard and soft, in the
// windows of now.
func (b *Books) Balances(ctx context.Context, owner string, budgets []Budget, now time.Time) ([]Balance, error) {
	list := make([]Balance, 0, len(budgets))
	for _, of := range budgets {
		balance := store.Balance{Owner: owner, Period: of.key()}
		begins, renews := of.Window(now)
		if !begins.IsZero() {
			balance.Window = begins.UnixMilli()
		}
		at, err := b.bank.Standing(ctx, balance)
		if err != nil {
			return nil, err
		}
		list = append(list, Balance{of, at.Spent, max(0, at.Leased-b.free(balance)), begins, renews})
	}
	return list, nil
}

// free is what this gateway has leased of a balance and not held.
func (b *Books) free(balance store.Balance) money.Amount {
	b.mu.Lock()
	l := b.leases[balance]
	b.mu.Unlock()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free
}
