package telemetry

import (
	"io"
	"log/slog"
	"sync/atomic"
)

// maxQueued bounds the log lines that wait for a slow reader.
const maxQueued = 4096

// AsyncWriter hands whole writes to another goroutine, so that a terminal or
// a pipe that nobody reads does not hold up calls. What does not fit is
// counted and dropped.
type AsyncWriter struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Int64
}

// NewAsyncWriter starts to write to w until Close.
func NewAsyncWriter(w io.Writer) *AsyncWriter {
	a := &AsyncWriter{lines: make(chan []byte, maxQueued), done: make(chan struct{})}
	go a.run(w)
	return a
}

func (a *AsyncWriter) run(w io.Writer) {
	defer close(a.done)
	var batch []byte
	for line := range a.lines {
		batch = append(batch[:0], line...)
		for more := true; more && len(batch) < 64<<10; { // lines that wait together share a write
			select {
			case line, ok := <-a.lines:
				batch, more = append(batch, line...), ok
			default:
				more = false
			}
		}
		w.Write(batch) // a log that cannot be written has nobody to tell
	}
}

// Write queues a copy of p; it never blocks and never fails.
func (a *AsyncWriter) Write(p []byte) (int, error) {
	select {
	case a.lines <- append([]byte(nil), p...):
	default:
		a.dropped.Add(1)
	}
	return len(p), nil
}

// Dropped is the number of writes that did not fit.
func (a *AsyncWriter) Dropped() int64 { return a.dropped.Load() }

// Close writes what is queued. Write must not be called any more.
func (a *AsyncWriter) Close() error {
	close(a.lines)
	<-a.done
	return nil
}

// NewLogger makes a logger in a format ("json" or "text").
func NewLogger(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
