package cli

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/provider"
)

func TestFetchFacts(t *testing.T) {
	const list = `{"openai":{"models":{"m":{"id":"m","name":"M","release_date":"2026-01-02","cost":{"input":1.25}}}},
		"nobody":{"models":{"x":{"id":"x","name":"X","release_date":"2026-01-02"}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agent := r.Header.Get("User-Agent"); agent != "limen/1.2" {
			t.Errorf("asked by %q", agent)
		}
		switch r.URL.Path {
		case "/api.json":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, list)
			z.Close()
		case "/cut.json":
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, list)
		case "/page":
			io.WriteString(w, "<html>")
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	e := &env{version: Version{Release: "1.2"}}

	address := strings.Replace(server.URL, "http://", "http://user:secret@", 1) + "/api.json?token=secret"
	packed, err := e.fetchFacts(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := provider.ReadFacts(packed)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := facts.Model("openai", "m"); !ok || m.Prices.String() != "1.25" || facts.Len() != 1 {
		t.Errorf("%d models, %+v; want those of vendors that are known", facts.Len(), m)
	}
	if got := facts.Origin().Source; got != server.URL+"/api.json" {
		t.Errorf("the source is %s", got)
	}

	for from, want := range map[string]string{
		server.URL + "/cut.json":                   "unexpected EOF",
		server.URL + "/page":                       "web page",
		server.URL + "/gone":                       "503",
		"http://127.0.0.1:1/api.json":              "refused",
		"file:///api.json":                         "no http or https URL",
		"https://":                                 "no http or https URL",
		t.TempDir():                                "directory",
		t.TempDir() + "/x":                         "no such file",
		"http://user:secret@127.0.0.1:1/?t=secret": "refused",
	} {
		_, err := e.fetchFacts(t.Context(), from)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Nothing was changed.") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", from, err, want)
		}
	}
}
