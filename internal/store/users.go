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
	Hash    string // of the password; "" without one
	Created int64  // Unix ms

	Via     string // ViaPassword or ViaOIDC
	Issuer  string // with Subject, who it is at a provider; "" while nobody is
	Subject string
	Mapped  bool // role and team are those that the provider's groups give
}

// How users log in.
const (
	ViaPassword = "password"
	ViaOIDC     = "oidc"
)

const userColumns = "id, name, role, team, hash, created_ms, via, issuer, subject, mapped"

// CreateUser stores a new user. It returns ErrConflict where another has the
// name, or is the same at the provider.
func (s *Store) CreateUser(ctx context.Context, u *User) error {
	return s.insertNamed(ctx, "INSERT INTO users ("+userColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10) ON CONFLICT DO NOTHING",
		u.ID, u.Name, u.Role, u.TeamID, u.Hash, u.Created, u.Via, u.Issuer, u.Subject, u.Mapped)
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

// UserOf returns who somebody at a provider is, or ErrNotFound.
func (s *Store) UserOf(ctx context.Context, issuer, subject string) (*User, error) {
	found, err := s.users(ctx, " WHERE issuer = $1 AND subject = $2 AND subject <> ''", issuer, subject)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// BindUser says who a user is at a provider, once: it returns ErrConflict where
// that was said already, or of another user.
func (s *Store) BindUser(ctx context.Context, id, issuer, subject string) error {
	return s.insertNamed(ctx, "UPDATE users SET issuer = $2, subject = $3 WHERE id = $1 AND via = 'oidc' AND subject = ''"+
		" AND NOT EXISTS (SELECT 1 FROM users WHERE issuer = $2 AND subject = $3)", id, issuer, subject)
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
		if err := rows.Scan(&u.ID, &u.Name, &u.Role, &u.TeamID, &u.Hash, &u.Created, &u.Via, &u.Issuer, &u.Subject, &u.Mapped); err != nil {
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
		result, err := tx.ExecContext(ctx, "UPDATE users SET role = $1, team = $2, hash = $3, mapped = $4 WHERE id = $5", u.Role, u.TeamID, u.Hash, u.Mapped, u.ID)
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
