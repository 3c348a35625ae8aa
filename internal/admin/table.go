package admin

import (
	"slices"

	"github.com/limen-gateway/limen/internal/keys"
)

// operation is a row of the table of operations.
type operation struct {
	method string
	path   string // below /api/v1; {name} stands for one segment
	access access
	change bool // it changes something
	serve  func(*request) (any, error)
}

// access says who may use an operation.
type access struct {
	unknown bool // also who is not known
	roles   []keys.Role
	scopes  keys.Scopes // of which a token needs one; without any, no token may
}

// allows reports whether somebody may use an operation.
func (a access) allows(who *keys.Operator) bool {
	if who.Via == keys.ViaToken {
		return who.Scopes&a.scopes != 0
	}
	return slices.Contains(a.roles, who.Role)
}

var (
	readers  = []keys.Role{keys.Owner, keys.Manager, keys.Viewer}
	managers = []keys.Role{keys.Owner, keys.Manager}

	anybody    = access{unknown: true}
	known      = access{roles: keys.Roles, scopes: keys.ScopeRead | keys.ScopeKeys | keys.ScopeConfig | keys.ScopeUsage}
	people     = access{roles: keys.Roles}
	owners     = access{roles: []keys.Role{keys.Owner}}
	sees       = access{roles: readers, scopes: keys.ScopeRead}
	seesKeys   = access{roles: keys.Roles, scopes: keys.ScopeRead | keys.ScopeKeys}
	seesTeams  = access{roles: readers, scopes: keys.ScopeRead | keys.ScopeKeys}
	seesConfig = access{roles: readers, scopes: keys.ScopeRead | keys.ScopeConfig}
	seesUsage  = access{roles: keys.Roles, scopes: keys.ScopeRead | keys.ScopeUsage}
	setsKeys   = access{roles: managers, scopes: keys.ScopeKeys}
	setsConfig = access{roles: managers, scopes: keys.ScopeConfig}
)

// table is what the API does: who finds an operation, may use it and is told of
// it is decided by its row alone.
func (a *API) table() []operation {
	return []operation{
		{"POST", "/session", anybody, true, a.login},
		{"GET", "/session", known, false, a.whoAmI},
		{"DELETE", "/session", people, true, a.logout},
		{"GET", "/sessions", people, false, a.listSessions},
		{"DELETE", "/sessions/{session}", people, true, a.endSession},

		{"GET", "/keys", seesKeys, false, a.listKeys},
		{"POST", "/keys", setsKeys, true, a.createKey},
		{"GET", "/keys/{key}", seesKeys, false, a.showKey},
		{"PATCH", "/keys/{key}", setsKeys, true, a.changeKey},
		{"POST", "/keys/{key}/revoke", setsKeys, true, a.revokeKey},
		{"POST", "/keys/{key}/rotate", setsKeys, true, a.rotateKey},
		{"POST", "/keys/{key}/restore", setsKeys, true, a.restoreKey},
		{"GET", "/teams", seesTeams, false, a.listTeams},
		{"POST", "/teams", setsKeys, true, a.createTeam},
		{"GET", "/teams/{team}", seesTeams, false, a.showTeam},
		{"PATCH", "/teams/{team}", setsKeys, true, a.changeTeam},
		{"DELETE", "/teams/{team}", setsKeys, true, a.deleteTeam},

		{"GET", "/models", seesConfig, false, a.listModels},
		{"GET", "/providers", seesConfig, false, a.listProviders},
		{"POST", "/refresh", setsConfig, true, a.refresh},
		{"POST", "/route", seesConfig, false, a.route},
		{"GET", "/clients", seesConfig, false, a.listClients},
		{"GET", "/prices", seesConfig, false, a.listPrices},
		{"POST", "/prices/diff", seesConfig, false, a.diffPrices},
		{"POST", "/prices/reprice", setsConfig, true, a.reprice},

		{"GET", "/usage", seesUsage, false, a.usage},
		{"GET", "/usage/export", seesUsage, false, a.export},
		{"GET", "/calls", seesUsage, false, a.calls},
		{"GET", "/calls/{call}", seesUsage, false, a.showCall},

		{"GET", "/users", sees, false, a.listUsers},
		{"POST", "/users", owners, true, a.createUser},
		{"PATCH", "/users/{user}", owners, true, a.changeUser},
		{"DELETE", "/users/{user}", owners, true, a.deleteUser},
		{"GET", "/tokens", sees, false, a.listTokens},
		{"POST", "/tokens", owners, true, a.createToken},
		{"DELETE", "/tokens/{token}", owners, true, a.revokeToken},
		{"GET", "/audit", sees, false, a.audit},
		{"GET", "/config", seesConfig, false, a.showConfig},
		{"POST", "/config/reload", setsConfig, true, a.reload},
		{"POST", "/admin/password", owners, true, a.setPassword},
		{"GET", "/status", sees, false, a.status},
	}
}
