// Package budget keeps calls within what their payers may spend. A call holds
// what it may cost before it is made, and is settled at what it did cost; both
// happen in memory. What this gateway may hold it has leased from the store,
// where no lease ever goes beyond what is left, so that all gateways together
// cannot spend more than a budget has.
package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

// Budget is how much may be spent in a period.
type Budget struct {
	Amount money.Amount `json:"amount"`
	Period Period       `json:"period"`
	Zone   string       `json:"zone,omitempty"` // IANA name, by whose clock the period begins; "" is UTC
	Soft   bool         `json:"soft,omitempty"` // going over it is told, and refuses nothing
}

// Period is after how long a budget begins anew.
type Period string

// The periods. Weeks begin on Monday; Total never begins anew.
const (
	Total Period = "total"
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
)

// Periods lists them, shortest first.
var Periods = []Period{Day, Week, Month, Total}

// String is the budget as Parse reads it.
func (b Budget) String() string {
	text := b.Amount.String() + "/" + b.key()
	if b.Soft {
		text += " soft"
	}
	return text
}

// Parse reads a budget: "5/month", "0.01/total", "20/week@Europe/Berlin", or
// with " soft" behind it.
func Parse(text string) (Budget, error) {
	rest, soft := strings.CutSuffix(strings.TrimSpace(text), " soft")
	amount, rest, found := strings.Cut(rest, "/")
	if !found {
		return Budget{}, fmt.Errorf("%q is no budget: write it as 5/month, 20/week@Europe/Berlin or 4/day soft", text)
	}
	n, err := money.Parse(strings.TrimSpace(amount))
	if err != nil {
		return Budget{}, err
	}
	period, zone, zoned := strings.Cut(strings.TrimSpace(rest), "@")
	if zoned && zone == "" {
		return Budget{}, fmt.Errorf("%q names no time zone behind @: write one as Europe/Berlin", text)
	}
	b := Budget{Amount: n, Period: Period(period), Zone: zone, Soft: soft}
	return b, b.Check()
}

// Check says what is wrong with a budget.
func (b Budget) Check() error {
	if b.Amount < 0 {
		return fmt.Errorf("a budget of %s is below zero", b.Amount)
	}
	switch b.Period {
	case Total, Day, Week, Month:
	default:
		return fmt.Errorf("%q is no period of a budget: it is day, week, month or total", b.Period)
	}
	if b.Period == Total && b.Zone != "" {
		return errors.New("a budget in total never begins anew, so it has no time zone")
	}
	if _, err := Location(b.Zone); err != nil {
		return fmt.Errorf("%q is no time zone: write one as Europe/Berlin", b.Zone)
	}
	return nil
}

// UnmarshalJSON reads an object, or the text that Parse reads. It takes only
// what Check finds nothing wrong with, and no member that a budget has not: what
// was spent is nobody's to say.
func (b *Budget) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		read, err := Parse(text)
		*b = read
		return err
	}
	type plain Budget
	var read plain
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	*b = Budget(read)
	return b.Check()
}

// key is the period and zone: what budgets have in common that count together.
func (b Budget) key() string {
	if zone := b.zone(); zone != "" {
		return string(b.Period) + "@" + zone
	}
	return string(b.Period)
}

func (b Budget) zone() string {
	if b.Zone == "UTC" || b.Period == Total {
		return ""
	}
	return b.Zone
}

// Window is the window of time that a budget is in: when it began and when the
// next begins. Both are zero for a total.
func (b Budget) Window(now time.Time) (begins, renews time.Time) {
	zone, err := Location(b.zone())
	if err != nil {
		zone = time.UTC // Check let it pass on another machine
	}
	year, month, day := now.In(zone).Date()
	switch b.Period {
	case Day:
		return midnight(year, month, day, zone), midnight(year, month, day+1, zone)
	case Week:
		day -= (int(now.In(zone).Weekday()) + 6) % 7
		return midnight(year, month, day, zone), midnight(year, month, day+7, zone)
	case Month:
		return midnight(year, month, 1, zone), midnight(year, month+1, 1, zone)
	}
	return time.Time{}, time.Time{}
}

// midnight is the beginning of a day. Where clocks are put forward at
// midnight, that is the hour after.
func midnight(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if t.Hour() > 12 { // the end of the day before
		return t.Add(time.Hour)
	}
	return t
}
