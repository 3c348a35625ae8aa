package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (e *env) adminCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "admin", Short: "Manage the admin password", Args: cobra.NoArgs,
		Example: "  limen admin password",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
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
	})
	return c
}
