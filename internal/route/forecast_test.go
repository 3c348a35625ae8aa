package route

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
)

func anything(*Outlook) *llm.Error { return nil }

// foretold is a forecast in one line: "a c; b dialect".
func foretold(f *Forecast) string {
	var asked, left []string
	for _, o := range f.Targets {
		if o.Order > 0 {
			asked = append(asked, o.Target.Model)
			continue
		}
		left = append(left, o.Target.Model+" "+o.LeftOut)
	}
	return strings.Join(asked, " ") + "; " + strings.Join(left, ", ")
}

func TestForecast(t *testing.T) {
	unsupported, wrong := &llm.Error{Kind: llm.Unsupported, Message: "no"}, &llm.Error{Kind: llm.Invalid, Message: "wrong"}
	for name, test := range map[string]struct {
		before map[string]Outcome // of five calls
		say    map[string]*llm.Error
		lacks  string
		want   string
		refuse string
	}{
		"well":               {want: "a b c; d after 3 attempts"},
		"cooling":            {before: map[string]Outcome{"a": wait20}, want: "b c d; a cooling 20s"},
		"left out":           {lacks: "b", want: "a c d; b dialect"},
		"cannot be said":     {say: map[string]*llm.Error{"a": unsupported}, want: "b c d; a cannot"},
		"wrong for everyone": {say: map[string]*llm.Error{"a": wrong}, want: "; a invalid, b no retry, c no retry, d no retry", refuse: "wrong"},
		"nobody": {lacks: "abcd", want: "; a dialect, b dialect, c dialect, d dialect",
			refuse: "No upstream of model 'm' can serve this request. What they lack: the words of this operation."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, chain("a", "b", "c", "d"))
			if test.before != nil {
				b.call(Query{}, test.before)
			}
			q := Query{Speaks: func(t *Target) bool { return !strings.Contains(test.lacks, t.Model) }}
			f := b.r.Forecast(b.m, &q, b.now, func(o *Outlook) *llm.Error { return test.say[o.Target.Model] })
			if got := foretold(f); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			refused := ""
			if f.Refused != nil {
				refused = llm.AsError(f.Refused).Message
			}
			if refused != test.refuse {
				t.Errorf("refused: %q, want %q", refused, test.refuse)
			}
		})
	}
}

// A forecast is what a call then does, whatever went before; and it changes
// nothing that a call sees.
func TestForecastIsWhatHappens(t *testing.T) {
	answers := []Outcome{fine, fine, slow, status500, status503, status404, wait20, connect, status401}
	for seed := range uint64(400) {
		chance := rand.New(rand.NewPCG(seed, 1))
		m := chain("a", "b", "c", "d")
		m.Strategy, m.Affinity = Strategy(chance.IntN(int(Price)+1)), chance.IntN(4) > 0
		for i := range m.Targets {
			m.Targets[i].Tier, m.Targets[i].Weight = i/(1+chance.IntN(4)), float64(1+chance.IntN(3))
		}
		b := newBench(t, m)
		b.r.Apply(Retries{Attempts: 1 + chance.IntN(4), Budget: 10})
		n := uint64(0)
		b.r.dice = func() uint64 { n++; return mix(n) }
		for range chance.IntN(40) {
			given := map[string]Outcome{}
			for _, target := range m.Targets {
				given[target.Model] = answers[chance.IntN(len(answers))]
			}
			b.call(Query{Sticky: chance.Uint64N(5)}, given)
			b.pass(time.Duration(chance.Int64N(int64(800 * time.Millisecond))))
		}
		q, before := Query{Sticky: chance.Uint64N(5)}, n
		state := standing(b)
		f := b.r.Forecast(m, &q, b.now, anything)
		if after := standing(b); after != state {
			t.Fatalf("seed %d: a forecast changed something:\n%s\n%s", seed, state, after)
		}
		n = before
		asked, _, _ := strings.Cut(foretold(f), ";")
		tried, steps, _ := b.call(q, map[string]Outcome{"a": slow, "b": slow, "c": slow, "d": slow})
		if got := strings.Join(tried, " "); got != asked {
			t.Fatalf("seed %d, %s: a call tried %q (%s), foretold were %q", seed, m.Strategy, got, steps, asked)
		}
	}
}

// standing is all that calls change and see.
func standing(b *bench) string {
	var s strings.Builder
	at := b.now.UnixNano()
	for i := range b.m.Targets {
		h := b.m.Targets[i].Health
		fmt.Fprintf(&s, "%+v %d %d", h.Snapshot(b.now), h.first.mean.Load(), h.first.asked.Load())
		for _, br := range []*breaker{&h.breaker, &h.account.breaker} {
			fmt.Fprint(&s, " ", br.until.Load(), br.failures.Load(), br.opened, br.level, br.probe, br.probed)
		}
		fmt.Fprintln(&s)
	}
	_, extra := b.r.budget.extra.sum(at)
	fmt.Fprintln(&s, "budget", b.r.budget.calls(at), extra)
	for i := range b.r.sticky {
		for _, e := range b.r.sticky[i].entries {
			if e.health != nil {
				fmt.Fprintln(&s, e.key, e.used, e.health.id, e.prev, e.next)
			}
		}
	}
	return s.String()
}

func TestForecastKnowsWhereAConversationIs(t *testing.T) {
	m := chain("a", "b", "c")
	for i := range m.Targets {
		m.Targets[i].Tier = 0
	}
	b := newBench(t, m)
	q := Query{Sticky: 7}
	if f := b.r.Forecast(m, &q, b.now, anything); f.StaysWith != nil || f.Sticky != 7 {
		t.Errorf("a new conversation: stays with %v, sticky %d", f.StaysWith, f.Sticky)
	}
	tried, _, _ := b.call(q, nil)
	b.pass(stickyTTL - time.Second)
	f := b.r.Forecast(m, &q, b.now, anything)
	if f.StaysWith == nil || f.StaysWith.Model != tried[0] || f.Targets[0].Target != f.StaysWith {
		t.Errorf("served by %v; foretold: stays with %v, %s", tried, f.StaysWith, foretold(f))
	}
	b.pass(time.Second) // had the forecast counted for a turn, it would be remembered still
	if f := b.r.Forecast(m, &q, b.now, anything); f.StaysWith != nil {
		t.Error("a forecast made a conversation stay longer")
	}
}
