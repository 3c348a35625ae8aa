package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// ParseBase reads a base URL as users write it.
func ParseBase(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is no base URL; write it whole, such as https://llm.example.com/v1", strings.TrimSpace(text))
	case u.User != nil:
		return "", errors.New("the base URL has a name or password in it; give the key with --key or in OPENAI_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("a base URL has no '?' and no '#': clients put paths behind it")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// finding is how long the search for the base URL may wait for each answer.
const finding = 20 * time.Second

// guess is a base URL that may have been meant, and the mistake it would be.
type guess struct{ base, mistake string }

// findBase looks whether the API is where it should be. If it is at one of the
// places where it is for the usual mistakes, that is a fault, and the checks go
// on there.
func (v *visit) findBase(ctx context.Context) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*finding)
	defer cancel()
	first, err := v.look(ctx, v.Base)
	if err != nil {
		return verdict{}, unreachable(err, v.Base)
	}
	if first.speaks() {
		return verdict{detail: fmt.Sprintf("%s answers in %s", v.Base, first.millis())}, nil
	}
	if f := plainToTLS(first, v.Base); f != nil {
		return verdict{}, f
	}
	for _, g := range v.guesses(first) {
		a, err := v.look(ctx, g.base)
		if err != nil || !a.speaks() {
			continue
		}
		wrong := &fault{fmt.Sprintf("%s is not the base URL: %s", v.Base, g.mistake), "set the base URL to " + g.base + ", with which the checks go on", everyone}
		v.Base = g.base
		return verdict{faults: []*fault{wrong}}, nil
	}
	return v.withoutList(ctx, first)
}

// look asks an address for its models.
func (v *visit) look(ctx context.Context, base string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, finding)
	defer cancel()
	return v.doURL(ctx, base+"/models", call{method: http.MethodGet})
}

// speaks tells that an API answered: with its models, or with a refusal of its
// own.
func (a *answer) speaks() bool {
	var list struct {
		Data   *[]json.RawMessage `json:"data"`
		Models *[]json.RawMessage `json:"models"`
	}
	if a.status == http.StatusOK {
		return json.Unmarshal(a.body, &list) == nil && (list.Data != nil || list.Models != nil)
	}
	_, _, shaped := a.failure()
	return !a.missing() && (shaped || a.status == http.StatusUnauthorized && !a.page())
}

// operations are paths that clients add to a base URL themselves.
var operations = []string{"/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/models"}

// guesses are the addresses that may have been meant, likelier ones first.
func (v *visit) guesses(first *answer) (all []guess) {
	base := v.Base
	for _, o := range operations {
		if cut, ok := strings.CutSuffix(base, o); ok {
			all = append(all, guess{cut, "it ends in the path of an operation, which clients add themselves"})
			base = cut
			break
		}
	}
	if before, _, twice := strings.Cut(base, "/v1/v1"); twice {
		all = append(all, guess{before + "/v1", "it has /v1 twice"})
	}
	u, err := url.Parse(base)
	if err != nil {
		return all
	}
	origin := u.Scheme + "://" + u.Host
	if !strings.HasSuffix(base, "/v1") {
		all = append(all, guess{base + "/v1", "it must end in /v1"})
	}
	if to, err := url.Parse(first.header.Get("Location")); err == nil && to.String() != "" {
		if to = u.ResolveReference(to); to.Hostname() == u.Hostname() && (to.Scheme == "https" || to.Scheme == u.Scheme) { // the key is not sent elsewhere
			all = append(all, guess{strings.TrimSuffix(strings.TrimRight(to.String(), "/"), "/models"), "it redirects, and clients lose their POST on the way"})
		}
	}
	for _, path := range []string{"/v1", "/api/v1", "/openai/v1"} {
		if base != origin+path {
			all = append(all, guess{origin + path, "the API is at " + path})
		}
	}
	return all
}

// withoutList looks whether a server without a list of models is one anyway,
// and else says what it is.
func (v *visit) withoutList(ctx context.Context, first *answer) (verdict, error) {
	a, err := v.doURL(ctx, v.Base+chatPath, call{method: http.MethodPost, body: "{}"})
	if err == nil && !a.page() && !a.missing() && a.media == "application/json" {
		return verdict{detail: v.Base + " answers"}, nil
	}
	to := first.header.Get("Location")
	switch {
	case to != "":
		return verdict{}, &fault{fmt.Sprintf("HTTP %d: it redirects to %s", first.status, to), "set the base URL to where the API is; clients do not follow", everyone}
	case first.page():
		return verdict{}, &fault{fmt.Sprintf("HTTP %d with a web page: a person was meant to come here", first.status), "set the base URL to that of the API; it mostly ends in /v1", everyone}
	}
	return verdict{}, &fault{fmt.Sprintf("HTTP %d, and no API of OpenAI's kind here or below /v1", first.status), "set the base URL to that of the API; it mostly ends in /v1", everyone}
}

// plainToTLS is the fault of http:// where the server expects https://, which
// some servers answer in plain text.
func plainToTLS(a *answer, base string) *fault {
	text := strings.ToLower(string(a.body[:min(len(a.body), 1024)]))
	if a.status != http.StatusBadRequest || !strings.Contains(text, "http request") || !strings.Contains(text, "https") {
		return nil
	}
	return wantsTLS(base)
}

func wantsTLS(base string) *fault {
	return &fault{"the server speaks TLS, and was asked without", "set the base URL to https://" + strings.TrimPrefix(base, "http://"), everyone}
}

// unreachable says why there was no answer, and what to change.
func unreachable(err error, base string) error {
	if f := (*fault)(nil); errors.As(err, &f) {
		return err
	}
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var slow net.Error
	var unknown x509.UnknownAuthorityError
	host := base
	if u, parseErr := url.Parse(base); parseErr == nil {
		host = u.Host
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record):
		return &fault{"the server speaks no TLS, and was asked with it", "set the base URL to http://" + strings.TrimPrefix(base, "https://"), everyone}
	case strings.Contains(err.Error(), "malformed HTTP response") && strings.HasPrefix(base, "http://"):
		return wantsTLS(base)
	case errors.As(err, &unknown):
		return &fault{"the server's certificate is of no authority that this machine knows", "let the server send a certificate of a public authority, or have this machine trust its own (SSL_CERT_FILE)", everyone}
	case errors.As(err, &certificate):
		return &fault{"the server's certificate does not hold: " + certificate.Err.Error(), "use the name that the certificate is for, or renew it", everyone}
	case errors.As(err, &dns):
		return &fault{"no such host: " + dns.Name, "look for a slip of the pen in the base URL, and at the name's DNS", everyone}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &fault{"nothing listens at " + host, "start the server, or correct host and port of the base URL", everyone}
	case errors.As(err, &slow) && slow.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return &fault{host + " does not answer in time", "look whether the server is up, whether a firewall is between, and whether the model is loaded", everyone}
	}
	return &fault{"no answer: " + err.Error(), "look whether the address is right, and whether the server runs", everyone}
}
