package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/upstream"
)

// TestRetryBudget: however many calls fail, few more are made.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	const calls = 300
	for _, c := range []struct {
		name, retries string
		allowed       func(windows int) int // further attempts
	}{
		{"ten in a hundred", "", func(windows int) int { return calls/10 + 10*windows }},
		{"one attempt", "retries: {attempts: 1}\n", func(int) int { return 0 }},
		{"no budget", "retries: {budget: 0}\n", func(int) int { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newUpstream(t)
			var list targets
			list.model("m", "", list.provider("a", s.URL(), bothDialects, "small", "status-500"), list.provider("b", s.URL(), bothDialects, "small", "reset"))
			g := start(t, c.retries+strings.TrimPrefix(list.String(), generous))
			began := time.Now()
			var clients sync.WaitGroup
			for client := range 8 {
				clients.Go(func() {
					for n := client; n < calls; n += 8 {
						if got := g.ask(t, n%len(manners), "m", "asked in vain"); got.status != http.StatusBadGateway {
							t.Errorf("got %d %s", got.status, got.body)
						}
					}
				})
			}
			clients.Wait()
			windows := 1 + int(time.Since(began)/(10*time.Second))
			extra := attempts(s, "asked in vain") - calls
			t.Logf("%d calls, %d further attempts", calls, extra)
			if extra < 0 || extra > c.allowed(windows) || c.allowed(1) > 0 && extra == 0 {
				t.Errorf("%d calls made %d further attempts, want %d at most", calls, extra, c.allowed(windows))
			}
			if n := len(g.records(t)); n != calls {
				t.Errorf("%d calls are recorded %d times", calls, n)
			}
		})
	}
}

// load is what clients see that call a model at a rate, in ever new
// conversations.
type load struct {
	mu     sync.Mutex
	calls  int
	failed []failedCall
	stop   chan struct{}
	over   sync.WaitGroup
}

type failedCall struct {
	began time.Time
	text  string
}

// maxUnderWay bounds a load's calls at once: a machine that cannot keep up gets
// a lower rate.
const maxUnderWay = 64

func (g *gateway) steady(t *testing.T, model, mark string, rate int) *load {
	l := &load{stop: make(chan struct{})}
	places := make(chan struct{}, maxUnderWay)
	l.over.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-tick.C:
			}
			select {
			case places <- struct{}{}:
			default:
				continue
			}
			l.over.Go(func() {
				defer func() { <-places }()
				l.call(t, g, n, model, mark)
			})
		}
	})
	return l
}

func (l *load) call(t *testing.T, g *gateway, n int, model, mark string) {
	m := n % len(manners)
	began := time.Now()
	got := g.ask(t, m, model, fmt.Sprintf("%s, %d", mark, n))
	outcome := "answer"
	if manners[m].stream {
		outcome = "stream"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if got.status != http.StatusOK || got.err != nil || observe(t, manners[m].path, got) != outcome {
		l.failed = append(l.failed, failedCall{began, fmt.Sprintf("%d %s", got.status, got.body)})
	}
}

// end ends the load; it returns the calls and those that failed.
func (l *load) end() (int, []failedCall) {
	close(l.stop)
	l.over.Wait()
	return l.calls, l.failed
}

// again starts an upstream at the address of one that was closed.
func again(t *testing.T, host string) *upstream.Server {
	t.Helper()
	var l net.Listener
	eventually(t, "the address is free", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", host)
		return err == nil
	})
	return newUpstream(t, upstream.WithListener(l))
}

// TestTargetDies: of three targets one is killed, then refuses connections, then
// hangs, then heals. Clients hear nothing of it after a second, little more is
// asked upstream than they ask, and what healed is used again within five
// seconds.
func TestTargetDies(t *testing.T) {
	t.Parallel()
	var up [3]*upstream.Server
	var c targets
	var list []string
	for i := range up {
		up[i] = newUpstream(t)
		list = append(list, c.provider(fmt.Sprintf("t%d", i), up[i].URL(), bothDialects, "small", ""))
	}
	c.model("m", ", strategy: weighted, first_token: 300ms", list...)
	g := start(t, strings.TrimPrefix(c.String(), generous))
	defer g.holdsNothing(t)
	l := g.steady(t, "m", "under load", 200)
	asked := func(s *upstream.Server) int { return attempts(s, "under load") }
	eventually(t, "the target serves", func() bool { return asked(up[1]) >= 10 })

	killed := time.Now()
	up[1].Close()
	time.Sleep(2 * time.Second) // of refused connections, under load
	hung := again(t, up[1].Host())
	hung.SetDefault("hang")
	hangs := time.Now()
	time.Sleep(2 * time.Second) // of silence, under load
	calls, failed := l.end()
	for _, f := range failed {
		if f.began.Sub(killed) > time.Second {
			t.Errorf("%s after the kill, %s after the hang: %s", f.began.Sub(killed), f.began.Sub(hangs), f.text)
		}
	}
	sum := asked(up[0]) + asked(up[1]) + asked(up[2]) + asked(hung)
	t.Logf("%d calls, %d failed, %d attempts that arrived", calls, len(failed), sum)
	tried, met := 0, 0
	for _, r := range g.records(t) {
		for _, s := range r.Steps {
			if s.Tried {
				tried++
			}
		}
		met++
	}
	if met != calls {
		t.Errorf("%d calls are recorded %d times", calls, met)
	}
	if extra := tried - calls; extra > calls/10+10 {
		t.Errorf("%d calls made %d attempts, want at most a tenth more, and 10", calls, tried)
	}
	t.Logf("%d attempts are recorded", tried)

	hung.Close()
	healed := again(t, up[1].Host())
	began := time.Now()
	l = g.steady(t, "m", "under load again", 50)
	eventually(t, "what healed is used again", func() bool { return asked(healed) > 0 })
	pause := time.Since(began)
	eventually(t, "what healed has its share", func() bool { return asked(healed) > 10 })
	if _, failed := l.end(); len(failed) > 0 {
		t.Errorf("%d calls failed, among them: %s", len(failed), failed[0].text)
	}
	t.Logf("used again after %s", pause)
	if pause > 5*time.Second {
		t.Errorf("what healed is used again after %s, want 5s", pause)
	}
}
