package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/route"
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
				ID:      s.provider.Name + "/" + m.ID,
				Targets: []route.Target{s.target(m.ID, 1, &facts)},
				Facts:   facts,
			})
		}
	}
	c.table.Store(route.NewTable(models))
}

// alias is a configured model; nil when none of its providers is there.
func (c *Catalog) alias(m *config.Model) *route.Model {
	r := &route.Model{ID: m.ID, VisibleTo: m.VisibleTo}
	for _, t := range m.Targets {
		s := c.named(t.Provider)
		if s == nil {
			continue
		}
		facts := s.facts(s.listed(t.Model), c.facts)
		if len(r.Targets) == 0 {
			r.Facts = facts
		}
		target := s.target(t.Model, t.Weight, &facts)
		target.Strict = m.Strict
		r.Targets = append(r.Targets, target)
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

func (s *source) target(model string, weight int, facts *provider.Model) route.Target {
	t := route.Target{Upstream: s.upstream, Model: model, Weight: float64(weight), Reasons: facts.Reasoning == provider.Yes, Caps: map[dialect.Name]*llm.Caps{}, KeepsState: s.provider.State == config.StateUpstream}
	for _, d := range s.upstream.Speaks {
		caps := provider.Caps(s.upstream.Vendor, model, *facts, d)
		override(caps, s.provider.CapsOf(model))
		caps.Origin = s.origin(caps)
		t.Caps[d] = caps
	}
	return t
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
// read it. A provider of the configuration stands for an account: its key may
// be rotated.
func (s *source) origin(caps *llm.Caps) string {
	parts := []string{s.provider.Name, s.provider.BaseURL}
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
	vendor := s.provider.Vendor.Name
	if vendor == "" {
		vendor = s.provider.Name
	}
	known, _ := facts.Model(vendor, m.ID)
	return provider.Merge(m, known)
}
