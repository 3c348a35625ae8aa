package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/lru"
)

// guard slows down guessing. A wrong password makes those that follow wait,
// longer each time: for its address, and for its account. Within a minute at
// most ten are evaluated for an account, from however many addresses.
//
// A stranger must not keep people out of their accounts. Where somebody was let
// in before, only what was wrong for that account at that address counts. And
// addresses that say a password for the first time wait for one another alone,
// not for those that were wrong before or came again too early.
type guard struct {
	mu        sync.Mutex // one evaluation at a time: it costs 19 MiB
	salt      [16]byte
	addresses *lru.Cache[guardKey, *guesses]
	accounts  *lru.Cache[guardKey, *account]
	strangers *lru.Cache[guardKey, *guesses] // accounts at addresses that were not let in
	known     *lru.Cache[guardKey, *guesses] // accounts at addresses that were
}

// guardKey is a hash: names are as long as somebody likes.
type guardKey [16]byte

// account is what was wrong for an account, from addresses that came for the
// first time, and from others.
type account struct{ first, again guesses }

// maxGuarded bounds how many addresses, accounts and pairs of them are known.
const maxGuarded = 1 << 14

func newGuard() *guard {
	g := &guard{
		addresses: lru.New[guardKey, *guesses](maxGuarded), accounts: lru.New[guardKey, *account](maxGuarded),
		strangers: lru.New[guardKey, *guesses](maxGuarded), known: lru.New[guardKey, *guesses](maxGuarded),
	}
	rand.Read(g.salt[:]) // never fails
	return g
}

// pace is how wrong passwords slow down those that follow.
type pace struct {
	free int           // that nobody waits after, but for the last
	wait time.Duration // after that; then twice as long each time
}

var (
	atAddress   = pace{5, time.Second}
	atFirst     = pace{2, 15 * time.Second} // four a minute
	atAgain     = pace{2, 4 * time.Second}  // six a minute
	whereLetsIn = pace{5, time.Second}
)

const (
	// maxDelay is the longest pause after wrong passwords.
	maxDelay = 30 * time.Second
	// forgetAfter is how long after the last of them nobody waits any more.
	forgetAfter = 15 * time.Minute
)

// guesses are wrong passwords, one after another.
type guesses struct {
	wrong int
	after time.Time // no evaluation before
}

// wait is how long an evaluation has to wait yet.
func (g *guesses) wait(now time.Time) time.Duration {
	if now.Sub(g.after) >= forgetAfter {
		*g = guesses{}
	}
	return max(0, g.after.Sub(now))
}

func (g *guesses) add(p pace, now time.Time) {
	g.wrong++
	g.after = now
	if n := g.wrong - p.free; n >= 0 {
		g.after = now.Add(min(p.wait<<min(n, 5), maxDelay))
	}
}

// gate is what an evaluation passes.
type gate struct {
	*guesses
	pace pace
}

// evaluate has a password checked that somebody at an address says for an
// account, unless it is too early for that, and reports whether it was right.
func (g *guard) evaluate(name, address string, check func() (bool, error)) (bool, error) {
	address = network(address)
	here, pair := g.key(address), g.key(name+"\x00"+address)
	g.mu.Lock()
	defer g.mu.Unlock()
	gates, err := g.gates(g.key(name), here, pair, time.Now())
	if err != nil {
		return false, err
	}
	right, err := check()
	switch {
	case err != nil:
		return false, err
	case right:
		g.known.Put(pair, &guesses{}, 1)
	default:
		for _, gate := range gates {
			gate.add(gate.pace, time.Now())
		}
	}
	return right, nil
}

// gates are those that an evaluation passes, or the refusal of one that is too
// early.
func (g *guard) gates(name, here, pair guardKey, now time.Time) ([]gate, error) {
	if known, ok := g.known.Get(pair); ok {
		return []gate{{known, whereLetsIn}}, tooEarly(known.wait(now))
	}
	address := entry(g.addresses, here)
	if wait := address.wait(now); wait > 0 { // before anything is kept of the name
		return nil, tooEarly(wait)
	}
	own, stranger := entry(g.accounts, name), entry(g.strangers, pair)
	if early := stranger.wait(now) > 0; early || stranger.wrong > 0 {
		stranger.wrong, stranger.after = max(1, stranger.wrong), now
		return []gate{{&own.again, atAgain}, {address, atAddress}, {stranger, pace{math.MaxInt, 0}}}, tooEarly(own.again.wait(now))
	}
	wait := own.first.wait(now)
	stranger.after = now.Add(wait)
	return []gate{{&own.first, atFirst}, {address, atAddress}, {stranger, pace{math.MaxInt, 0}}}, tooEarly(wait)
}

// entry is what a cache has of a key, or something new.
func entry[V any](c *lru.Cache[guardKey, *V], key guardKey) *V {
	value, ok := c.Get(key)
	if !ok {
		value = new(V)
		c.Put(key, value, 1)
	}
	return value
}

func (g *guard) key(text string) guardKey {
	sum := sha256.Sum256(append(g.salt[:], text...))
	return guardKey(sum[:])
}

// AddressOf is the address of a remote end, as guessing is counted by; "" where
// there is none.
func AddressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return ""
	}
	return host
}

// network is what stands for an address. Of IPv6, whoever has one has all with
// the same 64 bits in front.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, _ := ip.Prefix(64) // an IPv6 address has so many
	return prefix.String()
}

// tooEarly refuses an evaluation that has to wait.
func tooEarly(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	whole := (wait + time.Second - 1).Truncate(time.Second)
	return &llm.Error{Kind: llm.RateLimited, Message: fmt.Sprintf("Too many wrong passwords. Please try again in %s.", whole), RetryAfter: wait}
}
