package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// Clients choose the values of tags, and each makes rows of sums. So of a name,
// only so many values an hour are summed by themselves, as far as one gateway
// knows; the rest are summed under the value Other. The records have them all.

// MaxTagValues is how many values of a tag are told apart in an hour.
const MaxTagValues = 1000

// OtherValue stands for the values of a tag that are too many.
const OtherValue = "…other"

// tagWatch knows the tags that have sums, of a few hours.
type tagWatch struct {
	mu    sync.Mutex
	hours map[int64]*taggedHour // by when they begin, Unix ms
}

func newTagWatch() *tagWatch { return &tagWatch{hours: map[int64]*taggedHour{}} }

// taggedHour has the tags of an hour.
type taggedHour struct {
	tags   map[string]bool
	values map[string]int // how many there are of a name
}

// watchedHours bounds the hours that are known. Records come late at most when
// a store was away.
const watchedHours = 4

// admit returns the tag by which a call of an hour is summed.
func (w *tagWatch) admit(ctx context.Context, tx *sql.Tx, hour int64, tag string) (string, error) {
	if tag == "" {
		return "", nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hours[hour]
	if h == nil {
		var err error
		if h, err = readTags(ctx, tx, hour); err != nil {
			return "", err
		}
		if len(w.hours) >= watchedHours {
			clear(w.hours)
		}
		w.hours[hour] = h
	}
	name, _, _ := strings.Cut(tag, "=")
	if h.tags[tag] {
		return tag, nil
	}
	if h.values[name] >= MaxTagValues {
		return name + "=" + OtherValue, nil
	}
	h.add(tag)
	return tag, nil
}

func (h *taggedHour) add(tag string) {
	name, _, _ := strings.Cut(tag, "=")
	h.tags[tag] = true
	h.values[name]++
}

func readTags(ctx context.Context, tx *sql.Tx, hour int64) (*taggedHour, error) {
	rows, err := tx.QueryContext(ctx, "SELECT DISTINCT tag FROM usage_hours WHERE begin_ms = $1 AND tag <> ''", hour)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	h := &taggedHour{map[string]bool{}, map[string]int{}}
	for rows.Next() {
		var tag string
		if err := rows.Scan(&tag); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		h.add(tag)
	}
	return h, rows.Err()
}
