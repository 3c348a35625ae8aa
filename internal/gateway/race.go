package gateway

import (
	"net/http"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
)

// opened is what came of opening an attempt.
type opened struct {
	attempt *attempt
	err     error
	panic   any // goes on where the call is
}

// hosts reports whether the gateway may have to run tools for an answer: what
// they do is not to be done twice.
func (c *Call) hosts(body []byte) bool {
	d, ok := c.Dialect.(dialect.Hosting)
	return ok && c.set.Tools != nil && len(d.Hosted(body)) > 0
}

// race opens an attempt and, if it is slow to begin, another at a second
// target. The first that has something for the client wins; what the other
// used is counted all the same. The attempt that is returned with an error is
// the last that failed.
func (g *Gateway) race(first *attempt, header http.Header, body *sharedBody) (*attempt, error) {
	c := first.Call
	slow := c.model.Hedge.After
	if slow == 0 {
		slow = first.Target.Health.FirstToken95()
	}
	if slow == 0 {
		return first, g.open(first, header, body)
	}
	results := make(chan opened, 2)
	open := func(a *attempt) {
		go func() {
			o := opened{attempt: a}
			defer func() {
				o.panic = recover()
				results <- o
			}()
			o.err = g.open(a, header, body)
		}()
	}
	open(first)
	timer := time.NewTimer(slow)
	defer timer.Stop()
	var second *attempt
	for running := 1; ; {
		select {
		case <-timer.C:
			if t, ok := c.plan.Hedge(time.Now()); ok {
				second = g.attempt(c, t)
				running++
				open(second)
			}
		case o := <-results:
			running--
			switch {
			case o.panic != nil:
				abandon(results, running, first, second)
				panic(o.panic)
			case o.err != nil && running == 0:
				return o.attempt, o.err
			case o.err != nil:
				o.attempt.failed(llm.AsError(o.err))
				o.attempt.close()
				continue
			}
			if running > 0 {
				loser := second
				if o.attempt == second {
					loser = first
				}
				loser.lose()
				late := <-results
				if late.panic != nil {
					abandon(results, 0, first, second)
					panic(late.panic)
				}
				if late.err == nil {
					late.err = clientLeft(nil)
				}
				loser.failed(llm.AsError(late.err))
				loser.close()
			}
			return o.attempt, nil
		}
	}
}

// lose gives an attempt up that was slower than another.
func (a *attempt) lose() {
	a.lost = true
	a.cancel(nil)
}

// abandon ends attempts of which one panicked, when all have come to an end.
func abandon(results <-chan opened, running int, attempts ...*attempt) {
	for _, a := range attempts {
		if a != nil {
			a.lose()
		}
	}
	for range running {
		<-results
	}
	for _, a := range attempts {
		if a != nil {
			a.close()
		}
	}
}
