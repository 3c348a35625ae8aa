package budget

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// lease is what this gateway may spend of one balance. What the store has of
// it is never less than what is free and held here, and spent here and not yet
// booked there. It may be more, after an answer of the store that was lost:
// that is found again when nothing is held or waits to be booked.
type lease struct {
	balance store.Balance
	number  uint64 // leases are locked in this order

	mu       sync.Mutex
	free     money.Amount // below zero when calls cost more than they held
	held     money.Amount
	holds    int           // that are not settled
	unbooked int           // settled, with a charge that is not known to be in the store
	moves    uint64        // counts what changes free, but for the store
	slice    money.Amount  // that was taken last
	used     time.Duration // when something was last held
	busy     *operation    // with the store; nil when there is none
	poor     time.Duration // until when the store is not asked for more than left
	left     money.Amount
	gone     bool // another is made in its place
}

// operation is something that is done with a lease at the store.
type operation struct {
	done chan struct{} // closed at its end
	err  error         // good from then on
}

const (
	// takeTime is how long a call waits for a lease, and the store has for one.
	takeTime = 2 * time.Second
	// poorTime is for how long it is believed that no more can be had.
	poorTime = time.Second
	// shares is into how many parts what is left of a budget is taken where
	// several gateways spend it.
	shares = 8
)

// errGone is a lease that was given back: another has to be made.
var errGone = errors.New("budget: the lease is gone")

// lease returns the lease of a balance; b.mu is held.
func (b *Books) lease(balance store.Balance) *lease {
	l := b.leases[balance]
	if l == nil {
		b.made++
		l = &lease{balance: balance, number: b.made, used: b.since(), poor: -1}
		b.leases[balance] = l
	}
	return l
}

// hold takes an amount from all leases of a span, or from none.
func (b *Books) hold(ctx context.Context, s *span, amount money.Amount, holds int) error {
	if len(s.leases) == 0 {
		return nil
	}
	if amount > 0 && b.fenced() {
		return unknown(errors.New("budget: the store has not answered for too long"))
	}
	lacking, err := s.place(b, amount, holds)
	if lacking == nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	for lacking != nil {
		op, refused := b.fund(lacking, amount)
		if refused {
			return b.refusal(lacking)
		}
		select {
		case <-op.done:
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return &llm.Error{Kind: llm.Canceled, Message: "The client left.", Err: err}
			}
			return unknown(waiting.Err())
		}
		if op.err != nil {
			return unknown(op.err)
		}
		lacking, err = s.place(b, amount, holds)
	}
	return err
}

func (b *Books) refusal(l *lease) error {
	if !b.ready.Load() {
		return unknown(errors.New("budget: what a former process had leased is not settled yet"))
	}
	return b.spent(l)
}

// place takes an amount from all leases, or names one that lacks it.
func (s *span) place(b *Books, amount money.Amount, holds int) (lacking *lease, err error) {
	for _, l := range s.leases {
		l.mu.Lock()
	}
	lacking, err = s.placeLocked(b, amount, holds)
	for _, l := range s.leases {
		l.mu.Unlock()
	}
	return lacking, err
}

func (s *span) placeLocked(b *Books, amount money.Amount, holds int) (lacking *lease, err error) {
	for _, l := range s.leases {
		if l.gone {
			return nil, errGone
		}
		if amount > 0 && l.free < amount {
			return l, nil
		}
	}
	now := b.since()
	for _, l := range s.leases {
		l.free -= amount
		l.held += amount
		l.holds += holds
		l.moves++
		l.used = now
		if l.busy == nil && !b.alone && l.free < l.slice/2 && l.slice > amount {
			b.take(l, amount, 2*shares*amount) // before anybody waits for it, and only where there is plenty
		}
	}
	return nil, nil
}

// settle ends a hold.
func (l *lease) settle(held, charge money.Amount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= held
	l.free = l.free.Plus(held).Minus(charge)
	l.holds--
	l.moves++
	if charge > 0 {
		l.unbooked++
	}
}

// fund has more leased, or refuses.
func (b *Books) fund(l *lease, amount money.Amount) (op *operation, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy != nil {
		return l.busy, false
	}
	need := amount.Minus(l.free)
	if need > l.left && b.since() < l.poor {
		return nil, true
	}
	return b.take(l, amount, need), false
}

// take begins to take more from the store; l.mu is held and nothing is under
// way.
func (b *Books) take(l *lease, amount, need money.Amount) *operation {
	choose := func(left money.Amount) money.Amount { return b.choose(left, amount, need) }
	moves := l.moves
	return b.begin(l, func(ctx context.Context) error {
		got, err := b.bank.TakeLease(ctx, b.holder, l.balance, b.limit(l.balance), choose)
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = l.free.Plus(got.Taken)
		if l.quiet() && l.moves == moves { // it was all the time, and the store knows better
			l.free = got.Total
		}
		l.slice = got.Taken
		l.left = got.Left
		l.poor = b.since() + poorTime
		return nil
	})
}

// choose is how much is taken of what is left. Who is alone takes all. Several
// take parts, in steps of what a call holds: with calls that hold the same,
// nobody is left with something that is too little for a call.
func (b *Books) choose(left, amount, need money.Amount) money.Amount {
	switch {
	case left < need:
		return 0
	case b.alone:
		return left
	case left < amount:
		return need
	}
	return amount * max(1, left/shares/amount)
}

// quiet reports whether all that the store has of the lease is free.
func (l *lease) quiet() bool { return l.holds == 0 && l.unbooked == 0 }

// limit is the amount of the hard budget of a balance. A payer may be older
// than the change by which there is none.
func (b *Books) limit(of store.Balance) money.Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[accountName{of.Owner, of.Period}]
	if !a.hard {
		return money.Max
	}
	return a.budget.Amount
}

// begin does something with a lease at the store, one thing at a time; l.mu is
// held.
func (b *Books) begin(l *lease, do func(context.Context) error) *operation {
	op := &operation{done: make(chan struct{})}
	b.starting.Lock()
	defer b.starting.Unlock()
	if b.closed {
		op.err = errors.New("budget: the books are closed")
		close(op.done)
		return op
	}
	l.busy = op
	b.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), takeTime)
		defer cancel()
		op.err = do(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy = nil
		close(op.done)
	})
	return op
}

// refit makes a lease fit a limit that changed; b.mu is held.
func (b *Books) refit(l *lease, lowered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poor = -1
	if !lowered {
		return
	}
	l.used = -idleAlone // when it cannot go back now, it does as idle
	if l.busy == nil {
		b.giveBack(l)
	}
}
