// Package repeat does something again and again, and tells once that it fails
// and once that it works again.
package repeat

import (
	"context"
	"time"
)

// Every calls do after each pause until ctx ends. tell is called with the error
// of the first of failures in a row, and with nil for the first success after
// them.
func Every(ctx context.Context, pause time.Duration, do func(context.Context) error, tell func(error)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed := err != nil; failed != failing {
			failing = failed
			tell(err)
		}
	}
}
