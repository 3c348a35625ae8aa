package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// PollFile is how often a file is looked at.
const PollFile = 2 * time.Second

const settleAfter = 100 * time.Millisecond

// Watcher keeps the configuration in step with its document, wherever that is. It looks at the content, not at times or
// names: a configuration is small, links are swapped beneath a file, and clocks of file systems are coarse.
//
// A changed document is taken only when two looks, a moment apart, find the same: an editor may be halfway through
// writing, and half a document can be a valid one.
type Watcher struct {
	read   func() (Source, error)
	every  time.Duration
	opt    Options
	apply  func(*Config, Source) error
	report func(error)

	mu      sync.Mutex
	known   content // what was last applied or reported
	pending content // what the last look found
}

// content stands for what a look found, an error included.
type content [sha256.Size]byte

// NewWatcher watches what read gives, looking so often. Run calls apply with every new configuration that is good, and
// report with the error of every one that is not, or was not taken, once for each content; what was applied last is then
// still in force.
func NewWatcher(read func() (Source, error), every time.Duration, opt Options, apply func(*Config, Source) error, report func(error)) *Watcher {
	return &Watcher{read: read, every: every, opt: opt, apply: apply, report: report}
}

// Load reads the document now, without calling apply or report. Call it before Run, which then waits for changes since;
// without it, Run begins by applying what it finds.
func (w *Watcher) Load() (*Config, Source, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	src, err := w.look()
	w.known = w.pending
	if err != nil {
		return nil, src, err
	}
	c, err := Parse(src, w.opt)
	return c, src, err
}

// Now takes what there is at once, even if nothing changed: a file that it refers to may have, and who asks wants to see
// the mistakes again. Its error was reported.
func (w *Watcher) Now() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take(w.look())
}

// Run returns when ctx ends. Apply and report are called one at a time.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			ticker.Reset(w.tick())
		}
	}
}

// tick looks once, and returns when to look again.
func (w *Watcher) tick() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pending
	src, err := w.look()
	switch w.pending {
	case w.known:
	case before:
		w.take(src, err)
	default:
		return settleAfter
	}
	return w.every
}

func (w *Watcher) look() (Source, error) {
	src, err := w.read()
	if err != nil {
		w.pending = sha256.Sum256([]byte("error: " + err.Error()))
	} else {
		w.pending = sha256.Sum256(fmt.Appendf(nil, "%d %s", src.Revision, src.Data))
	}
	return src, err
}

func (w *Watcher) take(src Source, err error) error {
	w.known = w.pending
	var c *Config
	if err == nil {
		c, err = Parse(src, w.opt)
	}
	if err == nil {
		err = w.apply(c, src)
	}
	if err != nil {
		w.report(err)
	}
	return err
}
