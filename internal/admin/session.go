package admin

import (
	"net/http"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// sessionCookie is the name of the cookie that holds a session. Browsers take
// one of that name from this host only, over TLS or on their own machine.
const sessionCookie = "__Host-limen"

func cookieOf(value string) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// Who is who somebody is.
type Who struct {
	User Person `json:"user"`
}

// Person is a user as everybody may know it.
type Person struct {
	Name string    `json:"name"`
	Role keys.Role `json:"role,omitempty"` // none for a token
}

func newWho(o *keys.Operator) *Who { return &Who{Person{o.Name, o.Role}} }

func (a *API) login(r *request, in *keys.Login) (*Who, error) {
	in.From, in.Agent = keys.AddressOf(r.RemoteAddr), r.UserAgent()
	r.login = in
	text, who, err := a.Operators.Login(r.Context(), in)
	if err != nil {
		return nil, err
	}
	r.who = who
	r.header.Add("Set-Cookie", cookieOf(text).String())
	return newWho(who), nil
}

func (a *API) changeOwnPassword(r *request, in *keys.NewOwnPassword) (*Done, error) {
	in.Agent = r.UserAgent()
	text, err := a.Operators.ChangeOwnPassword(r.Context(), r.who, in)
	if err != nil {
		return nil, err
	}
	if text != "" {
		r.header.Add("Set-Cookie", cookieOf(text).String())
	}
	return &Done{"changed"}, nil
}

func (a *API) whoAmI(r *request) (*Who, error) { return newWho(r.who), nil }

func (a *API) logout(r *request) (*Done, error) {
	if r.who.Session == "" {
		return nil, llm.Errorf(llm.NotFound, "This is no session.")
	}
	if err := a.Operators.Logout(r.Context(), r.who.Session); err != nil {
		return nil, err
	}
	gone := cookieOf("")
	gone.MaxAge = -1
	r.header.Add("Set-Cookie", gone.String())
	return &Done{"logged out"}, nil
}

// Done is the answer of what has nothing else to say.
type Done struct {
	Status string `json:"status"`
}

// userNames are the names of users, by their IDs.
func (a *API) userNames(r *request) (map[string]string, error) {
	users, err := a.Operators.Users(r.Context())
	if err != nil {
		return nil, err
	}
	names := map[string]string{keys.AdminUser: keys.AdminUser}
	for i := range users {
		names[users[i].ID] = users[i].Name
	}
	return names, nil
}

// Session is a session as its user may know it.
type Session struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`           // name
	From    string    `json:"from,omitempty"` // where they logged in
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"`
	Ends    time.Time `json:"ends"`    // unless it is used
	Current bool      `json:"current"` // it is the one that asks
}

// SessionList is the answer of GET /api/v1/sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

func (a *API) listSessions(r *request) (*SessionList, error) {
	rows, err := a.Operators.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	names, err := a.userNames(r)
	if err != nil {
		return nil, err
	}
	list := []Session{}
	for _, row := range rows {
		if !mayEnd(r.who, &row) {
			continue
		}
		ends := min(row.Seen+keys.SessionIdle.Milliseconds(), row.Created+keys.SessionMax.Milliseconds())
		list = append(list, Session{
			ID: row.ID, User: names[row.UserID], From: row.Address, Agent: row.Agent, Created: fromMs(row.Created), Seen: fromMs(row.Seen), Ends: fromMs(ends),
			Current: row.ID == r.who.Session,
		})
	}
	return &SessionList{list}, nil
}

func (a *API) endSession(r *request) (*Done, error) {
	id := r.PathValue("session")
	rows, err := a.Operators.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(s store.Session) bool { return s.ID == id && mayEnd(r.who, &s) }) {
		return nil, llm.Errorf(llm.NotFound, "There is no session %q.", id)
	}
	return &Done{"ended"}, a.Operators.Logout(r.Context(), id)
}

// mayEnd reports whether somebody may see and end a session: an owner any,
// others their own.
func mayEnd(who *keys.Operator, s *store.Session) bool {
	return who.Role == keys.Owner || s.UserID == who.UserID
}
