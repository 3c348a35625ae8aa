package admin

import (
	"errors"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Times are how long the newest calls took that ended well.
type Times struct {
	Calls        int64   `json:"calls"` // that were looked at
	P50          float64 `json:"p50_ms"`
	P95          float64 `json:"p95_ms"`
	FirstByteP50 float64 `json:"first_byte_p50_ms"` // of the calls that had one
	FirstByteP95 float64 `json:"first_byte_p95_ms"`
}

func newTimes(l *store.Latency) Times {
	return Times{l.Calls, millis(l.Total.P50), millis(l.Total.P95), millis(l.FirstByte.P50), millis(l.FirstByte.P95)}
}

// LatencyRow is that of one group.
type LatencyRow struct {
	Group
	Times
}

// Latency is the answer of GET /api/v1/usage/latency.
type Latency struct {
	Times
	Whole  bool         `json:"whole"` // no call was left out: there were no more than are looked at
	By     []string     `json:"by"`
	Zone   string       `json:"zone"`
	Groups []LatencyRow `json:"groups"`
}

func (a *API) latency(r *request) (*Latency, error) {
	filter, by, zone, err := a.usageAsked(r)
	if err != nil {
		return nil, err
	}
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	all, rows, whole, err := a.Store.Latencies(r.Context(), filter, by, zone)
	if errors.Is(err, store.ErrTooManyPeriods) {
		return nil, llm.InvalidParam("invalid_value", "since", "These are too many periods for one answer. Ask for a shorter time, or by longer ones.")
	}
	if err != nil {
		return nil, err
	}
	out := &Latency{Times: newTimes(&all), Whole: whole, By: []string{}, Zone: zone.String(), Groups: []LatencyRow{}}
	for i := range rows {
		out.Groups = append(out.Groups, LatencyRow{a.newGroup(rows[i].Group, by), newTimes(&rows[i].Latency)})
	}
	for _, d := range by {
		out.By = append(out.By, string(d))
	}
	return out, nil
}
