package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/store/storetest"
)

// startShared runs a gateway without a file of configuration, on a database
// that others have too.
func startShared(t *testing.T) *gateway {
	t.Helper()
	g := newGateway(t, t.TempDir())
	g.run([]string{"serve", "--data", g.data, "--listen", "127.0.0.1:0"})
	return g
}

// TestSeveralGateways has two gateways share a database, as teams run them.
func TestSeveralGateways(t *testing.T) {
	t.Setenv("LIMEN_DATABASE_URL", storetest.Postgres(t))
	t.Setenv("LIMEN_STATE_KEY", strings.Repeat("4b", 32))
	up := newUpstream(t)
	a := startShared(t)
	b := startShared(t)
	if b.key != "" || b.password != "" {
		t.Errorf("the second gateway made a key and a password of its own")
	}
	b.key, b.password = a.key, a.password
	ask := func(g *gateway, model string) reply {
		return g.post(t, "/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hi"}]}`, model))
	}

	becomes := func(status int, call func() reply) {
		t.Helper()
		eventually(t, fmt.Sprintf("an answer with %d", status), func() bool { return call().status == status })
	}

	// The configuration is one: what is changed at one counts at the other.
	a.admin(t, http.MethodPut, "/config/providers/up", fmt.Sprintf(`{"provider":{"base_url":%q},"api_key":%q,"base":0}`, up.URL(), canary), new(any))
	becomes(http.StatusOK, func() reply { return ask(b, "up/small") })
	b.admin(t, http.MethodPut, "/config/models/fast", `{"model":{"targets":["up/small"]},"base":1}`, new(any))
	becomes(http.StatusOK, func() reply { return ask(a, "fast") })
	got := a.do(t, a.adminRequest(t, http.MethodPut, "/config/document", `{"text":"","base":1}`))
	if got.status != http.StatusConflict || !strings.Contains(got.body, "version_conflict") {
		t.Errorf("who stands on an old version gets %d %s", got.status, got.body)
	}
	a.admin(t, http.MethodPost, "/config/rollback", `{"version":1,"base":2}`, new(any))
	becomes(http.StatusNotFound, func() reply { return ask(b, "fast") })

	// A stored response goes on at the other, and calls of both are told by each.
	respond := func(g *gateway, body string) reply {
		t.Helper()
		got := g.post(t, "/responses", body)
		if outcome := observe(t, "/responses", got); outcome != "answer" {
			t.Fatalf("got %q\n%.500s", outcome, got.body)
		}
		return got
	}
	first := respond(a, `{"model":"up/small","input":"Hi"}`)
	var stored struct{ ID string }
	if err := json.Unmarshal([]byte(first.body), &stored); err != nil {
		t.Fatal(err)
	}
	next := respond(b, fmt.Sprintf(`{"model":"up/small","input":"Go on","previous_response_id":%q}`, stored.ID))
	seen := func(g *gateway, id string) {
		becomes(http.StatusOK, func() reply {
			return g.do(t, g.adminRequest(t, http.MethodGet, "/calls/"+id, ""))
		})
	}
	seen(b, first.header.Get("X-Request-Id"))
	seen(a, next.header.Get("X-Request-Id"))

	// Who logs in at one is known to the other, until they leave.
	login := func(g *gateway, method, path, body, cookie string) reply {
		r := g.adminRequest(t, method, path, body)
		r.Header.Del("Authorization")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		return g.do(t, r)
	}
	in := login(a, http.MethodPost, "/session", fmt.Sprintf(`{"user":"admin","password":%q}`, a.password), "")
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	if got := login(b, http.MethodGet, "/session", "", cookie); got.status != http.StatusOK {
		t.Errorf("a session of the other gateway: %d %s", got.status, got.body)
	}
	login(b, http.MethodDelete, "/session", "", cookie)
	if got := login(a, http.MethodGet, "/session", "", cookie); got.status != http.StatusUnauthorized {
		t.Errorf("a session that ended at the other gateway: %d", got.status)
	}

	// A key that is stopped at one is refused by the other, and one goes on when
	// the other has gone.
	var made struct{ ID, Key string }
	a.admin(t, http.MethodPost, "/keys", `{"name":"short"}`, &made)
	mine := b.key
	b.key = made.Key
	becomes(http.StatusOK, func() reply { return ask(b, "up/small") })
	a.admin(t, http.MethodPost, "/keys/"+made.ID+"/revoke", "", new(any))
	becomes(http.StatusUnauthorized, func() reply { return ask(b, "up/small") })
	b.key = mine
	a.stop()
	check(t, ask(b, "up/small"), "answer")
}
