// Package jsonedit reads and replaces members of a JSON object in place.
//
// A gateway acts on a few members of a body and hands on the rest as it came:
// unknown members, big numbers, the order of keys. So the body is looked at
// once, strictly ([Scan]), and is never decoded; what is sent is the caller's
// own bytes with a few pieces exchanged ([Object.Edits], [Splice]). The bytes
// that were looked at are never modified.
//
// Strict means that no two parsers can disagree on what was checked: a member
// that the gateway acts on appears once, in one spelling, in a document that
// every parser accepts.
//
// The package knows JSON. It knows nothing of models, of dialects or of HTTP.
package jsonedit

import "slices"

// MaxDepth is how deep objects and arrays may be nested; the object at the top
// is the first level. It is at most 64, because value keeps a bit for each.
const MaxDepth = 64

// Span is the half-open range [Start,End) of a document's bytes. The zero Span
// stands for something that is absent.
type Span struct{ Start, End int }

// Member is where a member stands in its document.
type Member struct {
	Name  Span // with its quotes
	Value Span // without the white space around it
}

// Object is what [Scan] found. It refers to the document and is good for as
// long as the document is not changed; it may be used again for another one.
type Object struct {
	Members []Member // one for each field, in the order of the set; zero when absent
	End     int      // offset of the closing brace

	doc    []byte
	fields *Fields
}

// Has tells whether the object has the field.
func (o *Object) Has(field int) bool { return o.Members[field].Value.End > 0 }

// Value returns the bytes of a field's value, nil when the field is absent.
func (o *Object) Value(field int) []byte {
	at := o.Members[field].Value
	if at.End == 0 {
		return nil
	}
	return o.doc[at.Start:at.End:at.End]
}

// Scan checks the whole of doc and finds the members that fields names.
//
// The document must be one JSON object by RFC 8259, with nothing but white
// space around it, well-formed UTF-8 without a byte order mark, nested at most
// [MaxDepth] deep. Escaped halves of surrogate pairs are accepted. At the top
// level a field must not appear twice, nor in another case, by ASCII or by
// Unicode's simple folding. Names are compared as they read after unescaping.
// Members that are no fields may be anything, even duplicates.
//
// What was found is put in into, which allocates only when it has not yet
// served as many fields. The error is always an [*Error]; into is then of no use.
func Scan(doc []byte, fields *Fields, into *Object) error {
	into.doc, into.fields, into.End = doc, fields, 0
	into.Members = slices.Grow(into.Members[:0], len(fields.names))[:len(fields.names)]
	clear(into.Members)

	i := space(doc, 0)
	if at(doc, i) != '{' {
		return errorAt(doc, i, NotObject)
	}
	i, more := enter(doc, i, '}')
	for more {
		var bad Reason
		m := Member{Name: Span{Start: i}}
		if m.Name.End, i, bad = name(doc, i); bad != ok {
			return errorAt(doc, i, bad)
		}
		m.Value.Start = space(doc, i)
		if m.Value.End, bad = value(doc, m.Value.Start, 1); bad != ok {
			return errorAt(doc, m.Value.End, bad)
		}
		if err := into.keep(m); err != nil {
			return err
		}
		if i, more, bad = next(doc, m.Value.End, '}'); bad != ok {
			return errorAt(doc, i, bad)
		}
	}
	into.End = i
	if i = space(doc, i+1); i < len(doc) {
		return errorAt(doc, i, Syntax)
	}
	return nil
}

// keep puts m in its place if it is a field.
func (o *Object) keep(m Member) error {
	written := o.doc[m.Name.Start+1 : m.Name.End-1]
	field, exact := o.fields.find(written)
	switch {
	case field < 0:
		return nil
	case !exact:
		return &Error{Offset: m.Name.Start, Reason: Case, Name: o.fields.names[field], Found: string(written)}
	case o.Has(field):
		return &Error{Offset: m.Name.Start, Reason: Duplicate, Name: o.fields.names[field]}
	}
	o.Members[field] = m
	return nil
}
