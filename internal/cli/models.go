package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/catalog"
)

func (e *env) modelsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "List the models that are offered, and by whom",
		Long: `Models lists what a running gateway offers, the providers behind it and how it stands
with them. What one key sees of it, GET /v1/models shows to that key.`,
		Example: "  limen models\n  limen models --json | jq -r '.models[].id'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Models    []admin.Model   `json:"models"`
					Providers []catalog.State `json:"providers"`
				}
				if err := api.do(c.Context(), "GET", "/models", nil, &out); err != nil {
					return needsGateway(err, api)
				}
				if err := api.do(c.Context(), "GET", "/providers", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintln(w, "MODEL\tSERVED BY\tDIALECTS\tCONTEXT\tOUTPUT")
					for _, m := range out.Models {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.ID, strings.Join(m.Targets, ","), strings.Join(m.Speaks, ","), tokens(m.Context), tokens(m.MaxOutput))
					}
					fmt.Fprintln(w, "\nPROVIDER\tADDRESS\tLISTED\tSTATE")
					for _, p := range out.Providers {
						state := "ok"
						if p.Error != "" {
							state = p.Error
						}
						fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", p.Name, p.BaseURL, p.Models, state)
					}
				})
			})
		},
	}
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
