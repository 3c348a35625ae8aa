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

// OfText reports whether both prices are known that every text has: without
// one of them, what a call costs is not known.
func (r *Rates) OfText() bool {
	_, in := r.Input.Pico()
	_, out := r.Output.Pico()
	return in && out
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

// Merged fills what is not known of prices from others. Tiers that are empty,
// but not nil, are known: there are none.
func (p List) Merged(other List) List {
	mine, others := p.kinds(), other.kinds()
	for i, price := range mine {
		*price = cmp.Or(*price, *others[i])
	}
	if p.Tiers == nil {
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

// Known reports whether the cost of most calls is: of those that take in text
// and give it.
func (p *List) Known() bool { return p.Input != (Rate{}) && p.Output != (Rate{}) }

// Stated reports whether anything is known of the prices.
func (p *List) Stated() bool {
	return !p.Equal(&List{})
}

// Equal reports whether two lists say the same.
func (p *List) Equal(q *List) bool {
	return p.Rates == q.Rates && slices.Equal(p.Tiers, q.Tiers) && p.Call == q.Call && p.Search == q.Search && p.Searched == q.Searched &&
		p.Flex == q.Flex && p.Priority == q.Priority && p.Batch == q.Batch && p.Other == q.Other
}

// Free is the list of what takes nothing, for anything.
func Free() List {
	p := List{Call: FeeOf(0), Search: FeeOf(0), Flex: 100, Priority: 100, Batch: 100, Other: 100, Tiers: []Tier{}}
	for _, rate := range p.kinds() {
		*rate = RateOf(0)
	}
	return p
}

// String is the form of the facts' file: dollars per million tokens with
// commas, without the empty ones at the end; each tier after a semicolon, and
// so the rest of what is known, by its name.
func (p List) String() string {
	var b strings.Builder
	b.WriteString(p.Rates.columns())
	for _, t := range p.Tiers {
		fmt.Fprintf(&b, ";%d:%s", t.Over, t.columns())
	}
	for _, f := range p.namedFees() {
		if each, known := f.fee.Amount(); known {
			fmt.Fprintf(&b, ";%s=%s", f.name, each)
		}
	}
	for _, s := range p.services() {
		if *s.percent != 0 {
			fmt.Fprintf(&b, ";%s=%d", s.name, *s.percent)
		}
	}
	return b.String()
}

type namedFee struct {
	name string
	fee  *Fee
}

func (p *List) namedFees() [3]namedFee {
	return [...]namedFee{{"call", &p.Call}, {"search", &p.Search}, {"searched", &p.Searched}}
}

type namedPercent struct {
	name    string
	percent *Percent
}

func (p *List) services() [4]namedPercent {
	return [...]namedPercent{{"flex", &p.Flex}, {"priority", &p.Priority}, {"batch", &p.Batch}, {"other", &p.Other}}
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
	base, rest, more := strings.Cut(text, ";")
	if p.Rates, err = parseRates(base); err != nil || !more {
		return p, err
	}
	for part := range strings.SplitSeq(rest, ";") {
		if name, value, named := strings.Cut(part, "="); named {
			err = p.set(name, value)
		} else {
			err = p.addTier(part)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *List) addTier(text string) (err error) {
	over, rates, _ := strings.Cut(text, ":")
	var t Tier
	if t.Over, err = strconv.Atoi(over); err != nil {
		return err
	}
	if last := len(p.Tiers) - 1; !strings.Contains(text, ":") || t.Over <= 0 || last >= 0 && t.Over < p.Tiers[last].Over {
		return fmt.Errorf("bad tier %q", text)
	}
	t.Rates, err = parseRates(rates)
	p.Tiers = append(p.Tiers, t)
	return err
}

// set reads what is known by its name.
func (p *List) set(name, value string) error {
	for _, f := range p.namedFees() {
		if f.name == name {
			return f.fee.UnmarshalJSON([]byte(value))
		}
	}
	for _, s := range p.services() {
		if s.name != name {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 16)
		*s.percent = Percent(n)
		return err
	}
	return fmt.Errorf("%q is no price", name)
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
