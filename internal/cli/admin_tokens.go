package cli

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/keys"
)

func (e *env) adminTokens() *cobra.Command {
	c := &cobra.Command{
		Use: "tokens", Short: "Make, list and revoke tokens, by which programs use the admin API", Args: cobra.NoArgs,
		Long: `Tokens open the admin API to programs, as far as their scopes go: read sees everything, usage
only usage and calls, keys also changes keys and teams, config the configuration, models and prices.
No token makes tokens or users. Commands take one in LIMEN_ADMIN_PASSWORD.`,
		Example: "  limen admin tokens create billing --scopes usage --expires 90d\n  limen admin tokens list\n  limen admin tokens revoke billing",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.adminTokensCreate(), e.adminTokensList(), e.adminTokensRevoke())
	return c
}

func (e *env) adminTokensCreate() *cobra.Command {
	var (
		in      keys.NewAdminToken
		expires string
	)
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token, which is shown this once", Args: cobra.ExactArgs(1),
		Example: "  limen admin tokens create billing --scopes usage --expires 90d",
		RunE: func(c *cobra.Command, args []string) (err error) {
			in.Name = args[0]
			if expires != "" {
				if in.Expires, err = parseExpiry(expires, time.Now()); err != nil {
					return err
				}
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Token
				if err := api.do(c.Context(), "POST", "/tokens", in, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintf(w, "Token\t%s\nID\t%s\nName\t%s\nScopes\t%s\nExpires\t%s\n\nThe token is shown this once.\n",
						out.Token, out.ID, out.Name, strings.Join(out.Scopes, ", "), orNever(out.Expires))
				})
			})
		},
	}
	c.Flags().StringSliceVar(&in.Scopes, "scopes", nil, "what it may do: "+strings.Join(keys.ScopeNames, ", "))
	c.Flags().StringVar(&expires, "expires", "", "when it ends: 90d, 12h, or a date such as 2027-01-31")
	return c
}

func (e *env) adminTokensList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens", Example: "  limen admin tokens list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.TokenList
				if err := api.do(c.Context(), "GET", "/tokens", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintln(w, "ID\tNAME\tSCOPES\tMADE BY\tCREATED\tEXPIRES")
					for _, t := range out.Tokens {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Name, strings.Join(t.Scopes, ", "), t.By, orNever(t.Created), orNever(t.Expires))
					}
				})
			})
		},
	}
}

func (e *env) adminTokensRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke a token, by its ID or its name", Example: "  limen admin tokens revoke billing", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.Token
				if err := api.do(c.Context(), "DELETE", "/tokens/"+url.PathEscape(args[0]), nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { fmt.Fprintf(w, "Token %s (%s) is revoked.\n", out.Name, out.ID) })
			})
		},
	}
}
