package ledger

import (
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const fullDir = "LIMEN_LEDGER_FULL"

// A disk that is full takes part of a record. That part is cut off again, so
// that later records can be read. The limit on the size of files stands for
// the full disk; it holds for a process, so the test runs in one of its own.
func TestDiskFull(t *testing.T) {
	if os.Getenv(fullDir) != "" {
		t.Skip("this is the child")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFullChild$")
	cmd.Env = append(os.Environ(), fullDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	st := openStore(t, dir)
	l := open(t, dir, st)
	drain(t, l)
	wantStored(t, st, "before", "owed", "after 1", "after 2")
	for _, name := range journalFiles(t, dir) {
		t.Log(name)
	}
}

func TestDiskFullChild(t *testing.T) {
	dir := os.Getenv(fullDir)
	if dir == "" {
		t.Skip("runs as a child of TestDiskFull")
	}
	signal.Ignore(syscall.SIGXFSZ)
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(dir, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, "before")
		_, size := l.journal.position()
		limit(t, uint64(size)+10)
		for range 3 {
			if err := l.Append(newCall("lost")); err == nil {
				t.Error("a record that does not fit the disk is acknowledged")
			}
			l.Owe(newCall("owed"))
			if err := l.payOwed(); err == nil {
				t.Error("what is owed fits a disk that is full")
			}
			if l.Ready() == nil {
				t.Error("ready right after a record could not be written")
			}
		}
		if info, err := l.journal.file.Stat(); err != nil || info.Size() != size {
			t.Errorf("the file has %d bytes, %v, want the %d of whole records", info.Size(), err, size)
		}
		limit(t, ^uint64(0))
		time.Sleep(retryAfterFailure)
		if err := l.Ready(); err != nil {
			t.Errorf("not ready again: %v", err)
		}
		if err := l.payOwed(); err != nil || l.owed != nil {
			t.Errorf("%v, %d records are owed still", err, len(l.owed))
		}
		add(t, l, "after 1", "after 2")
		if err := l.journal.close(); err != nil {
			t.Error(err)
		}
	})
}

// limit sets how large files of this process can be, as far as it may.
func limit(t *testing.T, size uint64) {
	t.Helper()
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
		t.Fatal(err)
	}
	r.Cur = min(size, r.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
		t.Fatal(err)
	}
}
