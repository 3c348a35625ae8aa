package http1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server that reads one request per connection turn and answers
// each with the next of its texts, in pieces of the given size.
func script(t *testing.T, piece int, answers ...string) (*Transport, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			wg.Go(func() {
				defer c.Close()
				for _, answer := range answers {
					if !readRequest(c) {
						return
					}
					for data := []byte(answer); len(data) > 0; {
						n := min(piece, len(data))
						if _, err := c.Write(data[:n]); err != nil {
							return
						}
						data = data[n:]
					}
				}
			})
		}
	})
	tr := New(l.Addr().String(), (&net.Dialer{}).DialContext)
	t.Cleanup(func() { tr.CloseIdleConnections(); l.Close(); wg.Wait() })
	return tr, &connections
}

// readRequest reads a head and the body that it states.
func readRequest(c net.Conn) bool {
	var head []byte
	var b [1]byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := c.Read(b[:]); err != nil {
			return false
		}
		head = append(head, b[0])
	}
	var n int64
	for line := range strings.SplitSeq(string(head), "\r\n") {
		fmt.Sscanf(line, "Content-Length: %d", &n)
	}
	_, err := io.CopyN(io.Discard, c, n)
	return err == nil
}

// parts is a request body in memory.
type parts struct {
	io.Reader
	segments [][]byte
}

func (p *parts) Segments() [][]byte { return p.segments }
func (p *parts) Close() error       { return nil }

func post(ctx context.Context, segments ...string) *http.Request {
	p := &parts{}
	var n int64
	for _, s := range segments {
		p.segments = append(p.segments, []byte(s))
		n += int64(len(s))
	}
	u := &url.URL{Scheme: "http", Host: "upstream", Path: "/v1/x", RawQuery: "q=1"}
	r := &http.Request{Method: "POST", URL: u, Host: u.Host, Header: http.Header{"A": {"1", "2"}}, Body: p, ContentLength: n}
	return r.WithContext(ctx)
}

// call makes a call and reads its body.
func call(t *testing.T, tr *Transport, segments ...string) (*http.Response, string, error) {
	t.Helper()
	resp, err := tr.RoundTrip(post(t.Context(), segments...))
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp, string(body), err
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 20000)
	tests := []struct {
		name, answer string
		status       int
		body         string
		failHead     bool
		failBody     bool
		reused       bool
		atOnce       bool // what comes later cannot be told from an answer to the next request
	}{
		{name: "length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, body: "hello", reused: true},
		{name: "no body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, reused: true},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, reused: true},
		{name: "chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", status: 200, body: "hello", reused: true},
		{name: "trailers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n", status: 200, body: "hello", reused: true},
		{name: "large chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4E20\r\n" + long + "\r\n0\r\n\r\n", status: 200, body: long, reused: true},
		{name: "interim answers", answer: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reused: true},
		{name: "bare LF", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", status: 200, body: "ok", reused: true},
		{name: "until close", answer: "HTTP/1.1 200 OK\r\n\r\nhello", status: 200, body: "hello"},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
		{name: "connection: close", answer: "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
		{name: "more than stated", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", status: 200, body: "ok", atOnce: true},
		{name: "error status", answer: "HTTP/1.1 503 Busy\r\nRetry-After: 3\r\nContent-Length: 1\r\n\r\nx", status: 503, body: "x", reused: true},
		{name: "long field", answer: "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reused: true},

		{name: "less than stated", answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", status: 200, body: "hello", failBody: true},
		{name: "cut in a chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello", status: 200, body: "hello", failBody: true},
		{name: "cut between chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", status: 200, body: "hello", failBody: true},
		{name: "chunk size no number", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", status: 200, failBody: true},
		{name: "chunk size signed", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", status: 200, failBody: true},
		{name: "chunk size empty", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", status: 200, failBody: true},
		{name: "chunk size too large", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", status: 200, failBody: true},
		{name: "chunk without its end", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", status: 200, body: "hello", failBody: true},
		{name: "chunk line without CR", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", status: 200, failBody: true},
		{name: "endless chunk extension", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + long + "\r\nhello\r\n0\r\n\r\n", status: 200, failBody: true},

		{name: "nothing", answer: "", failHead: true},
		{name: "half a head", answer: "HTTP/1.1 200 OK\r\nContent-", failHead: true},
		{name: "no HTTP", answer: "SSH-2.0-OpenSSH_9.2\r\n\r\n", failHead: true},
		{name: "HTTP/2 preface", answer: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", failHead: true},
		{name: "status of four digits", answer: "HTTP/1.1 2000 OK\r\n\r\n", failHead: true},
		{name: "status 099", answer: "HTTP/1.1 099 OK\r\n\r\n", failHead: true},
		{name: "length and chunks", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", failHead: true},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", failHead: true},
		{name: "negative length", answer: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", failHead: true},
		{name: "length with a sign", answer: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", failHead: true},
		{name: "other transfer encoding", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", failHead: true},
		{name: "folded field", answer: "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", failHead: true},
		{name: "space before colon", answer: "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", failHead: true},
		{name: "switching protocols", answer: "HTTP/1.1 101 Switching Protocols\r\n\r\n", failHead: true},
		{name: "too many interim answers", answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) + "HTTP/1.1 200 OK\r\n\r\n", failHead: true},
		{name: "too many fields", answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 300) + "\r\n", failHead: true},
		{name: "endless head", answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead), failHead: true},
	}
	for _, tt := range tests {
		for _, piece := range []int{1 << 20, 7, 1} {
			if piece < 7 && len(tt.answer) > 10000 || tt.atOnce && piece < len(tt.answer) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", tt.name, piece), func(t *testing.T) {
				answers := []string{tt.answer}
				if tt.reused {
					answers = append(answers, tt.answer)
				}
				tr, connections := script(t, piece, answers...)
				resp, body, err := call(t, tr, "{}")
				if tt.failHead {
					if resp != nil || err == nil {
						t.Fatalf("got status %v, error %v; want an error", resp, err)
					}
					return
				}
				if (err != nil) != tt.failBody || resp == nil || resp.StatusCode != tt.status || body != tt.body {
					t.Fatalf("got %+v, body %.60q, error %v; want status %d, body %.60q, failing %v", resp, body, err, tt.status, tt.body, tt.failBody)
				}
				call(t, tr, "{}")
				if got, want := connections.Load() == 1, tt.reused; got != want {
					t.Errorf("connection reused: got %v, want %v", got, want)
				}
			})
		}
	}
}

func TestHeaderIsWhole(t *testing.T) {
	tr, _ := script(t, 1<<20, "HTTP/1.1 200 OK\r\ncontent-type:  text/plain \r\nX-A: 1\r\nx-a: 2\r\nEmpty:\r\nContent-Length: 0\r\n\r\n")
	resp, _, err := call(t, tr)
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{"Content-Type": {"text/plain"}, "X-A": {"1", "2"}, "Empty": {""}, "Content-Length": {"0"}}
	if got := fmt.Sprint(resp.Header); got != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The request as a real server reads it, small and large.
func TestRequest(t *testing.T) {
	type seen struct{ method, uri, host, a, body string }
	got := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, fmt.Sprint(r.Header["A"]), string(body)}
	}))
	defer server.Close()
	tr := New(server.Listener.Addr().String(), (&net.Dialer{}).DialContext)
	defer tr.CloseIdleConnections()
	for _, size := range []int{0, 10, copied - 5, copied, copied + 1, 3 << 20} {
		segments := []string{strings.Repeat("a", size/2), "", strings.Repeat("b", size-size/2)}
		if _, _, err := call(t, tr, segments...); err != nil {
			t.Fatal(err)
		}
		want := seen{"POST", "/v1/x?q=1", "upstream", "[1 2]", strings.Join(segments, "")}
		if g := <-got; g != want {
			t.Errorf("size %d: got %.80v, want %.80v", size, g, want)
		}
	}
}

func TestClosedIdleConnectionIsNotUsed(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	tr, connections := script(t, 1<<20, answer) // closes after one answer, without saying so
	for i := range 3 {
		if _, body, err := call(t, tr, "{}"); err != nil || body != "ok" {
			t.Fatalf("call %d: got %q, %v", i, body, err)
		}
		waitDead(t, tr)
	}
	if got := connections.Load(); got != 3 {
		t.Errorf("got %d connections, want 3", got)
	}
}

// waitDead waits until the idle connection is seen to be closed.
func waitDead(t *testing.T, tr *Transport) {
	t.Helper()
	for range 1000 {
		tr.mu.Lock()
		dead := len(tr.idle) == 0 || !alive(tr.idle[0].Conn)
		tr.mu.Unlock()
		if dead {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the connection stays open")
}

func TestContextEndsCall(t *testing.T) {
	tests := map[string]string{
		"before the head": "",
		"in the head":     "HTTP/1.1 200",
		"in the body":     "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			gone := make(chan struct{})
			answered := make(chan struct{})
			go func() {
				defer close(gone)
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				readRequest(c)
				io.WriteString(c, answer)
				close(answered)
				io.Copy(io.Discard, c) // until the client leaves
			}()
			tr := New(l.Addr().String(), (&net.Dialer{}).DialContext)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-answered; cancel() }()
			resp, err := tr.RoundTrip(post(ctx, "{}"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("got no error")
			}
			<-gone
			if len(tr.idle) != 0 {
				t.Error("the connection was kept")
			}
		})
	}
}

// A server that answers without reading the body must not be fed for ever.
func TestEarlyAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone, seen := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		<-seen // reads nothing: the window stays shut
	}()
	tr := New(l.Addr().String(), (&net.Dialer{}).DialContext)
	resp, body, err := call(t, tr, strings.Repeat("x", 64<<20)) // for ever, were it fed
	if err != nil || resp.StatusCode != 413 || body != "no" {
		t.Errorf("got %v, %q, %v", resp, body, err)
	}
	close(seen)
	<-gone
}

func TestRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, _, err := call(t, New(address, (&net.Dialer{}).DialContext), "{}"); err == nil {
		t.Error("got no error")
	}
}

func TestBodyClosedEarlyClosesConnection(t *testing.T) {
	tr, connections := script(t, 1<<20, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "")
	resp, err := tr.RoundTrip(post(t.Context(), "{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("read after close: got %v", err)
	}
	call(t, tr, "{}")
	if got := connections.Load(); got != 2 {
		t.Errorf("got %d connections, want 2", got)
	}
}

func TestManyCallers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	}))
	defer server.Close()
	tr := New(server.Listener.Addr().String(), (&net.Dialer{}).DialContext)
	defer tr.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 50 {
				text := strings.Repeat(fmt.Sprintf("<%d.%d>", i, j), 1+i*40)
				if _, body, err := call(t, tr, text); err != nil || body != text {
					t.Errorf("caller %d: got %d bytes, %v; want %d", i, len(body), err, len(text))
					return
				}
			}
		})
	}
	wg.Wait()
}

// Whatever a server sends, what is read of it does not depend on how it was
// cut, and the end is the one that was stated or an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
		"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", "HTTP/1.0 200\n\n", "",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		read := func(piece int) string {
			c := &conn{Conn: &cutConn{data: data, piece: piece}, release: func() bool { return true }, transport: &Transport{}}
			resp, body, err := c.readHead(nil)
			if err != nil {
				c.drop()
				return "no answer"
			}
			text, err := io.ReadAll(io.LimitReader(body, 1<<20))
			clean := body.err == io.EOF
			body.conn.close()
			return fmt.Sprint(resp.StatusCode, resp.Header, clean, err == nil, text)
		}
		whole := read(len(data) + 1)
		if cut := read(1 + (piece&0xff)%(len(data)+1)); cut != whole {
			t.Errorf("in pieces: %.300s\nwhole: %.300s", cut, whole)
		}
	})
}

// cutConn gives its data in pieces, then the end.
type cutConn struct {
	net.Conn
	data  []byte
	piece int
}

func (c *cutConn) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.piece)], c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *cutConn) Close() error { return nil }
