package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Price is what a token of some kind costs, or that nobody said what. A price
// that is not known is not the same as none to pay: the zero Price is not known.
//
// Its unit is the pico-dollar per token: a dollar per million tokens is a
// million of them. So what vendors publish is a whole number, and the cost of
// 900 million tokens at the greatest price still fits an int64.
type Price struct {
	stated int64 // one more than the pico-dollars, 0 when not known
}

// MaxPrice is ten thousand dollars per million tokens, in pico-dollars per
// token. What is dearer is a mistake in a list.
const MaxPrice = 10_000 * picosPerMillion

const (
	picosPerMillion = 1_000_000 // of a dollar per million tokens
	dollarsPerToken = 12        // decimal places from dollars to pico-dollars
	dollarsPerM     = 6         // the same from dollars per million tokens
)

// PriceOf is a price in pico-dollars per token.
func PriceOf(pico int64) Price { return Price{pico + 1} }

// Pico is the price in pico-dollars per token, if it is known.
func (p Price) Pico() (perToken int64, known bool) { return p.stated - 1, p.stated > 0 }

// String is the price in dollars per million tokens, "-" when it is not known.
func (p Price) String() string {
	pico, known := p.Pico()
	if !known {
		return "-"
	}
	whole := strconv.FormatInt(pico/picosPerMillion, 10)
	part := strings.TrimRight(fmt.Sprintf("%06d", pico%picosPerMillion), "0")
	if part == "" {
		return whole
	}
	return whole + "." + part
}

// MarshalJSON writes dollars per million tokens; null when they are not known.
func (p Price) MarshalJSON() ([]byte, error) {
	if p == (Price{}) {
		return []byte("null"), nil
	}
	return []byte(p.String()), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Price) UnmarshalJSON(text []byte) (err error) {
	*p = Price{}
	if string(text) != "null" {
		*p, err = ParsePrice(string(text))
	}
	return err
}

// ParsePrice reads dollars per million tokens, in decimals. Nothing is lost but
// what is finer than a pico-dollar per token, as sums of binary fractions are:
// 0.30000000000000004 is 0.3.
func ParsePrice(text string) (Price, error) { return parsePrice(text, dollarsPerM) }

func parsePrice(text string, places int) (Price, error) {
	number, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	if scientific {
		n, err := strconv.ParseInt(exponent, 10, 8)
		if err != nil {
			return Price{}, noPrice(text)
		}
		places += int(n)
	}
	whole, part, _ := strings.Cut(number, ".")
	digits := whole + part
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return Price{}, noPrice(text)
	}
	end := len(whole) + places // of the digits that count
	if end > len(digits) {
		digits += strings.Repeat("0", end-len(digits))
	}
	pico, up := int64(0), false
	if end >= 0 {
		up = end < len(digits) && digits[end] >= '5'
		for _, d := range digits[:end] {
			if pico = 10*pico + int64(d-'0'); pico > MaxPrice {
				return Price{}, noPrice(text)
			}
		}
	}
	if up {
		pico++
	}
	if pico == 0 && strings.Trim(digits, "0") != "" {
		return Price{}, noPrice(text) // too little to tell from free
	}
	return PriceOf(pico), nil
}

func noPrice(text string) error { return fmt.Errorf("%q is no price", text[:min(len(text), 40)]) }

// Rates are the prices of each kind of token.
type Rates struct {
	Input      Price `json:"input,omitzero"`
	Output     Price `json:"output,omitzero"`
	CacheRead  Price `json:"cache_read,omitzero"`
	CacheWrite Price `json:"cache_write,omitzero"`
	Reasoning  Price `json:"reasoning,omitzero"` // stated where it is not that of Output
	AudioIn    Price `json:"input_audio,omitzero"`
	AudioOut   Price `json:"output_audio,omitzero"`
}

// kinds are the prices in the order of the facts' file.
func (r *Rates) kinds() [7]*Price {
	return [...]*Price{&r.Input, &r.Output, &r.CacheRead, &r.CacheWrite, &r.Reasoning, &r.AudioIn, &r.AudioOut}
}

// Prices are what one vendor takes for the tokens of a model. What else it
// takes money for, as each request or search, is not in them.
type Prices struct {
	Rates
	Tiers []Tier `json:"tiers,omitempty"` // least first
}

// A Tier has the prices of all tokens of a call whose prompt is longer than
// Over tokens. A kind that it says nothing of is not known there.
type Tier struct {
	Over int `json:"over"`
	Rates
}

// For returns the rates of a call with a prompt of that many tokens, cached
// ones among them.
func (p Prices) For(prompt int64) Rates {
	rates := p.Rates
	for _, t := range p.Tiers {
		if prompt > int64(t.Over) {
			rates = t.Rates
		}
	}
	return rates
}

// merged fills what is not known of prices from others.
func (p Prices) merged(other Prices) Prices {
	mine, others := p.kinds(), other.kinds()
	for i, price := range mine {
		*price = first(*price, *others[i])
	}
	if len(p.Tiers) == 0 {
		p.Tiers = other.Tiers
	}
	return p
}

// String is the form of the facts' file: dollars per million tokens with
// commas, without the empty ones at the end, and each tier after a semicolon.
func (p Prices) String() string {
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
		if *price != (Price{}) {
			word = price.String()
		}
		words = append(words, word)
	}
	return strings.TrimRight(strings.Join(words, ","), ",")
}

// parsePrices reads the form of String.
func parsePrices(text string) (p Prices, err error) {
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
			if *kinds[i], err = ParsePrice(word); err != nil {
				return r, err
			}
		}
		i++
	}
	return r, nil
}

// perToken are prices as OpenRouter lists them, and those who list as it does:
// dollars per token, in quotes. A number, or a negative one, is not a price there.
type perToken struct {
	Prompt     json.RawMessage `json:"prompt"`
	Completion json.RawMessage `json:"completion"`
	CacheRead  json.RawMessage `json:"input_cache_read"`
	CacheWrite json.RawMessage `json:"input_cache_write"`
	Reasoning  json.RawMessage `json:"internal_reasoning"`
	AudioIn    json.RawMessage `json:"audio"`
	AudioOut   json.RawMessage `json:"audio_output"`
}

// rates are the prices listed. Where tokens cost anything, a zero for one kind
// of them says that it has no price of its own.
func (l *perToken) rates() Rates {
	var r Rates
	listed := [...]json.RawMessage{l.Prompt, l.Completion, l.CacheRead, l.CacheWrite, l.Reasoning, l.AudioIn, l.AudioOut}
	kinds := r.kinds()
	for i, price := range kinds {
		var text string
		if json.Unmarshal(listed[i], &text) == nil {
			*price, _ = parsePrice(text, dollarsPerToken)
		}
	}
	free := PriceOf(0)
	if r.Input == free && r.Output == free {
		return r
	}
	for _, price := range kinds[2:] {
		if *price == free {
			*price = Price{}
		}
	}
	return r
}
