// Package catalog keeps the table of models in step with the configuration
// and with the model lists of the upstreams. A list that was good once is kept
// until a newer one comes, also over a restart: an upstream that is away takes
// nothing off the table.
package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/rule"
	"github.com/limen-gateway/limen/internal/store"
	"github.com/limen-gateway/limen/internal/upstream"
)

const (
	listTimeout = 15 * time.Second
	retryEvery  = 30 * time.Second // for lists that could not be had
	// firstLists is how long after a start, or a new configuration, callers
	// wait for lists that have not come yet.
	firstLists = 2 * time.Second
)

// Provider is an upstream to be: a configured provider with what is known of
// its vendor, or one that was found.
type Provider struct {
	config.Provider
	Vendor    provider.Vendor
	Transport http.RoundTripper // replaces the network; nil for all real providers
	Free      bool              // it takes no money
}

// Setup is what a table is made from.
type Setup struct {
	Providers []Provider
	Models    []config.Model
	Refresh   time.Duration // of lists
	Connect   time.Duration // limit of dialling
	MaxEvent  int64         // bytes of a message of an upstream's socket
	Markup    config.Markup // of what has none of its own
}

// Catalog holds the table.
type Catalog struct {
	store     *store.Store
	log       *slog.Logger
	userAgent string
	table     atomic.Pointer[route.Table]
	settled   atomic.Pointer[settled]
	changed   chan struct{} // wakes Run

	renewing sync.Mutex // held while facts are read from the store, never within mu

	mu      sync.Mutex
	setup   Setup
	sources []*source
	rules   map[string]*rule.Rule // of the setup's targets
	health  *route.Registry
	facts   *provider.Facts // nil until the first setup
	kept    time.Time       // since when the store has the facts; zero for those of the release
	renewed time.Time       // when the store was last asked for them
	history history         // of prices; it is never changed, but replaced
	came    chan struct{}   // closed by tell, which makes another
}

// settled is closed when the lists that a setup needs first have come.
type settled struct {
	done chan struct{}
	by   time.Time // nobody waits longer
}

// source is a provider with its list.
type source struct {
	provider Provider
	accounts []account // at least one

	list     []provider.Model
	fetched  time.Time // of list
	fetching bool
	wanted   bool // now, whenever it is due
	tried    time.Time
	err      error // of the last try
}

// account is a provider with one of its credentials.
type account struct {
	name        string // for people
	credential  string // tells it from others without showing the key
	fingerprint string // of the key, where there are several
	upstream    *upstream.Upstream
}

// New returns a catalog with an empty table.
func New(st *store.Store, log *slog.Logger, userAgent string) *Catalog {
	c := &Catalog{store: st, log: log, userAgent: userAgent, health: route.NewRegistry(), changed: make(chan struct{}, 1), came: make(chan struct{})}
	c.table.Store(route.NewTable(nil))
	done := make(chan struct{})
	close(done)
	c.settled.Store(&settled{done: done})
	return c
}

// Table is the table now.
func (c *Catalog) Table() *route.Table { return c.table.Load() }

// Await waits until the first lists of the setup have come, or their time is
// over.
func (c *Catalog) Await() {
	s := c.settled.Load()
	select {
	case <-s.done:
		return
	default:
	}
	timer := time.NewTimer(time.Until(s.by))
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}

// Prepare makes all that a setup brings, and returns what makes it count: so
// that what else changes with it can count before, for the models on the table
// are how a change shows. Providers that it does not change keep their
// connections and lists. A setup with an error changes nothing. One is prepared
// and counts before the next.
func (c *Catalog) Prepare(ctx context.Context, setup Setup) (count func(), err error) {
	c.renewFacts(ctx, setup.Providers)
	rules, err := compileRules(setup.Models)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sources := make([]*source, 0, len(setup.Providers))
	for _, p := range setup.Providers {
		s, err := c.source(ctx, p, &setup)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return func() { c.apply(setup, sources, rules) }, nil
}

// apply puts a setup on the table.
func (c *Catalog) apply(setup Setup, sources []*source, rules map[string]*rule.Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range sources {
		s.upstream().Gate.SetCapacity(capacity(setup.Providers[i]))
	}
	for _, old := range c.sources {
		if !contains(sources, old) {
			old.close()
		}
	}
	c.setup, c.sources, c.rules = setup, sources, rules
	c.health.Forgive()
	c.compile()
	c.tell()
	c.settled.Store(&settled{done: make(chan struct{}), by: time.Now().Add(firstLists)})
	c.wake()
}

// Close ends the connections to the upstreams. Calls under way go on.
func (c *Catalog) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sources {
		s.close()
	}
}

// wake makes Run look what is due.
func (c *Catalog) wake() {
	select {
	case c.changed <- struct{}{}:
	default: // it is about to
	}
}

func contains(sources []*source, s *source) bool {
	for _, have := range sources {
		if have == s {
			return true
		}
	}
	return false
}

// capacity is how many calls of a provider may be under way.
func capacity(p Provider) int64 {
	if p.Concurrency == 0 {
		return limit.Unlimited
	}
	return int64(p.Concurrency)
}

// source finds the provider among those that are there, or makes it. Its gate
// stays in any case, with the calls that are under way.
func (c *Catalog) source(ctx context.Context, p Provider, setup *Setup) (*source, error) {
	p.Concurrency = 0 // the gate has it
	same := c.setup.Connect == setup.Connect && c.setup.MaxEvent == setup.MaxEvent
	var gate *limit.Gate
	for _, s := range c.sources {
		if s.provider.Name != p.Name {
			continue
		}
		if reflect.DeepEqual(s.provider, p) && same {
			return s, nil
		}
		gate = s.upstream().Gate
	}
	s := &source{provider: p}
	for i, key := range keysOf(p) {
		a, err := c.account(p, i, key, setup, gate)
		if err != nil {
			return nil, err
		}
		gate = a.upstream.Gate // of all accounts together
		s.accounts = append(s.accounts, a)
	}
	kept, err := c.store.ModelList(ctx, listName(p))
	if err == nil {
		err = json.Unmarshal(kept.Body, &s.list)
		s.fetched = kept.Fetched
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.log.Warn("the kept model list of a provider cannot be read", "provider", p.Name, "error", err)
	}
	return s, nil
}

// account is the provider with its key of that place.
func (c *Catalog) account(p Provider, place int, key string, setup *Setup, gate *limit.Gate) (account, error) {
	headers := make(map[string]string, len(p.Headers))
	for name, value := range p.Headers {
		headers[name] = value.Reveal()
	}
	up, err := upstream.New(upstream.Config{
		Name: p.Name, BaseURL: p.BaseURL, Key: key, Speaks: speaks(p), Headers: headers,
		Vendor: p.Vendor, Connect: setup.Connect, UserAgent: c.userAgent, Transport: p.Transport, Gate: gate,
		Sockets: p.Sockets, MaxEvent: setup.MaxEvent, Log: c.log,
	})
	if err != nil {
		return account{}, err
	}
	sum := sha256.Sum256([]byte(key))
	a := account{name: p.Name, credential: p.Name + "\n" + p.BaseURL + "\n" + hex.EncodeToString(sum[:]), upstream: up}
	if place > 0 {
		a.name = fmt.Sprintf("%s#%d", p.Name, place+1)
	}
	if len(keysOf(p)) > 1 {
		a.fingerprint = hex.EncodeToString(sum[:4])
	}
	return a, nil
}

// keysOf are the provider's credentials. One that has none sends none.
func keysOf(p Provider) []string {
	var keys []string
	if p.APIKey != "" || len(p.APIKeys) == 0 {
		keys = append(keys, p.APIKey.Reveal())
	}
	for _, key := range p.APIKeys {
		keys = append(keys, key.Reveal())
	}
	return keys
}

func (s *source) close() {
	for _, a := range s.accounts {
		a.upstream.Close()
	}
}

// upstream is any of the accounts, where it does not matter which.
func (s *source) upstream() *upstream.Upstream { return s.accounts[0].upstream }

// models asks for the list, with the first credential that is good for it.
func (s *source) models(ctx context.Context, facts *provider.Facts) (list []provider.Model, err error) {
	for _, a := range s.accounts {
		if list, err = a.upstream.Models(ctx, facts); err == nil {
			return list, nil
		}
		if _, refused := errors.AsType[upstream.Refusal](err); !refused {
			err = errors.New(a.upstream.Redact(err.Error()))
		}
	}
	return nil, err
}

// listName is under which a list is kept: another address has another list.
func listName(p Provider) string { return p.Name + " " + p.BaseURL }

func speaks(p Provider) []dialect.Name {
	var names []dialect.Name
	for _, word := range p.Speaks {
		names = append(names, dialect.Name(word))
	}
	switch {
	case len(names) > 0:
		return names
	case len(p.Vendor.Speaks) > 0:
		return p.Vendor.Speaks
	}
	return []dialect.Name{dialect.OpenAIChat}
}

// Run keeps the lists fresh until ctx ends.
func (c *Catalog) Run(ctx context.Context) {
	var fetching sync.WaitGroup
	defer fetching.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-timer.C:
		}
		timer.Reset(c.refresh(ctx, &fetching))
	}
}

// refresh begins to ask for the lists that are due, and returns when the next
// is. A provider that does not answer holds up no other.
func (c *Catalog) refresh(ctx context.Context, fetching *sync.WaitGroup) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	next, all := c.setup.Refresh, true
	for _, s := range c.sources {
		switch wait := s.due(c.setup.Refresh).Sub(now); {
		case s.fetching:
		case wait <= 0 || s.wanted:
			s.fetching, s.wanted = true, false
			facts := c.facts
			fetching.Go(func() { c.fetch(ctx, s, facts) })
		default:
			next = min(next, wait)
		}
		all = all && !s.tried.IsZero()
	}
	if all {
		c.settled.Load().close()
	}
	if wait := c.renewed.Add(c.setup.Refresh).Sub(now); len(c.sources) > 0 && wait > 0 {
		next = min(next, wait)
	} else if len(c.sources) > 0 {
		c.renewed = now
		fetching.Go(func() { c.renewFacts(ctx, nil) })
	}
	return max(next, time.Second)
}

// close is called by one goroutine only.
func (s *settled) close() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}

// due is when the list is to be asked for again.
func (s *source) due(refresh time.Duration) time.Time {
	if s.err != nil {
		refresh = min(refresh, retryEvery)
	}
	if s.tried.IsZero() {
		return time.Time{}
	}
	return s.tried.Add(refresh)
}

// fetch asks for a list and puts what it brings on the table.
func (c *Catalog) fetch(ctx context.Context, s *source, facts *provider.Facts) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := s.models(ctx, facts)
	if err == nil {
		if body, err := json.Marshal(list); err == nil {
			err = c.store.SetModelList(ctx, store.ModelList{Provider: listName(s.provider), Fetched: time.Now(), Body: body})
			if err != nil {
				c.log.Warn("a model list could not be kept", "provider", s.provider.Name, "error", err)
			}
		}
	}
	c.notePrices(ctx, s, list)

	c.mu.Lock()
	defer c.mu.Unlock()
	was := s.err
	s.tried, s.err, s.fetching = time.Now(), err, false
	c.tell()
	c.wake()
	if err != nil {
		if was == nil && ctx.Err() != context.Canceled {
			c.log.Warn("a provider's models cannot be listed; what was known is kept", "provider", s.provider.Name, "kept", len(s.list), "error", err)
		}
		return
	}
	s.list, s.fetched = list, s.tried
	c.compile()
}

// State is how it stands with a provider, for operators.
type State struct {
	Name     string    `json:"name"`
	BaseURL  string    `json:"base_url"`
	Accounts []string  `json:"accounts"` // one for each key
	Speaks   []string  `json:"speaks"`
	Models   int       `json:"models"` // in the last good list
	Fetched  time.Time `json:"fetched,omitzero"`
	Error    string    `json:"error,omitempty"`  // of the last try; empty when it was good
	Status   int       `json:"status,omitempty"` // where the list was refused
}

// States tells how it stands with the providers.
func (c *Catalog) States() []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states()
}

// states is called with mu held.
func (c *Catalog) states() []State {
	states := make([]State, 0, len(c.sources))
	for _, s := range c.sources {
		st := State{Name: s.provider.Name, BaseURL: s.upstream().BaseURL(), Models: len(s.list), Fetched: s.fetched}
		for _, d := range s.upstream().Speaks {
			st.Speaks = append(st.Speaks, string(d))
		}
		for _, a := range s.accounts {
			st.Accounts = append(st.Accounts, a.name)
		}
		if s.err != nil {
			st.Error = s.err.Error()
			if refusal, refused := errors.AsType[upstream.Refusal](s.err); refused {
				st.Status = int(refusal)
			}
		}
		states = append(states, st)
	}
	return states
}
