package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// toolServer is a server of tools that a gateway may call.
type toolServer struct {
	*httptest.Server
	calls  atomic.Int64 // of tools
	asked  atomic.Int64 // requests
	away   atomic.Bool
	secret atomic.Value // the authorization that it saw last
}

func newToolServer(t *testing.T) *toolServer {
	s := &toolServer{}
	tool := func(name string, failed bool, answer func(text string) string) hostedTool {
		return hostedTool{name: name, argument: "text", readOnly: name == "look", answer: func(text string) (string, bool) {
			s.calls.Add(1)
			return said(answer(text)), failed
		}}
	}
	handler := newToolHandler(
		tool("say", false, func(text string) string { return "said " + text }),
		tool("look", false, func(text string) string { return "seen " + text }),
		tool("fail", true, func(string) string { return "it broke" }),
		tool("flood", false, func(string) string { return strings.Repeat("x", 2<<20) }),
	)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secret.Store(r.Header.Get("Authorization"))
		s.asked.Add(1)
		switch {
		case s.away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// searchEngine answers like SearXNG.
func searchEngine(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "json" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"query":"x","results":[{"url":"https://a.example/%s","title":"A","content":"About it"},{"url":"https://b.example/","title":"B","content":"b"}]}`, r.URL.Query().Get("q"))
	}))
	t.Cleanup(s.Close)
	return s
}

// tooled is a gateway with all of them, in front of an upstream.
type tooled struct {
	*gateway
	up     *upstream.Server
	server *toolServer
}

func startTooled(t *testing.T, speaks string) *tooled {
	up := newUpstream(t)
	base := up.URL()
	switch speaks {
	case "gemini":
		base = strings.TrimSuffix(base, "/v1") + "/v1beta"
	case "bedrock":
		base = strings.TrimSuffix(base, "/v1")
	}
	server, engine := newToolServer(t), searchEngine(t)
	config := fmt.Sprintf(`
providers: {up: {base_url: %q, api_key: %s, speaks: [%s], models: [small]}}
tools:
  timeout: 20s
  mcp:
    servers:
      docs: {url: %q, headers: {authorization: Bearer tool-canary}}
      gone: {url: "http://127.0.0.1:9/mcp"}
      away: {url: %q}
    allow: [%q]
  web_search: {url: %q}
`, base, canary, speaks, server.URL+"/mcp", server.URL+"/elsewhere", server.URL+"/open/*", engine.URL+"/search?format=json")
	return &tooled{start(t, config), up, server}
}

type outputItem struct {
	ID, Type, Status, Name, Arguments string
	ServerLabel                       string `json:"server_label"`
	Output, Error                     *string
	Approval                          string `json:"approval_request_id"`
	Tools                             []struct{ Name string }
	Action                            struct {
		Query   string
		Sources []struct{ URL string }
	}
	Content []struct {
		Text        string
		Annotations []citation
	}

	Queries   []string
	Results   []foundFile
	Code      string
	Container string `json:"container_id"`
	Outputs   []struct{ Type, Logs, URL string }
	Result    string
	Prompt    string `json:"revised_prompt"`
	Format    string `json:"output_format"`
}

type citation struct {
	Type, URL, Title string
	Start            int `json:"start_index"`
	End              int `json:"end_index"`
}

type foundFile struct {
	ID    string `json:"file_id"`
	Name  string `json:"filename"`
	Text  string
	Score float64
}

// response is what a test looks at of one.
type response struct {
	ID     string
	Status string
	Output []outputItem
	Usage  struct {
		Total int64 `json:"total_tokens"`
	}
	Tools []json.RawMessage
}

func (r *response) types() string {
	var list []string
	for _, it := range r.Output {
		list = append(list, it.Type)
	}
	return strings.Join(list, " ")
}

func (r *response) text() string {
	var b strings.Builder
	for _, it := range r.Output {
		for _, c := range it.Content {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// ask makes a request of Responses, and returns the answer and the names of
// its events, if it is streamed.
func (g *tooled) ask(t *testing.T, stream bool, input, rest string) (r response, events []string, header http.Header) {
	t.Helper()
	got := g.post(t, "/responses", fmt.Sprintf(`{"model":"up/small","stream":%t,"input":%s,%s}`, stream, input, rest))
	if got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	body := got.body
	if stream {
		number := 0
		lines := bufio.NewScanner(strings.NewReader(got.body))
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: {")
			if !ok {
				continue
			}
			var e struct {
				Type     string
				Sequence int `json:"sequence_number"`
				Response json.RawMessage
			}
			if err := json.Unmarshal([]byte("{"+data), &e); err != nil {
				t.Fatal(err)
			}
			if e.Sequence != number {
				t.Errorf("event %s has the number %d, want %d", e.Type, e.Sequence, number)
			}
			number++
			events = append(events, e.Type)
			body = string(e.Response)
		}
		if !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
			t.Errorf("the stream has no end:\n%s", got.body)
		}
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	r.Output = slices.DeleteFunc(r.Output, func(it outputItem) bool { return it.Type == "reasoning" }) // which some dialects have for their seals
	return r, events, got.header
}

const docsTool = `"tools":[{"type":"mcp","server_label":"docs","require_approval":"never","allowed_tools":["say","fail","flood"],"headers":{"x-secret":"tool-canary"},"authorization":"tool-canary"}]`

var outboundDialects = []string{"openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"}

// A model whose upstream knows functions only calls tools of a server, and the
// client sees one answer.
func TestToolsOfServers(t *testing.T) {
	t.Parallel()
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			for _, stream := range []bool{false, true} {
				before := len(g.records(t))
				r, events, header := g.ask(t, stream, `"call mcp__docs__say {\"text\":\"hi\"}"`, docsTool)
				if want := "mcp_list_tools mcp_call message"; r.types() != want || r.Status != "completed" {
					t.Fatalf("got %s (%s), want %s", r.types(), r.Status, want)
				}
				list, call := r.Output[0], r.Output[1]
				if len(list.Tools) != 4 || list.ServerLabel != "docs" {
					t.Errorf("got the list %+v", list)
				}
				if call.Name != "say" || call.ServerLabel != "docs" || call.Status != "completed" || call.Output == nil || *call.Output != "said hi" || call.Error != nil || !strings.Contains(call.Arguments, `"hi"`) {
					t.Errorf("got the call %+v", call)
				}
				if !strings.Contains(r.text(), "said hi") {
					t.Errorf("the model was not told: %q", r.text())
				}
				if len(r.Tools) != 1 || strings.Contains(string(r.Tools[0]), "canary") {
					t.Errorf("the tools are repeated as %s", r.Tools)
				}
				if s := g.server.secret.Load(); s != "Bearer tool-canary" {
					t.Errorf("the server saw %q", s)
				}
				if stream {
					inOrder(t, events, "response.created", "response.output_item.added", "response.mcp_list_tools.in_progress", "response.mcp_list_tools.completed", "response.output_item.done",
						"response.output_item.added", "response.mcp_call.in_progress", "response.mcp_call_arguments.delta", "response.mcp_call_arguments.done", "response.mcp_call.completed", "response.output_item.done",
						"response.output_text.delta", "response.completed")
				}
				if all := g.records(t); len(all) != before+1 {
					t.Errorf("the call is recorded %d times", len(all)-before)
				}
				if rec := g.record(t, header.Get("X-Request-Id")); rec.Total != r.Usage.Total || rec.Total == 0 || rec.Estimated {
					t.Errorf("recorded %+v, told %d", rec, r.Usage.Total)
				}
			}
		})
	}
}

func inOrder(t *testing.T, got []string, want ...string) {
	t.Helper()
	rest := got
	for _, w := range want {
		i := slices.Index(rest, w)
		if i < 0 {
			t.Fatalf("no %s at its place in %s", w, strings.Join(got, "\n"))
		}
		rest = rest[i+1:]
	}
}

// Several calls, of the gateway's tools and of the client's.
func TestToolsTogether(t *testing.T) {
	t.Parallel()
	const own = `,{"type":"function","name":"mine","parameters":{"type":"object","properties":{}}}]`
	tools := strings.TrimSuffix(docsTool, "]") + own
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			for _, stream := range []bool{false, true} {
				r, _, _ := g.ask(t, stream, `"call2 mcp__docs__say {\"text\":\"a\"} then call mcp__docs__say {\"text\":\"b\"}"`, tools)
				if want := "mcp_list_tools mcp_call mcp_call mcp_call message"; r.types() != want {
					t.Errorf("got %s, want %s", r.types(), want)
				}
				r, _, _ = g.ask(t, stream, `"call mcp__docs__say {\"text\":\"a\"} then call mine {}"`, tools)
				if want := "mcp_list_tools mcp_call function_call"; r.types() != want {
					t.Errorf("got %s, want %s", r.types(), want)
				}
				if n := g.server.calls.Swap(0); n != 4 {
					t.Errorf("%d calls reached the server, want 4", n)
				}
				r, _, _ = g.ask(t, stream, `"call2 mcp__docs__say {\"text\":\"a\"}"`, `"max_tool_calls":1,`+tools)
				if want := "mcp_list_tools mcp_call message"; r.types() != want {
					t.Errorf("got %s, want %s", r.types(), want)
				}
				if n := g.server.calls.Swap(0); n != 1 {
					t.Errorf("%d calls reached the server, want 1", n)
				}
			}
		})
	}
}

// What a model thinks goes back to it as it came, between the requests of one
// answer and between turns: else the upstream refuses it.
func TestToolsAndThinking(t *testing.T) {
	t.Parallel()
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			for _, stream := range []bool{false, true} {
				const thinks = `"store":true,"reasoning":{"effort":"low","summary":"auto"},` + docsTool
				r, _, _ := g.ask(t, stream, `"call2 mcp__docs__say {\"text\":\"a\"} then call mcp__docs__say {\"text\":\"b\"}"`, thinks)
				if want := "mcp_list_tools mcp_call mcp_call mcp_call message"; r.types() != want || r.Status != "completed" {
					t.Errorf("got %s (%s), want %s", r.types(), r.Status, want)
				}
				r, _, _ = g.ask(t, stream, `"Again: call mcp__docs__say {\"text\":\"c\"}"`, fmt.Sprintf(`"previous_response_id":%q,`, r.ID)+thinks)
				if want := "mcp_call message"; r.types() != want || !strings.Contains(r.text(), "said c") {
					t.Errorf("got %s %q, want %s", r.types(), r.text(), want)
				}
			}
		})
	}
}

// What a request has in tokens is counted with the functions that stand for
// tools. Nothing is run for that, whatever the client has consented to.
func TestToolsAreCounted(t *testing.T) {
	t.Parallel()
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			count := func(members string) (n struct {
				Tokens int64 `json:"input_tokens"`
			}) {
				t.Helper()
				got := g.post(t, "/responses/input_tokens", `{"model":"up/small",`+members+`}`)
				if err := json.Unmarshal([]byte(got.body), &n); err != nil || got.status != http.StatusOK || n.Tokens == 0 {
					t.Fatalf("got %d %s", got.status, got.body)
				}
				if there := got.header.Get("X-Limen-Estimate") == ""; there != (speaks != "openai-chat") {
					t.Errorf("counted by the upstream: %v", there)
				}
				return n
			}
			plain, tools := count(`"input":"Hi"`), count(`"input":"Hi",`+docsTool)
			search := count(`"input":"Hi","tools":[{"type":"web_search"}]`)
			if tools.Tokens < plain.Tokens+50 || search.Tokens <= plain.Tokens {
				t.Errorf("got %d tokens, with tools %d, with a search %d", plain.Tokens, tools.Tokens, search.Tokens)
			}
			const asks = `"tools":[{"type":"mcp","server_label":"docs","require_approval":"always"}]`
			r, _, _ := g.ask(t, false, `"call mcp__docs__say {\"text\":\"hi\"}"`, `"store":true,`+asks)
			question := r.Output[len(r.Output)-1]
			if question.Type != "mcp_approval_request" {
				t.Fatalf("got %s", r.types())
			}
			count(fmt.Sprintf(`"previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}],`, r.ID, question.ID) + asks)
			if n := g.server.calls.Load(); n != 0 {
				t.Errorf("%d calls reached the server", n)
			}
		})
	}
}

// A call waits for the client's consent, which may be denied.
func TestToolsAskFirst(t *testing.T) {
	t.Parallel()
	const asks = `"tools":[{"type":"mcp","server_label":"docs","require_approval":{"never":{"tool_names":["look"]}}}]`
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			for _, stream := range []bool{false, true} {
				r, _, _ := g.ask(t, stream, `"call mcp__docs__say {\"text\":\"hi\"}"`, `"store":true,`+asks)
				if want := "mcp_list_tools mcp_approval_request"; r.types() != want || r.Output[1].Name != "say" || g.server.calls.Load() != 0 {
					t.Fatalf("got %s, %d calls", r.types(), g.server.calls.Load())
				}
				question := r.Output[1].ID
				for _, c := range []struct {
					approve bool
					types   string
					told    string
					calls   int64
				}{{true, "mcp_call message", "said hi", 1}, {false, "message", "The user denied this call. Too dear", 0}} {
					answer := fmt.Sprintf(`[{"type":"mcp_approval_response","approval_request_id":%q,"approve":%t,"reason":"Too dear"}]`, question, c.approve)
					next, _, _ := g.ask(t, stream, answer, fmt.Sprintf(`"store":true,"previous_response_id":%q,`, r.ID)+asks)
					if next.types() != c.types || !strings.Contains(next.text(), c.told) {
						t.Errorf("got %s %q, want %s %q", next.types(), next.text(), c.types, c.told)
					}
					if n := g.server.calls.Swap(0); n != c.calls {
						t.Errorf("%d calls, want %d", n, c.calls)
					}
					if c.approve && next.Output[0].Approval != question {
						t.Errorf("the call is for the question %q, want %q", next.Output[0].Approval, question)
					}
					last, _, _ := g.ask(t, stream, `"And now? call mcp__docs__look {\"text\":\"it\"}"`, fmt.Sprintf(`"previous_response_id":%q,`, next.ID)+asks)
					if want := "mcp_call message"; last.types() != want || g.server.calls.Swap(0) != 1 {
						t.Errorf("the turn after: %s, want %s", last.types(), want)
					}
				}
			}
		})
	}
}

// A search of the web, for models whose upstream has none.
func TestToolsSearch(t *testing.T) {
	t.Parallel()
	for _, speaks := range []string{"openai-chat", "openai-responses", "bedrock"} {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startTooled(t, speaks)
			for _, stream := range []bool{false, true} {
				r, events, _ := g.ask(t, stream, `"call web_search {\"query\":\"limen\"}"`, `"tools":[{"type":"web_search","filters":{"allowed_domains":["a.example"]}}],"tool_choice":{"type":"web_search"}`)
				if want := "web_search_call message"; r.types() != want {
					t.Fatalf("got %s, want %s", r.types(), want)
				}
				a := r.Output[0].Action
				if a.Query != "limen" || len(a.Sources) != 1 || a.Sources[0].URL != "https://a.example/limen" || r.Output[0].Status != "completed" {
					t.Errorf("got %+v", r.Output[0])
				}
				if !strings.Contains(r.text(), "https://a.example/limen") {
					t.Errorf("the model was not told: %q", r.text())
				}
				if stream {
					inOrder(t, events, "response.output_item.added", "response.web_search_call.in_progress", "response.web_search_call.searching", "response.web_search_call.completed", "response.output_item.done", "response.completed")
				}
			}
		})
	}
}

// What goes wrong is told to the client and to the model.
func TestToolsThatFail(t *testing.T) {
	t.Parallel()
	g := startTooled(t, "openai-chat")
	for name, c := range map[string]struct{ input, says string }{
		"the tool":      {`call mcp__docs__fail {\"text\":\"x\"}`, "it broke"},
		"too large":     {`call mcp__docs__flood {\"text\":\"x\"}`, "larger than 1 MiB"},
		"bad arguments": {`call mcp__docs__say {\"text\":7}`, "text"},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, stream), func(t *testing.T) {
				r, events, _ := g.ask(t, stream, `"`+c.input+`"`, docsTool)
				if want := "mcp_list_tools mcp_call message"; r.types() != want {
					t.Fatalf("got %s, want %s", r.types(), want)
				}
				call := r.Output[1]
				if call.Status != "failed" || call.Output != nil || call.Error == nil || !strings.Contains(*call.Error, c.says) {
					t.Errorf("got %+v, want an error with %q", call, c.says)
				}
				if call.Error != nil && !strings.Contains(r.text(), (*call.Error)[:min(len(*call.Error), 20)]) {
					t.Errorf("the model was not told: %q", r.text())
				}
				if stream {
					inOrder(t, events, "response.mcp_call.in_progress", "response.mcp_call_arguments.done", "response.mcp_call.failed", "response.output_item.done", "response.completed")
				}
			})
		}
	}
	for _, label := range []string{"gone", "away"} {
		r, events, _ := g.ask(t, true, `"Hello"`, `"tools":[{"type":"mcp","server_label":"`+label+`","require_approval":"never"}]`)
		if want := "mcp_list_tools message"; r.types() != want || r.Output[0].Error == nil {
			t.Fatalf("%s: got %s %+v", label, r.types(), r.Output)
		}
		if label == "away" && !strings.Contains(*r.Output[0].Error, "not followed") {
			t.Errorf("got %q", *r.Output[0].Error)
		}
		inOrder(t, events, "response.mcp_list_tools.in_progress", "response.mcp_list_tools.failed", "response.output_item.done", "response.completed")
	}
	r, _, _ := g.ask(t, false, `"Hello"`, `"store":true,"tool_choice":"none",`+docsTool)
	g.server.away.Store(true)
	next, _, _ := g.ask(t, false, `"call mcp__docs__say {\"text\":\"hi\"}"`, fmt.Sprintf(`"previous_response_id":%q,`, r.ID)+docsTool)
	if want := "mcp_call message"; next.types() != want || next.Output[0].Error == nil || next.Output[0].Status != "failed" || !strings.Contains(next.text(), "could not be reached") {
		t.Errorf("a server that went away: %+v", next.Output)
	}
}

// Only what the operator allowed is called.
func TestToolsNotAllowed(t *testing.T) {
	t.Parallel()
	g := startTooled(t, "openai-chat")
	for name, c := range map[string]struct{ tool, param string }{
		"an unknown label":   {`{"type":"mcp","server_label":"other"}`, "tools[0].server_label"},
		"no label":           {`{"type":"mcp","server_url":"http://127.0.0.1/"}`, "tools[0].server_label"},
		"another URL":        {`{"type":"mcp","server_label":"x","server_url":"` + g.server.URL + `/mcp"}`, "tools[0].server_url"},
		"a way around":       {`{"type":"mcp","server_label":"x","server_url":"` + g.server.URL + `/open/../mcp"}`, "tools[0].server_url"},
		"the label's other":  {`{"type":"mcp","server_label":"docs","server_url":"http://169.254.169.254/mcp"}`, "tools[0].server_url"},
		"a connector":        {`{"type":"mcp","server_label":"x","connector_id":"connector_dropbox"}`, "tools[0].connector_id"},
		"twice the same one": {`{"type":"mcp","server_label":"docs"},{"type":"mcp","server_label":"docs"}`, "tools[1].server_label"},
	} {
		got := g.post(t, "/responses", `{"model":"up/small","input":"x","tools":[`+c.tool+`]}`)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"param":"`+c.param+`"`) {
			t.Errorf("%s: got %d %s", name, got.status, got.body)
		}
	}
	if n := g.server.asked.Load(); n != 0 {
		t.Errorf("the server was called %d times", n)
	}
	got := g.post(t, "/responses", `{"model":"up/small","tools":[{"type":"mcp","server_label":"docs"}],"input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "input[0].approval_request_id") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	r, _, _ := g.ask(t, false, `"call mcp__x__say {\"text\":\"hi\"}"`, `"tools":[{"type":"mcp","server_label":"x","server_url":"`+g.server.URL+`/open/mcp","authorization":"theirs","require_approval":"never"}]`)
	if want := "mcp_list_tools mcp_call message"; r.types() != want || g.server.secret.Load() != "Bearer theirs" {
		t.Errorf("an allowed server: got %s, authorized by %v", r.types(), g.server.secret.Load())
	}
}

// A model that never stops calling is stopped.
func TestToolsWithoutEnd(t *testing.T) {
	t.Parallel()
	const call = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"mcp__docs__say","arguments":"{\"text\":\"x\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	up := &inTurn{answers: slices.Repeat([]string{call}, 20)}
	server := httptest.NewServer(up)
	t.Cleanup(server.Close)
	tools := newToolServer(t)
	g := start(t, "providers: {up: {base_url: '"+server.URL+"', speaks: [openai-chat], models: [small]}}\ntools: {mcp: {servers: {docs: {url: '"+tools.URL+"/mcp'}}}}")
	r, _, _ := (&tooled{gateway: g}).ask(t, false, `"x"`, docsTool)
	if len(up.asked) != 10 || tools.calls.Load() != 9 || len(r.Output) != 10 || r.Status != "completed" || r.Usage.Total != 50 {
		t.Errorf("%d requests, %d calls, %d items, %s, %d tokens", len(up.asked), tools.calls.Load(), len(r.Output), r.Status, r.Usage.Total)
	}
	if last := up.asked[9]; !strings.Contains(last, `"tool_choice":"none"`) {
		t.Errorf("the last request is\n%s", last)
	}
}

// OpenAI's own service runs its own tools, and without a stand-in everything
// is as the client wrote it.
func TestToolsThatPass(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"OpenAI's":    "vendor: openai, ",
		"no stand-in": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := &inTurn{answers: []string{`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[]}`}}
			server := httptest.NewServer(up)
			t.Cleanup(server.Close)
			all := "providers: {up: {" + config + "base_url: '" + server.URL + "', api_key: k, speaks: [openai-responses], models: [small]}}\n"
			if config != "" {
				all += "tools: {mcp: {servers: {docs: {url: 'http://127.0.0.1:9/'}}}, web_search: {url: 'http://127.0.0.1:9/'}}"
			}
			g := start(t, all)
			const tools = `"tools":[{"type":"mcp","server_label":"docs","server_url":"https://x.example"},{"type":"web_search"}]`
			if got := g.post(t, "/responses", `{"model":"up/small","input":"x",`+tools+`}`); got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			if len(up.asked) != 1 || !strings.Contains(up.asked[0], tools) {
				t.Errorf("asked %s", up.asked)
			}
		})
	}
}

// A client that leaves while a tool runs ends its call.
func TestToolsClientLeaves(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	waiting, ended := make(chan struct{}), make(chan struct{})
	searching := make([]byte, 0, 64<<10)
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(engine.Close)
	g := start(t, provider(up)+"tools: {web_search: {url: '"+engine.URL+"'}}")
	ctx, leave := context.WithCancel(t.Context())
	r := g.request(t, ctx, http.MethodPost, "/responses", strings.NewReader(`{"model":"up/small","stream":true,"input":"call web_search {\"query\":\"x\"}","tools":[{"type":"web_search"}]}`))
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(string(searching), "response.web_search_call.searching") { // before there is any result
		n, err := resp.Body.Read(searching[len(searching):cap(searching)])
		if searching = searching[:len(searching)+n]; err != nil {
			t.Fatalf("%v after %s", err, searching)
		}
	}
	<-waiting
	leave()
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	<-ended
}
