package tools

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTools(t *testing.T, c Config) *Tools {
	t.Helper()
	c.Timeout, c.Connect = 20*time.Second, 5*time.Second
	tools, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// all are kinds that no upstream runs.
func all(llm.ServerKind) bool { return true }

func TestAllowed(t *testing.T) {
	tools := newTools(t, Config{Allow: []string{"https://mcp.example.com/mcp", "https://*.open.example/v1/*", "http://127.0.0.1:9000/*", "https://bare.example"}})
	for text, want := range map[string]bool{
		"https://mcp.example.com/mcp":              true,
		"https://MCP.example.com:443/mcp":          true,
		"https://mcp.example.com/mcp?key=1":        true,
		"https://bare.example":                     true,
		"https://bare.example/":                    true,
		"https://a.open.example/v1/x":              true,
		"https://a.b.open.example/v1/":             true,
		"http://127.0.0.1:9000/anything":           true,
		"http://mcp.example.com/mcp":               false,
		"https://mcp.example.com/mcp/more":         false,
		"https://mcp.example.com:8443/mcp":         false,
		"https://mcp.example.com.evil.example/mcp": false,
		"https://evil.example/mcp.example.com/mcp": false,
		"https://mcp.example.com@evil.example/mcp": false,
		"https://evil.example#mcp.example.com/mcp": false,
		"https://open.example/v1/x":                false,
		"https://aopen.example/v1/x":               false,
		"https://.open.example/v1/x":               false,
		"https://a.open.example/v1/../admin":       false,
		"https://a.open.example/v1/%2e%2e/admin":   false,
		"https://a.open.example/v1/..%2fadmin":     false,
		"https://a.open.example/v1//x":             false,
		`https://a.open.example/v1/\..\admin`:      false,
		"http://127.0.0.1:9001/":                   false,
		"http://[::ffff:127.0.0.1]:9000/":          false,
		"file:///etc/passwd":                       false,
		"":                                         false,
		"https:mcp.example.com/mcp":                false,
		"https://bare.example/x":                   false,
		"https://user@mcp.example.com/mcp":         false,
		"https://mcp.example.com/mcp\n":            false,
		"//mcp.example.com/mcp":                    false,
		"https://xn--mcp.example.com/mcp":          false,
		"https://mcp.example.com./mcp":             false,
		"https://a.open.example/v10/x":             false,
		"https://a.open.example/v1":                false,
		"https://a.open.example/V1/x":              false,
		"http://127.0.0.1:9000":                    true,
		"http://localhost:9000/":                   false,
		"http://127.0.0.1.nip.example:9000/":       false,
		"https://a.open.example/v1/x#fragment":     false,
		"https://mcp.example.com/mcp/../mcp":       false,
		"https://mcp.example.com/%6dcp":            false,
		"https://mcp.example.com/mcp/":             false,
		"https://a.open.example/v1/x/":             true,
		"https://a.open.example/v1/x/.":            false,
		"https://a.open.example:443/v1/x":          true,
		"https://a.open.example:80/v1/x":           false,
	} {
		if _, _, ok := tools.allowed(text); ok != want {
			t.Errorf("%q: allowed %t, want %t", text, ok, want)
		}
	}
	for text, want := range map[string]bool{"http://127.0.0.1:9000/": true, "https://mcp.example.com/mcp": false} {
		if _, private, _ := tools.allowed(text); private != want {
			t.Errorf("%q: may be private %t, want %t", text, private, want)
		}
	}
	if _, err := New(Config{Allow: []string{"mcp.example.com"}}); err == nil {
		t.Error("a pattern without a scheme was taken")
	}
}

// A name that a client may use leads to no private address.
func TestPrivateAddresses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	tools := newTools(t, Config{})
	for public, want := range map[bool]bool{true: false, false: true} {
		c := tools.client(http.Header{}, public)
		resp, err := c.Get(server.URL)
		if (err == nil) != want {
			t.Errorf("public %t: %v", public, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		c.close()
	}
}

func TestResultsOfSearches(t *testing.T) {
	for name, body := range map[string]string{
		"SearXNG": `{"query":"q","results":[{"url":"https://a.example/","title":"A","content":"about a","engine":"x"}]}`,
		"Tavily":  `{"answer":null,"results":[{"title":"A","url":"https://a.example/","content":"about a","score":0.9}]}`,
		"Brave":   `{"type":"search","web":{"results":[{"title":"A","url":"https://a.example/","description":"about a"}]}}`,
		"plain":   `{"results":[{"title":"A","url":"https://a.example/","snippet":"about a"},{"title":"no address"},7]}`,
	} {
		got := readResults([]byte(body))
		if len(got) != 1 || got[0] != (found{"https://a.example/", "A", "about a"}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for _, body := range []string{"", "[]", "<html>", `{"results":7}`, `{"results":[`} {
		if got := readResults([]byte(body)); got != nil {
			t.Errorf("%q: got %+v", body, got)
		}
	}
}

func TestChosenResults(t *testing.T) {
	var many []found
	for i := range 20 {
		many = append(many, found{url: fmt.Sprintf("https://h%d.example/", i%2), title: fmt.Sprint(i)})
	}
	many = append(many, found{url: "javascript:alert(1)"})
	for name, c := range map[string]struct {
		tool llm.ServerTool
		want int
	}{
		"as usual": {llm.ServerTool{}, 6},
		"few":      {llm.ServerTool{Size: "low"}, 3},
		"many":     {llm.ServerTool{Size: "high"}, 10},
		"one host": {llm.ServerTool{Size: "high", Domains: []llm.Raw{llm.Raw(`"h1.example"`)}}, 10},
		"none":     {llm.ServerTool{Domains: []llm.Raw{llm.Raw(`"1.example"`)}}, 0},
		"blocked":  {llm.ServerTool{Blocked: []llm.Raw{llm.Raw(`"example"`)}}, 0},
	} {
		s := &searcher{tool: &c.tool}
		if got := s.chosen(many); len(got) != c.want {
			t.Errorf("%s: %d results, want %d", name, len(got), c.want)
		}
	}
}

// What a search engine is asked, and what becomes of its answers.
func TestSearch(t *testing.T) {
	var asked *http.Request
	var body []byte
	answer := func(w http.ResponseWriter) {
		io.WriteString(w, `{"results":[{"url":"https://a.example/","title":"A"}]}`)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, _ = io.ReadAll(r.Body)
		answer(w)
	}))
	defer server.Close()
	search := func(c Search) *dialect.HostedResult {
		t.Helper()
		c.URL = server.URL + "/s?format=json"
		req := &llm.Request{Tools: []llm.Tool{{Server: &llm.ServerTool{Kind: llm.WebSearch, Type: "web_search"}}}}
		run, err := newTools(t, Config{Search: &c}).Begin(t.Context(), req, all, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		call := &dialect.HostedCall{Tool: run.Host.Tools[llm.ToolName{Name: "web_search"}], Args: llm.Quote(`{"query":"a b&c"}`)}
		return run.Do(t.Context(), call)
	}
	got := search(Search{Headers: map[string]string{"X-Token": "t"}})
	if asked.Method != http.MethodGet || asked.URL.RawQuery != "format=json&q=a+b%26c" || asked.Header.Get("X-Token") != "t" {
		t.Errorf("asked %s %s %v", asked.Method, asked.URL, asked.Header)
	}
	if got.Failed || !strings.Contains(got.Text.Text(), "https://a.example/") || len(got.Call.Sources) != 1 || got.Call.Queries[0].Text() != "a b&c" {
		t.Errorf("got %+v", got)
	}
	search(Search{Post: true})
	if asked.Method != http.MethodPost || string(body) != `{"query":"a b&c"}` || asked.Header.Get("Content-Type") != "application/json" {
		t.Errorf("asked %s with %s", asked.Method, body)
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		says   string
	}{
		"a failure": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "could not be reached"},
		"too much":  {func(w http.ResponseWriter) { w.Write(make([]byte, 2<<20)) }, "larger than 1 MiB"},
		"a redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:9/")
			w.WriteHeader(http.StatusFound)
		}, "not followed"},
	} {
		answer = c.answer
		if got := search(Search{}); !got.Failed || !strings.Contains(got.Text.Text(), c.says) {
			t.Errorf("%s: got %s", name, got.Text)
		}
	}
}

// Which tools are offered, and which ask first.
func TestRulesOfServers(t *testing.T) {
	server := newServer(t, nil)
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: server.URL}}})
	yes, no := true, false
	for name, c := range map[string]struct {
		server llm.MCPServer
		want   string // a tool that asks has a question mark
	}{
		"nothing said":   {llm.MCPServer{}, "break? look? touch?"},
		"never":          {llm.MCPServer{Never: &llm.MCPFilter{}}, "break look touch"},
		"by name":        {llm.MCPServer{Never: &llm.MCPFilter{Names: []string{"look"}}}, "break? look touch?"},
		"reads only":     {llm.MCPServer{Never: &llm.MCPFilter{ReadOnly: &yes}}, "break? look touch?"},
		"always as well": {llm.MCPServer{Never: &llm.MCPFilter{}, Always: &llm.MCPFilter{Names: []string{"touch"}}}, "break look touch?"},
		"allowed":        {llm.MCPServer{Allowed: &llm.MCPFilter{Names: []string{"touch", "none"}}}, "touch?"},
		"none":           {llm.MCPServer{Allowed: &llm.MCPFilter{Names: []string{}}}, ""},
		"those that act": {llm.MCPServer{Allowed: &llm.MCPFilter{ReadOnly: &no}}, "break? touch?"},
	} {
		c.server.Label = "s"
		req := &llm.Request{Tools: []llm.Tool{mcpTool(c.server)}}
		run, err := tools.Begin(t.Context(), req, all, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range req.Tools {
			mark := ""
			if run.Host.Tools[llm.ToolName{Namespace: tool.Namespace, Name: tool.Name}].Asks {
				mark = "?"
			}
			got = append(got, tool.Name+mark)
		}
		run.Close()
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// Earlier turns are calls of functions, each where it was asked for; a server
// that was listed is not asked again.
func TestHistory(t *testing.T) {
	step := func(at int, id string, s llm.MCPStep) llm.Item {
		s.Label = "s"
		return &llm.ServerCall{Pos: llm.Pos{Item: at, Part: -1}, Kind: llm.MCP, ID: llm.Quote(id), MCP: &s}
	}
	list := llm.MCPStep{Kind: llm.MCPListed, Tools: llm.Raw(`[{"name":"touch","description":"T","input_schema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"bad":1}]`)}
	asked := llm.MCPStep{Kind: llm.MCPAsked, Name: "touch", Args: llm.Raw(`"{}"`)}
	done := llm.MCPStep{Name: "touch", Args: llm.Raw(`"{}"`), Output: llm.Raw(`"done"`)}
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: "http://127.0.0.1:9/"}}})
	for name, c := range map[string]struct {
		items []llm.Item
		want  string
		fails string // the parameter
	}{
		"a call":       {[]llm.Item{step(0, "l", list), step(1, "c", done)}, "touch=done", ""},
		"a failed one": {[]llm.Item{step(0, "l", list), step(1, "c", llm.MCPStep{Name: "touch", Error: llm.Raw(`"no"`)})}, "touch=no!", ""},
		"consented to": {[]llm.Item{step(0, "l", list), step(1, "q", asked), &llm.Message{}, step(3, "", llm.MCPStep{Kind: llm.MCPAnswered, Approval: llm.Raw(`"q"`), Approved: true}),
			step(4, "c", func() llm.MCPStep { s := done; s.Approval = llm.Raw(`"q"`); return s }())}, "touch=done message", ""},
		"denied":      {[]llm.Item{step(0, "l", list), step(1, "q", asked), step(2, "", llm.MCPStep{Kind: llm.MCPAnswered, Approval: llm.Raw(`"q"`), Reason: llm.Raw(`"No."`)})}, "touch=The user denied this call. No.!", ""},
		"passed over": {[]llm.Item{step(0, "l", list), step(1, "q", asked), &llm.Message{}}, "touch=The user did not consent to this call.! message", ""},
		"to nothing":  {[]llm.Item{step(0, "l", list), step(1, "", llm.MCPStep{Kind: llm.MCPAnswered, Approval: llm.Raw(`"q"`)})}, "", "input[1].approval_request_id"},
	} {
		req := &llm.Request{Items: c.items, Tools: []llm.Tool{mcpTool(llm.MCPServer{Label: "s"})}}
		run, err := tools.Begin(t.Context(), req, all, nil)
		if c.fails != "" {
			if e := llm.AsError(err); err == nil || e.Param != c.fails {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		run.Close()
		if len(run.Host.Told) != 0 || len(req.Tools) != 1 {
			t.Errorf("%s: told %d things, offered %d tools", name, len(run.Host.Told), len(req.Tools))
		}
		var got []string
		var call *llm.ToolCall
		for _, item := range req.Items {
			switch item := item.(type) {
			case *llm.Message:
				got = append(got, "message")
			case *llm.ToolCall:
				call = item
			case *llm.ToolResult:
				mark := ""
				if item.IsError {
					mark = "!"
				}
				if string(item.ID) != string(call.ID) || call.Namespace != "mcp__s" {
					t.Errorf("%s: the result of %s is for %s", name, call.ID, item.ID)
				}
				got = append(got, call.Name+"="+item.Parts[0].(*llm.Text).Text.Text()+mark)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A choice of a tool that is run here is one of functions.
func TestChoices(t *testing.T) {
	server := newServer(t, nil)
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: server.URL}}, Search: &Search{URL: server.URL}})
	for name, c := range map[string]struct {
		choice llm.ToolChoice
		want   llm.ChoiceMode
		names  int
		fails  bool
	}{
		"a tool":          {llm.ToolChoice{Hosted: true, Server: llm.MCP, Label: "s", Tool: "look"}, llm.ChoiceNamed, 1, false},
		"a server":        {llm.ToolChoice{Hosted: true, Server: llm.MCP, Label: "s"}, llm.ChoiceRequired, 3, false},
		"a search":        {llm.ToolChoice{Hosted: true, Server: llm.WebSearch}, llm.ChoiceNamed, 1, false},
		"another tool":    {llm.ToolChoice{Hosted: true, Server: llm.MCP, Label: "s", Tool: "x"}, 0, 0, true},
		"another server":  {llm.ToolChoice{Hosted: true, Server: llm.MCP, Label: "x"}, 0, 0, true},
		"what we lack":    {llm.ToolChoice{Mode: llm.ChoiceRequired, Hosted: true, Server: llm.FileSearch}, llm.ChoiceRequired, 0, false},
		"any, as written": {llm.ToolChoice{Mode: llm.ChoiceRequired}, llm.ChoiceRequired, 0, false},
	} {
		req := &llm.Request{ToolChoice: c.choice, Limits: llm.Limits{MaxToolCalls: llm.Raw("3")}, Tools: []llm.Tool{
			mcpTool(llm.MCPServer{Label: "s"}), {Server: &llm.ServerTool{Kind: llm.WebSearch}}, {Name: "web_search"},
		}}
		run, err := tools.Begin(t.Context(), req, all, nil)
		if c.fails {
			if err == nil || llm.AsError(err).Param != "tool_choice" {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		run.Close()
		if got := req.ToolChoice; got.Mode != c.want || len(got.Names) != c.names {
			t.Errorf("%s: got %+v", name, got)
		}
		if run.Host.Calls != 3 || req.Limits.MaxToolCalls != nil {
			t.Errorf("%s: %d calls, and %s for the upstream", name, run.Host.Calls, req.Limits.MaxToolCalls)
		}
		if last := req.Tools[3]; last.Namespace != "hosted" || last.Name != "web_search" {
			t.Errorf("%s: the search is %s %s beside the client's function", name, last.Namespace, last.Name)
		}
	}
}

// What an upstream runs itself stays as it is.
func TestTheUpstreamsOwn(t *testing.T) {
	tools := newTools(t, Config{Search: &Search{URL: "http://127.0.0.1:9/"}})
	for name, c := range map[string]struct {
		tool  llm.ServerTool
		hosts bool
	}{
		"its search":       {llm.ServerTool{Kind: llm.WebSearch}, false},
		"an index only":    {llm.ServerTool{Kind: llm.WebSearch, Offline: true}, true},
		"no stand-in":      {llm.ServerTool{Kind: llm.MCP, MCP: &llm.MCPServer{Label: "s"}}, true},
		"nobody's concern": {llm.ServerTool{Kind: llm.FileSearch}, true},
	} {
		req := &llm.Request{Tools: []llm.Tool{{Server: &c.tool}}}
		run, err := tools.Begin(t.Context(), req, func(llm.ServerKind) bool { return c.hosts }, nil)
		if run != nil || err != nil || len(req.Tools) != 1 || req.Tools[0].Server == nil {
			t.Errorf("%s: got %v, %v, %+v", name, run, err, req.Tools)
		}
	}
}

// A request cannot have the gateway call any number of servers.
func TestManyServers(t *testing.T) {
	tools := newTools(t, Config{Allow: []string{"http://127.0.0.1:9/*"}})
	req := &llm.Request{}
	for i := range maxServers + 1 {
		tool := mcpTool(llm.MCPServer{Label: fmt.Sprint(i), URL: "http://127.0.0.1:9/x"})
		tool.Index = i
		req.Tools = append(req.Tools, tool)
	}
	if _, err := tools.Begin(t.Context(), req, all, nil); err == nil || llm.AsError(err).Param != "tools[16]" {
		t.Errorf("got %v", err)
	}
}

// Secrets of the operator go before those of clients, and nowhere else.
func TestHeaders(t *testing.T) {
	tools := newTools(t, Config{Servers: []Server{{Label: "s", URL: "http://127.0.0.1:9/", Headers: map[string]string{"authorization": "operator"}}}, Allow: []string{"http://127.0.0.1:9/open"}})
	run := &Run{tools: tools, servers: map[string]*server{}}
	theirs := llm.MCPServer{Label: "s", Authorization: "client", Headers: []llm.Member{{Name: "AUTHORIZATION", Value: llm.Raw(`"client"`)}, {Name: "x-a", Value: llm.Raw(`"1"`)}, {Name: "x-b", Value: llm.Raw(`7`)}}}
	tool := mcpTool(theirs)
	if err := run.server(&tool); err != nil {
		t.Fatal(err)
	}
	if h := run.servers["s"].header; h.Get("Authorization") != "operator" || h.Get("X-A") != "1" || h.Get("X-B") != "" {
		t.Errorf("got %v", h)
	}
	theirs.Label, theirs.URL, theirs.Headers = "o", "http://127.0.0.1:9/open", nil
	tool = mcpTool(theirs)
	if err := run.server(&tool); err != nil {
		t.Fatal(err)
	}
	at, _ := url.Parse(run.servers["o"].url)
	if h := run.servers["o"].header; h.Get("Authorization") != "Bearer client" || at.Path != "/open" {
		t.Errorf("got %v at %s", h, at)
	}
}
