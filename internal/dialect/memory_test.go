package dialect_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/bedrock"
	"github.com/limen-gateway/limen/internal/dialect/gemini"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/sse"
)

// allocated is how much memory run allocates, on average.
func allocated(runs int, run func()) uint64 {
	run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / uint64(runs)
}

// A prompt of 100 KB is said anew in at most four times its size, all that is
// dropped again counted, whatever the two dialects are.
func TestTranslationMemory(t *testing.T) {
	const times = 4
	const turns = 50
	said := strings.Repeat("A line of code,\\tsay, \\\"with\\\" escapes.\\n", 25)
	turn := func(user, assistant string) string {
		return strings.Repeat(user+","+assistant+",", turns) + user
	}
	for _, from := range []struct {
		inbound dialect.Inbound
		body    string
	}{
		{openaichat.Dialect{}, `{"model":"m","messages":[` + turn(`{"role":"user","content":"`+said+`"}`, `{"role":"assistant","content":"`+said+`"}`) + `]}`},
		{openairesponses.Dialect{}, `{"model":"m","store":false,"input":[` + turn(`{"role":"user","content":[{"type":"input_text","text":"`+said+`"}]}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`+said+`","annotations":[]}]}`) + `]}`},
		{anthropic.Dialect{}, `{"model":"m","max_tokens":9,"messages":[` + turn(`{"role":"user","content":"`+said+`"}`, `{"role":"assistant","content":[{"type":"text","text":"`+said+`"}]}`) + `]}`},
	} {
		for _, to := range []dialect.Outbound{openaichat.Upstream{}, openairesponses.Upstream{}, anthropic.Upstream{}, gemini.Upstream{}, bedrock.Upstream{}} {
			used := allocated(10, func() {
				req, err := from.inbound.Decode([]byte(from.body), seal.Key{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := dialect.Translate(req, from.inbound, to, &llm.Caps{}, &dialect.Ask{Request: req}); err != nil {
					t.Fatal(err)
				}
			})
			used -= uint64(len(from.body)) // which this test copies
			ratio := float64(used) / float64(len(from.body))
			t.Logf("%T to %T: %d bytes, %.1f times", from.inbound, to, len(from.body), ratio)
			if ratio > times {
				t.Errorf("%T to %T: %.1f times the body of %d bytes, want at most %d", from.inbound, to, ratio, len(from.body), times)
			}
		}
	}
}

// What a stream needs does not grow with it, but for Responses, whose last
// event has the whole answer.
func TestStreamMemory(t *testing.T) {
	const pieces = 50_000
	frame := func(text string) sse.Frame {
		return sse.Frame{Data: []byte(`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}`)}
	}
	for _, in := range []dialect.Inbound{anthropic.Dialect{}, openaichat.Dialect{}} {
		ask := &dialect.Ask{Request: &llm.Request{}, ID: "1", Model: "m", Begun: time.Unix(1, 0)}
		tr, err := dialect.Translate(ask.Request, in, openaichat.Upstream{}, &llm.Caps{}, ask)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		held := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		send := func(n int) {
			for i := range n {
				if out, _, err = tr.Frame(out[:0], frame(fmt.Sprint("piece ", i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(1000)
		before := held()
		send(pieces)
		after := held()
		runtime.KeepAlive(tr)
		grown := int64(after) - int64(before)
		t.Logf("%T: %d bytes after %d pieces", in, grown, pieces)
		if grown > pieces/10 {
			t.Errorf("%T: what is held grew by %d bytes over %d pieces", in, grown, pieces)
		}
	}
}
