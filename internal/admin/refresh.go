package admin

import (
	"errors"

	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
)

// Refresh is what POST /api/v1/refresh takes: one of the two.
type Refresh struct {
	Facts []byte `json:"facts,omitempty"` // packed, in the place of those there are
	Undo  bool   `json:"undo,omitempty"`  // back to those of the release
}

// Refreshed is its answer: the facts that count now, what is other than before,
// and how it stands with the providers, which were asked for their lists.
type Refreshed struct {
	provider.Origin
	Models int `json:"models"`
	provider.Changes
	Providers []catalog.State `json:"providers,omitempty"` // none without a running gateway
}

func (a *API) refresh(r *request, in *Refresh) (*Refreshed, error) {
	if in.Undo == (len(in.Facts) > 0) {
		return nil, llm.InvalidParam("invalid_value", "facts", "Either facts are sent, or undo is true.")
	}
	old, _, err := catalog.Facts(r.Context(), a.Store)
	if err != nil { // they may be why this is done
		a.Log.Warn("facts about models cannot be read from the store; changes are counted from those of the release", "error", err)
		old = provider.Embedded()
	}
	now, err := a.takeFacts(r, in)
	if err != nil {
		return nil, err
	}
	out := &Refreshed{Origin: now.Origin(), Models: now.Len(), Changes: now.Since(old)}
	if a.Catalog != nil {
		out.Providers = a.Catalog.Refresh(r.Context())
	}
	return out, nil
}

func (a *API) takeFacts(r *request, in *Refresh) (*provider.Facts, error) {
	if in.Undo {
		return provider.Embedded(), catalog.DropFacts(r.Context(), a.Store)
	}
	facts, err := catalog.KeepFacts(r.Context(), a.Store, in.Facts)
	if bad := (*catalog.BadFacts)(nil); errors.As(err, &bad) {
		return nil, llm.InvalidParam("invalid_value", "facts", "%v. Nothing was changed.", bad)
	}
	return facts, err
}
