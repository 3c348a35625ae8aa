package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Names of settings.
const (
	// SettingAdminHash is the argon2id hash of the admin password.
	SettingAdminHash = "admin_hash"
	// SettingSealSecret signs what clients carry from turn to turn; hex.
	SettingSealSecret = "seal_secret"
	// SettingStateKey closes what is kept of Responses, where replicas share
	// the database; hex.
	SettingStateKey = "state_key"
	// settingKeysRevision counts the changes to the keys, so that replicas
	// notice them with one cheap read.
	settingKeysRevision = "keys_revision"
	// settingConfigRevision counts those to the configuration and its secrets.
	settingConfigRevision = "config_revision"
)

// Setting returns a setting's value, or ErrNotFound.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var value string
	err := s.read.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = $1", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return value, nil
}

// SetSetting writes a setting.
func (s *Store) SetSetting(ctx context.Context, name, value string) error {
	_, err := s.write.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// InitSetting writes a setting that has no value yet, and returns the one that
// it has then: of several replicas that start at once, one wins.
func (s *Store) InitSetting(ctx context.Context, name, value string) (string, error) {
	_, err := s.write.ExecContext(ctx, "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, value)
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return s.Setting(ctx, name)
}
