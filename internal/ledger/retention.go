package ledger

import (
	"context"
	"time"

	"github.com/limen-gateway/limen/internal/store"
)

// Retention bounds the records that are kept. What they add up to stays.
type Retention struct {
	Age      time.Duration
	MaxBytes int64 // the oldest go first
}

// Apply makes a retention count from now on.
func (l *Ledger) Apply(r *Retention) { l.retention.Store(r) }

const (
	// sweepEvery is how often records that are over their time are looked for.
	sweepEvery = 10 * time.Minute
	// youngest is how old a record is at least when it goes: what the journal
	// still has would be counted again after a crash.
	youngest = time.Hour
	// dropAtOnce bounds what is deleted in one go: others wait for it.
	dropAtOnce = 500
)

// Sweep deletes records of a store that are over their time, and the oldest of
// those that are too many, until ctx ends. Apply must have been called before.
func (l *Ledger) Sweep(ctx context.Context, st *store.Store) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := l.sweep(ctx, st, time.Now()); err != nil && ctx.Err() == nil {
			l.log.Warn("records of calls that are over their time could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep first sees that no file of the journal has what goes.
func (l *Ledger) sweep(ctx context.Context, st *store.Store, now time.Time) error {
	if err := l.journal.turn(); err != nil {
		return err
	}
	if err := l.Drain(ctx); err != nil {
		return err
	}
	r := l.retention.Load()
	before := now.Add(-r.Age)
	full, err := st.FullSince(ctx, r.MaxBytes)
	if err != nil {
		return err
	}
	if full.After(before) {
		before = full
	}
	if latest := now.Add(-youngest); before.After(latest) {
		before = latest
	}
	for {
		n, err := st.DropCalls(ctx, before, dropAtOnce)
		if err != nil || n < dropAtOnce {
			return err
		}
	}
}
