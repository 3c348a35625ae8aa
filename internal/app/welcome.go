package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/provider/echo"
)

// welcome makes, at the very first start, an admin password and a key, and
// shows both once. Every start says where the gateway is and what it has.
func (a *app) welcome(ctx context.Context, cfg *config.Config, at net.Addr) error {
	base := publicBase(cfg, at)
	exists, err := a.data.Admin.Exists(ctx)
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\nLimen %s\n\n  Base URL        %s\n  Console         %s/console/\n", a.opts.Version, base, strings.TrimSuffix(base, "/v1"))
	if !exists {
		if err := a.firstStart(ctx, cfg, base, &out); err != nil {
			return err
		}
	}
	a.describeProviders(cfg, &out)
	fmt.Fprintln(&out)
	if _, err := a.opts.Stdout.Write([]byte(out.String())); err != nil {
		a.log.Warn("the welcome could not be shown", "error", err)
	}
	if exposed(at) && !cfg.TLS.Enabled() && !cfg.BehindProxy {
		a.log.Warn("keys travel in the clear: the listener can be reached from other machines and has no TLS; set tls in the configuration, or --behind-proxy if TLS ends in front of it", "listen", at.String())
	}
	a.log.Info("listening", "base_url", base)
	return nil
}

// firstStart makes the password and the first key.
func (a *app) firstStart(ctx context.Context, cfg *config.Config, base string, out *strings.Builder) error {
	password := keys.NewPassword()
	text := ""
	if len(a.data.Keys.All()) == 0 {
		var err error
		if text, _, err = a.data.Keys.Create(ctx, keys.New{Name: "first", Prefix: cfg.Keys.Prefix}); err != nil {
			return err
		}
		fmt.Fprintf(out, "  API key         %s\n", text)
	}
	if err := a.data.Admin.SetPassword(ctx, password); err != nil {
		return err
	}
	debug.FreeOSMemory() // hashing a password takes more of it than all the rest
	fmt.Fprintf(out, "  Admin password  %s\n", password)
	fmt.Fprintf(out, "\nOpen this to log in and connect a client; it works once, for %d minutes:\n\n  %s/console/#/login?link=%s\n",
		int(keys.LinkLife.Minutes()), strings.TrimSuffix(base, "/v1"), a.data.Operators.NewLink(time.Now()))
	if text == "" {
		fmt.Fprintf(out, "\nThe password is shown this once.\n")
		return nil
	}
	a.catalog.Await() // the example shows a model that there is
	model := "MODEL"
	if all := a.catalog.Table().All(); len(all) > 0 {
		model = all[0].ID
	}
	fmt.Fprintf(out, "\nKey and password are shown this once. Try it:\n\n"+
		"  curl %s/models -H 'Authorization: Bearer %s'\n\n"+
		"  curl %s/chat/completions -H 'Authorization: Bearer %s' \\\n"+
		"    -H 'Content-Type: application/json' \\\n"+
		"    -d '{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n", base, text, base, text, model)
	return nil
}

// describeProviders says where the models come from.
func (a *app) describeProviders(cfg *config.Config, out *strings.Builder) {
	fmt.Fprintln(out)
	for _, s := range a.catalog.States() {
		fmt.Fprintf(out, "  provider        %s (%s)\n", s.Name, s.BaseURL)
	}
	if len(cfg.Providers) > 0 {
		return
	}
	found := "these were found in the environment and on this machine"
	if states := a.catalog.States(); len(states) == 1 && states[0].Name == echo.Name {
		found = "there is only the one that says back what it hears"
	}
	fmt.Fprintf(out, "\nNo provider is configured, so %s.\n"+
		"Add one in the console, under Providers; or set a vendor's key, such as OPENAI_API_KEY, and start again.\n", found)
}

// publicBase is the base URL for clients, as far as it is known here.
func publicBase(cfg *config.Config, at net.Addr) string {
	switch {
	case cfg.PublicURL != "":
		return strings.TrimSuffix(strings.TrimRight(cfg.PublicURL, "/"), "/v1") + "/v1"
	case cfg.TLS.ACME != nil:
		return "https://" + cfg.TLS.ACME.Domains[0] + "/v1"
	case cfg.TLS.Enabled():
		return "https://" + reachable(at) + "/v1"
	}
	return "http://" + reachable(at) + "/v1"
}

// hosts are the names by which browsers may come.
func hosts(cfg *config.Config, at net.Addr) []string {
	names := []string{at.String(), cfg.Listen}
	if public, err := url.Parse(cfg.PublicURL); err == nil {
		names = append(names, public.Host)
	}
	return names
}

// localBase is the base URL on this machine, past whatever stands before the
// listener. A certificate, though, is good under its own name only.
func localBase(cfg *config.Config, at net.Addr) string {
	if cfg.TLS.Enabled() {
		return publicBase(cfg, at)
	}
	return "http://" + reachable(at) + "/v1"
}

// reachable is a listener's address as this machine can dial it.
func reachable(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	return at.String()
}

// exposed reports whether other machines can reach an address.
func exposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}
