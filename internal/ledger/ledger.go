// Package ledger accounts for calls: each is written to a local journal
// before its end is told to the client, and carried from there to the store
// in batches. A store that is away stops nobody and loses nothing; a crash is
// made good by reading the journal again.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/repeat"
	"github.com/limen-gateway/limen/internal/store"
)

const drainEvery = time.Second

// Ledger takes records of calls.
type Ledger struct {
	books   *budget.Books
	log     *slog.Logger
	journal *journal
	pending atomic.Int64 // records that are not yet in the store
	failed  atomic.Int64 // Unix ns of the last record that could not be written

	owing sync.Mutex
	owed  []store.Call // records that could not be written, in order

	retention atomic.Pointer[Retention]

	own       uint64     // the first file of this process
	drain     sync.Mutex // one drain at a time
	recovered bool       // calls that former processes did not end are in the journal
	settled   bool       // and all that those processes left is in the store
	seq       uint64     // the file up to which the store has everything
	offset    int64      // in file seq
	open      openHolds  // of this process, up to there
	reader    segmentReader
}

// Open opens the journal in a data directory, whose calls are booked in books.
// What a former process left is carried to the store by the first Drain.
func Open(dir string, books *budget.Books, log *slog.Logger) (*Ledger, error) {
	dir = filepath.Join(dir, "journal")
	j, err := openJournal(dir)
	if err != nil {
		return nil, err
	}
	seqs, err := segments(dir)
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	return &Ledger{books: books, log: log, journal: j, own: j.seq, seq: seqs[0], open: openHolds{}}, nil
}

// Append writes the record of a call. When it returns nil, the call is
// accounted for, whatever happens to this process or to the store.
func (l *Ledger) Append(c *store.Call) error {
	if err := l.write(c, ofCall); err != nil {
		return err
	}
	l.pending.Add(1)
	return nil
}

// maxOwed bounds the records that are owed. No more calls begin while one is,
// so there are as many as calls that were under way.
const maxOwed = 1 << 16

// Owe has the record of a call written later that Append could not write. Its
// client has no answer, but its upstream may have worked for it.
func (l *Ledger) Owe(c *store.Call) {
	l.owing.Lock()
	defer l.owing.Unlock()
	if len(l.owed) == maxOwed {
		l.log.Error("the record of a call is lost: too many wait for the journal", "request_id", c.ID)
		return
	}
	l.owed = append(l.owed, *c)
}

// payOwed writes the records that are owed, as far as it can.
func (l *Ledger) payOwed() error {
	l.owing.Lock()
	defer l.owing.Unlock()
	for len(l.owed) > 0 {
		switch err := l.Append(&l.owed[0]); {
		case errors.Is(err, errTooLarge): // and ever will be
			l.log.Error("the record of a call is lost: it is too large", "request_id", l.owed[0].ID)
		case err != nil:
			return err
		}
		l.owed = l.owed[1:]
	}
	l.owed = nil
	return nil
}

// Hold writes that a call begins that may cost as much as estimate; of the call
// it needs no more than who makes it, what it asks for and who pays. Append of
// a call with the same ID ends the hold. If that never comes because this
// process is killed, the call is recorded as interrupted, at its estimate. A
// hold may be written again with a greater one.
func (l *Ledger) Hold(c *store.Call, estimate money.Amount) error {
	held := *c
	held.Charge = estimate
	return l.write(&held, ofHold)
}

func (l *Ledger) write(c *store.Call, of kind) error {
	err := l.journal.append(c, of)
	if err != nil && !errors.Is(err, errTooLarge) {
		l.failed.Store(time.Now().UnixNano())
	}
	return err
}

// Pending is the number of records that wait for the store, as far as this
// process wrote them.
func (l *Ledger) Pending() int64 { return l.pending.Load() }

// Run drains the journal until ctx ends. Failures are logged once until the
// store answers again.
func (l *Ledger) Run(ctx context.Context) {
	carry := func(ctx context.Context) error { return errors.Join(l.journal.sync(), l.Drain(ctx)) }
	repeat.Every(ctx, drainEvery, carry, func(err error) {
		if err != nil {
			l.log.Error("usage cannot be stored; it waits in the journal", "error", err, "pending", l.Pending())
			return
		}
		l.log.Info("usage is stored again")
	})
}

// Drain carries to the store all that was appended before the call. What is
// owed and cannot be written keeps nothing else here: where the journal has
// filled the disk, to carry it away is what makes room.
func (l *Ledger) Drain(ctx context.Context) error {
	l.drain.Lock()
	defer l.drain.Unlock()
	return errors.Join(l.payOwed(), l.carryAll(ctx))
}

func (l *Ledger) carryAll(ctx context.Context) error {
	if err := l.recoverHolds(); err != nil {
		return err
	}
	if err := l.drainAll(ctx); err != nil || l.settled {
		return err
	}
	// Of former processes the store has all now, and knows what they did not spend.
	err := l.books.CloseFormer(ctx)
	l.settled = err == nil
	return err
}

func (l *Ledger) drainAll(ctx context.Context) error {
	lastSeq, lastSize := l.journal.position()
	for {
		if l.seq == lastSeq && l.offset >= lastSize {
			return nil
		}
		path, end := segmentPath(l.journal.dir, l.seq), int64(math.MaxInt64)
		if l.seq == lastSeq {
			end = lastSize // what lies behind is being written, and may fail
		}
		next, err := l.reader.read(path, l.offset, end)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("ledger: %w", err)
		}
		if next > l.offset {
			if err := l.carry(ctx); err != nil {
				return err
			}
			l.offset = next
			continue
		}
		if l.seq == lastSeq {
			return nil
		}
		if err := l.retire(path); err != nil {
			return err
		}
	}
}

// carry brings to the store what was read.
func (l *Ledger) carry(ctx context.Context) error {
	calls, holds := l.reader.calls, l.reader.holds
	if len(calls) > 0 {
		if err := l.books.AddCalls(ctx, calls); err != nil {
			return err
		}
	}
	if l.seq >= l.own {
		l.pending.Add(-int64(len(calls)))
		l.open.follow(calls, holds, l.seq)
	}
	return nil
}

// retire removes a file that the store has whole and goes on to the next. A
// tail that cannot be read is kept aside: it was never acknowledged, or the
// disk has damaged it.
func (l *Ledger) retire(path string) error {
	if err := l.moveHolds(); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("ledger: %w", err)
	case info.Size() > l.offset:
		aside := unused(path, ".cut")
		l.log.Warn("the journal has a record that was not written whole; kept aside", "file", aside, "offset", l.offset)
		err = os.Rename(path, aside)
	default:
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ledger: %w", err)
	}
	l.seq++
	l.offset = 0
	return nil
}

// unused returns path and suffix, with a number between them when there is
// such a file already.
func unused(path, suffix string) string {
	name := path + suffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s.%d%s", path, n, suffix)
	}
}

// Close drains once more and closes the journal. Records that the store does
// not take stay in the journal for the next start. Calls that still have not
// ended are recorded as interrupted.
func (l *Ledger) Close(ctx context.Context) error {
	err := l.Drain(ctx)
	if err == nil {
		err = l.interruptOpen()
	}
	if err == nil {
		err = l.Drain(ctx)
	}
	if err == nil {
		err = l.retireAll()
	}
	return errors.Join(err, l.journal.close())
}

// retireAll removes the last file when the store has all of it.
func (l *Ledger) retireAll() error {
	l.drain.Lock()
	defer l.drain.Unlock()
	seq, size := l.journal.position()
	if l.seq != seq || l.offset < size {
		return nil
	}
	return l.retire(segmentPath(l.journal.dir, seq))
}

// retryAfterFailure is how long calls are refused after a record could not be
// written, before the next may try.
const retryAfterFailure = time.Second

// Ready reports whether a call may begin: not right after a record could not
// be written, for a call that cannot be accounted for must not be made.
func (l *Ledger) Ready() error {
	failed := l.failed.Load()
	if failed != 0 && time.Now().UnixNano()-failed < int64(retryAfterFailure) {
		return errors.New("ledger: the journal cannot be written")
	}
	return nil
}
