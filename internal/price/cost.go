package price

import (
	"cmp"
	"math/bits"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// Cost is what a call costs that used so much, rounded once to whole
// nano-dollars; it is not known when the price of something used is not.
// What has no price of its own is priced as what it is a kind of: cached input
// as input, reasoning as output. Sound, pictures that were made and searches
// are priced by what is stated for them only. A service changes what tokens
// cost, not the fees.
func (p *List) Cost(u *llm.Usage) (cost money.Amount, known bool) {
	percent := p.percent(u.Service)
	if percent == 0 {
		return 0, false
	}
	var sum picos
	for _, part := range p.tokens(u) {
		if part.Count == 0 {
			continue
		}
		pico, known := part.Rate.Pico()
		if !known {
			return 0, false
		}
		sum.add(part.Count, pico)
	}
	fees, known := p.fees(u.Searches)
	if !known {
		return 0, false
	}
	return sum.amount(percent).Plus(fees), true
}

// A Part is what one kind of token of a call costs, or its fees.
type Part struct {
	Kind  string       `json:"kind"`
	Count int64        `json:"count,omitempty"`
	Rate  Rate         `json:"usd_per_million,omitzero"`
	Cost  money.Amount `json:"cost_usd"` // rounded by itself
}

// tokens are the kinds of tokens with how many were used, and what each costs
// of the usual service.
func (p *List) tokens(u *llm.Usage) [9]Part {
	r := p.For(u.LongestPrompt())
	return [...]Part{
		{Kind: "input", Count: u.Input, Rate: r.Input},
		{Kind: "cache_read", Count: u.CacheRead, Rate: cmp.Or(r.CacheRead, r.Input)},
		{Kind: "cache_write", Count: u.CacheWrite, Rate: cmp.Or(r.CacheWrite, r.Input)},
		{Kind: "cache_write_1h", Count: u.HourWrite, Rate: cmp.Or(r.HourWrite, r.CacheWrite, r.Input)},
		{Kind: "input_audio", Count: u.AudioIn, Rate: r.AudioIn},
		{Kind: "output", Count: u.Output, Rate: r.Output},
		{Kind: "reasoning", Count: u.Reasoning, Rate: cmp.Or(r.Reasoning, r.Output)},
		{Kind: "output_audio", Count: u.AudioOut, Rate: r.AudioOut},
		{Kind: "output_image", Count: u.ImageOut, Rate: r.ImageOut},
	}
}

// Parts are what the cost of a call is made of, if that is known.
func (p *List) Parts(u *llm.Usage) []Part {
	if _, known := p.Cost(u); !known {
		return nil
	}
	var parts []Part
	for _, part := range p.tokens(u) {
		if part.Count == 0 {
			continue
		}
		part.Rate = part.Rate.Times(p.percent(u.Service))
		pico, _ := part.Rate.Pico()
		var sum picos
		sum.add(part.Count, pico)
		part.Cost = sum.amount(100)
		parts = append(parts, part)
	}
	if fees, _ := p.fees(u.Searches); fees > 0 {
		parts = append(parts, Part{Kind: "fees", Count: u.Searches, Cost: fees})
	}
	return parts
}

// fees are what a call costs beside its tokens.
func (p *List) fees(searches int64) (cost money.Amount, known bool) {
	call, _ := p.Call.Amount()
	each, eachKnown := p.Search.Amount()
	once, onceKnown := p.Searched.Amount()
	var sum picos
	sum.add(1, int64(call)*picosPerNano)
	if searches > 0 {
		sum.add(searches, int64(each)*picosPerNano)
		sum.add(1, int64(once)*picosPerNano)
	}
	return sum.amount(100), searches <= 0 || eachKnown || onceKnown
}

// percent of the list that a service costs; 0 when that is not known.
func (p *List) percent(s llm.Service) Percent {
	return [...]Percent{llm.Standard: 100, llm.Flex: p.Flex, llm.Priority: p.Priority, llm.Batch: p.Batch, llm.Other: p.Other}[s]
}

const picosPerNano = 1000

// picos is a sum of pico-dollars, which an int64 would not hold.
type picos struct{ high, low uint64 }

// add adds n of something, neither below zero.
func (p *picos) add(n, each int64) {
	high, low := bits.Mul64(uint64(max(n, 0)), uint64(max(each, 0)))
	var carry uint64
	p.low, carry = bits.Add64(p.low, low, 0)
	p.high, _ = bits.Add64(p.high, high, carry)
}

// amount is that many percent of the sum in nano-dollars, to the nearest.
func (p picos) amount(percent Percent) money.Amount {
	const divisor = 100 * picosPerNano
	high, low := bits.Mul64(p.low, uint64(percent))
	over, high2 := bits.Mul64(p.high, uint64(percent))
	var carry uint64
	high, carry = bits.Add64(high, high2, 0)
	low, up := bits.Add64(low, divisor/2, 0)
	high, _ = bits.Add64(high, 0, up)
	if over+carry > 0 || high >= divisor {
		return money.Max
	}
	nanos, _ := bits.Div64(high, low, divisor)
	return money.Amount(min(nanos, uint64(money.Max)))
}
