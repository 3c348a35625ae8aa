package admin

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// audited are the entries of the audit log, oldest first.
func audited(t *testing.T, s *Server) (list []string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Local("socket").ServeHTTP(w, httptest.NewRequest("GET", root+"/audit?limit=1000", nil))
	var out Changes
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Next != "" {
		t.Fatalf("%v in %s", err, w.Body)
	}
	for _, c := range out.Changes {
		list = append([]string{fmt.Sprintf("%s by %s from %s: %s %q %v %d", c.Who, c.Via, c.From, c.Operation, c.Object, c.Members, c.Status)}, list...)
	}
	return list
}

func TestAudit(t *testing.T) {
	s := newServer(t)
	cookie := loggedIn(t, s, `{"user":"admin","password":"correct horse"}`)
	as := func(method, path, body string) {
		r := httptest.NewRequest(method, root+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(cookie)
		serve(s, r)
	}
	as("PATCH", "/keys/k1", `{"team":null,"limits":{"rpm":5}}`)
	as("PATCH", "/keys/k1", `{"secret-that-was-mistyped":1}`)
	as("POST", "/keys/%00%ff/revoke", "")
	as("GET", "/keys", "")
	as("POST", "/keys", `{"name":"new"}{`)
	bearer := httptest.NewRequest("DELETE", root+"/teams/research", nil)
	bearer.Header.Set("Authorization", "Bearer "+password)
	serve(s, bearer)
	s.Local("directory").ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", root+"/admin/password", strings.NewReader(`{"password":"battery staple"}`)))
	as("POST", "/keys", `{"name":"too late"}`)
	wrong := httptest.NewRequest("POST", root+"/session", strings.NewReader(`{"password":"a wrong guess"}`))
	wrong.Header.Set("Content-Type", "application/json")
	serve(s, wrong)

	got := audited(t, s)
	at := "admin by session from 192.0.2.1: "
	want := []string{
		at + `POST /session "" [] 200`,
		at + `PATCH /keys/{key} "k1 =alice" [limits team] 200`,
		at + `PATCH /keys/{key} "k1" [] 400`,
		at + `POST /keys/{key}/revoke "??" [] 404`,
		``, // of the key that was made
		`admin by password from 192.0.2.1: DELETE /teams/{team} "t1 research" [] 200`,
		`directory by directory from : POST /admin/password "" [password] 200`,
		`admin by password from 192.0.2.1: POST /session "" [] 401`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %d entries:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if want[i] != "" && got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	if made := got[4]; !strings.HasPrefix(made, at+`POST /keys "`) || !strings.HasSuffix(made, ` new" [name] 200`) {
		t.Errorf("the key that was made is recorded as %s", made)
	}
}

// Logins that fail are recorded, and who guesses does not fill the store: an
// account and an address have one row an hour, which says how often. Names that
// nobody has are not kept: a password may stand there.
func TestFailedLogins(t *testing.T) { synctest.Test(t, failedLogins) }

func failedLogins(t *testing.T) {
	s := newServer(t)
	if _, _, err := s.api.Operators.CreateUser(t.Context(), keys.NewUser{Name: "ann", Role: keys.Viewer, Password: "hold the door"}); err != nil {
		t.Fatal(err)
	}
	guess := func(user, from, password string) int {
		r := httptest.NewRequest("POST", root+"/session", strings.NewReader(fmt.Sprintf(`{"user":%q,"password":%q}`, user, password)))
		r.RemoteAddr = from + ":1"
		r.Header.Set("Content-Type", "application/json")
		return serve(s, r).Code
	}
	evaluated := 0
	for range 1000 {
		switch code := guess("ann", "198.51.100.1", "a wrong guess"); code {
		case 401:
			evaluated++
		case 429:
		default:
			t.Fatalf("a wrong guess: %d", code)
		}
		time.Sleep(time.Minute / 1000)
	}
	if evaluated == 0 || evaluated > 10 {
		t.Errorf("%d of 1000 in a minute were evaluated", evaluated)
	}
	if code := guess("ann", "203.0.113.1", "hold the door"); code != 200 {
		t.Errorf("the right password from another address: %d", code)
	}
	guess("hold the door", "198.51.100.2", "hold the door")
	guess("", "198.51.100.2", "x")
	time.Sleep(time.Hour)
	guess("ann", "198.51.100.1", "a wrong guess")
	w := httptest.NewRecorder()
	s.Local("socket").ServeHTTP(w, httptest.NewRequest("GET", root+"/audit?on=session", nil))
	var out Changes
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range out.Changes {
		got = append(got, fmt.Sprintf("%s from %s: %d x%d", c.Who, c.From, c.Status, min(c.Times, 900)))
	}
	want := []string{"ann from 198.51.100.1: 401 x1", "admin from 198.51.100.2: 401 x1", "(nobody) from 198.51.100.2: 401 x1", "ann from 203.0.113.1: 200 x0", "ann from 198.51.100.1: 401 x900"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	op := &s.table[0]
	for i := range maxFailures + 50 {
		s.failedLogin(op, &request{Request: httptest.NewRequest("POST", "/", nil)}, &keys.Login{Account: "ann", From: fmt.Sprint(i)}, llm.Errorf(llm.Unauthenticated, "wrong"))
	}
	if rows, err := s.api.Store.Changes(t.Context(), store.ChangeFilter{On: "session"}, "", 10*maxFailures); err != nil || len(rows) > maxFailures+len(want)+1 {
		t.Errorf("a flood made %d rows, %v", len(rows), err)
	}
}

// Whatever changes something is recorded, and what does not is not.
func TestEveryChangeIsAudited(t *testing.T) {
	s := newServer(t)
	local := s.Local("socket")
	for i := range s.table {
		op := &s.table[i]
		before := len(audited(t, s))
		local.ServeHTTP(httptest.NewRecorder(), requestOf(op))
		want := 0
		if op.change {
			want = 1
		}
		if got := len(audited(t, s)) - before; got != want {
			t.Errorf("%s %s made %d entries, want %d", op.method, op.path, got, want)
		}
		if op.change && op.access.scopes&(keys.ScopeRead|keys.ScopeUsage) != 0 {
			t.Errorf("%s %s changes something, and may be used to read", op.method, op.path)
		}
		if op.path == "/login/oidc/callback" {
			continue // browsers come back from a provider with a GET
		}
		if reads := op.method == "GET" || op.path == "/route" || op.path == "/prices/diff" || op.path == "/config/check"; reads == op.change {
			t.Errorf("%s %s changes something: %v", op.method, op.path, op.change)
		}
	}
}

// What cannot be recorded is not done.
func TestNoChangeWithoutAudit(t *testing.T) {
	s := newServer(t)
	r := httptest.NewRequest("POST", root+"/keys", strings.NewReader(`{"name":"new"}`))
	w := httptest.NewRecorder()
	s.api.Store.Close()
	s.Local("socket").ServeHTTP(w, r)
	if w.Code != 503 || !strings.Contains(w.Body.String(), "Nothing was changed") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
