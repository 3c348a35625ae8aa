package probe

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The sequences of requests that clients make, one file each: what was recorded
// of them, or read in their sources, with texts and lists of tools shortened.
//
//go:embed clients/*.json
var sequences embed.FS

// Client is what is known of a client.
type Client struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Known  string   `json:"known"`          // how its requests are known
	Origin bool     `json:"origin"`         // its base URL is without /v1
	Remote bool     `json:"remote"`         // its vendor's servers make the requests
	Uses   []string `json:"uses"`           // clients whose code it speaks through, with their faults
	Header header   `json:"header"`         // of all steps
	Steps  []step   `json:"steps"`          // in order
	Note   string   `json:"note,omitempty"` // what a user must know
}

// header is a header as it stands in a file.
type header map[string]string

// step is a request of a sequence and what its answer must be.
type step struct {
	Name     string            `json:"name"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Header   header            `json:"header"`
	Body     json.RawMessage   `json:"body"`
	Turns    []json.RawMessage `json:"turns"`    // of a socket
	Answer   string            `json:"answer"`   // a key of readers
	Optional string            `json:"optional"` // what the client does without it; "" is nothing
}

// Clients returns the names that ClientNamed knows, in order.
func Clients() (names []string) {
	files, err := sequences.ReadDir("clients")
	if err != nil {
		return nil // they are within the binary
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	return names
}

// ClientNamed returns what is known of a client.
func ClientNamed(name string) (*Client, error) {
	if !slices.Contains(Clients(), name) {
		return nil, fmt.Errorf("no client %q is known; there are %s", name, strings.Join(Clients(), ", "))
	}
	text, err := sequences.ReadFile("clients/" + name + ".json")
	if err != nil {
		return nil, err
	}
	c := &Client{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("clients/%s.json: %w", name, err)
	}
	return c, nil
}

// minds tells whether a client breaks on a fault.
func (c *Client) minds(f *fault) bool {
	return slices.ContainsFunc(f.breaks, func(name string) bool {
		return name == everyone[0] || name == c.Name || slices.Contains(c.Uses, name)
	})
}

// readers read the answers of steps.
var readers = map[string]func(*answer) (said, []*fault, error){
	"models": func(a *answer) (said, []*fault, error) {
		var list modelList
		return said{}, a.decode(&list), nil
	},
	"chat": func(a *answer) (said, []*fault, error) {
		s, faults := readChat(a)
		return s, faults, nil
	},
	"chat stream": func(a *answer) (said, []*fault, error) {
		return readAs(a, func(st *stream) (said, []*fault) { return readChatStream(st, true) })
	},
	"response": func(a *answer) (said, []*fault, error) {
		s, _, faults := readResponse(a)
		return s, faults, nil
	},
	"response stream": func(a *answer) (said, []*fault, error) {
		return readAs(a, func(st *stream) (said, []*fault) {
			s, _, faults := readEvents(st.events, st.cut != nil)
			return s, faults
		})
	},
	"message stream": func(a *answer) (said, []*fault, error) { return readAs(a, readMessage) },
}

// readAs reads an answer that must be a stream, framing and all.
func readAs(a *answer, read func(*stream) (said, []*fault)) (said, []*fault, error) {
	st, err := a.events()
	if err != nil {
		return said{}, nil, err
	}
	s, faults := read(st)
	return s, append(faults, st.faults...), nil
}

// RunClient makes the requests of a client in its order.
func (t *Target) RunClient(ctx context.Context, c *Client, r Reporter) Found {
	v := newVisit(t, r)
	v.client = c
	if c.Origin && !strings.HasSuffix(v.Base, "/v1") {
		v.Base += "/v1"
	}
	checks := []check{{"base URL", "", v.findBase, true}}
	if c.Remote {
		checks = append(checks, check{"reachable", "", v.reachable, false})
	}
	if v.Model == "" {
		checks = append(checks, check{"list models", "", v.listModels, true})
	}
	for _, s := range c.Steps {
		checks = append(checks, check{s.Name, "", func(ctx context.Context) (verdict, error) { return v.step(ctx, s) }, false})
	}
	v.all(ctx, checks)
	return v.found()
}

// reachable looks whether the vendor's servers can get there.
func (v *visit) reachable(context.Context) (verdict, error) {
	u, err := url.Parse(v.Base)
	if err != nil {
		return verdict{}, err
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()) {
		return verdict{}, errSkip{u.Hostname() + " is an address of this network; the requests of " + v.client.Title + " come from its vendor's servers, which need one on the internet"}
	}
	return verdict{detail: u.Hostname()}, nil
}

// step makes one request of a sequence.
func (v *visit) step(ctx context.Context, s step) (verdict, error) {
	found, err := v.take(ctx, s)
	absent, ok := err.(*errAbsent)
	switch {
	case !ok:
		return found, err
	case s.Optional != "":
		absent.why += "; " + s.Optional
		return found, absent
	}
	// What the client cannot do without is not merely absent.
	return found, &fault{absent.why + ", which " + v.client.Title + " needs", absent.change, []string{v.client.Name}}
}

func (v *visit) take(ctx context.Context, s step) (verdict, error) {
	h := v.headerOf(s)
	if len(s.Turns) > 0 {
		turns := make([]string, len(s.Turns))
		for i, t := range s.Turns {
			turns[i] = string(t)
		}
		found, err := v.talk(ctx, h, turns)
		found.detail = plural(len(turns), "turn") + " by one socket"
		return found, err
	}
	body, err := v.fill(string(s.Body))
	if err != nil {
		return verdict{}, err
	}
	a, err := v.doClient(ctx, call{method: s.Method, path: s.Path, header: h, body: body})
	if err != nil {
		return verdict{}, err
	}
	operation := s.Method + " " + s.Path
	if s.Optional != "" && a.refuses() {
		message, _, _ := a.failure()
		return verdict{}, &errAbsent{why: fmt.Sprintf("HTTP %d: %s", a.status, orNothing(message)), clients: []string{v.client.Name}}
	}
	if err := a.served(operation, []string{v.client.Name}); err != nil {
		return verdict{}, err
	}
	said, faults, err := readers[s.Answer](a)
	if err != nil {
		return verdict{}, err
	}
	v.said = said
	return verdict{v.heard(a), faults}, nil
}

// doClient makes a call below the client's own base URL.
func (v *visit) doClient(ctx context.Context, c call) (*answer, error) {
	base := v.Base
	if v.client.Origin {
		base = strings.TrimSuffix(base, "/v1")
	}
	a, err := v.doURL(ctx, base+c.path, c)
	if err != nil {
		return nil, unreachable(err, base)
	}
	return a, nil
}

// headerOf is the header of a step, with the key where the client puts it.
func (v *visit) headerOf(s step) http.Header {
	h := http.Header{}
	for _, fields := range []header{v.client.Header, s.Header} {
		for name, value := range fields {
			if v.Key == "" && strings.Contains(value, "{{key}}") {
				continue
			}
			h.Set(name, strings.NewReplacer("{{key}}", v.Key, "{{run}}", v.run).Replace(value))
		}
	}
	return h
}

// heard is what the answer said, in a few words.
func (v *visit) heard(a *answer) string {
	switch {
	case len(v.said.calls) > 0:
		return fmt.Sprintf("calls %s in %s", v.said.calls[0].name, a.millis())
	case v.said.text != "":
		return fmt.Sprintf("%q in %s", shorten(v.said.text), a.millis())
	}
	return "HTTP 200 in " + a.millis()
}
