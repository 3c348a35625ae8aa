package route

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

// What opens a breaker, and for how long. What heals is found to be well within
// five seconds: a cooldown, a second at most until a call is spared for the
// probe, and the probe.
const (
	maxFailures  = 3                // in a row
	minSample    = 10               // calls in the window before their share of failures counts
	window       = 10 * time.Second // of error rates and of the retry budget
	firstCooling = time.Second
	maxCooling   = 3 * time.Second
	maxLimited   = time.Minute // of a rate limit without a word on how long
	firstRefused = time.Minute // of a credential
	maxRefused   = 10 * time.Minute

	betweenProbes = time.Second
	// maxProbe is how long a probe keeps others away: one that hangs says
	// nothing of what came after it.
	maxProbe = 5 * time.Second
	// overdue is how long a probe waits for a call that no affinity keeps
	// elsewhere.
	overdue = time.Second
)

// state is how it stands with a target: the better, the less.
type state uint8

const (
	well     state = iota
	halfOpen       // sick, and a call may find out whether it still is
	probing        // sick, and a call is finding out
	cooling        // sick
	waiting        // asked to be left alone for some time
)

// fault is how a failure counts.
type fault uint8

const (
	plain   fault = iota // as one of several
	limited              // at once, and briefly
	refused              // at once, and for long
)

// breaker keeps calls from what is sick. Calls that go well take no lock.
type breaker struct {
	until    atomic.Int64 // when it opens for a probe, in nanoseconds since 1970; 0 while it is well
	failures atomic.Int32 // in a row
	recent   tally

	mu      sync.Mutex
	opened  int64 // when
	asked   bool  // until is what the upstream said
	refused bool  // until is for a credential
	level   int   // times that it opened since it was well
	probe   int64 // when the probe under way began; 0 for none
	probed  int64 // when the last one began
	last    llm.Kind
	failed  int64 // when it last did
}

// state says whether a call may come, and how long it has been due or has to
// wait.
func (b *breaker) state(now int64) (s state, since, wait time.Duration) {
	until := b.until.Load()
	if until == 0 {
		return well, 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case until > now && b.asked:
		return waiting, 0, time.Duration(until - now)
	case until > now:
		return cooling, 0, time.Duration(until - now)
	case !b.mayProbe(now):
		return probing, 0, 0
	}
	return halfOpen, time.Duration(now - until), 0
}

func (b *breaker) mayProbe(now int64) bool {
	return (b.probe == 0 || now-b.probe >= int64(maxProbe)) && (b.probed == 0 || now-b.probed >= int64(betweenProbes))
}

// claim takes the probe, if there is one to take. What is well needs none.
func (b *breaker) claim(now int64) (claimed, ok bool) {
	until := b.until.Load()
	if until == 0 {
		return false, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.Load() > now || !b.mayProbe(now) {
		return false, false
	}
	b.probe, b.probed = now, now
	return true, true
}

// release gives a probe back that found out nothing.
func (b *breaker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probe = 0
}

// succeeded notes a call that went well. One that began before the breaker
// opened does not close it.
func (b *breaker) succeeded(now, began int64) {
	b.recent.add(now, true)
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	if b.until.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if began >= b.opened {
		b.close()
	}
}

// close is called with mu held.
func (b *breaker) close() {
	b.until.Store(0)
	b.failures.Store(0)
	b.recent.clear()
	b.asked, b.refused, b.level, b.probe, b.probed = false, false, 0, 0, 0
}

// failure is one call that went wrong.
type failure struct {
	began int64
	fault fault
	asked time.Duration // to be left alone
	probe bool
	kind  llm.Kind
	dice  float64 // for the jitter, at least 0 and less than 1
}

// failedOnce notes a call that went wrong.
func (b *breaker) failedOnce(now int64, f failure) {
	b.recent.add(now, false)
	failures := b.failures.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.failed = f.kind, now
	if f.probe {
		b.probe = 0
	}
	open := b.until.Load()
	if f.asked > 0 && f.fault != refused {
		if until := now + int64(f.asked); until > open || !b.asked && !b.refused {
			b.open(now, until)
			b.asked, b.refused = true, false
		}
		return
	}
	switch {
	case open != 0 && !f.probe: // known already, or tried for want of a better one
	case open == 0 && f.began < b.opened: // it was closed since
	case f.probe || f.fault != plain || failures >= maxFailures || b.recent.bad(now):
		b.asked, b.refused = false, f.fault == refused
		b.open(now, now+int64(float64(f.cooldown(b.level))*(0.75+0.25*f.dice)))
	}
}

func (b *breaker) open(now, until int64) {
	b.opened = now
	b.level++
	b.until.Store(until)
}

// cooldown doubles each time.
func (f failure) cooldown(level int) time.Duration {
	first, most := firstCooling, maxCooling
	switch f.fault {
	case limited:
		most = maxLimited
	case refused:
		first, most = firstRefused, maxRefused
	}
	return min(first<<min(level, 10), most)
}

// forgive ends what was decided for a credential.
func (b *breaker) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused {
		b.close()
	}
}

// tally counts the calls of the last seconds. Counts of a second that is over
// may be off by those that came at its very end.
type tally [int(window / time.Second)]second

type second struct {
	at        atomic.Int64 // in seconds since 1970
	good, bad atomic.Int32
}

func (t *tally) add(now int64, good bool) {
	s := t.second(now)
	if good {
		s.good.Add(1)
		return
	}
	s.bad.Add(1)
}

// second is the counter of a time, made new if it was of another.
func (t *tally) second(now int64) *second {
	at := now / int64(time.Second)
	s := &t[uint64(at)%uint64(len(t))]
	if was := s.at.Load(); was != at && s.at.CompareAndSwap(was, at) {
		s.good.Store(0)
		s.bad.Store(0)
	}
	return s
}

func (t *tally) sum(now int64) (good, bad int64) {
	at := now / int64(time.Second)
	for i := range t {
		if s := &t[i]; at-s.at.Load() < int64(len(t)) {
			good += int64(s.good.Load())
			bad += int64(s.bad.Load())
		}
	}
	return good, bad
}

// bad reports whether half of the calls failed.
func (t *tally) bad(now int64) bool {
	good, bad := t.sum(now)
	return good+bad >= minSample && bad >= good
}

func (t *tally) clear() {
	for i := range t {
		t[i].at.Store(0)
	}
}
