package probe

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

// fault is something that is wrong with an answer. Which clients break on it
// was measured, with the answers of a good server spoiled in one way each, or
// is plain from their sources.
type fault struct {
	why    string
	change string
	breaks []string // nil: none that was tried; the API's definition has it otherwise
}

// everyone stands for all clients.
var everyone = []string{"every client"}

// Everyone tells whether a result concerns all clients alike.
func Everyone(clients []string) bool { return slices.Contains(clients, everyone[0]) }

func (f *fault) Error() string { return f.why }

// verdict is what a check found.
type verdict struct {
	detail string // when all is well
	faults []*fault
}

// errSkip ends a check that cannot be made.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

// errAbsent ends a check of what the server does not have.
type errAbsent struct {
	why     string
	change  string
	clients []string
}

func (e *errAbsent) Error() string { return e.why }

// told puts faults into one line each of why and what to change.
func told(faults []*fault) (status, detail, change string, clients []string) {
	var whys, changes []string
	for _, f := range faults {
		if !slices.Contains(whys, f.why) {
			whys = append(whys, f.why)
		}
		if f.change != "" && !slices.Contains(changes, f.change) {
			changes = append(changes, f.change)
		}
		for _, c := range f.breaks {
			if !slices.Contains(clients, c) {
				clients = append(clients, c)
			}
		}
	}
	slices.Sort(clients)
	return Fail, strings.Join(whys, "; "), strings.Join(changes, "; "), clients
}

// maxText bounds what is shown of a text that a server sent.
const maxText = 600

// clean makes a text fit to be shown: without the key, which servers like to
// repeat, and without what a terminal would take for orders.
func (v *visit) clean(text string) string {
	if len(v.Key) > 3 { // "x" is no secret, and a letter of every word
		text = strings.ReplaceAll(text, v.Key, "(the key)")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	return clip(text, maxText)
}

// shorten keeps a text on one short line.
func shorten(s string) string { return clip(strings.Join(strings.Fields(s), " "), 40) }

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// newID is an ID as clients make them up.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
