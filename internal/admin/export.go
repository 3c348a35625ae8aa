package admin

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

const csvType = "text/csv; charset=utf-8"

// export streams the records that match, oldest first, as CSV or as lines of
// JSON. It has a page of them in memory.
func (a *API) export(r *request) (answer stream, err error) {
	format := r.URL.Query().Get("format")
	kind := map[string]string{"csv": csvType, "": "application/jsonl", "jsonl": "application/jsonl"}[format]
	if kind == "" {
		return answer, llm.InvalidParam("invalid_value", "format", "format is csv or jsonl, not %q.", format)
	}
	filter, err := a.callFilter(r)
	if err == nil {
		err = a.settle(r.Context())
	}
	if err != nil {
		return answer, err
	}
	return stream{kind, "calls." + cmp.Or(format, "jsonl"), func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		rows := exporter(newJSONLines(out))
		if format == "csv" {
			rows = newCallsCSV(out)
		}
		err := a.Store.EachCall(r.Context(), filter, func(c *store.Call) error {
			return rows.write(a.newCall(c))
		})
		if err == nil {
			err = rows.end()
		}
		if err == nil {
			err = out.Flush()
		}
		return err
	}}, nil
}

// exporter writes records.
type exporter interface {
	write(*Call) error
	end() error
}

type jsonLines struct{ *json.Encoder }

func newJSONLines(w io.Writer) jsonLines {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return jsonLines{e}
}

func (j jsonLines) write(c *Call) error { return j.Encode(c) }
func (j jsonLines) end() error          { return nil }

// table is CSV with columns that make cells of rows.
type table[Row any] struct {
	*csv.Writer
	columns []column[Row]
	begun   bool
	cells   []string
}

type column[Row any] struct {
	name string
	cell func(*Row) string
}

func (t *table[Row]) write(row *Row) error {
	t.head()
	t.cells = t.cells[:0]
	for _, c := range t.columns {
		t.cells = append(t.cells, c.cell(row))
	}
	return t.Write(t.cells)
}

func (t *table[Row]) head() {
	if t.begun {
		return
	}
	t.begun = true
	for _, c := range t.columns {
		t.cells = append(t.cells, c.name)
	}
	t.Write(t.cells) // its error is also that of the end
}

func (t *table[Row]) end() error {
	t.head()
	t.Flush()
	return t.Error()
}

// plain keeps a program that calculates from taking a name for a formula:
// clients choose some of them. Some programs know the signs in full width too.
func plain(name string) string {
	if first, _ := utf8.DecodeRuneInString(name); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) && name != "" {
		return "'" + name
	}
	return name
}

func number(n int64) string    { return strconv.FormatInt(n, 10) }
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// tokenColumns are the columns of counters.
func tokenColumns[Row any](of func(*Row) *Tokens) (columns []column[Row]) {
	for _, c := range []struct {
		name string
		n    func(*Tokens) int64
	}{
		{"input_tokens", func(t *Tokens) int64 { return t.Input }}, {"cache_read_tokens", func(t *Tokens) int64 { return t.CacheRead }},
		{"cache_write_tokens", func(t *Tokens) int64 { return t.CacheWrite }}, {"cache_write_1h_tokens", func(t *Tokens) int64 { return t.HourWrite }},
		{"input_audio_tokens", func(t *Tokens) int64 { return t.AudioIn }}, {"output_tokens", func(t *Tokens) int64 { return t.Output }},
		{"reasoning_tokens", func(t *Tokens) int64 { return t.Reasoning }}, {"output_audio_tokens", func(t *Tokens) int64 { return t.AudioOut }},
		{"output_image_tokens", func(t *Tokens) int64 { return t.ImageOut }}, {"total_tokens", func(t *Tokens) int64 { return t.Total }},
		{"searches", func(t *Tokens) int64 { return t.Searches }},
	} {
		columns = append(columns, column[Row]{c.name, func(row *Row) string { return number(c.n(of(row))) }})
	}
	return columns
}

func newCallsCSV(w io.Writer) *table[Call] {
	columns := []column[Call]{
		{"time", func(c *Call) string { return c.Time.Format("2006-01-02T15:04:05.000Z07:00") }},
		{"request_id", func(c *Call) string { return c.RequestID }},
		{"key", func(c *Call) string { return c.Key }},
		{"key_name", func(c *Call) string { return plain(c.KeyName) }},
		{"team", func(c *Call) string { return c.Team }},
		{"team_name", func(c *Call) string { return plain(c.TeamName) }},
		{"operation", func(c *Call) string { return c.Operation }},
		{"model", func(c *Call) string { return plain(c.Model) }},
		{"provider", func(c *Call) string { return plain(c.Provider) }},
		{"upstream_model", func(c *Call) string { return plain(c.UpstreamModel) }},
		{"account", func(c *Call) string { return plain(c.Account) }},
		{"service", func(c *Call) string { return plain(c.Service) }},
		{"stream", func(c *Call) string { return strconv.FormatBool(c.Stream) }},
		{"status", func(c *Call) string { return strconv.Itoa(c.Status) }},
		{"error", func(c *Call) string { return plain(c.Error) }},
	}
	columns = append(columns, tokenColumns(func(c *Call) *Tokens { return &c.Tokens })...)
	return &table[Call]{Writer: csv.NewWriter(w), columns: append(columns, []column[Call]{
		{"estimated", func(c *Call) string { return strconv.FormatBool(c.Estimated) }},
		{"cost_usd", func(c *Call) string {
			if c.Cost == nil {
				return "" // not known
			}
			return c.Cost.String()
		}},
		{"charge_usd", func(c *Call) string { return c.Charge.String() }},
		{"bytes_in", func(c *Call) string { return number(c.BytesIn) }},
		{"bytes_out", func(c *Call) string { return number(c.BytesOut) }},
		{"first_byte_ms", func(c *Call) string { return decimal(c.FirstByteMs) }},
		{"total_ms", func(c *Call) string { return decimal(c.TotalMs) }},
		{"tags", func(c *Call) string { return plain(strings.Join(c.Tags, "; ")) }},
		{"notes", func(c *Call) string { return plain(strings.Join(c.Notes, ",")) }},
	}...)}
}

// WriteCSV writes the groups as CSV; without groups, the sum of all.
func (u *Usage) WriteCSV(w io.Writer) error {
	var columns []column[UsageRow]
	for _, d := range u.By {
		columns = append(columns, column[UsageRow]{d, func(row *UsageRow) string { return plain(row.Value(d)) }})
		switch store.Dimension(d) {
		case store.ByKey:
			columns = append(columns, column[UsageRow]{"key_name", func(row *UsageRow) string { return plain(row.KeyName) }})
		case store.ByTeam:
			columns = append(columns, column[UsageRow]{"team_name", func(row *UsageRow) string { return plain(row.TeamName) }})
		}
	}
	columns = append(columns, []column[UsageRow]{
		{"calls", func(u *UsageRow) string { return number(u.Calls) }},
		{"failed", func(u *UsageRow) string { return number(u.Failed) }},
		{"estimated", func(u *UsageRow) string { return number(u.Estimated) }},
		{"unpriced", func(u *UsageRow) string { return number(u.Unpriced) }},
	}...)
	columns = append(columns, tokenColumns(func(u *UsageRow) *Tokens { return &u.Tokens })...)
	t := &table[UsageRow]{Writer: csv.NewWriter(w), columns: append(columns, []column[UsageRow]{
		{"cost_usd", func(u *UsageRow) string { return u.Cost.String() }},
		{"charge_usd", func(u *UsageRow) string { return u.Charge.String() }},
		{"bytes_in", func(u *UsageRow) string { return number(u.BytesIn) }},
		{"bytes_out", func(u *UsageRow) string { return number(u.BytesOut) }},
		{"mean_ms", func(u *UsageRow) string { return decimal(u.MeanMs) }},
		{"mean_first_byte_ms", func(u *UsageRow) string { return decimal(u.MeanFirstByte) }},
	}...)}
	rows := u.Groups
	if len(u.By) == 0 {
		rows = []UsageRow{{Sum: u.Sum}}
	}
	for i := range rows {
		if err := t.write(&rows[i]); err != nil {
			return err
		}
	}
	return t.end()
}
