package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// adminPrefix is what tokens for the admin API begin with. Behind it they are
// as keys are.
const adminPrefix = "limen_admin_"

// Scopes are what a token may do.
type Scopes uint8

// The scopes.
const (
	ScopeRead   Scopes = 1 << iota // see everything
	ScopeKeys                      // see and change keys and teams
	ScopeConfig                    // see and change the configuration, models and prices
	ScopeUsage                     // see usage and calls
)

// ScopeNames are the scopes' names, in their order.
var ScopeNames = []string{"read", "keys", "config", "usage"}

// scopesOf are the scopes with names.
func scopesOf(names []string) (all Scopes, err error) {
	for _, name := range names {
		i := slices.Index(ScopeNames, name)
		if i < 0 {
			return 0, llm.InvalidParam("invalid_value", "scopes", "There is no scope %q; there are %s.", name, strings.Join(ScopeNames, ", "))
		}
		all |= 1 << i
	}
	return all, nil
}

// Names are the names of scopes.
func (s Scopes) Names() (names []string) {
	for i, name := range ScopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// NewAdminToken describes a token to make.
type NewAdminToken struct {
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes" enum:"read keys config usage"`
	Expires time.Time `json:"expires,omitzero"`
}

func (n *NewAdminToken) check() error {
	n.Name = strings.TrimSpace(n.Name)
	switch {
	case n.Name == "":
		return llm.InvalidParam("missing_required_parameter", "name", "A token needs a name, to know it again by.")
	case len(n.Name) > maxName || hasControls(n.Name):
		return llm.InvalidParam("invalid_value", "name", "A name has at most %d bytes and no control characters.", maxName)
	case len(n.Scopes) == 0:
		return llm.InvalidParam("missing_required_parameter", "scopes", "A token needs scopes, of %s.", strings.Join(ScopeNames, ", "))
	case !n.Expires.IsZero() && !n.Expires.After(time.Now()):
		return llm.InvalidParam("invalid_value", "expires", "The expiry lies in the past.")
	}
	_, err := scopesOf(n.Scopes)
	return err
}

// CreateToken makes a token and returns it whole, which never happens again.
func (o *Operators) CreateToken(ctx context.Context, n NewAdminToken, by *Operator) (string, *store.AdminToken, error) {
	if err := n.check(); err != nil {
		return "", nil, err
	}
	text, token := newToken(adminPrefix, "")
	row := &store.AdminToken{
		ID: token.ID, Name: n.Name, Hash: hex.EncodeToString(token.Hash[:]), Scopes: n.Scopes, By: by.Name, Created: time.Now().UnixMilli(),
	}
	if !n.Expires.IsZero() {
		row.Expires = n.Expires.UnixMilli()
	}
	err := o.store.CreateAdminToken(ctx, row)
	if errors.Is(err, store.ErrConflict) {
		return "", nil, llm.Errorf(llm.Conflict, "There is a token named %q already; take another name.", n.Name)
	}
	return text, row, err
}

// Tokens returns all tokens by their names, also those that have expired.
func (o *Operators) Tokens(ctx context.Context) ([]store.AdminToken, error) {
	return o.store.AdminTokens(ctx)
}

// RevokeToken ends a token, by its ID or its name, and returns what it was.
func (o *Operators) RevokeToken(ctx context.Context, ref string) (*store.AdminToken, error) {
	all, err := o.store.AdminTokens(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t store.AdminToken) bool { return t.ID == ref })
	if i < 0 {
		i = slices.IndexFunc(all, func(t store.AdminToken) bool { return t.Name == ref })
	}
	if i < 0 {
		return nil, noToken(ref)
	}
	if err := o.store.DeleteAdminToken(ctx, all[i].ID); errors.Is(err, store.ErrNotFound) {
		return nil, noToken(ref)
	} else if err != nil {
		return nil, err
	}
	return &all[i], nil
}

func noToken(ref string) error {
	return llm.Errorf(llm.NotFound, "There is no admin token with the ID or name %q. 'limen admin tokens list' shows them.", ref)
}

// token returns the program that a token stands for.
func (o *Operators) token(ctx context.Context, token Token, from string) (*Operator, error) {
	row, err := o.store.AdminToken(ctx, token.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errWrongToken
	}
	if err != nil {
		return nil, awayError(err)
	}
	switch {
	case !sameHash(row.Hash, token):
		return nil, errWrongToken
	case row.Expires != 0 && row.Expires <= time.Now().UnixMilli():
		return nil, wrongPassword("This admin token has expired.")
	}
	scopes, err := scopesOf(row.Scopes)
	return &Operator{Name: row.Name, Via: ViaToken, Scopes: scopes, From: from}, err
}

var errWrongToken = wrongPassword("Incorrect admin token.")
