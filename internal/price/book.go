package price

import (
	"math/bits"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

// A Book has what was taken for a model, and is: its lists with the time from
// which each counts, and what is added where costs are charged. It never
// changes; a nil Book knows nothing.
type Book struct {
	lists  []Dated
	markup Markup
}

// Dated is a list with the time from which it counts.
type Dated struct {
	From   time.Time
	Source string // where it is from, for people
	List
}

// NewBook makes a book of lists, in any order. The first of them counts from
// the beginning of time: what was taken before it is not known better. Of two
// with one time, the later in the slice counts.
func NewBook(markup Markup, lists ...Dated) *Book {
	lists = slices.Clone(lists)
	slices.SortStableFunc(lists, func(a, b Dated) int { return a.From.Compare(b.From) })
	kept := lists[:0]
	for i, l := range lists {
		if i+1 == len(lists) || !l.From.Equal(lists[i+1].From) {
			kept = append(kept, l)
		}
	}
	return &Book{lists: kept, markup: markup}
}

var nothing List

// At is the list that counts at a time. It is never nil, and not to be changed.
func (b *Book) At(t time.Time) *List {
	if b == nil || len(b.lists) == 0 {
		return &nothing
	}
	i := len(b.lists) - 1
	for i > 0 && t.Before(b.lists[i].From) {
		i--
	}
	return &b.lists[i].List
}

// Lists are all lists, oldest first. They are not to be changed.
func (b *Book) Lists() []Dated {
	if b == nil {
		return nil
	}
	return b.lists
}

// Markup is what is added where costs are charged.
func (b *Book) Markup() Markup {
	if b == nil {
		return 0
	}
	return b.markup
}

// Charge is a cost with the markup, to the nearest nano-dollar.
func (b *Book) Charge(cost money.Amount) money.Amount { return cost.Plus(b.Markup().Of(cost)) }

// Markup is a part that is added to a cost, in hundredths of a percent.
type Markup int64

// wholeMarkup is a markup of 100 %.
const wholeMarkup = 10_000

// Of is the markup of a cost, to the nearest nano-dollar; half of one is up.
// More than can be counted is the most that can. Nothing is added to what is
// not above zero.
func (m Markup) Of(cost money.Amount) money.Amount {
	high, low := bits.Mul64(uint64(max(cost, 0)), uint64(max(m, 0)))
	low, carry := bits.Add64(low, wholeMarkup/2, 0)
	high += carry
	if high >= wholeMarkup {
		return money.Max
	}
	nanos, _ := bits.Div64(high, low, wholeMarkup)
	return money.Amount(min(nanos, uint64(money.Max)))
}
