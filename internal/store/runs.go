package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// RunnerGone is how long nothing is heard of a runner that is gone.
const RunnerGone = time.Minute

// runsAtOnce bounds how many stale runs are in memory.
const runsAtOnce = 50

// TouchRun says that a runner is at a background run. It returns ErrNotFound
// when the run is not the runner's any more, or has ended: it is to stop.
func (s *Store) TouchRun(ctx context.Context, owner, id, runner string, now time.Time) error {
	n, err := affected(ctx, s.write, "UPDATE responses SET touched_ms = $1 WHERE owner = $2 AND id = $3 AND runner = $4 AND "+running,
		now.UnixMilli(), owner, id, runner)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// StaleRuns returns background runs that have not been touched for a minute,
// those first that have not for longest, 50 at most.
func (s *Store) StaleRuns(ctx context.Context, now time.Time) ([]Response, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+responseColumns+" FROM responses WHERE runner <> '' AND touched_ms < $1 AND "+running+" ORDER BY touched_ms LIMIT $2",
		now.Add(-RunnerGone).UnixMilli(), runsAtOnce)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []Response
	for rows.Next() {
		r, err := scanResponse(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("store: response row: %w", err)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// MarkStale ends all runs whose runner is gone as failed, with the bodies that
// body makes, and returns how many there were.
func (s *Store) MarkStale(ctx context.Context, now time.Time, body func(Response) []byte) (int, error) {
	marked := 0
	for {
		list, err := s.StaleRuns(ctx, now)
		if err != nil || len(list) == 0 {
			return marked, err
		}
		for _, r := range list {
			text := body(r)
			// The runner may have come back meanwhile.
			n, err := affected(ctx, s.write, `UPDATE responses SET status = 'failed', runner = '', bytes = bytes - LENGTH(body) + CAST($1 AS BIGINT), body = $2
				WHERE owner = $3 AND id = $4 AND touched_ms < $5 AND `+running,
				len(text), blob(text), r.Owner, r.ID, now.Add(-RunnerGone).UnixMilli())
			if err != nil {
				return marked, err
			}
			marked += int(n)
		}
	}
}

// Events is a part of a background run's stream.
type Events struct {
	From int64  // number of its first event
	Body []byte // sealed
}

// AppendEvents stores a part of the stream of a response. from is the number of
// its first event, and above those stored before. It returns ErrNotFound when
// there is no such response.
func (s *Store) AppendEvents(ctx context.Context, owner, id string, from int64, body []byte) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		// The lock of the row keeps it from being deleted in between.
		n, err := affected(ctx, tx, "UPDATE responses SET bytes = bytes + $1 WHERE owner = $2 AND id = $3", len(body), owner, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrNotFound
		}
		_, err = affected(ctx, tx, "INSERT INTO response_events (owner, response, first, body) VALUES ($1, $2, $3, $4)", owner, id, from, blob(body))
		return err
	})
}

// Events returns the parts of a response's stream in order, from the one that
// has the event that follows after, if there is one: it may begin before it.
func (s *Store) Events(ctx context.Context, owner, id string, after int64) ([]Events, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT first, body FROM response_events WHERE owner = $1 AND response = $2
		AND first >= COALESCE((SELECT MAX(first) FROM response_events WHERE owner = $1 AND response = $2 AND first <= CAST($3 AS BIGINT) + 1), $3) ORDER BY first`,
		owner, storable(id), after)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []Events
	for rows.Next() {
		var e Events
		if err := rows.Scan(&e.From, &e.Body); err != nil {
			return nil, fmt.Errorf("store: event row: %w", err)
		}
		list = append(list, e)
	}
	return list, rows.Err()
}
