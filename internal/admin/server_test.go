package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
)

const password = "correct horse"

// serve answers a request as the gateway does, and returns its status.
func serve(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	credential := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if err := s.Serve(w, r, credential); err != nil {
		e := llm.AsError(err)
		w.WriteHeader(openai.Status(e))
		fmt.Fprint(w, e.Message)
	}
	return w
}

// requestOf is a request for an operation, about what nobody has.
func requestOf(op *operation) *http.Request {
	path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.path, "nobodys")
	r := httptest.NewRequest(op.method, "https://limen.example.com"+root+path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// loggedIn is the cookie of a new session.
func loggedIn(t *testing.T, s *Server, body string) *http.Cookie {
	t.Helper()
	r := httptest.NewRequest("POST", root+"/session", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := serve(s, r)
	if w.Code != http.StatusOK {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return w.Result().Cookies()[0]
}

// caller makes requests that of somebody.
type caller struct {
	name string
	as   func(*http.Request)
	want func(*operation) int // status; 0: whatever the operation says
}

func withCookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(c) }
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func all(edits ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		for _, edit := range edits {
			edit(r)
		}
	}
}

// refusedIf is the want of callers that are refused some operations with a
// status, and let into the others.
func refusedIf(status int, is func(*operation) bool) func(*operation) int {
	return func(op *operation) int {
		if is(op) {
			return status
		}
		return 0
	}
}

func forKnown(op *operation) bool { return !op.access.unknown }

// without tells which operations a token with a scope may not use.
func without(scope keys.Scopes) func(*operation) bool {
	return func(op *operation) bool { return forKnown(op) && op.access.scopes&scope == 0 }
}

func ofSession(op *operation) bool { return strings.HasPrefix(op.path, "/session") }

// ofOwner tells what changes who may use the API.
func ofOwner(op *operation) bool {
	top := strings.Split(op.path, "/")[1]
	return op.change && (top == "users" || top == "tokens" || top == "admin")
}

var ofMember = map[string]bool{
	"GET /openapi.json": true, "GET /keys": true, "GET /keys/{key}": true, "GET /teams": true, "GET /teams/{team}": true, "GET /usage": true, "GET /usage/latency": true, "GET /usage/table": true, "GET /usage/export": true, "GET /calls": true, "GET /calls/{call}": true, "GET /arrivals": true,
}

func writes(op *operation) bool  { return op.method != "GET" }
func nothing(op *operation) bool { return false }

// unknowns tells the login with a password.
func unknowns(op *operation) bool { return !forKnown(op) && writes(op) }

// Every operation is tried by everybody.
func TestWhoMayDoWhat(t *testing.T) { synctest.Test(t, whoMayDoWhat) }

func whoMayDoWhat(t *testing.T) {
	s := newServer(t)
	cookie := func(r *http.Request) { r.AddCookie(loggedIn(t, s, `{"password":"correct horse"}`)) }
	token := func(scopes ...string) func(*http.Request) {
		text, _, err := s.api.Operators.CreateToken(t.Context(), keys.NewAdminToken{Name: strings.Join(scopes, " "), Scopes: scopes}, &keys.Operator{})
		if err != nil {
			t.Fatal(err)
		}
		return withHeader("Authorization", "Bearer "+text)
	}
	user := func(role keys.Role, team string) func(*http.Request) {
		password, u, err := s.api.Operators.CreateUser(t.Context(), keys.NewUser{Name: string(role) + "1", Role: role, Team: team})
		if err != nil {
			t.Fatal(err)
		}
		return func(r *http.Request) { r.AddCookie(loggedIn(t, s, `{"user":"`+u.Name+`","password":"`+password+`"}`)) }
	}
	forged := &http.Cookie{Name: sessionCookie, Value: strings.Repeat("a", 62)}
	for _, c := range []caller{
		{"nobody", all(), refusedIf(401, forKnown)},
		{"a wrong password", withHeader("Authorization", "Bearer wrong horse"), refusedIf(401, forKnown)},
		{"a key of a client", withHeader("Authorization", "Bearer limen_0123456789ab_0123456789abcdefghijklmnopqrstuvwxyz0123456789abcde"), refusedIf(401, forKnown)},
		{"the right password", withHeader("Authorization", "Bearer "+password), refusedIf(403, nothing)},
		{"the right password, from elsewhere", all(withHeader("Authorization", "Bearer "+password), withHeader("Sec-Fetch-Site", "cross-site")), refusedIf(403, unknowns)},
		{"a session", cookie, refusedIf(403, nothing)},
		{"a session that never was", withCookie(forged), refusedIf(401, forKnown)},
		{"a token to read", token("read"), refusedIf(403, without(keys.ScopeRead))},
		{"a token for keys", token("keys"), refusedIf(403, without(keys.ScopeKeys))},
		{"a token for the configuration", token("config"), refusedIf(403, without(keys.ScopeConfig))},
		{"a token for usage", token("usage"), refusedIf(403, without(keys.ScopeUsage))},
		{"a token for all", token("read", "keys", "config", "usage"), refusedIf(403, func(op *operation) bool { return op.access.scopes == 0 && forKnown(op) })},
		{"a viewer", user("viewer", ""), refusedIf(403, func(op *operation) bool { return op.change && !ofSession(op) && forKnown(op) })},
		{"a member", user("member", "t1"), refusedIf(403, func(op *operation) bool { return forKnown(op) && !ofSession(op) && !ofMember[op.method+" "+op.path] })},
		{"an admin", user("admin", ""), refusedIf(403, ofOwner)},
		{"an owner", user("owner", ""), refusedIf(403, nothing)},
		{"a token that never was", withHeader("Authorization", "Bearer limen_admin_"+forged.Value), refusedIf(401, forKnown)},
		{"a page of ours", all(cookie, withHeader("Sec-Fetch-Site", "same-origin")), refusedIf(403, nothing)},
		{"a page of ours in an old browser", all(cookie, withHeader("Origin", "https://limen.example.com")), refusedIf(403, nothing)},
		{"a page of another site", all(cookie, withHeader("Sec-Fetch-Site", "cross-site")), refusedIf(403, writes)},
		{"a page of a neighbour", all(cookie, withHeader("Sec-Fetch-Site", "same-site"), withHeader("Origin", "https://other.example.com")), refusedIf(403, writes)},
		{"a page of another site in an old browser", all(cookie, withHeader("Origin", "https://evil.example.org")), refusedIf(403, writes)},
		{"a sandboxed page", all(cookie, withHeader("Origin", "null")), refusedIf(403, writes)},
		{"a form of text", all(cookie, withHeader("Content-Type", "text/plain")), refusedIf(403, writes)},
		{"a form", all(cookie, withHeader("Content-Type", "application/x-www-form-urlencoded")), refusedIf(403, writes)},
		{"a form of parts", all(cookie, withHeader("Content-Type", "multipart/form-data; boundary=x")), refusedIf(403, writes)},
		{"a body of no type", all(cookie, withHeader("Content-Type", "")), refusedIf(403, writes)},
	} {
		for i := range s.table {
			op := &s.table[i]
			if op.path == "/admin/password" && c.want(op) == 0 {
				continue // it would set another
			}
			r := requestOf(op)
			c.as(r)
			time.Sleep(time.Minute) // wrong passwords make everybody wait
			w := serve(s, r)
			want := c.want(op)
			if want == 0 && unknowns(op) {
				want = 401 // this login has no password
			}
			if let := w.Code != 401 && w.Code != 403; w.Code != want && (want != 0 || !let) {
				t.Errorf("%s: %s %s is %d %s, want %d", c.name, op.method, op.path, w.Code, w.Body, want)
			}
		}
	}
}

func TestUnknownOperation(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/api/v1/nothing", 404},
		{"GET", "/api/v2/keys", 404},
		{"PUT", "/api/v1/keys", 404},
		{"GET", "/api/v1/keys/", 404},
		{"GET", "/api/v1/keys//", 404},
		{"POST", "/api/v1/keys/a/b/revoke", 404},
		{"GET", "/api/v1/keys/%61lice%2fbob%zz", 404},
		{"HEAD", "/api/v1/keys", 200},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.URL.Path, r.URL.RawPath = c.path, c.path
		if got := serve(s, r).Code; got != 401 {
			t.Errorf("%s %s by nobody: %d, want 401", c.method, c.path, got)
		}
		r.Header.Set("Authorization", "Bearer "+password)
		if got := serve(s, r).Code; got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
}

func TestSession(t *testing.T) {
	s := newServer(t)
	cookie := loggedIn(t, s, `{"user":"admin","password":"correct horse"}`)
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Name != "__Host-limen" || cookie.Domain != "" {
		t.Errorf("the cookie is %s", cookie)
	}
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, root+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(cookie)
		w := serve(s, r)
		return w.Code, w.Body.String()
	}
	if code, body := ask("GET", "/session", ""); code != 200 || body != `{"user":{"name":"admin","role":"owner"}}`+"\n" {
		t.Errorf("who am I: %d %s", code, body)
	}
	if code, body := ask("GET", "/sessions", ""); code != 200 || strings.Count(body, `"current":true`) != 1 || strings.Contains(body, cookie.Value[13:]) {
		t.Errorf("sessions: %d %s", code, body)
	}
	if code, body := ask("POST", "/keys", `{"name":"made in a session"}`); code != 200 {
		t.Errorf("a change: %d %s", code, body)
	}
	other := loggedIn(t, s, `{"password":"correct horse"}`)
	if code, body := ask("DELETE", "/sessions/"+other.Value[:12], ""); code != 200 {
		t.Errorf("the end of another session: %d %s", code, body)
	}
	// A login never goes on with what a browser brought.
	for _, planted := range []string{cookie.Value, strings.Repeat("a", 62)} {
		r := httptest.NewRequest("POST", root+"/session", strings.NewReader(`{"password":"correct horse"}`))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: planted})
		if set := serve(s, r).Result().Cookies(); len(set) != 1 || set[0].Value == planted || len(set[0].Value) != len(cookie.Value) {
			t.Errorf("a login with %s gets %v", planted, set)
		}
	}
	if code, body := ask("DELETE", "/session", ""); code != 200 {
		t.Errorf("logout: %d %s", code, body)
	}
	for range 2 {
		if code, _ := ask("GET", "/session", ""); code != 401 {
			t.Errorf("after the logout: %d, want 401", code)
		}
		cookie = other
	}
	long := httptest.NewRequest("POST", root+"/session", strings.NewReader(`{"password":"`+strings.Repeat("x", maxLogin)+`"}`))
	long.Header.Set("Content-Type", "application/json")
	if code := serve(s, long).Code; code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long login: %d, want 413", code)
	}
}

// Whoever says the old password sets another, which ends all sessions but goes
// on with one anew.
func TestChangeOwnPassword(t *testing.T) {
	for _, user := range []string{"admin", "ann"} {
		t.Run(user, func(t *testing.T) {
			s := newServer(t)
			if _, _, err := s.api.Operators.CreateUser(t.Context(), keys.NewUser{Name: "ann", Role: keys.Viewer, Password: password}); err != nil {
				t.Fatal(err)
			}
			login := fmt.Sprintf(`{"user":%q,"password":%q}`, user, password)
			cookie, other := loggedIn(t, s, login), loggedIn(t, s, login)
			ask := func(cookie *http.Cookie, method, path, body string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(method, root+path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.AddCookie(cookie)
				return serve(s, r)
			}
			for _, c := range []struct{ body, want string }{
				{`{"old":"correct horse","new":"short"}`, "at least 8 characters"},
				{`{"old":"a wrong guess","new":"battery staple"}`, "The old password is another."},
				{`{"new":"battery staple"}`, "The old password is another."},
				{`{"old":"correct horse","new":"battery staple","role":"owner"}`, "unknown field"},
			} {
				if w := ask(cookie, "POST", "/session/password", c.body); w.Code != 400 || !strings.Contains(w.Body.String(), c.want) {
					t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
				}
			}
			w := ask(cookie, "POST", "/session/password", `{"old":"correct horse","new":"battery staple"}`)
			set := w.Result().Cookies()
			if w.Code != 200 || len(set) != 1 {
				t.Fatalf("got %d %s, %v", w.Code, w.Body, set)
			}
			for name, c := range map[string]struct {
				cookie *http.Cookie
				want   int
			}{"the one that asked": {cookie, 401}, "another": {other, 401}, "the new one": {set[0], 200}} {
				if w := ask(c.cookie, "GET", "/session", ""); w.Code != c.want {
					t.Errorf("%s: %d, want %d", name, w.Code, c.want)
				}
			}
			if w := ask(set[0], "POST", "/session", login); w.Code != 401 {
				t.Errorf("the old password: %d", w.Code)
			}
			loggedIn(t, s, strings.Replace(login, password, "battery staple", 1))
			all := audited(t, s)
			if !slices.Contains(all, user+` by session from 192.0.2.1: POST /session/password "" [new old] 200`) || strings.Contains(strings.Join(all, ""), "staple") {
				t.Errorf("the audit log has %q", all)
			}
		})
	}
	s := newServer(t)
	w := httptest.NewRecorder()
	s.Local(keys.ViaSocket).ServeHTTP(w, httptest.NewRequest("POST", root+"/session/password", strings.NewReader(`{"old":"correct horse","new":"battery staple"}`)))
	if w.Code != 403 {
		t.Errorf("by nobody with a password: %d %s", w.Code, w.Body)
	}
}

// Old passwords are guessed as slowly as at a login.
func TestOldPasswordIsGuarded(t *testing.T) { synctest.Test(t, oldPasswordIsGuarded) }

func oldPasswordIsGuarded(t *testing.T) {
	s := newServer(t)
	cookie := loggedIn(t, s, `{"password":"correct horse"}`)
	evaluated := 0
	for range 100 {
		r := httptest.NewRequest("POST", root+"/session/password", strings.NewReader(`{"old":"a wrong guess","new":"battery staple"}`))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(cookie)
		if w := serve(s, r); w.Code == 400 {
			evaluated++
		} else if w.Code != 429 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		time.Sleep(600 * time.Millisecond)
	}
	if evaluated == 0 || evaluated > 10 {
		t.Errorf("%d of 100 in a minute were evaluated", evaluated)
	}
}
