// Package upstream calls configured providers: their address, credential and
// connections. It sends bytes and hands back answers; what they mean is for
// the dialects. Every connection that Limen opens to a provider is dialled
// here.
package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/http1"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/socket"
)

// Config describes an upstream.
type Config struct {
	Name    string // of the provider, in the configuration
	BaseURL string
	Key     string // credential; empty sends none
	Speaks  []dialect.Name
	Headers map[string]string // sent with every request
	Vendor  provider.Vendor   // zero when nothing is known of the server

	Connect   time.Duration // limit of dialling, and of the TLS handshake
	UserAgent string
	// Sockets has Responses called over WebSockets, whose messages have at most
	// MaxEvent bytes. Log is told when there are none to be had.
	Sockets  bool
	MaxEvent int64
	Log      *slog.Logger
	// Transport replaces the network, for providers within the process.
	Transport http.RoundTripper
	Gate      *limit.Gate // of its calls; nil: one without a limit
}

// Upstream is a provider that can be called. It is safe for concurrent use.
type Upstream struct {
	Name   string
	Vendor provider.Vendor
	Speaks []dialect.Name

	// Gate bounds the calls that are under way. Who calls has come in.
	Gate *limit.Gate

	// Fitter makes bodies fit for the server; nil when there is nothing to do.
	Fitter *provider.Fitter

	secrets   []string // that no text of the upstream may show
	base      *url.URL
	paths     map[string]*url.URL
	json, sse http.Header // shared by requests, never changed
	sign      signer      // nil when the credential is in the headers
	listing   provider.Listing
	transport http.RoundTripper
}

// paths that are always the same, so that their URLs are not put together on
// the way of a call.
var operations = []string{"/chat/completions", "/responses", "/messages"}

// New prepares an upstream; nothing is dialled yet.
func New(c Config) (*Upstream, error) {
	if err := c.Vendor.Incomplete(c.BaseURL); err != nil {
		return nil, fmt.Errorf("provider %s: %w", c.Name, err)
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("provider %s: base_url is no URL", c.Name)
	}
	u := &Upstream{
		Name: c.Name, Vendor: c.Vendor, Speaks: c.Speaks, Gate: c.Gate, secrets: c.secrets(),
		Fitter: provider.NewFitter(c.Vendor.Quirks), listing: c.Vendor.Listing(c.Speaks),
		base: base, paths: map[string]*url.URL{}, transport: c.Transport,
	}
	if u.Gate == nil {
		u.Gate = limit.NewGate(limit.Unlimited)
	}
	for _, path := range operations {
		if u.paths[path], err = u.join(path); err != nil {
			return nil, err
		}
	}
	u.json, u.sse = c.header("application/json"), c.header("text/event-stream")
	if u.sign, err = c.signer(base); err != nil {
		return nil, fmt.Errorf("provider %s: %w", c.Name, err)
	}
	if u.transport == nil {
		u.transport = newTransport(base, c.Connect)
	}
	if c.Sockets {
		u.transport = u.overSockets(&c)
	}
	return u, nil
}

// at is the URL of a path below the base URL. A path is escaped, and may have
// a query.
func (u *Upstream) at(path string) (*url.URL, error) {
	if known := u.paths[path]; known != nil {
		return known, nil
	}
	return u.join(path)
}

func (u *Upstream) join(path string) (*url.URL, error) {
	path, query, _ := strings.Cut(path, "?")
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, err
	}
	at := *u.base
	at.Path = strings.TrimRight(u.base.Path, "/") + plain
	at.RawPath = strings.TrimRight(u.base.EscapedPath(), "/") + path
	if at.RawQuery != "" && query != "" {
		at.RawQuery += "&"
	}
	at.RawQuery += query
	return &at, nil
}

func (c *Config) header(accept string) http.Header {
	h := http.Header{
		"Accept": {accept}, "Accept-Encoding": {"identity"}, "User-Agent": {c.UserAgent},
		"Content-Type": {"application/json"},
	}
	switch name := keyHeaders[c.auth()]; {
	case c.Key == "" || c.serviceAccount():
	case name != "":
		h[name] = []string{c.Key}
	default:
		h["Authorization"] = []string{"Bearer " + c.Key}
	}
	for name, value := range c.Headers {
		h.Set(name, value)
	}
	return h
}

// newTransport has connections of its own for each provider, so that one bad
// host cannot starve another. Answers pass as they are, redirects too: they
// are answers, and nothing follows them. A host that is reached plainly is
// called in the lean way, all others by net/http.
func newTransport(base *url.URL, connect time.Duration) http.RoundTripper {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if base.Scheme == "http" && proxy == nil && err == nil {
		return http1.New(hostPort(base), dialer(connect).DialContext)
	}
	return newTLSTransport(connect)
}

func dialer(connect time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second, Control: guard}
}

// overSockets calls Responses over WebSockets, and all else as before.
func (u *Upstream) overSockets(c *Config) http.RoundTripper {
	return socket.New(socket.Config{
		URL: u.paths["/responses"], HTTP: u.transport, Handshake: newTLSTransport(c.Connect), MaxEvent: c.MaxEvent,
		Failed: func(err error) {
			c.Log.Warn("a provider's WebSockets do not work; it is called by HTTP, and they are tried again from time to time",
				"provider", u.Name, "error", u.Redact(err.Error()))
		},
	})
}

// DialTools dials servers of tools. public says that a client named the
// server: then no address of a private network is reached.
func DialTools(connect time.Duration, public bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := dialer(connect)
	if public {
		d.Control = guardPublic
	}
	return d.DialContext
}

// errPrivate is a dial to a private network for somebody outside.
var errPrivate = errors.New("the address is in a private network, which clients cannot have called")

// guardPublic is guard for addresses that a client had a hand in.
func guardPublic(network, address string, c syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !ip.IsGlobalUnicast() || ip.IsPrivate() || shared.Contains(ip) || translated.Contains(ip) {
		return errPrivate
	}
	return guard(network, address, c)
}

// Networks that are as private as those that [netip.Addr.IsPrivate] knows: of
// carriers, and the whole of IPv4 within IPv6.
var (
	shared     = netip.MustParsePrefix("100.64.0.0/10")
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

func newTLSTransport(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer(connect).DialContext,
		TLSHandshakeTimeout:    connect,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: 30 * time.Second},
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

func hostPort(base *url.URL) string {
	if base.Port() != "" {
		return base.Host
	}
	return net.JoinHostPort(base.Hostname(), "80")
}

// errBlocked is a dial to an address that hands out credentials of the
// machine: no provider lives there, whatever a name resolves to.
var errBlocked = errors.New("the address is a cloud metadata service; it is never called")

var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"),
	netip.MustParseAddr("169.254.170.23"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"),
}

// guard looks at the address that is dialled, after names were resolved.
func guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if slices.Contains(metadataAddresses, at.Addr().Unmap().WithZone("")) {
		return errBlocked
	}
	return nil
}

// Post sends a body to a path below the base URL. stream only sets Accept: what
// comes back is for the caller to find out. extra adds to the upstream's own
// headers.
func (u *Upstream) Post(ctx context.Context, path string, body *Body, stream bool, extra http.Header) (*http.Response, error) {
	at, err := u.at(path)
	if err != nil {
		return nil, err
	}
	header := u.json
	if stream {
		header = u.sse
	}
	if len(extra) > 0 || u.sign != nil {
		header = header.Clone()
		for name, values := range extra {
			header[name] = values
		}
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: at, Host: u.base.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: body.length,
		GetBody: func() (io.ReadCloser, error) { return body.open(), nil },
	}).WithContext(ctx)
	if u.sign != nil {
		if err := u.sign(req, body.segments); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} // as if not reached: it had nothing of the request
		}
	}
	req.Body = body.open()
	resp, err := u.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return resp, decompress(resp)
}

// decompress undoes a compression that was not asked for; how much may come
// out is bounded by whoever reads.
func decompress(resp *http.Response) error {
	switch resp.Header.Get("Content-Encoding") {
	case "", "identity":
		return nil
	case "gzip":
		inner, err := gzip.NewReader(resp.Body)
		if err != nil {
			return errors.Join(fmt.Errorf("answer is not the gzip that it says: %w", err), resp.Body.Close())
		}
		resp.Body = struct {
			io.Reader
			io.Closer
		}{inner, resp.Body}
		resp.ContentLength = -1
		return nil
	}
	return errors.Join(errors.New("answer has an encoding that was not asked for"), resp.Body.Close())
}

// Redact takes credentials and the address out of a text of the upstream.
func (u *Upstream) Redact(text string) string {
	for _, secret := range u.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return strings.ReplaceAll(text, u.base.Host, u.Name)
}

// minSecret is the shortest header value that is taken for a secret: a shorter
// one would be found in innocent words.
const minSecret = 6

func (c *Config) secrets() []string {
	var list []string
	if c.Key != "" {
		list = append(list, c.Key)
	}
	for _, value := range c.Headers {
		if len(value) >= minSecret {
			list = append(list, value)
		}
	}
	if c.auth() == provider.SigV4 && c.Key == "" {
		list = append(list, awsSecrets()...)
	}
	return list
}

// BaseURL is the address, for operators.
func (u *Upstream) BaseURL() string { return u.base.Redacted() }

// Close ends idle connections; calls under way go on.
func (u *Upstream) Close() {
	if t, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
