package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a writer that nobody reads until it is opened.
type gate struct {
	open    chan struct{}
	entered chan struct{} // closed at the first write
	once    sync.Once
	text    bytes.Buffer
}

func newGate() *gate { return &gate{open: make(chan struct{}), entered: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	return g.text.Write(p)
}

func TestAsyncWriterKeepsTheOrder(t *testing.T) {
	var out, want bytes.Buffer
	a := NewAsyncWriter(&out)
	line := []byte("00000\n")
	for i := range maxQueued / 2 {
		copy(line, fmt.Sprintf("%05d", i)) // the caller's memory is used again
		if n, err := a.Write(line); n != len(line) || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		want.Write(line)
	}
	if err := a.Close(); err != nil || out.String() != want.String() {
		t.Errorf("%d bytes were written, %v, want %d", out.Len(), err, want.Len())
	}
	if n := a.Dropped(); n != 0 {
		t.Errorf("%d lines were dropped", n)
	}
}

// A log that nobody reads holds nobody up; what does not fit is counted.
func TestAsyncWriterDoesNotBlock(t *testing.T) {
	g := newGate()
	a := NewAsyncWriter(g)
	a.Write([]byte("first\n"))
	<-g.entered // it is stuck with the first
	const more = 100
	for range maxQueued + more {
		a.Write([]byte("line\n"))
	}
	if n := a.Dropped(); n != more {
		t.Errorf("%d lines were dropped, want %d", n, more)
	}
	close(g.open)
	a.Close()
	if n := strings.Count(g.text.String(), "\n"); n != maxQueued+1 {
		t.Errorf("%d lines were written, want %d", n, maxQueued+1)
	}
}

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"json": `"msg":"hi","a":1}`, "text": "msg=hi a=1\n", "auto": "msg=hi a=1\n"} {
		var out bytes.Buffer
		var level slog.LevelVar
		log := NewLogger(&out, format, &level)
		log.Debug("hidden")
		log.Info("hi", "a", 1)
		level.Set(slog.LevelError)
		log.Info("hidden")
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got %s", format, got)
		}
	}
}

// record is a call that uses all fields.
func record() *store.Call {
	return &store.Call{
		ID: "abc", KeyID: "k", Operation: "chat", Model: `m "é"` + "\n=\\", Provider: "p", UpstreamModel: "u", Stream: true, Status: 502, Error: "upstream", Notes: "drop:seed,clamp:x",
		FirstByte: 1234567 * time.Nanosecond, Total: 3 * time.Second, BytesIn: 10, BytesOut: 20,
		Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 4, Output: 8, Reasoning: 16, Estimated: true},
	}
}

// The line of a call is what a general handler would write.
func TestCallLog(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	for _, c := range []*store.Call{record(), {}, {Model: "\x00\xff\u007f\u2028\x1b[31m", Provider: "<&>"}} {
		for _, format := range []string{"json", "text"} {
			for _, cause := range []string{"", "why: \"x\""} {
				var level slog.LevelVar
				var got, want bytes.Buffer
				NewCallLog(&got, format, &level).Log(slog.LevelWarn, "req_abc", c, cause, now)
				general := slog.NewRecord(now, slog.LevelWarn, "call", 0)
				ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
				general.AddAttrs(slog.String("request_id", "req_abc"), slog.String("operation", c.Operation), slog.Int("status", c.Status), slog.String("key", c.KeyID),
					slog.String("model", c.Model), slog.String("provider", c.Provider), slog.String("upstream_model", c.UpstreamModel), slog.Bool("stream", c.Stream),
					slog.Float64("ms", ms(c.Total)), slog.Float64("first_byte_ms", ms(c.FirstByte)),
					slog.Int64("input", c.Usage.Input+c.Usage.CacheRead+c.Usage.CacheWrite), slog.Int64("cached", c.Usage.CacheRead),
					slog.Int64("output", c.Usage.Output+c.Usage.Reasoning), slog.Bool("estimated", c.Usage.Estimated), slog.Int64("bytes_in", c.BytesIn), slog.Int64("bytes_out", c.BytesOut))
				if c.Error != "" {
					general.AddAttrs(slog.String("error", c.Error))
				}
				if c.Notes != "" {
					general.AddAttrs(slog.String("notes", c.Notes))
				}
				if cause != "" {
					general.AddAttrs(slog.String("cause", cause))
				}
				handler := slog.Handler(slog.NewTextHandler(&want, nil))
				if format == "json" {
					handler = slog.NewJSONHandler(&want, nil)
				}
				if err := handler.Handle(t.Context(), general); err != nil {
					t.Fatal(err)
				}
				if strings.Count(got.String(), "\n") != 1 || !strings.HasSuffix(got.String(), "\n") {
					t.Errorf("%s: not one line: %q", format, got.String())
				}
				if format == "json" && !sameJSON(t, got.Bytes(), want.Bytes()) || format == "text" && plainText(got.String()) != plainText(want.String()) {
					t.Errorf("%s:\ngot  %s\nwant %s", format, got.String(), want.String())
				}
			}
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y map[string]any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Errorf("%v in %q", err, a)
		return false
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// plainText forgets in how many digits numbers are written, and how
// characters that cannot be printed are escaped.
func plainText(line string) string {
	return strings.NewReplacer(".000 ", " ", `\x00`, `\u0000`, `\x7f`, "\u007f", `\x1b`, `\u001b`, `\u2028`, "\u2028", `\xff`, "\ufffd").Replace(line)
}

func TestCallLogLevel(t *testing.T) {
	var level slog.LevelVar
	var out bytes.Buffer
	l := NewCallLog(&out, "text", &level)
	l.Log(slog.LevelDebug, "req_1", record(), "", time.Now())
	level.Set(slog.LevelError)
	l.Log(slog.LevelInfo, "req_2", record(), "", time.Now())
	l.Log(slog.LevelError, "req_3", record(), "", time.Now())
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "req_3") {
		t.Errorf("got %s", got)
	}
}

func metrics(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := NewMetrics(Gauges{JournalPending: func() int64 { return 3 }, LogDropped: func() int64 { return 4 }, Models: func() int { return 5 }, Bodies: func() int64 { return 6 },
		Targets: func() iter.Seq[Target] {
			return slices.Values([]Target{{Provider: "p", Account: "p", Model: "m", Available: true, InFlight: 2}, {Provider: "p", Account: "p#2", Model: "m"}})
		},
	})
	for range 3 {
		m.Begin()
	}
	good := record()
	good.Model, good.Status, good.Error = "m", 200, ""
	m.Observe(good)
	for _, cost := range []money.Amount{1_500_000, 250_000_000, 0} {
		m.Begin()
		m.Observe(&store.Call{Operation: "chat", Model: "dear", Provider: "p", Status: 200, Priced: true, Cost: cost})
	}
	m.Observe(&store.Call{Operation: "chat", Model: "whatever a client chose", Status: 404, Error: "no_model"})
	m.Wait()()
	m.Wait()
	m.Refuse("calls", "none")
	text := metrics(t, m)
	const labels = `gen_ai_operation_name="chat",gen_ai_provider_name="p",gen_ai_request_model="m"`
	for _, want := range []string{
		`limen_waiting_requests 1`, `limen_request_bodies_bytes 6`, `limen_refused_total{gen_ai_provider_name="none",limit="calls"} 1`,
		`limen_requests_total{error_type="",` + labels + `,http_response_status_code="200"} 1`,
		`limen_requests_total{error_type="no_model",gen_ai_operation_name="chat",gen_ai_provider_name="none",gen_ai_request_model="none",http_response_status_code="404"} 1`,
		`gen_ai_server_request_duration_seconds_sum{` + labels + `} 3`,
		`gen_ai_server_request_duration_seconds_count{` + labels + `} 1`,
		`gen_ai_server_time_to_first_token_seconds_count{` + labels + `} 1`,
		`limen_target_available{gen_ai_provider_name="p",gen_ai_response_model="m",limen_account="p"} 1`,
		`limen_target_available{gen_ai_provider_name="p",gen_ai_response_model="m",limen_account="p#2"} 0`,
		`limen_target_in_flight{gen_ai_provider_name="p",gen_ai_response_model="m",limen_account="p"} 2`,
		`limen_cost_dollars_total{gen_ai_provider_name="p",gen_ai_request_model="dear"} 0.2515`,
		`limen_calls_unpriced_total{gen_ai_provider_name="p",gen_ai_request_model="dear"} 0`,
		`limen_calls_unpriced_total{gen_ai_provider_name="p",gen_ai_request_model="m"} 1`,
		`limen_active_requests 1`, `limen_journal_pending 3`, `limen_log_dropped 4`, `limen_models 5`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for kind, n := range map[string]int{"input": 1, "input.cache_read": 2, "input.cache_write": 4, "output": 8, "output.reasoning": 16} {
		if want := fmt.Sprintf(`limen_tokens_total{%s,gen_ai_token_type="%s"} %d`, labels, kind, n); !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "whatever") {
		t.Error("a client chose a label")
	}
}
