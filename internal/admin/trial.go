package admin

import (
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
)

// NewTrial asks whether a provider answers.
type NewTrial struct {
	Model string `json:"model,omitempty"` // its name, there or here; absent: one that it offers
}

// Trial is what came of it.
type Trial struct {
	OK         bool    `json:"ok"`
	Model      string  `json:"model,omitempty"`
	Answer     string  `json:"answer,omitempty"`
	FirstToken float64 `json:"first_token_ms,omitempty"`
	Total      float64 `json:"total_ms,omitempty"`
	Error      string  `json:"error,omitempty"`  // in the provider's words where it has some
	Status     int     `json:"status,omitempty"` // of its refusal
}

// tryProvider makes a real call. A provider that does not answer is an answer.
func (a *API) tryProvider(r *request, in *NewTrial) (*Trial, error) {
	if a.Trial == nil {
		return nil, errNotRunning
	}
	name, known := r.PathValue("provider"), false
	var listed Trial // what its list would say
	for _, s := range a.Catalog.States() {
		if s.Name == name {
			known, listed = true, Trial{Error: s.Error, Status: s.Status}
		}
	}
	if !known {
		return nil, llm.Errorf(llm.NotFound, "There is no provider %q.", name)
	}
	t, err := a.Trial(r.Context(), name, in.Model)
	switch {
	case err != nil && listed.Error != "" && in.Model == "": // nothing is offered, since its list could not be had
		return &listed, nil
	case err != nil:
		return &Trial{Model: in.Model, Error: llm.AsError(err).Message}, nil
	}
	return t, nil
}

// Vendor is what is known of one, to set it up as a provider.
type Vendor struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	BaseURL string   `json:"base_url"` // parts in braces are filled in from the environment
	KeyEnv  []string `json:"key_env"`
	Speaks  []string `json:"speaks"`
}

// VendorList is the answer of GET /api/v1/vendors.
type VendorList struct {
	Vendors []Vendor `json:"vendors"`
}

func (a *API) listVendors(*request) (*VendorList, error) {
	out := &VendorList{Vendors: []Vendor{}}
	for _, v := range provider.Vendors() {
		known := Vendor{Name: v.Name, Title: v.Title, BaseURL: v.BaseURL, KeyEnv: append([]string{}, v.KeyEnv...), Speaks: []string{}}
		for _, d := range v.Speaks {
			known.Speaks = append(known.Speaks, string(d))
		}
		out.Vendors = append(out.Vendors, known)
	}
	return out, nil
}
