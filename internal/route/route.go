// Package route says which models there are and who serves them. A table is
// compiled from the configuration and the upstreams' model lists, and never
// changes; it does no I/O.
package route

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/rule"
	"github.com/limen-gateway/limen/internal/upstream"
)

// Target is a model of an upstream, as one account of it is asked.
type Target struct {
	Upstream *upstream.Upstream
	Account  string  // for people: the provider, or "openai#2" for another of its credentials
	Model    string  // as the upstream calls it
	Weight   float64 // share of the calls
	Tier     int     // where the model's strategy is Ordered: a lower one goes first
	Reasons  bool    // the model is known to reason
	// Caps is what the model can do and how the server wants it said, for each
	// dialect that the upstream speaks.
	Caps map[dialect.Name]*llm.Caps
	// Strict: what cannot be said there as it is written is refused.
	Strict bool
	// KeepsState: the upstream is left to keep its responses.
	KeepsState bool

	Price                 *price.Book // what is known of it; nil is nothing
	Context, MaxOutput    int64       // tokens; 0 when not known
	Vision, Tools, Schema provider.Ability
	Region                string
	ZeroRetention         bool
	When                  *rule.Rule // the requests that it takes; nil is all

	// Health is made by NewTable for a target that has none.
	Health *Health

	name    string   // "provider/model"
	origins []string // of opaque state that it reads
}

// String is the target's name: "provider/model".
func (t *Target) String() string { return t.name }

// Strategy is how one of several targets is chosen.
type Strategy uint8

// The strategies.
const (
	Weighted Strategy = iota // at random, by weight
	Ordered                  // the first that is well
	Latency                  // the one whose answers begin soonest
	Busy                     // the one with the fewest calls under way, by weight
	Price                    // the cheapest
)

func (s Strategy) String() string {
	return [...]string{Weighted: "weighted", Ordered: "ordered", Latency: "latency", Busy: "busy", Price: "price"}[s]
}

// Hedge has a second target asked when the first is slow to begin.
type Hedge struct {
	After    time.Duration // 0: the time within which 95 % of the target's answers began
	MaxExtra int           // calls in a hundred that may be made twice
}

// Model is what clients can ask for.
type Model struct {
	ID        string
	Targets   []Target // best first, at least one
	VisibleTo []config.Pattern
	Facts     provider.Model

	Strategy Strategy
	// Affinity keeps a conversation with the target that had it before, whose
	// prompt cache knows it.
	Affinity bool
	// FirstToken is how long an answer may take to begin while another target
	// is left; 0 is any time.
	FirstToken time.Duration
	Hedge      *Hedge // nil: never
	// Meter keeps the limits of the model's calls; nil when there are none.
	Meter *limit.Meter
	// Continue has an answer that broke off go on at another target.
	Continue bool

	seed   uint64  // of its conversations' keys
	hedges *budget // nil without Hedge
}

// prepare works out what does not change from call to call.
func (m *Model) prepare() {
	m.seed = hash(m.ID)
	if m.Hedge != nil {
		m.hedges = &budget{}
	}
	for i := range m.Targets {
		t := &m.Targets[i]
		t.name = t.Model
		if t.Upstream != nil {
			t.name = t.Upstream.Name + "/" + t.Model
		}
		if t.Account == "" && t.Upstream != nil {
			t.Account = t.Upstream.Name
		}
		if t.Weight <= 0 {
			t.Weight = 1
		}
		if t.Health == nil {
			t.Health = NewHealth(t.Account + "/" + t.Model)
		}
		t.origins = nil
		for _, caps := range t.Caps {
			if caps.Origin != "" && !slices.Contains(t.origins, caps.Origin) {
				t.origins = append(t.origins, caps.Origin)
			}
		}
	}
}

// Viewer is whoever asks for models: a key. nil is an operator, who sees all.
type Viewer interface {
	// KeyName is matched with a model's VisibleTo.
	KeyName() string
	// Sees reports whether the key itself is for a model.
	Sees(id string) bool
}

// visible reports whether a viewer may know and use the model.
func (m *Model) visible(v Viewer) bool {
	return v == nil || v.Sees(m.ID) && (len(m.VisibleTo) == 0 ||
		slices.ContainsFunc(m.VisibleTo, func(p config.Pattern) bool { return p.Match(v.KeyName()) }))
}

// Table holds all models.
type Table struct {
	models    map[string]*Model
	sorted    []*Model
	upstreams map[string]*upstream.Upstream // by account
}

// NewTable makes a table; of two models with one ID the first counts.
func NewTable(models []*Model) *Table {
	t := &Table{models: make(map[string]*Model, len(models)), upstreams: map[string]*upstream.Upstream{}}
	for _, m := range models {
		if t.models[m.ID] == nil {
			m.prepare()
			t.models[m.ID] = m
		}
		for i := range m.Targets {
			if up := m.Targets[i].Upstream; up != nil {
				t.upstreams[m.Targets[i].Account] = up
			}
		}
	}
	t.sorted = slices.SortedFunc(maps.Values(t.models), func(a, b *Model) int { return cmp.Compare(a.ID, b.ID) })
	return t
}

// Visible lists the models that a viewer may use, by ID.
func (t *Table) Visible(v Viewer) []*Model {
	var list []*Model
	for _, m := range t.sorted {
		if m.visible(v) {
			list = append(list, m)
		}
	}
	return list
}

// All lists all models, by ID.
func (t *Table) All() []*Model { return t.sorted }

// Upstream returns a provider that serves models, nil when there is none of
// that name.
func (t *Table) Upstream(account string) *upstream.Upstream { return t.upstreams[account] }

// Find returns a model that a viewer may use, nil when there is none.
func (t *Table) Find(v Viewer, id string) *Model {
	if m := t.models[id]; m != nil && m.visible(v) {
		return m
	}
	return nil
}

// Resolve is Find with an error that names the nearest models. It is the same
// for a model that does not exist and for one that the viewer may not know.
func (t *Table) Resolve(v Viewer, id string) (*Model, error) {
	if m := t.Find(v, id); m != nil {
		return m, nil
	}
	return nil, t.unknown(v, id)
}

// maxShown bounds how much of a client's model name is said back.
const maxShown = 100

func (t *Table) unknown(v Viewer, id string) error {
	shown := id
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "…"
	}
	e := llm.Errorf(llm.NoModel, "The model '%s' does not exist or you do not have access to it.", shown)
	e.Param = "model"
	visible := t.Visible(v)
	if len(visible) == 0 {
		e.Message += " No model is visible to this key."
		return e
	}
	e.Message += " " + suggestion(nearest(visible, id))
	return e
}
