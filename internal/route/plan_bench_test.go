package route

import (
	"fmt"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/price"
)

// accounts makes a model of n targets that are alike.
func accounts(n int) *Model {
	m := &Model{ID: "m", Strategy: Weighted, Affinity: true}
	for i := range n {
		m.Targets = append(m.Targets, Target{Model: fmt.Sprintf("t%d", i), Account: fmt.Sprintf("a%d", i)})
	}
	NewTable([]*Model{m})
	return m
}

func benchmarkPlan(b *testing.B, m *Model, q func(i uint64) *Query) {
	r := NewRouter()
	b.ReportAllocs()
	i, now := uint64(0), time.Now() // the clock is not what is measured
	for b.Loop() {
		i++
		p := r.Plan(m, q(i), now)
		t, err := p.Next(now)
		if err != nil {
			b.Fatal(err)
		}
		p.Done(t, Outcome{FirstToken: time.Millisecond, Dialed: true}, now)
		if p.Retryable() {
			b.Fatal("retryable")
		}
	}
}

func BenchmarkPlanOneTarget(b *testing.B) {
	q := Query{Sticky: 1, Tokens: 100, Needs: NeedsTools}
	benchmarkPlan(b, accounts(1), func(uint64) *Query { return &q })
}

func BenchmarkPlanAffinityKnown(b *testing.B) {
	q := Query{Tokens: 100, Needs: NeedsTools}
	benchmarkPlan(b, accounts(8), func(i uint64) *Query { q.Sticky = i%1000 + 1; return &q })
}

func BenchmarkPlanAffinityNew(b *testing.B) {
	q := Query{Tokens: 100, Needs: NeedsTools}
	benchmarkPlan(b, accounts(8), func(i uint64) *Query { q.Sticky = mix(i); return &q })
}

func BenchmarkPlanLatency(b *testing.B) {
	m := accounts(8)
	m.Strategy = Latency
	q := Query{Tokens: 100}
	benchmarkPlan(b, m, func(uint64) *Query { return &q })
}

func BenchmarkPlanPrice(b *testing.B) {
	m := accounts(8)
	m.Strategy = Price
	for i := range m.Targets {
		m.Targets[i].Price = price.NewBook(0, price.Dated{List: price.List{Rates: price.Rates{Input: price.RateOf(1), Output: price.RateOf(2)}}})
	}
	q := Query{Tokens: 100}
	benchmarkPlan(b, m, func(uint64) *Query { return &q })
}

// What calls on all cores cost each other.
func BenchmarkPlanParallel(b *testing.B) {
	m, r := accounts(8), NewRouter()
	b.RunParallel(func(pb *testing.PB) {
		q := Query{Tokens: 100}
		now := time.Now()
		for i := uint64(1); pb.Next(); i++ {
			q.Sticky = i%1000 + 1
			p := r.Plan(m, &q, now)
			t, err := p.Next(now)
			if err != nil {
				b.Fatal(err)
			}
			p.Done(t, Outcome{FirstToken: time.Millisecond, Dialed: true}, now)
		}
	})
}
