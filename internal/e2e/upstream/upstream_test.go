package upstream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is a server and a client that keeps no connection beyond the test.
func start(t *testing.T, options ...Option) (*Server, *http.Client) {
	t.Helper()
	s := New(options...)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s, &http.Client{
		Transport:     transport,
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func post(ctx context.Context, c *http.Client, url, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer sk-upstream-canary-1")
	return c.Do(r)
}

// ask is a call's status and body, and what broke it.
func ask(t *testing.T, c *http.Client, url, body string) (int, string, error) {
	t.Helper()
	resp, err := post(t.Context(), c, url, body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestChatReplies(t *testing.T) {
	const tool = `"tools":[{"type":"function","function":{"name":"read"}}]`
	for _, tt := range []struct{ name, body, want string }{
		{"plain", `{"messages":[{"role":"user","content":"hi"}]}`, "Hello from small. stop"},
		{"parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[]}`, "Hello from small. stop"},
		{"the word call alone", `{"messages":[{"role":"user","content":"call me {\"x\":1}"}]}`, "Hello from small. stop"},
		{"first tool", `{"messages":[{"role":"user","content":"please call me"}],` + tool + `}`, `read({}) tool_calls`},
		{"ordered", `{"messages":[{"role":"user","content":"call write {\"a\": [1]} now"}],` + tool + `}`, `write({"a": [1]}) tool_calls`},
		{"parallel", `{"messages":[{"role":"user","content":"call2 read"}],` + tool + `}`, `read({})read({}) tool_calls`},
		{"forbidden", `{"messages":[{"role":"user","content":"call read"}],"tool_choice":"none",` + tool + `}`, "Hello from small. stop"},
		{"result", `{"messages":[{"role":"user","content":"call read"},{"role":"tool","content":"` + strings.Repeat("é", 90) + `"}],` + tool + `}`,
			"The tool said: " + strings.Repeat("é", 80) + " stop"},
		{"the next order", `{"messages":[{"role":"user","content":"call2 write {} then call read"},{"role":"tool","content":"a"},{"role":"tool","content":"b"}],` + tool + `}`, "read({}) tool_calls"},
		{"after the last order", `{"messages":[{"role":"user","content":"call write {} then call read, then call it a day"},{"role":"tool","content":"a"},{"role":"tool","content":"b"}],` + tool + `}`, "The tool said: b stop"},
		{"choices", `{"n":2,"messages":[{"role":"user","content":"hi"}]}`, "Hello from small. stop Hello from small. stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t)
			status, body, err := ask(t, c, s.URL()+"/chat/completions", `{"model":"small",`+tt.body[1:])
			if status != http.StatusOK || err != nil {
				t.Fatalf("got %d %s %v", status, body, err)
			}
			if got := fromJSON(t, body); got != tt.want {
				t.Errorf("JSON: got %q, want %q", got, tt.want)
			}
			status, body, err = ask(t, c, s.URL()+"/chat/completions", `{"model":"small","stream":true,`+tt.body[1:])
			if status != http.StatusOK || err != nil {
				t.Fatalf("got %d %s %v", status, body, err)
			}
			if got := fromStream(t, body); got != tt.want {
				t.Errorf("stream: got %q, want %q", got, tt.want)
			}
		})
	}
}

// fromJSON sums up a chat completion: what each choice says, and how it finished.
func fromJSON(t *testing.T, body string) string {
	t.Helper()
	var c chatCompletion
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var out []string
	for _, ch := range c.Choices {
		said := ""
		if ch.Message.Content != nil {
			said = *ch.Message.Content
		}
		for _, call := range ch.Message.ToolCalls {
			said += call.Function.Name + "(" + call.Function.Arguments + ")"
		}
		out = append(out, said+" "+ch.FinishReason)
	}
	return strings.Join(out, " ")
}

// fromStream is fromJSON of a stream. It joins fragments as clients do, by index.
func fromStream(t *testing.T, body string) string {
	t.Helper()
	type choice struct{ said, finish string }
	var list []choice
	open := false
	for _, c := range chunks(t, body) {
		for _, ch := range c.Choices {
			for len(list) <= ch.Index {
				list = append(list, choice{})
			}
			to := &list[ch.Index]
			to.said += text(ch.Delta.Content)
			for _, call := range ch.Delta.ToolCalls {
				if call.ID != "" {
					if open {
						to.said += ")"
					}
					to.said += call.Function.Name + "("
					open = true
				}
				to.said += call.Function.Arguments
			}
			if ch.FinishReason != nil {
				if open {
					to.said += ")"
				}
				to.finish = *ch.FinishReason
			}
		}
	}
	var out []string
	for _, c := range list {
		out = append(out, c.said+" "+c.finish)
	}
	return strings.Join(out, " ")
}

// chunks are those of a whole stream, which must end with [DONE].
func chunks(t *testing.T, body string) []chatChunk {
	t.Helper()
	rest, ok := strings.CutSuffix(body, "data: [DONE]\n\n")
	if !ok {
		t.Fatalf("no [DONE] at the end of %q", body)
	}
	var list []chatChunk
	for f := range strings.SplitSeq(strings.TrimSuffix(rest, "\n\n"), "\n\n") {
		var c chatChunk
		if err := json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &c); err != nil {
			t.Fatalf("%v in %q", err, f)
		}
		list = append(list, c)
	}
	return list
}

func TestChatUsageOnlyWhenAsked(t *testing.T) {
	s, c := start(t)
	for _, asked := range []bool{false, true} {
		_, body, _ := ask(t, c, s.URL()+"/chat/completions",
			fmt.Sprintf(`{"model":"small","stream":true,"stream_options":{"include_usage":%t},"messages":[{"role":"user","content":"hi"}]}`, asked))
		list := chunks(t, body)
		last := list[len(list)-1]
		if got := len(last.Choices) == 0 && bytes.Contains(last.Usage, []byte(`"total_tokens":`)); got != asked {
			t.Errorf("asked %t: got usage %t in %s", asked, got, body)
		}
		if got := strings.Contains(body, `"usage":null`); got != asked {
			t.Errorf(`asked %t: got "usage":null %t`, asked, got)
		}
	}
}

// sequence is the events of a Responses stream.
func sequence(t *testing.T, body string) []event {
	t.Helper()
	var list []event
	for f := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(f, "event: "), "\ndata: ")
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || e.Type != name {
			t.Fatalf("%v: event %q has data %q", err, name, data)
		}
		list = append(list, e)
	}
	return list
}

func TestResponsesStream(t *testing.T) {
	const message = "response.output_item.added response.content_part.added " +
		"response.output_text.delta response.output_text.delta response.output_text.delta " +
		"response.output_text.done response.content_part.done response.output_item.done"
	const call = "response.output_item.added response.function_call_arguments.delta response.function_call_arguments.delta " +
		"response.function_call_arguments.done response.output_item.done"
	const tools = `"tools":[{"type":"web_search"},{"type":"function","name":"run"}]`
	for _, tt := range []struct{ name, body, want, output string }{
		{"text", `{"input":"hi"}`, message, "Hello from small."},
		{"hosted tools are not called", `{"input":"hi","tools":[{"type":"web_search"}]}`, message, "Hello from small."},
		{"call", `{"input":[{"role":"user","content":[{"type":"input_text","text":"call run {\"cmd\":\"ls\"}"}]}],` + tools + `}`, call, `run({"cmd":"ls"})`},
		{"parallel", `{"input":"call2 run {}",` + tools + `}`, call + " " + call, `run({})run({})`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t)
			_, body, _ := ask(t, c, s.URL()+"/responses", `{"model":"small","stream":true,`+tt.body[1:])
			list := sequence(t, body)
			var names []string
			added := 0
			for i, e := range list {
				names = append(names, e.Type)
				if e.SequenceNumber != i {
					t.Errorf("event %d has the number %d", i, e.SequenceNumber)
				}
				if e.Type == "response.output_item.added" {
					added++
				}
				if e.OutputIndex != nil && *e.OutputIndex != added-1 {
					t.Errorf("%s has the index %d after %d items", e.Type, *e.OutputIndex, added)
				}
			}
			want := "response.created response.in_progress " + tt.want + " response.completed"
			if got := strings.Join(names, " "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			streamed := list[len(list)-1].Response
			_, body, _ = ask(t, c, s.URL()+"/responses", `{"model":"small",`+tt.body[1:])
			var whole response
			if err := json.Unmarshal([]byte(body), &whole); err != nil {
				t.Fatal(err)
			}
			for how, r := range map[string]*response{"stream": streamed, "JSON": &whole} {
				if got := outputOf(r); got != tt.output || r.Status != "completed" || len(r.Usage) < 10 {
					t.Errorf("%s: got %s %q with usage %s, want completed %q", how, r.Status, got, r.Usage, tt.output)
				}
			}
		})
	}
}

func outputOf(r *response) string {
	out := ""
	for _, i := range r.Output {
		if i.Type == "message" {
			out += i.Content[0].Text
		} else {
			out += i.Name + "(" + *i.Arguments + ")"
		}
	}
	return out
}

func TestResponsesAfterTool(t *testing.T) {
	s, c := start(t)
	_, body, _ := ask(t, c, s.URL()+"/responses", `{"model":"small","tools":[{"type":"function","name":"run"}],"input":[
		{"role":"user","content":"call run"},
		{"type":"function_call","call_id":"c","name":"run","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":"README.md"},
		{"role":"developer","content":"be brief"}]}`)
	if !strings.Contains(body, `"text":"The tool said: README.md"`) {
		t.Errorf("got %s", body)
	}
}

func TestScenarioOrder(t *testing.T) {
	s, c := start(t)
	if err := s.SetDefault("status-500"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetDefault("no-such"); err == nil {
		t.Error("an unknown default was accepted")
	}
	for _, tt := range []struct {
		header, model, user string
		want                int
	}{
		{"", "small", "hi", 500},
		{"", "small!status-503", "hi", 503},
		{"", "small!status-503", "hi [[fault:status-404]] ho", 404},
		{"status-409", "small!status-503", "hi [[fault:status-404]]", 409},
		{"no-such", "small", "hi", 400},
		{"early-answer", "small", "hi", 200},
		{"status-999", "small", "hi", 999},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions",
			strings.NewReader(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, tt.model, tt.user)))
		if err != nil {
			t.Fatal(err)
		}
		if tt.header != "" {
			r.Header.Set("X-Fault", tt.header)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("header %q, model %q, user %q: got %d, want %d", tt.header, tt.model, tt.user, resp.StatusCode, tt.want)
		}
	}
}

func TestUnknownModelAndKey(t *testing.T) {
	s, c := start(t, WithModels("acme/one"), WithKey("sk-upstream-canary-1"))
	for _, tt := range []struct {
		model string
		want  int
	}{{"acme/one", 200}, {"alias", 404}} {
		if got, body, _ := ask(t, c, s.URL()+"/chat/completions", `{"model":"`+tt.model+`","messages":[]}`); got != tt.want {
			t.Errorf("%s: got %d, want %d: %s", tt.model, got, tt.want, body)
		}
	}
	resp, err := c.Get(s.URL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: got %d, want 401", resp.StatusCode)
	}
}

// A stream fault is told by what is left of the stream.
func TestStreamFaults(t *testing.T) {
	reset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
	short := func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
	ended := func(err error) bool { return err == nil }
	for _, tt := range []struct {
		fault    string
		path     string
		broke    func(error) bool
		has, not []string
		frames   int
		terminal bool
	}{
		{"reset-mid arg=2", "chat/completions", reset, []string{`"Hello "`}, []string{"from"}, 2, false},
		{"reset-mid 99", "chat/completions", reset, []string{`"stop"`}, []string{"[DONE]"}, 6, false},
		{"cut=4", "responses", ended, []string{"content_part.added"}, []string{"delta", "completed\""}, 4, false},
		{"no-done", "chat/completions", ended, []string{`"stop"`, `"total_tokens"`}, []string{"[DONE]"}, 6, false},
		{"no-finish", "chat/completions", ended, []string{"[DONE]", "small."}, []string{`"stop"`}, 6, true},
		{"no-completed", "chat/completions", ended, []string{"small."}, []string{`"stop"`, "total_tokens", "[DONE]"}, 4, false},
		{"no-completed", "responses", ended, []string{"output_item.done"}, []string{"response.completed"}, 10, false},
		{"no-usage", "responses", ended, []string{"response.completed", `"usage":null`}, []string{"input_tokens"}, 11, true},
		{"no-usage", "chat/completions", ended, []string{"[DONE]"}, []string{"total_tokens"}, 6, true},
		{"error-first", "chat/completions", ended, []string{`data: {"error":{`, "sk-upstream-canary-1", "[DONE]"}, []string{"Hello"}, 2, true},
		{"error-mid 2", "chat/completions", ended, []string{`"Hello "`, `{"error":{`}, []string{"from "}, 4, true},
		{"error-mid", "responses", ended, []string{`"type":"error","sequence_number":3,"code"`, `"type":"response.failed","sequence_number":4`}, []string{"completed\""}, 5, true},
		{"error-mid-nested", "responses", ended, []string{`"sequence_number":3,"error":{"message"`}, nil, 5, true},
		{"failed-mid", "responses", ended, []string{"event: response.failed"}, []string{"event: error"}, 4, true},
		{"error-null", "chat/completions", ended, []string{`"error":null`}, nil, 7, true},
		{"error-null", "responses", ended, []string{`"delta":"Hello ","logprobs":[],"error":null`}, nil, 11, true},
		{"no-role", "chat/completions", ended, nil, []string{`"role"`}, 7, true},
		{"drop-id", "chat/completions", ended, nil, []string{`"id"`}, 7, true},
		{"drop-id", "responses", ended, nil, []string{`"id"`, "item_id"}, 11, true},
		{"bad-json", "chat/completions", ended, []string{"\"bro\n\n"}, nil, 8, true},
		{"usage-every-chunk", "chat/completions", ended, nil, []string{`"usage":null`}, 7, true},
		{"usage-on-finish", "chat/completions", ended, []string{`"finish_reason":"stop"}],"usage":{`}, []string{`"choices":[]`}, 6, true},
		{"lying-usage huge", "chat/completions", ended, []string{`"completion_tokens":9223372036854775808`}, nil, 7, true},
		{"lying-usage", "responses", ended, []string{`"output_tokens":-1`}, nil, 11, true},
		{"json-to-stream", "chat/completions", ended, []string{`"object":"chat.completion"`}, []string{"data:"}, 0, true},
		{"crlf", "responses", ended, []string{"\r\n\r\n"}, nil, 11, true},
		{"cr", "chat/completions", ended, []string{"}\r\rdata: "}, []string{"\n"}, 7, true},
		{"no-space", "chat/completions", ended, []string{"data:{"}, nil, 7, true},
		{"bom", "chat/completions", ended, []string{"\ufeffdata: "}, nil, 7, true},
		{"comments", "chat/completions", ended, []string{": keepalive\n\ndata: [DONE]"}, nil, 7, true},
		{"multi-line", "chat/completions", ended, []string{"data:   \"object\""}, nil, 7, true},
		{"no-blank-end", "chat/completions", ended, []string{"\n\ndata: [DONE]\n"}, []string{"[DONE]\n\n"}, 7, true},
		{"bytes", "chat/completions", ended, []string{"[DONE]\n\n"}, nil, 7, true},
		{"slow 1", "chat/completions", ended, []string{"[DONE]\n\n"}, nil, 7, true},
		{"pause 1", "chat/completions", ended, []string{"[DONE]\n\n"}, nil, 7, true},
		{"pause-mid 1", "responses", ended, []string{"response.completed"}, nil, 11, true},
		{"long-line 1", "chat/completions", ended, []string{strings.Repeat("a", 1<<20)}, nil, 8, true},
		{"unknown-event", "responses", ended, []string{"event: acme.unheard_of"}, nil, 12, true},
		{"text-plain", "chat/completions", ended, []string{"[DONE]"}, nil, 7, true},
		{"short-length", "chat/completions", short, []string{"Hello"}, nil, 0, false},
		{"empty", "chat/completions", ended, nil, []string{"e"}, 0, false},
		{"html", "chat/completions", ended, []string{"<h1>200"}, nil, 0, false},
		{"early-hints 3", "chat/completions", ended, []string{"[DONE]"}, nil, 7, true},
		{"set-cookie", "chat/completions", ended, []string{"[DONE]"}, nil, 7, true},
		{"trailers", "chat/completions", ended, []string{"[DONE]"}, nil, 7, true},
	} {
		t.Run(tt.fault+" "+tt.path, func(t *testing.T) {
			s, c := start(t)
			content := `"messages":[{"role":"user","content":"hi [[fault:` + tt.fault + `]]"}],"stream_options":{"include_usage":true}`
			if tt.path == "responses" {
				content = `"input":"hi [[fault:` + tt.fault + `]]"`
			}
			status, body, err := ask(t, c, s.URL()+"/"+tt.path, `{"model":"small","stream":true,`+content+`}`)
			if status != http.StatusOK || !tt.broke(err) {
				t.Errorf("got %d and %v", status, err)
			}
			for _, want := range tt.has {
				if !strings.Contains(body, want) {
					t.Errorf("no %q in %.2000q", want, body)
				}
			}
			for _, bad := range tt.not {
				if strings.Contains(body, bad) {
					t.Errorf("%q in %.2000q", bad, body)
				}
			}
			list, err := s.WaitFinished(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(strings.ReplaceAll(tt.fault, "=", " "), " ")
			if e := list[0]; e.Fault != name || e.Frames != tt.frames || e.Terminal != tt.terminal {
				t.Errorf("ledger: got %s, %d frames, terminal %t; want %s, %d, %t", e.Fault, e.Frames, e.Terminal, name, tt.frames, tt.terminal)
			}
		})
	}
}

func TestToolWithoutIndex(t *testing.T) {
	s, c := start(t)
	_, body, _ := ask(t, c, s.URL()+"/chat/completions", `{"model":"small!tool-no-index","stream":true,
		"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"read"}}]}`)
	for _, ch := range chunks(t, body) {
		for _, call := range ch.Choices[0].Delta.ToolCalls {
			if call.Index != nil {
				t.Errorf("index %d in %s", *call.Index, body)
			}
		}
	}
	if !strings.Contains(body, `"name":"read"`) {
		t.Errorf("no call in %s", body)
	}
}

// Faults of a JSON answer, and of HTTP.
func TestAnswerFaults(t *testing.T) {
	for _, tt := range []struct {
		fault  string
		status int
		want   string // in the body, or in the error
	}{
		{"reset", 0, "reset by peer"},
		{"reset-headers", 0, "connection broken"},
		{"reset-mid", 200, "reset by peer"},
		{"error-in-200", 200, `{"error":{"message":`},
		{"html-502", 502, "<html>"},
		{"status-401", 401, "key sk-upstream-canary-1, http://127.0.0.1:"},
		{"context", 400, "context_length_exceeded"},
		{"quota", 429, "insufficient_quota"},
		{"status-529", 529, "overloaded_error"},
		{"redirect", 302, "Moved."},
		{"long-length", 200, "Hello from"},
		{"pretty", 200, "\n  \"object\""},
		{"stream-to-json", 200, "data: [DONE]"},
		{"lying-usage string", 200, `"total_tokens":"12"`},
		{"cut", 200, `{"id":"chatcmpl-1"`},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			s, c := start(t)
			status, body, err := ask(t, c, s.URL()+"/chat/completions", `{"model":"small","messages":[{"role":"user","content":"[[fault:`+tt.fault+`]]"}]}`)
			if got := body + fmt.Sprint(err); status != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s, want %d and %q", status, got, tt.status, tt.want)
			}
			if strings.Contains(body, "smuggled") {
				t.Error("the client read beyond the length")
			}
		})
	}
}

func TestRetryAfterAndCookie(t *testing.T) {
	s, c := start(t)
	for _, tt := range []struct{ fault, header, want string }{
		{"status-429", "Retry-After", "7"},
		{"set-cookie", "Set-Cookie", "upstream=canary; Path=/"},
	} {
		resp, err := post(t.Context(), c, s.URL()+"/chat/completions", `{"model":"small!`+tt.fault+`","messages":[]}`)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get(tt.header); got != tt.want {
			t.Errorf("%s: got %s %q, want %q", tt.fault, tt.header, got, tt.want)
		}
	}
}

func TestGzipBomb(t *testing.T) {
	s, c := start(t)
	resp, err := post(t.Context(), c, s.URL()+"/responses", `{"model":"small!gzip-bomb","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	const enough = 5 << 20 // more than one member
	if n, err := io.CopyN(io.Discard, z, enough); err != nil {
		t.Errorf("got %d bytes and %v, want %d", n, err, enough)
	}
}

// A client that leaves is seen at once, whatever the server was at.
func TestCancel(t *testing.T) {
	for _, fault := range []string{"hang", "hang-headers", "stall", "slow=10000", "pause=10000", "comments-only=1", "endless", "gzip-bomb", "slow-headers=1"} {
		t.Run(fault, func(t *testing.T) {
			s, c := start(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			left := make(chan struct{})
			go func() {
				defer close(left)
				resp, err := post(ctx, c, s.URL()+"/chat/completions", `{"model":"small!`+fault+`","stream":true,"messages":[]}`)
				if err == nil {
					<-ctx.Done()
					resp.Body.Close()
				}
			}()
			waitForFault(t, s)
			at := time.Now()
			cancel()
			<-left
			list, err := s.WaitFinished(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			e := list[0]
			if e.Cancelled.IsZero() || e.Terminal {
				t.Fatalf("got %+v, want it cancelled", e)
			}
			if took := e.Cancelled.Sub(at); took > 10*time.Second {
				t.Errorf("seen after %v", took)
			}
		})
	}
}

// waitForFault returns when the first request's fault has been chosen.
func waitForFault(t *testing.T, s *Server) {
	t.Helper()
	if _, err := s.wait(t.Context(), 1, func(e Request) bool { return e.Fault != "" }); err != nil {
		t.Fatal(err)
	}
}

// A client that leaves with the last frame in hand did not cancel.
func TestTerminalIsNoCancel(t *testing.T) {
	s, c := start(t)
	for range 50 {
		resp, err := post(t.Context(), c, s.URL()+"/chat/completions", `{"model":"small","stream":true,"messages":[]}`)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(resp.Body)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "data: [DONE]") {
				break
			}
		}
		resp.Body.Close()
		c.CloseIdleConnections()
	}
	list, err := s.WaitFinished(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.Terminal || !e.Cancelled.IsZero() {
			t.Errorf("got %+v, want a good end", e)
		}
	}
}

func TestEarlyAnswerReadsNoBody(t *testing.T) {
	s, _ := start(t)
	if err := s.SetDefault("early-answer"); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Host())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("got %v and %v, want an answer before the body", resp, err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s, c := start(t)
	const n = 4
	ended := make(chan error, n)
	for _, fault := range []string{"hang", "hang-headers", "stall", "endless"} {
		go func() {
			resp, err := post(t.Context(), c, s.URL()+"/chat/completions", `{"model":"small!`+fault+`","stream":true,"messages":[]}`)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			ended <- err
		}()
	}
	if _, err := s.wait(t.Context(), n, func(e Request) bool { return e.Fault != "" }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range n {
		if err := <-ended; err == nil {
			t.Error("a call ended well although the server closed")
		}
	}
	for _, e := range s.Requests() {
		if !e.Cancelled.IsZero() {
			t.Errorf("%s: the client is said to have left", e.Fault)
		}
	}
}

func TestControl(t *testing.T) {
	s, c := start(t)
	base := "http://" + s.Host() + "/_control/"
	control := func(method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if status, _ := control("POST", "default?fault=status-503"); status != http.StatusNoContent {
		t.Errorf("default: got %d", status)
	}
	if status, _ := control("POST", "default?fault=no-such"); status != http.StatusBadRequest {
		t.Errorf("unknown default: got %d", status)
	}
	ask(t, c, s.URL()+"/chat/completions?x=1", `{"model":"small","messages":[]}`)
	if _, err := s.WaitFinished(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var list []Request
	_, body := control("GET", "requests")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 1 {
		t.Fatalf("got %s, %v", body, err)
	}
	if e := list[0]; e.Fault != "status-503" || e.Body != `{"model":"small","messages":[]}` || e.Query != "x=1" ||
		e.Header.Get("Authorization") != "Bearer sk-upstream-canary-1" {
		t.Errorf("got %+v", e)
	}
	control("DELETE", "requests")
	if got := len(s.Requests()); got != 0 {
		t.Errorf("after DELETE: got %d requests", got)
	}
}

func TestFaultsAreDescribed(t *testing.T) {
	list := Faults()
	for i, f := range list {
		if f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("%s: doc %q", f.Name, f.Doc)
		}
		if f.take != nil && f.bend != nil {
			t.Errorf("%s both takes and bends", f.Name)
		}
		if slices.ContainsFunc(list[:i], func(g Fault) bool { return g.Name == f.Name }) {
			t.Errorf("two faults are called %s", f.Name)
		}
	}
}

func FuzzParseScenario(f *testing.F) {
	for _, s := range []string{"", "hang", "reset-mid 3", "cut arg=2", "slow=10", " =", "status-500="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sc, err := parseScenario(s)
		if err == nil && !strings.HasPrefix(s, sc.fault.Name) {
			t.Errorf("%q chose %q", s, sc.fault.Name)
		}
	})
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"model":"small","messages":[{"role":"user","content":[{"text":"call2 f {\"a\":1}"}]}],"tools":[{"type":"function","function":{"name":"f"}}]}`))
	f.Add([]byte(`{"model":"small","input":[{"role":"user","content":"call f {"},{"type":"function_call_output","output":[]}],"tools":[{"type":"function","name":"f"},{"type":"custom"}]}`))
	f.Add([]byte(`{"model":"small","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"text","text":"call f {}"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`))
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"text":"call f {}"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"text":"call f {}"}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}}`))
	r, err := http.NewRequest(http.MethodPost, "http://upstream/model/small/converse-stream?alt=sse", nil)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.SetPathValue("model", "small")
	r.SetPathValue("call", "small:streamGenerateContent")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, parse := range []func(*http.Request, []byte) (door, error){parseChat, parseResponses, parseAnthropic, parseGemini, parseBedrock} {
			d, err := parse(r, body)
			if err != nil {
				continue
			}
			p := d.prompt()
			said := say(p)
			if said.text == "" && len(said.calls) == 0 {
				t.Errorf("nothing said to %s", body)
			}
			for _, fr := range d.stream(1, said, count(body, p, said)) {
				framing{}.encode(fr, false, false)
			}
		}
	})
}
