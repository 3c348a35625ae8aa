package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// lab is the bench: the upstream that runs throughout, and the proxies to put before
// it.
type lab struct {
	plan     plan
	dir      string
	upstream *process
	upAddr   string
	proxies  []*proxy
	limen    *limen
	noNginx  string // why the column is left out, or ""
}

// proxy is one column.
type proxy struct {
	name  string
	key   string // API key of its callers
	addr  string
	calls atomic.Int64 // made to it, all in all
	start func(context.Context) (*process, error)
}

const (
	nameLimen = "Limen"
	nameRP    = "ReverseProxy"
	nameNginx = "nginx"
)

func newLab(ctx context.Context, p plan, dir string) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	l := &lab{plan: p, dir: dir, upAddr: ports[0]}
	if l.limen, err = newLimen(ctx, p.limen, dir, ports[1], ports[0]); err != nil {
		return nil, err
	}
	l.proxies = []*proxy{
		{name: nameLimen, key: l.limen.key, addr: ports[1], start: func(ctx context.Context) (*process, error) { return l.limen.start(ctx) }},
		{name: nameRP, addr: ports[2], start: func(ctx context.Context) (*process, error) {
			return spawn(ctx, filepath.Join(dir, "reverseproxy.log"), self, "reverseproxy", ports[2], ports[0])
		}},
	}
	if path, err := exec.LookPath("nginx"); err != nil {
		l.noNginx = "nginx is not installed: its column is left out."
		fmt.Println(l.noNginx)
	} else {
		n := &proxy{name: nameNginx, addr: ports[3]}
		n.start = func(ctx context.Context) (*process, error) { return startNginx(ctx, path, dir, ports[3], ports[0]) }
		l.proxies = append(l.proxies, n)
	}
	if l.upstream, err = spawn(ctx, filepath.Join(dir, "upstream.log"), self, "upstream", ports[0]); err != nil {
		return nil, err
	}
	if err := ready(ctx, l.upAddr, ""); err != nil {
		return nil, errors.Join(err, l.upstream.stop())
	}
	return l, nil
}

// freePorts are addresses of the loopback interface that nobody listens on.
func freePorts(n int) ([]string, error) {
	var list []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are taken, so that they differ
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// running is a proxy that has been started.
type running struct {
	*proxy
	*process
}

// startAll starts every proxy and waits until each answers. stop ends them.
func (l *lab) startAll(ctx context.Context) (list []running, stop func() error, err error) {
	stop = func() error {
		var errs []error
		for _, r := range list {
			errs = append(errs, r.process.stop())
		}
		return errors.Join(errs...)
	}
	for _, p := range l.proxies {
		r, err := p.run(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		list = append(list, r)
	}
	return list, stop, nil
}

// run starts a proxy and waits until it answers.
func (p *proxy) run(ctx context.Context) (running, error) {
	proc, err := p.start(ctx)
	if err != nil {
		return running{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := ready(ctx, p.addr, p.key); err != nil {
		return running{}, errors.Join(fmt.Errorf("%s: %w\n%s", p.name, err, proc.output()), proc.stop())
	}
	proc.took = time.Since(proc.spawned)
	return running{p, proc}, nil
}

// ready polls every millisecond until the models are listed.
func ready(ctx context.Context, addr, key string) (err error) {
	start := time.Now()
	for time.Since(start) < 20*time.Second && ctx.Err() == nil {
		var c *client
		if c, err = dial(addr); err == nil {
			_, err = c.call(listModels(key))
			c.close()
		}
		if err == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("no answer at %s: %w", addr, errors.Join(err, ctx.Err()))
}

// process is a child.
type process struct {
	cmd     *exec.Cmd
	log     string
	spawned time.Time
	took    time.Duration // from there to the first answer of 200
	ended   chan error
}

// spawn starts a child whose output goes to a file. Its standard input stays open as
// long as the bench lives.
func spawn(ctx context.Context, logPath, name string, args ...string) (*process, error) {
	out, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: logPath, spawned: time.Now(), ended: make(chan error, 1)}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- cmd.Wait() }()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the child to end, and makes it after ten seconds.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end on SIGTERM", filepath.Base(p.cmd.Path))
	}
}

// output is the end of what the child printed.
func (p *process) output() string {
	const most = 2000
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(len(b)-most, 0):])
}

// serveReverseProxy is the column to compare with: the standard library's proxy and
// its default transport, which alone keeps more idle connections so that it need not
// dial for each call.
func serveReverseProxy(addr, upstream string) error {
	go exitWithParent()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 256
	return http.ListenAndServe(addr, reverseProxy(upstream, transport, os.Stderr))
}

func reverseProxy(upstream string, transport http.RoundTripper, errors io.Writer) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		Transport:     transport,
		ErrorLog:      log.New(errors, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else the server closes the request's body as the answer begins. The transport
		// reads that once more after it has sent it, and on a failure hangs up on an
		// upstream that answers already.
		http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}

// nginxConf keeps bodies in memory, as the others do, and writes the access log that
// Limen's usage journal is comparable to.
const nginxConf = `daemon off;
%[1]s
worker_processes 2;
worker_rlimit_nofile 20000;
pid %[2]s/nginx.pid;
error_log %[2]s/error.log;
events { worker_connections 16384; }
http {
	access_log %[2]s/access.log;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	keepalive_requests 1000000;
	client_max_body_size 64m;
	client_body_buffer_size 2m;
	upstream lab {
		server %[4]s;
		keepalive 256;
		keepalive_requests 1000000;
	}
	server {
		listen %[3]s;
		location / {
			proxy_pass http://lab;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_read_timeout 600s;
		}
		location /v1/chat/completions {
			proxy_pass http://lab;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_read_timeout 600s;
			proxy_buffering off;
		}
	}
}
`

func startNginx(ctx context.Context, path, dir, addr, upstream string) (*process, error) {
	home := filepath.Join(dir, "nginx")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	user := "" // as root, nginx would change to a user that cannot enter home
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf := filepath.Join(home, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, user, home, addr, upstream), 0o600); err != nil {
		return nil, err
	}
	return spawn(ctx, filepath.Join(dir, "nginx.log"), path, "-p", home, "-c", conf)
}
