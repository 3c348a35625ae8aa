package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
)

// group has changes that come at the same time committed together: to SQLite a
// commit costs more than what is in it. Whoever has the turn commits all that
// wait, while others gather.
type group struct {
	turn chan struct{} // has room for one
	mu   sync.Mutex
	wait []*change
}

// change is what one caller wants committed. It may be tried twice.
type change struct {
	do   func(context.Context, *sql.Tx) error
	done chan error // has room for one
}

func newGroup() *group { return &group{turn: make(chan struct{}, 1)} }

// together is inTx for changes that may share a transaction with others: all of
// do is committed or nothing, whatever becomes of the others. ctx bounds the wait;
// what is begun goes on without it.
func (s *Store) together(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	if s.postgres { // which commits those of several connections together
		return s.inTx(ctx, func(tx *sql.Tx) error { return do(ctx, tx) })
	}
	c := &change{do: do, done: make(chan error, 1)}
	s.group.add(c)
	select {
	case err := <-c.done:
		return err
	case s.group.turn <- struct{}{}:
		err := s.commitWaiting(ctx)
		<-s.group.turn
		if err != nil && s.group.remove(c) {
			return err
		}
	case <-ctx.Done():
		if s.group.remove(c) {
			return fmt.Errorf("store: %w", ctx.Err())
		}
	}
	return <-c.done // it is, or is being, committed
}

func (g *group) add(c *change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait = append(g.wait, c)
}

// remove reports whether a change still waited.
func (g *group) remove(c *change) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.wait, c)
	if at < 0 {
		return false
	}
	g.wait = slices.Delete(g.wait, at, at+1)
	return true
}

func (g *group) take() []*change {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.wait
	g.wait = nil
	return taken
}

// commitWaiting commits what waits. It fails when the connection cannot be had
// before ctx ends; then nothing was tried.
func (s *Store) commitWaiting(ctx context.Context) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer conn.Close()
	taken := s.group.take()
	undone, err := s.commitAll(conn, taken)
	for _, c := range taken {
		if undone && len(taken) > 1 { // not all are to fail for one of them
			_, err = s.commitAll(conn, []*change{c})
		}
		c.done <- err
	}
	return nil
}

// commitAll makes changes in one transaction, which nobody's leaving ends.
// undone says that one of them failed.
func (s *Store) commitAll(conn *sql.Conn, changes []*change) (undone bool, err error) {
	ctx := context.Background()
	tx, err := s.write.begin(ctx, conn)
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback() // does nothing after Commit
	for _, c := range changes {
		if err := c.do(ctx, tx); err != nil {
			return true, err
		}
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	return false, nil
}
