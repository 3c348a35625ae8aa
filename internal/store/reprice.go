package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/limen-gateway/limen/internal/money"
)

// Repriced is a call as it is recorded, and what it costs by other prices.
type Repriced struct {
	Call         *Call
	Cost, Charge money.Amount
}

// Reprice corrects records and, by what they differ, the sums of usage, all in
// one transaction, and says how many. A record that is not as it was read stays
// as it is. What was booked to budgets is not touched.
func (s *Store) Reprice(ctx context.Context, calls []Repriced) (corrected int, err error) {
	err = s.inConnTx(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		var (
			done        []*Call
			differences []Sums
		)
		for i := range calls {
			if ok, err := reprice(ctx, tx, &calls[i]); err != nil {
				return err
			} else if ok {
				done, differences = append(done, calls[i].Call), append(differences, calls[i].difference())
			}
		}
		corrected = len(done)
		return s.addToSums(ctx, conn, tx, done, func(i int) Sums { return differences[i] })
	})
	if err != nil {
		return 0, err
	}
	return corrected, nil
}

func reprice(ctx context.Context, tx *sql.Tx, r *Repriced) (done bool, err error) {
	c := r.Call
	result, err := tx.ExecContext(ctx, "UPDATE calls SET priced = TRUE, cost = $1, charge = $2 WHERE id = $3 AND priced = $4 AND cost = $5 AND charge = $6",
		int64(r.Cost), int64(r.Charge), c.ID, c.Priced, int64(c.Cost), int64(c.Charge))
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// difference is what the sums of the call are more than before.
func (r *Repriced) difference() Sums {
	now := *r.Call
	now.Priced, now.Cost, now.Charge = true, r.Cost, r.Charge
	sums, before := sumsOf(&now), sumsOf(r.Call)
	sums.minus(&before)
	return sums
}
