package tools

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// pattern is a URL that clients may name. Its host may begin with "*.", which
// is any subdomain, its path may end with "*".
type pattern struct {
	scheme, host, port, path string
	subdomains, below        bool
	// private: the pattern names an address, which may be a private one.
	private bool
}

var errPattern = errors.New("is no URL that clients could name")

func parsePattern(text string) (pattern, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return pattern{}, errors.Join(errors.New(text), errPattern)
	}
	p := pattern{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: portOf(u), path: rooted(u.Path)}
	p.host, p.subdomains = strings.CutPrefix(p.host, "*.")
	p.path, p.below = strings.CutSuffix(p.path, "*")
	_, err = netip.ParseAddr(p.host)
	p.private = err == nil || p.host == "localhost"
	return p, nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func rooted(p string) string {
	if p == "" {
		return "/"
	}
	return p
}

// fits reports whether a URL is one of the pattern's.
func (p *pattern) fits(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if p.subdomains {
		host = strings.TrimSuffix(host, "."+p.host)
		if host == strings.ToLower(u.Hostname()) || host == "" {
			return false
		}
	} else if host != p.host {
		return false
	}
	at := rooted(u.Path)
	return u.Scheme == p.scheme && portOf(u) == p.port && (at == p.path || p.below && strings.HasPrefix(at, p.path))
}

// allowed looks for a pattern that a URL of a client fits. A path that a
// server could read in another way than we fits none.
func (t *Tools) allowed(text string) (at *url.URL, private, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Fragment != "" || u.Opaque != "" || u.RawPath != "" || strings.Contains(u.Path, `\`) {
		return nil, false, false
	}
	if clean := rooted(u.Path); path.Clean(clean) != strings.TrimSuffix(clean, "/") && clean != "/" {
		return nil, false, false
	}
	for i := range t.allow {
		if t.allow[i].fits(u) {
			return u, t.allow[i].private, true
		}
	}
	return nil, false, false
}
