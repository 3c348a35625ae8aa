package connect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is what is to become of a client's file.
type Change struct {
	Path    string
	Before  string
	After   string
	Made    bool // there is no file yet
	Removes bool // there is to be none
	Mode    os.FileMode
	Notes   []string // what to know of it, as sentences

	backup string
	crlf   bool
	record *record // nil takes what stands beside the file away
}

// Refusal says why a file is left as it is, and what a person can put into it.
type Refusal struct {
	Path    string
	Why     error
	Snippet string
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s is left as it is: %v", r.Path, r.Why)
	if r.Snippet != "" {
		text += ".\nPut this into it by hand:\n\n" + r.Snippet
	}
	return text
}

func (r *Refusal) Unwrap() error { return r.Why }

// Connect says what is to be written so that the client uses the target.
func (c *Client) Connect(m Machine, t Target) (*Change, error) {
	f, err := c.open(m)
	if err != nil {
		return nil, c.refuse(f, err, t)
	}
	if c.Hides != "" && !f.exists {
		hidden := filepath.Join(filepath.Dir(f.path), c.Hides)
		if _, err := os.Stat(hidden); err == nil {
			return nil, c.refuse(f, fmt.Errorf("%s leaves %s unread once it is there", c.Title, hidden), t)
		}
	}
	// What was written before goes first, so that nothing of it stays that is
	// not written again. Where somebody built on it, it stays.
	text, before, kept := f.text, f.text, []written(nil)
	made := !f.exists
	if f.record != nil {
		if text, kept, err = c.takeOut(f, true); err != nil {
			return nil, c.refuse(f, err, t)
		}
		before, made = text, f.record.Made
		if len(kept) > 0 {
			before = f.before
		}
	}
	list, assumed := c.assignments(t)
	after, err := c.write(c.begin(text), list)
	if err != nil {
		return nil, c.refuse(f, err, t)
	}
	r := &record{Made: made, Written: kept, File: sum(after)}
	if len(kept) > 0 {
		r.File = ""
	}
	d, err := c.Format.read(after)
	if err != nil {
		return nil, c.refuse(f, err, t)
	}
	for _, a := range list {
		r.Written = slices.DeleteFunc(r.Written, func(w written) bool { return w.Path.id() == a.path.id() })
		w := written{Path: a.path}
		if !a.time {
			w.Text = sum(d.root().find(a.path).text)
		}
		r.Written = append(r.Written, w)
	}
	return &Change{
		Path: f.path, Before: f.text, After: after, Made: !f.exists, Mode: f.mode,
		Notes: c.notes(f, d.root(), t, assumed), backup: before, crlf: f.crlf, record: r,
	}, nil
}

func (c *Client) refuse(f *file, why error, t Target) error {
	list, _ := c.assignments(t)
	snippet, _ := c.write(c.Format.blank, list) // of what a person typed in an option, not all may be sayable
	return &Refusal{f.path, why, snippet}
}

// notes are what a person should know of a file that was changed.
func (c *Client) notes(f *file, root *node, t Target, assumed []string) (notes []string) {
	for _, p := range c.Overrides {
		if root.find(p) != nil {
			notes = append(notes, fmt.Sprintf("%s is set in this file too, and may go before what is written here.", p))
		}
	}
	for _, limit := range assumed {
		notes = append(notes, fmt.Sprintf("The context of %s is not known; %s tokens are assumed.", t.Model, limit))
	}
	if c.Variable == "" && f.exists && f.mode&0o077 != 0 {
		notes = append(notes, fmt.Sprintf("The key is in the file, which others on this machine may read: chmod 600 %s", f.path))
	}
	return notes
}

// Undo says what is to be taken away so that the file is as it was before
// Connect, but for what was changed in it since.
func (c *Client) Undo(m Machine) (*Change, error) {
	f, err := c.open(m)
	if err != nil {
		return nil, &Refusal{Path: f.path, Why: err}
	}
	if f.record == nil {
		return nil, &Refusal{Path: f.path, Why: errors.New("nothing of 'limen connect' is recorded for it")}
	}
	change := &Change{Path: f.path, Before: f.text, Mode: f.mode, crlf: f.crlf}
	if change.After, _, err = c.takeOut(f, false); err != nil {
		return nil, &Refusal{Path: f.path, Why: err}
	}
	change.Removes = f.record.Made && c.bare(change.After)
	if change.Removes {
		change.After = ""
	}
	return change, nil
}

// bare tells whether nothing is in a text but what a new file begins with.
func (c *Client) bare(text string) bool {
	is, err := c.Format.read(c.begin(text))
	start, err2 := c.Format.read(c.begin(""))
	return err == nil && err2 == nil && slices.Equal(others(c.begin(text), is, nil), others(c.begin(""), start, nil))
}

// Same tells that nothing is to be done.
func (ch *Change) Same() bool {
	return ch.Before == ch.After && !ch.Removes && !ch.Made && ch.record != nil
}

// Apply does it. A file that is no longer as it was read is left as it is.
func (ch *Change) Apply() error {
	text, _, err := read(ch.Path)
	text, _ = lines(text)
	if ch.Made && !errors.Is(err, os.ErrNotExist) || !ch.Made && (err != nil || text != ch.Before) {
		return &Refusal{Path: ch.Path, Why: errors.New("it was changed in this moment")}
	}
	if ch.record == nil {
		return ch.restore()
	}
	if ch.record.Made {
		err = discard(ch.Path + backupSuffix) // of a file that is long gone
	} else {
		err = replace(ch.Path+backupSuffix, ch.ended(ch.backup), ch.Mode)
	}
	if err != nil {
		return err
	}
	record, err := recordText(ch.record)
	if err != nil {
		return err
	}
	if err := replace(ch.Path+recordSuffix, record, 0o600); err != nil {
		return err
	}
	return replace(ch.Path, ch.ended(ch.After), ch.Mode)
}

// ended is a text with lines that end as those of the file do.
func (ch *Change) ended(text string) string {
	if ch.crlf {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func (ch *Change) restore() error {
	var err error
	if ch.Removes {
		err = os.Remove(ch.Path)
	} else {
		err = replace(ch.Path, ch.ended(ch.After), ch.Mode)
	}
	if err != nil {
		return err
	}
	return errors.Join(discard(ch.Path+recordSuffix), discard(ch.Path+backupSuffix))
}

// Backup is the file that has what there was before; empty when there was none.
func (ch *Change) Backup() string {
	if ch.record == nil || ch.record.Made {
		return ""
	}
	return ch.Path + backupSuffix
}
