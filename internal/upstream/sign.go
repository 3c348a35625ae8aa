package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/limen-gateway/limen/internal/provider"
)

// keyHeaders are the headers that take a key as it is. Elsewhere it is a
// bearer's.
var keyHeaders = map[provider.Auth]string{
	provider.APIKeyHeader: "Api-Key",
	provider.XAPIKey:      "X-Api-Key",
	provider.GoogAPIKey:   "X-Goog-Api-Key",
	provider.GoogleOAuth:  "X-Goog-Api-Key",
}

func (c *Config) auth() provider.Auth { return c.Vendor.AuthOf(c.Speaks) }

// A signer puts a credential on one request, whose headers are its own. The
// body is given apart.
type signer func(req *http.Request, body [][]byte) error

// signer returns what makes the credential of each request; nil when the
// headers that all share have it.
func (c *Config) signer(base *url.URL) (signer, error) {
	for name := range c.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil, nil
		}
	}
	switch auth := c.auth(); {
	case auth == provider.SigV4 && c.Key == "":
		return newAWSSigner(base)
	case auth == provider.GoogleOAuth && (c.Key == "" || c.serviceAccount()):
		return newGoogleSigner(c.Key, c.Connect), nil
	}
	return nil, nil
}

// serviceAccount reports whether the key is the JSON of a Google service
// account, which gets tokens and is never sent itself.
func (c *Config) serviceAccount() bool {
	return c.auth() == provider.GoogleOAuth && strings.HasPrefix(strings.TrimSpace(c.Key), "{")
}

// awsSigner signs with Signature Version 4.
type awsSigner struct {
	credentials     aws.Credentials
	region, service string
	now             func() time.Time
	signer          *v4.Signer
}

// awsSecrets are the secrets of the AWS credential in the environment.
func awsSecrets() []string {
	var list []string
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		if value := os.Getenv(name); value != "" {
			list = append(list, value)
		}
	}
	return list
}

// newAWSSigner signs with the AWS credential in the environment. Without one,
// requests go unsigned and AWS says so.
func newAWSSigner(base *url.URL) (signer, error) {
	s := &awsSigner{
		credentials: aws.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		},
		region: awsRegion(base.Hostname()), service: "bedrock", now: time.Now, signer: v4.NewSigner(),
	}
	if !s.credentials.HasKeys() {
		return nil, nil
	}
	if s.region == "" {
		return nil, errors.New("no AWS region to sign for: set AWS_REGION")
	}
	return s.sign, nil
}

// awsHost names the region of one of Bedrock's hosts, an endpoint within a
// private network included.
var awsHost = regexp.MustCompile(`(?:^|\.)bedrock-[a-z-]+\.([a-z0-9-]+)\.(?:amazonaws\.com|vpce\.amazonaws\.com|api\.aws)`)

// awsRegion is the region that a host is in, else that of the environment.
func awsRegion(host string) string {
	if named := awsHost.FindStringSubmatch(host); named != nil {
		return named[1]
	}
	if region := os.Getenv("AWS_REGION"); region != "" {
		return region
	}
	return os.Getenv("AWS_DEFAULT_REGION")
}

// sign signs the address, the time and the body. Other headers are left out:
// what may change them on the way must not break the signature.
func (s *awsSigner) sign(req *http.Request, body [][]byte) error {
	sum := sha256.New()
	for _, segment := range body {
		sum.Write(segment)
	}
	bare := &http.Request{Method: req.Method, URL: req.URL, Host: req.Host, Header: http.Header{}}
	err := s.signer.SignHTTP(req.Context(), s.credentials, bare, hex.EncodeToString(sum.Sum(nil)), s.service, s.region, s.now())
	if err != nil {
		return err
	}
	for name, values := range bare.Header {
		req.Header[name] = values
	}
	return nil
}

// cloudScope is what tokens for Vertex AI are asked for.
const cloudScope = "https://www.googleapis.com/auth/cloud-platform"

// tokenTimeout bounds one exchange of a credential for a token.
const tokenTimeout = 15 * time.Second

// googleSigner gets access tokens by a credential of Google's and keeps each
// as long as it lives.
type googleSigner struct {
	json   string // a service account's; empty: the default credential of this machine
	client *http.Client

	mu     sync.Mutex
	source oauth2.TokenSource // once the credential was found
}

func newGoogleSigner(json string, connect time.Duration) signer {
	transport := newTLSTransport(connect)
	transport.DisableKeepAlives = true // an hour lies between two exchanges
	g := &googleSigner{json: json, client: &http.Client{Transport: transport, Timeout: tokenTimeout}}
	return g.sign
}

func (g *googleSigner) sign(req *http.Request, _ [][]byte) error {
	source, err := g.find()
	if err != nil {
		return fmt.Errorf("no Google credential: %w", err)
	}
	token, err := source.Token()
	if err != nil {
		return fmt.Errorf("no Google access token: %w", err)
	}
	req.Header["Authorization"] = []string{"Bearer " + token.AccessToken}
	return nil
}

// find looks for the credential when it is first needed: where there is none,
// the library asks the network whether this is a machine of Google's.
func (g *googleSigner) find() (oauth2.TokenSource, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.source != nil {
		return g.source, nil
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, g.client) // for all tokens, not for one call
	var found *google.Credentials
	var err error
	if g.json == "" {
		found, err = google.FindDefaultCredentials(ctx, cloudScope)
	} else {
		found, err = google.CredentialsFromJSONWithType(ctx, []byte(g.json), google.ServiceAccount, cloudScope)
	}
	if err != nil {
		return nil, err
	}
	g.source = found.TokenSource
	return g.source, nil
}
