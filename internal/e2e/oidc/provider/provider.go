// Package provider is a provider of OpenID Connect on this machine, with people
// who log in by a click.
package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"github.com/luikyv/go-oidc/pkg/goidc"
	lib "github.com/luikyv/go-oidc/pkg/provider"
	"golang.org/x/crypto/bcrypt"
)

// What the gateway is there.
const (
	ClientID = "limen"
	Secret   = "canary-of-the-client-7Qb2"
)

// Claims are what the ID token of somebody says, besides what all say or in
// place of it.
type Claims map[string]any

// Provider is one that runs.
type Provider struct {
	*httptest.Server

	mu      sync.Mutex
	handler http.Handler // nil: it is away
	real    http.Handler
	keys    []goidc.JSONWebKey // the last signs
	people  map[string]Claims
	asked   int // requests
}

// New begins to listen. Nobody can log in before the gateway is registered.
func New() *Provider {
	p := &Provider{people: map[string]Claims{}}
	p.Rotate()
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked++
		handler := p.handler
		p.mu.Unlock()
		if handler == nil {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	return p
}

// Register lets the gateway's users come back to an address.
func (p *Provider) Register(redirect string) error {
	secret, err := bcrypt.GenerateFromPassword([]byte(Secret), bcrypt.MinCost)
	if err != nil {
		return err
	}
	client := &goidc.Client{ID: ClientID, HashedSecret: string(secret), ClientMeta: goidc.ClientMeta{
		RedirectURIs: []string{redirect}, GrantTypes: []goidc.GrantType{goidc.GrantAuthorizationCode}, ResponseTypes: []goidc.ResponseType{goidc.ResponseTypeCode},
		ScopeIDs: "openid email profile", TokenAuthnMethod: goidc.ClientAuthnSecretBasic,
	}}
	op, err := lib.New(goidc.ProfileOpenID, p.URL, p.jwks,
		lib.WithScopes(goidc.ScopeOpenID, goidc.ScopeEmail, goidc.ScopeProfile),
		lib.WithIDTokenSignatureAlgs(goidc.ES256), lib.WithUserInfoSignatureAlgs(goidc.ES256),
		lib.WithTokenAuthnMethods(goidc.ClientAuthnSecretBasic), lib.WithAuthorizationCodeGrant(), lib.WithPKCERequired(goidc.CodeChallengeMethodSHA256),
		lib.WithStaticClient(client), lib.WithPolicies(goidc.NewPolicy("click", func(*http.Request, *goidc.Client, *goidc.AuthnSession) bool { return true }, p.logIn)),
		lib.WithTokenOptions(func(goidc.GrantInfo, *goidc.Client) goidc.TokenOptions {
			return goidc.NewOpaqueTokenOptions(goidc.DefaultOpaqueTokenLength, 60)
		}),
	)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.real = op.Handler()
	p.handler = p.real
	return nil
}

// SetAway has the provider answer nothing but 503, or be there again.
func (p *Provider) SetAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = p.real
	if away {
		p.handler = nil
	}
}

// Asked is how many requests have come.
func (p *Provider) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Set says what is known of somebody.
func (p *Provider) Set(person string, claims Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[person] = claims
}

// Rotate has tokens signed with a new key, the only one from now on.
func (p *Provider) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []goidc.JSONWebKey{{KeyID: rand.Text(), Key: key, Algorithm: string(goidc.ES256), Use: "sig"}}
}

func (p *Provider) jwks(context.Context) (goidc.JSONWebKeySet, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return goidc.JSONWebKeySet{Keys: p.keys}, nil
}

var page = template.Must(template.New("").Parse(`<!doctype html><title>Log in</title><h1>Who are you?</h1>
<form method="post" action="{{.Action}}">{{range .People}}<button name="person" value="{{.}}">{{.}}</button>{{end}}<button name="person" value="-">Cancel</button></form>`))

// logIn asks who somebody is, and believes it.
func (p *Provider) logIn(w http.ResponseWriter, r *http.Request, s *goidc.AuthnSession) (goidc.AuthnStatus, error) {
	person := r.PostFormValue("person")
	p.mu.Lock()
	names, claims := slices.Sorted(maps.Keys(p.people)), p.people[person]
	p.mu.Unlock()
	switch {
	case person == "-":
		return goidc.StatusFailure, goidc.NewError(goidc.ErrorCodeAccessDenied, "they would not")
	case person == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		return goidc.StatusInProgress, page.Execute(w, map[string]any{"Action": p.URL + "/authorize/" + s.CallbackID, "People": names})
	case claims == nil:
		return goidc.StatusFailure, errors.New("nobody of that name")
	}
	s.SetUserID("sub-" + person)
	s.GrantScopes(s.Scopes)
	for name, value := range claims {
		s.SetIDTokenClaim(name, value)
	}
	return goidc.StatusSuccess, nil
}
