package cli

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limen-gateway/limen/internal/app"
	"github.com/limen-gateway/limen/internal/config"
)

var configOptions = app.ConfigOptions

func (e *env) serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve (the default)",
		Long: `Serve listens for clients until it gets SIGTERM or SIGINT, then lets running calls
end. SIGHUP, or a change of the file, makes it take the configuration again; a bad one
is refused and the last good one stays in force.

At the very first start it makes an admin password and a key, and shows both once.`,
		Example: `  limen serve
  limen serve --listen 0.0.0.0:8080 --behind-proxy --data /var/lib/limen
  LIMEN_CONFIG=/etc/limen/limen.yaml limen serve`,
		Args: cobra.NoArgs,
		RunE: e.serve,
	}
	e.serveFlags(c)
	return c
}

// serveFlags are flags of serve, which the bare command has too.
func (e *env) serveFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.Bool("behind-proxy", false, "TLS ends in front of Limen: no warning about keys in the clear")
	flags.String("log-format", "", "json or text (default: text on a terminal, else json)")
	flags.String("log-level", "", "debug, info, warn or error (default info)")
}

func (e *env) serve(c *cobra.Command, _ []string) error {
	path, _, err := config.Find(e.configPath, os.LookupEnv)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	flags := c.Flags()
	behind, _ := flags.GetBool("behind-proxy")
	format, _ := flags.GetString("log-format")
	level, _ := flags.GetString("log-level")
	stderr, ok := e.stderr.(*os.File)
	return app.Run(c.Context(), app.Options{
		ConfigPath: path, Listen: setting(e.listen, "LIMEN_LISTEN"), Data: setting(e.data, "LIMEN_DATA"), DatabaseURL: os.Getenv("LIMEN_DATABASE_URL"),
		BehindProxy: behind, LogFormat: format, LogLevel: level, Version: e.version.Release,
		Stdout: e.stdout, Stderr: e.stderr, Terminal: ok && term.IsTerminal(int(stderr.Fd())), Reload: e.reload,
	})
}
