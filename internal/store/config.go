package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// ConfigVersion is a version of the configuration.
type ConfigVersion struct {
	Version int64 // from 1
	At      int64 // Unix ms
	By      string
	Note    string
	Text    string
}

// ConfigSecret is what a configuration refers to by name.
type ConfigSecret struct {
	Name    string
	Sealed  string // closed with a key that is not in the database
	Updated int64  // Unix ms
}

// ConfigHistory is how many versions are kept.
const ConfigHistory = 100

// ConfigRevision counts the changes to the configuration and to its secrets.
func (s *Store) ConfigRevision(ctx context.Context) (int64, error) {
	return s.revision(ctx, settingConfigRevision)
}

// AddConfig writes the version that follows base, which must be the newest (0:
// there is none yet), and secrets with it. It returns ErrConflict where base is
// not the newest any more.
func (s *Store) AddConfig(ctx context.Context, v *ConfigVersion, base int64, secrets ...ConfigSecret) error {
	v.Version = base + 1
	return s.changeConfig(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO config_versions (version, at_ms, author, note, text)
			SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT)
			WHERE CAST($6 AS BIGINT) = (SELECT COALESCE(MAX(version), 0) FROM config_versions) ON CONFLICT DO NOTHING`,
			v.Version, v.At, v.By, v.Note, v.Text, base)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrConflict, err)
		}
		for i := range secrets {
			if err := setSecret(ctx, tx, &secrets[i]); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM config_versions WHERE version <= $1", v.Version-ConfigHistory); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	})
}

// Config returns a version of the configuration, 0 being the newest, or
// ErrNotFound.
func (s *Store) Config(ctx context.Context, version int64) (*ConfigVersion, error) {
	query, args := "SELECT version, at_ms, author, note, text FROM config_versions WHERE version = $1", []any{version}
	if version == 0 {
		query, args = "SELECT version, at_ms, author, note, text FROM config_versions ORDER BY version DESC LIMIT 1", nil
	}
	var v ConfigVersion
	err := s.read.QueryRowContext(ctx, query, args...).Scan(&v.Version, &v.At, &v.By, &v.Note, &v.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &v, nil
}

// ConfigVersions returns the newest versions without their texts, at most
// limit, newest first; before is the version to go on from (0 for the newest).
func (s *Store) ConfigVersions(ctx context.Context, before int64, limit int) ([]ConfigVersion, error) {
	var t terms
	if before > 0 {
		t.add("version < $%d", before)
	}
	query := fmt.Sprintf("SELECT version, at_ms, author, note FROM config_versions%s ORDER BY version DESC LIMIT $%d", t.where(), len(t.args)+1)
	rows, err := s.read.QueryContext(ctx, query, append(t.args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []ConfigVersion
	for rows.Next() {
		var v ConfigVersion
		if err := rows.Scan(&v.Version, &v.At, &v.By, &v.Note); err != nil {
			return nil, fmt.Errorf("store: configuration row: %w", err)
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// ConfigSecrets returns all secrets by their names.
func (s *Store) ConfigSecrets(ctx context.Context) ([]ConfigSecret, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT name, sealed, updated_ms FROM config_secrets ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []ConfigSecret
	for rows.Next() {
		var c ConfigSecret
		if err := rows.Scan(&c.Name, &c.Sealed, &c.Updated); err != nil {
			return nil, fmt.Errorf("store: secret row: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// SetConfigSecret writes a secret.
func (s *Store) SetConfigSecret(ctx context.Context, c *ConfigSecret) error {
	return s.changeConfig(ctx, func(tx *sql.Tx) error { return setSecret(ctx, tx, c) })
}

func setSecret(ctx context.Context, tx *sql.Tx, c *ConfigSecret) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO config_secrets (name, sealed, updated_ms) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_ms = excluded.updated_ms`, c.Name, c.Sealed, c.Updated)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// DeleteConfigSecret removes a secret that the newest version, base, does not
// need. It returns ErrNotFound where there is no such secret, or a newer version.
func (s *Store) DeleteConfigSecret(ctx context.Context, name string, base int64) error {
	return s.changeConfig(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM config_secrets WHERE name = $1
			AND CAST($2 AS BIGINT) = (SELECT COALESCE(MAX(version), 0) FROM config_versions)`, name, base)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return metRow(result)
	})
}

// changeConfig makes a change and counts it.
func (s *Store) changeConfig(ctx context.Context, change func(*sql.Tx) error) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if err := countChange(ctx, tx, settingConfigRevision); err != nil {
			return err
		}
		return change(tx)
	})
}

// revision is how many changes were counted under the name of a setting.
func (s *Store) revision(ctx context.Context, setting string) (int64, error) {
	value, err := s.Setting(ctx, setting)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

// countChange counts a change. Done first, it makes changes of one kind wait for
// one another: what one finds to be so stays so until it is done.
func countChange(ctx context.Context, tx *sql.Tx, setting string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ($1, '1')
		ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)`, setting)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
