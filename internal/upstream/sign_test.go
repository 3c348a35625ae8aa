package upstream

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/provider"
)

// The credential, the time and the signatures of the test suite that AWS
// publishes for Signature Version 4.
func exampleSigner(service string) *awsSigner {
	return &awsSigner{
		credentials: aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
		region:      "us-east-1", service: service, signer: v4.NewSigner(),
		now: func() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) },
	}
}

func TestAWSTestSuite(t *testing.T) {
	for _, tt := range []struct{ name, method, uri, signature string }{
		{"get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	} {
		at, err := url.Parse("https://example.amazonaws.com" + tt.uri)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: tt.method, URL: at, Host: at.Host, Header: http.Header{"Accept": {"*/*"}}}
		if err := exampleSigner("service").sign(req, nil); err != nil {
			t.Fatal(err)
		}
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + tt.signature
		if got := req.Header.Get("Authorization"); got != want || req.Header.Get("X-Amz-Date") != "20150830T123600Z" {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// A model's ID is escaped twice in what is signed, and the body is signed
// whole. The signature is worked out here by the steps of AWS's description.
func TestAWSPathAndBody(t *testing.T) {
	at, err := url.Parse("https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-v1%3A0/converse")
	if err != nil {
		t.Fatal(err)
	}
	req := &http.Request{Method: "POST", URL: at, Host: at.Host, Header: http.Header{}}
	if err := exampleSigner("bedrock").sign(req, [][]byte{[]byte(`{"messages"`), []byte(`:[]}`)}); err != nil {
		t.Fatal(err)
	}
	hash := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	canonical := "POST\n/model/us.anthropic.claude-v1%253A0/converse\n\n" +
		"host:bedrock-runtime.us-east-1.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n" + hash(`{"messages":[]}`)
	scope := "20150830/us-east-1/bedrock/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), "20150830"), "us-east-1"), "bedrock"), "aws4_request")
	want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n20150830T123600Z\n"+scope+"\n"+hash(canonical)))
	if got := req.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAWSRegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "sa-east-1")
	for host, want := range map[string]string{
		"bedrock-runtime.eu-west-1.amazonaws.com":                  "eu-west-1",
		"bedrock-runtime-fips.us-gov-west-1.amazonaws.com":         "us-gov-west-1",
		"bedrock-runtime.cn-north-1.amazonaws.com.cn":              "cn-north-1",
		"vpce-1.bedrock-runtime.us-east-2.vpce.amazonaws.com":      "us-east-2",
		"bedrock-mantle.us-west-2.api.aws":                         "us-west-2",
		"proxy.example":                                            "sa-east-1",
		"notbedrock-runtime.eu-west-1.amazonaws.com.proxy.example": "sa-east-1",
	} {
		if got := awsRegion(host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

func TestAWSCredential(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	config := Config{Name: "bedrock", BaseURL: "http://proxy.example", Speaks: []dialect.Name{dialect.Bedrock}}
	if u, err := New(config); err != nil || u.sign != nil {
		t.Errorf("without a credential: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-canary")
	t.Setenv("AWS_SESSION_TOKEN", "token-canary")
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")

	headers := make(chan http.Header, 1)
	u := serve(t, Config{Speaks: config.Speaks}, func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header })
	if _, err := post(t, u, "/model/m/converse", false, http.Header{"X-Amzn-Thing": {"1"}}); err != nil {
		t.Fatal(err)
	}
	got := <-headers
	if auth := got.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=id/") || !strings.Contains(auth, "/eu-west-1/bedrock/aws4_request") ||
		got.Get("X-Amz-Security-Token") != "token-canary" || got.Get("X-Amzn-Thing") != "1" {
		t.Errorf("got %v", got)
	}
	if u.json.Get("Authorization") != "" {
		t.Error("one call's signature is among the headers of all")
	}
	if got := u.Redact("secret-canary token-canary"); got != "[redacted] [redacted]" {
		t.Errorf("shows %q", got)
	}
	for name, c := range map[string]Config{
		"a key goes before the environment":  {Key: "k"},
		"so does a header of the operator's": {Headers: map[string]string{"authorization": "Custom c"}},
	} {
		c.Name, c.BaseURL, c.Speaks = "b", "https://h", config.Speaks
		if u, err := New(c); err != nil || u.sign != nil {
			t.Errorf("not so: %s (%v)", name, err)
		}
	}
}

// tokenServer is a token endpoint, and a service account that it knows.
type tokenServer struct {
	*httptest.Server
	account string // JSON
	status  int
	asked   int
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	g := &tokenServer{status: http.StatusOK}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked++
		if err := knows(&key.PublicKey, g.URL, r.FormValue("assertion")); err != nil || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Errorf("grant %q: %v", r.FormValue("grant_type"), err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(g.status)
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, g.asked)
	}))
	t.Cleanup(g.Close)
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "limen@acme.test", "private_key_id": "1", "token_uri": g.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.account = string(account)
	return g
}

// knows checks what a service account says of itself.
func knows(key *rsa.PublicKey, audience, assertion string) error {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return errors.New("no JWT")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct{ Iss, Aud, Scope string }
	if err := json.Unmarshal(payload, &claims); err != nil {
		return err
	}
	if claims.Iss != "limen@acme.test" || claims.Aud != audience || claims.Scope != cloudScope {
		return fmt.Errorf("claims are %+v", claims)
	}
	return nil
}

func TestGoogleTokens(t *testing.T) {
	g := newTokenServer(t)
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, []byte(g.account), 0o600); err != nil {
		t.Fatal(err)
	}
	vertex := provider.Vendor{Auth: provider.GoogleOAuth}
	for name, tt := range map[string]struct{ key, file string }{
		"the default credential": {"", file},
		"an account as the key":  {g.account, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", tt.file)
			before := g.asked
			headers := make(chan http.Header, 1)
			u := serve(t, Config{Key: tt.key, Vendor: vertex}, func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header })
			want := fmt.Sprintf("Bearer token-%d", before+1)
			for range 2 {
				if _, err := post(t, u, "/models/m:generateContent", false, nil); err != nil {
					t.Fatal(err)
				}
				if got := <-headers; got.Get("Authorization") != want || got.Get("X-Goog-Api-Key") != "" {
					t.Errorf("got %v, want %s", got, want)
				}
			}
			if g.asked != before+1 {
				t.Errorf("%d tokens for two calls", g.asked-before)
			}
		})
	}
}

// A call without a token is one that the upstream had nothing of.
func TestGoogleRefuses(t *testing.T) {
	g := newTokenServer(t)
	g.status = http.StatusForbidden
	for name, account := range map[string]string{"refused": g.account, "no account": `{"type":"authorized_user"}`} {
		u := serve(t, Config{Key: account, Vendor: provider.Vendor{Auth: provider.GoogleOAuth}}, func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("called with %v", r.Header)
		})
		_, err := post(t, u, "/models/m:generateContent", false, nil)
		if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" || !strings.Contains(err.Error(), "no Google") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Nothing is asked of the metadata service by way of a credential either.
func TestGoogleTokensAreGuarded(t *testing.T) {
	g := newTokenServer(t)
	account := strings.Replace(g.account, g.URL, "http://169.254.169.254/token", 1)
	u := serve(t, Config{Key: account, Vendor: provider.Vendor{Auth: provider.GoogleOAuth}}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	if _, err := post(t, u, "/models/m:generateContent", false, nil); err == nil || !strings.Contains(err.Error(), errBlocked.Error()) {
		t.Errorf("got %v, want that it is blocked", err)
	}
}
