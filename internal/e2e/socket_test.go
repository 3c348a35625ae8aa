package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// everyDialect has a provider for each dialect that upstreams speak, all with
// the model that the fake upstream knows there.
const everyDialect = `providers:
  chat: {base_url: %[1]q, api_key: %[2]q, speaks: [openai-chat]}
  responses: {base_url: %[1]q, api_key: %[2]q, speaks: [openai-responses]}
  anthropic: {base_url: %[1]q, api_key: %[2]q, speaks: [anthropic]}
  gemini: {base_url: %[3]q, api_key: %[2]q, speaks: [gemini]}
models:
  over-chat: {targets: [chat/small]}
  over-responses: {targets: [responses/small]}
  over-anthropic: {targets: [anthropic/claude-opus-4-8]}
  over-gemini: {targets: [gemini/gemini-3.5-flash]}
`

var upstreamModels = []string{"small", "claude-opus-4-8", "gemini-3.5-flash"}

var overEvery = []string{"over-chat", "over-responses", "over-anthropic", "over-gemini"}

func everyDialectOf(s *upstream.Server) string {
	return fmt.Sprintf(everyDialect, s.URL(), canary, strings.TrimSuffix(s.URL(), "/v1")+"/v1beta")
}

// socket is a client's WebSocket.
type socket struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

func (g *gateway) socket(t *testing.T, header http.Header, subprotocols ...string) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	conn, resp, err := websocket.Dial(ctx, g.url+"/responses", &websocket.DialOptions{HTTPClient: g.client, HTTPHeader: header, Subprotocols: subprotocols})
	if err != nil {
		t.Fatalf("%v (%v)", err, resp)
	}
	conn.SetReadLimit(1 << 20)
	t.Cleanup(func() { conn.CloseNow() })
	return &socket{t, ctx, conn}
}

func (g *gateway) withKey() http.Header { return http.Header{"Authorization": {"Bearer " + g.key}} }

func (s *socket) send(message string) {
	s.t.Helper()
	if err := s.conn.Write(s.ctx, websocket.MessageText, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
}

// event is one message of the gateway.
type socketEvent struct {
	Type     string `json:"type"`
	Sequence *int   `json:"sequence_number"`
	Lane     string `json:"stream_id"`
	Delta    string `json:"delta"`
	Status   int    `json:"status"`
	Error    struct{ Code, Message string }
	Response struct {
		ID, Status string
		Previous   string `json:"previous_response_id"`
		Store      bool
		Output     []struct {
			Type      string
			CallID    string `json:"call_id"`
			Encrypted string `json:"encrypted_content"`
			Content   []struct{ Text string }
		}
	}
}

// next is the next message.
func (s *socket) next() (e socketEvent) {
	s.t.Helper()
	kind, data, err := s.conn.Read(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &e); err != nil || kind != websocket.MessageText {
		s.t.Fatalf("%v: %s", err, data)
	}
	return e
}

// turn sends a request and reads to the end of its answer.
func (s *socket) turn(message string) (end socketEvent) {
	s.t.Helper()
	s.send(message)
	return s.end()
}

// end reads to the end of an answer.
func (s *socket) end() socketEvent {
	s.t.Helper()
	for i := 0; ; i++ {
		e := s.next()
		if e.Type == "error" && e.Status != 0 {
			return e
		}
		if e.Sequence == nil || *e.Sequence != i {
			s.t.Fatalf("event %d, %s: its number is %v", i, e.Type, e.Sequence)
		}
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			return e
		}
	}
}

func (e socketEvent) text() string {
	var b strings.Builder
	for _, item := range e.Response.Output {
		for _, part := range item.Content {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// TestSocketTurns has an agent's turns over a socket: what is new alone is
// sent, and nothing is stored.
func TestSocketTurns(t *testing.T) {
	t.Parallel()
	g := start(t, everyDialectOf(newUpstream(t, upstream.WithModels(upstreamModels...))))
	for _, model := range overEvery {
		t.Run(model, func(t *testing.T) {
			s := g.socket(t, g.withKey())
			warm := s.turn(`{"type":"response.create","generate":false,"model":"` + model + `","store":false,"stream":true,"instructions":"Be brief.","input":[],"tools":[]}`)
			if warm.Type != "response.completed" || len(warm.Response.Output) > 0 || warm.Response.ID == "" {
				t.Fatalf("warm-up: %+v", warm)
			}
			first := s.turn(`{"type":"response.create","model":"` + model + `","store":false,"previous_response_id":"` + warm.Response.ID + `","input":[{"role":"user","content":"call f {}"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]}`)
			call := ""
			for _, item := range first.Response.Output {
				call += item.CallID
			}
			if first.Type != "response.completed" || call == "" || first.Response.Previous != warm.Response.ID || first.Response.Store {
				t.Fatalf("first turn: %+v", first)
			}
			second := s.turn(`{"type":"response.create","model":"` + model + `","store":false,"previous_response_id":"` + first.Response.ID + `","input":[{"type":"function_call_output","call_id":"` + call + `","output":"sunny"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]}`)
			if got := second.text(); got != "The tool said: sunny" {
				t.Fatalf("second turn: %+v", second)
			}

			// A failed continuation evicts what it went on from.
			lost := s.turn(`{"type":"response.create","model":"` + model + `","store":false,"previous_response_id":"` + second.Response.ID + `","input":[{"type":"function_call_output","call_id":"call_none","output":"x"}]}`)
			if lost.Type != "error" || lost.Status != 400 || !strings.Contains(lost.Error.Message, "call_none") {
				t.Fatalf("an unknown call: %+v", lost)
			}
			gone := `{"type":"response.create","model":"` + model + `","store":false,"previous_response_id":"` + second.Response.ID + `","input":"Hi"}`
			if e := s.turn(gone); e.Error.Code != "previous_response_not_found" {
				t.Fatalf("after it: %+v", e)
			}

			// Another socket knows nothing of this one, and goes on anew.
			other := g.socket(t, g.withKey())
			if e := other.turn(strings.Replace(gone, second.Response.ID, first.Response.ID, 1)); e.Error.Code != "previous_response_not_found" || e.Status != 400 {
				t.Fatalf("another socket: %+v", e)
			}
			if e := other.turn(`{"type":"response.create","model":"` + model + `","store":false,"input":"Hi"}`); e.Type != "response.completed" || !strings.HasPrefix(e.text(), "Hello") {
				t.Fatalf("another socket, anew: %+v", e)
			}
		})
	}
}

// TestSocketStores has turns that are stored by one socket and read elsewhere.
func TestSocketStores(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	s := g.socket(t, g.withKey())
	first := s.turn(`{"type":"response.create","model":"up/small","input":"Hi"}`)
	loose := s.turn(`{"type":"response.create","model":"up/small","store":false,"previous_response_id":"` + first.Response.ID + `","input":"Between"}`)
	second := s.turn(`{"type":"response.create","model":"up/small","previous_response_id":"` + loose.Response.ID + `","input":"And?"}`)
	s.conn.CloseNow()
	request := func(method, path string) reply {
		return g.do(t, g.request(t, t.Context(), method, path, nil))
	}
	if got := request("GET", "/responses/"+second.Response.ID); got.status != 200 {
		t.Errorf("the stored response: %d %s", got.status, got.body)
	}
	if got := request("GET", "/responses/"+loose.Response.ID); got.status != 404 {
		t.Errorf("one that was not to be stored: %d %s", got.status, got.body)
	}
	items := request("GET", "/responses/"+second.Response.ID+"/input_items?order=asc")
	for _, want := range []string{`"Hi"`, `"Between"`, `"And?"`} {
		if !strings.Contains(items.body, want) {
			t.Errorf("no %s in %s", want, items.body)
		}
	}
	if got := g.post(t, "/responses", `{"model":"up/small","previous_response_id":"`+second.Response.ID+`","input":"On"}`); got.status != 200 {
		t.Errorf("over HTTP: %d %s", got.status, got.body)
	}
}

// TestSocketBadInput has clients that send what is no request. The socket goes
// on, unless the protocol is broken.
func TestSocketBadInput(t *testing.T) {
	t.Parallel()
	g := start(t, "limits: {body: 1MiB}\n"+provider(newUpstream(t)))
	s := g.socket(t, g.withKey())
	for message, want := range map[string]string{
		`{`:                    "400 ",
		`[]`:                   "400 ",
		`{"type":"nothing"}`:   "400 invalid_value",
		`{"model":"up/small"}`: "400 invalid_value",
		`{"type":"response.create","type":"response.create"}`:                          "400 ",
		`{"type":"response.create","input":"Hi"}`:                                      "400 missing_required_parameter",
		`{"type":"response.create","model":"none","input":"Hi"}`:                       "404 model_not_found",
		`{"type":"response.create","model":"up/small","input":7}`:                      "400 invalid_type",
		`{"type":"response.create","model":"up/small","input":"[[fault:status-429]]"}`: "429 ",
	} {
		e := s.turn(message)
		if got := fmt.Sprintf("%d %s", e.Status, e.Error.Code); e.Type != "error" || !strings.HasPrefix(got, want) || e.Error.Message == "" {
			t.Errorf("%s: got %+v, want %s", message, e, want)
		}
	}
	s.send(`{"type":"response.steer","input":"x","previous_response_id":"resp_1","stream_id":"a"}`)
	if e := s.next(); e.Type != "response.steer.failed" || e.Error.Code != "steering_not_supported" || e.Lane != "a" {
		t.Errorf("steering: %+v", e)
	}
	// Several at once are served in their order, each told by its lane.
	for _, lane := range []string{"a", "b", "c"} {
		s.send(`{"type":"response.create","model":"up/small","store":false,"stream_id":"` + lane + `","input":"Hi"}`)
	}
	for _, lane := range []string{"a", "b", "c"} {
		if e := s.end(); e.Type != "response.completed" || e.Lane != lane {
			t.Errorf("lane %s: %+v", lane, e)
		}
	}
	// A stream that fails within is told as one, and the socket goes on.
	if e := s.turn(`{"type":"response.create","model":"up/small","store":false,"input":"[[fault:cut]]"}`); e.Type != "response.failed" {
		t.Errorf("a stream that was cut: %+v", e)
	}
	if e := s.turn(`{"type":"response.create","model":"up/small","store":false,"input":"Hi"}`); e.Type != "response.completed" {
		t.Errorf("after it: %+v", e)
	}

	for name, break_ := range map[string]func(*socket) error{
		"binary": func(s *socket) error { return s.conn.Write(s.ctx, websocket.MessageBinary, []byte(`{}`)) },
		"too large": func(s *socket) error {
			return s.conn.Write(s.ctx, websocket.MessageText, []byte(strings.Repeat(" ", 2<<20)))
		},
	} {
		s := g.socket(t, g.withKey())
		break_(s) // the end may come while it is written
		_, _, err := s.conn.Read(s.ctx)
		// Who is in the middle of a long message may see a reset instead.
		if status := websocket.CloseStatus(err); err == nil || name == "binary" && status != websocket.StatusUnsupportedData {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSocketKeys has keys that open a socket, and keys that do not.
func TestSocketKeys(t *testing.T) {
	t.Parallel()
	g := start(t, provider(newUpstream(t)))
	s := g.socket(t, http.Header{}, "realtime", "openai-insecure-api-key."+g.key) // as browsers do
	if got := s.conn.Subprotocol(); got != "realtime" {
		t.Errorf("subprotocol %q", got)
	}
	const hello = `{"type":"response.create","model":"up/small","store":false,"input":"Hi"}`
	if e := s.turn(hello); e.Type != "response.completed" {
		t.Errorf("%+v", e)
	}
	for name, header := range map[string]http.Header{"none": {}, "wrong": {"Authorization": {"Bearer limen_wrong"}}} {
		_, resp, err := websocket.Dial(s.ctx, g.url+"/responses", &websocket.DialOptions{HTTPClient: g.client, HTTPHeader: header})
		if err == nil || resp.StatusCode != 401 {
			t.Errorf("%s: %v, %v", name, err, resp)
		}
	}
	// A key that is revoked opens nothing more, on an open socket neither.
	var made struct{ ID, Key string }
	g.admin(t, "POST", "/keys", `{"name":"brief"}`, &made)
	brief := g.socket(t, http.Header{"Authorization": {"Bearer " + made.Key}})
	if e := brief.turn(hello); e.Type != "response.completed" {
		t.Errorf("%+v", e)
	}
	g.admin(t, "POST", "/keys/"+made.ID+"/revoke", "", &struct{}{})
	if e := brief.turn(hello); e.Status != 401 {
		t.Errorf("after the key was revoked: %+v", e)
	}
}

// TestSocketEnds has a client that leaves in the middle of an answer, and a
// gateway that stops.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	up := newUpstream(t)
	g := start(t, provider(up))
	s := g.socket(t, g.withKey())
	s.send(`{"type":"response.create","model":"up/small","input":"[[fault:stall 6]] leaver"}`)
	for e := s.next(); e.Type != "response.output_text.delta"; e = s.next() {
	}
	left := time.Now()
	s.conn.CloseNow()
	request := find(t, up, "leaver", func(r upstream.Request) bool { return !r.Cancelled.IsZero() })
	t.Logf("the upstream saw it after %s", request.Cancelled.Sub(left))

	// A call that runs is ended well, then the socket is closed.
	s = g.socket(t, g.withKey())
	idle := g.socket(t, g.withKey())
	s.send(`{"type":"response.create","model":"up/small","input":"[[fault:slow]] Hi"}`)
	s.next()
	stopped := make(chan int)
	go func() { stopped <- g.stop() }()
	if e := s.end1(); e.Type != "response.completed" {
		t.Errorf("%+v", e)
	}
	for _, s := range []*socket{s, idle} {
		if _, _, err := s.conn.Read(s.ctx); websocket.CloseStatus(err) != websocket.StatusServiceRestart {
			t.Errorf("%v", err)
		}
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// end1 is end after the first event.
func (s *socket) end1() socketEvent {
	for {
		e := s.next()
		if strings.HasSuffix(e.Type, "completed") && strings.Count(e.Type, ".") == 1 || e.Type == "response.failed" || e.Type == "error" {
			return e
		}
	}
}
