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
	handler

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
	seesConfig = access{roles: readers, scopes: keys.ScopeRead | keys.ScopeConfig}
	seesUsage  = access{roles: keys.Roles, scopes: keys.ScopeRead | keys.ScopeUsage}
	setsKeys   = access{roles: managers, scopes: keys.ScopeKeys}
	setsConfig = access{roles: managers, scopes: keys.ScopeConfig}
)

// table is what the API does: who finds an operation, may use it and is told of
// it is decided by its row alone.
func (a *API) table() []operation {
	return []operation{
		{"POST", "/session", anybody, true, takes(a.login), "", "log in: a cookie comes with the answer"},
		{"GET", "/login", anybody, false, gives(a.waysIn), "", "how people log in"},
		{"GET", "/login/oidc", anybody, false, leads(a.signingOn(a.beginSignOn)), "", "log in by single sign-on: a browser is sent to the provider"},
		{"GET", "/login/oidc/callback", anybody, true, leads(a.signingOn(a.finishSignOn)), "code state error error_description", "come back from the provider: a cookie comes with the way to the console"},
		{"GET", "/session", known, false, gives(a.whoAmI), "", "who am I"},
		{"DELETE", "/session", people, true, gives(a.logout), "", "log out"},
		{"POST", "/session/password", people, true, takes(a.changeOwnPassword), "", "change the own password, by the old one; other sessions end"},
		{"GET", "/sessions", people, false, gives(a.listSessions), "", "who is logged in"},
		{"DELETE", "/sessions/{session}", people, true, gives(a.endSession), "", "end a session"},

		{"GET", "/keys", seesKeys, false, gives(a.listKeys), "", "list keys"},
		{"POST", "/keys", setsKeys, true, takes(a.createKey), "", "issue a key, which is shown this once"},
		{"GET", "/keys/{key}", seesKeys, false, gives(a.showKey), "", "show a key, by its ID or name"},
		{"PATCH", "/keys/{key}", setsKeys, true, takes(a.changeKey), "", "change a key; what is absent stays"},
		{"POST", "/keys/{key}/revoke", setsKeys, true, gives(a.revokeKey), "", "stop a key"},
		{"POST", "/keys/{key}/rotate", setsKeys, true, takes(a.rotateKey), "", "give a key a new secret"},
		{"POST", "/keys/{key}/restore", setsKeys, true, gives(a.restoreKey), "", "make a revoked key work again"},
		{"GET", "/teams", seesKeys, false, gives(a.listTeams), "", "list teams"},
		{"POST", "/teams", setsKeys, true, takes(a.createTeam), "", "make a team"},
		{"GET", "/teams/{team}", seesKeys, false, gives(a.showTeam), "", "show a team with its members"},
		{"PATCH", "/teams/{team}", setsKeys, true, takes(a.changeTeam), "", "change a team; what is absent stays"},
		{"DELETE", "/teams/{team}", setsKeys, true, gives(a.deleteTeam), "", "delete a team that nothing belongs to"},

		{"GET", "/models", seesConfig, false, gives(a.listModels), "", "what is offered, and how it stands with its targets"},
		{"GET", "/providers", seesConfig, false, gives(a.listProviders), "", "how it stands with upstreams"},
		{"POST", "/providers/{provider}/test", setsConfig, true, takes(a.tryProvider), "", "have a provider answer a small call, which is recorded"},
		{"GET", "/vendors", seesConfig, false, gives(a.listVendors), "", "the vendors that are known, to set them up as providers"},
		{"POST", "/refresh", setsConfig, true, takes(a.refresh), "", "take newer facts about models, or undo it"},
		{"POST", "/route", seesConfig, false, takes(a.route), "", "where a call would go"},
		{"GET", "/clients", seesConfig, false, gives(a.listClients), "base model", "the settings of clients"},
		{"GET", "/prices", seesConfig, false, gives(a.listPrices), "model", "what models cost"},
		{"POST", "/prices/diff", seesConfig, false, takes(a.diffPrices), "", "what facts would change of prices"},
		{"POST", "/prices/reprice", setsConfig, true, takes(a.reprice), "", "give past calls the price of their time"},

		{"GET", "/usage", seesUsage, false, gives(a.usage), "by zone since until key team model provider tag", "sums of usage, by groups"},
		{"GET", "/usage/table", seesUsage, false, streams(a.usageTable, "text/csv"), "by zone since until key team model provider tag", "sums of usage, as CSV"},
		{"GET", "/usage/latency", seesUsage, false, gives(a.latency), "by zone since until key team model provider tag", "percentiles of how long the newest calls took"},
		{"GET", "/usage/export", seesUsage, false, streams(a.export, "text/csv", "application/jsonl"), "format status failed cost_min since until key team model provider tag", "all calls, as CSV or lines of JSON"},
		{"GET", "/calls", seesUsage, false, gives(a.calls), "limit before status failed cost_min since until key team model provider tag", "the newest calls"},
		{"GET", "/arrivals", seesUsage, false, gives(a.listArrivals), "since key", "what lately came from clients: what was refused, and what is served while somebody asks"},
		{"GET", "/calls/{call}", seesUsage, false, gives(a.showCall), "", "one call, by its request ID"},

		{"GET", "/users", sees, false, gives(a.listUsers), "", "list users"},
		{"POST", "/users", owners, true, takes(a.createUser), "", "make a user, whose password is shown this once"},
		{"PATCH", "/users/{user}", owners, true, takes(a.changeUser), "", "change a user; what is absent stays"},
		{"DELETE", "/users/{user}", owners, true, gives(a.deleteUser), "", "delete a user and end the sessions"},
		{"GET", "/tokens", sees, false, gives(a.listTokens), "", "list admin tokens"},
		{"POST", "/tokens", owners, true, takes(a.createToken), "", "make an admin token, which is shown this once"},
		{"DELETE", "/tokens/{token}", owners, true, gives(a.revokeToken), "", "revoke an admin token"},
		{"GET", "/audit", sees, false, gives(a.audit), "limit before who on object failed", "the newest changes"},
		{"GET", "/config", seesConfig, false, gives(a.showConfig), "", "the configuration in force, without secrets"},
		{"POST", "/config/reload", setsConfig, true, gives(a.reload), "", "read the configuration again"},
		{"GET", "/config/document", seesConfig, false, gives(a.showDocument), "", "the configuration as it is written: a file, or the store's newest version"},
		{"PUT", "/config/document", setsConfig, true, takes(a.putDocument), "", "write the next version of the configuration"},
		{"POST", "/config/check", seesConfig, false, takes(a.checkDocument), "", "find out whether a configuration is good"},
		{"GET", "/config/versions", seesConfig, false, gives(a.listVersions), "limit before", "the versions of the configuration"},
		{"GET", "/config/versions/{version}", seesConfig, false, gives(a.showVersion), "", "a version, and how it differs from the one before"},
		{"POST", "/config/rollback", setsConfig, true, takes(a.rollback), "", "make a former version the next"},
		{"GET", "/config/secrets", seesConfig, false, gives(a.listSecrets), "", "the names of secrets"},
		{"PUT", "/config/secrets/{name}", setsConfig, true, takes(a.setSecret), "", "set a secret, which no answer shows"},
		{"DELETE", "/config/secrets/{name}", setsConfig, true, gives(a.deleteSecret), "", "forget a secret that nothing uses"},
		{"PUT", "/config/providers/{name}", setsConfig, true, takes(a.putProvider), "", "set a provider in the configuration, or its key"},
		{"DELETE", "/config/providers/{name}", setsConfig, true, takes(a.deleteProvider), "", "take a provider out of the configuration"},
		{"PUT", "/config/models/{id}", setsConfig, true, takes(a.putModel), "", "set a model in the configuration"},
		{"DELETE", "/config/models/{id}", setsConfig, true, takes(a.deleteModel), "", "take a model out of the configuration"},
		{"POST", "/admin/password", owners, true, takes(a.setPassword), "", "set the admin password"},
		{"GET", "/openapi.json", known, false, gives(a.openAPI), "", "this description"},
		{"GET", "/status", sees, false, gives(a.status), "", "version, address, and records that wait"},
	}
}
