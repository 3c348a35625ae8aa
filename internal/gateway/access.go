package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
)

// credentialHeaders are where clients send keys, and what else is theirs alone.
var credentialHeaders = []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization", "Sec-Websocket-Protocol"}

// credential finds the key that a client sends, in the one place where that
// is done. Several headers carry keys; the first of them counts.
func credential(h http.Header) string {
	if auth := h["Authorization"]; len(auth) > 0 {
		scheme, value, _ := strings.Cut(strings.TrimSpace(auth[0]), " ")
		if strings.EqualFold(scheme, "bearer") {
			if value = strings.TrimSpace(value); value != "" {
				return value
			}
		}
	}
	for _, name := range [...]string{"Api-Key", "X-Api-Key", "X-Goog-Api-Key"} {
		if value := h[name]; len(value) > 0 {
			if key := strings.TrimSpace(value[0]); key != "" {
				return key
			}
		}
	}
	for _, name := range offered(h) { // browsers cannot set headers of a socket
		if key, ok := strings.CutPrefix(name, keyInSocket); ok {
			return key
		}
	}
	return ""
}

// authorize decides whether a request may use a route. Keys of clients open
// no admin route, and the admin password calls no model.
func (g *Gateway) authorize(x *exchange, r row) (err error) {
	text := credential(x.r.Header)
	switch r.access {
	case public:
		return nil
	case byAdmin:
		return g.admin.Check(x.r.Context(), text, keys.AddressOf(x.r.RemoteAddr))
	}
	x.key, err = g.keys.Authenticate(text, x.started)
	if r.access == byAnyone {
		return g.authorizeAnyone(x, text, err)
	}
	if err == nil {
		err = mayUse(x.key, r.operation)
	}
	return err
}

// administer has the admin API serve an exchange.
func (g *Gateway) administer(x *exchange) {
	if err := g.adminAPI(x.w, x.r, credential(x.r.Header)); err != nil {
		g.refuse(x, err)
	}
}

func mayUse(k *keys.Key, operation string) error {
	if k.Allows(operation) {
		return nil
	}
	e := llm.Errorf(llm.Forbidden, "This key may not use %s; it is limited to %s.", operation, strings.Join(k.Operations, ", "))
	e.Code = "operation_not_allowed"
	return e
}

// authorizeAnyone also takes the admin password. Its refusal says what this
// address is, for a person who opened it in a browser.
func (g *Gateway) authorizeAnyone(x *exchange, text string, err error) error {
	var e *llm.Error
	if err == nil || !errors.As(err, &e) || e.Kind != llm.Unauthenticated {
		return err
	}
	if _, isKey := keys.ParseToken(text); !isKey && g.admin.Recognizes(x.r.Context(), text, keys.AddressOf(x.r.RemoteAddr)) {
		return nil
	}
	said := *e
	said.Message = "This is Limen, an OpenAI-compatible gateway. Set a client's base URL to " + g.baseURL(x) + " and give it a key. " + e.Message
	return &said
}

// exposed are the headers that scripts of other sites may read.
var exposed = []string{"x-request-id, retry-after, retry-after-ms, x-should-retry, openai-processing-ms, x-limen-cost, x-limen-notes, x-limen-tokenizer, x-limen-estimate, " +
	"x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, " +
	"x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, " +
	"anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, anthropic-ratelimit-requests-reset, " +
	"anthropic-ratelimit-tokens-limit, anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset"}

const allowedHeaders = "authorization, content-type, accept, openai-organization, openai-project, openai-beta, api-key, x-api-key, idempotency-key"

// allowOrigin sets what browsers need to let a script of another site use the
// answer, refusals too, where the configuration allows its origin.
func (g *Gateway) allowOrigin(x *exchange) bool {
	origin := x.r.Header.Get("Origin")
	if len(x.set.Origins) == 0 || origin == "" || strings.HasPrefix(x.r.URL.Path, "/api/") {
		return false
	}
	h := x.w.Header()
	switch {
	case slices.Contains(x.set.Origins, "*"):
		h["Access-Control-Allow-Origin"] = []string{"*"}
	case slices.Contains(x.set.Origins, origin):
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Vary"] = []string{"Origin"}
	default:
		return false
	}
	h["Access-Control-Expose-Headers"] = exposed
	if x.r.Method != http.MethodOptions {
		return true
	}
	asked := x.r.Header.Get("Access-Control-Request-Headers")
	if asked == "" {
		asked = allowedHeaders
	}
	h["Access-Control-Allow-Methods"] = []string{"GET, POST, DELETE, OPTIONS"}
	h["Access-Control-Allow-Headers"] = []string{asked}
	h["Access-Control-Max-Age"] = []string{"86400"}
	if x.r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h["Access-Control-Allow-Private-Network"] = []string{"true"}
	}
	return true
}
