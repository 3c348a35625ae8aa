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

	query   string // names of what a query may say
	summary string
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
		{"POST", "/session", anybody, true, a.login, "", "log in: a cookie comes with the answer"},
		{"GET", "/session", known, false, a.whoAmI, "", "who am I"},
		{"DELETE", "/session", people, true, a.logout, "", "log out"},
		{"GET", "/sessions", people, false, a.listSessions, "", "who is logged in"},
		{"DELETE", "/sessions/{session}", people, true, a.endSession, "", "end a session"},

		{"GET", "/keys", seesKeys, false, a.listKeys, "", "list keys"},
		{"POST", "/keys", setsKeys, true, a.createKey, "", "issue a key, which is shown this once"},
		{"GET", "/keys/{key}", seesKeys, false, a.showKey, "", "show a key, by its ID or name"},
		{"PATCH", "/keys/{key}", setsKeys, true, a.changeKey, "", "change a key; what is absent stays"},
		{"POST", "/keys/{key}/revoke", setsKeys, true, a.revokeKey, "", "stop a key"},
		{"POST", "/keys/{key}/rotate", setsKeys, true, a.rotateKey, "", "give a key a new secret"},
		{"POST", "/keys/{key}/restore", setsKeys, true, a.restoreKey, "", "make a revoked key work again"},
		{"GET", "/teams", seesTeams, false, a.listTeams, "", "list teams"},
		{"POST", "/teams", setsKeys, true, a.createTeam, "", "make a team"},
		{"GET", "/teams/{team}", seesTeams, false, a.showTeam, "", "show a team with its members"},
		{"PATCH", "/teams/{team}", setsKeys, true, a.changeTeam, "", "change a team; what is absent stays"},
		{"DELETE", "/teams/{team}", setsKeys, true, a.deleteTeam, "", "delete a team that nothing belongs to"},

		{"GET", "/models", seesConfig, false, a.listModels, "", "what is offered, and how it stands with its targets"},
		{"GET", "/providers", seesConfig, false, a.listProviders, "", "how it stands with upstreams"},
		{"POST", "/refresh", setsConfig, true, a.refresh, "", "take newer facts about models, or undo it"},
		{"POST", "/route", seesConfig, false, a.route, "", "where a call would go"},
		{"GET", "/clients", seesConfig, false, a.listClients, "base model", "the settings of clients"},
		{"GET", "/prices", seesConfig, false, a.listPrices, "model", "what models cost"},
		{"POST", "/prices/diff", seesConfig, false, a.diffPrices, "", "what facts would change of prices"},
		{"POST", "/prices/reprice", setsConfig, true, a.reprice, "", "give past calls the price of their time"},

		{"GET", "/usage", seesUsage, false, a.usage, "by zone since until key team model provider tag", "sums of usage, by groups"},
		{"GET", "/usage/export", seesUsage, false, a.export, "format status failed cost_min since until key team model provider tag", "all calls, as CSV or lines of JSON"},
		{"GET", "/calls", seesUsage, false, a.calls, "limit before status failed cost_min since until key team model provider tag", "the newest calls"},
		{"GET", "/calls/{call}", seesUsage, false, a.showCall, "", "one call, by its request ID"},

		{"GET", "/users", sees, false, a.listUsers, "", "list users"},
		{"POST", "/users", owners, true, a.createUser, "", "make a user, whose password is shown this once"},
		{"PATCH", "/users/{user}", owners, true, a.changeUser, "", "change a user; what is absent stays"},
		{"DELETE", "/users/{user}", owners, true, a.deleteUser, "", "delete a user and end the sessions"},
		{"GET", "/tokens", sees, false, a.listTokens, "", "list admin tokens"},
		{"POST", "/tokens", owners, true, a.createToken, "", "make an admin token, which is shown this once"},
		{"DELETE", "/tokens/{token}", owners, true, a.revokeToken, "", "revoke an admin token"},
		{"GET", "/audit", sees, false, a.audit, "limit before", "the newest changes"},
		{"GET", "/config", seesConfig, false, a.showConfig, "", "the configuration in force, without secrets"},
		{"POST", "/config/reload", setsConfig, true, a.reload, "", "read the configuration file again"},
		{"POST", "/admin/password", owners, true, a.setPassword, "", "set the admin password"},
		{"GET", "/openapi.json", known, false, a.openAPI, "", "this description"},
		{"GET", "/status", sees, false, a.status, "", "version, address, and records that wait"},
	}
}
