package provider

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]struct {
		pico int64
		text string
	}{
		"0":                    {0, "0"},
		"0.0":                  {0, "0"},
		"3":                    {3_000_000, "3"},
		"1.25":                 {1_250_000, "1.25"},
		"0.0028":               {2_800, "0.0028"},
		"0.000001":             {1, "0.000001"},
		"600.0":                {600_000_000, "600"},
		"1e3":                  {1_000_000_000, "1000"},
		"2.5E-2":               {25_000, "0.025"},
		".5":                   {500_000, "0.5"},
		"0.30000000000000004":  {300_000, "0.3"},
		"0.049999999999999996": {50_000, "0.05"},
		"0.8999999999999999":   {900_000, "0.9"},
		"10000":                {MaxPrice, "10000"},
	} {
		p, err := ParsePrice(text)
		pico, known := p.Pico()
		if err != nil || !known || pico != want.pico || p.String() != want.text {
			t.Errorf("%s: %d, %v, %s, %v, want %v", text, pico, known, p, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "-1", "+1", "1,5", "0x1", "NaN", "free", "1e", "1e999", "1e99", "10001", "99999999999999999999999", "0.0000001", "1e-99", "1.2.3", `"1"`,
	} {
		if p, err := ParsePrice(text); err == nil || p != (Price{}) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

// A price that is not known is never 0, in any form.
func TestPriceNotKnown(t *testing.T) {
	var p Price
	if _, known := p.Pico(); known || p == PriceOf(0) || p.String() != "-" {
		t.Errorf("the zero price is %s", p)
	}
	prices := Prices{Rates: Rates{Input: PriceOf(0), Output: PriceOf(2_500_000)}, Tiers: []Tier{{Over: 7, Rates: Rates{CacheRead: PriceOf(1)}}}}
	const want = `{"input":0,"output":2.5,"tiers":[{"over":7,"cache_read":0.000001}]}`
	text, err := json.Marshal(prices)
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back Prices
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, prices) {
		t.Errorf("%s is read as %+v, %v", text, back, err)
	}
	if text, err := json.Marshal(p); err != nil || string(text) != "null" {
		t.Errorf("got %s, %v", text, err)
	}
	p = PriceOf(1)
	if err := json.Unmarshal([]byte("null"), &p); err != nil || p != (Price{}) {
		t.Errorf("null is read as %s, %v", p, err)
	}
}

func TestRatesForPrompt(t *testing.T) {
	p := Prices{
		Rates: Rates{Input: PriceOf(1), CacheRead: PriceOf(1)},
		Tiers: []Tier{{Over: 100, Rates: Rates{Input: PriceOf(2)}}, {Over: 200, Rates: Rates{Input: PriceOf(3)}}},
	}
	for prompt, want := range map[int64]Rates{
		0: p.Rates, 100: p.Rates, 101: p.Tiers[0].Rates, 200: p.Tiers[0].Rates, 201: p.Tiers[1].Rates, 1 << 40: p.Tiers[1].Rates,
	} {
		if got := p.For(prompt); got != want {
			t.Errorf("%d tokens: got %v, want %v", prompt, got, want)
		}
	}
}

func TestListedPrices(t *testing.T) {
	for name, test := range map[string]struct{ pricing, want string }{
		"all of them": {`{"prompt":"0.00000125","completion":"0.00001","request":"0","image":"0","web_search":"0","internal_reasoning":"0.00002",
			"input_cache_read":"0.000000125","input_cache_write":"1.5e-6","audio":"0.000001","audio_output":"0.000002"}`, "1.25,10,0.125,1.5,20,1,2"},
		"a zero is no price of its own": {`{"prompt":"0.000001","completion":"0.000002","internal_reasoning":"0","input_cache_read":"0"}`, "1,2"},
		"free":                          {`{"prompt":"0","completion":"0","request":"0"}`, "0,0"},
		"it depends":                    {`{"prompt":"-1","completion":"-1"}`, ""},
		"of another unit":               {`{"prompt":0.2,"completion":0.8}`, ""},
		"too much":                      {`{"prompt":"0.2","completion":"0.8"}`, ""},
		"no object":                     {`"free"`, ""},
		"nothing":                       {`null`, ""},
	} {
		models, err := DecodeModels([]byte(`{"data":[{"id":"m","pricing":` + test.pricing + `}]}`))
		if err != nil || len(models) != 1 || models[0].Prices.String() != test.want {
			t.Errorf("%s: got %+v, %v, want %q", name, models, err, test.want)
		}
	}
}
