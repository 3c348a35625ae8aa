package keys

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Role is what a person may do.
type Role string

// The roles.
const (
	Owner   Role = "owner"  // everything
	Manager Role = "admin"  // everything but who may use the admin API
	Viewer  Role = "viewer" // see everything
	Member  Role = "member" // see the keys and the usage of the own team, and of those below it
)

// Roles are all roles, the one that may do most first.
var Roles = []Role{Owner, Manager, Viewer, Member}

// NewUser describes a user. Without a password, one is made, unless the user
// logs in by single sign-on.
type NewUser struct {
	Name     string `json:"name"`
	Role     Role   `json:"role"`
	Team     string `json:"team,omitempty"` // ID, of a member
	Password string `json:"password,omitempty"`
	Via      string `json:"via,omitempty"` // "password", also when empty, or "oidc": who has verified that the name is their e-mail address
}

// UserChange is what changes of a user; what is nil stays.
type UserChange struct {
	Role     *Role   `json:"role"`
	Team     *string `json:"team"`
	Password *string `json:"password"`
}

// userPrefix is what IDs of users begin with.
const userPrefix = "user_"

func checkUser(u *store.User, password string) error {
	switch {
	case u.Name == "":
		return llm.InvalidParam("missing_required_parameter", "name", "A user needs a name.")
	case len(u.Name) > maxName || hasControls(u.Name):
		return llm.InvalidParam("invalid_value", "name", "A name has at most %d bytes and no control characters.", maxName)
	case strings.HasPrefix(u.Name, userPrefix):
		return llm.InvalidParam("invalid_value", "name", "A name does not begin with %s, as IDs do.", userPrefix)
	case u.Name == AdminUser:
		return llm.InvalidParam("invalid_value", "name", "%s is the owner whose password is the admin password; take another name.", AdminUser)
	case !slices.Contains(Roles, Role(u.Role)):
		return llm.InvalidParam("invalid_value", "role", "A role is owner, admin, viewer or member, not %q.", u.Role)
	case Role(u.Role) == Member && u.TeamID == "":
		return llm.InvalidParam("missing_required_parameter", "team", "A member needs a team, whose keys and usage it sees.")
	case Role(u.Role) != Member && u.TeamID != "":
		return llm.InvalidParam("invalid_value", "team", "Only members have a team; who is %s sees all.", u.Role)
	case u.Via != store.ViaPassword && u.Via != store.ViaOIDC:
		return llm.InvalidParam("invalid_value", "via", "A user logs in by password or by oidc, not by %q.", u.Via)
	case u.Via == store.ViaOIDC && password != "":
		return llm.InvalidParam("invalid_value", "password", "Who logs in by single sign-on has no password here.")
	case password != "" && len(password) < minPassword:
		return llm.InvalidParam("invalid_value", "password", "A password has at least %d characters.", minPassword)
	}
	return nil
}

// CreateUser makes a user and returns the password, "" for one who logs in by
// single sign-on.
func (o *Operators) CreateUser(ctx context.Context, n NewUser) (string, *store.User, error) {
	u := &store.User{ID: userPrefix + randomBase62(idLen), Name: strings.TrimSpace(n.Name), Role: string(n.Role), TeamID: n.Team, Created: time.Now().UnixMilli(), Via: cmp.Or(n.Via, store.ViaPassword)}
	if err := checkUser(u, n.Password); err != nil {
		return "", nil, err
	}
	if u.Via == store.ViaPassword {
		n.Password = cmp.Or(n.Password, NewPassword())
		u.Hash = hashPassword(n.Password)
	}
	err := o.store.CreateUser(ctx, u)
	if errors.Is(err, store.ErrConflict) {
		return "", nil, llm.Errorf(llm.Conflict, "There is a user named %q already; take another name.", u.Name)
	}
	return n.Password, u, err
}

// ChangeUser changes a user, by ID or name. It counts from the next request on;
// another password ends the sessions.
func (o *Operators) ChangeUser(ctx context.Context, ref string, c UserChange) (*store.User, error) {
	u, err := o.User(ctx, ref)
	if err != nil {
		return nil, err
	}
	password := ""
	if c.Role != nil {
		u.Role = string(*c.Role)
	}
	if c.Team != nil {
		u.TeamID = *c.Team
	}
	if c.Password != nil {
		password = *c.Password
	}
	if c.Role != nil && c.Team == nil && *c.Role != Member {
		u.TeamID = ""
	}
	if err := checkUser(u, password); err != nil {
		return nil, err
	}
	if c.Password != nil && password == "" {
		return nil, llm.InvalidParam("invalid_value", "password", "A password has at least %d characters.", minPassword)
	}
	if password != "" {
		u.Hash = hashPassword(password)
	}
	if c.Role != nil || c.Team != nil {
		u.Mapped = false // it was given by hand
	}
	return u, gone(ref, o.store.UpdateUser(ctx, u))
}

// DeleteUser removes a user, by ID or name, and returns what it was.
func (o *Operators) DeleteUser(ctx context.Context, ref string) (*store.User, error) {
	u, err := o.User(ctx, ref)
	if err != nil {
		return nil, err
	}
	return u, gone(ref, o.store.DeleteUser(ctx, u.ID))
}

// User returns the user with an ID or a name.
func (o *Operators) User(ctx context.Context, ref string) (*store.User, error) {
	u, err := o.store.User(ctx, ref)
	return u, gone(ref, err)
}

// Users returns all users by their names, but for the owner named admin.
func (o *Operators) Users(ctx context.Context) ([]store.User, error) { return o.store.Users(ctx) }

// gone tells that there is no such user.
func gone(ref string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return llm.Errorf(llm.NotFound, "There is no user with the ID or name %q. 'limen admin users list' shows them.", ref)
	}
	return err
}
