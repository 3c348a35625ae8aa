package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/store"
)

// priced is the API on a store with calls, and on providers with prices.
func priced(t *testing.T, text string, calls ...store.Call) (http.Handler, *store.Store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse(config.Source{Name: "limen.yaml", Data: []byte(text)}, config.Options{})
	must(err)
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(), dir, "")
	must(err)
	t.Cleanup(func() { st.Close() })
	must(st.AddCalls(t.Context(), calls))
	l, err := ledger.Open(dir, budget.NewBooks(st, "n", true, log), log)
	must(err)
	t.Cleanup(func() { l.Close(context.Background()) })
	c := catalog.New(st, log, "limen/test")
	setup := catalog.Setup{Models: cfg.Models, Markup: cfg.Prices.Markup}
	for _, p := range cfg.Providers {
		vendor, _ := provider.Lookup(p.Name)
		setup.Providers = append(setup.Providers, catalog.Provider{Provider: p, Vendor: vendor})
	}
	count, err := c.Prepare(t.Context(), setup)
	must(err)
	count()
	t.Cleanup(c.Close)
	return NewServer(&API{Catalog: c, Ledger: l, Store: st, Log: log}).Local(keys.ViaSocket), st
}

func (r *Repriced) String() string {
	return fmt.Sprintf("%d looked, %d changed, %d unknown, %s to %s, more %v", r.Looked, r.Changed, r.Unknown, r.Was, r.Is, r.Next != "")
}

func reprice(t *testing.T, h http.Handler, in Reprice) (out Repriced) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/prices/reprice", bytes.NewReader(body)))
	if err := json.Unmarshal(w.Body.Bytes(), &out); w.Code != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	return out
}

const prices = `
providers:
  lab:
    base_url: http://127.0.0.1:1/v1
    models: [small]
    markup: 10%
    prices: { small: [{ input: 1, output: 1 }, { input: 2, output: 1, from: 2026-02-01 }], "*": free }
  plain: { base_url: "http://127.0.0.1:1/v1" }
models:
  fast: { targets: [lab/small], price: { call: 0.000001 } }
`

// call is one of a day of 2026 that used a million tokens.
func call(n int, day time.Time, c store.Call) store.Call {
	c.ID, c.Started, c.KeyID, c.Operation = fmt.Sprintf("%012x%020x", day.UnixMilli(), n), day, "k", "chat"
	c.Usage = llm.Usage{Input: 1_000_000}
	return c
}

// Each call gets the price of its time: records, sums, charges with the markup,
// and none of what is not known or cost nothing.
func TestReprice(t *testing.T) {
	january, february := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	failed := call(5, february, store.Call{Model: "lab/small", Provider: "lab", UpstreamModel: "small", Status: 502, Error: "upstream"})
	failed.Usage = llm.Usage{}
	const dollar = money.Dollar
	calls := []store.Call{
		call(1, january, store.Call{Model: "lab/small", Provider: "lab", UpstreamModel: "small", Status: 200}),
		call(2, february, store.Call{Model: "lab/small", Provider: "lab", UpstreamModel: "small", Status: 200, Priced: true, Cost: dollar, Charge: dollar}),
		call(3, february, store.Call{Model: "fast", Provider: "lab", UpstreamModel: "small", Status: 200, Priced: true, Cost: 2*dollar + 1000, Charge: 2200001100}),
		call(4, february, store.Call{Model: "plain/m", Provider: "plain", UpstreamModel: "m", Status: 200, Charge: 7}),
		failed,
		call(6, february, store.Call{Model: "nothing", Status: 404, Error: "no_model"}),
		call(7, january, store.Call{Model: "gone/m", Provider: "gone", UpstreamModel: "m", Status: 200, Priced: true, Cost: 5, Charge: 5}),
		call(8, january, store.Call{Model: "openai/gpt-5", Provider: "openai", UpstreamModel: "gpt-5", Status: 200}), // not there any more, but known
	}
	h, st := priced(t, prices, calls...)
	for _, test := range []struct {
		name string
		in   Reprice
		want string
	}{
		{"dry", Reprice{DryRun: true}, "8 looked, 3 changed, 2 unknown, 1 to 4.25, more false"},
		{"dry again", Reprice{DryRun: true}, "8 looked, 3 changed, 2 unknown, 1 to 4.25, more false"},
		{"of a model", Reprice{DryRun: true, Model: "fast"}, "1 looked, 0 changed, 0 unknown, 0 to 0, more false"},
		{"since", Reprice{DryRun: true, Since: "2026-02-01"}, "5 looked, 1 changed, 1 unknown, 1 to 2, more false"},
		{"until", Reprice{DryRun: true, Until: "2026-02-01"}, "3 looked, 2 changed, 1 unknown, 0 to 2.25, more false"},
		{"unknown only", Reprice{Unknown: true}, "8 looked, 2 changed, 1 unknown, 0 to 2.25, more false"},
		{"the rest", Reprice{}, "8 looked, 1 changed, 2 unknown, 1 to 2, more false"},
		{"nothing left", Reprice{}, "8 looked, 0 changed, 2 unknown, 0 to 0, more false"},
	} {
		if got := reprice(t, h, test.in); got.String() != test.want {
			t.Errorf("%s: got %s, want %s", test.name, &got, test.want)
		}
	}
	for i, want := range []string{"true 1 1.1", "true 2 2.2", "true 2.000001 2.2000011", "false 0 0.000000007", "false 0 0", "false 0 0", "true 0.000000005 0.000000005", "true 1.25 1.25"} {
		c, err := st.Call(t.Context(), calls[i].ID)
		if got := fmt.Sprint(c.Priced, c.Cost, c.Charge); err != nil || got != want {
			t.Errorf("call %d: got %s, %v, want %s", i+1, got, err, want)
		}
	}
	rows, err := st.Usage(t.Context(), store.Filter{}, nil, time.UTC)
	if err != nil || len(rows) != 1 || rows[0].Unpriced != 3 || rows[0].Cost.String() != "6.250001005" {
		t.Errorf("sums are %+v, %v", rows, err)
	}
}

// What is more than is looked at at once is asked for part by part.
func TestRepriceInParts(t *testing.T) {
	var calls []store.Call
	for i := range 2*repricedAtOnce + 1 {
		at := time.Date(2026, 2, 1, 0, 0, 0, i*int(time.Millisecond), time.UTC)
		calls = append(calls, call(i, at, store.Call{Model: "lab/small", Provider: "lab", UpstreamModel: "small", Status: 200}))
	}
	h, _ := priced(t, prices, calls...)
	var in Reprice
	for i, want := range []string{
		"1000 looked, 1000 changed, 0 unknown, 0 to 2000, more true",
		"1000 looked, 1000 changed, 0 unknown, 0 to 2000, more true",
		"1 looked, 1 changed, 0 unknown, 0 to 2, more false",
	} {
		got := reprice(t, h, in)
		if got.String() != want {
			t.Errorf("part %d: got %s, want %s", i+1, &got, want)
		}
		in.Before = got.Next
	}
}
