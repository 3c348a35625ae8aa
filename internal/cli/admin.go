package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

func (e *env) adminCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "admin", Short: "Manage who may use the admin API, and see what was changed", Args: cobra.NoArgs,
		Example: "  limen admin password\n  limen admin audit",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.adminPassword(), e.adminUsers(), e.adminTokens(), e.adminAudit())
	return c
}

func (e *env) adminPassword() *cobra.Command {
	return &cobra.Command{
		Use:   "password",
		Short: "Set a new admin password, which is shown this once",
		Long: `Password replaces the admin password by a new one. Who can open the data directory needs
not know the old one, so this also helps when it was lost.`,
		Example: "  limen admin password",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Password string `json:"password"`
				}
				if err := api.do(c.Context(), "POST", "/admin/password", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintf(w, "Admin password\t%s\n\nIt is shown this once; the one before no longer works.\n", out.Password)
				})
			})
		},
	}
}

func (e *env) adminAudit() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "audit",
		Short: "List the newest changes: who made them, when, from where",
		Long: `Audit lists what was changed by commands, consoles and scripts. Who can open the data
directory needs no password, and stands there as 'socket', or as 'directory' where no gateway ran.`,
		Example: "  limen admin audit\n  limen admin audit --limit 1000 --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.Changes
				if err := api.do(c.Context(), "GET", "/audit?limit="+strconv.Itoa(limit), nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printChanges(w, out.Changes) })
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 100, "so many")
	return c
}

func printChanges(w io.Writer, changes []admin.Change) {
	fmt.Fprintln(w, "TIME\tWHO\tVIA\tFROM\tSTATUS\tWHAT\tON\tSAID")
	for _, c := range changes {
		status := "unknown"
		if c.Status != 0 {
			status = strconv.Itoa(c.Status)
		}
		if c.Times > 1 {
			status += fmt.Sprintf(" (%d times)", c.Times)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Time.Format(time.RFC3339), c.Who, c.Via, orDash(c.From), status,
			c.Operation, orDash(c.Object), orDash(strings.Join(c.Members, ", ")))
	}
}
