package limit

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// metered is a meter of a key with rates.
func metered(r Rates) *Meter {
	m := NewMeter()
	m.Apply(r)
	return m
}

// let is Enter for a call that has to be let in.
func let(t *testing.T, now time.Time, need Need, meters ...*Meter) *Pass {
	t.Helper()
	p, refused := Enter(now, need, meters...)
	if refused != nil {
		t.Fatalf("refused: %s", refused)
	}
	return p
}

func TestRefusals(t *testing.T) {
	team, model := NewMeter(), NewMeter()
	team.Owner, model.Owner = OfTeam, OfModel
	for _, c := range []struct {
		name  string
		meter *Meter
		rates Rates
		uses  []Need
		after time.Duration
		need  Need
		want  string // "" is to be let in
		wait  time.Duration
	}{
		{"requests", NewMeter(), Rates{Requests: 2}, []Need{{}, {}}, 0, Need{}, "Rate limit reached for this key on requests per min (RPM): Limit 2, Used 2, Requested 1. Please try again in 30s.", 30 * time.Second},
		{"requests, later", NewMeter(), Rates{Requests: 2}, []Need{{}, {}}, 20 * time.Second, Need{}, "Rate limit reached for this key on requests per min (RPM): Limit 2, Used 2, Requested 1. Please try again in 10s.", 10 * time.Second},
		{"requests, in time", NewMeter(), Rates{Requests: 2}, []Need{{}, {}}, 30 * time.Second, Need{}, "", 0},
		{"one a minute", NewMeter(), Rates{Requests: 1}, []Need{{}}, time.Minute - 1, Need{}, "Rate limit reached for this key on requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 1ms.", time.Millisecond},
		{"tokens", team, Rates{Tokens: 1000}, []Need{{Input: 700, Output: 200}}, 0, Need{Input: 50, Output: 70}, "Rate limit reached for this key's team on tokens per min (TPM): Limit 1000, Used 900, Requested 120. Please try again in 1.2s.", 1200 * time.Millisecond},
		{"tokens that fit", NewMeter(), Rates{Tokens: 1000}, []Need{{Input: 700, Output: 200}}, 0, Need{Input: 50, Output: 50}, "", 0},
		{"a day", model, Rates{Daily: 10}, []Need{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}, 0, Need{}, "Rate limit reached for this model on requests per day (RPD): Limit 10, Used 10, Requested 1. Please try again in 2h24m0s.", 144 * time.Minute},
		{"at once", NewMeter(), Rates{Concurrency: 2}, []Need{{}, {}}, time.Hour, Need{}, "Rate limit reached for this key on concurrent requests: Limit 2, Used 2, Requested 1. Please try again in 1s.", time.Second},
		{"the longest wait", NewMeter(), Rates{Requests: 1, Daily: 24, Concurrency: 1}, []Need{{}}, 0, Need{}, "Rate limit reached for this key on requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 1m0s.", time.Minute},
		{"all of an empty bucket", NewMeter(), Rates{Tokens: 1000}, nil, 0, Need{Input: 900, Output: 5000}, "", 0},
		{"all of a bucket", NewMeter(), Rates{Tokens: 1000}, []Need{{Input: 100}}, 0, Need{Input: 900, Output: 5000}, "Rate limit reached for this key on tokens per min (TPM): Limit 1000, Used 100, Requested 1000. Please try again in 6s.", 6 * time.Second},
		{"too large", NewMeter(), Rates{Tokens: 1000, Concurrency: 1}, []Need{{}}, 0, Need{Input: 1001}, "Request too large for this key on tokens per min (TPM): Limit 1000, Requested 1001. The input must be reduced in order to run successfully.", 0},
		{"any output", NewMeter(), Rates{Tokens: 1000}, nil, 0, Need{Output: math.MaxInt64}, "", 0},
		{"a clock that went back", NewMeter(), Rates{Requests: 1}, []Need{{}}, -time.Hour, Need{}, "Rate limit reached for this key on requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 1h1m0s.", 61 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			c.meter.Apply(c.rates)
			for _, need := range c.uses {
				let(t, now, need, c.meter)
			}
			_, refused := Enter(now.Add(c.after), c.need, c.meter)
			if got := words(refused); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if refused != nil && refused.Wait != c.wait {
				t.Errorf("the wait is %s, want %s", refused.Wait, c.wait)
			}
		})
	}
}

func words(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.String()
}

func TestRefusedUsesNothingUp(t *testing.T) {
	now := time.Now()
	wide, narrow := metered(Rates{Requests: 10, Tokens: 1000, Daily: 10, Concurrency: 10}), metered(Rates{Requests: 1})
	let(t, now, Need{Input: 10}, wide, narrow)
	for range 20 {
		if _, refused := Enter(now, Need{Input: 10}, narrow, wide); refused == nil {
			t.Fatal("let in beyond the narrow limit")
		}
	}
	want := Standing{Requests: Level{10, 9, 6 * time.Second}, Tokens: Level{1000, 990, 600 * time.Millisecond}}
	if got := Look(now, 1, wide); got != want {
		t.Errorf("it stands at %+v, want %+v", got, want)
	}
	if wide.buckets[RequestsPerDay].used != 1 || wide.atOnce != 1 {
		t.Errorf("%d requests of the day are used and %d calls under way, want one of each", wide.buckets[RequestsPerDay].used, wide.atOnce)
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(*Pass)
		remain int64 // of 1000 tokens
		calls  int64 // of 10
		atOnce int64
	}{
		{"less", func(p *Pass) { p.Settle(100); p.Leave() }, 900, 9, 0},
		{"as much", func(p *Pass) { p.Settle(400); p.Leave() }, 600, 9, 0},
		{"more", func(p *Pass) { p.Settle(700); p.Leave() }, 300, 9, 0},
		{"more than there was", func(p *Pass) { p.Settle(1200); p.Leave() }, -200, 9, 0},
		{"twice", func(p *Pass) { p.Settle(100); p.Settle(900); p.Leave(); p.Leave() }, 900, 9, 0},
		{"a negative usage", func(p *Pass) { p.Settle(-5000); p.Leave() }, 1000, 9, 0},
		{"not", func(p *Pass) { p.Leave() }, 600, 9, 0},
		{"under way", func(p *Pass) { p.Settle(100) }, 900, 9, 1},
		{"came to nothing", func(p *Pass) { p.Return(); p.Settle(800); p.Leave() }, 1000, 10, 0},
		{"came to something", func(p *Pass) { p.Settle(100); p.Return() }, 900, 9, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := metered(Rates{Requests: 10, Tokens: 1000, Daily: 10, Concurrency: 5})
			c.end(let(t, time.Now(), Need{Input: 300, Output: 100}, m))
			if got := 1000 - m.buckets[TokensPerMinute].used; got != c.remain {
				t.Errorf("%d tokens remain, want %d", got, c.remain)
			}
			if got := 10 - m.buckets[RequestsPerMinute].used; got != c.calls {
				t.Errorf("%d requests remain in the minute, want %d", got, c.calls)
			}
			if got := 10 - m.buckets[RequestsPerDay].used; got != c.calls {
				t.Errorf("%d requests remain in the day, want %d", got, c.calls)
			}
			if m.atOnce != c.atOnce {
				t.Errorf("%d are under way, want %d", m.atOnce, c.atOnce)
			}
		})
	}
}

func TestOverdrawnTokensAreWaitedFor(t *testing.T) {
	now := time.Now()
	m := metered(Rates{Tokens: 600})
	p := let(t, now, Need{Input: 100, Output: 500}, m)
	p.Settle(1200)
	_, refused := Enter(now, Need{Input: 10}, m)
	if refused == nil || refused.Wait != 61*time.Second {
		t.Fatalf("got %v, want a wait of 61s", refused)
	}
	if got, want := refused.Standing.Tokens, (Level{600, 0, 2 * time.Minute}); got != want {
		t.Errorf("it stands at %+v, want %+v", got, want)
	}
	let(t, now.Add(refused.Wait), Need{Input: 10}, m)
}

func TestNilPassAndNoLimits(t *testing.T) {
	p := let(t, time.Now(), Need{Input: math.MaxInt64}, nil, NewMeter(), metered(Rates{Requests: -5}))
	if p.Standing != (Standing{}) {
		t.Errorf("it stands at %+v without limits", p.Standing)
	}
	for _, p := range []*Pass{nil, p} {
		p.Settle(5)
		p.Return()
		p.Leave()
	}
}

func TestMeterTwiceCountsOnce(t *testing.T) {
	m := metered(Rates{Requests: 1, Concurrency: 1})
	let(t, time.Now(), Need{}, m, m).Leave()
	if m.atOnce != 0 || m.buckets[RequestsPerMinute].used != 1 {
		t.Errorf("%d under way, %d requests used; want 0 and 1", m.atOnce, m.buckets[RequestsPerMinute].used)
	}
}

func TestApplyKeepsWhatWasUsed(t *testing.T) {
	now := time.Now()
	m := metered(Rates{Requests: 10})
	for range 8 {
		let(t, now, Need{}, m)
	}
	for _, c := range []struct {
		rates Rates
		want  Level
	}{
		{Rates{Requests: 20}, Level{20, 12, 24 * time.Second}},
		{Rates{Requests: 4}, Level{4, 0, 2 * time.Minute}},
		{Rates{Requests: 4, Daily: 100}, Level{4, 0, 2 * time.Minute}},
		{Rates{Daily: 100}, Level{100, 100, 0}},
		{Rates{Requests: 10}, Level{10, 10, 0}},
	} {
		m.Apply(c.rates)
		if got := Look(now, 1, m).Requests; got != c.want {
			t.Errorf("%+v: it stands at %+v, want %+v", c.rates, got, c.want)
		}
	}
}

func TestCallsUnderWayOutliveTheirLimit(t *testing.T) {
	m := metered(Rates{Concurrency: 1})
	p := let(t, time.Now(), Need{}, m)
	m.Apply(Rates{})
	m.Apply(Rates{Concurrency: 1})
	if _, refused := Enter(time.Now(), Need{}, m); refused == nil {
		t.Error("a second call came in beside the first")
	}
	p.Leave()
	let(t, time.Now(), Need{}, m)
}

func TestNodesShareLimits(t *testing.T) {
	for _, c := range []struct {
		rates  Rates
		nodes  int
		want   int // calls that come in
		tokens int64
	}{
		{Rates{Requests: 9}, 3, 3, 0},
		{Rates{Requests: 10}, 3, 3, 0},
		{Rates{Requests: 2}, 3, 1, 0},
		{Rates{Daily: 9}, 3, 3, 0},
		{Rates{Concurrency: 9}, 3, 3, 0},
		{Rates{Concurrency: 1}, 3, 1, 0},
		{Rates{Tokens: 900}, 3, 3, 100},
		{Rates{Tokens: 900}, 3, 1, 800}, // more than the part, less than the limit
		{Rates{Tokens: 900}, 3, 0, 901},
		{Rates{Requests: 9}, 0, 9, 0},
	} {
		m, now, in := metered(c.rates), time.Now(), 0
		for range 20 {
			if _, refused := Enter(now, Need{Input: c.tokens, Nodes: c.nodes}, m); refused == nil {
				in++
			}
		}
		if in != c.want {
			t.Errorf("%+v among %d: %d calls of %d tokens came in, want %d", c.rates, c.nodes, in, c.tokens, c.want)
		}
	}
}

func TestTightestIsShown(t *testing.T) {
	now := time.Now()
	key, team := metered(Rates{Requests: 100, Daily: 101, Tokens: 1000}), metered(Rates{Requests: 10, Tokens: 5000})
	p := let(t, now, Need{Input: 100}, key, team)
	want := Standing{Requests: Level{10, 9, 6 * time.Second}, Tokens: Level{1000, 900, 6 * time.Second}}
	if p.Standing != want {
		t.Errorf("it stands at %+v, want %+v", p.Standing, want)
	}
}

// TestOneMoment has 64 calls come at one moment, in both orders of their meters.
func TestOneMoment(t *testing.T) {
	key, team := metered(Rates{Requests: 10, Tokens: 100_000}), metered(Rates{Requests: 1000, Tokens: 700, Concurrency: 64})
	now := time.Now()
	var in atomic.Int64
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			list := []*Meter{key, team}
			if i%2 == 0 {
				list = []*Meter{team, key}
			}
			p, refused := Enter(now, Need{Input: 100}, list...)
			if refused == nil {
				in.Add(1)
				defer p.Leave()
			}
		})
	}
	calls.Wait()
	if in.Load() != 7 || key.buckets[RequestsPerMinute].used != 7 || team.buckets[TokensPerMinute].used != 700 || team.atOnce != 0 {
		t.Errorf("%d came in, the key used %d requests and the team %d tokens, %d are under way; want 7, 7, 700, 0",
			in.Load(), key.buckets[RequestsPerMinute].used, team.buckets[TokensPerMinute].used, team.atOnce)
	}
}

// TestAnHour has 64 clients ask for more than they may have for an hour. No
// limit is passed, and none holds them to much less than it says.
func TestAnHour(t *testing.T) {
	for _, c := range []struct {
		name     string
		rates    Rates
		requests [2]int64 // the least and the most that may be let in
		tokens   [2]int64
		atOnce   int64
	}{
		{"requests", Rates{Requests: 120}, [2]int64{7200, 120 * 61}, [2]int64{1, math.MaxInt64}, 64},
		{"tokens", Rates{Tokens: 60_000}, [2]int64{1, math.MaxInt64}, [2]int64{3_300_000, 60_000*61 + 64*overdraft}, 64},
		{"a day", Rates{Daily: 7200}, [2]int64{7400, 7200 + 7200/24 + 1}, [2]int64{1, math.MaxInt64}, 64},
		{"at once", Rates{Concurrency: 5}, [2]int64{1000, math.MaxInt64}, [2]int64{1, math.MaxInt64}, 5},
		{"all", Rates{Requests: 120, Tokens: 60_000, Daily: 7200, Concurrency: 20}, [2]int64{5000, 120 * 61}, [2]int64{2_000_000, 60_000*61 + 64*overdraft}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := anHour(t, c.rates)
				if got.requests < c.requests[0] || got.requests > c.requests[1] {
					t.Errorf("%d requests, want %d", got.requests, c.requests)
				}
				if got.tokens < c.tokens[0] || got.tokens > c.tokens[1] {
					t.Errorf("%d tokens, want %d", got.tokens, c.tokens)
				}
				if got.most != c.atOnce {
					t.Errorf("%d at once, want %d", got.most, c.atOnce)
				}
			})
		})
	}
}

// overdraft is how many tokens a call of the simulation may use beyond those
// that it holds. Mostly it uses less.
const overdraft = 50

// seen is what was let in.
type seen struct {
	mu                             sync.Mutex
	requests, tokens, atOnce, most int64
}

func (s *seen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.atOnce++
	s.most = max(s.most, s.atOnce)
}

func (s *seen) end(requests, tokens int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests += requests
	s.tokens += tokens
	s.atOnce--
}

func anHour(t *testing.T, rates Rates) *seen {
	m, s, begun := metered(rates), &seen{}, time.Now()
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for time.Since(begun) < time.Hour {
				need := Need{Input: 1 + r.Int64N(400), Output: 1 + r.Int64N(600)}
				p, refused := Enter(time.Now(), need, m)
				if refused != nil {
					time.Sleep(min(refused.Wait+time.Duration(r.Int64N(int64(100*time.Millisecond))), time.Hour-time.Since(begun)))
					continue
				}
				s.begin()
				time.Sleep(min(time.Duration(r.Int64N(int64(20*time.Second))), time.Hour-time.Since(begun)))
				switch r.IntN(8) {
				case 0: // the client left
					s.end(0, need.Input)
					p.Settle(need.Input)
				case 1: // nothing was sent
					s.end(-1, 0)
					p.Return()
				default:
					used := need.Input + r.Int64N(need.Output+overdraft)
					s.end(0, used)
					p.Settle(used)
				}
				p.Leave()
			}
		})
	}
	clients.Wait()
	if m.atOnce != 0 {
		t.Errorf("%d calls never left", m.atOnce)
	}
	if got := Look(time.Now().Add(48*time.Hour), 1, m); got.Requests.Remaining != got.Requests.Limit || got.Tokens.Remaining != got.Tokens.Limit {
		t.Errorf("something stays used up: %+v", got)
	}
	return s
}

// FuzzEnter has calls come and go at three meters, as the bytes say, and checks
// what must hold after each step.
func FuzzEnter(f *testing.F) {
	f.Add([]byte("\x00\x07\x10\x01\x03\x00\x02\x07\x40\x04\x01\xff\x00\x07\x10\x05\x00\x09"))
	f.Add([]byte{0, 1, 255, 0, 2, 255, 0, 4, 255, 1, 0, 0, 4, 0, 1, 6, 2, 9, 0, 7, 3, 2, 0, 0, 3, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		now := time.Now()
		all := []*Meter{metered(Rates{Requests: 3, Tokens: 300}), metered(Rates{Daily: 5, Concurrency: 2}), metered(Rates{Tokens: 1000, Concurrency: 3})}
		var passes []*Pass
		for ; len(steps) >= 3; steps = steps[3:] {
			which, amount := int(steps[1]), int64(steps[2])
			switch step := steps[0] % 7; {
			case step == 0:
				var chosen []*Meter
				for i, m := range all {
					if which&(1<<i) != 0 {
						chosen = append(chosen, m)
					}
				}
				if p := try(t, &now, Need{Input: amount, Output: amount * 2, Nodes: which >> 6}, chosen); p != nil {
					passes = append(passes, p)
				}
			case step == 4:
				now = now.Add(time.Duration(amount) * time.Second)
			case step == 5:
				now = now.Add(time.Duration(which)*time.Hour + time.Duration(amount)*time.Millisecond)
			case step == 6:
				all[which%3].Apply(Rates{Requests: amount % 5, Tokens: amount * 10, Daily: amount % 7, Concurrency: amount % 4})
			case len(passes) > 0:
				p := passes[which%len(passes)]
				[]func(){func() { p.Settle(amount * 3) }, p.Leave, p.Return}[step-1]()
			}
			sound(t, now, all)
		}
		for _, p := range passes {
			p.Settle(0)
			p.Leave()
		}
		for i, m := range all {
			if m.atOnce != 0 {
				t.Errorf("%d calls never left meter %d", m.atOnce, i)
			}
		}
	})
}

// try enters, if need be after the wait that it is told and not before.
func try(t *testing.T, now *time.Time, need Need, meters []*Meter) *Pass {
	before := Look(*now, need.Nodes, meters...)
	p, refused := Enter(*now, need, meters...)
	if refused == nil {
		return p
	}
	if after := Look(*now, need.Nodes, meters...); after != before || refused.Standing != before {
		t.Fatalf("a refusal changed %+v to %+v and told %+v", before, after, refused.Standing)
	}
	if refused.Wait == 0 || refused.Rule == AtOnce {
		return nil
	}
	if p, _ := Enter(now.Add(refused.Wait-time.Millisecond), need, meters...); p != nil && refused.Wait > time.Millisecond {
		t.Fatalf("let in before the wait of %s was over", refused.Wait)
	} else if p != nil {
		return p
	}
	*now = now.Add(refused.Wait + time.Microsecond) // each look in between may have rounded by a nanosecond
	p, again := Enter(*now, need, meters...)
	if again != nil && again.Rule != AtOnce {
		t.Fatalf("after a wait of %s: %s", refused.Wait, again)
	}
	return p
}

// sound checks what holds of meters at any time.
func sound(t *testing.T, now time.Time, meters []*Meter) {
	for i, m := range meters {
		if m.atOnce < 0 {
			t.Fatalf("meter %d: %d under way", i, m.atOnce)
		}
		for rule, b := range m.buckets {
			if b.used < 0 || b.at.After(now) {
				t.Fatalf("meter %d, %s: %+v at %s", i, Rule(rule), b, now)
			}
		}
		for _, level := range []Level{Look(now, 1, m).Requests, Look(now, 1, m).Tokens} {
			if level.Remaining < 0 || level.Remaining > level.Limit || level.Reset < 0 || level.Remaining < level.Limit && level.Reset == 0 {
				t.Fatalf("meter %d: %+v", i, level)
			}
		}
	}
}

func BenchmarkEnter(b *testing.B) {
	key, team, model := metered(Rates{Requests: MaxRate, Tokens: MaxRate}), metered(Rates{Requests: MaxRate}), metered(Rates{Concurrency: MaxRate})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, _ := Enter(time.Now(), Need{Input: 100, Output: 100, Nodes: 1}, key, team, model)
			p.Settle(150)
			p.Leave()
		}
	})
}
