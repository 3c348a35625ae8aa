package probe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// examine makes all checks of a base URL, or those of a client.
func examine(t *testing.T, base, key, model, client string) map[string]Result {
	t.Helper()
	target := Target{Base: base, Key: key, Model: model, Client: NewClient()}
	t.Cleanup(target.Client.CloseIdleConnections)
	results := map[string]Result{}
	report := Reporter{Done: func(r Result) {
		if _, twice := results[r.Check]; twice {
			t.Errorf("the check %q was reported twice", r.Check)
		}
		results[r.Check] = r
	}}
	if client == "" {
		target.Run(t.Context(), report)
		return results
	}
	c, err := ClientNamed(client)
	if err != nil {
		t.Fatal(err)
	}
	target.RunClient(t.Context(), c, report)
	return results
}

func TestAGoodServerPasses(t *testing.T) {
	s, _ := newServer(t, nil)
	results := examine(t, s.URL+"/v1", secret, "", "")
	if len(results) != 19 {
		t.Errorf("%d results, want 19", len(results))
	}
	for _, r := range results {
		if r.Status != Pass {
			t.Errorf("%s: %s: %s", r.Check, r.Status, r.Detail)
		}
	}
}

// TestBrokenServers spoils the answers of a good server in one way each. The
// check must fail, say why, and name who breaks.
func TestBrokenServers(t *testing.T) {
	broken := func(r *reply) bool { r.cut = true; return true }
	cut := func(request, from string) spoiler {
		return func(r *reply) bool {
			at := strings.Index(r.body, from)
			if !strings.HasPrefix(r.request, request) || at < 0 {
				return false
			}
			r.body = r.body[:at]
			return broken(r)
		}
	}
	for _, c := range []struct {
		name   string
		spoil  spoiler
		check  string
		why    string
		change string
		breaks string // "" is none
	}{
		{"models as text", withHeader("models", "Content-Type", "text/plain"), "list models", "its content type says otherwise", "Content-Type: application/json", "openai-go"},
		{"no models", replace("models", `{"id":"m","object":"model","created":1,"owned_by":"o"}`, ""), "list models", "no model is visible to this key", "--model", ""},
		{"another model", replace("one model", `"id":"m","object":"model","created":1,"owned_by":"o"}`, `"id":"x"}`), "retrieve a model", `asked for m, got "x"`, "the model that was asked for", ""},

		{"chat: a failure", answering("chat", 500, "application/json", `{"error":{"message":"Out of memory.","type":"server_error","param":null,"code":null}}`), "chat", "HTTP 500: Out of memory.", "the server's log for req_1", ""},
		{"chat: a plain failure", answering("chat", 500, "text/plain", `boom`), "chat", "no error in OpenAI's shape", `"message"`, ""},
		{"chat: a page", answering("chat", 200, "text/html", `<html>Sign in</html>`), "chat", "a web page instead of JSON", "proxy", ""},
		{"chat: an error as success", answering("chat", 200, "application/json", `{"error":{"message":"No."}}`), "chat", "HTTP 200 with an error", "status of 400 or more", "openai-js"},
		{"chat: no JSON", replace("chat", `{"id":"chatcmpl-1","object":"chat.completion",`, ``), "chat", "no JSON", "one JSON object", ""},
		{"chat: no choices", replace("chat", `"choices":[{"index":0,"message":{"role":"assistant","content":"pong","refusal":null},"logprobs":null,"finish_reason":"stop"}]`, `"choices":[]`), "chat", "no choice", "'choices'", ""},
		{"chat: a word of its own", replace("chat", `"finish_reason":"stop"}],`, `"finish_reason":"eos"}],`), "chat", "finish_reason is none of stop", "vendor's own word", "pydantic-ai"},
		{"chat: no finish", replace("chat", `"finish_reason":"stop"}],`, `"finish_reason":null}],`), "chat", "no finish_reason", "end of every choice", "opencode"},
		{"chat: no usage", replace("chat", `,"usage":{`, `,"use":{`), "chat", "no usage came", "usage", ""},
		{"chat: a time with a fraction", replace("chat", `"created":1`, `"created":1.5`), "chat", "'created' is no integer", "whole seconds", "pydantic-ai"},

		{"stream: JSON", answering("chat stream", 200, "application/json", goodChat), "chat, streamed", "answered with plain JSON", "event stream whenever 'stream' is true", "langchain"},
		{"stream: nothing", answering("chat stream", 200, "text/event-stream", ""), "chat, streamed", "no events", "as they come", ""},
		{"stream: no role", replace("chat stream", `"role":"assistant",`, ""), "chat, streamed", "no delta has a role", "with the first delta", "openai-js"},
		{"stream: no finish", replace("chat stream", chunkStop, ""), "chat, streamed", "no finish_reason", "end of every choice", "opencode"},
		{"stream: no DONE", replace("chat stream", done, ""), "chat, streamed", "does not end with [DONE]", "data: [DONE]", ""},
		{"stream: no usage", replace("chat stream", chunkUsage, ""), "chat, streamed", "no usage came", "include_usage", ""},
		{"stream: usage without choices", replace("chat stream", `"choices":[],"usage"`, `"usage"`), "chat, streamed", "has no 'choices'", "'choices': []", "openai-js"},
		{"stream: usage with each", replace("chat stream", `"model":"m",`, `"model":"m","usage":{"prompt_tokens":1},`), "chat, streamed", "running totals", "once", "openai-go"},
		{"stream: ids", replace("chat stream", chunkUsage, strings.Replace(chunkUsage, "chatcmpl-1", "chatcmpl-2", 1)), "chat, streamed", "different ids", "same id", "openai-go"},
		{"stream: error null", replace("chat stream", `"model":"m",`, `"model":"m","error":null,`), "chat, streamed", "'error': null", "leave 'error' out", "openai-go"},
		{"stream: an error", replace("chat stream", chunkStop, `data: {"error":{"message":"The upstream is gone."}}`+"\n\n"), "chat, streamed", "ends in an error: The upstream is gone.", "the message", ""},
		{"stream: no JSON", replace("chat stream", chunkText, "data: pong\n\n"), "chat, streamed", "an event is no JSON", "one JSON object", ""},
		{"stream: cut", cut("chat stream", chunkStop), "chat, streamed", "the stream broke off", "time limits", ""},
		{"stream: cut at once", cut("chat stream", chunkRole), "chat, streamed", "the stream broke off", "time limits", ""},

		{"tools: no index", replace("chat tool", `"tool_calls":[{"index":0,`, `"tool_calls":[{`), "chat, tool call", "no index", "'index' with every fragment", "opencode"},
		{"tools: no id", replace("chat tool", `"id":"call_1",`, ``), "chat, tool call", "no id", "given back by it", ""},
		{"tools: no type", replace("chat tool", `"type":"function",`, ``), "chat, tool call", "no type", "'type': 'function'", "openai-js"},
		{"tools: an object", replace("chat tool", `"arguments":"{\"city\":\"Oslo\"}"`, `"arguments":{"city":"Oslo"}`), "chat, tool call", "are an object", "a string that holds JSON", "cline"},
		{"tools: half", replace("chat tool", `{\"city\":\"Oslo\"}`, `{\"city\":`), "chat, tool call", "are no JSON", "limit of output tokens", ""},
		{"tools: the name again", replace("chat tool", `"function":{"arguments":"{`, `"function":{"name":"weather","arguments":"{`), "chat, tool call", "comes again", "first fragment only", "openai-go"},
		{"tools: another name", replace("chat tool", `"name":"weather"`, `"name":"functions.weather"`), "chat, tool call", "by another name", "as the client sent them", ""},
		{"schema: another answer", replace("chat schema", `\"city\"`, `\"town\"`), "chat, structured output", "not what the schema asks for", "hold the model to the schema", "vercel-ai"},

		{"responses: failed", replace("response", `"status":"completed","previous_response_id":null`, `"error":{"message":"Broken."},"status":"failed"`), "responses", "the response is failed: Broken.", "HTTP status", ""},
		{"responses: another object", replace("response", `"object":"response"`, `"object":"chat.completion"`), "responses", "no response", "a response object", ""},
		{"responses: no annotations", replace("response", `,"annotations":[]`, ``), "responses", "no annotations", "'annotations': []", "langchain"},
		{"responses: no usage", replace("response", respUsed, `"usage":null`), "responses", "no usage", "asks again", "opencode"},
		{"responses: empty details", replace("response", `"input_tokens_details":{"cached_tokens":0}`, `"input_tokens_details":{}`), "responses", "an empty object", "or null", "codex"},
		{"responses: half a usage", replace("response", `"total_tokens":2`, `"sum":2`), "responses", "usage lacks", "all three", "codex"},
		{"responses: no output", replace("response", `"output":[`+respMessage+`]`, `"output":[]`), "responses", "no output", "repeat all items", "openai-js"},

		{"events: no created", replace("response stream", `"type":"response.created"`, `"type":"response.in_progress"`), "responses, streamed", "does not begin with response.created", "first", "openai-js"},
		{"events: no completed", replace("response stream", `"type":"response.completed"`, `"type":"response.in_progress"`), "responses, streamed", "without response.completed", "error event", "codex"},
		{"events: no usage", replace("response stream", respUsed, `"usage":null`), "responses, streamed", "no usage", "asks again", "opencode"},
		{"events: not added", replace("response stream", `"type":"response.output_item.added"`, `"type":"response.x"`), "responses, streamed", "no response.output_item.added", "before anything else", "vercel-ai"},
		{"events: not done", replace("response stream", `"type":"response.output_item.done"`, `"type":"response.x"`), "responses, streamed", "no response.output_item.done", "whole item", "codex"},
		{"events: no delta", replace("response stream", `"type":"response.output_text.delta"`, `"type":"response.x"`), "responses, streamed", "did not come as response.output_text.delta", "at least one delta", "opencode"},
		{"events: no item_id", replace("response stream", `"item_id":"msg_1",`, ``), "responses, streamed", "no item_id", "with every event", "opencode"},
		{"events: another id", replace("response stream", `"item_id":"msg_1"`, `"item_id":"msg_2"`), "responses, streamed", "not the same in all events", "the same id", "openai-js"},
		{"events: no index", replace("response stream", `"output_index":0,`, ``), "responses, streamed", "no output_index", "counted from 0", "opencode"},
		{"events: no numbers", replace("response stream", `"sequence_number":3,`, ``), "responses, streamed", "no sequence_number", "from 0", "openai-python"},
		{"events: an error", replace("response stream", `{"type":"response.output_item.done"`, `{"type":"error","message":"Gone.","was":"x"`), "responses, streamed", "ends in an error: Gone.", "the message", ""},
		{"events: cut", cut("response stream", `data: {"type":"response.completed"`), "responses, streamed", "the stream broke off", "time limits", ""},
		{"events: a call without id", replace("response tool", `"id":"fc_1",`, ``), "responses, tool call", "no id", "with every item", "vercel-ai"},
		{"events: a call without call_id", replace("response tool", `"call_id":"call_1",`, ``), "responses, tool call", "no call_id", "given back by it", ""},

		{"state: ignored", answering("lost response", 200, "application/json", goodResp), "responses, continued", "an unknown previous_response_id is ignored", "keep responses, or refuse", "openai-agents"},
		{"state: a crash", answering("lost response", 500, "text/plain", "boom"), "responses, continued", "answered with HTTP 500", "previous_response_not_found", ""},
		{"state: not named", replace("next response", `"previous_response_id":"resp_1"`, `"previous_response_id":null`), "responses, continued", "does not name the one it goes on from", "send previous_response_id back", ""},
		{"socket: binary", withHeader("socket", "kind", "binary"), "responses, by WebSocket", "binary messages", "text message", "codex"},
		{"socket: closed", func(r *reply) bool {
			if r.request != "socket" {
				return false
			}
			r.body, _, _ = strings.Cut(r.body, "\n")
			return broken(r)
		}, "responses, by WebSocket", "closed before the response ended", "keep the socket open", "codex"},
		{"socket: a crash", func(r *reply) bool {
			if r.request == "socket" {
				r.status, r.body = 500, ""
			}
			return r.request == "socket"
		}, "responses, by WebSocket", "HTTP 500", "HTTP 426", "codex"},
		{"socket: no usage", replace("socket", respUsed, `"usage":null`), "responses, by WebSocket", "no usage", "asks again", "opencode"},

		{"wrong key: 400", answering("error invalid_api_key", 400, "application/json", `{"error":{"message":"No."}}`), "wrong key is refused", "HTTP 400 instead of 401", "from the status", "openai-js"},
		{"wrong key: detail", answering("error invalid_api_key", 401, "application/json", `{"detail":"No."}`), "wrong key is refused", "not in OpenAI's shape", `"message"`, "openai-go"},
		{"wrong key: text", answering("error invalid_api_key", 401, "application/json", `{"error":"No."}`), "wrong key is refused", "a text, not an object", `"message"`, "openai-go"},
		{"wrong key: page", answering("error invalid_api_key", 401, "text/html", `<!DOCTYPE html><title>No</title>`), "wrong key is refused", "the error is a web page", "with JSON", "langchain"},
		{"unknown model: 500", answering("error model_not_found", 500, "application/json", `{"error":{"message":"No."}}`), "unknown model is refused", "HTTP 500 instead of 404", "Codex asks 30 times", "codex"},
		{"unknown model: plain", withHeader("error model_not_found", "Content-Type", "text/plain"), "unknown model is refused", "content type is not application/json", "with errors too", ""},
		{"broken JSON: fine", answering("error invalid_json", 200, "application/json", goodChat), "broken JSON is refused", "HTTP 200", "HTTP 400", ""},
		{"broken JSON: 502", answering("error invalid_json", 502, "application/json", `{"error":{"message":"No."}}`), "broken JSON is refused", "HTTP 502 instead of 400", "below 500", "codex"},

		{"framing: text/plain", withHeader("chat stream", "Content-Type", "text/plain"), "event streams", "not text/event-stream", "text/event-stream", "qwen-code"},
		{"framing: length", func(r *reply) bool {
			if r.request != "chat stream" {
				return false
			}
			r.header["Content-Length"] = strconv.Itoa(len(r.body))
			return true
		}, "event streams", "has a Content-Length", "without Content-Length", ""},
		{"framing: unended", replace("chat stream", done, "data: [DONE]"), "event streams", "not ended by an empty line", "the last one too", "openai-python"},
		{"framing: pings", replace("chat stream", chunkText, "event: ping\n\n"+chunkText), "event streams", "an event without data", ": keepalive", "openai-js"},
		{"framing: empty data", replace("chat stream", chunkText, "data: \n\n"+chunkText), "event streams", "an event without data", ": keepalive", "vercel-ai"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, spoiled := newServer(t, c.spoil)
			got, ok := examine(t, s.URL+"/v1", secret, "", "")[c.check]
			switch {
			case spoiled.Load() == 0:
				t.Fatal("nothing was spoiled")
			case !ok || got.Status != Fail:
				t.Fatalf("%s: got %+v, want it to fail", c.check, got)
			case !strings.Contains(got.Detail, c.why):
				t.Errorf("why: got %q, want %q", got.Detail, c.why)
			case !strings.Contains(got.Change, c.change):
				t.Errorf("what to change: got %q, want %q", got.Change, c.change)
			case c.breaks != "" && !slices.Contains(got.Clients, c.breaks):
				t.Errorf("who breaks: got %q, want %q among them", got.Clients, c.breaks)
			}
		})
	}
}

// TestWhatIsAbsent has servers that lack something and are right otherwise.
func TestWhatIsAbsent(t *testing.T) {
	const unknown = `{"error":{"message":"Invalid URL","type":"invalid_request_error","param":null,"code":null}}`
	for _, c := range []struct {
		name    string
		spoil   spoiler
		check   string
		status  string
		why     string
		clients string
	}{
		{"no responses", answering("response", 404, "application/json", unknown), "responses", Absent, "no POST /responses (HTTP 404)", "codex"},
		{"no responses: the rest", answering("response", 404, "application/json", unknown), "responses, streamed", Skip, "there is no responses", ""},
		{"an upstream's lack", answering("response", 400, "application/json", `{"error":{"message":"This model has no Responses.","code":"unsupported_by_upstream"}}`), "responses", Absent, "This model has no Responses.", "codex"},
		{"no one model", answering("one model", 404, "application/json", unknown), "retrieve a model", Absent, "", ""},
		{"no tools", answering("chat tool", 400, "application/json", `{"error":{"message":"m does not support tools"}}`), "chat, tool call", Absent, "m does not support tools", "cline"},
		{"a model of words", replace("chat tool", goodToolCall, goodStream), "chat, tool call", Skip, "answered in words", ""},
		{"a model of words: no result", replace("chat tool", goodToolCall, goodStream), "chat, tool result", Skip, "no result to give back", ""},
		{"no schemas", answering("chat schema", 400, "application/json", `{"error":{"message":"no response_format"}}`), "chat, structured output", Absent, "no response_format", "vercel-ai"},
		{"schemas ignored", replace("chat schema", `{\"city\":\"Oslo\"}`, "It is Oslo."), "chat, structured output", Absent, "It is Oslo.", "langchain"},
		{"no state", answering("next response", 400, "application/json", `{"error":{"message":"previous_response_id is not supported"}}`), "responses, continued", Absent, "keeps no responses", "openai-agents"},
		{"no socket", answering("socket", 426, "application/json", unknown), "responses, by WebSocket", Absent, "HTTP 426: clients go on over HTTP at once", "codex"},
		{"no socket, said badly", answering("socket", 404, "application/json", unknown), "responses, by WebSocket", Absent, "Codex tries seven times", "codex"},
		{"any key", answering("error invalid_api_key", 200, "application/json", goodChat), "wrong key is refused", Absent, "takes any key", ""},
		{"any model", answering("error model_not_found", 200, "application/json", goodChat), "unknown model is refused", Absent, "any model name", ""},
		{"no request IDs", withHeader("", "X-Request-Id", ""), "request IDs", Absent, "for example that of GET /models", "openai-js"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newServer(t, c.spoil)
			results := examine(t, s.URL+"/v1", secret, "", "")
			got := results[c.check]
			if got.Status != c.status || !strings.Contains(got.Detail, c.why) {
				t.Errorf("%s: got %+v, want %s: %s", c.check, got, c.status, c.why)
			}
			if c.clients != "" && !slices.ContainsFunc(got.Clients, func(name string) bool { return strings.HasPrefix(name, c.clients) }) {
				t.Errorf("clients: got %q, want %q among them", got.Clients, c.clients)
			}
			for _, r := range results {
				if r.Status == Fail {
					t.Errorf("%s fails: %s", r.Check, r.Detail)
				}
			}
		})
	}
}

func TestAServerThatDoesNotClose(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send(w, reply{status: 200, header: map[string]string{"Content-Type": "text/event-stream"}, body: goodStream})
		waitForEnd(r)
	}))
	defer s.Close()
	v := newVisit(&Target{Base: s.URL, Model: "m", Client: NewClient()}, Reporter{})
	found, err := v.chatStream(t.Context())
	if err != nil || len(found.faults) > 0 {
		t.Errorf("the chat: got %v, %v; clients stop at [DONE]", found.faults, err)
	}
	if found, _ := v.eventStreams(t.Context()); !slices.Contains(found.faults, streamOpen) {
		t.Errorf("got %v, want %v", found.faults, streamOpen)
	}
}

// waitForEnd returns when the client is gone, which the server sees once the
// body is read.
func waitForEnd(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestReadsAreBounded(t *testing.T) {
	endless := func(media, piece string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			for {
				if _, err := w.Write([]byte(piece)); err != nil {
					return
				}
			}
		}))
	}
	for _, c := range []struct{ name, media, piece string }{
		{"a body", "application/json", strings.Repeat(" ", 1<<20)},
		{"a frame", "text/event-stream", strings.Repeat("data: x", 1<<14)},
		{"frames", "text/event-stream", strings.Repeat("data: "+strings.Repeat("x", 1<<14)+"\n\n", 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := endless(c.media, c.piece)
			defer s.Close()
			v := newVisit(&Target{Base: s.URL, Model: "m", Client: NewClient()}, Reporter{})
			a, err := v.post(t.Context(), chatPath, chatStreamBody)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.body) > maxBody {
				t.Errorf("%d bytes were read", len(a.body))
			}
		})
	}
}

func TestATimeLimit(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { waitForEnd(r) }))
	defer s.Close()
	client := NewClient()
	if client.Timeout != timeout {
		t.Errorf("timeout: got %v", client.Timeout)
	}
	client.Timeout = 20 * time.Millisecond
	v := newVisit(&Target{Base: s.URL, Model: "m", Client: client}, Reporter{})
	_, err := v.chat(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not answer in time") {
		t.Errorf("got %v", err)
	}
}

func TestTheKeyIsNotShown(t *testing.T) {
	s, _ := newServer(t, answering("chat", 401, "application/json", `{"error":{"message":"Key `+secret+` is \u001b[31mbad\u001b[0m.\nSorry."}}`))
	for _, r := range examine(t, s.URL+"/v1", secret, "", "") {
		if text := r.Detail + r.Change; strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: %q", r.Check, text)
		}
	}
}
