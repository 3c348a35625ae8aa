package app

import (
	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/tools"
)

// toolsOf are the tools that the gateway runs itself; nil when none are
// configured.
func (a *app) toolsOf(cfg *config.Config) (*tools.Tools, error) {
	c := tools.Config{
		Allow: cfg.Tools.MCP.Allow, Timeout: cfg.Tools.Timeout.Std(), Connect: cfg.Timeouts.Connect.Std(),
		UserAgent: "limen/" + a.opts.Version,
	}
	for _, s := range cfg.Tools.MCP.Servers {
		c.Servers = append(c.Servers, tools.Server{Label: s.Label, URL: s.URL, Headers: plain(s.Headers)})
	}
	if s := cfg.Tools.WebSearch; s != nil {
		c.Search = &tools.Search{URL: s.URL, Post: s.Method == "post", Headers: authorized(s.Headers, s.APIKey)}
	}
	if s := cfg.Tools.FileSearch; s != nil {
		c.Files = &tools.Files{URL: s.URL, Headers: authorized(s.Headers, s.APIKey)}
	}
	if s := cfg.Tools.Code; s != nil {
		c.Code = &tools.Code{Server: s.Server, Tool: s.Tool, Argument: s.Argument}
	}
	if s := cfg.Tools.Images; s != nil {
		c.Images = &tools.Images{Model: s.Model, Timeout: s.Timeout.Std()}
	}
	if len(c.Servers) == 0 && len(c.Allow) == 0 && c.Search == nil && c.Files == nil && c.Images == nil {
		return nil, nil
	}
	return tools.New(c)
}

// authorized are configured header fields with a key as a bearer token.
func authorized(fields map[string]config.Secret, key config.Secret) map[string]string {
	all := plain(fields)
	if key != "" {
		all["Authorization"] = "Bearer " + string(key)
	}
	return all
}

func plain(secrets map[string]config.Secret) map[string]string {
	fields := make(map[string]string, len(secrets)+1)
	for name, value := range secrets {
		fields[name] = string(value)
	}
	return fields
}
