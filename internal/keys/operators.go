package keys

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Operator is who uses the admin API.
type Operator struct {
	Name    string // of the user, or of what stands for one
	Via     Via
	UserID  string // empty where no user is it
	Session string // ID; empty without one
	From    string // address; empty for this machine
	Role    Role   // empty for a token
	TeamID  string // of a member
	Scopes  Scopes // of a token
}

// Via is how it is known who an operator is.
type Via string

// The ways.
const (
	ViaPassword  Via = "password"  // the admin password, with each request
	ViaSession   Via = "session"   // a cookie
	ViaToken     Via = "token"     // one for programs
	ViaSocket    Via = "socket"    // who can open the data directory of a gateway
	ViaDirectory Via = "directory" // the same, where no gateway runs
	ViaOIDC      Via = "oidc"      // what a provider of OpenID Connect said, of who was not let in
)

// AdminUser is the owner whose password is the admin password. No other user
// has its name.
const AdminUser = "admin"

// Sessions last as long as they are used, and for a working day at most.
const (
	SessionIdle = 30 * time.Minute
	SessionMax  = 12 * time.Hour
	// seenEvery is how often the use of a session is written down; it ends so
	// much earlier at most.
	seenEvery = 10 * time.Second
)

// maxAgent bounds what is kept of a browser's name.
const maxAgent = 200

// Operators knows who may use the admin API.
type Operators struct {
	store *store.Store
	admin *Admin

	passwords atomic.Bool // users may log in by them; the owner named admin always may
	link      link
}

// NewOperators returns those of a store; admin checks the owner's password.
func NewOperators(st *store.Store, admin *Admin) *Operators {
	o := &Operators{store: st, admin: admin}
	o.passwords.Store(true)
	return o
}

// Login is what somebody says to begin a session. No user is the owner.
type Login struct {
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Link     string `json:"link,omitempty"` // in place of both, once
	From     string `json:"-"`              // address
	Agent    string `json:"-"`              // browser
	// Account is whose password it had to be: Login sets it, unless nobody has the
	// name.
	Account string `json:"-"`
}

// Login begins a session and returns what its cookie holds.
func (o *Operators) Login(ctx context.Context, in *Login) (string, *Operator, error) {
	who, err := o.check(ctx, in)
	if err != nil {
		return "", nil, err
	}
	return o.begin(ctx, who, in.Agent)
}

// begin begins a session of somebody who is known, and returns what its cookie
// holds.
func (o *Operators) begin(ctx context.Context, who *Operator, agent string) (string, *Operator, error) {
	text, token := newToken("", "")
	now := time.Now()
	err := o.store.AddSession(ctx, store.Session{
		ID: token.ID, Hash: hex.EncodeToString(token.Hash[:]), UserID: who.UserID, Address: who.From, Agent: printable(agent[:min(len(agent), maxAgent)]),
		Created: now.UnixMilli(), Seen: now.UnixMilli(),
	}, now.Add(-SessionMax).UnixMilli(), now.Add(-SessionIdle).UnixMilli())
	if err != nil {
		return "", nil, awayError(err)
	}
	who.Session = token.ID
	return text, who, nil
}

// NewOwnPassword is what somebody says to change the own password.
type NewOwnPassword struct {
	Old   string `json:"old"`
	New   string `json:"new"`
	Agent string `json:"-"` // browser
}

// ChangeOwnPassword sets the password of somebody who says the one before, and
// ends the sessions. One that asked goes on as a new one: what its cookie holds
// is returned, else "".
func (o *Operators) ChangeOwnPassword(ctx context.Context, who *Operator, in *NewOwnPassword) (string, error) {
	if err := o.setOwnPassword(ctx, who, in); err != nil || who.Session == "" {
		return "", err
	}
	text, _, err := o.begin(ctx, who, in.Agent)
	return text, err
}

func (o *Operators) setOwnPassword(ctx context.Context, who *Operator, in *NewOwnPassword) error {
	if who.UserID == "" {
		return llm.Errorf(llm.Forbidden, "Nobody is logged in here, whose password could change; an owner's way is POST /admin/password, or PATCH /users/{user}.")
	}
	if len(in.New) < minPassword {
		return llm.InvalidParam("invalid_value", "new", "A password has at least %d characters.", minPassword)
	}
	if who.UserID != AdminUser {
		u, err := o.User(ctx, who.UserID)
		if err != nil {
			return err
		}
		if u.Hash == "" {
			return llm.Errorf(llm.Forbidden, "You have no password here: you log in elsewhere.")
		}
	}
	_, err := o.check(ctx, &Login{User: who.Name, Password: in.Old, From: who.From})
	if e := llm.AsError(err); err != nil && e.Kind == llm.Unauthenticated {
		return llm.InvalidParam("invalid_value", "old", "The old password is another.")
	}
	if err != nil {
		return err
	}
	if who.UserID == AdminUser {
		return o.SetAdminPassword(ctx, in.New)
	}
	_, err = o.ChangeUser(ctx, who.UserID, UserChange{Password: &in.New})
	return err
}

// SetPasswords says whether users log in by passwords. The owner named admin
// does in any case.
func (o *Operators) SetPasswords(allowed bool) { o.passwords.Store(allowed) }

// Passwords reports whether they do.
func (o *Operators) Passwords() bool { return o.passwords.Load() }

// check checks a name and its password.
func (o *Operators) check(ctx context.Context, in *Login) (*Operator, error) {
	if in.Link != "" {
		in.Account = AdminUser
		return adminOperator(ViaSession, in.From), o.link.use(in.Link, time.Now())
	}
	if in.User == "" || in.User == AdminUser {
		in.Account = AdminUser
		return adminOperator(ViaSession, in.From), o.admin.check(ctx, "login", in.Password, in.From)
	}
	if !o.passwords.Load() {
		return nil, wrongPassword("Only admin logs in with a password here; all others do by single sign-on.")
	}
	return o.checkUser(ctx, in)
}

func adminOperator(via Via, from string) *Operator {
	return &Operator{Name: AdminUser, Role: Owner, Via: via, UserID: AdminUser, From: from}
}

// unknownHash is evaluated for names that nobody has, so that they take as long
// as others. No password is right.
var unknownHash = argonPrefix + "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// checkUser has unknown names wait as known ones do.
func (o *Operators) checkUser(ctx context.Context, in *Login) (*Operator, error) {
	u, err := o.store.User(ctx, in.User)
	known := err == nil && u.Name == in.User
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, awayError(err)
	}
	hash := unknownHash
	if known {
		in.Account = u.Name
	}
	if known && u.Hash != "" {
		hash = u.Hash
	}
	right, err := o.admin.guard.evaluate("login "+in.User, in.From, func() (bool, error) { return verify(hash, in.Password) })
	if err != nil {
		return nil, err
	}
	if !right {
		return nil, wrongPassword("Incorrect user or password.")
	}
	return userOperator(u, in.From), nil
}

func userOperator(u *store.User, from string) *Operator {
	return &Operator{Name: u.Name, Role: Role(u.Role), TeamID: u.TeamID, Via: ViaSession, UserID: u.ID, From: from}
}

// Session returns who has a session, by what its cookie holds.
func (o *Operators) Session(ctx context.Context, text, from string) (*Operator, error) {
	token, ok := parseToken(text, "")
	if !ok {
		return nil, errNoSession
	}
	row, err := o.store.Session(ctx, token.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoSession
	}
	if err != nil {
		return nil, awayError(err)
	}
	now := time.Now()
	if !sameHash(row.Hash, token) || sessionEnded(&row, now) {
		return nil, errNoSession
	}
	if now.UnixMilli()-row.Seen >= seenEvery.Milliseconds() {
		if err := o.store.SeeSession(ctx, row.ID, now.UnixMilli()); err != nil {
			return nil, awayError(err)
		}
	}
	who, err := o.sessionUser(ctx, row.UserID, from)
	if err != nil {
		return nil, err
	}
	who.Session = row.ID
	return who, nil
}

// sessionUser returns who somebody with a session is now.
func (o *Operators) sessionUser(ctx context.Context, id, from string) (*Operator, error) {
	if id == AdminUser {
		return adminOperator(ViaSession, from), nil
	}
	u, err := o.store.User(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errNoSession
	case err != nil:
		return nil, awayError(err)
	}
	return userOperator(u, from), nil
}

func sessionEnded(s *store.Session, now time.Time) bool {
	return now.UnixMilli()-s.Seen >= SessionIdle.Milliseconds() || now.UnixMilli()-s.Created >= SessionMax.Milliseconds()
}

// sameHash reports whether a token is the one whose hash is stored, in hex.
func sameHash(stored string, token Token) bool {
	return subtle.ConstantTimeCompare([]byte(stored), []byte(hex.EncodeToString(token.Hash[:]))) == 1
}

var errNoSession = wrongPassword("You are not logged in, or no longer. Please log in.")

// awayError is the failure to find out who somebody is.
func awayError(err error) error {
	return &llm.Error{Kind: llm.Unavailable, Message: "The gateway cannot check who you are now: its store is away. Please try again in 1s.", RetryAfter: time.Second, Err: err}
}

// Sessions returns those that last.
func (o *Operators) Sessions(ctx context.Context) ([]store.Session, error) {
	all, err := o.store.Sessions(ctx)
	if err != nil {
		return nil, awayError(err)
	}
	now := time.Now()
	var list []store.Session
	for i := range all {
		if !sessionEnded(&all[i], now) {
			list = append(list, all[i])
		}
	}
	return list, nil
}

// LastLogins are when users logged in last, in Unix ms, by their IDs.
func (o *Operators) LastLogins(ctx context.Context) (map[string]int64, error) {
	return o.store.LastLogins(ctx)
}

// Logout ends a session, here and at all gateways that share the store.
func (o *Operators) Logout(ctx context.Context, id string) error {
	err := o.store.DeleteSession(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return llm.Errorf(llm.NotFound, "There is no session %q.", id)
	}
	return err
}

// Bearer returns who sends a password, or a token, with a request.
func (o *Operators) Bearer(ctx context.Context, text, from string) (*Operator, error) {
	if token, ok := parseToken(text, adminPrefix); ok {
		return o.token(ctx, token, from)
	}
	if strings.HasPrefix(text, adminPrefix) {
		return nil, errWrongToken
	}
	if err := o.admin.Check(ctx, text, from); err != nil {
		return nil, err
	}
	return adminOperator(ViaPassword, from), nil
}

// SetAdminPassword replaces the admin password and ends the sessions that began
// with the one before.
func (o *Operators) SetAdminPassword(ctx context.Context, password string) error {
	if err := o.admin.SetPassword(ctx, password); err != nil {
		return err
	}
	return o.store.DeleteSessionsOf(ctx, AdminUser)
}
