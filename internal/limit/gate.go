// Package limit bounds how much is under way at once, so that what is begun
// can be ended well: what does not fit waits for a moment, or is refused. And it
// bounds what an owner's calls may use in a time: what is more is refused.
package limit

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Unlimited is the capacity of a gate that lets everything in, and counts it.
const Unlimited = 1 << 60

// Forever is the wait of those that wait as long as they must.
const Forever time.Duration = -1

// maxWaiting bounds how many wait for a limited time. It is what comes within
// a usual wait at a rate that no machine refuses more quickly.
const maxWaiting = 1024

// ErrFull is the end of a wait that was in vain.
var ErrFull = errors.New("limit: no room")

// Gate lets in so much weight at once. While there is room and nobody waits,
// to come in is one atomic operation, and so is to leave.
//
// Who waits for a limited time is let in newest first: under a load that is
// more than the gate can let in, the oldest have the least time left, and to
// serve them first would make everybody wait for as long as one may. Who waits
// forever comes after those, oldest first.
type Gate struct {
	free    atomic.Int64 // below zero when the capacity was lowered under what is in
	waiting atomic.Int64 // how many wait

	mu       sync.Mutex
	capacity int64
	queue    list.List // of *waiter, the next at the front
	limited  int       // how many of them do not wait forever
}

// waiter is somebody who waits.
type waiter struct {
	weight int64
	wait   time.Duration
	in     chan struct{} // closed when it was let in
}

// NewGate makes a gate.
func NewGate(capacity int64) *Gate {
	g := &Gate{capacity: capacity}
	g.free.Store(capacity)
	return g
}

// SetCapacity changes the capacity. What is in stays in, also when that is more.
func (g *Gate) SetCapacity(capacity int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free.Add(capacity - g.capacity)
	g.capacity = capacity
	g.admit()
}

// InUse is the weight that is in.
func (g *Gate) InUse() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.capacity - g.free.Load()
}

// Try comes in if there is room and nobody waits.
func (g *Gate) Try(weight int64) bool { return g.waiting.Load() == 0 && g.take(weight) }

func (g *Gate) take(weight int64) bool {
	for {
		free := g.free.Load()
		if free < weight {
			return false
		}
		if g.free.CompareAndSwap(free, free-weight) {
			return true
		}
	}
}

// Enter comes in, and waits for it no longer than wait, or [Forever]. The error
// is [ErrFull] or that of ctx; without one, Leave has to follow.
func (g *Gate) Enter(ctx context.Context, weight int64, wait time.Duration) error {
	if g.Try(weight) {
		return nil
	}
	if wait == 0 {
		return ErrFull
	}
	w := &waiter{weight: weight, wait: wait, in: make(chan struct{})}
	at := g.join(w)
	if at == nil {
		return ErrFull
	}
	var over <-chan time.Time
	if wait != Forever {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.in:
		return nil
	case <-over:
		return g.giveUp(at, ErrFull)
	case <-ctx.Done():
		return g.giveUp(at, ctx.Err())
	}
}

// Leave gives back what Enter or Try took.
func (g *Gate) Leave(weight int64) {
	g.free.Add(weight)
	if g.waiting.Load() == 0 { // who joins after this looks at free again
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit()
}

// join begins to wait; it returns nil when too many do.
func (g *Gate) join(w *waiter) *list.Element {
	g.mu.Lock()
	defer g.mu.Unlock()
	var at *list.Element
	switch {
	case w.wait == Forever:
		at = g.queue.PushBack(w)
	case g.limited == maxWaiting:
		return nil
	default:
		at = g.queue.PushFront(w)
		g.limited++
	}
	g.waiting.Add(1)
	g.admit()
	return at
}

// giveUp ends a wait with err, unless it has ended well at the same moment.
func (g *Gate) giveUp(at *list.Element, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-at.Value.(*waiter).in:
		return nil
	default:
	}
	g.remove(at)
	g.admit() // the next may need less
	return err
}

// remove takes somebody out of the queue; mu is held.
func (g *Gate) remove(at *list.Element) {
	if at.Value.(*waiter).wait != Forever {
		g.limited--
	}
	g.queue.Remove(at)
	g.waiting.Add(-1)
}

// admit lets in whom there is room for; mu is held.
func (g *Gate) admit() {
	for at := g.queue.Front(); at != nil; at = g.queue.Front() {
		w := at.Value.(*waiter)
		if !g.take(w.weight) {
			return
		}
		g.remove(at)
		close(w.in)
	}
}
