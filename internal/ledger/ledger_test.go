package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(appendUntilKilled(dir))
	}
	goleak.VerifyTestMain(m)
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// open opens a ledger and leaves it as a crash would: what is not closed by
// the test keeps its files.
func open(t *testing.T, dir string, st *store.Store) *Ledger {
	t.Helper()
	l, err := Open(dir, booksOf(st), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.journal.close() })
	return l
}

func booksOf(st *store.Store) *budget.Books {
	return budget.NewBooks(st, "n", true, slog.New(slog.DiscardHandler))
}

func newCall(id string) *store.Call {
	return &store.Call{ID: id, KeyID: "k", Operation: "chat", Model: "m", Status: 200, Started: time.UnixMilli(1732000000123), Usage: llm.Usage{Input: 1}}
}

func add(t *testing.T, l *Ledger, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := l.Append(newCall(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func drain(t *testing.T, l *Ledger) {
	t.Helper()
	if err := l.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// stored returns the IDs in the store, and fails when the sums say that one
// was counted twice.
func stored(t *testing.T, st *store.Store) []string {
	t.Helper()
	calls, err := st.Calls(context.Background(), store.CallFilter{}, "", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := st.Usage(context.Background(), store.Filter{}, nil, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(calls)); usage[0].Calls != n || usage[0].Usage.Input != n {
		t.Errorf("%d calls are counted as %d with %d tokens", n, usage[0].Calls, usage[0].Usage.Input)
	}
	ids := []string{}
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

func wantStored(t *testing.T, st *store.Store, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := stored(t, st); !slices.Equal(got, want) {
		t.Errorf("stored are %d: %.200q, want %d: %.200q", len(got), got, len(want), want)
	}
}

func journalFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// numbered makes IDs.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return ids
}

func TestAppendDrainClose(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	drain(t, l)
	add(t, l, "a", "b")
	if got := l.Pending(); got != 2 {
		t.Errorf("pending is %d, want 2", got)
	}
	wantStored(t, st)
	drain(t, l)
	wantStored(t, st, "a", "b")
	if got := l.Pending(); got != 0 {
		t.Errorf("pending is %d after the drain, want 0", got)
	}
	add(t, l, "c")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStored(t, st, "a", "b", "c")
	if files := journalFiles(t, dir); len(files) != 0 {
		t.Errorf("a journal that was closed well left %v", files)
	}
	again := open(t, dir, st)
	add(t, again, "d")
	drain(t, again)
	wantStored(t, st, "a", "b", "c", "d")
}

// What the store gets is what was appended, member by member.
func TestRecordsArriveWhole(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	want := calls()[1]
	want.Model, want.FirstByte, want.Total = "a/é\"", 1234*time.Microsecond, 99*time.Second
	if err := l.Append(&want); err != nil {
		t.Fatal(err)
	}
	drain(t, l)
	got, err := st.Calls(t.Context(), store.CallFilter{}, "", 2)
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestAppendFromMany(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	const writers, each = 64, 500
	var want []string
	var wg sync.WaitGroup
	for w := range writers {
		ids := numbered(fmt.Sprintf("%02d-", w), each)
		want = append(want, ids...)
		wg.Go(func() {
			for _, id := range ids {
				if err := l.Append(newCall(id)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 5 { // while they write
		drain(t, l)
	}
	wg.Wait()
	drain(t, l)
	wantStored(t, st, want...)
	if got := l.Pending(); got != 0 {
		t.Errorf("pending is %d, want 0", got)
	}
}

func TestSegments(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	ids := numbered("", 300)
	for i, id := range ids {
		c := newCall(id)
		c.Model = strings.Repeat("m", 60_000) // four segments
		if err := l.Append(c); err != nil {
			t.Fatal(err)
		}
		if i == 100 {
			drain(t, l) // in the middle of a segment
		}
	}
	if files := journalFiles(t, dir); len(files) < 3 {
		t.Errorf("%d calls with %d bytes are in the files %v", len(ids), len(ids)*60_000, files)
	}
	drain(t, l)
	wantStored(t, st, ids...)
	if files := journalFiles(t, dir); len(files) != 1 {
		t.Errorf("after the drain there are %v, want the last segment", files)
	}
}

// crashed copies a data directory's journal as it stands, as another start
// would find it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "journal"), os.DirFS(filepath.Join(dir, "journal"))); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	first := numbered("a", 1200)
	add(t, l, first...)
	drain(t, l)
	second := numbered("b", 300)
	add(t, l, second...) // not drained before the crash

	for _, again := range []*store.Store{st, openStore(t, t.TempDir())} { // the same store, and one that lost what it had
		dir := crashed(t, dir)
		l := open(t, dir, again)
		if got := l.Pending(); got != 0 {
			t.Errorf("pending is %d before this process wrote anything", got)
		}
		add(t, l, "c")
		drain(t, l)
		wantStored(t, again, append(append([]string{"c"}, first...), second...)...)
		if got := l.Pending(); got != 0 {
			t.Errorf("pending is %d after the drain, want 0", got)
		}
		if files := journalFiles(t, dir); len(files) != 1 {
			t.Errorf("after the drain there are %v, want the segment of this process", files)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Whatever the crash left of the last record, those before it are there, and
// what is left is kept aside.
func TestReplayOfACutRecord(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	add(t, l, "a", "b")
	_, before := l.journal.position()
	add(t, l, "c")
	_, after := l.journal.position()
	st := openStore(t, t.TempDir())
	for size := before; size <= after; size++ {
		dir := crashed(t, dir)
		path := segmentPath(filepath.Join(dir, "journal"), 1)
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		cut, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l := open(t, dir, st)
		id := fmt.Sprintf("next-%d", size)
		add(t, l, id)
		drain(t, l)
		want := []string{"a", "b", id}
		if size == after {
			want = append(want, "c")
		}
		got := stored(t, st)
		if !slices.Contains(got, "a") || !slices.Contains(got, "b") || !slices.Contains(got, id) || slices.Contains(got, "c") != (size == after) {
			t.Errorf("cut at %d: stored are %v, want %v", size, got, want)
		}
		kept, err := filepath.Glob(path + ".*")
		if err != nil {
			t.Fatal(err)
		}
		aside := ""
		for _, name := range kept {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			aside += string(content)
		}
		if torn := size != before && size != after; torn && aside != string(cut) || !torn && len(kept) > 0 {
			t.Errorf("cut at %d: kept aside are %d bytes in %v", size, len(aside), kept)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A power loss leaves a file with zeros at its end.
func TestReplayOfZeros(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	add(t, l, "a", "b")
	_, size := l.journal.position()
	dir = crashed(t, dir)
	if err := os.Truncate(segmentPath(filepath.Join(dir, "journal"), 1), size+4096); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, dir)
	l = open(t, dir, st)
	add(t, l, "c")
	if err := l.Drain(t.Context()); err != nil {
		t.Errorf("the journal is stuck: %v", err)
	}
	wantStored(t, st, "a", "b", "c")
}

// What was kept aside is never replaced by what is kept aside later.
func TestCutRecordsAreAllKept(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	for round := range 3 {
		l := open(t, dir, st)
		seq, _ := l.journal.position()
		if _, err := l.journal.file.WriteString("cut " + fmt.Sprint(round)); err != nil {
			t.Fatal(err)
		}
		next := open(t, dir, st) // after the crash of l
		if err := next.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(segmentPath(next.journal.dir, seq)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("round %d: the file with the cut record is still read", round)
		}
	}
	kept := map[string]bool{}
	for _, name := range journalFiles(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, "journal", name))
		if err != nil {
			t.Fatal(err)
		}
		kept[string(content)] = true
	}
	if len(kept) != 3 {
		t.Errorf("kept aside are %v, want what each of 3 crashes left", slices.Sorted(maps.Keys(kept)))
	}
}

func TestNewerReleaseIsNotSkipped(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	add(t, l, "a")
	if _, err := l.journal.file.Write(withHeader([]byte{version + 1})); err != nil {
		t.Fatal(err)
	}
	dir = crashed(t, dir)
	l = open(t, dir, st)
	for range 2 {
		if err := l.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "newer release") {
			t.Errorf("got %v, want an error about a newer release", err)
		}
	}
	if files := journalFiles(t, dir); len(files) != 2 {
		t.Errorf("files are %v, want that none is gone", files)
	}
}

// A record that could not be read again must not be acknowledged.
func TestAppendRefusesWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	big := newCall("big")
	big.Model = strings.Repeat("m", maxPayload)
	err := l.Append(big)
	add(t, l, "after")
	drain(t, l)
	got := stored(t, st)
	if !slices.Contains(got, "after") || slices.Contains(got, "big") != (err == nil) {
		t.Errorf("stored are %q; the large record was acknowledged with %v", got, err)
	}
}

func TestStoreAway(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	add(t, l, "a")
	drain(t, l)
	st.Close()
	ids := numbered("b", 1200)
	add(t, l, ids...)
	for range 2 {
		if err := l.Drain(t.Context()); err == nil {
			t.Error("a drain into a closed store went well")
		}
	}
	if got := l.Pending(); got != 1200 {
		t.Errorf("pending is %d, want 1200", got)
	}
	if err := l.Ready(); err != nil {
		t.Errorf("calls are refused because the store is away: %v", err)
	}
	st = openStore(t, dir) // it is back
	l.books = booksOf(st)
	add(t, l, "c")
	drain(t, l)
	wantStored(t, st, append(ids, "a", "c")...)
	if got := l.Pending(); got != 0 {
		t.Errorf("pending is %d, want 0", got)
	}
}

// A shutdown without the store keeps the journal for the next start.
func TestCloseWithoutStore(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	st.Close()
	add(t, l, "a")
	if err := l.Close(t.Context()); err == nil {
		t.Error("Close does not say that records are left")
	}
	st = openStore(t, dir)
	l = open(t, dir, st)
	drain(t, l)
	wantStored(t, st, "a")
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		st, err := store.Open(ctx, dir, "")
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		l, err := Open(dir, booksOf(st), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		add(t, l, "a")
		time.Sleep(drainEvery + time.Millisecond)
		synctest.Wait()
		if got := l.Pending(); got != 0 {
			t.Errorf("pending is %d after a tick, want 0", got)
		}
		st.Close()
		add(t, l, "b")
		time.Sleep(10 * drainEvery)
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("an outage is logged in %d lines, want 1:\n%s", n, log.String())
		}
		cancel()
		<-done
		if err := l.journal.close(); err != nil {
			t.Error(err)
		}
	})
}

// A disk that fails is told of, calls are refused for a moment, and when it is
// well again all that was acknowledged is there.
func TestDiskFails(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, *os.File) *os.File{
		"cannot be written": func(t *testing.T, f *os.File) *os.File {
			broken, err := os.Open(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			return broken
		},
		"was closed": func(t *testing.T, f *os.File) *os.File {
			broken, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			broken.Close()
			return broken
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			st := openStore(t, dir)
			synctest.Test(t, func(t *testing.T) {
				l, err := Open(dir, nil, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Ready(); err != nil {
					t.Errorf("not ready before anything failed: %v", err)
				}
				add(t, l, "a")
				whole := l.journal.file
				l.journal.file = replace(t, whole)
				whole.Close()
				if err := l.Append(newCall("lost")); err == nil {
					t.Fatal("a record that was not written is acknowledged")
				}
				if l.Ready() == nil {
					t.Error("ready right after a record could not be written")
				}
				time.Sleep(retryAfterFailure)
				if err := l.Ready(); err != nil {
					t.Errorf("not ready again: %v", err)
				}
				add(t, l, "b", "c")
				if got := l.Pending(); got != 3 {
					t.Errorf("pending is %d, want 3", got)
				}
				l.journal.close()
			})
			l := open(t, dir, st)
			drain(t, l)
			wantStored(t, st, "a", "b", "c")
		})
	}
}

// A drain takes only what was written whole: of a write that is under way the
// file can be cut back, and other records come to stand there.
func TestDrainLeavesAWriteUnderWay(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	add(t, l, "a")
	_, size := l.journal.position()
	if _, err := l.journal.file.Write(appendRecord(nil, newCall("failing"), ofCall)); err != nil {
		t.Fatal(err)
	}
	drain(t, l)
	if err := l.journal.file.Truncate(size); err != nil { // as write does when the disk is full
		t.Fatal(err)
	}
	add(t, l, "written")
	drain(t, l)
	wantStored(t, st, "a", "written")
}

func TestOpenIgnoresOtherFiles(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	if err := os.MkdirAll(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0000000000000007.journal.cut", "notes.txt", "x.journal"} {
		if err := os.WriteFile(filepath.Join(journal, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := openStore(t, dir)
	l := open(t, dir, st)
	add(t, l, "a")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStored(t, st, "a")
	if files := journalFiles(t, dir); len(files) != 3 {
		t.Errorf("files are %v, want the three that are not the ledger's", files)
	}
}

// What cannot be written keeps nothing else from the store: where the journal
// has filled the disk, that is what makes room.
func TestOwedKeepsNothingBack(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	add(t, l, "before")
	l.journal.segment = 0 // the next record wants a file, whose name is taken
	if err := os.WriteFile(segmentPath(l.journal.dir, l.journal.seq+1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Owe(newCall("owed"))
	if err := l.Drain(t.Context()); err == nil {
		t.Error("a record that is owed was written where none can be")
	}
	wantStored(t, st, "before")
}

// A record that no journal takes is not asked for again and again.
func TestOwedTooLarge(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := open(t, dir, st)
	large := newCall("large")
	large.Error = strings.Repeat("x", maxPayload+1)
	if err := l.Append(large); err == nil || l.Ready() != nil {
		t.Errorf("append: %v, ready: %v; want it refused, and the next call served", err, l.Ready())
	}
	l.Owe(large)
	l.Owe(newCall("owed"))
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStored(t, st, "owed")
}
