// Package admin is the admin API, JSON under /api/v1: every operation of the
// command line, of scripts and of consoles. Its operations are a table, which
// says of each who may use it.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/arrivals"
	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/store"
)

// API serves the operations.
type API struct {
	Keys      *keys.Keyring
	Books     *budget.Books // of what keys and teams may spend
	Operators *keys.Operators
	Catalog   *catalog.Catalog // nil without a running gateway
	Ledger    *ledger.Ledger
	Arrivals  *arrivals.Log // nil without a running gateway
	Store     *store.Store
	Log       *slog.Logger
	Version   string
	// LocalURL is the base URL for clients on the gateway's own machine; empty
	// without a running gateway.
	LocalURL string
	// OurName reports whether a request came by one of the gateway's own names.
	// Where it is nil, all are.
	OurName func(*http.Request) bool
	// KeyPrefix is what keys begin with when nothing else is asked for.
	KeyPrefix func() string
	// Config is the configuration in force as JSON, without secrets; Reload
	// reads its file again. Both are nil without a running gateway.
	Config func() ([]byte, error)
	Reload func() error
	// Documents keeps the configuration, unless ConfigFile, which goes before,
	// is not empty.
	Documents  *document.Keeper
	ConfigFile string
	// InForce is the document in force, and why what came after it is not; Try
	// finds out whether a configuration could be, and Found are the providers
	// that are without being configured. They are nil without a running gateway.
	InForce func() (config.Source, error)
	Try     func(*config.Config) error
	Found   func() []document.Found
	// SignOn is how people log in besides passwords; nil is no other way.
	SignOn func() *SignOn
	// Trial has a provider answer a call, by a model that may be empty. It is nil
	// without a running gateway.
	Trial func(ctx context.Context, provider, model string) (*Trial, error)
	// Forecast tells which targets a call would go to. operation and body may
	// be empty. It is nil without a running gateway.
	Forecast func(ctx context.Context, key *keys.Key, model, operation string, header http.Header, body []byte) (*route.Forecast, error)
}

// decode reads a body into a struct, strictly: an unknown member is an
// error. An empty body leaves it as it is.
func decode(body io.Reader, into any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	switch err := d.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return llm.InvalidParam("invalid_value", "", "The body of the request cannot be used: %v.", err)
	}
	return nil
}

// Status says who answers, and where clients find it.
type Status struct {
	Version  string `json:"version"`
	LocalURL string `json:"local_url,omitempty"`
	Pending  int64  `json:"usage_records_pending"`
}

func (a *API) status(*request) (*Status, error) {
	return &Status{a.Version, a.LocalURL, a.Ledger.Pending()}, nil
}

// Configuration is what is in force.
type Configuration struct{ json.RawMessage }

func (a *API) showConfig(*request) (*Configuration, error) {
	if a.Config == nil {
		return nil, errNotRunning
	}
	document, err := a.Config()
	return &Configuration{document}, err
}

func (a *API) reload(*request) (*Done, error) {
	if a.Reload == nil {
		return nil, errNotRunning
	}
	if err := a.Reload(); err != nil {
		return nil, document.Bad(err)
	}
	return &Done{"reloaded"}, nil
}

var errNotRunning = llm.Errorf(llm.NotFound, "This needs a running gateway.")

// NewPassword is what POST /api/v1/admin/password takes: without one, it is
// made up.
type NewPassword struct {
	Password string `json:"password,omitempty"`
}

// Password is its answer.
type Password struct {
	Password string `json:"password"`
}

func (a *API) setPassword(r *request, in *NewPassword) (*Password, error) {
	if in.Password == "" {
		in.Password = keys.NewPassword()
	}
	return &Password{in.Password}, a.Operators.SetAdminPassword(r.Context(), in.Password)
}

// ProviderList is the answer of GET /api/v1/providers.
type ProviderList struct {
	Providers []catalog.State `json:"providers"`
}

func (a *API) listProviders(*request) (*ProviderList, error) {
	if a.Catalog == nil {
		return nil, errNotRunning
	}
	a.Catalog.Await()
	return &ProviderList{a.Catalog.States()}, nil
}

// Model is a model as operators see it.
type Model struct {
	ID        string   `json:"id"`
	Targets   []string `json:"targets"`
	VisibleTo []string `json:"visible_to,omitempty"`
	Context   int      `json:"context,omitempty"`
	MaxOutput int      `json:"max_output,omitempty"`
	Speaks    []string `json:"speaks"`
	// Prices are those of the first target, in dollars per million tokens.
	// What is not known is not there.
	Prices price.List `json:"usd_per_million_tokens,omitzero"`
	Health []Health   `json:"health"` // of the targets at each account
	// Abilities are those of the first target. What is not known is not there.
	Abilities Abilities `json:"abilities"`
}

// Abilities are what a model is known to do, or not to.
type Abilities struct {
	Tools      *bool `json:"tools,omitempty"`
	Vision     *bool `json:"vision,omitempty"`
	Structured *bool `json:"structured,omitempty"` // answers that follow a JSON schema
	Reasoning  *bool `json:"reasoning,omitempty"`
}

func abilitiesOf(t *route.Target) Abilities {
	known := func(a provider.Ability) *bool {
		if a == provider.Unknown {
			return nil
		}
		yes := a == provider.Yes
		return &yes
	}
	a := Abilities{Tools: known(t.Tools), Vision: known(t.Vision), Structured: known(t.Schema)}
	if caps := t.Caps[t.Upstream.Speaks[0]]; caps.ReasonsKnown {
		a.Reasoning = &caps.Reasons
	}
	return a
}

// Health is how it stands with a target.
type Health struct {
	Target        string    `json:"target"`
	Account       string    `json:"account"`
	State         string    `json:"state" enum:"ok half-open cooling"`
	Until         time.Time `json:"until,omitzero"` // while it is cooling
	LastError     string    `json:"last_error,omitempty"`
	Failed        time.Time `json:"failed,omitzero"`
	InFlight      int64     `json:"in_flight"`
	Conversations int64     `json:"conversations"`
	FirstTokenMs  float64   `json:"first_token_ms,omitempty"`
	Calls         int64     `json:"calls"`      // in the last ten seconds
	ErrorRate     float64   `json:"error_rate"` // of those
}

func newHealth(t *route.Target, now time.Time) Health {
	s := t.Health.Snapshot(now)
	return Health{
		Target: t.String(), Account: t.Account, State: s.State, Until: s.Until.UTC(), LastError: s.LastError, Failed: s.Failed.UTC(),
		InFlight: s.InFlight, Conversations: s.Conversations, FirstTokenMs: float64(s.FirstToken.Microseconds()) / 1000,
		Calls: s.Calls, ErrorRate: s.ErrorRate,
	}
}

// ModelList is the answer of GET /api/v1/models.
type ModelList struct {
	Models []Model         `json:"models"`
	Facts  provider.Origin `json:"facts"` // about models, where their providers say nothing
}

func (a *API) listModels(*request) (*ModelList, error) {
	if a.Catalog == nil {
		return nil, errNotRunning
	}
	a.Catalog.Await()
	models, now := []Model{}, time.Now()
	for _, m := range a.Catalog.Table().All() {
		out := Model{ID: m.ID, Context: m.Facts.Context, MaxOutput: m.Facts.MaxOutput, Abilities: abilitiesOf(&m.Targets[0]), Prices: *m.Targets[0].Price.At(now)}
		for i := range m.Targets {
			t := &m.Targets[i]
			if name := t.String(); !slices.Contains(out.Targets, name) {
				out.Targets = append(out.Targets, name)
			}
			out.Health = append(out.Health, newHealth(t, now))
		}
		for _, d := range m.Targets[0].Upstream.Speaks {
			out.Speaks = append(out.Speaks, string(d))
		}
		for _, p := range m.VisibleTo {
			out.VisibleTo = append(out.VisibleTo, string(p))
		}
		models = append(models, out)
	}
	return &ModelList{models, a.Catalog.Facts().Origin()}, nil
}

// settle brings what the journal holds to the store, so that sums are whole.
func (a *API) settle(ctx context.Context) error {
	if err := a.Ledger.Drain(ctx); err != nil {
		return &llm.Error{Kind: llm.Unavailable, Message: "The store is away; usage cannot be read now. Nothing is lost: it waits in the journal.", Err: err}
	}
	return nil
}
