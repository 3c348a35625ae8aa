package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a file in memory and a record of what its watcher did.
type watched struct {
	*Watcher
	mu   sync.Mutex
	text string
	err  error
	did  []string

	refusal error // of what is applied
}

const pollEvery = PollFile

func (f *watched) write(text string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.err = text, err
}

func (f *watched) read(string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.text), f.err
}

func (f *watched) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, what)
}

func newWatched(text string) *watched {
	f := &watched{text: text}
	opt := world()
	opt.ReadFile = f.read
	f.Watcher = NewWatcher(func() (Source, error) { return ReadFile("limen.yaml", opt) }, pollEvery, opt,
		func(c *Config, _ Source) error { f.note("apply " + c.Data); return f.refusal },
		func(err error) { f.note("report " + err.Error()) })
	return f
}

// run starts the watcher and gives back what ends it.
func (f *watched) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

// after lets time pass, and takes what the watcher did meanwhile.
func (f *watched) after(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	did := f.did
	f.did = nil
	return did
}

func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWatched("data: a")
		if c, _, err := f.Load(); err != nil || c.Data != "a" {
			t.Fatalf("Load: got %v, %v", c, err)
		}
		defer f.run(t)()
		settled := pollEvery + settleAfter
		const bad = "report limen.yaml:1:1: unknown field \"date\" (did you mean \"data\"?)\n  date: …\n  ^"
		const missing = "report cannot read the configuration limen.yaml: file does not exist"

		expect := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		expect("nothing changed", f.after(10*pollEvery))
		f.write("data: b", nil)
		expect("a change", f.after(settled), "apply b")
		expect("once", f.after(10*pollEvery))
		f.write("date: c", nil)
		expect("a mistake", f.after(settled), bad)
		expect("reported once", f.after(10*pollEvery))
		if err := f.Now(); err == nil {
			t.Error("a mistake was taken")
		}
		expect("reported again when asked", f.after(0), bad)
		f.write("data: b", nil)
		expect("the last good one returns", f.after(settled), "apply b")
		f.write("", os.ErrNotExist)
		expect("the file is gone", f.after(10*pollEvery), missing)
		f.write("data: b", nil)
		expect("the file is back", f.after(settled), "apply b")
		f.Now()
		expect("asked for without a change", f.after(0), "apply b")
		f.write("data: d", nil)
		f.Now()
		expect("asked for with a change", f.after(0), "apply d")
		expect("and not again", f.after(10*pollEvery))
	})
}

// A file that is being written is left alone until it stays the same.
func TestWatcherWaitsForWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWatched("data: a")
		if _, _, err := f.Load(); err != nil {
			t.Fatal(err)
		}
		defer f.run(t)()
		f.write("", nil) // truncated, which by itself would be a valid document
		if did := f.after(pollEvery + settleAfter/2); did != nil {
			t.Errorf("got %q from half a file", did)
		}
		f.write("data: b", nil)
		if did := f.after(2 * settleAfter); !slices.Equal(did, []string{"apply b"}) {
			t.Errorf("got %q, want the finished file applied", did)
		}
		f.write("da", nil)
		f.after(pollEvery - settleAfter)
		f.write("data: b", nil)
		if did := f.after(10 * pollEvery); did != nil {
			t.Errorf("got %q after the old content came back", did)
		}
	})
}

func TestWatcherWithoutLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWatched("data: a")
		defer f.run(t)()
		if did := f.after(10 * pollEvery); !slices.Equal(did, []string{"apply a"}) {
			t.Errorf("got %q, want it applied once", did)
		}
		f.refusal = errors.New("no")
		if err := f.Now(); err != f.refusal {
			t.Errorf("got %v, want what refused it", err)
		}
		if did := f.after(10 * pollEvery); !slices.Equal(did, []string{"apply a", "report no"}) {
			t.Errorf("got %q, want it reported once", did)
		}
	})
}

// Kubernetes swaps a link in the path, not the file.
func TestWatcherFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "limen.yaml"), []byte("data: v"+version), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(version string) {
		fresh := filepath.Join(dir, "fresh")
		if err := errors.Join(os.Symlink(version, fresh), os.Rename(fresh, filepath.Join(dir, "current"))); err != nil {
			t.Fatal(err)
		}
	}
	link("1")
	synctest.Test(t, func(t *testing.T) {
		f := &watched{}
		f.Watcher = NewWatcher(func() (Source, error) { return ReadFile(filepath.Join(dir, "current", "limen.yaml"), Options{}) }, pollEvery, Options{},
			func(c *Config, _ Source) error { f.note(c.Data); return nil }, func(err error) { f.note(err.Error()) })
		if _, _, err := f.Load(); err != nil {
			t.Fatal(err)
		}
		defer f.run(t)()
		link("2")
		if did := f.after(pollEvery + settleAfter); !slices.Equal(did, []string{"v2"}) {
			t.Errorf("got %q, want v2", did)
		}
	})
}
