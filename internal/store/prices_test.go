package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
)

func TestPrices(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		list := func(text string) price.List {
			l, err := price.ParseList(text)
			mustDo(t, err)
			return l
		}
		full := list("1.25,10,0.125,1.5,12,3,4,2.5,40;200000:2.5,15;call=0.005;search=0.01;searched=0.03;flex=50;priority=200;batch=50;other=80")
		at := time.UnixMilli(1_700_000_000_123)
		want := []Price{{"openai", "m", time.Time{}, full, "a"}, {"openai", "m", at, list("2,3"), "b"}, {"p http://p", "a/b", at, price.List{}, ""}}
		mustDo(t, s.AddPrices(ctx, nil))
		mustDo(t, s.AddPrices(ctx, []Price{want[2], want[1]}))
		mustDo(t, s.AddPrices(ctx, []Price{want[0], {"openai", "m", at, full, "c"}})) // the second is there
		got, err := s.Prices(ctx)
		mustDo(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		var many []Price
		for i := range 2*pricesAtOnce + 1 {
			many = append(many, Price{Provider: "many", Model: fmt.Sprint(i), List: full})
		}
		mustDo(t, s.AddPrices(ctx, many))
		if got, err := s.Prices(ctx); err != nil || len(got) != len(want)+len(many) {
			t.Errorf("%d prices, %v", len(got), err)
		}
	})
}

// Records and sums are corrected by what they differ; what changed meanwhile stays.
func TestReprice(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		calls := []Call{
			repricedCall(1, Call{Priced: false}),
			repricedCall(2, Call{Priced: true, Cost: 100, Charge: 110}),
			repricedCall(3, Call{Priced: true, Cost: 7, Charge: 7, Tags: "a=b\nc=d", Team: "t"}),
			repricedCall(4, Call{Priced: true, Cost: 5, Charge: 5}),
		}
		mustDo(t, s.AddCalls(ctx, calls))
		stale := calls[3]
		stale.Cost = 4
		n, err := s.Reprice(ctx, []Repriced{{&calls[0], 40, 44}, {&calls[1], 90, 99}, {&calls[2], 8, 9}, {&stale, 1, 1}})
		if n != 3 || err != nil {
			t.Errorf("%d are corrected, %v", n, err)
		}
		for i, want := range []Call{{Priced: true, Cost: 40, Charge: 44}, {Priced: true, Cost: 90, Charge: 99}, {Priced: true, Cost: 8, Charge: 9}, {Priced: true, Cost: 5, Charge: 5}} {
			got, err := s.Call(ctx, calls[i].ID)
			if err != nil || got.Priced != want.Priced || got.Cost != want.Cost || got.Charge != want.Charge {
				t.Errorf("call %d: got %v %s %s, %v", i, got.Priced, got.Cost, got.Charge, err)
			}
		}
		for tag, want := range map[string]Sums{"": {Calls: 4, Cost: 143, Charge: 157}, "a=b": {Calls: 1, Cost: 8, Charge: 9}, "c=d": {Calls: 1, Cost: 8, Charge: 9}} {
			for _, by := range [][]Dimension{nil, {ByHour}, {ByDay}} {
				rows, err := s.Usage(ctx, Filter{Tag: tag}, by, time.UTC)
				if err != nil || len(rows) != 1 {
					t.Fatalf("%q by %v: %v, %v", tag, by, rows, err)
				}
				if got := rows[0].Sums; got.Calls != want.Calls || got.Unpriced != 0 || got.Cost != want.Cost || got.Charge != want.Charge || got.Usage.Input != want.Calls {
					t.Errorf("%q by %v: got %+v", tag, by, got)
				}
			}
		}
		if n, err := s.Reprice(ctx, nil); n != 0 || err != nil {
			t.Errorf("of nothing %d are corrected, %v", n, err)
		}
	})
}

func repricedCall(n int, c Call) Call {
	c.ID = fmt.Sprintf("%012x%020x", 1_700_000_000_000+n, n)
	c.KeyID, c.Operation, c.Model, c.Provider, c.UpstreamModel, c.Status = "k", "chat", "m", "p", "u", 200
	c.Started = time.UnixMilli(1_700_000_000_000 + int64(n))
	c.Usage = llm.Usage{Input: 1}
	return c
}
