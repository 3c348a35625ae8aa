package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// TestTurnsTogether has turns committed at the same time, some of which fail:
// each has its own end, and nothing of the failed ones is there.
func TestTurnsTogether(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		const n = 60
		commit(t, s, newTurn("taken", "", 0))
		var wg sync.WaitGroup
		turns, errs := make([]*Turn, n), make([]error, n)
		for i := range n {
			turns[i] = newTurn(fmt.Sprint("r", i), "", 0)
			switch i % 5 {
			case 3:
				turns[i].Response.ID, turns[i].Base, turns[i].BaseLength = "taken", "taken", 2
			case 4:
				turns[i].Base, turns[i].BaseLength = "none", 2
			}
			wg.Go(func() { errs[i] = s.CommitTurn(ctx, turns[i]) })
		}
		wg.Wait()
		for i, turn := range turns {
			id := fmt.Sprint("r", i)
			want := map[int]error{3: ErrConflict, 4: ErrNotFound}[i%5]
			wantErr(t, id, errs[i], want)
			r, err := s.Response(ctx, owner, id)
			if want != nil {
				wantErr(t, "response "+id, err, ErrNotFound)
				continue
			}
			if err != nil || r.Thread != id || r.Length != 2 || turn.Response.Length != 2 {
				t.Errorf("%s: %+v, %v", id, r, err)
			}
			wantItems(t, s, id, 0, 9, id+".in "+id+".out")
		}
		wantBytes(t, s)
	})
}

// TestGroupSharesACommit has changes that come while another is committed
// made in one transaction, and one by one when one of them fails.
func TestGroupSharesACommit(t *testing.T) {
	for _, failing := range []bool{false, true} {
		s, err := Open(t.Context(), t.TempDir(), "")
		mustDo(t, err)
		defer s.Close()
		begun, goOn := make(chan struct{}), make(chan struct{})
		first := make(chan error)
		go func() {
			first <- s.together(t.Context(), func(context.Context, *sql.Tx) error {
				close(begun)
				<-goOn
				return nil
			})
		}()
		<-begun
		const n = 10
		seen := make(map[*sql.Tx]int)
		broken := errors.New("broken")
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() {
				errs[i] = s.together(t.Context(), func(_ context.Context, tx *sql.Tx) error {
					seen[tx]++
					if failing && i == 0 {
						return broken
					}
					return nil
				})
			})
		}
		for waiting := 0; waiting < n; {
			s.group.mu.Lock()
			waiting = len(s.group.wait)
			s.group.mu.Unlock()
			runtime.Gosched()
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		wantErr(t, "who left before", s.together(left, func(context.Context, *sql.Tx) error {
			t.Error("what nobody waits for was done")
			return nil
		}), context.Canceled)
		close(goOn)
		mustDo(t, <-first)
		wg.Wait()
		want := 1
		if failing {
			want = 1 + n
		}
		if len(seen) != want {
			t.Errorf("%d changes took %d transactions, want %d", n, len(seen), want)
		}
		for i, err := range errs {
			if failing && i == 0 {
				wantErr(t, "the broken one", err, broken)
				continue
			}
			mustDo(t, err)
		}
	}
}
