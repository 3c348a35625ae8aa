package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/keys"
)

// A member sees what is the team's, and nothing that tells of others.
func TestMemberSeesOwnTeam(t *testing.T) {
	s := newServer(t, sample()...)
	ctx := t.Context()
	own, err := s.api.Keys.CreateTeam(ctx, keys.NewTeam{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.api.Keys.Create(ctx, keys.New{Name: "mine", Team: "own"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.api.Operators.CreateUser(ctx, keys.NewUser{Name: "mo", Role: keys.Member, Team: own.ID, Password: "hold the door"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.api.Operators.CreateUser(ctx, keys.NewUser{Name: "re", Role: keys.Member, Team: "t1", Password: "hold the door"}); err != nil {
		t.Fatal(err)
	}
	asked := func(cookie *http.Cookie, path string) string {
		r := httptest.NewRequest("GET", root+path, nil)
		r.AddCookie(cookie)
		w := serve(s, r)
		return strings.TrimSpace(http.StatusText(w.Code) + " " + w.Body.String())
	}
	mo, re := loggedIn(t, s, `{"user":"mo","password":"hold the door"}`), loggedIn(t, s, `{"user":"re","password":"hold the door"}`)
	call := "req_" + sample()[0].ID
	for _, c := range []struct {
		path       string
		mo, re     string // part of the answer
		onlyOthers string // what mo's has not
	}{
		{"/session", `{"name":"mo","role":"member"}`, `"re"`, "admin"},
		{"/sessions", `"current":true`, `"current":true`, `"current":false`},
		{"/keys", `"mine"`, `"=alice"`, "alice"},
		{"/keys/k1", "Not Found There is no key", `"=alice"`, "alice"},
		{"/keys/=alice", "Not Found There is no key", `"=alice"`, "k1"},
		{"/usage", `"calls":0`, `"calls":2`, "alice"},
		{"/usage?by=key,team", `"groups":[]`, `"=alice"`, "alice"},
		{"/usage?team=t1", "Not Found There is no team", `"calls":2`, "calls"},
		{"/usage?key=k1", "Not Found", `"calls":2`, "calls"},
		{"/calls", `"calls":[]`, call, "alice"},
		{"/calls/" + call, "Not Found There is no call", `"=alice"`, "alice"},
		{"/usage/export", "OK", call, "alice"},
		{"/usage/export?team=research", "Not Found There is no team", call, call},
		{"/teams", `"name":"own"`, `"name":"research"`, "research"},
		{"/teams/own", `"name":"mine"`, "Not Found There is no team", "research"},
		{"/teams/t1", "Not Found There is no team", `"name":"research"`, "budgets"},
	} {
		answer := asked(mo, c.path)
		if !strings.Contains(answer, c.mo) || c.path[1:2] != "k" && strings.Contains(answer, c.onlyOthers) {
			t.Errorf("%s for mo: %s", c.path, answer)
		}
		if answer := asked(re, c.path); !strings.Contains(answer, c.re) || strings.Contains(answer, "k9") {
			t.Errorf("%s for re: %s", c.path, answer)
		}
	}
	if answer := asked(mo, "/keys"); strings.Contains(answer, "alice") {
		t.Errorf("mo sees %s", answer)
	}

	// What belongs to the team by another is the member's, too.
	above := "own"
	for _, parent := range []string{above, ""} {
		if _, err := s.api.Keys.ChangeTeam(ctx, "t1", func(n *keys.NewTeam) error { n.Parent = parent; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/keys", "/keys/k1", "/usage", "/usage?team=t1", "/usage?by=key", "/calls", "/calls/" + call, "/usage/export", "/teams", "/teams/t1"} {
			answer := asked(mo, path)
			sees := strings.Contains(answer, "alice") || strings.Contains(answer, `"calls":2`) || strings.Contains(answer, "research")
			if sees != (parent == above) {
				t.Errorf("%s for mo with research below %q: %s", path, parent, answer)
			}
		}
		if answer := asked(re, "/teams/own"); !strings.HasPrefix(answer, "Not Found") {
			t.Errorf("re sees the team above: %s", answer)
		}
	}

	// What a user may do counts at once.
	viewer := keys.Viewer
	if _, err := s.api.Operators.ChangeUser(ctx, "mo", keys.UserChange{Role: &viewer}); err != nil {
		t.Fatal(err)
	}
	if answer := asked(mo, "/keys/k1"); !strings.Contains(answer, `"=alice"`) {
		t.Errorf("as a viewer: %s", answer)
	}
	if _, err := s.api.Operators.DeleteUser(ctx, "mo"); err != nil {
		t.Fatal(err)
	}
	if answer := asked(mo, "/keys"); !strings.HasPrefix(answer, "Unauthorized") {
		t.Errorf("as nobody any more: %s", answer)
	}
}

func TestUsers(t *testing.T) {
	s := newServer(t)
	h := s.Local(keys.ViaSocket)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/users", `{"name":"ann","role":"viewer"}`, `"name":"ann","role":"viewer","password":"`},
		{"POST", "/users", `{"name":"ann","role":"viewer"}`, `There is a user named \"ann\" already`},
		{"POST", "/users", `{"name":"admin","role":"viewer"}`, "take another name"},
		{"POST", "/users", `{"name":"user_0","role":"viewer"}`, "as IDs do"},
		{"POST", "/users", `{"name":"x","role":"root"}`, "A role is owner, admin, viewer or member"},
		{"POST", "/users", `{"name":"x","role":"member"}`, "A member needs a team"},
		{"POST", "/users", `{"name":"x","role":"member","team":"nowhere"}`, "There is no team"},
		{"POST", "/users", `{"name":"x","role":"owner","team":"research"}`, "Only members have a team"},
		{"POST", "/users", `{"name":"x","role":"owner","password":"short"}`, "at least 8 characters"},
		{"POST", "/users", `{"name":"bob","role":"member","team":"research","password":"long enough"}`, `"team":"research"`},
		{"POST", "/users", `{"name":"x","role":"viewer","via":"magic"}`, "by password or by oidc, not by"},
		{"POST", "/users", `{"name":"x","role":"viewer","via":"oidc","password":"long enough"}`, "no password here"},
		{"POST", "/users", `{"name":"eve@example.com","role":"viewer","via":"oidc"}`, `"name":"eve@example.com","role":"viewer","created"`},
		{"PATCH", "/users/eve@example.com", `{"password":"long enough"}`, "no password here"},
		{"DELETE", "/users/eve@example.com", "", `"via":"oidc"`},
		{"PATCH", "/users/ann", `{"password":""}`, "at least 8 characters"},
		{"PATCH", "/users/ann", `{"role":"member","team":"t1"}`, `"role":"member","team":"research"`},
		{"PATCH", "/users/ann", `{"role":"admin"}`, `"role":"admin","created"`},
		{"PATCH", "/users/admin", `{"role":"viewer"}`, "There is no user"},
		{"PATCH", "/keys/k1", `{"team":null}`, `"k1"`},
		{"DELETE", "/teams/research", "", "The team research has members: user bob."},
		{"DELETE", "/users/bob", "", `"name":"bob"`},
		{"DELETE", "/users/bob", "", "There is no user"},
		{"GET", "/users", "", `{"users":[{"id":"admin","name":"admin","role":"owner","via":"password"},{"id":"user_`},
		{"GET", "/sessions", "", `{"sessions":[]}`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, root+c.path, strings.NewReader(c.body)))
		if !strings.Contains(w.Body.String(), c.want) || strings.Contains(w.Body.String(), "argon") {
			t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, w.Body, c.want)
		}
	}
}

// Who logged in is told by name, and when last.
func TestLastLogin(t *testing.T) {
	s := newServer(t)
	local := func(path string) string {
		w := httptest.NewRecorder()
		s.Local(keys.ViaSocket).ServeHTTP(w, httptest.NewRequest("GET", root+path, nil))
		return w.Body.String()
	}
	if _, _, err := s.api.Operators.CreateUser(t.Context(), keys.NewUser{Name: "ann", Role: keys.Viewer, Password: "hold the door"}); err != nil {
		t.Fatal(err)
	}
	if users := local("/users"); strings.Contains(users, "last_login") {
		t.Errorf("nobody has logged in: %s", users)
	}
	loggedIn(t, s, `{"user":"ann","password":"hold the door"}`)
	if users := local("/users"); strings.Count(users, "last_login") != 1 {
		t.Errorf("ann has logged in: %s", users)
	}
	loggedIn(t, s, `{"password":"correct horse"}`)
	if users := local("/users"); strings.Count(users, "last_login") != 2 {
		t.Errorf("both have: %s", users)
	}
	if sessions := local("/sessions"); !strings.Contains(sessions, `"user":"ann"`) || !strings.Contains(sessions, `"user":"admin"`) {
		t.Errorf("sessions: %s", sessions)
	}
}
