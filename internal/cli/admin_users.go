package cli

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/keys"
)

func (e *env) adminUsers() *cobra.Command {
	c := &cobra.Command{
		Use: "users", Short: "Make, list, change and delete people who may log in", Args: cobra.NoArgs,
		Long: `Users log in to the console. An owner may do everything, an admin all but decide who may, a
viewer sees everything, and a member sees the keys and the usage of the own team and of those
below it.`,
		Example: "  limen admin users create ann --role viewer\n  limen admin users create bob --role member --team web\n  limen admin users set ann --role admin",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.adminUsersCreate(), e.adminUsersList(), e.adminUsersSet(), e.adminUsersDelete())
	return c
}

func (e *env) adminUsersCreate() *cobra.Command {
	var (
		in   keys.NewUser
		role string
	)
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a user, whose password is shown this once", Args: cobra.ExactArgs(1),
		Example: "  limen admin users create bob --role member --team web",
		RunE: func(c *cobra.Command, args []string) error {
			in.Name, in.Role = args[0], keys.Role(role)
			return e.with(c.Context(), func(api *client) error {
				var out admin.User
				if err := api.do(c.Context(), "POST", "/users", in, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintf(w, "Password\t%s\n", out.Password)
					printUser(w, &out)
					fmt.Fprintln(w, "\nThe password is shown this once.")
				})
			})
		},
	}
	c.Flags().StringVar(&role, "role", string(keys.Viewer), "owner, admin, viewer or member")
	c.Flags().StringVar(&in.Team, "team", "", "of a member, by ID or name")
	return c
}

func printUser(w io.Writer, u *admin.User) {
	fmt.Fprintf(w, "ID\t%s\nName\t%s\nRole\t%s\nTeam\t%s\n", u.ID, u.Name, u.Role, orDash(u.Team))
}

func (e *env) adminUsersList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users", Example: "  limen admin users list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.UserList
				if err := api.do(c.Context(), "GET", "/users", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintln(w, "ID\tNAME\tROLE\tTEAM\tCREATED")
					for _, u := range out.Users {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", u.ID, u.Name, u.Role, orDash(u.Team), orNever(u.Created))
					}
				})
			})
		},
	}
}

// userChange is what 'set' asks for; absent members stay.
type userChange struct {
	Role     *string `json:"role,omitempty"`
	Team     *string `json:"team,omitempty"`
	Password string  `json:"password,omitempty"`
}

func (e *env) adminUsersSet() *cobra.Command {
	var (
		role, team  string
		newPassword bool
	)
	c := &cobra.Command{
		Use: "set USER", Short: "Change a user's role or team, or give a new password", Args: cobra.ExactArgs(1),
		Example: "  limen admin users set ann --role admin\n  limen admin users set bob --new-password    # which ends the sessions",
		RunE: func(c *cobra.Command, args []string) error {
			in := userChange{Role: given(c, "role", role), Team: given(c, "team", team)}
			if newPassword {
				in.Password = keys.NewPassword()
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.User
				if err := api.do(c.Context(), "PATCH", userPath(args[0]), in, &out); err != nil {
					return err
				}
				out.Password = in.Password
				return e.print(out, func(w io.Writer) {
					if out.Password != "" {
						fmt.Fprintf(w, "Password\t%s\n", out.Password)
					}
					printUser(w, &out)
				})
			})
		},
	}
	c.Flags().StringVar(&role, "role", "", "owner, admin, viewer or member")
	c.Flags().StringVar(&team, "team", "", "of a member, by ID or name")
	c.Flags().BoolVar(&newPassword, "new-password", false, "make a new password, which is shown this once")
	return c
}

func userPath(ref string) string { return "/users/" + url.PathEscape(ref) }

func (e *env) adminUsersDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete USER", Short: "Delete a user, which ends the sessions", Example: "  limen admin users delete bob", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.User
				if err := api.do(c.Context(), "DELETE", userPath(args[0]), nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { fmt.Fprintf(w, "User %s (%s) is deleted.\n", out.Name, out.ID) })
			})
		},
	}
}
