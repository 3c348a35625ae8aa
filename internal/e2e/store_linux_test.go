package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
	g := spawn(t, data, provider(newUpstream(t)))
	const each = 20
	calls := func() {
		for range each {
			check(t, g.post(t, "/chat/completions", chatBody(false, "hello")), "answer")
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

	release()
	eventually(t, "an unknown key is wrong again", func() bool { return unknown().status == http.StatusUnauthorized })
	if n := len(g.records(t)); n != 3*each {
		t.Errorf("usage: got %d calls, want %d", n, 3*each)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit code: got %d, want 0\n%s", code, g.log.String())
	}
}
