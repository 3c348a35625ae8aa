package ledger

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/store"
)

// childDir is the variable that makes the test binary a child that appends to
// the ledger in a directory until it is killed.
const childDir = "LIMEN_LEDGER_CHILD"

const childWriters = 16

// appendUntilKilled prints the ID of every call whose record was acknowledged.
// It drains all the time, so that the crash meets that as well.
func appendUntilKilled(dir string) int {
	st, err := store.Open(context.Background(), dir, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, err := Open(dir, booksOf(st), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	round := rand.Uint32()
	var wg sync.WaitGroup
	for w := range childWriters {
		wg.Go(func() {
			// In bursts: the parent has to read what all its children wrote.
			for i, tick := 0, time.Tick(20*time.Millisecond); ; <-tick {
				for range 6 {
					id := fmt.Sprintf("%08x-%02d-%06d", round, w, i)
					i++
					if err := l.Append(newCall(id)); err != nil {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
					os.Stdout.WriteString(id + "\n")
				}
			}
		})
	}
	for l.Drain(context.Background()) == nil {
	}
	fmt.Fprintln(os.Stderr, "the drain failed")
	return 1
}

// After kill -9, at any moment, every acknowledged record is there, once.
func TestKill(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for range rounds {
		for _, id := range killedChild(t, dir) {
			acknowledged[id] = true
		}
	}
	st := openStore(t, dir)
	l := open(t, dir, st)
	drain(t, l)
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	there := map[string]bool{}
	for _, id := range stored(t, st) {
		there[id] = true
	}
	missing := 0
	for id := range acknowledged {
		if !there[id] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged records are missing", missing, len(acknowledged))
	}
	// Those that were written when the kill came between that and their print.
	if extra := len(there) - len(acknowledged) + missing; extra > rounds*childWriters {
		t.Errorf("%d records are stored that nobody was told of", extra)
	}
	t.Logf("%d records acknowledged in %d lives", len(acknowledged), rounds)
}

// killedChild runs a child, kills it after a while, and returns what it had
// printed.
func killedChild(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var ids []string
	var timer *time.Timer
	for {
		line, err := lines.ReadString('\n')
		if err == nil {
			ids = append(ids, strings.TrimSuffix(line, "\n"))
		}
		if timer == nil { // the while begins with the first record
			timer = time.AfterFunc(50*time.Millisecond+rand.N(150*time.Millisecond), func() { cmd.Process.Kill() })
			defer timer.Stop()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd.Wait()
	if failure.Len() > 0 || len(ids) == 0 {
		t.Fatalf("the child printed %d IDs and failed: %s", len(ids), failure.String())
	}
	return ids
}
