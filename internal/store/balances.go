package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/money"
)

// Every change of a balance begins with the lock of its row, and changes of
// several go in their order: no two gateways wait for one another. A lease is
// only changed under the lock of its balance.

// Balance names what an owner spends in one window of time.
type Balance struct {
	Owner  string // a key or a team
	Period string // total, or day, week, month with a zone behind @
	Window int64  // when it begins, Unix ms; 0 where the period is total
}

// Compare orders balances as they are locked.
func (b Balance) Compare(other Balance) int {
	return cmp.Or(cmp.Compare(b.Owner, other.Owner), cmp.Compare(b.Period, other.Period), cmp.Compare(b.Window, other.Window))
}

// Standing is how it stands with a balance.
type Standing struct {
	Balance
	Spent   money.Amount
	Leased  money.Amount // that gateways may have spent, and have not told of yet
	Alerted money.Amount // the greatest amount that was alerted of
}

// Lease is what a holder has of a balance.
type Lease struct {
	Taken money.Amount // by this call
	Total money.Amount // all that the holder may have spent and has not told of
	Left  money.Amount // that anybody may take; below zero where too much was spent
}

// EncodeBalances is how a call names the balances that its charge is booked
// to, and the holder of the leases that it is paid from.
func EncodeBalances(holder string, balances []Balance) string {
	if len(balances) == 0 {
		return ""
	}
	text := []byte(holder)
	for _, b := range balances {
		text = append(text, '\n')
		text = append(text, b.Owner...)
		text = append(text, ' ')
		text = append(text, b.Period...)
		if b.Window != 0 {
			text = append(text, ' ')
			text = strconv.AppendInt(text, b.Window, 10)
		}
	}
	return string(text)
}

// DecodeBalances reads what EncodeBalances wrote.
func DecodeBalances(text string) (holder string, balances []Balance) {
	holder, text, more := strings.Cut(text, "\n")
	for more {
		var line string
		line, text, more = strings.Cut(text, "\n")
		words := strings.Split(line, " ")
		if len(words) < 2 {
			continue
		}
		b := Balance{Owner: words[0], Period: words[1]}
		if len(words) > 2 {
			b.Window, _ = strconv.ParseInt(words[2], 10, 64)
		}
		balances = append(balances, b)
	}
	return holder, balances
}

// inBalance changes a balance under its lock. The sums are made here, since
// those of SQL do not end at what can be counted.
func inBalance(ctx context.Context, tx *sql.Tx, b Balance, change func(*Standing) error) error {
	at := Standing{Balance: b}
	row := tx.QueryRowContext(ctx, `INSERT INTO balances (owner, period, window_ms, spent, leased, alerted) VALUES ($1, $2, $3, 0, 0, 0)
		ON CONFLICT (owner, period, window_ms) DO UPDATE SET spent = balances.spent RETURNING spent, leased, alerted`, b.Owner, b.Period, b.Window)
	if err := scanOne(row, &at.Spent, &at.Leased, &at.Alerted); err != nil {
		return err
	}
	before := at
	if err := change(&at); err != nil || at == before {
		return err
	}
	_, err := affected(ctx, tx, "UPDATE balances SET spent = $1, leased = $2, alerted = $3 WHERE owner = $4 AND period = $5 AND window_ms = $6",
		int64(at.Spent), int64(at.Leased), int64(at.Alerted), b.Owner, b.Period, b.Window)
	return err
}

// lease is a row of leases.
type lease struct{ amount, interrupted money.Amount }

func readLease(ctx context.Context, tx *sql.Tx, holder string, b Balance) (l lease, err error) {
	row := tx.QueryRowContext(ctx, "SELECT amount, interrupted FROM leases WHERE holder = $1 AND owner = $2 AND period = $3 AND window_ms = $4", holder, b.Owner, b.Period, b.Window)
	return l, scanOne(row, &l.amount, &l.interrupted)
}

func writeLease(ctx context.Context, tx *sql.Tx, holder string, b Balance, l lease) error {
	_, err := affected(ctx, tx, `INSERT INTO leases (holder, owner, period, window_ms, amount, interrupted) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (holder, owner, period, window_ms) DO UPDATE SET amount = excluded.amount, interrupted = excluded.interrupted`,
		holder, b.Owner, b.Period, b.Window, int64(l.amount), int64(l.interrupted))
	return err
}

// TakeLease adds to the lease of a holder what choose takes of what a limit
// leaves, which is never more than that.
func (s *Store) TakeLease(ctx context.Context, holder string, b Balance, limit money.Amount, choose func(left money.Amount) money.Amount) (taken Lease, err error) {
	err = s.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return inBalance(ctx, tx, b, func(at *Standing) error {
			l, err := readLease(ctx, tx, holder, b)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			left := limit.Minus(at.Spent).Minus(at.Leased)
			n := max(0, min(choose(left), left))
			l.amount += n
			at.Leased += n
			taken = Lease{Taken: n, Total: l.amount.Plus(l.interrupted), Left: left - n}
			if n == 0 {
				return nil
			}
			return writeLease(ctx, tx, holder, b, l)
		})
	})
	return taken, err
}

// ReturnLease gives back part of a lease.
func (s *Store) ReturnLease(ctx context.Context, holder string, b Balance, n money.Amount) error {
	return s.together(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return inBalance(ctx, tx, b, func(at *Standing) error {
			l, err := readLease(ctx, tx, holder, b)
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			l.pay(at, n)
			return writeLease(ctx, tx, holder, b, l)
		})
	})
}

// pay takes n off a lease, as far as it goes, and returns how much that was.
// What counts as spent already is taken first, and so is not counted twice.
func (l *lease) pay(at *Standing, n money.Amount) money.Amount {
	counted := min(n, l.interrupted)
	rest := min(n-counted, l.amount)
	l.interrupted -= counted
	l.amount -= rest
	at.Spent -= counted
	at.Leased -= rest
	return counted + rest
}

// Holding names a lease.
type Holding struct {
	Holder string
	Balance
}

// compareHoldings orders leases by their balances.
func compareHoldings(a, b Holding) int {
	return cmp.Or(a.Balance.Compare(b.Balance), cmp.Compare(a.Holder, b.Holder))
}

// leasesPerTx bounds the leases that one transaction changes.
const leasesPerTx = 100

// changeLeases changes leases, many in a transaction. What is not there is
// passed over.
func (s *Store) changeLeases(ctx context.Context, list []Holding, change func(context.Context, *sql.Tx, Holding, *Standing, *lease) error) error {
	list = slices.SortedFunc(slices.Values(list), compareHoldings)
	for part := range slices.Chunk(list, leasesPerTx) {
		err := s.inTx(ctx, func(tx *sql.Tx) error {
			for _, h := range part {
				err := inBalance(ctx, tx, h.Balance, func(at *Standing) error {
					l, err := readLease(ctx, tx, h.Holder, h.Balance)
					if err != nil {
						return err
					}
					return change(ctx, tx, h, at, &l)
				})
				if err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CloseLeases gives leases back whole. Of one that was interrupted, that which
// its holder did not tell of is not spent after all.
func (s *Store) CloseLeases(ctx context.Context, list ...Holding) error {
	return s.changeLeases(ctx, list, func(ctx context.Context, tx *sql.Tx, h Holding, at *Standing, l *lease) error {
		l.pay(at, l.amount.Plus(l.interrupted))
		_, err := affected(ctx, tx, "DELETE FROM leases WHERE holder = $1 AND owner = $2 AND period = $3 AND window_ms = $4", h.Holder, h.Owner, h.Period, h.Window)
		return err
	})
}

// FormerLeases lists the leases of all whose names begin with node, without
// those of holder itself.
func (s *Store) FormerLeases(ctx context.Context, node, holder string) ([]Holding, error) {
	return s.holdings(ctx, "SELECT holder, owner, period, window_ms FROM leases WHERE holder LIKE $1 AND holder <> $2", node+"%", holder)
}

// InterruptLeases counts as spent what those have leased that were not heard of
// for some time: they may have spent it.
func (s *Store) InterruptLeases(ctx context.Context, silence time.Duration) (int, error) {
	now, err := s.clock(ctx)
	if err != nil {
		return 0, err
	}
	list, err := s.holdings(ctx, `SELECT holder, owner, period, window_ms FROM leases WHERE amount > 0
		AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = leases.holder AND nodes.seen_ms >= $1)`, now.Add(-silence).UnixMilli())
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return len(list), s.changeLeases(ctx, list, func(ctx context.Context, tx *sql.Tx, h Holding, at *Standing, l *lease) error {
		at.Leased -= l.amount
		at.Spent = at.Spent.Plus(l.amount)
		return writeLease(ctx, tx, h.Holder, h.Balance, lease{interrupted: l.interrupted.Plus(l.amount)})
	})
}

func (s *Store) holdings(ctx context.Context, query string, args ...any) ([]Holding, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []Holding
	for rows.Next() {
		var h Holding
		if err := rows.Scan(&h.Holder, &h.Owner, &h.Period, &h.Window); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		list = append(list, h)
	}
	return list, rows.Err()
}

// clock is the time that all who share the database agree on.
func (s *Store) clock(ctx context.Context) (time.Time, error) {
	if !s.postgres {
		return time.Now(), nil
	}
	var ms int64
	err := scanOne(s.read.QueryRowContext(ctx, "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"), &ms)
	return time.UnixMilli(ms), err
}

// nodeKept is how long it is known of a node that it was there.
const nodeKept = 24 * time.Hour

// Beat says that a node is there, and counts those that were heard of within
// some time.
func (s *Store) Beat(ctx context.Context, node string, within time.Duration) (nodes int, err error) {
	now, err := s.clock(ctx)
	if err != nil {
		return 0, err
	}
	return nodes, s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := affected(ctx, tx, "INSERT INTO nodes (id, seen_ms) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms", node, now.UnixMilli())
		if err != nil {
			return err
		}
		return scanOne(tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM nodes WHERE seen_ms >= $1", now.Add(-within).UnixMilli()), &nodes)
	})
}

// ForgetNode is Beat's end.
func (s *Store) ForgetNode(ctx context.Context, node string) error {
	_, err := affected(ctx, s.write, "DELETE FROM nodes WHERE id = $1", node)
	return err
}

// Standings returns how it stands with the balances of an owner, of the windows
// that begin at since or later, and the total.
func (s *Store) Standings(ctx context.Context, owner string, since time.Time) ([]Standing, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT owner, period, window_ms, spent, leased, alerted FROM balances
		WHERE owner = $1 AND (window_ms = 0 OR window_ms >= $2) ORDER BY period, window_ms`, owner, since.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var list []Standing
	for rows.Next() {
		var at Standing
		if err := rows.Scan(&at.Owner, &at.Period, &at.Window, &at.Spent, &at.Leased, &at.Alerted); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		list = append(list, at)
	}
	return list, rows.Err()
}

// Standing returns how it stands with one balance.
func (s *Store) Standing(ctx context.Context, b Balance) (Standing, error) {
	at := Standing{Balance: b}
	row := s.read.QueryRowContext(ctx, "SELECT spent, leased, alerted FROM balances WHERE owner = $1 AND period = $2 AND window_ms = $3", b.Owner, b.Period, b.Window)
	err := scanOne(row, &at.Spent, &at.Leased, &at.Alerted)
	if errors.Is(err, ErrNotFound) {
		return at, nil
	}
	return at, err
}

// RaiseAlert notes that it was alerted of an amount, and reports whether nobody
// has done so before.
func (s *Store) RaiseAlert(ctx context.Context, b Balance, amount money.Amount) (bool, error) {
	n, err := affected(ctx, s.write, "UPDATE balances SET alerted = $1 WHERE owner = $2 AND period = $3 AND window_ms = $4 AND alerted < $1",
		int64(amount), b.Owner, b.Period, b.Window)
	return n > 0, err
}

// ForgetBalances deletes the balances of windows that began before a time, and
// nodes that are long gone.
func (s *Store) ForgetBalances(ctx context.Context, before time.Time) error {
	now, err := s.clock(ctx)
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := affected(ctx, tx, "DELETE FROM balances WHERE window_ms > 0 AND window_ms < $1", before.UnixMilli()); err != nil {
			return err
		}
		if _, err := affected(ctx, tx, "DELETE FROM leases WHERE window_ms > 0 AND window_ms < $1", before.UnixMilli()); err != nil {
			return err
		}
		_, err := affected(ctx, tx, "DELETE FROM nodes WHERE seen_ms < $1", now.Add(-nodeKept).UnixMilli())
		return err
	})
}

// book books the charges of calls.
func book(ctx context.Context, tx *sql.Tx, calls []*Call) error {
	texts := map[string]money.Amount{}
	for _, c := range calls {
		if c.Charge > 0 && c.Balances != "" {
			texts[c.Balances] = texts[c.Balances].Plus(c.Charge)
		}
	}
	sums := map[Holding]money.Amount{}
	for text, charge := range texts {
		holder, balances := DecodeBalances(text)
		for _, b := range balances {
			h := Holding{holder, b}
			sums[h] = sums[h].Plus(charge)
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(sums), compareHoldings) {
		err := inBalance(ctx, tx, h.Balance, func(at *Standing) error {
			l, err := readLease(ctx, tx, h.Holder, h.Balance)
			if err != nil && !errors.Is(err, ErrNotFound) { // it is not found of soft budgets, and when it was given back
				return err
			}
			paid := l.pay(at, sums[h])
			at.Spent = at.Spent.Plus(sums[h])
			if paid == 0 {
				return nil
			}
			return writeLease(ctx, tx, h.Holder, h.Balance, l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
