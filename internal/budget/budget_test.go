package budget

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Budget{
		"5/month":               {Amount: 5 * money.Dollar, Period: Month},
		"0.01/total":            {Amount: money.Dollar / 100, Period: Total},
		"20/week@Europe/Berlin": {Amount: 20 * money.Dollar, Period: Week, Zone: "Europe/Berlin"},
		"4/month soft":          {Amount: 4 * money.Dollar, Period: Month, Soft: true},
		"0/day":                 {Period: Day},
	} {
		got, err := Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %+v (%s), %v", text, got, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                      `"" is no budget`,
		"5":                     `"5" is no budget: write it as 5/month`,
		"$5/month":              `"$5" is no amount of dollars`,
		"-5/month":              "below zero",
		"5/year":                `"year" is no period of a budget: it is day, week, month or total`,
		"5/month hard":          `"month hard" is no period`,
		"5/day@Berlin":          `"Berlin" is no time zone`,
		"5/day@Local":           `"Local" is no time zone`,
		"5/day@":                "names no time zone behind @",
		"5/total@Europe/Berlin": "so it has no time zone",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v, %v, want an error with %s", text, got, err, want)
		}
	}
	for _, b := range []Budget{{Amount: 5 * money.Dollar / 2, Period: Week, Zone: "Europe/Berlin", Soft: true}, {Period: Total}} {
		text, err := json.Marshal(b)
		var back Budget
		if err != nil || json.Unmarshal(text, &back) != nil || back != b {
			t.Errorf("%+v becomes %s, %+v", b, text, back)
		}
	}
}

func TestWindows(t *testing.T) {
	for _, test := range []struct{ budget, now, begins, renews string }{
		{"1/day", "2026-11-21T23:59:59.999Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"1/day", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"1/day@UTC", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"1/day@Europe/Berlin", "2026-11-21T23:00:00Z", "2026-11-21T23:00:00Z", "2026-11-22T23:00:00Z"},
		{"1/day@Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{"1/day@Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // 25 hours
		{"1/week", "2026-11-22T23:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},              // a Sunday
		{"1/week", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},              // a Monday
		{"1/week@Asia/Tokyo", "2026-12-31T16:00:00Z", "2026-12-27T15:00:00Z", "2027-01-03T15:00:00Z"},
		{"1/month", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"1/month@America/New_York", "2027-01-01T04:59:59Z", "2026-12-01T05:00:00Z", "2027-01-01T05:00:00Z"},
		{"1/day@Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"}, // has no midnight
		{"1/day@Asia/Beirut", "2026-03-28T21:59:59Z", "2026-03-27T22:00:00Z", "2026-03-28T22:00:00Z"},
		{"1/total", "2026-11-21T23:59:59Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		b, err := Parse(test.budget)
		mustDo(t, err)
		now, err := time.Parse(time.RFC3339, test.now)
		mustDo(t, err)
		begins, renews := b.Window(now)
		if got, want := begins.UTC().Format(time.RFC3339)+" "+renews.UTC().Format(time.RFC3339), test.begins+" "+test.renews; got != want {
			t.Errorf("%s at %s: %s, want %s", test.budget, test.now, got, want)
		}
	}
}

// Windows of every zone follow one another without a gap, and each time is in
// the window that its window is found by.
func TestWindowsFollow(t *testing.T) {
	for _, zone := range []string{"", "Europe/Berlin", "America/New_York", "Asia/Beirut", "America/Santiago", "Africa/Cairo", "Pacific/Auckland", "America/Havana", "Australia/Lord_Howe"} {
		for _, period := range []Period{Day, Week, Month} {
			b := Budget{Period: period, Zone: zone}
			begins, renews := b.Window(time.Date(2025, 12, 31, 12, 0, 0, 0, time.UTC))
			for renews.Year() < 2028 {
				next, after := b.Window(renews)
				last, _ := b.Window(renews.Add(-time.Millisecond))
				if !next.Equal(renews) || !last.Equal(begins) || !after.After(next) {
					t.Fatalf("%s: %s to %s is followed by %s; its last moment is in %s", b, begins, renews, next, last)
				}
				begins, renews = next, after
			}
		}
	}
}
