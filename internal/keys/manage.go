package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// New describes a key to issue.
type New struct {
	Name       string          `json:"name"`
	Owner      string          `json:"owner,omitempty"`
	Prefix     string          `json:"prefix,omitempty"` // one of Prefixes; the first when empty
	Team       string          `json:"team,omitempty"`   // ID or name of the one that it belongs to
	Budgets    []budget.Budget `json:"budgets,omitempty"`
	Limits     limit.Rates     `json:"limits,omitzero"`
	Models     []string        `json:"models,omitempty"`     // patterns of visible models; none is all
	Operations []string        `json:"operations,omitempty"` // of Operations; none is all
	Strict     bool            `json:"strict,omitempty"`     // calls that an upstream cannot take as they are written are refused
	NoStore    bool            `json:"no_store,omitempty"`   // nothing of its calls is kept but their records
	Expires    time.Time       `json:"expires,omitzero"`
}

// maxName bounds names, owners and patterns.
const maxName = 200

func (n *New) check() error {
	n.Name = strings.TrimSpace(n.Name)
	switch {
	case n.Name == "":
		return llm.InvalidParam("missing_required_parameter", "name", "A key needs a name, to know it again by.")
	case len(n.Name) > maxName || len(n.Owner) > maxName:
		return llm.InvalidParam("invalid_value", "name", "Name and owner have at most %d bytes.", maxName)
	case hasControls(n.Name + n.Owner):
		return llm.InvalidParam("invalid_value", "name", "Name and owner have no control characters.")
	case n.Prefix != "" && !slices.Contains(Prefixes, n.Prefix):
		return llm.InvalidParam("invalid_value", "prefix", "A key begins with %s.", strings.Join(Prefixes, " or with "))
	}
	for _, op := range n.Operations {
		if !slices.Contains(Operations, op) {
			return llm.InvalidParam("invalid_value", "operations", "There is no operation %q; there are %s.", op, strings.Join(Operations, ", "))
		}
	}
	for _, p := range n.Models {
		if p == "" || len(p) > maxName {
			return llm.InvalidParam("invalid_value", "models", "A pattern of models has 1 to %d bytes.", maxName)
		}
	}
	return checkTerms(n.Budgets, n.Limits)
}

func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// newOf is a key as it would be asked for. Its team is named by ID.
func newOf(row *store.Key) (New, error) {
	n := New{
		Name: row.Name, Owner: row.Owner, Prefix: row.Prefix, Team: row.TeamID,
		Models: row.Models, Operations: row.Operations, Strict: row.Strict, NoStore: row.NoStore,
	}
	if row.Expires != 0 {
		n.Expires = time.UnixMilli(row.Expires).UTC()
	}
	return n, decodeTerms(row.Budgets, row.Limits, &n.Budgets, &n.Limits)
}

// fill makes a row say what is asked for, if that can be.
func (r *Keyring) fill(row *store.Key, n *New) (err error) {
	if err := n.check(); err != nil {
		return err
	}
	var expires int64
	if !n.Expires.IsZero() {
		expires = n.Expires.UnixMilli()
		if stays := row.Expires != 0 && row.Expires == expires; !stays && !n.Expires.After(time.Now()) {
			return llm.InvalidParam("invalid_value", "expires", "The expiry lies in the past.")
		}
	}
	if row.TeamID, err = r.teamID("team", n.Team, row.TeamID); err != nil {
		return err
	}
	row.Name, row.Owner, row.Expires = n.Name, n.Owner, expires
	row.Models, row.Operations, row.Strict, row.NoStore = n.Models, n.Operations, n.Strict, n.NoStore
	row.Budgets, row.Limits, err = encodeTerms(n.Budgets, n.Limits)
	return err
}

// Create issues a key and returns it whole, which never happens again.
func (r *Keyring) Create(ctx context.Context, n New) (string, *Key, error) {
	if n.Prefix == "" {
		n.Prefix = Prefixes[0]
	}
	row := store.Key{Prefix: n.Prefix, Created: time.Now().UnixMilli()}
	if err := r.fill(&row, &n); err != nil {
		return "", nil, err
	}
	text, token := newToken(n.Prefix, "")
	row.ID, row.Hash = token.ID, hex.EncodeToString(token.Hash[:])
	if err := r.store.CreateKey(ctx, row); err != nil {
		return "", nil, goneTeam(err, n.Team)
	}
	k, err := r.reread(ctx, row.ID)
	return text, k, err
}

// goneTeam tells that the team of a key was deleted meanwhile.
func goneTeam(err error, ref string) error {
	if errors.Is(err, store.ErrNoTeam) {
		return unknownTeam("team", ref)
	}
	return err
}

// Change makes of a key what edit makes of it: all but its prefix.
func (r *Keyring) Change(ctx context.Context, ref string, edit func(*New) error) (*Key, error) {
	return r.change(ctx, ref, func(id string) error {
		var n New
		err := r.store.UpdateKey(ctx, id, func(row *store.Key) (err error) {
			if n, err = newOf(row); err != nil {
				return err
			}
			if err := edit(&n); err != nil {
				return err
			}
			if n.Prefix != row.Prefix {
				return llm.InvalidParam("invalid_value", "prefix", "A key begins as it was issued; make another with the prefix %s.", n.Prefix)
			}
			return r.fill(row, &n)
		})
		return goneTeam(err, n.Team)
	})
}

// Revoke stops a key: the next request with it is refused.
func (r *Keyring) Revoke(ctx context.Context, ref string) (*Key, error) {
	return r.change(ctx, ref, func(id string) error {
		return r.store.SetKeyRevoked(ctx, id, time.Now().UnixMilli())
	})
}

// Restore makes a revoked key work again.
func (r *Keyring) Restore(ctx context.Context, ref string) (*Key, error) {
	return r.change(ctx, ref, func(id string) error { return r.store.SetKeyRevoked(ctx, id, 0) })
}

// Rotate gives a key a new secret and returns it whole. The one it had goes on
// working for the overlap.
func (r *Keyring) Rotate(ctx context.Context, ref string, overlap time.Duration) (text string, k *Key, err error) {
	if overlap < 0 {
		return "", nil, llm.InvalidParam("invalid_value", "overlap", "The overlap is a duration of 0 or more.")
	}
	found, err := r.Find(ref)
	if err != nil {
		return "", nil, err
	}
	k, err = r.change(ctx, found.ID, func(id string) error {
		var token Token
		text, token = newToken(found.Prefix, id)
		return r.store.RotateKey(ctx, id, hex.EncodeToString(token.Hash[:]), time.Now().Add(overlap).UnixMilli())
	})
	return text, k, err
}

func (r *Keyring) change(ctx context.Context, ref string, f func(id string) error) (*Key, error) {
	k, err := r.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := f(k.ID); errors.Is(err, store.ErrNotFound) {
		return nil, noKey(ref)
	} else if err != nil {
		return nil, err
	}
	return r.reread(ctx, k.ID)
}

func (r *Keyring) reread(ctx context.Context, id string) (*Key, error) {
	if err := r.Reload(ctx); err != nil {
		return nil, err
	}
	k := r.Lookup(id)
	if k == nil {
		return nil, fmt.Errorf("keys: key %s is gone", id)
	}
	return k, nil
}

// Find returns the key with an ID, or the one with a name that no other has.
func (r *Keyring) Find(ref string) (*Key, error) {
	return find(r.All(), ref)
}

// FindOf is Find among the keys of some teams.
func (r *Keyring) FindOf(teams []string, ref string) (*Key, error) {
	return find(slices.DeleteFunc(r.All(), func(k *Key) bool { return !slices.Contains(teams, k.TeamID) }), ref)
}

func find(list []*Key, ref string) (*Key, error) {
	var found []*Key
	for _, k := range list {
		if k.ID == ref {
			return k, nil
		}
		if k.Name == ref {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return nil, noKey(ref)
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, k := range found {
		ids[i] = k.ID
	}
	return nil, llm.InvalidParam("invalid_value", "key", "%d keys are named %q; say which by its ID: %s.", len(found), ref, strings.Join(ids, ", "))
}

func noKey(ref string) error {
	return llm.Errorf(llm.NotFound, "There is no key with the ID or name %q. 'limen keys list' shows them.", ref)
}

// All returns the keys, oldest first.
func (r *Keyring) All() []*Key {
	s := r.snapshot.Load()
	all := make([]*Key, 0, len(s.keys))
	for _, k := range s.keys {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *Key) int {
		if a.Created != b.Created {
			return int(a.Created - b.Created)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}
