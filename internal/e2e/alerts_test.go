package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAlerts has a key reach its soft budget, of which a webhook is told, once.
func TestAlerts(t *testing.T) {
	t.Parallel()
	type post struct {
		header http.Header
		body   string
	}
	told := make(chan post, 9)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		told <- post{r.Header, string(body)}
	}))
	t.Cleanup(hook.Close)
	g := start(t, fmt.Sprintf("alerts: {webhook: {url: %q, headers: {x-team: ops}, secret: canary-key}}\n", hook.URL+"/canary-path")+
		provider(newUpstream(t))+"models:\n  m: {targets: [up/small], price: {input: 1000, output: 1000}}\n")
	var made struct{ Key, ID string }
	g.admin(t, http.MethodPost, "/keys", `{"name":"alice","budgets":["0.001/total soft"]}`, &made)
	for range 2 {
		r := g.request(t, t.Context(), http.MethodPost, "/chat/completions", strings.NewReader(askBody(false, "hello", "")))
		r.Header.Set("Authorization", "Bearer "+made.Key)
		check(t, g.do(t, r), "answer")
	}
	var got post
	select {
	case got = <-told:
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	want := regexp.MustCompile(`^\{"type":"budget\.reached","id":"alert_[a-z2-7]{26}","time":"[^"]+","owner":"` + made.ID + `","name":"key alice","budget":\{"amount":0\.001,"period":"total","soft":true\},` +
		`"spent":0\.0[2-9]\d*,"threshold":0\.001,"text":"Limen: key alice has spent \$0\.0\d+ of the budget 0\.001/total soft, \$0\.001 or more\."\}$`)
	if !want.MatchString(got.body) {
		t.Errorf("the body is %s", got.body)
	}
	if sum := got.header.Get("X-Limen-Signature"); !regexp.MustCompile(`^sha256=[0-9a-f]{64}$`).MatchString(sum) || got.header.Get("X-Team") != "ops" {
		t.Errorf("the header is %v", got.header)
	}
	if _, ok := g.log.await(func(text string) bool { return strings.Contains(text, `"msg":"an alert was told"`) }); !ok {
		t.Error("the log does not have it")
	}
	shown := g.do(t, g.adminRequest(t, http.MethodGet, "/config", "")).body
	if !strings.Contains(shown, `"url":"`+hook.URL+`/[redacted]"`) || strings.Contains(shown+g.log.String(), "canary-") {
		t.Errorf("the configuration is shown as %s", shown)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := len(told); n != 0 {
		t.Errorf("it was told %d more times", n)
	}
}
