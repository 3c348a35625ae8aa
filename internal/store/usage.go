package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
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

// Sums of calls are kept by the hour and by the day, for all calls and once
// more for each tag. They outlive the records, and they are what questions
// about usage are answered from: ten million records are a few thousand sums.

// Sums are those of some calls.
type Sums struct {
	Calls     int64
	Failed    int64
	Estimated int64     // calls whose usage is an estimate
	Unpriced  int64     // calls whose cost is not known
	Usage     llm.Usage // its counters only
	Cost      money.Amount
	Charge    money.Amount
	BytesIn   int64
	BytesOut  int64

	totalUs     int64
	begun       int64 // calls that had a first byte
	firstByteUs int64 // of those

	dearest money.Amount // what the call cost that cost most, or more
}

// MeanTotal is how long a call took on average.
func (s *Sums) MeanTotal() time.Duration { return mean(s.totalUs, s.Calls) }

// MeanFirstByte is how long the first byte took on average, of the calls that
// had one.
func (s *Sums) MeanFirstByte() time.Duration { return mean(s.firstByteUs, s.begun) }

func mean(sumUs, n int64) time.Duration {
	return time.Duration(sumUs) * time.Microsecond / time.Duration(max(n, 1))
}

// sumColumns are the columns of the members that columns gives.
var sumColumns = []string{
	"calls", "failed", "estimated", "unpriced",
	"input", "cache_read", "cache_write", "cache_write_hour", "audio_in", "output", "reasoning", "audio_out", "image_out", "searches",
	"cost", "charge", "bytes_in", "bytes_out", "total_us", "begun", "first_byte_us",
}

func (s *Sums) columns() [21]*int64 {
	u := &s.Usage
	return [...]*int64{
		&s.Calls, &s.Failed, &s.Estimated, &s.Unpriced,
		&u.Input, &u.CacheRead, &u.CacheWrite, &u.HourWrite, &u.AudioIn, &u.Output, &u.Reasoning, &u.AudioOut, &u.ImageOut, &u.Searches,
		(*int64)(&s.Cost), (*int64)(&s.Charge), &s.BytesIn, &s.BytesOut, &s.totalUs, &s.begun, &s.firstByteUs,
	}
}

// plus adds others to the sums.
func (s *Sums) plus(others *Sums) {
	theirs := others.columns()
	for i, n := range s.columns() {
		*n += *theirs[i]
	}
	s.dearest = max(s.dearest, others.dearest)
}

// minus takes others from the sums. Of the dearest nobody knows the next, so it
// stays.
func (s *Sums) minus(others *Sums) {
	theirs := others.columns()
	for i, n := range s.columns() {
		*n -= *theirs[i]
	}
}

// sumsOf are the sums of one call.
func sumsOf(c *Call) Sums {
	s := Sums{
		Calls: 1, Failed: one(c.Error != ""), Estimated: one(c.Usage.Estimated), Unpriced: one(!c.Priced),
		Usage: c.Usage, Cost: min(c.Cost, maxSum), Charge: min(c.Charge, maxSum), BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		totalUs: c.Total.Microseconds(), begun: one(c.FirstByte > 0), firstByteUs: c.FirstByte.Microseconds(),
		dearest: min(c.Cost, maxSum),
	}
	s.Usage.Service, s.Usage.Stated, s.Usage.Estimated = 0, 0, false
	return s
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// maxSum is the most that a row sums up of money, nine million dollars: a price
// with three zeros too many must not stop the records of calls.
const maxSum money.Amount = 1 << 53

// sumKey is what a row of sums is found by.
type sumKey struct {
	begin                                            int64 // Unix ms
	tag, keyID, team, model, provider, upstreamModel string
}

func compareSums(a, b sumKey) int {
	return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tag, b.tag), cmp.Compare(a.keyID, b.keyID), cmp.Compare(a.team, b.team),
		cmp.Compare(a.model, b.model), cmp.Compare(a.provider, b.provider), cmp.Compare(a.upstreamModel, b.upstreamModel))
}

// sumSpan is a length of time by which sums are kept.
type sumSpan struct {
	table  string
	length int64 // ms
	upsert string
}

const (
	hourMs = int64(time.Hour / time.Millisecond)
	dayMs  = 24 * hourMs
)

var (
	hours = newSumSpan("usage_hours", hourMs)
	days  = newSumSpan("usage_days", dayMs)
)

func newSumSpan(table string, length int64) sumSpan {
	const keys = "begin_ms, tag, key_id, team, model, provider, upstream_model"
	var set []string
	for _, column := range sumColumns {
		sum := fmt.Sprintf("u.%[1]s + excluded.%[1]s", column)
		if column == "cost" || column == "charge" {
			sum = fmt.Sprintf("CASE WHEN %[1]s < %[2]d THEN %[1]s ELSE %[2]d END", sum, maxSum)
		}
		set = append(set, column+" = "+sum)
	}
	set = append(set, "dearest = CASE WHEN u.dearest > excluded.dearest THEN u.dearest ELSE excluded.dearest END")
	return sumSpan{table, length, fmt.Sprintf("INSERT INTO %s AS u (%s, %s, dearest) VALUES %s ON CONFLICT (%s) DO UPDATE SET %s",
		table, keys, strings.Join(sumColumns, ", "), placeholders(1, 8+len(sumColumns)), keys, strings.Join(set, ", "))}
}

// sumUp adds calls to the sums.
func (s *Store) sumUp(ctx context.Context, conn *sql.Conn, tx *sql.Tx, calls []*Call) error {
	return s.addToSums(ctx, conn, tx, calls, func(i int) Sums { return sumsOf(calls[i]) })
}

// addToSums adds what of says of each call, once for each row of the sums.
func (s *Store) addToSums(ctx context.Context, conn *sql.Conn, tx *sql.Tx, calls []*Call, of func(i int) Sums) error {
	byHour, byDay := map[sumKey]*Sums{}, map[sumKey]*Sums{}
	for i, c := range calls {
		sums, at := of(i), c.Started.UnixMilli()
		k := sumKey{0, "", c.KeyID, c.Team, indexable(c.Model), indexable(c.Provider), indexable(c.UpstreamModel)}
		tags := []string{""}
		if c.Tags != "" {
			tags = slices.AppendSeq(tags, strings.SplitSeq(storable(c.Tags), "\n"))
		}
		hour, day := floor(at, hourMs), floor(at, dayMs)
		for _, tag := range tags {
			var err error
			if k.tag, err = s.tags.admit(ctx, tx, hour, tag); err != nil {
				return err
			}
			k.begin = hour
			addSums(byHour, k, &sums)
			k.begin = day
			addSums(byDay, k, &sums)
		}
	}
	return conn.Raw(func(driverConn any) error {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(hours.store(ctx, driverConn, byHour), days.store(ctx, driverConn, byDay))
	})
}

func addSums(rows map[sumKey]*Sums, k sumKey, sums *Sums) {
	row := rows[k]
	if row == nil {
		row = &Sums{}
		rows[k] = row
	}
	row.plus(sums)
}

// store adds rows to those of the table, in one order: no two gateways wait
// for each other.
func (p *sumSpan) store(ctx context.Context, driverConn any, rows map[sumKey]*Sums) error {
	driverOf, ok := driverConn.(driver.ExecerContext)
	if !ok {
		return errors.New("the driver cannot execute statements")
	}
	var row []driver.NamedValue
	for _, k := range slices.SortedFunc(maps.Keys(rows), compareSums) {
		row = row[:0]
		for _, value := range [...]driver.Value{k.begin, k.tag, k.keyID, k.team, k.model, k.provider, k.upstreamModel} {
			row = append(row, driver.NamedValue{Ordinal: len(row) + 1, Value: value})
		}
		for _, n := range rows[k].columns() {
			row = append(row, driver.NamedValue{Ordinal: len(row) + 1, Value: *n})
		}
		row = append(row, driver.NamedValue{Ordinal: len(row) + 1, Value: int64(rows[k].dearest)})
		if _, err := driverOf.ExecContext(ctx, p.upsert, row); err != nil {
			return fmt.Errorf("store: %s: %w", p.table, err)
		}
	}
	return nil
}

// Dimension is what usage is grouped by.
type Dimension string

// The dimensions of usage.
const (
	ByHour          Dimension = "hour"
	ByDay           Dimension = "day"
	ByWeek          Dimension = "week" // from Monday on
	ByMonth         Dimension = "month"
	ByKey           Dimension = "key"
	ByTeam          Dimension = "team"
	ByModel         Dimension = "model"
	ByProvider      Dimension = "provider"
	ByUpstreamModel Dimension = "upstream_model"
	ByTag           Dimension = "tag" // a call with several is in several groups
)

// Dimensions are all of them.
var Dimensions = []Dimension{ByHour, ByDay, ByWeek, ByMonth, ByKey, ByTeam, ByModel, ByProvider, ByUpstreamModel, ByTag}

// dimensionColumns are the columns of the dimensions that are not times.
var dimensionColumns = map[Dimension]string{
	ByKey: "key_id", ByTeam: "team", ByModel: "model", ByProvider: "provider", ByUpstreamModel: "upstream_model", ByTag: "tag",
}

// isTime reports whether a dimension groups by when calls began.
func isTime(d Dimension) bool { return d != "" && dimensionColumns[d] == "" }

// UsageRow is the sums of one group.
type UsageRow struct {
	Group []string // one value per dimension asked
	Sums
}

// maxGroups bounds the rows of an answer.
const maxGroups = 100_000

// ErrTooManyGroups is the answer to a question that has more than maxGroups.
var ErrTooManyGroups = fmt.Errorf("store: usage has more than %d groups", maxGroups)

// Usage sums up calls by dimensions, in the order of the groups. Since and
// until are cut to whole hours. zone says when days begin; an hour of UTC is
// of the day in which it begins. Hours are told in RFC 3339, days and weeks as
// 2006-01-02, months as 2006-01.
func (s *Store) Usage(ctx context.Context, f Filter, by []Dimension, zone *time.Location) ([]UsageRow, error) {
	for _, d := range by {
		if !slices.Contains(Dimensions, d) {
			return nil, fmt.Errorf("store: usage has no dimension %q", d)
		}
	}
	query, args := usageQuery(&f, by, zone)
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	groups := newGroups(by, zone)
	for rows.Next() {
		if err := groups.scan(rows); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return groups.list(), nil
}

// usageQuery selects when the sums begin (0 where that is no matter), the
// columns of the other dimensions in their order, and the sums.
func usageQuery(f *Filter, by []Dimension, zone *time.Location) (string, []any) {
	when, whole := "0", true
	if slices.ContainsFunc(by, isTime) {
		when, whole = "begin_ms", zone == time.UTC && !slices.Contains(by, ByHour)
	}
	group := []string{when}
	for _, d := range by {
		if !isTime(d) {
			group = append(group, dimensionColumns[d])
		}
	}
	var t terms
	source := f.source(&t, whole, slices.Contains(by, ByTag))
	columns := slices.Clone(group)
	for _, column := range sumColumns {
		columns = append(columns, "CAST(COALESCE(SUM("+column+"), 0) AS BIGINT)")
	}
	query := "SELECT " + strings.Join(columns, ", ") + " FROM (" + source + ") AS sums"
	if when == "0" {
		group = group[1:]
	}
	if len(group) > 0 {
		query += " GROUP BY " + strings.Join(group, ", ")
	}
	return query, t.args
}

// source selects the rows that a question is about: where days may be taken
// whole, those of the days and, at both ends, those of the hours.
func (f *Filter) source(t *terms, whole, byTag bool) string {
	since, until := int64(0), int64(1<<53)
	if !f.Since.IsZero() {
		since = floor(f.Since.UnixMilli(), hourMs)
	}
	if !f.Until.IsZero() {
		until = floor(f.Until.UnixMilli(), hourMs)
	}
	from, to := until, until // of the days
	if whole {
		from, to = -floor(-since, dayMs), floor(until, dayMs)
		if from >= to {
			from, to = until, until
		}
	}
	f.ofSums(t, byTag, false)
	all := strings.Join(t.list, " AND ")
	var parts []string
	for _, p := range []struct {
		span     sumSpan
		from, to int64
	}{{hours, since, from}, {days, from, to}, {hours, to, until}} {
		if p.from < p.to {
			n := len(t.args)
			t.args = append(t.args, p.from, p.to)
			parts = append(parts, fmt.Sprintf("SELECT * FROM %s WHERE begin_ms >= $%d AND begin_ms < $%d AND %s", p.span.table, n+1, n+2, all))
		}
	}
	if len(parts) == 0 {
		return "SELECT * FROM usage_hours WHERE begin_ms < 0 AND " + all
	}
	return strings.Join(parts, " UNION ALL ")
}

// ofSums adds which rows of the sums are about the calls of a filter. Where
// others are asked for, so are the rows of the values of a tag that were too
// many: its calls may be among them.
func (f *Filter) ofSums(t *terms, byTag, others bool) {
	t.equal("key_id", f.KeyID)
	t.among("team", f.Teams)
	t.equal("model", indexable(f.Model))
	t.equal("provider", f.Provider)
	switch name, _, valued := strings.Cut(f.Tag, "="); {
	case f.Tag == "" && byTag:
		t.list = append(t.list, "tag <> ''")
	case valued && others:
		t.among("tag", []string{f.Tag, name + "=" + OtherValue})
	case valued || f.Tag == "":
		t.add("tag = $%d", f.Tag)
	default:
		t.add(fmt.Sprintf("SUBSTR(tag, 1, %d) = $%%d", utf8.RuneCountInString(f.Tag)+1), f.Tag+"=")
	}
}

// floor is the multiple of a unit at or below n.
func floor(n, unit int64) int64 {
	return n - (n%unit+unit)%unit
}

// groups gather rows of one answer.
type groups struct {
	by   []Dimension
	zone *time.Location
	rows map[string]*UsageRow // by the group, in an order that is theirs
}

func newGroups(by []Dimension, zone *time.Location) *groups {
	g := &groups{by: by, zone: zone, rows: map[string]*UsageRow{}}
	if len(by) == 0 {
		g.rows[""] = &UsageRow{Group: []string{}} // sums without groups are always there
	}
	return g
}

// scan adds a row of the query to its group.
func (g *groups) scan(rows *sql.Rows) error {
	var (
		begin int64
		row   = UsageRow{Group: make([]string, len(g.by))}
	)
	targets := []any{&begin}
	for i, d := range g.by {
		if !isTime(d) {
			targets = append(targets, &row.Group[i])
		}
	}
	for _, n := range row.columns() {
		targets = append(targets, n)
	}
	if err := rows.Scan(targets...); err != nil {
		return fmt.Errorf("store: usage row: %w", err)
	}
	order := ""
	for i, d := range g.by {
		part := row.Group[i]
		if isTime(d) {
			var at int64
			at, row.Group[i] = period(d, time.UnixMilli(begin).In(g.zone))
			part = fmt.Sprintf("%016d", at)
		}
		order += part + "\x00"
	}
	if known := g.rows[order]; known != nil {
		known.plus(&row.Sums)
		return nil
	}
	if len(g.rows) == maxGroups {
		return ErrTooManyGroups
	}
	g.rows[order] = &row
	return nil
}

// period is the hour, day, week or month of a time: when it begins, and its
// name.
func period(d Dimension, at time.Time) (begin int64, name string) {
	if d == ByHour {
		return at.UnixMilli(), at.Format(time.RFC3339)
	}
	layout := time.DateOnly
	if d == ByMonth {
		layout = "2006-01"
	}
	year, month, day := firstDay(d, at)
	first := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return first.UnixMilli(), first.Format(layout)
}

// firstDay is the day with which the day, week or month of a time begins. Weeks
// begin on Monday.
func firstDay(d Dimension, at time.Time) (year int, month time.Month, day int) {
	year, month, day = at.Date()
	switch d {
	case ByWeek:
		day -= (int(at.Weekday()) + 6) % 7
	case ByMonth:
		day = 1
	}
	return year, month, day
}

// list is the rows in order.
func (g *groups) list() []UsageRow {
	list := make([]UsageRow, 0, len(g.rows))
	for _, order := range slices.Sorted(maps.Keys(g.rows)) {
		list = append(list, *g.rows[order])
	}
	return list
}
