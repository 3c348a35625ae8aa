package connect

import "strings"

// State is how it stands with a client on a machine.
type State struct {
	Found bool   // the program, or a file of settings
	File  string // of its settings, there or not
	URL   string // of what it uses by settings as these; "" is none
	Model string
	Key   string // where the file holds it
	Err   error  // the file cannot be read
}

// State looks at what there is. look finds programs.
func (c *Client) State(m Machine, look func(string) (string, error)) State {
	f, err := c.open(m)
	if err != nil {
		return State{Found: true, File: f.path, Err: err}
	}
	_, missing := look(c.Command)
	s := State{Found: missing == nil || f.exists, File: f.path}
	if !f.exists {
		return s
	}
	d, err := c.Format.read(c.begin(f.text))
	if err != nil {
		s.Err = err
		return s
	}
	c.uses(d.root(), &s)
	return s
}

// uses tells what settings say that are as the table has them; nothing, when
// one is not.
func (c *Client) uses(root *node, into *State) {
	t := Target{Model: c.model(root)}
	var s State
	for _, setting := range c.Settings {
		p := make(path, len(setting.Path))
		for i, step := range setting.Path {
			v, _ := t.fill(step)
			p[i] = v.text
		}
		n := root.find(p)
		switch v, _ := t.fill(setting.Value); {
		case setting.Value == "{key}" && n != nil:
			s.Key = n.text
		case setting.Value == "{base}" || setting.Value == "{root}":
			if n == nil {
				return
			}
			s.URL = n.text
		case v.number || v.text == "" || setting.Value == "{now}":
		case n == nil || n.text != v.text:
			return
		}
	}
	into.URL, into.Model, into.Key = s.URL, t.Model, s.Key
}

// model finds the model that settings are about: in a value, or in what an
// item is known by.
func (c *Client) model(root *node) string {
	for _, setting := range c.Settings {
		for i, step := range setting.Path {
			if !strings.Contains(step, "{model}") {
				continue
			}
			name, template, ofList := item(step)
			n := root.find(setting.Path[:i])
			if n == nil || !ofList {
				break
			}
			for _, i := range n.items {
				if m := i.step(name); m != nil {
					if model, ok := unfill(template, m.text); ok {
						return model
					}
				}
			}
		}
		if n := root.find(setting.Path); n != nil && strings.Contains(setting.Value, "{model}") {
			if model, ok := unfill(setting.Value, n.text); ok {
				return model
			}
		}
	}
	return ""
}

// unfill takes the model out of a text.
func unfill(template, text string) (model string, ok bool) {
	before, after, _ := strings.Cut(template, "{model}")
	if len(text) <= len(before)+len(after) || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
		return "", false
	}
	return text[len(before) : len(text)-len(after)], true
}
