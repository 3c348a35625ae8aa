package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/price"
)

// Price is what a vendor took for a model from a time on.
type Price struct {
	Provider string // the vendor
	Model    string // as it calls it
	Since    time.Time
	List     price.List
	Source   string // who said so
}

// Prices returns all that was ever known, the oldest of each model first.
func (s *Store) Prices(ctx context.Context) ([]Price, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT provider, model, since_ms, list, source FROM prices ORDER BY provider, model, since_ms")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var prices []Price
	for rows.Next() {
		var (
			p     Price
			since int64
			list  []byte
		)
		if err := rows.Scan(&p.Provider, &p.Model, &since, &list, &p.Source); err != nil {
			return nil, fmt.Errorf("store: price row: %w", err)
		}
		if since > 0 {
			p.Since = time.UnixMilli(since)
		}
		if err := json.Unmarshal(list, &p.List); err != nil {
			return nil, fmt.Errorf("store: price of %s at %s: %w", p.Model, p.Provider, err)
		}
		prices = append(prices, p)
	}
	return prices, rows.Err()
}

// pricesAtOnce is how many rows one statement adds.
const pricesAtOnce = 100

// AddPrices adds prices in one transaction. The zero time is the beginning of
// all. One that is there already stays: another gateway came to know it, too.
func (s *Store) AddPrices(ctx context.Context, prices []Price) error {
	if len(prices) == 0 {
		return nil
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for len(prices) > 0 {
			n := min(len(prices), pricesAtOnce)
			if err := addPrices(ctx, tx, prices[:n]); err != nil {
				return err
			}
			prices = prices[n:]
		}
		return nil
	})
}

func addPrices(ctx context.Context, tx *sql.Tx, prices []Price) error {
	var (
		values strings.Builder
		args   []any
	)
	for i := range prices {
		p := &prices[i]
		list, err := json.Marshal(&p.List)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		since := int64(0)
		if !p.Since.IsZero() {
			since = p.Since.UnixMilli()
		}
		if i > 0 {
			values.WriteByte(',')
		}
		n := len(args)
		fmt.Fprintf(&values, "($%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5)
		args = append(args, storable(p.Provider), storable(p.Model), since, string(list), storable(p.Source))
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO prices (provider, model, since_ms, list, source) VALUES "+values.String()+" ON CONFLICT DO NOTHING", args...)
	if err != nil {
		return fmt.Errorf("store: prices: %w", err)
	}
	return nil
}
