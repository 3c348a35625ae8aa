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
	Times     int64  // how often it was tried
}

const auditColumns = "id, at_ms, who, via, address, operation, object, members, status, times"

// BeginChange records a change that is about to be made.
func (s *Store) BeginChange(ctx context.Context, c *Change) error {
	_, err := s.write.ExecContext(ctx, "INSERT INTO audit ("+auditColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)",
		c.ID, c.At, c.Who, c.Via, c.Address, c.Operation, c.Object, c.Members, c.Status, max(1, c.Times))
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

// CountChange records how often something was tried.
func (s *Store) CountChange(ctx context.Context, id string, times int64) error {
	_, err := s.write.ExecContext(ctx, "UPDATE audit SET times = $1 WHERE id = $2", times, id)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// ChangeFilter chooses changes; zero members choose all.
type ChangeFilter struct {
	Who    string
	On     string // what the operation's path begins with, as 'keys'
	Object string // a part of it
	Failed bool
}

// Changes returns the newest changes, at most limit, newest first; before is
// the ID to go on from ("" for the newest).
func (s *Store) Changes(ctx context.Context, f ChangeFilter, before string, limit int) ([]Change, error) {
	var t terms
	if before != "" {
		t.add("id < $%d", before)
	}
	t.equal("who", f.Who)
	if f.On != "" {
		t.add("REPLACE(operation || '/', $%d, '') <> operation || '/'", " /"+f.On+"/")
	}
	if f.Object != "" {
		t.add("REPLACE(LOWER(object), LOWER($%d), '') <> LOWER(object)", f.Object)
	}
	if f.Failed {
		t.list = append(t.list, "status >= 400")
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
		if err := rows.Scan(&c.ID, &c.At, &c.Who, &c.Via, &c.Address, &c.Operation, &c.Object, &c.Members, &c.Status, &c.Times); err != nil {
			return nil, fmt.Errorf("store: audit row: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}
