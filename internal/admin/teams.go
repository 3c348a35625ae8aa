package admin

import (
	"context"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/money"
)

// Team is a team as operators see it.
type Team struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Parent  string      `json:"parent,omitempty"` // name of the one that it belongs to
	Budgets []Budget    `json:"budgets"`
	Limits  limit.Rates `json:"limits,omitzero"`
	Created time.Time   `json:"created"`
	// Keys and Teams are its members, where it is the only one that is shown.
	Keys  []Member `json:"keys,omitempty"`
	Teams []Member `json:"teams,omitempty"`
}

// Member is what belongs to a team.
type Member struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Budget is a budget, and how it stands with it.
type Budget struct {
	Amount money.Amount  `json:"amount"`
	Period budget.Period `json:"period"`
	Zone   string        `json:"zone,omitempty"`
	Soft   bool          `json:"soft,omitempty"`
	*Standing
}

// Standing is how it stands with a budget in the period that is under way. It
// is told by what shows, lists and changes, not by what makes and rotates.
type Standing struct {
	Spent  money.Amount `json:"spent"`
	Held   money.Amount `json:"held"` // for calls under way
	Left   money.Amount `json:"left"`
	Renews time.Time    `json:"renews,omitzero"`
}

// String is the budget as it is written on a command line.
func (b Budget) String() string {
	return budget.Budget{Amount: b.Amount, Period: b.Period, Zone: b.Zone, Soft: b.Soft}.String()
}

func newBudgets(list []budget.Budget) []Budget {
	out := make([]Budget, len(list))
	for i, b := range list {
		out[i] = Budget{b.Amount, b.Period, b.Zone, b.Soft, nil}
	}
	return out
}

// budgetsNow are the budgets of an owner, with what was spent of them.
func (a *API) budgetsNow(ctx context.Context, owner string, list []budget.Budget) ([]Budget, error) {
	balances, err := a.Books.Balances(ctx, owner, list, time.Now())
	if err != nil {
		return nil, err
	}
	out := newBudgets(list)
	for i, b := range balances {
		out[i].Standing = &Standing{b.Spent, b.Held, max(0, b.Amount.Minus(b.Spent).Minus(b.Held)), b.Renews.UTC()}
	}
	return out, nil
}

func newTeam(t *keys.Team) *Team {
	out := &Team{ID: t.ID, Name: t.Name, Budgets: newBudgets(t.Budgets), Limits: t.Limits, Created: fromMs(t.Created)}
	if t.Parent != nil {
		out.Parent = t.Parent.Name
	}
	return out
}

// teamNow is a team with what was spent of its budgets.
func (a *API) teamNow(ctx context.Context, t *keys.Team) (out *Team, err error) {
	out = newTeam(t)
	out.Budgets, err = a.budgetsNow(ctx, t.ID, t.Budgets)
	return out, err
}

// TeamList is the answer of GET /api/v1/teams.
type TeamList struct {
	Teams []Team `json:"teams"`
}

func (a *API) listTeams(r *request) (*TeamList, error) {
	if err := a.refreshKeys(r); err != nil {
		return nil, err
	}
	list := []Team{}
	teams, only := a.ownTeams(r)
	for _, t := range a.Keys.Teams() {
		if only && !slices.Contains(teams, t.ID) {
			continue
		}
		out, err := a.teamNow(r.Context(), t)
		if err != nil {
			return nil, err
		}
		list = append(list, *out)
	}
	return &TeamList{list}, nil
}

func (a *API) createTeam(r *request, in *keys.NewTeam) (*Team, error) {
	t, err := a.Keys.CreateTeam(r.Context(), *in)
	if err != nil {
		return nil, err
	}
	r.on(t.ID, t.Name)
	return newTeam(t), nil
}

func (a *API) showTeam(r *request) (*Team, error) {
	if err := a.refreshKeys(r); err != nil {
		return nil, err
	}
	t, err := a.findTeam(r, r.PathValue("team"))
	if err != nil {
		return nil, err
	}
	out, err := a.teamNow(r.Context(), t)
	if err != nil {
		return nil, err
	}
	ownKeys, ownTeams := a.Keys.Members(t.ID)
	for _, k := range ownKeys {
		out.Keys = append(out.Keys, Member{k.ID, k.Name})
	}
	for _, t := range ownTeams {
		out.Teams = append(out.Teams, Member{t.ID, t.Name})
	}
	return out, nil
}

// teamChange is what PATCH takes, as keyChange is.
type teamChange struct {
	*keys.NewTeam
	Parent *string      `json:"parent"`
	Limits *limit.Rates `json:"limits"`
}

func (a *API) changeTeam(r *request, change *partial[teamChange]) (*Team, error) {
	t, err := a.Keys.ChangeTeam(r.Context(), r.PathValue("team"), func(n *keys.NewTeam) error {
		in := teamChange{n, &n.Parent, &n.Limits}
		err := change.over(&in)
		n.Parent, n.Limits = orZero(in.Parent), orZero(in.Limits)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.on(t.ID, t.Name)
	return a.teamNow(r.Context(), t)
}

func (a *API) deleteTeam(r *request) (*Team, error) {
	t, err := a.Keys.DeleteTeam(r.Context(), r.PathValue("team"))
	if err != nil {
		return nil, err
	}
	r.on(t.ID, t.Name)
	return newTeam(t), nil
}
