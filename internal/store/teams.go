package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Team is who pays for keys, and for other teams. Budgets and Limits are JSON
// that the store does not read.
type Team struct {
	ID      string
	Name    string // no other team has it
	Parent  string // ID of the team that it belongs to; "" when to none
	Budgets string
	Limits  string
	Created int64 // Unix ms
}

const teamColumns = "id, name, parent, budgets, limits, created_ms"

// ErrInUse is what cannot be deleted while others belong to it.
var ErrInUse = errors.New("store: in use")

// Teams returns all teams by their names.
func (s *Store) Teams(ctx context.Context) ([]Team, error) {
	rows, err := s.read.QueryContext(ctx, selectTeams)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return scanTeams(rows)
}

const selectTeams = "SELECT " + teamColumns + " FROM teams ORDER BY name"

// CreateTeam stores a new team, unless valid finds fault with all that there
// would be then. A change of teams counts as one of the keys, which belong to
// them.
func (s *Store) CreateTeam(ctx context.Context, t Team, valid func([]Team) error) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		all, err := teamsIn(ctx, tx)
		if err != nil {
			return nil, err
		}
		if err := valid(append(all, t)); err != nil {
			return nil, err
		}
		return tx.ExecContext(ctx, "INSERT INTO teams ("+teamColumns+") VALUES ($1,$2,$3,$4,$5,$6)", t.ID, t.Name, t.Parent, t.Budgets, t.Limits, t.Created)
	})
}

// UpdateTeam changes all of a team but its ID and its time, unless change fails
// or valid finds fault with all that there would be then.
func (s *Store) UpdateTeam(ctx context.Context, id string, change func(*Team) error, valid func([]Team) error) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		all, err := teamsIn(ctx, tx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			t := &all[i]
			if t.ID != id {
				continue
			}
			if err := change(t); err != nil {
				return nil, err
			}
			if err := valid(all); err != nil {
				return nil, err
			}
			return tx.ExecContext(ctx, "UPDATE teams SET name = $1, parent = $2, budgets = $3, limits = $4 WHERE id = $5", t.Name, t.Parent, t.Budgets, t.Limits, id)
		}
		return nil, ErrNotFound
	})
}

// DeleteTeam removes a team. It returns ErrInUse while a key, a team or a user
// belongs to it.
func (s *Store) DeleteTeam(ctx context.Context, id string) error {
	return s.changeKeys(ctx, func(tx *sql.Tx) (sql.Result, error) {
		var members int64
		err := tx.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM keys WHERE team = $1) + (SELECT COUNT(*) FROM teams WHERE parent = $1) + (SELECT COUNT(*) FROM users WHERE team = $1)", id).Scan(&members)
		if err != nil {
			return nil, err
		}
		if members > 0 {
			return nil, ErrInUse
		}
		return tx.ExecContext(ctx, "DELETE FROM teams WHERE id = $1", id)
	})
}

func teamsIn(ctx context.Context, tx *sql.Tx) ([]Team, error) {
	rows, err := tx.QueryContext(ctx, selectTeams)
	if err != nil {
		return nil, err
	}
	return scanTeams(rows)
}

func scanTeams(rows *sql.Rows) ([]Team, error) {
	defer rows.Close()
	var teams []Team
	for rows.Next() {
		var t Team
		if err := rows.Scan(&t.ID, &t.Name, &t.Parent, &t.Budgets, &t.Limits, &t.Created); err != nil {
			return nil, fmt.Errorf("store: team row: %w", err)
		}
		teams = append(teams, t)
	}
	return teams, rows.Err()
}
