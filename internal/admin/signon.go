package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/signon"
)

// SignOn is how people log in by single sign-on. It is read-only.
type SignOn struct {
	Client   *signon.Client
	Settings *signon.Settings
	Name     string // of the provider, as people know it
	// Base is the address of the gateway, as browsers know it. Without one,
	// those on its own machine may log in by the address that they came by.
	Base        string
	NameClaim   string
	GroupsClaim string
	Groups      []GroupGrant // the first that somebody is in counts
	Others      *RoleGrant   // of those who are in none; nil is nothing
	Domains     []string     // of verified e-mail addresses; none is any
}

// GroupGrant is what the members of a group may do.
type GroupGrant struct {
	Group string
	RoleGrant
}

// RoleGrant is a role and, of a member, the name or ID of the team.
type RoleGrant struct {
	Role keys.Role
	Team string
}

// The codes of refusals that the provider has nothing to do with.
const (
	codeAddress    signon.Code = "address"     // the browser could not come back
	codeUnknown    signon.Code = "unknown"     // somebody whom nothing lets in
	codeUnverified signon.Code = "unverified"  // an e-mail address that the provider has not verified
	codeDomain     signon.Code = "domain"      // one of another domain
	codeTaken      signon.Code = "taken"       // a name that is another's
	codeGateway    signon.Code = "unavailable" // the gateway cannot do it now
)

// WaysIn is the answer of GET /api/v1/login.
type WaysIn struct {
	Password bool  `json:"password"` // not only of the owner named admin
	OIDC     *Sign `json:"oidc,omitempty"`
}

// Sign is what a button says of a provider.
type Sign struct {
	Name string `json:"name"`
}

func (a *API) waysIn(*request) (*WaysIn, error) {
	ways := &WaysIn{Password: a.Operators.Passwords()}
	if set, err := a.signOn(); err == nil {
		ways.OIDC = &Sign{set.Name}
	}
	return ways, nil
}

func (a *API) signOn() (*SignOn, error) {
	if a.SignOn != nil {
		if set := a.SignOn(); set != nil {
			return set, nil
		}
	}
	return nil, llm.Errorf(llm.NotFound, "Nobody logs in by single sign-on here: login.oidc is not configured.")
}

// redirect is an answer that sends a browser elsewhere.
type redirect struct {
	to      string
	refused *llm.Error // a login that it is not the good end of
}

// loginCookie is the name of the cookie that holds a login under way. The
// browser comes back with it from another site.
const loginCookie = "__Host-limen-login"

func loginCookieOf(value string, maxAge int) string {
	c := http.Cookie{Name: loginCookie, Value: value, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	return c.String()
}

// signingOn is a step of single sign-on, which says where the browser goes from
// there. Where it fails, that is the login page.
func (a *API) signingOn(step func(r *request, set *SignOn, base string) (to string, err error)) func(*request) (*redirect, error) {
	return func(r *request) (*redirect, error) {
		set, err := a.signOn()
		if err != nil {
			return nil, err
		}
		base, err := set.base(r)
		if err != nil {
			return a.notIn(r, base, err), nil
		}
		to, err := step(r, set, base)
		if err != nil {
			return a.notIn(r, base, err), nil
		}
		return &redirect{to: to}, nil
	}
}

// beginSignOn sends a browser to the provider.
func (a *API) beginSignOn(r *request, set *SignOn, base string) (string, error) {
	to, sealed, err := set.Client.Begin(r.Context(), set.Settings, base+callback)
	if err != nil {
		return "", err
	}
	r.header.Add("Set-Cookie", loginCookieOf(sealed, int(signon.Lasts.Seconds())))
	return to, nil
}

const callback = root + "/login/oidc/callback"

// base is the address of the gateway, as the browser of a request knows it.
func (s *SignOn) base(r *request) (string, error) {
	switch {
	case s.Base != "":
		return s.Base, nil
	case !signon.Loopback(r.Host):
		return "", &signon.Problem{Code: codeAddress, Err: fmt.Errorf("a browser that came by %q could not come back from the provider: set public_url", clean(r.Host))}
	case r.TLS != nil:
		return "https://" + r.Host, nil
	}
	return "http://" + r.Host, nil
}

// finishSignOn takes a browser back from the provider, to the console.
func (a *API) finishSignOn(r *request, set *SignOn, base string) (string, error) {
	sealed := ""
	if c, err := r.Cookie(loginCookie); err == nil {
		sealed = c.Value
	}
	r.header.Add("Set-Cookie", loginCookieOf("", -1))
	id, err := set.Client.Finish(r.Context(), set.Settings, sealed, r.URL.Query())
	if err != nil {
		return "", err
	}
	text, who, err := a.letIn(r, set, id)
	if err != nil {
		return "", err
	}
	r.who = who
	r.header.Add("Set-Cookie", cookieOf(text).String())
	return base + "/console/", nil
}

// letIn begins a session for somebody, if anything lets them in.
func (a *API) letIn(r *request, set *SignOn, id *signon.Identity) (string, *keys.Operator, error) {
	name := cmp.Or(id.Name(set.NameClaim), id.Subject)
	// From here on it is known who it is, so the audit log has it.
	r.who = &keys.Operator{Name: clean(name), Via: keys.ViaOIDC, From: keys.AddressOf(r.RemoteAddr)}
	switch {
	case id.Email == "" && id.Unverified() && (set.NameClaim == "email" || len(set.Domains) > 0):
		return "", nil, &signon.Problem{Code: codeUnverified, Err: errors.New("the provider has not verified the e-mail address")}
	case len(set.Domains) > 0 && !slices.ContainsFunc(set.Domains, func(d string) bool { return ofDomain(id.Email, d) }):
		return "", nil, &signon.Problem{Code: codeDomain, Err: errors.New("the e-mail address is of no domain that is let in")}
	}
	grant, err := a.grantOf(set, id)
	if err != nil {
		return "", nil, &signon.Problem{Code: codeGateway, Err: err}
	}
	text, who, err := a.Operators.SignOn(r.Context(), &keys.SignOn{
		Issuer: id.Issuer, Subject: id.Subject, Name: name, Email: id.Email, Grant: grant, From: keys.AddressOf(r.RemoteAddr), Agent: r.UserAgent(),
	})
	switch {
	case errors.Is(err, keys.ErrNoRole):
		err = &signon.Problem{Code: codeUnknown, Err: err}
	case errors.Is(err, keys.ErrNameTaken):
		err = &signon.Problem{Code: codeTaken, Err: err}
	case err != nil:
		err = &signon.Problem{Code: codeGateway, Err: err}
	}
	return text, who, err
}

func ofDomain(email, domain string) bool {
	at := strings.LastIndexByte(email, '@')
	return at > 0 && strings.EqualFold(email[at+1:], domain)
}

// grantOf is what the groups of somebody let them do; nil is nothing.
func (a *API) grantOf(set *SignOn, id *signon.Identity) (*keys.Grant, error) {
	given := set.Others
	groups := id.List(set.GroupsClaim)
	for i := range set.Groups {
		if slices.Contains(groups, set.Groups[i].Group) {
			given = &set.Groups[i].RoleGrant
			break
		}
	}
	if given == nil || given.Team == "" {
		return given.plain(""), nil
	}
	team, err := a.Keys.FindTeam(given.Team)
	if err != nil {
		return nil, fmt.Errorf("login.oidc gives the team %q, which there is not", given.Team)
	}
	return given.plain(team.ID), nil
}

func (g *RoleGrant) plain(team string) *keys.Grant {
	if g == nil {
		return nil
	}
	return &keys.Grant{Role: g.Role, TeamID: team}
}

// notIn sends a browser back to the login page, which says why in the words of
// its code. All else is for the log.
func (a *API) notIn(r *request, base string, err error) *redirect {
	code := codeGateway
	if p, ok := errors.AsType[*signon.Problem](err); ok {
		code, err = p.Code, p.Err
	}
	who := ""
	if r.who != nil {
		who = r.who.Name
	}
	a.Log.Warn("a login by single sign-on failed", "code", string(code), "who", who, "from", keys.AddressOf(r.RemoteAddr), "error", err)
	return &redirect{base + "/console/?login=" + string(code), llm.Errorf(llm.Forbidden, "%s", code)}
}
