package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// LinkLife is how long a link to log in by is good.
const LinkLife = 15 * time.Minute

// link is what logs its bearer in as the owner, once. It is in memory only: a
// restart ends it.
type link struct {
	mu    sync.Mutex
	hash  [sha256.Size]byte
	until time.Time // zero where there is none
}

// NewLink makes what Login takes once in place of the admin password, for the
// one who is shown that anyway. The one before is good no more.
func (o *Operators) NewLink(now time.Time) string {
	text := randomBase62(secretLen)
	o.link.mu.Lock()
	defer o.link.mu.Unlock()
	o.link.hash, o.link.until = sha256.Sum256([]byte(text)), now.Add(LinkLife)
	return text
}

// use takes a link: there is none after it.
func (l *link) use(text string, now time.Time) error {
	hash := sha256.Sum256([]byte(text))
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) || subtle.ConstantTimeCompare(hash[:], l.hash[:]) != 1 {
		return wrongPassword("This link was used, or is too old. Log in with the admin password.")
	}
	l.until = time.Time{}
	return nil
}
