// Package keys issues and checks the API keys of clients. A check reads a
// snapshot in memory, never the store; the snapshot is renewed on every change
// made here and by a polled revision for changes made elsewhere.
package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/repeat"
	"github.com/limen-gateway/limen/internal/store"
)

// Key is a key that the snapshot knows. It is immutable.
type Key struct {
	store.Key
	Team    *Team // that it belongs to; nil when to none
	Budgets []budget.Budget
	Limits  limit.Rates

	// Payer pays for its calls, and Meters count them: those of the key, of its
	// team, and of all that this belongs to.
	Payer  *budget.Payer
	Meters []*limit.Meter

	hash, oldHash [sha256.Size]byte
}

// Allows reports whether the key may use an operation.
func (k *Key) Allows(operation string) bool {
	return len(k.Operations) == 0 || slices.Contains(k.Operations, operation)
}

// KeyName is the name, for patterns of who may see a model.
func (k *Key) KeyName() string { return k.Name }

// TeamName is the name of the team that the key belongs to; "" when to none.
func (k *Key) TeamName() string {
	if k.Team == nil {
		return ""
	}
	return k.Team.Name
}

// Sees reports whether a model ID is visible to the key.
func (k *Key) Sees(model string) bool {
	return len(k.Models) == 0 || slices.ContainsFunc(k.Models, func(p string) bool { return config.Pattern(p).Match(model) })
}

// Operations that a key can be limited to.
const (
	OpModels    = "models"
	OpChat      = "chat"
	OpMessages  = "messages"
	OpResponses = "responses"
)

// Operations lists the operations that a key can be limited to.
var Operations = []string{OpModels, OpChat, OpResponses, OpMessages}

// fresh is how long after the last good look at the store an unknown key is
// known to be wrong. Later it is not known: it may have been issued since.
const fresh = 5 * time.Second

// pollEvery is how often the store is asked whether keys changed elsewhere.
const pollEvery = 500 * time.Millisecond

// Keyring holds the keys of a store, and the teams that they belong to.
type Keyring struct {
	store    *store.Store
	books    *budget.Books
	log      *slog.Logger
	snapshot atomic.Pointer[snapshot]

	renew  sync.Mutex              // one reload at a time
	meters map[string]*limit.Meter // by the IDs of keys and teams; they outlive snapshots
}

type snapshot struct {
	keys     map[string]*Key
	teams    map[string]*Team
	revision int64
	seen     atomic.Int64 // Unix ns of the last look that found the revision unchanged
}

// Open reads the keys of a store. What they may spend is in books.
func Open(ctx context.Context, st *store.Store, books *budget.Books, log *slog.Logger) (*Keyring, error) {
	r := &Keyring{store: st, books: books, log: log, meters: map[string]*limit.Meter{}}
	return r, r.Reload(ctx)
}

// Reload reads the keys and the teams anew.
func (r *Keyring) Reload(ctx context.Context) error {
	r.renew.Lock()
	defer r.renew.Unlock()
	rows, teamRows, revision, err := r.read(ctx)
	if err != nil {
		return err
	}
	s := &snapshot{keys: make(map[string]*Key, len(rows)), teams: make(map[string]*Team, len(teamRows)), revision: revision}
	teams, err := teamsOf(teamRows)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	for _, t := range teams {
		s.teams[t.ID] = t
	}
	for _, row := range rows {
		k, err := s.newKey(row)
		if err != nil {
			return fmt.Errorf("keys: key %s: %w", row.ID, err)
		}
		s.keys[row.ID] = k
	}
	r.account(s, teams)
	s.seen.Store(time.Now().UnixNano())
	r.snapshot.Store(s)
	return nil
}

// read reads keys and teams as they are at one revision.
func (r *Keyring) read(ctx context.Context) (keys []store.Key, teams []store.Team, revision int64, err error) {
	for {
		if keys, revision, err = r.store.Keys(ctx); err != nil {
			return nil, nil, 0, err
		}
		if teams, err = r.store.Teams(ctx); err != nil {
			return nil, nil, 0, err
		}
		now, err := r.store.KeysRevision(ctx)
		if err != nil || now == revision {
			return keys, teams, revision, err
		}
	}
}

// newKey makes a key of its row.
func (s *snapshot) newKey(row store.Key) (*Key, error) {
	k := &Key{Key: row, Team: s.teams[row.TeamID]}
	if row.TeamID != "" && k.Team == nil {
		return nil, NoTeam(row.TeamID)
	}
	return k, errors.Join(decodeHash(&k.hash, row.Hash), decodeHash(&k.oldHash, row.OldHash), decodeTerms(row.Budgets, row.Limits, &k.Budgets, &k.Limits))
}

// account gives keys and teams what pays for and what counts their calls.
// Teams come parents first. What was counted so far stays counted.
func (r *Keyring) account(s *snapshot, teams []*Team) {
	for _, t := range teams {
		var payer *budget.Payer
		if t.Parent != nil {
			payer, t.meters = t.Parent.payer, t.Parent.meters
		}
		t.payer = r.books.Payer(t.ID, "team "+t.Name, t.Budgets, payer)
		t.meters = r.metered(limit.OfTeam, t.ID, t.Limits, t.meters)
	}
	for _, k := range s.keys {
		if k.Team != nil {
			k.Payer, k.Meters = k.Team.payer, k.Team.meters
		}
		k.Payer = r.books.Payer(k.ID, "key "+k.Name, k.Budgets, k.Payer)
		k.Meters = r.metered(limit.OfKey, k.ID, k.Limits, k.Meters)
	}
	maps.DeleteFunc(r.meters, func(owner string, _ *limit.Meter) bool { return s.keys[owner] == nil && s.teams[owner] == nil })
}

// metered are the meters of an owner: its own, if it has limits, and those of
// what it belongs to.
func (r *Keyring) metered(kind limit.Owner, owner string, rates limit.Rates, above []*limit.Meter) []*limit.Meter {
	m := r.meters[owner]
	if m == nil && rates == (limit.Rates{}) {
		return above
	}
	if m == nil {
		m = limit.NewMeter()
		m.Owner = kind
		r.meters[owner] = m
	}
	m.Apply(rates)
	return append([]*limit.Meter{m}, above...)
}

func decodeHash(dst *[sha256.Size]byte, text string) error {
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) != 0 && len(raw) != len(dst) {
		err = errors.New("hash of a wrong length")
	}
	copy(dst[:], raw)
	return err
}

// Watch follows changes that others make to the store, until ctx ends.
func (r *Keyring) Watch(ctx context.Context) {
	repeat.Every(ctx, pollEvery, r.look, func(err error) {
		if err != nil {
			r.log.Error("keys cannot be read; known keys go on working", "error", err)
			return
		}
		r.log.Info("keys can be read again")
	})
}

// look reloads the keys when their revision changed.
func (r *Keyring) look(ctx context.Context) error {
	s := r.snapshot.Load()
	revision, err := r.store.KeysRevision(ctx)
	if err != nil {
		return err
	}
	if revision != s.revision {
		return r.Reload(ctx)
	}
	s.seen.Store(time.Now().UnixNano())
	return nil
}

// Authenticate finds the key that a client presents. There are three results:
// the key; an Unauthenticated error; or an Unavailable one when the store has
// not been seen lately and the key may be newer than what is known.
func (r *Keyring) Authenticate(text string, now time.Time) (*Key, error) {
	if text == "" {
		return nil, llm.Errorf(llm.Unauthenticated, "You didn't provide an API key. Send it as 'Authorization: Bearer KEY'; 'limen keys create NAME' makes one.")
	}
	token, ok := ParseToken(text)
	if !ok {
		return nil, wrongKey(text, "Incorrect API key provided: %s. It is not a key of this gateway; check that it was copied whole.")
	}
	s := r.snapshot.Load()
	k := s.keys[token.ID]
	if k == nil {
		return nil, s.unknown(text, now)
	}
	ms := now.UnixMilli()
	current := subtle.ConstantTimeCompare(token.Hash[:], k.hash[:]) == 1
	replaced := subtle.ConstantTimeCompare(token.Hash[:], k.oldHash[:]) == 1
	switch {
	case !current && !replaced:
		return nil, s.unknown(text, now)
	case !current && ms >= k.OldUntil:
		return nil, wrongKey(text, "The API key %s was replaced by a new one.")
	case k.Revoked != 0:
		return nil, wrongKey(text, "The API key %s was revoked.")
	case k.Expires != 0 && ms >= k.Expires:
		return nil, wrongKey(text, "The API key %s has expired.")
	}
	return k, nil
}

// unknown is the result for a secret that the snapshot does not have: it is
// wrong, unless it may have been issued since the snapshot was taken.
func (s *snapshot) unknown(text string, now time.Time) error {
	if now.UnixNano()-s.seen.Load() <= int64(fresh) {
		return wrongKey(text, "Incorrect API key provided: %s.")
	}
	return &llm.Error{Kind: llm.Unavailable, Message: "The gateway cannot check this key now: its store is away. Please try again in 2s.", RetryAfter: 2 * time.Second}
}

// wrongKey names the key by its beginning and end, as OpenAI does, so that a
// person finds out which of several was used.
func wrongKey(text, format string) *llm.Error {
	e := llm.Errorf(llm.Unauthenticated, format, shown(text))
	e.Code = "invalid_api_key"
	return e
}

func shown(text string) string {
	if len(text) <= 16 {
		return "***"
	}
	return printable(text[:3]) + "…" + printable(text[len(text)-4:])
}

// Hide makes of a refusal of a key, as its sender is told, what others may
// read: it names no more of the key than what is public.
func Hide(message, text string) string {
	prefix, id := Public(text)
	if id != "" {
		id += "_"
	}
	return strings.Replace(message, shown(text), prefix+id+"…", 1)
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// Lookup returns a key of the snapshot by its ID, or nil.
func (r *Keyring) Lookup(id string) *Key { return r.snapshot.Load().keys[id] }
