package ledger

import (
	"errors"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/limen-gateway/limen/internal/store"
)

// openHolds are the holds whose end has not been read, by the ID of the call.
type openHolds map[string]*openHold

type openHold struct {
	call  store.Call // to be recorded when no end comes
	seq   uint64     // the file that says so; elsewhere when that is to be read yet
	again int        // records of it that were moved and not read yet
	ended bool       // its end was read, but not all records that were moved
}

// elsewhere is the number of no file.
const elsewhere = math.MaxUint64

// follow reads on: calls, with the holds that stand between them, of a file.
func (o openHolds) follow(calls []store.Call, holds []hold, seq uint64) {
	for i := range calls {
		for len(holds) > 0 && holds[0].at <= i {
			o.begin(&holds[0], seq)
			holds = holds[1:]
		}
		if len(o) > 0 {
			o.end(calls[i].ID)
		}
	}
	for i := range holds {
		o.begin(&holds[i], seq)
	}
}

func (o openHolds) begin(read *hold, seq uint64) {
	h := o[read.call.ID]
	if h == nil {
		o[read.call.ID] = &openHold{call: read.call, seq: seq}
		return
	}
	if read.kind == ofMoved {
		h.again--
	}
	if h.ended && h.again == 0 {
		delete(o, read.call.ID)
		return
	}
	h.seq = seq
	if read.call.Charge > h.call.Charge { // what was moved may be older than what was held since
		h.call = read.call
	}
}

func (o openHolds) end(id string) {
	h := o[id]
	switch {
	case h == nil:
	case h.again > 0: // else what is still to be read would open it again
		h.ended = true
	default:
		delete(o, id)
	}
}

// moveHolds writes the holds anew that only the file says that is to be
// removed.
func (l *Ledger) moveHolds() error {
	for _, h := range l.open {
		if h.seq != l.seq || h.ended {
			continue
		}
		if err := l.write(&h.call, ofMoved); err != nil {
			return err
		}
		h.seq = elsewhere
		h.again++
	}
	return nil
}

// interruptOpen records the calls that have not ended.
func (l *Ledger) interruptOpen() error {
	l.drain.Lock()
	defer l.drain.Unlock()
	return l.interrupt(l.open)
}

func (l *Ledger) interrupt(open openHolds) error {
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if h := open[id]; !h.ended {
			if err := l.Append(&h.call); err != nil {
				return err
			}
		}
	}
	return nil
}

// recoverHolds records as interrupted what former processes began and did not end.
// It is done before any of their files is removed. A crash in between has it
// done again, which changes nothing: calls have IDs of their own.
func (l *Ledger) recoverHolds() error {
	if l.recovered {
		return nil
	}
	open := openHolds{}
	for seq := l.seq; seq < l.own; seq++ {
		path := segmentPath(l.journal.dir, seq)
		for offset := int64(0); ; {
			next, err := l.reader.read(path, offset, math.MaxInt64)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if next == offset {
				break
			}
			open.follow(l.reader.calls, l.reader.holds, seq)
			offset = next
		}
	}
	if err := l.interrupt(open); err != nil {
		return err
	}
	l.recovered = true
	return nil
}
