package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxDocument is the most that a document may be, in bytes.
const maxDocument = 4 << 20

// source is the text of a document, and its nodes once it is parsed.
type source struct {
	name  string
	text  string
	lines []string
	nodes []*yaml.Node        // those that have text, in the order of the text
	shown map[*yaml.Node]bool // see show
}

func newSource(src Source) *source {
	text := strings.TrimPrefix(string(src.Data), "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return &source{name: src.Name, text: text, lines: strings.Split(text, "\n"), shown: map[*yaml.Node]bool{}}
}

// check refuses what has no place in a text file, before anything depends on it.
func (s *source) check() error {
	if len(s.text) > maxDocument {
		return s.refuse(1, 1, "the document is larger than 4MiB", "")
	}
	for i, line := range s.lines {
		column := 1
		for at, r := range line {
			if r == utf8.RuneError && !strings.HasPrefix(line[at:], "\uFFFD") {
				return s.refuse(i+1, column, "the document is not UTF-8", "")
			}
			if !allowed(r) {
				return s.refuse(i+1, column, fmt.Sprintf("the character %U is not allowed", r), "")
			}
			column++
		}
	}
	return nil
}

// allowed leaves out control characters, the rarer line breaks (whether they break a line depends on who counts),
// byte order marks and what Unicode keeps out of texts, our placeholders among it.
func allowed(r rune) bool {
	switch {
	case r == '\t':
		return true
	case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r == '\uFEFF':
		return false
	case r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
		return false
	}
	return true
}

// parse reads the text as YAML. An empty document gives no node.
func (s *source) parse() (*yaml.Node, error) {
	loader, err := yaml.NewLoader(strings.NewReader(protect(s.text)))
	if err != nil {
		return nil, s.syntaxError(err)
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, s.syntaxError(err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, s.refuse(second.Line, second.Column, "a second document begins here", "one file holds one document")
	} else if !errors.Is(err, io.EOF) {
		return nil, s.syntaxError(err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	root := document.Content[0]
	s.adopt(root)
	slices.SortStableFunc(s.nodes, func(a, b *yaml.Node) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return root, nil
}

// adopt lists the nodes below n, and puts references back as they were written.
func (s *source) adopt(n *yaml.Node) {
	n.Value = restore(n.Value)
	if !absent(n) {
		s.nodes = append(s.nodes, n)
	}
	for _, child := range n.Content {
		s.adopt(child)
	}
}

// syntaxError reports what the YAML parser found. Messages of its later stages repeat values, so they are replaced.
func (s *source) syntaxError(err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return s.refuse(1, 1, "invalid YAML", "")
	}
	line, column := e.Mark.Line, e.Mark.Column
	if ranOut := line == 0 || line >= len(s.lines); ranOut && e.ContextMark.Line > 0 {
		line, column = e.ContextMark.Line, e.ContextMark.Column
	}
	switch e.Stage {
	case "scanner", "parser":
		message := "invalid YAML: " + e.Message
		if e.ContextMsg != "" {
			message += " " + e.ContextMsg
		}
		return s.refuse(line, column, message, s.syntaxHint(line))
	case "composer":
		return s.refuse(line, column, "invalid YAML: an alias without its anchor", "a value that begins with * needs quotes")
	default:
		return s.refuse(line, column, "invalid YAML", "")
	}
}

func (s *source) syntaxHint(line int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	text := s.lines[line-1]
	if indent := len(text) - len(strings.TrimLeft(text, " \t")); strings.Contains(text[:indent], "\t") {
		return "YAML is indented with spaces, not tabs"
	}
	return ""
}

// problem makes a problem at a place, which it moves into the text if it lies outside.
func (s *source) problem(line, column int, message, hint string) Problem {
	line = min(max(line, 1), len(s.lines))
	column = min(max(column, 1), utf8.RuneCountInString(s.lines[line-1])+1)
	return Problem{File: s.name, Line: line, Column: column, Message: message, Hint: hint}
}

// errors puts problems into the order of the text and adds the snippets. What may be shown is known by now.
func (s *source) errors(more int, problems ...Problem) *Errors {
	for i, p := range problems {
		problems[i].Snippet = s.snippet(p.Line, p.Column)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Errors{Problems: problems, More: more}
}

// refuse makes the error for a document that one problem ends.
func (s *source) refuse(line, column int, message, hint string) error {
	return s.errors(0, s.problem(line, column, message, hint))
}

// columnOf finds where a part of a value begins. A value of several lines has but one place.
func (s *source) columnOf(n *yaml.Node, part string) int {
	line := []rune(s.lines[n.Line-1])
	rest := string(line[min(n.Column-1, len(line)):])
	if i := strings.Index(rest, part); i > 0 {
		return n.Column + utf8.RuneCountInString(rest[:i])
	}
	return n.Column
}
