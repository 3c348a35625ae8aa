package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// TestStories runs testdata/*.txtar: each is a page that a user could read.
// Beside limen itself they have these commands:
//
//	upstream NAME [MODEL…]   starts a vendor; $NAME is its base URL, $NAME_ROOT that without /v1,
//	                         its key is $UPSTREAM_KEY
//	upstream -stop NAME      ends it; started again it has the same address
//	asked NAME               prints the last call that reached it: headers, body
//	gateway [ARG…]           starts 'limen serve ARG…' on a free port and waits until it is
//	                         ready; what it says is in stdout, $URL, and at first $KEY and $PASSWORD
//	gateway -stop [CODE]     SIGTERM; waits for its end with this exit code
//	gateway -hup             SIGHUP
//	gateway -log REGEXP      waits until the log matches
//	http STATUS METHOD PATH [-key KEY] [-h 'NAME: VALUE']… [BODY]
//	                         makes a request and prints status, headers and body; BODY is JSON or
//	                         a file; -key none sends none; PATH is below the gateway's root
//	await STATUS …           http, until it gets that status
//	take NAME REGEXP         sets a variable to what REGEXP's group finds in stdout
//	fill NAME FILE…          writes a variable's value into files, for ${NAME}
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			s := &story{upstreams: map[string]*upstream.Server{}, addresses: map[string]string{}}
			env.Values[storyKey{}] = s
			env.Defer(s.close)
			env.Setenv("UPSTREAM_KEY", canary)
			// Providers are looked for on this machine only if none is configured,
			// and a proxy must not come between.
			env.Setenv("NO_PROXY", "127.0.0.1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"upstream": command((*story).upstream), "asked": command((*story).asked), "gateway": command((*story).gateway),
			"http": command((*story).http), "await": command((*story).await), "take": command((*story).take),
			"fill": command((*story).fill),
		},
	})
}

// story is what runs for one page.
type story struct {
	upstreams map[string]*upstream.Server
	addresses map[string]string // of upstreams, also of those that were stopped
	gateways  []*served         // the last one is meant where one is
}

type storyKey struct{}

// served is a gateway process.
type served struct {
	cmd   *exec.Cmd
	log   *output
	ended chan int
}

func command(do func(*story, *testscript.TestScript, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("! cannot stand before this command")
		}
		ts.Check(do(ts.Value(storyKey{}).(*story), ts, args))
	}
}

func (s *story) close() {
	for _, g := range s.gateways {
		g.cmd.Process.Kill()
		<-g.ended
	}
	for _, u := range s.upstreams {
		u.Close()
	}
}

func (s *story) upstream(ts *testscript.TestScript, args []string) error {
	if len(args) == 2 && args[0] == "-stop" {
		s.upstreams[args[1]].Close()
		delete(s.upstreams, args[1])
		return nil
	}
	if len(args) == 0 {
		return errors.New("usage: upstream [-stop] NAME [MODEL…]")
	}
	name := args[0]
	address := s.addresses[name]
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	u := upstream.New(upstream.WithListener(l), upstream.WithKey(canary), upstream.WithModels(args[1:]...))
	s.upstreams[name], s.addresses[name] = u, u.Host()
	ts.Setenv(name, u.URL())
	ts.Setenv(name+"_ROOT", "http://"+u.Host())
	return nil
}

func (s *story) asked(ts *testscript.TestScript, args []string) error {
	var last *upstream.Request
	for _, r := range s.upstreams[args[0]].Requests() {
		if r.Body != "" {
			last = &r
		}
	}
	if last == nil {
		return fmt.Errorf("%s was not asked anything", args[0])
	}
	fmt.Fprintf(ts.Stdout(), "%s %s\n", last.Method, last.Path)
	printHeader(ts.Stdout(), last.Header)
	fmt.Fprintf(ts.Stdout(), "\n%s\n", last.Body)
	return nil
}

func (s *story) gateway(ts *testscript.TestScript, args []string) error {
	if len(args) == 0 || args[0][0] != '-' || strings.HasPrefix(args[0], "--") {
		return s.serve(ts, args)
	}
	if len(s.gateways) == 0 {
		return errors.New("no gateway runs")
	}
	g := s.gateways[len(s.gateways)-1]
	switch args[0] {
	case "-hup":
		return g.cmd.Process.Signal(syscall.SIGHUP)
	case "-log":
		wanted, err := regexp.Compile(args[1])
		if err != nil {
			return err
		}
		if text, ok := g.log.await(wanted.MatchString); !ok {
			return fmt.Errorf("the log does not match %q:\n%s", args[1], text)
		}
		return nil
	case "-stop":
		want := 0
		if len(args) > 1 {
			want, _ = strconv.Atoi(args[1])
		}
		g.cmd.Process.Signal(syscall.SIGTERM)
		code := <-g.ended
		g.ended <- code // for close
		ts.Logf("[log]\n%s", g.log.String())
		if code != want {
			return fmt.Errorf("exit code: got %d, want %d", code, want)
		}
		return nil
	}
	return fmt.Errorf("gateway %s: unknown", args[0])
}

// variables are what a gateway of a story gets of the environment.
var variables = []string{"PATH", "HOME", "NO_PROXY", "UPSTREAM_KEY", "LIMEN_CONFIG", "LIMEN_DATA", "OPENAI_API_KEY", "OPENAI_BASE_URL"}

func (s *story) serve(ts *testscript.TestScript, args []string) error {
	g := &served{log: newOutput(), ended: make(chan int, 1)}
	welcome := newOutput()
	path, err := exec.LookPath("limen")
	if err != nil {
		return err
	}
	g.cmd = exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	g.cmd.Dir = ts.MkAbs(".")
	names := slices.Clone(variables)
	for name := range s.addresses {
		names = append(names, name, name+"_ROOT")
	}
	for _, name := range names {
		if value := ts.Getenv(name); value != "" {
			g.cmd.Env = append(g.cmd.Env, name+"="+value)
		}
	}
	g.cmd.Stdout, g.cmd.Stderr = welcome, g.log
	if err := g.cmd.Start(); err != nil {
		return err
	}
	go func() {
		g.cmd.Wait()
		g.ended <- g.cmd.ProcessState.ExitCode()
		welcome.Write([]byte("\n(it ended)\n"))
	}()
	s.gateways = append(s.gateways, g)
	text, ok := welcome.await(func(text string) bool {
		return strings.Contains(text, "provider") || strings.Contains(text, "(it ended)")
	})
	io.WriteString(ts.Stdout(), text)
	io.WriteString(ts.Stderr(), g.log.String())
	if !ok || strings.Contains(text, "(it ended)") {
		return errors.New("the gateway did not start")
	}
	for _, m := range welcomeLines.FindAllStringSubmatch(text, -1) {
		name := map[string]string{"Base URL": "URL", "API key": "KEY", "Admin password": "PASSWORD"}[m[1]]
		if name != "URL" || strings.HasPrefix(m[2], "http://127.0.0.1:") { // else it is a public one, which is not here
			ts.Setenv(name, m[2])
		}
	}
	_, err = s.request(ts, []string{"200", "GET", "/readyz", "-key", "none"}, io.Discard)
	return err
}

func (s *story) http(ts *testscript.TestScript, args []string) error {
	got, err := s.request(ts, args, ts.Stdout())
	if err == nil && got != args[0] {
		err = fmt.Errorf("status: got %s, want %s", got, args[0])
	}
	return err
}

func (s *story) await(ts *testscript.TestScript, args []string) error {
	tick := time.NewTicker(20 * time.Millisecond) // as often as an impatient user would
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		got, err := s.request(ts, args, io.Discard)
		if err != nil {
			return err
		}
		if got == args[0] {
			break
		}
	}
	return s.http(ts, args)
}

// request makes the request that args describe and prints the answer.
func (s *story) request(ts *testscript.TestScript, args []string, out io.Writer) (status string, err error) {
	if len(args) < 3 {
		return "", errors.New("usage: http STATUS METHOD PATH [-key KEY] [-h 'NAME: VALUE']… [BODY]")
	}
	method, path, rest := args[1], args[2], args[3:]
	key, body := ts.Getenv("KEY"), ""
	header := http.Header{}
	for len(rest) > 0 {
		switch {
		case rest[0] == "-key" && len(rest) > 1:
			key, rest = rest[1], rest[2:]
		case rest[0] == "-h" && len(rest) > 1:
			name, value, _ := strings.Cut(rest[1], ": ")
			header.Add(name, value)
			rest = rest[2:]
		default:
			if body, rest = rest[0], rest[1:]; !strings.HasPrefix(body, "{") {
				body = ts.ReadFile(body)
			}
		}
	}
	r, err := http.NewRequest(method, strings.TrimSuffix(ts.Getenv("URL"), "/v1")+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if key != "none" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(r.Header, header)
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	fmt.Fprintf(out, "HTTP %d\n", resp.StatusCode)
	printHeader(out, resp.Header)
	fmt.Fprintf(out, "\n%s\n", answer)
	return strconv.Itoa(resp.StatusCode), err
}

func printHeader(out io.Writer, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(out, "%s: %s\n", strings.ToLower(name), strings.Join(h[name], ", "))
	}
}

func (s *story) take(ts *testscript.TestScript, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: take NAME REGEXP")
	}
	wanted, err := regexp.Compile("(?m)" + args[1])
	if err != nil {
		return err
	}
	m := wanted.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		return fmt.Errorf("stdout does not match %q", args[1])
	}
	ts.Setenv(args[0], m[1])
	return nil
}

// fill writes the value of a variable into files, where they have ${NAME}.
func (s *story) fill(ts *testscript.TestScript, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: fill NAME FILE...")
	}
	for _, name := range args[1:] {
		text := strings.ReplaceAll(ts.ReadFile(name), "${"+args[0]+"}", ts.Getenv(args[0]))
		if err := os.WriteFile(ts.MkAbs(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
