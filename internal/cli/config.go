package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/app"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/store"
)

func (e *env) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check, show and write the configuration",
		Example: "  limen config init > limen.yaml\n  limen config check",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(e.configCheck(), e.configShow(), e.configSchema(), e.configInit(), e.configReload(), e.configHistory(), e.configApply(), e.configRollback(), e.configSecret())
	return c
}

// checked is the result of a check, for scripts.
type checked struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Problems []config.Problem `json:"problems"`
}

func (e *env) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration; every problem is shown with its place",
		Long:  "Check reads the configuration that serve would use, a file or the one in the store, or FILE, as strictly as serve does.\nIt exits with 2 when it has a problem.",
		Example: `  limen config check
  limen config check limen.yaml --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				e.configPath = args[0]
			}
			_, path, err := e.load()
			if err == nil && path == "" {
				if found, err := e.checkStored(c.Context()); found || err != nil {
					return err
				}
			}
			var bad *config.Errors
			switch {
			case errors.As(err, &bad) && e.json:
				writeJSON(e.stdout, checked{File: path, Problems: bad.Problems})
				return &exitError{code: exitUsage, silent: true, err: err}
			case err != nil:
				return &exitError{code: exitUsage, err: err}
			}
			return e.print(checked{File: path, OK: true, Problems: []config.Problem{}}, func(w io.Writer) {
				if path == "" {
					fmt.Fprintln(w, "There is no configuration file; the defaults are in force. 'limen config init > limen.yaml' writes one.")
					return
				}
				fmt.Fprintf(w, "%s is good.\n", path)
			})
		},
	}
}

func (e *env) configShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the configuration in force, with defaults, without secrets",
		Example: "  limen config show", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, path, err := e.load()
			if err != nil {
				return err
			}
			if path == "" {
				if found, err := e.showStored(c.Context()); found || err != nil {
					return err
				}
			}
			render := cfg.RedactedYAML
			if e.json {
				render = cfg.RedactedJSON
			}
			text, err := render()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(e.stdout, string(text))
			return err
		},
	}
}

// checkStored checks the document of the store, if there is one.
func (e *env) checkStored(ctx context.Context) (found bool, err error) {
	return e.stored(ctx, func(api *client, d *admin.Document) error {
		var out admin.Checked
		if err := api.do(ctx, "POST", "/config/check", admin.Check{Text: &d.Text}, &out); err != nil {
			return err
		}
		name := fmt.Sprintf("version %d in the store", d.Version)
		if !out.OK {
			bad := &config.Errors{Problems: out.Problems}
			if e.json {
				writeJSON(e.stdout, checked{File: name, Problems: out.Problems})
			}
			return &exitError{code: exitUsage, silent: e.json, err: bad}
		}
		return e.print(checked{File: name, OK: true, Problems: []config.Problem{}}, func(w io.Writer) { fmt.Fprintf(w, "The configuration, %s, is good.\n", name) })
	})
}

// showStored shows what the document of the store means, if there is one.
func (e *env) showStored(ctx context.Context) (found bool, err error) {
	return e.stored(ctx, func(api *client, _ *admin.Document) error {
		var text json.RawMessage
		if err := api.do(ctx, "GET", "/config", nil, &text); err != nil {
			return err
		}
		if e.json {
			return writeJSON(e.stdout, text)
		}
		out, err := config.YAML(text)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.stdout, string(out))
		return err
	})
}

// hasData reports whether a data directory was made.
func (e *env) hasData() bool {
	_, err := os.Stat(filepath.Join(app.DataDir(setting(e.data, "LIMEN_DATA"), ""), store.FileName))
	return err == nil
}

func (e *env) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration, for editors",
		Example: "  limen config schema > limen.schema.json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.stdout.Write(config.Schema())
			return err
		},
	}
}

func (e *env) configInit() *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented configuration to begin with",
		Long:    "Init prints a configuration with comments, or writes it to FILE, which must not be there yet.",
		Example: "  limen config init limen.yaml", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := e.stdout.Write(config.Sample())
				return err
			}
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(config.Sample())
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			return e.print(checked{File: args[0], OK: true, Problems: []config.Problem{}}, func(w io.Writer) {
				fmt.Fprintf(w, "Wrote %s. Put your providers in, then start 'limen'.\n", args[0])
			})
		},
	}
}

func (e *env) configReload() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make a running gateway take its configuration again",
		Example: "  limen config reload", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(api *client) error {
				var out struct {
					Status string `json:"status"`
				}
				if err := api.do(c.Context(), "POST", "/config/reload", nil, &out); err != nil {
					return needsGateway(err, api)
				}
				return e.print(out, func(w io.Writer) { fmt.Fprintln(w, "The configuration is in force.") })
			})
		},
	}
}
