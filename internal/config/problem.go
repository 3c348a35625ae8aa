package config

import (
	"fmt"
	"strings"

	"github.com/limen-gateway/limen/internal/spelling"
)

// Problem is one thing that is wrong with the document. Nothing in it shows a secret.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`    // what to do
	Snippet string `json:"snippet,omitempty"` // the line and a caret below it, without values that could be secrets
}

func (p Problem) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	if p.Snippet != "" {
		text += "\n" + p.Snippet
	}
	return text
}

// Errors is everything that is wrong with a document, in the order of the file.
type Errors struct {
	Problems []Problem
	More     int // problems beyond those listed
}

func (e *Errors) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// nearest finds the candidate that a misspelt name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range candidates {
		if abs(len(candidate)-len(name)) >= least {
			continue
		}
		// Of short names, half must agree.
		if d := spelling.Distance(name, candidate); d < least && 2*d <= len(name) {
			best, least = candidate, d
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", name)
}
