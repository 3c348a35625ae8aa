package budget

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// Payer is who pays for calls: an owner with its budgets, and those that its
// parents have. A nil Payer has none. It is immutable.
type Payer struct {
	books   *Books
	periods []period
	last    atomic.Pointer[span]
}

// period is an account of a payer and by what its windows are found.
type period struct {
	name   accountName
	budget Budget
	hard   bool
}

// Payer makes the payer of an owner with budgets, which pays from those of its
// parent too. name is what clients and operators know the owner by. It is nil
// when there are no budgets. What was spent does not hang on it: payers of one
// owner share it, from one snapshot to the next.
func (b *Books) Payer(owner, name string, budgets []Budget, parent *Payer) *Payer {
	p := &Payer{books: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keysOf(budgets) {
		fresh := accountOf(name, key, budgets)
		at := accountName{owner, key}
		b.change(at, fresh)
		of := fresh.budget
		if !fresh.hard {
			of = fresh.soft[0]
		}
		p.periods = append(p.periods, period{at, of, fresh.hard})
	}
	if parent != nil {
		p.periods = append(p.periods, parent.periods...)
	}
	if len(p.periods) == 0 {
		return nil
	}
	return p
}

// Limited reports whether a call can be refused because too much was spent.
func (p *Payer) Limited() bool {
	return p != nil && slices.ContainsFunc(p.periods, func(of period) bool { return of.hard })
}

// keysOf lists the periods of budgets, each once.
func keysOf(budgets []Budget) (keys []string) {
	for _, of := range budgets {
		if key := of.key(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// accountOf makes an account of those budgets that have a key.
func accountOf(name, key string, budgets []Budget) *account {
	a := &account{name: name}
	for _, of := range budgets {
		switch {
		case of.key() != key:
		case of.Soft:
			a.soft = append(a.soft, of)
		case !a.hard || of.Amount < a.budget.Amount:
			a.budget, a.hard = of, true
		}
	}
	return a
}

// change makes an account count; b.mu is held. Of a hard budget that was
// lowered, what this gateway has leased goes back.
func (b *Books) change(name accountName, fresh *account) {
	old := b.accounts[name]
	b.accounts[name] = fresh
	if old == nil || old.hard == fresh.hard && old.budget.Amount == fresh.budget.Amount {
		return
	}
	lowered := old.hard && (!fresh.hard || fresh.budget.Amount < old.budget.Amount)
	for balance, l := range b.leases {
		if balance.Owner == name.owner && balance.Period == name.period {
			b.refit(l, lowered)
		}
	}
}

// span is what a payer pays from while none of its windows changes.
type span struct {
	from, until int64    // Unix ms
	leases      []*lease // of the hard budgets, in the order in which they are locked
	text        string   // of all budgets, for the records
}

// at is the span of a time.
func (p *Payer) at(now time.Time) *span {
	ms := now.UnixMilli()
	if s := p.last.Load(); s != nil && s.from <= ms && ms < s.until {
		return s
	}
	s := p.spanOf(now)
	p.last.Store(s)
	return s
}

func (p *Payer) spanOf(now time.Time) *span {
	s := &span{from: math.MinInt64, until: math.MaxInt64}
	balances := make([]store.Balance, len(p.periods))
	p.books.mu.Lock()
	defer p.books.mu.Unlock()
	for i, of := range p.periods {
		balance := store.Balance{Owner: of.name.owner, Period: of.name.period}
		if begins, renews := of.budget.Window(now); !begins.IsZero() {
			balance.Window = begins.UnixMilli()
			s.from, s.until = max(s.from, begins.UnixMilli()), min(s.until, renews.UnixMilli())
		}
		balances[i] = balance
		if of.hard {
			s.leases = append(s.leases, p.books.lease(balance))
		}
	}
	slices.SortFunc(s.leases, func(a, b *lease) int { return cmp.Compare(a.number, b.number) })
	s.leases = slices.Compact(s.leases)
	s.text = store.EncodeBalances(p.books.holder, balances)
	return s
}

// Hold holds, of all hard budgets of a payer, what a call may cost. All of them
// have it or none: then the error says which does not, and when it begins anew.
// The window is that of now. The hold is to be settled, once; it may be nil,
// which is a hold that holds nothing.
func (p *Payer) Hold(ctx context.Context, amount money.Amount, now time.Time) (*Hold, error) {
	if p == nil {
		return nil, nil
	}
	h := &Hold{books: p.books, amount: max(amount, 0)}
	for {
		h.span = p.at(now)
		err := p.books.hold(ctx, h.span, h.amount, 1)
		if err == errGone {
			p.last.Store(nil)
			continue
		}
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// Hold is what a call may still cost. A nil Hold holds nothing.
type Hold struct {
	books   *Books
	span    *span
	amount  money.Amount
	settled atomic.Bool
}

// Active reports whether something is held: then the hold is to be journaled.
func (h *Hold) Active() bool { return h != nil && len(h.span.leases) > 0 }

// Balances is what the record of the call has to say of who pays for it.
func (h *Hold) Balances() string {
	if h == nil {
		return ""
	}
	return h.span.text
}

// Amount is how much is held.
func (h *Hold) Amount() money.Amount {
	if h == nil {
		return 0
	}
	return h.amount
}

// More holds more for the same call, or fails and leaves it as it was. It is
// not called at the same time as itself or Settle.
func (h *Hold) More(amount money.Amount) error {
	if !h.Active() || amount <= 0 {
		return nil
	}
	if err := h.books.hold(context.Background(), h.span, amount, 0); err != nil {
		return err
	}
	h.amount = h.amount.Plus(amount)
	return nil
}

// Settle ends the hold: the call cost charge, which may be more than was held.
// The record of the call says the same. Only the first time counts.
func (h *Hold) Settle(charge money.Amount) {
	if !h.Active() || h.settled.Swap(true) {
		return
	}
	charge = max(charge, 0)
	for _, l := range h.span.leases {
		l.settle(h.amount, charge)
	}
}

// spent is the refusal of a call that a budget does not have enough for.
func (b *Books) spent(l *lease) error {
	b.mu.Lock()
	a := b.accounts[accountName{l.balance.Owner, l.balance.Period}]
	b.mu.Unlock()
	renewal := "It does not renew; ask the operator for more."
	if a.budget.Period != Total {
		_, renews := a.budget.Window(time.UnixMilli(l.balance.Window))
		renewal = "It renews at " + renews.UTC().Format(time.RFC3339) + "."
	}
	return &llm.Error{
		Kind: llm.OverBudget, NoRetry: true,
		Message: fmt.Sprintf("The budget of %s, $%s, does not have enough left for this request. %s", a.name, a.budget, renewal),
	}
}

// unknown is the refusal of a call that may or may not be paid for.
func unknown(err error) error {
	return &llm.Error{
		Kind: llm.Unavailable, RetryAfter: 2 * time.Second, Err: err,
		Message: "The budget of this request cannot be checked now. Please try again in 2s.",
	}
}
