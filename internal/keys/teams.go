package keys

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Team pays for what belongs to it: keys, and other teams. It is immutable.
type Team struct {
	ID      string
	Name    string // no other team has it
	Parent  *Team  // that it belongs to; nil when to none
	Budgets []budget.Budget
	Limits  limit.Rates
	Created int64 // Unix ms

	payer  *budget.Payer
	meters []*limit.Meter
}

// maxDepth is how many teams a key can belong to: its own, the parent of that,
// and so on.
const maxDepth = 8

// path is the team and those that it belongs to, its own first. It ends at a
// team that was there already, and behind the first that is too deep.
func (t *Team) path() (path []*Team) {
	for ; t != nil && len(path) <= maxDepth; t = t.Parent {
		again := slices.Contains(path, t)
		if path = append(path, t); again {
			return path
		}
	}
	return path
}

// teamsOf makes teams of their rows, parents first. It returns an Invalid error
// where they cannot be so.
func teamsOf(rows []store.Team) ([]*Team, error) {
	teams := make([]*Team, 0, len(rows))
	byID, byName := make(map[string]*Team, len(rows)), make(map[string]*Team, len(rows))
	for _, row := range rows {
		if byName[row.Name] != nil {
			return nil, llm.InvalidParam("invalid_value", "name", "There is a team named %q already; take another name.", row.Name)
		}
		t := &Team{ID: row.ID, Name: row.Name, Created: row.Created}
		if err := decodeTerms(row.Budgets, row.Limits, &t.Budgets, &t.Limits); err != nil {
			return nil, fmt.Errorf("keys: team %s: %w", row.ID, err)
		}
		byID[t.ID], byName[t.Name] = t, t
		teams = append(teams, t)
	}
	for i, row := range rows {
		if row.Parent == "" {
			continue
		}
		if teams[i].Parent = byID[row.Parent]; teams[i].Parent == nil {
			return nil, unknownTeam("parent", row.Parent)
		}
	}
	for _, t := range teams {
		path := t.path()
		last := path[len(path)-1]
		switch {
		case slices.Contains(path[:len(path)-1], last):
			return nil, llm.InvalidParam("invalid_value", "parent", "Teams cannot belong to one another in a circle: %s.", namesOf(path))
		case len(path) > maxDepth:
			return nil, llm.InvalidParam("invalid_value", "parent", "Teams belong to one another %d deep at most, this is more: %s.", maxDepth, namesOf(path))
		}
	}
	slices.SortStableFunc(teams, func(a, b *Team) int { return cmp.Compare(len(a.path()), len(b.path())) })
	return teams, nil
}

func namesOf(path []*Team) string {
	names := make([]string, len(path))
	for i, t := range path {
		names[i] = t.Name
	}
	return strings.Join(names, " belongs to ")
}

// validTeams reports whether teams can be as their rows say.
func validTeams(rows []store.Team) error {
	_, err := teamsOf(rows)
	return err
}

// decodeTerms reads what is stored of somebody's budgets and limits.
func decodeTerms(budgetText, limitText string, budgets *[]budget.Budget, limits *limit.Rates) error {
	var errs []error
	if budgetText != "" {
		errs = append(errs, json.Unmarshal([]byte(budgetText), budgets))
	}
	if limitText != "" {
		errs = append(errs, json.Unmarshal([]byte(limitText), limits))
	}
	return errors.Join(errs...)
}

// encodeTerms is what is stored of budgets and limits.
func encodeTerms(budgets []budget.Budget, limits limit.Rates) (budgetText, limitText string, err error) {
	b, err := json.Marshal(append([]budget.Budget{}, budgets...))
	if err != nil {
		return "", "", err
	}
	l, err := json.Marshal(limits)
	return string(b), string(l), err
}

// NewTeam describes a team to make.
type NewTeam struct {
	Name    string          `json:"name"`
	Parent  string          `json:"parent,omitempty"` // ID or name of the team that it belongs to
	Budgets []budget.Budget `json:"budgets,omitempty"`
	Limits  limit.Rates     `json:"limits,omitzero"`
}

// noneName stands for no team where one is named.
const noneName = "none"

func (n *NewTeam) check() error {
	n.Name = strings.TrimSpace(n.Name)
	switch {
	case n.Name == "":
		return llm.InvalidParam("missing_required_parameter", "name", "A team needs a name, to know it again by.")
	case n.Name == noneName:
		return llm.InvalidParam("invalid_value", "name", "A team cannot be named %q: that stands for no team.", noneName)
	case len(n.Name) > maxName || hasControls(n.Name):
		return llm.InvalidParam("invalid_value", "name", "A name has at most %d bytes and no control characters.", maxName)
	}
	return checkTerms(n.Budgets, n.Limits)
}

// checkTerms refuses budgets and limits that cannot be.
func checkTerms(budgets []budget.Budget, limits limit.Rates) error {
	for i, b := range budgets {
		if err := b.Check(); err != nil {
			return llm.InvalidParam("invalid_value", "budgets", "The budget %s cannot be: %v.", b, err)
		}
		if slices.ContainsFunc(budgets[:i], func(other budget.Budget) bool { return other.Period == b.Period && other.Soft == b.Soft }) {
			return llm.InvalidParam("invalid_value", "budgets", "There are two budgets for the same period, the second is %s; a period has one, and beside it one that is soft.", b)
		}
	}
	for _, rate := range []struct {
		name  string
		value int64
	}{{"rpm", limits.Requests}, {"tpm", limits.Tokens}, {"rpd", limits.Daily}, {"concurrency", limits.Concurrency}} {
		if rate.value < 0 || rate.value > limit.MaxRate {
			return llm.InvalidParam("invalid_value", "limits."+rate.name, "%s is a number from 1 to %d, or 0 for no limit, not %d.", rate.name, int64(limit.MaxRate), rate.value)
		}
	}
	return nil
}

// fillTeam makes a row say what is asked for, if that can be.
func (r *Keyring) fillTeam(row *store.Team, n *NewTeam) (err error) {
	if err := n.check(); err != nil {
		return err
	}
	if row.Parent, err = r.teamID("parent", n.Parent, row.Parent); err != nil {
		return err
	}
	row.Name = n.Name
	row.Budgets, row.Limits, err = encodeTerms(n.Budgets, n.Limits)
	return err
}

// teamID is the ID of the team that ref names, by ID or name; "" and "none" name
// none. Where it stays what it was, it is not looked for.
func (r *Keyring) teamID(param, ref, was string) (string, error) {
	if ref == "" || ref == noneName {
		return "", nil
	}
	if ref == was {
		return was, nil
	}
	t, err := r.FindTeam(ref)
	if err != nil {
		return "", unknownTeam(param, ref)
	}
	return t.ID, nil
}

// CreateTeam makes a team.
func (r *Keyring) CreateTeam(ctx context.Context, n NewTeam) (*Team, error) {
	row := store.Team{ID: "team_" + randomBase62(idLen), Created: time.Now().UnixMilli()}
	if err := r.fillTeam(&row, &n); err != nil {
		return nil, err
	}
	if err := r.store.CreateTeam(ctx, row, validTeams); err != nil {
		return nil, err
	}
	return r.rereadTeam(ctx, row.ID)
}

// ChangeTeam changes a team to what edit makes of it.
func (r *Keyring) ChangeTeam(ctx context.Context, ref string, edit func(*NewTeam) error) (*Team, error) {
	t, err := r.FindTeam(ref)
	if err != nil {
		return nil, err
	}
	err = r.store.UpdateTeam(ctx, t.ID, func(row *store.Team) error {
		n := NewTeam{Name: row.Name, Parent: row.Parent}
		if err := errors.Join(decodeTerms(row.Budgets, row.Limits, &n.Budgets, &n.Limits), edit(&n)); err != nil {
			return err
		}
		return r.fillTeam(row, &n)
	}, validTeams)
	if errors.Is(err, store.ErrNotFound) {
		return nil, NoTeam(ref)
	}
	if err != nil {
		return nil, err
	}
	return r.rereadTeam(ctx, t.ID)
}

// DeleteTeam removes a team that nothing belongs to, and returns what it was.
func (r *Keyring) DeleteTeam(ctx context.Context, ref string) (*Team, error) {
	t, err := r.FindTeam(ref)
	if err != nil {
		return nil, err
	}
	err = r.store.DeleteTeam(ctx, t.ID)
	if err := r.Reload(ctx); err != nil {
		return nil, err
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, NoTeam(ref)
	case errors.Is(err, store.ErrInUse):
		return nil, r.inUse(ctx, t)
	}
	return t, err
}

// maxNamed bounds how many members of a team an error names.
const maxNamed = 10

// inUse is the refusal to delete a team that has members.
func (r *Keyring) inUse(ctx context.Context, t *Team) error {
	keys, teams := r.Members(t.ID)
	var names []string
	for _, k := range keys {
		names = append(names, fmt.Sprintf("key %s (%s)", k.Name, k.ID))
	}
	for _, sub := range teams {
		names = append(names, "team "+sub.Name)
	}
	users, err := r.store.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.TeamID == t.ID {
			names = append(names, "user "+u.Name)
		}
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return llm.Errorf(llm.Conflict, "The team %s has members: %s. Give them another team first, with 'limen keys set KEY --team …' or 'limen teams set TEAM --parent …'; 'none' is no team.",
		t.Name, strings.Join(names, ", "))
}

func (r *Keyring) rereadTeam(ctx context.Context, id string) (*Team, error) {
	if err := r.Reload(ctx); err != nil {
		return nil, err
	}
	if t := r.Team(id); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("keys: team %s is gone", id)
}

// Team returns a team of the snapshot by its ID, or nil.
func (r *Keyring) Team(id string) *Team { return r.snapshot.Load().teams[id] }

// FindTeam returns the team with an ID or a name.
func (r *Keyring) FindTeam(ref string) (*Team, error) {
	if t := r.Team(ref); t != nil {
		return t, nil
	}
	for _, t := range r.snapshot.Load().teams {
		if t.Name == ref {
			return t, nil
		}
	}
	return nil, NoTeam(ref)
}

// NoTeam tells that there is no such team.
func NoTeam(ref string) error {
	return llm.Errorf(llm.NotFound, "There is no team with the ID or name %q. 'limen teams list' shows them.", ref)
}

// unknownTeam is NoTeam where a request names the team in a member.
func unknownTeam(param, ref string) error {
	return llm.InvalidParam("invalid_value", param, "There is no team with the ID or name %q. 'limen teams list' shows them, 'limen teams create NAME' makes one.", ref)
}

// Teams returns all teams by their names.
func (r *Keyring) Teams() []*Team {
	s := r.snapshot.Load()
	return slices.SortedFunc(maps.Values(s.teams), func(a, b *Team) int { return strings.Compare(a.Name, b.Name) })
}

// Within returns the IDs of a team and of all that belong to it, also by others;
// none where there is no such team.
func (r *Keyring) Within(id string) (ids []string) {
	for _, t := range r.Teams() {
		if slices.ContainsFunc(t.path(), func(above *Team) bool { return above.ID == id }) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Members returns the keys and the teams that belong to a team themselves, not
// by another.
func (r *Keyring) Members(id string) (keys []*Key, teams []*Team) {
	for _, k := range r.All() {
		if k.TeamID == id {
			keys = append(keys, k)
		}
	}
	for _, t := range r.Teams() {
		if t.Parent != nil && t.Parent.ID == id {
			teams = append(teams, t)
		}
	}
	return keys, teams
}
