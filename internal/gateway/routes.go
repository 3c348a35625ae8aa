package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
)

// access says who may use a route.
type access uint8

const (
	byKey    access = iota // a client's key that allows the operation
	byAdmin                // the admin password
	byAnyone               // either of the two
	public                 // health, for probes; the console's files; and what finds out itself who asks
)

// row is one row of the route table: every path that answers is here.
type row struct {
	operation string
	access    access
	methods   []string
	serve     func(*exchange)
	door      dialect.Failures // in whose words failures are told; nil is OpenAI's
}

func (r row) takes(method string) bool { return slices.Contains(r.methods, method) }
func (r row) allow() string            { return strings.Join(r.methods, ", ") }

var (
	reads   = []string{http.MethodGet, http.MethodHead}
	posts   = []string{http.MethodPost}
	objects = []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	anyway  = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
)

// operations names the operations of the dialects, for keys and records.
var operations = map[dialect.Name]string{
	dialect.OpenAIChat:      keys.OpChat,
	dialect.OpenAIResponses: keys.OpResponses,
	dialect.Anthropic:       keys.OpMessages,
}

// routeTable is the table of all routes; a path that ends in / stands for all
// below it.
func (g *Gateway) routeTable(doors []Door) map[string]row {
	table := map[string]row{
		"/livez":      {"health", public, reads, g.live, nil},
		"/readyz":     {"health", public, reads, g.ready, nil},
		"/health":     {"health", public, reads, g.ready, nil},
		"/healthz":    {"health", public, reads, g.ready, nil},
		"/":           {"about", byAnyone, reads, g.about, nil},
		"/v1":         {"about", byAnyone, reads, g.about, nil},
		"/v1/models":  {keys.OpModels, byKey, reads, g.listModels, nil},
		"/v1/models/": {keys.OpModels, byKey, reads, g.showModel, nil},
		"/metrics":    {"metrics", byAdmin, reads, func(x *exchange) { g.metrics.Handler().ServeHTTP(x.w, x.r) }, nil},
		"/console":    {"console", public, reads, g.showConsole, nil},
		consolePath:   {"console", public, reads, g.showConsole, nil},
		"/api/":       {"admin", public, anyway, g.administer, nil},
	}
	for _, d := range doors {
		methods := posts
		if d.Name() == dialect.OpenAIResponses {
			methods = append(methods, http.MethodGet) // the socket
		}
		table["/v1"+d.Path()] = row{operations[d.Name()], byKey, methods, func(x *exchange) {
			switch {
			case wantsSocket(x.r):
				g.socket(x, d)
			case x.r.Method == http.MethodGet:
				x.w.Header()["Allow"] = posts
				g.refuse(x, llm.Errorf(llm.BadMethod, "/v1/responses takes POST, not GET."))
			default:
				g.call(x, d)
			}
		}, d}
		if _, ok := d.(dialect.Stateful); ok {
			table["/v1"+d.Path()+compactPath] = row{keys.OpResponses, byKey, posts, func(x *exchange) {
				x.compaction = byOperation
				g.call(x, d)
			}, d}
			table[responsesPath] = row{keys.OpResponses, byKey, objects, g.stored(responsesPath, g.responseObjects(), d), d}
			conversations := row{keys.OpResponses, byKey, objects, g.stored(conversationsPath, g.conversationObjects(), d), d}
			table[conversationsPath], table[strings.TrimSuffix(conversationsPath, "/")] = conversations, conversations
		}
		if count, ok := countPaths[d.Name()]; ok {
			table["/v1"+d.Path()+count.path] = row{operations[d.Name()], byKey, posts, func(x *exchange) { g.countTokens(x, d, count.begin) }, d}
		}
	}
	return table
}

// find returns the route of a path: its own row, or that of the nearest
// directory that has one.
func (g *Gateway) find(path string) (row, bool) {
	if r, ok := g.routes[path]; ok {
		return r, true
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if r, ok := g.routes[path[:i+1]]; ok {
			return r, true
		}
	}
	return row{}, false
}

// cleanPath takes out doubled and final slashes: clients join URLs in all
// ways, and a redirect would turn their POST into a GET.
func cleanPath(path string) string {
	if !strings.Contains(path, "//") && (path == "/" || !strings.HasSuffix(path, "/")) {
		return path
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	return "/" + strings.Join(parts, "/")
}

// refuseSocket answers the upgrade to a WebSocket in the way that makes
// clients go on over HTTP at once.
func (g *Gateway) refuseSocket(x *exchange) {
	h := x.w.Header()
	h["Connection"] = []string{"close"}
	h["Upgrade"] = []string{"HTTP/1.1"}
	g.refuse(x, llm.Errorf(llm.NoSocket, "This gateway serves /v1/responses over HTTP, by POST, not over a WebSocket."))
}

// unknownURL explains a path that is no route; the usual mistakes with a base
// URL are named.
func (g *Gateway) unknownURL(x *exchange, path string) *llm.Error {
	return llm.Errorf(llm.NotFound, "Invalid URL (%s %s). %s", x.r.Method, clip(path), g.advice(path, g.baseURL(x)))
}

func (g *Gateway) advice(path, base string) string {
	if g.serves("/v1" + path) {
		return "The base URL must end in /v1: set it to " + base + " in the client."
	}
	if rest, twice := strings.CutPrefix(path, "/v1/v1"); twice && (rest == "" || g.serves("/v1"+rest)) {
		return "The base URL has /v1 twice, perhaps because the client adds it itself: set it to " + base + ", or to " + strings.TrimSuffix(base, "/v1") + " in such a client."
	}
	for operation := range g.routes {
		if rest, ok := strings.CutPrefix(path, operation); ok && len(operation) > len("/v1/") && g.serves("/v1"+rest) {
			return "The base URL ends in an operation's path, which the client adds itself: set it to " + base + "."
		}
	}
	return "The base URL is " + base + "; this gateway serves /models, /chat/completions, /responses, /conversations and /messages below it."
}

func (g *Gateway) serves(path string) bool {
	_, ok := g.find(path)
	return ok && path != "/v1/"
}

// baseURL is what clients are to be set to. It is only ever shown: nothing is
// decided by the Host header.
func (g *Gateway) baseURL(x *exchange) string {
	if x.set.PublicURL != "" {
		return strings.TrimSuffix(strings.TrimRight(x.set.PublicURL, "/"), "/v1") + "/v1"
	}
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.r.Host + "/v1"
}
