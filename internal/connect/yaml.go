package connect

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// yamlFile is YAML in the form that people write: what is in braces or behind
// an anchor is read, and not changed.
type yamlFile struct {
	text  string
	lines []int // where each begins
	top   *node
	nodes map[*node]*yaml.Node
}

// readYAML finds every value of a file of one document, whose top is a mapping
// or nothing.
func readYAML(text string) (document, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	f := &yamlFile{text: text, lines: []int{0}, top: &node{kind: object}, nodes: map[*node]*yaml.Node{}}
	for i := range text {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var first, second yaml.Node
	if err := loader.Load(&first); err != nil || len(first.Content) == 0 {
		if strings.TrimSpace(withoutRemarks(text)) == "" {
			return f, nil
		}
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, errors.New("it has more than one document")
	}
	top := first.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return f, nil
	}
	if top.Kind != yaml.MappingNode || top.Style&yaml.FlowStyle != 0 {
		return nil, errors.New("its top is not a list of settings, one a line")
	}
	f.top, err = f.node(top)
	return f, err
}

// withoutRemarks is a text without the lines that are comments or begin a
// document.
func withoutRemarks(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); !strings.HasPrefix(t, "#") && t != "---" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func (f *yamlFile) root() *node { return f.top }

// at is the offset of a line and a column, which counts characters. What is not
// there stands behind the end.
func (f *yamlFile) at(line, column int) int {
	if line < 1 || line > len(f.lines) {
		return len(f.text)
	}
	at := f.lines[line-1]
	for ; column > 1 && at < len(f.text); column-- {
		_, n := utf8.DecodeRuneInString(f.text[at:])
		at += n
	}
	return at
}

func (f *yamlFile) node(y *yaml.Node) (*node, error) {
	n := &node{start: f.at(y.Line, y.Column), text: y.Value}
	n.from = n.start
	f.nodes[n] = y
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = object
		return n, f.members(n, y)
	case yaml.SequenceNode:
		n.kind = list
		for _, c := range y.Content {
			i, err := f.node(c)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, i)
			n.remarks = n.remarks || i.remarks || remarked(c)
		}
		return n, nil
	case yaml.ScalarNode:
		n.end = f.endOf(n.start, y)
		return n, nil
	}
	n.kind = opaque
	return n, nil
}

func (f *yamlFile) members(n *node, y *yaml.Node) error {
	known := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, content := y.Content[i], y.Content[i+1]
		if known[key.Value] {
			return fmt.Errorf("line %d has %s a second time", key.Line, key.Value)
		}
		known[key.Value] = true
		m, err := f.node(content)
		if err != nil {
			return err
		}
		m.name, m.from = key.Value, f.at(key.Line, key.Column)
		n.items = append(n.items, m)
		n.remarks = n.remarks || m.remarks || i > 0 && key.HeadComment != "" || remarked(content) || key.LineComment+key.FootComment != ""
	}
	return nil
}

func remarked(y *yaml.Node) bool { return y.LineComment+y.FootComment != "" }

// endOf is where a scalar ends that is on one line; before its start for any
// other.
func (f *yamlFile) endOf(start int, y *yaml.Node) int {
	line := f.text[start:lineEnd(f.text, start)]
	n := -1
	switch {
	case y.Anchor != "" || y.Style&yaml.TaggedStyle != 0:
	case y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		for i := 1; i < len(line); i++ {
			if line[i] == '\\' && line[0] == '"' || line[i] == '\'' && line[0] == '\'' && strings.HasPrefix(line[i+1:], "'") {
				i++
				continue
			}
			if line[i] == line[0] {
				n = i + 1
				break
			}
		}
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(line, y.Value):
		n = len(y.Value)
	}
	return start + n
}

func (f *yamlFile) set(p path, v value) (string, error) {
	n, rest := f.top.reach(p)
	if len(rest) == 0 {
		return f.replace(n, p, v)
	}
	done := p[:len(p)-len(rest)]
	y := f.nodes[n]
	if n.kind == scalar && y.Tag == "!!null" && n.end == n.start { // a name with nothing behind it
		margin := indent(f.text, n.from) + "  "
		at := lineEnd(f.text, n.start)
		return splice(f.text, at, at, "\n"+yamlLines(rest, v, margin)), nil
	}
	if err := n.fits(done, rest[0]); err != nil {
		return "", err
	}
	if y == nil || n == f.top {
		return f.append(yamlLines(rest, v, "")), nil
	}
	if y.Style&yaml.FlowStyle != 0 && len(n.items) == 0 { // [] or {}
		end := n.start + 1 + strings.IndexAny(f.text[n.start:], "]}")
		margin := indent(f.text, n.from) + "  "
		return splice(f.text, len(strings.TrimRight(f.text[:n.start], " ")), end, "\n"+yamlLines(rest, v, margin)), nil
	}
	if y.Style&yaml.FlowStyle != 0 {
		return "", fmt.Errorf("%s is written in brackets", done)
	}
	margin := strings.Repeat(" ", n.start-lineStart(f.text, n.start))
	if n.kind == list { // in front, since clients take the first
		at := lineEnd(f.text, n.from)
		return splice(f.text, at, at, "\n"+yamlLines(rest, v, margin)), nil
	}
	last := n
	for len(last.items) > 0 {
		last = last.items[len(last.items)-1]
	}
	if last.end < last.start {
		return "", fmt.Errorf("%s ends with a value of several lines", done)
	}
	at := lineEnd(f.text, last.end)
	return splice(f.text, at, at, "\n"+yamlLines(rest, v, margin)), nil
}

func (f *yamlFile) replace(n *node, p path, v value) (string, error) {
	if n.kind != scalar || n.end < n.start {
		return "", fmt.Errorf("%s is no value on one line", p)
	}
	text := yamlValue(v)
	if n.end == n.start { // nothing is there
		text = " " + text
	}
	return splice(f.text, n.start, n.end, text), nil
}

// append puts lines at the end of the document.
func (f *yamlFile) append(lines string) string {
	text := f.text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + lines + "\n"
}

// yamlLines writes what is left of a path down to its value.
func yamlLines(p path, v value, margin string) string {
	name, selector, ofList := item(p[0])
	switch {
	case ofList && name == "":
		return margin + "- " + yamlValue(value{text: selector})
	case ofList:
		return margin + "- " + strings.TrimLeft(yamlLines(p[1:], v, margin+"  "), " ")
	case len(p) == 1:
		return margin + yamlValue(value{text: p[0]}) + ": " + yamlValue(v)
	}
	return margin + yamlValue(value{text: p[0]}) + ":\n" + yamlLines(p[1:], v, margin+"  ")
}

// yamlValue writes a value plainly where that reads as the same text.
func yamlValue(v value) string {
	if v.raw || v.number {
		return v.text
	}
	var read yaml.Node
	err := yaml.Unmarshal([]byte("k: "+v.text+"\n"), &read)
	if err == nil && len(read.Content) == 1 && len(read.Content[0].Content) == 2 {
		if c := read.Content[0].Content[1]; c.Kind == yaml.ScalarNode && c.Tag == "!!str" && c.Value == v.text && c.Style == 0 {
			return v.text
		}
	}
	return string(jsonedit.AppendQuote(nil, v.text))
}

func (f *yamlFile) remove(p path) (string, error) {
	n := f.top.find(p)
	if n == nil {
		return f.text, nil
	}
	last := n
	for len(last.items) > 0 {
		last = last.items[len(last.items)-1]
	}
	if last.end < last.start {
		return "", fmt.Errorf("%s ends with a value of several lines", p)
	}
	from := n.from
	if _, _, ofList := item(p[len(p)-1]); ofList {
		from = lineStart(f.text, from) + len(indent(f.text, from)) // its dash
	}
	if strings.TrimLeft(f.text[lineStart(f.text, from):from], " ") != "" {
		return "", fmt.Errorf("%s shares a line with something else", p)
	}
	return cut(f.text, from, last.end), nil
}
