package price

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/money"
)

// Rates are the prices of each kind of token.
type Rates struct {
	Input      Rate `json:"input,omitzero"`
	Output     Rate `json:"output,omitzero"`
	CacheRead  Rate `json:"cache_read,omitzero"`
	CacheWrite Rate `json:"cache_write,omitzero"`
	Reasoning  Rate `json:"reasoning,omitzero"` // stated where it is not that of Output
	AudioIn    Rate `json:"input_audio,omitzero"`
	AudioOut   Rate `json:"output_audio,omitzero"`
	HourWrite  Rate `json:"cache_write_1h,omitzero"` // stated where an hour in the cache is not priced as CacheWrite
	ImageOut   Rate `json:"output_image,omitzero"`
}

// kinds are the prices in the order of the facts' file.
func (r *Rates) kinds() [9]*Rate {
	return [...]*Rate{&r.Input, &r.Output, &r.CacheRead, &r.CacheWrite, &r.Reasoning, &r.AudioIn, &r.AudioOut, &r.HourWrite, &r.ImageOut}
}

// List is what one vendor takes for a model.
type List struct {
	Rates
	Tiers    []Tier  `json:"tiers,omitempty"`   // least first
	Call     Fee     `json:"call,omitzero"`     // for each call; not stated is none
	Search   Fee     `json:"search,omitzero"`   // for each search that the vendor runs
	Searched Fee     `json:"searched,omitzero"` // for a call for which it searches, however often
	Flex     Percent `json:"flex,omitzero"`     // of what tokens cost, with that service
	Priority Percent `json:"priority,omitzero"` // the same
	Batch    Percent `json:"batch,omitzero"`    // the same
	Other    Percent `json:"other,omitzero"`    // the same, with any other service
}

// Fee is what one of something costs, or that nobody said what: the zero Fee is
// not known.
type Fee struct {
	stated money.Amount // one more than the amount, 0 when not known
}

// FeeOf is a fee that is known.
func FeeOf(a money.Amount) Fee { return Fee{a + 1} }

// Amount is the fee, if it is known.
func (f Fee) Amount() (each money.Amount, known bool) { return f.stated - 1, f.stated > 0 }

// MarshalJSON writes dollars; null when they are not known.
func (f Fee) MarshalJSON() ([]byte, error) {
	if a, known := f.Amount(); known {
		return a.MarshalJSON()
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Fee) UnmarshalJSON(text []byte) error {
	*f = Fee{}
	if string(text) == "null" {
		return nil
	}
	var a money.Amount
	if err := a.UnmarshalJSON(text); err != nil {
		return err
	}
	if a < 0 || a == money.Max {
		return fmt.Errorf("%s is no fee", a)
	}
	*f = FeeOf(a)
	return nil
}

// Percent is a part of a price, or more than all of it; 0 is not known.
type Percent int

// A Tier has the prices of all tokens of a call whose prompt is longer than
// Over tokens. A kind that it says nothing of is not known there.
type Tier struct {
	Over int `json:"over"`
	Rates
}

// For returns the rates of a request with a prompt of that many tokens, cached
// ones among them.
func (p List) For(prompt int64) Rates {
	rates := p.Rates
	for _, t := range p.Tiers {
		if prompt > int64(t.Over) {
			rates = t.Rates
		}
	}
	return rates
}

// Merged fills what is not known of prices from others.
func (p List) Merged(other List) List {
	mine, others := p.kinds(), other.kinds()
	for i, price := range mine {
		*price = cmp.Or(*price, *others[i])
	}
	if len(p.Tiers) == 0 {
		p.Tiers = other.Tiers
	}
	p.Call = cmp.Or(p.Call, other.Call)
	if p.Search == (Fee{}) && p.Searched == (Fee{}) {
		p.Search, p.Searched = other.Search, other.Searched
	}
	p.Flex, p.Priority = cmp.Or(p.Flex, other.Flex), cmp.Or(p.Priority, other.Priority)
	p.Batch, p.Other = cmp.Or(p.Batch, other.Batch), cmp.Or(p.Other, other.Other)
	return p
}

// String is the form of the facts' file: dollars per million tokens with
// commas, without the empty ones at the end, and each tier after a semicolon.
func (p List) String() string {
	var b strings.Builder
	b.WriteString(p.Rates.columns())
	for _, t := range p.Tiers {
		fmt.Fprintf(&b, ";%d:%s", t.Over, t.columns())
	}
	return b.String()
}

func (r Rates) columns() string {
	var words []string
	for _, price := range r.kinds() {
		word := ""
		if *price != (Rate{}) {
			word = price.String()
		}
		words = append(words, word)
	}
	return strings.TrimRight(strings.Join(words, ","), ",")
}

// ParseList reads the form of String.
func ParseList(text string) (p List, err error) {
	if text == "" {
		return p, nil
	}
	base, tiers, tiered := strings.Cut(text, ";")
	if p.Rates, err = parseRates(base); err != nil || !tiered {
		return p, err
	}
	for tier := range strings.SplitSeq(tiers, ";") {
		over, rates, _ := strings.Cut(tier, ":")
		var t Tier
		if t.Over, err = strconv.Atoi(over); err != nil {
			return p, err
		}
		if t.Rates, err = parseRates(rates); err != nil {
			return p, err
		}
		p.Tiers = append(p.Tiers, t)
	}
	if !slices.IsSortedFunc(p.Tiers, func(a, b Tier) int { return a.Over - b.Over }) || p.Tiers[0].Over <= 0 {
		return p, fmt.Errorf("bad tiers %q", tiers)
	}
	return p, nil
}

func parseRates(text string) (r Rates, err error) {
	if text == "" {
		return r, nil
	}
	kinds := r.kinds()
	if strings.Count(text, ",") >= len(kinds) {
		return r, fmt.Errorf("too many prices in %q", text)
	}
	i := 0
	for word := range strings.SplitSeq(text, ",") {
		if word != "" {
			if *kinds[i], err = ParseRate(word); err != nil {
				return r, err
			}
		}
		i++
	}
	return r, nil
}
