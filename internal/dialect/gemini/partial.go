package gemini

import (
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

// partial writes the text of arguments that come as values at paths
// ("$.city", "$.days[0].from"), in the order of the text. Nothing is repaired:
// a call that is cut has arguments that are cut.
type partial struct {
	begun bool
	at    []step // of the last value
	open  bool   // that value is a string which goes on
}

// step goes from a value to one of its members or elements.
type step struct {
	name    string
	element bool
}

// maxSteps bounds the depth of arguments.
const maxSteps = jsonedit.MaxDepth

// add appends what a piece adds to the text.
func (p *partial) add(dst, piece []byte) []byte {
	var value []byte
	at := steps(dialect.Text(piece, "jsonPath"))
	more, text := false, false
	for name, v := range jsonedit.Members(piece) {
		switch string(name) {
		case `"stringValue"`:
			value, text = v, jsonedit.KindOf(v) == jsonedit.KindString
		case `"numberValue"`, `"boolValue"`:
			value = v
		case `"nullValue"`:
			value = []byte("null")
		case `"willContinue"`:
			more = string(v) == "true"
		}
	}
	if len(at) == 0 {
		return dst
	}
	if value == nil {
		value, text = []byte(`""`), true
	}
	if p.open && slices.Equal(p.at, at) {
		if text {
			dst = append(dst, value[1:len(value)-1]...)
		}
	} else {
		dst = p.goTo(dst, at)
		if !text {
			return append(dst, value...)
		}
		p.open = true
		dst = append(dst, value[:len(value)-1]...)
	}
	if !more {
		p.open = false
		dst = append(dst, '"')
	}
	return dst
}

// goTo appends what leads from the last value to the place of the next.
func (p *partial) goTo(dst []byte, at []step) []byte {
	dst = p.closeText(dst)
	shared := 0
	for shared < len(at)-1 && shared < len(p.at)-1 && at[shared] == p.at[shared] {
		shared++
	}
	if !p.begun {
		p.begun = true
		dst = append(dst, opening(at[0]))
	} else {
		dst = p.leave(dst, shared+1)
		dst = append(dst, ',')
	}
	dst = appendName(dst, at[shared])
	for _, s := range at[shared+1:] {
		dst = appendName(append(dst, opening(s)), s)
	}
	p.at = at
	return dst
}

func (p *partial) closeText(dst []byte) []byte {
	if p.open {
		p.open = false
		dst = append(dst, '"')
	}
	return dst
}

// leave closes what was opened on the way to the last value, down to a depth.
func (p *partial) leave(dst []byte, depth int) []byte {
	for i := len(p.at) - 1; i >= depth; i-- {
		dst = append(dst, opening(p.at[i])+2) // ] and } stand two behind [ and {
	}
	return dst
}

// end appends what closes the text.
func (p *partial) end(dst []byte) []byte {
	if !p.begun {
		p.begun = true
		return append(dst, "{}"...)
	}
	return p.leave(p.closeText(dst), 0)
}

func opening(s step) byte {
	if s.element {
		return '['
	}
	return '{'
}

func appendName(dst []byte, s step) []byte {
	if s.element {
		return dst
	}
	return append(jsonedit.AppendQuote(dst, s.name), ':')
}

// steps reads a path of members (.name, ['name']) and elements ([0]).
func steps(path string) (list []step) {
	path = strings.TrimPrefix(path, "$")
	for path != "" && len(list) < maxSteps {
		switch {
		case path[0] == '[':
			inside, rest, closed := strings.Cut(path[1:], "]")
			if !closed {
				return list
			}
			name := strings.Trim(inside, `'"`)
			list, path = append(list, step{name: name, element: name == inside}), rest
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			if end == 0 { // no name where one is due
				return list
			}
			list, path = append(list, step{name: path[:end]}), path[end:]
		}
	}
	return list
}
