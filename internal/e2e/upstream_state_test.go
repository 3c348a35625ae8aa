package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// keepingOf has two providers that keep responses themselves, one that does
// not, and names that stand for several.
func keepingOf(a, b *upstream.Server) string {
	return fmt.Sprintf(`providers:
  a: {base_url: %[1]q, api_key: %[3]s, speaks: [openai-responses], state: upstream}
  b: {base_url: %[2]q, api_key: %[3]s, speaks: [openai-chat, openai-responses], state: upstream}
  here: {base_url: %[1]q, api_key: %[3]s, speaks: [openai-responses]}
models:
  either: {targets: [a/small, b/small]}
  mixed: {targets: [here/small, a/small]}
`, a.URL(), b.URL(), canary)
}

// keeping starts a gateway over two upstreams that keep responses.
func keeping(t *testing.T) (g *gateway, a, b *upstream.Server) {
	t.Helper()
	a, b = newUpstream(t), newUpstream(t, upstream.WithIDsFrom(1000))
	return start(t, keepingOf(a, b)), a, b
}

// last is the last call of a model that reached an upstream.
func last(t *testing.T, up *upstream.Server) (r upstream.Request) {
	t.Helper()
	for _, e := range up.Requests() {
		if e.Method == http.MethodPost {
			r = e
		}
	}
	return r
}

// respondID makes a response and returns its ID.
func (g *gateway) respondID(t *testing.T, body string) string {
	t.Helper()
	got := g.post(t, "/responses", body)
	var r storedResponse
	if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != 200 {
		t.Fatalf("%s: %d %s", body, got.status, got.body)
	}
	return r.ID
}

func (g *gateway) object(t *testing.T, method, path string) reply {
	t.Helper()
	return g.do(t, g.request(t, t.Context(), method, path, nil))
}

// want checks the status of an answer and what is in it.
func (r reply) want(t *testing.T, status int, parts ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("got %d %s, want %d", r.status, r.body, status)
	}
	for _, part := range parts {
		if !strings.Contains(r.body, part) {
			t.Errorf("got %s, want %q in it", r.body, part)
		}
	}
}

// asOther is the gateway as another key's client sees it.
func (g *gateway) asOther(t *testing.T, rules string) *gateway {
	t.Helper()
	var made struct{ Key string }
	g.admin(t, http.MethodPost, "/keys", rules, &made)
	other := &gateway{t: t, url: g.url, key: made.Key, client: g.client}
	return other
}

const noPrevious = `"code":"previous_response_not_found"`

// TestStateUpstream has requests pass as they are, with IDs that are the
// upstream's own.
func TestStateUpstream(t *testing.T) {
	t.Parallel()
	g, a, _ := keeping(t)
	const first = `{"model":"a/small","input":"call f {}","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`
	id := g.respondID(t, first)
	if got, want := last(t, a).Body, strings.Replace(first, "a/small", "small", 1); got != want {
		t.Errorf("got upstream\n%s\nwant\n%s", got, want)
	}
	second := fmt.Sprintf(`{"model":"a/small","store":true,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"c","output":"sunny"}]}`, id)
	next := g.respondID(t, second)
	if got, want := last(t, a).Body, strings.Replace(second, "a/small", "small", 1); got != want {
		t.Errorf("got upstream\n%s\nwant\n%s", got, want)
	}
	g.object(t, http.MethodGet, "/responses/"+next).want(t, 200, `"previous_response_id":"`+id+`"`, "The tool said: sunny")
	g.object(t, http.MethodGet, "/responses/"+next+"/input_items?order=asc&limit=2&other=x").want(t, 200, `"text":"call f {}"`, `"type":"function_call"`, `"has_more":true`)
	if q := a.Requests()[len(a.Requests())-1].Query; q != "limit=2&order=asc" {
		t.Errorf("got the query %q", q)
	}
	g.post(t, "/responses/"+next+"/cancel", "").want(t, 400, "Cannot cancel a synchronous response.")

	// As a stream, which can be gone on from when its end is told.
	events := g.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","stream":true,"previous_response_id":%q,"input":"Hi"}`, next))
	events.want(t, 200, `"type":"response.completed"`, "[DONE]")
	_, tail, _ := strings.Cut(events.body, `"type":"response.completed"`)
	_, tail, _ = strings.Cut(tail, `"id":"`)
	streamed, _, _ := strings.Cut(tail, `"`)
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"And?"}`, streamed))

	// What is not stored is nobody's.
	g.object(t, http.MethodGet, "/responses/"+g.respondID(t, `{"model":"a/small","store":false,"input":"Hi"}`)).want(t, 404)
	loose := g.respondID(t, fmt.Sprintf(`{"model":"a/small","store":false,"previous_response_id":%q,"input":"Hi"}`, id))
	g.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, loose)).want(t, 400, noPrevious)

	// Deleted there and here.
	kept := a.Kept()
	g.object(t, http.MethodDelete, "/responses/"+next).want(t, 200, `{"id":"`+next+`","object":"response","deleted":true}`)
	if a.Kept() != kept-1 {
		t.Error("the upstream still has what was deleted")
	}
	g.object(t, http.MethodGet, "/responses/"+next).want(t, 404)
	g.object(t, http.MethodDelete, "/responses/"+next).want(t, 404)
	g.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, next)).want(t, 400, noPrevious)

	// Over a restart, too; and where the provider is left to keep nothing more.
	g.stop()
	again := startOn(t, g.data, fmt.Sprintf("providers:\n  a: {base_url: %q, api_key: %s, speaks: [openai-responses]}\n", a.URL(), canary))
	again.key = g.key
	again.object(t, http.MethodGet, "/responses/"+id).want(t, 200, `"id":"`+id+`"`)
	on := again.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, id))
	again.object(t, http.MethodGet, "/responses/"+on).want(t, 200, `"id":"`+on+`"`)
	if body := last(t, a).Body; !strings.Contains(body, id) {
		t.Errorf("got upstream %s", body)
	}

	// Without it, what it kept is out of reach.
	again.stop()
	gone := startOn(t, g.data, fmt.Sprintf("providers:\n  c: {base_url: %q, api_key: %s, speaks: [openai-responses]}\n", a.URL(), canary))
	gone.key = g.key
	gone.object(t, http.MethodGet, "/responses/"+id).want(t, 404, "kept by the provider 'a', which this gateway does not have now")
	gone.post(t, "/responses", fmt.Sprintf(`{"model":"c/small","previous_response_id":%q,"input":"Hi"}`, id)).want(t, 400, noPrevious, "kept by the provider 'a'")
}

// TestStateUpstreamIsOwned has keys that know nothing of each other, whatever
// way they try.
func TestStateUpstreamIsOwned(t *testing.T) {
	t.Parallel()
	g, a, b := keeping(t)
	other := g.asOther(t, `{"name":"other"}`)
	id := g.respondID(t, `{"model":"a/small","input":"Mine"}`)
	running := g.respondID(t, `{"model":"a/small","background":true,"input":"Mine [[hold]]"}`)
	before, beforeB := len(a.Requests()), len(b.Requests())
	for _, id := range []string{id, running} {
		never := strings.Replace(id, "resp_", "resp_9", 1)
		for _, call := range []struct{ method, path string }{
			{http.MethodGet, ""}, {http.MethodGet, "?stream=true"}, {http.MethodDelete, ""}, {http.MethodPost, "/cancel"}, {http.MethodGet, "/input_items"},
		} {
			got, unknown := other.object(t, call.method, "/responses/"+id+call.path), other.object(t, call.method, "/responses/"+never+call.path)
			if got.status != 404 || got.body != strings.ReplaceAll(unknown.body, never, id) {
				t.Errorf("%s %s: %d %s, and for none %s", call.method, call.path, got.status, got.body, unknown.body)
			}
		}
		for _, model := range []string{"a/small", "b/small", "here/small", "either", "mixed"} {
			other.post(t, "/responses", fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"input":"Hi"}`, model, id)).want(t, 400, noPrevious)
			other.post(t, "/responses/input_tokens", fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"input":"Hi"}`, model, id)).want(t, 400, noPrevious)
			other.post(t, "/responses/compact", fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"input":"Hi"}`, model, id)).want(t, 400, noPrevious)
		}
	}
	// Items, in all ways in which they can be referred to.
	number := strings.TrimPrefix(id, "resp_")
	for _, store := range []string{"true", "false"} {
		for _, item := range []string{`{"type":"item_reference","id":%q}`, `{"id":%q}`, `{"type":null,"id":%q}`, `{"type":"item\u005freference","id":%q}`, `{"\u0074ype":"item_reference","id":%q}`, `{"role":1,"id":%q}`} {
			body := fmt.Sprintf(`{"model":"a/small","store":`+store+`,"input":[`+item+`,{"role":"user","content":"Hi"}]}`, "msg_"+number+"_0")
			other.post(t, "/responses", body).want(t, 404, "not found")
			g.asOther(t, `{"name":"none`+store+fmt.Sprint(len(body), len(item), item[2])+`","no_store":true}`).post(t, "/responses", body).want(t, 404, "not found")
		}
		for _, item := range []string{`{"type":"message","type":"item_reference","id":"msg_1"}`, `{"Type":"item_reference","id":"msg_1"}`, `"msg_1"`} {
			other.post(t, "/responses", `{"model":"a/small","store":`+store+`,"input":[`+item+`]}`).want(t, 400)
		}
	}
	if len(a.Requests()) != before || len(b.Requests()) != beforeB {
		t.Errorf("upstream heard of it: %+v", a.Requests()[before:])
	}
	// Its owner cannot either: nobody knows whose an item is.
	g.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":[{"type":"item_reference","id":"msg_%s_0"}]}`, id, number)).want(t, 400, "item_reference")
	g.object(t, http.MethodGet, "/responses/"+id).want(t, 200, `"status":"completed"`)

	// Of a key whose calls leave nothing, nothing is left there.
	kept := a.Kept()
	none := g.asOther(t, `{"name":"none","no_store":true}`)
	none.post(t, "/responses", `{"model":"a/small","store":true,"input":"Hi"}`).want(t, 200)
	none.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, id)).want(t, 400, noPrevious)
	none.post(t, "/responses", `{"model":"a/small","background":true,"input":"Hi"}`).want(t, 400)
	if a.Kept() != kept || !strings.Contains(last(t, a).Body, `"store":false`) {
		t.Errorf("got upstream %s", last(t, a).Body)
	}
}

// TestStateUpstreamAffinity has a request go where what it goes on from is,
// whatever else its model stands for.
func TestStateUpstreamAffinity(t *testing.T) {
	t.Parallel()
	g, a, b := keeping(t)
	atB := g.respondID(t, `{"model":"b/small","input":"Hi"}`)
	next := g.respondID(t, fmt.Sprintf(`{"model":"either","previous_response_id":%q,"input":"And?"}`, atB))
	if r := find(t, b, "And?", func(upstream.Request) bool { return true }); !strings.Contains(r.Body, atB) || !strings.HasPrefix(next, "resp_1") {
		t.Errorf("%s went on as %s", r.Body, next)
	}
	g.object(t, http.MethodGet, "/responses/"+next).want(t, 200, `"id":"`+next+`"`)
	for _, model := range []string{"a/small", "mixed", "here/small"} {
		g.post(t, "/responses", fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"input":"Hi"}`, model, next)).
			want(t, 400, noPrevious, "is kept by the provider 'b'", "send the whole history in 'input'")
	}

	// What began at a goes on there behind a name whose first target keeps nothing.
	atA := g.respondID(t, `{"model":"either","input":"At a"}`)
	if find(t, a, "At a", func(upstream.Request) bool { return true }).ID == 0 {
		t.Error("the first target was not asked")
	}
	onA := g.respondID(t, fmt.Sprintf(`{"model":"mixed","previous_response_id":%q,"input":"Hi"}`, atA))
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, onA))

	// What began here goes on here, also over a provider that keeps.
	here := g.respondID(t, `{"model":"here/small","input":"Begun here"}`)
	on := g.respondID(t, fmt.Sprintf(`{"model":"b/small","previous_response_id":%q,"input":"Hi"}`, here))
	if body := last(t, b).Body; !strings.Contains(body, "Begun here") || !strings.Contains(body, `"store":false`) {
		t.Errorf("got upstream %s", body)
	}
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, on))

	// Conversations are kept here.
	made := g.post(t, "/conversations", `{}`)
	var conversation struct{ ID string }
	json.Unmarshal([]byte(made.body), &conversation)
	kept := a.Kept()
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","conversation":%q,"input":"My name is Ada"}`, conversation.ID))
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","conversation":%q,"input":"Hi"}`, conversation.ID))
	if body := last(t, a).Body; !strings.Contains(body, "Ada") || a.Kept() != kept {
		t.Errorf("got upstream %s", body)
	}
	g.post(t, "/responses", fmt.Sprintf(`{"model":"a/small","conversation":%q,"previous_response_id":%q,"input":"Hi"}`, conversation.ID, atA)).want(t, 400, "mutually_exclusive_parameters")
	g.post(t, "/responses/compact", fmt.Sprintf(`{"model":"a/small","previous_response_id":%q}`, atA)).want(t, 400, "'previous_response_id'", "send the whole history in 'input'")
}

// TestStateUpstreamExpired has an upstream that does not have any more what
// clients know of.
func TestStateUpstreamExpired(t *testing.T) {
	t.Parallel()
	g, a, _ := keeping(t)
	id := g.respondID(t, `{"model":"a/small","input":"Hi"}`)
	body := fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":%%q}`, id)
	g.post(t, "/responses", fmt.Sprintf(body, "[[fault:status-404]]")).want(t, 502, "upstream_error") // of the model
	a.Forget(id)
	g.post(t, "/responses", fmt.Sprintf(body, "Hi")).want(t, 400, noPrevious, `"param":"previous_response_id"`)
	for _, path := range []string{"", "/input_items", "?stream=true"} {
		g.object(t, http.MethodGet, "/responses/"+id+path).want(t, 404, "Response with id '"+id+"' not found.")
	}
	g.object(t, http.MethodDelete, "/responses/"+id).want(t, 404, "Response with id '"+id+"' not found.")
	n := len(a.Requests())
	g.object(t, http.MethodDelete, "/responses/"+id).want(t, 404, "Response with id '"+id+"' not found.")
	if len(a.Requests()) != n {
		t.Error("the upstream was asked for what is gone")
	}

	// As vLLM says it.
	vllm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch known := strings.Contains(string(body), "resp_v"); {
		case known && strings.HasSuffix(r.URL.Path, "/input_tokens"):
			io.WriteString(w, `{"object":"response.input_tokens","input_tokens":7}`)
			return
		case known:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error":{"message":"Response with id 'resp_v' not found.","type":"invalid_request_error","param":"response_id","code":404}}`)
			return
		}
		io.WriteString(w, `{"id":"resp_v","object":"response","status":"completed","model":"small","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	}))
	defer vllm.Close()
	g = start(t, fmt.Sprintf("providers:\n  v: {base_url: %q, models: [small], speaks: [openai-responses], state: upstream}\n", vllm.URL))
	g.respondID(t, `{"model":"v/small","input":"Hi"}`)
	g.post(t, "/responses", `{"model":"v/small","previous_response_id":"resp_v","input":"Hi"}`).want(t, 400, noPrevious, "Previous response with id 'resp_v' not found.")

	// Tokens are counted with what came before.
	g.post(t, "/responses/input_tokens", `{"model":"v/small","previous_response_id":"resp_v","input":"Hi"}`).want(t, 200, `"input_tokens":7`)
}

// TestStateUpstreamBackground has responses that the upstream makes while
// nobody waits.
func TestStateUpstreamBackground(t *testing.T) {
	t.Parallel()
	g, a, _ := keeping(t)
	first := g.post(t, "/responses", `{"model":"either","background":true,"input":"Hi"}`)
	first.want(t, 200, `"status":"queued"`, `"background":true`)
	var r storedResponse
	json.Unmarshal([]byte(first.body), &r)
	if !strings.Contains(last(t, a).Body, `"background":true`) {
		t.Errorf("got upstream %s", last(t, a).Body)
	}
	if rec := g.record(t, first.id()); rec.Total != 0 || rec.Model != "either" {
		t.Errorf("of a response that has yet to be made: %+v", rec)
	}
	g.object(t, http.MethodGet, "/responses/"+r.ID).want(t, 200, `"status":"in_progress"`)
	over := g.object(t, http.MethodGet, "/responses/"+r.ID)
	over.want(t, 200, `"status":"completed"`, "Hello from small.")
	g.object(t, http.MethodGet, "/responses/"+r.ID).want(t, 200, `"status":"completed"`)

	// What it used is in the usage once.
	if rec := g.record(t, over.id()); rec.Total == 0 || rec.Estimated || rec.Model != "either" || rec.Provider != "a" || rec.UpstreamModel != "small" {
		t.Errorf("%+v", rec)
	}
	if n := len(g.records(t)); n != 2 {
		t.Errorf("got %d records, want 2: %+v", n, g.records(t))
	}

	// A cancel reaches it.
	held := g.respondID(t, `{"model":"a/small","background":true,"input":"[[hold]]"}`)
	for range 2 {
		g.post(t, "/responses/"+held+"/cancel", "").want(t, 200, `"id":"`+held+`"`, `"status":"cancelled"`)
	}
	g.object(t, http.MethodGet, "/responses/"+held).want(t, 200, `"status":"cancelled"`)

	// A stream that its client left is taken up where it was.
	stream, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(`{"model":"a/small","background":true,"stream":true,"input":"[[fault:stall 5]] Hi"}`)))
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4096)
	n, _ := stream.Body.Read(head)
	stream.Body.Close()
	_, after, _ := strings.Cut(string(head[:n]), `"id":"`)
	id, _, _ := strings.Cut(after, `"`)
	left := g.object(t, http.MethodGet, "/responses/"+id+"?stream=true&starting_after=3")
	left.want(t, 200, `"sequence_number":4`, `"type":"response.completed"`, "data: [DONE]")
	if strings.Contains(left.body, `"sequence_number":3,`) || !strings.HasPrefix(left.header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%s", left.body)
	}
	if rec := g.record(t, left.id()); rec.Total == 0 || rec.Estimated || rec.Model != "a/small" {
		t.Errorf("%+v", rec)
	}
	if rec := g.record(t, stream.Header.Get("X-Request-Id")); rec.Total != 0 {
		t.Errorf("of a response whose client left: %+v", rec)
	}
	whole := g.post(t, "/responses", `{"model":"a/small","background":true,"stream":true,"input":"Hi"}`)
	whole.want(t, 200, `"type":"response.completed"`)
	if rec := g.record(t, whole.id()); rec.Total == 0 || rec.Estimated {
		t.Errorf("%+v", rec)
	}
}

// TestStateUpstreamSocket goes on over a socket as over HTTP.
func TestStateUpstreamSocket(t *testing.T) {
	t.Parallel()
	g, a, _ := keeping(t)
	s := g.socket(t, g.withKey())
	first := s.turn(`{"type":"response.create","model":"a/small","input":"Hi"}`)
	second := s.turn(fmt.Sprintf(`{"type":"response.create","model":"a/small","previous_response_id":%q,"input":"And?"}`, first.Response.ID))
	if body := last(t, a).Body; second.Response.Previous != first.Response.ID || !strings.Contains(body, `"previous_response_id":"`+first.Response.ID+`"`) {
		t.Errorf("%+v, and upstream %s", second, body)
	}
	g.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, second.Response.ID))
	other := g.respondID(t, fmt.Sprintf(`{"model":"a/small","previous_response_id":%q,"input":"Hi"}`, first.Response.ID))
	if third := s.turn(fmt.Sprintf(`{"type":"response.create","model":"either","previous_response_id":%q,"input":"And?"}`, other)); third.Type != "response.completed" {
		t.Errorf("%+v", third)
	}
	if e := s.turn(fmt.Sprintf(`{"type":"response.create","model":"a/small","generate":false,"previous_response_id":%q,"input":"x"}`, other)); !strings.Contains(e.Error.Message, "'generate'") {
		t.Errorf("%+v", e)
	}

	// What is not stored is remembered by the socket, as elsewhere.
	loose := s.turn(`{"type":"response.create","model":"a/small","store":false,"input":"My name is Ada"}`)
	s.turn(fmt.Sprintf(`{"type":"response.create","model":"a/small","store":false,"previous_response_id":%q,"input":"Hi"}`, loose.Response.ID))
	if body := last(t, a).Body; !strings.Contains(body, "Ada") {
		t.Errorf("got upstream %s", body)
	}
}
