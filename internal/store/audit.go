package store

import (
	"context"
	"fmt"
)

// Change is one by the admin API.
type Change struct {
	ID        string // sorts by time
	At        int64  // Unix ms
	Who       string
	Via       string // how it was known who that is
	Address   string // "" is this machine
	Operation string
	Object    string // what it was done to; "" where that is the gateway
	Members   string // that were said, comma-separated, without their values
	Status    int    // HTTP status of the outcome; 0: not known
}

const auditColumns = "id, at_ms, who, via, address, operation, object, members, status"

// BeginChange records a change that is about to be made.
func (s *Store) BeginChange(ctx context.Context, c *Change) error {
	_, err := s.write.ExecContext(ctx, "INSERT INTO audit ("+auditColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9)",
		c.ID, c.At, c.Who, c.Via, c.Address, c.Operation, c.Object, c.Members, c.Status)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// EndChange records what came of a change.
func (s *Store) EndChange(ctx context.Context, c *Change) error {
	_, err := s.write.ExecContext(ctx, "UPDATE audit SET object = $1, members = $2, status = $3 WHERE id = $4", c.Object, c.Members, c.Status, c.ID)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Changes returns the newest changes, at most limit, newest first; before is
// the ID to go on from ("" for the newest).
func (s *Store) Changes(ctx context.Context, before string, limit int) ([]Change, error) {
	var t terms
	if before != "" {
		t.add("id < $%d", before)
	}
	query := fmt.Sprintf("SELECT %s FROM audit%s ORDER BY id DESC LIMIT $%d", auditColumns, t.where(), len(t.args)+1)
	rows, err := s.read.QueryContext(ctx, query, append(t.args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []Change
	for rows.Next() {
		var c Change
		if err := rows.Scan(&c.ID, &c.At, &c.Who, &c.Via, &c.Address, &c.Operation, &c.Object, &c.Members, &c.Status); err != nil {
			return nil, fmt.Errorf("store: audit row: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}
