// Package e2e proves the whole gateway from outside: stories that a user could
// read (testdata), every way in which upstreams and clients misbehave, and what
// is left after kill -9. It knows of the gateway what an operator does: its
// command line, its configuration and its wire.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/cli"
)

// soak has tests last as long as what they prove is promised for.
var soak = flag.Bool("soak", false, "kill, fill and take away for longer")

// TestMain makes this test binary the command limen for the stories, so that
// nothing has to be built before they can be run.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"limen": limen})
}

// limen is the program's main.
func limen() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, cli.Version{Release: "test"}, reload))
}

// leakChecked fails a run that leaves a goroutine behind: gateways that served
// every fault have been stopped by then.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	built.remove()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines were left behind:", err)
			code = 1
		}
	}
	return code
}

// built is the binary as it is released, without the race detector. It is made
// for the first test that needs it.
var built binary

type binary struct {
	once sync.Once
	dir  string
	err  error
}

func (b *binary) path(t *testing.T) string {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "limen-e2e-"); b.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", b.file(), "../..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatalf("the binary cannot be built: %v", b.err)
	}
	return b.file()
}

func (b *binary) file() string { return filepath.Join(b.dir, "limen") }

func (b *binary) remove() {
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}
