package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

const secret = "sk-good-key-0123456789"

// reply is an answer of the server, before it is spoiled and sent.
type reply struct {
	request string // which question it answers
	status  int
	header  map[string]string
	body    string
	cut     bool // the connection breaks after the body
}

// spoiler makes an answer bad. It tells whether it was one that it is about.
type spoiler func(*reply) bool

// replace puts other bytes into the answers to some questions; "" is all.
func replace(request, old, new string) spoiler {
	return func(r *reply) bool {
		if !strings.HasPrefix(r.request, request) || !strings.Contains(r.body, old) {
			return false
		}
		r.body = strings.ReplaceAll(r.body, old, new)
		return true
	}
}

func withHeader(request, name, value string) spoiler {
	return func(r *reply) bool {
		if !strings.HasPrefix(r.request, request) {
			return false
		}
		r.header[name] = value
		return true
	}
}

func answering(request string, status int, media, body string) spoiler {
	return func(r *reply) bool {
		if !strings.HasPrefix(r.request, request) {
			return false
		}
		r.status, r.header["Content-Type"], r.body = status, media, body
		return true
	}
}

// The literal answers of a server that does all well.
const (
	goodModels   = `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"o"}]}`
	goodChat     = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"pong","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	goodSchema   = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{\"city\":\"Oslo\"}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	chunk        = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",`
	chunkRole    = chunk + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chunkText    = chunk + `"choices":[{"index":0,"delta":{"content":"pong"},"finish_reason":null}]}` + "\n\n"
	chunkStop    = chunk + `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chunkUsage   = chunk + `"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}` + "\n\n"
	done         = "data: [DONE]\n\n"
	goodStream   = chunkRole + chunkText + chunkStop + chunkUsage + done
	chunkCall    = chunk + `"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}` + "\n\n"
	chunkMore    = chunk + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":null}]}` + "\n\n"
	chunkCalled  = chunk + `"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	goodToolCall = chunkCall + chunkMore + chunkCalled + chunkUsage + done

	respUsed    = `"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}`
	respMessage = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"pong","annotations":[]}]}`
	respCall    = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Oslo\"}"}`
	goodResp    = `{"id":"resp_1","object":"response","status":"completed","previous_response_id":null,"output":[` + respMessage + `],` + respUsed + `}`
	goodNext    = `{"id":"resp_2","object":"response","status":"completed","previous_response_id":"resp_1","output":[` + respMessage + `],` + respUsed + `}`
	notFound    = `{"error":{"message":"Previous response not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`

	msgStart = "event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n"
	msgText  = "event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"pong"}}` + "\n\n"
	msgThought = "event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}` + "\n\n"
	msgCall = "event: content_block_start\n" + `data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"echo pong\"}"}}` + "\n\n"
	msgEnd = "event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + "\n\n" +
		"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"
)

// events frames the events of a response with one item.
func events(item, delta string, sse bool) string {
	all := []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":` + item + `}`,
	}
	if delta != "" {
		all = append(all, `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"`+delta+`"}`)
	}
	all = append(all,
		`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":`+item+`}`,
		`{"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","object":"response","status":"completed","output":[`+item+`],`+respUsed+`}}`)
	if !sse {
		return strings.Join(all, "\n")
	}
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// asked is what the server looks at of a request's body.
type asked struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Input    json.RawMessage   `json:"input"`
	Tools    []json.RawMessage `json:"tools"`
	Format   json.RawMessage   `json:"response_format"`
	Text     struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Previous string `json:"previous_response_id"`
}

// good is the answer to a request as it should be.
func good(r *http.Request, body []byte) reply {
	fail := func(status int, code string) reply {
		return reply{"error " + code, status, map[string]string{"Content-Type": "application/json"}, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":"` + code + `"}}`, false}
	}
	jsonReply := func(request, body string) reply {
		return reply{request, 200, map[string]string{"Content-Type": "application/json"}, body, false}
	}
	stream := func(request, body string) reply {
		return reply{request, 200, map[string]string{"Content-Type": "text/event-stream"}, body, false}
	}
	if key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); !strings.HasSuffix(key, secret) {
		return fail(401, "invalid_api_key")
	}
	var q asked
	if r.Method == http.MethodPost && json.Unmarshal(body, &q) != nil {
		return fail(400, "invalid_json")
	}
	if strings.HasPrefix(q.Model, "no-such") {
		return fail(404, "model_not_found")
	}
	given := bytes.Contains(body, []byte(`call_1"`)) || bytes.Contains(body, []byte(`toolu_1"`))
	switch r.URL.Path {
	case "/v1/models":
		return jsonReply("models", goodModels)
	case "/v1/models/m":
		return jsonReply("one model", `{"id":"m","object":"model","created":1,"owned_by":"o"}`)
	case "/v1/chat/completions":
		switch {
		case len(q.Messages) == 0:
			return fail(400, "missing_required_parameter")
		case len(q.Format) > 0:
			return jsonReply("chat schema", goodSchema)
		case !q.Stream:
			return jsonReply("chat", goodChat)
		case len(q.Tools) > 0 && !given:
			return stream("chat tool", goodToolCall)
		}
		return stream("chat stream", goodStream)
	case "/v1/responses":
		switch {
		case q.Previous == "resp_1":
			return jsonReply("next response", goodNext)
		case q.Previous != "":
			lost := fail(400, "")
			lost.request, lost.body = "lost response", notFound
			return lost
		case !q.Stream && len(q.Text.Format) > 0:
			return jsonReply("response", strings.ReplaceAll(goodResp, `"text":"pong"`, `"text":"{\"city\":\"Oslo\"}"`))
		case !q.Stream:
			return jsonReply("response", goodResp)
		case len(q.Tools) > 0 && !given:
			return stream("response tool", events(respCall, "", true))
		}
		return stream("response stream", events(respMessage, "pong", true))
	case "/v1/messages":
		if given {
			return stream("message", msgStart+msgText+msgEnd)
		}
		return stream("message tool", msgStart+msgThought+msgCall+msgEnd)
	}
	return fail(404, "not_found")
}

// newServer is a server whose answers are spoiled in one way. spoiled counts
// the answers that were.
func newServer(t *testing.T, spoil spoiler) (s *httptest.Server, spoiled *atomic.Int64) {
	t.Helper()
	spoiled = &atomic.Int64{}
	s = httptest.NewServer(handler(spoil, spoiled))
	t.Cleanup(s.Close)
	return s, spoiled
}

func handler(spoil spoiler, spoiled *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Upgrade") == "websocket" {
			answer := reply{request: "socket", status: 101, header: map[string]string{}, body: events(respMessage, "pong", false)}
			if spoil != nil && spoil(&answer) {
				spoiled.Add(1)
			}
			serveSocket(w, r, answer)
			return
		}
		answer := good(r, body)
		if spoil != nil && spoil(&answer) {
			spoiled.Add(1)
		}
		send(w, answer)
	})
}

func send(w http.ResponseWriter, r reply) {
	w.Header().Set("X-Request-Id", "req_1")
	for name, value := range r.header {
		w.Header().Set(name, value)
		if value == "" {
			w.Header().Del(name)
		}
	}
	w.WriteHeader(r.status)
	io.WriteString(w, r.body)
	http.NewResponseController(w).Flush()
	if r.cut {
		panic(http.ErrAbortHandler)
	}
}

func serveSocket(w http.ResponseWriter, r *http.Request, answer reply) {
	if answer.status != 101 {
		send(w, answer)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		if _, _, err := c.Read(r.Context()); err != nil {
			return
		}
		for event := range strings.SplitSeq(answer.body, "\n") {
			kind := websocket.MessageText
			if answer.header["kind"] == "binary" {
				kind = websocket.MessageBinary
			}
			if c.Write(r.Context(), kind, []byte(event)) != nil {
				return
			}
		}
		if answer.cut {
			return
		}
	}
}
