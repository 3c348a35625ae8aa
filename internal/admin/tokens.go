package admin

import (
	"time"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/store"
)

// Token is a token for the admin API as operators see it. The token itself is in
// it once, when it is made.
type Token struct {
	ID      string    `json:"id"`
	Token   string    `json:"token,omitempty"`
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes" enum:"read keys config usage"`
	By      string    `json:"created_by"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Expired bool      `json:"expired,omitempty"`
}

// TokenList is the answer of GET /api/v1/tokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

func newToken(t *store.AdminToken, text string) *Token {
	return &Token{
		ID: t.ID, Token: text, Name: t.Name, Scopes: t.Scopes, By: t.By, Created: fromMs(t.Created), Expires: fromMs(t.Expires),
		Expired: t.Expires != 0 && t.Expires <= time.Now().UnixMilli(),
	}
}

func (a *API) listTokens(r *request) (*TokenList, error) {
	rows, err := a.Operators.Tokens(r.Context())
	if err != nil {
		return nil, err
	}
	out := &TokenList{[]Token{}}
	for i := range rows {
		out.Tokens = append(out.Tokens, *newToken(&rows[i], ""))
	}
	return out, nil
}

func (a *API) createToken(r *request, in *keys.NewAdminToken) (*Token, error) {
	text, t, err := a.Operators.CreateToken(r.Context(), *in, r.who)
	if err != nil {
		return nil, err
	}
	r.on(t.ID, t.Name)
	return newToken(t, text), nil
}

func (a *API) revokeToken(r *request) (*Token, error) {
	t, err := a.Operators.RevokeToken(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	r.on(t.ID, t.Name)
	return newToken(t, ""), nil
}
