package app

import (
	"strings"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/signon"
)

// signOnOf is how people log in by single sign-on, nil where they do not.
func (a *app) signOnOf(cfg *config.Config) *admin.SignOn {
	o := cfg.Login.OIDC
	if o == nil {
		return nil
	}
	set := &admin.SignOn{
		Client: a.asks, Settings: &signon.Settings{Issuer: o.Issuer, ClientID: o.ClientID, Secret: o.ClientSecret.Reveal(), Scopes: o.Scopes},
		Name: o.Name, NameClaim: o.NameClaim, GroupsClaim: o.GroupsClaim, Domains: o.Domains,
	}
	if cfg.PublicURL != "" || cfg.TLS.ACME != nil {
		set.Base = strings.TrimSuffix(publicBase(cfg, nil), "/v1")
	}
	for _, g := range o.Groups {
		set.Groups = append(set.Groups, admin.GroupGrant{Group: g.Name, RoleGrant: roleGrant(g.Grant)})
	}
	if o.Others != nil {
		others := roleGrant(*o.Others)
		set.Others = &others
	}
	return set
}

func roleGrant(g config.Grant) admin.RoleGrant {
	return admin.RoleGrant{Role: keys.Role(g.Role), Team: g.Team}
}
