package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const moment = 40 * time.Millisecond

// line is a gate and those who were let in, in their order.
type line struct {
	*Gate
	t    *testing.T
	mu   sync.Mutex
	in   []string
	errs map[string]error
	took map[string]time.Duration
}

func newLine(t *testing.T, capacity int64) *line {
	return &line{Gate: NewGate(capacity), t: t, errs: map[string]error{}, took: map[string]time.Duration{}}
}

// come has somebody come in, or wait for it.
func (l *line) come(ctx context.Context, name string, weight int64, wait time.Duration) {
	begun := time.Now()
	go func() {
		err := l.Enter(ctx, weight, wait)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.took[name] = time.Since(begun)
		if l.errs[name] = err; err == nil {
			l.in = append(l.in, name)
		}
	}()
	synctest.Wait()
}

// leave gives back, and lets those go on whom that lets in.
func (l *line) leave(weight int64) {
	l.Leave(weight)
	synctest.Wait()
}

func (l *line) want(in ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.in, in) {
		l.t.Errorf("in are %q, want %q", l.in, in)
	}
}

// wantAny is want where several are let in at the same moment.
func (l *line) wantAny(in ...string) {
	l.t.Helper()
	l.mu.Lock()
	slices.Sort(l.in)
	l.mu.Unlock()
	slices.Sort(in)
	l.want(in...)
}

func (l *line) empty() {
	l.t.Helper()
	if in, waiting := l.InUse(), l.waiting.Load(); in != 0 || waiting != 0 || l.queue.Len() != 0 || l.limited != 0 {
		l.t.Errorf("at the end %d are in use, and %d wait", in, waiting)
	}
}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		ctx := t.Context()
		l.come(ctx, "first", 1, moment)
		l.come(ctx, "run 1", 1, Forever)
		l.come(ctx, "old", 1, moment)
		l.come(ctx, "run 2", 1, Forever)
		l.come(ctx, "new", 1, moment)
		l.want("first")
		for range 4 {
			l.leave(1)
		}
		l.want("first", "new", "old", "run 1", "run 2")
		l.leave(1)
		l.empty()
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		left, leave := context.WithCancel(t.Context())
		l.come(t.Context(), "first", 1, moment)
		l.come(t.Context(), "at once", 1, 0)
		l.come(t.Context(), "a moment", 1, moment)
		l.come(left, "leaves", 1, Forever)
		time.Sleep(time.Hour)
		leave()
		synctest.Wait()
		for name, want := range map[string]struct {
			err  error
			took time.Duration
		}{
			"first": {nil, 0}, "at once": {ErrFull, 0}, "a moment": {ErrFull, moment}, "leaves": {context.Canceled, time.Hour},
		} {
			if err, took := l.errs[name], l.took[name]; !errors.Is(err, want.err) || took != want.took {
				t.Errorf("%s: got %v after %s, want %v after %s", name, err, took, want.err, want.took)
			}
		}
		l.want("first")
		l.leave(1)
		l.empty()
	})
}

// Nobody passes those who wait, even if there is room for a smaller weight, but
// who gives up makes way.
func TestWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 10)
		l.come(t.Context(), "6", 6, 0)
		l.come(t.Context(), "small", 3, Forever)
		l.come(t.Context(), "large", 9, Forever)
		l.come(t.Context(), "small run", 1, Forever)
		l.want("6", "small")
		if l.Try(1) {
			t.Error("somebody passed those who wait")
		}
		l.leave(6)
		l.want("6", "small")
		l.leave(3)
		l.wantAny("6", "small", "large", "small run")
		l.leave(9)
		l.leave(1)

		l.come(t.Context(), "5", 5, 0)
		l.come(t.Context(), "4", 4, Forever)
		l.come(t.Context(), "2", 2, Forever)
		l.come(t.Context(), "too much", 9, moment)
		l.come(t.Context(), "1", 1, Forever)
		l.wantAny("6", "small", "large", "small run", "5", "4")
		time.Sleep(2 * moment)
		l.leave(4)
		l.wantAny("6", "small", "large", "small run", "5", "4", "2", "1")
		l.leave(5 + 2 + 1)
		l.empty()
	})
}

func TestCapacityChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, 1)
		for _, name := range []string{"a", "b", "c", "d"} {
			l.come(t.Context(), name, 1, Forever)
		}
		l.want("a")
		l.SetCapacity(3)
		synctest.Wait()
		l.wantAny("a", "b", "c")
		l.SetCapacity(1)
		if n := l.InUse(); n != 3 {
			t.Errorf("%d are in, want 3", n)
		}
		l.leave(1)
		l.leave(1)
		l.wantAny("a", "b", "c")
		l.leave(1)
		l.wantAny("a", "b", "c", "d")
		l.SetCapacity(Unlimited)
		if !l.Try(1<<40) || !l.Try(1) {
			t.Error("an unlimited gate is full")
		}
		l.leave(1<<40 + 2)
		l.empty()
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(0)
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() { g.Enter(t.Context(), 1, moment) })
		}
		synctest.Wait()
		begun := time.Now()
		if err := g.Enter(t.Context(), 1, moment); err != ErrFull || time.Since(begun) > 0 {
			t.Errorf("one more: got %v after %s", err, time.Since(begun))
		}
		wg.Wait()
	})
}

// However comings, leavings, ends of waits and changes fall together, no more
// is in than may be, and all that was taken is given back. Nobody is forgotten:
// who waits forever comes in.
func TestNothingIsLost(t *testing.T) {
	const capacity, workers, rounds = 4, 32, 300
	g := NewGate(capacity)
	var in, most, admitted atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := int64(1); ; n = n%capacity + 1 {
			select {
			case <-stop:
				return
			default:
				g.SetCapacity(n)
			}
		}
	}()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(int64(time.Millisecond))))
				wait := []time.Duration{0, time.Microsecond, time.Millisecond, Forever}[rand.N(4)]
				if wait == Forever {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				if err := g.Enter(ctx, 1, wait); err == nil {
					admitted.Add(1)
					now := in.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					in.Add(-1)
					g.Leave(1)
				} else if wait == Forever {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	close(stop)
	<-stopped
	g.SetCapacity(capacity)
	if most.Load() > capacity || admitted.Load() == 0 {
		t.Errorf("%d were in at once, want at most %d, and at least one", most.Load(), capacity)
	}
	if n := g.InUse(); n != 0 || g.waiting.Load() != 0 || !g.Try(capacity) {
		t.Errorf("%d are in use in the end", n)
	}
}

func BenchmarkGate(b *testing.B) {
	g := NewGate(4096)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if g.Try(1) {
				g.Leave(1)
			}
		}
	})
}
