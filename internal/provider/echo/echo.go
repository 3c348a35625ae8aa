// Package echo is a provider within the process: its one model says back what
// it was asked. With it a client's connection can be proven before any vendor
// is configured.
package echo

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/sse"
)

// Name is the provider's name, and that of its model.
const Name = "echo"

// BaseURL stands where other providers have an address.
const BaseURL = "http://echo.invalid/v1"

// Transport answers requests itself.
type Transport struct{}

var _ http.RoundTripper = Transport{}

// maxBody bounds what is read of a request; the gateway's own limit is lower.
const maxBody = 256 << 20

// RoundTrip implements http.RoundTripper.
func (Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return answer(r, "application/json", []byte(`{"object":"list","data":[]}`)), nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return refusal(r, err), nil
	}
	text := "echo: " + req.lastWords()
	in, out := count(string(body)), count(text)
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		return response(r, req, text, in, out), nil
	default:
		return completion(r, req, text, in, out), nil
	}
}

// request is what both dialects have of a question.
type request struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	Messages      []message       `json:"messages"`
	Input         json.RawMessage `json:"input"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// lastWords is the text of the user's last message.
func (r *request) lastWords() string {
	messages := r.Messages
	if len(r.Input) > 0 {
		if text, ok := plain(r.Input); ok {
			return text
		}
		if err := json.Unmarshal(r.Input, &messages); err != nil {
			return ""
		}
	}
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == "user" {
			if text, ok := plain(m.Content); ok {
				return text
			}
		}
	}
	return ""
}

// plain is the text of a content that is a string or a list of parts.
func plain(content json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, true
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "", false
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// count counts tokens as this model does: four bytes are one.
func count(text string) int { return (len(text) + 3) / 4 }

func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

func answer(r *http.Request, media string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {media}}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func refusal(r *http.Request, err error) *http.Response {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": err.Error(), "type": "invalid_request_error", "param": nil, "code": nil}})
	resp := answer(r, "application/json", body)
	resp.StatusCode = http.StatusBadRequest
	return resp
}

// pieces cuts a text at its spaces, for a stream that looks like one.
func pieces(text string) []string { return strings.SplitAfter(text, " ") }

func completion(r *http.Request, req request, text string, in, out int) *http.Response {
	head := fmt.Sprintf(`"id":%q,"created":%d,"model":%s`, newID("chatcmpl-"), time.Now().Unix(), quote(req.Model))
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, in, out, in+out)
	if !req.Stream {
		return answer(r, "application/json", fmt.Appendf(nil,
			`{%s,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":%s}`,
			head, quote(text), usage))
	}
	var stream []byte
	chunk := func(delta, finish string) {
		stream = sse.Append(stream, nil, fmt.Appendf(nil,
			`{%s,"object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`, head, delta, finish))
	}
	chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for _, piece := range pieces(text) {
		chunk(`{"content":`+quote(piece)+`}`, "null")
	}
	chunk(`{}`, `"stop"`)
	if req.StreamOptions.IncludeUsage {
		stream = sse.Append(stream, nil, fmt.Appendf(nil, `{%s,"object":"chat.completion.chunk","choices":[],"usage":%s}`, head, usage))
	}
	return answer(r, "text/event-stream", sse.Append(stream, nil, []byte("[DONE]")))
}

func response(r *http.Request, req request, text string, in, out int) *http.Response {
	now, id, item := time.Now().Unix(), newID("resp_"), newID("msg_")
	object := func(status, completed, output, usage string) string {
		return fmt.Sprintf(`{"id":%q,"object":"response","created_at":%d,"completed_at":%s,"status":%q,"model":%s,"error":null,"incomplete_details":null,`+
			`"instructions":null,"previous_response_id":null,"output":[%s],"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"temperature":1,"top_p":1,`+
			`"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"max_output_tokens":null,"max_tool_calls":null,"text":{"format":{"type":"text"}},`+
			`"reasoning":{"effort":null,"summary":null},"truncation":"disabled","store":false,"background":false,"service_tier":"default","metadata":{},`+
			`"usage":%s,"safety_identifier":null,"prompt_cache_key":null}`, id, now, completed, status, quote(req.Model), output, usage)
	}
	part := func(text string) string {
		return fmt.Sprintf(`{"type":"output_text","text":%s,"annotations":[],"logprobs":[]}`, quote(text))
	}
	message := func(status, content string) string {
		return fmt.Sprintf(`{"id":%q,"type":"message","status":%q,"role":"assistant","content":[%s]}`, item, status, content)
	}
	usage := fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, in, out, in+out)
	whole := object("completed", fmt.Sprint(now), message("completed", part(text)), usage)
	if !req.Stream {
		return answer(r, "application/json", []byte(whole))
	}
	var stream []byte
	sequence := 0
	event := func(kind, members string) {
		stream = sse.Append(stream, []byte(kind), fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,%s}`, kind, sequence, members))
		sequence++
	}
	begun := object("in_progress", "null", "", "null")
	event("response.created", `"response":`+begun)
	event("response.in_progress", `"response":`+begun)
	event("response.output_item.added", `"output_index":0,"item":`+message("in_progress", ""))
	where := fmt.Sprintf(`"item_id":%q,"output_index":0,"content_index":0,`, item)
	event("response.content_part.added", where+`"part":`+part(""))
	for _, piece := range pieces(text) {
		event("response.output_text.delta", where+`"delta":`+quote(piece)+`,"logprobs":[]`)
	}
	event("response.output_text.done", where+`"text":`+quote(text)+`,"logprobs":[]`)
	event("response.content_part.done", where+`"part":`+part(text))
	event("response.output_item.done", `"output_index":0,"item":`+message("completed", part(text)))
	event("response.completed", `"response":`+whole)
	return answer(r, "text/event-stream", stream)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
