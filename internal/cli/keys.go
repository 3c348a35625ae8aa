package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/keys"
)

func (e *env) keysCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Issue, list, change, revoke, rotate and restore clients' keys",
		Long: `Keys open the gateway to clients. They work on a running gateway and, when none runs,
on the data directory. A key is named by its ID, or by its name if no other has it.`,
		Example: `  limen keys create alice --models 'openai/*' --expires 90d
  limen keys create bob --team web --budget 5/month --rpm 60
  limen keys list
  limen keys set bob --budget 10/month
  limen keys rotate alice --overlap 24h`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.keysCreate(), e.keysList(), e.keysShow(), e.keysSet(),
		e.keysChange("revoke", "Stop a key; the next request with it is refused", "revoked"),
		e.keysChange("restore", "Make a revoked key work again", "restored"),
		e.keysRotate())
	return c
}

func (e *env) keysCreate() *cobra.Command {
	var (
		in      keys.New
		t       terms
		expires string
	)
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Issue a key, which is shown this once",
		Long:  "Create issues a key, with what it may do and spend.\n\n" + termsHelp,
		Example: `  limen keys create alice
  limen keys create ci --owner build-team --models 'fast,openai/gpt-5*' --allow chat --expires 30d
  limen keys create bob --team web --budget 5/month,1/day --rpm 60 --concurrency 8
  limen keys create trial --budget 0.50/total --expires 7d
  limen keys create old-tool --prefix sk-          # for tools that want a key to begin with sk-
  KEY=$(limen keys create test --json | jq -r .key)`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			in.Name, in.Limits = args[0], t.limits
			if in.Budgets, err = t.parsed(); err != nil {
				return err
			}
			if expires != "" {
				at, err := parseExpiry(expires, time.Now())
				if err != nil {
					return err
				}
				in.Expires = at
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Key
				if err := api.do(c.Context(), "POST", "/keys", in, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printIssued(w, out) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&in.Owner, "owner", "", "whose key it is")
	flags.StringVar(&in.Team, "team", "", "the team that it belongs to")
	flags.StringVar(&in.Prefix, "prefix", "", "what it begins with: limen_ or sk-")
	flags.StringSliceVar(&in.Models, "models", nil, "models it sees, as IDs or patterns with * (default: all)")
	flags.StringSliceVar(&in.Operations, "allow", nil, "operations it may use: "+strings.Join(keys.Operations, ", ")+" (default: all)")
	flags.BoolVar(&in.Strict, "strict", false, "refuse calls that an upstream cannot take as they are written, instead of noting what is changed")
	flags.BoolVar(&in.NoStore, "no-store", false, "keep no responses and conversations for this key, whatever its clients ask for")
	flags.StringVar(&expires, "expires", "", "when it ends: 90d, 12h, or a date such as 2027-01-31")
	t.flags(c)
	return c
}

// keyChange is what 'set' asks for; absent members stay.
type keyChange struct {
	Name       *string         `json:"name,omitempty"`
	Owner      *string         `json:"owner,omitempty"`
	Team       *string         `json:"team,omitempty"`
	Models     *[]string       `json:"models,omitempty"`
	Operations *[]string       `json:"operations,omitempty"`
	Strict     *bool           `json:"strict,omitempty"`
	NoStore    *bool           `json:"no_store,omitempty"`
	Expires    json.RawMessage `json:"expires,omitempty"`
	termsChange
}

func (e *env) keysSet() *cobra.Command {
	var (
		in      keys.New
		t       terms
		expires string
	)
	c := &cobra.Command{
		Use:   "set KEY",
		Short: "Change a key: what it may do and spend, its team, its name",
		Long: `Set changes what its flags say, from the next request on; what they do not say stays. What
was spent stays spent, also when a budget changes.

` + termsHelp,
		Example: `  limen keys set alice --budget 10/month       # in place of all budgets that it has
  limen keys set alice --budget none --rpm 0   # no budget, and no limit of requests a minute
  limen keys set alice --team web              # or --team none
  limen keys set alice --models '*' --allow all --expires never
  limen keys set alice --strict=false`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			terms, err := t.change(c)
			if err != nil {
				return err
			}
			change := keyChange{
				given(c, "name", in.Name), given(c, "owner", in.Owner), given(c, "team", in.Team), given(c, "models", in.Models),
				given(c, "allow", in.Operations), given(c, "strict", in.Strict), given(c, "no-store", in.NoStore), nil, terms,
			}
			if len(in.Operations) == 1 && in.Operations[0] == "all" {
				change.Operations = &[]string{}
			}
			if c.Flags().Changed("expires") {
				if change.Expires, err = expiryChange(expires, time.Now()); err != nil {
					return err
				}
			}
			if err := something(c, change); err != nil {
				return err
			}
			return e.with(c.Context(), func(api *client) error {
				var k admin.Key
				if err := api.do(c.Context(), "PATCH", "/keys/"+url.PathEscape(args[0]), change, &k); err != nil {
					return err
				}
				return e.print(k, func(w io.Writer) { printKey(w, k) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&in.Name, "name", "", "another name")
	flags.StringVar(&in.Owner, "owner", "", "whose key it is")
	flags.StringVar(&in.Team, "team", "", "the team that it belongs to, or none")
	flags.StringSliceVar(&in.Models, "models", nil, "models it sees, as IDs or patterns; '*' is all")
	flags.StringSliceVar(&in.Operations, "allow", nil, "operations it may use: "+strings.Join(keys.Operations, ", ")+", or all")
	flags.BoolVar(&in.Strict, "strict", false, "refuse calls that an upstream cannot take as they are written")
	flags.BoolVar(&in.NoStore, "no-store", false, "keep no responses and conversations for this key")
	flags.StringVar(&expires, "expires", "", "when it ends: 90d, 12h, a date such as 2027-01-31, or never")
	t.flags(c)
	return c
}

// expiryChange is another expiry as a request says it.
func expiryChange(text string, now time.Time) (json.RawMessage, error) {
	if text == "never" {
		return json.RawMessage("null"), nil
	}
	at, err := parseExpiry(text, now)
	if err != nil {
		return nil, err
	}
	return json.Marshal(at)
}

// parseExpiry reads a duration, in days too, or a date.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageError("--expires is a duration such as 90d or 12h, or a date such as 2027-01-31, not %q", text)
}

func printIssued(w io.Writer, k admin.Key) {
	fmt.Fprintf(w, "Key\t%s\nID\t%s\nName\t%s\n", k.Key, k.ID, k.Name)
	if !k.OldUntil.IsZero() {
		fmt.Fprintf(w, "Old key works until\t%s\n", k.OldUntil.Format(time.RFC3339))
	}
	fmt.Fprintln(w, "\nThe key is shown this once.")
}

func (e *env) keysList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List keys", Example: "  limen keys list\n  limen keys list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Keys []admin.Key `json:"keys"`
				}
				if err := api.do(c.Context(), "GET", "/keys", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					if len(out.Keys) == 0 {
						fmt.Fprintln(w, "There are no keys yet. 'limen keys create NAME' issues one.")
						return
					}
					fmt.Fprintln(w, "ID\tNAME\tOWNER\tSTATUS\tTEAM\tSPENT\tLIMITS\tMODELS\tALLOWED\tLAST USED\tEXPIRES")
					for _, k := range out.Keys {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, orDash(k.Owner), k.Status,
							orDash(k.Team), spentOf(k.Budgets), limitsText(k.Limits), orAll(k.Models), orAll(k.Operations), orNever(k.LastUsed), orNever(k.Expires))
					}
				})
			})
		},
	}
}

func (e *env) keysShow() *cobra.Command {
	return &cobra.Command{
		Use: "show KEY", Short: "Show a key, without its secret", Example: "  limen keys show alice", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var k admin.Key
				if err := api.do(c.Context(), "GET", "/keys/"+url.PathEscape(args[0]), nil, &k); err != nil {
					return err
				}
				return e.print(k, func(w io.Writer) { printKey(w, k) })
			})
		},
	}
}

func printKey(w io.Writer, k admin.Key) {
	fmt.Fprintf(w, "ID\t%s\nName\t%s\nOwner\t%s\nStatus\t%s\nTeam\t%s\n", k.ID, k.Name, orDash(k.Owner), k.Status, orDash(k.Team))
	printTerms(w, k.Budgets, k.Limits)
	fmt.Fprintf(w, "Models\t%s\nAllowed\t%s\nCreated\t%s\nLast used\t%s\nExpires\t%s\n", orAll(k.Models), orAll(k.Operations), orNever(k.Created), orNever(k.LastUsed), orNever(k.Expires))
	if k.Strict {
		fmt.Fprintln(w, "Strict\tyes")
	}
	if k.NoStore {
		fmt.Fprintln(w, "Stores\tnothing")
	}
	if !k.OldUntil.IsZero() {
		fmt.Fprintf(w, "Old key works until\t%s\n", k.OldUntil.Format(time.RFC3339))
	}
}

func (e *env) keysChange(verb, short, done string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " KEY", Short: short, Example: "  limen keys " + verb + " alice", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var k admin.Key
				if err := api.do(c.Context(), "POST", "/keys/"+url.PathEscape(args[0])+"/"+verb, nil, &k); err != nil {
					return err
				}
				return e.print(k, func(w io.Writer) { fmt.Fprintf(w, "Key %s (%s) is %s.\n", k.Name, k.ID, done) })
			})
		},
	}
}

func (e *env) keysRotate() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:   "rotate KEY",
		Short: "Give a key a new secret, which is shown this once",
		Long: `Rotate replaces the secret of a key; its name, limits and usage stay. With --overlap the
old secret goes on working for that long, so that clients can be changed one by one.`,
		Example: "  limen keys rotate alice --overlap 24h",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var k admin.Key
				in := struct {
					Overlap string `json:"overlap"`
				}{overlap.String()}
				if err := api.do(c.Context(), "POST", "/keys/"+url.PathEscape(args[0])+"/rotate", in, &k); err != nil {
					return err
				}
				return e.print(k, func(w io.Writer) { printIssued(w, k) })
			})
		},
	}
	c.Flags().DurationVar(&overlap, "overlap", 0, "how long the old secret goes on working")
	return c
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orAll(list []string) string {
	if len(list) == 0 {
		return "all"
	}
	return strings.Join(list, ",")
}

func orNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}
