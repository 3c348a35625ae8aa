package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/state"
)

// pollStore is how often the store is asked whether the configuration changed
// elsewhere.
const pollStore = 500 * time.Millisecond

// status is how it stands with the configuration.
type status struct {
	source  config.Source // of what is in force
	refused error         // of what came after it; nil when nothing did
}

// firstLook reads as much of the configuration as can be known before the data
// directory is open: what its file says, but for secrets.
func (a *app) firstLook() (*config.Config, error) {
	cfg := config.Default()
	if a.opts.ConfigPath != "" {
		var err error
		if cfg, err = config.Load(a.opts.ConfigPath, ConfigOptions()); err != nil {
			return nil, err
		}
	}
	a.override(cfg)
	a.setLevel(cfg)
	return cfg, nil
}

// loadConfig reads the configuration for the first time.
func (a *app) loadConfig(ctx context.Context) (*config.Config, config.Source, error) {
	every, stored := config.PollFile, a.opts.ConfigPath == ""
	if stored {
		every = pollStore
	}
	a.watcher = config.NewWatcher(a.readConfig, every, a.data.Documents.Options(stored, nil), a.reapply, func(err error) {
		a.status.Store(&status{a.status.Load().source, err})
		a.log.Error("the configuration was not taken; the last good one stays in force", "error", err)
	})
	cfg, src, err := a.watcher.Load()
	if err != nil && stored {
		return nil, src, a.badDocument(ctx, err)
	}
	if err != nil {
		return nil, src, err
	}
	a.override(cfg)
	a.setLevel(cfg)
	return cfg, src, nil
}

// badDocument says how to go on from a stored document that is not good.
func (a *app) badDocument(ctx context.Context, err error) error {
	v, failed := a.data.Documents.Current(ctx)
	if failed != nil || v.Version == 0 {
		return err
	}
	return fmt.Errorf("version %d of the configuration in the store cannot be used:\n%w\nSee 'limen config history', go back with 'limen config rollback VERSION', or apply a good one with 'limen config apply FILE'", v.Version, err)
}

// readConfig reads the document that counts: that of the file, if there is one.
func (a *app) readConfig() (config.Source, error) {
	if a.opts.ConfigPath == "" {
		return a.data.Documents.Read()
	}
	src, err := config.ReadFile(a.opts.ConfigPath, config.Options{})
	src.Revision = a.data.Documents.Revision() // of the secrets
	return src, err
}

// try finds out whether a configuration could be applied.
func (a *app) try(cfg *config.Config) error {
	if _, err := a.toolsOf(cfg); err != nil {
		return err
	}
	_, err := a.alertsOf(cfg)
	return err
}

// apply makes a configuration count.
func (a *app) apply(ctx context.Context, cfg *config.Config, src config.Source) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	hosted, err := a.toolsOf(cfg)
	if err != nil {
		return err
	}
	told, err := a.alertsOf(cfg)
	if err != nil {
		return err
	}
	made := setup(ctx, cfg)
	publish, err := a.catalog.Prepare(ctx, made)
	if err != nil {
		return err
	}
	if len(cfg.Providers) > 0 {
		made.Providers = nil
	}
	a.found.Store(&made.Providers)
	a.data.Ledger.Apply(&ledger.Retention{Age: cfg.Usage.Retention.Std(), MaxBytes: int64(cfg.Usage.MaxSize)})
	a.data.State.Apply(&state.Settings{Retention: cfg.State.Retention.Std(), MaxBytes: int64(cfg.State.MaxSize)})
	set := settings(cfg)
	set.Tools = hosted
	a.gateway.Apply(set)
	a.router.Apply(route.Retries{Attempts: cfg.Retries.Attempts, Budget: int(cfg.Retries.Budget)})
	a.alerts.Apply(told)
	a.data.Operators.SetPasswords(cfg.Login.Passwords != config.PasswordsAdmin)
	a.signOn.Store(a.signOnOf(cfg))
	a.setLevel(cfg)
	a.config.Store(cfg)
	publish() // last: where the models of a configuration are seen, all of it counts
	a.status.Store(&status{source: src})
	return nil
}

// reapply is apply for a configuration that changed while calls run.
func (a *app) reapply(cfg *config.Config, src config.Source) error {
	old := a.config.Load()
	a.override(cfg)
	if err := a.apply(context.Background(), cfg, src); err != nil {
		return err
	}
	a.log.Info("configuration reloaded", "providers", len(cfg.Providers), "models", len(cfg.Models))
	if cfg.Listen != old.Listen || cfg.TLS.Cert != old.TLS.Cert || cfg.Data != old.Data || cfg.Limits.Headers != old.Limits.Headers {
		a.log.Warn("a change of listen, data, tls or limits.headers counts after a restart")
	}
	return nil
}

// follow watches the configuration, and asks it again on SIGHUP.
func (a *app) follow(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.watcher.Run(ctx)
	}()
	defer func() { <-done }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.opts.Reload:
			a.watcher.Now() // what is wrong with it is in the log
		}
	}
}

// inForce is the document that counts, and why what came after it does not.
func (a *app) inForce() (config.Source, error) {
	s := a.status.Load()
	return s.source, s.refused
}

// foundDocuments are the providers that were found, as a document says them:
// their keys by the variables that hold them.
func (a *app) foundDocuments() []document.Found {
	var list []document.Found
	for _, p := range *a.found.Load() {
		if p.Transport != nil { // it is no place
			continue
		}
		said := struct {
			BaseURL string `json:"base_url,omitempty"`
			APIKey  string `json:"api_key,omitempty"`
		}{BaseURL: p.BaseURL}
		if vendor, known := provider.Lookup(p.Name); known {
			if usual, _ := vendor.Address(os.LookupEnv); usual == p.BaseURL {
				said.BaseURL = ""
			}
		}
		for _, name := range p.Vendor.KeyEnv {
			if os.Getenv(name) != "" {
				said.APIKey = "${" + name + "}"
				break
			}
		}
		value, _ := json.Marshal(said) // texts cannot fail
		list = append(list, document.Found{Name: p.Name, Value: value})
	}
	return list
}

// trial has a provider answer a call.
func (a *app) trial(ctx context.Context, name, model string) (*admin.Trial, error) {
	t, err := a.gateway.Try(ctx, name, model)
	if err != nil {
		return nil, err
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return &admin.Trial{
		OK: t.Err == "", Model: t.Model, Answer: t.Answer, Error: t.Err, Status: t.Status, FirstToken: ms(t.FirstToken), Total: ms(t.Total),
	}, nil
}
