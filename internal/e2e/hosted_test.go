package e2e

import (
	"context"
	"encoding/base64"
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

// sandbox runs code, or says so.
func sandbox(t *testing.T) *httptest.Server {
	s := httptest.NewServer(newToolHandler(hostedTool{name: "run", argument: "script", answer: func(script string) (content string, failed bool) {
		switch script {
		case "raise":
			return said("Traceback: it broke"), true
		case "draw":
			return said("ran draw") + `,{"type":"image","mimeType":"image/png","data":"cGxvdA=="}`, false
		}
		return said("ran " + script), false
	}}))
	t.Cleanup(s.Close)
	return s
}

// fileServer has two stores, and what it was asked.
type fileServer struct {
	*httptest.Server
	asked atomic.Value // the last body
	fault atomic.Value // how it answers, instead
}

func newFileServer(t *testing.T) *fileServer {
	s := &fileServer{}
	s.fault.Store("")
	const one, other = `{"file_id":"file_1","filename":"a.md","score":0.5,"attributes":{"year":2024},"content":[{"type":"text","text":"about "},{"type":"text","text":"a"}]}`,
		`{"file_id":"file_2","filename":"b.md","score":0.9,"attributes":null,"content":[{"type":"text","text":"about b"}]}`
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked.Store(string(body))
		switch {
		case s.fault.Load() == "500":
			w.WriteHeader(http.StatusInternalServerError)
		case s.fault.Load() == "giant":
			w.Write([]byte(`{"data":["` + strings.Repeat("x", 2<<20) + `"]}`))
		case s.fault.Load() == "garbage":
			w.Write([]byte(`<html>`))
		case s.fault.Load() == "silence":
			<-r.Context().Done()
		case r.Header.Get("Authorization") != "Bearer file-canary" || r.URL.RawQuery != "version=1":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/vector_stores/vs_1/search":
			fmt.Fprintf(w, `{"object":"vector_store.search_results.page","search_query":["x"],"data":[%s],"has_more":false,"next_page":null}`, one)
		case r.URL.Path == "/v1/vector_stores/vs_2/search":
			fmt.Fprintf(w, `{"data":[%s]}`, other)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// hosted is a gateway with a stand-in for every tool that has one.
type hosted struct {
	*tooled
	files *fileServer
}

func startHosted(t *testing.T, speaks, painter, further string) *hosted {
	up := newUpstream(t, upstream.WithModels("gpt-image-1", "painter", "gemini-3-pro"))
	base := up.URL()
	switch speaks {
	case "gemini":
		base = strings.TrimSuffix(base, "/v1") + "/v1beta"
	case "bedrock":
		base = strings.TrimSuffix(base, "/v1")
	}
	server, code, engine, files := newToolServer(t), sandbox(t), searchEngine(t), newFileServer(t)
	config := fmt.Sprintf(`
providers:
  up: {base_url: %q, api_key: %s, speaks: [%s], models: [small, gemini-3-pro]}
  art: {base_url: %q, api_key: %s, speaks: [openai-chat], models: [gpt-image-1, painter]}
tools:
  timeout: 20s
  mcp: {servers: {docs: {url: %q}, box: {url: %q}}}
  web_search: {url: %q}
  file_search: {url: "%s?version=1", api_key: file-canary}
  code_interpreter: {mcp: box, tool: run, argument: script}
  image_generation: {model: %s}
%s`, base, canary, speaks, up.URL(), canary, server.URL+"/mcp", code.URL, engine.URL+"/search?format=json", files.URL+"/v1", painter, further)
	return &hosted{&tooled{start(t, config), up, server}, files}
}

// An image is made by another model, whose usage is a call of its own.
func TestToolsImage(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"image_generation","size":"1024x1024","quality":"low","output_format":"webp"}],"tool_choice":{"type":"image_generation"}`
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startHosted(t, speaks, "art/gpt-image-1", "")
			for _, stream := range []bool{false, true} {
				before := len(g.records(t))
				r, events, header := g.ask(t, stream, `"call image_generation {\"prompt\":\"a cat\"}"`, tools)
				if want := "image_generation_call message"; r.types() != want || r.Status != "completed" {
					t.Fatalf("got %s, want %s", r.types(), want)
				}
				if it := r.Output[0]; it.Result != upstream.Image("a cat") || it.Status != "completed" || it.Prompt != "a cat" || it.Format != "webp" {
					t.Errorf("got %+v", it)
				}
				if !strings.Contains(r.text(), "The image was made") {
					t.Errorf("the model was not told: %q", r.text())
				}
				if stream {
					inOrder(t, events, "response.output_item.added", "response.image_generation_call.in_progress", "response.image_generation_call.generating", "response.image_generation_call.completed", "response.output_item.done", "response.completed")
				}
				all := g.records(t)
				if len(all) != before+2 {
					t.Fatalf("%d records more, want 2", len(all)-before)
				}
				for _, rec := range all[:2] {
					switch {
					case rec.RequestID == header.Get("X-Request-Id"):
						if rec.Total != r.Usage.Total {
							t.Errorf("the answer is recorded with %d tokens, told are %d", rec.Total, r.Usage.Total)
						}
					case rec.Operation != "images" || rec.Model != "art/gpt-image-1" || rec.UpstreamModel != "gpt-image-1" || rec.Provider != "art" || rec.Input != 7 || rec.Output != 100 || rec.Status != 200 || rec.Estimated:
						t.Errorf("the image is recorded as %+v", rec)
					}
				}
			}
			for _, asked := range g.up.Requests() {
				if asked.Path == "/v1/images/generations" && !strings.Contains(asked.Body, `"size":"1024x1024","quality":"low","output_format":"webp"`) {
					t.Errorf("the image was asked for with %s", asked.Body)
				}
			}
		})
	}
}

// Images of servers that give an address unless they are asked for more, and
// those that are not made.
func TestToolsImageUpstreams(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"image_generation"}]`
	g := startHosted(t, "openai-chat", "art/painter", "")
	r, _, _ := g.ask(t, false, `"call image_generation {\"prompt\":\"a dog\"}"`, tools)
	if len(r.Output) != 2 || r.Output[0].Result != upstream.Image("a dog") {
		t.Errorf("got %+v", r.Output)
	}
	for _, rec := range g.records(t) {
		if rec.Operation == "images" && !rec.Estimated {
			t.Errorf("without figures of the upstream: %+v", rec)
		}
	}
	r, _, _ = g.ask(t, true, `"call image_generation {\"prompt\":\"\"}"`, tools)
	if r.types() != "image_generation_call message" || r.Output[0].Status != "failed" || !strings.Contains(r.text(), "There is no prompt") {
		t.Errorf("without a prompt: %s %+v %q", r.types(), r.Output[0], r.text())
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		waits   bool
		says    string
		records string
	}{
		"500":       {500, `{"error":{"message":"no"}}`, false, "The upstream failed (HTTP 500)", "upstream"},
		"refused":   {400, `{"error":{"message":"Your prompt was blocked.","type":"image_generation_user_error","code":"moderation_blocked"}}`, false, "Your prompt was blocked", "invalid"},
		"garbage":   {200, `<html>`, false, "could not be read", "upstream_invalid"},
		"no image":  {200, `{"created":1,"data":[]}`, false, "gave no image", "upstream_invalid"},
		"no base64": {200, `{"data":[{"b64_json":"\"<>"}]}`, false, "gave no image", "upstream_invalid"},
		"address":   {200, `{"data":[{"url":"https://x.example/i.png"}]}`, false, "the address of an image", "upstream_invalid"},
		"giant":     {200, strings.Repeat(" ", 2<<20), false, "larger than this gateway takes", "upstream_invalid"},
		"silence":   {200, ``, true, "took too long", "upstream_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			art := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if c.waits {
					<-r.Context().Done()
					return
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			t.Cleanup(art.Close)
			up := newUpstream(t)
			g := &tooled{gateway: start(t, strings.Replace(provider(up), "providers:\n", "providers:\n  art: {base_url: '"+art.URL+"', speaks: [openai-chat], models: [x]}\n", 1)+
				fmt.Sprintf("limits: {answer: 1MiB}\ntools: {image_generation: {model: art/x, timeout: %s}}\n", map[bool]string{true: "1s", false: "20s"}[c.waits]))}
			r, _, _ := g.ask(t, true, `"call image_generation {\"prompt\":\"a dog\"}"`, tools)
			if r.types() != "image_generation_call message" || r.Output[0].Status != "failed" || r.Output[0].Result != "" || !strings.Contains(r.text(), c.says[:min(len(c.says), 18)]) {
				t.Errorf("got %s %+v %q, want %q", r.types(), r.Output[0], r.text(), c.says)
			}
			for _, rec := range g.records(t) {
				if rec.Operation == "images" && rec.Error != c.records {
					t.Errorf("recorded as %+v, want %s", rec, c.records)
				}
			}
		})
	}
}

// Where only one call may be under way to a provider, its own images have the
// place of the call that wants them; those of another one need a place there.
func TestToolsImagePlace(t *testing.T) {
	t.Parallel()
	up := newUpstream(t, upstream.WithModels("gpt-image-1"))
	g := &tooled{gateway: start(t, fmt.Sprintf(`
providers:
  up: {base_url: %q, api_key: %s, speaks: [openai-chat], models: [small, gpt-image-1], concurrency: 1}
tools: {image_generation: {model: up/gpt-image-1}}
`, up.URL(), canary))}
	r, _, _ := g.ask(t, true, `"call image_generation {\"prompt\":\"a cat\"}"`, `"tools":[{"type":"image_generation"}]`)
	if len(r.Output) != 2 || r.Output[0].Result != upstream.Image("a cat") {
		t.Errorf("got %+v", r.Output)
	}
	art := newUpstream(t, upstream.WithModels("gpt-image-1"))
	g = &tooled{gateway: start(t, fmt.Sprintf(`
providers:
  up: {base_url: %q, api_key: %s, speaks: [openai-chat], models: [small]}
  art: {base_url: %q, api_key: %[2]s, speaks: [openai-chat], models: [small, gpt-image-1], concurrency: 1}
limits: {queue: 50ms}
tools: {image_generation: {model: art/gpt-image-1}}
`, up.URL(), canary, art.URL()))}
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	blocking := g.request(t, ctx, http.MethodPost, "/chat/completions", strings.NewReader(`{"model":"art/small","messages":[{"role":"user","content":"[[fault:hang]]"}]}`))
	go func() {
		defer close(gone)
		if resp, err := g.client.Do(blocking); err == nil {
			resp.Body.Close()
		}
	}()
	for n := 1; ; n++ { // lists of models come as well
		all, err := art.Wait(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(all, func(r upstream.Request) bool { return r.Path == "/v1/chat/completions" }) {
			break
		}
	}
	r, _, _ = g.ask(t, true, `"call image_generation {\"prompt\":\"a cat\"}"`, `"tools":[{"type":"image_generation"}]`)
	if len(r.Output) != 2 || r.Output[0].Status != "failed" || !strings.Contains(r.text(), "As many calls as may be") {
		t.Errorf("without a place: got %+v %q", r.Output, r.text())
	}
	leave()
	<-gone
}

// A key that may not use the model for images has no such tool.
func TestToolsImageModelHidden(t *testing.T) {
	t.Parallel()
	g := startHosted(t, "openai-chat", "secret", "models: {secret: {targets: [art/painter], visible_to: [nobody]}}\n")
	got := g.post(t, "/responses", `{"model":"up/small","input":"x","tools":[{"type":"image_generation"}]}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "image_generation") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	got = g.post(t, "/responses", `{"model":"up/small","input":"x","tools":[{"type":"image_generation"},{"type":"function","name":"f"}]}`)
	if got.status != http.StatusOK || got.header.Get("X-Limen-Notes") != "drop:image_generation" {
		t.Errorf("got %d %s %s", got.status, got.header, got.body)
	}
}

const filesTool = `"tools":[{"type":"file_search","vector_store_ids":["vs_1","vs_2"],"max_num_results":5,"filters":{"type":"eq","key":"year","value":2024},"ranking_options":{"score_threshold":0.1}}]`

// Files are searched at a server that has stores of them.
func TestToolsFiles(t *testing.T) {
	t.Parallel()
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startHosted(t, speaks, "art/painter", "")
			for _, stream := range []bool{false, true} {
				r, events, _ := g.ask(t, stream, `"call file_search {\"query\":\"q\"}"`, `"include":["file_search_call.results"],"tool_choice":{"type":"file_search"},`+filesTool)
				if want := "file_search_call message"; r.types() != want {
					t.Fatalf("got %s, want %s", r.types(), want)
				}
				it := r.Output[0]
				if len(it.Queries) != 1 || it.Queries[0] != "q" || it.Status != "completed" || len(it.Results) != 2 || it.Results[0] != (foundFile{"file_2", "b.md", "about b", 0.9}) || it.Results[1].Text != "about \na" {
					t.Errorf("got %+v", it)
				}
				if !strings.Contains(r.text(), "[1] b.md\nabout b\n\n[2] a.md") {
					t.Errorf("the model was told %q", r.text())
				}
				if asked := g.files.asked.Load(); asked != `{"query":"q","max_num_results":5,"filters":{"type":"eq","key":"year","value":2024},"ranking_options":{"score_threshold":0.1}}` {
					t.Errorf("the server was asked %s", asked)
				}
				if stream {
					inOrder(t, events, "response.output_item.added", "response.file_search_call.in_progress", "response.file_search_call.searching", "response.file_search_call.completed", "response.output_item.done", "response.completed")
				}
			}
			r, _, _ := g.ask(t, false, `"call file_search {\"query\":\"q\"}"`, filesTool)
			if len(r.Output) != 2 || r.Output[0].Results != nil {
				t.Errorf("results that were not asked for: %+v", r.Output)
			}
		})
	}
}

// What goes wrong with searches of files is told to the client and the model.
func TestToolsFilesFail(t *testing.T) {
	t.Parallel()
	g := startHosted(t, "openai-chat", "art/painter", "")
	for fault, says := range map[string]string{"500": "could not be reached", "giant": "larger than 1 MiB", "garbage": "could not be reached"} {
		g.files.fault.Store(fault)
		r, _, _ := g.ask(t, true, `"call file_search {\"query\":\"q\"}"`, filesTool)
		if r.types() != "file_search_call message" || r.Output[0].Status != "failed" || !strings.Contains(r.text(), says) {
			t.Errorf("%s: got %s %+v %q", fault, r.types(), r.Output[0], r.text())
		}
	}
	g.files.fault.Store("")
	r, _, _ := g.ask(t, false, `"call file_search {\"query\":\"\"}"`, filesTool)
	if r.types() != "file_search_call message" || r.Output[0].Status != "failed" {
		t.Errorf("without a query: %s %+v", r.types(), r.Output)
	}
	for name, c := range map[string]struct{ tool, param string }{
		"no store":   {`{"type":"file_search"}`, "tools[0].vector_store_ids"},
		"no ID":      {`{"type":"file_search","vector_store_ids":["vs_1",".."]}`, "tools[0].vector_store_ids[1]"},
		"a path":     {`{"type":"file_search","vector_store_ids":["a/b"]}`, "tools[0].vector_store_ids[0]"},
		"too many":   {`{"type":"file_search","vector_store_ids":["a"` + strings.Repeat(`,"a"`, 16) + `]}`, "tools[0].vector_store_ids"},
		"no strings": {`{"type":"file_search","vector_store_ids":[7]}`, "tools[0].vector_store_ids[0]"},
	} {
		got := g.post(t, "/responses", `{"model":"up/small","input":"x","tools":[`+c.tool+`]}`)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"param":"`+c.param+`"`) {
			t.Errorf("%s: got %d %s", name, got.status, got.body)
		}
	}
}

// Nothing waits longer for a tool than it may.
func TestToolsFilesSilent(t *testing.T) {
	t.Parallel()
	files := newFileServer(t)
	files.fault.Store("silence")
	g := &tooled{gateway: start(t, provider(newUpstream(t))+"tools: {timeout: 1s, file_search: {url: '"+files.URL+"'}}\n")}
	r, _, _ := g.ask(t, true, `"call file_search {\"query\":\"q\"}"`, filesTool)
	if r.types() != "file_search_call message" || r.Output[0].Status != "failed" || !strings.Contains(r.text(), "took too long") {
		t.Errorf("got %s %+v %q", r.types(), r.Output[0], r.text())
	}
}

const codeTool = `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`

// Code is run by a tool of a server.
func TestToolsCode(t *testing.T) {
	t.Parallel()
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startHosted(t, speaks, "art/painter", "")
			tools := codeTool
			if speaks == "gemini" { // which runs code itself where there are no functions
				tools = strings.TrimSuffix(tools, "]") + `,{"type":"function","name":"f"}]`
			}
			for _, stream := range []bool{false, true} {
				r, events, _ := g.ask(t, stream, `"call2 code_interpreter {\"code\":\"draw\"}"`, `"include":["code_interpreter_call.outputs"],`+tools)
				if want := "code_interpreter_call code_interpreter_call message"; r.types() != want {
					t.Fatalf("got %s, want %s", r.types(), want)
				}
				it := r.Output[0]
				if it.Code != "draw" || it.Status != "completed" || !strings.HasPrefix(it.Container, "cntr_") || it.Container != r.Output[1].Container {
					t.Errorf("got %+v", it)
				}
				if len(it.Outputs) != 2 || !strings.HasPrefix(it.Outputs[0].Logs, "ran draw") || it.Outputs[1].Type != "image" || it.Outputs[1].URL != "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte("plot")) {
					t.Errorf("got the outputs %+v", it.Outputs)
				}
				if !strings.Contains(r.text(), "ran draw") {
					t.Errorf("the model was told %q", r.text())
				}
				if stream {
					inOrder(t, events, "response.output_item.added", "response.code_interpreter_call.in_progress", "response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done",
						"response.code_interpreter_call.interpreting", "response.code_interpreter_call.completed", "response.output_item.done", "response.completed")
				}
			}
			r, _, _ := g.ask(t, true, `"call code_interpreter {\"code\":\"raise\"}"`, tools)
			if len(r.Output) != 2 || r.Output[0].Status != "failed" || r.Output[0].Code != "raise" || r.Output[0].Outputs != nil || !strings.Contains(r.text(), "it broke") {
				t.Errorf("got %+v", r.Output)
			}
		})
	}
}

// All tools that the gateway runs are counted.
func TestToolsHostedCounted(t *testing.T) {
	t.Parallel()
	g := startHosted(t, "openai-chat", "art/painter", "")
	tools := strings.TrimSuffix(filesTool, "]") + "," + strings.TrimPrefix(codeTool, `"tools":[`)
	r, _, _ := g.ask(t, true, `"call file_search {\"query\":\"q\"} then call2 code_interpreter {\"code\":\"x\"}"`, `"max_tool_calls":2,`+tools)
	if want := "file_search_call code_interpreter_call message"; r.types() != want || !strings.Contains(r.text(), "no more calls") {
		t.Errorf("got %s %q, want %s", r.types(), r.text(), want)
	}
}

// What was done in earlier turns is known to the model, whether the gateway
// kept the turn or the client sends it again, with the tool and without it.
func TestToolsHostedHistory(t *testing.T) {
	t.Parallel()
	all := `"tools":[` + strings.Join([]string{`{"type":"image_generation"}`, `{"type":"web_search"}`, strings.TrimSuffix(strings.TrimPrefix(filesTool, `"tools":[`), "]"), strings.TrimSuffix(strings.TrimPrefix(codeTool, `"tools":[`), "]"), `{"type":"function","name":"f"}`}, ",") + "]"
	for _, speaks := range []string{"openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"} {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startHosted(t, speaks, "art/painter", "")
			const prompt = `"call file_search {\"query\":\"q1\"} then call code_interpreter {\"code\":\"c1\"} then call image_generation {\"prompt\":\"p1\"}"`
			for name, include := range map[string]string{"with results": `"include":["file_search_call.results","code_interpreter_call.outputs"],`, "without": ""} {
				got := g.post(t, "/responses", `{"model":"up/small","store":true,`+include+`"input":`+prompt+`,`+all+`}`)
				var r struct {
					ID     string
					Output []json.RawMessage
				}
				if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != http.StatusOK {
					t.Fatalf("got %d %s", got.status, got.body)
				}
				var items []string
				for _, it := range r.Output {
					items = append(items, string(it))
				}
				again := `[{"role":"user","content":"x"},` + strings.Join(items, ",") + `,{"role":"user","content":"Hello"}]`
				for _, next := range []string{`"tool_choice":"none","input":` + again + `,` + all, `"tool_choice":"none","previous_response_id":"` + r.ID + `","input":"Hello",` + all} {
					g.up.Reset()
					if got := g.post(t, "/responses", `{"model":"up/small",`+next+`}`); got.status != http.StatusOK {
						t.Fatalf("%s: got %d %s", name, got.status, got.body)
					}
					asked := g.up.Requests()[0].Body
					said := []string{"q1", "c1", "p1", "The image was made"}
					if include != "" {
						said = append(said, "about b", "ran c1")
					} else {
						said = append(said, "is not kept")
					}
					for _, s := range said {
						if !strings.Contains(asked, s) {
							t.Errorf("%s: the model does not know %q: %s", name, s, asked)
						}
					}
				}
				got = g.post(t, "/responses", `{"model":"up/small","input":`+again+`}`)
				if speaks == "openai-responses" { // where items pass as they are
					continue
				}
				if got.status != http.StatusOK || !strings.Contains(got.header.Get("X-Limen-Notes"), "drop:file_search_call") {
					t.Errorf("%s, without the tools: got %d %v %s", name, got.status, got.header, got.body)
				}
			}
		})
	}
}

// A choice of tools can name those that the gateway runs.
func TestToolsHostedChoice(t *testing.T) {
	t.Parallel()
	all := `"tools":[{"type":"web_search"},{"type":"mcp","server_label":"docs","require_approval":"never"},{"type":"function","name":"f"}]`
	for _, speaks := range outboundDialects {
		t.Run(speaks, func(t *testing.T) {
			t.Parallel()
			g := startHosted(t, speaks, "art/painter", "")
			for name, c := range map[string]struct{ choice, calls, types, says string }{
				"a tool of a server":   {`{"type":"mcp","server_label":"docs","name":"look"}`, `call mcp__docs__look {\"text\":\"a\"}`, "mcp_list_tools mcp_call message", "seen a"},
				"a server":             {`{"type":"mcp","server_label":"docs"}`, `call mcp__docs__look {\"text\":\"a\"}`, "mcp_list_tools mcp_call message", "seen a"},
				"allowed":              {`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"docs","name":"look"}]}`, `call mcp__docs__look {\"text\":\"a\"} then call mcp__docs__look {\"text\":\"b\"}`, "mcp_list_tools mcp_call mcp_call message", "seen b"},
				"allowed, required":    {`{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp","server_label":"docs"},{"type":"function","name":"f"}]}`, `call mcp__docs__look {\"text\":\"a\"}`, "mcp_list_tools mcp_call message", "seen a"},
				"another than allowed": {`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"docs","name":"look"}]}`, `call mcp__docs__say {\"text\":\"a\"}`, "mcp_list_tools message", "may not be called"},
			} {
				r, _, _ := g.ask(t, true, `"`+c.calls+`"`, `"tool_choice":`+c.choice+`,`+all)
				if r.types() != c.types || !strings.Contains(r.text(), c.says) {
					t.Errorf("%s: got %s %q, want %s %q", name, r.types(), r.text(), c.types, c.says)
				}
			}
		})
	}
}

// Where a model names what a search of the gateway's found, the message cites
// it.
func TestToolsSearchCited(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		text := `Ünd [A title](https://a.example/x), or https://b.example/. Not https://b.example/other.`
		up := &inTurn{answers: []string{
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"x\"}"}}]},"finish_reason":"tool_calls"}]}`,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`,
		}}
		server := httptest.NewServer(up)
		t.Cleanup(server.Close)
		engine := searchEngine(t)
		g := &tooled{gateway: start(t, "providers: {up: {base_url: '"+server.URL+"', speaks: [openai-chat], models: [small]}}\ntools: {web_search: {url: '"+engine.URL+"/?format=json'}}")}
		r, events, _ := g.ask(t, stream, `"x"`, `"tools":[{"type":"web_search"}]`)
		if r.types() != "web_search_call message" || len(r.Output[1].Content) != 1 {
			t.Fatalf("got %+v", r.Output)
		}
		notes := r.Output[1].Content[0].Annotations
		if len(notes) != 2 || notes[0] != (citation{"url_citation", "https://a.example/x", "A", 4, 34}) || notes[1] != (citation{"url_citation", "https://b.example/", "B", 39, 57}) {
			t.Errorf("got %+v", notes)
		}
		if stream {
			inOrder(t, events, "response.output_text.delta", "response.output_text.annotation.added", "response.output_text.annotation.added", "response.output_text.done", "response.completed")
		}
	}
}

// raw makes a request of Responses, and returns the ID of the answer and its
// items as they are.
func (g *tooled) raw(t *testing.T, body string) (id string, items []json.RawMessage) {
	t.Helper()
	got := g.post(t, "/responses", body)
	whole := got.body
	if i := strings.LastIndex(got.body, `data: {"type":"response.completed"`); i >= 0 {
		whole, _, _ = strings.Cut(got.body[i+len("data: "):], "\n")
	}
	var r struct {
		ID       string
		Output   []json.RawMessage
		Response struct {
			ID     string
			Output []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(whole), &r); err != nil || got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	return r.ID + r.Response.ID, append(r.Output, r.Response.Output...)
}

// The signatures of calls go back with them, also when the client had to
// consent to a call, or to another one after it.
func TestToolsSignatures(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"mcp","server_label":"docs","require_approval":{"never":{"tool_names":["look"]}}},{"type":"function","name":"mine"}]`
	for prompt, signed := range map[string]int{
		`call mcp__docs__say {\"text\":\"b\"}`:                                                               1,
		`call mcp__docs__look {\"text\":\"a\"} then call mcp__docs__say {\"text\":\"b\"}`:                    2,
		`call2 mcp__docs__look {\"text\":\"a\"} then call2 mcp__docs__say {\"text\":\"b\"}`:                  2,
		`call2 mcp__docs__look {\"text\":\"a\"} then call mine {} then call mcp__docs__say {\"text\":\"b\"}`: 3,
	} {
		for _, stored := range []bool{false, true} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprint(prompt, stored, stream), func(t *testing.T) {
					t.Parallel()
					g := startHosted(t, "gemini", "art/painter", "")
					head := fmt.Sprintf(`{"model":"up/gemini-3-pro","store":%t,"stream":%t,"include":["reasoning.encrypted_content"],%s,`, stored, stream, tools)
					input, before := []string{`{"role":"user","content":"` + prompt + `"}`}, ""
					for turns := 0; ; turns++ {
						g.up.Reset()
						id, items := g.raw(t, head+before+`"input":[`+strings.Join(input, ",")+`]}`)
						if strings.Contains(fmt.Sprintf("%s", items), "The tool said: said b") {
							break
						}
						if turns > 3 {
							t.Fatalf("no end: %s", items)
						}
						if stored {
							before, input = `"previous_response_id":"`+id+`",`, nil
						}
						for _, it := range items {
							if !stored {
								input = append(input, string(it))
							}
						}
						for _, it := range items {
							var head struct {
								ID, Type string
								CallID   string `json:"call_id"`
							}
							json.Unmarshal(it, &head)
							switch head.Type {
							case "mcp_approval_request":
								input = append(input, `{"type":"mcp_approval_response","approval_request_id":"`+head.ID+`","approve":true}`)
							case "function_call":
								input = append(input, `{"type":"function_call_output","call_id":"`+head.CallID+`","output":"x"}`)
							}
						}
					}
					asked := g.up.Requests()[0].Body
					if strings.Contains(asked, "skip_thought_signature_validator") || strings.Count(asked, "thoughtSignature") != signed {
						t.Errorf("the signatures are lost: %s", asked)
					}
				})
			}
		}
	}
}

// Without a stand-in a tool is left out, unless the answer depends on it.
func TestToolsWithoutStandIn(t *testing.T) {
	t.Parallel()
	g := startTooled(t, "openai-chat")
	for _, kind := range []string{"image_generation", "file_search", "code_interpreter"} {
		tool := `{"type":"` + kind + `","vector_store_ids":["vs_1"]}`
		for name, c := range map[string]struct {
			rest   string
			status int
		}{
			"alone":      {`"tools":[` + tool + `]`, http.StatusBadRequest},
			"demanded":   {`"tools":[` + tool + `,{"type":"web_search"}],"tool_choice":{"type":"` + kind + `"}`, http.StatusBadRequest},
			"beside one": {`"tools":[` + tool + `,{"type":"web_search"}]`, http.StatusOK},
		} {
			got := g.post(t, "/responses", `{"model":"up/small","input":"x",`+c.rest+`}`)
			if got.status != c.status {
				t.Errorf("%s %s: got %d %s", kind, name, got.status, got.body)
			}
			if said := got.header.Get("X-Limen-Notes"); c.status == http.StatusOK && said != "drop:"+kind {
				t.Errorf("%s %s: noted %q", kind, name, said)
			}
			if c.status != http.StatusOK && !strings.Contains(got.body, "'"+kind+"'") {
				t.Errorf("%s %s: refused with %s", kind, name, got.body)
			}
		}
	}
}
