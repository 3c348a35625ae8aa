package connect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// recordText is a record as its file has it.
func recordText(r *record) (string, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return string(text) + "\n", err
}

// takeOut returns the text of a file without what was written to it. A file
// that is as it was left becomes what it was, byte by byte; of any other, each
// value is taken back by itself.
//
// What has Limen's name, or is an item of a list, goes as a whole. What
// somebody changed since is an error, unless it is to be kept: then what
// somebody built on stays, and so does a single value if the client was turned
// away from Limen. While it uses Limen, the value is about that and goes.
func (c *Client) takeOut(f *file, keep bool) (text string, kept []written, err error) {
	if f.record.File == sum(f.text) {
		return f.before, nil, nil
	}
	d, err := c.Format.read(c.begin(f.text))
	if err != nil {
		return "", nil, err
	}
	original, err := c.Format.read(c.begin(f.before))
	if err != nil {
		return "", nil, err
	}
	var state State
	c.uses(d.root(), &state)
	u := &undo{format: c.Format, text: c.begin(f.text), now: d, original: original, before: c.begin(f.before)}
	for i, w := range f.record.Written {
		unit := u.unit(w.Path)
		whole := len(unit) < len(w.Path)
		sibling := func(other written) bool { return u.unit(other.Path).id() == unit.id() }
		if whole && slices.ContainsFunc(f.record.Written[:i], sibling) {
			if slices.ContainsFunc(kept, sibling) {
				kept = append(kept, w)
			}
			continue // gone with the first of them
		}
		var said string
		if whole {
			said = u.added(unit, f.record.Written)
		} else {
			said = u.changed(w)
		}
		switch {
		case said != "" && !keep:
			return "", nil, fmt.Errorf("it was changed since, and an undo would lose that: %s", said)
		case said != "" && whole:
			kept = append(kept, w)
			continue
		case said != "" && state.URL == "":
			continue
		}
		if err := u.takeBack(unit); err != nil {
			return "", nil, err
		}
	}
	var paths []path
	for _, w := range f.record.Written {
		paths = append(paths, w.Path)
	}
	if !slices.Equal(others(c.begin(f.text), d, paths), others(u.text, u.now, paths)) {
		return "", nil, errEdit
	}
	return u.text, kept, nil
}

// undo takes values out of a text, one after the other.
type undo struct {
	format
	text     string
	now      document // the text, read
	before   string
	original document // what there was before, read
}

// unit is what goes away with a value: what has Limen's name or is an item of
// a list, unless it was there before; else the value itself.
func (u *undo) unit(p path) path {
	for i, step := range p {
		if _, _, ofList := item(step); (ofList || step == ours) && u.original.root().find(p[:i+1]) == nil {
			return p[:i+1]
		}
	}
	return p
}

// changed tells what became of a single value; "" when it is as it was
// written, gone, or again what it was before.
func (u *undo) changed(w written) string {
	n := u.now.root().find(w.Path)
	if n == nil || w.Text == "" || sum(n.text) == w.Text {
		return ""
	}
	if o := u.original.root().find(w.Path); o != nil && o.text == n.text {
		return ""
	}
	return fmt.Sprintf("%s is now %q", w.Path, n.text)
}

// added tells what is in a unit that was not written; "" when there is nothing.
func (u *undo) added(unit path, all []written) (said string) {
	n := u.now.root().find(unit)
	if n == nil {
		return ""
	}
	mine := map[*node]written{}
	for _, w := range all {
		if leaf := u.now.root().find(w.Path); leaf != nil {
			mine[leaf] = w
		}
	}
	n.leaves(func(leaf *node) {
		w, known := mine[leaf]
		switch {
		case said != "":
		case !known:
			said = strings.TrimPrefix(fmt.Sprintf("%s %q", leaf.name, leaf.text), " ")
			said = fmt.Sprintf("something was put into %s: %s", unit, said)
		case sum(leaf.text) != w.Text:
			said = u.changed(w)
		}
	})
	if said == "" && n.remarks {
		said = unit.String() + " has a comment"
	}
	return said
}

// takeBack makes the text say at a path what it said before, or nothing. With
// the last value in it a table goes that was not there before.
func (u *undo) takeBack(p path) error {
	if u.now.root().find(p) == nil {
		return nil
	}
	if o := u.original.root().find(p); o != nil {
		return u.take(u.now.set(p, value{text: u.before[o.start:o.end], raw: true}))
	}
	if err := u.take(u.now.remove(p)); err != nil {
		return err
	}
	for p = p[:len(p)-1]; len(p) > 0; p = p[:len(p)-1] {
		n := u.now.root().find(p)
		if n == nil {
			continue
		}
		if len(n.items) > 0 || n.remarks || n.kind == scalar && n.text != "" || u.original.root().find(p) != nil {
			return nil
		}
		if err := u.take(u.now.remove(p)); err != nil {
			return err
		}
	}
	return nil
}

// take goes on with a text that was edited.
func (u *undo) take(text string, err error) error {
	if err != nil {
		return err
	}
	u.text = text
	u.now, err = u.read(text)
	return err
}
