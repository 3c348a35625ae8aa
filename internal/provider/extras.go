package provider

import (
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/price"
)

// An extra is what a vendor takes that lists of models do not say.
type extra struct {
	vendors []string // as facts have them
	models  []string // patterns of path.Match, of IDs or of the maker's own names; nil is all

	hourWrite             price.Percent // of the price of input
	imageOut              price.Percent // of that of output
	search, searched      price.Fee
	flex, priority, batch price.Percent
}

var cent = price.FeeOf(10_000_000) // ten dollars for a thousand

// State of 2026-11-20. Above each row is the page that says so. Of rows that
// fit a model, each fills what those before it leave open. What no page says
// for all calls alike is not here, and so not known: OpenAI's searches with
// models that do not reason, which cost more by an older tool; a priority whose
// price is a range.
var extras = []extra{
	// https://platform.claude.com/docs/en/about-claude/pricing
	{vendors: []string{"anthropic", "bedrock", "google-vertex-anthropic"}, models: []string{"claude-*"}, hourWrite: 200},
	{vendors: []string{"anthropic"}, search: cent, batch: 50},
	// https://platform.claude.com/docs/en/api/service-tiers: capacity that was bought, of which tokens take what they cost
	{vendors: []string{"anthropic"}, priority: 100},
	// https://openai.com/api-priority-processing/
	{vendors: []string{"openai"}, models: []string{"gpt-5.5"}, priority: 250},
	{vendors: []string{"openai"}, models: []string{"gpt-5.4", "gpt-5.4-mini", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-5.1-codex", "gpt-5-codex", "gpt-4.1-nano"}, priority: 200},
	{vendors: []string{"openai"}, models: []string{"gpt-5-mini"}, priority: 180},
	{vendors: []string{"openai"}, models: []string{"gpt-4.1", "gpt-4.1-mini", "o3"}, priority: 175},
	{vendors: []string{"openai"}, models: []string{"gpt-4o-2024-05-13"}, priority: 175},
	{vendors: []string{"openai"}, models: []string{"gpt-4o"}, priority: 170},
	// https://developers.openai.com/api/docs/pricing
	{vendors: []string{"openai"}, models: []string{"gpt-[5-9]*", "o[1-9]*"}, search: cent},
	{vendors: []string{"openai"}, flex: 50, batch: 50},
	// https://ai.google.dev/gemini-api/docs/optimization and its price list
	{vendors: []string{"gemini"}, models: []string{"gemini-[3-9]*"}, search: price.FeeOf(14_000_000)},
	{vendors: []string{"gemini"}, models: []string{"gemini-2*"}, searched: price.FeeOf(35_000_000)},
	{vendors: []string{"gemini"}, flex: 50, batch: 50},
	// https://ai.google.dev/gemini-api/docs/pricing
	{vendors: []string{"gemini", "google-vertex"}, models: []string{"gemini-*-image", "gemini-*-image-preview"}, imageOut: 100},
	// https://docs.x.ai/developers/pricing
	{vendors: []string{"xai"}, search: price.FeeOf(5_000_000)},
	// https://groq.com/pricing
	{vendors: []string{"groq"}, batch: 50},
	// https://console.groq.com/docs/flex-processing
	{vendors: []string{"groq"}, flex: 100},
	// https://platform.kimi.ai/docs/pricing/batch
	{vendors: []string{"moonshot"}, models: []string{"kimi-k2.5"}, batch: 60},
}

// WithExtras completes what is known of a vendor's prices for a model by what
// the vendor takes beside them. Where nothing else is known, that is not either.
func WithExtras(vendor, model string, p price.List) price.List {
	if p.Input == (price.Rate{}) {
		return p
	}
	vendor, model = ListedAs(vendor), strings.ToLower(model)
	for i := range extras {
		if e := &extras[i]; e.fits(vendor, model) {
			p = e.complete(p)
		}
	}
	return p
}

func (e *extra) fits(vendor, model string) bool {
	return slices.Contains(e.vendors, vendor) && (e.models == nil || matches(e.models, model) || matches(e.models, ownName(model)))
}

func (e *extra) complete(p price.List) price.List {
	more := price.List{Rates: e.rates(&p.Rates), Search: e.search, Searched: e.searched, Flex: e.flex, Priority: e.priority, Batch: e.batch}
	p.Tiers = slices.Clone(p.Tiers) // they may be of facts, which never change
	for i := range p.Tiers {
		t := price.List{Rates: p.Tiers[i].Rates}
		p.Tiers[i].Rates = t.Merged(price.List{Rates: e.rates(&t.Rates)}).Rates
	}
	return p.Merged(more)
}

// rates are those that follow from others.
func (e *extra) rates(of *price.Rates) (r price.Rates) {
	if e.hourWrite > 0 {
		r.HourWrite = of.Input.Times(e.hourWrite)
	}
	if e.imageOut > 0 {
		r.ImageOut = of.Output.Times(e.imageOut)
	}
	return r
}
