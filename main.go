// Limen is an OpenAI-compatible gateway: one base URL ending in /v1, one key,
// every model that its operator offers.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/limen-gateway/limen/internal/cli"
)

// release is set when a release is built.
var release = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, cli.Version{Release: release, Commit: commit()}, reload))
}

// commit is the revision that the binary was built from, where Go knows it.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return ""
}
