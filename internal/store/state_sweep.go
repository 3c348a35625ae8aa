package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Deleting goes in two steps. The first deletes responses or conversations and
// marks the threads that they stood on as untidy. The second looks what of an
// untidy thread is still needed, and deletes the rest, a bounded number of rows
// at a time. A crash in between leaves the mark, and the next sweep goes on.

// rowsPerTx bounds the rows that one transaction deletes.
const rowsPerTx = 500

// threadsPerTx bounds the threads that one transaction tidies: each costs a few
// statements, also when there is nothing to delete.
const threadsPerTx = 50

// name is what stands for a row in its table.
type name struct{ owner, id string }

func byName(a, b name) int {
	return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.id, b.id))
}

// removed is what a deletion took away.
type removed struct {
	rows  int
	bytes int64 // of bodies
}

// Sweep deletes responses and conversations whose time is over, and what only
// they needed. While the bodies of all that is left are over maxBytes (0 is no
// limit), it goes on with the oldest, whoever owns them: responses by their
// creation, conversations by when something was last added. Runs that go on
// and what a provider keeps stay then. It returns how many responses and
// conversations it deleted.
func (s *Store) Sweep(ctx context.Context, now time.Time, maxBytes int64) (deleted int, err error) {
	for {
		list, err := s.names(ctx, "SELECT owner, id FROM responses WHERE expires_ms > 0 AND expires_ms <= $1 ORDER BY expires_ms LIMIT $2", now.UnixMilli(), rowsPerTx)
		if err != nil {
			return deleted, err
		}
		if len(list) == 0 {
			break
		}
		gone, err := s.dropResponses(ctx, list)
		deleted += gone.count
		if err != nil {
			return deleted, err
		}
	}
	for {
		list, err := s.names(ctx, "SELECT owner, id FROM conversations WHERE expires_ms > 0 AND expires_ms <= $1 ORDER BY expires_ms LIMIT $2", now.UnixMilli(), rowsPerTx/2)
		if err != nil {
			return deleted, err
		}
		if len(list) == 0 {
			break
		}
		n, err := s.dropConversations(ctx, list)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	if _, err := s.tidyAll(ctx); err != nil || maxBytes <= 0 {
		return deleted, err
	}
	n, err := s.evict(ctx, maxBytes)
	return deleted + n, err
}

// evict deletes the oldest responses and conversations until all bodies are
// within maxBytes.
func (s *Store) evict(ctx context.Context, maxBytes int64) (deleted int, err error) {
	var total int64
	row := s.read.QueryRowContext(ctx, "SELECT CAST(COALESCE((SELECT SUM(bytes) FROM threads), 0) + COALESCE((SELECT SUM(bytes) FROM responses), 0) AS BIGINT)")
	if err := scanOne(row, &total); err != nil {
		return 0, err
	}
	// What a deletion frees is known after it, so that the steps begin small.
	for n := 1; total > maxBytes; n = min(2*n, rowsPerTx/2) {
		responses, conversations, err := s.oldest(ctx, n)
		if err != nil || len(responses)+len(conversations) == 0 {
			return deleted, err
		}
		gone, err := s.dropResponses(ctx, responses)
		deleted += gone.count
		if err != nil {
			return deleted, err
		}
		more, err := s.dropConversations(ctx, conversations)
		deleted += more
		if err != nil {
			return deleted, err
		}
		freed, err := s.tidyAll(ctx)
		if err != nil {
			return deleted, err
		}
		total -= gone.bytes + freed
	}
	return deleted, nil
}

// oldest returns the oldest responses and conversations, n together.
func (s *Store) oldest(ctx context.Context, n int) (responses, conversations []name, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT named, owner, id FROM (
		SELECT * FROM (SELECT FALSE AS named, owner, id, created_ms AS made_ms FROM responses WHERE provider = '' AND NOT (`+running+`) ORDER BY created_ms LIMIT $1) AS old_responses
		UNION ALL
		SELECT * FROM (SELECT TRUE AS named, owner, id, touched_ms AS made_ms FROM conversations ORDER BY touched_ms LIMIT $1) AS old_conversations
		) AS old ORDER BY made_ms LIMIT $1`, n)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			named bool
			of    name
		)
		if err := rows.Scan(&named, &of.owner, &of.id); err != nil {
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		if named {
			conversations = append(conversations, of)
		} else {
			responses = append(responses, of)
		}
	}
	return responses, conversations, rows.Err()
}

// names reads a query for owner and id.
func (s *Store) names(ctx context.Context, query string, args ...any) ([]name, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []name
	for rows.Next() {
		var n name
		if err := rows.Scan(&n.owner, &n.id); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		list = append(list, n)
	}
	return list, rows.Err()
}

// dropped is what is gone of responses.
type dropped struct {
	count   int    // responses deleted
	bytes   int64  // of their bodies and events
	threads []name // that they stood on
	done    int    // how many of the list are looked after
}

// dropResponses deletes responses and their events, and marks their threads.
// Those that are not there are passed over.
func (s *Store) dropResponses(ctx context.Context, list []name) (all dropped, err error) {
	slices.SortFunc(list, byName)
	for len(list) > 0 {
		var part dropped
		err := s.inTx(ctx, func(tx *sql.Tx) (err error) {
			part, err = dropSome(ctx, tx, list)
			return err
		})
		if err != nil {
			return all, err
		}
		all.count += part.count
		all.bytes += part.bytes
		all.threads = append(all.threads, part.threads...)
		list = list[part.done:]
	}
	return all, nil
}

// dropSome deletes the first responses of a list, as many as one transaction
// may.
func dropSome(ctx context.Context, tx *sql.Tx, list []name) (gone dropped, err error) {
	budget := rowsPerTx
	for _, r := range list {
		n, err := affected(ctx, tx, `DELETE FROM response_events WHERE owner = $1 AND response = $2
			AND first IN (SELECT first FROM response_events WHERE owner = $1 AND response = $2 ORDER BY first LIMIT $3)`, r.owner, r.id, budget)
		if err != nil {
			return gone, err
		}
		budget -= int(n)
		if budget <= 0 {
			break // there may be more of them
		}
		if err := dropOne(ctx, tx, r, &gone); err != nil {
			return gone, err
		}
		gone.done++
		if budget -= 2; budget <= 0 { // its row, and that of its thread
			break
		}
	}
	slices.SortFunc(gone.threads, byName)
	gone.threads = slices.Compact(gone.threads)
	return gone, loosen(ctx, tx, gone.threads)
}

func dropOne(ctx context.Context, tx *sql.Tx, r name, gone *dropped) error {
	var (
		thread string
		bytes  int64
	)
	row := tx.QueryRowContext(ctx, "DELETE FROM responses WHERE owner = $1 AND id = $2 RETURNING thread, bytes", r.owner, r.id)
	err := scanOne(row, &thread, &bytes)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	gone.count++
	gone.bytes += bytes
	if thread != "" {
		gone.threads = append(gone.threads, name{r.owner, thread})
	}
	// Events that came before the row was locked.
	_, err = affected(ctx, tx, "DELETE FROM response_events WHERE owner = $1 AND response = $2", r.owner, r.id)
	return err
}

// dropConversations deletes conversations and marks their threads. It returns
// how many there were.
func (s *Store) dropConversations(ctx context.Context, list []name) (n int, err error) {
	slices.SortFunc(list, byName)
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		for _, c := range list {
			one, err := affected(ctx, tx, "DELETE FROM conversations WHERE owner = $1 AND id = $2", c.owner, c.id)
			if err != nil {
				return err
			}
			n += int(one)
		}
		return loosen(ctx, tx, list)
	})
	return n, err
}

// loosen marks threads as untidy, in the order of the list, which is sorted.
func loosen(ctx context.Context, tx *sql.Tx, threads []name) error {
	for _, t := range threads {
		if _, err := affected(ctx, tx, "UPDATE threads SET untidy = TRUE WHERE owner = $1 AND id = $2", t.owner, t.id); err != nil {
			return err
		}
	}
	return nil
}

// thread is a row of threads, as far as tidying needs it.
type thread struct {
	name
	base               string
	baseLength, length int64
}

// tidyAll tidies all untidy threads, and returns how many bytes that freed.
func (s *Store) tidyAll(ctx context.Context) (freed int64, err error) {
	for {
		list, err := s.untidy(ctx)
		if err != nil || len(list) == 0 {
			return freed, err
		}
		n, err := s.tidy(ctx, list)
		freed += n
		if err != nil {
			return freed, err
		}
	}
}

func (s *Store) untidy(ctx context.Context) ([]thread, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT owner, id, base FROM threads WHERE untidy LIMIT $1", threadsPerTx)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []thread
	for rows.Next() {
		var t thread
		if err := rows.Scan(&t.owner, &t.id, &t.base); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

// tidyDown tidies a thread, and, each time that one goes, the one below it.
func (s *Store) tidyDown(ctx context.Context, at name) error {
	base := ""
	for {
		t := thread{name: at}
		var untidy bool
		err := scanOne(s.read.QueryRowContext(ctx, "SELECT base, untidy FROM threads WHERE owner = $1 AND id = $2", at.owner, at.id), &t.base, &untidy)
		switch {
		case errors.Is(err, ErrNotFound) && base != "":
			at.id, base = base, ""
			continue
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil || !untidy:
			return err
		}
		if _, err := s.tidy(ctx, []thread{t}); err != nil {
			return err
		}
		base = t.base
	}
}

// tidy deletes what nothing needs of threads, as much as one transaction may.
// Threads that it did not come to an end with are still untidy.
func (s *Store) tidy(ctx context.Context, list []thread) (freed int64, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		locked, err := lockThreads(ctx, tx, list)
		if err != nil {
			return err
		}
		budget := rowsPerTx
		for _, t := range list {
			t, ok := locked[t.name]
			if !ok {
				continue
			}
			gone, err := tidyThread(ctx, tx, t, budget)
			if err != nil {
				return err
			}
			freed += gone.bytes
			if budget -= gone.rows; budget <= 0 {
				return nil
			}
		}
		return nil
	})
	return freed, err
}

// lockThreads locks threads and those right below them, in order, and reads
// them. Those that are gone are left out.
func lockThreads(ctx context.Context, tx *sql.Tx, list []thread) (map[name]thread, error) {
	var names []name
	for _, t := range list {
		names = append(names, t.name)
		if t.base != "" {
			names = append(names, name{t.owner, t.base})
		}
	}
	slices.SortFunc(names, byName)
	locked := map[name]thread{}
	for _, n := range slices.Compact(names) {
		t := thread{name: n}
		row := tx.QueryRowContext(ctx, "UPDATE threads SET untidy = untidy WHERE owner = $1 AND id = $2 RETURNING base, base_length, length", n.owner, n.id)
		err := scanOne(row, &t.base, &t.baseLength, &t.length)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		locked[n] = t
	}
	return locked, nil
}

// tidyThread deletes at most budget items that nothing needs of a locked
// thread: those after the last that a response or a fork needs. A thread that
// nothing needs goes when they are all gone, and the one below it is to be
// tidied next.
func tidyThread(ctx context.Context, tx *sql.Tx, t thread, budget int) (removed, error) {
	var (
		named            bool
		responses, forks sql.NullInt64
	)
	row := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM conversations WHERE owner = $1 AND id = $2),
		(SELECT MAX(length) FROM responses WHERE owner = $1 AND thread = $2),
		(SELECT MAX(base_length) FROM threads WHERE owner = $1 AND base = $2)`, t.owner, t.id)
	if err := scanOne(row, &named, &responses, &forks); err != nil {
		return removed{}, err
	}
	keep := max(t.baseLength, responses.Int64, forks.Int64)
	if named {
		keep = t.length
	}
	gone, err := deleteReturning(ctx, tx, `DELETE FROM items WHERE owner = $1 AND thread = $2
		AND seq IN (SELECT seq FROM items WHERE owner = $1 AND thread = $2 AND seq > $3 ORDER BY seq LIMIT $4) RETURNING LENGTH(body)`, t.owner, t.id, keep, budget)
	if err != nil {
		return removed{}, err
	}
	more := gone.rows == budget
	if more || named || responses.Valid || forks.Valid {
		// A thread whose end is cut takes no more items: a number never stands
		// for two, and who saw the end that is gone cannot go on from it.
		_, err := affected(ctx, tx, "UPDATE threads SET length = $1, closed = closed OR $2, untidy = $3, bytes = bytes - $4 WHERE owner = $5 AND id = $6",
			keep, keep < t.length, more, gone.bytes, t.owner, t.id)
		return gone, err
	}
	if _, err := affected(ctx, tx, "DELETE FROM threads WHERE owner = $1 AND id = $2", t.owner, t.id); err != nil {
		return removed{}, err
	}
	if t.base == "" {
		return gone, nil
	}
	return gone, loosen(ctx, tx, []name{{t.owner, t.base}})
}

// deleteReturning runs a deletion that returns the sizes of bodies.
func deleteReturning(ctx context.Context, tx *sql.Tx, query string, args ...any) (removed, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return removed{}, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var gone removed
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return removed{}, fmt.Errorf("store: %w", err)
		}
		gone.rows++
		gone.bytes += n
	}
	return gone, rows.Err()
}
