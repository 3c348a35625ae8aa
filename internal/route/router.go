package route

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/rule"
)

// Retries bound attempts beyond a call's first.
type Retries struct {
	Attempts int // of one call, all told
	Budget   int // of all calls: extra attempts in a hundred calls
}

// Router plans calls. There is one; it is safe for concurrent use.
type Router struct {
	retries atomic.Pointer[Retries]
	budget  budget
	sticky  sticky
	dice    func() uint64
}

// NewRouter returns a router that allows three attempts, and ten extra ones in
// a hundred calls.
func NewRouter() *Router {
	r := &Router{dice: rand.Uint64}
	r.Apply(Retries{Attempts: 3, Budget: 10})
	return r
}

// Apply sets the bounds of attempts.
func (r *Router) Apply(retries Retries) { r.retries.Store(&retries) }

// chance is at least 0 and less than 1.
func (r *Router) chance() float64 { return float64(r.dice()>>11) / (1 << 53) }

// Needs are what a request asks of a target.
type Needs uint8

// The needs.
const (
	NeedsVision Needs = 1 << iota
	NeedsTools
	NeedsSchema        // answers to a JSON schema
	NeedsZeroRetention // nothing may be kept there
)

// Query is what is asked of a plan. It is read until the plan is done with.
type Query struct {
	// Speaks reports whether a target can be spoken to; nil: each can.
	Speaks func(*Target) bool
	// Sticky tells conversations apart by what their requests begin with; 0 is
	// none.
	Sticky uint64
	Needs  Needs
	Region string // "": any
	// Priced reports whether a target's price is known; nil: it need not be.
	Priced    func(*Target) bool
	Tokens    int64 // of the prompt, about; 0 when not known
	MaxOutput int64 // tokens; 0 when not said
	// Origin are the accounts that read the opaque state in the request. They
	// go before all others.
	Origin []string
	Vars   rule.Vars // asked only when a target has a rule
}

// Plan begins to look for a target.
func (r *Router) Plan(m *Model, q *Query, now time.Time) Plan {
	p := Plan{router: r, model: m, query: q, retries: *r.retries.Load()}
	at := now.UnixNano()
	r.budget.call(at, r.dice())
	if m.Hedge != nil {
		m.hedges.call(at, r.dice())
	}
	p.leaveOut()
	return p
}
