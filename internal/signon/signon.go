// Package signon finds out who somebody is by asking a provider of OpenID
// Connect: by the authorization code flow, with PKCE, state and nonce. What
// they may do is not its business.
package signon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/limen-gateway/limen/internal/lru"
)

// Settings are what is known of a provider before it was asked. They are
// read-only.
type Settings struct {
	Issuer   string
	ClientID string
	Secret   string // "" for a public client
	Scopes   []string
}

// Problem is why nobody is known after a login: a word that goes into an
// address, and the cause, which is for the log.
type Problem struct {
	Code Code
	Err  error
}

// Code says what went wrong with a login.
type Code string

// The codes of this package; who uses it has further ones.
const (
	Away    Code = "away"    // the provider does not answer, or not as one does
	Denied  Code = "denied"  // somebody did not let the provider say who they are
	Failed  Code = "failed"  // the provider said no, or something that is not to be believed
	Expired Code = "expired" // the login was begun elsewhere, too long ago, or has ended already
)

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

const (
	// Lasts is how long somebody may take to log in at the provider.
	Lasts = 10 * time.Minute
	// patience is how long all requests of one step may take.
	patience = 15 * time.Second
	// fresh is how long what a provider said of itself counts: after that, keys
	// that it has withdrawn are good for nothing.
	fresh = time.Hour
	// pause is how long a provider that is away is not asked again.
	pause = 2 * time.Second
	// most is how many logins are remembered to have ended.
	most = 4096
)

// Client asks a provider. It may be used by several goroutines.
type Client struct {
	http  *http.Client
	box   box
	ended *lru.Cache[string, struct{}] // states of logins: each ends once
	turn  sync.Mutex                   // held while a login takes its state

	mu    sync.Mutex // one question for what the provider is
	known *provider
	away  struct { // the last that did not answer
		issuer string
		at     time.Time
		err    error
	}
}

// provider is what a provider said of itself.
type provider struct {
	*oidc.Provider
	issuer string
	asked  time.Time
	style  oauth2.AuthStyle
}

// New returns a client. Gateways with the same secret can end the logins that
// another has begun.
func New(secret []byte, userAgent string) (*Client, error) {
	box, err := newBox(secret)
	if err != nil {
		return nil, err
	}
	return &Client{http: newHTTPClient(userAgent), box: box, ended: lru.New[string, struct{}](most)}, nil
}

// login is what a browser keeps, sealed, while somebody logs in.
type login struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Issuer   string `json:"issuer"`
	Redirect string `json:"redirect"`
	Until    int64  `json:"until"` // Unix s
}

// Begin returns the address at the provider that somebody logs in at, and what
// the browser has to keep until it comes back to the redirect address.
func (c *Client) Begin(ctx context.Context, set *Settings, redirect string) (address, sealed string, err error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	p, err := c.provider(ctx, set)
	if err != nil {
		return "", "", err
	}
	l := &login{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Issuer: set.Issuer, Redirect: redirect,
		Until: time.Now().Add(Lasts).Unix(),
	}
	address = p.config(set, redirect).AuthCodeURL(l.State, oidc.Nonce(l.Nonce), oauth2.S256ChallengeOption(l.Verifier))
	if err := secure(address); err != nil {
		return "", "", &Problem{Away, err}
	}
	return address, c.box.seal(l), nil
}

// Finish returns who came back from the provider with a query, by what the
// browser kept.
func (c *Client) Finish(ctx context.Context, set *Settings, sealed string, query url.Values) (*Identity, error) {
	l, err := c.take(set, sealed, query.Get("state"))
	if err != nil {
		return nil, &Problem{Expired, err}
	}
	if code := query.Get("error"); code != "" {
		return nil, refusal(code, query.Get("error_description"))
	}
	ctx, cancel := c.context(ctx)
	defer cancel()
	p, err := c.provider(ctx, set)
	if err != nil {
		return nil, err
	}
	token, err := p.config(set, l.Redirect).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(l.Verifier))
	if err != nil {
		return nil, exchangeProblem(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, &Problem{Failed, errors.New("the provider sent no ID token")}
	}
	verified, err := p.Verifier(&oidc.Config{ClientID: set.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, &Problem{Failed, errors.New(short(err.Error()))}
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(l.Nonce)) != 1 {
		return nil, &Problem{Failed, errors.New("the ID token is for another login: it has another nonce")}
	}
	return newIdentity(set, verified)
}

// take opens what a browser kept. Only one that has it can end a login, within
// its time and once.
func (c *Client) take(set *Settings, sealed, state string) (*login, error) {
	l, ok := c.box.open(sealed)
	switch {
	case !ok:
		return nil, errors.New("the browser has not kept that it began a login")
	case l.Issuer != set.Issuer:
		return nil, errors.New("the login was begun at another provider")
	case subtle.ConstantTimeCompare([]byte(l.State), []byte(state)) != 1:
		return nil, errors.New("the browser began another login than the one that it ends")
	case time.Now().Unix() >= l.Until:
		return nil, errors.New("the login took too long")
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if _, over := c.ended.Get(l.State); over {
		return nil, errors.New("the login has ended already")
	}
	c.ended.Put(l.State, struct{}{}, 1)
	return l, nil
}

// context has requests made by the client, within their time.
func (c *Client) context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, c.http), patience)
}

// provider asks a provider what it is, unless that is known. One that was away
// a moment ago is not asked again, however many want to log in.
func (c *Client) provider(ctx context.Context, set *Settings) (*provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.known; p != nil && p.issuer == set.Issuer && time.Since(p.asked) < fresh {
		return p, nil
	}
	if away := &c.away; away.issuer == set.Issuer && time.Since(away.at) < pause {
		return nil, &Problem{Away, away.err}
	}
	found, err := oidc.NewProvider(ctx, set.Issuer)
	if err != nil {
		err = errors.New(short(err.Error())) // it may have all of an answer in it
		c.away.issuer, c.away.at, c.away.err = set.Issuer, time.Now(), err
		return nil, &Problem{Away, err}
	}
	c.known = &provider{found, set.Issuer, time.Now(), styleOf(found)}
	return c.known, nil
}

// styleOf is how a provider takes the client's secret. To try both ways would
// use up the code.
func styleOf(p *oidc.Provider) oauth2.AuthStyle {
	var said struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if p.Claims(&said) != nil {
		return oauth2.AuthStyleInHeader
	}
	for _, method := range said.Methods {
		switch method {
		case "client_secret_basic":
			return oauth2.AuthStyleInHeader
		case "client_secret_post":
			return oauth2.AuthStyleInParams
		}
	}
	return oauth2.AuthStyleInHeader
}

func (p *provider) config(set *Settings, redirect string) *oauth2.Config {
	endpoint := p.Endpoint()
	endpoint.AuthStyle = p.style
	if set.Secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: set.ClientID, ClientSecret: set.Secret, Endpoint: endpoint, RedirectURL: redirect, Scopes: set.Scopes}
}

// refusal is what a provider sent somebody back with.
func refusal(code, description string) error {
	p := &Problem{Failed, fmt.Errorf("the provider refused: %s", short(strings.TrimSpace(code+" "+description)))}
	if code == "access_denied" {
		p.Code = Denied
	}
	return p
}

// exchangeProblem is why a code was not taken. What the provider answered is not
// repeated whole.
func exchangeProblem(err error) error {
	said, answered := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !answered:
		return &Problem{Away, err}
	case said.Response.StatusCode >= http.StatusInternalServerError:
		return &Problem{Away, fmt.Errorf("the provider answered %s", said.Response.Status)}
	}
	return &Problem{Failed, fmt.Errorf("the provider did not take the code: %s %s", said.Response.Status, short(cmp.Or(said.ErrorCode+" "+said.ErrorDescription, "without a reason")))}
}

// short is as much of a provider's text as is worth a line of the log.
func short(text string) string {
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
