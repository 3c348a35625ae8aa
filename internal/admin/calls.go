package admin

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/store"
)

// Call is the record of one call.
type Call struct {
	RequestID     string    `json:"request_id"`
	Time          time.Time `json:"time"`
	Key           string    `json:"key"`
	KeyName       string    `json:"key_name,omitempty"` // as it is now
	Team          string    `json:"team,omitempty"`
	TeamName      string    `json:"team_name,omitempty"` // as it is now
	Operation     string    `json:"operation"`
	Model         string    `json:"model"`
	Provider      string    `json:"provider"`
	UpstreamModel string    `json:"upstream_model"`
	Stream        bool      `json:"stream"`
	Status        int       `json:"status"`
	Error         string    `json:"error,omitempty"`
	FirstByteMs   float64   `json:"first_byte_ms"`
	TotalMs       float64   `json:"total_ms"`
	Tokens
	Estimated bool `json:"estimated"`
	// Cost is what the vendors take; null when that is not known.
	Cost *money.Amount `json:"cost_usd"`
	// Charge is what budgets pay.
	Charge   money.Amount `json:"charge_usd"`
	Service  string       `json:"service,omitempty"` // of the upstream, where it is not the usual one
	Tags     []string     `json:"tags,omitempty"`    // name=value
	BytesIn  int64        `json:"bytes_in"`
	BytesOut int64        `json:"bytes_out"`
	// Notes are what translation could not say as it was written.
	Notes []string `json:"notes,omitempty"`
	// Account is the provider's credential that served the call.
	Account string `json:"account,omitempty"`
	// Steps are the targets that were considered or tried; none when the first
	// answered and there was no other.
	Steps []store.Step `json:"steps,omitempty"`
	// CacheMiss is why a read from the prompt cache did not come although one
	// was expected.
	CacheMiss string `json:"cache_miss,omitempty"`
}

func (a *API) newCall(c *store.Call) *Call {
	out := &Call{
		RequestID: requestIDPrefix + c.ID, Time: c.Started.UTC(), Key: c.KeyID, KeyName: a.keyName(c.KeyID), Team: c.Team, TeamName: a.teamName(c.Team),
		Operation: c.Operation, Model: c.Model, Provider: c.Provider,
		UpstreamModel: c.UpstreamModel, Stream: c.Stream, Status: c.Status, Error: c.Error,
		FirstByteMs: millis(c.FirstByte), TotalMs: millis(c.Total),
		Tokens: newTokens(c.Usage), Estimated: c.Usage.Estimated, Charge: c.Charge, Service: c.Usage.Service.String(), BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		Tags:    strings.FieldsFunc(c.Tags, func(r rune) bool { return r == '\n' }),
		Notes:   strings.FieldsFunc(c.Notes, func(r rune) bool { return r == ',' }),
		Account: c.Account, Steps: store.DecodeSteps(c.Steps), CacheMiss: c.CacheMiss,
	}
	if c.Priced {
		out.Cost = &c.Cost
	}
	return out
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// requestIDPrefix stands before a call's ID where clients see it.
const requestIDPrefix = "req_"

// maxCalls bounds one page of calls.
const maxCalls = 10000

// callFilter reads what filter does, status, failed and cost_min.
func (a *API) callFilter(r *request) (f store.CallFilter, err error) {
	q := r.URL.Query()
	if f.Filter, err = a.filter(r, time.UTC); err != nil {
		return f, err
	}
	if text := q.Get("status"); text != "" {
		if f.Status, err = strconv.Atoi(text); err != nil || f.Status < 100 || f.Status > 599 {
			return f, llm.InvalidParam("invalid_value", "status", "status is an HTTP status such as 429.")
		}
	}
	if text := q.Get("failed"); text != "" {
		if f.Failed, err = strconv.ParseBool(text); err != nil {
			return f, llm.InvalidParam("invalid_value", "failed", "failed is true or false.")
		}
	}
	if text := q.Get("cost_min"); text != "" {
		if f.MinCost, err = money.Parse(text); err != nil {
			return f, llm.InvalidParam("invalid_value", "cost_min", "cost_min is no amount: %v.", err)
		}
	}
	return f, nil
}

// Calls is the answer of GET /api/v1/calls: a page of the newest.
type Calls struct {
	Calls []Call `json:"calls"`
	// Next is what the next page has as 'before'; empty when this is the last.
	Next string `json:"next,omitempty"`
}

func (a *API) calls(r *request) (*Calls, error) {
	filter, err := a.callFilter(r)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(r, maxCalls)
	if err != nil {
		return nil, err
	}
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	rows, err := a.Store.Calls(r.Context(), filter, strings.TrimPrefix(r.URL.Query().Get("before"), requestIDPrefix), limit)
	if err != nil {
		return nil, err
	}
	out := &Calls{Calls: []Call{}}
	for i := range rows {
		out.Calls = append(out.Calls, *a.newCall(&rows[i]))
	}
	if len(rows) == limit {
		out.Next = out.Calls[limit-1].RequestID
	}
	return out, nil
}

func noCall(id string) error {
	return llm.Errorf(llm.NotFound, "There is no call %q. The ID is in the answer's header x-request-id, and in 'limen usage --calls 20'.", id)
}

// showCall answers with one record.
func (a *API) showCall(r *request) (*CallDetails, error) {
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	id := r.PathValue("call")
	c, err := a.Store.Call(r.Context(), strings.TrimPrefix(id, requestIDPrefix))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, noCall(id)
	case err != nil:
		return nil, err
	}
	if teams, only := a.ownTeams(r); only && !slices.Contains(teams, c.Team) {
		return nil, noCall(id)
	}
	return &CallDetails{*a.newCall(&c), a.costParts(&c)}, nil
}

// CallDetails is a record with what the cost is made of.
type CallDetails struct {
	Call
	// CostParts are by the prices of the time of the call; none where they come
	// to another sum, as with a cost that the vendor stated.
	CostParts []price.Part `json:"cost_parts,omitempty"`
}

func (a *API) costParts(c *store.Call) []price.Part {
	if a.Catalog == nil || !c.Priced || !priceable(c) {
		return nil
	}
	list := a.Catalog.Book(c.Model, c.Provider, c.UpstreamModel).At(c.Started)
	if cost, known := list.Cost(&c.Usage); !known || cost != c.Cost {
		return nil
	}
	return list.Parts(&c.Usage)
}
