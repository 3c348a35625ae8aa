package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// The columns of stored turns and sockets. All are Limen's own.
const (
	nameStored    = "stored"
	nameNotStored = "not stored"
	nameSocket    = "socket"
	nameHTTP      = "HTTP"
	nameLateTurn  = "turn 40"
	nameFirstTurn = "turn 1"
	nameChainEnd  = "its last 10"
	nameChainHead = "its first 10"
)

// loopTurns is how many turns an agent's loop has.
const loopTurns = 40

// measureState measures turns of 1 KB that are answered with 1 KB.
func measureState(ctx context.Context, l *lab) (rows []row, err error) {
	for _, measure := range []func(context.Context, *lab) ([]row, error){
		measureStored, measureLoops, measureIdleSockets, measureChain,
	} {
		more, err := measure(ctx, l)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// withLimen runs work with a Limen of its own.
func withLimen(ctx context.Context, l *lab, work func(own running) error) (err error) {
	own, err := l.proxies[0].run(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.process.stop()) }()
	return work(own)
}

// measureStored compares the CPU of turns that are stored with that of turns that
// are not.
func measureStored(ctx context.Context, l *lab) ([]row, error) {
	const chainTurns, workers = 20, 16
	first := pair(nameStored, nameNotStored, "CPU of a first turn", "µs", atMostRatio(2))
	chained := pair(nameStored, nameNotStored, fmt.Sprintf("CPU of a turn in a chain of %d", chainTurns), "µs", target{})
	n := l.plan.scaled(workers * chainTurns)
	more := 4 * n // of what costs little, so that it is seen
	err := withLimen(ctx, l, func(own running) error {
		request := func(store string) []byte {
			return post(own.key, responsesPath, turnBody(store, turnInput(0)))
		}
		for round := -1; round < l.plan.rounds(); round++ {
			for _, way := range []struct {
				rows []row
				name string
				n    int
				work func() error
			}{
				{[]row{first, chained}, nameNotStored, more, func() error { return closedLoop(ctx, own.proxy, request(`"store":false,`), more, workers) }},
				{[]row{first}, nameStored, n, func() error { return closedLoop(ctx, own.proxy, request(`"store":true,`), n, workers) }},
				{[]row{chained}, nameStored, n, func() error { return chains(ctx, own.proxy, n/chainTurns, chainTurns, workers) }},
			} {
				used, err := cpuDuring(own, way.work)
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				for _, r := range way.rows {
					r.note(round, way.name, float64(used.Nanoseconds())/1000/float64(way.n))
				}
			}
		}
		return nil
	})
	return []row{first, chained}, err
}

// chains makes n chains of stored turns, some at once.
func chains(ctx context.Context, p *proxy, n, turns, concurrent int) error {
	var left atomic.Int64
	left.Store(int64(n))
	return each(concurrent, func(int) error {
		for left.Add(-1) >= 0 {
			if _, err := chain(ctx, p, turns); err != nil {
				return err
			}
		}
		return nil
	})
}

// chain makes stored turns, each of which goes on from the one before, and returns
// how long each took.
func chain(ctx context.Context, p *proxy, turns int) (took []time.Duration, err error) {
	c, err := dial(p.addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var made struct {
		ID string `json:"id"`
	}
	for turn := range turns {
		request := post(p.key, responsesPath, turnBody(`"store":true,`+goesOn(made.ID), turnInput(turn)))
		p.calls.Add(1)
		start := time.Now()
		answer, err := c.fetch(request)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		if err := json.Unmarshal(answer, &made); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return took, nil
}

// measureLoops has an agent's loop over a socket, and over HTTP with the whole
// history each time.
func measureLoops(ctx context.Context, l *lab) ([]row, error) {
	sent := pair(nameSocket, nameHTTP, fmt.Sprintf("sent in a loop of %d turns", loopTurns), "KB", atMostRatio(0.1))
	spent := pair(nameLateTurn, nameFirstTurn, "over a socket, time added, p50", "µs", atMostRatio(1.5))
	err := withLimen(ctx, l, func(own running) error {
		overSocket, overHTTP, err := loopBytes(ctx, own.proxy)
		if err != nil {
			return err
		}
		sent.note(0, nameSocket, overSocket/(1<<10))
		sent.note(0, nameHTTP, overHTTP/(1<<10))
		for round := -1; round < l.plan.rounds(); round++ {
			first, late, err := loopTimes(ctx, l, own.proxy)
			if err != nil {
				return err
			}
			spent.note(round, nameFirstTurn, first)
			spent.note(round, nameLateTurn, late)
		}
		return nil
	})
	return []row{sent, spent}, err
}

// loopBytes is what a client sends in all in a loop, heads and frames counted.
func loopBytes(ctx context.Context, p *proxy) (overSocket, overHTTP float64, err error) {
	s, err := dialSocket(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	if _, _, err := s.loop(ctx); err != nil {
		return 0, 0, err
	}
	c, err := dial(p.addr)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	for turn := range loopTurns {
		request := wholeTurn(p.key, turn+1)
		overHTTP += float64(len(request))
		p.calls.Add(1)
		if _, err := c.call(request); err != nil {
			return 0, 0, err
		}
	}
	return float64(s.sent.Load()), overHTTP, nil
}

// wholeTurn is the nth turn of a loop as a request that stands for itself.
func wholeTurn(key string, n int) []byte {
	return post(key, responsesPath, turnBody(`"stream":true,"store":false,`, history(n)...))
}

// loop makes a loop's turns and returns how long the first and the last took.
func (s *socket) loop(ctx context.Context) (first, last time.Duration, err error) {
	id := ""
	for turn := range loopTurns {
		input := turnInput(turn)
		start := time.Now()
		if id, err = s.turn(ctx, id, input); err != nil {
			return 0, 0, fmt.Errorf("turn %d: %w", turn+1, err)
		}
		last = time.Since(start)
		if turn == 0 {
			first = last
		}
	}
	return first, last, nil
}

// loopTimes is the p50, in µs, of the first and of the last turn over many loops,
// beyond that of the same requests made to the upstream directly.
func loopTimes(ctx context.Context, l *lab, p *proxy) (first, late float64, err error) {
	const loops = 15
	s, err := dialSocket(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	c, err := dial(l.upAddr)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	direct := func(request []byte) (time.Duration, error) {
		start := time.Now()
		_, err := c.call(request)
		return time.Since(start), err
	}
	requests := [2][]byte{wholeTurn("", 1), wholeTurn("", loopTurns)}
	var through, beside [2][]time.Duration
	for range loops {
		var took [2]time.Duration
		if took[0], took[1], err = s.loop(ctx); err != nil {
			return 0, 0, err
		}
		for i, request := range requests {
			alone, err := direct(request)
			if err != nil {
				return 0, 0, err
			}
			through[i], beside[i] = append(through[i], took[i]), append(beside[i], alone)
		}
	}
	added := func(i int) float64 {
		return float64((p50(through[i]) - p50(beside[i])).Nanoseconds()) / 1000
	}
	return added(0), added(1), nil
}

func p50(took []time.Duration) time.Duration {
	return quantile(slices.Sorted(slices.Values(took)), 0.5)
}

// measureIdleSockets measures the memory that sockets take on which nothing happens.
func measureIdleSockets(ctx context.Context, l *lab) ([]row, error) {
	const n = 1000
	idle := pair(nameLimen, "", "1,000 idle sockets, above idle", "MB", atMost(40))
	used := pair(nameLimen, "", "the same after a turn on each", "MB", target{})
	err := withLimen(ctx, l, func(own running) error {
		time.Sleep(3 * time.Second)
		before, err := own.rss()
		if err != nil {
			return err
		}
		open := make([]*socket, n)
		defer func() {
			for _, s := range open {
				if s != nil {
					s.close()
				}
			}
		}()
		for _, step := range []struct {
			row  row
			work func(i int) error
		}{
			{idle, func(i int) (err error) { open[i], err = dialSocket(ctx, own.proxy); return err }},
			{used, func(i int) error { _, err := open[i].turn(ctx, "", turnInput(i)); return err }},
		} {
			if err := share(n, 100, step.work); err != nil {
				return err
			}
			time.Sleep(3 * time.Second)
			mb, err := own.rss()
			if err != nil {
				return err
			}
			step.row.note(0, nameLimen, mb-before)
		}
		return nil
	})
	return []row{idle, used}, err
}

// share has some workers do n pieces of work.
func share(n, workers int, work func(i int) error) error {
	var next atomic.Int64
	return each(workers, func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if err := work(i); err != nil {
				return err
			}
		}
	})
}

// measureChain makes one long chain over HTTP.
func measureChain(ctx context.Context, l *lab) ([]row, error) {
	const turns, few = 1000, 10
	size := pair(nameLimen, "", "a turn in limen.db, with its usage record", "KB", target{})
	took := pair(nameChainEnd, nameChainHead, "chain of 1,000 over HTTP, p50 of a turn", "µs", target{})
	before, err := l.limen.stored()
	if err != nil {
		return nil, err
	}
	err = withLimen(ctx, l, func(own running) error {
		all, err := chain(ctx, own.proxy, turns)
		if err != nil {
			return err
		}
		took.note(0, nameChainHead, float64(p50(all[:few]).Nanoseconds())/1000)
		took.note(0, nameChainEnd, float64(p50(all[turns-few:]).Nanoseconds())/1000)
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := l.limen.stored() // the process has ended: all of it is in the file
	if err != nil {
		return nil, err
	}
	size.note(0, nameLimen, float64(after-before)/(1<<10)/turns)
	return []row{size, took}, nil
}

// stored is the size of the database in bytes.
func (l *limen) stored() (sum int64, err error) {
	files, err := filepath.Glob(filepath.Join(l.data, "limen.db*"))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}
