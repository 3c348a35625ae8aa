package gateway

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/route"
)

// hold is what a call holds of the budgets of its key. Each request that is
// made for the call is covered by it before it is sent; what they cost is
// settled once, at the end. A nil hold is that of a key without budgets.
type hold struct {
	budgets *budget.Hold
	worst   money.Amount // of one request

	mu    sync.Mutex
	held  money.Amount
	spent money.Amount // by requests that are over
	open  int          // requests that are not
}

// afford finds out whether the key can pay for the call, and holds the worst
// that it can cost: at the dearest of the targets that may serve.
func (g *Gateway) afford(c *Call, body []byte) error {
	if c.Key.Payer == nil {
		return g.known(c)
	}
	prompt := c.Dialect.Prompt(&c.Request)
	m := mostOf(&prompt, body)
	m.unbounded = m.unbounded || c.there.knowsMore()
	worst, err := g.worst(c, m, prompt.Answers())
	if err != nil {
		return err
	}
	return g.hold(c, worst)
}

// longestImage is the most tokens that a picture has.
const longestImage = 8 << 10

// affordImage is afford for a call that makes a picture.
func (g *Gateway) affordImage(c *Call, prompt []byte) error {
	if c.Key.Payer == nil {
		return g.known(c)
	}
	worst, err := g.worst(c, most{
		Most:    price.Most{Prompt: int64(len(prompt)), Completion: longestImage, Pictures: true},
		limited: true,
	}, 1)
	if err != nil {
		return err
	}
	return g.hold(c, worst)
}

// hold holds an amount, and notes it in the journal.
func (g *Gateway) hold(c *Call, worst money.Amount) error {
	held, err := c.Key.Payer.Hold(c.ctx, worst, c.Started)
	if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.OverBudget {
		e.Message += fmt.Sprintf(" It may cost $%s; what it costs at most is less when it limits the length of its answer.", worst)
	}
	if err != nil {
		return err
	}
	c.hold = &hold{budgets: held, worst: worst, held: worst}
	if !held.Active() {
		return nil
	}
	stub := c.newRecord(c.Started)
	stub.Usage = llm.Estimate(c.BytesIn, 0)
	if err := g.ledger.Hold(stub, min(worst, c.usual())); err != nil {
		return unrecorded(err)
	}
	return nil
}

// worst is the most that one request of a call can cost its key.
func (g *Gateway) worst(c *Call, m most, answers int64) (worst money.Amount, err error) {
	some := false
	for i := range c.model.Targets {
		t := &c.model.Targets[i]
		asked := m.at(t, answers)
		cost, known := t.Price.At(c.Started).Worst(asked)
		charge := t.Price.Charge(cost)
		if !known && c.set.Unknown == ChargeCeiling {
			charge, known = c.set.Ceiling.Worst(asked)
		}
		if known || c.set.Unknown == AllowUnknown {
			worst, some = max(worst, charge), true
		}
	}
	if !some {
		return 0, unknownPrice(c.model)
	}
	return worst, nil
}

// known refuses a call of a model without a price where that is the policy.
func (g *Gateway) known(c *Call) error {
	if c.set.Unknown != RefuseUnknown {
		return nil
	}
	for i := range c.model.Targets {
		if c.priced(&c.model.Targets[i]) {
			return nil
		}
	}
	return unknownPrice(c.model)
}

func unknownPrice(m *route.Model) error {
	e := llm.Errorf(llm.Forbidden, "The gateway does not know what '%s' costs, and makes no call that it cannot count. Its operator can set models.%s.price.", m.ID, m.ID)
	e.Code, e.NoRetry = "price_unknown", true
	return e
}

// mustKnow reports whether only targets may serve whose price is known.
func (c *Call) mustKnow() bool {
	switch c.set.Unknown {
	case RefuseUnknown:
		return true
	case RefuseBudgeted:
		return c.Key.Payer.Limited()
	}
	return false
}

// priced reports whether it is known what text costs at a target.
func (c *Call) priced(t *route.Target) bool {
	return t.Price.At(c.Started).OfText()
}

// usualAnswer is how long the answer is taken to be of a call whose end nobody
// saw, in tokens.
const usualAnswer = 500

// usual is about what the call costs.
func (c *Call) usual() money.Amount {
	usage := llm.Estimate(c.BytesIn, 0)
	usage.Output = usualAnswer
	var most money.Amount
	for i := range c.model.Targets {
		_, charge, _ := c.price(&c.model.Targets[i], &usage)
		most = max(most, charge)
	}
	return most
}

// price is what the vendor takes for what was used at a target, and what the
// key pays. Where the cost is not known, the key pays as for the dearest of
// what was used, by the ceiling's list where there is one: a client must not
// go free because of what it asks for.
func (c *Call) price(t *route.Target, u *llm.Usage) (cost, charge money.Amount, known bool) {
	list := t.Price.At(c.Started)
	cost, known = list.Cost(u)
	if !known && u.Stated > 0 {
		cost, known = u.Stated, true
	}
	if known {
		return cost, t.Price.Charge(cost), true
	}
	used := price.Most{Prompt: u.Prompt(), Completion: u.Completion(), Searches: u.Searches, Sound: true, Pictures: true, Service: u.Service}
	if c.set.Unknown == ChargeCeiling {
		charge, _ = c.set.Ceiling.Worst(used)
		return 0, charge, false
	}
	worst, _ := list.Worst(used)
	return 0, t.Price.Charge(worst), false
}

// cover has the hold cover one more request.
func (h *hold) cover() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	needed := h.spent
	for range h.open + 1 {
		needed = needed.Plus(h.worst)
	}
	if more := needed.Minus(h.held); more > 0 {
		if err := h.budgets.More(more); err != nil {
			return err
		}
		h.held = needed
	}
	h.open++
	return nil
}

// over notes what requests cost that are over.
func (h *hold) over(requests int, charge money.Amount) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open -= requests
	h.spent = h.spent.Plus(charge)
}

// settle gives back what the call did not cost. Only the first counts.
func (h *hold) settle(charge money.Amount) {
	if h != nil {
		h.budgets.Settle(charge)
	}
}

// balances are where the charge is booked.
func (h *hold) balances() string {
	if h == nil {
		return ""
	}
	return h.budgets.Balances()
}

// use adds what an attempt used to the call, and what that costs.
func (a *attempt) use(u llm.Usage) {
	c := a.Call
	u = a.plausible(u)
	var charge money.Amount
	if u != (llm.Usage{}) {
		cost, due, known := c.price(a.Target, &u)
		charge = due
		c.cost, c.charge = c.cost.Plus(cost), c.charge.Plus(charge)
		c.unpriced = c.unpriced || !known
		c.Usage = c.Usage.Plus(u)
	}
	c.hold.over(a.requests, charge)
	a.requests = 0
}

// maxSearches is how many searches a request can have made, whoever says so.
const maxSearches = 1000

// plausible bounds what an upstream says that it used: it may say anything.
func (a *attempt) plausible(u llm.Usage) llm.Usage {
	requests := int64(max(a.requests, 1))
	prompt := max(a.BytesIn, a.Target.Context, 2*longestPrompt) * requests
	completion := max(longest(a.Target), longestPrompt) * requests
	clamped := false
	for _, c := range []struct {
		n    *int64
		most int64
	}{
		{&u.Input, prompt}, {&u.CacheRead, prompt}, {&u.CacheWrite, prompt}, {&u.HourWrite, prompt}, {&u.AudioIn, prompt},
		{&u.Output, completion}, {&u.Reasoning, completion}, {&u.AudioOut, completion}, {&u.ImageOut, completion}, {&u.Searches, maxSearches * requests},
	} {
		if *c.n > c.most {
			*c.n, clamped = c.most, true
		}
	}
	if clamped {
		u.Stated = 0
		a.notes.Clamp("usage")
	}
	return u
}

// costHeader tells what a call cost its key, in dollars.
const costHeader = "X-Limen-Cost"

// tellCost says in the header, or behind a stream, what the call cost.
func (c *Call) tellCost() {
	cost := "unknown"
	if !c.unpriced {
		cost = c.charge.String()
	}
	c.answer.closing(costHeader, cost)
}

// costOf tells an answer's usage what it cost, where the policy is to say so.
func (c *Call) costOf(t *route.Target) func(llm.Usage) (money.Amount, bool) {
	if !c.set.CostInUsage {
		return nil
	}
	return func(u llm.Usage) (money.Amount, bool) {
		_, charge, known := c.price(t, &u)
		return charge, known
	}
}

// unrecorded is why no call is made that cannot be accounted for.
func unrecorded(err error) *llm.Error {
	return &llm.Error{
		Kind: llm.Unavailable, Message: "The gateway cannot record usage now, so it takes no calls. Please try again in 2s.", RetryAfter: 2 * time.Second, Err: err,
	}
}
