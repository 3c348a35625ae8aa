package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/probe"
)

func (e *env) doctorCommand() *cobra.Command {
	var address, key, model, name string
	c := &cobra.Command{
		Use:   "doctor [URL]",
		Short: "Check that everything works: configuration, providers, and real calls",
		Long: `Doctor does what clients do, and says what is wrong, which clients break on it and what
to change: it lists models, chats, streams, calls a tool, asks for structured output, does
the same over Responses and by WebSocket, makes the usual mistakes, and looks at the framing.

With a URL it checks any OpenAI-compatible server. Otherwise it checks the configuration,
the gateway that has the data directory open and its providers, with a key that it makes
and revokes. The key for a URL is that of --key, or OPENAI_API_KEY.

With --client it makes the requests of that client instead:
` + columns(probe.Clients()) + `
What a server merely lacks is told as absent, with the clients that concerns. It exits with
0 when nothing is wrong, with 1 when a check failed, and with 2 for a wrong command line.
The calls cost a few tokens with the model's provider.`,
		Example: `  limen doctor
  limen doctor --model openai/gpt-5-mini --client codex
  limen doctor https://llm.example.com/v1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if address != "" {
					return usageError("the URL is given twice, as an argument and by --url")
				}
				address = args[0]
			}
			var whose *probe.Client
			if name != "" {
				var err error
				if whose, err = probe.ClientNamed(name); err != nil {
					return usageError("%w", err)
				}
			}
			d := &doctor{env: e, model: model, report: newReport(e, whose)}
			if address == "" {
				if err := e.with(c.Context(), func(api *client) error { return d.own(c.Context(), api) }); err != nil {
					return err
				}
				return d.finish()
			}
			base, err := probe.ParseBase(address)
			if err != nil {
				return usageError("%w", err)
			}
			d.remote(c.Context(), base, setting(key, "OPENAI_API_KEY"))
			return d.finish()
		},
	}
	flags := c.Flags()
	flags.StringVar(&address, "url", "", "base URL to check, as the argument")
	flags.StringVar(&key, "key", "", "key to check the URL with (OPENAI_API_KEY)")
	flags.StringVar(&model, "model", "", "model to call (default: the first of the list)")
	flags.StringVar(&name, "client", "", "make the requests of this client")
	return c
}

// columns lists names in lines that fit a terminal.
func columns(names []string) string {
	var lines strings.Builder
	width := 0
	for _, name := range names {
		if width == 0 || width+len(name) > 80 {
			if width > 0 {
				lines.WriteByte('\n')
			}
			lines.WriteString(" ")
			width = 1
		}
		lines.WriteString(" " + name)
		width += len(name) + 1
	}
	return lines.String() + "\n"
}

// doctor makes checks.
type doctor struct {
	env   *env
	model string
	report
}

func (d *doctor) check(name string, err error, detail string) bool {
	if err != nil {
		d.done(probe.Result{Check: name, Status: probe.Fail, Detail: err.Error()})
		return false
	}
	d.done(probe.Result{Check: name, Status: probe.Pass, Detail: detail})
	return true
}

// own checks the gateway of the data directory.
func (d *doctor) own(ctx context.Context, api *client) error {
	_, path, err := d.env.load()
	if path == "" {
		path = "none; defaults"
	}
	if !d.check("configuration", err, path) {
		return nil
	}
	var state struct {
		Providers []catalog.State `json:"providers"`
	}
	err = api.do(ctx, "GET", "/providers", nil, &state)
	if err != nil {
		err = needsGateway(err, api)
	}
	base := api.base + "/v1" // of LIMEN_URL
	if err == nil && api.password == "" {
		base, err = localURL(ctx, api)
	}
	if !d.check("gateway", err, api.where) {
		return nil
	}
	for _, p := range state.Providers {
		var err error
		if p.Error != "" {
			err = fmt.Errorf("%s (%s); the %d models of its last good list stay", p.Error, p.BaseURL, p.Models)
		}
		d.check("provider "+p.Name, err, fmt.Sprintf("%d models listed, speaks %s", p.Models, strings.Join(p.Speaks, ", ")))
	}
	key, done, err := doctorKey(ctx, api)
	if !d.check("key", err, "made for this check, and revoked after it") {
		return nil
	}
	defer done()
	d.remote(ctx, base, key)
	return nil
}

// localURL asks the gateway of the data directory where its clients find it:
// its command line and environment are not ours.
func localURL(ctx context.Context, api *client) (string, error) {
	var status admin.Status
	err := api.do(ctx, "GET", "/status", nil, &status)
	return status.LocalURL, err
}

// doctorName is the name of the key that doctor uses; there is one at most.
const doctorName = "doctor"

// doctorKey makes a key, or gives the revoked one of the last check a new
// secret. done revokes it.
func doctorKey(ctx context.Context, api *client) (text string, done func(), err error) {
	var k admin.Key
	path := "/keys/" + url.PathEscape(doctorName)
	if err := api.do(ctx, "GET", path, nil, &k); err == nil {
		if err := api.do(ctx, "POST", path+"/rotate", nil, &k); err != nil {
			return "", nil, err
		}
		text = k.Key
		err = api.do(ctx, "POST", path+"/restore", nil, &k)
		if err != nil {
			return "", nil, err
		}
	} else {
		in := map[string]string{"name": doctorName, "owner": "limen doctor"}
		if err := api.do(ctx, "POST", "/keys", in, &k); err != nil {
			return "", nil, err
		}
		text = k.Key
	}
	return text, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		api.do(ctx, "POST", path+"/revoke", nil, &k)
	}, nil
}

// remote does what a client does.
func (d *doctor) remote(ctx context.Context, base, key string) {
	target := probe.Target{Base: base, Key: key, Model: d.model, Client: probe.NewClient()}
	tell := probe.Reporter{Begin: d.begin, Done: d.done}
	if d.client != nil {
		d.found = target.RunClient(ctx, d.client, tell)
		return
	}
	d.found = target.Run(ctx, tell)
}
