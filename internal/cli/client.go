package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/app"
	"github.com/limen-gateway/limen/internal/config"
)

// client speaks to an admin API, wherever that is.
type client struct {
	base     string
	password string
	http     *http.Client
	where    string // for messages
	close    func() error
}

// connect finds the admin API: the one that LIMEN_URL names, the gateway that
// has the data directory open, or the data directory itself.
func (e *env) connect(ctx context.Context) (*client, error) {
	if address := os.Getenv("LIMEN_URL"); address != "" {
		return connectURL(address)
	}
	named := setting(e.data, "LIMEN_DATA")
	cfg, _, err := e.load()
	if err != nil && named == "" {
		return nil, err
	}
	if err != nil { // a key must be revocable whatever state the configuration is in
		cfg = config.Default()
	}
	dir := app.DataDir(named, cfg.Data)
	if conn, err := app.DialSocket(ctx, dir); err == nil {
		conn.Close()
		return connectSocket(dir), nil
	}
	return e.openData(ctx, dir, cfg.Keys.Prefix)
}

func connectURL(address string) (*client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, usageError("LIMEN_URL is no URL; it is the gateway's address, such as https://limen.example.com")
	}
	password := os.Getenv("LIMEN_ADMIN_PASSWORD")
	if password == "" {
		return nil, usageError("LIMEN_URL is set, so LIMEN_ADMIN_PASSWORD must hold the admin password of that gateway")
	}
	base := strings.TrimSuffix(strings.TrimRight(address, "/"), "/v1")
	return &client{base: base, password: password, where: base, http: &http.Client{Timeout: time.Minute}, close: noClose}, nil
}

func noClose() error { return nil }

func connectSocket(dir string) *client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return app.DialSocket(ctx, dir) }}
	return &client{base: "http://limen", where: "the running gateway", http: &http.Client{Transport: transport, Timeout: time.Minute}, close: noClose}
}

// openData serves the admin API within this process, from the data directory.
func (e *env) openData(ctx context.Context, dir, keyPrefix string) (*client, error) {
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	data, err := app.OpenData(ctx, dir, os.Getenv("LIMEN_DATABASE_URL"), log)
	if errors.Is(err, app.ErrBusy) {
		return nil, fmt.Errorf("%w, and does not answer; is it starting or stopping? Try again", err)
	}
	if err != nil {
		return nil, err
	}
	api := &admin.API{
		Keys: data.Keys, Books: data.Books, Admin: data.Admin, Ledger: data.Ledger, Store: data.Store, Log: log, Version: e.version.Release,
		KeyPrefix: func() string { return keyPrefix },
	}
	return &client{
		base: "http://limen", where: "the data directory " + dir, http: &http.Client{Transport: within{api.Handler()}},
		close: func() error { return data.Close(context.WithoutCancel(ctx)) },
	}, nil
}

// within is a transport to a handler in this process.
type within struct{ handler http.Handler }

func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// recorder takes an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// maxAnswer bounds an answer of the admin API.
const maxAnswer = 256 << 20

// do calls an operation. in and out are documents; nil is none.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	if c.password != "" {
		req.Header.Set("Authorization", "Bearer "+c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", c.where, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var said struct {
			Error struct{ Message string }
		}
		if json.Unmarshal(text, &said) == nil && said.Error.Message != "" {
			return errors.New(said.Error.Message)
		}
		return fmt.Errorf("%s answered %s; is LIMEN_URL the address of a Limen gateway?", c.where, resp.Status)
	}
	return json.Unmarshal(text, out)
}

// with connects, calls f, and lets go.
func (e *env) with(ctx context.Context, f func(*client) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.close())
}
