package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock under which one of several replicas
// migrates a Postgres database.
const migrationLock = 0x6c696d656e // "limen"

// migrate applies the migrations that the database lacks, each in a
// transaction of its own. It refuses a database that a newer release made,
// and one whose applied migrations differ from the embedded ones.
func (s *Store) migrate(ctx context.Context) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: cannot reach the database: %w", err)
	}
	defer conn.Close()
	if s.postgres {
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
	}
	const table = `CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_ms BIGINT NOT NULL)`
	if _, err := conn.ExecContext(ctx, table); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	applied, err := appliedMigrations(ctx, conn)
	if err != nil {
		return err
	}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for _, path := range names {
		text, err := migrations.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "migrations/")
		sum := sha256.Sum256(text)
		digest := hex.EncodeToString(sum[:])
		was, done := applied[name]
		delete(applied, name)
		switch {
		case done && was != digest:
			return fmt.Errorf("store: migration %s was applied in another form; this binary does not belong to this database", name)
		case done:
			continue
		}
		if err := applyMigration(ctx, conn, name, string(text), digest); err != nil {
			return err
		}
	}
	for name := range applied {
		return fmt.Errorf("store: the database was made by a newer release (it has migration %s); use that release, or restore a backup", name)
	}
	return nil
}

func appliedMigrations(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT name, sha256 FROM migrations")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	applied := map[string]string{}
	for rows.Next() {
		var name, digest string
		if err := rows.Scan(&name, &digest); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		applied[name] = digest
	}
	return applied, rows.Err()
}

func applyMigration(ctx context.Context, conn *sql.Conn, name, text, digest string) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return fmt.Errorf("store: migration %s: %w", name, err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO migrations (name, sha256, applied_ms) VALUES ($1, $2, $3)", name, digest, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("store: migration %s: %w", name, err)
	}
	return tx.Commit()
}
