package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// validate checks what no field can know alone. What is flawed already is not also found incomplete: one mistake
// makes one problem.
func (d *decoder) validate(c *Config, opt Options) {
	d.validateTLS(&c.TLS)
	d.validateLogin(c)
	d.validateLimits(&c.Limits)
	d.validateTools(&c.Tools)
	d.validateUsage(&c.Usage)
	d.validateAlerts(&c.Alerts)
	d.validatePriceRules(&c.Prices)
	for i := range c.Providers {
		d.validateProvider(&c.Providers[i], opt)
	}
	known := newKnown(c, opt.Providers)
	if at := d.at[&c.Providers]; at != nil && at.Kind != yaml.MappingNode && !absent(at) {
		known = nil // nobody knows which were meant
	}
	for i := range c.Models {
		d.validateModel(&c.Models[i], known)
	}
}

func (d *decoder) validateTLS(t *TLS) {
	switch {
	case d.flawed[t]:
	case t.ACME != nil && (t.Cert != "" || t.Key != ""):
		d.complain(d.at[&t.ACME], "tls has cert and key, or acme, not both")
	case t.ACME != nil && len(t.ACME.Domains) == 0:
		d.complain(d.at[&t.ACME], "acme needs domains")
	case t.Cert != "" && t.Key == "":
		d.complain(d.at[&t.Cert], "cert needs a key beside it")
	case t.Key != "" && t.Cert == "":
		d.complain(d.at[&t.Key], "key needs a cert beside it")
	}
}

// validateLimits refuses a body that may be sent but could never be read.
func (d *decoder) validateLimits(l *Limits) {
	if l.Body <= l.Bodies || d.flawed[l] {
		return
	}
	at := d.at[&l.Bodies]
	if at == nil {
		at = d.at[&l.Body]
	}
	d.complain(at, fmt.Sprintf("a body of limits.body, %s, could never be read: limits.bodies, for all at once, is %s and must not be less", l.Body, l.Bodies))
}

// maxTags bounds the tags of a call: each is summed up by itself.
const maxTags = 8

// credentials are headers that must not be told in a table of usage.
var credentials = []string{"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie", "sec-websocket-protocol"}

func (d *decoder) validateUsage(u *Usage) {
	if u.Retention < hour && !d.flawed[&u.Retention] {
		d.complain(d.at[&u.Retention], "records are kept for an hour at least")
	}
	if d.flawed[&u.Tags] {
		return
	}
	names := map[string]bool{}
	for _, name := range u.Tags.Metadata {
		names[name] = true
	}
	for _, header := range slices.Sorted(maps.Keys(u.Tags.Headers)) {
		if slices.Contains(credentials, strings.ToLower(header)) {
			d.complain(d.at[&u.Tags.Headers], fmt.Sprintf("header %s carries credentials: it cannot be a tag", header))
		}
		names[u.Tags.Headers[header]] = true
	}
	if len(names) > maxTags {
		d.complain(d.at[&u.Tags], fmt.Sprintf("a call has %d tags at most, not %d", maxTags, len(names)))
	}
}

func (d *decoder) validateTools(t *Tools) {
	for i := range t.MCP.Servers {
		if s := &t.MCP.Servers[i]; s.URL == "" && !d.flawed[s] {
			d.complain(d.at[s], "a server of tools needs a url")
		}
	}
	if s := t.WebSearch; s != nil && s.URL == "" && !d.flawed[&t.WebSearch] {
		d.complain(d.at[&t.WebSearch], "web_search needs a url")
	}
	if s := t.FileSearch; s != nil && s.URL == "" && !d.flawed[&t.FileSearch] {
		d.complain(d.at[&t.FileSearch], "file_search needs a url")
	}
	if s := t.Images; s != nil && s.Model == "" && !d.flawed[&t.Images] {
		d.complain(d.at[&t.Images], "image_generation needs a model")
	}
	if t.Code != nil && !d.flawed[&t.Code] {
		d.validateCode(t)
	}
}

func (d *decoder) validateCode(t *Tools) {
	var labels []string
	for _, s := range t.MCP.Servers {
		labels = append(labels, s.Label)
	}
	switch c := t.Code; {
	case c.Server == "" || c.Tool == "":
		d.complain(d.at[&t.Code], "code_interpreter needs mcp, the label of a server, and tool")
	case c.Argument == "":
		d.complain(d.at[&c.Argument], "code_interpreter needs an argument that takes the code")
	case !slices.Contains(labels, c.Server):
		d.misnamed(d.at[&c.Server], "server", c.Server, labels)
	}
}

func (d *decoder) validateProvider(p *Provider, opt Options) {
	vendors := opt.Vendors
	switch {
	case p.Vendor != "" && !slices.Contains(vendors, p.Vendor):
		d.misnamed(d.at[&p.Vendor], "vendor", p.Vendor, vendors)
	case d.flawed[p] || p.BaseURL != "" || p.Vendor != "" || slices.Contains(vendors, p.Name):
	default:
		d.report(d.at[p], d.at[p].Column, fmt.Sprintf("provider %q needs a base_url: it is not the name of a vendor", p.Name),
			func() string { return didYouMean(nearest(p.Name, vendors)) })
	}
	if p.Sockets && !d.flawed[p] && !p.serves("openai-responses", opt.Responses) {
		d.complain(d.at[&p.Sockets], fmt.Sprintf("sockets need Responses: provider %q does not speak openai-responses", p.Name))
	}
	keys := map[Secret]bool{p.APIKey: p.APIKey != ""}
	for i := range p.APIKeys {
		if key := p.APIKeys[i]; keys[key] {
			d.complain(d.at[&p.APIKeys[i]], "the provider has this key already")
		} else {
			keys[key] = true
		}
	}
	seen := map[string]bool{}
	for name := range p.Headers {
		if lower := strings.ToLower(name); seen[lower] {
			d.complain(d.at[&p.Headers], "headers has a name twice: upper and lower case are the same")
			break
		} else {
			seen[lower] = true
		}
	}
	d.validateState(p, opt)
	for i := range p.Prices {
		d.validatePrices(p.Prices[i].Prices)
	}
}

// validateState refuses to leave responses to an upstream that keeps none.
func (d *decoder) validateState(p *Provider, opt Options) {
	unknown := p.Vendor != "" && !slices.Contains(opt.Vendors, p.Vendor)
	if p.State != StateUpstream || opt.Keeps == nil || unknown || d.flawed[p] {
		return
	}
	if why := opt.Keeps(cmp.Or(p.Vendor, p.Name), p.Speaks); why != "" {
		d.complain(d.at[&p.State], fmt.Sprintf("provider %q cannot have state: upstream: %s", p.Name, why))
	}
}

// serves reports whether the provider speaks a dialect: as it says itself, else as its vendor, one of those listed, does.
func (p *Provider) serves(dialect string, vendors []string) bool {
	vendor := p.Vendor
	if vendor == "" {
		vendor = p.Name
	}
	if len(p.Speaks) > 0 {
		return slices.Contains(p.Speaks, dialect)
	}
	return slices.Contains(vendors, vendor)
}

// known is the set of provider names that a target may use; nil: any.
type known map[string]bool

func newKnown(c *Config, further []string) known {
	k := known{}
	for _, name := range further {
		k[name] = true
	}
	for _, p := range c.Providers {
		k[p.Name] = true
	}
	return k
}

func (k known) names() []string {
	var all []string
	for name := range k {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (d *decoder) validateModel(m *Model, known known) {
	if len(m.Targets) == 0 && !d.flawed[m] {
		d.complain(d.at[m], fmt.Sprintf("model %q needs at least one target", m.ID))
	}
	for i := range m.Targets {
		t := &m.Targets[i]
		switch {
		case t.Provider != "" && known != nil && !known[t.Provider]:
			d.misnamed(d.at[&t.Upstream], "provider", t.Provider, known.names())
		case t.Provider == "" && !d.flawed[t]:
			d.complain(d.at[t], "a target needs to: provider/upstream-model")
		}
	}
	d.validatePrices(m.Price)
}

// misnamed reports a name that nothing has. A name that came from a reference is not repeated.
func (d *decoder) misnamed(n *yaml.Node, what, name string, candidates []string) {
	if d.expanded[n] {
		d.complain(n, fmt.Sprintf("no %s has the name that the reference gives", what))
		return
	}
	d.report(n, n.Column, fmt.Sprintf("unknown %s %s", what, quote(name)), func() string {
		return didYouMean(nearest(name, candidates))
	})
}
