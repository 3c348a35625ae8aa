// Package app builds every part from the configuration, starts it and stops
// it: the only wiring there is.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/alert"
	"github.com/limen-gateway/limen/internal/arrivals"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/console"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/bedrock"
	"github.com/limen-gateway/limen/internal/dialect/gemini"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/gateway"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/signon"
	"github.com/limen-gateway/limen/internal/telemetry"
)

// Options are what the command line decides. Empty members leave the decision
// to the configuration.
type Options struct {
	ConfigPath  string // empty: no file
	Listen      string
	Data        string
	DatabaseURL string
	BehindProxy bool
	LogFormat   string
	LogLevel    string
	Version     string

	Stdout   io.Writer // what people read once: password, key, how to begin
	Stderr   io.Writer // the log
	Terminal bool      // Stderr is one
	Reload   <-chan os.Signal
}

// DefaultData is the data directory when nothing names one.
const DefaultData = "limen-data"

// DataDir decides on the data directory: the flag or variable, the
// configuration, the directory that a service manager gives, the default.
func DataDir(chosen, configured string) string {
	given := filepath.SplitList(os.Getenv("STATE_DIRECTORY")) // a service may have several
	for _, dir := range append([]string{chosen, configured}, given...) {
		if dir != "" {
			return dir
		}
	}
	return DefaultData
}

// app is a running gateway.
type app struct {
	opts    Options
	log     *slog.Logger
	level   slog.LevelVar
	data    *Data
	catalog *catalog.Catalog
	router  *route.Router
	gateway *gateway.Gateway
	alerts  *alert.Sender
	arrived arrivals.Log
	signOn  atomic.Pointer[admin.SignOn] // nil: nobody does
	asks    *signon.Client               // the provider
	config  atomic.Pointer[config.Config]
	watcher *config.Watcher
	status  atomic.Pointer[status]
	found   atomic.Pointer[[]catalog.Provider] // in force without being configured

	draining atomic.Bool
	reload   sync.Mutex // one application of a configuration at a time
}

// Run serves until ctx ends, then drains and stops. It returns when nothing
// of it runs any more.
func Run(ctx context.Context, opts Options) (err error) {
	floor := heapFloor()
	defer runtime.KeepAlive(floor)
	a := &app{opts: opts}
	cfg, err := a.firstLook()
	if err != nil {
		return err
	}
	logs := telemetry.NewAsyncWriter(opts.Stderr)
	defer logs.Close()
	format := a.logFormat(cfg)
	a.log = telemetry.NewLogger(logs, format, &a.level)

	dataDir := DataDir(opts.Data, cfg.Data)
	if a.data, err = OpenData(ctx, dataDir, opts.DatabaseURL, a.log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.data.Close(context.WithoutCancel(ctx))) }()
	source, err := config.Source{}, error(nil)
	if cfg, source, err = a.loadConfig(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another address with --listen)", cfg.Listen, errors.Unwrap(err))
	}
	defer listener.Close()
	socket, removeSocket, err := a.data.listenSocket()
	if err != nil {
		return fmt.Errorf("cannot listen for the command line: %w", err)
	}
	defer removeSocket()

	a.router, a.alerts = route.NewRouter(), alert.New(a.log)
	a.catalog = catalog.New(a.data.Store, a.log, "limen/"+opts.Version)
	defer a.catalog.Close()
	names := func() []string { return hosts(a.config.Load(), listener.Addr()) }
	api := a.adminAPI(localBase(cfg, listener.Addr()), names)
	if a.asks, err = signon.New(a.data.SignOn, "limen/"+opts.Version); err != nil {
		return err
	}
	a.gateway = gateway.New(gateway.Parts{
		Keys: a.data.Keys, Admin: a.data.Admin, Models: a.catalog, Router: a.router, Ledger: a.data.Ledger, Health: a, Log: a.log,
		Calls: telemetry.NewCallLog(logs, format, &a.level),
		Doors: []gateway.Door{openaichat.Dialect{}, openairesponses.Dialect{}, anthropic.Dialect{}},
		Outbound: map[dialect.Name]dialect.Outbound{
			dialect.OpenAIChat: openaichat.Upstream{}, dialect.OpenAIResponses: openairesponses.Upstream{},
			dialect.Anthropic: anthropic.Upstream{}, dialect.Gemini: gemini.Upstream{}, dialect.Bedrock: bedrock.Upstream{},
		},
		Seal: a.data.Seal, State: a.data.State,
		AdminAPI: api.Serve, Console: console.Handler(names), Nodes: a.data.Books.Nodes, Arrivals: &a.arrived,
		Metrics: telemetry.NewMetrics(telemetry.Gauges{
			JournalPending: a.data.Ledger.Pending, LogDropped: logs.Dropped,
			Models:  func() int { return len(a.catalog.Table().All()) },
			Bodies:  func() int64 { return a.gateway.Bodies() },
			Targets: a.targets,
		}),
	})
	if err := a.apply(ctx, cfg, source); err != nil {
		return err
	}
	server, err := a.newServer(cfg, dataDir)
	if err != nil {
		return err
	}
	// Everything that runs beside the calls runs here, and ends before the
	// data directory is closed.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { a.data.Keys.Watch(background) })
	running.Go(func() { a.data.Ledger.Run(background) })
	running.Go(func() { a.data.Books.Run(background, a.alerts.Send) })
	running.Go(func() { a.alerts.Run(background) })
	running.Go(func() { a.catalog.Run(background) })
	running.Go(func() { a.data.State.Run(background, a.log) })
	running.Go(func() { a.data.Ledger.Sweep(background, a.data.Store) })
	running.Go(func() { a.follow(background) })
	commands := &http.Server{Handler: api.Local(keys.ViaSocket), ReadHeaderTimeout: readHeader, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug)}
	running.Go(func() { commands.Serve(socket) })
	defer commands.Close()
	if err := a.welcome(ctx, cfg, listener.Addr()); err != nil {
		return err
	}
	return a.serve(ctx, server, listener)
}

// override puts what the command line says in the place of what a new
// configuration does.
func (a *app) override(cfg *config.Config) {
	if a.opts.Listen != "" {
		cfg.Listen = a.opts.Listen
	}
	if a.opts.LogFormat != "" {
		cfg.Log.Format = a.opts.LogFormat
	}
	if a.opts.LogLevel != "" {
		cfg.Log.Level = a.opts.LogLevel
	}
	cfg.BehindProxy = cfg.BehindProxy || a.opts.BehindProxy
}

func (a *app) setLevel(cfg *config.Config) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err == nil {
		a.level.Set(level)
	}
}

func (a *app) logFormat(cfg *config.Config) string {
	switch {
	case cfg.Log.Format != "auto":
		return cfg.Log.Format
	case a.opts.Terminal:
		return "text"
	}
	return "json"
}

func (a *app) adminAPI(localURL string, names func() []string) *admin.Server {
	return admin.NewServer(&admin.API{
		Keys: a.data.Keys, Books: a.data.Books, Operators: a.data.Operators, Catalog: a.catalog, Ledger: a.data.Ledger, Store: a.data.Store, Log: a.log, Version: a.opts.Version, LocalURL: localURL, Arrivals: &a.arrived,
		OurName:   func(r *http.Request) bool { return console.Trusted(r, names()) },
		KeyPrefix: func() string { return a.config.Load().Keys.Prefix },
		Config:    func() ([]byte, error) { return a.config.Load().RedactedJSON() },
		Reload:    a.watcher.Now,
		SignOn:    a.signOn.Load,
		Documents: a.data.Documents, ConfigFile: a.opts.ConfigPath, InForce: a.inForce, Try: a.try, Found: a.foundDocuments, Trial: a.trial,
		Forecast: func(ctx context.Context, key *keys.Key, model, operation string, header http.Header, body []byte) (*route.Forecast, error) {
			return a.gateway.Forecast(ctx, &gateway.Inquiry{Key: key, Model: model, Operation: operation, Header: header, Body: body})
		},
	})
}

// Problems implements gateway.Health.
func (a *app) Problems() []string {
	var problems []string
	if a.draining.Load() {
		problems = append(problems, "draining")
	}
	if err := a.data.Ledger.Ready(); err != nil {
		problems = append(problems, "the usage journal cannot be written")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := a.data.Store.Ping(ctx); err != nil {
		problems = append(problems, "the store does not answer")
	}
	return problems
}

// errStopping is what calls that outlast the drain are told.
var errStopping = &llm.Error{Kind: llm.Unavailable, Message: "The gateway is being restarted. Please try again.", RetryAfter: time.Second}

// targets are those that were called, for metrics. Models that stand for the
// same target share its health.
func (a *app) targets() iter.Seq[telemetry.Target] {
	return func(yield func(telemetry.Target) bool) {
		now, seen := time.Now(), map[*route.Health]bool{}
		for _, m := range a.catalog.Table().All() {
			for i := range m.Targets {
				t := &m.Targets[i]
				if seen[t.Health] {
					continue
				}
				seen[t.Health] = true
				s := t.Health.Snapshot(now)
				if !s.Called {
					continue
				}
				if !yield(telemetry.Target{Provider: t.Upstream.Name, Account: t.Account, Model: t.Model, Available: s.State == "ok", InFlight: s.InFlight}) {
					return
				}
			}
		}
	}
}
