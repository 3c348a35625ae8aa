package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// Version says which build this is.
type Version struct {
	Release string `json:"version"`
	Commit  string `json:"commit"`
}

func (e *env) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  limen version --json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out := struct {
				Version
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{e.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return e.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "limen %s (%s, %s, %s)\n", out.Release, orDash(out.Commit), out.Go, out.Platform)
			})
		},
	}
}
