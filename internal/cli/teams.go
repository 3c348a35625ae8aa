package cli

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/keys"
)

func (e *env) teamsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "teams",
		Short: "Make, list, change and delete the teams that pay for keys",
		Long: `Keys can belong to a team, and a team to another. What a key spends is spent of the budgets
of its team too, and of all teams above; limits count likewise.`,
		Example: `  limen teams create all --budget 500/month
  limen teams create web --parent all --budget 100/month --rpm 600
  limen keys create alice --team web --budget 10/month
  limen teams show web`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.teamsCreate(), e.teamsList(), e.teamsShow(), e.teamsSet(), e.teamsDelete())
	return c
}

func (e *env) teamsCreate() *cobra.Command {
	var (
		in keys.NewTeam
		t  terms
	)
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a team",
		Long:  "Create makes a team, which keys and other teams can belong to.\n\n" + termsHelp,
		Example: `  limen teams create web
  limen teams create web --parent all --budget 100/month,10/day
  limen teams create lab --budget '50/month@Europe/Berlin' --budget '40/month@Europe/Berlin soft' --tpm 500000`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			in.Name, in.Limits = args[0], t.limits
			if in.Budgets, err = t.parsed(); err != nil {
				return err
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Team
				if err := api.do(c.Context(), "POST", "/teams", in, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printTeam(w, out) })
			})
		},
	}
	c.Flags().StringVar(&in.Parent, "parent", "", "the team that it belongs to")
	t.flags(c)
	return c
}

func (e *env) teamsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List teams", Example: "  limen teams list\n  limen teams list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Teams []admin.Team `json:"teams"`
				}
				if err := api.do(c.Context(), "GET", "/teams", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					if len(out.Teams) == 0 {
						fmt.Fprintln(w, "There are no teams. 'limen teams create NAME' makes one.")
						return
					}
					fmt.Fprintln(w, "ID\tNAME\tPARENT\tSPENT\tLIMITS")
					for _, t := range out.Teams {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.Name, orDash(t.Parent), spentOf(t.Budgets), limitsText(t.Limits))
					}
				})
			})
		},
	}
}

func (e *env) teamsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TEAM", Short: "Show a team: what it has spent, and what belongs to it", Example: "  limen teams show web", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var t admin.Team
				if err := api.do(c.Context(), "GET", teamPath(args[0]), nil, &t); err != nil {
					return err
				}
				return e.print(t, func(w io.Writer) {
					printTeam(w, t)
					fmt.Fprintf(w, "Keys\t%s\nTeams\t%s\n", membersText(t.Keys), membersText(t.Teams))
				})
			})
		},
	}
}

func teamPath(ref string) string { return "/teams/" + url.PathEscape(ref) }

func printTeam(w io.Writer, t admin.Team) {
	fmt.Fprintf(w, "ID\t%s\nName\t%s\nParent\t%s\nCreated\t%s\n", t.ID, t.Name, orDash(t.Parent), orNever(t.Created))
	printTerms(w, t.Budgets, t.Limits)
}

func membersText(members []admin.Member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	return orDash(strings.Join(names, ", "))
}

// teamChange is what 'set' asks for; absent members stay.
type teamChange struct {
	Name   *string `json:"name,omitempty"`
	Parent *string `json:"parent,omitempty"`
	termsChange
}

func (e *env) teamsSet() *cobra.Command {
	var (
		name, parent string
		t            terms
	)
	c := &cobra.Command{
		Use:   "set TEAM",
		Short: "Change a team",
		Long: `Set changes what its flags say; what they do not say stays. What was spent stays spent, also
when a budget changes.

` + termsHelp,
		Example: `  limen teams set web --budget 200/month      # in place of all budgets that it has
  limen teams set web --budget none --rpm 0   # no budget, and no limit of requests a minute
  limen teams set web --parent none
  limen teams set web --name frontend         # rules that name the team have to follow`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			terms, err := t.change(c)
			if err != nil {
				return err
			}
			change := teamChange{given(c, "name", name), given(c, "parent", parent), terms}
			if err := something(c, change); err != nil {
				return err
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Team
				if err := api.do(c.Context(), "PATCH", teamPath(args[0]), change, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printTeam(w, out) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&name, "name", "", "another name")
	flags.StringVar(&parent, "parent", "", "the team that it belongs to, or none")
	t.flags(c)
	return c
}

func (e *env) teamsDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete TEAM", Short: "Delete a team that nothing belongs to", Example: "  limen teams delete web", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var t admin.Team
				if err := api.do(c.Context(), "DELETE", teamPath(args[0]), nil, &t); err != nil {
					return err
				}
				return e.print(t, func(w io.Writer) { fmt.Fprintf(w, "Team %s (%s) is deleted.\n", t.Name, t.ID) })
			})
		},
	}
}
