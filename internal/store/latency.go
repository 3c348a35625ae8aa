package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// How long calls took is not in the sums: a sum has a mean, and no percentile.
// It is asked of the newest records, so many that an answer comes at once.
const (
	latencySample  = 10_000 // calls of one answer
	periodSample   = 1_000  // calls of each period, where an answer has several
	maxLatencySpan = 400    // periods of one answer
)

// ErrTooManyPeriods is the answer to a question that has more than can be
// looked at.
var ErrTooManyPeriods = fmt.Errorf("store: more than %d periods", maxLatencySpan)

// Latency is how long calls took that ended well.
type Latency struct {
	Calls            int64 // that were looked at
	Total, FirstByte Percentiles
}

// Percentiles are times that half of the calls, and 19 of 20, did not exceed.
// They are 0 where there were none.
type Percentiles struct{ P50, P95 time.Duration }

// LatencyRow is that of one group.
type LatencyRow struct {
	Group []string // one value per dimension asked
	Latency
}

// times are those of the calls of one group.
type times struct {
	group            []string
	total, firstByte []time.Duration
}

func (t *times) latency() Latency {
	return Latency{int64(len(t.total)), percentiles(t.total), percentiles(t.firstByte)}
}

// percentiles are nearest ranks. It sorts the list.
func percentiles(list []time.Duration) Percentiles {
	if len(list) == 0 {
		return Percentiles{}
	}
	slices.Sort(list)
	at := func(percent int) time.Duration { return list[(len(list)*percent+99)/100-1] }
	return Percentiles{at(50), at(95)}
}

// Latencies tells how long the newest calls took that match: all together, and
// by dimensions, in the order of the groups. Where one of them is a time, the
// newest calls of each period are looked at. whole says that no call was left
// out. zone says when days begin.
func (s *Store) Latencies(ctx context.Context, f Filter, by []Dimension, zone *time.Location) (all Latency, rows []LatencyRow, whole bool, err error) {
	spans, sample := []Filter{f}, latencySample
	if i := slices.IndexFunc(by, isTime); i >= 0 {
		sample = periodSample
		if spans, err = f.periods(by[i], zone); err != nil {
			return all, nil, false, err
		}
	}
	whole = true
	sum, groups := times{}, map[string]*times{}
	for _, span := range spans {
		n, err := s.addTimes(ctx, span, by, zone, sample, &sum, groups)
		if err != nil {
			return all, nil, false, err
		}
		whole = whole && n < sample
	}
	for _, order := range slices.Sorted(maps.Keys(groups)) {
		rows = append(rows, LatencyRow{groups[order].group, groups[order].latency()})
	}
	return sum.latency(), rows, whole, nil
}

// addTimes adds the newest calls of a span to what they are part of, and says
// how many they were.
func (s *Store) addTimes(ctx context.Context, f Filter, by []Dimension, zone *time.Location, sample int, sum *times, groups map[string]*times) (n int, err error) {
	add := func(c *Call) {
		n++
		sum.add(c)
		for _, group := range groupsOfCall(c, by, zone) {
			order := strings.Join(group, "\x00")
			if groups[order] == nil {
				groups[order] = &times{group: group}
			}
			groups[order].add(c)
		}
	}
	for part, err := range s.parts(ctx, CallFilter{Filter: f}, "") {
		if err != nil {
			return n, err
		}
		if err := s.eachTime(ctx, &part, sample-n, add); err != nil {
			return n, err
		}
		if n == sample {
			break
		}
	}
	return n, nil
}

// eachTime gives do what the newest calls of a filter took that ended well.
func (s *Store) eachTime(ctx context.Context, f *CallFilter, limit int, do func(*Call)) error {
	t := f.where("", "")
	t.list = append(t.list, "error = ''")
	query := fmt.Sprintf("SELECT key_id, team, model, provider, upstream_model, tags, started_ms, first_byte_us, total_us FROM calls%s ORDER BY id DESC LIMIT $%d", t.where(), len(t.args)+1)
	rows, err := s.read.QueryContext(ctx, query, append(t.args, limit)...)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			c                         Call
			started, firstByte, total int64
		)
		if err := rows.Scan(&c.KeyID, &c.Team, &c.Model, &c.Provider, &c.UpstreamModel, &c.Tags, &started, &firstByte, &total); err != nil {
			return fmt.Errorf("store: call row: %w", err)
		}
		c.Started = time.UnixMilli(started)
		c.FirstByte, c.Total = time.Duration(firstByte)*time.Microsecond, time.Duration(total)*time.Microsecond
		do(&c)
	}
	return rows.Err()
}

func (t *times) add(c *Call) {
	t.total = append(t.total, c.Total)
	if c.FirstByte > 0 {
		t.firstByte = append(t.firstByte, c.FirstByte)
	}
}

// groupsOfCall are those that a call is in: by tags it is in several, or none.
func groupsOfCall(c *Call, by []Dimension, zone *time.Location) [][]string {
	if len(by) == 0 {
		return nil
	}
	groups := [][]string{nil}
	for _, d := range by {
		var values []string
		switch d {
		case ByKey:
			values = []string{c.KeyID}
		case ByTeam:
			values = []string{c.Team}
		case ByModel:
			values = []string{c.Model}
		case ByProvider:
			values = []string{c.Provider}
		case ByUpstreamModel:
			values = []string{c.UpstreamModel}
		case ByTag:
			values = strings.FieldsFunc(c.Tags, func(r rune) bool { return r == '\n' })
		default:
			_, name := period(d, c.Started.Truncate(time.Hour).In(zone))
			values = []string{name}
		}
		var longer [][]string
		for _, group := range groups {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(group), value))
			}
		}
		groups = longer
	}
	return groups
}

// periods cuts the time of a filter, which has a beginning, into hours, days,
// weeks or months.
func (f Filter) periods(d Dimension, zone *time.Location) (list []Filter, err error) {
	if f.Since.IsZero() {
		return nil, ErrTooManyPeriods
	}
	until := f.Until
	if now := time.Now(); until.IsZero() || until.After(now) {
		until = now.Add(time.Millisecond)
	}
	for at := f.Since; at.Before(until); {
		if len(list) == maxLatencySpan {
			return nil, ErrTooManyPeriods
		}
		next := afterPeriod(d, at.In(zone))
		span := f
		span.Since, span.Until = at, next
		if next.After(until) {
			span.Until = until
		}
		list = append(list, span)
		at = next
	}
	return list, nil
}

// afterPeriod is when the hour, day, week or month ends that a time is in.
func afterPeriod(d Dimension, at time.Time) time.Time {
	if d == ByHour {
		return at.Truncate(time.Hour).Add(time.Hour)
	}
	year, month, day := firstDay(d, at)
	switch d {
	case ByWeek:
		day += 7
	case ByMonth:
		month++
	default:
		day++
	}
	return time.Date(year, month, day, 0, 0, 0, 0, at.Location())
}
