package store

import (
	"context"
	"database/sql"
	"fmt"
)

// User is a person who may use the admin API.
type User struct {
	ID      string
	Name    string // no other user has it
	Role    string
	TeamID  string // "" is none
	Hash    string // of the password
	Created int64  // Unix ms
}

const userColumns = "id, name, role, team, hash, created_ms"

// CreateUser stores a new user. It returns ErrConflict where another has the
// name.
func (s *Store) CreateUser(ctx context.Context, u *User) error {
	return s.insertNamed(ctx, "INSERT INTO users ("+userColumns+") VALUES ($1,$2,$3,$4,$5,$6) ON CONFLICT DO NOTHING", u.ID, u.Name, u.Role, u.TeamID, u.Hash, u.Created)
}

// User returns the user with an ID or a name, or ErrNotFound.
func (s *Store) User(ctx context.Context, ref string) (*User, error) {
	found, err := s.users(ctx, " WHERE id = $1 OR name = $1", ref)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// Users returns all users by their names.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	return s.users(ctx, " ORDER BY name")
}

func (s *Store) users(ctx context.Context, which string, args ...any) ([]User, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+userColumns+" FROM users"+which, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var found []User
	for rows.Next() {
		var u User
		if err := rows.Scan(&u.ID, &u.Name, &u.Role, &u.TeamID, &u.Hash, &u.Created); err != nil {
			return nil, fmt.Errorf("store: user row: %w", err)
		}
		found = append(found, u)
	}
	return found, rows.Err()
}

// UpdateUser writes what a user may do and the password. With another password
// the sessions end. It returns ErrNotFound where there is no such user.
func (s *Store) UpdateUser(ctx context.Context, u *User) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE id = $1 AND hash <> $2)", u.ID, u.Hash)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		result, err := tx.ExecContext(ctx, "UPDATE users SET role = $1, team = $2, hash = $3 WHERE id = $4", u.Role, u.TeamID, u.Hash, u.ID)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return metRow(result)
	})
}

// DeleteUser removes a user and ends the sessions. It returns ErrNotFound where
// there is no such user.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, table := range []string{"sessions", "last_logins"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE user_id = $1", id); err != nil {
				return fmt.Errorf("store: %w", err)
			}
		}
		result, err := tx.ExecContext(ctx, "DELETE FROM users WHERE id = $1", id)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return metRow(result)
	})
}
