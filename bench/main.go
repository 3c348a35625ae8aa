// Command bench measures Limen beside a bare httputil.ReverseProxy and nginx: CPU per
// call and per streamed piece, added latency, memory, start and size. All run in one
// go, in turns, against one cheap upstream, so that what else the machine does hits
// all of them alike. What is judged are ratios, not microseconds.
//
// Each proxy and the upstream are processes of their own; the load client is this
// one. Of Limen it knows the command line and the configuration file, in limen.go, the
// tables of records, in usage.go, and nothing of its packages. It reads /proc and therefore runs on Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// deadline bounds a whole run.
const deadline = 40 * time.Minute

func main() {
	if len(os.Args) == 4 && os.Args[1] == "reverseproxy" {
		exit(serveReverseProxy(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "upstream" {
		exit(serveUpstream(os.Args[2]))
	}
	if len(os.Args) == 5 && os.Args[1] == "records" {
		exit(fillRecords(context.Background(), os.Args[2], os.Args[3], os.Args[4]))
	}
	quick := flag.Bool("quick", false, "one round of less work, about a minute")
	only := flag.String("only", "", "`section` to measure alone: "+strings.Join(sectionNames(), ", "))
	limen := flag.String("limen", "", "`path` of a binary to measure; one is built if empty")
	out := flag.String("out", "", "`file` to write the page to")
	flag.Parse()
	if *only != "" && !slices.Contains(sectionNames(), *only) {
		exit(fmt.Errorf("-only %s: it is one of %s", *only, strings.Join(sectionNames(), ", ")))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, deadline)
	err := run(ctx, plan{quick: *quick, only: *only, limen: *limen, out: *out})
	cancel()
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// plan is what the flags say.
type plan struct {
	quick bool
	only  string // a section, or "" for all
	limen string // path, or "" to build
	out   string // path of the page, or ""
}

// rounds is how often each measurement is repeated.
func (p plan) rounds() int {
	if p.quick {
		return 1
	}
	return 11
}

// scaled is an amount of work, a quarter of it in a quick run.
func (p plan) scaled(n int) int {
	if p.quick {
		return n / 4
	}
	return n
}

type section struct {
	name    string
	title   string
	measure func(context.Context, *lab) ([]row, error)
}

func sections() []section {
	return []section{
		{"start", "Start and size", measureStart},
		{"calls", "CPU per call", measureCalls},
		{"streams", "CPU per streamed piece", measureStreams},
		{"translation", "Translation, Chat Completions to Messages", measureTranslation},
		{"latency", "Latency added at 1,000 calls a second", measureLatency},
		{"memory", "Memory", measureMemory},
		{"overload", "Overload", measureOverload},
		{"state", "Stored turns and sockets", measureState},
		{"usage", "Questions about usage", measureUsage},
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

func run(ctx context.Context, p plan) (err error) {
	dir, err := os.MkdirTemp("", "limen-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := newLab(ctx, p, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.upstream.stop()) }()

	report := newReport(ctx, l)
	for _, s := range sections() {
		if p.only != "" && p.only != s.name {
			continue
		}
		fmt.Printf("\n%s\n", s.title)
		rows, err := s.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		report.add(s.title, rows)
	}
	if err := report.account(ctx, l); err != nil {
		return err
	}
	report.print(os.Stdout)
	if p.out != "" {
		if err := report.write(p.out); err != nil {
			return err
		}
	}
	if report.made != report.recorded {
		return fmt.Errorf("%d calls were made and %d recorded", report.made, report.recorded)
	}
	return nil
}
