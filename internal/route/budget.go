package route

import (
	"sync"
	"sync/atomic"
	"time"
)

// budget bounds extra attempts: to a share of the calls of the last seconds,
// and a few when there are hardly any. Calls are counted in shards, so that
// they have no lock or cache line in common; only extra attempts do.
type budget struct {
	shards [16]calls
	mu     sync.Mutex
	extra  tally
}

type calls struct {
	tally [int(window / time.Second)]struct{ at, n atomic.Int64 }
	_     [64]byte
}

// call counts a call.
func (b *budget) call(now int64, dice uint64) {
	at := now / int64(time.Second)
	c := &b.shards[dice%uint64(len(b.shards))].tally[uint64(at)%uint64(window/time.Second)]
	if was := c.at.Load(); was != at && c.at.CompareAndSwap(was, at) {
		c.n.Store(0)
	}
	c.n.Add(1)
}

func (b *budget) calls(now int64) (n int64) {
	at := now / int64(time.Second)
	for i := range b.shards {
		for j := range b.shards[i].tally {
			if c := &b.shards[i].tally[j]; at-c.at.Load() < int64(window/time.Second) {
				n += c.n.Load()
			}
		}
	}
	return n
}

// fewExtra is how many extra attempts a window has room for however few calls
// there were: the only call of a minute is worth a second try. forProbes of the
// budget are kept for calls that found a sick target sick still, so that
// retries do not keep those that healed from being found.
const (
	fewExtra  = 10
	forProbes = 4
)

// allowance is how many extra attempts there may be.
type allowance struct {
	percent int // of the calls
	atLeast int
	spare   int // to be left
}

// room reports whether one more attempt fits.
func (b *budget) room(now int64, l allowance) bool {
	if l.percent <= 0 {
		return false
	}
	_, extra := b.extra.sum(now)
	extra += int64(l.spare)
	return extra < int64(l.atLeast) || extra < b.calls(now)*int64(l.percent)/100
}

// take takes room for one more attempt.
func (b *budget) take(now int64, l allowance) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.room(now, l) {
		return false
	}
	b.extra.add(now, false)
	return true
}
