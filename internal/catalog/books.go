package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/store"
)

// layer is what one source says of a model's prices, oldest first. A price
// completes what the layers below it know.
type layer []layered

type layered struct {
	from   time.Time
	source string // for people
	over   func(known price.List) price.List
}

// at is what counts at a time; nil before the first.
func (l layer) at(t time.Time) *layered {
	for i := len(l) - 1; i >= 0; i-- {
		if !t.Before(l[i].from) {
			return &l[i]
		}
	}
	return nil
}

// book lays what sources say over each other, the lowest first.
func book(markup price.Markup, layers ...layer) *price.Book {
	var times []time.Time
	for _, l := range layers {
		for i := range l {
			times = append(times, l[i].from)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.CompactFunc(times, time.Time.Equal)
	var lists []price.Dated
	for _, t := range times {
		d := dated(t, layers)
		switch n := len(lists); {
		case n == 0 && !d.Stated():
		case n > 0 && lists[n-1].Source == d.Source && lists[n-1].Equal(&d.List):
		default:
			lists = append(lists, d)
		}
	}
	return price.NewBook(markup, lists...)
}

func dated(t time.Time, layers []layer) price.Dated {
	d := price.Dated{From: t}
	var sources []string
	for _, l := range layers {
		says := l.at(t)
		if says == nil {
			continue
		}
		if list := says.over(d.List); list.Stated() && !list.Equal(&d.List) {
			d.List = list
			sources = append(sources, says.source)
		}
	}
	slices.Reverse(sources)
	d.Source = strings.Join(sources, ", ")
	return d
}

// said is what the configuration states.
func said(where string, prices config.Prices) layer {
	var l layer
	for i := range prices {
		l = append(l, layered{prices[i].From.Time, where, prices[i].Over})
	}
	slices.SortStableFunc(l, func(a, b layered) int { return a.from.Compare(b.from) })
	return l
}

// listed is what a list of models states.
func listed(source string, p price.List, from time.Time) layered {
	return layered{from, source, p.Merged}
}

// ownList is the source of what a provider's list states.
const ownList = "its list"

// history is what vendors took, oldest first, by vendor and model.
type history map[historyKey][]store.Price

type historyKey struct{ vendor, model string }

// note adds what is taken now where it is other than what was last known, and
// returns that. What nobody states any more is not known from then on.
func (h history) note(vendor, source string, models []provider.Model, at time.Time) (added []store.Price) {
	stated := map[string]price.List{}
	for key := range h {
		if key.vendor == vendor {
			stated[key.model] = price.List{}
		}
	}
	for _, m := range models {
		if m.Prices.Stated() {
			stated[m.ID] = m.Prices
		}
	}
	for _, model := range slices.Sorted(maps.Keys(stated)) {
		p := store.Price{Provider: vendor, Model: model, List: stated[model], Source: source}
		if h.add(&p, at) {
			added = append(added, p)
		}
	}
	return added
}

// add adds a price, unless it is the last that was known. The first counts from
// the beginning of time.
func (h history) add(p *store.Price, at time.Time) bool {
	key := historyKey{p.Provider, p.Model}
	had := h[key]
	if len(had) > 0 {
		last := had[len(had)-1]
		if last.List.Equal(&p.List) {
			return false
		}
		p.Since = at
		if !at.After(last.Since) {
			p.Since = last.Since.Add(time.Millisecond)
		}
	}
	h[key] = append(slices.Clip(had), *p)
	return true
}

// layer is the history of a model; of one that has none, what is taken now.
func (h history) layer(vendor, model, source string, now price.List) layer {
	had := h[historyKey{vendor, model}]
	if len(had) == 0 {
		return layer{listed(source, now, time.Time{})}
	}
	var l layer
	for i := range had {
		l = append(l, listed(had[i].Source, had[i].List, had[i].Since))
	}
	return l
}

// readHistory reads what is kept. What was known and could not be kept, or
// cannot be read now, stays known.
func (c *Catalog) readHistory(ctx context.Context) history {
	h := history{}
	prices, err := c.store.Prices(ctx)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("former prices cannot be read from the store; what was known is kept", "error", err)
	}
	for _, p := range prices {
		key := historyKey{p.Provider, p.Model}
		h[key] = append(h[key], p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, known := range c.history {
		if len(known) > len(h[key]) {
			h[key] = known
		}
	}
	return h
}

// keepPrices keeps what came to be known.
func (c *Catalog) keepPrices(ctx context.Context, prices []store.Price) {
	if err := c.store.AddPrices(ctx, prices); err != nil && ctx.Err() == nil {
		c.log.Warn("prices could not be kept; former ones are forgotten with this process", "error", err)
	}
}

// price is the book of a model at a provider; m is the configured model that
// stands for it, nil when none does. It is called with mu held.
func (c *Catalog) price(s *source, model string, m *config.Model) *price.Book {
	markup, layers := c.setup.Markup, c.known(&s.provider, model, s.listed(model).Prices)
	layers = append(layers, said("providers."+s.provider.Name, s.provider.PricesOf(model)))
	if s.provider.Markup != nil {
		markup = *s.provider.Markup
	}
	if m != nil {
		layers = append(layers, said("models."+m.ID, m.Price))
		if m.Markup != nil {
			markup = *m.Markup
		}
	}
	return book(price.Markup(markup), layers...)
}

// known is what is known of a model's prices without the configuration.
func (c *Catalog) known(p *Provider, model string, lists price.List) []layer {
	if p.Free || !p.Vendor.Takes(p.BaseURL, model) {
		return []layer{{listed("own machine", price.Free(), time.Time{})}}
	}
	vendor := p.vendor()
	public, _ := c.facts.Model(vendor, model)
	prices := provider.WithExtras(vendor, public.ID, public.Prices)
	return []layer{
		c.history.layer(provider.ListedAs(vendor), cmp.Or(public.ID, model), c.facts.Origin().Source, prices),
		c.history.layer(listName(*p), model, ownList, lists),
	}
}

// Book is what was taken, and is, for a model of an upstream, as which a client
// called it by an ID. It is known of providers, too, that are not there any more.
func (c *Catalog) Book(id, providerName, model string) *price.Book {
	c.mu.Lock()
	defer c.mu.Unlock()
	var as *config.Model
	for i := range c.setup.Models {
		if c.setup.Models[i].ID == id {
			as = &c.setup.Models[i]
		}
	}
	s := c.named(providerName)
	if s == nil {
		vendor, _ := provider.Lookup(providerName)
		s = &source{provider: Provider{Provider: config.Provider{Name: providerName, BaseURL: vendor.BaseURL}, Vendor: vendor}}
	}
	return c.price(s, model, as)
}

// Vendors are those of the providers there are, as facts name them.
func (c *Catalog) Vendors() []string { return c.vendors(nil) }

// noteFacts notes the prices that facts state, of the vendors there are. They
// count from when the facts were taken; those of a release, from now on.
func (c *Catalog) noteFacts(ctx context.Context, h history, facts *provider.Facts, taken time.Time, coming []Provider) {
	if taken.IsZero() {
		taken = time.Now()
	}
	var added []store.Price
	for _, vendor := range c.vendors(coming) {
		added = append(added, h.note(vendor, facts.Origin().Source, facts.Priced(vendor), taken)...)
	}
	c.keepPrices(ctx, added)
}

// vendors are those of the providers there are, and that come, as facts name
// them.
func (c *Catalog) vendors(coming []Provider) []string {
	var names []string
	for i := range coming {
		names = append(names, provider.ListedAs(coming[i].vendor()))
	}
	c.mu.Lock()
	for _, s := range c.sources {
		names = append(names, provider.ListedAs(s.provider.vendor()))
	}
	c.mu.Unlock()
	slices.Sort(names)
	return slices.Compact(names)
}

// notePrices keeps the prices that a provider's list states.
func (c *Catalog) notePrices(ctx context.Context, s *source, list []provider.Model) {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	h := c.readHistory(ctx)
	c.keepPrices(ctx, h.note(listName(s.provider), ownList, list, time.Now()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = h
}
