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
	"github.com/limen-gateway/limen/internal/keys"
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
	cfg, path, err := e.load()
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
	return e.openData(ctx, dir, path, cfg)
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
// The configuration is the file at path, or, without one, the store's document.
func (e *env) openData(ctx context.Context, dir, path string, cfg *config.Config) (*client, error) {
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	data, err := app.OpenData(ctx, dir, os.Getenv("LIMEN_DATABASE_URL"), log)
	if errors.Is(err, app.ErrBusy) {
		return nil, fmt.Errorf("%w, and does not answer; is it starting or stopping? Try again", err)
	}
	if err != nil {
		return nil, err
	}
	if path == "" {
		if src, err := data.Documents.Read(); err == nil {
			if stored, err := config.Parse(src, data.Documents.Options(true, nil)); err == nil {
				cfg = stored
			}
		}
	}
	api := admin.NewServer(&admin.API{
		Keys: data.Keys, Books: data.Books, Operators: data.Operators, Ledger: data.Ledger, Store: data.Store, Log: log, Version: e.version.Release,
		KeyPrefix: func() string { return cfg.Keys.Prefix }, Documents: data.Documents, ConfigFile: path,
		Config: func() ([]byte, error) { return cfg.RedactedJSON() },
	})
	return &client{
		base: "http://limen", where: "the data directory " + dir, http: &http.Client{Transport: within{api.Local(keys.ViaDirectory)}},
		close: func() error { return data.Close(context.WithoutCancel(ctx)) },
	}, nil
}

// within is a transport to a handler in this process.
type within struct{ handler http.Handler }

func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, writer := io.Pipe()
	w := &answer{header: http.Header{}, body: writer, begun: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer w.end()
		t.handler.ServeHTTP(w, r)
	}()
	<-w.begun
	return &http.Response{StatusCode: w.status, Header: w.header, Body: &answerBody{body, over}, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// answer is that of a handler, which is read while it is written.
type answer struct {
	header http.Header
	status int
	body   *io.PipeWriter
	begun  chan struct{} // closed when the status is known
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		close(a.begun)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// end ends the answer, also when the handler broke it off.
func (a *answer) end() {
	p := recover()
	if p != nil && p != http.ErrAbortHandler {
		panic(p)
	}
	a.WriteHeader(http.StatusOK)
	if p != nil {
		a.body.CloseWithError(io.ErrUnexpectedEOF)
		return
	}
	a.body.Close()
}

// answerBody is a body whose handler has ended when it is closed.
type answerBody struct {
	io.ReadCloser
	over <-chan struct{}
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	<-b.over
	return err
}

// maxAnswer bounds an answer of the admin API that is a document.
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
	resp, err := c.send(ctx, c.http, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// stream copies an answer of any length, which may take any time.
func (c *client) stream(ctx context.Context, path string, to io.Writer) error {
	patient := *c.http
	patient.Timeout = 0
	resp, err := c.send(ctx, &patient, "GET", path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(to, resp.Body); err != nil {
		return fmt.Errorf("what was written is not whole: %w", err)
	}
	return nil
}

// send calls an operation, and returns its answer unless it failed.
func (c *client) send(ctx context.Context, by *http.Client, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	if c.password != "" {
		req.Header.Set("Authorization", "Bearer "+c.password)
	}
	resp, err := by.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", c.where, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var said struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(text, &said) == nil && said.Error.Message != "" {
		return nil, errors.New(said.Error.Message)
	}
	return nil, fmt.Errorf("%s answered %s; is LIMEN_URL the address of a Limen gateway?", c.where, resp.Status)
}

// with connects, calls f, and lets go.
func (e *env) with(ctx context.Context, f func(*client) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.close())
}
