// Package alert tells people, by a webhook and by mail, that much of a budget is
// spent. What cannot be told is tried again for some minutes; all of it is in
// the log as well.
package alert

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/money"
)

const (
	// most is how many alerts may wait, by each way.
	most = 256
	// tryTime is how long one try may take.
	tryTime = 15 * time.Second
)

// Settings are what a reload of the configuration may change. They are
// read-only: a reload makes new ones.
type Settings struct {
	Webhook   *Webhook // nil: none
	Mail      *Mail    // nil: none
	UserAgent string
}

// Sender tells of alerts. Run does so; all else may be called at any time.
type Sender struct {
	log      *slog.Logger
	settings atomic.Pointer[Settings]
	alerts   chan budget.Alert
	ways     [2]way // of Run alone

	first   time.Duration // until a try is made again, twice as long each time
	longest time.Duration // between two tries
	giveUp  time.Duration // after which there are no more
	roots   *x509.CertPool
}

// way is one of those by which people are told. When it fails, all that is to be
// told by it waits.
type way struct {
	name    string
	is      func(*Settings) bool // configured
	tell    func(context.Context, *Settings, *message) error
	waiting []waiting
	failed  int // tries, one after the other
	due     time.Time
}

// waiting is a message that is still to be told.
type waiting struct {
	*message
	until time.Time
}

// New makes a sender that tells nobody until settings are applied.
func New(log *slog.Logger) *Sender {
	s := &Sender{log: log, alerts: make(chan budget.Alert, most), first: time.Second, longest: 2 * time.Minute, giveUp: 10 * time.Minute}
	s.ways = [...]way{
		{name: "webhook", is: func(set *Settings) bool { return set.Webhook != nil }, tell: s.post},
		{name: "email", is: func(set *Settings) bool { return set.Mail != nil }, tell: s.mail},
	}
	s.settings.Store(&Settings{})
	return s
}

// Apply makes settings count for tries from now on.
func (s *Sender) Apply(set *Settings) { s.settings.Store(set) }

// Send has an alert told. It waits for nobody: where too many wait already, the
// alert is in the log alone.
func (s *Sender) Send(a budget.Alert) {
	select {
	case s.alerts <- a:
	default:
		s.log.Error("too many alerts wait; this one is told to nobody", "alert", textOf(&a))
	}
}

// Run tells of alerts until ctx ends. A way that does not work holds the other up
// for no longer than a try.
func (s *Sender) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := time.Hour
		for i := range s.ways {
			next = min(next, s.work(ctx, &s.ways[i]))
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			s.stop()
			return
		case <-timer.C:
		case a := <-s.alerts:
			s.take(newMessage(&a, time.Now()))
		}
	}
}

// stop notes what is told to nobody any more.
func (s *Sender) stop() {
	for i := range s.ways {
		for _, m := range s.ways[i].waiting {
			s.log.Error("the gateway stopped before an alert was told", "by", s.ways[i].name, "alert", m.Text)
		}
	}
}

// take has a message wait for all ways that are configured.
func (s *Sender) take(m *message) {
	for i := range s.ways {
		w := &s.ways[i]
		switch {
		case !w.is(s.settings.Load()):
		case len(w.waiting) == most:
			s.log.Error("too many alerts wait; this one is not told", "by", w.name, "alert", m.Text)
		default:
			w.waiting = append(w.waiting, waiting{m, time.Now().Add(s.giveUp)})
		}
	}
}

// work tells what waits for a way until there is nothing or a try fails, and
// returns when the next is due.
func (s *Sender) work(ctx context.Context, w *way) time.Duration {
	for len(w.waiting) > 0 && ctx.Err() == nil {
		if wait := time.Until(w.due); wait > 0 {
			return wait
		}
		m, set := w.waiting[0], s.settings.Load()
		w.waiting = w.waiting[1:]
		if !w.is(set) {
			continue // any more
		}
		err := s.try(ctx, w, set, m.message)
		switch {
		case err == nil:
			w.failed = 0
			s.log.Info("an alert was told", "by", w.name, "alert", m.Text)
		case ctx.Err() == nil && w.due.After(m.until):
			s.log.Error("an alert could not be told", "by", w.name, "alert", m.Text, "error", err)
		default:
			w.waiting = append(w.waiting, m) // behind the others: it may be to blame
			s.log.Warn("an alert could not be told yet", "by", w.name, "again", time.Until(w.due).Round(time.Second).String(), "error", err)
		}
	}
	return time.Hour
}

// try makes one try, and decides when the next may be made.
func (s *Sender) try(ctx context.Context, w *way, set *Settings, m *message) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	err := w.tell(ctx, set, m)
	if err != nil {
		w.due = time.Now().Add(min(s.first<<min(w.failed, 20), s.longest))
		w.failed++
	}
	return err
}

// message is an alert as it is told.
type message struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"` // the same at each try
	Time      time.Time     `json:"time"`
	Owner     string        `json:"owner"` // ID of a key or a team
	Name      string        `json:"name"`  // "key alice", "team web"
	Budget    budget.Budget `json:"budget"`
	Spent     money.Amount  `json:"spent"`
	Threshold money.Amount  `json:"threshold"`
	Window    time.Time     `json:"window,omitzero"` // when it began; not of a total
	Renews    time.Time     `json:"renews,omitzero"`
	Text      string        `json:"text"` // for people; chats show it
}

func newMessage(a *budget.Alert, now time.Time) *message {
	return &message{
		Type: "budget.reached", ID: "alert_" + strings.ToLower(rand.Text()), Time: now.UTC().Truncate(time.Second), Owner: a.Owner, Name: a.Name,
		Budget: a.Budget, Spent: a.Spent, Threshold: a.Threshold, Window: a.Window, Renews: a.Renews, Text: textOf(a),
	}
}

// textOf is an alert in a sentence or two.
func textOf(a *budget.Alert) string {
	text := fmt.Sprintf("Limen: %s has spent $%s of the budget %s, $%s or more.", a.Name, a.Spent, a.Budget, a.Threshold)
	switch {
	case a.Budget.Soft || a.Spent < a.Budget.Amount:
	case a.Renews.IsZero():
		text += " Calls are refused until it is raised."
	default:
		text += " Calls are refused until it begins anew."
	}
	if !a.Renews.IsZero() {
		text += " It begins anew at " + a.Renews.UTC().Format("2006-01-02 15:04 MST") + "."
	}
	return text
}
