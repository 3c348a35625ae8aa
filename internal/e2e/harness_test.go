package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/cli"
	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// canary is the upstream's key. No client and no log may ever see it.
const canary = "sk-upstream-canary-5YwQ"

// patience bounds every wait of a test: long on purpose, for slow machines.
const patience = time.Minute

// gateway is a whole gateway that runs: within the test's process, so that the
// race detector and the leak check see it, or as a process of its own.
type gateway struct {
	t        *testing.T
	data     string
	config   string // the file
	url      string // base URL
	key      string // of a client
	password string
	log      *output
	process  *os.Process // nil within the test's process
	client   *http.Client

	once  sync.Once
	end   func() // asks it to stop, as SIGTERM does
	ended chan int
}

// start runs a gateway within the process.
func start(t *testing.T, config string) *gateway {
	t.Helper()
	return startOn(t, t.TempDir(), config)
}

// startOn is start on a data directory, which may be in use since before.
func startOn(t *testing.T, data, config string) *gateway {
	t.Helper()
	g := newGateway(t, data)
	g.run(g.arguments(config))
	return g
}

// run runs the gateway within the test's process.
func (g *gateway) run(args []string) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g.end = cancel
	welcome := newOutput()
	go func() {
		g.ended <- cli.Main(ctx, args, welcome, g.log, cli.Version{Release: "test"}, nil)
	}()
	g.ready(welcome)
}

// spawn runs the released binary.
func spawn(t *testing.T, data, config string) *gateway {
	t.Helper()
	g := newGateway(t, data)
	welcome := newOutput()
	cmd := exec.Command(built.path(t), g.arguments(config)...)
	cmd.Stdout, cmd.Stderr = welcome, g.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.process = cmd.Process
	g.end = func() { cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		cmd.Wait()
		g.ended <- cmd.ProcessState.ExitCode()
	}()
	g.ready(welcome)
	return g
}

func newGateway(t *testing.T, data string) *gateway {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	g := &gateway{t: t, data: data, log: newOutput(), ended: make(chan int, 1), client: &http.Client{Transport: transport, Timeout: patience}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		g.stop()
	})
	return g
}

func (g *gateway) arguments(config string) []string {
	g.t.Helper()
	g.config = filepath.Join(g.t.TempDir(), "limen.yaml")
	if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return []string{"serve", "--config", g.config, "--data", g.data, "--listen", "127.0.0.1:0"}
}

var welcomeLines = regexp.MustCompile(`(?m)^  (Base URL|API key|Admin password) +(\S+)$`)

// ready waits for the welcome and takes from it what a user would.
func (g *gateway) ready(welcome *output) {
	g.t.Helper()
	text, ok := welcome.await(func(text string) bool { return strings.Contains(text, "provider") })
	if !ok {
		g.t.Fatalf("the gateway did not start:\n%s%s", text, g.log.String())
	}
	for _, m := range welcomeLines.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "Base URL":
			g.url = m[2]
		case "API key":
			g.key = m[2]
		case "Admin password":
			g.password = m[2]
		}
	}
}

// stop ends the gateway as SIGTERM does and returns its exit code.
func (g *gateway) stop() (code int) {
	g.once.Do(func() {
		g.end()
		select {
		case code = <-g.ended:
		case <-time.After(patience):
			g.t.Error("the gateway does not stop")
			if g.process != nil {
				g.process.Kill()
			}
		}
	})
	return code
}

// kill ends a process of its own without any warning.
func (g *gateway) kill() {
	g.once.Do(func() {
		g.process.Kill()
		<-g.ended
	})
}

// root is the gateway's address without /v1.
func (g *gateway) root() string { return strings.TrimSuffix(g.url, "/v1") }

// host is the address as HOST:PORT.
func (g *gateway) host() string { return strings.TrimPrefix(g.root(), "http://") }

// request is a call that a test makes.
func (g *gateway) request(t *testing.T, ctx context.Context, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// reply is an answer that came whole, or as far as it came.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (r reply) id() string { return r.header.Get("X-Request-Id") }

// do makes a request and reads its answer.
func (g *gateway) do(t *testing.T, r *http.Request) reply {
	t.Helper()
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), err}
}

func (g *gateway) post(t *testing.T, path, body string) reply {
	t.Helper()
	return g.do(t, g.request(t, t.Context(), http.MethodPost, path, strings.NewReader(body)))
}

// record is what the admin API tells of a call.
type record struct {
	RequestID     string `json:"request_id"`
	Operation     string `json:"operation"`
	Model         string `json:"model"`
	Provider      string `json:"provider"`
	UpstreamModel string `json:"upstream_model"`
	Stream        bool   `json:"stream"`
	Status        int    `json:"status"`
	Error         string `json:"error"`
	Input         int64  `json:"input_tokens"`
	Output        int64  `json:"output_tokens"`
	Total         int64  `json:"total_tokens"`
	Estimated     bool   `json:"estimated"`

	Account string   `json:"account"`
	Notes   []string `json:"notes"`
	Steps   []struct {
		Account string `json:"account"`
		Result  string `json:"result"`
		Tried   bool   `json:"tried"`
	} `json:"steps"`
}

// admin asks the admin API.
func (g *gateway) admin(t *testing.T, method, path, body string, into any) {
	t.Helper()
	got := g.do(t, g.adminRequest(t, method, path, body))
	if got.status != http.StatusOK {
		t.Fatalf("%s %s: got %d %s, want 200", method, path, got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (g *gateway) adminRequest(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, g.root()+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.password)
	return r
}

// records are all calls that are accounted for, the newest first.
func (g *gateway) records(t *testing.T) []record {
	t.Helper()
	var list struct{ Calls []record }
	g.admin(t, http.MethodGet, "/calls?limit=10000", "", &list)
	return list.Calls
}

// record is the record of a call. It waits for it: a call whose client left ends
// a moment later.
func (g *gateway) record(t *testing.T, requestID string) (r record) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		got := g.do(t, g.adminRequest(t, http.MethodGet, "/calls/"+requestID, ""))
		switch {
		case got.status == http.StatusNotFound:
			continue
		case got.status != http.StatusOK || json.Unmarshal([]byte(got.body), &r) != nil:
			t.Fatalf("call %s: %d %s", requestID, got.status, got.body)
		}
		return r
	}
	t.Fatalf("call %s is not in the usage", requestID)
	return r
}

// reload changes the configuration of a gateway that runs.
func (g *gateway) reload(t *testing.T, config string) {
	t.Helper()
	if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g.admin(t, http.MethodPost, "/config/reload", "", new(any))
}

// newUpstream starts a vendor whose key is the canary.
func newUpstream(t *testing.T, options ...upstream.Option) *upstream.Server {
	t.Helper()
	s := upstream.New(append([]upstream.Option{upstream.WithKey(canary)}, options...)...)
	t.Cleanup(s.Close)
	return s
}

// provider is the part of a configuration that names an upstream "up" which
// speaks both dialects.
func provider(s *upstream.Server) string {
	return fmt.Sprintf("providers:\n  up: {base_url: %q, api_key: %s, speaks: [openai-chat, openai-responses]}\n", s.URL(), canary)
}

// Bodies of the two operations.
func chatBody(stream bool, prompt string) string {
	return fmt.Sprintf(`{"model":"up/small","stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, prompt)
}

func responsesBody(stream bool, prompt string) string {
	return fmt.Sprintf(`{"model":"up/small","stream":%t,"input":%q}`, stream, prompt)
}

// output collects what a gateway writes, and lets tests wait for it.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.buf.Write(p)
}

func (o *output) snapshot() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String(), o.changed
}

func (o *output) String() string {
	text, _ := o.snapshot()
	return text
}

// await waits until what was written is as wanted.
func (o *output) await(wanted func(string) bool) (string, bool) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		text, changed := o.snapshot()
		if wanted(text) {
			return text, true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return text, false
		}
	}
}
