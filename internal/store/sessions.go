package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Session is somebody who is logged in. The secret itself is not stored.
type Session struct {
	ID      string
	Hash    string // SHA-256 of the whole cookie, hex
	UserID  string
	Address string // where they logged in from
	Agent   string // by which browser
	Created int64  // Unix ms
	Seen    int64  // Unix ms
}

const sessionColumns = "id, hash, user_id, address, agent, created_ms, seen_ms"

// AddSession stores a session, and forgets those that ended: those that began
// before a time in Unix ms, or were last seen before another.
func (s *Store) AddSession(ctx context.Context, n Session, begun, seen int64) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE created_ms <= $1 OR seen_ms <= $2", begun, seen); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO sessions ("+sessionColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7)", n.ID, n.Hash, n.UserID, n.Address, n.Agent, n.Created, n.Seen)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO last_logins (user_id, at_ms) VALUES ($1,$2) ON CONFLICT (user_id) DO UPDATE SET at_ms = excluded.at_ms", n.UserID, n.Created)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	})
}

// LastLogins are the times in Unix ms at which users logged in last, by their
// IDs.
func (s *Store) LastLogins(ctx context.Context) (map[string]int64, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT user_id, at_ms FROM last_logins")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	found := map[string]int64{}
	for rows.Next() {
		var (
			id string
			at int64
		)
		if err := rows.Scan(&id, &at); err != nil {
			return nil, fmt.Errorf("store: login row: %w", err)
		}
		found[id] = at
	}
	return found, rows.Err()
}

// Session returns the session with an ID, or ErrNotFound.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	found, err := s.sessions(ctx, " WHERE id = $1", id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Session{}, err
	}
	return found[0], nil
}

// Sessions returns all sessions, also those that ended and are not forgotten
// yet, the newest first.
func (s *Store) Sessions(ctx context.Context) ([]Session, error) {
	return s.sessions(ctx, " ORDER BY created_ms DESC, id")
}

func (s *Store) sessions(ctx context.Context, which string, args ...any) ([]Session, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+sessionColumns+" FROM sessions"+which, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var found []Session
	for rows.Next() {
		var n Session
		if err := rows.Scan(&n.ID, &n.Hash, &n.UserID, &n.Address, &n.Agent, &n.Created, &n.Seen); err != nil {
			return nil, fmt.Errorf("store: session row: %w", err)
		}
		found = append(found, n)
	}
	return found, rows.Err()
}

// SeeSession notes that a session was used at a time in Unix ms.
func (s *Store) SeeSession(ctx context.Context, id string, at int64) error {
	_, err := s.write.ExecContext(ctx, "UPDATE sessions SET seen_ms = $1 WHERE id = $2 AND seen_ms < $1", at, id)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// DeleteSession ends a session. It returns ErrNotFound where there is none.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	return s.deleteOne(ctx, "DELETE FROM sessions WHERE id = $1", id)
}

// DeleteSessionsOf ends all sessions of a user.
func (s *Store) DeleteSessionsOf(ctx context.Context, userID string) error {
	if err := s.deleteOne(ctx, "DELETE FROM sessions WHERE user_id = $1", userID); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// deleteOne runs a statement, and returns ErrNotFound when it met no row.
func (s *Store) deleteOne(ctx context.Context, query, id string) error {
	result, err := s.write.ExecContext(ctx, query, id)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return metRow(result)
}

// metRow returns ErrNotFound where a statement met no row.
func metRow(result sql.Result) error {
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(ErrNotFound, err)
	}
	return nil
}
