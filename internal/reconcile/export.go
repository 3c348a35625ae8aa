// Package reconcile compares what a vendor says that it took with what the
// gateway worked out. It reads the vendors' exports of costs: the answers of
// OpenAI's and of Anthropic's API, and tables as CSV. Amounts are exact until
// they are shown.
package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Line is one cost in an export.
type Line struct {
	Day   string // of UTC, 2006-01-02
	Model string // as the vendor calls it; "" where the cost is of no model
	What  string // what it is for, in the vendor's words
	Cost  *big.Rat
}

// Export is what a vendor tells.
type Export struct {
	Lines []Line
	// First and Last are the days that it tells of, those without costs too.
	First, Last string
	// Cut says that there are more pages than it has.
	Cut bool
}

// Read reads files, each of which has pages of an API, one after the other or
// in an array, or a table.
func Read(files ...[]byte) (*Export, error) {
	e := &Export{}
	whole := len(files) == 0
	for i, data := range files {
		if slices.ContainsFunc(files[:i], func(other []byte) bool { return bytes.Equal(other, data) }) {
			return nil, fmt.Errorf("file %d is the same as one before it: its costs would count twice", i+1)
		}
		data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
		var last bool
		var err error
		switch {
		case len(data) == 0:
			err = errors.New("it is empty")
		case data[0] == '{' || data[0] == '[':
			last, err = e.readPages(data)
		default:
			last, err = true, e.readTable(data)
		}
		if err != nil {
			return nil, fmt.Errorf("file %d: %w", i+1, err)
		}
		whole = whole || last
	}
	e.Cut = !whole
	return e, nil
}

// add adds a line, unless it is of nothing.
func (e *Export) add(l Line) {
	e.covers(l.Day)
	if l.Cost.Sign() != 0 {
		e.Lines = append(e.Lines, l)
	}
}

// covers notes that the export tells of a day.
func (e *Export) covers(day string) {
	if e.First == "" || day < e.First {
		e.First = day
	}
	e.Last = max(e.Last, day)
}

// Within leaves out what is not between two days; "" is no bound. until is the
// first day that is left out.
func (e *Export) Within(since, until string) {
	e.Lines = slices.DeleteFunc(e.Lines, func(l Line) bool { return l.Day < since || until != "" && l.Day >= until })
	e.First = max(e.First, since)
	if until != "" && e.Last >= until {
		e.Last = dayBefore(until)
	}
}

func dayBefore(day string) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return t.AddDate(0, 0, -1).Format(time.DateOnly)
}

// amountText is a decimal number, of a length that no computation suffers from.
var amountText = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?$`)

// amount reads a decimal number exactly.
func amount(text string) (*big.Rat, error) {
	if amountText.MatchString(text) {
		if r, ok := new(big.Rat).SetString(text); ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%q is no amount", text[:min(len(text), 40)])
}

// Tolerance reads a share in percent, such as 1% or 0.5.
func Tolerance(text string) (*big.Rat, error) {
	r, err := amount(strings.TrimSuffix(text, "%"))
	if err != nil || r.Sign() < 0 {
		return nil, fmt.Errorf("a tolerance is a share such as 1%% or 0.5%%, not %q", text[:min(len(text), 40)])
	}
	return r, nil
}

// dollars refuses amounts in other currencies.
func dollars(currency string) error {
	if currency != "" && !strings.EqualFold(currency, "usd") {
		return fmt.Errorf("amounts in %q cannot be compared with dollars", currency[:min(len(currency), 40)])
	}
	return nil
}

// dayOf is the day of a time in one of the forms that vendors use.
func dayOf(text string) (string, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 100_000_000 { // seconds; 20260131 is a date
		return time.Unix(n, 0).UTC().Format(time.DateOnly), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05 UTC", "20060102", "2006/01/02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(time.DateOnly), nil
		}
	}
	return "", fmt.Errorf("%q is no day: it is written as 2006-01-31", text[:min(len(text), 40)])
}

// modelOf is the model in the words that OpenAI has for what a cost is for, such
// as "gpt-5-2025-08-07, cached input", "priority | gpt-5, output, long context"
// or "gpt-image-1 text, input"; "" where there is none, as in "web search tool
// calls".
func modelOf(item string) string {
	for part := range strings.SplitSeq(item, "|") {
		head, _, listed := strings.Cut(part, ",")
		words := strings.Fields(head)
		switch {
		case len(words) == 1 && (listed || part == item),
			len(words) == 2 && listed && strings.ContainsAny(words[0], "-0123456789"): // with what goes in: text, audio, image
			return words[0]
		}
	}
	return ""
}
