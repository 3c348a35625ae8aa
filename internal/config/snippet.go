package config

import (
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A snippet shows the line of a problem. Values that were not recognised as harmless stay hidden, whoever their
// neighbour's problem is: the value of a misspelt api_key is as secret as that of a correct one.

const (
	hidden       = '…'
	snippetWidth = 100
	longestLine  = 4 << 10 // in bytes: what is longer was not written for people
)

// show allows the text of a key or a value to appear.
func (s *source) show(n *yaml.Node) { s.shown[n] = true }

func (s *source) hides(n *yaml.Node) bool {
	return (n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode) && !s.shown[n]
}

// snippet is the line and, below it, a caret under the column. Lines and columns count from 1.
func (s *source) snippet(line, column int) string {
	if len(s.lines[line-1]) > longestLine {
		return ""
	}
	var text []rune
	var caret int
	if s.nodes == nil {
		text, caret = s.outline(line, column)
	} else {
		text, caret = s.reveal(line, column)
	}
	text, caret = clip(text, caret)
	shown := strings.TrimRight(strings.ReplaceAll(string(text), "\t", " "), " ")
	if strings.Trim(shown, " "+string(hidden)) == "" {
		return ""
	}
	return "  " + shown + "\n  " + strings.Repeat(" ", caret) + "^"
}

// keyAtStart is a line's first key, if it looks like the name of a field.
var keyAtStart = regexp.MustCompile(`^[\s-]*[A-Za-z_][A-Za-z0-9_.-]{0,31}:(\s+|$)`)

// outline is all that may be shown of a line when the text cannot be parsed: its first key.
func (s *source) outline(line, column int) (text []rune, caret int) {
	full := s.lines[line-1]
	key := keyAtStart.FindString(full)
	if key == "" {
		return nil, 0
	}
	text = []rune(key)
	if key != full {
		text = append(text, hidden)
	}
	return text, min(column-1, max(len(text)-1, 0))
}

// reveal is the line with its hidden values replaced, and without its comment.
func (s *source) reveal(line, column int) (text []rune, caret int) {
	full := []rune(s.lines[line-1])
	next := sort.Search(len(s.nodes), func(i int) bool { return s.nodes[i].Line >= line })
	// What stands before the line's first node belongs to the node before it, which may be a secret of several lines.
	hide := next > 0 && s.hides(s.nodes[next-1])
	caret = -1
	for start := 0; start <= len(full); next++ {
		end, last := len(full), true
		if next < len(s.nodes) && s.nodes[next].Line == line {
			end, last = max(min(s.nodes[next].Column-1, len(full)), start), false
		}
		part := full[start:end]
		at := len(text)
		if indent := start == 0 && strings.Trim(string(part), " \t-") == ""; hide && !indent && len(part) > 0 {
			text = append(text, hidden, ' ')
		} else {
			text = append(text, part...)
			at += column - 1 - start
		}
		if caret < 0 && (column-1 < end || last) {
			caret = max(min(at, len(text)), 0)
		}
		if last {
			break
		}
		hide, start = s.hides(s.nodes[next]), end
	}
	if comment := strings.Index(string(text[caret:]), " #"); comment >= 0 {
		text = text[:caret+len([]rune(string(text[caret:])[:comment]))]
	}
	return text, caret
}

// clip keeps the neighbourhood of the caret of a long line.
func clip(text []rune, caret int) ([]rune, int) {
	if len(text) <= snippetWidth {
		return text, caret
	}
	start := max(min(caret-snippetWidth/2, len(text)-snippetWidth), 0)
	return text[start : start+snippetWidth], caret - start
}
