// Package price has what models cost, as data, and works out the cost of a call.
package price

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/limen-gateway/limen/internal/money"
)

// A Rate is what a token of some kind costs, or that nobody said what. A price
// that is not known is not the same as none to pay: the zero Rate is not known.
//
// Its unit is the pico-dollar per token: a dollar per million tokens is a
// million of them. So what vendors publish is a whole number, and the cost of
// 900 million tokens at the greatest price still fits an int64.
type Rate struct {
	stated int64 // one more than the pico-dollars, 0 when not known
}

// MaxRate is ten thousand dollars per million tokens, in pico-dollars per
// token. What is dearer is a mistake in a list.
const MaxRate = 10_000 * picosPerMillion

const (
	picosPerMillion = 1_000_000 // of a dollar per million tokens
	dollarsPerToken = 12        // decimal places from dollars to pico-dollars
	dollarsPerM     = 6         // the same from dollars per million tokens
)

// RateOf is a price in pico-dollars per token.
func RateOf(pico int64) Rate { return Rate{pico + 1} }

// Pico is the price in pico-dollars per token, if it is known.
func (p Rate) Pico() (perToken int64, known bool) { return p.stated - 1, p.stated > 0 }

// Times is that many percent of the price, if it is known.
func (p Rate) Times(percent Percent) Rate {
	pico, known := p.Pico()
	if !known {
		return Rate{}
	}
	return RateOf(pico * int64(percent) / 100)
}

// String is the price in dollars per million tokens, "-" when it is not known.
func (p Rate) String() string {
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
func (p Rate) MarshalJSON() ([]byte, error) {
	if p == (Rate{}) {
		return []byte("null"), nil
	}
	return []byte(p.String()), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Rate) UnmarshalJSON(text []byte) (err error) {
	*p = Rate{}
	if string(text) != "null" {
		*p, err = ParseRate(string(text))
	}
	return err
}

// ParseRate reads dollars per million tokens, in decimals. Nothing is lost but
// what is finer than a pico-dollar per token, as sums of binary fractions are:
// 0.30000000000000004 is 0.3.
func ParseRate(text string) (Rate, error) { return parseRate(text, dollarsPerM) }

// ParsePerToken is ParseRate for dollars per token.
func ParsePerToken(text string) (Rate, error) { return parseRate(text, dollarsPerToken) }

func parseRate(text string, places int) (Rate, error) {
	pico, ok := money.Scaled(text, places)
	number, _, _ := strings.Cut(strings.ToLower(text), "e")
	tooLittle := pico == 0 && strings.Trim(number, "0.") != "" // to tell from free
	if !ok || tooLittle || pico > MaxRate {
		return Rate{}, noPrice(text)
	}
	return RateOf(pico), nil
}

func noPrice(text string) error { return fmt.Errorf("%q is no price", text[:min(len(text), 40)]) }
