package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/rule"
)

// compile makes the table anew. It is called with mu held.
func (c *Catalog) compile() {
	var models []*route.Model
	for i := range c.setup.Models {
		if m := c.alias(&c.setup.Models[i]); m != nil {
			models = append(models, m)
		}
	}
	for _, s := range c.sources {
		for _, m := range s.offered() {
			facts := s.facts(m, c.facts)
			models = append(models, &route.Model{
				ID:       s.provider.Name + "/" + m.ID,
				Targets:  s.targets(m.ID, route.Target{Weight: 1, Price: c.price(s, m.ID, nil)}, &facts, c.health),
				Facts:    facts,
				Affinity: true,
			})
		}
	}
	c.health.Sweep()
	c.table.Store(route.NewTable(models))
}

// alias is a configured model; nil when none of its providers is there.
func (c *Catalog) alias(m *config.Model) *route.Model {
	r := &route.Model{ID: m.ID, VisibleTo: m.VisibleTo, Strategy: strategyOf(m), Affinity: m.Affinity != "off", Continue: m.Continue}
	if m.FirstToken != nil {
		r.FirstToken = m.FirstToken.Std()
	}
	if h := m.Hedge; h != nil {
		r.Hedge = &route.Hedge{MaxExtra: int(h.Max)}
		if h.After != nil {
			r.Hedge.After = h.After.Std()
		}
	}
	if l := m.Limits; l != nil {
		r.Meter = c.health.Meter(m.ID, limit.Rates{Requests: int64(l.Requests), Tokens: int64(l.Tokens), Daily: int64(l.Daily), Concurrency: int64(l.Concurrency)})
	}
	for i, t := range m.Targets {
		s := c.named(t.Provider)
		if s == nil {
			continue
		}
		facts := s.facts(s.listed(t.Model), c.facts)
		if len(r.Targets) == 0 {
			r.Facts = facts
		}
		like := route.Target{Weight: float64(max(t.Weight, 1)), Strict: m.Strict, When: c.rules[t.When], Price: c.price(s, t.Model, m)}
		if r.Strategy == route.Ordered {
			like.Tier = i
		}
		r.Targets = append(r.Targets, s.targets(t.Model, like, &facts, c.health)...)
	}
	if len(r.Targets) == 0 {
		return nil
	}
	r.Facts.Name = m.ID
	if m.Description != "" {
		r.Facts.Description = m.Description
	}
	if m.Context > 0 {
		r.Facts.Context = m.Context
	}
	if m.MaxOutput > 0 {
		r.Facts.MaxOutput = m.MaxOutput
	}
	return r
}

var strategies = map[string]route.Strategy{
	"weighted": route.Weighted, "ordered": route.Ordered, "latency": route.Latency, "busy": route.Busy, "price": route.Price,
}

// strategyOf goes by weights where one is written, and by order where nothing
// is said.
func strategyOf(m *config.Model) route.Strategy {
	if s, said := strategies[m.Strategy]; said {
		return s
	}
	if slices.ContainsFunc(m.Targets, func(t config.Target) bool { return t.Weight > 0 }) {
		return route.Weighted
	}
	return route.Ordered
}

// compileRules compiles the conditions of targets, each once.
func compileRules(models []config.Model) (map[string]*rule.Rule, error) {
	rules := map[string]*rule.Rule{}
	for _, m := range models {
		for _, t := range m.Targets {
			if t.When == "" || rules[t.When] != nil {
				continue
			}
			r, err := rule.Compile(t.When)
			if err != nil {
				return nil, fmt.Errorf("model %s: when: %w", m.ID, err)
			}
			rules[t.When] = r
		}
	}
	return rules, nil
}

// targets are a model at each account of the provider, like the one that is
// given. They share its weight.
func (s *source) targets(model string, like route.Target, facts *provider.Model, health *route.Registry) []route.Target {
	t := like
	t.Model = model
	t.Weight /= float64(len(s.accounts))
	t.Reasons = facts.Reasoning == provider.Yes
	t.Context = int64(facts.Context)
	t.Vision, t.Tools, t.Schema = facts.Vision, facts.Tools, facts.Structured
	t.Region, t.ZeroRetention = s.provider.Region, s.provider.ZeroRetention
	t.KeepsState = s.provider.State == config.StateUpstream
	say := s.provider.CapsOf(model)
	if say != nil {
		t.Vision, t.Tools, t.Schema = abilityOf(say.Vision, t.Vision), abilityOf(say.Tools, t.Tools), abilityOf(say.Structured, t.Schema)
	}
	list := make([]route.Target, 0, len(s.accounts))
	for _, a := range s.accounts {
		t := t
		t.Upstream, t.Account, t.Health = a.upstream, a.name, health.Health(a.credential, model)
		t.Caps = map[dialect.Name]*llm.Caps{}
		for _, d := range a.upstream.Speaks {
			caps := provider.Caps(a.upstream.Vendor, model, *facts, d)
			override(caps, say)
			caps.Origin = s.origin(caps, a.fingerprint)
			t.Caps[d] = caps
			t.MaxOutput = max(t.MaxOutput, caps.MaxOutput)
		}
		list = append(list, t)
	}
	return list
}

// abilityOf has what the configuration says go before what is known.
func abilityOf(said *bool, known provider.Ability) provider.Ability {
	switch {
	case said == nil:
		return known
	case *said:
		return provider.Yes
	}
	return provider.No
}

// override has what the configuration says of a model go before what is known.
func override(caps *llm.Caps, say *config.Caps) {
	if say == nil {
		return
	}
	if say.Thinking != nil {
		caps.Thinking = say.Thinking
	}
	if say.Efforts != nil {
		caps.Efforts = say.Efforts
	}
	if say.Thinking != nil || slices.ContainsFunc(say.Efforts, func(e string) bool { return e != "none" }) {
		caps.ReasonsKnown = true
		caps.Reasons = say.Thinking == nil || slices.ContainsFunc(say.Thinking, func(way string) bool { return way != "disabled" })
	}
	if say.MaxOutput > 0 {
		caps.MaxOutput = int64(say.MaxOutput)
		caps.DefaultMaxTokens = min(caps.DefaultMaxTokens, caps.MaxOutput)
	}
	if can := say.Sampling; can != nil {
		caps.NoSampling = !*can
	}
	if can := say.ForcedTool; can != nil {
		caps.NoForcedTool = !*can
		if *can {
			caps.Chat.ToolChoice, caps.Chat.ThinkingChoice = nil, nil
		}
	}
	if can := say.Structured; can != nil {
		caps.NoStructured = !*can
		if formats := caps.Chat.Formats; *can && formats != nil && !slices.Contains(formats, "json_schema") {
			caps.Chat.Formats = append(slices.Clip(formats), "json_schema")
		}
	}
	if can := say.MidSystem; can != nil {
		caps.MidSystem, caps.Chat.OneSystem = *can, !*can
	}
	if on := say.PlaceCache; on != nil {
		caps.PlaceCache = *on
	}
}

// origin is a hash of what opaque state is bound to, empty when any account can
// read it. A provider of the configuration with one key stands for an account:
// its key may be rotated. Of several, each is one.
func (s *source) origin(caps *llm.Caps, fingerprint string) string {
	parts := []string{s.provider.Name, s.provider.BaseURL}
	if caps.Bound && fingerprint != "" {
		parts = append(parts, fingerprint)
	}
	switch {
	case caps.Preserved:
		parts = append(parts, caps.Model)
	case !caps.Bound:
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:6])
}

func (c *Catalog) named(name string) *source {
	for _, s := range c.sources {
		if s.provider.Name == name {
			return s
		}
	}
	return nil
}

// offered is the part of the list that the configuration offers, and what it
// offers whether it is listed or not.
func (s *source) offered() []provider.Model {
	patterns := s.provider.Models
	if len(patterns) == 0 {
		return s.list
	}
	var models []provider.Model
	for _, p := range patterns {
		if p.Literal() {
			models = append(models, s.listed(string(p)))
		}
	}
	for _, m := range s.list {
		for _, p := range patterns {
			if !p.Literal() && p.Match(m.ID) {
				models = append(models, m)
				break
			}
		}
	}
	return models
}

// listed is a model as the upstream lists it, or by its ID alone.
func (s *source) listed(id string) provider.Model {
	for _, m := range s.list {
		if m.ID == id {
			return m
		}
	}
	return provider.Model{ID: id}
}

// facts adds what is known of a model to what its upstream says.
func (s *source) facts(m provider.Model, facts *provider.Facts) provider.Model {
	known, _ := facts.Model(s.provider.vendor(), m.ID)
	return provider.Merge(m, known)
}

// vendor is the name of the provider's vendor, for facts.
func (p *Provider) vendor() string { return cmp.Or(p.Vendor.Name, p.Name) }
