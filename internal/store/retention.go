package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// DropCalls deletes the oldest records of calls that began before a time, limit
// at most, and returns how many. What they add up to stays in the sums.
//
// The space that SQLite gets back serves for later rows; the file does not
// shrink. Postgres does the same, once it has tidied up.
func (s *Store) DropCalls(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := affected(ctx, s.write, "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE id < $1 ORDER BY id LIMIT $2)", idPrefix(before), limit)
	return int(n), err
}

// FullSince is a time after which the records of calls are within maxBytes, in
// whole hours; the zero time when all are. How much they take is an estimate:
// their number, which the sums know, times what a record takes on average of
// the oldest and the newest thousand.
func (s *Store) FullSince(ctx context.Context, maxBytes int64) (time.Time, error) {
	each, oldest, err := s.callSize(ctx)
	if err != nil || each == 0 {
		return time.Time{}, err
	}
	rows, err := s.read.QueryContext(ctx, "SELECT begin_ms, CAST(SUM(calls) AS BIGINT) FROM usage_hours WHERE begin_ms >= $1 AND tag = '' GROUP BY begin_ms ORDER BY begin_ms DESC", floor(oldest, hourMs))
	if err != nil {
		return time.Time{}, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	left := maxBytes / each
	for rows.Next() {
		var begin, n int64
		if err := rows.Scan(&begin, &n); err != nil {
			return time.Time{}, fmt.Errorf("store: %w", err)
		}
		if left -= n; left < 0 {
			return time.UnixMilli(begin + hourMs), nil
		}
	}
	return time.Time{}, rows.Err()
}

// callSize estimates what a record takes with its indexes, and tells when the
// oldest began. Numbers take six bytes or less; a row and its entries in
// indexes have heads of some bytes, and pages are not full.
func (s *Store) callSize(ctx context.Context) (bytes, oldest int64, err error) {
	const sample = "SELECT started_ms, 4 * LENGTH(id) + 2 * LENGTH(key_id) + 3 * LENGTH(model) + LENGTH(operation) + LENGTH(provider) + LENGTH(upstream_model) + LENGTH(error)" +
		" + LENGTH(notes) + LENGTH(account) + LENGTH(steps) + LENGTH(cache_miss) + LENGTH(team) + LENGTH(service) + LENGTH(tags) AS size FROM calls ORDER BY id"
	var first, mean sql.NullInt64
	err = s.read.QueryRowContext(ctx, "SELECT MIN(started_ms), CAST(AVG(size) AS BIGINT) FROM (SELECT * FROM ("+sample+
		" LIMIT 1000) AS oldest UNION ALL SELECT * FROM ("+sample+" DESC LIMIT 1000) AS newest) AS sample").Scan(&first, &mean)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !first.Valid {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("store: %w", err)
	}
	return mean.Int64 + callOverhead, first.Int64, nil
}

// callOverhead is what a record takes beside its texts.
const callOverhead = 130
