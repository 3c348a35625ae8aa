package route

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/rule"
)

// Failures as the gateway tells of them.
var (
	connect   = Outcome{Err: &llm.Error{Kind: llm.Upstream}}
	brokenOff = Outcome{Err: &llm.Error{Kind: llm.Upstream}, Dialed: true}
	status500 = Outcome{Err: &llm.Error{Kind: llm.Upstream, Status: 500}, Dialed: true}
	status503 = Outcome{Err: &llm.Error{Kind: llm.Overloaded, Status: 503, RetryAfter: time.Second}, Dialed: true}
	status404 = Outcome{Err: &llm.Error{Kind: llm.Upstream, Status: 404}, Dialed: true}
	status401 = Outcome{Err: &llm.Error{Kind: llm.UpstreamAuth, Status: 401}, Dialed: true}
	status402 = Outcome{Err: &llm.Error{Kind: llm.UpstreamQuota, Status: 429}, Dialed: true, Wait: time.Second}
	status403 = Outcome{Err: &llm.Error{Kind: llm.UpstreamAuth, Status: 403}, Dialed: true}
	status429 = Outcome{Err: &llm.Error{Kind: llm.RateLimited, Status: 429, RetryAfter: time.Second}, Dialed: true}
	wait20    = Outcome{Err: &llm.Error{Kind: llm.RateLimited, Status: 429, RetryAfter: 20 * time.Second}, Dialed: true, Wait: 20 * time.Second}
	status400 = Outcome{Err: &llm.Error{Kind: llm.Invalid, Status: 400}, Dialed: true}
	slow      = Outcome{Err: &llm.Error{Kind: llm.UpstreamTimeout}, Dialed: true}
	garbage   = Outcome{Err: &llm.Error{Kind: llm.UpstreamInvalid}, Dialed: true}
	cannot    = Outcome{Err: &llm.Error{Kind: llm.Unsupported}}
	full      = Outcome{Err: &llm.Error{Kind: llm.Overloaded, RetryAfter: time.Second}}
	left      = Outcome{Canceled: true, Dialed: true}
	fine      = Outcome{FirstToken: 100 * time.Millisecond, Dialed: true}
)

// bench is a router with one model, a clock and targets that answer as they
// are told.
type bench struct {
	t   *testing.T
	r   *Router
	m   *Model
	now time.Time
}

func newBench(t *testing.T, m *Model) *bench {
	if m.ID == "" {
		m.ID = "m"
	}
	NewTable([]*Model{m})
	r := NewRouter()
	n := uint64(0)
	r.dice = func() uint64 { n++; return mix(n) }
	return &bench{t, r, m, time.Unix(1_000_000_000, 0)}
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// call makes a call against targets that answer so, by model name, fine where
// nothing is said. It returns the names of those tried and how it ended.
func (b *bench) call(q Query, answers map[string]Outcome) (tried []string, steps string, err error) {
	b.t.Helper()
	p := b.r.Plan(b.m, &q, b.now)
	for {
		target, err := p.Next(b.now)
		if err != nil {
			return tried, told(&p), err
		}
		tried = append(tried, target.Model)
		o, ok := answers[target.Model]
		if !ok {
			o = fine
		}
		p.Done(target, o, b.now)
		if !p.Retryable() {
			if o.Err == nil {
				return tried, told(&p), nil
			}
			return tried, told(&p), o.Err
		}
	}
}

func told(p *Plan) string {
	var words []string
	for _, s := range p.Steps() {
		_, model, _ := strings.Cut("/"+s.Target, "/")
		word := model + ":" + s.Reason
		if s.Tried {
			word = "*" + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// chain is an ordered model with these targets.
func chain(names ...string) *Model {
	m := &Model{Strategy: Ordered, Affinity: true}
	for i, name := range names {
		m.Targets = append(m.Targets, Target{Model: name, Account: name, Tier: i})
	}
	return m
}

func TestFailuresAndWhoIsTriedNext(t *testing.T) {
	for name, test := range map[string]struct {
		a, b   Outcome
		tried  string
		failed bool
		steps  string
	}{
		"all is well":             {fine, fine, "a", false, "*a:"},
		"connect":                 {connect, fine, "a b", false, "*a:connect *b:"},
		"500":                     {status500, fine, "a b", false, "*a:500 *b:"},
		"404":                     {status404, fine, "a b", false, "*a:404 *b:"},
		"401":                     {status401, fine, "a b", false, "*a:401 *b:"},
		"402":                     {status402, fine, "a b", false, "*a:429 *b:"},
		"403":                     {status403, fine, "a b", false, "*a:403 *b:"},
		"429":                     {status429, fine, "a b", false, "*a:429 *b:"},
		"timeout":                 {slow, fine, "a b", false, "*a:timeout *b:"},
		"no answer":               {garbage, fine, "a b", false, "*a:invalid *b:"},
		"cannot say it":           {cannot, fine, "a b", false, "*a:cannot *b:"},
		"no room with it":         {full, fine, "a b", false, "*a:full *b:"},
		"no room with either":     {full, full, "a b", true, "*a:full *b:full"},
		"the client's fault":      {status400, fine, "a", true, "*a:400"},
		"the client left":         {left, fine, "a", false, "*a:canceled"},
		"both, and a once more":   {status500, connect, "a b b", true, "*a:500 *b:connect *b:connect"},
		"both, with rate limits":  {status500, status429, "a b", true, "*a:500 *b:429"},
		"both, with one to wait":  {status500, wait20, "a b", true, "*a:500 *b:429"},
		"both, and nothing again": {status404, status401, "a b", true, "*a:404 *b:401"},
	} {
		b := newBench(t, chain("a", "b"))
		tried, steps, err := b.call(Query{}, map[string]Outcome{"a": test.a, "b": test.b})
		if strings.Join(tried, " ") != test.tried || (err != nil) != test.failed || steps != test.steps {
			t.Errorf("%s: tried %q, %v, steps %q", name, tried, err, steps)
		}
	}
}

// The only target is tried twice at most, and only where that may help.
func TestOneTargetAgain(t *testing.T) {
	for name, test := range map[string]struct {
		o Outcome
		n int
	}{
		"connect": {connect, 2}, "broken off": {brokenOff, 2}, "500": {status500, 2}, "503": {status503, 2},
		"429": {status429, 1}, "404": {status404, 1}, "401": {status401, 1}, "timeout": {slow, 1}, "400": {status400, 1},
		"503 with a wait": {Outcome{Err: status503.Err, Dialed: true, Wait: time.Second}, 1},
	} {
		b := newBench(t, chain("a"))
		tried, _, err := b.call(Query{}, map[string]Outcome{"a": test.o})
		if len(tried) != test.n || !errors.Is(err, test.o.Err) {
			t.Errorf("%s: tried %d times, %v", name, len(tried), err)
		}
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	all := map[string]Outcome{"a": status500, "b": status500, "c": status500, "d": status500}
	b := newBench(t, chain("a", "b", "c", "d"))
	if tried, _, _ := b.call(Query{}, all); len(tried) != 3 {
		t.Errorf("tried %q", tried)
	}
	b.r.Apply(Retries{Attempts: 1, Budget: 10})
	if tried, _, _ := b.call(Query{}, all); len(tried) != 1 {
		t.Errorf("one attempt: tried %q", tried)
	}
	b.r.Apply(Retries{Attempts: 4, Budget: 0})
	if tried, _, _ := b.call(Query{}, all); len(tried) != 1 {
		t.Errorf("no budget: tried %q", tried)
	}
	// What was never sent is no attempt.
	b = newBench(t, chain("a", "b", "c"))
	b.r.Apply(Retries{Attempts: 1, Budget: 0})
	if tried, _, err := b.call(Query{}, map[string]Outcome{"a": cannot, "b": cannot}); len(tried) != 3 || err != nil {
		t.Errorf("two that cannot say it: tried %q, %v", tried, err)
	}
}

func TestRetryBudget(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	b.m.Targets[0].Health.account = &account{}
	extra := 0
	for range 1000 { // of ten seconds
		tried, _, _ := b.call(Query{}, map[string]Outcome{"a": status400, "b": status400})
		extra += len(tried) - 1
		p := b.r.Plan(b.m, &Query{}, b.now)
		target, _ := p.Next(b.now)
		p.Done(target, status500, b.now)
		if second, err := p.Next(b.now); err == nil {
			extra++
			p.Done(second, fine, b.now)
		}
		b.m.Targets[0].Health.close() // it is the budget that is tried
		b.pass(5 * time.Millisecond)
	}
	if extra < 150 || extra > 200 {
		t.Errorf("%d extra attempts for 2000 calls", extra)
	}
	b.pass(11 * time.Second)
	p := b.r.Plan(b.m, &Query{}, b.now)
	target, _ := p.Next(b.now)
	p.Done(target, status500, b.now)
	if _, err := p.Next(b.now); err != nil {
		t.Errorf("a lone call has no second try: %v", err)
	}
}

func TestBreaker(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	sick := map[string]Outcome{"a": status500}
	for range maxFailures {
		b.call(Query{}, sick)
	}
	if tried, steps, _ := b.call(Query{}, sick); !slices.Equal(tried, []string{"b"}) || steps != "a:cooling 1s *b:" {
		t.Errorf("tried %q, %s", tried, steps)
	}
	// One call at a time and a second finds out, and the next cooldown is longer.
	b.pass(time.Second)
	p := b.r.Plan(b.m, &Query{}, b.now)
	probe, _ := p.Next(b.now)
	if probe.Model != "a" {
		t.Fatalf("the probe goes to %s", probe.Model)
	}
	b.pass(2 * time.Second)
	if tried, steps, _ := b.call(Query{}, sick); !slices.Equal(tried, []string{"b"}) || steps != "a:half-open *b:" {
		t.Errorf("beside a probe: tried %q, %s", tried, steps)
	}
	p.Done(probe, status500, b.now)
	b.pass(1400 * time.Millisecond)
	if tried, _, _ := b.call(Query{}, nil); !slices.Equal(tried, []string{"b"}) {
		t.Errorf("after the second failure: tried %q", tried)
	}
	b.pass(600 * time.Millisecond)
	for range 2 {
		if tried, _, _ := b.call(Query{}, nil); !slices.Equal(tried, []string{"a"}) {
			t.Errorf("after it healed: tried %q", tried)
		}
	}
	if s := b.m.Targets[0].Health.Snapshot(b.now); s.State != "ok" || s.LastError != "upstream" || s.InFlight != 0 || s.FirstToken == 0 {
		t.Errorf("%+v", s)
	}
}

// A call that hangs keeps no target from being found well.
func TestProbeThatHangs(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	for range maxFailures {
		b.call(Query{}, map[string]Outcome{"a": status500})
	}
	b.pass(time.Second)
	p := b.r.Plan(b.m, &Query{}, b.now)
	probe, _ := p.Next(b.now)
	b.pass(maxProbe)
	if tried, _, _ := b.call(Query{}, nil); !slices.Equal(tried, []string{"a"}) {
		t.Errorf("tried %q", tried)
	}
	p.Done(probe, left, b.now)

	// One that is long shows by its beginning that all is well.
	for range maxFailures {
		b.call(Query{}, map[string]Outcome{"a": status500})
	}
	b.pass(time.Second)
	p = b.r.Plan(b.m, &Query{}, b.now)
	probe, _ = p.Next(b.now)
	p.Begun(probe, time.Second, b.now)
	if tried, _, _ := b.call(Query{}, nil); !slices.Equal(tried, []string{"a"}) {
		t.Errorf("beside a long answer: tried %q", tried)
	}
	p.Done(probe, fine, b.now)
	if n := b.m.Targets[0].Health.inFlight.Load(); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
}

// Half of ten calls failing is too much, also when they are never five in a
// row.
func TestErrorRate(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	for i := range minSample {
		o := fine
		if i%2 == 1 {
			o = status500
		}
		b.call(Query{}, map[string]Outcome{"a": o})
	}
	if s := b.m.Targets[0].Health.Snapshot(b.now); s.State != "cooling" || s.ErrorRate != 0.5 || !s.Until.After(b.now) {
		t.Errorf("%+v", s)
	}
}

// What was under way when a breaker opened neither closes nor lengthens it.
func TestCallsOfBefore(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	var plans []Plan
	var targets []*Target
	for range 100 {
		plans = append(plans, b.r.Plan(b.m, &Query{}, b.now))
		target, _ := plans[len(plans)-1].Next(b.now)
		targets = append(targets, target)
	}
	b.pass(time.Millisecond)
	for i := range plans[:99] {
		plans[i].Done(targets[i], status500, b.now)
	}
	plans[99].Done(targets[99], fine, b.now)
	s := b.m.Targets[0].Health.Snapshot(b.now)
	if wait := s.Until.Sub(b.now); s.State != "cooling" || wait > firstCooling {
		t.Errorf("%s for %v", s.State, wait)
	}
}

// Where all asked to be left alone, they are; the only one there is says so
// itself.
func TestRateLimits(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	b.call(Query{}, map[string]Outcome{"a": wait20, "b": wait20})
	b.pass(19 * time.Second)
	_, steps, err := b.call(Query{}, nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.RateLimited || e.RetryAfter != time.Second || steps != "a:cooling 1s b:cooling 1s" {
		t.Errorf("%v, steps %q", err, steps)
	}
	b.pass(time.Second)
	if tried, _, err := b.call(Query{}, nil); err != nil || len(tried) != 1 {
		t.Errorf("after the wait: %v, %v", tried, err)
	}
	// Overloaded ones that say how long are a 503.
	b = newBench(t, chain("a", "b"))
	full := Outcome{Err: status503.Err, Dialed: true, Wait: 30 * time.Second}
	b.call(Query{}, map[string]Outcome{"a": full, "b": full})
	if _, _, err := b.call(Query{}, nil); !errors.As(err, &e) || e.Kind != llm.Overloaded || e.RetryAfter != 30*time.Second {
		t.Errorf("%v", err)
	}
	for _, limit := range []Outcome{wait20, status429} {
		b = newBench(t, chain("a"))
		for range 3 {
			if tried, _, _ := b.call(Query{}, map[string]Outcome{"a": limit}); len(tried) != 1 {
				t.Errorf("the only target: tried %q", tried)
			}
		}
	}
}

// When all are sick, the one that was to be tried next is.
func TestAllSick(t *testing.T) {
	b := newBench(t, chain("a", "b"))
	both := map[string]Outcome{"a": status500, "b": status500}
	for range 2 * maxFailures {
		b.call(Query{}, both)
	}
	b.m.Targets[0].Health.until.Add(int64(time.Second))
	tried, _, err := b.call(Query{}, both)
	if err == nil || tried[0] != "b" {
		t.Errorf("tried %q, %v", tried, err)
	}
	if tried, _, err := b.call(Query{}, nil); err != nil || tried[0] != "b" {
		t.Errorf("tried %q, %v", tried, err)
	}
	if s := b.m.Targets[1].Health.Snapshot(b.now); s.State != "ok" {
		t.Errorf("one that answered is %s", s.State)
	}
}

// A credential that is refused is out for all models of its account, until the
// configuration is read again.
func TestAccounts(t *testing.T) {
	reg := NewRegistry()
	m := &Model{Strategy: Weighted, Affinity: true, Targets: []Target{
		{Model: "m1", Account: "p", Health: reg.Health("p", "m")}, {Model: "m2", Account: "p#2", Health: reg.Health("p#2", "m")},
	}}
	other := reg.Health("p", "other")
	for name, o := range map[string]Outcome{"401": status401, "402": status402} {
		b := newBench(t, m)
		for b.m.Targets[0].Health.well() {
			b.call(Query{}, map[string]Outcome{"m1": o})
		}
		s := other.Snapshot(b.now)
		if wait := s.Until.Sub(b.now); s.State != "cooling" || wait < 45*time.Second || wait > time.Minute {
			t.Errorf("%s: %s for %v", name, s.State, wait)
		}
		for range 20 {
			if tried, _, err := b.call(Query{}, nil); err != nil || tried[0] != "m2" {
				t.Errorf("%s: tried %q, %v", name, tried, err)
			}
		}
		reg.Forgive()
		if s := other.Snapshot(b.now); s.State != "ok" {
			t.Errorf("%s: forgiven it is %s", name, s.State)
		}
	}
	b := newBench(t, m)
	for range 60 { // a refusal may be about one request
		b.call(Query{}, map[string]Outcome{"m1": status403})
		if f := b.m.Targets[0].Health.account.failures.Load(); f < maxFailures && !other.well() {
			t.Fatalf("out after %d", f)
		}
	}
	if other.well() {
		t.Error("an account that answers nothing but 403 is well")
	}
}

func TestRegistry(t *testing.T) {
	reg := NewRegistry()
	a, b := reg.Health("k1", "m"), reg.Health("k2", "m")
	reg.Sweep()
	if reg.Health("k1", "m") != a || a.account == b.account {
		t.Error("a target that stays has another health")
	}
	reg.Sweep()
	if reg.Health("k2", "m") == b {
		t.Error("a target that went has its health still")
	}
}

func TestNeeds(t *testing.T) {
	no := provider.No
	m := &Model{ID: "fast", Strategy: Ordered, Targets: []Target{
		{Model: "blind", Vision: no, Context: 1000}, {Model: "mute", Tools: no, Context: 100_000, Tier: 1},
		{Model: "loose", Schema: no, Tier: 2, ZeroRetention: true}, {Model: "eu", Region: "eu", Tier: 3, Context: 8000},
	}}
	for name, test := range map[string]struct {
		q           Query
		want, steps string
	}{
		"nothing":         {Query{}, "blind", "*blind:"},
		"vision":          {Query{Needs: NeedsVision}, "mute", "blind:no vision *mute:"},
		"vision, tools":   {Query{Needs: NeedsVision | NeedsTools}, "loose", "blind:no vision mute:no tools *loose:"},
		"all three":       {Query{Needs: NeedsVision | NeedsTools | NeedsSchema}, "eu", "blind:no vision mute:no tools loose:no schema *eu:"},
		"no schema there": {Query{Needs: NeedsSchema | NeedsZeroRetention}, "loose", "blind:retention mute:retention eu:retention *loose:"},
		"zero retention":  {Query{Needs: NeedsZeroRetention}, "loose", "blind:retention mute:retention eu:retention *loose:"},
		"region":          {Query{Region: "eu"}, "eu", "blind:region mute:region loose:region *eu:"},
		"long":            {Query{Tokens: 9000}, "mute", "blind:context eu:context *mute:"},
		"too long for it": {Query{Tokens: 9000, Region: "eu"}, "eu", "blind:region mute:region loose:region *eu:"},
		"spoken to": {Query{Speaks: func(t *Target) bool { return t.Model == "eu" }}, "eu",
			"blind:dialect mute:dialect loose:dialect *eu:"},
	} {
		b := newBench(t, m)
		tried, steps, err := b.call(test.q, nil)
		if err != nil || strings.Join(tried, " ") != test.want || steps != test.steps {
			t.Errorf("%s: tried %q, %v, %s", name, tried, err, steps)
		}
	}
	b := newBench(t, m)
	_, steps, err := b.call(Query{Needs: NeedsVision | NeedsTools | NeedsZeroRetention, Region: "eu"}, nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Unsupported || e.Param != "model" ||
		e.Message != "No upstream of model 'fast' can serve this request. What they lack: vision, tools, the region that is asked for, zero retention." {
		t.Errorf("%v; %s", err, steps)
	}
}

type vars map[string]any

func (v vars) Var(name string) any { return v[name] }

func TestRules(t *testing.T) {
	compile := func(text string) *rule.Rule {
		r, err := rule.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	gold := compile(`team == "gold"`)
	m := &Model{Strategy: Ordered, Targets: []Target{{Model: "a", When: gold}, {Model: "b", When: compile(`tokens / (tokens - 5) > 0`), Tier: 1}}}
	for name, test := range map[string]struct {
		v      vars
		steps  string
		failed bool
	}{
		"the first":  {vars{"team": "gold", "tokens": int64(5)}, "b:rule failed *a:", true},
		"the second": {vars{"team": "x", "tokens": int64(6)}, "a:rule *b:", false},
		"none":       {vars{"team": "x", "tokens": int64(5)}, "a:rule b:rule failed", true},
	} {
		b := newBench(t, m)
		q := Query{Vars: test.v}
		p := b.r.Plan(m, &q, b.now)
		target, err := p.Next(b.now)
		if (p.RuleError() != nil) != test.failed {
			t.Errorf("%s: rule error %v", name, p.RuleError())
		}
		if err == nil {
			p.Done(target, fine, b.now)
		} else if e := llm.AsError(err); e.Kind != llm.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
		if got := told(&p); got != test.steps {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestStrategies(t *testing.T) {
	model := func(s Strategy) *Model {
		m := &Model{Strategy: s}
		for i, name := range []string{"a", "b", "c"} {
			m.Targets = append(m.Targets, Target{Model: name, Weight: float64(i + 1)})
		}
		return m
	}
	b := newBench(t, model(Weighted))
	count := map[string]int{}
	for range 6000 {
		tried, _, _ := b.call(Query{}, nil)
		count[tried[0]]++
	}
	for name, want := range map[string]int{"a": 1000, "b": 2000, "c": 3000} {
		if got := count[name]; got < want*9/10 || got > want*11/10 {
			t.Errorf("weighted: %s has %d of 6000 calls, want about %d", name, got, want)
		}
	}

	b = newBench(t, model(Busy))
	for range 6 {
		p := b.r.Plan(b.m, &Query{}, b.now)
		p.Next(b.now)
	}
	for i, want := range []int64{1, 2, 3} {
		if got := b.m.Targets[i].Health.inFlight.Load(); got != want {
			t.Errorf("busy: target %d has %d calls, want %d", i, got, want)
		}
	}

	m := model(Price)
	book := func(in, out int64) *price.Book {
		return price.NewBook(0, price.Dated{List: price.List{Rates: price.Rates{Input: price.RateOf(in), Output: price.RateOf(out)}}})
	}
	m.Targets[1].Price, m.Targets[2].Price = book(1, 10), book(3, 1) // nobody knows a price of the first
	b = newBench(t, m)
	for q, want := range map[*Query]string{{Tokens: 100, MaxOutput: 400}: "c", {Tokens: 100_000}: "b"} {
		if tried, _, _ := b.call(*q, nil); tried[0] != want {
			t.Errorf("price: %d tokens go to %q", q.Tokens, tried)
		}
	}
}

func TestLatency(t *testing.T) {
	b := newBench(t, &Model{Strategy: Latency, Targets: []Target{{Model: "a"}, {Model: "b"}}})
	took := map[string]Outcome{"a": {FirstToken: 100 * time.Millisecond, Dialed: true}, "b": {FirstToken: 4 * time.Second, Dialed: true}}
	count := map[string]int{}
	for range 600 { // ten minutes
		tried, _, _ := b.call(Query{}, took)
		count[tried[0]]++
		b.pass(time.Second)
	}
	if count["b"] < 5 || count["b"] > 30 {
		t.Errorf("the slow one is asked %d times of 600", count["b"])
	}
	took["b"] = Outcome{FirstToken: 10 * time.Millisecond, Dialed: true}
	clear(count)
	for range 600 {
		tried, _, _ := b.call(Query{}, took)
		count[tried[0]]++
		b.pass(time.Second)
	}
	if count["b"] < 300 {
		t.Errorf("once it is the faster one it is asked %d times of 600", count["b"])
	}
	if b.m.Targets[0].Health.FirstToken95() != 100*time.Millisecond {
		t.Errorf("95 %% of the first tokens came within %v", b.m.Targets[0].Health.FirstToken95())
	}
}

// Eight accounts, 200 conversations, 20 turns each.
func TestAffinity(t *testing.T) {
	for seed := range uint64(100) {
		m := accounts(8)
		b := newBench(t, m)
		at := map[uint64]string{}
		for turn := range 20 {
			for c := range uint64(200) {
				key := mix(seed<<32 + c)
				tried, _, _ := b.call(Query{Sticky: key}, nil)
				if turn == 0 {
					at[key] = tried[0]
				} else if at[key] != tried[0] {
					t.Fatalf("seed %d: turn %d of %d goes to %s, not %s", seed, turn, c, tried[0], at[key])
				}
			}
			b.pass(time.Minute)
		}
		for i := range m.Targets {
			if n := m.Targets[i].Health.held.Load(); n < 19 || n > 31 {
				t.Errorf("seed %d: target %d has %d of 200 conversations", seed, i, n)
			}
		}
	}
}

// Two replicas that never spoke mostly agree on where a conversation is.
func TestReplicasAgree(t *testing.T) {
	one, other := newBench(t, accounts(8)), newBench(t, accounts(8))
	agree := 0
	for c := range uint64(2000) {
		a, _, _ := one.call(Query{Sticky: mix(c)}, nil)
		b, _, _ := other.call(Query{Sticky: mix((c*7 + 13) % 2000)}, nil)
		_, _ = a, b
	}
	for c := range uint64(2000) {
		a, _, _ := one.call(Query{Sticky: mix(c)}, nil)
		b, _, _ := other.call(Query{Sticky: mix(c)}, nil)
		if a[0] == b[0] {
			agree++
		}
	}
	if agree < 1700 {
		t.Errorf("they agree on %d of 2000", agree)
	}
}

// A conversation leaves a target that is sick, stays where it went, and does
// not leave one that failed once.
func TestAffinityAndHealth(t *testing.T) {
	b := newBench(t, accounts(3))
	q := Query{Sticky: 7}
	home := func() string { tried, _, _ := b.call(q, nil); return tried[0] }
	first := home()
	if tried, _, err := b.call(q, map[string]Outcome{first: status500}); len(tried) != 2 || err != nil {
		t.Fatalf("tried %q, %v", tried, err)
	}
	if got := home(); got != first {
		t.Errorf("after one failure it is at %s, not %s", got, first)
	}
	for range maxFailures {
		b.call(q, map[string]Outcome{first: status500})
	}
	second := home()
	if second == first {
		t.Fatal("it stays with a sick target")
	}
	b.pass(firstCooling)
	if got := home(); got != second {
		t.Errorf("it left %s for %s", second, got)
	}
	b.pass(overdue)
	if got := home(); got != first { // nobody else came to find out
		t.Errorf("no call finds out how it is with %s", first)
	}
	for range 5 {
		if got := home(); got != second {
			t.Errorf("it is at %s, not %s", got, second)
		}
	}
}

// In a chain, a conversation is with the first tier that is well.
func TestAffinityInAChain(t *testing.T) {
	m := chain("a1", "a2", "b")
	m.Targets[1].Tier = 0
	b := newBench(t, m)
	seen := map[string]bool{}
	for c := range uint64(40) {
		for range 3 {
			tried, _, _ := b.call(Query{Sticky: c + 1}, nil)
			seen[fmt.Sprint(c, tried)] = true
		}
	}
	if len(seen) != 40 {
		t.Errorf("40 conversations were at %d places", len(seen))
	}
	for _, i := range []int{0, 1} {
		if n := m.Targets[i].Health.held.Load(); n < 15 || n > 25 {
			t.Errorf("account %d has %d of 40", i, n)
		}
	}
	down := map[string]Outcome{"a1": status429, "a2": status429}
	for range 3 {
		b.call(Query{Sticky: 1}, down)
	}
	if tried, _, _ := b.call(Query{Sticky: 1}, down); tried[0] != "b" {
		t.Errorf("tried %q", tried)
	}
	b.pass(5 * time.Second)
	b.call(Query{Sticky: 1}, nil)
	if tried, _, _ := b.call(Query{Sticky: 1}, nil); tried[0] == "b" {
		t.Error("it stays with the fallback")
	}
}

func TestOrigin(t *testing.T) {
	m := accounts(4)
	for i := range m.Targets {
		m.Targets[i].Caps = map[dialect.Name]*llm.Caps{dialect.OpenAIResponses: {Origin: fmt.Sprint("o", i)}}
	}
	b := newBench(t, m)
	for c := range uint64(50) {
		if tried, _, _ := b.call(Query{Sticky: c + 1, Origin: []string{"o2", "gone"}}, nil); tried[0] != "t2" {
			t.Errorf("its state is at t2, tried %q", tried)
		}
	}
	b.call(Query{Origin: []string{"o2"}}, map[string]Outcome{"t2": wait20})
	if tried, _, err := b.call(Query{Origin: []string{"o2"}}, nil); err != nil || tried[0] == "t2" {
		t.Errorf("t2 is sick: %q, %v", tried, err)
	}
}

func TestStickyIsBounded(t *testing.T) {
	var s sticky
	h, other := NewHealth("a"), NewHealth("b")
	now := time.Unix(1e9, 0).UnixNano()
	for i := range uint64(200_000) {
		s.put(mix(i), h, now)
	}
	n := 0
	for i := range s {
		n += len(s[i].at)
	}
	if n != stickyShards*stickyShard || h.held.Load() != int64(n) {
		t.Errorf("%d conversations, %d held", n, h.held.Load())
	}
	if s.find(mix(199_999), now) != h || s.find(mix(1), now) != nil {
		t.Error("the wrong ones were forgotten")
	}
	s.put(mix(199_999), other, now)
	if s.find(mix(199_999), now) != other || other.held.Load() != 1 || h.held.Load() != int64(n-1) {
		t.Errorf("moved: %d and %d held", h.held.Load(), other.held.Load())
	}
	now += int64(stickyTTL)
	for range stickyShard {
		for i := range uint64(stickyShards) {
			s.find(i<<32, now)
		}
	}
	if h.held.Load() != 0 || other.held.Load() != 0 {
		t.Errorf("after their time %d and %d are held", h.held.Load(), other.held.Load())
	}
}

func TestHedge(t *testing.T) {
	m := accounts(2)
	m.Hedge = &Hedge{MaxExtra: 5}
	b := newBench(t, m)
	hedged := 0
	for range 200 {
		p := b.r.Plan(m, &Query{}, b.now)
		one, _ := p.Next(b.now)
		if _, left := p.Leave(); !left {
			t.Fatal("no other is left")
		}
		if two, ok := p.Hedge(b.now); ok {
			hedged++
			if one == two {
				t.Fatal("the same target twice")
			}
			if _, ok := p.Hedge(b.now); ok {
				t.Fatal("a third target")
			}
			p.Done(two, fine, b.now)
			p.Done(one, left, b.now)
			continue
		}
		p.Done(one, fine, b.now)
	}
	m.Targets[1].Health.until.Store(b.now.Add(time.Minute).UnixNano())
	b.pass(window)
	for range 100 {
		p := b.r.Plan(m, &Query{}, b.now)
		one, _ := p.Next(b.now)
		if _, ok := p.Hedge(b.now); ok {
			t.Fatal("a sick target is asked as well")
		}
		if _, left := p.Leave(); left {
			t.Fatal("a sick target is left")
		}
		p.Done(one, fine, b.now)
	}
	if hedged < 8 || hedged > 10 {
		t.Errorf("%d of 200 calls were made twice", hedged)
	}
	if n := m.Targets[0].Health.inFlight.Load() + m.Targets[1].Health.inFlight.Load(); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
}

// What is slow is given up only where the retry budget has room for another
// attempt, and that attempt then has it, whoever else takes the rest.
func TestLeave(t *testing.T) {
	b := newBench(t, accounts(2))
	slow := Outcome{Err: &llm.Error{Kind: llm.UpstreamTimeout}, Left: true}
	var plans []*Plan
	for range 20 {
		p := b.r.Plan(b.m, &Query{}, b.now)
		p.Next(b.now)
		plans = append(plans, &p)
	}
	left := 0
	var leaves []*Plan
	for _, p := range plans {
		leave, ok := p.Leave()
		if !ok {
			t.Fatal("no other is left")
		}
		if leave.Take(b.now) {
			leaves = append(leaves, p)
			left++
		}
	}
	for _, p := range leaves {
		one := &b.m.Targets[p.try(0).target]
		p.Done(one, slow, b.now)
		if two, err := p.Next(b.now); err != nil || two == one {
			t.Errorf("got %v, %v, want another target", two, err)
		}
	}
	if left != fewExtra-forProbes {
		t.Errorf("%d calls left their targets, want %d", left, fewExtra-forProbes)
	}
}

// A call of a model with one target that is well costs no memory.
func TestNoAllocation(t *testing.T) {
	b := newBench(t, accounts(1))
	q := Query{Sticky: 1, Tokens: 10}
	b.call(q, nil)
	var p Plan
	if n := testing.AllocsPerRun(1000, func() {
		p = b.r.Plan(b.m, &q, b.now)
		target, _ := p.Next(b.now)
		p.Done(target, fine, b.now)
		if p.Steps() != nil {
			t.Error("there is something to tell")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// More targets and attempts than have a place in a plan.
func TestManyTargets(t *testing.T) {
	b := newBench(t, accounts(40))
	b.r.Apply(Retries{Attempts: 6, Budget: 100})
	all := map[string]Outcome{}
	for i := range b.m.Targets {
		all[b.m.Targets[i].Model] = status404
		b.m.Targets[i].Region = []string{"eu", "us"}[i%2]
	}
	tried, steps, err := b.call(Query{Region: "us", Sticky: 9}, all)
	slices.Sort(tried)
	if err == nil || len(slices.Compact(tried)) != 6 || strings.Count(steps, ":region") != 20 || strings.Count(steps, "*") != 6 {
		t.Errorf("tried %q, %v: %s", tried, err, steps)
	}
}

// Calls of many goroutines leave nothing behind.
func TestConcurrentCalls(t *testing.T) {
	m := accounts(3)
	m.Hedge = &Hedge{MaxExtra: 50}
	NewTable([]*Model{m})
	r := NewRouter()
	var running sync.WaitGroup
	for g := range 8 {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			outcomes := []Outcome{fine, fine, fine, status500, status429, status401, left, connect}
			for range 2000 {
				p := r.Plan(m, &Query{Sticky: rnd.Uint64N(100), Tokens: 10}, time.Now())
				for {
					target, err := p.Next(time.Now())
					if err != nil {
						break
					}
					if other, ok := p.Hedge(time.Now()); ok {
						p.Done(other, left, time.Now())
					}
					p.Begun(target, time.Millisecond, time.Now())
					p.Done(target, outcomes[rnd.IntN(len(outcomes))], time.Now())
					if !p.Retryable() {
						break
					}
				}
				p.Steps()
				target := &m.Targets[rnd.IntN(3)]
				target.Health.Snapshot(time.Now())
				if rnd.IntN(50) == 0 {
					target.Health.account.forgive()
				}
			}
		})
	}
	running.Wait()
	for i := range m.Targets {
		if n := m.Targets[i].Health.inFlight.Load(); n != 0 {
			t.Errorf("target %d has %d calls under way", i, n)
		}
	}
}
