package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/store"
)

// factsName is under which facts are kept beside the lists of providers, whose
// names have a space.
const factsName = "facts"

// minFacts is less than any release knows. Fewer models are a part of a list.
const minFacts = 500

// keptFacts are facts in the store.
type keptFacts struct {
	Release string `json:"release"` // date of the facts of the release that took them
	Packed  []byte `json:"packed"`
}

// BadFacts says why facts were not taken.
type BadFacts struct{ Err error }

func (e *BadFacts) Error() string { return "The facts cannot be used: " + e.Err.Error() }
func (e *BadFacts) Unwrap() error { return e.Err }

// KeepFacts puts packed facts in the place of those of the release, for all
// gateways that share the store. They count until DropFacts, or until a release
// brings later ones. Those that cannot be used are a BadFacts and change nothing.
func KeepFacts(ctx context.Context, st *store.Store, packed []byte) (*provider.Facts, error) {
	facts, err := CheckFacts(packed)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(keptFacts{Release: provider.EmbeddedOrigin().Date, Packed: packed})
	if err != nil {
		return nil, err
	}
	return facts, st.SetModelList(ctx, store.ModelList{Provider: factsName, Fetched: time.Now(), Body: body})
}

// CheckFacts reads packed facts. Those that cannot be used are a BadFacts.
func CheckFacts(packed []byte) (*provider.Facts, error) {
	facts, err := provider.ReadFacts(packed)
	if err != nil {
		return nil, &BadFacts{fmt.Errorf("%w; were they packed by another release of limen?", err)}
	}
	if facts.Len() < minFacts {
		return nil, &BadFacts{fmt.Errorf("%d models of vendors that Limen knows are no whole list, which has %d at least", facts.Len(), minFacts)}
	}
	return facts, nil
}

// DropFacts makes the facts of the release count again.
func DropFacts(ctx context.Context, st *store.Store) error {
	return st.DeleteModelList(ctx, factsName)
}

// Facts returns the facts that count with a store, and since when it has them:
// never, if they are those of the release.
func Facts(ctx context.Context, st *store.Store) (*provider.Facts, time.Time, error) {
	list, err := st.ModelList(ctx, factsName)
	if errors.Is(err, store.ErrNotFound) {
		return provider.Embedded(), time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return unpack(list)
}

func unpack(list store.ModelList) (*provider.Facts, time.Time, error) {
	var kept keptFacts
	if err := json.Unmarshal(list.Body, &kept); err != nil {
		return nil, time.Time{}, err
	}
	facts, err := provider.ReadFacts(kept.Packed)
	if err != nil {
		return nil, time.Time{}, err
	}
	if release := provider.EmbeddedOrigin().Date; kept.Release != release && facts.Origin().Date < release {
		return provider.Embedded(), time.Time{}, nil
	}
	return facts, list.Fetched, nil
}

// renewFacts takes the facts that count with the store, for providers too that
// are about to be. While those cannot be read, what was known is kept. Prices
// that are other than before count from when the facts were taken.
func (c *Catalog) renewFacts(ctx context.Context, coming []Provider) {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	facts, kept, err := Facts(ctx, c.store)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("facts about models cannot be read from the store; what was known is kept", "error", err)
	}
	last, since := c.lastFacts()
	if err != nil {
		facts, kept = last, since
	}
	same := last != nil && kept.Equal(since)
	if facts == nil {
		facts = provider.Embedded()
	}
	history := c.readHistory(ctx)
	if !same || len(coming) > 0 {
		c.noteFacts(ctx, history, facts, kept, coming)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed, c.history = time.Now(), history
	if same {
		return
	}
	c.facts, c.kept = facts, kept
	c.compile()
	c.want()
}

// lastFacts are those that counted until now, nil when there were none.
func (c *Catalog) lastFacts() (facts *provider.Facts, kept time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts, c.kept
}

// want has all providers asked for their lists, whenever they are due. It is
// called with mu held.
func (c *Catalog) want() {
	for _, s := range c.sources {
		s.wanted = true
	}
	c.wake()
}

// Facts are those that count now.
func (c *Catalog) Facts() *provider.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts
}

// Refresh takes the facts that count with the store, asks all providers for
// their lists, and returns how it stands with them then.
func (c *Catalog) Refresh(ctx context.Context) []State {
	ctx, cancel := context.WithTimeout(ctx, 2*listTimeout) // one may be asked already, and then again
	defer cancel()
	c.renewFacts(ctx, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want()
	for c.pending() {
		came := c.came
		c.mu.Unlock()
		select {
		case <-came:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			break
		}
	}
	return c.states()
}

// tell lets those who wait for lists look again. It is called with mu held.
func (c *Catalog) tell() {
	close(c.came)
	c.came = make(chan struct{})
}

// pending reports whether a list is still to come. It is called with mu held.
func (c *Catalog) pending() bool {
	for _, s := range c.sources {
		if s.wanted || s.fetching {
			return true
		}
	}
	return false
}
