package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // whose tables are filled
)

// The month of which there are records, the keys that made the calls, and how many
// models each of them calls. Some keys make far more calls than others.
const (
	recordedCalls = 10_000_000
	recordedDays  = 30
	callingKeys   = 200
	modelsOfKey   = 3
	monthBegins   = "2026-10-01"
	monthEnds     = "2026-10-31"
)

// measureUsage asks about records of a month, which are written straight into the
// database. What is measured is the whole command, its start with it.
func measureUsage(ctx context.Context, l *lab) (rows []row, err error) {
	n := recordedCalls
	if l.plan.quick {
		n /= 10
	}
	own := *l.limen
	own.data = filepath.Join(l.dir, "usage")
	defer func() { err = errors.Join(err, os.RemoveAll(own.data)) }()
	var key struct {
		ID string `json:"id"`
	}
	if err := own.ask(ctx, &key, "keys", "create", "busy", "--json", "--data", own.data); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := makeRecords(ctx, filepath.Join(own.data, "limen.db"), n, key.ID); err != nil {
		return nil, err
	}
	fmt.Printf("  %d records were made in %v\n", n, time.Since(start).Round(time.Second))
	size, err := own.stored()
	if err != nil {
		return nil, err
	}
	space := pair(nameLimen, "", "a record in limen.db, with its part of the sums", "bytes", target{})
	space.note(0, nameLimen, float64(size)/float64(n))

	month := []string{"usage", "--since", monthBegins, "--until", monthEnds}
	asked := fmt.Sprintf(" of %d million records", n/1_000_000)
	rows = []row{space}
	for _, q := range []struct {
		what string
		args []string
	}{
		{"usage of a month by day,", append(month, "--by", "day")},
		{"usage of a month by model,", append(month, "--by", "model")},
		{"usage of a month by key,", append(month, "--by", "key")},
		{"usage of 30 days by key and model,", []string{"usage", "--since", monthBegins + "T05:00:00Z", "--by", "key,model"}},
		{"the newest 100 calls,", []string{"calls", "--limit", "100"}},
		{"the newest 100 of a key,", []string{"calls", "--limit", "100", "--key", "busy"}},
		{"the newest 100 of a model,", []string{"calls", "--limit", "100", "--model", "model-3"}},
		{"the newest 100 of a key and a model,", []string{"calls", "--limit", "100", "--key", "busy", "--model", "model-1"}},
		{"of a key and a model that it never calls,", []string{"calls", "--limit", "100", "--key", "busy", "--model", "model-9"}},
		{"the newest 100 that failed, of a key,", []string{"calls", "--limit", "100", "--key", "busy", "--failed"}},
		{"the newest 100 with a status,", []string{"calls", "--limit", "100", "--status", "502"}},
		{"of a status that none has,", []string{"calls", "--limit", "100", "--status", "429"}},
		{"the newest 100 of a provider,", []string{"calls", "--limit", "100", "--provider", "provider-3"}},
		{"of a provider that served none,", []string{"calls", "--limit", "100", "--provider", "nobody"}},
		{"the newest 100 that cost most,", []string{"calls", "--limit", "100", "--cost-min", "0.0199999"}},
		{"of a cost that none has,", []string{"calls", "--limit", "100", "--cost-min", "1"}},
		{"of a tag that none has,", []string{"calls", "--limit", "100", "--tag", "project=x"}},
	} {
		r := pair(nameLimen, "", q.what+asked, "ms", atMost(1000))
		rows = append(rows, r)
		for round := range min(3, l.plan.rounds()) {
			took, _, err := own.spend(ctx, io.Discard, q.args...)
			if err != nil {
				return nil, err
			}
			r.note(round, nameLimen, float64(took.Microseconds())/1000)
		}
	}
	more, err := measureExport(ctx, &own)
	return append(rows, more...), err
}

// measureExport writes the records of three days.
func measureExport(ctx context.Context, own *limen) ([]row, error) {
	each := pair(nameLimen, "", "a record in an export", "µs", target{})
	memory := pair(nameLimen, "", "memory of an export of three days", "MB", atMost(100))
	var lines counter
	took, peak, err := own.spend(ctx, &lines, "calls", "export", "--since", "2026-10-10", "--until", "2026-10-13")
	if err != nil {
		return nil, err
	}
	each.note(0, nameLimen, float64(took.Microseconds())/float64(lines))
	memory.note(0, nameLimen, float64(peak)/1000)
	return []row{each, memory}, nil
}

// counter counts lines.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			*c++
		}
	}
	return len(p), nil
}

// spend runs a command and returns how long it took, and the most memory that it
// had, in KB.
func (l *limen) spend(ctx context.Context, out io.Writer, args ...string) (took time.Duration, peak int64, err error) {
	c := exec.CommandContext(ctx, l.path, append(args, "--data", l.data)...)
	c.Stdout, c.Stderr = out, os.Stderr
	start := time.Now()
	if err := c.Run(); err != nil {
		return 0, 0, fmt.Errorf("limen %v: %w", args, err)
	}
	took = time.Since(start)
	if used, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = used.Maxrss
	}
	return took, peak, nil
}

// makeRecords has a process of its own make the records: the memory that this one
// has would count as that of those that it starts.
func makeRecords(ctx context.Context, path string, n int, busy string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, self, "records", path, strconv.Itoa(n), busy).CombinedOutput(); err != nil {
		return fmt.Errorf("making records: %w\n%s", err, out)
	}
	return nil
}

// fillRecords makes records of a month and their sums. The indexes are made when
// all are there, which takes less.
func fillRecords(ctx context.Context, path, count, busy string) (err error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-200000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	begin, err := time.Parse(time.DateOnly, monthBegins)
	if err != nil {
		return err
	}
	for _, statement := range []string{"DROP INDEX calls_by_key", "DROP INDEX calls_by_model", "DROP INDEX calls_failed"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	const atOnce = 200_000
	for at := 0; at < n; at += atOnce {
		// r and q are spread like chance; a key's share grows with its square.
		if _, err := db.ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2),
				spread AS (SELECT i, (i * 2654435761) % 1000003 AS r, (i * 40503) % 1000033 AS q FROM n),
				made AS (SELECT i, r, q, $3 + i * $4 / $5 AS ms, (r / 1000) * (r / 1000) * $6 / 1000000 AS k FROM spread),
				calling AS (SELECT *, (k * 7 + q % $7) % 20 AS m FROM made)
			INSERT INTO calls (id, key_id, operation, model, provider, upstream_model, stream, status, error, started_ms, first_byte_us, total_us,
				bytes_in, bytes_out, input, cache_read, cache_write, output, reasoning, estimated, notes, account, priced, cost, charge)
			SELECT printf('%012x7%019x', ms, r * 1000000 + q), CASE k WHEN 0 THEN $8 ELSE printf('key%09d', k) END, 'chat', 'model-' || m, 'provider-' || (m % 5), 'upstream-' || m,
				i % 2, CASE WHEN r % 100 = 0 THEN 502 ELSE 200 END, CASE WHEN r % 100 = 0 THEN 'upstream' ELSE '' END, ms, 200000 + r % 300000, 1000000 + q % 5000000,
				2000 + r % 8000, 500 + q % 4000, r % 3000, q % 9000, 0, q % 800, r % 200, FALSE, '', 'provider-' || (m % 5), TRUE, r * 20, r * 20 FROM calling`,
			at, min(at+atOnce, n), begin.UnixMilli(), int64(recordedDays*24*time.Hour/time.Millisecond), n, callingKeys, modelsOfKey, busy); err != nil {
			return err
		}
	}
	const sums = "SUM(calls), SUM(failed), SUM(estimated), SUM(unpriced), SUM(input), SUM(cache_read), SUM(cache_write), 0, 0, SUM(output), SUM(reasoning), 0, 0, 0," +
		" SUM(cost), SUM(charge), SUM(bytes_in), SUM(bytes_out), SUM(total_us), SUM(begun), SUM(first_byte_us)"
	for _, statement := range []string{
		"CREATE INDEX calls_by_key ON calls (key_id, id, model)", "CREATE INDEX calls_by_model ON calls (model, id)", "CREATE INDEX calls_failed ON calls (id, status) WHERE error <> ''",
		"INSERT INTO usage_hours SELECT begin_ms, '', key_id, '', model, provider, upstream_model, " + sums + `, MAX(cost) FROM (SELECT *, started_ms / 3600000 * 3600000 AS begin_ms,
			1 AS calls, error <> '' AS failed, NOT priced AS unpriced, 1 AS begun FROM calls) GROUP BY begin_ms, key_id, model, provider, upstream_model`,
		"INSERT INTO usage_days SELECT begin_ms / 86400000 * 86400000, tag, key_id, team, model, provider, upstream_model, " + sums + ", MAX(dearest) FROM usage_hours GROUP BY 1, 2, 3, 4, 5, 6, 7",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
