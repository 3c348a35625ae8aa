package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// storedResponse is what is looked at of a response.
type storedResponse struct {
	ID, Status string
	Background bool
	Error      *struct{ Code, Message string }
	Output     []struct{ Content []struct{ Text string } }
}

func (g *gateway) response(t *testing.T, id string) (r storedResponse) {
	t.Helper()
	got := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/"+id, nil))
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// background begins a response in the background.
func (g *gateway) background(t *testing.T, model, prompt string) storedResponse {
	t.Helper()
	got := g.post(t, "/responses", fmt.Sprintf(`{"model":%q,"background":true,"input":%q}`, model, prompt))
	var r storedResponse
	if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != 200 {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	if r.Status != "queued" || !r.Background || !strings.HasPrefix(r.ID, "resp_") {
		t.Fatalf("%s", got.body)
	}
	return r
}

// over waits until a response is.
func (g *gateway) over(t *testing.T, id string) (r storedResponse) {
	t.Helper()
	eventually(t, "the response is over", func() bool {
		r = g.response(t, id)
		return r.Status != "queued" && r.Status != "in_progress"
	})
	return r
}

// TestBackground has responses that nobody waits for.
func TestBackground(t *testing.T) {
	t.Parallel()
	up := newUpstream(t, upstream.WithModels(upstreamModels...))
	g := start(t, everyDialectOf(up))
	for _, model := range overEvery {
		r := g.over(t, g.background(t, model, "Hi").ID)
		if r.Status != "completed" || len(r.Output) == 0 {
			t.Errorf("%s: %+v", model, r)
		}
		// It can be gone on from, and has its record.
		if got := g.post(t, "/responses", fmt.Sprintf(`{"model":%q,"previous_response_id":%q,"input":"And?"}`, model, r.ID)); got.status != 200 {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
		if rec := g.record(t, "req_"+strings.TrimPrefix(r.ID, "resp_")); rec.Status != 200 || rec.Total == 0 {
			t.Errorf("%s: %+v", model, rec)
		}
	}

	failed := g.over(t, g.background(t, "over-chat", "[[fault:status-500]]").ID)
	if failed.Status != "failed" || failed.Error == nil || failed.Error.Code != "server_error" || strings.Contains(failed.Error.Message, canary) {
		t.Errorf("%+v", failed)
	}
	cut := g.over(t, g.background(t, "over-responses", "[[fault:cut]]").ID)
	if cut.Status != "failed" || cut.Error == nil {
		t.Errorf("%+v", cut)
	}

	// A run that is cancelled stops upstream, stays cancelled, and is not gone on from.
	slow := g.background(t, "over-chat", "[[fault:stall]] cancelled")
	find(t, up, "cancelled", func(r upstream.Request) bool { return r.Frames > 0 })
	if got := g.post(t, "/responses", `{"model":"over-chat","previous_response_id":"`+slow.ID+`","input":"x"}`); got.status != 400 {
		t.Errorf("gone on from while it is made: %d %s", got.status, got.body)
	}
	for range 2 {
		got := g.post(t, "/responses/"+slow.ID+"/cancel", "")
		if got.status != 200 || !strings.Contains(got.body, `"status":"cancelled"`) {
			t.Errorf("cancel: %d %s", got.status, got.body)
		}
	}
	find(t, up, "cancelled", func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
	if r := g.response(t, slow.ID); r.Status != "cancelled" {
		t.Errorf("%+v", r)
	}

	// What was finished before it was cancelled is kept.
	stream, err := g.client.Do(g.request(t, t.Context(), http.MethodPost, "/responses", strings.NewReader(`{"model":"over-responses","background":true,"stream":true,"input":"[[fault:stall 8]] call2 f {}","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	id := ""
	lines := bufio.NewReader(stream.Body)
	for done := false; !done; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(line, `"response":{"id":"`); ok {
			id, _, _ = strings.Cut(rest, `"`)
		}
		done = strings.Contains(line, `"type":"response.output_item.done"`)
	}
	if got := g.post(t, "/responses/"+id+"/cancel", ""); got.status != 200 || !strings.Contains(got.body, `"status":"cancelled"`) || !strings.Contains(got.body, `"type":"function_call"`) {
		t.Errorf("%d %s", got.status, got.body)
	}

	// What cannot be: to cancel what was not in the background, to keep nothing of what is read later.
	foreground := g.post(t, "/responses", `{"model":"over-chat","input":"Hi"}`)
	var fg storedResponse
	json.Unmarshal([]byte(foreground.body), &fg)
	if got := g.post(t, "/responses/"+fg.ID+"/cancel", ""); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for body, want := range map[string]int{
		`{"model":"over-chat","background":true,"store":false,"input":"Hi"}`: 400,
		`{"model":"none","background":true,"input":"Hi"}`:                    404,
		`{"model":"over-chat","background":"yes","input":"Hi"}`:              400,
	} {
		if got := g.post(t, "/responses", body); got.status != want {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// TestBackgroundStream has clients that follow a response, leave it, and come
// back to where they were.
func TestBackgroundStream(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	got := g.post(t, "/responses", `{"model":"up/small","background":true,"stream":true,"input":"[[fault:slow 5]] Hi"}`)
	whole := frames(t, got.body)
	if got.status != 200 || whole[len(whole)-1].data != "[DONE]" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var first struct{ Response storedResponse }
	if err := json.Unmarshal([]byte(whole[0].data), &first); err != nil || !first.Response.Background {
		t.Fatalf("%v: %s", err, whole[0].data)
	}
	id := first.Response.ID
	for _, after := range []int{0, 3, len(whole) - 2} {
		again := g.do(t, g.request(t, t.Context(), http.MethodGet, fmt.Sprintf("/responses/%s?stream=true&starting_after=%d", id, after), nil))
		if want := whole[after+1:]; fmt.Sprint(frames(t, again.body)) != fmt.Sprint(want) {
			t.Errorf("after %d: got\n%s\nwant\n%v", after, again.body, want)
		}
	}
	if again := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/"+id+"?stream=true", nil)); again.body != got.body {
		t.Errorf("got\n%s\nwant\n%s", again.body, got.body)
	}
	// One that was not streamed can be had as a stream too.
	plain := g.over(t, g.background(t, "up/small", "Hi").ID)
	again := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/"+plain.ID+"?stream=true", nil))
	if outcome := observeStream(t, "/responses", again.body); outcome != "stream" {
		t.Errorf("%s: %s", outcome, again.body)
	}
	if bad := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/"+id+"?stream=true&starting_after=x", nil)); bad.status != 400 {
		t.Errorf("%d %s", bad.status, bad.body)
	}
	if none := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/resp_none?stream=true", nil)); none.status != 404 {
		t.Errorf("%d %s", none.status, none.body)
	}
}

// TestBackgroundKilled has a gateway that dies in the middle of a response.
func TestBackgroundKilled(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	data := t.TempDir()
	g := spawn(t, data, provider(up))
	key := g.key
	r := g.background(t, "up/small", "[[fault:stall]] killed")
	find(t, up, "killed", func(r upstream.Request) bool { return r.Frames > 0 })
	g.kill()
	g = spawn(t, data, provider(up))
	g.key = key
	if r := g.over(t, r.ID); r.Status != "failed" || r.Error == nil || !strings.Contains(r.Error.Message, "stopped") {
		t.Errorf("%+v", r)
	}
}

// TestBackgroundLimit has a key that begins more than it may.
func TestBackgroundLimit(t *testing.T) {
	t.Parallel()
	g := start(t, "timeouts: {drain: 1s}\n"+provider(newUpstream(t)))
	var ids []string
	for range 32 {
		ids = append(ids, g.background(t, "up/small", "[[fault:stall]]").ID)
	}
	if got := g.post(t, "/responses", `{"model":"up/small","background":true,"input":"Hi"}`); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := g.post(t, "/responses/"+ids[0]+"/cancel", ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	eventually(t, "there is room again", func() bool {
		return g.post(t, "/responses", `{"model":"up/small","background":true,"input":"Hi"}`).status == 200
	})
}
