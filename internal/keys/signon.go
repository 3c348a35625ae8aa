package keys

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/store"
)

// Grant is what somebody may do.
type Grant struct {
	Role   Role
	TeamID string // of a member
}

// SignOn is somebody whom a provider has told of.
type SignOn struct {
	Issuer  string
	Subject string
	Name    string // of a user that is made of it
	Email   string // verified; "" is none
	Grant   *Grant // what the provider's groups give; nil is nothing
	From    string // address
	Agent   string // browser
}

// The reasons why a provider's users are not let in.
var (
	// ErrNoRole is nothing that somebody may do.
	ErrNoRole = errors.New("keys: neither a group nor an owner lets this person in")
	// ErrNameTaken is a name that is another user's, or nobody's.
	ErrNameTaken = errors.New("keys: no user can be made with this name")
)

// SignOn begins a session for somebody whom a provider has told of, and returns
// what its cookie holds. What the provider's groups give counts anew each time.
// Where they give nothing, what an owner has said of the user does; else the
// user's sessions end.
func (o *Operators) SignOn(ctx context.Context, in *SignOn) (string, *Operator, error) {
	u, err := o.userOf(ctx, in)
	if err != nil {
		return "", nil, err
	}
	if u == nil {
		if u, err = o.admit(ctx, in); err != nil {
			return "", nil, err
		}
	}
	switch {
	case in.Grant == nil && u.Mapped:
		if err := o.store.DeleteSessionsOf(ctx, u.ID); err != nil {
			return "", nil, awayError(err)
		}
		return "", nil, ErrNoRole
	case in.Grant != nil && (!u.Mapped || u.Role != string(in.Grant.Role) || u.TeamID != in.Grant.TeamID):
		u.Role, u.TeamID, u.Mapped = string(in.Grant.Role), in.Grant.TeamID, true
		if err := checkUser(u, ""); err != nil {
			return "", nil, err
		}
		if err := o.store.UpdateUser(ctx, u); err != nil {
			return "", nil, awayError(err)
		}
	}
	return o.begin(ctx, userOperator(u, in.From), in.Agent)
}

// userOf is the user that somebody is, nil where there is none. An owner may
// have made it under the e-mail address: then it is bound to the person now,
// and the address does not matter any more.
func (o *Operators) userOf(ctx context.Context, in *SignOn) (*store.User, error) {
	u, err := o.store.UserOf(ctx, in.Issuer, in.Subject)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return u, away(err)
	}
	if in.Email == "" {
		return nil, nil
	}
	all, err := o.store.Users(ctx)
	if err != nil {
		return nil, awayError(err)
	}
	for i := range all {
		u := &all[i]
		if u.Via != store.ViaOIDC || u.Subject != "" || !strings.EqualFold(u.Name, in.Email) {
			continue
		}
		err := o.store.BindUser(ctx, u.ID, in.Issuer, in.Subject)
		if errors.Is(err, store.ErrConflict) {
			return nil, ErrNameTaken // another login was quicker
		}
		return u, away(err)
	}
	return nil, nil
}

// admit makes a user of somebody who is new.
func (o *Operators) admit(ctx context.Context, in *SignOn) (*store.User, error) {
	if in.Grant == nil {
		return nil, ErrNoRole
	}
	u := &store.User{
		ID: userPrefix + randomBase62(idLen), Name: strings.TrimSpace(in.Name), Role: string(in.Grant.Role), TeamID: in.Grant.TeamID, Created: time.Now().UnixMilli(),
		Via: store.ViaOIDC, Issuer: in.Issuer, Subject: in.Subject, Mapped: true,
	}
	if err := checkUser(u, ""); err != nil {
		return nil, errors.Join(ErrNameTaken, err)
	}
	err := o.store.CreateUser(ctx, u)
	if errors.Is(err, store.ErrConflict) {
		return nil, ErrNameTaken
	}
	return u, away(err)
}

// away is awayError for what may be no error.
func away(err error) error {
	if err == nil {
		return nil
	}
	return awayError(err)
}
