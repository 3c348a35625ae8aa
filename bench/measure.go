package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// settle is what a proxy gets to finish what a call left to do, such as recording
// it, before its CPU is read: work put off is work done.
const settle = 300 * time.Millisecond

// inTurns measures each proxy once a round, beginning with another one each time,
// after a round that does not count.
func inTurns(rounds int, proxies []running, measure func(round int, p running) error) error {
	for round := -1; round < rounds; round++ {
		for i := range proxies {
			p := proxies[(round+1+i)%len(proxies)]
			if err := measure(round, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// cpuDuring is the CPU time that work costs a proxy.
func cpuDuring(p running, work func() error) (time.Duration, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	after, err := p.cpu()
	return after - before, err
}

func measureCalls(ctx context.Context, l *lab) (rows []row, err error) {
	list, stop, err := l.startAll(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, c := range []struct {
		what   string
		size   int
		n      int
		target float64
	}{
		{"chat, body of 1 KB", 1 << 10, 4000, 0.60},
		{"chat, body of 100 KB", 100 << 10, 1000, 0.85},
		{"chat, body of 1 MB", 1 << 20, 400, 1.2},
	} {
		r := newRow(c.what, "µs", atMostRatio(c.target))
		n := l.plan.scaled(c.n)
		err := inTurns(l.plan.rounds(), list, func(round int, p running) error {
			request := chatRequest(p.key, c.size)
			used, err := cpuDuring(p, func() error { return closedLoop(ctx, p.proxy, request, n, 16) })
			r.note(round, p.name, float64(used.Microseconds())/float64(n))
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func measureStreams(ctx context.Context, l *lab) (rows []row, err error) {
	const streams = 100
	list, stop, err := l.startAll(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r := newRow(fmt.Sprintf("%d streams of %d pieces, %v apart", streams, pieces, defaultPace), "µs", atMostRatio(1.0))
	err = inTurns(l.plan.rounds(), list, func(round int, p running) error {
		request := streamRequest(p.key, defaultPace)
		used, err := cpuDuring(p, func() error { return closedLoop(ctx, p.proxy, request, streams, streams) })
		r.note(round, p.name, float64(used.Nanoseconds())/1000/(streams*pieces))
		return err
	})
	return []row{r}, err
}

// The two columns of translation: both are Limen's own.
const (
	translated = "translated"
	passed     = "passed"
)

// measureTranslation compares calls whose upstream speaks another dialect with calls
// that pass, both through one process of Limen.
func measureTranslation(ctx context.Context, l *lab) (rows []row, err error) {
	own, err := l.proxies[0].run(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.process.stop()) }()
	for _, c := range []struct {
		what       string
		request    []byte
		n, workers int
		per        float64
		target     float64
	}{
		{"call, body of 1 KB", chatRequest(own.key, 1<<10), 4000, 16, 1, 2.5},
		{"call, body of 100 KB", chatRequest(own.key, 100<<10), 1000, 16, 1, 3},
		{"streamed piece", streamRequest(own.key, defaultPace), 100, 100, pieces, 2},
	} {
		r := pair(translated, passed, c.what, "µs", atMostRatio(c.target))
		n := c.n
		if c.per == 1 {
			n = l.plan.scaled(n)
		}
		for round := -1; round < l.plan.rounds(); round++ {
			for _, way := range []struct {
				name    string
				request []byte
			}{{passed, c.request}, {translated, farther(c.request)}} {
				used, err := cpuDuring(own, func() error { return closedLoop(ctx, own.proxy, way.request, n, c.workers) })
				if err != nil {
					return nil, fmt.Errorf("%s: %w", way.name, err)
				}
				r.note(round, way.name, float64(used.Nanoseconds())/1000/(float64(n)*c.per))
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// closedLoop makes n calls over as many connections as are concurrent, each with the
// next call as soon as it has the answer to the last. Streams must be whole.
func closedLoop(ctx context.Context, p *proxy, request []byte, n, concurrent int) error {
	var left atomic.Int64
	left.Store(int64(n))
	return each(concurrent, func(int) error {
		c, err := dial(p.addr)
		if err != nil {
			return err
		}
		defer c.close()
		for left.Add(-1) >= 0 && ctx.Err() == nil {
			p.calls.Add(1)
			events, err := c.call(request)
			if err != nil {
				return err
			}
			if events > 0 && events < pieces {
				return fmt.Errorf("a stream of %d events", events)
			}
		}
		return ctx.Err()
	})
}

// each runs n workers and joins their errors.
func each(n int, work func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // one says enough
		}
	}
	return nil
}

// measureLatency compares each proxy with calls made directly, slice by slice of a
// second. A machine that is shared stands still now and then; the median of the
// slices leaves those seconds out that it would ruin.
func measureLatency(ctx context.Context, l *lab) (rows []row, err error) {
	const slicesARound = 3
	list, stop, err := l.startAll(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	quantiles := []struct {
		q float64
		row
	}{
		{0.50, newRow("added, p50", "µs", atMostRatio(1.0))},
		{0.99, newRow("added, p99", "µs", atMostRatio(1.0))},
	}
	for round := range l.plan.rounds() {
		added := map[string][2][]float64{} // by proxy: of each quantile the slices
		for slice := range slicesARound {
			direct, err := latencySlice(ctx, &proxy{addr: l.upAddr})
			if err != nil {
				return nil, err
			}
			for i := range list {
				p := list[(slice+i)%len(list)]
				took, err := latencySlice(ctx, p.proxy)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", p.name, err)
				}
				a := added[p.name]
				for i, q := range quantiles {
					a[i] = append(a[i], float64((quantile(took, q.q)-quantile(direct, q.q)).Nanoseconds())/1000)
				}
				added[p.name] = a
			}
		}
		for i, q := range quantiles {
			for _, p := range list {
				q.note(round, p.name, median(added[p.name][i]))
			}
		}
	}
	for _, q := range quantiles {
		rows = append(rows, q.row)
	}
	return rows, nil
}

// latencySlice is a second of 1,000 calls, sorted.
func latencySlice(ctx context.Context, p *proxy) ([]time.Duration, error) {
	return openLoop(ctx, p, chatRequest(p.key, 1<<10), 1000, 1000)
}

// openLoop makes n calls at a fixed rate a second, whatever the answers do, and returns how long
// each took from the moment it was due: a call that had to wait for a late one before
// it counts that wait.
func openLoop(ctx context.Context, p *proxy, request []byte, n, rate int) ([]time.Duration, error) {
	const workers = 50
	took := make([]time.Duration, n)
	clients := make([]*client, workers)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.close()
			}
		}
	}()
	// Connections are opened, all the way to the upstream, before the clock starts.
	err := each(workers, func(w int) (err error) {
		if clients[w], err = dial(p.addr); err != nil {
			return err
		}
		p.calls.Add(1)
		_, err = clients[w].call(request)
		return err
	})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	err = each(workers, func(w int) error {
		for i := w; i < n && ctx.Err() == nil; i += workers {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
			time.Sleep(time.Until(due))
			p.calls.Add(1)
			if _, err := clients[w].call(request); err != nil {
				return err
			}
			took[i] = time.Since(due)
		}
		return ctx.Err()
	})
	slices.Sort(took)
	return took, err
}

// quantile is that of a sorted list.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

func measureMemory(ctx context.Context, l *lab) ([]row, error) {
	idle := newRow("idle, 2 s after its start", "MB", atMost(30))
	rows := []row{idle, newRow("1,000 open streams", "MB", atMost(90)), newRow("5,000 open streams", "MB", atMost(350))}
	for _, p := range l.proxies {
		if err := memoryOf(ctx, p, rows); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return rows, nil
}

// memoryOf measures one proxy, newly started: idle, and with streams open that get a
// piece every two seconds.
func memoryOf(ctx context.Context, p *proxy, rows []row) (err error) {
	r, err := p.run(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	var open []*client
	defer func() {
		for _, c := range open {
			c.close()
		}
	}()
	request := streamRequest(p.key, 2*time.Second)
	for i, n := range []int{0, 1000, 5000} {
		more, err := openStreams(p, request, n-len(open))
		open = append(open, more...)
		if err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
		mb, err := r.rss()
		if err != nil {
			return err
		}
		rows[i].note(0, p.name, mb)
	}
	return nil
}

// openStreams opens n streams, a hundred at a time, and waits until all have begun.
func openStreams(p *proxy, request []byte, n int) ([]*client, error) {
	clients := make([]*client, n)
	var next atomic.Int64
	err := each(min(n, 100), func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			var err error
			if clients[i], err = dial(p.addr); err != nil {
				return err
			}
			p.calls.Add(1)
			if err := clients[i].open(request); err != nil {
				return err
			}
		}
	})
	return slices.DeleteFunc(clients, func(c *client) bool { return c == nil }), err
}

func measureStart(ctx context.Context, l *lab) ([]row, error) {
	start := newRow("from spawning it to the first 200", "ms", atMost(100))
	times := 10
	if l.plan.quick {
		times = 3
	}
	for round := range times {
		for _, p := range l.proxies {
			r, err := p.run(ctx)
			if err != nil {
				return nil, err
			}
			start.note(round, p.name, float64(r.took.Microseconds())/1000)
			if err := r.stop(); err != nil {
				return nil, err
			}
		}
	}
	size := newRow("binary", "MB", atMost(32))
	bytes, err := l.limen.size()
	size.note(0, nameLimen, float64(bytes)/(1<<20))
	return []row{start, size}, err
}
