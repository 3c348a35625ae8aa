package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Threads are locked in one order, so that no two transactions wait for each
// other on Postgres: responses come first, then conversations, then threads,
// each kind sorted by owner and ID. Whoever is about to need a thread locks
// its row, and so does whoever looks whether anybody does; a row that is
// updated is locked.

// Item is one item of a thread.
type Item struct {
	ID      string // at most 1 KiB, or Postgres cannot index it
	Seq     int64  // its number in the thread, from 1; the store gives it
	Created time.Time
	Body    []byte // sealed
}

// itemsPerInsert bounds the size of a statement.
const itemsPerInsert = 100

// chain lists a thread and those below it, each with the last item that is
// seen of it. $1 is the last item wanted, $2 the owner, $3 the thread, $4 the
// item after which they are wanted.
const chain = `WITH RECURSIVE chain (thread, base, low, high) AS (
		SELECT id, base, base_length, CAST($1 AS BIGINT) FROM threads WHERE owner = $2 AND id = $3
		UNION ALL
		SELECT t.id, t.base, t.base_length, CASE WHEN chain.low < chain.high THEN chain.low ELSE chain.high END
		FROM chain JOIN threads t ON t.owner = $2 AND t.id = chain.base WHERE chain.low > $4)`

// Items returns the items of a thread with numbers above after, up to and
// with upTo, in order. Those that stand in threads below it are among them;
// deleted ones are not. It returns ErrNotFound when there is no such thread.
func (s *Store) Items(ctx context.Context, owner, thread string, after, upTo int64) ([]Item, error) {
	// One statement sees one state of the chain. It is sorted here, since an
	// engine would do it with the bodies.
	rows, err := s.read.QueryContext(ctx, chain+` SELECT i.id, i.seq, i.created_ms, i.body FROM chain
		LEFT JOIN items i ON i.owner = $2 AND i.thread = chain.thread AND i.seq > $4 AND i.seq <= chain.high`,
		upTo, owner, storable(thread), after)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var (
		items []Item
		found bool
	)
	for rows.Next() {
		found = true // a thread without items is a row of NULLs
		var (
			id           sql.NullString
			seq, created sql.NullInt64
			body         []byte
		)
		if err := rows.Scan(&id, &seq, &created, &body); err != nil {
			return nil, fmt.Errorf("store: item row: %w", err)
		}
		if seq.Valid {
			items = append(items, Item{ID: id.String, Seq: seq.Int64, Created: fromMS(created.Int64), Body: body})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !found {
		return nil, ErrNotFound
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Seq, b.Seq) })
	return items, nil
}

// ItemsByID returns the items of an owner that have one of the IDs, of
// whatever thread, in no order. Of several with one ID it returns the newest;
// IDs that there are not are left out.
func (s *Store) ItemsByID(ctx context.Context, owner string, ids []string) ([]Item, error) {
	var items []Item
	for part := range slices.Chunk(ids, rowsPerTx) {
		args := []any{owner}
		for _, id := range part {
			args = append(args, storable(id))
		}
		more, err := s.queryItems(ctx, `SELECT id, seq, created_ms, body FROM items WHERE owner = $1 AND id IN `+placeholders(2, len(part))+`
			AND NOT EXISTS (SELECT 1 FROM items n WHERE n.owner = items.owner AND n.id = items.id
				AND (n.created_ms, n.thread, n.seq) > (items.created_ms, items.thread, items.seq))`, args...)
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	return items, nil
}

// ListItems returns one page of a thread's items with numbers above after, up
// to and with upTo, and whether more come behind it. fromID is the item that
// the page comes after, in its direction; "" begins at the end. limit is at
// least 1. It returns ErrNotFound when there is no such thread, or when fromID
// is not among the items asked for.
func (s *Store) ListItems(ctx context.Context, owner, thread string, after, upTo int64, fromID string, descending bool, limit int) (items []Item, more bool, err error) {
	spans, err := s.spans(ctx, owner, thread, after, upTo)
	if err != nil {
		return nil, false, err
	}
	if fromID != "" {
		at, err := s.cursor(ctx, owner, spans, after, fromID, descending)
		if err != nil {
			return nil, false, err
		}
		if descending {
			upTo = at - 1
		} else {
			after = at
		}
	}
	query := "SELECT id, seq, created_ms, body FROM items WHERE owner = $1 AND thread = $2 AND seq > $3 AND seq <= $4 ORDER BY seq LIMIT $5"
	if descending {
		slices.Reverse(spans)
		query = "SELECT id, seq, created_ms, body FROM items WHERE owner = $1 AND thread = $2 AND seq > $3 AND seq <= $4 ORDER BY seq DESC LIMIT $5"
	}
	for _, p := range spans {
		missing := limit + 1 - len(items) // one more tells that there are more
		if missing == 0 {
			break
		}
		part, err := s.queryItems(ctx, query, owner, p.thread, after, min(p.high, upTo), missing)
		if err != nil {
			return nil, false, err
		}
		items = append(items, part...)
	}
	if len(items) > limit {
		return items[:limit], true, nil
	}
	return items, false, nil
}

// span is what a chain takes of one thread: the items that the thread has
// itself, up to and with high.
type span struct {
	thread    string
	low, high int64
}

// spans returns what the items (after, upTo] of a thread are made of, in
// order; ErrNotFound when there is no such thread.
func (s *Store) spans(ctx context.Context, owner, thread string, after, upTo int64) ([]span, error) {
	rows, err := s.read.QueryContext(ctx, chain+" SELECT thread, low, high FROM chain", upTo, owner, storable(thread), after)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var spans []span
	for rows.Next() {
		var p span
		if err := rows.Scan(&p.thread, &p.low, &p.high); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		spans = append(spans, p)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if len(spans) == 0 {
		return nil, ErrNotFound
	}
	spans = slices.DeleteFunc(spans, func(p span) bool { return p.high <= p.low })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.high, b.high) })
	return spans, nil
}

// cursor returns the number of the item that a page goes on from. Of several
// with its ID it is the one from which fewest are left: a client that pages
// comes to an end.
func (s *Store) cursor(ctx context.Context, owner string, spans []span, after int64, id string, descending bool) (int64, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT thread, seq FROM items WHERE owner = $1 AND id = $2", owner, storable(id))
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var at int64 // numbers begin at 1
	for rows.Next() {
		var (
			thread string
			seq    int64
		)
		if err := rows.Scan(&thread, &seq); err != nil {
			return 0, fmt.Errorf("store: %w", err)
		}
		seen := slices.ContainsFunc(spans, func(p span) bool { return p.thread == thread && seq > after && seq <= p.high })
		if seen && (at == 0 || descending == (seq < at)) {
			at = seq
		}
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	if at == 0 {
		return 0, ErrNotFound
	}
	return at, nil
}

func (s *Store) queryItems(ctx context.Context, query string, args ...any) ([]Item, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var items []Item
	for rows.Next() {
		var (
			i       Item
			created int64
		)
		if err := rows.Scan(&i.ID, &i.Seq, &created, &i.Body); err != nil {
			return nil, fmt.Errorf("store: item row: %w", err)
		}
		i.Created = fromMS(created)
		items = append(items, i)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return items, nil
}

// newThread makes a thread, or returns ErrConflict when there is one of that
// ID. Its items are not there yet.
func newThread(ctx context.Context, tx *sql.Tx, owner, id, base string, baseLength int64, closed bool, items []Item) error {
	n, err := affected(ctx, tx, `INSERT INTO threads (owner, id, base, base_length, length, closed, untidy, bytes)
		VALUES ($1, $2, $3, $4, $5, $6, FALSE, $7) ON CONFLICT DO NOTHING`, owner, id, base, baseLength, baseLength+int64(len(items)), closed, size(items))
	if err == nil && n == 0 {
		return ErrConflict
	}
	return err
}

// pin locks a thread that is about to be needed up to an item, and returns
// ErrNotFound when it does not reach so far.
func pin(ctx context.Context, tx *sql.Tx, owner, thread string, length int64) error {
	n, err := affected(ctx, tx, "UPDATE threads SET untidy = untidy WHERE owner = $1 AND id = $2 AND length >= $3", owner, thread, length)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// insertItems writes the rows of items that follow the item after.
func insertItems(ctx context.Context, tx *sql.Tx, owner, thread string, after int64, items []Item) error {
	for part := range slices.Chunk(items, itemsPerInsert) {
		var query strings.Builder
		query.WriteString("INSERT INTO items (owner, thread, seq, id, created_ms, body) VALUES ")
		args := []any{owner, thread}
		for i := range part {
			after++
			if i > 0 {
				query.WriteString(", ")
			}
			n := len(args)
			fmt.Fprintf(&query, "($1, $2, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4)
			args = append(args, after, storable(part[i].ID), toMS(part[i].Created), blob(part[i].Body))
		}
		if _, err := affected(ctx, tx, query.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// number gives items the numbers that follow after, and returns the last.
func number(items []Item, after int64) int64 {
	for i := range items {
		after++
		items[i].Seq = after
	}
	return after
}

// size is the number of bytes of items' bodies.
func size(items []Item) (n int64) {
	for i := range items {
		n += int64(len(items[i].Body))
	}
	return n
}

// executor is a database or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// affected runs a statement and counts the rows that it changed.
func affected(ctx context.Context, db executor, query string, args ...any) (int64, error) {
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return n, nil
}

// scanOne scans a row that may not be there: ErrNotFound.
func scanOne(row *sql.Row, targets ...any) error {
	err := row.Scan(targets...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// placeholders is a list of n placeholders from $first on, in parentheses.
func placeholders(first, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = "$" + strconv.Itoa(first+i)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// toMS writes a time as Unix ms, and the zero time as 0.
func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// blob is a body as columns take it: none is empty, not NULL.
func blob(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}
