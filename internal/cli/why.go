package cli

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

func (e *env) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why REQUEST-ID",
		Short: "Show how a call came to its answer",
		Long: `Why shows the record of one call: which targets were considered, why each was left out or
failed, how long each step took, and what the answer cost in tokens. The ID is in the
answer's header x-request-id (request-id for Messages), in every error, and in
'limen usage --calls 20'.`,
		Example: "  limen why req_019a5b3c7f2e7d4c8a1b2c3d4e5f6071",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var call admin.Call
				if err := api.do(c.Context(), "GET", "/calls/"+url.PathEscape(args[0]), nil, &call); err != nil {
					return err
				}
				return e.print(call, func(w io.Writer) { printWhy(w, &call) })
			})
		},
	}
}

func printWhy(w io.Writer, c *admin.Call) {
	outcome := fmt.Sprint(c.Status)
	if c.Error != "" {
		outcome += " " + c.Error
	}
	fmt.Fprintf(w, "Request\t%s\n", c.RequestID)
	fmt.Fprintf(w, "Time\t%s\n", c.Time.Local().Format(time.DateTime))
	fmt.Fprintf(w, "Key\t%s\n", named(c.KeyName, c.Key))
	if c.Team != "" {
		fmt.Fprintf(w, "Team\t%s\n", named(c.TeamName, c.Team))
	}
	fmt.Fprintf(w, "Asked for\t%s of %s\n", c.Operation, orDash(c.Model))
	fmt.Fprintf(w, "Outcome\t%s after %s\n", outcome, ms(c.TotalMs))
	if c.Provider != "" {
		fmt.Fprintf(w, "Served by\t%s/%s%s\n", c.Provider, c.UpstreamModel, with(" with ", c.Account, c.Provider))
	}
	if c.FirstByteMs > 0 {
		fmt.Fprintf(w, "First byte\tafter %s\n", ms(c.FirstByteMs))
	}
	fmt.Fprintf(w, "Tokens\t%s\n", tokensOf(c))
	fmt.Fprintf(w, "Cost\t%s\n", costOf(c))
	if len(c.Tags) > 0 {
		fmt.Fprintf(w, "Tags\t%s\n", strings.Join(c.Tags, ", "))
	}
	if len(c.Notes) > 0 {
		fmt.Fprintf(w, "Notes\t%s\n", strings.Join(c.Notes, ", "))
	}
	if c.CacheMiss != "" {
		fmt.Fprintf(w, "Cache\tnot read: %s\n", c.CacheMiss)
	}
	if len(c.Steps) == 0 {
		return
	}
	fmt.Fprintln(w, "\nTARGET\tACCOUNT\tRESULT\tAT\tTOOK")
	for _, s := range c.Steps {
		result, took := s.Result, "-"
		if s.Tried {
			took = ms(s.TookMs)
		} else {
			result = "left out: " + result
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Target, s.Account, result, ms(s.AtMs), took)
	}
}

// with is a text behind a word, nothing when it only says again what is known.
func with(word, text, known string) string {
	if text == "" || text == known {
		return ""
	}
	return word + text
}

func ms(n float64) string { return fmt.Sprintf("%.0f ms", n) }

func tokensOf(c *admin.Call) string {
	text := fmt.Sprintf("%d in, %d read from a cache, %d written to it, %d out, %d of reasoning", c.Input, c.CacheRead, c.CacheWrite+c.HourWrite, c.Output, c.Reasoning)
	for _, kind := range []struct {
		n    int64
		what string
	}{{c.AudioIn, "of sound in"}, {c.AudioOut, "of sound out"}, {c.ImageOut, "of images out"}} {
		if kind.n > 0 {
			text += fmt.Sprintf(", %d %s", kind.n, kind.what)
		}
	}
	if c.Estimated {
		text += " (estimated)"
	}
	return text
}

// named is a name with its ID; the ID alone when the name is not known.
func named(name, id string) string {
	if name == "" {
		return orDash(id)
	}
	return name + " (" + id + ")"
}

// costOf is what a call costs, and what budgets pay where that is not the same.
func costOf(c *admin.Call) string {
	cost := "unknown"
	if c.Cost != nil {
		cost = "$" + c.Cost.String()
	}
	if c.Cost == nil && c.Charge > 0 || c.Cost != nil && *c.Cost != c.Charge {
		cost += ", charged $" + c.Charge.String()
	}
	if c.Service != "" {
		cost += " (" + c.Service + ")"
	}
	return cost
}
