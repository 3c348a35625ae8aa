package route

import (
	"fmt"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

// Step is what a plan did with one target: tried it, or left it out.
type Step struct {
	Target  string // "provider/model"
	Account string
	// Reason is a word or two: of one that was tried, how it failed, "" if it
	// did not; of others, why it was not.
	Reason string
	Tried  bool
	Start  time.Time // of the attempt
	Took   time.Duration
}

// Steps tells what was considered and tried. Of a call whose model's only
// target went well there is nothing to tell.
func (p *Plan) Steps() []Step {
	if p.model == nil { // the call ended before it was planned
		return nil
	}
	if len(p.model.Targets) == 1 && p.tried == 1 && p.tries[0].outcome == "" {
		return nil
	}
	var steps []Step
	for i, r := range p.reasons() {
		if r.why == notAside || p.wasTried(i) {
			continue
		}
		t := &p.model.Targets[i]
		steps = append(steps, Step{Target: t.name, Account: t.Account, Reason: r.String()})
	}
	for n := range p.tried {
		tr := p.try(n)
		t := &p.model.Targets[tr.target]
		steps = append(steps, Step{Target: t.name, Account: t.Account, Reason: tr.outcome, Tried: true, Start: tr.began, Took: tr.took})
	}
	return steps
}

func (p *Plan) wasTried(target int) bool {
	for n := range p.tried {
		if p.try(n).target == target {
			return true
		}
	}
	return false
}

var asideWords = [...]string{
	mute: "dialect", noVision: "no vision", noTools: "no tools", noSchema: "no schema", keeps: "retention", elsewhere: "region", unpriced: "price not known",
	small: "context", ruled: "rule", failedRule: "rule failed", sick: "cooling", probed: "half-open",
}

func (r reason) String() string {
	if r.why == sick {
		return fmt.Sprintf("cooling %ds", r.wait)
	}
	return asideWords[r.why]
}

// wholeSeconds rounds up, so that who waits so long does not come too soon.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// lacking are the words for clients.
var lacking = [...]string{
	mute: "the words of this operation", noVision: "vision", noTools: "tools",
	keeps: "zero retention", elsewhere: "the region that is asked for", unpriced: "a price that is known", ruled: "a rule that lets this request through", failedRule: "a rule that lets this request through",
}

// nobody says why no target is left for the first attempt.
func (p *Plan) nobody(at int64) *llm.Error {
	if e := p.allWaiting(at); e != nil {
		return e
	}
	var lacks []string
	kind := llm.Forbidden // unless something else than rules is in the way
	for _, r := range p.reasons() {
		if r.why == notAside || int(r.why) >= len(lacking) || lacking[r.why] == "" {
			continue
		}
		if r.why != ruled && r.why != failedRule {
			kind = llm.Unsupported
		}
		if word := lacking[r.why]; !strings.Contains(strings.Join(lacks, ", "), word) {
			lacks = append(lacks, word)
		}
	}
	e := llm.Errorf(kind, "No upstream of model '%s' can serve this request. What they lack: %s.", p.model.ID, strings.Join(lacks, ", "))
	e.Param = "model"
	return e
}

// allWaiting is the answer where all that could serve asked to be left alone;
// nil when none did.
func (p *Plan) allWaiting(at int64) *llm.Error {
	var least time.Duration
	kind := llm.Overloaded
	for i := range p.model.Targets {
		if !p.open(i) {
			continue
		}
		h := p.model.Targets[i].Health
		s, _, wait := h.state(at)
		if s != waiting {
			continue
		}
		if least == 0 || wait < least {
			least = wait
			if h.limited() {
				kind = llm.RateLimited
			}
		}
	}
	if least == 0 {
		return nil
	}
	e := llm.Errorf(kind, "The upstreams of model '%s' asked to be left alone. Please try again in %ds.", p.model.ID, wholeSeconds(least))
	e.RetryAfter = time.Duration(wholeSeconds(least)) * time.Second
	return e
}

// limited reports whether a rate limit is what the target asked to be left
// alone for.
func (h *Health) limited() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last == llm.RateLimited
}
