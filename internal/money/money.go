// Package money has amounts of dollars that are counted exactly.
package money

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Amount is nano-dollars: a billion of them are a dollar, and an int64 holds
// nine billion dollars. Sums end at what it can hold, never beyond.
type Amount int64

// The units of amounts, and the bounds of what is counted.
const (
	Nano   Amount = 1
	Dollar Amount = 1_000_000_000
	Max    Amount = math.MaxInt64
	Min    Amount = -Max
)

// Plus is the sum of two amounts, at most Max and at least Min.
func (a Amount) Plus(b Amount) Amount {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return Max
	case a < 0 && b < 0 && (sum >= 0 || sum < Min):
		return Min
	}
	return sum
}

// Minus is what is left of a when b is taken away.
func (a Amount) Minus(b Amount) Amount {
	if b < Min {
		b = Min
	}
	return a.Plus(-b)
}

// String is the amount in dollars, with as many decimals as it has.
func (a Amount) String() string {
	sign, n := "", uint64(a)
	if a < 0 {
		sign, n = "-", -n
	}
	whole := strconv.FormatUint(n/uint64(Dollar), 10)
	part := strings.TrimRight(fmt.Sprintf("%09d", n%uint64(Dollar)), "0")
	if part == "" {
		return sign + whole
	}
	return sign + whole + "." + part
}

// MarshalJSON writes dollars as a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads dollars, as a number or in quotes.
func (a *Amount) UnmarshalJSON(text []byte) (err error) {
	s := string(text)
	if unquoted, err := strconv.Unquote(s); err == nil {
		s = unquoted
	}
	*a, err = Parse(s)
	return err
}

// Parse reads dollars in decimals, "12.5" or "-0.000001". What is finer than a
// nano-dollar, or more than Max, is an error: nothing is rounded unseen.
func Parse(text string) (Amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, _ := strings.Cut(digits, ".")
	part = strings.TrimRight(part, "0")
	if whole+part == "" && !strings.Contains(digits, "0") || strings.Trim(whole+part, "0123456789") != "" || len(part) > 9 {
		return 0, fmt.Errorf("%q is no amount of dollars: write it as 5 or 0.25, with nine decimals at most", text[:min(len(text), 40)])
	}
	n, err := strconv.ParseInt("0"+whole+part+strings.Repeat("0", 9-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q dollars are more than can be counted", text[:min(len(text), 40)])
	}
	if negative {
		n = -n
	}
	return Amount(n), nil
}

// Scaled is a number in decimals, which may have an exponent, times ten to the
// power of places, to the nearest whole; half of one is up. Below zero, and
// beyond what an int64 holds, there is none.
func Scaled(text string, places int) (n int64, ok bool) {
	number, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	if scientific {
		e, err := strconv.ParseInt(exponent, 10, 8)
		if err != nil {
			return 0, false
		}
		places += int(e)
	}
	whole, part, _ := strings.Cut(number, ".")
	digits := whole + part
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	end := len(whole) + places // of the digits that count
	if end < 0 {
		return 0, true
	}
	if end > len(digits) {
		digits += strings.Repeat("0", end-len(digits))
	}
	for _, d := range digits[:end] {
		if n > (math.MaxInt64-10)/10 {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	if end < len(digits) && digits[end] >= '5' {
		n++
	}
	return n, true
}
