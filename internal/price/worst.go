package price

import (
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// Most is the most that a request may use.
type Most struct {
	Prompt, Completion int64 // tokens
	Searches           int64
	Sound, Pictures    bool // that the model may hear, or make
	Service            llm.Service
}

// Worst is what a call costs that uses the most, all of it of the dearest kind.
// It is not known when the price of text is not.
func (p *List) Worst(m Most) (cost money.Amount, known bool) {
	worst, known := p.worst(&p.Rates, m)
	for i := range p.Tiers {
		if int64(p.Tiers[i].Over) >= m.Prompt {
			break
		}
		tier, tierKnown := p.worst(&p.Tiers[i].Rates, m)
		worst, known = max(worst, tier), known && tierKnown
	}
	return worst, known
}

func (p *List) worst(r *Rates, m Most) (cost money.Amount, known bool) {
	if !r.OfText() {
		return 0, false
	}
	prompt := []Rate{r.Input, r.CacheRead, r.CacheWrite, r.HourWrite}
	completion := []Rate{r.Output, r.Reasoning}
	if m.Sound {
		prompt, completion = append(prompt, r.AudioIn), append(completion, r.AudioOut)
	}
	if m.Pictures {
		completion = append(completion, r.ImageOut)
	}
	var sum picos
	sum.add(m.Prompt, dearest(prompt))
	sum.add(m.Completion, dearest(completion))
	fees, _ := p.fees(m.Searches)
	return sum.amount(max(100, p.percent(m.Service))).Plus(fees), true
}

// dearest is the greatest of those that are known, in pico-dollars.
func dearest(rates []Rate) (most int64) {
	for _, r := range rates {
		pico, _ := r.Pico()
		most = max(most, pico)
	}
	return most
}
