// Package telemetry makes log lines and metrics of calls, from one record per
// call and once, at its end. Nothing of prompts, answers, headers or keys is
// in either.
package telemetry

import (
	"iter"
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// Metrics are the gateway's own, named by OpenTelemetry's conventions for
// generative AI where those have a name.
type Metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	tokens    *prometheus.CounterVec
	caches    *prometheus.CounterVec
	cost      *prometheus.CounterVec
	unpriced  *prometheus.CounterVec
	active    prometheus.Gauge
	waiting   prometheus.Gauge
	refused   *prometheus.CounterVec
	targets   sync.Map // target -> *series
}

// target is what a call was served by. There are as many as there are offered
// models, for the operations that are used.
type target struct{ operation, model, provider string }

// series are the metrics of a target, found once.
type series struct {
	succeeded prometheus.Counter
	duration  prometheus.Observer
	firstByte prometheus.Observer
	tokens    [len(tokenTypes)]prometheus.Counter
	cost      prometheus.Counter
	unpriced  prometheus.Counter
}

// tokenTypes are the values of gen_ai_token_type.
var tokenTypes = [...]string{"input", "input.cache_read", "input.cache_write", "output", "output.reasoning"}

// Gauges are values that are read when metrics are asked for.
type Gauges struct {
	JournalPending func() int64 // records that are not yet in the store
	LogDropped     func() int64 // log lines that did not fit
	Models         func() int   // models that are offered
	Bodies         func() int64 // bytes of memory for the bodies of requests
	// Targets are those that were called, each once.
	Targets func() iter.Seq[Target]
}

var durationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68}

// NewMetrics makes a registry of its own.
func NewMetrics(g Gauges) *Metrics {
	target := []string{"gen_ai_operation_name", "gen_ai_request_model", "gen_ai_provider_name"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_requests_total", Help: "Calls by outcome; error_type is empty for those that ended well.",
		}, append(target, "http_response_status_code", "error_type")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gen_ai_server_request_duration_seconds", Help: "Time from the request's head to the end of the answer.", Buckets: durationBuckets,
		}, target),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gen_ai_server_time_to_first_token_seconds", Help: "Time from the request's head to the first byte of the upstream's answer.", Buckets: durationBuckets,
		}, target),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_tokens_total", Help: "Tokens by type; no token is counted in two types.",
		}, append(target, "gen_ai_token_type")),
		caches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_prompt_cache_total", Help: "Calls by key whose prompt was read from a cache, and those where that was expected and missed.",
		}, []string{"limen_key_id", "result"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_cost_dollars_total", Help: "What upstreams take for calls, where it is known.",
		}, target[1:]),
		unpriced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_calls_unpriced_total", Help: "Calls whose cost is not known.",
		}, target[1:]),
		active:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "limen_active_requests", Help: "Calls under way."}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "limen_waiting_requests", Help: "Calls that wait for room within a limit."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "limen_refused_total", Help: "Calls refused by a limit of what is under way at once: calls, bodies, or calls of a provider.",
		}, []string{"limit", "gen_ai_provider_name"}),
	}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	m.registry.MustRegister(m.requests, m.duration, m.firstByte, m.tokens, m.caches, m.cost, m.unpriced, m.active, m.waiting, m.refused,
		gauge("limen_journal_pending", "Usage records that wait for the store.", func() float64 { return float64(g.JournalPending()) }),
		gauge("limen_log_dropped", "Log lines dropped because nobody read them.", func() float64 { return float64(g.LogDropped()) }),
		gauge("limen_models", "Models that are offered.", func() float64 { return float64(g.Models()) }),
		gauge("limen_request_bodies_bytes", "Memory for the bodies of requests.", func() float64 { return float64(g.Bodies()) }),
		targets{g.Targets}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics as text.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Begin counts a call as under way, until the returned Observe.
func (m *Metrics) Begin() { m.active.Inc() }

// Wait counts a call as waiting for room, until the function is called.
func (m *Metrics) Wait() (over func()) {
	m.waiting.Inc()
	return m.waiting.Dec
}

// Refuse counts a call that a limit refused. provider is "none" where the limit
// is of all.
func (m *Metrics) Refuse(limit, provider string) { m.refused.WithLabelValues(limit, provider).Inc() }

// Observe counts a call that ended. A call that reached no upstream has
// "none" for model and provider: clients choose names, labels must be few.
func (m *Metrics) Observe(c *store.Call) {
	m.active.Dec()
	if c.Provider == "" {
		m.requests.WithLabelValues(c.Operation, "none", "none", strconv.Itoa(c.Status), c.Error).Inc()
		return
	}
	t := m.series(target{c.Operation, c.Model, c.Provider})
	if c.Error == "" {
		t.succeeded.Inc()
	} else {
		m.requests.WithLabelValues(c.Operation, c.Model, c.Provider, strconv.Itoa(c.Status), c.Error).Inc()
	}
	t.duration.Observe(c.Total.Seconds())
	if c.FirstByte > 0 {
		t.firstByte.Observe(c.FirstByte.Seconds())
	}
	if c.Priced {
		t.cost.Add(float64(max(c.Cost, 0)) / float64(money.Dollar))
	} else {
		t.unpriced.Inc()
	}
	u := &c.Usage
	switch {
	case u.CacheRead > 0:
		m.caches.WithLabelValues(c.KeyID, "read").Inc()
	case c.CacheMiss != "":
		m.caches.WithLabelValues(c.KeyID, "missed").Inc()
	}
	for i, n := range [...]int64{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
		if n > 0 {
			t.tokens[i].Add(float64(n))
		}
	}
}

func (m *Metrics) series(t target) *series {
	if found, ok := m.targets.Load(t); ok {
		return found.(*series)
	}
	s := &series{
		succeeded: m.requests.WithLabelValues(t.operation, t.model, t.provider, "200", ""),
		duration:  m.duration.WithLabelValues(t.operation, t.model, t.provider),
		firstByte: m.firstByte.WithLabelValues(t.operation, t.model, t.provider),
	}
	s.cost, s.unpriced = m.cost.WithLabelValues(t.model, t.provider), m.unpriced.WithLabelValues(t.model, t.provider)
	for i, kind := range tokenTypes {
		s.tokens[i] = m.tokens.WithLabelValues(t.operation, t.model, t.provider, kind)
	}
	found, _ := m.targets.LoadOrStore(t, s)
	return found.(*series)
}
