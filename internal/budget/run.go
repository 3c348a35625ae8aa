package budget

import (
	"context"
	"errors"
	"time"

	"github.com/limen-gateway/limen/internal/repeat"
	"github.com/limen-gateway/limen/internal/store"
)

const (
	lookEvery  = time.Second
	sweepEvery = 10 * time.Second
	tidyEvery  = 24 * time.Hour
	// askTime is how long the store has for what no call waits for.
	askTime = 10 * time.Second

	// idleTime is after how long without a call a lease goes back, so that
	// others can spend it.
	idleTime = 2 * time.Second
	// idleAlone is the same where nobody else could: it only spares memory.
	idleAlone = 10 * time.Minute

	// keptTime is how long balances are kept of windows that are over.
	keptTime = 400 * 24 * time.Hour
)

// Run keeps the leases of this process alive, gives those back that nobody
// uses, and interrupts those of gateways that are gone, until ctx ends. Each
// threshold that is crossed is told to alert once, by one of all gateways.
func (b *Books) Run(ctx context.Context, alert func(Alert)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.every(ctx, beatEvery, "this gateway cannot tell the store that it is there; calls with budgets are refused soon", b.beat)
	}()
	defer func() { <-done }()
	var swept, tidied time.Duration
	b.every(ctx, lookEvery, "budgets cannot be kept up in the store", func(ctx context.Context) error {
		var errs []error
		b.giveBackIdle()
		errs = append(errs, b.alertAll(ctx, alert))
		if now := b.since(); !b.alone && now-swept >= sweepEvery {
			n, err := b.bank.InterruptLeases(ctx, leaseTime)
			errs = append(errs, err)
			if n > 0 {
				b.log.Warn("a gateway is gone; what it may have spent of budgets counts as spent until it tells otherwise", "leases", n)
			}
			swept = now
		}
		if now := b.since(); tidied == 0 || now-tidied >= tidyEvery {
			err := b.bank.ForgetBalances(ctx, time.Now().Add(-keptTime))
			errs = append(errs, err)
			if err == nil {
				tidied = now
			}
		}
		return errors.Join(errs...)
	})
}

// every does something again and again until ctx ends. Failures are logged
// once until it goes well again.
func (b *Books) every(ctx context.Context, pause time.Duration, failure string, do func(context.Context) error) {
	ask := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		return do(ctx)
	}
	repeat.Every(ctx, pause, ask, func(err error) {
		if err != nil {
			b.log.Error(failure, "error", err)
		}
	})
}

// giveBackIdle gives back what nobody has used for a while. To a store that
// does not answer nothing is given: it would be lost for both.
func (b *Books) giveBackIdle() {
	now, idle := b.since(), idleTime
	if b.alone {
		idle = idleAlone
	} else if now-time.Duration(b.heard.Load()) > beatEvery+lookEvery {
		return
	}
	for _, l := range b.allLeases() {
		l.mu.Lock()
		if l.busy == nil && now-l.used >= idle {
			b.giveBack(l)
		}
		l.mu.Unlock()
	}
}

func (b *Books) allLeases() []*lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*lease, 0, len(b.leases))
	for _, l := range b.leases {
		list = append(list, l)
	}
	return list
}

// giveBack gives back what is free of a lease, and all of one that nothing is
// paid from. l.mu is held and nothing is under way. When it fails, the store
// has more of the lease than is known here.
func (b *Books) giveBack(l *lease) {
	n := l.free
	if l.quiet() {
		l.free = 0
		moves := l.moves
		b.begin(l, func(ctx context.Context) error {
			err := b.bank.CloseLeases(ctx, store.Holding{Holder: b.holder, Balance: l.balance})
			b.mu.Lock()
			defer b.mu.Unlock()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.used = b.since() // for another try
			if err == nil && l.moves == moves {
				l.gone = true
				delete(b.leases, l.balance)
			}
			return nil // who waits asks for a lease of its own
		})
		return
	}
	if n <= 0 {
		return
	}
	l.free = 0
	b.begin(l, func(ctx context.Context) error {
		b.bank.ReturnLease(ctx, b.holder, l.balance, n)
		return nil
	})
}

// Close gives back all leases whose calls are in the store. Nothing is held
// after it. What it leaves is given back by the next start.
func (b *Books) Close(ctx context.Context) error {
	b.starting.Lock()
	b.closed = true
	b.starting.Unlock()
	b.work.Wait()
	var list []store.Holding
	for _, l := range b.allLeases() {
		l.mu.Lock()
		if l.holds+l.unbooked == 0 { // a hold may have been recorded by the ledger, which was closed before
			list = append(list, store.Holding{Holder: b.holder, Balance: l.balance})
		}
		l.mu.Unlock()
	}
	if err := b.bank.CloseLeases(ctx, list...); err != nil || b.alone {
		return err
	}
	return b.bank.ForgetNode(ctx, b.holder)
}
