package admin

import (
	"encoding/json"
	"errors"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/llm"
)

// Sections of a document.
const (
	providers = "providers"
	models    = "models"
)

// keySecret is the name of the secret with a provider's key.
func keySecret(provider string) string { return "provider-" + provider }

// begin is the document that an edit changes. What is in force without being
// configured is in it: else it would be gone with the first provider that is.
func (a *API) begin(r *request, base *int64) (d *config.Document, c *document.Change, err error) {
	if err := a.ours(); err != nil {
		return nil, nil, err
	}
	text, version, err := a.stored(r)
	if err != nil {
		return nil, nil, err
	}
	if base != nil && *base != version {
		return nil, nil, document.Conflict(version)
	}
	with, err := a.withFound(text)
	if err == nil {
		d, err = config.ReadDocument(sourceOf(with))
	}
	if err != nil {
		return nil, nil, document.Bad(err)
	}
	return d, &document.Change{Text: text, Base: version}, nil
}

// notEdited is the refusal of an edit.
func notEdited(what, name string, err error) error {
	if errors.Is(err, config.ErrNotThere) {
		return llm.Errorf(llm.NotFound, "The configuration has no %s %q.", what, name)
	}
	return llm.InvalidParam("invalid_value", what, "The %s cannot be written into the configuration: %v.", what, err)
}

// ProviderEdit is what the configuration is to say of a provider.
type ProviderEdit struct {
	Provider json.RawMessage `json:"provider,omitempty"` // as in the document; absent: as it is
	Key      *string         `json:"api_key,omitempty"`  // it becomes a secret
	Base     *int64          `json:"base,omitempty"`     // the newest version; absent: whatever that is
}

func (a *API) putProvider(r *request, in *ProviderEdit) (*Written, error) {
	name := r.PathValue("name")
	if len(in.Provider) == 0 && in.Key == nil {
		return nil, llm.InvalidParam("missing_required_parameter", "provider", "provider is what the configuration is to say of it; api_key alone sets its key.")
	}
	d, c, err := a.begin(r, in.Base)
	if err != nil {
		return nil, err
	}
	before := c.Text
	if len(in.Provider) > 0 || !d.HasEntry(providers, name) {
		if len(in.Provider) == 0 {
			in.Provider = json.RawMessage("{}")
		}
		if c.Text, err = d.Set(providers, name, in.Provider); err != nil {
			return nil, notEdited("provider", name, err)
		}
	}
	c.Note = "provider " + name
	if in.Key != nil {
		c.Secrets = map[string]string{keySecret(name): *in.Key}
		if len(in.Provider) > 0 {
			if d, err = config.ReadDocument(sourceOf(c.Text)); err != nil {
				return nil, document.Bad(err)
			}
		}
		if c.Text, err = d.SetMember(providers, name, "api_key", "${secret:"+keySecret(name)+"}"); err != nil {
			return nil, notEdited("provider", name, err)
		}
	}
	if c.Text == before && in.Key != nil && c.Base > 0 { // another key, in the same place
		return a.replaceKey(r, c, keySecret(name), *in.Key)
	}
	return a.put(r, c)
}

// replaceKey gives a secret another value; the document stays.
func (a *API) replaceKey(r *request, c *document.Change, name, value string) (*Written, error) {
	if _, err := a.parse(c.Text, c.Secrets); err != nil {
		return nil, document.Bad(err)
	}
	if err := a.Documents.SetSecret(r.Context(), name, value); err != nil {
		return nil, err
	}
	return &Written{c.Base}, a.reapply()
}

// ModelEdit is what the configuration is to say of a model.
type ModelEdit struct {
	Model json.RawMessage `json:"model"` // as in the document
	Base  *int64          `json:"base,omitempty"`
}

func (a *API) putModel(r *request, in *ModelEdit) (*Written, error) {
	id := r.PathValue("id")
	if len(in.Model) == 0 {
		return nil, llm.InvalidParam("missing_required_parameter", "model", "model is what the configuration is to say of it.")
	}
	d, c, err := a.begin(r, in.Base)
	if err != nil {
		return nil, err
	}
	if c.Text, err = d.Set(models, id, in.Model); err != nil {
		return nil, notEdited("model", id, err)
	}
	c.Note = "model " + id
	return a.put(r, c)
}

// Removal takes something out of the configuration.
type Removal struct {
	Base *int64 `json:"base,omitempty"`
}

func (a *API) deleteProvider(r *request, in *Removal) (*Written, error) {
	return a.remove(r, in, providers, "provider", r.PathValue("name"))
}

func (a *API) deleteModel(r *request, in *Removal) (*Written, error) {
	return a.remove(r, in, models, "model", r.PathValue("id"))
}

func (a *API) remove(r *request, in *Removal, section, what, name string) (*Written, error) {
	d, c, err := a.begin(r, in.Base)
	if err != nil {
		return nil, err
	}
	if c.Text, err = d.Remove(section, name); err != nil {
		return nil, notEdited(what, name, err)
	}
	c.Note = "without " + what + " " + name
	return a.put(r, c)
}
