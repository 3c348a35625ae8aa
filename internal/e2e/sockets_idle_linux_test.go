package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// resident is the memory that a process has now.
func (g *gateway) resident(t *testing.T) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	t.Fatal("the process has no VmRSS")
	return 0
}

// upgrade opens a socket without a client's library, whose own memory would
// be in the way.
func (g *gateway) upgrade(t *testing.T) *raw {
	t.Helper()
	conn := g.dial(t)
	key := make([]byte, 16)
	rand.Read(key)
	conn.send("GET /v1/responses HTTP/1.1\r\nHost: " + g.host() + "\r\nAuthorization: Bearer " + g.key + "\r\n" +
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.StdEncoding.EncodeToString(key) + "\r\n\r\n")
	resp, err := http.ReadResponse(conn.in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	return conn
}

// frame is the head of a client's message of text, and what is sent of it.
func frame(size int, sent string) string {
	head := []byte{0x81, 0x80 | 127, 0, 0, 0, 0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, 0, 0} // the mask changes nothing
	return string(head) + sent
}

// TestIdleSockets opens many sockets. Those that are idle, and those that say
// that much will come but send little of it, cost little.
func TestIdleSockets(t *testing.T) {
	t.Parallel()
	const (
		sockets = 1000
		mib     = 1 << 20
	)
	g := spawn(t, t.TempDir(), provider(newUpstream(t)))
	hello := `{"type":"response.create","model":"up/small","store":false,"input":"Hi"}`
	first := g.open(t)
	first.turn(t, hello) // all that is made once is there
	first.conn.CloseNow()
	before := g.resident(t)
	open := make([]*raw, sockets)
	for i := range open {
		open[i] = g.upgrade(t)
	}
	grown := g.resident(t) - before
	t.Logf("%d idle sockets: %.1f MiB", sockets, float64(grown)/mib)
	if grown > 40*mib {
		t.Errorf("%d idle sockets take %.1f MiB, want at most 40", sockets, float64(grown)/mib)
	}

	// A tenth of them begins a message of 64 MiB, and falls silent.
	for _, conn := range open[:sockets/10] {
		conn.send(frame(64*mib, `{"type":"response.create","model":"up/small","input":"`))
	}
	// The others make a turn, and are idle again.
	used := open[sockets/10 : sockets/2]
	for _, conn := range used {
		conn.send(frame(len(hello), hello))
	}
	for _, conn := range used {
		conn.SetReadDeadline(time.Now().Add(patience))
		seen := ""
		for !strings.Contains(seen, `"type":"response.completed"`) {
			piece := make([]byte, 8<<10)
			n, err := conn.in.Read(piece)
			if err != nil {
				t.Fatal(err)
			}
			seen = seen[max(0, len(seen)-64):] + string(piece[:n])
		}
	}
	grown = g.resident(t) - before
	t.Logf("after a turn each: %.1f MiB", float64(grown)/mib)
	if grown > 100*mib {
		t.Errorf("after a turn each: %.1f MiB, want at most 100", float64(grown)/mib)
	}
	if got := g.get(t, "/models"); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
	for _, conn := range open {
		conn.Close()
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
