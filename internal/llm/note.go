package llm

import (
	"slices"
	"strings"
)

// Notes tell what of a request or an answer could not be said as it was
// written. Each is a word of the closed vocabulary below and what it is about,
// "drop:seed"; a note is told once.
type Notes []string

// maxNotes and maxNote bound what clients can have noted: they choose the names
// of members.
const (
	maxNotes = 64
	maxNote  = 80
)

func (n *Notes) add(word, what string) {
	note := word + ":" + header(what)
	if len(*n) < maxNotes && !slices.Contains(*n, note) {
		*n = append(*n, note)
	}
}

// header is a text as it may stand in a list in a header field.
func header(what string) string {
	if len(what) > maxNote {
		what = what[:maxNote]
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ',' {
			return '_'
		}
		return r
	}, what)
}

// Drop notes a member that is left out.
func (n *Notes) Drop(param string) { n.add("drop", param) }

// Clamp notes a value that was moved into the range that is allowed.
func (n *Notes) Clamp(param string) { n.add("clamp", param) }

// Degrade notes what is said in a weaker way.
func (n *Notes) Degrade(what string) { n.add("degrade", what) }

// Rename notes what is said under another name.
func (n *Notes) Rename(param string) { n.add("rename", param) }

// Default notes a value that was put in because there must be one.
func (n *Notes) Default(param string) { n.add("default", param) }

// Move notes what is said at another place.
func (n *Notes) Move(what string) { n.add("move", what) }

// Skip notes what an upstream sent and the client's dialect has no place for.
func (n *Notes) Skip(what string) { n.add("skip", what) }

// Assume notes what was taken for granted.
func (n *Notes) Assume(what string) { n.add("assume", what) }

// Add takes over other notes.
func (n *Notes) Add(others Notes) {
	for _, note := range others {
		if !slices.Contains(*n, note) {
			*n = append(*n, note)
		}
	}
}

// String is the notes as a header's value.
func (n Notes) String() string { return strings.Join(n, ",") }
