package app

import (
	"context"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/gateway"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/provider/echo"
)

// ConfigOptions are the world around a configuration.
func ConfigOptions() config.Options {
	opt := config.Options{Getenv: os.LookupEnv, Keeps: keepsResponses}
	for _, v := range provider.Vendors() {
		opt.Vendors = append(opt.Vendors, v.Name)
		if slices.Contains(v.Speaks, dialect.OpenAIResponses) {
			opt.Responses = append(opt.Responses, v.Name)
		}
	}
	return opt
}

// keepsResponses says why a provider keeps no responses itself; "" is that it
// can.
func keepsResponses(name string, speaks []string) string {
	vendor, _ := provider.Lookup(name)
	responses := slices.Contains(vendor.Speaks, dialect.OpenAIResponses)
	if len(speaks) > 0 {
		responses = slices.Contains(speaks, string(dialect.OpenAIResponses))
	}
	switch {
	case !responses:
		return "it does not speak openai-responses"
	case vendor.Quirks.Stateless:
		return "it stores no responses"
	}
	return ""
}

// setup makes of a configuration what the catalog needs. Without configured
// providers it takes those that the environment and this machine offer, and
// without any, the one that says back what it hears.
func setup(ctx context.Context, cfg *config.Config) catalog.Setup {
	s := catalog.Setup{
		Models: cfg.Models, Refresh: cfg.Refresh.Std(), Connect: cfg.Timeouts.Connect.Std(),
		MaxEvent: int64(max(cfg.Limits.Event, cfg.Limits.Answer)), // the last event has the whole answer
		Markup:   cfg.Prices.Markup,
	}
	for _, p := range cfg.Providers {
		s.Providers = append(s.Providers, configured(p))
	}
	if len(s.Providers) == 0 {
		s.Providers = detected(ctx, cfg.Listen)
	}
	if len(s.Providers) == 0 {
		s.Providers = []catalog.Provider{{
			Provider:  config.Provider{Name: echo.Name, BaseURL: echo.BaseURL, Speaks: []string{"openai-chat", "openai-responses"}},
			Transport: echo.Transport{}, Free: true,
		}}
		s.Models = append(s.Models[:len(s.Models):len(s.Models)], config.Model{
			ID: echo.Name, Targets: []config.Target{{Upstream: config.Upstream{Provider: echo.Name, Model: echo.Name}, Weight: 1}},
			Description: "Says back what it was asked, to prove a connection.", Context: 1 << 20, MaxOutput: 1 << 20,
		})
	}
	return s
}

// configured completes a provider by what is known of its vendor.
func configured(p config.Provider) catalog.Provider {
	name := p.Vendor
	if name == "" {
		name = p.Name
	}
	vendor, known := provider.Lookup(name)
	if !known {
		vendor = provider.Vendor{}
	}
	if p.BaseURL == "" {
		p.BaseURL, _ = vendor.Address(os.LookupEnv)
	}
	vendor, p.BaseURL = vendor.At(p.BaseURL, os.LookupEnv), vendor.Root(p.BaseURL)
	if p.APIKey == "" && len(p.APIKeys) == 0 {
		p.APIKey = keyOf(vendor)
	}
	vendor.Quirks.Drop = append(slices.Clip(vendor.Quirks.Drop), p.Quirks.Drop...)
	for _, from := range slices.Sorted(maps.Keys(p.Quirks.Rename)) { // in one order, so that a reload finds nothing changed
		vendor.Quirks.Rename = append(slices.Clip(vendor.Quirks.Rename), provider.Pair{From: from, To: p.Quirks.Rename[from]})
	}
	if asked := p.Quirks.StreamUsage; asked != nil {
		vendor.Quirks.StreamUsage = provider.UsageAlways
		if *asked {
			vendor.Quirks.StreamUsage = provider.UsageAsked
		}
	}
	return catalog.Provider{Provider: p, Vendor: vendor}
}

// keyOf is the vendor's key in the environment; "" when there is none.
func keyOf(v provider.Vendor) config.Secret {
	for _, name := range v.KeyEnv {
		if value := os.Getenv(name); value != "" {
			return config.Secret(value)
		}
	}
	return ""
}

// detected are the vendors whose keys are in the environment, and the servers
// on this machine.
func detected(ctx context.Context, own string) []catalog.Provider {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	var list []catalog.Provider
	seen := map[string]bool{}
	for _, f := range append(provider.Detect(os.LookupEnv), provider.Probe(ctx, client, own)...) {
		if seen[f.Vendor.Name] || seen[f.BaseURL] || provider.SamePort(f.BaseURL, own) {
			continue
		}
		seen[f.Vendor.Name], seen[f.BaseURL] = true, true
		p := config.Provider{Name: f.Vendor.Name, BaseURL: f.BaseURL}
		if f.KeyEnv != "" {
			p.APIKey = config.Secret(os.Getenv(f.KeyEnv))
		}
		list = append(list, catalog.Provider{Provider: p, Vendor: f.Vendor})
	}
	return list
}

// settings are the parts of a configuration that the request path follows.
func settings(cfg *config.Config) *gateway.Settings {
	return &gateway.Settings{
		MaxBody: int64(cfg.Limits.Body), MaxEvent: int(cfg.Limits.Event), MaxAnswer: int64(cfg.Limits.Answer),
		Calls: int64(cfg.Limits.Concurrency), Bodies: int64(cfg.Limits.Bodies), Queue: cfg.Limits.Queue.Std(),
		Body: cfg.Timeouts.Body.Std(), FirstByte: cfg.Timeouts.FirstByte.Std(), Idle: cfg.Timeouts.Idle.Std(),
		Total: cfg.Timeouts.Total.Std(), Write: cfg.Timeouts.Write.Std(), Heartbeat: cfg.Timeouts.Heartbeat.Std(),
		Origins: cfg.CORS.Origins, PublicURL: cfg.PublicURL, Remember: cfg.ReasoningMemory == "on", Sockets: cfg.Sockets, Tags: tags(cfg.Usage.Tags),
		Unknown: unknownPrices[cfg.Prices.Unknown], Ceiling: ceiling(cfg.Prices.Ceiling), CostInUsage: cfg.Prices.InUsage,
		CacheRead: int(cfg.Limits.CacheRead),
	}
}

var unknownPrices = map[string]gateway.UnknownPrice{
	config.UnknownBudgeted: gateway.RefuseBudgeted, config.UnknownRefuse: gateway.RefuseUnknown,
	config.UnknownAllow: gateway.AllowUnknown, config.UnknownCeiling: gateway.ChargeCeiling,
}

// ceiling is a list by which every call can be charged: sound as text, and
// nothing for what has no price of tokens and none of its own.
func ceiling(p *config.Price) *price.List {
	if p == nil {
		return nil
	}
	list := p.Over(price.List{})
	list = list.Merged(price.List{
		Rates:  price.Rates{AudioIn: list.Input, AudioOut: list.Output, ImageOut: list.Output},
		Search: price.FeeOf(0), Flex: 100, Priority: 100, Batch: 100, Other: 100,
	})
	return &list
}

// tags are nil where none is configured.
func tags(cfg config.Tags) *gateway.Tags {
	if len(cfg.Metadata)+len(cfg.Headers) == 0 {
		return nil
	}
	t := &gateway.Tags{Metadata: cfg.Metadata}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		t.Headers = append(t.Headers, gateway.HeaderTag{Header: http.CanonicalHeaderKey(name), Tag: cfg.Headers[name]})
	}
	return t
}
