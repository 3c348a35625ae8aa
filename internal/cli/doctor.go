package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/catalog"
	"github.com/limen-gateway/limen/internal/probe"
)

func (e *env) doctorCommand() *cobra.Command {
	var address, key, model string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything works: configuration, providers, and real calls",
		Long: `Doctor checks the configuration, the running gateway and its providers, and then does what
a client does: lists the models, asks for one, chats, streams, and makes the usual mistakes.

With --url and --key it checks any OpenAI-compatible gateway or server. Otherwise it checks
the gateway that has the data directory open, with a key that it makes and revokes.
A chat costs a few tokens with the model's provider. It exits with 3 when a check failed.`,
		Example: `  limen doctor
  limen doctor --model openai/gpt-5-mini
  limen doctor --url https://llm.example.com/v1 --key "$KEY" --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d := &doctor{env: e}
			if address == "" {
				if err := e.with(c.Context(), func(api *client) error { return d.own(c.Context(), api, model) }); err != nil {
					return err
				}
			} else {
				d.remote(c.Context(), address, key, model)
			}
			return d.finish()
		},
	}
	flags := c.Flags()
	flags.StringVar(&address, "url", "", "base URL to check, ending in /v1 (default: the running gateway)")
	flags.StringVar(&key, "key", "", "key to check --url with")
	flags.StringVar(&model, "model", "", "model to call (default: the first of the list)")
	return c
}

// doctor collects results and shows each as it comes.
type doctor struct {
	env     *env
	results []probe.Result
}

func (d *doctor) add(r probe.Result) {
	d.results = append(d.results, r)
	if !d.env.json {
		mark := map[string]string{probe.Pass: "ok  ", probe.Fail: "FAIL", probe.Skip: "skip"}[r.Status]
		fmt.Fprintln(d.env.stdout, strings.TrimRight(fmt.Sprintf("%s  %-26s %s", mark, r.Check, r.Detail), " "))
	}
}

func (d *doctor) check(name string, err error, detail string) bool {
	if err != nil {
		d.add(probe.Result{Check: name, Status: probe.Fail, Detail: err.Error()})
		return false
	}
	d.add(probe.Result{Check: name, Status: probe.Pass, Detail: detail})
	return true
}

// own checks the gateway of the data directory.
func (d *doctor) own(ctx context.Context, api *client, model string) error {
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
	d.remote(ctx, base, key, model)
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
func (d *doctor) remote(ctx context.Context, base, key, model string) {
	p := probe.Target{Base: strings.TrimRight(base, "/"), Key: key, Model: model, Client: &http.Client{Timeout: 2 * time.Minute}}
	p.Run(ctx, d.add)
}

// finish prints the result and decides on the exit code.
func (d *doctor) finish() error {
	failed := 0
	for _, r := range d.results {
		if r.Status == probe.Fail {
			failed++
		}
	}
	if d.env.json {
		out := struct {
			OK     bool           `json:"ok"`
			Checks []probe.Result `json:"checks"`
		}{failed == 0, d.results}
		if err := writeJSON(d.env.stdout, out); err != nil {
			return err
		}
	} else if failed == 0 {
		io.WriteString(d.env.stdout, "\nAll is well.\n")
	}
	if failed > 0 {
		return &exitError{code: exitUnhealthy, silent: d.env.json, err: fmt.Errorf("%d of %d checks failed", failed, len(d.results))}
	}
	return nil
}
