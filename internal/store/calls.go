package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// Call is the record of one call, whatever way it ended. Nothing of prompts
// or answers is in it.
type Call struct {
	ID            string // UUIDv7 in hex; the request ID without its prefix
	KeyID         string
	Operation     string
	Model         string // as the client asked
	Provider      string
	UpstreamModel string
	Stream        bool
	Status        int    // HTTP status of the outcome, also when a stream failed after its 200
	Error         string // error code; "" when the call ended well
	Started       time.Time
	FirstByte     time.Duration // 0: there was none
	Total         time.Duration
	BytesIn       int64
	BytesOut      int64
	Usage         llm.Usage
	Notes         string // what was not said as it was written: "drop:seed,clamp:temperature"
	Account       string // the provider's credential that served it: "openai", or "openai#2" for the second of several
	Steps         string // what was considered before the answer, by EncodeSteps; "" when the first target answered and there was no other
	CacheMiss     string // why a read from the prompt cache, which was expected, did not come; "" when it did

	Team     string       // ID of the key's team; "" when it has none
	Priced   bool         // the cost is known
	Cost     money.Amount // what the vendors take
	Charge   money.Amount // what the budgets pay
	Tags     string       // name=value, one a line, in order; "" is none
	Balances string       // that the charge is booked to, by EncodeBalances; it is no column
}

// Step is one target that was considered for a call, or tried.
type Step struct {
	Target  string  `json:"target"`           // provider/upstream-model
	Account string  `json:"account"`          // of the provider
	Result  string  `json:"result"`           // why it was left out, how it failed, or "ok"
	Tried   bool    `json:"tried"`            // a request was sent, or was about to be
	AtMs    float64 `json:"at_ms"`            // since the call began
	TookMs  float64 `json:"took_ms,omitzero"` // until its answer began, or failed
}

const callColumns = "id, key_id, operation, model, provider, upstream_model, stream, status, error, started_ms, first_byte_us, total_us, bytes_in, bytes_out, input, cache_read, cache_write, output, reasoning, estimated, notes, account, steps, cache_miss, " +
	"team, cache_write_hour, audio_in, audio_out, image_out, searches, service, priced, cost, charge, tags"

// AddCalls stores records in one transaction and books what they charge. A
// record that is there already stays as it is, and is not booked again: the
// journal may be read again after a crash.
func (s *Store) AddCalls(ctx context.Context, calls []Call) error {
	return s.inConnTx(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		var added []*Call
		err := conn.Raw(func(driverConn any) (err error) {
			added, err = insertCalls(context.WithoutCancel(ctx), driverConn, calls)
			return err
		})
		if err != nil {
			return fmt.Errorf("store: calls: %w", err)
		}
		used := map[string]int64{}
		for _, c := range added {
			used[c.KeyID] = max(used[c.KeyID], c.Started.UnixMilli())
		}
		for id, at := range used {
			if _, err := tx.ExecContext(ctx, "UPDATE keys SET last_used_ms = $1 WHERE id = $2 AND last_used_ms < $1", at, id); err != nil {
				return fmt.Errorf("store: %w", err)
			}
		}
		return book(ctx, tx, added) // last: others wait for the balances until the end
	})
}

const insertCall = "INSERT INTO calls (" + callColumns + `)
	VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,
	$25,$26,$27,$28,$29,$30,$31,$32,$33,$34,$35) ON CONFLICT DO NOTHING`

// insertCalls speaks to the driver itself: there is a row for every call that
// the gateway serves, and database/sql would cost as much as the row. It
// returns those that were not there.
func insertCalls(ctx context.Context, driverConn any, calls []Call) (added []*Call, err error) {
	driverOf, ok := driverConn.(driver.ExecerContext)
	if !ok {
		return nil, errors.New("the driver cannot execute statements")
	}
	var row []driver.NamedValue
	for i := range calls {
		c, u := &calls[i], &calls[i].Usage
		row = row[:0]
		for k, value := range [...]driver.Value{
			c.ID, c.KeyID, c.Operation, storable(c.Model), storable(c.Provider), storable(c.UpstreamModel),
			c.Stream, int64(c.Status), c.Error, c.Started.UnixMilli(), c.FirstByte.Microseconds(), c.Total.Microseconds(), c.BytesIn, c.BytesOut,
			u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, u.Estimated, storable(c.Notes),
			storable(c.Account), storable(c.Steps), storable(c.CacheMiss),
			c.Team, u.HourWrite, u.AudioIn, u.AudioOut, u.ImageOut, u.Searches, u.Service.String(), c.Priced, int64(c.Cost), int64(c.Charge), storable(c.Tags),
		} {
			row = append(row, driver.NamedValue{Ordinal: k + 1, Value: value})
		}
		result, err := driverOf.ExecContext(ctx, insertCall, row)
		if err != nil {
			return nil, err
		}
		if n, err := result.RowsAffected(); err != nil {
			return nil, err
		} else if n > 0 {
			added = append(added, c)
		}
	}
	return added, nil
}

// storable takes out of a name what Postgres stores in no text: a name that a
// client made up must not stop the records of others.
func storable(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, "\x00") {
		return name
	}
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
}

// CallFilter chooses records; zero members choose all.
type CallFilter struct {
	Since, Until time.Time // by start
	KeyID        string
	Model        string
}

// where is the condition and its arguments, numbered from 1.
func (f CallFilter) where() (string, []any) {
	var (
		terms []string
		args  []any
	)
	add := func(term string, arg any) {
		args = append(args, arg)
		terms = append(terms, fmt.Sprintf(term, len(args)))
	}
	// The id begins with the time, so that it is the index for ranges.
	if !f.Since.IsZero() {
		add("id >= $%d", idPrefix(f.Since))
	}
	if !f.Until.IsZero() {
		add("id < $%d", idPrefix(f.Until))
	}
	if f.KeyID != "" {
		add("key_id = $%d", f.KeyID)
	}
	if f.Model != "" {
		add("model = $%d", f.Model)
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// idPrefix is the beginning of all IDs made at or after a time.
func idPrefix(t time.Time) string { return fmt.Sprintf("%012x", t.UnixMilli()) }

// Dimension is what usage is grouped by.
type Dimension string

// The dimensions of usage.
const (
	ByKey      Dimension = "key"
	ByModel    Dimension = "model"
	ByProvider Dimension = "provider"
	ByDay      Dimension = "day"
)

var dimensionColumns = map[Dimension]string{
	ByKey: "key_id", ByModel: "model", ByProvider: "provider",
	ByDay: "started_ms / 86400000",
}

// UsageRow is the sum of some calls.
type UsageRow struct {
	Group    []string // one value per dimension asked; days as 2006-01-02 (UTC)
	Calls    int64
	Failed   int64
	Usage    llm.Usage // Estimated is not set
	Estimate int64     // calls whose usage is an estimate
	BytesIn  int64
	BytesOut int64
}

// Usage sums up calls by dimensions, in the order of the groups.
func (s *Store) Usage(ctx context.Context, filter CallFilter, by []Dimension) ([]UsageRow, error) {
	columns := make([]string, len(by))
	for i, d := range by {
		column, ok := dimensionColumns[d]
		if !ok {
			return nil, fmt.Errorf("store: usage has no dimension %q", d)
		}
		columns[i] = column
	}
	group := strings.Join(columns, ", ")
	where, args := filter.where()
	query := "SELECT " + strings.Join(append(columns,
		"COUNT(*)", "CAST(COALESCE(SUM(CASE WHEN error <> '' THEN 1 ELSE 0 END), 0) AS BIGINT)",
		"CAST(COALESCE(SUM(input), 0) AS BIGINT)", "CAST(COALESCE(SUM(cache_read), 0) AS BIGINT)", "CAST(COALESCE(SUM(cache_write), 0) AS BIGINT)", "CAST(COALESCE(SUM(output), 0) AS BIGINT)", "CAST(COALESCE(SUM(reasoning), 0) AS BIGINT)",
		"CAST(COALESCE(SUM(CASE WHEN estimated THEN 1 ELSE 0 END), 0) AS BIGINT)", "CAST(COALESCE(SUM(bytes_in), 0) AS BIGINT)", "CAST(COALESCE(SUM(bytes_out), 0) AS BIGINT)"), ", ") +
		" FROM calls" + where
	if len(by) > 0 {
		query += " GROUP BY " + group + " ORDER BY " + group
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var result []UsageRow
	for rows.Next() {
		row, err := scanUsage(rows, by)
		if err != nil {
			return nil, err
		}
		result = append(result, row)
	}
	return result, rows.Err()
}

func scanUsage(rows *sql.Rows, by []Dimension) (UsageRow, error) {
	row := UsageRow{Group: make([]string, len(by))}
	targets := make([]any, 0, len(by)+10)
	for i := range by {
		targets = append(targets, &row.Group[i])
	}
	u := &row.Usage
	targets = append(targets, &row.Calls, &row.Failed, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &row.Estimate, &row.BytesIn, &row.BytesOut)
	if err := rows.Scan(targets...); err != nil {
		return UsageRow{}, fmt.Errorf("store: usage row: %w", err)
	}
	for i, d := range by {
		if d == ByDay {
			var day int64
			if _, err := fmt.Sscan(row.Group[i], &day); err != nil {
				return UsageRow{}, fmt.Errorf("store: day: %w", err)
			}
			row.Group[i] = time.UnixMilli(day * 86400000).UTC().Format(time.DateOnly)
		}
	}
	return row, nil
}

// Calls returns the newest records that match, at most limit, newest first;
// before is the ID to go on from ("" for the newest).
func (s *Store) Calls(ctx context.Context, filter CallFilter, before string, limit int) ([]Call, error) {
	where, args := filter.where()
	if before != "" {
		args = append(args, before)
		joint := " WHERE "
		if where != "" {
			joint = " AND "
		}
		where += fmt.Sprintf("%sid < $%d", joint, len(args))
	}
	args = append(args, limit)
	rows, err := s.read.QueryContext(ctx, "SELECT "+callColumns+" FROM calls"+where+fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var calls []Call
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, rows.Err()
}

// Call returns the record with an ID, or ErrNotFound.
func (s *Store) Call(ctx context.Context, id string) (Call, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+callColumns+" FROM calls WHERE id = $1", id)
	if err != nil {
		return Call{}, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return Call{}, fmt.Errorf("store: %w", err)
		}
		return Call{}, ErrNotFound
	}
	return scanCall(rows)
}

func scanCall(rows *sql.Rows) (Call, error) {
	var (
		c                         Call
		started, firstByte, total int64
		service                   string
	)
	u := &c.Usage
	err := rows.Scan(&c.ID, &c.KeyID, &c.Operation, &c.Model, &c.Provider, &c.UpstreamModel, &c.Stream, &c.Status, &c.Error,
		&started, &firstByte, &total, &c.BytesIn, &c.BytesOut, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Estimated, &c.Notes,
		&c.Account, &c.Steps, &c.CacheMiss,
		&c.Team, &u.HourWrite, &u.AudioIn, &u.AudioOut, &u.ImageOut, &u.Searches, &service, &c.Priced, &c.Cost, &c.Charge, &c.Tags)
	if err != nil {
		return Call{}, fmt.Errorf("store: call row: %w", err)
	}
	u.Service = llm.ServiceOf(service)
	c.Started = time.UnixMilli(started)
	c.FirstByte = time.Duration(firstByte) * time.Microsecond
	c.Total = time.Duration(total) * time.Microsecond
	return c, nil
}

// EncodeSteps is how steps are kept; nothing for none.
func EncodeSteps(steps []Step) string {
	if len(steps) == 0 {
		return ""
	}
	text, err := json.Marshal(steps)
	if err != nil {
		return "" // cannot be: they are texts and finite numbers
	}
	return string(text)
}

// DecodeSteps reads what EncodeSteps wrote.
func DecodeSteps(text string) (steps []Step) {
	json.Unmarshal([]byte(text), &steps)
	return steps
}

// IsDimension reports whether usage can be grouped by d.
func IsDimension(d Dimension) bool {
	_, ok := dimensionColumns[d]
	return ok
}
