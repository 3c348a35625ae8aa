package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/limen-gateway/limen/internal/upstream"
)

// Webhook is an address that is posted a JSON object for each alert.
type Webhook struct {
	URL    string
	Header map[string]string
	Secret string // signs the object; "": it is not signed
}

// signatureHeader has the HMAC-SHA256 of the body, in hex, behind "sha256=".
const signatureHeader = "X-Limen-Signature"

// maxAnswer bounds what is read of an answer, which says nothing but by its
// status.
const maxAnswer = 16 << 10

// post posts a message. A redirect is a failure: the operator named where alerts
// go, and nobody else does.
func (s *Sender) post(ctx context.Context, set *Settings, m *message) error {
	hook := set.Webhook
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", set.UserAgent)
	for name, value := range hook.Header {
		r.Header.Set(name, value)
	}
	if hook.Secret != "" {
		r.Header.Set(signatureHeader, "sha256="+sign(hook.Secret, body))
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: upstream.DialTools(tryTime, false), TLSClientConfig: &tls.Config{RootCAs: s.roots},
		ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer,
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the webhook answered with status %d", resp.StatusCode)
	}
	return nil
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// withoutURL is an error without the address: who knows it may post there.
func withoutURL(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}
