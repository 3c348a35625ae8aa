package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Key is a client's API key as stored: the secret itself is not.
type Key struct {
	ID       string
	Name     string
	Owner    string
	Prefix   string // "limen_" or "sk-"
	Hash     string // SHA-256 of the whole key, hex
	OldHash  string // of the key that rotation replaced; "" when none
	OldUntil int64  // Unix ms until which the replaced key opens

	TeamID  string // that it belongs to; "" when to none
	Budgets string // JSON that the store does not read, as Limits; "" is none
	Limits  string

	Models     []string // patterns of visible models; none is all
	Operations []string // allowed operations; none is all
	Strict     bool     // calls that cannot be said as they are written are refused
	NoStore    bool     // no response of it is kept

	Created  int64 // Unix ms
	Expires  int64 // Unix ms; 0 is never
	Revoked  int64 // Unix ms; 0 is not revoked
	LastUsed int64 // Unix ms; 0 is never
}

const keyColumns = "id, name, owner, prefix, hash, old_hash, old_until_ms, models, operations, strict, no_store, created_ms, expires_ms, revoked_ms, last_used_ms, team, budgets, limits"

const selectKeys = "SELECT " + keyColumns + " FROM keys"

// ErrNoTeam is that of a key which would belong to a team that does not exist.
var ErrNoTeam = errors.New("store: no such team")

// Keys returns all keys, oldest first, and the revision that they stand at.
func (s *Store) Keys(ctx context.Context) ([]Key, int64, error) {
	revision, err := s.KeysRevision(ctx) // before the rows: a change in between is read again
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.read.QueryContext(ctx, selectKeys+" ORDER BY created_ms, id")
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	keys, err := scanKeys(rows)
	return keys, revision, err
}

// KeysRevision counts the changes to the keys and to the teams.
func (s *Store) KeysRevision(ctx context.Context) (int64, error) {
	return s.revision(ctx, settingKeysRevision)
}

// CreateKey stores a new key.
func (s *Store) CreateKey(ctx context.Context, k Key) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		if err := hasTeam(ctx, tx, k.TeamID); err != nil {
			return nil, err
		}
		return tx.ExecContext(ctx, "INSERT INTO keys ("+keyColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18)",
			k.ID, k.Name, k.Owner, k.Prefix, k.Hash, k.OldHash, k.OldUntil, encodeList(k.Models), encodeList(k.Operations), k.Strict, k.NoStore,
			k.Created, k.Expires, k.Revoked, k.LastUsed, k.TeamID, k.Budgets, k.Limits)
	})
}

// UpdateKey changes what an operator decides of a key: names, team, budgets,
// limits, models, operations, strictness, and when it ends.
func (s *Store) UpdateKey(ctx context.Context, id string, change func(*Key) error) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		rows, err := tx.QueryContext(ctx, selectKeys+" WHERE id = $1", id)
		if err != nil {
			return nil, err
		}
		found, err := scanKeys(rows)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, ErrNotFound
		}
		k := &found[0]
		if err := change(k); err != nil {
			return nil, err
		}
		if err := hasTeam(ctx, tx, k.TeamID); err != nil {
			return nil, err
		}
		return tx.ExecContext(ctx, "UPDATE keys SET name = $1, owner = $2, models = $3, operations = $4, strict = $5, no_store = $6, expires_ms = $7, "+
			"team = $8, budgets = $9, limits = $10 WHERE id = $11",
			k.Name, k.Owner, encodeList(k.Models), encodeList(k.Operations), k.Strict, k.NoStore, k.Expires, k.TeamID, k.Budgets, k.Limits, id)
	})
}

// hasTeam returns ErrNoTeam where a key would belong to a team that is not
// there.
func hasTeam(ctx context.Context, tx *sql.Tx, id string) error {
	if id == "" {
		return nil
	}
	err := tx.QueryRowContext(ctx, "SELECT id FROM teams WHERE id = $1", id).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNoTeam
	}
	return err
}

// SetKeyRevoked revokes a key at a time in Unix ms, or restores it with 0.
func (s *Store) SetKeyRevoked(ctx context.Context, id string, at int64) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		return tx.ExecContext(ctx, "UPDATE keys SET revoked_ms = $1 WHERE id = $2", at, id)
	})
}

// RotateKey gives a key a new secret; the one it had opens until a time in
// Unix ms.
func (s *Store) RotateKey(ctx context.Context, id, hash string, oldUntil int64) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		return tx.ExecContext(ctx, "UPDATE keys SET old_hash = hash, old_until_ms = $1, hash = $2 WHERE id = $3", oldUntil, hash, id)
	})
}

// changeKeys runs one change and counts it. It returns ErrNotFound when the
// change met no row.
func (s *Store) changeKeys(ctx context.Context, change func(*sql.Tx) (sql.Result, error)) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if err := countChange(ctx, tx, settingKeysRevision); err != nil {
			return err
		}
		result, err := change(tx)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return metRow(result)
	})
}

func scanKeys(rows *sql.Rows) ([]Key, error) {
	defer rows.Close()
	var keys []Key
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

func scanKey(rows *sql.Rows) (Key, error) {
	var (
		k                  Key
		models, operations string
	)
	err := rows.Scan(&k.ID, &k.Name, &k.Owner, &k.Prefix, &k.Hash, &k.OldHash, &k.OldUntil, &models, &operations, &k.Strict, &k.NoStore,
		&k.Created, &k.Expires, &k.Revoked, &k.LastUsed, &k.TeamID, &k.Budgets, &k.Limits)
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(models), &k.Models), json.Unmarshal([]byte(operations), &k.Operations))
	}
	if err != nil {
		return Key{}, fmt.Errorf("store: key row: %w", err)
	}
	return k, nil
}

// encodeList writes a list of strings as JSON, which cannot fail; none is [].
func encodeList(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(list)
	return string(text)
}
