package reconcile

import (
	"cmp"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/money"
)

// Own is what the gateway has of a day, a provider and a model of it.
type Own struct {
	Day      string
	Provider string
	Model    string // as the upstream calls it
	Cost     money.Amount
	Calls    int64
	Unpriced int64 // calls whose cost is not known, and not in it
}

// Row compares a day and a model.
type Row struct {
	Day        string       `json:"day"`
	Model      string       `json:"model"` // without the date of a snapshot; "" is no model
	Vendor     money.Amount `json:"vendor_usd"`
	Own        money.Amount `json:"limen_usd"`
	Difference money.Amount `json:"difference_usd"` // the vendor's less ours
	Calls      int64        `json:"calls"`
	Unpriced   int64        `json:"unpriced"`
	// Only says who alone has something of it: "vendor" or "limen".
	Only string `json:"only,omitempty"`
}

// Unmatched is a vendor's cost of no model.
type Unmatched struct {
	What   string       `json:"what"`
	Vendor money.Amount `json:"vendor_usd"`
}

// Report is what came of a comparison.
type Report struct {
	First      string       `json:"first_day"`
	Last       string       `json:"last_day"`
	Rows       []Row        `json:"rows"`
	Vendor     money.Amount `json:"vendor_usd"`
	Own        money.Amount `json:"limen_usd"`
	Difference money.Amount `json:"difference_usd"`
	Unpriced   int64        `json:"unpriced"`
	Unmatched  []Unmatched  `json:"unmatched"`     // costs at the vendor that are of no model
	Providers  []string     `json:"providers"`     // that were compared
	Others     []string     `json:"not_compared"`  // providers that have no model of the export
	Cut        bool         `json:"export_is_cut"` // the vendor has more pages

	share *big.Rat // of the difference in what the vendor took
}

// snapshot is the date at the end of a model's name, which a vendor tells also
// where the request did not say it.
var snapshot = regexp.MustCompile(`[-@](20[0-9]{2}-?[0-9]{2}-?[0-9]{2}|latest)$`)

// modelName is the name by which models are compared.
func modelName(name string) string { return snapshot.ReplaceAllString(strings.ToLower(name), "") }

// place is what a row is found by.
type place struct{ day, model string }

// Compare sets an export against what the gateway has. provider names the only
// one that is compared; "" is all that served a model of the export.
func Compare(e *Export, own []Own, provider string) *Report {
	r := &Report{First: e.First, Last: e.Last, Cut: e.Cut, Rows: []Row{}, Unmatched: []Unmatched{}, Providers: []string{}, Others: []string{}}
	rows, costs := map[place]*Row{}, map[place]*big.Rat{}
	rowAt := func(day, model string) *Row {
		at := place{day, modelName(model)}
		if rows[at] == nil {
			rows[at], costs[at] = &Row{Day: day, Model: at.model}, new(big.Rat)
		}
		return rows[at]
	}
	models, unmatched := map[string]bool{}, map[string]*big.Rat{}
	total := new(big.Rat)
	for _, l := range e.Lines {
		rowAt(l.Day, l.Model).Only = "vendor"
		sum := costs[place{l.Day, modelName(l.Model)}]
		sum.Add(sum, l.Cost)
		total.Add(total, l.Cost)
		if l.Model != "" {
			models[modelName(l.Model)] = true
			continue
		}
		if unmatched[l.What] == nil {
			unmatched[l.What] = new(big.Rat)
		}
		unmatched[l.What].Add(unmatched[l.What], l.Cost)
	}
	r.choose(own, models, provider)
	for _, o := range own {
		if !slices.Contains(r.Providers, o.Provider) || o.Day < e.First || o.Day > e.Last {
			continue
		}
		if o.Cost == 0 && o.Unpriced == 0 && rows[place{o.Day, modelName(o.Model)}] == nil {
			continue // nobody took anything
		}
		row := rowAt(o.Day, o.Model)
		if row.Only == "vendor" {
			row.Only = ""
		} else if row.Calls == 0 {
			row.Only = "limen"
		}
		row.Own, row.Calls, row.Unpriced = row.Own.Plus(o.Cost), row.Calls+o.Calls, row.Unpriced+o.Unpriced
		r.Own, r.Unpriced = r.Own.Plus(o.Cost), r.Unpriced+o.Unpriced
	}
	for at, row := range rows {
		row.Vendor = rounded(costs[at])
		row.Difference = row.Vendor.Minus(row.Own)
		r.Rows = append(r.Rows, *row)
	}
	slices.SortFunc(r.Rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model)) })
	for what, sum := range unmatched {
		r.Unmatched = append(r.Unmatched, Unmatched{what, rounded(sum)})
	}
	slices.SortFunc(r.Unmatched, func(a, b Unmatched) int { return cmp.Compare(a.What, b.What) })
	r.Vendor = rounded(total)
	r.Difference = r.Vendor.Minus(r.Own)
	r.share = new(big.Rat).SetInt64(int64(r.Difference))
	if r.Vendor != 0 {
		r.share.Quo(r.share, new(big.Rat).SetInt64(int64(r.Vendor)))
	}
	return r
}

// choose says which providers are compared.
func (r *Report) choose(own []Own, models map[string]bool, provider string) {
	seen := map[string]bool{} // providers, and whether one has a model of the export
	for _, o := range own {
		seen[o.Provider] = seen[o.Provider] || models[modelName(o.Model)]
	}
	for name, shared := range seen {
		switch {
		case name == "": // calls that nobody served
		case name == provider || provider == "" && shared:
			r.Providers = append(r.Providers, name)
		case provider == "":
			r.Others = append(r.Others, name)
		}
	}
	slices.Sort(r.Providers)
	slices.Sort(r.Others)
}

// rounded is an amount to the nearest nano-dollar, as far as that can be counted.
func rounded(r *big.Rat) money.Amount {
	a, err := money.Parse(r.FloatString(9))
	if err == nil {
		return a
	}
	if r.Sign() < 0 {
		return money.Min
	}
	return money.Max
}

// Percent is the difference in hundredths of what the vendor took, with two
// decimals; "" where that is nothing.
func (r *Report) Percent() string {
	if r.Vendor == 0 {
		return ""
	}
	return new(big.Rat).Mul(r.share, big.NewRat(100, 1)).FloatString(2)
}

// Beyond reports whether the difference is more than a share of what the vendor
// took, in percent. Where the vendor took nothing, any difference is.
func (r *Report) Beyond(percent *big.Rat) bool {
	if r.Vendor == 0 {
		return r.Difference != 0
	}
	limit := new(big.Rat).Quo(percent, big.NewRat(100, 1))
	return new(big.Rat).Abs(r.share).Cmp(limit) > 0
}
