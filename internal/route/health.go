package route

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/limit"
)

// Health is what is known of a target from the calls that it had. It outlives
// tables: a target that stays has the same one. It is safe for concurrent use.
type Health struct {
	breaker
	account  *account
	id       uint64 // tells it from other targets, on every replica alike
	inFlight atomic.Int64
	held     atomic.Int64 // conversations that stay with it
	first    firstTokens
}

// account is a credential at a provider. What is wrong with it is so for all
// its models.
type account struct {
	breaker
}

// NewHealth returns the health of a target that no registry keeps.
func NewHealth(name string) *Health {
	return &Health{account: &account{}, id: hash(name)}
}

// state is the worse of the target's and its account's.
func (h *Health) state(now int64) (s state, since, wait time.Duration) {
	if h.until.Load() == 0 && h.account.until.Load() == 0 {
		return well, 0, 0
	}
	s, since, wait = h.breaker.state(now)
	if other, otherSince, otherWait := h.account.state(now); other > s {
		return other, otherSince, otherWait
	} else if other == s {
		return s, min(since, otherSince), max(wait, otherWait)
	}
	return s, since, wait
}

// claimed are the probes that a call is.
type claimed struct{ target, account bool }

func (h *Health) claim(now int64) (c claimed, ok bool) {
	if c.target, ok = h.breaker.claim(now); !ok {
		return c, false
	}
	if c.account, ok = h.account.claim(now); !ok {
		if c.target {
			h.breaker.release()
		}
		return claimed{}, false
	}
	h.take(now)
	return c, true
}

// take takes a call.
func (h *Health) take(now int64) {
	h.inFlight.Add(1)
	h.first.asked.Store(now)
}

// firstTokens are the times that answers took to begin.
type firstTokens struct {
	mean  atomic.Int64 // of the last ones most; 0 when there were none
	asked atomic.Int64 // when a call last went out

	mu     sync.Mutex
	latest *[latestTokens]time.Duration // nil until there is one
	n      int
	last   int64 // when the last came
}

// latestTokens is how many are kept for the percentile.
const latestTokens = 64

func (f *firstTokens) add(d time.Duration, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := max(1-math.Exp2(-float64(now-f.last)/float64(halfLife)), 0.2) // what was not heard of for long counts little
	f.last = now
	mean := time.Duration(f.mean.Load())
	if f.n == 0 {
		mean, f.latest = d, &[latestTokens]time.Duration{}
	}
	f.mean.Store(max(int64(mean)+int64(fresh*float64(d-mean)), 1))
	f.latest[f.n%latestTokens] = d
	f.n++
}

// halfLife is in which half of what was known of a latency is forgotten. So
// one that was slow is asked again.
const halfLife = 10 * time.Second

// expected is how long the answer is expected to take to begin: less, the
// longer nobody looked.
func (f *firstTokens) expected(now int64, busy bool) float64 {
	mean := f.mean.Load()
	if mean == 0 {
		if busy {
			return 1e18 // one at a time finds out
		}
		return 0
	}
	age := float64(max(now-f.asked.Load(), 0)) / float64(halfLife)
	return float64(mean) * math.Exp2(-age)
}

// minTokens is how many answers must have begun before their percentile says
// something.
const minTokens = 20

// FirstToken95 is the time within which 95 % of the last answers began; 0 when
// there were too few.
func (h *Health) FirstToken95() time.Duration {
	h.first.mu.Lock()
	n := min(h.first.n, latestTokens)
	if n < minTokens {
		h.first.mu.Unlock()
		return 0
	}
	sorted := *h.first.latest
	h.first.mu.Unlock()
	slices.Sort(sorted[:n])
	return sorted[n*95/100]
}

// Snapshot is how it stands with a target, for people.
type Snapshot struct {
	State         string        // "ok", "half-open", "cooling"
	Called        bool          // since the start
	Until         time.Time     // when it is tried again, while it is cooling
	LastError     string        // kind of the last failure; empty when there was none
	Failed        time.Time     // when that was
	InFlight      int64         // calls under way
	Conversations int64         // that stay with it
	FirstToken    time.Duration // decayed mean; 0 when not known
	ErrorRate     float64       // of the last ten seconds, with what the account was to blame for
	Calls         int64         // in the last ten seconds
}

// Snapshot tells how it stands with a target.
func (h *Health) Snapshot(now time.Time) Snapshot {
	at := now.UnixNano()
	s := Snapshot{State: "ok", Called: h.first.asked.Load() != 0, InFlight: h.inFlight.Load(), Conversations: h.held.Load(), FirstToken: time.Duration(h.first.mean.Load())}
	switch state, _, wait := h.state(at); state {
	case well:
	case halfOpen, probing:
		s.State = "half-open"
	default:
		s.State, s.Until = "cooling", now.Add(wait)
	}
	good, bad := h.recent.sum(at)
	_, ofAccount := h.account.recent.sum(at)
	bad += ofAccount
	if s.Calls = good + bad; s.Calls > 0 {
		s.ErrorRate = float64(bad) / float64(s.Calls)
	}
	var failed int64
	for _, b := range []*breaker{&h.breaker, &h.account.breaker} {
		b.mu.Lock()
		if b.failed > failed {
			failed = b.failed
			s.LastError, s.Failed = b.last.String(), time.Unix(0, failed)
		}
		b.mu.Unlock()
	}
	return s
}

// Registry keeps the health of targets, and what was used of models' limits,
// while tables come and go. It is not safe for concurrent use; what it gives is.
type Registry struct {
	accounts map[string]*account
	targets  map[[2]string]*Health
	used     map[*Health]bool
	meters   map[string]*limit.Meter // by model
	metered  map[string]bool         // that were asked for
}

// NewRegistry returns one that knows nothing yet.
func NewRegistry() *Registry {
	return &Registry{accounts: map[string]*account{}, targets: map[[2]string]*Health{}, used: map[*Health]bool{}, meters: map[string]*limit.Meter{}, metered: map[string]bool{}}
}

// Health returns the health of a model at an account, the one that it had
// before if there was one. credential tells accounts apart, and is the same on
// every replica.
func (r *Registry) Health(credential, model string) *Health {
	key := [2]string{credential, model}
	h := r.targets[key]
	if h == nil {
		a := r.accounts[credential]
		if a == nil {
			a = &account{}
			r.accounts[credential] = a
		}
		h = &Health{account: a, id: hash(credential + "\n" + model)}
		r.targets[key] = h
	}
	r.used[h] = true
	return h
}

// Meter returns the meter of a model, the one that it had before if there was
// one, with rates that count from now on.
func (r *Registry) Meter(model string, rates limit.Rates) *limit.Meter {
	m := r.meters[model]
	if m == nil {
		m = limit.NewMeter()
		m.Owner = limit.OfModel
		r.meters[model] = m
	}
	m.Apply(rates)
	r.metered[model] = true
	return m
}

// Sweep forgets the targets and meters that were not asked for since it was last called.
func (r *Registry) Sweep() {
	kept := map[string]bool{}
	for key, h := range r.targets {
		if !r.used[h] {
			delete(r.targets, key)
			continue
		}
		kept[key[0]] = true
	}
	for credential := range r.accounts {
		if !kept[credential] {
			delete(r.accounts, credential)
		}
	}
	clear(r.used)
	maps.DeleteFunc(r.meters, func(model string, _ *limit.Meter) bool { return !r.metered[model] })
	clear(r.metered)
}

// Forgive gives credentials that were refused another chance: the operator may
// have seen to them.
func (r *Registry) Forgive() {
	for _, a := range r.accounts {
		a.forgive()
	}
}
