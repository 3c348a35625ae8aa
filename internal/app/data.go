package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/ledger"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/state"
	"github.com/limen-gateway/limen/internal/store"
)

// ErrBusy is a data directory that another process has open.
var ErrBusy = errors.New("another limen has this data directory open")

// Data is an open data directory: what outlives the process.
type Data struct {
	Store     *store.Store
	Books     *budget.Books // of what keys and teams may spend
	Keys      *keys.Keyring
	Admin     *keys.Admin
	Operators *keys.Operators
	Ledger    *ledger.Ledger
	Seal      seal.Key // of what clients carry from turn to turn
	SignOn    []byte   // the secret of what browsers keep while somebody logs in
	State     *state.Keeper
	Documents *document.Keeper // the configuration, where no file has it

	dir  string
	lock *os.File
}

// OpenData opens a data directory, and makes it when it is not there. One
// process at a time has it open. databaseURL is empty for SQLite.
func OpenData(ctx context.Context, dir, databaseURL string, log *slog.Logger) (d *Data, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data directory: %w", err)
	}
	d = &Data{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close(ctx))
		}
	}()
	if d.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return d, fmt.Errorf("cannot use the data directory: %w", err)
	}
	if err := lockFile(d.lock); err != nil {
		return d, fmt.Errorf("%w: %s", ErrBusy, dir)
	}
	if d.Store, err = store.Open(ctx, dir, databaseURL); err != nil {
		return d, err
	}
	if err = d.openBooks(ctx, databaseURL == "", log); err != nil {
		return d, err
	}
	secret, err := d.Store.InitSetting(ctx, store.SettingSealSecret, hex.EncodeToString(randomBytes(32)))
	if err != nil {
		return d, err
	}
	d.Seal, d.SignOn = seal.NewKey([]byte(secret)), []byte(secret)
	key, apart, err := d.stateKey(ctx, databaseURL)
	if err != nil {
		return d, err
	}
	if d.Documents, err = document.New(d.Store, key, apart, ConfigOptions()); err != nil {
		return d, err
	}
	if d.State, err = state.New(d.Store, key, databaseURL == ""); err != nil {
		return d, err
	}
	d.Admin = keys.NewAdmin(d.Store)
	d.Operators = keys.NewOperators(d.Store, d.Admin)
	d.Keys, err = keys.Open(ctx, d.Store, d.Books, log)
	return d, err
}

// nodeName is the file with the name of the data directory, by which what its
// former processes had leased of budgets is found.
const nodeName = "node"

// openBooks opens the books and the journal. What former processes left in the
// journal is booked before anything else is spent.
func (d *Data) openBooks(ctx context.Context, alone bool, log *slog.Logger) error {
	path := filepath.Join(d.dir, nodeName)
	node, err := initFile(path, rand.Text())
	if err != nil {
		return fmt.Errorf("cannot name the data directory: %w", err)
	}
	if len(node) != len(rand.Text()) || strings.Trim(node, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return fmt.Errorf("the name of the data directory in %s is damaged; remove that file for a new one", path)
	}
	d.Books = budget.NewBooks(d.Store, node, alone, log)
	if err := d.Books.Start(ctx); err != nil {
		return err
	}
	if d.Ledger, err = ledger.Open(d.dir, d.Books, log); err != nil {
		return err
	}
	if err := d.Ledger.Drain(ctx); err != nil {
		log.Error("what the last process left in the journal cannot be stored yet; it waits there", "error", err)
	}
	return nil
}

// stateKeyName is the file with the key of what is kept, within the data
// directory; stateKeyEnv is the variable that may hold it instead.
const (
	stateKeyName = "state.key"
	stateKeyEnv  = "LIMEN_STATE_KEY"
)

// stateKey is the key that closes kept responses and secrets. It lies beside the database,
// not in it: a copy of that alone tells nothing. Replicas share theirs by the
// environment, or else by the database; then it is not apart.
func (d *Data) stateKey(ctx context.Context, databaseURL string) (key []byte, apart bool, err error) {
	text := os.Getenv(stateKeyEnv)
	apart = text != "" || databaseURL == ""
	if text == "" {
		made := hex.EncodeToString(randomBytes(seal.KeySize))
		if databaseURL != "" {
			text, err = d.Store.InitSetting(ctx, store.SettingStateKey, made)
		} else {
			text, err = initFile(filepath.Join(d.dir, stateKeyName), made)
		}
		if err != nil {
			return nil, false, fmt.Errorf("cannot keep the key of stored responses: %w", err)
		}
	}
	key, err = hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != seal.KeySize {
		return nil, false, fmt.Errorf("the key of stored responses (%s or the file %s) must have %d hexadecimal digits", stateKeyEnv, stateKeyName, 2*seal.KeySize)
	}
	return key, apart, nil
}

// initFile writes a file that only its owner can read, unless it is there, and
// returns what is in it. A crash leaves none that is cut.
func initFile(path, content string) (string, error) {
	old, err := os.ReadFile(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(old), err
	}
	whole := path + ".new"
	if err := os.WriteFile(whole, []byte(content), 0o600); err != nil {
		return "", err
	}
	return content, os.Rename(whole, path)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

// Close carries the usage that is left to the store and closes everything.
func (d *Data) Close(ctx context.Context) error {
	var errs []error
	if d.Ledger != nil {
		errs = append(errs, d.Ledger.Close(ctx))
	}
	if d.Books != nil {
		errs = append(errs, d.Books.Close(ctx))
	}
	if d.Store != nil {
		errs = append(errs, d.Store.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// The admin API also listens on a socket in the data directory: who can open
// the directory may do everything anyway. A path may be too long for a socket;
// then it lies elsewhere, and a file says where.
const (
	socketName  = "admin.sock"
	addressName = "admin.addr"
	maxSocket   = 100 // bytes of a path, on all systems
)

// listenSocket listens on the socket of an open data directory, and returns
// what removes it.
func (d *Data) listenSocket() (net.Listener, func(), error) {
	path, err := filepath.Abs(filepath.Join(d.dir, socketName))
	if err != nil {
		return nil, nil, err
	}
	remove := func() {}
	if len(path) > maxSocket {
		dir, err := os.MkdirTemp("", "limen-")
		if err != nil {
			return nil, nil, err
		}
		path = filepath.Join(dir, socketName)
		remove = func() { os.RemoveAll(dir) }
	}
	os.Remove(path) // of a process that was killed; the lock says that it is gone
	listener, err := net.Listen("unix", path)
	if err != nil {
		remove()
		return nil, nil, err
	}
	address := filepath.Join(d.dir, addressName)
	err = errors.Join(os.Chmod(path, 0o600), os.WriteFile(address, []byte(path), 0o600))
	if err != nil {
		listener.Close()
		remove()
		return nil, nil, err
	}
	return listener, func() { os.Remove(address); remove() }, nil
}

// DialSocket connects to the gateway that has a data directory open.
func DialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, err := os.ReadFile(filepath.Join(dir, addressName))
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", string(path))
}
