package cli

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

func (e *env) usageCommand() *cobra.Command {
	var (
		by, since, until, key, model string
		calls                        int
	)
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show calls and tokens by key, model, provider and day",
		Long: `Usage sums up the record of calls. Tokens are in disjoint counters: what was read from a
cache is not in the input, reasoning is not in the output. With --calls the newest calls
are listed one by one.`,
		Example: `  limen usage --by key,model --since 7d
  limen usage --by day --key alice --json
  limen usage --calls 20`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range map[string]string{"key": key, "model": model, "since": ago(since, time.Now()), "until": ago(until, time.Now())} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return e.with(c.Context(), func(api *client) error {
				if calls > 0 {
					return e.listCalls(c, api, query, calls)
				}
				query.Set("by", by)
				return e.sumUsage(c, api, query)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&by, "by", "key,model", "what to group by: key, model, provider, day, in any combination")
	flags.StringVar(&since, "since", "", "from when on: 7d, 12h, or a date such as 2026-01-31")
	flags.StringVar(&until, "until", "", "until when, likewise")
	flags.StringVar(&key, "key", "", "only of this key")
	flags.StringVar(&model, "model", "", "only of this model")
	flags.IntVar(&calls, "calls", 0, "list this many of the newest calls instead")
	return c
}

// ago turns a duration back from now into a time; anything else stays.
func ago(text string, now time.Time) string {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil {
			return now.AddDate(0, 0, -n).UTC().Format(time.RFC3339)
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UTC().Format(time.RFC3339)
	}
	return text
}

func (e *env) sumUsage(c *cobra.Command, api *client, query url.Values) error {
	var out admin.Usage
	if err := api.do(c.Context(), "GET", "/usage?"+query.Encode(), nil, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) {
		for _, d := range out.By {
			fmt.Fprintf(w, "%s\t", strings.ToUpper(d))
		}
		fmt.Fprintln(w, "CALLS\tFAILED\tINPUT\tCACHE READ\tCACHE WRITE\tOUTPUT\tREASONING\tESTIMATED")
		for _, g := range out.Groups {
			for _, d := range out.By {
				fmt.Fprintf(w, "%s\t", groupValue(g, d))
			}
			printSum(w, g.Sum)
		}
		for range out.By {
			fmt.Fprint(w, "\t")
		}
		printSum(w, out.Sum)
	})
}

func groupValue(g admin.UsageRow, dimension string) string {
	switch dimension {
	case "key":
		if g.KeyName != "" {
			return g.KeyName
		}
		return g.Key
	case "model":
		return g.Model
	case "provider":
		return orDash(g.Provider)
	}
	return g.Day
}

func printSum(w io.Writer, s admin.Sum) {
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Calls, s.Failed, s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Reasoning, s.Estimated)
}

func (e *env) listCalls(c *cobra.Command, api *client, query url.Values, n int) error {
	query.Set("limit", strconv.Itoa(n))
	var out struct {
		Calls []admin.Call `json:"calls"`
	}
	if err := api.do(c.Context(), "GET", "/calls?"+query.Encode(), nil, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) {
		fmt.Fprintln(w, "TIME\tREQUEST\tKEY\tMODEL\tPROVIDER\tSTATUS\tERROR\tMS\tIN\tOUT")
		for _, call := range out.Calls {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%.0f\t%d\t%d\n", call.Time.Local().Format("2006-01-02 15:04:05"), call.RequestID, call.Key, call.Model,
				orDash(call.Provider), call.Status, orDash(call.Error), call.TotalMs, call.Input+call.CacheRead+call.CacheWrite, call.Output+call.Reasoning)
		}
	})
}
