package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serveScript is the upstream on a free port.
func serveScript(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := newScript()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return l.Addr().String()
}

func TestClientAndUpstream(t *testing.T) {
	c, err := dial(serveScript(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	// In a row on one connection: an answer that is not read to its end breaks the next.
	for _, tt := range []struct {
		what    string
		request []byte
		events  int
	}{
		{"models", listModels("k"), 0},
		{"1 KB", chatRequest("k", 1<<10), 0},
		{"1 MB", chatRequest("k", 1<<20), 0},
		{"stream", streamRequest("k", time.Millisecond), pieces + 4},
		{"1 KB again", chatRequest("k", 1<<10), 0},
	} {
		if got, err := c.call(tt.request); err != nil || got != tt.events {
			t.Errorf("%s: got %d events and %v, want %d", tt.what, got, err, tt.events)
		}
	}
}

// slowToReturn holds back the return of writes, though not what they wrote.
type slowToReturn struct {
	net.Conn
	until <-chan struct{}
}

func (c slowToReturn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, []byte("}")) { // the body, which goes out by itself
		<-c.until
	}
	return n, err
}

// The answer may be under way before the proxy's transport comes to look whether
// the request's body has ended.
func TestReverseProxyKeepsEarlyAnswers(t *testing.T) {
	answered := make(chan struct{})
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return slowToReturn{c, answered}, err
	}}
	defer transport.CloseIdleConnections()
	front := httptest.NewServer(reverseProxy(serveScript(t), transport, t.Output()))
	defer front.Close()
	c, err := dial(front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	err = c.open(streamRequest("", time.Millisecond))
	close(answered)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.readChunks(); err != nil || got != pieces+4 {
		t.Errorf("got %d events and %v, want %d", got, err, pieces+4)
	}
}

func TestTurns(t *testing.T) {
	c, err := dial(serveScript(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	ids := map[string]bool{}
	for range 2 {
		// The wish for a stream is found in a request of any size.
		if got, err := c.call(wholeTurn("k", loopTurns)); err != nil || got != answerPieces+8 {
			t.Errorf("the last turn of a loop: got %d events and %v, want %d", got, err, answerPieces+8)
		}
		answer, err := c.fetch(post("k", responsesPath, turnBody(`"store":true,`, turnInput(0))))
		var made struct{ ID, Status string }
		if err := errors.Join(err, json.Unmarshal(answer, &made)); err != nil || made.Status != "completed" {
			t.Fatalf("got %v and %s", err, answer)
		}
		ids[made.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("two answers have one ID: %v", ids)
	}
	for _, e := range responseEvents() {
		if data := `{"type":"` + e[0] + `"` + e[1] + `}`; !json.Valid([]byte(data)) {
			t.Errorf("no JSON: %s", data)
		}
	}
}

func TestTurnBody(t *testing.T) {
	body := turnBody(`"store":true,`+goesOn("resp_1"), history(3)...)
	var asked struct {
		Previous string `json:"previous_response_id"`
		Store    bool
		Input    []struct{ Role string }
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil || asked.Previous != "resp_1" || !asked.Store {
		t.Errorf("got %v and %+v", err, asked)
	}
	roles := ""
	for _, item := range asked.Input {
		roles += item.Role + " "
	}
	if roles != "user assistant user assistant user " {
		t.Errorf("got %s", roles)
	}
	if n := len(turnInput(0)); n != turnSize {
		t.Errorf("an input of %d bytes, want %d", n, turnSize)
	}
}

// TestTables has a table for each pair of columns in a row, and no verdict where
// there is no target.
func TestTables(t *testing.T) {
	judged, told, alone := pair("a", "b", "x", "µs", atMostRatio(2)), pair("a", "b", "y", "µs", target{}), pair("a", "", "z", "MB", atMost(3))
	for _, r := range []row{judged, told, alone} {
		r.values["a"], r.values["b"] = []float64{6}, []float64{2}
	}
	var r report
	r.add("T", []row{judged, told, alone})
	const want = `## T

| | a | b | a / b | target | |
|---|---:|---:|---:|---|---|
| x | 6 µs | 2 µs | 3.00 | ≤ 2 of b | **missed** |
| y | 6 µs | 2 µs | 3.00 | – | |

| | a | target | |
|---|---:|---|---|
| z | 6 MB | ≤ 3 MB | **missed** |
`
	if r.sections[0] != want {
		t.Errorf("got\n%s", r.sections[0])
	}
	if got := strings.Join(r.missed, " "); got != "x z" {
		t.Errorf("missed: %s", got)
	}
}

func TestClientRefusesOtherStatus(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 4096))
		c.Write([]byte("HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nkey"))
	}()
	c, err := dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.call(listModels("")); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v, want the status", err)
	}
}

func TestChatBody(t *testing.T) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		body := chatBody(size, "", `,"stream":true`)
		if len(body) != size || !json.Valid([]byte(body)) {
			t.Errorf("got %d bytes, valid JSON %t; want %d", len(body), json.Valid([]byte(body)), size)
		}
		if strings.Index(body, `"messages"`) > strings.Index(body, `"model"`) {
			t.Error("the model comes before the messages")
		}
	}
}

func TestScriptIsJSON(t *testing.T) {
	if !json.Valid([]byte(models)) || !json.Valid([]byte(completion)) {
		t.Error("an answer is no JSON")
	}
	s := newScript()
	events := 0
	for line := range strings.SplitSeq(string(s.chat.head)+string(s.chat.piece)+string(s.chat.end), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		events++
		if !json.Valid([]byte(data)) {
			t.Errorf("no JSON: %s", data)
		}
	}
	if events != 4 {
		t.Errorf("got %d events, want role, piece, finish and usage", events)
	}
}

func TestMedianOfRatios(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limen, base []float64
		want        float64
		ok          bool
	}{
		{"each round by itself", []float64{1, 20, 3}, []float64{2, 20, 12}, 0.5, true},
		{"even", []float64{1, 3}, []float64{1, 1}, 2, true},
		{"lost in noise", []float64{1, 3}, []float64{-1, 2}, 1.5, true},
		{"all lost", []float64{1}, []float64{0}, math.NaN(), false},
		{"not measured", []float64{1}, nil, 0, false},
	} {
		r := newRow("x", "µs", atMostRatio(1))
		r.values[nameLimen], r.values[nameRP] = tt.limen, tt.base
		got, ok := r.ratio()
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %v %t, want %v %t", tt.name, got, ok, tt.want, tt.ok)
		}
		if r.met() != (tt.ok && tt.want <= 1) {
			t.Errorf("%s: got met %t", tt.name, r.met())
		}
	}
}

func FuzzReadChunks(f *testing.F) {
	f.Add([]byte("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"))
	f.Add([]byte("ffffffff\r\n"))
	f.Add([]byte("0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			theirs.Write(body)
			theirs.Close()
		}()
		c := newClient(ours)
		if events, err := c.readChunks(); err == nil && events > len(body)/2 {
			t.Errorf("%d events in %d bytes", events, len(body))
		}
	})
}
