package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"
)

// What is in no index of the records, their sums know: which days and hours have
// such calls. Only those are searched, so that what is rare, or not there at
// all, is found as fast as what is frequent.

// isSearch reports whether a filter chooses by what is in no index.
func (f *CallFilter) isSearch() bool {
	failedOfOne := (f.Failed || f.Status >= 400) && (f.KeyID != "" || f.Model != "")
	return failedOfOne || len(f.Teams) > 0 || f.Provider != "" || f.Tag != "" || f.MinCost > 0
}

// parts are filters that, one after the other, choose what f does, the newest
// first: f itself, or where it is a search, what it chooses of each hour that may
// have some of it. before is the ID of a call from which on nothing is asked for.
func (s *Store) parts(ctx context.Context, f CallFilter, before string) iter.Seq2[CallFilter, error] {
	return func(yield func(CallFilter, error) bool) {
		if !f.isSearch() {
			yield(f, nil)
			return
		}
		since, err := s.oldestCall(ctx)
		if err != nil {
			if !errors.Is(err, ErrNotFound) {
				yield(f, err)
			}
			return
		}
		if !f.Since.IsZero() {
			since = max(since, f.Since.UnixMilli())
		}
		until := int64(1 << 53)
		if !f.Until.IsZero() {
			until = f.Until.UnixMilli()
		}
		if len(before) >= idTime {
			if at, err := strconv.ParseInt(before[:idTime], 16, 64); err == nil {
				until = min(until, at+1)
			}
		}
		everyDay, err := s.leads(ctx, &f, days, since, until)
		if err != nil {
			yield(f, err)
			return
		}
		for _, day := range everyDay {
			everyHour, err := s.leads(ctx, &f, hours, max(since, day.begin), min(until, day.begin+dayMs))
			if err != nil {
				yield(f, err)
				return
			}
			for _, hour := range everyHour {
				part := f
				part.Since, part.Until = time.UnixMilli(max(since, hour.begin)), time.UnixMilli(min(until, hour.begin+hourMs))
				part.KeyID, part.Model = hour.keyID, hour.model
				if !yield(part, nil) {
					return
				}
			}
		}
	}
}

// lead is an hour or a day that has calls of a filter.
type lead struct {
	begin        int64  // Unix ms
	keyID, model string // of all those calls; "" where they have several
}

// leads are the hours or days between two times, in Unix ms, whose sums say that
// they have calls of a filter, the newest first.
func (s *Store) leads(ctx context.Context, f *CallFilter, by sumSpan, since, until int64) (found []lead, err error) {
	var t terms
	t.add("begin_ms >= $%d", floor(since, by.length))
	t.add("begin_ms < $%d", until)
	f.ofSums(&t, false, true)
	if f.Failed || f.Status >= 400 {
		t.list = append(t.list, "failed > 0")
	}
	if f.MinCost > 0 {
		t.add("dearest >= $%d", int64(min(f.MinCost, maxSum)))
	}
	rows, err := s.read.QueryContext(ctx, "SELECT begin_ms, MIN(key_id), MAX(key_id), MIN(model), MAX(model) FROM "+by.table+t.where()+" GROUP BY begin_ms ORDER BY begin_ms DESC", t.args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			at                   lead
			lastKeyID, lastModel string
		)
		if err := rows.Scan(&at.begin, &at.keyID, &lastKeyID, &at.model, &lastModel); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		if at.keyID != lastKeyID {
			at.keyID = ""
		}
		if at.model != lastModel {
			at.model = ""
		}
		found = append(found, at)
	}
	return found, rows.Err()
}

// oldestCall is when the first of the records began, in Unix ms, or ErrNotFound.
func (s *Store) oldestCall(ctx context.Context) (ms int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT started_ms FROM calls ORDER BY id LIMIT 1").Scan(&ms)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return ms, nil
}
