package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

const upstreamKey = "sk-upstream-canary-5YwQ"

// shared by all tests: one gateway before one upstream.
var gateway struct {
	running
	upstream *upstream.Server
	binary   string
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "limen-sdk-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	gateway.upstream = upstream.New(upstream.WithKey(upstreamKey), upstream.WithModels("org/deep:v1"))
	defer gateway.upstream.Close()
	gateway.binary = binary(dir)
	var stop func()
	gateway.running, stop = start(dir, "limits: {body: 256KiB}\nproviders:\n  up: {base_url: \""+gateway.upstream.URL()+"\", api_key: "+upstreamKey+", speaks: [openai-chat, openai-responses]}\n")
	defer stop()
	return m.Run()
}

// running is a gateway that has started: its base URL and its first key.
type running struct{ url, key string }

// start runs the gateway with a configuration and a directory of its own.
func start(dir, config string) (g running, stop func()) {
	cmd := exec.Command(gateway.binary, "serve", "--config", filepath.Join(dir, "limen.yaml"), "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	if err := os.WriteFile(filepath.Join(dir, "limen.yaml"), []byte(config), 0o600); err != nil {
		panic(err)
	}
	welcome := &welcome{done: make(chan struct{})}
	cmd.Stdout = welcome
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
	select {
	case <-welcome.done:
	case <-time.After(time.Minute):
		stop()
		panic("the gateway did not start")
	}
	return welcome.said, stop
}

// binary is the gateway to test: the one that LIMEN_BIN names, or the one of
// this tree.
func binary(dir string) string {
	if path := os.Getenv("LIMEN_BIN"); path != "" {
		return path
	}
	path := filepath.Join(dir, "limen")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return path
}

// welcome reads base URL and key from what the gateway says at its first start.
type welcome struct {
	mu   sync.Mutex
	text bytes.Buffer
	said running // complete when done is closed
	done chan struct{}
}

var line = regexp.MustCompile(`(?m)^  (Base URL|API key) +(\S+)$`)

func (w *welcome) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.done:
		return len(p), nil
	default:
	}
	w.text.Write(p)
	for _, m := range line.FindAllStringSubmatch(w.text.String(), -1) {
		if m[1] == "Base URL" {
			w.said.url = m[2]
		} else {
			w.said.key = m[2]
		}
	}
	if w.said.key != "" && w.said.url != "" {
		close(w.done)
	}
	return len(p), nil
}

// client is the SDK set up as its users do: a base URL and a key.
func client(options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(gateway.url), option.WithAPIKey(gateway.key), option.WithMaxRetries(0)}, options...)...)
}

func chat(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "up/small", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
}

func response(prompt string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "up/small", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}}
}

var weather = shared.FunctionDefinitionParam{
	Name:       "weather",
	Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
}

func TestModels(t *testing.T) {
	c := client()
	var ids []string
	pages := c.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		m := pages.Current()
		ids = append(ids, m.ID)
		if m.Object != "model" || m.Created == 0 || m.OwnedBy == "" {
			t.Errorf("model %s: got %s", m.ID, m.RawJSON())
		}
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(ids, " "), "up/big up/org/deep:v1 up/small up/tools"; got != want {
		t.Errorf("models: got %q, want %q", got, want)
	}
	for _, id := range ids {
		m, err := c.Models.Get(t.Context(), id)
		if err != nil || m.ID != id {
			t.Errorf("model %s: got %+v, %v", id, m, err)
		}
	}
}

func TestChat(t *testing.T) {
	c := client()
	got, err := c.Chat.Completions.New(t.Context(), chat("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	if text := got.Choices[0].Message.Content; text != "Hello from small." || got.Choices[0].FinishReason != "stop" || got.Usage.TotalTokens == 0 {
		t.Errorf("got %s", got.RawJSON())
	}
}

// accumulate reads a chat stream to its end, as the SDK's documentation shows.
func accumulate(t *testing.T, params openai.ChatCompletionNewParams) (acc openai.ChatCompletionAccumulator, finished []openai.FinishedChatCompletionToolCall) {
	t.Helper()
	c := client()
	stream := c.Chat.Completions.NewStreaming(t.Context(), params)
	for stream.Next() {
		if chunk := stream.Current(); !acc.AddChunk(chunk) {
			t.Errorf("the accumulator refused %s", chunk.RawJSON())
		}
		if call, ok := acc.JustFinishedToolCall(); ok {
			finished = append(finished, call)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return acc, finished
}

func TestChatStream(t *testing.T) {
	params := chat("Hi")
	acc, _ := accumulate(t, params)
	if text := acc.Choices[0].Message.Content; text != "Hello from small." || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("got %q, %q", text, acc.Choices[0].FinishReason)
	}
	if acc.Usage.TotalTokens != 0 {
		t.Errorf("usage that was not asked for: got %d tokens", acc.Usage.TotalTokens)
	}

	// Servers that repeat the total in every chunk would have it added up.
	for _, fault := range []string{"", "[[fault:usage-every-chunk]]", "[[fault:usage-on-finish]]"} {
		params = chat("Hi " + fault)
		c := client()
		whole, err := c.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		acc, _ = accumulate(t, params)
		if got, want := acc.Usage.CompletionTokens, whole.Usage.CompletionTokens; got != want || got == 0 {
			t.Errorf("%s: usage: got %d tokens out, want %d as in the whole answer", fault, got, want)
		}
	}
}

func TestChatTools(t *testing.T) {
	params := chat(`call2 weather {"city":"Rome"}`)
	params.Model = "up/tools"
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(weather)}
	for _, fault := range []string{"", " [[fault:tool-no-index]]"} {
		params.Messages[0] = openai.UserMessage(`call2 weather {"city":"Rome"}` + fault)
		acc, finished := accumulate(t, params)
		message := acc.Choices[0].Message
		if len(message.ToolCalls) != 2 || len(finished) != 2 || acc.Choices[0].FinishReason != "tool_calls" {
			t.Fatalf("%s: got %d calls, %d finished, %q, want 2, 2, tool_calls", fault, len(message.ToolCalls), len(finished), acc.Choices[0].FinishReason)
		}
		ids := map[string]bool{}
		for _, call := range message.ToolCalls {
			ids[call.ID] = true
			if call.Function.Name != "weather" || call.Function.Arguments != `{"city":"Rome"}` {
				t.Errorf("%s: got %s(%s)", fault, call.Function.Name, call.Function.Arguments)
			}
		}
		if len(ids) != 2 {
			t.Errorf("%s: got %d distinct call IDs, want 2", fault, len(ids))
		}
		// The round trip: the calls and their results go back.
		next := params
		next.Messages = append(next.Messages[:1:1], message.ToParam())
		for id := range ids {
			next.Messages = append(next.Messages, openai.ToolMessage("sunny", id))
		}
		acc, _ = accumulate(t, next)
		if text := acc.Choices[0].Message.Content; text != "The tool said: sunny" {
			t.Errorf("%s: after the tools: got %q", fault, text)
		}
	}
}

func TestResponses(t *testing.T) {
	c := client()
	got, err := c.Responses.New(t.Context(), response("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	if got.OutputText() != "Hello from small." || got.Status != "completed" || got.Usage.TotalTokens == 0 {
		t.Errorf("got %s", got.RawJSON())
	}
}

// follow reads a stream of events to its end.
func follow(t *testing.T, params responses.ResponseNewParams) (completed responses.Response, text string) {
	t.Helper()
	c := client()
	stream := c.Responses.NewStreaming(t.Context(), params)
	sequence := int64(-1)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != sequence+1 {
			t.Errorf("event %s: got sequence number %d after %d", e.Type, e.SequenceNumber, sequence)
		}
		sequence = e.SequenceNumber
		switch e.Type {
		case "response.output_text.delta":
			text += e.AsResponseOutputTextDelta().Delta
		case "response.completed":
			completed = e.AsResponseCompleted().Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return completed, text
}

func TestResponsesStream(t *testing.T) {
	for _, fault := range []string{"", "[[fault:json-to-stream]]", "[[fault:crlf]]", "[[fault:multi-line]]", "[[fault:error-null]]"} {
		completed, text := follow(t, response("Hi "+fault))
		if want := "Hello from small."; text != want || completed.OutputText() != want || completed.Usage.TotalTokens == 0 {
			t.Errorf("%s: got %q and %q, %d tokens, want %q and some", fault, text, completed.OutputText(), completed.Usage.TotalTokens, want)
		}
	}
}

func TestResponsesTools(t *testing.T) {
	params := response(`call2 weather {"city":"Rome"}`)
	params.Model = "up/tools"
	params.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: weather.Name, Parameters: weather.Parameters, Strict: openai.Bool(false)}}}
	completed, _ := follow(t, params)
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("What is the weather?", responses.EasyInputMessageRoleUser)}
	for _, item := range completed.Output {
		call := item.AsFunctionCall()
		if item.Type != "function_call" || call.Name != "weather" || call.Arguments != `{"city":"Rome"}` {
			t.Errorf("output: got %s", item.RawJSON())
		}
		input = append(input, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name))
		result := responses.ResponseInputItemParamOfFunctionCallOutput("sunny")
		result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
		input = append(input, result)
	}
	if len(completed.Output) != 2 {
		t.Fatalf("got %d calls, want 2", len(completed.Output))
	}
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
	completed, text := follow(t, params)
	if text != "The tool said: sunny" || completed.OutputText() != text {
		t.Errorf("after the tools: got %q", text)
	}
}

func TestErrors(t *testing.T) {
	call := func(params openai.ChatCompletionNewParams, options ...option.RequestOption) error {
		c := client(options...)
		_, err := c.Chat.Completions.New(t.Context(), params)
		return err
	}
	unknown := chat("Hi")
	unknown.Model = "up/none"
	for _, c := range []struct {
		name       string
		err        error
		status     int
		kind, code string
		header     http.Header
	}{
		{"wrong key", call(chat("Hi"), option.WithAPIKey("sk-wrong")), 401, "invalid_request_error", "invalid_api_key", nil},
		{"unknown model", call(unknown), 404, "invalid_request_error", "model_not_found", nil},
		{"wrong base URL", call(chat("Hi"), option.WithBaseURL(strings.TrimSuffix(gateway.url, "/v1"))), 404, "invalid_request_error", "", nil},
		{"rate limit", call(chat("[[fault:status-429]]")), 429, "rate_limit_error", "rate_limit_exceeded", http.Header{"Retry-After": {"7"}}},
		{"quota", call(chat("[[fault:quota]]")), 502, "server_error", "upstream_quota", http.Header{"X-Should-Retry": {"false"}}},
		{"context", call(chat("[[fault:context]]")), 400, "invalid_request_error", "context_length_exceeded", nil},
		{"too large", call(chat(strings.Repeat("a", 256<<10))), 413, "invalid_request_error", "request_too_large", nil},
		{"upstream away", call(chat("[[fault:reset]]")), 502, "server_error", "upstream_error", nil},
	} {
		var e *openai.Error
		if !errors.As(c.err, &e) {
			t.Errorf("%s: got %v, want an API error", c.name, c.err)
			continue
		}
		if e.StatusCode != c.status || e.Type != c.kind || e.Code != c.code || e.Message == "" {
			t.Errorf("%s: got %d %s %s %q, want %d %s %s and a message", c.name, e.StatusCode, e.Type, e.Code, e.Message, c.status, c.kind, c.code)
		}
		for name := range c.header {
			if got, want := e.Response.Header.Get(name), c.header.Get(name); got != want {
				t.Errorf("%s: %s: got %q, want %q", c.name, name, got, want)
			}
		}
		if e.Response.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no x-request-id", c.name)
		}
		if strings.Contains(c.err.Error(), upstreamKey) || strings.Contains(c.err.Error(), gateway.upstream.Host()) {
			t.Errorf("%s: the error tells of the upstream: %v", c.name, c.err)
		}
	}
}

// TestBodyLimit: the last byte that is allowed, and the first that is not.
func TestBodyLimit(t *testing.T) {
	const limit = 256 << 10
	body, err := json.Marshal(chat(""))
	if err != nil {
		t.Fatal(err)
	}
	for extra, want := range map[int]int{0: http.StatusOK, 1: http.StatusRequestEntityTooLarge} {
		c := client()
		_, err := c.Chat.Completions.New(t.Context(), chat(strings.Repeat("a", limit-len(body)+extra)))
		got := http.StatusOK
		var e *openai.Error
		if errors.As(err, &e) {
			got = e.StatusCode
		}
		if got != want {
			t.Errorf("%d bytes: got %d, %v, want %d", limit+extra, got, err, want)
		}
	}
}

// TestRetries: the SDK repeats what may come good, and nothing else. The gateway
// itself tries an upstream that fails, and has no other beside it, twice.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		fault    string
		attempts int
	}{{"status-500", 2 * 2}, {"quota", 1}, {"status-401", 1}, {"status-409", 1}, {"context", 1}} {
		gateway.upstream.Reset()
		again := client(option.WithMaxRetries(1))
		if _, err := again.Chat.Completions.New(t.Context(), chat("[[fault:"+c.fault+"]]")); err == nil {
			t.Errorf("%s: got no error", c.fault)
		}
		if n := len(gateway.upstream.Requests()); n != c.attempts {
			t.Errorf("%s: got %d attempts, want %d", c.fault, n, c.attempts)
		}
	}
}

// TestBrokenStreams: whatever ends a stream too early is an error of the SDK.
func TestBrokenStreams(t *testing.T) {
	for _, fault := range []string{"reset-mid", "cut", "error-mid", "bad-json", "no-completed", "failed-mid"} {
		c := client()
		stream := c.Chat.Completions.NewStreaming(t.Context(), chat("[[fault:"+fault+"]]"))
		checkBroken(t, "chat "+fault, stream)
		events := c.Responses.NewStreaming(t.Context(), response("[[fault:"+fault+"]]"))
		checkBroken(t, "responses "+fault, events)
	}
}

func checkBroken[T any](t *testing.T, name string, stream *ssestream.Stream[T]) {
	t.Helper()
	n := 0
	for stream.Next() {
		n++
	}
	err := stream.Err()
	if err == nil {
		t.Errorf("%s: got no error after %d events", name, n)
		return
	}
	if strings.Contains(err.Error(), upstreamKey) || strings.Contains(err.Error(), gateway.upstream.Host()) {
		t.Errorf("%s: the error tells of the upstream: %v", name, err)
	}
}

// TestLeave: a client that leaves ends the call upstream.
func TestLeave(t *testing.T) {
	gateway.upstream.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	c := client()
	stream := c.Chat.Completions.NewStreaming(ctx, chat("[[fault:stall]]"))
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	cancel()
	stream.Close()
	wait, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	seen, err := gateway.upstream.WaitFinished(wait, 1)
	if err != nil || seen[0].Cancelled.IsZero() {
		t.Errorf("upstream: got %+v, %v, want the call cancelled", seen, err)
	}
}
