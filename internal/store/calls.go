package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// AddCalls stores records in one transaction, books what they charge, and adds
// them to the sums of usage. A record that is there already stays as it is, and
// counts no further: the journal may be read again after a crash.
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
		if err := s.sumUp(ctx, conn, tx, added); err != nil {
			return err
		}
		used := map[string]int64{}
		for _, c := range added {
			used[c.KeyID] = max(used[c.KeyID], c.Started.UnixMilli())
		}
		for _, id := range slices.Sorted(maps.Keys(used)) { // in one order, so that no two gateways wait for each other
			if _, err := tx.ExecContext(ctx, "UPDATE keys SET last_used_ms = $1 WHERE id = $2 AND last_used_ms < $1", used[id], id); err != nil {
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
			c.ID, c.KeyID, c.Operation, indexable(c.Model), indexable(c.Provider), indexable(c.UpstreamModel),
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

// maxIndexed bounds a name that is part of an index, for which Postgres has
// 2,704 bytes in all. The gateway's own names are shorter.
const maxIndexed = 400

// indexable is a name as it can be stored and found by an index.
func indexable(name string) string {
	name = storable(name)
	if len(name) <= maxIndexed {
		return name
	}
	return strings.ToValidUTF8(name[:maxIndexed], "")
}

// Filter chooses calls; zero members choose all.
type Filter struct {
	Since, Until time.Time // by start
	KeyID        string
	Teams        []string // IDs
	Model        string
	Provider     string
	Tag          string // "name=value", or a name with whatever value
}

// CallFilter chooses records; zero members choose all.
type CallFilter struct {
	Filter
	Status  int
	Failed  bool
	MinCost money.Amount
}

// where is the condition, for records after an ID and before another; "" is no
// bound.
func (f *CallFilter) where(after, before string) *terms {
	var t terms
	// The id begins with the time, so that it is the index for ranges: of two
	// bounds on one side, SQLite would use the first and search up to the other.
	switch since := idPrefix(f.Since); {
	case after != "" && (f.Since.IsZero() || after >= since):
		t.add("id > $%d", after)
	case !f.Since.IsZero():
		t.add("id >= $%d", since)
	}
	switch until := idPrefix(f.Until); {
	case before != "" && (f.Until.IsZero() || before <= until):
		t.add("id < $%d", before)
	case !f.Until.IsZero():
		t.add("id < $%d", until)
	}
	// An operator keeps a column from its index, where another one is the better:
	// that of calls that failed has their status, that by key the model.
	key, model := "key_id", "model"
	switch {
	case f.Status >= 400:
		key, model = "key_id || ''", "model || ''"
	case f.KeyID != "":
		model = "model || ''"
	}
	t.equal(key, f.KeyID)
	t.equal(model, indexable(f.Model))
	t.among("team", f.Teams)
	t.equal("provider", f.Provider)
	if f.Tag != "" {
		t.add("REPLACE('\n' || tags || '\n', $%d, '') <> '\n' || tags || '\n'", "\n"+tagPart(f.Tag))
	}
	if f.Failed || f.Status >= 400 {
		t.list = append(t.list, "error <> ''")
	}
	if f.Status != 0 {
		t.add("status = $%d", f.Status)
	}
	if f.MinCost != 0 {
		t.add("cost >= $%d", int64(f.MinCost))
	}
	return &t
}

// tagPart is how a tag that is looked for stands in a line of Call.Tags.
func tagPart(tag string) string {
	if strings.Contains(tag, "=") {
		return tag + "\n"
	}
	return tag + "="
}

// terms are conditions that hold together, and their arguments.
type terms struct {
	list []string
	args []any
}

// add adds a condition with one argument, whose number stands for %d.
func (t *terms) add(term string, arg any) {
	t.args = append(t.args, arg)
	t.list = append(t.list, fmt.Sprintf(term, len(t.args)))
}

// equal adds that a column has a value, unless that is "".
func (t *terms) equal(column, value string) {
	if value != "" {
		t.add(column+" = $%d", value)
	}
}

// among adds that a column has one of some values, unless there are none.
func (t *terms) among(column string, values []string) {
	if len(values) == 0 {
		return
	}
	places := make([]string, len(values))
	for i, value := range values {
		t.args = append(t.args, value)
		places[i] = fmt.Sprintf("$%d", len(t.args))
	}
	t.list = append(t.list, column+" IN ("+strings.Join(places, ", ")+")")
}

// where is the clause; "" without conditions.
func (t *terms) where() string {
	if len(t.list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(t.list, " AND ")
}

// idTime is how many digits at the beginning of an ID are its time.
const idTime = 12

// idPrefix is the beginning of all IDs made at or after a time.
func idPrefix(t time.Time) string { return fmt.Sprintf("%012x", t.UnixMilli()) }

// Calls returns the newest records that match, at most limit, newest first;
// before is the ID to go on from ("" for the newest).
func (s *Store) Calls(ctx context.Context, filter CallFilter, before string, limit int) ([]Call, error) {
	var calls []Call
	for part, err := range s.parts(ctx, filter, before) {
		if err != nil {
			return nil, err
		}
		page, err := s.queryCalls(ctx, part.where("", before), "DESC", limit-len(calls))
		if err != nil {
			return nil, err
		}
		if calls = append(calls, page...); len(calls) == limit {
			break
		}
	}
	return calls, nil
}

// callsPerPage is how many records EachCall has in memory.
const callsPerPage = 1000

// EachCall gives do all records that match, oldest first, and ends with its
// error. They are read in pages, so that no long reading keeps the database
// from tidying up.
func (s *Store) EachCall(ctx context.Context, filter CallFilter, do func(*Call) error) error {
	for after := ""; ; {
		page, err := s.queryCalls(ctx, filter.where(after, ""), "ASC", callsPerPage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := do(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < callsPerPage {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// queryCalls reads one page.
func (s *Store) queryCalls(ctx context.Context, t *terms, order string, limit int) ([]Call, error) {
	query := fmt.Sprintf("SELECT %s FROM calls%s ORDER BY id %s LIMIT $%d", callColumns, t.where(), order, len(t.args)+1)
	rows, err := s.read.QueryContext(ctx, query, append(t.args, limit)...)
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
