package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one measurement in every column, and what the first of two of them is to
// reach: Limen beside ReverseProxy, unless it says otherwise.
type row struct {
	own    string // the column that is judged
	base   string // the one that it is compared with; "" when there is no other
	what   string
	unit   string
	target target
	values map[string][]float64 // by column, one a round
}

// target is an upper bound of Limen's figure, or of its ratio to ReverseProxy's. The
// zero target is none.
type target struct {
	bound float64
	ratio bool
}

func atMost(bound float64) target      { return target{bound: bound} }
func atMostRatio(bound float64) target { return target{bound: bound, ratio: true} }

func newRow(what, unit string, t target) row {
	return row{own: nameLimen, base: nameRP, what: what, unit: unit, target: t, values: map[string][]float64{}}
}

// pair is a row of two columns, both Limen's own.
func pair(own, base, what, unit string, t target) row {
	r := newRow(what, unit, t)
	r.own, r.base = own, base
	return r
}

// note keeps a figure, unless its round is only to warm up, and shows it.
func (r row) note(round int, name string, v float64) {
	if round < 0 {
		return
	}
	r.values[name] = append(r.values[name], v)
	fmt.Printf("  %-42s round %d  %-13s %10.2f %s\n", r.what, round+1, name, v, r.unit)
}

// ratio is the median of each round's ratio of the one column to the other. A round
// in which the other cost nothing, as latency lost in noise may, has none.
func (r row) ratio() (ratio float64, ok bool) {
	own, base := r.values[r.own], r.values[r.base]
	if len(own) == 0 || len(own) != len(base) {
		return 0, false
	}
	var ratios []float64
	for i := range own {
		if base[i] > 0 {
			ratios = append(ratios, own[i]/base[i])
		}
	}
	return median(ratios), len(ratios) > 0
}

// met says whether Limen reaches the target.
func (r row) met() bool {
	if r.target.ratio {
		ratio, ok := r.ratio()
		return ok && ratio <= r.target.bound
	}
	return median(r.values[r.own]) <= r.target.bound
}

// median of an empty list is NaN.
func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// report is the page.
type report struct {
	head     string
	names    []string
	sections []string // as Markdown
	missed   []string
	made     int64 // calls to Limen
	recorded int64
}

func newReport(ctx context.Context, l *lab) *report {
	r := &report{}
	for _, p := range l.proxies {
		r.names = append(r.names, p.name)
	}
	versions := []string{runtime.Version()}
	if out, err := exec.CommandContext(ctx, "nginx", "-v").CombinedOutput(); err == nil {
		_, version, _ := strings.Cut(strings.TrimSpace(string(out)), ": ")
		versions = append(versions, strings.TrimPrefix(version, "nginx version: "))
	}
	note := ""
	if l.noNginx != "" {
		note = " " + l.noNginx
	}
	kind := fmt.Sprintf("medians of %d rounds", l.plan.rounds())
	if l.plan.quick {
		kind = "a quick run of one round: not to be quoted"
	}
	r.head = fmt.Sprintf(`Measured on %s with `+"`make bench`"+`, %s.

- Machine: %s. The load, the proxies and the upstream share its cores.
- Versions: %s.
- ReverseProxy is the standard library's `+"`httputil.ReverseProxy`"+` with FlushInterval -1 and the default
  transport, but 256 idle connections. nginx has two workers, keep-alive to the upstream, buffering off
  for chat, an access log.%s
- All are measured in turns in one run. What counts are the ratios; a ratio is the median of the ratios
  of each round. Latency is that of 1 KB calls, due at fixed times, beyond that of calls made directly;
  of each round it is the median of three slices of a second.
- A turn of Responses is 1 KB of a user and an answer of 1 KB, of text that compresses as prose does.
- Limen's figures include keys, routing and a usage record of each call; the others do none of these.
`, time.Now().UTC().Format(time.DateOnly), kind, machine(), strings.Join(versions, ", "), note)
	return r
}

func (r *report) add(title string, rows []row) {
	var (
		b     strings.Builder
		names []string
	)
	fmt.Fprintf(&b, "## %s\n", title)
	for i, row := range rows {
		if i == 0 || row.own != rows[i-1].own || row.base != rows[i-1].base {
			names = r.header(&b, row)
		}
		r.line(&b, names, row)
	}
	r.sections = append(r.sections, b.String())
}

// header begins a table for rows of the same columns, which it returns.
func (r *report) header(b *strings.Builder, row row) (names []string) {
	switch {
	case row.base == "":
		names = []string{row.own}
	case row.own == nameLimen:
		names = r.names
	default:
		names = []string{row.own, row.base}
	}
	b.WriteString("\n| |")
	for _, n := range names {
		fmt.Fprintf(b, " %s |", n)
	}
	if row.base != "" {
		fmt.Fprintf(b, " %s / %s |", row.own, row.base)
	}
	b.WriteString(" target | |\n|---|" + strings.Repeat("---:|", len(names)))
	if row.base != "" {
		b.WriteString("---:|")
	}
	b.WriteString("---|---|\n")
	return names
}

func (r *report) line(b *strings.Builder, names []string, row row) {
	fmt.Fprintf(b, "| %s |", row.what)
	for _, n := range names {
		if len(row.values[n]) == 0 {
			b.WriteString(" – |")
			continue
		}
		fmt.Fprintf(b, " %.4g %s |", median(row.values[n]), row.unit)
	}
	if ratio, ok := row.ratio(); ok {
		fmt.Fprintf(b, " %.2f |", ratio)
	} else if row.base != "" {
		b.WriteString(" – |")
	}
	if row.target == (target{}) {
		b.WriteString(" – | |\n")
		return
	}
	unit, verdict := row.unit, "met"
	if row.target.ratio {
		unit = "of " + row.base
	}
	if !row.met() {
		verdict = "**missed**"
		r.missed = append(r.missed, row.what)
	}
	fmt.Fprintf(b, " ≤ %g %s | %s |\n", row.target.bound, unit, verdict)
}

// account compares the calls made with the calls that Limen recorded.
func (r *report) account(ctx context.Context, l *lab) (err error) {
	for _, p := range l.proxies {
		if p.name == nameLimen {
			r.made = p.calls.Load()
		}
	}
	r.recorded, err = l.limen.recordedCalls(ctx)
	return err
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", r.head)
	for _, s := range r.sections {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintf(w, "## Accounting\n\n%d calls were made to Limen and %d are recorded", r.made, r.recorded)
	if r.made == r.recorded {
		fmt.Fprintln(w, ".")
	} else {
		fmt.Fprintln(w, ": **the accounts are wrong**.")
	}
	if len(r.missed) > 0 {
		fmt.Fprintf(w, "\nMissed: %s.\n", strings.Join(r.missed, "; "))
	}
}

func (r *report) write(path string) error {
	var page bytes.Buffer
	page.WriteString("# Performance\n")
	r.print(&page)
	return os.WriteFile(path, page.Bytes(), 0o644)
}
