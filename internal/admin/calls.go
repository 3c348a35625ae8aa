package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Call is the record of one call.
type Call struct {
	RequestID     string    `json:"request_id"`
	Time          time.Time `json:"time"`
	Key           string    `json:"key"`
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
	Estimated bool  `json:"estimated"`
	BytesIn   int64 `json:"bytes_in"`
	BytesOut  int64 `json:"bytes_out"`
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

func newCall(c *store.Call) Call {
	return Call{
		RequestID: requestIDPrefix + c.ID, Time: c.Started.UTC(), Key: c.KeyID, Operation: c.Operation, Model: c.Model, Provider: c.Provider,
		UpstreamModel: c.UpstreamModel, Stream: c.Stream, Status: c.Status, Error: c.Error,
		FirstByteMs: float64(c.FirstByte.Microseconds()) / 1000, TotalMs: float64(c.Total.Microseconds()) / 1000,
		Tokens: newTokens(c.Usage), Estimated: c.Usage.Estimated, BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		Notes:   strings.FieldsFunc(c.Notes, func(r rune) bool { return r == ',' }),
		Account: c.Account, Steps: store.DecodeSteps(c.Steps), CacheMiss: c.CacheMiss,
	}
}

// requestIDPrefix stands before a call's ID where clients see it.
const requestIDPrefix = "req_"

// maxCalls bounds one page of calls.
const maxCalls = 10000

func (a *API) calls(r *http.Request) (any, error) {
	filter, err := a.filter(r)
	if err != nil {
		return nil, err
	}
	limit := 100
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxCalls {
			return nil, llm.InvalidParam("invalid_value", "limit", "limit is a number from 1 to %d.", maxCalls)
		}
	}
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	rows, err := a.Store.Calls(r.Context(), filter, strings.TrimPrefix(r.URL.Query().Get("before"), requestIDPrefix), limit)
	if err != nil {
		return nil, err
	}
	out := struct {
		Calls []Call `json:"calls"`
	}{[]Call{}}
	for i := range rows {
		out.Calls = append(out.Calls, newCall(&rows[i]))
	}
	return out, nil
}

// showCall answers with one record.
func (a *API) showCall(r *http.Request) (any, error) {
	if err := a.settle(r.Context()); err != nil {
		return nil, err
	}
	id := r.PathValue("call")
	c, err := a.Store.Call(r.Context(), strings.TrimPrefix(id, requestIDPrefix))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, llm.Errorf(llm.NotFound, "There is no call %q. The ID is in the answer's header x-request-id, and in 'limen usage --calls 20'.", id)
	case err != nil:
		return nil, err
	}
	return newCall(&c), nil
}
