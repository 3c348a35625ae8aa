package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
)

func (e *env) routeCommand() *cobra.Command {
	var (
		in      admin.Route
		dry     bool
		body    string
		headers []string
	)
	c := &cobra.Command{
		Use:   "route MODEL --dry-run",
		Short: "Show where a call would go, without making it",
		Long: `Route tells which targets of a model a call would be sent to now, in which order if each
failed, and why the others are left out. For each that would be asked it says the request as
it would be sent: "SENDS" is the dialect, "NOTES" are those of X-Limen-Notes.

Nothing is sent to an upstream, and nothing is kept or counted. So it needs --dry-run, and
tools that the gateway runs are not asked either. What a client got for a call that it made,
'limen why' shows.

Without --body it is a short greeting. Where a conversation stays depends on how it begins,
byte by byte: give the body as the client sends it.`,
		Example: `  limen route fast --dry-run
  limen route fast --dry-run --key alice --body request.json
  limen route fast --dry-run --header X-Limen-Region=eu
  jq -n '{input:"Hello"}' | limen route fast --dry-run --body - --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !dry {
				return usageError("route makes no calls, it tells where one would go: add --dry-run\nSee '%s --help'", c.CommandPath())
			}
			in.Model = args[0]
			if err := fill(&in, headers, body, c.InOrStdin()); err != nil {
				return err
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Routed
				if err := api.do(c.Context(), "POST", "/route", in, &out); err != nil {
					return needsGateway(err, api)
				}
				return e.print(out, func(w io.Writer) { printRouted(w, &out) })
			})
		},
	}
	flags := c.Flags()
	flags.BoolVar(&dry, "dry-run", false, "only tell; there is no other way yet")
	flags.StringVar(&in.Key, "key", "", "`NAME` or ID of the key that would call; without one all models are seen")
	flags.StringVar(&body, "body", "", "`FILE` with a request as a client sends it; - is the standard input")
	flags.StringVar(&in.Operation, "operation", "", "chat, responses or messages; without it responses if the body has input, else chat")
	flags.StringArrayVar(&headers, "header", nil, "`NAME=VALUE` of a header that the client would send; may be given again")
	return c
}

// fill reads what the flags name.
func fill(in *admin.Route, headers []string, file string, stdin io.Reader) error {
	in.Headers = map[string]string{}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usageError("--header is NAME=VALUE, not %q", h)
		}
		in.Headers[name] = value
	}
	if file == "" {
		return nil
	}
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, maxAnswer))
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return fmt.Errorf("the body cannot be read: %w", err)
	}
	if len(text) == 0 {
		return errors.New("the body is empty")
	}
	in.Body, err = json.Marshal(string(text)) // as text every byte arrives
	return err
}

func printRouted(w io.Writer, r *admin.Routed) {
	fmt.Fprintf(w, "Model\t%s\n", r.Model)
	fmt.Fprintf(w, "Strategy\t%s\n", r.Strategy)
	fmt.Fprintf(w, "Conversation\t%s\n", conversation(&r.Affinity))
	if r.Refused != "" {
		fmt.Fprintf(w, "Refused\t%s\n", r.Refused)
	}
	fmt.Fprintln(w, "\nORDER\tTARGET\tACCOUNT\tHEALTH\tSENDS\tNOTES")
	for _, t := range r.Targets {
		order, health := fmt.Sprint(t.Order), t.Health.State
		if t.Order == 0 {
			order = "-"
		}
		if !t.Health.Until.IsZero() {
			health += " until " + t.Health.Until.Local().Format(time.TimeOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", order, t.Target, t.Account, health, orDash(t.Sends), orDash(remarks(&t)))
	}
}

func conversation(a *admin.Affinity) string {
	switch {
	case !a.On:
		return "stays nowhere: affinity is off"
	case a.Thread == "":
		return "-"
	case a.StaysWith == "":
		return a.Thread + ", new here"
	}
	return a.Thread + ", stays with " + a.StaysWith
}

// remarks are all that is to be said of a target, in one line.
func remarks(t *admin.RouteTarget) string {
	var all []string
	if t.LeftOut != "" {
		all = append(all, "left out: "+t.LeftOut)
	}
	if len(t.Notes) > 0 {
		all = append(all, strings.Join(t.Notes, ", "))
	}
	for _, text := range []string{t.Refusal, t.Unsaid} {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}
