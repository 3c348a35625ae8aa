package admin

// operation is a row of the table of operations.
type operation struct {
	method string
	path   string // below /api/v1; {name} stands for one segment
	access access
	change bool // it changes something
	serve  func(*request) (any, error)
}

// access says who may use an operation.
type access uint8

const (
	operators access = iota // who is known
	anybody                 // also who is not
)

// table is what the API does: who finds an operation, may use it and is told of
// it is decided by its row alone.
func (a *API) table() []operation {
	return []operation{
		{"POST", "/session", anybody, true, a.login},
		{"GET", "/session", operators, false, a.whoAmI},
		{"DELETE", "/session", operators, true, a.logout},
		{"GET", "/sessions", operators, false, a.listSessions},
		{"DELETE", "/sessions/{session}", operators, true, a.endSession},

		{"GET", "/keys", operators, false, a.listKeys},
		{"POST", "/keys", operators, true, a.createKey},
		{"GET", "/keys/{key}", operators, false, a.showKey},
		{"PATCH", "/keys/{key}", operators, true, a.changeKey},
		{"POST", "/keys/{key}/revoke", operators, true, a.revokeKey},
		{"POST", "/keys/{key}/rotate", operators, true, a.rotateKey},
		{"POST", "/keys/{key}/restore", operators, true, a.restoreKey},
		{"GET", "/teams", operators, false, a.listTeams},
		{"POST", "/teams", operators, true, a.createTeam},
		{"GET", "/teams/{team}", operators, false, a.showTeam},
		{"PATCH", "/teams/{team}", operators, true, a.changeTeam},
		{"DELETE", "/teams/{team}", operators, true, a.deleteTeam},

		{"GET", "/models", operators, false, a.listModels},
		{"GET", "/providers", operators, false, a.listProviders},
		{"POST", "/refresh", operators, true, a.refresh},
		{"POST", "/route", operators, false, a.route},
		{"GET", "/prices", operators, false, a.listPrices},
		{"POST", "/prices/diff", operators, false, a.diffPrices},
		{"POST", "/prices/reprice", operators, true, a.reprice},

		{"GET", "/usage", operators, false, a.usage},
		{"GET", "/usage/export", operators, false, a.export},
		{"GET", "/calls", operators, false, a.calls},
		{"GET", "/calls/{call}", operators, false, a.showCall},

		{"GET", "/audit", operators, false, a.audit},
		{"GET", "/config", operators, false, a.showConfig},
		{"POST", "/config/reload", operators, true, a.reload},
		{"POST", "/admin/password", operators, true, a.setPassword},
		{"GET", "/status", operators, false, a.status},
	}
}
