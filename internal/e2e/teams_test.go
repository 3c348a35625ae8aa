package e2e

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// The record of a call keeps the team that its key had then.
func TestRecordsNameTheTeam(t *testing.T) {
	up := upstream.New(upstream.WithKey(canary))
	t.Cleanup(up.Close)
	g := start(t, "providers:\n  up: {base_url: "+up.URL()+", api_key: "+canary+"}\n")
	var web, lab struct{ ID string }
	g.admin(t, "POST", "/teams", `{"name": "web"}`, &web)
	g.admin(t, "POST", "/teams", `{"name": "lab", "parent": "web"}`, &lab)
	var key struct{ Key string }
	g.admin(t, "POST", "/keys", `{"name": "alice", "team": "lab"}`, &key)
	g.key = key.Key
	call := func() string {
		t.Helper()
		r := g.post(t, "/chat/completions", `{"model": "up/small", "messages": [{"role": "user", "content": "Hi"}]}`)
		if r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.id()
	}
	want := map[string]string{call(): lab.ID}
	g.admin(t, "PATCH", "/keys/alice", `{"team": "web"}`, &struct{}{})
	want[call()] = web.ID
	g.admin(t, "PATCH", "/keys/alice", `{"team": null}`, &struct{}{})
	want[call()] = ""
	if n := len(g.records(t)); n != len(want) { // and they are in the store
		t.Fatalf("%d calls are recorded, want %d", n, len(want))
	}
	db := database(t, g.data)
	defer db.Close()
	for id, team := range want {
		var got string
		if err := db.QueryRow("SELECT team FROM calls WHERE id = ?", strings.TrimPrefix(id, "req_")).Scan(&got); err != nil || got != team {
			t.Errorf("the team of %s is %q, %v, want %q", id, got, err, team)
		}
	}
}
