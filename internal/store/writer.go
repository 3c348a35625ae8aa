package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// errLocked is the failure of a write that is not tried.
var errLocked = errors.New("store: another process has locked the database")

const (
	// busyTimeout is how long a write waits for another process.
	busyTimeout = 5 * time.Second
	// lockedTime is how long nothing is written after a write that waited in vain.
	// All that queued behind it fail with it: they have waited, too.
	lockedTime = time.Second
	// suspectTime is how long the database counts as locked when nobody has
	// written since.
	suspectTime = 15 * time.Second
)

// writer is where changes go. When another process has SQLite's file locked,
// each of those that queue for the one connection would wait anew.
type writer struct {
	*sql.DB
	locked atomic.Int64 // when a write last waited in vain, Unix ns; 0: the last one did not
}

// begin begins a transaction.
func (w *writer) begin(ctx context.Context, conn *sql.Conn) (tx *sql.Tx, err error) {
	err = w.try(func() error {
		tx, err = conn.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// ExecContext runs one statement.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	conn, err := w.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	err = w.try(func() error {
		result, err = conn.ExecContext(ctx, query, args...)
		return err
	})
	return result, err
}

// try does what takes the lock of the file, once it has the connection.
func (w *writer) try(do func() error) error {
	if w.lockedWithin(lockedTime) {
		return errLocked
	}
	err := do()
	switch {
	case err == nil:
		w.locked.Store(0)
	case isLock(err):
		w.locked.Store(time.Now().UnixNano())
	}
	return err
}

// isLock reports whether SQLite waited in vain for another process.
func isLock(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	code := failure.Code() & 0xff // the rest says more of it
	return code == sqlitelib.SQLITE_BUSY || code == sqlitelib.SQLITE_PROTOCOL
}

func (w *writer) lockedWithin(d time.Duration) bool {
	at := w.locked.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < d
}

// inTx runs f in one transaction.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	return s.inConnTx(ctx, func(_ *sql.Conn, tx *sql.Tx) error { return f(tx) })
}

// inConnTx is inTx for what speaks to the connection, too.
func (s *Store) inConnTx(ctx context.Context, f func(*sql.Conn, *sql.Tx) error) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer conn.Close()
	tx, err := s.write.begin(ctx, conn)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback() // does nothing after Commit
	if err := f(conn, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
