package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

const storedHelp = `Without a file, the configuration is kept in the store, with its versions. Whoever starts a
gateway on the data directory, or the database, has it; a change counts everywhere within a second.`

func (e *env) configHistory() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "history [VERSION]", Short: "List the versions of the configuration in the store, or show one",
		Long:    storedHelp + "\nThe last 100 versions are kept. With VERSION its text is printed.",
		Example: "  limen config history\n  limen config history 7", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				if len(args) > 0 {
					return e.printVersion(c.Context(), api, args[0])
				}
				var out admin.Versions
				if err := api.do(c.Context(), "GET", "/config/versions?limit="+strconv.Itoa(limit), nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					if len(out.Versions) == 0 {
						fmt.Fprintln(w, "There is no version yet. 'limen config apply FILE' writes one, and so does the console.")
						return
					}
					fmt.Fprintln(w, "VERSION\tTIME\tBY\tNOTE\t")
					for _, v := range out.Versions {
						fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", v.Version, v.At.Format(time.RFC3339), v.By, orDash(v.Note), map[bool]string{true: "newest"}[v.Current])
					}
				})
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "so many")
	return c
}

func (e *env) printVersion(ctx context.Context, api *client, version string) error {
	var out admin.VersionText
	if err := api.do(ctx, "GET", "/config/versions/"+url.PathEscape(version), nil, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) { io.WriteString(e.stdout, out.Text) })
}

func (e *env) configApply() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "apply FILE", Short: "Make a file the next version of the configuration in the store",
		Long:    storedHelp + "\nFILE is - for the standard input. Keys do not stand in it: keep them with 'limen config secret set'.",
		Example: "  limen config apply limen.yaml --note 'a second region'", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := readBounded(c.InOrStdin(), args[0], 4<<20)
			if err != nil {
				return err
			}
			text := string(data)
			return e.with(c.Context(), func(api *client) error {
				base, err := newestVersion(c.Context(), api)
				if err != nil {
					return err
				}
				return e.write(c.Context(), api, "PUT", "/config/document", admin.NewVersion{Text: &text, Base: base, Note: note})
			})
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	return c
}

func newestVersion(ctx context.Context, api *client) (int64, error) {
	var now admin.Versions
	err := api.do(ctx, "GET", "/config/versions?limit=1", nil, &now)
	if err != nil || len(now.Versions) == 0 {
		return 0, err
	}
	return now.Versions[0].Version, nil
}

// write makes a version, and tells of it.
func (e *env) write(ctx context.Context, api *client, method, path string, in any) error {
	var out admin.Written
	if err := api.do(ctx, method, path, in, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) { fmt.Fprintf(w, "Version %d counts now.\n", out.Version) })
}

func (e *env) configRollback() *cobra.Command {
	return &cobra.Command{
		Use: "rollback VERSION", Short: "Make a former version of the configuration in the store the next",
		Long:    storedHelp + "\nIt works without a running gateway too: so one starts again that a bad version keeps from it.",
		Example: "  limen config history\n  limen config rollback 7", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			version, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usageError("%q is no version; see 'limen config history'", args[0])
			}
			return e.with(c.Context(), func(api *client) error {
				base, err := newestVersion(c.Context(), api)
				if err != nil {
					return err
				}
				return e.write(c.Context(), api, "POST", "/config/rollback", admin.Rollback{Version: version, Base: base})
			})
		},
	}
}

func (e *env) configSecret() *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Keep the secrets that a configuration refers to as ${secret:NAME}", Args: cobra.NoArgs,
		Long: `Secrets are kept in the store, closed with a key that lies beside the database (state.key, or
LIMEN_STATE_KEY). A configuration refers to one as ${secret:NAME}. Nothing shows its value again.`,
		Example: "  limen config secret set openai < key.txt\n  limen config secret list\n  limen config secret rm openai",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.configSecretSet(), e.configSecretList(), e.configSecretRemove())
	return c
}

func (e *env) configSecretSet() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Set a secret; its value is read from the standard input", Args: cobra.ExactArgs(1),
		Long:    "Set reads the value from the standard input, so that it is in no history of a shell. A final line break is left out.",
		Example: "  limen config secret set openai < key.txt",
		RunE: func(c *cobra.Command, args []string) error {
			data, err := readBounded(c.InOrStdin(), "-", 64<<10)
			if err != nil {
				return err
			}
			value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
			if value == "" {
				return usageError("the value is read from the standard input, and nothing came")
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Secret
				if err := api.do(c.Context(), "PUT", "/config/secrets/"+url.PathEscape(args[0]), admin.NewSecret{Value: value}, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintf(w, "Secret %s is set. A configuration refers to it as ${secret:%[1]s}.\n", out.Name)
				})
			})
		},
	}
}

func (e *env) configSecretList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the names of secrets", Example: "  limen config secret list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.SecretList
				if err := api.do(c.Context(), "GET", "/config/secrets", nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) {
					fmt.Fprintln(w, "NAME\tSET\tUSED")
					for _, s := range out.Secrets {
						fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Updated.Format(time.RFC3339), map[bool]string{true: "yes", false: "no"}[s.Used])
					}
				})
			})
		},
	}
}

func (e *env) configSecretRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Forget a secret that the configuration does not use", Example: "  limen config secret rm openai", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out admin.Done
				if err := api.do(c.Context(), "DELETE", "/config/secrets/"+url.PathEscape(args[0]), nil, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { fmt.Fprintf(w, "Secret %s is forgotten.\n", args[0]) })
			})
		},
	}
}

// stored is the document of the store, where no file has the configuration and
// there may be one: a store that nobody made is not made to find out.
func (e *env) stored(ctx context.Context, then func(*client, *admin.Document) error) (found bool, err error) {
	if os.Getenv("LIMEN_URL") == "" && os.Getenv("LIMEN_DATABASE_URL") == "" && !e.hasData() {
		return false, nil
	}
	err = e.with(ctx, func(api *client) error {
		var d admin.Document
		if err := api.do(ctx, "GET", "/config/document", nil, &d); err != nil {
			return err
		}
		found = d.Version > 0
		if !found {
			return nil
		}
		return then(api, &d)
	})
	return found, err
}
