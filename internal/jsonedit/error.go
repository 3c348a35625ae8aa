package jsonedit

import "fmt"

// Error says why a document was refused. Its text quotes at most one character
// or one member name of the document, so it may be shown to whoever sent it.
type Error struct {
	Offset int // of the offending byte, or of the member's name
	Reason Reason
	Name   string // Duplicate, Case: the field that is meant
	Found  string // Syntax, UTF8: what stands at Offset; Case: the name as it is written
}

// Reason is the rule that a document breaks.
type Reason uint8

const (
	ok        Reason = iota
	Syntax           // not JSON
	UTF8             // a string is not well-formed UTF-8
	Depth            // nested deeper than MaxDepth
	Duplicate        // a field appears twice
	Case             // a name differs from a field's only in the case of letters
	NotObject        // the document is not an object
)

func (e *Error) Error() string {
	switch e.Reason {
	case UTF8:
		return fmt.Sprintf("invalid UTF-8 (%s) at byte %d", e.Found, e.Offset)
	case Depth:
		return fmt.Sprintf("nested deeper than %d levels at byte %d", MaxDepth, e.Offset)
	case Duplicate:
		return fmt.Sprintf("member %q appears twice", e.Name)
	case Case:
		return fmt.Sprintf("member \"%s\" differs from %q only in case", e.Found, e.Name)
	case NotObject:
		return fmt.Sprintf("expected a JSON object, found %s at byte %d", e.Found, e.Offset)
	}
	return fmt.Sprintf("unexpected %s at byte %d", e.Found, e.Offset)
}

// errorAt makes the error for what stands at offset i.
func errorAt(doc []byte, i int, reason Reason) *Error {
	return &Error{Offset: i, Reason: reason, Found: found(doc, i)}
}

func found(doc []byte, i int) string {
	switch c := at(doc, i); {
	case i >= len(doc):
		return "end"
	case i == 0 && len(doc) >= 3 && string(doc[:3]) == "\uFEFF":
		return "byte order mark"
	case c > ' ' && c < 0x7F:
		return fmt.Sprintf("'%c'", c)
	default:
		return fmt.Sprintf("0x%02x", c)
	}
}
