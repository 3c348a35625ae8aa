package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ModelList is the last good model list of a provider.
type ModelList struct {
	Provider string
	Fetched  time.Time
	Body     []byte
}

// ModelList returns a provider's last good list, or ErrNotFound.
func (s *Store) ModelList(ctx context.Context, provider string) (ModelList, error) {
	list := ModelList{Provider: provider}
	var fetched int64
	err := s.read.QueryRowContext(ctx, "SELECT fetched_ms, body FROM model_lists WHERE provider = $1", provider).Scan(&fetched, &list.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return list, ErrNotFound
	}
	if err != nil {
		return list, fmt.Errorf("store: %w", err)
	}
	list.Fetched = time.UnixMilli(fetched)
	return list, nil
}

// SetModelList keeps a provider's list.
func (s *Store) SetModelList(ctx context.Context, list ModelList) error {
	_, err := s.write.ExecContext(ctx, `INSERT INTO model_lists (provider, fetched_ms, body) VALUES ($1, $2, $3)
		ON CONFLICT (provider) DO UPDATE SET fetched_ms = excluded.fetched_ms, body = excluded.body`,
		list.Provider, list.Fetched.UnixMilli(), string(list.Body))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// DeleteModelList forgets a provider's list, if there is one.
func (s *Store) DeleteModelList(ctx context.Context, provider string) error {
	if _, err := s.write.ExecContext(ctx, "DELETE FROM model_lists WHERE provider = $1", provider); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
