package admin

import (
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/store"
)

// User is a user as operators see it. The password is in it once, when the user
// is made.
type User struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Role     keys.Role `json:"role"`
	Team     string    `json:"team,omitempty"` // name
	Password string    `json:"password,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Via      string    `json:"via"` // password or oidc: how the user logs in
	// LastLogin is told where users are listed.
	LastLogin time.Time `json:"last_login,omitzero"`
}

// UserList is the answer of GET /api/v1/users.
type UserList struct {
	Users []User `json:"users"`
}

func (a *API) newUser(u *store.User) *User {
	return &User{ID: u.ID, Name: u.Name, Role: keys.Role(u.Role), Team: a.teamName(u.TeamID), Created: fromMs(u.Created), Via: u.Via}
}

func (a *API) listUsers(r *request) (*UserList, error) {
	rows, err := a.Operators.Users(r.Context())
	if err != nil {
		return nil, err
	}
	logins, err := a.Operators.LastLogins(r.Context())
	if err != nil {
		return nil, err
	}
	out := &UserList{[]User{{ID: keys.AdminUser, Name: keys.AdminUser, Role: keys.Owner, Via: store.ViaPassword}}}
	for i := range rows {
		out.Users = append(out.Users, *a.newUser(&rows[i]))
	}
	for i := range out.Users {
		out.Users[i].LastLogin = fromMs(logins[out.Users[i].ID])
	}
	return out, nil
}

// toTeamID makes the name of a team its ID.
func (a *API) toTeamID(ref *string) error {
	if ref == nil || *ref == "" {
		return nil
	}
	t, err := a.Keys.FindTeam(*ref)
	if err == nil {
		*ref = t.ID
	}
	return err
}

func (a *API) createUser(r *request, in *keys.NewUser) (*User, error) {
	if err := a.toTeamID(&in.Team); err != nil {
		return nil, err
	}
	password, u, err := a.Operators.CreateUser(r.Context(), *in)
	if err != nil {
		return nil, err
	}
	r.on(u.ID, u.Name)
	out := a.newUser(u)
	out.Password = password
	return out, nil
}

func (a *API) changeUser(r *request, in *keys.UserChange) (*User, error) {
	if err := a.toTeamID(in.Team); err != nil {
		return nil, err
	}
	u, err := a.Operators.ChangeUser(r.Context(), r.PathValue("user"), *in)
	if err != nil {
		return nil, err
	}
	r.on(u.ID, u.Name)
	return a.newUser(u), nil
}

func (a *API) deleteUser(r *request) (*User, error) {
	u, err := a.Operators.DeleteUser(r.Context(), r.PathValue("user"))
	if err != nil {
		return nil, err
	}
	r.on(u.ID, u.Name)
	return a.newUser(u), nil
}

// ownTeams are the IDs of the teams whose keys and usage a request may see: that
// of a member, and those below it. only is false where it may see all.
func (a *API) ownTeams(r *request) (ids []string, only bool) {
	if r.who.Role != keys.Member {
		return nil, false
	}
	return a.Keys.Within(r.who.TeamID), true
}

// findKey returns a key that a request may see, by ID or name.
func (a *API) findKey(r *request, ref string) (*keys.Key, error) {
	if teams, only := a.ownTeams(r); only {
		return a.Keys.FindOf(teams, ref)
	}
	return a.Keys.Find(ref)
}

// findTeam returns a team that a request may see, by ID or name.
func (a *API) findTeam(r *request, ref string) (*keys.Team, error) {
	t, err := a.Keys.FindTeam(ref)
	if teams, only := a.ownTeams(r); err == nil && only && !slices.Contains(teams, t.ID) {
		return nil, keys.NoTeam(ref)
	}
	return t, err
}
