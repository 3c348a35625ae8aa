package limit

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Pass is a call that was let in. It is settled once and leaves once; what is
// done twice counts once. A nil one is that of a call without limits.
type Pass struct {
	Standing Standing // when it had come in

	entries       []entry
	settled, left atomic.Bool
}

// entry is what a call holds of a meter.
type entry struct {
	meter *Meter
	held  [len(periods)]int64
}

// Settle has the tokens that the call used count in the place of those that
// were held for it. Where they are more than there were, later calls wait.
func (p *Pass) Settle(tokens int64) {
	if p == nil || p.settled.Swap(true) {
		return
	}
	for i := range p.entries {
		e := &p.entries[i]
		e.correct(TokensPerMinute, min(max(tokens, 0), MaxRate))
	}
}

// Leave ends the call. One that is not settled keeps what it holds.
func (p *Pass) Leave() {
	if p == nil || p.left.Swap(true) {
		return
	}
	for i := range p.entries {
		m := p.entries[i].meter
		m.mu.Lock()
		m.atOnce--
		m.mu.Unlock()
	}
}

// Return ends a call that came to nothing as if it had never come in.
func (p *Pass) Return() {
	if p == nil || p.settled.Swap(true) {
		return
	}
	for i := range p.entries {
		for rule := range periods {
			p.entries[i].correct(Rule(rule), 0)
		}
	}
	p.Leave()
}

// correct has an amount count in the place of what is held.
func (e *entry) correct(r Rule, amount int64) {
	m := e.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rates.of(r) > 0 {
		m.buckets[r].add(amount - e.held[r])
	}
}

// Refusal is why a call was not let in: of all its limits that it would pass,
// the one that lasts longest.
type Refusal struct {
	Owner Owner
	Rule  Rule
	// What the rule lets in at once, what is used of that, and what the call
	// asked for.
	Limit, Used, Asked int64
	// Wait is until it would be let in, if nobody else were. 0: it never is.
	Wait time.Duration

	Standing Standing
}

// after reports whether a refusal lasts longer than another.
func (r *Refusal) after(other *Refusal) bool {
	switch {
	case r == nil || other == nil:
		return r != nil
	case r.Wait == 0 || other.Wait == 0:
		return other.Wait != 0
	}
	return r.Wait > other.Wait
}

// String is the refusal in OpenAI's words, of which clients read the wait.
func (r *Refusal) String() string {
	if r.Wait == 0 {
		return fmt.Sprintf("Request too large for %s on %s: Limit %d, Requested %d. The input must be reduced in order to run successfully.", r.Owner, r.Rule, r.Limit, r.Asked)
	}
	return fmt.Sprintf("Rate limit reached for %s on %s: Limit %d, Used %d, Requested %d. Please try again in %s.", r.Owner, r.Rule, r.Limit, r.Used, r.Asked, r.Wait)
}

// Standing is how it stands with the limits of a call: of several, with the one
// that has the least part left.
type Standing struct {
	Requests, Tokens Level
}

// Level is how it stands with a limit.
type Level struct {
	Limit     int64 // 0: there is none
	Remaining int64
	Reset     time.Duration // until all of it is there again
}

// standing is that of meters that are locked.
func standing(list []*Meter, now time.Time, nodes int) (s Standing) {
	for _, m := range list {
		for rule := range m.buckets {
			capacity := share(m.rates.of(Rule(rule)), nodes)
			if capacity == 0 {
				continue
			}
			b := &m.buckets[rule]
			s.of(Rule(rule)).tighten(Level{
				Limit: capacity, Remaining: max(capacity-b.used, 0), Reset: ceil(b.until(b.used, now, capacity, periods[rule])),
			})
		}
	}
	return s
}

func (s *Standing) of(r Rule) *Level {
	if r == TokensPerMinute {
		return &s.Tokens
	}
	return &s.Requests
}

func (l *Level) tighten(other Level) {
	if l.Limit == 0 || float64(other.Remaining)/float64(other.Limit) < float64(l.Remaining)/float64(l.Limit) {
		*l = other
	}
}
