// Package arrivals remembers for a while, in memory, what lately came to the
// gateway from clients: what was refused, with why, always; and what was
// served, as long as somebody watches. So whoever sets a client up sees what
// came of it. It is of this gateway alone, and no record: what was called is in
// the ledger.
package arrivals

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Arrival is a request of a client. Nothing in it is secret.
type Arrival struct {
	RequestID string    `json:"request_id"`
	Time      time.Time `json:"time"`  // of the newest of those that are alike
	Times     int       `json:"times"` // how often it came so
	Address   string    `json:"address"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Agent     string    `json:"agent,omitempty"` // as the client names itself
	// Clients are the names of those that it may be from, the likeliest first;
	// none when that is not known.
	Clients []string `json:"clients"`
	// Key is the public ID of the key that it came with, and KeyPrefix what it
	// begins with. Where the key was refused, they only look like it.
	Key       string `json:"key,omitempty"`
	KeyPrefix string `json:"key_prefix,omitempty"`
	Operation string `json:"operation,omitempty"`
	Model     string `json:"model,omitempty"`
	Stream    bool   `json:"stream"`
	UnderWay  bool   `json:"under_way,omitempty"` // there is no answer yet
	Status    int    `json:"status,omitempty"`
	// Error is what sort of fault it was, as in records of calls, Code more
	// exact, and Message what the client was told.
	Error       string  `json:"error,omitempty"`
	Code        string  `json:"code,omitempty"`
	Message     string  `json:"message,omitempty"`
	Recorded    bool    `json:"recorded"` // it is among the calls
	FirstByteMs float64 `json:"first_byte_ms,omitempty"`
	TotalMs     float64 `json:"total_ms,omitempty"`
}

const (
	maxRefused = 256
	maxServed  = 256
	maxText    = 200 // of what clients choose, in bytes
	maxMessage = 600 // in bytes
	// alike is how many of the newest are compared with one that is refused:
	// a client that tries again and again is one arrival.
	alike = 16
	// watch is how long what is served is remembered after somebody asked.
	watch = 90 * time.Second
)

// Log remembers arrivals. The zero value is ready.
type Log struct {
	until atomic.Int64 // Unix ns, until when somebody watches

	mu      sync.Mutex
	refused []*Arrival        // the newest last; what they point to does not change
	served  map[kind]*Arrival // the newest of each kind
}

// kind tells apart what is served: one of each is kept.
type kind struct {
	key, client, operation   string
	stream, failed, underWay bool
}

func (a *Arrival) kind() kind {
	client := a.Agent
	if len(a.Clients) > 0 {
		client = a.Clients[0]
	}
	return kind{a.Key, client, a.Operation, a.Stream, a.Error != "", a.UnderWay}
}

// like reports whether two that were refused differ by nothing but their time.
func (a *Arrival) like(b *Arrival) bool {
	return a.Address == b.Address && a.Method == b.Method && a.Path == b.Path && a.Agent == b.Agent && a.Key == b.Key &&
		a.Model == b.Model && a.Stream == b.Stream && a.Error == b.Error && a.Message == b.Message
}

// Watch has the log remember for a while what is served, too.
func (l *Log) Watch(now time.Time) { l.until.Store(now.Add(watch).UnixNano()) }

// Watched reports whether somebody watches. It is all that a request costs
// that is served while nobody does.
func (l *Log) Watched(now time.Time) bool { return now.UnixNano() < l.until.Load() }

// Refuse remembers a request that was refused.
func (l *Log) Refuse(a *Arrival) {
	a.bound()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(a)
	for i := len(l.refused) - 1; i >= max(0, len(l.refused)-alike); i-- {
		if l.refused[i].like(a) {
			a.Times += l.refused[i].Times
			l.refused = slices.Delete(l.refused, i, i+1)
			break
		}
	}
	if len(l.refused) == maxRefused {
		l.refused = slices.Delete(l.refused, 0, 1)
	}
	l.refused = append(l.refused, a)
}

// Serve remembers a request that is under way, or was served, or failed
// upstream.
func (l *Log) Serve(a *Arrival) {
	a.bound()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.served == nil {
		l.served = map[kind]*Arrival{}
	}
	if !a.UnderWay {
		l.end(a)
	}
	k := a.kind()
	if old := l.served[k]; old == nil && len(l.served) == maxServed {
		l.forgetOldest()
	}
	l.served[k] = a
}

// end forgets that a request is under way.
func (l *Log) end(a *Arrival) {
	for k, b := range l.served {
		if k.underWay && b.RequestID == a.RequestID {
			delete(l.served, k)
		}
	}
}

func (l *Log) forgetOldest() {
	var oldest kind
	var at time.Time
	for k, a := range l.served {
		if at.IsZero() || a.Time.Before(at) {
			oldest, at = k, a.Time
		}
	}
	delete(l.served, oldest)
}

// Since returns what came after a time, the newest last.
func (l *Log) Since(t time.Time) []*Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []*Arrival{}
	add := func(a *Arrival) {
		if a.Time.After(t) {
			found = append(found, a)
		}
	}
	for _, a := range l.refused {
		add(a)
	}
	for _, a := range l.served {
		add(a)
	}
	slices.SortStableFunc(found, func(a, b *Arrival) int { return a.Time.Compare(b.Time) })
	return found
}

// bound shortens what clients choose.
func (a *Arrival) bound() {
	a.Times = 1
	for _, text := range []*string{&a.Method, &a.Path, &a.Agent, &a.Model} {
		*text = cut(*text, maxText)
	}
	a.Message = cut(a.Message, maxMessage)
}

// cut is the beginning of a text, whole characters in at most n bytes. It keeps
// nothing else of it in memory.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
