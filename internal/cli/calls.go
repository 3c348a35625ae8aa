package cli

import (
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

// callFilters are the flags that choose records.
type callFilters struct {
	filters
	status  int
	failed  bool
	minCost string
}

func (f *callFilters) flags(c *cobra.Command) {
	f.filters.flags(c)
	flags := c.Flags()
	flags.IntVar(&f.status, "status", 0, "only with this HTTP status")
	flags.BoolVar(&f.failed, "failed", false, "only those that failed")
	flags.StringVar(&f.minCost, "cost-min", "", "only those that cost so many dollars at least")
}

func (f *callFilters) query() url.Values {
	query := f.filters.query()
	if f.status != 0 {
		query.Set("status", strconv.Itoa(f.status))
	}
	if f.failed {
		query.Set("failed", "true")
	}
	if f.minCost != "" {
		query.Set("cost_min", f.minCost)
	}
	return query
}

func (e *env) callsCommand() *cobra.Command {
	var (
		choice callFilters
		limit  int
	)
	c := &cobra.Command{
		Use:   "calls",
		Short: "List the newest calls, and export them",
		Example: `  limen calls
  limen calls --failed --since 1h --limit 100
  limen calls --key alice --cost-min 0.5 --json
  limen calls export --since 30d > calls.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error { return e.listCalls(c, api, choice.query(), limit, "table") })
		},
	}
	choice.flags(c)
	c.Flags().IntVar(&limit, "limit", 20, "so many at most")
	c.AddCommand(e.callsExport())
	return c
}

func (e *env) callsExport() *cobra.Command {
	var (
		choice callFilters
		format string
	)
	c := &cobra.Command{
		Use:   "export",
		Short: "Write all calls that are recorded, oldest first",
		Long: `Export writes the records of calls to the standard output, as many as there are. In CSV a
name that a program would take for a formula has an apostrophe before it, and a cost that
is not known is empty; lines of JSON have everything as it is.`,
		Example: `  limen calls export --since 2026-01-01 --until 2026-02-01 > january.csv
  limen calls export --format jsonl --team research | gzip > calls.jsonl.gz`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "csv" && format != "jsonl" {
				return usageError("--format is csv or jsonl, not %q", format)
			}
			query := choice.query()
			query.Set("format", format)
			return e.with(c.Context(), func(api *client) error { return api.stream(c.Context(), "/usage/export?"+query.Encode(), e.stdout) })
		},
	}
	choice.flags(c)
	c.Flags().StringVar(&format, "format", "csv", "csv or jsonl")
	return c
}

func (e *env) listCalls(c *cobra.Command, api *client, query url.Values, n int, format string) error {
	if format == "csv" {
		return usageError("'limen calls export' writes calls as CSV")
	}
	query.Set("limit", strconv.Itoa(n))
	var out admin.Calls
	if err := api.do(c.Context(), "GET", "/calls?"+query.Encode(), nil, &out); err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(e.stdout, out)
	}
	return e.print(out, func(w io.Writer) {
		fmt.Fprintln(w, "TIME\tREQUEST\tKEY\tMODEL\tPROVIDER\tSTATUS\tERROR\tMS\tIN\tOUT\tCOST")
		for i := range out.Calls {
			call, cost := &out.Calls[i], "unknown"
			if call.Cost != nil {
				cost = call.Cost.String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%.0f\t%d\t%d\t%s\n", call.Time.Local().Format("2006-01-02 15:04:05"), call.RequestID, call.Key, call.Model,
				orDash(call.Provider), call.Status, orDash(call.Error), call.TotalMs,
				call.Input+call.CacheRead+call.CacheWrite+call.HourWrite+call.AudioIn, call.Output+call.Reasoning+call.AudioOut+call.ImageOut, cost)
		}
	})
}
