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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Key is a key that the snapshot knows. It is immutable.
type Key struct {
	store.Key
	Meters        []*limit.Meter // of the key and its teams
	hash, oldHash [sha256.Size]byte
}

// Allows reports whether the key may use an operation.
func (k *Key) Allows(operation string) bool {
	return len(k.Operations) == 0 || slices.Contains(k.Operations, operation)
}

// KeyName is the name, for patterns of who may see a model.
func (k *Key) KeyName() string { return k.Name }

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

// Keyring holds the keys of a store.
type Keyring struct {
	store    *store.Store
	log      *slog.Logger
	snapshot atomic.Pointer[snapshot]
	renew    sync.Mutex // one reload at a time
}

type snapshot struct {
	keys     map[string]*Key
	revision int64
	seen     atomic.Int64 // Unix ns of the last look that found the revision unchanged
}

// Open reads the keys of a store.
func Open(ctx context.Context, st *store.Store, log *slog.Logger) (*Keyring, error) {
	r := &Keyring{store: st, log: log}
	return r, r.Reload(ctx)
}

// Reload reads the keys anew.
func (r *Keyring) Reload(ctx context.Context) error {
	r.renew.Lock()
	defer r.renew.Unlock()
	rows, revision, err := r.store.Keys(ctx)
	if err != nil {
		return err
	}
	s := &snapshot{keys: make(map[string]*Key, len(rows)), revision: revision}
	for _, row := range rows {
		k := &Key{Key: row}
		if err := errors.Join(decodeHash(&k.hash, row.Hash), decodeHash(&k.oldHash, row.OldHash)); err != nil {
			return fmt.Errorf("keys: key %s: %w", row.ID, err)
		}
		s.keys[row.ID] = k
	}
	s.seen.Store(time.Now().UnixNano())
	r.snapshot.Store(s)
	return nil
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
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := r.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && healthy {
			r.log.Error("keys cannot be read; known keys go on working", "error", err)
		}
		if err == nil && !healthy {
			r.log.Info("keys can be read again")
		}
		healthy = err == nil
	}
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
	shown := "***"
	if len(text) > 16 {
		shown = printable(text[:3]) + "…" + printable(text[len(text)-4:])
	}
	e := llm.Errorf(llm.Unauthenticated, format, shown)
	e.Code = "invalid_api_key"
	return e
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
