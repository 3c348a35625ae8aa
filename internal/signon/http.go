package signon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxAnswer bounds what a provider answers.
const maxAnswer = 1 << 20

// newHTTPClient makes the client that asks providers. It follows no redirects:
// what a provider says of itself is where it says so.
func newHTTPClient(userAgent string) *http.Client {
	return &http.Client{
		Timeout:       patience, // of the question for keys too, which heeds no context
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &guard{userAgent, &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 30 * time.Second, MaxConnsPerHost: 8,
			TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}},
	}
}

// guard sends nothing in the clear to another machine, and reads no answer
// without end.
type guard struct {
	userAgent string
	next      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := Secure(r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", g.userAgent)
	answer, err := g.next.RoundTrip(r)
	if err == nil {
		answer.Body = &bounded{answer.Body, maxAnswer}
	}
	return answer, err
}

// bounded is a body that fails where it is too long.
type bounded struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the provider answered more than %d bytes", maxAnswer)
	}
	return n, err
}

// Secure says what is wrong with an address that secrets are sent to: they go
// over TLS, or stay on this machine.
func Secure(at *url.URL) error {
	if at.Scheme == "https" && at.Hostname() != "" || at.Scheme == "http" && Loopback(at.Host) {
		return nil
	}
	return fmt.Errorf("%s://%s is neither https nor on this machine", at.Scheme, at.Host)
}

func secure(text string) error {
	at, err := url.Parse(text)
	if err != nil {
		return err
	}
	return Secure(at)
}

// Loopback reports whether a host, with a port or without, is this machine by
// its name.
func Loopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
