package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Of overload, Limen is let serve this many calls at once, each of which its upstream
// takes some time for. What it can do follows, whatever the machine: all else that
// runs there would blur what the processor can do.
const (
	placesAtOnce = 64
	answerAfter  = 100 * time.Millisecond
	excess       = 3 // times what can be served is asked for
	// overloadCallers is enough for each to be done before its next call is due.
	overloadCallers = 512
)

// tally is what became of calls that were made at a fixed rate.
type tally struct {
	over    time.Duration
	served  []time.Duration // how long they took, sorted
	refused []time.Duration
}

// goodput is how many calls a second were served.
func (t *tally) goodput() float64 { return float64(len(t.served)) / t.over.Seconds() }

func measureOverload(ctx context.Context, l *lab) (rows []row, err error) {
	if err := l.limen.configure(placesAtOnce); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.limen.configure(ample)) }()
	alone := func(what, unit string, t target) row { return pair(nameLimen, "", what, unit, t) }
	peak := alone(fmt.Sprintf("calls of %v served a second at most, %d at once", answerAfter, placesAtOnce), "", target{})
	lost := alone(fmt.Sprintf("of these not served at %d times the load", excess), "%", atMost(20))
	refusal := alone("refused after, p99", "ms", atMost(50))
	back := alone("until all are served as before, after it", "s", atMost(5))
	rows = []row{peak, lost, refusal, back}

	rate := placesAtOnce * int(time.Second/answerAfter)
	seconds := func(n int) time.Duration { return time.Duration(l.plan.scaled(n)) * time.Second }
	err = withLimen(ctx, l, func(own running) error {
		callers, err := newCallers(own.proxy)
		if err != nil {
			return err
		}
		defer callers.close()
		quiet, err := callers.offer(ctx, rate/2, seconds(4))
		if err != nil {
			return err
		}
		// A closed loop of as many clients as are served at once finds the most.
		best, err := callers.saturate(ctx, placesAtOnce, seconds(12))
		if err != nil {
			return err
		}
		over, err := callers.offer(ctx, excess*int(best.goodput()), seconds(60))
		if err != nil {
			return err
		}
		if len(over.refused) == 0 {
			return errors.New("nothing was refused")
		}
		recovered, err := callers.recover(ctx, rate/2, quiet)
		if err != nil {
			return err
		}
		peak.note(0, nameLimen, best.goodput())
		lost.note(0, nameLimen, 100*max(0, 1-over.goodput()/best.goodput()))
		refusal.note(0, nameLimen, float64(quantile(over.refused, 0.99).Microseconds())/1000)
		back.note(0, nameLimen, recovered.Seconds())
		return nil
	})
	return rows, err
}

// callers are connections that stay open throughout.
type callers struct {
	proxy   *proxy
	request []byte
	clients []*client
}

func newCallers(p *proxy) (*callers, error) {
	request := post(p.key, chatPath, chatBody(1<<10, fmt.Sprintf("%s%d;", pauseMark, answerAfter.Milliseconds()), ""))
	c := &callers{proxy: p, request: request, clients: make([]*client, overloadCallers)}
	return c, each(len(c.clients), func(i int) (err error) {
		c.clients[i], err = dial(p.addr)
		return err
	})
}

func (c *callers) close() {
	for _, client := range c.clients {
		if client != nil {
			client.close()
		}
	}
}

// call makes one call of the ith client, and counts its time from when it was due.
func (c *callers) call(i int, due time.Time, mu *sync.Mutex, t *tally) error {
	c.proxy.calls.Add(1)
	status, err := c.clients[i].attempt(c.request)
	took := time.Since(due)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		t.served = append(t.served, took)
	case status == http.StatusServiceUnavailable:
		t.refused = append(t.refused, took)
	default:
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// offer makes calls at a fixed rate a second, whatever becomes of them.
func (c *callers) offer(ctx context.Context, rate int, lasts time.Duration) (*tally, error) {
	t := &tally{over: lasts}
	n := int(float64(rate) * lasts.Seconds())
	var mu sync.Mutex
	start := time.Now()
	err := each(len(c.clients), func(w int) error {
		for i := w; i < n && ctx.Err() == nil; i += len(c.clients) {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
			time.Sleep(time.Until(due))
			if err := c.call(w, due, &mu, t); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	slices.Sort(t.served)
	slices.Sort(t.refused)
	return t, err
}

// saturate has some of the clients make a call as soon as the last is answered.
func (c *callers) saturate(ctx context.Context, clients int, lasts time.Duration) (*tally, error) {
	t := &tally{over: lasts}
	var mu sync.Mutex
	end := time.Now().Add(lasts)
	err := each(clients, func(w int) error {
		for now := time.Now(); now.Before(end) && ctx.Err() == nil; now = time.Now() {
			if err := c.call(w, now, &mu, t); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return t, err
}

// recover is how long it takes until calls at a rate that can be served are served as
// they were before: all of them, and in no more than twice the time.
func (c *callers) recover(ctx context.Context, rate int, before *tally) (time.Duration, error) {
	const slice, slices = 500 * time.Millisecond, 12 // more than the target
	bound := quantile(before.served, 0.99) * 2
	var until time.Duration
	for i := range slices {
		t, err := c.offer(ctx, rate, slice)
		if err != nil {
			return 0, err
		}
		if len(t.served) == 0 || len(t.refused) > 0 || quantile(t.served, 0.99) > bound {
			until = time.Duration(i+1) * slice
		}
	}
	return until, nil
}
