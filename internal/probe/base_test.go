package probe

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseBase(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{"https://llm.example.com/v1", "https://llm.example.com/v1", ""},
		{" http://127.0.0.1:8080/v1/ ", "http://127.0.0.1:8080/v1", ""},
		{"localhost:8080/v1", "", "write it whole"},
		{"llm.example.com", "", "write it whole"},
		{"ftp://llm.example.com/v1", "", "write it whole"},
		{"", "", "write it whole"},
		{"https://me:sk-12345@llm.example.com/v1", "", "name or password"},
		{"https://llm.example.com/v1?key=sk-12345", "", "no '?'"},
	} {
		got, err := ParseBase(c.in)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got %v, want %q", c.in, err, c.err)
		case err != nil && strings.Contains(err.Error(), "sk-12345"):
			t.Errorf("%q: the error shows the key", c.in)
		}
	}
}

// TestWrongBaseURLs has the usual mistakes. Where the API is found nonetheless,
// the checks go on there.
func TestWrongBaseURLs(t *testing.T) {
	api := handler(nil, nil)
	under := func(prefix string) http.Handler { return http.StripPrefix(prefix, api) }
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.Handle("/gate/v1/", under("/gate"))
	mux.HandleFunc("/ui/", func(w http.ResponseWriter, _ *http.Request) { page(w, 200) })
	mux.HandleFunc("/old/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/gate/v1/models", http.StatusMovedPermanently)
	})
	whole := httptest.NewServer(mux)
	defer whole.Close()
	website := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { page(w, 200) }))
	defer website.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://login.example.com/", http.StatusFound)
	}))
	defer elsewhere.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	secure := httptest.NewUnstartedServer(api)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	silent, gone := raw(t, "\x15\x03\x01\x00\x02\x02\x16"), closed(t)

	for _, c := range []struct {
		name, base, why, change string
		goesOn                  bool
	}{
		{"an operation's path", whole.URL + "/v1/chat/completions", "ends in the path of an operation", "to " + whole.URL + "/v1, ", true},
		{"another's", whole.URL + "/v1/responses", "ends in the path of an operation", "to " + whole.URL + "/v1, ", true},
		{"/v1 is missing", whole.URL, "must end in /v1", "to " + whole.URL + "/v1, ", true},
		{"/v1 is missing below a path", whole.URL + "/gate", "must end in /v1", "to " + whole.URL + "/gate/v1, ", true},
		{"/v1 twice", whole.URL + "/v1/v1", "has /v1 twice", "to " + whole.URL + "/v1, ", true},
		{"both", whole.URL + "/v1/v1/chat/completions", "has /v1 twice", "to " + whole.URL + "/v1, ", true},
		{"the page for people", whole.URL + "/ui", "the API is at /v1", "to " + whole.URL + "/v1, ", true},
		{"moved", whole.URL + "/old", "redirects", "to " + whole.URL + "/gate/v1, ", true},
		{"a web page", website.URL + "/v1", "HTTP 200 with a web page", "that of the API", false},
		{"a redirect elsewhere", elsewhere.URL + "/v1", "redirects to https://login.example.com/", "where the API is", false},
		{"nothing there", empty.URL + "/v1", "no API of OpenAI's kind", "ends in /v1", false},
		{"plain to TLS", strings.Replace(secure.URL, "https:", "http:", 1) + "/v1", "speaks TLS, and was asked without", "to https://127.0.0.1", false},
		{"plain to TLS that says nothing", "http://" + silent + "/v1", "speaks TLS, and was asked without", "to https://" + silent + "/v1", false},
		{"TLS to plain", strings.Replace(whole.URL, "http:", "https:", 1) + "/v1", "speaks no TLS", "to " + whole.URL + "/v1", false},
		{"a certificate of one's own", secure.URL + "/v1", "no authority that this machine knows", "SSL_CERT_FILE", false},
		{"nobody listens", "http://" + gone + "/v1", "nothing listens at " + gone, "start the server", false},
		{"no such host", "http://no-such-host.invalid/v1", "no such host: no-such-host.invalid", "DNS", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := examine(t, c.base, secret, "", "")
			got := results["base URL"]
			if got.Status != Fail || !strings.Contains(got.Detail, c.why) || !strings.Contains(got.Change, c.change) {
				t.Errorf("got %+v, want %q and %q", got, c.why, c.change)
			}
			if went := results["chat"].Status == Pass; went != c.goesOn {
				t.Errorf("the checks went on: got %t, want %t", went, c.goesOn)
			}
			if !c.goesOn && len(results) != 1 {
				t.Errorf("%d results; nothing can be checked there", len(results))
			}
		})
	}
}

func page(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, "<!doctype html><title>Welcome</title>")
}

// raw is the address of a server that says the same to everyone.
func raw(t *testing.T, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4<<10)) // what was not read would reset the connection
			io.WriteString(c, says)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestAServerWithoutAList is one all the same, for whoever names a model.
func TestAServerWithoutAList(t *testing.T) {
	s, _ := newServer(t, answering("models", 404, "application/json", `{"error":{"message":"No such path."}}`))
	results := examine(t, s.URL+"/v1", secret, "m", "")
	if got := results["list models"]; got.Status != Absent {
		t.Errorf("list models: got %+v, want it to be absent", got)
	}
	if got := results["chat"]; got.Status != Pass {
		t.Errorf("chat: got %+v", got)
	}
	got := examine(t, s.URL+"/v1", secret, "", "")["list models"]
	if got.Status != Fail || got.Change != "name a model with --model" {
		t.Errorf("without a model: got %+v", got)
	}
}

// TestTheKeyStaysWithTheHost has a server that redirects to another.
func TestTheKeyStaysWithTheHost(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	target := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+r.URL.Path, http.StatusFound)
	}))
	defer s.Close()
	if got := examine(t, s.URL+"/v1", secret, "", "")["base URL"]; got.Status != Fail {
		t.Errorf("got %+v", got)
	}
}

func TestAWrongKey(t *testing.T) {
	s, _ := newServer(t, nil)
	got := examine(t, s.URL+"/v1", "sk-of-somebody-else", "", "")
	if r := got["base URL"]; r.Status != Pass {
		t.Errorf("base URL: got %+v; it is the right one", r)
	}
	if r := got["list models"]; r.Status != Fail || !strings.Contains(r.Detail, "HTTP 401") || !strings.Contains(r.Change, "OPENAI_API_KEY") {
		t.Errorf("list models: got %+v", r)
	}
}
