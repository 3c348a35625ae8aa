package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/reconcile"
)

// maxExport bounds a file with a vendor's costs.
const maxExport = 64 << 20

func (e *env) reconcileCommand() *cobra.Command {
	var since, until, provider, tolerance, format string
	c := &cobra.Command{
		Use:   "reconcile FILE...",
		Short: "Compare a vendor's costs with those that Limen worked out",
		Long: `Reconcile reads what a vendor says that it took, and shows by day and model how that
differs from the cost of the calls that Limen made there, without any markup. FILE is the
JSON of OpenAI's costs (GET /v1/organization/costs?group_by=line_item) or of Anthropic's
cost report (GET /v1/organizations/cost_report?group_by[]=description), with all its pages,
or CSV with columns for day, model and cost; - is the standard input. Days are those of UTC.
Models are compared without the date at the end of their names.

It exits with 1 when the sums differ by more than the tolerance.`,
		Example: `  limen reconcile openai-costs.json
  limen reconcile page1.json page2.json --provider anthropic --since 2026-01-01 --until 2026-02-01
  limen reconcile costs.csv --tolerance 0.5% --format json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			format, err := e.format(format, "table", "csv", "json")
			if err != nil {
				return err
			}
			limit, err := reconcile.Tolerance(tolerance)
			if err != nil {
				return usageError("%w", err)
			}
			for name, day := range map[string]string{"since": since, "until": until} {
				if _, err := time.Parse(time.DateOnly, day); err != nil && day != "" {
					return usageError("--%s is a day such as 2026-01-31, not %q", name, day)
				}
			}
			export, err := readExport(c.InOrStdin(), args)
			if err != nil {
				return err
			}
			export.Within(since, until)
			if export.First == "" || export.First > export.Last {
				return fmt.Errorf("the export tells of no day in that time")
			}
			return e.with(c.Context(), func(api *client) error {
				own, err := ownCosts(c, api, export)
				if err != nil {
					return err
				}
				report := reconcile.Compare(export, own, provider)
				if err := e.printReport(report, format); err != nil {
					return err
				}
				if report.Beyond(limit) {
					return &exitError{code: exitFailure, err: fmt.Errorf("the sums differ by %s dollars, which is more than %s", report.Difference, tolerance)}
				}
				return nil
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&since, "since", "", "the first day (default: the export's)")
	flags.StringVar(&until, "until", "", "the day after the last (default: the export's)")
	flags.StringVar(&provider, "provider", "", "the provider that the export is of (default: all that served a model of it)")
	flags.StringVar(&tolerance, "tolerance", "1%", "how much the sums may differ, in percent of the vendor's")
	flags.StringVar(&format, "format", "table", "table, csv or json")
	return c
}

func readExport(stdin io.Reader, paths []string) (*reconcile.Export, error) {
	var files [][]byte
	for _, path := range paths {
		data, err := readBounded(stdin, path, maxExport)
		if err != nil {
			return nil, err
		}
		files = append(files, data)
	}
	return reconcile.Read(files...)
}

// readBounded reads a file of so many bytes at most, - being the standard input.
func readBounded(stdin io.Reader, path string, most int64) ([]byte, error) {
	from := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %s", path, config.ByteSize(most))
	}
	return data, err
}

// ownCosts asks for what Limen has of the days of an export.
func ownCosts(c *cobra.Command, api *client, export *reconcile.Export) ([]reconcile.Own, error) {
	last, err := time.Parse(time.DateOnly, export.Last)
	if err != nil {
		return nil, err
	}
	query := url.Values{"by": {"day,provider,upstream_model"}, "since": {export.First}, "until": {last.AddDate(0, 0, 1).Format(time.DateOnly)}}
	var out admin.Usage
	if err := api.do(c.Context(), "GET", "/usage?"+query.Encode(), nil, &out); err != nil {
		return nil, err
	}
	var own []reconcile.Own
	for _, g := range out.Groups {
		own = append(own, reconcile.Own{Day: g.Day, Provider: g.Provider, Model: g.UpstreamModel, Cost: g.Cost, Calls: g.Calls, Unpriced: g.Unpriced})
	}
	return own, nil
}

func (e *env) printReport(r *reconcile.Report, format string) error {
	switch format {
	case "json":
		return writeJSON(e.stdout, r)
	case "csv":
		w := csv.NewWriter(e.stdout)
		w.Write([]string{"day", "model", "vendor_usd", "limen_usd", "difference_usd", "calls", "unpriced", "only"})
		for _, row := range r.Rows {
			w.Write([]string{row.Day, row.Model, row.Vendor.String(), row.Own.String(), row.Difference.String(), fmt.Sprint(row.Calls), fmt.Sprint(row.Unpriced), row.Only})
		}
		w.Flush()
		return w.Error()
	}
	return e.print(r, func(w io.Writer) { printReconciled(w, r) })
}

func printReconciled(w io.Writer, r *reconcile.Report) {
	fmt.Fprintln(w, "DAY\tMODEL\tVENDOR\tLIMEN\tDIFFERENCE\tCALLS\tREMARK")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", row.Day, orDash(row.Model), row.Vendor, costText(row.Own, row.Unpriced), row.Difference, row.Calls, remark(&row))
	}
	share := ""
	if percent := r.Percent(); percent != "" {
		share = percent + " %"
	}
	fmt.Fprintf(w, "\t\t%s\t%s\t%s\t\t%s\n", r.Vendor, costText(r.Own, r.Unpriced), r.Difference, share)
	if len(r.Unmatched) > 0 {
		fmt.Fprintln(w, "\nOf no model at the vendor:")
		for _, u := range r.Unmatched {
			fmt.Fprintf(w, "\t%s\t%s\n", orDash(u.What), u.Vendor)
		}
	}
	fmt.Fprintf(w, "\nCompared: %s.\n", orDash(strings.Join(r.Providers, ", ")))
	if len(r.Others) > 0 {
		fmt.Fprintf(w, "Not compared, because none of their models is in the export: %s.\n", strings.Join(r.Others, ", "))
	}
	if r.Unpriced > 0 {
		fmt.Fprintf(w, "Limen does not know the cost of %s, which is not in its sums.\n", callsText(r.Unpriced))
	}
	if r.Cut {
		fmt.Fprintln(w, "The export is not whole: the vendor has more pages (has_more).")
	}
}

func remark(row *reconcile.Row) string {
	switch {
	case row.Model == "":
		return "of no model"
	case row.Only == "vendor":
		return "only at the vendor"
	case row.Only == "limen":
		return "only here"
	}
	return ""
}
