package route

import (
	"container/heap"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

// world is targets with latencies, error rates and outages, and clients with
// conversations, in a time that is counted, not waited for.
type world struct {
	rnd     *rand.Rand
	now     time.Time
	router  *Router
	model   *Model
	places  []*place
	pending events

	calls, extra, failed int
	served               []int
	perSecond            map[int64][2]int // calls and extra attempts
	turns, moved         int
	at                   map[uint64]*Target // where the last turn began
}

// place is what truly happens at a target.
type place struct {
	latency time.Duration
	errors  float64
	down    [][2]time.Time // outages
	fault   Outcome
}

func (p *place) isDown(now time.Time) bool {
	for _, d := range p.down {
		if !now.Before(d[0]) && now.Before(d[1]) {
			return true
		}
	}
	return false
}

type event struct {
	at  time.Time
	run func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func (w *world) in(d time.Duration, run func()) { heap.Push(&w.pending, event{w.now.Add(d), run}) }

// length is how long the simulated time is. At its end all must be well again.
const (
	length = 60 * time.Second
	calm   = 40 * time.Second // when the last outage is over
)

func newWorld(seed uint64) *world {
	rnd := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		rnd: rnd, now: time.Unix(1_000_000_000, 0), router: NewRouter(), perSecond: map[int64][2]int{},
		at: map[uint64]*Target{},
	}
	w.router.dice = rnd.Uint64
	n := 2 + rnd.IntN(7)
	m := &Model{ID: "m", Strategy: Strategy(rnd.IntN(5)), Affinity: rnd.IntN(3) > 0}
	for i := range n {
		t := Target{Model: fmt.Sprint("t", i), Account: fmt.Sprint("a", i), Weight: float64(1 + rnd.IntN(3))}
		if m.Strategy == Ordered {
			t.Tier = i / 2
		}
		m.Targets = append(m.Targets, t)
		p := &place{latency: time.Duration(20+rnd.IntN(400)) * time.Millisecond, errors: []float64{0, 0, 0.002, 0.02}[rnd.IntN(4)]}
		p.fault = []Outcome{connect, status500, status503, slow, brokenOff, garbage}[rnd.IntN(6)]
		if i > 0 { // one always works
			for range rnd.IntN(3) {
				from := w.now.Add(time.Duration(rnd.Int64N(int64(calm) - int64(10*time.Second))))
				p.down = append(p.down, [2]time.Time{from, from.Add(time.Duration(rnd.Int64N(int64(10 * time.Second))))})
			}
		}
		w.places = append(w.places, p)
	}
	NewTable([]*Model{m})
	w.model, w.served = m, make([]int, n)
	return w
}

// run has clients make calls until the time is over.
func (w *world) run() {
	end := w.now.Add(length)
	rate := 5 + w.rnd.IntN(36) // calls a second
	conversations := uint64(20 + w.rnd.IntN(100))
	fresh := conversations
	var next func()
	next = func() {
		key := w.rnd.Uint64N(conversations)
		if w.rnd.IntN(20) == 0 {
			fresh++
			key = fresh
		}
		w.call(mix(key))
		if w.now.Before(end) {
			w.in(time.Duration(w.rnd.ExpFloat64()*float64(time.Second)/float64(rate)), next)
		}
	}
	w.in(0, next)
	for len(w.pending) > 0 {
		e := heap.Pop(&w.pending).(event)
		w.now = e.at
		e.run()
	}
}

func (w *world) call(key uint64) {
	w.calls++
	w.count(0)
	q := &Query{Sticky: key}
	p := w.router.Plan(w.model, q, w.now)
	w.attempt(&p, key)
}

func (w *world) count(kind int) {
	second := w.now.Unix()
	c := w.perSecond[second]
	c[kind]++
	w.perSecond[second] = c
}

func (w *world) attempt(p *Plan, key uint64) {
	t, err := p.Next(w.now)
	if err != nil {
		w.failed++
		return
	}
	if p.tried > 1 {
		w.extra++
		w.count(1)
	} else if p.tries[0].probe == (claimed{}) { // which finds out about one that is sick
		w.settle(key, t)
	}
	i := w.index(t)
	place := w.places[i]
	o := fine
	took := place.latency/2 + time.Duration(w.rnd.Int64N(int64(place.latency)))
	o.FirstToken = took
	if place.isDown(w.now) || w.rnd.Float64() < place.errors {
		o = place.fault
		took = min(took, 50*time.Millisecond)
	}
	w.in(took, func() {
		p.Done(t, o, w.now)
		switch {
		case o.Err == nil:
			w.served[i]++
		case p.Retryable():
			w.attempt(p, key)
		default:
			w.failed++
		}
	})
}

func (w *world) index(t *Target) int {
	for i := range w.model.Targets {
		if &w.model.Targets[i] == t {
			return i
		}
	}
	return -1
}

// settle counts turns that were not begun where the one before was, although
// that is well, and in a chain no later choice.
func (w *world) settle(key uint64, t *Target) {
	w.turns++
	if was := w.at[key]; was != nil && was != t && was.Health.well() && was.Tier <= t.Tier {
		w.moved++
	}
	w.at[key] = t
}

// seeds is how many worlds are tried. A change of how targets are chosen is
// worth some thousands.
var seeds = flag.Uint64("seeds", 500, "worlds of the simulation")

// Whatever the strategy and whatever fails: extra attempts keep to the budget,
// what healed is used again, nothing that is well is starved, conversations
// stay, and clients feel next to nothing while one target works.
func TestSimulation(t *testing.T) {
	for seed := range *seeds {
		w := newWorld(seed)
		w.run()
		if err := w.check(); err != nil {
			t.Errorf("seed %d (%d targets, strategy %d, affinity %v, %d calls): %v", seed, len(w.places), w.model.Strategy, w.model.Affinity, w.calls, err)
		}
	}
}

func (w *world) check() error {
	// Extra attempts of any ten seconds. The budget goes by the calls before
	// each, of which some may have been in other ten seconds.
	begin := time.Unix(1_000_000_000, 0).Unix()
	for s := begin; s < begin+int64(length/time.Second); s++ {
		calls, extra := 0, 0
		for k := s - 9; k <= s; k++ {
			calls += w.perSecond[k][0]
			extra += w.perSecond[k][1]
		}
		if extra > max(calls*12/100, fewExtra)+1 {
			return fmt.Errorf("%d extra attempts for %d calls in ten seconds", extra, calls)
		}
	}
	if w.extra > w.calls/10+fewExtra*int(length/window) {
		return fmt.Errorf("%d extra attempts for %d calls", w.extra, w.calls)
	}
	// Each that falls sick costs some calls, where those are too few for the
	// budget to have room for all.
	if w.failed > w.calls/50+maxFailures*len(w.places) {
		return fmt.Errorf("%d of %d calls failed", w.failed, w.calls)
	}
	for i := range w.model.Targets {
		target := &w.model.Targets[i]
		h := target.Health
		if n := h.inFlight.Load(); n != 0 {
			return fmt.Errorf("target %d has %d calls at the end", i, n)
		}
		first := target.Tier == 0 // of a chain, nobody has to know how the rest is
		if first && w.places[i].errors == 0 && !h.well() {
			return fmt.Errorf("target %d has not recovered: %+v", i, h.Snapshot(w.now))
		}
		if first && (w.model.Strategy == Weighted || w.model.Strategy == Busy) && w.served[i] < w.calls/len(w.places)/40 {
			return fmt.Errorf("target %d served %d of %d calls", i, w.served[i], w.calls)
		}
	}
	// Few are those whose second attempt found the first target sick, and that
	// stayed where they were served.
	if w.model.Affinity && w.moved*100 > w.turns+500 {
		return fmt.Errorf("%d of %d turns left a target that was well", w.moved, w.turns)
	}
	return nil
}

// What heals is used within five seconds, as long as there are calls.
func TestRecoveryTime(t *testing.T) {
	for seed := range uint64(300) {
		for name, o := range map[string]Outcome{"connect": connect, "500": status500, "timeout": slow} {
			rnd := rand.New(rand.NewPCG(seed, 3))
			b := newBench(t, accounts(2))
			b.m.Strategy, b.m.Affinity = Strategy(rnd.IntN(5)), rnd.IntN(2) == 0
			outage := time.Second + time.Duration(rnd.Int64N(int64(30*time.Second)))
			sick := map[string]Outcome{"t0": o}
			healed := b.now.Add(outage)
			for b.now.Before(healed) {
				b.call(Query{Sticky: rnd.Uint64N(20) + 1}, sick)
				b.pass(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
			}
			for b.now.Before(healed.Add(5 * time.Second)) {
				b.call(Query{Sticky: rnd.Uint64N(20) + 1}, nil)
				b.pass(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
			}
			if !b.m.Targets[0].Health.well() {
				t.Errorf("seed %d, %s: five seconds after an outage of %v: %+v", seed, name, outage, b.m.Targets[0].Health.Snapshot(b.now))
			}
		}
	}
}

// Nothing is sent to one that asked for a wait before that is over.
func TestWaitsAreKept(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		b := newBench(t, accounts(3))
		b.m.Strategy = Strategy(rnd.IntN(5))
		open := map[string]time.Time{}
		for range 2000 {
			p := b.r.Plan(b.m, &Query{Sticky: rnd.Uint64N(50)}, b.now)
			target, err := p.Next(b.now)
			var e *llm.Error
			switch {
			case errors.As(err, &e):
				for _, at := range open {
					if at.Sub(b.now) > 0 && e.RetryAfter > 0 && b.now.Add(e.RetryAfter).Before(earliest(open)) {
						t.Fatalf("seed %d: told to wait %v, which is too short", seed, e.RetryAfter)
					}
				}
			case b.now.Before(open[target.Model]):
				t.Fatalf("seed %d: %s is called %v before it asked to be", seed, target.Model, open[target.Model].Sub(b.now))
			case rnd.IntN(10) == 0:
				wait := time.Duration(1+rnd.IntN(20)) * time.Second
				p.Done(target, Outcome{Err: status429.Err, Dialed: true, Wait: wait}, b.now)
				open[target.Model] = b.now.Add(wait)
			default:
				p.Done(target, fine, b.now)
			}
			b.pass(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
		}
	}
}

func earliest(times map[string]time.Time) (first time.Time) {
	for _, at := range times {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
