package catalog

import (
	"context"
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
	from time.Time
	over func(known price.List) price.List
}

// at is what counts at a time; nil before the first.
func (l layer) at(t time.Time) func(price.List) price.List {
	for i := len(l) - 1; i >= 0; i-- {
		if !t.Before(l[i].from) {
			return l[i].over
		}
	}
	return nil
}

// priceSource is a layer with its name, for people.
type priceSource struct {
	name  string
	layer layer
}

// book lays what sources say over each other, the lowest first.
func book(markup price.Markup, sources ...priceSource) *price.Book {
	var times []time.Time
	for _, s := range sources {
		for _, l := range s.layer {
			times = append(times, l.from)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.CompactFunc(times, time.Time.Equal)
	var lists []price.Dated
	for _, t := range times {
		d := dated(t, sources)
		switch n := len(lists); {
		case n == 0 && !d.Stated():
		case n > 0 && lists[n-1].Source == d.Source && lists[n-1].Equal(&d.List):
		default:
			lists = append(lists, d)
		}
	}
	return price.NewBook(markup, lists...)
}

func dated(t time.Time, sources []priceSource) price.Dated {
	d := price.Dated{From: t}
	var names []string
	for _, s := range sources {
		over := s.layer.at(t)
		if over == nil {
			continue
		}
		if list := over(d.List); list.Stated() && !list.Equal(&d.List) {
			d.List = list
			names = append(names, s.name)
		}
	}
	slices.Reverse(names)
	d.Source = strings.Join(names, ", ")
	return d
}

// said is what the configuration states.
func said(prices config.Prices) layer {
	var l layer
	for i := range prices {
		l = append(l, layered{prices[i].From.Time, prices[i].Over})
	}
	slices.SortStableFunc(l, func(a, b layered) int { return a.from.Compare(b.from) })
	return l
}

// listed is what a list of models states.
func listed(p price.List, from time.Time) layered { return layered{from, p.Merged} }

// history is what vendors took, oldest first, by vendor and model.
type history map[historyKey][]store.Price

type historyKey struct{ vendor, model string }

// note adds what is taken now where it is other than what was last known, and
// returns that. What is not known any more stays as it was.
func (h history) note(vendor string, models []provider.Model, at time.Time) (added []store.Price) {
	for _, m := range models {
		if !m.Prices.Stated() {
			continue
		}
		p := store.Price{Provider: vendor, Model: m.ID, List: m.Prices}
		key := historyKey{vendor, m.ID}
		if had := h[key]; len(had) > 0 {
			last := had[len(had)-1]
			if last.List.Equal(&p.List) {
				continue
			}
			p.Since = at
			if !at.After(last.Since) {
				p.Since = last.Since.Add(time.Millisecond)
			}
		}
		h[key] = append(slices.Clip(h[key]), p)
		added = append(added, p)
	}
	return added
}

// layer is the history of a model; of one that has none, what is taken now.
func (h history) layer(vendor, model string, now price.List) layer {
	had := h[historyKey{vendor, model}]
	if len(had) == 0 {
		return layer{listed(now, time.Time{})}
	}
	var l layer
	for i := range had {
		l = append(l, listed(had[i].List, had[i].Since))
	}
	return l
}

// readHistory reads what is kept. While it cannot be read, what was known is
// kept.
func (c *Catalog) readHistory(ctx context.Context) history {
	h := history{}
	prices, err := c.store.Prices(ctx)
	if err == nil {
		for _, p := range prices {
			key := historyKey{p.Provider, p.Model}
			h[key] = append(h[key], p)
		}
		return h
	}
	if ctx.Err() == nil {
		c.log.Warn("former prices cannot be read from the store; what was known is kept", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, prices := range c.history {
		h[key] = prices
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
	markup, sources := c.setup.Markup, s.known(model, c.facts, c.history)
	sources = append(sources, priceSource{"providers." + s.provider.Name, said(s.provider.PricesOf(model))})
	if s.provider.Markup != nil {
		markup = *s.provider.Markup
	}
	if m != nil {
		sources = append(sources, priceSource{"models." + m.ID, said(m.Price)})
		if m.Markup != nil {
			markup = *m.Markup
		}
	}
	return book(price.Markup(markup), sources...)
}

// known is what is known of a model's prices without the configuration.
func (s *source) known(model string, facts *provider.Facts, h history) []priceSource {
	if s.provider.Free || !s.provider.Vendor.Takes(s.upstream().BaseURL(), model) {
		return []priceSource{{"own machine", layer{listed(price.Free(), time.Time{})}}}
	}
	vendor := s.provider.vendor()
	public, _ := facts.Model(vendor, model)
	prices := provider.WithExtras(vendor, public.ID, public.Prices)
	return []priceSource{
		{facts.Origin().Source, h.layer(provider.ListedAs(vendor), public.ID, prices)},
		{"its list", h.layer(listName(s.provider), model, s.listed(model).Prices)},
	}
}

// noteFacts notes the prices that facts state, of the vendors there are. They
// count from when the facts were taken; those of a release, from now on.
func (c *Catalog) noteFacts(ctx context.Context, h history, facts *provider.Facts, taken time.Time, coming []Provider) {
	if taken.IsZero() {
		taken = time.Now()
	}
	var added []store.Price
	for _, vendor := range c.vendors(coming) {
		added = append(added, h.note(vendor, facts.Priced(vendor), taken)...)
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
	if !slices.ContainsFunc(list, func(m provider.Model) bool { return m.Prices.Stated() }) {
		return
	}
	c.renewing.Lock()
	defer c.renewing.Unlock()
	h := c.readHistory(ctx)
	c.keepPrices(ctx, h.note(listName(s.provider), list, time.Now()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = h
}
