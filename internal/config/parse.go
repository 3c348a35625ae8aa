package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// Source is the text of a document and the name that errors give it.
type Source struct {
	Name string
	Data []byte
	// Revision counts the changes to what the text stands with, such as the
	// secrets that it refers to.
	Revision int64
}

// Options is the world around a document. The zero value is the process's own environment and files, no vendors and
// no further providers.
type Options struct {
	Getenv    func(string) (string, bool)  // nil: os.LookupEnv
	ReadFile  func(string) ([]byte, error) // for the document and ${file:…}; nil: the file system
	Secret    func(string) (string, error) // for ${secret:…}; nil: every one is there, and its value stays unknown
	Providers []string                     // names that targets may use beside the configured providers
	Vendors   []string                     // names of vendors whose base URL is known
	Responses []string                     // those of them that serve Responses
	// Keeps says why a provider of a vendor, with what its speaks says, cannot
	// keep responses itself; "" is that it can. Nil: all can.
	Keeps func(vendor string, speaks []string) string
	// Stored is a document of the store: secrets are references there, and what
	// must be known before the store is open cannot be said in it.
	Stored bool
}

func (o Options) resolver() resolver {
	r := resolver{getenv: o.Getenv, readFile: o.ReadFile, secret: o.Secret}
	if r.getenv == nil {
		r.getenv = os.LookupEnv
	}
	if r.readFile == nil {
		r.readFile = readFile
	}
	if r.secret == nil {
		r.secret = func(string) (string, error) { return unknownSecret, nil }
	}
	return r
}

// unknownSecret stands for a secret where nobody can know its value.
const unknownSecret = "unknown-secret"

// readFile reads at most one byte more than any file may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDocument+1))
}

// Parse reads a document. Its error is an *Errors with everything that is wrong.
func Parse(src Source, opt Options) (*Config, error) {
	text := newSource(src)
	if err := text.check(); err != nil {
		return nil, err
	}
	root, err := text.parse()
	if err != nil {
		return nil, err
	}
	c := Default()
	if root == nil {
		return c, nil
	}
	d := newDecoder(text, opt)
	d.decode(root, reflect.ValueOf(c).Elem(), field{})
	d.validate(c, opt)
	if len(d.problems) > 0 {
		return nil, d.errors(d.more, d.problems...)
	}
	return c, nil
}

func newDecoder(text *source, opt Options) *decoder {
	return &decoder{
		source: text, resolver: opt.resolver(), stored: opt.Stored,
		at: map[any]*yaml.Node{}, flawed: map[any]bool{}, expanded: map[*yaml.Node]bool{},
	}
}

// Load reads the document in a file. Its error is an *Errors, or says why the file cannot be read.
func Load(path string, opt Options) (*Config, error) {
	src, err := ReadFile(path, opt)
	if err != nil {
		return nil, err
	}
	return Parse(src, opt)
}

// ReadFile reads the text of the document in a file.
func ReadFile(path string, opt Options) (Source, error) {
	data, err := opt.resolver().readFile(path)
	if err != nil {
		return Source{}, unreadable(path, err)
	}
	return Source{Name: path, Data: data}, nil
}

func unreadable(path string, err error) error {
	return fmt.Errorf("cannot read the configuration %s: %w", path, cause(err))
}

// cause leaves out the path that errors of package os repeat.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Find says which document to use: the explicit one (--config), $LIMEN_CONFIG, ./limen.yaml,
// $XDG_CONFIG_HOME/limen/limen.yaml or /etc/limen/limen.yaml; ok is false when there is none.
// One that was asked for must exist: otherwise the error says so.
func Find(explicit string, getenv func(string) (string, bool)) (path string, ok bool, err error) {
	if explicit == "" {
		explicit, _ = getenv("LIMEN_CONFIG")
	}
	if explicit != "" {
		if err := readable(explicit); err != nil {
			return "", false, unreadable(explicit, err)
		}
		return explicit, true, nil
	}
	for _, path := range usualPlaces(getenv) {
		switch err := readable(path); {
		case err == nil:
			return path, true, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", false, unreadable(path, err)
		}
	}
	return "", false, nil
}

func usualPlaces(getenv func(string) (string, bool)) []string {
	places := []string{"limen.yaml"}
	home, _ := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(home) {
		// The XDG rules: a relative path is ignored, and ~/.config is meant when there is none.
		user, _ := getenv("HOME")
		home = filepath.Join(user, ".config")
	}
	if filepath.IsAbs(home) {
		places = append(places, filepath.Join(home, "limen", "limen.yaml"))
	}
	return append(places, "/etc/limen/limen.yaml")
}

// readable reports whether there is a file, as far as that can be told without opening it.
func readable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("it is a directory")
	}
	return err
}
