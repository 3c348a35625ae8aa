// Package cli is the command line: one file per command. Commands other than
// serve speak to the admin API: of a gateway that has the data directory open,
// of one elsewhere (LIMEN_URL), or, with no gateway running, of the data
// directory itself.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/config"
)

// Exit codes, for scripts.
const (
	exitFailure = 1 // what was asked failed, or doctor found something wrong
	exitUsage   = 2 // the command line, or the configuration, is wrong
)

// exitError is an error with an exit code of its own. A silent one has been
// told already.
type exitError struct {
	code   int
	silent bool
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// env is what commands share: the streams and the flags of all commands.
type env struct {
	stdout, stderr io.Writer
	version        Version
	reload         <-chan os.Signal

	json       bool
	configPath string
	listen     string
	data       string
}

// Main runs a command line and returns the exit code. reload brings SIGHUP.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, version Version, reload <-chan os.Signal) int {
	e := &env{stdout: stdout, stderr: stderr, version: version, reload: reload}
	root := e.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitFailure
	var exit *exitError
	var bad *config.Errors
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case errors.As(err, &bad):
		code = exitUsage
	}
	if exit == nil || !exit.silent {
		fmt.Fprintf(stderr, "limen: %v\n", err)
	}
	return code
}

func (e *env) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "limen",
		Short: "An OpenAI-compatible gateway: one base URL, one key, every model",
		Long: `Limen is an OpenAI-compatible gateway. Clients are given a base URL ending in /v1
(those of Anthropic's API, the same without /v1), a key, and a model ID from the list.
Limen reaches the model behind it, whatever dialect its upstream speaks.

Without a command it serves. Without any configuration it uses the vendors whose
keys are in the environment and the model servers that run on this machine.`,
		Example: `  limen                                    # serve on http://127.0.0.1:8080/v1
  limen keys create alice                  # a key for a client, shown once
  limen models                             # what is offered
  limen connect codex                      # set a client up
  limen prices                             # what they cost
  limen usage --by key,model               # who used what, and what it cost
  limen why REQUEST-ID                     # how a call came to its answer
  limen route MODEL --dry-run              # where a call would go
  limen doctor                             # does it all work?`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: e.serve,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%w\nSee '%s --help'", err, c.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.BoolVar(&e.json, "json", false, "print JSON")
	flags.StringVar(&e.configPath, "config", "", "configuration file (LIMEN_CONFIG; default ./limen.yaml, then the user's and the system's)")
	flags.StringVar(&e.data, "data", "", "data directory (LIMEN_DATA; default ./limen-data)")
	flags.StringVar(&e.listen, "listen", "", "address to listen on (LIMEN_LISTEN; default 127.0.0.1:8080)")
	e.serveFlags(root)
	root.AddCommand(e.serveCommand(), e.keysCommand(), e.teamsCommand(), e.modelsCommand(), e.pricesCommand(), e.usageCommand(), e.callsCommand(),
		e.reconcileCommand(), e.whyCommand(), e.routeCommand(), e.connectCommand(), e.doctorCommand(), e.configCommand(), e.adminCommand(), e.versionCommand())
	exactly(root)
	return root
}

// exactly makes wrong arguments an error of usage, for every command.
func exactly(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError("%w\nSee '%s --help'", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		exactly(sub)
	}
}

// setting is a flag, or the variable that stands for it.
func setting(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv(variable)
}

// load finds and reads the configuration file, for commands that need to know
// where the data is; without a file it is the default.
func (e *env) load() (*config.Config, string, error) {
	path, ok, err := config.Find(e.configPath, os.LookupEnv)
	if err != nil {
		return nil, "", &exitError{code: exitUsage, err: err}
	}
	if !ok {
		return config.Default(), "", nil
	}
	cfg, err := config.Load(path, configOptions())
	return cfg, path, err
}

// print writes a document as JSON, or what text writes for people.
func (e *env) print(document any, text func(w io.Writer)) error {
	if e.json {
		return writeJSON(e.stdout, document)
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	text(w)
	return w.Flush()
}

func writeJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
