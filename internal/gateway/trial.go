package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/store"
)

// Trial is what came of a call that the gateway made to see whether a provider
// answers.
type Trial struct {
	Model      string
	Answer     string
	FirstToken time.Duration
	Total      time.Duration
	Err        string // for operators, in the upstream's words where it has some; empty when it answered
	Status     int    // of a refusal, as the upstream gave it
}

// trialTime is how long the call of a trial may take.
const trialTime = 30 * time.Second

// trialBody asks for little. What reasons needs some tokens before it speaks.
const trialBody = `{"model":%s,"messages":[{"role":"user","content":"Reply with the single word: pong"}],"max_completion_tokens":64,"stream":true}`

// Try has a model of a provider answer, in a call as a client's: on its way, in
// the record, though of no key. An empty model is one that the provider offers.
func (g *Gateway) Try(ctx context.Context, name, model string) (*Trial, error) {
	m := g.trialModel(name, model)
	if m == nil {
		return nil, llm.Errorf(llm.NoModel, "Nothing is offered of provider %q%s.", name, of(model))
	}
	i := slices.IndexFunc(g.doors, func(d Door) bool { return d.Name() == dialect.OpenAIChat })
	door := g.doors[i]
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	body := fmt.Appendf(nil, trialBody, jsonedit.AppendQuote(nil, m.ID))
	r := (&http.Request{
		Method: http.MethodPost, Header: http.Header{"Content-Type": contentJSON}, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	set := *g.settings.Load()
	set.Tags, set.Tools, set.Unknown, set.Heartbeat = nil, nil, AllowUnknown, 0
	now := time.Now()
	heard := &hearing{header: http.Header{}}
	x := &exchange{
		w: heard, r: r, requestID: newRequestID(now), started: now, set: &set, operation: keys.OpChat, failures: door,
		key: &keys.Key{Key: store.Key{Name: "trial"}},
	}
	c := g.begin(x, door)
	defer c.end()
	c.model, x.r = m, nil // it came from nobody
	g.carryOut(c, x, r)
	t := &Trial{Model: m.Targets[0].Model, Total: time.Since(now)}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.Err = fmt.Sprintf("No answer came within %s.", trialTime)
	case c.Err != nil:
		t.Err, t.Status = c.cause(), c.Err.Status
	default:
		t.Answer, t.FirstToken = heard.said(), heard.first.Sub(now)
	}
	return t, nil
}

func of(model string) string {
	if model == "" {
		return ""
	}
	return fmt.Sprintf(" by the name %q", clip(model))
}

// trialModel is a model with one target: of a provider, by the name that it has
// there or here. Its health is its own, so that a trial is made of what is sick,
// and makes nothing sick.
func (g *Gateway) trialModel(name, model string) *route.Model {
	g.models.Await()
	var chosen *route.Target
	for _, m := range g.models.Table().All() {
		for i := range m.Targets {
			t := &m.Targets[i]
			if t.Upstream.Name != name || model != "" && model != t.Model && model != m.ID {
				continue
			}
			if chosen == nil || model == "" && simpler(t, chosen) {
				chosen = t
			}
		}
	}
	if chosen == nil {
		return nil
	}
	own := *chosen
	own.Health, own.When, own.KeepsState = nil, nil, false
	m := &route.Model{ID: name + "/" + own.Model, Targets: []route.Target{own}}
	return route.NewTable([]*route.Model{m}).All()[0]
}

// simpler reports whether a target fits better for a trial: one that is known to
// answer in texts.
func simpler(a, b *route.Target) bool {
	chats := func(t *route.Target) bool { return t.MaxOutput > 0 && t.Tools != provider.No }
	return chats(a) && !chats(b)
}

// hearing takes an answer and notes when it began.
type hearing struct {
	header http.Header
	text   bytes.Buffer
	first  time.Time
}

func (h *hearing) Header() http.Header { return h.header }
func (h *hearing) WriteHeader(int)     {}
func (h *hearing) Flush()              {}

func (h *hearing) Write(p []byte) (int, error) {
	if h.first.IsZero() {
		h.first = time.Now()
	}
	return h.text.Write(p)
}

// said is the text of the answer.
func (h *hearing) said() string {
	var text strings.Builder
	for line := range strings.Lines(h.text.String()) {
		data, ok := strings.CutPrefix(line, "data: ")
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if !ok || json.Unmarshal([]byte(data), &chunk) != nil {
			continue
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	return text.String()
}
