package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What stands beside a file that was changed: the file as it was before, and
// what was written.
const (
	backupSuffix = ".limen-backup"
	recordSuffix = ".limen-connect"
)

// maxFile bounds a file of settings.
const maxFile = 4 << 20

// file is a client's file of settings, as it was read.
type file struct {
	path   string // with links followed
	text   string // its lines end as the module's own do
	mode   fs.FileMode
	exists bool
	crlf   bool // they end in another way on the disk

	before string  // what it would be without Limen, as the backup has it
	record *record // nil when nothing was written, or all of it is gone
}

// record is what was written to a file. It holds hashes, since keys are among
// it.
type record struct {
	File    string    `json:"file"` // a hash of the whole
	Made    bool      `json:"made"` // there was no file
	Written []written `json:"written"`
}

type written struct {
	Path path   `json:"path"`
	Text string `json:"text,omitempty"` // a hash of the value; empty is that any other is as good
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// at is the path of a client's file.
func (c *Client) at(m Machine) string {
	var folder string
	for _, d := range c.Dirs {
		folder = filepath.Join(m.Home, filepath.FromSlash(d.Below))
		if d.Variable == "" {
			break
		}
		if base := m.Getenv(d.Variable); base != "" {
			folder = filepath.Join(base, filepath.FromSlash(d.Below))
			break
		}
	}
	for _, name := range c.Files {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return filepath.Join(folder, name)
		}
	}
	return filepath.Join(folder, c.Files[len(c.Files)-1])
}

// open reads a client's file and what stands beside it.
func (c *Client) open(m Machine) (*file, error) {
	f := &file{path: c.at(m), mode: 0o600}
	if followed, err := filepath.EvalSymlinks(f.path); err == nil {
		f.path = followed
	}
	var err error
	if f.text, f.mode, err = read(f.path); errors.Is(err, fs.ErrNotExist) {
		f.mode = 0o600
		return f, nil
	} else if err != nil {
		return f, err
	}
	f.exists = true
	f.text, f.crlf = lines(f.text)
	text, _, err := read(f.path + recordSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		f.record = &record{}
		err = json.Unmarshal([]byte(text), f.record)
	}
	if err == nil && !f.record.Made {
		text, _, err = read(f.path + backupSuffix)
		f.before, _ = lines(text)
	}
	if err != nil {
		return f, fmt.Errorf("what stands beside it of an earlier connect cannot be read: %w", err)
	}
	return f, nil
}

// lines makes all lines of a text end in a line feed, if all end in CR LF.
func lines(text string) (_ string, crlf bool) {
	n := strings.Count(text, "\r\n")
	if n == 0 || n < strings.Count(text, "\n") {
		return text, false
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// read reads a file that is not too large.
func read(name string) (text string, mode fs.FileMode, err error) {
	r, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is no file", name)
	}
	bytes, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(bytes) > maxFile {
		err = fmt.Errorf("%s has more than %d MiB", name, maxFile>>20)
	}
	return string(bytes), info.Mode().Perm(), err
}

// replace writes a file as a whole: whoever reads it finds the old text or the
// new one.
func replace(name, text string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	w, err := os.CreateTemp(filepath.Dir(name), ".limen-*")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	err = errors.Join(err, w.Chmod(mode), w.Sync(), w.Close())
	if err == nil {
		err = os.Rename(w.Name(), name)
	}
	if err != nil {
		os.Remove(w.Name())
	}
	return err
}

// discard removes a file that need not be there.
func discard(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
