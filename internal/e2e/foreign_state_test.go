package e2e

import (
	"strings"
	"testing"
)

// TestForeignState sends reasoning of another account: its upstream refuses it, is
// asked again without it, and that is noted. Who wants all or nothing is refused.
func TestForeignState(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	for _, stream := range []string{"false", "true"} {
		up.Reset()
		got := g.post(t, "/responses", `{"model":"up/small","store":false,"stream":`+stream+`,"input":[
			{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed elsewhere"},
			{"type":"message","role":"user","content":"Hi"}]}`)
		if got.status != 200 || !strings.Contains(got.body, "Hello from small.") {
			t.Fatalf("stream %s: %d %s", stream, got.status, got.body)
		}
		if notes := got.header.Get("X-Limen-Notes"); !strings.Contains(notes, "drop:reasoning.encrypted_content") {
			t.Errorf("notes are %q", notes)
		}
		requests := up.Requests()
		if len(requests) != 2 || strings.Contains(string(requests[1].Body), "rs_1") || !strings.Contains(string(requests[1].Body), "Hi") {
			t.Errorf("the upstream had %+v", requests)
		}
	}
	strict := g.request(t, t.Context(), "POST", "/responses", strings.NewReader(`{"model":"up/small","store":false,"input":[
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed elsewhere"},
		{"type":"message","role":"user","content":"Hi strict"}]}`))
	strict.Header.Set("X-Limen-Strict", "true")
	got := g.do(t, strict)
	if got.status != 400 || !strings.Contains(got.body, "could not be verified") {
		t.Errorf("strict: %d %s", got.status, got.body)
	}
}
