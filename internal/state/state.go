// Package state keeps what outlives one call of Responses: the turns that
// clients go on from, and conversations. A turn is opened before its call and
// committed before the client is told that it is over, so that the next one can
// begin at once, on every replica.
//
// Of what a provider keeps itself, there is only whose it is.
//
// Everything belongs to the client key that made it. Another key's IDs are as
// unknown as those that were never given out.
package state

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/lru"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/store"
)

// Settings are what a reload of the configuration may change.
type Settings struct {
	Retention time.Duration // how long a turn is kept
	MaxBytes  int64         // of all that is kept; the oldest goes first
}

// Keeper opens and commits turns. It is safe for concurrent use.
type Keeper struct {
	store    *store.Store
	box      seal.Box
	pasts    *lru.Cache[lineKey, past]
	settings atomic.Pointer[Settings]
	alone    bool   // no other process has the store
	runner   string // this process
	begun    time.Time

	mu     sync.Mutex
	runs   map[*Turn]struct{} // in the background, here
	locked map[*Turn]struct{} // that hold a conversation
}

// lineKey is a thread in the store.
type lineKey struct{ owner, thread string }

// pastsLimit is how much of what is kept stays in memory, in bytes.
const pastsLimit = 64 << 20

// New makes a keeper that closes what it keeps with a key of [seal.KeySize] bytes.
// alone says that no other process has the store. Apply must be called before
// it is used.
func New(st *store.Store, key []byte, alone bool) (*Keeper, error) {
	b, err := seal.NewBox(key)
	if err != nil {
		return nil, err
	}
	return &Keeper{
		store: st, box: b, pasts: lru.New[lineKey, past](pastsLimit),
		alone: alone, runner: rand.Text(), begun: time.Now(), runs: map[*Turn]struct{}{}, locked: map[*Turn]struct{}{},
	}, nil
}

// Apply makes settings count from now on.
func (k *Keeper) Apply(s *Settings) { k.settings.Store(s) }

// away is the failure of a store that cannot be asked.
func away(err error) error {
	return &llm.Error{Kind: llm.Unavailable, RetryAfter: 2 * time.Second, Err: err,
		Message: "What this request goes on from cannot be read now. Please try again in 2s, or send the whole history in 'input'."}
}

// past is what a turn saw that saw the first length items of a thread.
func (k *Keeper) past(ctx context.Context, owner, thread string, length int64) (past, error) {
	if p, ok := k.pasts.Get(lineKey{owner, thread}); ok && p.length >= int(length) {
		return past{p.line, int(length)}, nil
	}
	return k.read(ctx, owner, thread, length)
}

// read is past for what is not in memory.
func (k *Keeper) read(ctx context.Context, owner, thread string, length int64) (past, error) {
	kept, err := k.store.Items(ctx, owner, thread, 0, length)
	if err != nil {
		return past{}, away(err)
	}
	l := &line{calls: map[string]span{}}
	for _, it := range kept {
		own, err := k.item(owner, it)
		if err != nil {
			return past{}, err
		}
		l.add(own)
	}
	return past{l, len(l.ends)}, nil
}

// item opens a kept item.
func (k *Keeper) item(owner string, kept store.Item) (item, error) {
	json, err := k.box.Open(nil, owner, kept.Body)
	if err != nil {
		return item{}, err
	}
	it, _, err := readItem(json, 0, nil)
	it.id = kept.ID
	return it, err
}

// remember keeps in memory what is in a thread. The line may go on with what
// is not: turns that nobody wants stored, and those of other threads.
func (k *Keeper) remember(owner, thread string, p past) {
	k.pasts.Put(lineKey{owner, thread}, p, p.line.size())
}

// sweepEvery is how often what is over its time is looked for.
const sweepEvery = 10 * time.Minute

// Run deletes what is over its time, and the oldest of what is too much, and
// looks after the runs in the background, until ctx ends.
func (k *Keeper) Run(ctx context.Context, log *slog.Logger) {
	if k.alone { // what ran and was locked in the store was so in a process before
		k.markStale(ctx, k.begun.Add(store.RunnerGone), log)
		k.unlockStale(ctx, log)
	}
	sweep, touch := time.NewTicker(sweepEvery), time.NewTicker(touchEvery)
	defer sweep.Stop()
	defer touch.Stop()
	k.sweep(ctx, log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-touch.C:
			k.touch(ctx, log)
		case <-sweep.C:
			k.sweep(ctx, log)
		}
	}
}

func (k *Keeper) sweep(ctx context.Context, log *slog.Logger) {
	if _, err := k.store.Sweep(ctx, time.Now(), k.settings.Load().MaxBytes); err != nil && ctx.Err() == nil {
		log.Warn("stored responses that are over their time could not be deleted", "error", err)
	}
}

// unknown is the miss of an object that a request goes on from.
func unknown(what, id, param string) error {
	e := llm.InvalidParam("previous_response_not_found", param, "%s with id '%s' not found.", what, clip(id))
	return e
}

// notFound is the miss of an object that a request is about.
func notFound(what, id string) error {
	return llm.Errorf(llm.NotFound, "%s with id '%s' not found.", what, clip(id))
}

// clip bounds what is repeated of an ID that a client made up.
func clip(id string) string {
	if len(id) > 100 {
		return id[:100] + "…"
	}
	return id
}

func missing(err error) bool { return errors.Is(err, store.ErrNotFound) }
