package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/connect"
	"github.com/limen-gateway/limen/internal/probe"
)

func (e *env) connectCommand() *cobra.Command {
	k := &connecting{env: e}
	c := &cobra.Command{
		Use:   "connect [CLIENT]",
		Short: "Set a client up: write its own configuration so that it uses Limen",
		Long: `Connect shows what it would change in the client's file of settings and asks. It changes only
what is about Limen: comments, order and all other settings stay. A backup stays beside the
file (.limen-backup). Then it does what the client does first: lists the models and calls one.

--undo takes away what was written, and leaves what was changed since. Without a client it
lists those that are known, and how it stands with them.

Where the client can read the key from the environment, the file names the variable, and
LIMEN_KEY, if it is set, is the key. It exits with 1 when a check failed.`,
		Example: `  limen connect
  limen connect codex
  limen connect claude --model fast --new-key --yes
  limen connect zed --print
  limen connect codex --undo`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return clientNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			machine, err := connect.Local()
			if err != nil {
				return err
			}
			if k.machine = machine; len(args) == 0 {
				return k.list()
			}
			if k.client = connect.Find(args[0]); k.client == nil {
				return usageError("there is no client %q; known are %s", args[0], strings.Join(clientNames(), ", "))
			}
			k.open(c.InOrStdin())
			switch {
			case k.undo:
				return k.takeBack()
			case k.print:
				return k.show(c.Context())
			}
			return k.connect(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringVar(&k.url, "url", "", "base URL, ending in /v1 (default: the running gateway)")
	flags.StringVar(&k.key, "key", "", "key for the client (default: LIMEN_KEY, or what its file has)")
	flags.StringVar(&k.model, "model", "", "model to use (default: the first of the list that fits)")
	flags.BoolVar(&k.newKey, "new-key", false, "make a key with the client's name")
	flags.BoolVarP(&k.yes, "yes", "y", false, "write without asking")
	flags.BoolVar(&k.undo, "undo", false, "take away what was written")
	flags.BoolVar(&k.print, "print", false, "print the settings, and write nothing")
	c.MarkFlagsMutuallyExclusive("undo", "print", "new-key")
	c.MarkFlagsMutuallyExclusive("key", "new-key")
	return c
}

func clientNames() (names []string) {
	for _, c := range connect.Clients {
		names = append(names, c.Name)
	}
	return names
}

// connecting is one run of the command.
type connecting struct {
	env     *env
	client  *connect.Client
	machine connect.Machine

	url, key, model          string
	newKey, yes, undo, print bool

	in      *bufio.Reader
	out     io.Writer // for people
	asks    bool      // somebody is there to be asked
	colours bool
	made    *admin.Key // for this run
}

// open finds out who is there.
func (k *connecting) open(in io.Reader) {
	k.in, k.out = bufio.NewReader(in), k.env.stdout
	if k.env.json || k.print {
		k.out = k.env.stderr
	}
	k.asks = isTerminal(in) && isTerminal(k.out)
	k.colours = isTerminal(k.out) && os.Getenv("NO_COLOR") == ""
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ask asks for a yes; anything else is none.
func (k *connecting) ask(question string) bool {
	fmt.Fprintf(k.out, "%s [y/N] ", question)
	answer, _ := k.in.ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (k *connecting) list() error {
	type row struct {
		Name  string `json:"client"`
		Title string `json:"title"`
		State string `json:"state"` // connected, found, absent, unreadable
		File  string `json:"file"`
		URL   string `json:"url,omitempty"`
		Model string `json:"model,omitempty"`
		Error string `json:"error,omitempty"`
	}
	var rows []row
	for i := range connect.Clients {
		c := &connect.Clients[i]
		s := c.State(k.machine, exec.LookPath)
		r := row{c.Name, c.Title, "absent", s.File, s.URL, s.Model, ""}
		switch {
		case s.Err != nil:
			r.State, r.Error = "unreadable", s.Err.Error()
		case s.URL != "":
			r.State = "connected"
		case s.Found:
			r.State = "found"
		}
		rows = append(rows, r)
	}
	return k.env.print(rows, func(w io.Writer) {
		fmt.Fprintln(w, "CLIENT\tNAME\tSTATE\tFILE")
		for _, r := range rows {
			state := r.State
			switch r.State {
			case "connected":
				state += " to " + r.URL + ", " + r.Model
			case "unreadable":
				state += ": " + r.Error
			case "absent":
				state = "not found"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.Title, state, r.File)
		}
	})
}

// takeBack undoes.
func (k *connecting) takeBack() error {
	change, err := k.client.Undo(k.machine)
	if err != nil {
		return err
	}
	io.WriteString(k.out, change.Diff(k.colours))
	if ok, err := k.consent("Take this away?"); !ok {
		return err
	}
	if err := change.Apply(); err != nil {
		return err
	}
	fmt.Fprintf(k.out, "%s no longer uses Limen. A key that was made for it goes on working until 'limen keys revoke'.\n", k.client.Title)
	return nil
}

// consent asks whether to write. Where nobody can be asked, only --yes does.
func (k *connecting) consent(question string) (bool, error) {
	switch {
	case k.yes:
		return true, nil
	case !k.asks:
		return false, usageError("nothing was written: there is no terminal to ask on; --yes writes it")
	case !k.ask(question):
		fmt.Fprintln(k.out, "Nothing was written.")
		return false, nil
	}
	return true, nil
}

// show prints what the client's file is to have. It makes no key, and without
// one asks for no model.
func (k *connecting) show(ctx context.Context) (err error) {
	t := connect.Target{Key: k.given(), Model: k.model, Now: time.Now()}
	if t.Key != "" {
		t, err = k.target(ctx)
	} else {
		t.Base, err = k.base(ctx)
		t.Key, t.Model = "KEY", cmp.Or(k.model, "MODEL")
		fmt.Fprintln(k.out, "Put your own in the place of KEY and MODEL.")
	}
	if err != nil {
		return err
	}
	snippet, err := k.client.Snippet(t)
	if err != nil {
		return err
	}
	fmt.Fprintf(k.out, "For %s:\n", k.client.State(k.machine, exec.LookPath).File)
	_, err = io.WriteString(k.env.stdout, snippet)
	return err
}

// connect writes the file and tries what it says.
func (k *connecting) connect(ctx context.Context) (err error) {
	done := false
	defer func() {
		if !done && k.made != nil { // nobody has it
			err = errors.Join(err, k.revoke(ctx))
		}
	}()
	t, err := k.target(ctx)
	if err != nil {
		return err
	}
	change, err := k.client.Connect(k.machine, t)
	if err != nil {
		return err
	}
	if change.Same() {
		fmt.Fprintf(k.out, "%s already says so.\n", change.Path)
	} else {
		io.WriteString(k.out, change.Diff(k.colours))
		if ok, err := k.consent("Write this?"); !ok {
			return err
		}
		if err := change.Apply(); err != nil {
			return err
		}
		fmt.Fprintf(k.out, "Wrote %s.\n", change.Path)
		if backup := change.Backup(); backup != "" {
			fmt.Fprintf(k.out, "What was there is in %s.\n", backup)
		}
	}
	done = true
	k.tell(t, change.Notes)
	return k.prove(ctx, t, change.Path)
}

// tell says what a person has to do or to know.
func (k *connecting) tell(t connect.Target, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(k.out, "Note: "+note)
	}
	if name := k.client.Variable; name != "" && os.Getenv(name) != t.Key {
		shown := "KEY"
		if k.made != nil {
			shown = t.Key
		}
		fmt.Fprintf(k.out, "%s reads the key from the environment. Where it is started, and in your shell's profile:\n\n  export %s=%s\n\n", k.client.Title, name, shown)
		if k.made != nil {
			fmt.Fprintln(k.out, "The key is shown this once.")
		}
	}
	for _, sentence := range k.client.ByHand {
		fmt.Fprintln(k.out, "By hand: "+sentence)
	}
}

// target is what the client is to use.
func (k *connecting) target(ctx context.Context) (t connect.Target, err error) {
	t.Now = time.Now()
	if t.Base, err = k.base(ctx); err != nil {
		return t, err
	}
	if t.Key, err = k.credential(ctx); err != nil {
		return t, err
	}
	models, err := listModels(ctx, t.Base, t.Key)
	if err != nil {
		return t, err
	}
	m, err := k.choose(models)
	t.Model, t.Context, t.Output = m.ID, m.Context, m.Output
	return t, err
}

// base is the URL that was given, or where the gateway's clients find it.
func (k *connecting) base(ctx context.Context) (base string, err error) {
	if k.url != "" {
		u, err := url.Parse(k.url)
		if err != nil || u.Host == "" {
			return "", usageError("--url is the gateway's base URL, such as https://limen.example.com/v1, not %q", k.url)
		}
		return strings.TrimSuffix(strings.TrimRight(k.url, "/"), "/v1") + "/v1", nil
	}
	err = k.env.with(ctx, func(api *client) error {
		if base = api.base + "/v1"; api.password == "" { // else it is that of LIMEN_URL
			base, err = localURL(ctx, api)
		}
		if err == nil && base == "" {
			err = needsGateway(errors.New("the gateway has no address"), api)
		}
		return err
	})
	return base, err
}

// credential is the key that the client is to use.
func (k *connecting) credential(ctx context.Context) (string, error) {
	if given := k.given(); given != "" {
		return given, nil
	}
	if !k.newKey && (!k.asks || !k.ask("No key was given. Make one named "+k.client.Name+"?")) {
		return "", usageError("%s needs a key: --key KEY or LIMEN_KEY gives one, --new-key makes one", k.client.Title)
	}
	err := k.env.with(ctx, func(api *client) error {
		name, err := freeName(ctx, api, k.client.Name)
		if err != nil {
			return err
		}
		k.made = &admin.Key{}
		in := map[string]string{"name": name, "owner": "limen connect"}
		if err := api.do(ctx, "POST", "/keys", in, k.made); err != nil {
			k.made = nil
			return err
		}
		fmt.Fprintf(k.out, "Made the key %s (%s).\n", k.made.Name, k.made.ID)
		return nil
	})
	if err != nil {
		return "", err
	}
	return k.made.Key, nil
}

// given is the key that is there already; empty when one has to be made.
func (k *connecting) given() string {
	if k.key != "" || k.newKey {
		return k.key
	}
	return cmp.Or(os.Getenv("LIMEN_KEY"), k.client.State(k.machine, exec.LookPath).Key)
}

// freeName is a name that no key has, so that each can be named by it.
func freeName(ctx context.Context, api *client, name string) (string, error) {
	var out struct {
		Keys []admin.Key `json:"keys"`
	}
	if err := api.do(ctx, "GET", "/keys", nil, &out); err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, key := range out.Keys {
		taken[key.Name] = true
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free, nil
}

// revoke ends a key that was made for nothing.
func (k *connecting) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return k.env.with(ctx, func(api *client) error {
		fmt.Fprintf(k.out, "The key %s is revoked again.\n", k.made.Name)
		return api.do(ctx, "POST", "/keys/"+url.PathEscape(k.made.ID)+"/revoke", nil, &admin.Key{})
	})
}

// prove does what the client does first, and tells how it went.
func (k *connecting) prove(ctx context.Context, t connect.Target, file string) error {
	fmt.Fprintf(k.out, "\nWhat %s does with it:\n\n", k.client.Title)
	whose, err := probe.ClientNamed(k.client.Name)
	if err != nil {
		return err
	}
	d := &doctor{env: k.env, model: t.Model, report: newReport(k.env, whose)}
	d.remote(ctx, t.Base, t.Key)
	failed := d.count(probe.Fail)
	if k.env.json {
		out := struct {
			Client string         `json:"client"`
			File   string         `json:"file"`
			URL    string         `json:"url"`
			Model  string         `json:"model"`
			Key    *admin.Key     `json:"key,omitempty"` // that was made
			OK     bool           `json:"ok"`
			Checks []probe.Result `json:"checks"`
		}{k.client.Name, file, t.Base, t.Model, k.made, failed == 0, d.results}
		if err := writeJSON(k.env.stdout, out); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &exitError{code: exitFailure, silent: k.env.json, err: fmt.Errorf("%s is set up, but %d of %d checks failed; 'limen connect %s --undo' takes it back",
			k.client.Title, failed, len(d.results), k.client.Name)}
	}
	fmt.Fprintf(k.out, "\n%s uses %s at %s.\n", k.client.Title, t.Model, t.Base)
	return nil
}
