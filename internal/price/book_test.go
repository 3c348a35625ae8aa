package price

import (
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

func TestBookAt(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	dated := func(n int, pico int64) Dated {
		return Dated{From: day(n), List: List{Rates: Rates{Input: RateOf(pico)}}}
	}
	book := NewBook(0, dated(20, 3), dated(10, 1), dated(20, 4), dated(15, 2))
	for at, want := range map[time.Time]int64{
		{}: 1, day(9): 1, day(10): 1, day(15).Add(-1): 1, day(15): 2, day(19): 2, day(20): 4, day(31): 4,
	} {
		if got, _ := book.At(at).Input.Pico(); got != want {
			t.Errorf("%s: got %d, want %d", at, got, want)
		}
	}
	if n := len(book.Lists()); n != 3 {
		t.Errorf("%d lists are kept", n)
	}
	for _, b := range []*Book{nil, NewBook(500)} {
		if l := b.At(day(1)); l == nil || l.Input != (Rate{}) {
			t.Errorf("an empty book has %v", l)
		}
	}
}

func TestCharge(t *testing.T) {
	for _, test := range []struct {
		markup     Markup
		cost, want money.Amount
	}{
		{0, 100, 100},
		{1000, 100, 110},
		{550, 1_000_000_000, 1_055_000_000},
		{1000, 4, 4},
		{1000, 5, 6},
		{1, 4999, 4999},
		{1, 5000, 5001},
		{10_000, 0, 0},
		{1000, -50, -50},
		{-1000, 50, 50},
		{10_000, money.Max/2 + 1, money.Max},
		{1_000_000_000, money.Max, money.Max},
		{1, money.Max, money.Max},
		{10_000, money.Max / 2, money.Max - 1},
	} {
		if got := NewBook(test.markup).Charge(test.cost); got != test.want {
			t.Errorf("%d of %d: got %d, want %d", test.markup, test.cost, got, test.want)
		}
	}
	var none *Book
	if got := none.Charge(7); got != 7 {
		t.Errorf("without a book: %d", got)
	}
}
