package signon

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Identity is who somebody is, as a provider says. Issuer and subject together
// are one person for ever; all else may become another's.
type Identity struct {
	Issuer  string
	Subject string
	Email   string // "" unless the provider has verified it

	claims map[string]json.RawMessage
}

func newIdentity(set *Settings, token *oidc.IDToken) (*Identity, error) {
	id := &Identity{Issuer: set.Issuer, Subject: token.Subject}
	if err := token.Claims(&id.claims); err != nil {
		return nil, &Problem{Failed, err}
	}
	if id.Subject == "" {
		return nil, &Problem{Failed, errors.New("the ID token has no subject")}
	}
	if v := string(id.claims["email_verified"]); v == "true" || v == `"true"` { // some say it as a text
		id.Email = id.text("email")
	}
	return id, nil
}

// Unverified reports whether there is an address that the provider has not
// verified.
func (id *Identity) Unverified() bool { return id.Email == "" && id.text("email") != "" }

// Name is a claim that is a text. An e-mail address is one only when it is
// verified.
func (id *Identity) Name(claim string) string {
	if claim == "email" {
		return id.Email
	}
	return id.text(claim)
}

func (id *Identity) text(claim string) string {
	var text string
	if json.Unmarshal(id.claim(claim), &text) != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// List is a claim that is a list of texts, or one text.
func (id *Identity) List(claim string) []string {
	value := id.claim(claim)
	var list []string
	if json.Unmarshal(value, &list) == nil {
		return list
	}
	var one string
	if json.Unmarshal(value, &one) == nil && one != "" {
		return []string{one}
	}
	return nil
}

// claim finds a claim by its name, or by the names of the objects that it is
// in: realm_access.roles.
func (id *Identity) claim(name string) json.RawMessage {
	at := id.claims
	for {
		if value, ok := at[name]; ok {
			return value
		}
		object, rest, inner := strings.Cut(name, ".")
		var next map[string]json.RawMessage
		if !inner || json.Unmarshal(at[object], &next) != nil {
			return nil
		}
		at, name = next, rest
	}
}
