package limit

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Owner is the kind of what has limits.
type Owner uint8

// The owners.
const (
	OfKey Owner = iota
	OfTeam
	OfModel
)

// String names an owner to a client.
func (o Owner) String() string { return [...]string{"this key", "this key's team", "this model"}[o] }

// Meter is how it stands with the limits of one owner. It outlives what it was
// made for: a reload applies other rates to it. It is safe for concurrent use.
type Meter struct {
	Owner Owner // set before it is used; else a key

	id      uint64      // several meters are locked in its order
	limited atomic.Bool // else nobody needs the lock

	mu      sync.Mutex
	rates   Rates
	buckets [len(periods)]bucket
	atOnce  int64 // calls under way
}

// made counts the meters.
var made atomic.Uint64

// NewMeter makes a meter that lets everything in until rates are applied.
func NewMeter() *Meter { return &Meter{id: made.Add(1)} }

// Limits reports whether there is a limit to keep. A nil meter has none.
func (m *Meter) Limits() bool { return m != nil && m.limited.Load() }

// Apply has other rates count from now on. What was used of a rate that stays
// remains used.
func (m *Meter) Apply(r Rates) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rates = r.within()
	m.limited.Store(m.rates != Rates{})
	for rule := range m.buckets {
		if m.rates.of(Rule(rule)) == 0 {
			m.buckets[rule] = bucket{}
		}
	}
}

// Need is what a call asks of its meters.
type Need struct {
	Input  int64 // tokens that it brings
	Output int64 // tokens that it may be answered
	// Nodes is how many gateways share the limits: each lets in its part, and
	// one call at least.
	Nodes int
}

// of is what a call needs of a rule. More tokens than a bucket holds are all of
// it: the rest is made up for when the call is settled.
func (n Need) of(r Rule, capacity int64) int64 {
	if r != TokensPerMinute {
		return 1
	}
	return min(min(max(n.Input, 0), MaxRate)+min(max(n.Output, 0), MaxRate), capacity)
}

// share is the part of a rate that each of the gateways lets in.
func share(rate int64, nodes int) int64 {
	if rate == 0 {
		return 0
	}
	return max(rate/int64(max(nodes, 1)), 1)
}

// Enter lets a call in at all its meters or at none; nil ones do not count. Who
// is refused has used nothing up. Who is let in settles and leaves.
func Enter(now time.Time, need Need, meters ...*Meter) (*Pass, *Refusal) {
	list := lock(now, need.Nodes, meters)
	defer unlock(list)
	var refused *Refusal
	for _, m := range list {
		for rule := range rules {
			if r := m.refuse(rule, now, need); r.after(refused) {
				refused = r
			}
		}
	}
	if refused != nil {
		refused.Standing = standing(list, now, need.Nodes)
		return nil, refused
	}
	p := &Pass{entries: make([]entry, 0, len(list))}
	for _, m := range list {
		p.entries = append(p.entries, m.take(need))
	}
	p.Standing = standing(list, now, need.Nodes)
	return p, nil
}

// Look tells how it stands with meters, and takes nothing.
func Look(now time.Time, nodes int, meters ...*Meter) Standing {
	list := lock(now, nodes, meters)
	defer unlock(list)
	return standing(list, now, nodes)
}

// lock locks the meters that have limits, each once and in the one order, and
// has them leak. The meters of a call are few.
func lock(now time.Time, nodes int, meters []*Meter) []*Meter {
	list := make([]*Meter, 0, len(meters))
	for _, m := range meters {
		if !m.Limits() {
			continue
		}
		at, twice := slices.BinarySearchFunc(list, m.id, func(m *Meter, id uint64) int { return cmp.Compare(m.id, id) })
		if !twice {
			list = slices.Insert(list, at, m)
		}
	}
	for _, m := range list {
		m.mu.Lock()
		for rule := range m.buckets {
			if rate := share(m.rates.of(Rule(rule)), nodes); rate > 0 {
				m.buckets[rule].leak(now, rate, periods[rule])
			}
		}
	}
	return list
}

func unlock(list []*Meter) {
	for _, m := range list {
		m.mu.Unlock()
	}
}

// again is when a call is to try again that too many others are under way for:
// nobody knows when the next ends.
const again = time.Second

// refuse says why a call cannot come in by a rule; nil when it can. mu is held.
func (m *Meter) refuse(r Rule, now time.Time, need Need) *Refusal {
	rate := m.rates.of(r)
	if rate == 0 {
		return nil
	}
	if r == TokensPerMinute && need.Input > rate {
		return &Refusal{Owner: m.Owner, Rule: r, Limit: rate, Asked: need.Input}
	}
	capacity := share(rate, need.Nodes)
	used, asked := m.used(r), need.of(r, capacity)
	if used+asked <= capacity {
		return nil
	}
	wait := again
	if r != AtOnce {
		wait = m.buckets[r].until(used+asked-capacity, now, capacity, periods[r])
	}
	return &Refusal{Owner: m.Owner, Rule: r, Limit: capacity, Used: used, Asked: asked, Wait: max(ceil(wait), time.Millisecond)}
}

// used is what is used of a rule. mu is held.
func (m *Meter) used(r Rule) int64 {
	if r == AtOnce {
		return m.atOnce
	}
	return m.buckets[r].used
}

// ceil rounds a wait up to what is told of it.
func ceil(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// take takes what a call needs, which is there. mu is held.
func (m *Meter) take(need Need) entry {
	m.atOnce++
	e := entry{meter: m}
	for rule := range m.buckets {
		capacity := share(m.rates.of(Rule(rule)), need.Nodes)
		if capacity == 0 {
			continue
		}
		amount := need.of(Rule(rule), capacity)
		m.buckets[rule].add(amount)
		e.held[rule] = amount
	}
	return e
}
