package jsonedit

import (
	"cmp"
	"slices"
)

// Edit replaces the bytes at At by New. An empty At inserts.
type Edit struct {
	At  Span
	New []byte
}

// Splice appends to dst the document with the edits applied, in segments that
// follow each other, and returns their total length too. Segments alias doc
// and the edits' bytes: nothing is copied and nothing is modified, except
// that edits is put in order. Splice panics when two edits overlap.
func Splice(dst [][]byte, doc []byte, edits []Edit) (segments [][]byte, size int) {
	slices.SortStableFunc(edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.At.Start, b.At.Start), cmp.Compare(a.At.End, b.At.End))
	})
	from := 0
	for _, e := range edits {
		for _, b := range [...][]byte{doc[from:e.At.Start], e.New} {
			if len(b) > 0 {
				dst = append(dst, b)
				size += len(b)
			}
		}
		from = e.At.End
	}
	if rest := doc[from:]; len(rest) > 0 {
		dst = append(dst, rest)
		size += len(rest)
	}
	return dst, size
}

// Change is what shall become of one field of an object.
type Change struct {
	field  int
	value  []byte
	remove bool
}

// Set gives a field a value, which must be JSON. A field that the object has
// keeps its place; one that is absent is added at the end. An empty value
// changes nothing, so that a member is renamed by
//
//	Remove(from), Set(to, o.Value(from))
//
// whether the object has it or not.
func Set(field int, value []byte) Change { return Change{field: field, value: value} }

// Remove takes a field away, if the object has it.
func Remove(field int) Change { return Change{field: field, remove: true} }

// Edits appends to dst the edits that make the changes. It takes all changes at
// once, because where the commas go depends on all of them: what comes out is
// an object that passes [Scan] whatever the changes are, as long as the values
// set do. Of several changes to one field the last counts. The object itself
// stays as it is, so that edits for another attempt can be made from it.
func (o *Object) Edits(dst []Edit, changes ...Change) []Edit {
	kept := o.firstKept(changes)
	comma := kept < o.End
	for k, c := range changes {
		if last(changes, c.field) != k {
			continue
		}
		m := o.Members[c.field]
		switch {
		case c.remove && !o.Has(c.field), !c.remove && len(c.value) == 0:
		case c.remove && m.Name.Start < kept:
			dst = append(dst, Edit{At: Span{m.Name.Start, o.after(m)}})
		case c.remove:
			dst = append(dst, Edit{At: Span{o.before(m), m.Value.End}})
		case o.Has(c.field):
			dst = append(dst, Edit{At: m.Value, New: c.value})
		default:
			insert := o.fields.inserts[c.field]
			if !comma {
				insert = insert[1:]
			}
			comma = true
			end := Span{o.End, o.End}
			dst = append(dst, Edit{At: end, New: insert}, Edit{At: end, New: c.value})
		}
	}
	return dst
}

// firstKept returns the offset of the first member that is not removed, or of
// the closing brace. The removed members before it go with the comma that
// follows them, all others with the comma before them, so no two removals
// overlap, and no comma is left without a member on either side.
func (o *Object) firstKept(changes []Change) int {
	first, _ := enter(o.doc, space(o.doc, 0), '}')
	for k := 0; k < len(changes); k++ {
		c := changes[k]
		if c.remove && o.Has(c.field) && o.Members[c.field].Name.Start == first && last(changes, c.field) == k {
			first = o.after(o.Members[c.field])
			k = -1 // the next one may stand anywhere in the list
		}
	}
	return first
}

// last returns the position of the last change to the field.
func last(changes []Change, field int) int {
	k := len(changes) - 1
	for changes[k].field != field {
		k--
	}
	return k
}

// after returns the offset of the member after m, or of the closing brace.
func (o *Object) after(m Member) int {
	i, _, _ := next(o.doc, m.Value.End, '}')
	return i
}

// before returns the offset of the comma before m, which is not the first.
func (o *Object) before(m Member) int {
	i := m.Name.Start - 1
	for o.doc[i] != ',' {
		i--
	}
	return i
}

// Edited returns a copy of doc, which object was scanned from, with changes.
func Edited(doc []byte, object *Object, changes ...Change) []byte {
	segments, size := Splice(nil, doc, object.Edits(nil, changes...))
	out := make([]byte, 0, size)
	for _, s := range segments {
		out = append(out, s...)
	}
	return out
}
