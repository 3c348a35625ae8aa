package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
)

func (e *env) modelsCommand() *cobra.Command {
	var health bool
	c := &cobra.Command{
		Use:   "models",
		Short: "List the models that are offered, and by whom",
		Long: `Models lists what a running gateway offers, the providers behind it and how it stands
with them. What one key sees of it, GET /v1/models shows to that key.

Prices are dollars per million tokens at the first provider of a model, "+" says that longer
prompts cost more. 'limen prices' has all of them.

--health shows how it stands with each target at each account, from the calls that it had:
"cooling" ones are spared, a "half-open" one is being tried again.`,
		Example: "  limen models\n  limen models --health\n  limen models --json | jq -r '.models[].id'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Models    []admin.Model   `json:"models"`
					Facts     provider.Origin `json:"facts"`
					Providers []catalog.State `json:"providers"`
				}
				if err := api.do(c.Context(), "GET", "/models", nil, &out); err != nil {
					return needsGateway(err, api)
				}
				if err := api.do(c.Context(), "GET", "/providers", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					if health {
						printHealth(w, out.Models)
						return
					}
					fmt.Fprintln(w, "MODEL\tSERVED BY\tDIALECTS\tCONTEXT\tOUTPUT\t$ IN\t$ OUT")
					for _, m := range out.Models {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, strings.Join(m.Targets, ","), strings.Join(m.Speaks, ","),
							tokens(m.Context), tokens(m.MaxOutput), dollars(m.Prices))
					}
					fmt.Fprintln(w)
					printStates(w, out.Providers)
					fmt.Fprintf(w, "\nWhat providers do not say of their models is from %s, %s.\n", out.Facts.Source, out.Facts.Date)
				})
			})
		},
	}
	c.Flags().BoolVar(&health, "health", false, "show how it stands with the targets")
	c.AddCommand(e.modelsRefresh())
	return c
}

func printHealth(w io.Writer, models []admin.Model) {
	fmt.Fprintln(w, "MODEL\tTARGET\tACCOUNT\tSTATE\tCALLS\tERRORS\tIN FLIGHT\tFIRST TOKEN\tCONVERSATIONS\tLAST ERROR")
	for _, m := range models {
		for _, h := range m.Health {
			state := h.State
			if !h.Until.IsZero() {
				state += " until " + h.Until.Local().Format(time.TimeOnly)
			}
			first, last := "-", "-"
			if h.FirstTokenMs > 0 {
				first = fmt.Sprintf("%.0fms", h.FirstTokenMs)
			}
			if h.LastError != "" {
				last = h.LastError + " at " + h.Failed.Local().Format(time.DateTime)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%.0f%%\t%d\t%s\t%d\t%s\n", m.ID, h.Target, h.Account, state,
				h.Calls, 100*h.ErrorRate, h.InFlight, first, h.Conversations, last)
		}
	}
}

func printStates(w io.Writer, providers []catalog.State) {
	fmt.Fprintln(w, "PROVIDER\tADDRESS\tLISTED\tSTATE")
	for _, p := range providers {
		state := "ok"
		if p.Error != "" {
			state = p.Error
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", p.Name, p.BaseURL, p.Models, state)
	}
}

// dollars are the columns of prices.
func dollars(p price.List) string {
	more := ""
	if len(p.Tiers) > 0 {
		more = "+"
	}
	return orUnknown(p.Input) + more + "\t" + orUnknown(p.Output) + more
}

// needsGateway says what to do when a command that needs a running gateway
// found only the data directory.
func needsGateway(err error, c *client) error {
	if strings.HasPrefix(c.where, "the data directory") {
		return fmt.Errorf("no gateway runs on %s; start one with 'limen serve', or set LIMEN_URL and LIMEN_ADMIN_PASSWORD", c.where)
	}
	return err
}

func tokens(n int) string {
	switch {
	case n == 0:
		return "?"
	case n >= 1000000:
		return fmt.Sprintf("%.4gM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.4gK", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
