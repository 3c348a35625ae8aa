package catalog

import (
	"github.com/limen-gateway/limen/internal/config"
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
			facts := s.facts(m)
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
		facts := s.facts(s.listed(t.Model))
		if len(r.Targets) == 0 {
			r.Facts = facts
		}
		r.Targets = append(r.Targets, s.target(t.Model, t.Weight, &facts))
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
	return route.Target{Upstream: s.upstream, Model: model, Weight: weight, Reasons: facts.Reasoning == provider.Yes}
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
func (s *source) facts(m provider.Model) provider.Model {
	vendor := s.provider.Vendor.Name
	if vendor == "" {
		vendor = s.provider.Name
	}
	known, _ := provider.Facts(vendor, m.ID)
	return provider.Merge(m, known)
}
