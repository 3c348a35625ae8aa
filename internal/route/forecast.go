package route

import (
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Forecast is how a call would go, were it made now.
type Forecast struct {
	Model     *Model
	Sticky    uint64    // of the conversation; 0 when the call belongs to none
	StaysWith *Target   // that the conversation is with; nil when that is not known
	Targets   []Outlook // in the order in which they would be asked; then those that would not be
	Refused   error     // why no target would be asked; nil when one would
}

// Outlook is what would become of one target.
type Outlook struct {
	Target  *Target
	Order   int    // from 1, if each before failed; 0: it would not be asked
	LeftOut string // why not, as in Step.Reason

	// What the request would be there is for whoever can say it.
	Says    dialect.Name // "" when it was not said
	Notes   []string
	Refusal string // why the request cannot be said there
	Unsaid  string // why it was not said, although it would be asked
}

// Forecast tells how a call would go, if each target that is asked failed. say
// is given the targets in that order; its error is why the request cannot go
// there. Nothing is taken and nothing noted of it: the call is planned with
// copies of all that calls change.
func (r *Router) Forecast(m *Model, q *Query, now time.Time, say func(*Outlook) *llm.Error) *Forecast {
	f := &Forecast{Model: m, Sticky: q.Sticky}
	copied, copies := m.copied()
	own := &Router{dice: r.dice}
	own.Apply(*r.retries.Load())
	r.budget.copyTo(&own.budget)
	if h := r.stays(m, q, now.UnixNano()); copies[h] != nil {
		for i := range m.Targets {
			if m.Targets[i].Health == h {
				f.StaysWith = &m.Targets[i]
			}
		}
		copies[h].held.Add(-1) // put counts it again
		own.sticky.put(mix(q.Sticky^m.seed), copies[h], now.UnixNano())
	}
	p := own.Plan(copied, q, now)
	asked, failed := make([]bool, len(m.Targets)), error(nil)
	order := 0
	for {
		t, err := p.Next(now)
		if err != nil {
			failed = err
			break
		}
		i := p.try(p.tried - 1).target
		o := Outlook{Target: &m.Targets[i]}
		e := say(&o)
		if e == nil {
			order++
			o.Order = order
			e = &llm.Error{Kind: llm.UpstreamTimeout}
		} else {
			o.Refusal = e.Message
			o.LeftOut = (&Outcome{Err: e}).judge().word
		}
		asked[i] = true
		f.Targets = append(f.Targets, o)
		p.Done(t, Outcome{Err: e}, now)
	}
	for i, reason := range p.reasons() {
		if !asked[i] {
			f.Targets = append(f.Targets, Outlook{Target: &m.Targets[i], LeftOut: p.unasked(reason)})
		}
	}
	if order == 0 {
		f.Refused = failed
	}
	return f
}

// unasked is why the plan, which is over, asked no target for which there is a
// reason or none.
func (p *Plan) unasked(r reason) string {
	switch {
	case r.why != notAside:
		return r.String()
	case !p.retry:
		return "no retry"
	case p.count >= p.retries.Attempts:
		return "after " + strconv.Itoa(p.retries.Attempts) + " attempts"
	}
	return "retry budget"
}

// stays is where the conversation is; nil when that is not known.
func (r *Router) stays(m *Model, q *Query, at int64) *Health {
	if p := (Plan{model: m, query: q}); !p.sticks() {
		return nil
	}
	return r.sticky.look(mix(q.Sticky^m.seed), at)
}

// look is find that leaves no trace.
func (s *sticky) look(key uint64, now int64) *Health {
	p := s.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.at[key]
	if !ok || now-p.entries[i].used >= int64(stickyTTL) {
		return nil
	}
	return p.entries[i].health
}

// copied is the model with targets whose health is a copy, and these copies.
func (m *Model) copied() (*Model, map[*Health]*Health) {
	own, copies, accounts := *m, map[*Health]*Health{}, map[*account]*account{}
	own.Hedge, own.hedges = nil, nil
	own.Targets = make([]Target, len(m.Targets))
	for i, t := range m.Targets {
		h := copies[t.Health]
		if h == nil {
			a := accounts[t.Health.account]
			if a == nil {
				a = &account{}
				t.Health.account.copyTo(&a.breaker)
				accounts[t.Health.account] = a
			}
			h = t.Health.copied(a)
			copies[t.Health] = h
		}
		own.Targets[i] = t
		own.Targets[i].Health = h
	}
	return &own, copies
}

func (h *Health) copied(a *account) *Health {
	own := &Health{account: a, id: h.id}
	h.breaker.copyTo(&own.breaker)
	own.inFlight.Store(h.inFlight.Load())
	own.held.Store(h.held.Load())
	own.first.mean.Store(h.first.mean.Load())
	own.first.asked.Store(h.first.asked.Load())
	return own
}

func (b *breaker) copyTo(own *breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own.until.Store(b.until.Load())
	own.failures.Store(b.failures.Load())
	b.recent.copyTo(&own.recent)
	own.opened, own.asked, own.refused, own.level = b.opened, b.asked, b.refused, b.level
	own.probe, own.probed, own.last, own.failed = b.probe, b.probed, b.last, b.failed
}

func (b *budget) copyTo(own *budget) {
	for i := range b.shards {
		for j := range b.shards[i].tally {
			from, to := &b.shards[i].tally[j], &own.shards[i].tally[j]
			to.at.Store(from.at.Load())
			to.n.Store(from.n.Load())
		}
	}
	b.extra.copyTo(&own.extra)
}

func (t *tally) copyTo(own *tally) {
	for i := range t {
		own[i].at.Store(t[i].at.Load())
		own[i].good.Store(t[i].good.Load())
		own[i].bad.Store(t[i].bad.Load())
	}
}
