package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/limen-gateway/limen/internal/probe"
)

// report shows results as they come, or all at the end as JSON.
type report struct {
	stdout, stderr io.Writer
	json           bool
	width          int  // of the checks' names
	live           bool // stderr is a terminal: say what is being checked
	client         *probe.Client
	found          probe.Found
	results        []probe.Result
}

// newReport returns a report to the streams of e.
func newReport(e *env, client *probe.Client) report {
	r := report{stdout: e.stdout, stderr: e.stderr, json: e.json, width: 26, client: client}
	if client != nil {
		for _, s := range client.Steps {
			r.width = max(r.width, utf8.RuneCountInString(s.Name))
		}
	}
	file, ok := e.stderr.(*os.File)
	r.live = ok && !e.json && term.IsTerminal(int(file.Fd()))
	return r
}

// begin says what is being checked, until that is done.
func (r *report) begin(check string) {
	if r.live {
		fmt.Fprintf(r.stderr, "\r\x1b[K…       %s", check)
	}
}

var marks = map[string]string{probe.Pass: "ok", probe.Fail: "FAIL", probe.Absent: "absent", probe.Skip: "skip"}

func (r *report) done(result probe.Result) {
	r.results = append(r.results, result)
	if r.json {
		return
	}
	if r.live {
		io.WriteString(r.stderr, "\r\x1b[K")
	}
	r.line(marks[result.Status], result.Check, result.Detail)
	if result.Change != "" {
		r.line("", "  to change", result.Change)
	}
	if len(result.Clients) > 0 && !probe.Everyone(result.Clients) {
		concern := "  who uses it"
		if result.Status == probe.Fail {
			concern = "  who breaks"
		}
		r.line("", concern, strings.Join(result.Clients, ", "))
	}
}

func (r *report) line(mark, name, text string) {
	fmt.Fprintln(r.stdout, strings.TrimRight(fmt.Sprintf("%-6s  %-*s %s", mark, r.width, name, text), " "))
}

// count counts the results of a status.
func (r *report) count(status string) (n int) {
	for _, result := range r.results {
		if result.Status == status {
			n++
		}
	}
	return n
}

// diagnosis is what --json prints.
type diagnosis struct {
	OK      bool           `json:"ok"`
	URL     string         `json:"url"`
	Model   string         `json:"model"`
	Client  string         `json:"client,omitempty"`
	Passed  int            `json:"passed"`
	Failed  int            `json:"failed"`
	Absent  int            `json:"absent"`
	Skipped int            `json:"skipped"`
	Checks  []probe.Result `json:"checks"`
}

// finish prints the sum and decides on the exit code.
func (r *report) finish() error {
	failed := r.count(probe.Fail)
	if r.json {
		d := diagnosis{
			OK: failed == 0, URL: r.found.Base, Model: r.found.Model,
			Passed: r.count(probe.Pass), Failed: failed, Absent: r.count(probe.Absent), Skipped: r.count(probe.Skip), Checks: r.results,
		}
		if r.client != nil {
			d.Client = r.client.Name
		}
		if err := writeJSON(r.stdout, d); err != nil {
			return err
		}
	} else {
		r.sum(failed)
	}
	if failed > 0 {
		return &exitError{code: exitFailure, silent: r.json, err: fmt.Errorf("%d of %d checks failed", failed, len(r.results))}
	}
	return nil
}

func (r *report) sum(failed int) {
	if r.client != nil {
		fmt.Fprintf(r.stdout, "\nThe requests of %s: %s, texts and tools shortened.\n", r.client.Title, r.client.Known)
		if r.client.Note != "" {
			fmt.Fprintln(r.stdout, r.client.Note)
		}
	}
	switch absent := r.count(probe.Absent); {
	case failed > 0:
	case absent > 0:
		fmt.Fprintf(r.stdout, "\nNothing is wrong. What is absent (%d) matters to those who use it.\n", absent)
	default:
		io.WriteString(r.stdout, "\nAll is well.\n")
	}
}
