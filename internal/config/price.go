package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
)

// PriceRules are for all models.
type PriceRules struct {
	Unknown string `yaml:"unknown" enum:"budgeted refuse allow ceiling" doc:"Calls whose price is not known: refused where a key has a hard budget to keep (budgeted), refused, made and charged nothing (allow), or charged by the ceiling."`
	Ceiling *Price `yaml:"ceiling" doc:"What budgets are charged for calls whose price is not known, with unknown: ceiling."`
	InUsage bool   `yaml:"in_usage" doc:"State what a call cost in the usage of its answer."`
	Markup  Markup `yaml:"markup" min:"0" doc:"Added to costs where budgets are charged, for all models of which nothing else is said."`
}

// The words for calls whose price is not known.
const (
	UnknownBudgeted = "budgeted"
	UnknownRefuse   = "refuse"
	UnknownAllow    = "allow"
	UnknownCeiling  = "ceiling"
)

// Prices are what is taken from one time to the next: one price, or a list.
type Prices []Price

// ModelPrices are those of the models whose names fit.
type ModelPrices struct {
	Models Pattern `yaml:",key" check:"pattern"`
	Prices Prices  `yaml:",value"`
}

// Price is what is taken for a model. What it does not say is as it is known.
type Price struct {
	Is          string `yaml:"is,word" enum:"free" doc:"free: nothing is taken, for anything."`
	From        Date   `yaml:"from" doc:"When it begins to count, a day or a time. Absent: it always did."`
	TokenPrices `yaml:",inline"`
	Tiers       []PriceTier `yaml:"tiers" doc:"Prices of calls with long prompts. []: there are none."`
	Call        Fee         `yaml:"call" doc:"For each call, in dollars."`
	Search      Fee         `yaml:"search" doc:"For each search that the upstream runs, in dollars."`
	Searched    Fee         `yaml:"searched" doc:"For a call for which the upstream searches, however often, in dollars."`
	Flex        Factor      `yaml:"flex" doc:"What tokens cost with the service flex, of their usual price."`
	Priority    Factor      `yaml:"priority" doc:"The same with the service priority."`
	Batch       Factor      `yaml:"batch" doc:"The same in batches."`
	Other       Factor      `yaml:"other" doc:"The same with any other service."`
}

// PriceTier has the prices of all tokens of a call whose prompt is longer.
type PriceTier struct {
	Over        int `yaml:"over" doc:"Length of the prompt beyond which it counts, in tokens."`
	TokenPrices `yaml:",inline"`
}

// TokenPrices are dollars per million tokens.
type TokenPrices struct {
	Input      Rate `yaml:"input" doc:"Dollars per million tokens of the prompt."`
	Output     Rate `yaml:"output" doc:"Of the answer."`
	CacheRead  Rate `yaml:"cache_read" doc:"Of the prompt, where read from a cache."`
	CacheWrite Rate `yaml:"cache_write" doc:"Of the prompt, where written to a cache."`
	HourWrite  Rate `yaml:"cache_write_1h" doc:"The same, to be kept for an hour."`
	Reasoning  Rate `yaml:"reasoning" doc:"Of what the model thinks."`
	AudioIn    Rate `yaml:"input_audio" doc:"Of sound in the prompt."`
	AudioOut   Rate `yaml:"output_audio" doc:"Of sound in the answer."`
	ImageOut   Rate `yaml:"output_image" doc:"Of pictures in the answer."`
}

func (r *TokenPrices) list() price.Rates {
	return price.Rates{
		Input: r.Input.Rate, Output: r.Output.Rate, CacheRead: r.CacheRead.Rate, CacheWrite: r.CacheWrite.Rate, HourWrite: r.HourWrite.Rate,
		Reasoning: r.Reasoning.Rate, AudioIn: r.AudioIn.Rate, AudioOut: r.AudioOut.Rate, ImageOut: r.ImageOut.Rate,
	}
}

// Over is the price where that much is known besides. Of one that is free,
// nothing else needs to be; nor of one that takes nothing for prompts and answers.
func (p *Price) Over(known price.List) price.List {
	said := price.List{
		Rates: p.list(), Call: p.Call.Fee, Search: p.Search.Fee, Searched: p.Searched.Fee,
		Flex: price.Percent(p.Flex), Priority: price.Percent(p.Priority), Batch: price.Percent(p.Batch), Other: price.Percent(p.Other),
	}
	free := price.RateOf(0)
	if p.Is == "free" || said.Input == free && said.Output == free {
		known = price.Free()
	}
	list := said.Merged(known)
	if p.Tiers == nil {
		return list
	}
	list.Tiers = make([]price.Tier, 0, len(p.Tiers))
	for i := range p.Tiers {
		tier := price.List{Rates: p.Tiers[i].list()}
		list.Tiers = append(list.Tiers, price.Tier{Over: p.Tiers[i].Over, Rates: tier.Merged(price.List{Rates: list.Rates}).Rates})
	}
	return list
}

// silent reports whether nothing is said of any price.
func (p *Price) silent() bool { return p.Is == "" && p.bare() }

// bare reports whether no price is said but that it is free.
func (p *Price) bare() bool {
	return p.TokenPrices == TokenPrices{} && p.Tiers == nil && p.Call == Fee{} && p.Search == Fee{} && p.Searched == Fee{} &&
		p.Flex == 0 && p.Priority == 0 && p.Batch == 0 && p.Other == 0
}

// PricesOf are what is said of a model; nil when nothing is.
func (p *Provider) PricesOf(model string) Prices {
	for i := range p.Prices {
		if p.Prices[i].Models.Match(model) {
			return p.Prices[i].Prices
		}
	}
	return nil
}

// Rate is dollars per million tokens, exactly as written.
type Rate struct{ price.Rate }

const rateHelp = "dollars per million tokens such as 1.25, with six decimals at most"

var rateText = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9]{1,6})?$`)

func (r Rate) String() string {
	if r.Rate == (price.Rate{}) {
		return ""
	}
	return r.Rate.String()
}

func (r *Rate) parse(text string) (err error) {
	if !rateText.MatchString(text) {
		return errors.New("expected " + rateHelp)
	}
	if r.Rate, err = price.ParseRate(text); err != nil {
		return errors.New("expected dollars per million tokens, at most 10000")
	}
	return nil
}

// Fee is dollars for each of something, exactly as written.
type Fee struct{ price.Fee }

const feeHelp = "dollars such as 0.01, with nine decimals at most"

var feeText = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9]{1,9})?$`)

func (f Fee) String() string {
	if each, known := f.Amount(); known {
		return each.String()
	}
	return ""
}

func (f *Fee) parse(text string) error {
	a, err := money.Parse(text)
	if err != nil || !feeText.MatchString(text) {
		return errors.New("expected " + feeHelp)
	}
	f.Fee = price.FeeOf(a)
	return nil
}

// Factor is a part of a price, or more than all of it, written as 50% or 200%; 0
// is not said.
type Factor int64

// maxFactor is the greatest, in percent.
const maxFactor = 1000

const factorHelp = "a part of the price such as 50% or 200%, at most 1000%"

func (f Factor) String() string {
	if f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(f), 10) + "%"
}

func (f *Factor) parse(text string) error {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
	if err != nil || n > maxFactor {
		return errors.New("expected " + factorHelp)
	}
	*f = Factor(n)
	return nil
}

// Markup is what is added to a cost, written as 10% or 5.5%.
type Markup price.Markup

// markupUnits are those of one percent.
const markupUnits = 100

const markupHelp = "what is added, such as 10% or 5.5%, at most 1000% and with two decimals at most"

var markupText = regexp.MustCompile(`^-?[0-9]{1,4}(\.[0-9]{1,2})?%?$`)

func (m Markup) String() string {
	return strconv.FormatFloat(float64(m)/markupUnits, 'f', -1, 64) + "%"
}

func (m *Markup) parse(text string) error {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !markupText.MatchString(text) || percent > maxFactor {
		return errors.New("expected " + markupHelp)
	}
	*m = Markup(math.Round(percent * markupUnits))
	return nil
}

// Date is a day, which begins in UTC, or a time.
type Date struct{ time.Time }

const dateHelp = "a day such as 2026-01-31, which begins in UTC, or a time such as 2026-01-31T15:00:00Z"

func (d Date) String() string {
	switch {
	case d.IsZero():
		return ""
	case d.Equal(d.Truncate(24 * time.Hour)):
		return d.UTC().Format(time.DateOnly)
	}
	return d.UTC().Format(time.RFC3339)
}

func (d *Date) parse(text string) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 {
			d.Time = t.UTC()
			return nil
		}
	}
	return errors.New("expected " + dateHelp)
}
