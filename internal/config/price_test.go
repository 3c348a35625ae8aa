package config

import (
	"testing"

	"github.com/limen-gateway/limen/internal/price"
)

// What a price does not say is as it is known; what is free is free of all.
func TestPriceOver(t *testing.T) {
	const known = "1.25,10,0.125,,,3;200000:2.5,15,0.25;search=0.01;flex=50"
	free := price.Free().String()
	for said, want := range map[string]string{
		`{ input: 1 }`: "1,10,0.125,,,3;200000:2.5,15,0.25;search=0.01;flex=50",
		`{ input: 1, output: 8, cache_read: 0, cache_write: 2, cache_write_1h: 3, reasoning: 9, input_audio: 4, output_audio: 5, output_image: 6, tiers: [] }`: "1,8,0,2,9,4,5,3,6;search=0.01;flex=50",
		`{ call: 0.005, searched: 0.03, flex: 60%, priority: 200%, batch: 40%, other: 90% }`:                                                                   "1.25,10,0.125,,,3;200000:2.5,15,0.25;call=0.005;searched=0.03;flex=60;priority=200;batch=40;other=90",
		`{ input: 1, tiers: [{ over: 7, input: 2 }, { over: 9, output: 20 }] }`:                                                                                "1,10,0.125,,,3;7:2,10,0.125,,,3;9:1,20,0.125,,,3;search=0.01;flex=50",
		`free`:                               free,
		`{ is: free, from: 2026-01-31 }`:     free,
		`{ input: 0, output: 0 }`:            free,
		`{ input: 0.0, output: 0, call: 1 }`: "0,0,0,0,0,0,0,0,0;call=1;search=0;flex=100;priority=100;batch=100;other=100",
	} {
		c := parse(t, "providers: { openai: { prices: { \"gpt-*\": "+said+" } } }")
		list, err := price.ParseList(known)
		if err != nil {
			t.Fatal(err)
		}
		prices := c.Providers[0].PricesOf("gpt-5")
		if got := prices[0].Over(list); len(prices) != 1 || got.String() != want {
			t.Errorf("%s: got %s, want %s", said, got, want)
		}
		if c.Providers[0].PricesOf("o3") != nil || list.String() != known {
			t.Errorf("%s: others have prices, or %s changed", said, list)
		}
	}
}
