package price

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

func TestParseRate(t *testing.T) {
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
		"10000":                {MaxRate, "10000"},
	} {
		p, err := ParseRate(text)
		pico, known := p.Pico()
		if err != nil || !known || pico != want.pico || p.String() != want.text {
			t.Errorf("%s: %d, %v, %s, %v, want %v", text, pico, known, p, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "-1", "+1", "1,5", "0x1", "NaN", "free", "1e", "1e999", "1e99", "10001", "99999999999999999999999", "0.0000001", "1e-99", "1.2.3", `"1"`,
	} {
		if p, err := ParseRate(text); err == nil || p != (Rate{}) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

// A price that is not known is never 0, in any form.
func TestPriceNotKnown(t *testing.T) {
	var p Rate
	if _, known := p.Pico(); known || p == RateOf(0) || p.String() != "-" {
		t.Errorf("the zero price is %s", p)
	}
	prices := List{Rates: Rates{Input: RateOf(0), Output: RateOf(2_500_000)}, Tiers: []Tier{{Over: 7, Rates: Rates{CacheRead: RateOf(1)}}}}
	const want = `{"input":0,"output":2.5,"tiers":[{"over":7,"cache_read":0.000001}]}`
	text, err := json.Marshal(prices)
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back List
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, prices) {
		t.Errorf("%s is read as %+v, %v", text, back, err)
	}
	if text, err := json.Marshal(p); err != nil || string(text) != "null" {
		t.Errorf("got %s, %v", text, err)
	}
	p = RateOf(1)
	if err := json.Unmarshal([]byte("null"), &p); err != nil || p != (Rate{}) {
		t.Errorf("null is read as %s, %v", p, err)
	}
}

func TestRatesForPrompt(t *testing.T) {
	p := List{
		Rates: Rates{Input: RateOf(1), CacheRead: RateOf(1)},
		Tiers: []Tier{{Over: 100, Rates: Rates{Input: RateOf(2)}}, {Over: 200, Rates: Rates{Input: RateOf(3)}}},
	}
	for prompt, want := range map[int64]Rates{
		0: p.Rates, 100: p.Rates, 101: p.Tiers[0].Rates, 200: p.Tiers[0].Rates, 201: p.Tiers[1].Rates, 1 << 40: p.Tiers[1].Rates,
	} {
		if got := p.For(prompt); got != want {
			t.Errorf("%d tokens: got %v, want %v", prompt, got, want)
		}
	}
}

// The form of the facts' file has all that a list can say.
func TestListText(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"1.25,10,0.125":         "1.25,10,0.125",
		"3,15,,,,,,6":           "3,15,,,,,,6",
		"2;32000:3;256000:4,,1": "2;32000:3;256000:4,,1",
		";search=0.01":          ";search=0.01",
		"1,2;7:3;call=0.005;search=0.01;searched=0.035;flex=50;priority=250;batch=50;other=100": "1,2;7:3;call=0.005;search=0.01;searched=0.035;flex=50;priority=250;batch=50;other=100",
		"1,2;batch=50;call=0": "1,2;call=0;batch=50",
		Free().String():       "0,0,0,0,0,0,0,0,0;call=0;search=0;flex=100;priority=100;batch=100;other=100",
	} {
		list, err := ParseList(text)
		if err != nil || list.String() != want {
			t.Errorf("%q: got %q, %v", text, list, err)
		}
	}
	for _, text := range []string{
		"1,2;", "1,2;7", "1;0:2", "1;9:2;8:3", "1;-1:2", "1;x:2", "1;rent=2", "1;call=-1", "1;call=x", "1;flex=-1", "1;flex=99999", "1,1,1,1,1,1,1,1,1,1",
	} {
		if list, err := ParseList(text); err == nil {
			t.Errorf("%q is read as %q", text, list)
		}
	}
}

// What is free costs nothing, whatever is used of it.
func TestFree(t *testing.T) {
	free := Free()
	for service := range llm.Other + 1 {
		u := llm.Usage{Input: 1, CacheRead: 1, CacheWrite: 1, HourWrite: 1, AudioIn: 1, Output: 1, Reasoning: 1, AudioOut: 1, ImageOut: 1, Searches: 1, Service: service}
		if cost, known := free.Cost(&u); cost != 0 || !known {
			t.Errorf("%q: %s, %v", service, cost, known)
		}
	}
	merged := free.Merged(List{Tiers: []Tier{{Over: 1, Rates: Rates{Input: RateOf(9)}}}})
	if !merged.Equal(&free) {
		t.Errorf("merged it is %s", merged)
	}
}

func TestCost(t *testing.T) {
	list := List{
		Rates: Rates{Input: RateOf(3_000_000), Output: RateOf(15_000_000), CacheRead: RateOf(300_000), CacheWrite: RateOf(3_750_000), HourWrite: RateOf(6_000_000)},
		Tiers: []Tier{{Over: 200_000, Rates: Rates{Input: RateOf(6_000_000), Output: RateOf(22_500_000)}}},
		Call:  FeeOf(5_000_000), Search: FeeOf(10_000_000), Flex: 50,
	}
	free := List{Rates: Rates{Input: RateOf(0), Output: RateOf(0)}}
	once := List{Rates: Rates{Input: RateOf(1_000_000)}, Searched: FeeOf(35_000_000), Other: 200}
	both := List{Search: FeeOf(10_000_000), Searched: FeeOf(35_000_000)}
	for name, test := range map[string]struct {
		list  List
		usage llm.Usage
		want  string // dollars; "" is not known
	}{
		"nothing but the call":     {list, llm.Usage{}, "0.005"},
		"each kind":                {list, llm.Usage{Input: 1000, CacheRead: 1000, CacheWrite: 1000, HourWrite: 1000, Output: 1000, Reasoning: 1000}, "0.04805"},
		"a long prompt":            {list, llm.Usage{Input: 200_000, CacheRead: 1, Output: 1}, "1.2050285"},
		"flex, to the nearest":     {list, llm.Usage{Input: 1, Service: llm.Flex}, "0.0050015"},
		"searches":                 {list, llm.Usage{Searches: 3}, "0.035"},
		"searches, flex":           {list, llm.Usage{Searches: 3, Service: llm.Flex}, "0.035"},
		"one fee for searches":     {once, llm.Usage{Searches: 3}, "0.035"},
		"both fees for searches":   {both, llm.Usage{Searches: 3}, "0.065"},
		"no search":                {once, llm.Usage{}, "0"},
		"another service":          {once, llm.Usage{Input: 1000, Service: llm.Other}, "0.002"},
		"each prompt is short":     {list, llm.Usage{Input: 300_000, Longest: 200_000}, "0.905"},
		"one prompt is long":       {list, llm.Usage{Input: 300_000, Longest: 200_001}, "1.805"},
		"a service without price":  {list, llm.Usage{Input: 1, Service: llm.Priority}, ""},
		"sound without price":      {list, llm.Usage{AudioIn: 1}, ""},
		"searches without price":   {free, llm.Usage{Searches: 1}, ""},
		"free":                     {free, llm.Usage{Input: 1 << 40, Output: 1 << 40}, "0"},
		"half a nano-dollar is up": {List{Rates: Rates{Input: RateOf(500)}}, llm.Usage{Input: 1}, "0.000000001"},
		"less is down":             {List{Rates: Rates{Input: RateOf(499)}}, llm.Usage{Input: 1}, "0"},
		"no price at all":          {List{}, llm.Usage{Output: 1}, ""},
		"more than can be counted": {List{Rates: Rates{Input: RateOf(MaxRate)}}, llm.Usage{Input: 1 << 62}, money.Max.String()},
	} {
		cost, known := test.list.Cost(&test.usage)
		if known != (test.want != "") || known && cost.String() != test.want {
			t.Errorf("%s: got %s, %v, want %q", name, cost, known, test.want)
		}
	}
}

// Whatever a call uses within the most, it costs no more than the worst.
func TestWorst(t *testing.T) {
	list := List{
		Rates: Rates{Input: RateOf(3_000_000), Output: RateOf(15_000_000), CacheWrite: RateOf(3_750_000), HourWrite: RateOf(6_000_000), AudioOut: RateOf(80_000_000)},
		Tiers: []Tier{{Over: 1000, Rates: Rates{Input: RateOf(9_000_000), Output: RateOf(10_000_000)}}},
		Call:  FeeOf(1000), Search: FeeOf(10_000_000), Priority: 200, Flex: 50,
	}
	for name, test := range map[string]struct {
		most Most
		want string
	}{
		"text":            {Most{Prompt: 1000, Completion: 100}, "0.007501"},
		"the dearer tier": {Most{Prompt: 1001, Completion: 1}, "0.00902"},
		"sound":           {Most{Completion: 10, Sound: true}, "0.000801"},
		"searches":        {Most{Searches: 2}, "0.020001"},
		"priority":        {Most{Completion: 100, Service: llm.Priority}, "0.003001"},
		"flex may not be": {Most{Completion: 100, Service: llm.Flex}, "0.001501"},
	} {
		want, err := money.Parse(test.want)
		if got, known := list.Worst(test.most); err != nil || !known || got != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, known, want)
		}
	}
	if _, known := (&List{Rates: Rates{Input: RateOf(1)}}).Worst(Most{}); known {
		t.Error("the price of answers is not known")
	}
}

// What a list says of searches stands in place of all that another says of them.
func TestMergedSearches(t *testing.T) {
	once, each := List{Searched: FeeOf(1), Flex: 50}, List{Search: FeeOf(2), Other: 300}
	for _, test := range []struct{ got, want List }{
		{once.Merged(each), List{Searched: FeeOf(1), Flex: 50, Other: 300}},
		{each.Merged(once), List{Search: FeeOf(2), Flex: 50, Other: 300}},
		{List{}.Merged(once), once},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %+v, want %+v", test.got, test.want)
		}
	}
}
