package route

import (
	"math"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/rule"
)

// Plan is the way of one call through the targets of its model. It is used by
// one goroutine at a time; each target that Next or Hedge gave is handed back
// to Done.
type Plan struct {
	router  *Router
	model   *Model
	query   *Query
	retries Retries

	aside [inPlace]reason // by target; more where there are more targets
	more  []reason
	tries [2]try // the rest are in later
	later []try
	tried int
	count int // tries that were sent

	again   bool // the last failure allows its target another try
	retry   bool // the last failure allows another try
	left    bool // the retry budget had room for another try already
	last    *llm.Error
	ruleErr error
}

// inPlace is how many targets need no allocation.
const inPlace = 16

// try is one attempt.
type try struct {
	target  int
	probe   claimed
	began   time.Time
	took    time.Duration
	done    bool
	outcome string // as in Step.Reason
}

// reason is why a target is left out; the zero value is that it is not.
type reason struct {
	why  why
	wait uint16 // of a target that is cooling, in seconds
}

type why uint8

const (
	notAside why = iota
	mute         // it does not speak what the call needs
	noVision
	noTools
	noSchema
	keeps
	elsewhere // in another region
	unpriced
	small
	ruled
	failedRule
	sick
	probed // somebody else finds out how it is
)

func (p *Plan) reasons() []reason {
	if p.more != nil {
		return p.more
	}
	return p.aside[:len(p.model.Targets)]
}

func (p *Plan) try(i int) *try {
	if i < len(p.tries) {
		return &p.tries[i]
	}
	return &p.later[i-len(p.tries)]
}

// leaveOut finds the targets that cannot serve the request.
func (p *Plan) leaveOut() {
	if len(p.model.Targets) > inPlace {
		p.more = make([]reason, len(p.model.Targets))
	}
	aside := p.reasons()
	var asked *rule.Rule
	holds := notAside
	for i := range p.model.Targets {
		t := &p.model.Targets[i]
		aside[i].why = p.lacks(t)
		if aside[i].why == notAside && t.When != nil {
			if t.When != asked { // accounts of one target share it
				asked, holds = t.When, p.rule(t.When)
			}
			aside[i].why = holds
		}
	}
	if len(aside) == 1 {
		return
	}
	// Where none is better, what was asked for is said in a weaker way, and a
	// prompt that is too long by our count goes to whoever counts exactly.
	if p.query.Needs&NeedsSchema != 0 {
		p.favour(noSchema, func(t *Target) bool { return t.Schema != provider.No })
	}
	if tokens := p.query.Tokens; tokens != 0 {
		var widest int64
		for i := range p.model.Targets {
			if aside[i].why == notAside {
				widest = max(widest, p.model.Targets[i].window())
			}
		}
		p.favour(small, func(t *Target) bool { return t.window() >= min(tokens, widest) })
	}
}

// window is how many tokens fit.
func (t *Target) window() int64 {
	if t.Context == 0 {
		return math.MaxInt64
	}
	return t.Context
}

// favour leaves out those that do not fit, if any does.
func (p *Plan) favour(w why, fits func(*Target) bool) {
	aside := p.reasons()
	some := false
	for i := range aside {
		some = some || aside[i].why == notAside && fits(&p.model.Targets[i])
	}
	for i := range aside {
		if some && aside[i].why == notAside && !fits(&p.model.Targets[i]) {
			aside[i].why = w
		}
	}
}

func (p *Plan) lacks(t *Target) why {
	q := p.query
	switch {
	case q.Speaks != nil && !q.Speaks(t):
		return mute
	case q.Needs&NeedsVision != 0 && t.Vision == provider.No:
		return noVision
	case q.Needs&NeedsTools != 0 && t.Tools == provider.No:
		return noTools
	case q.Needs&NeedsZeroRetention != 0 && !t.ZeroRetention:
		return keeps
	case q.Region != "" && q.Region != t.Region:
		return elsewhere
	case q.Priced != nil && !q.Priced(t):
		return unpriced
	}
	return notAside
}

// rule asks whether a rule lets the request through. One that fails does not.
func (p *Plan) rule(r *rule.Rule) why {
	holds, err := r.Holds(p.query.Vars)
	switch {
	case err != nil:
		p.ruleErr = err
		return failedRule
	case holds:
		return notAside
	}
	return ruled
}

// RuleError is why a rule failed on the request; nil when none did. Its target
// was left out.
func (p *Plan) RuleError() error { return p.ruleErr }

// Next returns the target to try now. The first is free; each further one
// takes from the retry budget. When nothing is left, the error says why: of the
// last attempt, or what kept each target out.
func (p *Plan) Next(now time.Time) (*Target, error) {
	at := now.UnixNano()
	if h := p.model.Targets[0].Health; len(p.model.Targets) == 1 && p.tried == 0 && p.aside[0].why == notAside && h.well() {
		h.take(at)
		return p.begin(0, claimed{}, now), nil
	}
	first := p.count == 0
	if !first && (!p.retry || p.count >= p.retries.Attempts || !p.left && !p.room(at)) {
		return nil, p.failed()
	}
	i, probe := p.choose(at, first)
	if i < 0 {
		if p.last != nil {
			return nil, p.failed()
		}
		return nil, p.nobody(at)
	}
	if !first && !p.left && !p.router.budget.take(at, p.limit()) { // somebody else was faster
		p.model.Targets[i].Health.abandon(probe)
		return nil, p.failed()
	}
	return p.begin(i, probe, now), nil
}

// limit is what the retry budget gives this call: all of it, if the call was
// risked for a probe.
func (p *Plan) limit() allowance {
	l := allowance{percent: p.retries.Budget, atLeast: fewExtra}
	if p.tried > 0 && p.try(p.tried-1).probe == (claimed{}) {
		l.spare = forProbes
	}
	return l
}

func (p *Plan) room(at int64) bool { return p.router.budget.room(at, p.limit()) }

// failed is the failure of the last attempt.
func (p *Plan) failed() *llm.Error {
	if p.last != nil {
		return p.last
	}
	return llm.Errorf(llm.Internal, "The gateway tried no further.")
}

func (p *Plan) begin(i int, probe claimed, now time.Time) *Target {
	t := try{target: i, probe: probe, began: now}
	if p.tried < len(p.tries) {
		p.tries[p.tried] = t
	} else {
		p.later = append(p.later, t)
	}
	p.tried++
	p.count++
	return &p.model.Targets[i]
}

// Leave is the right to give an attempt up that is slow. It may be used by any
// goroutine.
type Leave struct {
	budget *budget
	limit  allowance
}

// Take takes room in the retry budget for the attempt in place of the slow one.
// Without it, that one is still the best that there is. Outcome.Left tells the
// plan.
func (l *Leave) Take(now time.Time) bool { return l.budget.take(now.UnixNano(), l.limit) }

// Leave reports whether another target could be tried if the one under way
// failed: only then is it worth giving up on one that is slow.
func (p *Plan) Leave() (Leave, bool) {
	leave := Leave{&p.router.budget, p.limit()}
	if p.count >= p.retries.Attempts || leave.limit.percent <= 0 {
		return leave, false
	}
	for i := range p.model.Targets {
		if p.open(i) && p.model.Targets[i].Health.well() {
			return leave, true
		}
	}
	return leave, false
}

// Hedge returns a second target to ask while the first is slow, if the model
// has hedging, another target is well, and not too many calls were made twice.
func (p *Plan) Hedge(now time.Time) (*Target, bool) {
	at, hedge := now.UnixNano(), p.model.Hedge
	if hedge == nil || p.count != 1 || !p.model.hedges.room(at, allowance{percent: hedge.MaxExtra}) {
		return nil, false
	}
	others := p.wellOnes(make([]int, 0, inPlace))
	if len(others) == 0 || !p.model.hedges.take(at, allowance{percent: hedge.MaxExtra}) {
		return nil, false
	}
	i := p.pick(others, at, p.router.dice(), false)
	return p.begin(i, p.claim(i, at), now), true
}

// open reports whether a target is neither left out nor tried.
func (p *Plan) open(i int) bool {
	if w := p.reasons()[i].why; w != notAside && w != sick && w != probed {
		return false
	}
	for n := range p.tried {
		if p.try(n).target == i {
			return false
		}
	}
	return true
}

// Outcome is what came of an attempt.
type Outcome struct {
	Err        *llm.Error    // nil: it went well
	FirstToken time.Duration // 0 when the answer did not begin
	Canceled   bool          // nobody waits for it any more: it says nothing of the target
	Dialed     bool          // the upstream was reached
	Left       bool          // it was slow and given up for another, for which Leave had room
	Wait       time.Duration // what its Retry-After said; Err's may be a guess
}

// Begun tells that a target's answer has begun: a long one need not end to
// show that the target is well.
func (p *Plan) Begun(t *Target, firstToken time.Duration, now time.Time) {
	if tr := p.under(t); tr != nil && tr.probe != (claimed{}) {
		at := now.UnixNano()
		t.Health.succeeded(at, tr.began.UnixNano())
		t.Health.account.succeeded(at, tr.began.UnixNano())
		tr.probe = claimed{}
	}
}

// Done gives a target back and tells what came of it.
func (p *Plan) Done(t *Target, o Outcome, now time.Time) {
	tr := p.under(t)
	if tr == nil {
		return
	}
	tr.done, tr.took = true, now.Sub(tr.began)
	t.Health.inFlight.Add(-1)
	if o.FirstToken > 0 {
		t.Health.first.add(o.FirstToken, now.UnixNano())
	}
	v := o.judge()
	tr.outcome = v.word
	p.retry, p.again, p.left, p.last = v.retry, v.again, o.Left, o.Err
	if v.unsent {
		p.count--
	}
	f := failure{began: tr.began.UnixNano(), fault: v.fault, asked: o.Wait, kind: v.kind, dice: p.router.chance()}
	t.Health.learn(v.blame, tr.probe, f, o.Err != nil && o.Err.Status != 0, now.UnixNano())
}

// under is the attempt at a target that is under way; nil when there is none.
func (p *Plan) under(t *Target) *try {
	for n := range p.tried {
		if tr := p.try(n); !tr.done && &p.model.Targets[tr.target] == t {
			return tr
		}
	}
	return nil
}

// Retryable reports whether what came of the last attempt allows another. Next
// says whether there is one.
func (p *Plan) Retryable() bool { return p.retry && p.count < p.retries.Attempts }

// binds reports whether opaque state of the request can be read by a target.
func (q *Query) binds(t *Target) bool {
	return slices.ContainsFunc(q.Origin, func(origin string) bool { return slices.Contains(t.origins, origin) })
}
