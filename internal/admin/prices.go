package admin

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/store"
)

// Price is what is taken for a model at a target.
type Price struct {
	Model  string `json:"model"`
	Target string `json:"target"`
	Known  bool   `json:"known"` // what prompts and answers cost is
	DatedPrice
	MarkupPercent float64      `json:"markup_percent"`
	Former        []DatedPrice `json:"former,omitempty"` // oldest first
	Coming        []DatedPrice `json:"coming,omitempty"`
}

// DatedPrice is a list with the time from which it counts; without one it
// always did.
type DatedPrice struct {
	Since  time.Time  `json:"since,omitzero"`
	Source string     `json:"source,omitempty"`
	Prices price.List `json:"usd_per_million_tokens,omitzero"` // call, search and searched are dollars for each
}

func newDatedPrice(d *price.Dated) DatedPrice {
	return DatedPrice{Since: d.From, Source: d.Source, Prices: d.List}
}

func newPrice(model, target string, b *price.Book, now time.Time) Price {
	p := Price{Model: model, Target: target, MarkupPercent: float64(b.Markup()) / 100}
	current := b.At(now)
	p.Known = current.Known()
	lists := b.Lists()
	for i := range lists {
		d := newDatedPrice(&lists[i])
		switch {
		case &lists[i].List == current:
			p.DatedPrice = d
		case lists[i].From.After(now):
			p.Coming = append(p.Coming, d)
		default:
			p.Former = append(p.Former, d)
		}
	}
	return p
}

// PriceList is the answer of GET /api/v1/prices.
type PriceList struct {
	Prices []Price         `json:"prices"`
	Facts  provider.Origin `json:"facts"`
}

// listPrices lists the prices of all models, or of one, at each of its targets.
func (a *API) listPrices(r *request) (*PriceList, error) {
	if a.Catalog == nil {
		return nil, errNotRunning
	}
	a.Catalog.Await()
	wanted := r.URL.Query().Get("model")
	table := a.Catalog.Table()
	if wanted != "" {
		if _, err := table.Resolve(nil, wanted); err != nil {
			return nil, err
		}
	}
	prices, now := []Price{}, time.Now()
	for _, m := range table.All() {
		if wanted != "" && m.ID != wanted {
			continue
		}
		seen := map[string]bool{} // accounts share a price
		for i := range m.Targets {
			if t := &m.Targets[i]; !seen[t.String()] {
				seen[t.String()] = true
				prices = append(prices, newPrice(m.ID, t.String(), t.Price, now))
			}
		}
	}
	return &PriceList{prices, a.Catalog.Facts().Origin()}, nil
}

// PriceDiff is what facts would change of the prices that are known now.
type PriceDiff struct {
	provider.Origin
	Changes []PriceChange `json:"changes"`
}

// PriceChange is a model whose price would be another. One that has none is
// not known there.
type PriceChange struct {
	Vendor string     `json:"vendor"`
	Model  string     `json:"model"`
	Now    price.List `json:"now,omitzero"`
	Then   price.List `json:"then,omitzero"`
}

// Facts are what POST /api/v1/prices/diff takes.
type Facts struct {
	Facts []byte `json:"facts"` // packed
}

// diffPrices takes nothing of the facts that are sent.
func (a *API) diffPrices(r *request, in *Facts) (*PriceDiff, error) {
	then, err := catalog.CheckFacts(in.Facts)
	if bad := (*catalog.BadFacts)(nil); errors.As(err, &bad) {
		return nil, llm.InvalidParam("invalid_value", "facts", "%v.", bad)
	}
	now, _, err := catalog.Facts(r.Context(), a.Store)
	if err != nil {
		return nil, err
	}
	out := &PriceDiff{Origin: then.Origin(), Changes: []PriceChange{}}
	for _, vendor := range a.vendors(then) {
		out.Changes = append(out.Changes, changes(vendor, now.Priced(vendor), then.Priced(vendor))...)
	}
	return out, nil
}

// vendors are those of the running gateway's providers; without one, all that
// the release knows.
func (a *API) vendors(facts *provider.Facts) []string {
	if a.Catalog != nil {
		return a.Catalog.Vendors()
	}
	return facts.Vendors()
}

func changes(vendor string, now, then []provider.Model) (list []PriceChange) {
	byID := map[string]PriceChange{}
	for _, m := range now {
		byID[m.ID] = PriceChange{Vendor: vendor, Model: m.ID, Now: m.Prices}
	}
	for _, m := range then {
		c := byID[m.ID]
		c.Vendor, c.Model, c.Then = vendor, m.ID, m.Prices
		byID[m.ID] = c
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if c := byID[id]; !c.Now.Equal(&c.Then) {
			list = append(list, c)
		}
	}
	return list
}

// Reprice is what POST /api/v1/prices/reprice takes. It corrects some of the
// calls; the next ones are asked for with Before.
type Reprice struct {
	Since   string `json:"since,omitempty"` // as for usage
	Until   string `json:"until,omitempty"`
	Model   string `json:"model,omitempty"`   // as clients called it
	Unknown bool   `json:"unknown,omitempty"` // only calls whose cost was not known
	DryRun  bool   `json:"dry_run,omitempty"` // nothing is written
	Before  string `json:"before,omitempty"`  // Next of the answer before
}

// Repriced is its answer.
type Repriced struct {
	Looked  int          `json:"looked"`  // at so many calls
	Changed int          `json:"changed"` // calls that cost something else
	Unknown int          `json:"unknown"` // calls that have no price now either: they stay as they were
	Was     money.Amount `json:"was"`     // what the changed ones cost
	Is      money.Amount `json:"is"`
	Next    string       `json:"next,omitempty"` // there may be more
}

// repricedAtOnce is how many calls one request looks at.
const repricedAtOnce = 1000

func (a *API) reprice(r *request, in *Reprice) (*Repriced, error) {
	if a.Catalog == nil {
		return nil, errNotRunning
	}
	filter := store.CallFilter{Filter: store.Filter{Model: in.Model}}
	var err error
	if filter.Since, err = parseTime("since", in.Since, time.UTC); err != nil {
		return nil, err
	}
	if filter.Until, err = parseTime("until", in.Until, time.UTC); err != nil {
		return nil, err
	}
	if in.Before == "" {
		a.Catalog.Await()
		if err := a.settle(r.Context()); err != nil {
			return nil, err
		}
	}
	calls, err := a.Store.Calls(r.Context(), filter, in.Before, repricedAtOnce)
	if err != nil {
		return nil, err
	}
	out := &Repriced{Looked: len(calls)}
	if len(calls) == repricedAtOnce {
		out.Next = calls[len(calls)-1].ID
	}
	changed := a.repriced(calls, in.Unknown, out)
	if in.DryRun {
		out.Changed = len(changed)
		return out, nil
	}
	out.Changed, err = a.Store.Reprice(r.Context(), changed)
	return out, err
}

// repriced are the calls that cost something else by the prices of their time.
func (a *API) repriced(calls []store.Call, unknown bool, out *Repriced) (changed []store.Repriced) {
	books := map[[3]string]*price.Book{}
	for i := range calls {
		c := &calls[i]
		if !priceable(c) || unknown && c.Priced {
			continue
		}
		at := [3]string{c.Model, c.Provider, c.UpstreamModel}
		if books[at] == nil {
			books[at] = a.Catalog.Book(c.Model, c.Provider, c.UpstreamModel)
		}
		cost, known := books[at].At(c.Started).Cost(&c.Usage)
		charge := books[at].Charge(cost)
		switch {
		case !known:
			out.Unknown++
		case !c.Priced || c.Cost != cost || c.Charge != charge:
			changed = append(changed, store.Repriced{Call: c, Cost: cost, Charge: charge})
			out.Was, out.Is = out.Was.Plus(c.Cost), out.Is.Plus(cost)
		}
	}
	slices.SortFunc(changed, func(a, b store.Repriced) int { return strings.Compare(a.Call.ID, b.Call.ID) })
	return changed
}

// priceable reports whether a call costs anything: it reached an upstream, and
// if it failed, it used something.
func priceable(c *store.Call) bool {
	used := cmp.Or(c.Usage.Total(), c.Usage.Searches) > 0
	return c.Provider != "" && (used || c.Error == "")
}
