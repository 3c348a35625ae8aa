package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is what a server answers, byte for byte.
type reply struct {
	status  int // 200 when 0
	kind    string
	session string
	body    string
	then    func(*http.Request) // before the answer ends
}

func document(body string) reply { return reply{kind: "application/json", body: body} }
func events(body string) reply   { return reply{kind: "text/event-stream", body: body} }

var accepted = reply{status: http.StatusAccepted}

// hello is the answer to a handshake, in a session.
func hello(version, session string) reply {
	r := document(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	r.session = session
	return r
}

// peer is a server that answers as it is told to, and keeps what it heard:
// method, session, version and body.
type peer struct {
	*httptest.Server
	mu      sync.Mutex
	replies []reply
	heard   []string
	headers []http.Header
}

func newPeer(t *testing.T, replies ...reply) *peer {
	p := &peer{replies: replies}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.heard = append(p.heard, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", r.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), body)), " "))
		p.headers = append(p.headers, r.Header.Clone())
		next := reply{status: http.StatusTeapot}
		if len(p.replies) > 0 {
			next, p.replies = p.replies[0], p.replies[1:]
		}
		p.mu.Unlock()
		if next.session != "" {
			w.Header().Set("Mcp-Session-Id", next.session)
		}
		w.Header().Set("Content-Type", next.kind)
		w.WriteHeader(max(next.status, http.StatusOK))
		io.WriteString(w, next.body)
		if next.then != nil {
			http.NewResponseController(w).Flush()
			next.then(r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// said is what the server heard since it was last asked.
func (p *peer) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := p.heard
	p.heard = nil
	return heard
}

func (p *peer) wants(t *testing.T, want ...string) {
	t.Helper()
	if heard := p.said(); !slices.Equal(heard, want) {
		t.Errorf("the server heard\n%s\nwant\n%s", strings.Join(heard, "\n"), strings.Join(want, "\n"))
	}
}

// opened is a session with a server that then answers what is given.
func opened(t *testing.T, replies ...reply) (*peer, *Session) {
	t.Helper()
	p := newPeer(t, append([]reply{hello("2025-06-18", "a"), accepted}, replies...)...)
	s, err := Open(t.Context(), p.Client(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.said()
	return p, s
}

const (
	shaken  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"limen","version":"1"}}}`
	ready   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	called  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"a":1}}}`
	granted = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"said"}]}}`
)

// call calls the tool of the tests; the result is its text.
func call(t *testing.T, s *Session) (string, error) {
	t.Helper()
	r, err := s.Call(t.Context(), "say", []byte(`{"a":1}`), nil)
	if err != nil {
		return "", err
	}
	return r.Content[0].Text, nil
}

// All that is said in a session, whichever way the server answers.
func TestSession(t *testing.T) {
	const tools = `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"say","title":"Say","description":"Says.","inputSchema":{"type": "object"},"annotations":{"readOnlyHint":true}}],"nextCursor":"p \"2\""}}`
	const more = `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}`
	const gave = `{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"é"},{"type":"image","mimeType":"image/png","data":"eA=="},{"type":"resource","resource":{"uri":"u","mimeType":"m","text":"t"}},{"type":"new","x":1}],"structuredContent":{"n":1},"isError":true}}`
	for name, c := range map[string]struct{ tools, more, gave reply }{
		"documents": {document(tools), document(more), reply{kind: "Application/JSON; charset=utf-8", body: " " + gave + "\n"}},
		"streams": {
			events("event: message\nid: 1\ndata: " + tools + "\n\n"),
			events(": hello\n\nevent: ping\ndata: {}\n\nid: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: " + more + "\n\n"),
			events("data: " + strings.Replace(gave, `,"result"`, ",\ndata: \"result\"", 1) + "\r\n\r\n"),
		},
		"batches": {
			events("data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}," + tools + "]\n\n"), document("[" + more + "]"), document("\n[" + gave + "]"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, hello("2025-06-18", "a-b"), accepted, c.tools, c.more, c.gave, accepted)
			s, err := Open(t.Context(), p.Client(), p.URL)
			if err != nil {
				t.Fatal(err)
			}
			page, err := s.Tools(t.Context(), "")
			if err != nil || len(page.Tools) != 1 || page.Next != `p "2"` {
				t.Fatalf("got %+v, %v", page, err)
			}
			if tool := page.Tools[0]; tool.Name != "say" || tool.Description != "Says." || string(tool.Schema) != `{"type": "object"}` || string(tool.Annotations) != `{"readOnlyHint":true}` {
				t.Errorf("got %+v", tool)
			}
			if page, err := s.Tools(t.Context(), page.Next); err != nil || len(page.Tools) != 0 || page.Next != "" {
				t.Errorf("got %+v, %v", page, err)
			}
			r, err := s.Call(t.Context(), "say", []byte(`{"a":1}`), []byte(`{"type":"object"}`))
			if err != nil || len(r.Content) != 4 || !r.Failed || string(r.Structured) != `{"n":1}` {
				t.Fatalf("got %+v, %v", r, err)
			}
			if c := r.Content; c[0].Text != "é" || c[1].MIME != "image/png" || string(c[1].Data) != "x" || *c[2].Resource != (Resource{"u", "m", "t"}) {
				t.Errorf("got %+v", c)
			}
			s.Close()
			s.Close()
			p.wants(t, "POST "+shaken, "POST a-b 2025-06-18 "+ready,
				`POST a-b 2025-06-18 {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
				`POST a-b 2025-06-18 {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"p \"2\""}}`,
				`POST a-b 2025-06-18 {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"say","arguments":{"a":1}}}`,
				"DELETE a-b 2025-06-18")
			for _, h := range p.headers[:5] {
				if h.Get("Accept") != "application/json, text/event-stream" || h.Get("Content-Type") != "application/json" {
					t.Errorf("got the header %v", h)
				}
			}
		})
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]error{"2025-11-25": nil, "2025-06-18": nil, "2025-03-26": nil, "2024-11-05": nil, "2026-07-28": errVersion, "1": errVersion, "": errVersion} {
		p := newPeer(t, hello(version, "a"), accepted, document(granted), accepted)
		s, err := Open(t.Context(), p.Client(), p.URL)
		if err != want {
			t.Errorf("%s: got %v", version, err)
		}
		if err != nil {
			p.wants(t, "POST "+shaken, "DELETE a")
			continue
		}
		if _, err := call(t, s); err != nil {
			t.Error(err)
		}
		s.Close()
		p.wants(t, "POST "+shaken, "POST a "+version+" "+ready, "POST a "+version+" "+called, "DELETE a "+version)
	}
}

// A server without sessions is told of no end.
func TestNoSession(t *testing.T) {
	p := newPeer(t, hello("2025-03-26", ""), reply{kind: "application/json"}, document(granted))
	s, err := Open(t.Context(), p.Client(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	s.Close()
	p.wants(t, "POST "+shaken, "POST 2025-03-26 "+ready, "POST 2025-03-26 "+called)
}

// A session that is gone is begun anew, once for a request.
func TestSessionIsLost(t *testing.T) {
	gone := reply{status: http.StatusNotFound, kind: "application/json", body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`}
	again := hello("2025-06-18", "b")
	again.body = strings.Replace(again.body, `"id":1`, `"id":3`, 1)
	third := strings.Replace(called, `"id":2`, `"id":4`, 1)
	p, s := opened(t, gone, again, accepted, document(strings.Replace(granted, `"id":2`, `"id":4`, 1)), accepted)
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	s.Close()
	anew := strings.Replace(shaken, `"id":1`, `"id":3`, 1)
	p.wants(t, "POST a 2025-06-18 "+called, "POST "+anew, "POST b 2025-06-18 "+ready, "POST b 2025-06-18 "+third, "DELETE b 2025-06-18")

	p, s = opened(t, gone, again, accepted, gone)
	if _, err := call(t, s); err != errLost {
		t.Errorf("got %v", err)
	}
	s.Close()
	p.wants(t, "POST a 2025-06-18 "+called, "POST "+anew, "POST b 2025-06-18 "+ready, "POST b 2025-06-18 "+third)

	p, s = opened(t, gone, reply{status: http.StatusServiceUnavailable})
	if _, err := call(t, s); err == nil {
		t.Error("no failure")
	}
	s.Close()
	p.wants(t, "POST a 2025-06-18 "+called, "POST "+anew)
}

// What the server says of a request that it does not serve is an Error, unless
// it cannot serve any.
func TestRefusals(t *testing.T) {
	const no = `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Unknown tool","data":{}}}`
	for name, c := range map[string]struct {
		reply reply
		want  string
	}{
		"an error":         {document(no), "Unknown tool"},
		"in a stream":      {events("data: " + no + "\n\n"), "Unknown tool"},
		"without a number": {document(strings.Replace(no, `"id":2`, `"id":null`, 1)), "Unknown tool"},
		"a status as well": {reply{status: http.StatusBadRequest, body: no}, "Unknown tool"},
		"only a status":    {reply{status: http.StatusForbidden, body: "go away"}, ""},
		"a redirect":       {reply{status: http.StatusNotModified}, ""},
		"busy":             {reply{status: http.StatusTooManyRequests, body: no}, ""},
		"broken":           {reply{status: http.StatusInternalServerError, body: no}, ""},
		"endless":          {reply{status: http.StatusBadRequest, body: strings.Repeat(" ", maxRefusal) + no}, ""},
	} {
		p, s := opened(t, c.reply)
		_, err := call(t, s)
		var said *Error
		if err == nil || errors.As(err, &said) != (c.want != "") || said != nil && said.Message != c.want {
			t.Errorf("%s: got %v", name, err)
		}
		p.wants(t, "POST a 2025-06-18 "+called)
	}
}

// What is no answer.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]reply{
		"nothing":            {},
		"no kind":            {body: granted},
		"a page":             {kind: "text/html", body: "<html>"},
		"accepted":           accepted,
		"no JSON":            document(`{"jsonrpc":"2.0","id":2,"result":{`),
		"two":                document(granted + granted),
		"no UTF-8":           document(strings.Replace(granted, "said", "\xff", 1)),
		"another number":     document(strings.Replace(granted, `"id":2`, `"id":"2"`, 1)),
		"no number":          document(strings.Replace(granted, `"id":2`, `"id":null`, 1)),
		"no result":          document(`{"jsonrpc":"2.0","id":2}`),
		"no object":          document(`{"jsonrpc":"2.0","id":2,"result":[]}`),
		"wrong members":      document(`{"jsonrpc":"2.0","id":2,"result":{"content":"x"}}`),
		"no base64":          document(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"image","data":"?"}]}}`),
		"a question":         document(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required"}}`),
		"empty batch":        document(`[]`),
		"empty stream":       events(""),
		"only a comment":     events(": x\n\n"),
		"no JSON in stream":  events("data: {\n\n"),
		"no UTF-8 in stream": events("data: \"\xff\"\n\n"),
		"other answers":      events("data: " + strings.Replace(granted, `"id":2`, `"id":7`, 1) + "\n\n"),
		"another event":      events("event: x\ndata: " + granted + "\n\n"),
		"too long":           document(`{"x":"` + strings.Repeat("x", maxMessage) + `",` + granted[1:]),
		"too long an event":  events(`data: {"x":"` + strings.Repeat("x", maxMessage) + `",` + granted[1:] + "\n\n"),
	} {
		p, s := opened(t, c)
		if got, err := call(t, s); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
		p.wants(t, "POST a 2025-06-18 "+called)
	}
}

// What the server asks meanwhile is answered: that we are there, and that we
// can do nothing for it.
func TestServerAsks(t *testing.T) {
	const asks = `data: {"jsonrpc":"2.0","id":"p-1","method":"ping"}` + "\n\n" +
		`data: {"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}` + "\n\n" +
		`data: {"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n\n" +
		`data: [{"jsonrpc":"2.0","id":2,"method":"ping"}]` + "\n\n" // its numbers are not ours
	p, s := opened(t, events(asks+"data: "+granted+"\n\n"), accepted, reply{status: http.StatusBadRequest}, accepted)
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	p.wants(t, "POST a 2025-06-18 "+called, `POST a 2025-06-18 {"jsonrpc":"2.0","id":"p-1","result":{}}`,
		`POST a 2025-06-18 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}`, `POST a 2025-06-18 {"jsonrpc":"2.0","id":2,"result":{}}`)

	p, s = opened(t, events(strings.Repeat(`data: {"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n\n", 2*maxAsked)+"data: "+granted+"\n\n"))
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if n := len(p.said()); n != 1+maxAsked {
		t.Errorf("%d requests, want %d", n, 1+maxAsked)
	}
}

// A stream that ends early is taken up again where the server says how.
func TestResume(t *testing.T) {
	first := events("id: e1\nretry: 0\ndata:\n\n")
	p, s := opened(t, first, events("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"), events("data: "+granted+"\n\n"))
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	p.wants(t, "POST a 2025-06-18 "+called, "GET a 2025-06-18", "GET a 2025-06-18")
	if a, b := p.headers[3], p.headers[4]; a.Get("Last-Event-Id") != "e1" || b.Get("Last-Event-Id") != "e2" || a.Get("Accept") != "text/event-stream" || a.Get("Content-Type") != "" {
		t.Errorf("got %v, %v", a, b)
	}
	for name, c := range map[string]reply{
		"not offered":  {status: http.StatusMethodNotAllowed},
		"session gone": {status: http.StatusNotFound},
		"no stream":    document(granted),
	} {
		p, s := opened(t, first, c)
		if _, err := call(t, s); err != errCut {
			t.Errorf("%s: got %v", name, err)
		}
		p.wants(t, "POST a 2025-06-18 "+called, "GET a 2025-06-18")
	}
	var endless []reply
	for range 2 * maxAgain {
		endless = append(endless, first)
	}
	p, s = opened(t, endless...)
	if _, err := call(t, s); err != errCut {
		t.Errorf("got %v", err)
	}
	if n := len(p.said()); n != 1+maxAgain {
		t.Errorf("%d requests, want %d", n, 1+maxAgain)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, s = opened(t, reply{kind: "text/event-stream", body: "id: e1\nretry: 100000000\ndata:\n\n", then: func(*http.Request) { cancel() }})
	if _, err := s.Call(ctx, "say", []byte("{}"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Who no longer waits takes the request back, and ends the session.
func TestCancelled(t *testing.T) {
	for name, kind := range map[string]string{"document": "application/json", "stream": "text/event-stream"} {
		ctx, cancel := context.WithCancel(t.Context())
		p, s := opened(t, reply{kind: kind, then: func(r *http.Request) {
			cancel()
			<-r.Context().Done()
		}}, accepted, accepted)
		if _, err := s.Call(ctx, "say", []byte(`{"a":1}`), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		s.Close()
		p.wants(t, "POST a 2025-06-18 "+called, `POST a 2025-06-18 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "DELETE a 2025-06-18")
	}
}

// cancels ends a context once an answer has begun.
type cancels struct {
	http.RoundTripper
	cancel func()
}

func (c cancels) RoundTrip(r *http.Request) (*http.Response, error) {
	defer c.cancel()
	return c.RoundTripper.RoundTrip(r)
}

// A handshake is not taken back.
func TestCancelledHandshake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newPeer(t, reply{kind: "text/event-stream", session: "a", then: func(r *http.Request) { <-r.Context().Done() }}, accepted)
	client := &http.Client{Transport: cancels{p.Client().Transport, cancel}}
	if _, err := Open(ctx, client, p.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.wants(t, "POST "+shaken, "DELETE a")
}

// A stream that stays open behind the answer keeps nobody.
func TestStreamStaysOpen(t *testing.T) {
	_, s := opened(t, reply{kind: "text/event-stream", body: "data: " + granted + "\n\n", then: func(r *http.Request) { <-r.Context().Done() }})
	if got, err := call(t, s); got != "said" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A server that knows only requests that stand for themselves.
func TestSingleRequests(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"limen","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	no := reply{status: http.StatusBadRequest, body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}}`}
	known := document(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`)
	const good, bad = `{"name":"say","inputSchema":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"}}}}`, `{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`
	p := newPeer(t, no, known,
		document(`{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[`+bad+","+good+`]}}`),
		events(`data: {"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n\nid: e1\ndata: "+strings.Replace(granted, `"id":2`, `"id":4`, 1)+"\n\n"),
		events("id: e1\ndata:\n\n"))
	s, err := Open(t.Context(), p.Client(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.Tools(t.Context(), "")
	if err != nil || len(page.Tools) != 1 || page.Tools[0].Name != "say" {
		t.Fatalf("got %+v, %v", page, err)
	}
	for _, want := range []error{nil, errCut} { // streams cannot be taken up again
		if _, err := s.Call(t.Context(), "say", []byte(`{"a":1}`), page.Tools[0].Schema); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	s.Close()
	p.wants(t, "POST "+shaken, `POST 2026-07-28 {"jsonrpc":"2.0","id":2,"method":"server/discover","params":{`+meta+`}}`,
		`POST 2026-07-28 {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{`+meta+`}}`,
		`POST 2026-07-28 {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{`+meta+`,"name":"say","arguments":{"a":1}}}`,
		`POST 2026-07-28 {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{`+meta+`,"name":"say","arguments":{"a":1}}}`)
	if h := p.headers[3]; h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "say" || h.Get("Mcp-Param-A") != "1" {
		t.Errorf("got %v", h)
	}

	p = newPeer(t, reply{status: http.StatusBadRequest, body: "Bad Request"}, known)
	if _, err := Open(t.Context(), p.Client(), p.URL); err != nil {
		t.Errorf("got %v", err)
	}
	p = newPeer(t, no, reply{status: http.StatusBadRequest})
	var said *Error
	if _, err := Open(t.Context(), p.Client(), p.URL); !errors.As(err, &said) || said.Code != -32022 {
		t.Errorf("got %v", err)
	}
	p = newPeer(t, reply{status: http.StatusUnauthorized})
	if _, err := Open(t.Context(), p.Client(), p.URL); err != failure(http.StatusUnauthorized) {
		t.Errorf("got %v", err)
	}
	p.wants(t, "POST "+shaken)
}

func TestHeaderFields(t *testing.T) {
	for text, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b": "a b", "Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=", " padded ": "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2": "=?base64?bGluZTEKbGluZTI=?=", "=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
	} {
		if got := encode(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
	property := func(rest string) string { return `{"properties":{"a":{"type":"string"` + rest + `}}}` }
	for schema, want := range map[string]bool{
		``:                                   true,
		`{"properties":[]}`:                  true,
		property(``):                         true,
		property(`,"x-mcp-header":"A"`):      true,
		property(`,"x-mcp-header":""`):       false,
		property(`,"x-mcp-header":"A:"`):     false,
		property(`,"x-mcp-header":"A\r\nB"`): false,
		property(`,"x-mcp-header":7`):        false,
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                             false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`:    false,
		`{"properties":{"a":{"properties":{"b":{"type":"object","x-mcp-header":"A"}}}}}`:                        false,
		`{"properties":{"a":{"properties":{"x-mcp-header":{"type":"string"}}},"x-mcp-header":{"type":"null"}}}`: true,
	} {
		if _, got := fields([]byte(schema)); got != want {
			t.Errorf("%s: good is %t, want %t", schema, got, want)
		}
	}
	const schema = `{"properties":{"s":{"type":"string","x-mcp-header":"S"},"o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"deep-B"}}},"n":{"type":"integer","x-mcp-header":"N"},"m":{"type":"string","x-mcp-header":"M"}}}`
	got := told([]byte(schema), []byte(`{"s":"ä","o":{"b":true},"n":-7,"m":null,"x":1}`))
	if len(got) != 3 || got.Get("Mcp-Param-S") != "=?base64?w6Q=?=" || got.Get("Mcp-Param-Deep-B") != "true" || got.Get("Mcp-Param-N") != "-7" {
		t.Errorf("got %v", got)
	}
}
