package admin

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/keys"
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
		if reads := op.method == "GET" || op.path == "/route" || op.path == "/prices/diff"; reads == op.change {
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
