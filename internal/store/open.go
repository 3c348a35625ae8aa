// Package store keeps what must outlive a restart: keys, settings, the record
// of calls, the last good model lists, responses and conversations, whose
// bodies it cannot read. SQL is written out, each type beside its queries; the
// same text serves SQLite and Postgres. It knows nothing of HTTP, and is asked
// on the path of a call only when the call goes on from something stored, or
// is to be stored.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"modernc.org/sqlite"
)

// ErrNotFound is the miss of a query for one object.
var ErrNotFound = errors.New("store: not found")

// ErrConflict says that somebody else was first.
var ErrConflict = errors.New("store: conflict")

// Store is a database. Writes go through one connection on SQLite, so that
// they queue in Go and meet a busy file only when another process has it.
type Store struct {
	read     *sql.DB
	write    *writer
	postgres bool
	group    *group // of SQLite
	tags     *tagWatch
}

// FileName is the SQLite database within the data directory.
const FileName = "limen.db"

// Open opens the database and brings its schema up to date: url is a
// postgres:// URL, or empty for SQLite in dir.
func Open(ctx context.Context, dir, url string) (*Store, error) {
	var (
		s   *Store
		err error
	)
	switch {
	case url == "":
		s, err = openSQLite(filepath.Join(dir, FileName))
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		s = openPostgres(url)
	default:
		return nil, errors.New("store: the database URL must begin with postgres://; leave it out for SQLite in the data directory")
	}
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close waits for running queries and closes the database.
func (s *Store) Close() error {
	if s.postgres {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// Ping reports whether the database answers, and took what was last written.
func (s *Store) Ping(ctx context.Context) error {
	if s.write.lockedWithin(suspectTime) {
		return errLocked
	}
	return s.read.PingContext(ctx)
}

func openSQLite(path string) (*Store, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	// FULL: a commit survives a power loss. One connection writes, BEGIN
	// IMMEDIATE, so that no transaction fails half way on a lock.
	pragmas := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}}
	pragmas.Set("_txlock", "immediate")
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
	opened, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	write := sql.OpenDB(connector{opened})
	write.SetMaxOpenConns(1)
	if err := write.Ping(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot open %s: %w (restore it from a backup, or move it away to start anew)", path, err), write.Close())
	}
	read := sql.OpenDB(connector{opened})
	read.SetMaxOpenConns(max(2, runtime.NumCPU()))
	read.SetMaxIdleConns(2)
	return &Store{read: read, write: &writer{DB: write}, group: newGroup(), tags: newTagWatch()}, nil
}

// checkFile creates a new database file that only its owner can read, and
// refuses one that is not a database: it is never replaced.
func checkFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer f.Close()
	var header [16]byte
	n, _ := f.Read(header[:])
	if n > 0 && string(header[:n]) != "SQLite format 3\x00"[:n] {
		return fmt.Errorf("store: %s is not a database (restore it from a backup, or move it away to start anew)", path)
	}
	return nil
}

func openPostgres(url string) *Store {
	db := sql.OpenDB(connector{postgres{url}})
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(4)
	return &Store{read: db, write: &writer{DB: db}, postgres: true, tags: newTagWatch()}
}
