package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/http2"

	"github.com/limen-gateway/limen/internal/config"
)

const (
	readHeader = 10 * time.Second
	keepAlive  = 2 * time.Minute
	// lastWords is how long calls have to tell their clients of the end after
	// the drain.
	lastWords = 2 * time.Second
	// firstRequest is how long a new connection has, at a shutdown, to bring a
	// request that its client is about to send.
	firstRequest = time.Second
)

// newServer makes the server of the clients' listener. There is no write
// timeout: an answer may take an hour, and each write has its own limit.
func (a *app) newServer(cfg *config.Config, dataDir string) (*http.Server, error) {
	server := &http.Server{
		Handler: a.gateway, ReadHeaderTimeout: readHeader, IdleTimeout: keepAlive, MaxHeaderBytes: int(cfg.Limits.Headers),
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	if !cfg.TLS.Enabled() {
		return server, nil
	}
	var err error
	if server.TLSConfig, err = tlsConfig(cfg.TLS, dataDir); err != nil {
		return nil, err
	}
	// The HTTP/2 of golang.org/x/net carries fixes that Go's own copy gets
	// with its next release.
	//lint:ignore SA1019 for those fixes
	h2 := &http2.Server{MaxConcurrentStreams: 500, MaxUploadBufferPerStream: 1 << 20, IdleTimeout: keepAlive}
	//lint:ignore SA1019 for those fixes
	return server, http2.ConfigureServer(server, h2)
}

func tlsConfig(cfg config.TLS, dataDir string) (*tls.Config, error) {
	if cfg.ACME != nil {
		cache := cfg.ACME.Cache
		if cache == "" {
			cache = filepath.Join(dataDir, "acme")
		}
		manager := &autocert.Manager{
			Prompt: autocert.AcceptTOS, Email: cfg.ACME.Email, Cache: autocert.DirCache(cache),
			HostPolicy: autocert.HostWhitelist(cfg.ACME.Domains...),
		}
		return manager.TLSConfig(), nil
	}
	files := &certificateFiles{cert: cfg.Cert, key: cfg.Key}
	if _, err := files.get(nil); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}, nil
}

// certificateFiles is a certificate in files, read again when they change: it
// is renewed without a restart.
type certificateFiles struct {
	cert, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the certificate's file, when it was loaded
	looked  time.Time
}

// lookEvery bounds how often the files are looked at.
const lookEvery = 10 * time.Second

func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.looked) < lookEvery {
		return c.loaded, nil
	}
	c.looked = time.Now()
	info, err := os.Stat(c.cert)
	if err == nil && (c.loaded == nil || !info.ModTime().Equal(c.changed)) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.loaded, c.changed = &pair, info.ModTime()
		}
	}
	if c.loaded == nil {
		return nil, err
	}
	return c.loaded, nil // the last good one, should the files be half written
}

// unused are the connections on which no request has come. net/http closes
// those at a shutdown that waited for more than five seconds, and waits for
// the others; but clients open connections ahead of need.
type unused struct{ since sync.Map } // net.Conn: time.Time

// note is for http.Server.ConnState.
func (u *unused) note(c net.Conn, state http.ConnState) {
	if state == http.StateNew {
		u.since.Store(c, time.Now())
		return
	}
	u.since.Delete(c)
}

// close closes the connections that were opened before a time.
func (u *unused) close(before time.Time) {
	u.since.Range(func(c, since any) bool {
		if since.(time.Time).Before(before) {
			c.(net.Conn).Close()
		}
		return true
	})
}

// serve serves until ctx ends, then drains: unready first, then no new
// connections, then an end for the calls that are left.
func (a *app) serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	calls, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	server.BaseContext = func(net.Listener) context.Context { return calls }
	var unused unused
	server.ConnState = unused.note
	failed := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			failed <- server.ServeTLS(listener, "", "")
			return
		}
		failed <- server.Serve(listener)
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	cfg := a.config.Load()
	a.draining.Store(true)
	a.log.Info("stopping", "delay", cfg.Timeouts.ShutdownDelay.Std(), "drain", cfg.Timeouts.Drain.Std())
	time.Sleep(cfg.Timeouts.ShutdownDelay.Std())

	drain, cancel := context.WithTimeout(context.Background(), cfg.Timeouts.Drain.Std())
	defer cancel()
	a.gateway.CloseSockets()
	unused.close(time.Now().Add(-firstRequest))
	late := time.AfterFunc(firstRequest, func() { unused.close(time.Now()) })
	defer late.Stop()
	err := server.Shutdown(drain)
	a.gateway.AwaitSockets(drain)
	a.gateway.AwaitRuns(drain)
	if err = errors.Join(err, drain.Err()); err != nil {
		cut(errStopping)
		last, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if err := server.Shutdown(last); err != nil {
			server.Close()
		}
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	a.log.Info("stopped")
	return nil
}
