package limit

import (
	"math"
	"math/bits"
	"time"
)

// Rates bound the calls of an owner. 0 is no limit.
type Rates struct {
	Requests    int64 `json:"rpm,omitempty"`         // in a minute
	Tokens      int64 `json:"tpm,omitempty"`         // in a minute
	Daily       int64 `json:"rpd,omitempty"`         // requests in a day
	Concurrency int64 `json:"concurrency,omitempty"` // calls at once
}

// MaxRate is the most that a rate can be: more is no limit in practice, and
// sums of it cannot overflow.
const MaxRate = 1 << 40

// within are the rates as far as they have a meaning.
func (r Rates) within() Rates {
	for _, rate := range []*int64{&r.Requests, &r.Tokens, &r.Daily, &r.Concurrency} {
		*rate = min(max(*rate, 0), MaxRate)
	}
	return r
}

// Rule is one of the limits of [Rates].
type Rule uint8

// The rules. Those before AtOnce have a bucket each.
const (
	RequestsPerMinute Rule = iota
	TokensPerMinute
	RequestsPerDay
	AtOnce
	rules
)

// of is the rate of a rule.
func (r Rates) of(rule Rule) int64 {
	return [...]int64{r.Requests, r.Tokens, r.Daily, r.Concurrency}[rule]
}

// String names the rule as OpenAI's refusals do.
func (r Rule) String() string {
	return [...]string{"requests per min (RPM)", "tokens per min (TPM)", "requests per day (RPD)", "concurrent requests"}[r]
}

// periods are those of the rules that have a bucket.
var periods = [AtOnce]time.Duration{time.Minute, time.Minute, 24 * time.Hour}

// bucket is what was used of a rate, which leaks out at that rate: what it can
// hold is what may be used at once. It is counted in whole units, of which none
// leaks before its time, and by the monotonic clock.
type bucket struct {
	used int64     // more than it can hold where a call used more than it said
	at   time.Time // up to when it has leaked
}

func (b *bucket) leak(now time.Time, rate int64, period time.Duration) {
	since := now.Sub(b.at)
	if since <= 0 {
		return // another call looked at the clock later and was here before
	}
	out := mulDiv(int64(since), rate, int64(period), 0)
	if out >= b.used {
		b.used, b.at = 0, now
		return
	}
	b.used -= out
	b.at = b.at.Add(takes(out, rate, period))
}

// until is how long it takes until so much has leaked; leak was called with now.
func (b *bucket) until(amount int64, now time.Time, rate int64, period time.Duration) time.Duration {
	if amount <= 0 {
		return 0
	}
	return max(takes(amount, rate, period)-now.Sub(b.at), 0)
}

// add puts an amount in, or takes one out, which may have leaked by now.
func (b *bucket) add(amount int64) { b.used = min(max(b.used+amount, 0), maxUsed) }

// maxUsed bounds a bucket that calls overfilled.
const maxUsed = 1 << 50

// takes is how long so much takes to leak, not less.
func takes(amount, rate int64, period time.Duration) time.Duration {
	return time.Duration(min(mulDiv(amount, int64(period), rate, rate-1), math.MaxInt64/2))
}

// mulDiv is (a*b + plus) / c for numbers that are not negative, or the greatest
// that there is.
func mulDiv(a, b, c, plus int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(plus), 0)
	if high += carry; high >= uint64(c) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(min(quotient, math.MaxInt64))
}
