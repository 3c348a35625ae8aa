// Package document keeps the configuration in the store, where no file has it:
// its versions, and the secrets that it refers to. It says what is good and what
// is not, and knows nothing of what becomes of it in a gateway.
package document

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/store"
)

// Name is what errors call the stored document.
const Name = "configuration"

// Keeper keeps the document of a store.
type Keeper struct {
	store *store.Store
	box   seal.Box
	apart bool // the key is not in the database
	opt   config.Options

	mu   sync.Mutex
	last config.Source // that was read
	read bool
}

// New makes a keeper. What closes the secrets is derived from key; apart says
// that it lies beside the database, not in it.
func New(st *store.Store, key []byte, apart bool, opt config.Options) (*Keeper, error) {
	own, err := hkdf.Key(sha256.New, key, nil, "limen: secrets of the configuration", seal.KeySize)
	if err != nil {
		return nil, err
	}
	box, err := seal.NewBox(own)
	return &Keeper{store: st, box: box, apart: apart, opt: opt}, err
}

// patience bounds a look at the store that nobody else bounds.
const patience = 5 * time.Second

// Options are the world around a document that can refer to secrets. coming are
// secrets that are not stored yet.
func (k *Keeper) Options(stored bool, coming map[string]string) config.Options {
	opt := k.opt
	opt.Stored = stored
	opt.Secret = func(name string) (string, error) {
		if value, ok := coming[name]; ok {
			return value, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return k.secret(ctx, name)
	}
	return opt
}

// Read reads the newest version, which may be none: an empty document.
func (k *Keeper) Read() (config.Source, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	revision, err := k.store.ConfigRevision(ctx)
	if err == nil && k.read && revision == k.last.Revision {
		return k.last, nil
	}
	src := config.Source{Name: Name, Revision: revision}
	if err == nil {
		src.Data, err = k.newest(ctx)
	}
	if err != nil {
		return config.Source{}, fmt.Errorf("the configuration cannot be read from the store: %w", err)
	}
	k.last, k.read = src, true
	return src, nil
}

func (k *Keeper) newest(ctx context.Context) ([]byte, error) {
	v, err := k.Current(ctx)
	return []byte(v.Text), err
}

// Revision counts the changes to the document and its secrets, as far as the
// store can be asked.
func (k *Keeper) Revision() int64 {
	src, err := k.Read()
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.last.Revision
	}
	return src.Revision
}

// Current is the newest version; where there is none, it is version 0.
func (k *Keeper) Current(ctx context.Context) (*store.ConfigVersion, error) {
	v, err := k.store.Config(ctx, 0)
	if errors.Is(err, store.ErrNotFound) {
		return &store.ConfigVersion{}, nil
	}
	if err != nil {
		return &store.ConfigVersion{}, err
	}
	return v, nil
}

// Version returns a version with its text.
func (k *Keeper) Version(ctx context.Context, version int64) (*store.ConfigVersion, error) {
	if version > 0 {
		v, err := k.store.Config(ctx, version)
		if !errors.Is(err, store.ErrNotFound) {
			return v, err
		}
	}
	return nil, llm.Errorf(llm.NotFound, "There is no version %d of the configuration.", version)
}

// Versions returns the newest versions without their texts; before is one to go
// on from, or 0.
func (k *Keeper) Versions(ctx context.Context, before int64, limit int) ([]store.ConfigVersion, error) {
	return k.store.ConfigVersions(ctx, before, limit)
}

// Parse reads a text as the stored document.
func (k *Keeper) Parse(text string, coming map[string]string) (*config.Config, error) {
	return config.Parse(config.Source{Name: Name, Data: []byte(text)}, k.Options(true, coming))
}

// Bad is the refusal of a document. What is wrong with it is in the chain of its
// errors.
func Bad(err error) error {
	return &llm.Error{Kind: llm.Invalid, Code: "bad_configuration", Message: "The configuration was not taken; the last good one stays in force.\n" + err.Error(), Err: err}
}

// Conflict is the refusal of what does not stand on the newest version.
func Conflict(newest int64) error {
	e := llm.Errorf(llm.Conflict, "Somebody else changed the configuration: its newest version is %d. Look at that and try again.", newest)
	e.Code = "version_conflict"
	return e
}

// Change is a version to be.
type Change struct {
	Text    string
	Base    int64 // the version that it stands on
	By      string
	Note    string
	Secrets map[string]string // that come with it
}

// Add writes the next version, which was found good.
func (k *Keeper) Add(ctx context.Context, c *Change) (int64, error) {
	var closed []store.ConfigSecret
	for name, value := range c.Secrets {
		s, err := k.close(name, value)
		if err != nil {
			return 0, err
		}
		closed = append(closed, *s)
	}
	v := &store.ConfigVersion{At: time.Now().UnixMilli(), By: c.By, Note: c.Note, Text: c.Text}
	err := k.store.AddConfig(ctx, v, c.Base, closed...)
	if errors.Is(err, store.ErrConflict) {
		now, err := k.Current(ctx)
		if err != nil {
			return 0, err
		}
		return 0, Conflict(now.Version)
	}
	return v.Version, err
}

// Secret is what a document refers to as ${secret:NAME}. Its value is told to
// nobody.
type Secret struct {
	Name    string
	Updated time.Time
}

// Secrets are all there are, by name.
func (k *Keeper) Secrets(ctx context.Context) ([]Secret, error) {
	rows, err := k.store.ConfigSecrets(ctx)
	var list []Secret
	for _, row := range rows {
		list = append(list, Secret{row.Name, time.UnixMilli(row.Updated).UTC()})
	}
	return list, err
}

// SetSecret keeps a secret.
func (k *Keeper) SetSecret(ctx context.Context, name, value string) error {
	s, err := k.close(name, value)
	if err != nil {
		return err
	}
	return k.store.SetConfigSecret(ctx, s)
}

// DeleteSecret forgets a secret that the newest version, base, does not need.
func (k *Keeper) DeleteSecret(ctx context.Context, name string, base int64) error {
	err := k.store.DeleteConfigSecret(ctx, name, base)
	if errors.Is(err, store.ErrNotFound) {
		return llm.Errorf(llm.NotFound, "There is no secret %q.", name)
	}
	return err
}

// maxSecret bounds a secret, in bytes.
const maxSecret = 64 << 10

// close closes a secret, bound to its name.
func (k *Keeper) close(name, value string) (*store.ConfigSecret, error) {
	switch {
	case !config.ValidSecretName(name):
		return nil, llm.InvalidParam("invalid_value", "name", "The name of a secret has letters, digits, dots, dashes and underscores, at most 80.")
	case strings.TrimSpace(value) == "" || len(value) > maxSecret:
		return nil, llm.InvalidParam("invalid_value", "value", "A secret has at least one character and at most %d bytes.", maxSecret)
	case !k.apart:
		e := llm.Errorf(llm.Conflict, "Secrets need LIMEN_STATE_KEY: without it the key that closes them would lie beside them in the database. "+
			"Give it to all gateways: 64 hexadecimal digits. To keep stored responses readable, take those of the setting state_key in the database, and remove that. "+
			"Until then a document can refer to variables, as ${OPENAI_API_KEY}.")
		e.Code = "no_state_key"
		return nil, e
	}
	sealed := base64.StdEncoding.EncodeToString(k.box.Close(name, []byte(value)))
	return &store.ConfigSecret{Name: name, Sealed: sealed, Updated: time.Now().UnixMilli()}, nil
}

// secret opens a secret. Its error is for people.
func (k *Keeper) secret(ctx context.Context, name string) (string, error) {
	rows, err := k.store.ConfigSecrets(ctx)
	if err != nil {
		return "", fmt.Errorf("the secret %s cannot be read: the store is away", name)
	}
	i := slices.IndexFunc(rows, func(s store.ConfigSecret) bool { return s.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no secret %s", name)
	}
	closed, err := base64.StdEncoding.DecodeString(rows[i].Sealed)
	if err == nil {
		closed, err = k.box.Open(nil, name, closed)
	}
	if err != nil {
		return "", fmt.Errorf("the secret %s cannot be opened: it was closed with another key", name)
	}
	return string(closed), nil
}

// Found is a provider that is in force without being configured.
type Found struct {
	Name  string
	Value []byte // as an object of JSON
}

// WithFound is a text that has the providers found, unless it has any itself:
// once there is one, no others are looked for.
func WithFound(text string, found []Found) (string, error) {
	d, err := config.ReadDocument(config.Source{Name: Name, Data: []byte(text)})
	if err != nil || d.Has("providers") {
		return text, err
	}
	for _, f := range found {
		if text, err = d.Set("providers", f.Name, f.Value); err != nil {
			return "", err
		}
		if d, err = config.ReadDocument(config.Source{Name: Name, Data: []byte(text)}); err != nil {
			return "", err
		}
	}
	return text, nil
}
