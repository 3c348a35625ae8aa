// Package gateway is the request path: from a client's request to the
// upstream's answer, in one place that reads top to bottom (serve). What a
// wire format means is in dialect, who may call in keys, which models there
// are in route, what is kept of a call in ledger.
package gateway

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/arrivals"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/state"
	"github.com/limen-gateway/limen/internal/telemetry"
	"github.com/limen-gateway/limen/internal/tools"
)

// Settings are what a reload of the configuration may change. They are
// read-only: a reload makes new ones.
type Settings struct {
	MaxBody   int64 // bytes of a request's body, decompressed
	MaxEvent  int   // bytes of one event of an upstream's stream
	MaxAnswer int64 // bytes of an upstream's answer that is not streamed

	Calls  int64         // at once
	Bodies int64         // bytes of the bodies of requests at once
	Queue  time.Duration // for a call to wait for room

	Body      time.Duration // for a client to send its body
	FirstByte time.Duration // for an upstream to begin its answer
	Idle      time.Duration // between two events of an upstream
	Total     time.Duration // for a whole call
	Write     time.Duration // for a client to take bytes
	Heartbeat time.Duration // silence after which a stream gets a comment; 0 is never

	Origins   []string // of other sites that browsers may call from; "*" is all
	PublicURL string   // where clients reach the gateway; empty: as they say
	Sockets   bool     // WebSockets are served
	Remember  bool     // opaque reasoning is kept for clients that drop it

	CacheRead int // percent of a token that one read from a cache counts for limits

	Tags  *Tags        // nil when there are none
	Tools *tools.Tools // that the gateway runs for models whose upstream has none

	Unknown     UnknownPrice
	Ceiling     *price.List // what is charged where Unknown is ChargeCeiling
	CostInUsage bool        // answers state in their usage what they cost
}

// UnknownPrice is what becomes of calls whose price is not known.
type UnknownPrice uint8

// What may become of them.
const (
	RefuseBudgeted UnknownPrice = iota // those of keys with a hard budget to keep are refused
	RefuseUnknown                      // all are refused
	AllowUnknown                       // they are made, and charged nothing
	ChargeCeiling                      // they are made, and charged by the ceiling's list
)

// Models says which models there are now.
type Models interface {
	Table() *route.Table
	// Await waits, for a bounded time, until the model lists that a restart
	// has to ask for first have come.
	Await()
}

// Health says whether new calls can be served.
type Health interface {
	// Problems names what is not well; none means ready.
	Problems() []string
}

// Gateway serves the operations of /v1 and what belongs to them.
type Gateway struct {
	keys     *keys.Keyring
	admin    *keys.Admin
	models   Models
	router   *route.Router
	ledger   *ledger.Ledger
	metrics  *telemetry.Metrics
	health   Health
	log      *slog.Logger
	calls    *telemetry.CallLog
	settings atomic.Pointer[Settings]
	room     room
	doors    []Door
	routes   map[string]row
	adminAPI func(w http.ResponseWriter, r *http.Request, credential string) error
	console  http.Handler
	catalog  modelsCache
	outbound map[dialect.Name]dialect.Outbound
	seal     seal.Key
	memory   *memory
	caches   *cacheWatch
	state    *state.Keeper
	sockets  sockets
	runs     runs
	nodes    func() int
	arrivals *arrivals.Log
}

// Door is a dialect in which clients come in.
type Door interface {
	dialect.Dialect
	dialect.Inbound
}

// Parts are what a gateway is made of.
type Parts struct {
	Keys     *keys.Keyring
	Admin    *keys.Admin
	Models   Models
	Router   *route.Router
	Ledger   *ledger.Ledger
	Metrics  *telemetry.Metrics
	Health   Health
	Log      *slog.Logger
	Calls    *telemetry.CallLog
	Doors    []Door
	Outbound map[dialect.Name]dialect.Outbound // what upstreams can be spoken to in
	Seal     seal.Key                          // of what clients carry from turn to turn
	State    *state.Keeper                     // what outlives a call
	// AdminAPI serves everything under /api/. It finds out itself who asks, and
	// returns an error where it has not answered.
	AdminAPI func(w http.ResponseWriter, r *http.Request, credential string) error
	Console  http.Handler // everything under /console/
	Nodes    func() int   // how many gateways share the limits of keys, teams and models
	Arrivals *arrivals.Log
}

// New makes a gateway; Apply must be called before it serves.
func New(p Parts) *Gateway {
	g := &Gateway{
		keys: p.Keys, admin: p.Admin, models: p.Models, router: p.Router, ledger: p.Ledger, metrics: p.Metrics,
		health: p.Health, log: p.Log, calls: p.Calls, adminAPI: p.AdminAPI, console: p.Console,
		room: newRoom(), doors: p.Doors, outbound: p.Outbound, seal: p.Seal, memory: newMemory(), caches: newCacheWatch(), state: p.State, nodes: p.Nodes, arrivals: p.Arrivals,
	}
	g.routes = g.routeTable(p.Doors)
	return g
}

// Apply makes settings count for calls that begin from now on.
func (g *Gateway) Apply(s *Settings) {
	g.settings.Store(s)
	g.room.calls.SetCapacity(s.Calls)
	g.room.bodies.SetCapacity(s.Bodies)
}

// maxFields bounds the header fields of a request; their bytes are bounded by
// the server.
const maxFields = 200

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	x := &exchange{w: w, r: r, requestID: newRequestID(now), started: now, set: g.settings.Load()}
	x.enter(openai.Door{})
	defer g.recovered(x)
	if n := fields(r.Header); n > maxFields {
		g.refuse(x, llm.Errorf(llm.HeadersTooLarge, "The request has %d header fields; at most %d are taken.", n, maxFields))
		return
	}
	path := cleanPath(r.URL.Path)
	route, ok := g.find(path)
	x.operation = route.operation
	x.enter(route.door)
	if g.allowOrigin(x) && r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !ok {
		g.refuse(x, g.unknownURL(x, path))
		return
	}
	if !route.takes(r.Method) {
		w.Header()["Allow"] = []string{route.allow()}
		g.refuse(x, llm.Errorf(llm.BadMethod, "%s takes %s, not %s.", path, route.allow(), r.Method))
		return
	}
	if len(r.TransferEncoding) > 0 {
		w.Header()["Connection"] = []string{"close"} // what follows a chunked body is not trusted to be a request
	}
	if path == "/" && wantsPage(r) {
		http.Redirect(w, r, consolePath, http.StatusFound)
		return
	}
	if err := g.authorize(x, route); err != nil {
		g.refuse(x, err)
		return
	}
	route.serve(x)
}

// exchange is one HTTP exchange, before it is known to be a call.
type exchange struct {
	w          http.ResponseWriter
	r          *http.Request
	requestID  string
	started    time.Time
	set        *Settings
	operation  string
	failures   dialect.Failures // of the door that the client came in by
	key        *keys.Key        // of the client, where the route takes one
	compaction compaction       // by which operation the client came
	session    *state.Session   // of the socket that it came by; nil elsewhere
	watched    bool             // it is remembered as under way
}

// enter makes the words of a door those of the exchange; nil changes nothing.
func (x *exchange) enter(door dialect.Failures) {
	if door != nil {
		x.failures = door
		x.w.Header()[door.RequestIDHeader()] = []string{x.requestID}
	}
}

// refuse answers with a failure where no call has begun, and logs it.
func (g *Gateway) refuse(x *exchange, err error) {
	e := llm.AsError(err)
	body := writeError(x.w, e, x.failures, x.requestID)
	if x.r.Method != http.MethodHead {
		x.w.Write(body)
	}
	g.logRefusal(x, e)
}

// recovered turns a panic into a 500; the process and other calls go on.
func (g *Gateway) recovered(x *exchange) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	g.logPanic(x, p)
	defer func() { _ = recover() }() // the header may be out already
	x.w.Write(writeError(x.w, llm.AsError(nil), x.failures, x.requestID))
}
