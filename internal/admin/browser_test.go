package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A browser that came by a name of somebody else is not let in by a cookie, and
// not to log in; whoever has a credential that no browser sends by itself is.
func TestNamesOfOthers(t *testing.T) {
	s := newServer(t)
	cookie := loggedIn(t, s, `{"password":"correct horse"}`)
	s.api.OurName = func(r *http.Request) bool { return r.Host == "gate.example.com" }
	for i := range s.table {
		op := &s.table[i]
		for _, c := range []struct {
			host string
			as   func(*http.Request)
			want bool // it is misdirected
		}{
			{"evil.example", all(), true},
			{"evil.example", withCookie(cookie), true},
			{"gate.example.com", all(), false},
			{"gate.example.com", withHeader("Cookie", "x=y"), false},
			{"evil.example", withHeader("Authorization", "Bearer limen_admin_wrong"), false},
		} {
			r := requestOf(op)
			r.Host = c.host
			c.as(r)
			if got := serve(s, r).Code == http.StatusMisdirectedRequest; got != c.want {
				t.Errorf("%s %s at %s: misdirected %v, want %v", op.method, op.path, c.host, got, c.want)
			}
		}
	}
}

// What the API answers is no page, is kept by nobody, and is for nobody else.
func TestHeaders(t *testing.T) {
	s := newServer(t, sample()...)
	for _, path := range []string{"/status", "/keys", "/keys/none", "/nothing", "/usage/export?format=csv"} {
		r := httptest.NewRequest("GET", root+path, nil)
		r.Header.Set("Authorization", "Bearer "+password)
		h := serve(s, r).Header()
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Authorization, Cookie", "Access-Control-Allow-Origin": ""} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for format, want := range map[string]string{"csv": `attachment; filename="calls.csv"`, "jsonl": `attachment; filename="calls.jsonl"`, "": `attachment; filename="calls.jsonl"`} {
		r := httptest.NewRequest("GET", root+"/usage/export?format="+format, nil)
		r.Header.Set("Authorization", "Bearer "+password)
		if h := serve(s, r).Header(); h.Get("Content-Disposition") != want || h.Get("Cache-Control") != "no-store" {
			t.Errorf("format %q: %v", format, h)
		}
	}
}

// A GET changes nothing, so that a link cannot. Who comes back from a provider
// has to have the cookie of having gone there.
func TestReadsAreNoChanges(t *testing.T) {
	s := newServer(t)
	for _, op := range s.table {
		if op.method == "GET" && op.change && op.path != "/login/oidc/callback" {
			t.Errorf("GET %s changes something", op.path)
		}
	}
}

func TestFormulas(t *testing.T) {
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠1", "=\"x\"", "=,\n"} {
		var out strings.Builder
		rows := newCallsCSV(&out)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(rows.write(&Call{KeyName: text, TeamName: text, Model: text, Provider: text, UpstreamModel: text, Account: text, Service: text, Error: text, Tags: []string{text}, Notes: []string{text}}))
		must(rows.end())
		_, row, _ := strings.Cut(out.String(), "\n")
		for _, quoted := range []string{text, `"` + strings.ReplaceAll(text, `"`, `""`)} {
			for _, before := range []string{",", "\n"} {
				if strings.Contains(row, before+quoted) {
					t.Errorf("%q begins a cell: %s", text, row)
				}
			}
		}
	}
	for _, text := range []string{"", "gpt-5", "alice", "0.1", "é"} {
		if got := plain(text); got != text {
			t.Errorf("plain(%q) = %q", text, got)
		}
	}
}
