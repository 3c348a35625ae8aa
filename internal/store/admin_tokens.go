package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// AdminToken opens the admin API to a program. The secret itself is not stored.
type AdminToken struct {
	ID      string
	Name    string // no other token has it
	Hash    string // SHA-256 of the whole token, hex
	Scopes  []string
	By      string // who made it
	Created int64  // Unix ms
	Expires int64  // Unix ms; 0 is never
}

const adminTokenColumns = "id, name, hash, scopes, created_by, created_ms, expires_ms"

// CreateAdminToken stores a new token. It returns ErrConflict where another has
// its name.
func (s *Store) CreateAdminToken(ctx context.Context, t *AdminToken) error {
	return s.insertNamed(ctx, "INSERT INTO admin_tokens ("+adminTokenColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7) ON CONFLICT DO NOTHING",
		t.ID, t.Name, t.Hash, encodeList(t.Scopes), t.By, t.Created, t.Expires)
}

// insertNamed runs an INSERT that does nothing where a name is taken; then it
// returns ErrConflict.
func (s *Store) insertNamed(ctx context.Context, query string, args ...any) error {
	result, err := s.write.ExecContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(ErrConflict, err)
	}
	return nil
}

// AdminToken returns the token with an ID, or ErrNotFound.
func (s *Store) AdminToken(ctx context.Context, id string) (*AdminToken, error) {
	found, err := s.adminTokens(ctx, " WHERE id = $1", id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// AdminTokens returns all tokens by their names.
func (s *Store) AdminTokens(ctx context.Context) ([]AdminToken, error) {
	return s.adminTokens(ctx, " ORDER BY name")
}

func (s *Store) adminTokens(ctx context.Context, which string, args ...any) ([]AdminToken, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT "+adminTokenColumns+" FROM admin_tokens"+which, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var found []AdminToken
	for rows.Next() {
		t, err := scanAdminToken(rows)
		if err != nil {
			return nil, fmt.Errorf("store: token row: %w", err)
		}
		found = append(found, t)
	}
	return found, rows.Err()
}

func scanAdminToken(rows *sql.Rows) (t AdminToken, err error) {
	var scopes string
	if err := rows.Scan(&t.ID, &t.Name, &t.Hash, &scopes, &t.By, &t.Created, &t.Expires); err != nil {
		return t, err
	}
	return t, json.Unmarshal([]byte(scopes), &t.Scopes)
}

// DeleteAdminToken revokes a token. It returns ErrNotFound where there is none.
func (s *Store) DeleteAdminToken(ctx context.Context, id string) error {
	return s.deleteOne(ctx, "DELETE FROM admin_tokens WHERE id = $1", id)
}
