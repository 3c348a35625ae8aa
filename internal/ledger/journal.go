package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/limen-gateway/limen/internal/store"
)

// segmentSize is when the journal goes on in a new file. What a file holds is
// stored again after a crash (which changes nothing), so it stays small.
const segmentSize = 4 << 20

const segmentSuffix = ".journal"

// journal is a sequence of append-only files. Append returns when the record
// is with the operating system, so that it outlives the process; a power loss
// can cost what came after the last sync.
//
// Whoever finds the pen lying there writes what all have put on the desk: one
// write serves many callers under load, and a lone caller waits for nobody.
type journal struct {
	dir     string
	segment int64 // as segmentSize

	mu      sync.Mutex
	desk    []byte     // records that nobody has begun to write
	round   *round     // that the desk belongs to
	writing bool       // somebody holds the pen
	done    *sync.Cond // a round ended

	// Held by whoever holds the pen.
	file  *os.File
	seq   uint64
	size  int64
	spare []byte
}

// round is one write for all whose records lay on the desk.
type round struct {
	over bool
	err  error
}

// openJournal goes on in a new file after those that are there.
func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	j := &journal{dir: dir, segment: segmentSize, round: &round{}}
	j.done = sync.NewCond(&j.mu)
	seqs, err := segments(dir)
	if err != nil {
		return nil, err
	}
	if len(seqs) > 0 {
		j.seq = seqs[len(seqs)-1]
	}
	return j, j.nextSegment()
}

// segments lists the files of a journal by number.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	var seqs []uint64
	for _, e := range entries {
		var seq uint64
		name, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		if _, err := fmt.Sscanf(name, "%016x", &seq); ok && err == nil {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

func segmentPath(dir string, seq uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", seq, segmentSuffix))
}

func (j *journal) nextSegment() error {
	f, err := os.OpenFile(segmentPath(j.dir, j.seq+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if j.file != nil {
		j.file.Close() // what was acknowledged is in it; a fault of the disk shows at the next write
	}
	j.file, j.size = f, 0
	j.seq++
	return nil
}

// errTooLarge is a record that no journal takes.
var errTooLarge = errors.New("ledger: the record is too large")

// append writes a record; when it returns nil the record is safe from the end
// of this process.
func (j *journal) append(c *store.Call, of kind) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.desk)
	j.desk = appendRecord(j.desk, c, of)
	if len(j.desk)-before > headerLen+maxPayload {
		j.desk = j.desk[:before]
		return errTooLarge
	}
	mine := j.round
	for !mine.over {
		if j.writing {
			j.done.Wait()
			continue
		}
		j.writeRound()
	}
	return mine.err
}

// writeRound writes what lies on the desk. It is called with mu held and
// gives it away while it writes.
func (j *journal) writeRound() {
	page, mine := j.desk, j.round
	j.desk, j.spare = j.spare[:0], nil
	j.round = &round{}
	j.writing = true
	j.mu.Unlock()

	err := j.write(page)

	j.mu.Lock()
	j.spare = page[:0]
	j.writing = false
	mine.over, mine.err = true, err
	j.done.Broadcast()
}

// write appends to the file. After a failure the file is cut back to whole
// records, so that what follows can be read.
func (j *journal) write(page []byte) error {
	if j.size >= j.segment {
		if err := j.nextSegment(); err != nil {
			return err
		}
	}
	n, err := j.file.Write(page)
	if err == nil {
		j.size += int64(n)
		return nil
	}
	if cut := j.file.Truncate(j.size); cut != nil {
		err = errors.Join(err, cut, j.nextSegment())
	}
	return fmt.Errorf("ledger: %w", err)
}

// turn goes on in a new file, if there is something in this one.
func (j *journal) turn() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing {
		j.done.Wait()
	}
	if j.size == 0 {
		return nil
	}
	return j.nextSegment()
}

// position is the file being written and how far it was written.
func (j *journal) position() (seq uint64, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing {
		j.done.Wait()
	}
	return j.seq, j.size
}

// sync waits until the disk has what was written.
func (j *journal) sync() error {
	j.mu.Lock()
	for j.writing {
		j.done.Wait()
	}
	f := j.file
	j.mu.Unlock()
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: it was turned, which is no loss
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing {
		j.done.Wait()
	}
	return j.file.Close()
}

// segmentReader reads the whole records of files, into memory that it uses
// again.
type segmentReader struct {
	data  []byte
	calls []store.Call
	holds []hold
	names names
}

// hold is a hold that stands before a call of those that were read with it.
type hold struct {
	call store.Call
	kind kind
	at   int // the call's index
}

// readAtOnce bounds what is read of a file in one go; it holds at least one
// record.
const readAtOnce = 256 << 10

// read returns whole records of a file between two offsets, and the offset
// after the last, which is the first where nothing more can be read; there may
// be more. It stops without an error at a record that a crash cut. The records
// are good until the next call.
func (r *segmentReader) read(path string, offset, end int64) (next int64, err error) {
	r.calls, r.holds = r.calls[:0], r.holds[:0]
	f, err := os.Open(path)
	if err != nil {
		return offset, err
	}
	defer f.Close()
	if r.data == nil {
		r.data, r.names = make([]byte, readAtOnce), names{}
	}
	n, err := f.ReadAt(r.data[:min(end-offset, readAtOnce)], offset)
	if err != nil && err != io.EOF {
		return offset, err
	}
	data := r.data[:n]
	for {
		e, rest, err := readRecord(data, r.names)
		if errors.Is(err, errTorn) {
			return offset + int64(n-len(data)), nil
		}
		if err != nil {
			return offset, err
		}
		if e.kind == ofCall {
			r.calls = append(r.calls, e.call)
		} else {
			r.holds = append(r.holds, hold{e.call, e.kind, len(r.calls)})
		}
		data = rest
	}
}
