package connect

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/limen-gateway/limen/internal/jsonedit"
)

// jsonFile is JSON, with the comments and trailing commas that editors allow.
// A plain JSON file stays one: what is put in has neither.
type jsonFile struct {
	text     string
	top      *node
	comments []int // where each begins
}

// readJSON finds every value of a file whose top is an object.
func readJSON(text string) (document, error) {
	f := &jsonFile{text: text}
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	at, err := f.space(0)
	if err != nil {
		return nil, err
	}
	if at == len(text) || text[at] != '{' {
		return nil, f.unexpected(at, "an object")
	}
	if f.top, at, err = f.value(at, 0); err != nil {
		return nil, err
	}
	if at, err = f.space(at); err != nil {
		return nil, err
	}
	if at < len(text) {
		return nil, f.unexpected(at, "the end")
	}
	return f, nil
}

func (f *jsonFile) root() *node { return f.top }

func (f *jsonFile) unexpected(at int, want string) error {
	if at >= len(f.text) {
		return fmt.Errorf("it ends where %s should be", want)
	}
	r, _ := utf8.DecodeRuneInString(f.text[at:])
	return fmt.Errorf("line %d has %q where %s should be", lineOf(f.text, at), r, want)
}

// space skips white space and comments.
func (f *jsonFile) space(at int) (int, error) {
	for at < len(f.text) {
		switch rest := f.text[at:]; {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0, strings.HasPrefix(rest, "\uFEFF") && at == 0:
			_, n := utf8.DecodeRuneInString(rest)
			at += n
		case strings.HasPrefix(rest, "//"):
			f.comments = append(f.comments, at)
			at = lineEnd(f.text, at)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return at, fmt.Errorf("line %d begins a comment that does not end", lineOf(f.text, at))
			}
			f.comments = append(f.comments, at)
			at += end + 4
		default:
			return at, nil
		}
	}
	return at, nil
}

// value reads the value at an offset and returns the offset after it.
func (f *jsonFile) value(at, depth int) (*node, int, error) {
	n := &node{start: at, from: at}
	if at >= len(f.text) || depth > jsonedit.MaxDepth {
		return nil, at, f.unexpected(at, "a value")
	}
	switch f.text[at] {
	case '{':
		n.kind = object
		return f.items(n, '}', depth)
	case '[':
		n.kind = list
		return f.items(n, ']', depth)
	case '"':
		text, end, err := f.string(at)
		n.text, n.end = text, end
		return n, end, err
	}
	n.end = at
	for n.end < len(f.text) && strings.IndexByte(" \t\r\n,]}/", f.text[n.end]) < 0 {
		n.end++
	}
	n.text = f.text[at:n.end]
	if read, ok := jsonedit.Get([]byte(n.text)); !ok || len(read) != len(n.text) {
		return nil, at, f.unexpected(at, "a value")
	}
	return n, n.end, nil
}

// string reads the string at an offset.
func (f *jsonFile) string(at int) (text string, end int, err error) {
	if at >= len(f.text) || f.text[at] != '"' {
		return "", at, f.unexpected(at, "a name in quotes")
	}
	for end = at + 1; end < len(f.text) && f.text[end] != '"'; end++ {
		if f.text[end] == '\\' {
			end++
		}
	}
	if end >= len(f.text) {
		return "", at, fmt.Errorf("line %d begins a string that does not end", lineOf(f.text, at))
	}
	text, ok := jsonedit.Unquote([]byte(f.text[at : end+1]))
	if !ok {
		return "", at, fmt.Errorf("line %d has a string that is none of JSON", lineOf(f.text, at))
	}
	return text, end + 1, nil
}

// items reads the members of an object, or the items of a list.
func (f *jsonFile) items(n *node, closing byte, depth int) (*node, int, error) {
	known, seen := len(f.comments), map[string]bool{}
	at, err := f.space(n.start + 1)
	for err == nil && (at >= len(f.text) || f.text[at] != closing) {
		var i *node
		from, name := at, ""
		if n.kind == object {
			if name, at, err = f.string(at); err != nil {
				break
			}
			if seen[name] {
				return nil, at, fmt.Errorf("line %d has %q a second time", lineOf(f.text, from), name)
			}
			seen[name] = true
			if at, err = f.space(at); err != nil {
				break
			}
			if at >= len(f.text) || f.text[at] != ':' {
				return nil, at, f.unexpected(at, "a colon")
			}
			if at, err = f.space(at + 1); err != nil {
				break
			}
		}
		if i, at, err = f.value(at, depth+1); err != nil {
			break
		}
		i.from, i.name = from, name
		n.items = append(n.items, i)
		if at, err = f.space(at); err != nil {
			break
		}
		if at < len(f.text) && f.text[at] == ',' {
			at, err = f.space(at + 1)
			continue
		}
		if at >= len(f.text) || f.text[at] != closing {
			return nil, at, f.unexpected(at, "a comma")
		}
	}
	n.end, n.remarks = at+1, len(f.comments) > known
	return n, n.end, err
}

func (f *jsonFile) set(p path, v value) (string, error) {
	n, rest := f.top.reach(p)
	if len(rest) > 0 {
		if err := n.fits(p[:len(p)-len(rest)], rest[0]); err != nil {
			return "", err
		}
		return f.insert(n, rest, v), nil
	}
	if !v.raw && (n.kind == object || n.kind == list) {
		return "", fmt.Errorf("%s is no single value", p)
	}
	return splice(f.text, n.start, n.end, jsonValue(v)), nil
}

// insert puts a member, or an item, behind the last one.
func (f *jsonFile) insert(n *node, rest path, v value) string {
	inner := f.text[n.start+1 : n.end-1]
	lines := strings.Contains(inner, "\n") || len(n.items) == 0
	outer := indent(f.text, n.start)
	margin := outer + f.unit()
	if len(n.items) > 0 && strings.TrimSpace(f.text[lineStart(f.text, n.items[0].from):n.items[0].from]) == "" {
		margin = indent(f.text, n.items[0].from)
	}
	member := jsonMember(rest, v, margin, f.unit(), lines)

	// Behind the last item comes its comma, and what is said of it on its line.
	at, comma := n.start+1, ""
	text := f.text
	if len(n.items) > 0 {
		last := n.items[len(n.items)-1]
		at = last.end
		if trailing := f.comma(last, n); trailing >= 0 {
			at, comma = trailing+1, ","
		} else {
			text = splice(text, at, at, ",")
			at++
		}
	}
	if !lines {
		return splice(text, at, at, " "+member+comma)
	}
	if end := lineEnd(text, at); remark(text[at:end]) {
		return splice(text, at+len(strings.TrimRight(text[at:end], " \t\r")), end, "\n"+margin+member+comma)
	}
	return splice(text, at, at, "\n"+margin+member+comma+"\n"+outer)
}

// comma is where the comma behind the last item is, -1 when there is none.
func (f *jsonFile) comma(last, n *node) int {
	at, err := (&jsonFile{text: f.text}).space(last.end)
	if err != nil || at >= n.end || f.text[at] != ',' {
		return -1
	}
	return at
}

// remark tells whether the rest of a line is blank or one comment.
func remark(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "//") ||
		strings.HasPrefix(rest, "/*") && strings.Index(rest, "*/") == len(rest)-2
}

// unit is by how much the file indents.
func (f *jsonFile) unit() string {
	for _, i := range f.top.items {
		if white := indent(f.text, i.from); white != "" {
			return white
		}
	}
	return "  "
}

// jsonMember writes what is left of a path down to its value.
func jsonMember(p path, v value, margin, unit string, lines bool) string {
	head, closing := "", "}"
	name, selector, ofList := item(p[0])
	switch {
	case !ofList:
		head = string(jsonedit.AppendQuote(nil, p[0])) + ": "
	case name == "":
		return jsonValue(value{text: selector})
	}
	if len(p) == 1 {
		return head + jsonValue(v)
	}
	opening := "{"
	if _, _, inner := item(p[1]); inner {
		opening, closing = "[", "]"
	}
	if !lines {
		return head + opening + jsonMember(p[1:], v, "", "", false) + closing
	}
	deeper := margin + unit
	return head + opening + "\n" + deeper + jsonMember(p[1:], v, deeper, unit, true) + "\n" + margin + closing
}

func jsonValue(v value) string {
	if v.raw || v.number {
		return v.text
	}
	return string(jsonedit.AppendQuote(nil, v.text))
}

func (f *jsonFile) remove(p path) (string, error) {
	parent, n := f.top.find(p[:len(p)-1]), f.top.find(p)
	if n == nil {
		return f.text, nil
	}
	text, to := f.text, n.end
	if at := f.comma(n, parent); at >= 0 {
		between := strings.TrimSpace(text[n.end:at])
		if between == "" {
			to = at + 1
		}
		return cut(text, n.from, to), nil
	}
	text = cut(text, n.from, to)
	for i, other := range parent.items {
		if other == n && i > 0 { // the last one: the comma before it separates nothing now
			if at := f.comma(parent.items[i-1], parent); at >= 0 {
				text = splice(text, at, at+1, "")
			}
		}
	}
	return text, nil
}
