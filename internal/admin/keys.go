package admin

import (
	"context"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
)

// Key is a key as operators see it. The key itself is in it once, when it is
// issued or rotated.
type Key struct {
	ID         string      `json:"id"`
	Key        string      `json:"key,omitempty"`
	Name       string      `json:"name"`
	Owner      string      `json:"owner,omitempty"`
	Prefix     string      `json:"prefix"`
	Status     string      `json:"status" enum:"active revoked expired"` // active, revoked, expired
	Team       string      `json:"team,omitempty"`                       // name of the one that it belongs to
	Budgets    []Budget    `json:"budgets"`
	Limits     limit.Rates `json:"limits,omitzero"`
	Models     []string    `json:"models"`
	Operations []string    `json:"operations"`
	Strict     bool        `json:"strict"`   // calls that an upstream cannot take as they are written are refused
	NoStore    bool        `json:"no_store"` // nothing of its calls is kept but their records
	Created    time.Time   `json:"created"`
	Expires    time.Time   `json:"expires,omitzero"`
	Revoked    time.Time   `json:"revoked,omitzero"`
	LastUsed   time.Time   `json:"last_used,omitzero"`
	OldUntil   time.Time   `json:"replaced_key_until,omitzero"` // until when the key before the last rotation works
}

func newKey(k *keys.Key, text string) *Key {
	now := time.Now()
	out := &Key{
		ID: k.ID, Key: text, Name: k.Name, Owner: k.Owner, Prefix: k.Prefix, Status: "active",
		Team: k.TeamName(), Budgets: newBudgets(k.Budgets), Limits: k.Limits,
		Models: append([]string{}, k.Models...), Operations: append([]string{}, k.Operations...), Strict: k.Strict, NoStore: k.NoStore,
		Created: fromMs(k.Created), Expires: fromMs(k.Expires), Revoked: fromMs(k.Revoked), LastUsed: fromMs(k.LastUsed),
	}
	if k.OldUntil > now.UnixMilli() {
		out.OldUntil = fromMs(k.OldUntil)
	}
	switch {
	case k.Revoked != 0:
		out.Status = "revoked"
	case k.Expires != 0 && k.Expires <= now.UnixMilli():
		out.Status = "expired"
	}
	return out
}

// keyNow is a key with what was spent of its budgets.
func (a *API) keyNow(ctx context.Context, k *keys.Key) (out *Key, err error) {
	out = newKey(k, "")
	out.Budgets, err = a.budgetsNow(ctx, k.ID, k.Budgets)
	return out, err
}

// fromMs is a time in UTC; 0 is none.
func fromMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// KeyList is the answer of GET /api/v1/keys.
type KeyList struct {
	Keys []Key `json:"keys"`
}

func (a *API) listKeys(r *request) (*KeyList, error) {
	if err := a.refreshKeys(r); err != nil {
		return nil, err
	}
	list := []Key{}
	teams, only := a.ownTeams(r)
	for _, k := range a.Keys.All() {
		if only && !slices.Contains(teams, k.TeamID) {
			continue
		}
		out, err := a.keyNow(r.Context(), k)
		if err != nil {
			return nil, err
		}
		list = append(list, *out)
	}
	return &KeyList{list}, nil
}

// refreshKeys reads the keys anew, for the time of their last use, which
// comes with usage.
func (a *API) refreshKeys(r *request) error {
	if err := a.settle(r.Context()); err != nil {
		return err
	}
	return a.Keys.Reload(r.Context())
}

func (a *API) createKey(r *request, in *keys.New) (*Key, error) {
	if in.Prefix == "" {
		in.Prefix = a.KeyPrefix()
	}
	text, k, err := a.Keys.Create(r.Context(), *in)
	if err != nil {
		return nil, err
	}
	r.on(k.ID, k.Name)
	return newKey(k, text), nil
}

// keyChange is what PATCH takes: members as when a key is issued, of which
// those that are absent stay as they are. null takes away.
type keyChange struct {
	*keys.New
	Team    *string      `json:"team"`
	Limits  *limit.Rates `json:"limits"`
	Expires *time.Time   `json:"expires"`
}

func (a *API) changeKey(r *request, change *partial[keyChange]) (*Key, error) {
	k, err := a.Keys.Change(r.Context(), r.PathValue("key"), func(n *keys.New) error {
		in := keyChange{n, &n.Team, &n.Limits, &n.Expires}
		err := change.over(&in)
		n.Team, n.Limits, n.Expires = orZero(in.Team), orZero(in.Limits), orZero(in.Expires)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.on(k.ID, k.Name)
	return a.keyNow(r.Context(), k)
}

func orZero[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func (a *API) showKey(r *request) (*Key, error) {
	if err := a.refreshKeys(r); err != nil {
		return nil, err
	}
	k, err := a.findKey(r, r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	return a.keyNow(r.Context(), k)
}

func (a *API) revokeKey(r *request) (*Key, error) {
	k, err := a.Keys.Revoke(r.Context(), r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	r.on(k.ID, k.Name)
	return newKey(k, ""), nil
}

func (a *API) restoreKey(r *request) (*Key, error) {
	k, err := a.Keys.Restore(r.Context(), r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	r.on(k.ID, k.Name)
	return newKey(k, ""), nil
}

// Rotation is what POST /api/v1/keys/{key}/rotate takes.
type Rotation struct {
	Overlap string `json:"overlap,omitempty"` // duration; none by default
}

func (a *API) rotateKey(r *request, in *Rotation) (*Key, error) {
	var overlap time.Duration
	if in.Overlap != "" {
		var err error
		if overlap, err = time.ParseDuration(in.Overlap); err != nil {
			return nil, llm.InvalidParam("invalid_value", "overlap", "overlap is a duration such as 24h or 30m, not %q.", in.Overlap)
		}
	}
	text, k, err := a.Keys.Rotate(r.Context(), r.PathValue("key"), overlap)
	if err != nil {
		return nil, err
	}
	r.on(k.ID, k.Name)
	return newKey(k, text), nil
}
