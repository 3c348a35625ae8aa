package config

import (
	"errors"
	"net"
	"net/url"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Login is by passwords alone unless single sign-on is configured.
type Login struct {
	Passwords string `yaml:"passwords" enum:"all admin" doc:"Who may log in to the console with a password: all users, or the owner named admin alone."`
	OIDC      *OIDC  `yaml:"oidc" doc:"Single sign-on: a provider of OpenID Connect says who somebody is."`
}

// The words for who may log in with a password.
const (
	PasswordsAll   = "all"
	PasswordsAdmin = "admin"
)

// OIDC is a provider of OpenID Connect, and what its users may do.
type OIDC struct {
	Name         string   `yaml:"name" doc:"What the button on the login page calls it."`
	Issuer       string   `yaml:"issuer" check:"issuer" doc:"The provider's address, exactly as it calls itself."`
	ClientID     string   `yaml:"client_id" doc:"What Limen is called there."`
	ClientSecret Secret   `yaml:"client_secret" doc:"The secret for it."`
	Client       string   `yaml:"client" enum:"confidential public" doc:"A public client has no secret."`
	Scopes       []string `yaml:"scopes" check:"scope" doc:"What the provider is asked to tell."`
	NameClaim    string   `yaml:"name_claim" doc:"The claim with the name of a new user. email counts only where the provider has verified it."`
	GroupsClaim  string   `yaml:"groups_claim" doc:"The claim with the groups. One within another is written with a dot: realm_access.roles."`
	Groups       []Group  `yaml:"groups" doc:"What the members of groups may do: owner, admin, viewer, or member with a team. The first group that somebody is in counts, anew at each login."`
	Others       *Grant   `yaml:"others" doc:"What those may do who are in no such group. Absent: they are let in only if an owner has made them users."`
	Domains      []string `yaml:"domains" check:"domain" doc:"Let in only those with a verified e-mail address of one of these. Absent: any."`
}

func (o *OIDC) setDefaults() {
	o.Name, o.Client, o.NameClaim, o.GroupsClaim = "single sign-on", "confidential", "email", "groups"
	o.Scopes = []string{"openid", "email", "profile"}
}

// Grant is written as a role or, with a team, as a mapping.
type Grant struct {
	Role string `yaml:"role,short" enum:"owner admin viewer member" doc:"What they may do."`
	Team string `yaml:"team" doc:"Name or ID of the team that a member belongs to."`
}

// Group is one of the provider's.
type Group struct {
	Name  string `yaml:",key"`
	Grant `yaml:",inline"`
}

// testIssuer takes what secrets can be sent to: over TLS, or on this machine.
func testIssuer(text string) error {
	u, err := parseURL(text)
	switch {
	case err != nil:
		return err
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("an issuer takes no query")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return errors.New("an issuer is reached over https; http is for this machine alone")
	}
	return nil
}

func loopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func (d *decoder) validateLogin(c *Config) {
	o := c.Login.OIDC
	if o == nil {
		if c.Login.Passwords == PasswordsAdmin && !d.flawed[&c.Login] {
			d.complain(d.at[&c.Login.Passwords], "passwords: admin leaves users no way in without oidc")
		}
		return
	}
	if d.flawed[&c.Login.OIDC] {
		return
	}
	at := d.at[&c.Login.OIDC]
	switch {
	case o.Issuer == "" || o.ClientID == "":
		d.complain(at, "oidc needs issuer and client_id")
	case o.Client == "confidential" && o.ClientSecret == "":
		d.complain(d.placeOf(&o.ClientSecret, at), "oidc needs a client_secret, or client: public where the provider has given none")
	case o.Client == "public" && o.ClientSecret != "":
		d.complain(d.at[&o.ClientSecret], "a public client has no client_secret")
	case !slices.Contains(o.Scopes, "openid"):
		d.complain(d.placeOf(&o.Scopes, at), "without the scope openid the provider says of nobody who it is")
	case o.NameClaim == "" || o.GroupsClaim == "":
		d.complain(at, "name_claim and groups_claim are names of claims")
	default:
		d.validateRedirect(c)
	}
	for i := range o.Groups {
		d.validateGrant(&o.Groups[i].Grant, &o.Groups[i])
	}
	if o.Others != nil {
		d.validateGrant(o.Others, &o.Others)
	}
}

// validateRedirect refuses single sign-on where browsers could not come back:
// their way is by public_url, or on this machine.
func (d *decoder) validateRedirect(c *Config) {
	at := d.at[&c.Login.OIDC]
	host, _, err := net.SplitHostPort(c.Listen)
	public, parsed := url.Parse(c.PublicURL)
	switch {
	case c.PublicURL == "" && c.TLS.ACME == nil && err == nil && !loopback(host):
		d.complain(at, "oidc needs public_url, the address at which browsers come back from the provider: set it, and register it there with the path /api/v1/login/oidc/callback")
	case c.PublicURL != "" && parsed == nil && public.Scheme == "http" && !loopback(public.Hostname()):
		d.complain(d.placeOf(&c.PublicURL, at), "oidc needs a public_url with https: browsers keep no session that came over http")
	}
}

func (d *decoder) validateGrant(g *Grant, place any) {
	switch at := d.at[place]; {
	case g.Role == "":
		d.complain(at, "expected a role: owner, admin, viewer, or { role: member, team: NAME }")
	case g.Role == "member" && g.Team == "":
		d.complain(at, "a member needs a team, whose keys and usage it sees: { role: member, team: NAME }")
	case g.Role != "member" && g.Team != "":
		d.complain(at, "only members have a team: who is "+g.Role+" sees all")
	}
}

// placeOf is where a value stands, or else what it would stand in.
func (d *decoder) placeOf(value any, around *yaml.Node) *yaml.Node {
	if at := d.at[value]; at != nil {
		return at
	}
	return around
}
