package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const paper = "data:application/pdf;base64,JVBERi0xLjEKJcKlwrHDqwoxIDAgb2JqPDwvVHlwZS9DYXRhbG9nPj5lbmRvYmoKdHJhaWxlcjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo="

const weatherTool = `{"type":"function","name":"get_weather","description":"Get the current weather for a location","parameters":{"type":"object","properties":{"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"}},"required":["location"]}}`

// single are the rows that make one request: its members besides the model, and
// the type of item that its output must have.
var single = []struct{ name, members, has string }{
	{"basic-response", `"input":[{"type":"message","role":"user","content":"Say hello in exactly 3 words."}]`, "message"},
	{"assistant-phase", `"input":[{"type":"message","role":"user","content":"Say hello."},{"type":"message","role":"assistant","phase":"commentary","content":"I will."},{"type":"message","role":"assistant","phase":"final_answer","content":"Hello."},{"type":"message","role":"user","content":"Again."}]`, "message"},
	{"system-prompt", `"input":[{"type":"message","role":"system","content":"You are a pirate. Always respond in pirate speak."},{"type":"message","role":"user","content":"Say hello."}]`, "message"},
	{"tool-calling", `"input":[{"type":"message","role":"user","content":"What's the weather like in San Francisco?"}],"tools":[` + weatherTool + `]`, "function_call"},
	{"image-input", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What do you see in this image? Answer in one sentence."},{"type":"input_image","image_url":"` + pixel + `"}]}]`, "message"},
	{"multi-turn", `"input":[{"type":"message","role":"user","content":"My name is Alice."},{"type":"message","role":"assistant","content":"Hello Alice! Nice to meet you. How can I help you today?"},{"type":"message","role":"user","content":"What is my name?"}]`, "message"},
	{"file-input", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is in this file?"},{"type":"input_file","filename":"paper.pdf","file_data":"` + paper + `"}]}]`, "message"},
	{"reasoning", `"input":"Think of a number.","reasoning":{"effort":"low","summary":"auto"}`, "message"},
}

// TestOpenResponses makes the requests of the public suite's table, and checks
// what comes as strictly: over HTTP, as a stream and over a socket.
func TestOpenResponses(t *testing.T) {
	t.Parallel()
	g := start(t, everyDialectOf(newUpstream(t, upstream.WithModels(upstreamModels...))))
	for _, model := range overEvery {
		for _, row := range single {
			if row.name == "reasoning" && model == "over-chat" {
				continue // what a chat tells is the chain itself, for which OpenAI has events that the suite does not know
			}
			t.Run(model+"/"+row.name, func(t *testing.T) {
				request := fmt.Sprintf(`{"model":%q,%s`, model, row.members)
				for way, end := range map[string]object{
					"plain":  g.plain(t, request+`}`),
					"stream": g.streamed(t, request+`,"stream":true}`),
					"socket": g.open(t).turn(t, `{"type":"response.create",`+request[1:]+`}`),
				} {
					if text(end["status"]) != "completed" || !hasItem(end, row.has) {
						t.Errorf("%s: %s, %s", way, end["status"], end["output"])
					}
					// What is kept is what was told.
					kept := g.kept(t, text(end["id"]))
					for name, v := range end {
						if !sameValue(kept[name], v) {
							t.Errorf("%s: its %s is %s, and was told to be %s", way, name, kept[name], v)
						}
					}
				}
			})
		}
		for name, row := range map[string]func(*testing.T, *gateway, string){
			"function-call-roundtrip": roundtrip, "previous-response-id": chained, "conversation": conversed, "background": backgrounded, "failure": broken,
			"compact-response": compacted, "compact-missing-model": compactedWithout,
			"websocket-sequential-responses": sequential, "websocket-continuation": continued,
			"websocket-reconnect-store-false-recovery": recovered, "websocket-previous-response-not-found": notFound,
			"websocket-failed-continuation-evicts-cache": evicted, "websocket-compact-new-chain": compactedChain,
		} {
			t.Run(model+"/"+name, func(t *testing.T) { row(t, g, model) })
		}
	}
}

// plain makes a request that is answered whole.
func (g *gateway) plain(t *testing.T, body string) object {
	t.Helper()
	got := g.post(t, "/responses", body)
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return checked(t, got.body)
}

// checked is a response that keeps to the schema.
func checked(t *testing.T, body string) object {
	t.Helper()
	var s strict
	r := s.response("response", json.RawMessage(body))
	for _, f := range s.faults {
		t.Error(f)
	}
	return r
}

// streamed makes a request that is answered by a stream.
func (g *gateway) streamed(t *testing.T, body string) object {
	t.Helper()
	got := g.post(t, "/responses", body)
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return eventsOf(t, got.body)
}

// eventsOf checks a stream and returns the response that ends it.
func eventsOf(t *testing.T, stream string) object {
	t.Helper()
	list := frames(t, stream)
	if len(list) == 0 || list[len(list)-1] != (event{"", "[DONE]"}) || strings.Contains(stream, "\r") || strings.Contains(stream, "\nid:") {
		t.Errorf("the framing of %.2000q", stream)
	}
	var q sequence
	for _, e := range list[:max(len(list)-1, 0)] {
		if !strings.HasPrefix(e.data, `{"type":"`+e.name+`"`) {
			var head struct{ Type string }
			if json.Unmarshal([]byte(e.data), &head); head.Type != e.name {
				t.Errorf("the event %s has the type %s", e.name, head.Type)
			}
		}
		q.event([]byte(e.data))
	}
	return q.report(t)
}

// kept reads a response.
func (g *gateway) kept(t *testing.T, id string) object {
	t.Helper()
	got := g.do(t, g.request(t, t.Context(), http.MethodGet, "/responses/"+id, nil))
	if got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
		return object{}
	}
	return checked(t, got.body)
}

// strictSocket is a socket whose events are checked.
type strictSocket struct{ *socket }

func (g *gateway) open(t *testing.T) strictSocket {
	t.Helper()
	return strictSocket{g.socket(t, g.withKey())}
}

// turn sends a request and checks the events of its answer. An error before any
// event is an end too: its object.
func (s strictSocket) turn(t *testing.T, message string) object {
	t.Helper()
	s.send(message)
	var q sequence
	for q.ended == "" {
		kind, data, err := s.conn.Read(s.ctx)
		if err != nil || kind != websocket.MessageText {
			t.Fatalf("%v, %v", kind, err)
		}
		var refused struct {
			Type   string
			Status int
			Error  json.RawMessage
		}
		if json.Unmarshal(data, &refused); q.n == 0 && refused.Type == "error" && refused.Status != 0 {
			var s strict
			e := s.object("error", refused.Error, map[string]string{"type": "string", "code": "string|null", "message": "string", "param": "string|null"})
			for _, f := range s.faults {
				t.Error(f)
			}
			return e
		}
		q.event(data)
		if q.n > 1000 {
			t.Fatal("there is no end")
		}
	}
	return q.report(t)
}

func hasItem(response object, kind string) bool { return item(response, kind) != nil }

// item is the first item of a type in a response's output.
func item(response object, kind string) object {
	var items []object
	json.Unmarshal(response["output"], &items)
	for _, it := range items {
		if text(it["type"]) == kind {
			return it
		}
	}
	return nil
}

func completed(t *testing.T, r object, words ...string) {
	t.Helper()
	if text(r["status"]) != "completed" || !hasItem(r, "message") {
		t.Errorf("%s, %s: %s %s", r["status"], r["output"], r["code"], r["message"])
	}
	for _, w := range words {
		if !strings.Contains(string(r["output"]), w) {
			t.Errorf("no %q in %s", w, r["output"])
		}
	}
}

// roundtrip has a call that is forced, and its result.
func roundtrip(t *testing.T, g *gateway, model string) {
	const ask = `[{"type":"message","role":"user","content":"What is the weather?"}`
	tools := fmt.Sprintf(`"tools":[%s],"model":%q`, weatherTool, model)
	forced := `,"tool_choice":{"type":"function","name":"get_weather"},"input":` + ask + `]`
	for _, first := range []object{g.plain(t, `{`+tools+forced+`}`), g.streamed(t, `{"stream":true,`+tools+forced+`}`)} {
		call := item(first, "function_call")
		if text(call["name"]) != "get_weather" {
			t.Fatalf("%s", first["output"])
		}
		output := fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":"72 and sunny"}`, call["call_id"])
		again, _ := json.Marshal(call)
		completed(t, g.plain(t, fmt.Sprintf(`{%s,"store":false,"input":%s,%s,%s]}`, tools, ask, again, output)), "72 and sunny")
		completed(t, g.streamed(t, fmt.Sprintf(`{%s,"stream":true,"previous_response_id":%s,"input":[%s]}`, tools, first["id"], output)), "72 and sunny")
	}
}

// chained goes on from what is stored.
func chained(t *testing.T, g *gateway, model string) {
	first := g.plain(t, fmt.Sprintf(`{"model":%q,"input":"My name is Alice.","instructions":"Be brief."}`, model))
	second := g.streamed(t, fmt.Sprintf(`{"model":%q,"stream":true,"previous_response_id":%s,"input":"What is my name?"}`, model, first["id"]))
	completed(t, second)
	if string(second["previous_response_id"]) != string(first["id"]) || kind(second["instructions"]) != "null" || string(second["store"]) != "true" {
		t.Errorf("after %s: previous is %s, instructions %s", first["id"], second["previous_response_id"], second["instructions"])
	}
}

// conversed is a turn in a conversation.
func conversed(t *testing.T, g *gateway, model string) {
	made := g.post(t, "/conversations", `{}`)
	var c object
	json.Unmarshal([]byte(made.body), &c)
	r := g.streamed(t, fmt.Sprintf(`{"model":%q,"stream":true,"conversation":{"id":%s},"input":"Hi"}`, model, c["id"]))
	completed(t, r)
	if want := fmt.Sprintf(`{"id":%s}`, c["id"]); !sameValue(r["conversation"], json.RawMessage(want)) {
		t.Errorf("its conversation is %s, want %s", r["conversation"], want)
	}
}

// backgrounded is a response that nobody waits for: each of its states keeps to
// the schema.
func backgrounded(t *testing.T, g *gateway, model string) {
	r := g.plain(t, fmt.Sprintf(`{"model":%q,"background":true,"input":"Hi"}`, model))
	if text(r["status"]) != "queued" {
		t.Errorf("it begins %s", r["status"])
	}
	eventually(t, "it is completed", func() bool {
		r = g.kept(t, text(r["id"]))
		return t.Failed() || text(r["status"]) == "completed"
	})
	completed(t, r)
	completed(t, g.streamed(t, fmt.Sprintf(`{"model":%q,"background":true,"stream":true,"input":"Hi"}`, model)))
	failed := g.plain(t, fmt.Sprintf(`{"model":%q,"background":true,"input":"[[fault:status-500]]"}`, model))
	eventually(t, "it failed", func() bool {
		failed = g.kept(t, text(failed["id"]))
		return t.Failed() || text(failed["status"]) == "failed"
	})
}

// broken is a stream that fails within.
func broken(t *testing.T, g *gateway, model string) {
	request := fmt.Sprintf(`"model":%q,"input":"[[fault:cut 3]]"`, model)
	for _, end := range []object{g.streamed(t, `{"stream":true,`+request+`}`), g.open(t).turn(t, `{"type":"response.create",`+request+`}`)} {
		if text(end["status"]) != "failed" {
			t.Errorf("%s", end["status"])
		}
	}
}

// compact compacts a conversation, and returns what stands for it.
func compact(t *testing.T, g *gateway, model string) []json.RawMessage {
	t.Helper()
	got := g.post(t, "/responses/compact", fmt.Sprintf(`{"model":%q,"prompt_cache_key":"k","input":[{"type":"message","role":"user","content":"My name is Alice."},{"type":"message","role":"assistant","content":"Hello Alice."}]}`, model))
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var s strict
	r := s.object("compaction", json.RawMessage(got.body), map[string]string{"id": "string", "object": "=response.compaction", "output": "array", "usage": "object", "created_at": "int"})
	s.usage("compaction", "completed", r["usage"])
	for _, f := range s.faults {
		t.Error(f)
	}
	if it := item(r, "compaction"); it == nil || text(it["id"]) == "" || text(it["encrypted_content"]) == "" {
		t.Errorf("%s", got.body)
	}
	var output []json.RawMessage
	json.Unmarshal(r["output"], &output)
	return output
}

func compacted(t *testing.T, g *gateway, model string) { compact(t, g, model) }

func compactedWithout(t *testing.T, g *gateway, _ string) {
	if got := g.post(t, "/responses/compact", `{"input":[{"type":"message","role":"user","content":"Hi"}]}`); got.status != 400 && got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// compactedChain begins a conversation with what stands for another.
func compactedChain(t *testing.T, g *gateway, model string) {
	var input strings.Builder
	for _, it := range compact(t, g, model) {
		fmt.Fprintf(&input, "%s,", it)
	}
	completed(t, g.open(t).turn(t, fmt.Sprintf(`{"type":"response.create","model":%q,"store":false,"tools":[],"input":[%s{"type":"message","role":"user","content":"What is my name?"}]}`, model, input.String())))
}

// loose is a message whose turn is not to be stored.
func loose(model, members string) string {
	return fmt.Sprintf(`{"type":"response.create","model":%q,"store":false,%s}`, model, members)
}

const hello = `"input":[{"type":"message","role":"user","content":"Say hello."}]`

func sequential(t *testing.T, g *gateway, model string) {
	s := g.open(t)
	first, second := s.turn(t, loose(model, hello)), s.turn(t, loose(model, hello))
	completed(t, first)
	completed(t, second)
	if text(first["id"]) == text(second["id"]) || string(first["store"]) != "false" {
		t.Errorf("%s and %s, stored: %s", first["id"], second["id"], first["store"])
	}
}

func continued(t *testing.T, g *gateway, model string) {
	s := g.open(t)
	first := s.turn(t, loose(model, hello))
	second := s.turn(t, loose(model, fmt.Sprintf(`"previous_response_id":%s,%s`, first["id"], hello)))
	completed(t, second)
	if string(second["previous_response_id"]) != string(first["id"]) {
		t.Errorf("previous is %s, want %s", second["previous_response_id"], first["id"])
	}
}

func recovered(t *testing.T, g *gateway, model string) {
	first := g.open(t).turn(t, loose(model, hello))
	s := g.open(t)
	if e := s.turn(t, loose(model, fmt.Sprintf(`"previous_response_id":%s,%s`, first["id"], hello))); text(e["code"]) != "previous_response_not_found" {
		t.Errorf("%s", e)
	}
	completed(t, s.turn(t, loose(model, hello)))
}

func notFound(t *testing.T, g *gateway, model string) {
	e := g.open(t).turn(t, loose(model, `"previous_response_id":"resp_nonexistent",`+hello))
	if text(e["code"]) != "previous_response_not_found" || text(e["param"]) != "previous_response_id" {
		t.Errorf("%s", e)
	}
}

func evicted(t *testing.T, g *gateway, model string) {
	s := g.open(t)
	first := s.turn(t, loose(model, hello))
	previous := fmt.Sprintf(`"previous_response_id":%s,`, first["id"])
	if e := s.turn(t, loose(model, previous+`"input":[{"type":"function_call_output","call_id":"call_nonexistent","output":"x"}]`)); text(e["message"]) == "" {
		t.Errorf("an unknown call: %s", e)
	}
	if e := s.turn(t, loose(model, previous+hello)); text(e["code"]) != "previous_response_not_found" {
		t.Errorf("after it: %s", e)
	}
	completed(t, s.turn(t, loose(model, hello)))
}
