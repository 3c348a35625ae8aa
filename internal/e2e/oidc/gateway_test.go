package oidc

import (
	"bufio"
	"bytes"
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
)

// gateway is one that runs.
type gateway struct {
	origin   string
	password string
	file     string // of the configuration
	config   string
	stop     func() string // ends it, and returns what it logged
}

// start runs the gateway with single sign-on configured so.
func start(t *testing.T, oidc string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{file: filepath.Join(dir, "limen.yaml")}
	g.configure(t, "listen: 127.0.0.1:0\ndata: "+filepath.Join(dir, "data")+"\nlogin: { oidc: { "+oidc+" } }\n")
	cmd := exec.Command(binary(), "serve", "--config", g.file)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.stop = sync.OnceValue(func() string {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		return log.String()
	})
	t.Cleanup(func() { g.stop() })
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	said := bufio.NewScanner(out)
	for g.password == "" || g.origin == "" {
		if !said.Scan() {
			t.Fatal("the gateway did not start: " + g.stop())
		}
		if m := line.FindStringSubmatch(said.Text()); m != nil && m[1] == "Admin password" {
			g.password = m[2]
		} else if m != nil {
			g.origin = strings.TrimSuffix(m[2], "/v1")
		}
	}
	go io.Copy(io.Discard, out) // until the gateway ends
	return g
}

var line = regexp.MustCompile(`^  (Base URL|Admin password) +(\S+)$`)

// binary is the gateway to test: the one that LIMEN_BIN names, or the one of
// this tree.
var binary = sync.OnceValue(func() string {
	if path := os.Getenv("LIMEN_BIN"); path != "" {
		return path
	}
	path := filepath.Join(built, "limen")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return path
})

var built string // a directory for the binary

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "limen-oidc-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

// admin asks the admin API with the admin password.
func (g *gateway) admin(t *testing.T, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.origin+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s, %v", method, path, answer.Status, text, err)
	}
	return strings.TrimSpace(string(text))
}
