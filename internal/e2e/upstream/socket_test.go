package upstream

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestSocket has a socket remember its last response, refuse what the vendor
// does not take in a message, and be refused itself.
func TestSocket(t *testing.T) {
	s, client := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dial := func() (*websocket.Conn, error) {
		conn, _, err := websocket.Dial(ctx, s.URL()+"/responses", &websocket.DialOptions{HTTPClient: client})
		return conn, err
	}
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for _, tt := range []struct{ message, want string }{
		{`{"type":"response.create","model":"small","input":[{"role":"user","content":"Hi"}]}`, "response.completed resp_1"},
		{`{"type":"response.create","model":"small","input":[],"previous_response_id":"resp_1"}`, "response.completed resp_2"},
		{`{"type":"response.create","model":"small","input":[],"previous_response_id":"resp_1"}`, "error previous_response_not_found"},
		{`{"type":"response.create","model":"small","input":[],"stream":true}`, "error "},
		{`{"type":"response.create","model":"small","input":"[[fault:status-429]]"}`, "error rate_limit_exceeded"},
		{`{"type":"response.create","model":"small","input":"[[fault:socket-forget]]"}`, "response.completed resp_6"},
		{`{"type":"response.create","model":"small","input":[],"previous_response_id":"resp_6"}`, "error previous_response_not_found"},
	} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(tt.message)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for got == "" {
			_, data, err := conn.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var e struct {
				Type     string
				Error    struct{ Code string }
				Response struct{ ID string }
			}
			if json.Unmarshal(data, &e); e.Type == "error" || e.Type == "response.completed" {
				got = e.Type + " " + e.Error.Code + e.Response.ID
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.message, got, tt.want)
		}
	}
	if n, open := s.Handshakes(), s.Sockets(); n != 1 || open != 1 {
		t.Errorf("%d handshakes, %d open", n, open)
	}
	s.RefuseSockets(426)
	if _, err := dial(); err == nil {
		t.Error("a socket was opened that is refused")
	}
}
