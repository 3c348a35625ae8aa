package telemetry

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/store"
)

// CallLog writes one line for each call, in the form that the rest of the log
// has. A line for every call is most of what a gateway logs, so it is put
// together here instead of by a general handler.
type CallLog struct {
	w     io.Writer
	json  bool
	level *slog.LevelVar
}

// NewCallLog returns a log of calls to w; format is "json" or "text".
func NewCallLog(w io.Writer, format string, level *slog.LevelVar) *CallLog {
	return &CallLog{w: w, json: format == "json", level: level}
}

// maxLine is a line's usual room.
const maxLine = 768

var lines = sync.Pool{New: func() any { b := make([]byte, 0, maxLine); return &b }}

// Log writes the line of a call. cause is for the operator: why it failed, in
// words; "" when it did not, or when the client is to blame.
func (l *CallLog) Log(level slog.Level, requestID string, c *store.Call, cause string, now time.Time) {
	if level < l.level.Level() {
		return
	}
	buf := lines.Get().(*[]byte)
	f := fields{dst: (*buf)[:0], json: l.json}
	f.begin(now, level)
	f.text("request_id", requestID)
	f.text("operation", c.Operation)
	f.number("status", int64(c.Status))
	f.text("key", c.KeyID)
	f.text("model", c.Model)
	f.text("provider", c.Provider)
	f.text("upstream_model", c.UpstreamModel)
	f.flag("stream", c.Stream)
	f.milliseconds("ms", c.Total)
	f.milliseconds("first_byte_ms", c.FirstByte)
	f.number("input", c.Usage.Input+c.Usage.CacheRead+c.Usage.CacheWrite)
	f.number("cached", c.Usage.CacheRead)
	f.number("output", c.Usage.Output+c.Usage.Reasoning)
	f.flag("estimated", c.Usage.Estimated)
	f.number("bytes_in", c.BytesIn)
	f.number("bytes_out", c.BytesOut)
	if c.Error != "" {
		f.text("error", c.Error)
	}
	if c.Notes != "" {
		f.text("notes", c.Notes)
	}
	if cause != "" {
		f.text("cause", cause)
	}
	l.w.Write(f.end())
	*buf = f.dst
	lines.Put(buf)
}

// fields appends the fields of a line, as slog's handlers do.
type fields struct {
	dst  []byte
	json bool
}

func (f *fields) begin(now time.Time, level slog.Level) {
	if f.json {
		f.dst = append(f.dst, `{"time":"`...)
		f.dst = now.AppendFormat(f.dst, time.RFC3339Nano)
		f.dst = append(f.dst, `","level":"`...)
		f.dst = append(f.dst, level.String()...)
		f.dst = append(f.dst, `","msg":"call"`...)
		return
	}
	f.dst = append(f.dst, "time="...)
	f.dst = now.AppendFormat(f.dst, "2006-01-02T15:04:05.000Z07:00")
	f.dst = append(f.dst, " level="...)
	f.dst = append(f.dst, level.String()...)
	f.dst = append(f.dst, " msg=call"...)
}

func (f *fields) end() []byte {
	if f.json {
		f.dst = append(f.dst, '}')
	}
	f.dst = append(f.dst, '\n')
	return f.dst
}

func (f *fields) name(name string) {
	if f.json {
		f.dst = append(f.dst, ',', '"')
		f.dst = append(f.dst, name...)
		f.dst = append(f.dst, '"', ':')
		return
	}
	f.dst = append(f.dst, ' ')
	f.dst = append(f.dst, name...)
	f.dst = append(f.dst, '=')
}

func (f *fields) text(name, value string) {
	f.name(name)
	if !f.json && plain(value) {
		f.dst = append(f.dst, value...)
		return
	}
	f.dst = jsonedit.AppendQuote(f.dst, value)
}

// plain reports whether a text needs no quotes in the text form.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\' {
			return false
		}
	}
	return s != ""
}

func (f *fields) number(name string, n int64) {
	f.name(name)
	f.dst = strconv.AppendInt(f.dst, n, 10)
}

func (f *fields) flag(name string, b bool) {
	f.name(name)
	f.dst = strconv.AppendBool(f.dst, b)
}

func (f *fields) milliseconds(name string, d time.Duration) {
	f.name(name)
	us := d.Microseconds()
	f.dst = strconv.AppendInt(f.dst, us/1000, 10)
	f.dst = append(f.dst, '.', byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
}
