package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/money"
)

// filters are the flags that choose calls.
type filters struct{ since, until, key, team, model, provider, tag string }

func (f *filters) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.since, "since", "", "from when on: 7d, 12h, or a date such as 2026-01-31")
	flags.StringVar(&f.until, "until", "", "until when, likewise")
	flags.StringVar(&f.key, "key", "", "only of this key")
	flags.StringVar(&f.team, "team", "", "only of this team's own keys")
	flags.StringVar(&f.model, "model", "", "only of this model")
	flags.StringVar(&f.provider, "provider", "", "only those that this provider served")
	flags.StringVar(&f.tag, "tag", "", "only with this tag: name=value, or a name")
}

func (f *filters) query() url.Values {
	query, now := url.Values{}, time.Now()
	for name, value := range map[string]string{
		"since": ago(f.since, now), "until": ago(f.until, now), "key": f.key, "team": f.team, "model": f.model, "provider": f.provider, "tag": f.tag,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
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

// format is that of the output; --json is the same as --format json.
func (e *env) format(chosen string, known ...string) (string, error) {
	if e.json {
		chosen = "json"
	}
	for _, name := range known {
		if chosen == name {
			return name, nil
		}
	}
	return "", usageError("--format is %s, not %q", strings.Join(known, ", "), chosen)
}

func (e *env) usageCommand() *cobra.Command {
	var (
		choice           filters
		by, zone, format string
		calls            int
	)
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show calls, tokens and cost by key, model, day and more",
		Long: `Usage sums up the record of calls. Tokens are in disjoint counters: what was read from a
cache is not in the input, reasoning is not in the output. Sums are kept by the hour, so
that --since and --until are cut to whole hours. With --calls the newest calls are listed
one by one, as 'limen calls' does.`,
		Example: `  limen usage --by key,model --since 7d
  limen usage --by month,team --zone Europe/Berlin --format csv
  limen usage --by tag --tag project --since 30d
  limen usage --by day --key alice --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			format, err := e.format(format, "table", "csv", "json")
			if err != nil {
				return err
			}
			query := choice.query()
			return e.with(c.Context(), func(api *client) error {
				if calls > 0 {
					return e.listCalls(c, api, query, calls, format)
				}
				query.Set("by", by)
				query.Set("zone", zone)
				return e.sumUsage(c, api, query, format)
			})
		},
	}
	choice.flags(c)
	flags := c.Flags()
	flags.StringVar(&by, "by", "key,model", "what to group by, in any combination: hour, day, week, month, key, team, model, provider, upstream_model, tag")
	flags.StringVar(&zone, "zone", "UTC", "time zone in which days begin, such as Europe/Berlin")
	flags.StringVar(&format, "format", "table", "table, csv or json")
	flags.IntVar(&calls, "calls", 0, "list this many of the newest calls instead")
	return c
}

func (e *env) sumUsage(c *cobra.Command, api *client, query url.Values, format string) error {
	var out admin.Usage
	if err := api.do(c.Context(), "GET", "/usage?"+query.Encode(), nil, &out); err != nil {
		return err
	}
	switch format {
	case "csv":
		return out.WriteCSV(e.stdout)
	case "json":
		return writeJSON(e.stdout, out)
	}
	return e.print(out, func(w io.Writer) { printUsage(w, &out) })
}

// sumColumns are the columns of a table of sums. Those that are optional are
// shown where there is something in them.
var sumColumns = []struct {
	title    string
	optional bool
	cell     func(*admin.Sum) string
}{
	{"CALLS", false, func(s *admin.Sum) string { return fmt.Sprint(s.Calls) }},
	{"FAILED", false, func(s *admin.Sum) string { return fmt.Sprint(s.Failed) }},
	{"COST", false, func(s *admin.Sum) string { return costText(s.Cost, s.Unpriced) }},
	{"CHARGED", true, func(s *admin.Sum) string {
		if s.Charge == s.Cost {
			return "0"
		}
		return s.Charge.String()
	}},
	{"INPUT", false, func(s *admin.Sum) string { return fmt.Sprint(s.Input) }},
	{"CACHE READ", false, func(s *admin.Sum) string { return fmt.Sprint(s.CacheRead) }},
	{"CACHE WRITE", false, func(s *admin.Sum) string { return fmt.Sprint(s.CacheWrite) }},
	{"1H WRITE", true, func(s *admin.Sum) string { return fmt.Sprint(s.HourWrite) }},
	{"AUDIO IN", true, func(s *admin.Sum) string { return fmt.Sprint(s.AudioIn) }},
	{"OUTPUT", false, func(s *admin.Sum) string { return fmt.Sprint(s.Output) }},
	{"REASONING", false, func(s *admin.Sum) string { return fmt.Sprint(s.Reasoning) }},
	{"AUDIO OUT", true, func(s *admin.Sum) string { return fmt.Sprint(s.AudioOut) }},
	{"IMAGES OUT", true, func(s *admin.Sum) string { return fmt.Sprint(s.ImageOut) }},
	{"SEARCHES", true, func(s *admin.Sum) string { return fmt.Sprint(s.Searches) }},
	{"ESTIMATED", false, func(s *admin.Sum) string { return fmt.Sprint(s.Estimated) }},
	{"MS", false, func(s *admin.Sum) string { return fmt.Sprintf("%.0f", s.MeanMs) }},
	{"FIRST MS", false, func(s *admin.Sum) string { return fmt.Sprintf("%.0f", s.MeanFirstByte) }},
}

func printUsage(w io.Writer, out *admin.Usage) {
	shown := sumColumns[:0:0]
	for _, column := range sumColumns {
		if !column.optional || column.cell(&out.Sum) != "0" {
			shown = append(shown, column)
		}
	}
	var line []string
	for _, d := range out.By {
		line = append(line, strings.ToUpper(strings.ReplaceAll(d, "_", " ")))
	}
	for _, column := range shown {
		line = append(line, column.title)
	}
	fmt.Fprintln(w, strings.Join(line, "\t"))
	printLine := func(group []string, s *admin.Sum) {
		for _, column := range shown {
			group = append(group, column.cell(s))
		}
		fmt.Fprintln(w, strings.Join(group, "\t"))
	}
	for i := range out.Groups {
		g := &out.Groups[i]
		var group []string
		for _, d := range out.By {
			group = append(group, groupValue(g, d))
		}
		printLine(group, &g.Sum)
	}
	printLine(make([]string, len(out.By)), &out.Sum)
}

// costText is a sum in dollars, and how many calls are not in it.
func costText(cost money.Amount, unpriced int64) string {
	if unpriced == 0 {
		return cost.String()
	}
	if cost == 0 {
		return callsText(unpriced) + " of unknown price"
	}
	return cost.String() + " + " + callsText(unpriced) + " of unknown price"
}

func callsText(n int64) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprint(n, " calls")
}

func groupValue(g *admin.UsageRow, dimension string) string {
	switch dimension {
	case "key":
		return orDash(cmp.Or(g.KeyName, g.Key))
	case "team":
		return orDash(cmp.Or(g.TeamName, g.Team))
	}
	return orDash(g.Value(dimension))
}
