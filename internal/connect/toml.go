package connect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// tomlFile is TOML. It is read by statements: what is no single value, an array
// or an inline table, is found and not looked into.
type tomlFile struct {
	text    string
	top     *node
	tables  []tomlTable // that have a header, in the order of the file
	keys    []tomlKey
	nodes   map[string]*node // by the IDs of their paths
	headers map[string]int   // tables by those
}

// tomlTable is a table that has a header, of its own or of an array.
type tomlTable struct {
	id         string // of its path; "" of one in an array, which no path leads to
	start, end int    // of the header
	body       int    // where the last of its keys ends; end when it has none
}

type tomlKey struct {
	leaf *node
	id   string // as of a table
	top  bool   // it is in none
}

// readTOML finds every key of a file.
func readTOML(text string) (document, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	f := &tomlFile{text: text, top: &node{kind: object}, nodes: map[string]*node{}, headers: map[string]int{}}
	within := path{} // the table that keys belong to; nil in one of an array of tables
	for at := f.blank(0); at < len(text); at = f.blank(at) {
		var err error
		if text[at] == '[' {
			within, at, err = f.header(at)
		} else {
			at, err = f.key(at, within)
		}
		if err != nil {
			return nil, err
		}
		if rest := strings.TrimSpace(text[at:lineEnd(text, at)]); rest != "" && rest[0] != '#' {
			return nil, fmt.Errorf("line %d has %q where it should end", lineOf(text, at), rest)
		}
		at = lineEnd(text, at)
	}
	return f, nil
}

func (f *tomlFile) root() *node { return f.top }

// blank skips white space, empty lines and comments.
func (f *tomlFile) blank(at int) int {
	for at < len(f.text) {
		switch f.text[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			at = lineEnd(f.text, at)
		default:
			return at
		}
	}
	return at
}

// grow returns the table at a path and makes those that are not there; nil when
// something else is in the way.
func (f *tomlFile) grow(p path) *node {
	if len(p) == 0 {
		return f.top
	}
	n := f.nodes[p.id()]
	if n == nil {
		n = f.put(p, &node{kind: object})
	}
	if n == nil || n.kind != object {
		return nil
	}
	return n
}

// put puts a value at a path where there is none.
func (f *tomlFile) put(p path, n *node) *node {
	parent := f.grow(p[:len(p)-1])
	if parent == nil || f.nodes[p.id()] != nil {
		return nil
	}
	n.name = p[len(p)-1]
	parent.items = append(parent.items, n)
	f.nodes[p.id()] = n
	return n
}

// header reads the header of a table and returns what its keys belong to.
func (f *tomlFile) header(at int) (within path, end int, err error) {
	closing := "]"
	array := strings.HasPrefix(f.text[at:], "[[")
	if array {
		closing = "]]"
	}
	p, end, err := f.dotted(at+len(closing), ']')
	if err != nil {
		return nil, at, err
	}
	if !strings.HasPrefix(f.text[end:], closing) {
		return nil, at, fmt.Errorf("line %d has a header that does not end", lineOf(f.text, at))
	}
	end += len(closing)
	if array {
		f.put(p, &node{kind: opaque})
	}
	if f.grow(p) == nil { // within an array, where the same table may come again
		f.tables = append(f.tables, tomlTable{start: at, end: end, body: end})
		return nil, end, nil
	}
	if _, known := f.headers[p.id()]; known {
		return nil, at, fmt.Errorf("line %d has the table %s a second time", lineOf(f.text, at), p)
	}
	f.headers[p.id()] = len(f.tables)
	f.tables = append(f.tables, tomlTable{p.id(), at, end, end})
	return p, end, nil
}

// key reads a key and its value, and returns the offset after them.
func (f *tomlFile) key(at int, within path) (int, error) {
	p, end, err := f.dotted(at, '=')
	if err != nil {
		return at, err
	}
	leaf := &node{name: p[len(p)-1], from: at}
	leaf.start = end + 1 + len(f.text[end+1:]) - len(strings.TrimLeft(f.text[end+1:], " \t"))
	if leaf.end, err = f.value(leaf.start); err != nil {
		return at, err
	}
	written := f.text[leaf.start:leaf.end]
	if leaf.text = written; strings.IndexByte("[{", written[0]) >= 0 {
		leaf.kind = opaque
	} else if leaf.text, err = tomlText(written); err != nil {
		return at, fmt.Errorf("line %d: %w", lineOf(f.text, at), err)
	}
	k := tomlKey{leaf: leaf, top: len(f.tables) == 0}
	if !k.top {
		f.tables[len(f.tables)-1].body = leaf.end
	}
	if within != nil {
		full := slices.Concat(within, p)
		k.id = full.id()
		if n := f.nodes[k.id]; n != nil && n.kind != object {
			return at, fmt.Errorf("line %d has %s a second time", lineOf(f.text, at), full)
		}
		f.put(full, leaf)
	}
	f.keys = append(f.keys, k)
	return leaf.end, nil
}

// dotted reads the name of a key or of a table, up to the character that ends
// it.
func (f *tomlFile) dotted(at int, end byte) (p path, after int, err error) {
	for {
		for at < len(f.text) && (f.text[at] == ' ' || f.text[at] == '\t') {
			at++
		}
		start := at
		switch {
		case at < len(f.text) && (f.text[at] == '"' || f.text[at] == '\''):
			if at, err = f.value(at); err != nil {
				return nil, at, err
			}
			name, err := tomlText(f.text[start:at])
			if err != nil {
				return nil, at, fmt.Errorf("line %d: %w", lineOf(f.text, at), err)
			}
			p = append(p, name)
		default:
			for at < len(f.text) && bare(f.text[at]) {
				at++
			}
			if at == start {
				return nil, at, fmt.Errorf("line %d is no setting", lineOf(f.text, min(at, len(f.text)-1)))
			}
			p = append(p, f.text[start:at])
		}
		for at < len(f.text) && (f.text[at] == ' ' || f.text[at] == '\t') {
			at++
		}
		if at < len(f.text) && f.text[at] == '.' {
			at++
			continue
		}
		if at >= len(f.text) || f.text[at] != end {
			return nil, at, fmt.Errorf("line %d is no setting", lineOf(f.text, start))
		}
		return p, at, nil
	}
}

func bare(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// value returns where the value at an offset ends.
func (f *tomlFile) value(at int) (end int, err error) {
	rest := f.text[at:]
	for _, quotes := range []string{`"""`, `'''`, `"`, `'`} {
		if !strings.HasPrefix(rest, quotes) {
			continue
		}
		for i := len(quotes); i < len(rest); i++ {
			switch {
			case rest[i] == '\\' && quotes[0] == '"':
				i++
			case rest[i] == '\n' && len(quotes) == 1:
				i = len(rest)
			case strings.HasPrefix(rest[i:], quotes):
				i += len(quotes)
				for n := 0; len(quotes) == 3 && n < 2 && i < len(rest) && rest[i] == quotes[0]; n++ {
					i++ // a text may end with quotes of its own
				}
				return at + i, nil
			}
		}
		return at, fmt.Errorf("line %d begins a text that does not end", lineOf(f.text, at))
	}
	if rest != "" && (rest[0] == '[' || rest[0] == '{') {
		return f.container(at)
	}
	n := strings.IndexAny(rest, ",]}#\r\n")
	if n < 0 {
		n = len(rest)
	}
	n = len(strings.TrimRight(rest[:n], " \t"))
	if n == 0 {
		return at, fmt.Errorf("line %d has no value", lineOf(f.text, min(at, len(f.text)-1)))
	}
	return at + n, nil
}

// container returns where an array or an inline table ends.
func (f *tomlFile) container(at int) (int, error) {
	start, depth := at, 0
	for at < len(f.text) {
		switch c := f.text[at]; c {
		case '[', '{':
			depth++
			at++
		case ']', '}':
			depth--
			at++
			if depth == 0 {
				return at, nil
			}
		case '#':
			at = lineEnd(f.text, at)
		case '"', '\'':
			end, err := f.value(at)
			if err != nil {
				return at, err
			}
			at = end
		default:
			at++
		}
	}
	return at, fmt.Errorf("line %d begins a value that does not end", lineOf(f.text, start))
}

// tomlText is a value without its quotes. What spans lines stays as it is
// written.
func tomlText(written string) (string, error) {
	switch {
	case strings.HasPrefix(written, `"""`), strings.HasPrefix(written, `'''`):
		return written, nil
	case written[0] == '\'':
		return written[1 : len(written)-1], nil
	case written[0] != '"':
		return written, nil
	case strings.IndexByte(written, '\\') < 0:
		return written[1 : len(written)-1], nil
	}
	text, err := strconv.Unquote(written) // TOML's escapes are among Go's, but for \e
	if err != nil {
		return "", fmt.Errorf("the text %s cannot be read", written)
	}
	return text, nil
}

func tomlValue(v value) string {
	if v.raw || v.number {
		return v.text
	}
	return string(jsonedit.AppendQuote(nil, v.text)) // whose escapes are TOML's
}

func tomlName(p path) string {
	names := make([]string, len(p))
	for i, name := range p {
		names[i] = name
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || !bare(byte(r)) }) {
			names[i] = string(jsonedit.AppendQuote(nil, name))
		}
	}
	return strings.Join(names, ".")
}

func (f *tomlFile) set(p path, v value) (string, error) {
	n, rest := f.top.reach(p)
	if len(rest) == 0 {
		if n.kind == object {
			return "", fmt.Errorf("%s is no single value", p)
		}
		return splice(f.text, n.start, n.end, tomlValue(v)), nil
	}
	if err := n.fits(p[:len(p)-len(rest)], rest[0]); err != nil {
		return "", err
	}
	line := tomlName(p[len(p)-1:]) + " = " + tomlValue(v)
	if len(p) == 1 {
		return f.atTop(line), nil
	}
	table := p[:len(p)-1]
	if i, headed := f.headers[table.id()]; headed {
		at := lineEnd(f.text, f.tables[i].body)
		return splice(f.text, at, at, "\n"+line), nil
	}
	if len(rest) == 1 {
		return "", fmt.Errorf("%s has no header of its own", table)
	}
	text := strings.TrimRight(f.text, " \t\r\n")
	if text != "" {
		text += "\n\n"
	}
	return text + "[" + tomlName(table) + "]\n" + line + "\n", nil
}

// atTop puts a line behind the keys that are in no table.
func (f *tomlFile) atTop(line string) string {
	for i := len(f.keys) - 1; i >= 0; i-- {
		if f.keys[i].top {
			at := lineEnd(f.text, f.keys[i].leaf.end)
			return splice(f.text, at, at, "\n"+line)
		}
	}
	if len(f.tables) == 0 {
		return strings.TrimLeft(strings.TrimRight(f.text, " \t\r\n")+"\n", "\n") + line + "\n"
	}
	// What is said right above the first table is said of it.
	at := lineStart(f.text, f.tables[0].start)
	for at > 0 {
		above := lineStart(f.text, at-1)
		if !strings.HasPrefix(strings.TrimSpace(f.text[above:at]), "#") {
			break
		}
		at = above
	}
	return splice(f.text, at, at, line+"\n\n")
}

// remove takes keys out, and a table with its header. Comments stay.
func (f *tomlFile) remove(p path) (string, error) {
	id := p.id()
	within := func(other string) bool { return other == id || strings.HasPrefix(other, id+"\x00") }
	var pieces [][2]int
	for _, k := range f.keys {
		if within(k.id) {
			pieces = append(pieces, [2]int{k.leaf.from, k.leaf.end})
		}
	}
	for _, t := range f.tables {
		if within(t.id) {
			pieces = append(pieces, [2]int{t.start, t.end})
		}
	}
	// From the end, so that offsets before it stay true.
	slices.SortFunc(pieces, func(a, b [2]int) int { return b[0] - a[0] })
	text := f.text
	for _, piece := range pieces {
		text = cut(text, piece[0], piece[1])
		if f.text[piece[0]] == '[' {
			text = closeGap(text, lineStart(text, min(piece[0], len(text))))
		}
	}
	return text, nil
}

// closeGap takes away the empty line that stood before a header, when another
// one, or the end, follows.
func closeGap(text string, at int) string {
	if strings.HasSuffix(text[:at], "\n\n") && (at == len(text) || text[at] == '\n') {
		return text[:at-1] + text[at:]
	}
	return text
}
