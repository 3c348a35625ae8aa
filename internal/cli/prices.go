package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/provider/modelsdev"
)

func (e *env) pricesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "prices [MODEL]",
		Short: "Show what models cost, since when, and who says so",
		Long: `Prices are dollars per million tokens, of each model at each of its targets, as they
count now. "unknown" is no price of 0: calls have a cost that nobody knows. "-" is a kind
of token that has no price of its own: what is read from a cache costs as the input then.

They come, the first that says something counting, from the model and the provider in the
configuration, from the provider's own list, and from models.dev, as 'limen prices refresh'
last fetched it or as this release knows it. A price that changes counts from then on. For
one MODEL all of it is shown, with former prices and those to come.`,
		Example: "  limen prices\n  limen prices gpt-5\n  limen prices --json | jq -r '.prices[] | select(.known | not).target'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				path := "/prices"
				if len(args) > 0 {
					path += "?model=" + url.QueryEscape(args[0])
				}
				var out struct {
					Prices []admin.Price   `json:"prices"`
					Facts  provider.Origin `json:"facts"`
				}
				if err := api.do(c.Context(), "GET", path, nil, &out); err != nil {
					return needsGateway(err, api)
				}
				return e.print(out, func(w io.Writer) {
					if len(args) > 0 {
						printPrice(w, out.Prices)
						return
					}
					printPrices(w, out.Prices)
					fmt.Fprintf(w, "\nWhat is not said elsewhere is from %s, %s.\n", out.Facts.Source, out.Facts.Date)
				})
			})
		},
	}
	c.AddCommand(e.pricesRefresh(), e.pricesDiff(), e.pricesReprice())
	return c
}

func printPrices(w io.Writer, prices []admin.Price) {
	fmt.Fprintln(w, "MODEL\tTARGET\tINPUT\tCACHE READ\tCACHE WRITE\tOUTPUT\tTIERS\tSINCE\tFROM")
	for _, p := range prices {
		l := &p.Prices
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Model, p.Target,
			orUnknown(l.Input), l.CacheRead, l.CacheWrite, orUnknown(l.Output), tiers(l), since(p.Since), orDash(p.Source))
	}
}

func orUnknown(r price.Rate) string {
	if r == (price.Rate{}) {
		return "unknown"
	}
	return r.String()
}

func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateOnly)
}

// tiers are the lengths of prompts beyond which others count.
func tiers(l *price.List) string {
	var over []string
	for _, t := range l.Tiers {
		over = append(over, ">"+tokens(t.Over))
	}
	return orDash(strings.Join(over, " "))
}

// printPrice shows all that is known of a model at its targets.
func printPrice(w io.Writer, prices []admin.Price) {
	for _, p := range prices {
		fmt.Fprintf(w, "%s at %s\n", p.Model, p.Target)
		if p.MarkupPercent > 0 {
			fmt.Fprintf(w, "  markup\t%g%%\n", p.MarkupPercent)
		}
		printDated(w, "now", &p.DatedPrice)
		for i := range p.Coming {
			printDated(w, "then", &p.Coming[i])
		}
		for i := len(p.Former) - 1; i >= 0; i-- {
			printDated(w, "before", &p.Former[i])
		}
		fmt.Fprintln(w)
	}
}

func printDated(w io.Writer, when string, d *admin.DatedPrice) {
	if !d.Since.IsZero() {
		when += ", since " + d.Since.Local().Format("2006-01-02 15:04")
	}
	if !d.Prices.Stated() {
		fmt.Fprintf(w, "  %s\tunknown\n", when)
		return
	}
	fmt.Fprintf(w, "  %s\tfrom %s\n", when, d.Source)
	printRates(w, "", &d.Prices.Rates)
	for _, t := range d.Prices.Tiers {
		printRates(w, fmt.Sprintf(", prompts of more than %d tokens", t.Over), &t.Rates)
	}
	for _, f := range []struct {
		name string
		fee  price.Fee
	}{{"call", d.Prices.Call}, {"search", d.Prices.Search}, {"call that searches", d.Prices.Searched}} {
		if each, known := f.fee.Amount(); known {
			fmt.Fprintf(w, "    each %s\t%s\n", f.name, each)
		}
	}
	for _, s := range []struct {
		name    string
		percent price.Percent
	}{{"flex", d.Prices.Flex}, {"priority", d.Prices.Priority}, {"batch", d.Prices.Batch}, {"other services", d.Prices.Other}} {
		if s.percent > 0 {
			fmt.Fprintf(w, "    %s\t%d%% of tokens' prices\n", s.name, s.percent)
		}
	}
}

func printRates(w io.Writer, when string, r *price.Rates) {
	for _, kind := range []struct {
		name string
		rate price.Rate
	}{
		{"input", r.Input}, {"cache read", r.CacheRead}, {"cache write", r.CacheWrite}, {"cache write, 1h", r.HourWrite}, {"input audio", r.AudioIn},
		{"output", r.Output}, {"reasoning", r.Reasoning}, {"output audio", r.AudioOut}, {"output image", r.ImageOut},
	} {
		if kind.rate != (price.Rate{}) {
			fmt.Fprintf(w, "    %s%s\t%s\n", kind.name, when, kind.rate)
		}
	}
}

func (e *env) pricesRefresh() *cobra.Command {
	c := e.modelsRefresh()
	c.Short = "Fetch newer prices, and ask all providers for their lists"
	c.Long = `Refresh is 'limen models refresh': it brings facts about models, with their prices, that are
newer than this release. Prices that are other than before count from then on; what was
taken before stays known, and calls of before are priced by it. 'limen prices diff' shows
what would change.`
	c.Example = `  limen prices refresh
  limen prices refresh --from ./api.json     # where models.dev cannot be reached
  limen prices refresh --undo                # back to what the release knows, from now on`
	return c
}

func (e *env) pricesDiff() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "diff",
		Short: "Show which prices a refresh would change, and change nothing",
		Long: `Diff fetches what 'limen prices refresh' would, and shows which prices would be others, of
the vendors that the running gateway has; without one, of all.`,
		Example: "  limen prices diff\n  limen prices diff --from ./api.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			facts, err := e.fetchFacts(c.Context(), from)
			if err != nil {
				return err
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.PriceDiff
				if err := api.do(c.Context(), "POST", "/prices/diff", admin.Refresh{Facts: facts}, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printDiff(w, &out) })
			})
		},
	}
	c.Flags().StringVar(&from, "from", modelsdev.URL, "`URL|FILE` of the list: models.dev's api.json, or its models as JSON Lines")
	return c
}

func printDiff(w io.Writer, d *admin.PriceDiff) {
	if len(d.Changes) > 0 {
		fmt.Fprintln(w, "VENDOR\tMODEL\tPRICE\tNOW\tTHEN")
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		for _, line := range differences(&c.Now, &c.Then) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Vendor, c.Model, line)
		}
	}
	fmt.Fprintf(w, "%d models would have other prices by %s, %s. Nothing was changed.\n", len(d.Changes), d.Source, d.Date)
}

// differences are a line for each price that is another.
func differences(now, then *price.List) (lines []string) {
	switch {
	case !then.Stated():
		return []string{"all\t" + now.String() + "\tnot listed any more: unknown"}
	case !now.Stated():
		return []string{"all\tunknown\t" + then.String()}
	}
	for _, kind := range []struct {
		name      string
		now, then price.Rate
	}{
		{"input", now.Input, then.Input}, {"output", now.Output, then.Output}, {"cache read", now.CacheRead, then.CacheRead},
		{"cache write", now.CacheWrite, then.CacheWrite}, {"cache write, 1h", now.HourWrite, then.HourWrite}, {"reasoning", now.Reasoning, then.Reasoning},
		{"input audio", now.AudioIn, then.AudioIn}, {"output audio", now.AudioOut, then.AudioOut}, {"output image", now.ImageOut, then.ImageOut},
	} {
		if kind.now != kind.then {
			lines = append(lines, kind.name+"\t"+orUnknown(kind.now)+"\t"+orUnknown(kind.then))
		}
	}
	was, is := *now, *then
	was.Rates, is.Rates = price.Rates{}, price.Rates{}
	if a, b := was.String(), is.String(); a != b {
		lines = append(lines, "tiers, fees\t"+cmp.Or(strings.Trim(a, ";"), "-")+"\t"+cmp.Or(strings.Trim(b, ";"), "-"))
	}
	return lines
}

func (e *env) pricesReprice() *cobra.Command {
	var in admin.Reprice
	c := &cobra.Command{
		Use:   "reprice",
		Short: "Give past calls the prices of their time, as they are known now",
		Long: `Reprice works out anew what past calls cost, by the prices that counted when they were
made, as they are known now: after a price was configured that was not known, or was wrong.
Records of calls and the sums of usage are corrected, a thousand calls at a time; calls that
come meanwhile are not in the way, and it can be ended and begun again at any time.

A call whose price is not known now either stays as it is. One that took several requests is
priced by their sum, at the target that answered. Budgets are not touched: what was spent of
them is what was charged at the time, whatever calls turn out to cost.`,
		Example: `  limen prices reprice --unknown --dry-run
  limen prices reprice --since 30d --model gpt-5
  limen prices reprice --since 2026-01-01 --until 2026-02-01`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			in.Since, in.Until = ago(in.Since, now), ago(in.Until, now)
			return e.with(c.Context(), func(api *client) error {
				out, err := e.reprice(c.Context(), api, in)
				if err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printRepriced(w, &out, in.DryRun) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&in.Since, "since", "", "from when on: 7d, 12h, or a date such as 2026-01-31")
	flags.StringVar(&in.Until, "until", "", "until when, likewise")
	flags.StringVar(&in.Model, "model", "", "only of this model, as clients called it")
	flags.BoolVar(&in.Unknown, "unknown", false, "only calls whose cost was not known")
	flags.BoolVar(&in.DryRun, "dry-run", false, "show what would change, and change nothing")
	return c
}

// reprice asks for one part after the other.
func (e *env) reprice(ctx context.Context, api *client, in admin.Reprice) (sum admin.Repriced, err error) {
	for {
		var part admin.Repriced
		if err := api.do(ctx, "POST", "/prices/reprice", in, &part); err != nil {
			return sum, needsGateway(err, api)
		}
		sum.Looked, sum.Changed, sum.Unknown = sum.Looked+part.Looked, sum.Changed+part.Changed, sum.Unknown+part.Unknown
		sum.Was, sum.Is = sum.Was.Plus(part.Was), sum.Is.Plus(part.Is)
		if part.Next == "" {
			return sum, nil
		}
		in.Before = part.Next
		fmt.Fprintf(e.stderr, "%d calls looked at, %d with another price\n", sum.Looked, sum.Changed)
	}
}

func printRepriced(w io.Writer, r *admin.Repriced, dry bool) {
	verb := "cost"
	if dry {
		verb = "would cost"
	}
	fmt.Fprintf(w, "%d calls looked at. %d of them %s $%s in place of $%s.\n", r.Looked, r.Changed, verb, r.Is, r.Was)
	if r.Unknown > 0 {
		fmt.Fprintf(w, "%d have no known price and stay as they were; 'limen prices' shows what is not known.\n", r.Unknown)
	}
	if !dry && r.Changed > 0 {
		fmt.Fprintln(w, "Budgets were not touched.")
	}
}
