// Package connect writes the configuration files of clients so that they use a
// gateway, and takes that back. What there is to write is a table of clients;
// how it is put into a file that people and programs have edited, and will
// edit, is the rest: of the file's bytes only those change that a setting is
// about, and an undo takes away only what was written.
//
// The package knows files. It knows nothing of keys and models but their names,
// and calls nobody.
package connect

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Target is what a client is to use.
type Target struct {
	Base    string // base URL, ending in /v1
	Key     string
	Model   string
	Context int // limits of the model in tokens; 0 is unknown
	Output  int
	Now     time.Time
}

// Machine is whose files they are.
type Machine struct {
	Home   string
	Getenv func(string) string
}

// Local is the machine and the user that this process runs as.
func Local() (Machine, error) {
	home, err := os.UserHomeDir()
	return Machine{home, os.Getenv}, err
}

// Find returns a client by its name, nil when there is none.
func Find(name string) *Client {
	if i := slices.IndexFunc(Clients, func(c Client) bool { return c.Name == name }); i >= 0 {
		return &Clients[i]
	}
	return nil
}

// Place is where the client's file is, unless a variable says otherwise.
func (c *Client) Place() string {
	return strings.ReplaceAll("~/"+c.Dirs[len(c.Dirs)-1].Below+"/"+c.Files[len(c.Files)-1], "//", "/")
}

// assignment is a setting with its names filled in.
type assignment struct {
	path  path
	value value
	time  bool // a client writes another one soon
}

// assignments fills the settings in. assumed are the limits that were not
// known, as they are written.
func (c *Client) assignments(t Target) (list []assignment, assumed []string) {
	for _, s := range c.Settings {
		v, known := t.fill(s.Value)
		_, with := t.fill(s.With)
		if v.text == "" && s.Value != "" || !with {
			continue
		}
		if !known {
			assumed = append(assumed, v.text)
		}
		p := make(path, len(s.Path))
		for i, step := range s.Path {
			named, _ := t.fill(step)
			p[i] = named.text
		}
		list = append(list, assignment{p, v, s.Value == "{now}"})
	}
	return list, assumed
}

// fill puts what is known in the place of its name. A limit that is not known
// is what stands behind its colon, or nothing.
func (t *Target) fill(text string) (v value, known bool) {
	for name, limit := range map[string]int{"context": t.Context, "output": t.Output} {
		rest, found := strings.CutPrefix(text, "{"+name)
		if !found {
			continue
		}
		if limit > 0 {
			return value{text: strconv.Itoa(limit), number: true}, true
		}
		return value{text: strings.Trim(rest, ":}"), number: true}, false
	}
	return value{text: strings.NewReplacer(
		"{base}", t.Base, "{root}", strings.TrimSuffix(t.Base, "/v1"), "{key}", t.Key, "{model}", t.Model,
		"{now}", t.Now.UTC().Format("2006-01-02T15:04:05.000Z"),
	).Replace(text)}, true
}

// Snippet is a whole file that has what is needed, and nothing else.
func (c *Client) Snippet(t Target) (string, error) {
	list, _ := c.assignments(t)
	return c.write(c.begin(""), list)
}

// begin is the text that settings are put into: an empty file is begun.
func (c *Client) begin(text string) string {
	if strings.TrimSpace(text) != "" {
		return text
	}
	if c.Start != "" {
		return c.Start
	}
	return c.Format.blank
}

var errEdit = errors.New("it cannot be changed safely")

// write puts values into a text, and checks that it then says them and, but
// for them, what it said before.
func (c *Client) write(text string, list []assignment) (string, error) {
	before, err := c.Format.read(text)
	if err != nil {
		return "", err
	}
	out := text
	for _, a := range list {
		d, err := c.Format.read(out)
		if err != nil {
			return "", errors.Join(errEdit, err)
		}
		if out, err = d.set(a.path, a.value); err != nil {
			return "", err
		}
	}
	after, err := c.Format.read(out)
	if err != nil {
		return "", errors.Join(errEdit, err)
	}
	var paths []path
	for _, a := range list {
		if n := after.root().find(a.path); n == nil || n.text != a.said() {
			return "", fmt.Errorf("%w: %s", errEdit, a.path)
		}
		paths = append(paths, a.path)
	}
	if !slices.Equal(others(text, before, paths), others(out, after, paths)) {
		return "", errEdit
	}
	return out, nil
}

// said is the text that a value reads as. An item of a list is its own.
func (a assignment) said() string {
	if _, text, ofList := item(a.path[len(a.path)-1]); ofList {
		return text
	}
	return a.value.text
}

// others are the values of a text that are at none of the paths, in their
// order.
func others(text string, d document, paths []path) (list []string) {
	mine := map[*node]bool{}
	for _, p := range paths {
		if n := d.root().find(p); n != nil {
			mine[n] = true
		}
	}
	d.root().leaves(func(n *node) {
		if !mine[n] && (n.text != "" || n.end > n.start) { // a name with nothing behind it says nothing
			list = append(list, n.name+"="+n.text+text[n.start:max(n.start, n.end)])
		}
	})
	return list
}
