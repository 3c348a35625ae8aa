package connect

import (
	"fmt"
	"strings"
)

// kind is what a node is. A value that no setting of ours can be, and that is
// not looked into, is opaque.
type kind uint8

const (
	scalar kind = iota
	object
	list
	opaque
)

// node is a value of a file, of whichever format, and where it stands.
type node struct {
	kind  kind
	name  string // as a member of an object
	text  string // of a scalar: a string without its quotes, anything else as it is written
	items []*node

	start, end int  // of the value in the file; of a table of TOML they mean nothing
	from       int  // where the member, or the item of a list, begins
	remarks    bool // there are comments within it
}

// path leads to a value: names of members, and items of lists. An item is
// "[name=value]", an object by one of its members, or "[=value]", a scalar.
type path []string

func (p path) String() string {
	return strings.ReplaceAll(strings.Join(p, "."), ".[", "[")
}

// id is p as one text, which no other path has.
func (p path) id() string { return strings.Join(p, "\x00") }

// item tells what an item of a list is known by.
func item(step string) (name, value string, ok bool) {
	if !strings.HasPrefix(step, "[") {
		return "", "", false
	}
	name, value, ok = strings.Cut(step[1:len(step)-1], "=")
	return name, value, ok
}

// step finds a member or an item, nil when there is none.
func (n *node) step(step string) *node {
	name, value, ofList := item(step)
	for _, i := range n.items {
		switch {
		case !ofList && n.kind == object && i.name == step:
			return i
		case ofList && n.kind == list && name == "" && i.kind == scalar && i.text == value:
			return i
		case ofList && n.kind == list && name != "":
			if m := i.step(name); m != nil && m.kind == scalar && m.text == value {
				return i
			}
		}
	}
	return nil
}

// find returns the value at a path, nil when there is none.
func (n *node) find(p path) *node {
	for _, step := range p {
		if n = n.step(step); n == nil {
			return nil
		}
	}
	return n
}

// reach goes along a path as far as there is something, and returns what is
// left of it.
func (n *node) reach(p path) (last *node, rest path) {
	for i, step := range p {
		next := n.step(step)
		if next == nil {
			return n, p[i:]
		}
		n = next
	}
	return n, nil
}

// leaves calls f with every value below n that has none below itself.
func (n *node) leaves(f func(*node)) {
	for _, i := range n.items {
		i.leaves(f)
	}
	if len(n.items) == 0 && (n.kind == scalar || n.kind == opaque) {
		f(n)
	}
}

// fits reports why nothing can be put into n by the next step of a path; nil
// when it can.
func (n *node) fits(p path, step string) error {
	_, _, ofList := item(step)
	if ofList && n.kind == list || !ofList && n.kind == object {
		return nil
	}
	want := "a table of settings"
	if ofList {
		want = "a list"
	}
	return fmt.Errorf("%s is not %s", p, want)
}

// value is what a setting is set to.
type value struct {
	text   string
	number bool
	raw    bool // text is as the file is to have it
}

// document is a file that was read. Its edits return the new text and leave
// all bytes as they are that the change is not about.
type document interface {
	root() *node
	set(path, value) (string, error)
	remove(path) (string, error)
}

// format reads files of one kind.
type format struct {
	read  func(text string) (document, error)
	blank string // the least text that set can work on
}

var (
	jsonFormat = format{read: readJSON, blank: "{}\n"}
	tomlFormat = format{read: readTOML}
	yamlFormat = format{read: readYAML}
)

// splice replaces text[from:to].
func splice(text string, from, to int, by string) string { return text[:from] + by + text[to:] }

// lineStart and lineEnd are the bounds of the line of an offset, without its
// break.
func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// indent is the white space that a line begins with.
func indent(text string, at int) string {
	line := text[lineStart(text, at):lineEnd(text, at)]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// cut takes text[from:to] out, and with it the line when nothing else is on it.
func cut(text string, from, to int) string {
	start, end := lineStart(text, from), lineEnd(text, to)
	if strings.TrimSpace(text[start:from]) == "" && strings.TrimSpace(text[to:end]) == "" {
		return splice(text, start, min(end+1, len(text)), "")
	}
	return splice(text, from, to, "")
}

// lineOf counts lines from 1.
func lineOf(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }
