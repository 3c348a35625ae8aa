package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// lockStore makes the database of a running gateway unusable, as a hung disk
// or another program would: it takes the locks that every reader and writer of
// SQLite's write-ahead log needs. The locks are a process's own, so the gateway
// must be another. The result gives them back.
func lockStore(t *testing.T, data string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(data, "limen.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	// Bytes 120 to 127 are write, checkpoint, recover and five read locks.
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 120, Len: 8}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		lock.Type = syscall.F_UNLCK
		if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err != nil {
			t.Error(err)
		}
	}
}

// TestStoreDown takes the store away from a running gateway. Known keys go on
// working, what cannot be known is not called wrong, and no usage is lost.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := spawn(t, data, provider(newUpstream(t))+"prices: {unknown: ceiling, ceiling: {input: 1, output: 2}}\n")
	payer := g.paying(t, "10/month")
	made := 0
	calls := func() {
		for range 20 {
			check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
			made++
		}
	}
	calls()

	// A key of the right form that this gateway has not issued.
	other := start(t, "")
	unknown := func() reply {
		r := g.request(t, t.Context(), http.MethodGet, "/models", nil)
		r.Header.Set("Authorization", "Bearer "+other.key)
		return g.do(t, r)
	}
	check(t, unknown(), "401 invalid_api_key")

	release := lockStore(t, data)
	calls()
	eventually(t, "an unknown key is not called wrong", func() bool {
		return unknown().status != http.StatusUnauthorized
	})
	got := unknown()
	check(t, got, "503 service_unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("503 without retry-after")
	}
	r := g.request(t, t.Context(), http.MethodGet, "/models", nil)
	r.Header.Set("Authorization", "Bearer sk-wrong")
	check(t, g.do(t, r), "401 invalid_api_key") // its form is wrong: no store is needed to know
	calls()
	for away := time.Now(); *soak && time.Since(away) < time.Minute; {
		calls()
	}

	release()
	eventually(t, "an unknown key is wrong again", func() bool { return unknown().status == http.StatusUnauthorized })
	var sum struct{ Calls int }
	if g.admin(t, http.MethodGet, "/usage", "", &sum); sum.Calls != made {
		t.Errorf("usage: got %d calls, want %d", sum.Calls, made)
	}
	g.checkSettled(t, payer)
	if code := g.stop(); code != 0 {
		t.Errorf("exit code: got %d, want 0\n%s", code, g.log.String())
	}
}

// TestDiskFull fills the disk under a gateway. Calls that hold money are refused
// soon, before they are made; what was recorded stays, and when there is room
// again, all goes on.
func TestDiskFull(t *testing.T) {
	data := t.TempDir()
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(data, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	up := newUpstream(t)
	g := spawn(t, data, provider(up)+"prices: {unknown: ceiling, ceiling: {input: 1, output: 2}}\n")
	t.Cleanup(func() { g.stop() }) // before the disk goes
	payer := g.paying(t, "10/month")
	answered := map[string]bool{}
	call := func() reply {
		got := g.post(t, "/chat/completions", chatBody(false, "hello"))
		if got.status == http.StatusOK {
			answered[got.id()] = true
		}
		return got
	}
	rounds := 1
	if *soak {
		rounds = 20
	}
	var refusal, recovery time.Duration // the longest
	for range rounds {
		for range 20 {
			check(t, call(), "answer")
		}
		empty := fillDisk(t, filepath.Join(data, "ballast"))
		eventually(t, "calls are refused", func() bool { return call().status == http.StatusServiceUnavailable })
		for range 10 {
			before, began := len(up.Requests()), time.Now()
			if got, took := call(), time.Since(began); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || took > 100*time.Millisecond*slowness {
				t.Errorf("got %d after %s, want 503 within 100 ms", got.status, took)
			} else {
				refusal = max(refusal, took)
			}
			if len(up.Requests()) != before {
				t.Error("a call was made that cannot be recorded")
			}
		}
		empty()
		room := time.Now()
		eventually(t, "calls are served", func() bool { return call().status == http.StatusOK })
		took := time.Since(room)
		if took > 2*time.Second*slowness {
			t.Errorf("calls are served %s after there was room, want 2 s", took)
		}
		recovery = max(recovery, took)
	}
	t.Logf("%d times: refused after %s, served %s after there was room", rounds, refusal, recovery)
	eventually(t, "nothing is held", func() bool { return g.standing(t, payer).Held == 0 })
	g.checkUsage(t, answered)
	g.checkSettled(t, payer)
}

// slowness is what a machine may be slower that does other things as well.
const slowness = 5

// fillDisk writes a file until nothing more fits; the result removes it.
func fillDisk(t *testing.T, path string) (empty func()) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
