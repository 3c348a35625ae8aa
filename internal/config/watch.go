package config

import (
	"context"
	"crypto/sha256"
	"time"
)

const (
	pollEvery   = 2 * time.Second
	settleAfter = 100 * time.Millisecond
)

// Watcher keeps the configuration in step with its file. It looks at the content, not at times or names: a
// configuration is small, links are swapped beneath it, and clocks of file systems are coarse.
//
// A changed file is taken only when two looks, a moment apart, find the same: an editor may be halfway through
// writing, and half a document can be a valid one.
type Watcher struct {
	path    string
	opt     Options
	apply   func(*Config)
	report  func(error)
	trigger chan struct{}

	known   content // what was last applied or reported
	pending content // what the last look found
}

// content stands for what a look at the file found, an error included.
type content [sha256.Size]byte

// NewWatcher watches the file at path. Run calls apply with every new configuration that is good, and report with
// the error of every one that is not, once for each content; what was applied last is then still in force.
func NewWatcher(path string, opt Options, apply func(*Config), report func(error)) *Watcher {
	return &Watcher{path: path, opt: opt, apply: apply, report: report, trigger: make(chan struct{}, 1)}
}

// Load reads the file now, without calling apply or report. Call it before Run, which then waits for changes since;
// without it, Run begins by applying what it finds.
func (w *Watcher) Load() (*Config, error) {
	data, err := w.look()
	w.known = w.pending
	return parseFile(w.path, data, err, w.opt)
}

// Trigger makes Run read the file at once and take what it finds, even if nothing changed: a file that it refers to
// may have, and who asks wants to see the mistakes again. It never waits.
func (w *Watcher) Trigger() {
	select {
	case w.trigger <- struct{}{}:
	default: // one is due already
	}
}

// Run returns when ctx ends. Apply and report are called from it, one at a time.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.trigger:
			w.take(w.look())
		case <-ticker.C:
			before := w.pending
			data, err := w.look()
			switch w.pending {
			case w.known:
				ticker.Reset(pollEvery)
			case before:
				w.take(data, err)
				ticker.Reset(pollEvery)
			default:
				ticker.Reset(settleAfter)
			}
		}
	}
}

func (w *Watcher) look() ([]byte, error) {
	data, err := w.opt.resolver().readFile(w.path)
	if err != nil {
		w.pending = sha256.Sum256([]byte("error: " + err.Error()))
	} else {
		w.pending = sha256.Sum256(data)
	}
	return data, err
}

func (w *Watcher) take(data []byte, err error) {
	w.known = w.pending
	c, err := parseFile(w.path, data, err, w.opt)
	if err != nil {
		w.report(err)
		return
	}
	w.apply(c)
}
