package config

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Document is a document as it is written, whether or not it says something good: to be shown and edited.
type Document struct {
	*source
	root *yaml.Node // nil when it is empty
}

// ReadDocument reads a document as far as YAML goes. Its error is an *Errors.
func ReadDocument(src Source) (*Document, error) {
	text := newSource(src)
	if err := text.check(); err != nil {
		return nil, err
	}
	root, err := text.parse()
	if err != nil {
		return nil, err
	}
	d := &Document{source: text, root: root}
	if root != nil { // to find out what may be shown
		opt := Options{
			Getenv: func(string) (string, bool) { return unknownSecret, true }, ReadFile: func(string) ([]byte, error) { return nil, nil },
		}
		newDecoder(text, opt).decode(root, reflect.ValueOf(Default()).Elem(), field{})
	}
	return d, nil
}

// Secrets are the names of the secrets that the document refers to.
func (d *Document) Secrets() []string {
	var names []string
	for _, n := range d.nodes {
		for _, match := range reference.FindAllStringSubmatchIndex(n.Value, -1) {
			if name := submatches(n.Value, match).secret; name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// JSON is the document as it is written, references and all, without what may be secret.
func (d *Document) JSON() []byte {
	if d.root == nil {
		return []byte("{}")
	}
	var out bytes.Buffer
	writeJSON(&out, d.presentable(d.root))
	return out.Bytes()
}

// presentable is a tree that writeJSON can write.
func (d *Document) presentable(n *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Tag: "!!str", Value: n.Value}
	switch {
	case n.Kind == yaml.AliasNode, n.Kind == yaml.ScalarNode && d.secret(n):
		out.Kind, out.Value = yaml.ScalarNode, redacted
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		out.Tag, out.Value = n.Tag, "null"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!bool":
		out.Tag, out.Value = n.Tag, strings.ToLower(n.Value)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!int" && plainNumber.MatchString(n.Value):
		out.Tag = n.Tag
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			out.Content = append(out.Content, textNode(child.Value))
			continue
		}
		out.Content = append(out.Content, d.presentable(child))
	}
	return out
}

// plainNumber is an integer as JSON writes it, too.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// secret reports a value that was not recognised as harmless.
func (d *Document) secret(n *yaml.Node) bool { return n.Value != "" && d.hides(n) }

// Shown is the text without what may be secret.
func (d *Document) Shown() string {
	lines := slices.Clone(d.lines)
	for i, n := range slices.Backward(d.nodes) {
		if (n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode) && (d.secret(n) || n.Kind == yaml.AliasNode) {
			lines = d.redact(lines, i)
		}
	}
	for i, line := range lines {
		lines[i] = withoutOldSecrets(line)
	}
	return strings.Join(lines, "\n")
}

// redact replaces the text of a node. Those behind it were replaced before.
func (d *Document) redact(lines []string, i int) []string {
	n := d.nodes[i]
	line := []rune(lines[n.Line-1])
	start := min(n.Column-1, len(line))
	end, until := len(line), len(lines)
	if i+1 < len(d.nodes) {
		until = d.nodes[i+1].Line - 1
	}
	if size := lengthOf(string(line[start:]), n); size > 0 {
		end, until = start+size, n.Line
	} else if until < n.Line { // of several lines, and another value behind it
		end, until = d.nodes[i+1].Column-1, n.Line
	}
	lines[n.Line-1] = string(line[:start]) + redacted + string(line[min(end, len(line)):])
	if end == len(line) && until > n.Line {
		lines = slices.Delete(lines, n.Line, until)
	}
	return lines
}

// lengthOf is how long a scalar is in its line, in characters; 0 where it takes several.
func lengthOf(rest string, n *yaml.Node) int {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		runes := []rune(rest)
		for i := 1; i < len(runes); i++ {
			switch {
			case runes[i] == '\\' && runes[0] == '"', runes[i] == '\'' && runes[0] == '\'' && i+1 < len(runes) && runes[i+1] == '\'':
				i++
			case runes[i] == runes[0]:
				return i + 1
			}
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		return len([]rune(n.Value))
	}
	return 0
}

// commented are secrets that a comment seems to hold: behind the name of a field for them, or in a form that keys have.
var commented = regexp.MustCompile(`(?i)(#.*?\b(?:api_?keys?|password|secret|token|authorization)\b["']?\s*[:=]\s*)((?:\[\s*)?["']?[^\s"'$\[][^#]*)`)

var keyLike = regexp.MustCompile(`(#.*?)\b((?:limen_|sk-)[A-Za-z0-9_-]{12,})`)

// withoutOldSecrets is a line whose comment holds no secret, as far as that can be told.
func withoutOldSecrets(line string) string {
	if !strings.Contains(line, "#") {
		return line
	}
	return keyLike.ReplaceAllString(commented.ReplaceAllString(line, "${1}"+redacted), "${1}"+redacted)
}

// Outline is what may be shown of a text that is no YAML: the first names of its lines.
func Outline(src Source) string {
	s := newSource(src)
	var out strings.Builder
	for i := range s.lines {
		text, _ := s.outline(i+1, 1)
		fmt.Fprintln(&out, string(text))
	}
	return out.String()
}
