package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrNotThere is what Remove returns for an entry that there is none of.
var ErrNotThere = errors.New("there is no such entry")

// Edits change lines, so that comments and the order of a document stay. What comes out is read again: if it does not say
// what was wanted, and else what it said before, the edit is refused.

var errUnsafe = errors.New("the document cannot be changed safely at this place; change its text")

// Set makes value, an object of JSON, the entry of a section: a provider, or a model. A value [redacted] in it means what
// the document has there.
func (d *Document) Set(section, name string, value []byte) (string, error) {
	n, err := nodeOfJSON(value)
	if err != nil {
		return "", err
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return "", errors.New("expected an object")
	}
	n = restored(n, d.entry(section, name))
	return d.edit(section, name, n)
}

// SetMember sets one member of an entry that there is.
func (d *Document) SetMember(section, name, member, value string) (string, error) {
	old := d.entry(section, name)
	if old == nil {
		return "", ErrNotThere
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	if old.Kind == yaml.MappingNode {
		n.Content = slices.Clone(old.Content)
	}
	return d.edit(section, name, with(n, member, textNode(value)))
}

// Remove takes an entry out of a section.
func (d *Document) Remove(section, name string) (string, error) {
	if d.entry(section, name) == nil {
		return "", ErrNotThere
	}
	return d.edit(section, name, nil)
}

// Has reports whether a section has entries.
func (d *Document) Has(section string) bool {
	_, entries := member(d.root, section)
	return entries != nil && len(entries.Content) > 0
}

// HasEntry reports whether a section has an entry.
func (d *Document) HasEntry(section, name string) bool { return d.entry(section, name) != nil }

func (d *Document) entry(section, name string) *yaml.Node {
	_, entries := member(d.root, section)
	_, value := member(entries, name)
	return value
}

// edit makes value the entry; nil takes it out.
func (d *Document) edit(section, name string, value *yaml.Node) (string, error) {
	if d.root != nil && (d.root.Kind != yaml.MappingNode || d.root.Style&yaml.FlowStyle != 0) {
		return "", errUnsafe
	}
	e := &editor{lines: d.lines}
	key, entries := member(d.root, section)
	_, old := member(entries, name)
	switch {
	case key == nil:
		e.append(rendered("", section, with(nil, name, value), ""))
	case entries.Kind == yaml.ScalarNode && absent(entries):
		e.put(key.Line, key.Line, rendered(margin(key)+"  ", name, value, ""))
	case !block(key, entries):
		e.replace(key, entries, with(entries, name, value), e.last(d.root, key))
	case old == nil:
		end := e.lastOf(d.root, key, entries)
		e.put(end, end, rendered(margin(entries.Content[0]), name, value, ""))
	default:
		at, _ := member(entries, name)
		e.change(at, old, value, min(e.last(entries, at), e.lastOf(d.root, key, entries)))
	}
	text := e.text()
	after, err := ReadDocument(Source{Name: d.name, Data: []byte(text)})
	if err != nil {
		return "", errors.Join(errUnsafe, err)
	}
	want := &yaml.Node{Kind: yaml.MappingNode}
	if d.root != nil {
		want.Content = slices.Clone(d.root.Content)
	}
	if want = with(want, section, with(entries, name, value)); !same(want, after.root) {
		return "", errUnsafe
	}
	return text, nil
}

// editor gathers changes of lines.
type editor struct {
	lines   []string
	changes []lineChange
}

// lineChange puts lines in the place of those from one, which stays, to another, which goes: (from, to], counted from 1.
type lineChange struct {
	from, to int
	lines    []string
}

func (e *editor) put(from, to int, lines []string) {
	e.changes = append(e.changes, lineChange{from, to, lines})
}

// append puts lines at the end of the document, behind an empty one.
func (e *editor) append(lines []string) {
	end := len(e.lines)
	for end > 0 && strings.TrimSpace(e.lines[end-1]) == "" {
		end--
	}
	if end > 0 {
		lines = append([]string{""}, lines...)
	}
	e.put(end, len(e.lines), append(lines, ""))
}

// change makes an entry, whose last line is end, another.
func (e *editor) change(key, old, value *yaml.Node, end int) {
	switch {
	case value == nil:
		e.put(key.Line-1, end, nil)
	case same(old, value):
	case value.Kind != yaml.MappingNode || len(value.Content) == 0 || !block(key, old):
		e.replace(key, old, value, end)
	default:
		e.members(old, value, end)
	}
}

func (e *editor) members(old, value *yaml.Node, end int) {
	for i := 0; i < len(old.Content); i += 2 {
		key := old.Content[i]
		_, now := member(value, key.Value)
		e.change(key, old.Content[i+1], now, min(e.last(old, key), end))
	}
	for i := 0; i < len(value.Content); i += 2 {
		if key, _ := member(old, value.Content[i].Value); key == nil {
			e.put(end, end, rendered(margin(old.Content[0]), value.Content[i].Value, value.Content[i+1], ""))
		}
	}
}

// replace writes an entry anew. The comment in its line stays.
func (e *editor) replace(key, old, value *yaml.Node, end int) {
	comment := old.LineComment
	if comment == "" {
		comment = key.LineComment
	}
	e.put(key.Line-1, end, rendered(margin(key), key.Value, value, restore(comment)))
}

// last is the last line of a member of a mapping: before the next member, without comments and empty lines, which may be
// about that.
func (e *editor) last(mapping, key *yaml.Node) int {
	end := len(e.lines)
	for i := 0; i < len(mapping.Content); i += 2 {
		if at := mapping.Content[i].Line; at > key.Line {
			end = at - 1
			break
		}
	}
	for end > key.Line {
		if text := strings.TrimSpace(e.lines[end-1]); text != "" && !strings.HasPrefix(text, "#") {
			break
		}
		end--
	}
	return end
}

// lastOf is the last line of a section.
func (e *editor) lastOf(root, key, entries *yaml.Node) int {
	return max(e.last(root, key), entries.Content[len(entries.Content)-2].Line)
}

func (e *editor) text() string {
	lines := slices.Clone(e.lines)
	slices.SortStableFunc(e.changes, func(a, b lineChange) int { return b.from - a.from })
	for i := 0; i < len(e.changes); {
		// What is put at one place comes in the order in which it was asked for.
		j := i
		var put []string
		to := e.changes[i].from
		for ; j < len(e.changes) && e.changes[j].from == e.changes[i].from; j++ {
			put = append(put, e.changes[j].lines...)
			to = max(to, e.changes[j].to)
		}
		lines = slices.Replace(lines, e.changes[i].from, to, put...)
		i = j
	}
	return strings.Join(lines, "\n")
}

// block reports a mapping whose members have lines of their own.
func block(key, value *yaml.Node) bool {
	return value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0 && value.Content[0].Line > key.Line
}

func margin(key *yaml.Node) string { return strings.Repeat(" ", key.Column-1) }

// rendered writes an entry as lines.
func rendered(margin, name string, value *yaml.Node, comment string) []string {
	if value == nil {
		return nil
	}
	entry := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode(name), plain(value)}}
	text, err := yaml.Dump(entry, yaml.WithIndent(2), yaml.WithUnicode(true), yaml.WithLineWidth(-1))
	if err != nil {
		return nil // what is missing is found when it is read again
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = margin + line
		}
	}
	if comment != "" {
		lines[0] += " " + comment
	}
	return lines
}

// plain is a copy without places and comments. Short lists are on one line.
func plain(n *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.FlowStyle}
	if n.Kind == yaml.SequenceNode {
		out.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		out.Content = append(out.Content, plain(child))
		if child.Kind != yaml.ScalarNode && n.Kind == yaml.SequenceNode {
			out.Style = 0
		}
	}
	if len(out.Content) == 0 && out.Kind != yaml.ScalarNode {
		out.Style = yaml.FlowStyle
	}
	return out
}

// member finds a member of a mapping; nil where there is none.
func member(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// with is a mapping with a member set, or taken out where value is nil.
func with(mapping *yaml.Node, name string, value *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	found := false
	for i := 0; mapping != nil && mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		key, is := mapping.Content[i], mapping.Content[i+1]
		if key.Value == name {
			found, is = true, value
		}
		if is != nil {
			out.Content = append(out.Content, key, is)
		}
	}
	if !found && value != nil {
		out.Content = append(out.Content, textNode(name), value)
	}
	return out
}

// same reports whether two trees say the same, whatever the order of members.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil || empty(a) || empty(b) {
		return (a == nil || empty(a)) && (b == nil || empty(b))
	}
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) || a.Kind == yaml.AliasNode {
		return false
	}
	for i, child := range a.Content {
		other := b.Content[i]
		if a.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			_, other = member(b, a.Content[i-1].Value)
			if other == nil {
				return false
			}
		}
		if !same(child, other) {
			return false
		}
	}
	return true
}

// empty reports what says nothing: nothing at all, or a mapping without members.
func empty(n *yaml.Node) bool { return absent(n) || n.Kind == yaml.MappingNode && len(n.Content) == 0 }

// restored is a tree whose [redacted] are what an old one has at the same place.
func restored(n, old *yaml.Node) *yaml.Node {
	if old == nil {
		return n
	}
	if n.Kind == yaml.ScalarNode && n.Value == redacted && old.Kind == yaml.ScalarNode {
		return old
	}
	out := *n
	out.Content = slices.Clone(n.Content)
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 1:
			_, was := member(old, n.Content[i-1].Value)
			out.Content[i] = restored(child, was)
		case n.Kind == yaml.SequenceNode && old.Kind == yaml.SequenceNode && i < len(old.Content):
			out.Content[i] = restored(child, old.Content[i])
		}
	}
	return &out
}

// maxNesting bounds the depth of a value.
const maxNesting = 32

// nodeOfJSON reads a value of JSON. Members that are null are left out.
func nodeOfJSON(text []byte) (*yaml.Node, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	n, err := readJSON(in, maxNesting)
	if err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the value")
	}
	return n, nil
}

func readJSON(in *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return nil, fmt.Errorf("more than %d levels", maxNesting)
	}
	switch t := token.(type) {
	case nil:
		return nil, nil
	case string:
		return textNode(t), nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case json.Delim:
		return readNested(in, t, depth)
	}
	return nil, errors.New("no value")
}

// readNested reads what is between brackets.
func readNested(in *json.Decoder, open json.Delim, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for in.More() {
		var name string
		if open == '{' {
			token, err := in.Token()
			if err != nil {
				return nil, err
			}
			name, _ = token.(string) // names are nothing else
			if key, _ := member(n, name); key != nil {
				return nil, fmt.Errorf("%q stands there twice", name)
			}
		}
		value, err := readJSON(in, depth-1)
		switch {
		case err != nil:
			return nil, err
		case open == '{' && value != nil:
			n.Content = append(n.Content, textNode(name), value)
		case open == '[' && value != nil:
			n.Content = append(n.Content, value)
		}
	}
	_, err := in.Token()
	return n, err
}
