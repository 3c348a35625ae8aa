package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSweepOfWhatIsOver(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		at := func(h int) time.Time { return day0.Add(time.Duration(h) * time.Hour) }
		expiring := func(id, base string, length int64, h int) Response {
			turn := newTurn(id, base, length)
			turn.Response.Expires = at(h)
			return commit(t, s, turn)
		}
		a := expiring("a", "", 0, 1)
		b := expiring("b", a.Thread, a.Length, 3)
		f := expiring("f", a.Thread, a.Length, 2)
		never := newTurn("n", "", 0)
		commit(t, s, never)
		c := &Conversation{Owner: owner, ID: "c", Created: day0, Expires: at(2)}
		mustDo(t, s.CreateConversation(ctx, c, newItems("x")))

		for _, step := range []struct {
			hour, deleted, items int
		}{{0, 0, 9}, {1, 1, 9}, {1, 0, 9}, {2, 2, 6}, {3, 1, 2}, {1000, 0, 2}} {
			n, err := s.Sweep(ctx, at(step.hour), 0)
			if items := rowsOf(t, s, "items"); n != step.deleted || items != step.items || err != nil {
				t.Errorf("sweep at hour %d deleted %d and left %d items, %v, want %d and %d", step.hour, n, items, err, step.deleted, step.items)
			}
			wantBytes(t, s)
			if step.hour == 1 {
				wantItems(t, s, b.Thread, 0, b.Length, "a.in a.out b.in b.out")
				wantItems(t, s, f.Thread, 0, f.Length, "a.in a.out f.in f.out")
			}
		}
	})
}

// More is over than one transaction deletes.
func TestSweepOfMany(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		noSync(t, s)
		const n = rowsPerTx + 20
		for i := range n {
			turn := newTurn(fmt.Sprint("r", i), "", 0)
			turn.Response.Expires = day0
			commit(t, s, turn)
		}
		if got, err := s.Sweep(t.Context(), day0, 0); got != n || err != nil {
			t.Errorf("%d are deleted, %v, want %d", got, err, n)
		}
		wantEmpty(t, s)
	})
}

func TestSweepOfTheOldest(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		body := make([]byte, 1000)
		for i := range 10 {
			made := day0.Add(time.Duration(i) * time.Minute)
			if i == 4 {
				c := &Conversation{Owner: owner, ID: "c", Created: made}
				mustDo(t, s.CreateConversation(ctx, c, []Item{{ID: "x", Created: made, Body: body}}))
				continue
			}
			turn := &Turn{Response: Response{Owner: owner, ID: fmt.Sprint("r", i), Status: "completed", Created: made}, Input: []Item{{ID: "x", Body: body}}}
			commit(t, s, turn)
		}
		mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: "running", Status: "in_progress", Runner: "x", Body: body}))
		mustDo(t, s.InsertResponse(ctx, &Response{Owner: owner, ID: "provider's", Status: "completed", Provider: "p"}))
		left := func() string {
			names, err := s.names(ctx, "SELECT owner, id FROM responses UNION ALL SELECT owner, id FROM conversations ORDER BY id")
			mustDo(t, err)
			var ids []string
			for _, n := range names {
				ids = append(ids, n.id)
			}
			return strings.Join(ids, " ")
		}
		for _, step := range []struct {
			max     int64
			deleted int
			left    string
		}{
			{11000, 0, "c provider's r0 r1 r2 r3 r5 r6 r7 r8 r9 running"},
			{10999, 1, "c provider's r1 r2 r3 r5 r6 r7 r8 r9 running"},
			{7000, 3, "c provider's r5 r6 r7 r8 r9 running"},
			{6999, 1, "provider's r5 r6 r7 r8 r9 running"},
			{1, 5, "provider's running"}, // more is not to be had
		} {
			n, err := s.Sweep(ctx, day0, step.max)
			if got := left(); n != step.deleted || got != step.left || err != nil {
				t.Errorf("sweep to %d bytes deleted %d, %v, and left %s; want %d and %s", step.max, n, err, got, step.deleted, step.left)
			}
			wantBytes(t, s)
		}
	})
}

// noSync makes many small transactions cheap.
func noSync(t *testing.T, s *Store) {
	t.Helper()
	if s.postgres {
		return
	}
	_, err := s.write.Exec("PRAGMA synchronous = OFF")
	mustDo(t, err)
}

// model is what the store must do, in memory: every response and conversation
// has its own copy of what it sees.
type model struct {
	t      *testing.T
	s      *Store
	random *rand.Rand
	now    time.Time
	made   int

	responses     map[string]modelResponse
	conversations map[string]modelConversation
}

type modelResponse struct {
	Response
	items []string // that it saw, by number; "" is deleted from its conversation
}

type modelConversation struct {
	expires time.Time
	items   []string
}

func (m *model) id(prefix string) string {
	m.made++
	return fmt.Sprint(prefix, m.made)
}

// pick returns one of a map's names; "" when there is none.
func pick[V any](m *model, of map[string]V) string {
	if len(of) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(of))
	return names[m.random.IntN(len(names))]
}

func (m *model) newItems() []Item {
	var items []Item
	for range m.random.IntN(4) {
		items = append(items, newItems(m.id("i"))...)
	}
	return items
}

func (m *model) turn() {
	turn := &Turn{
		Response: Response{Owner: owner, ID: m.id("r"), Status: "completed", Created: m.now, Body: make([]byte, m.random.IntN(50))},
		Input:    m.newItems(), Output: m.newItems(),
	}
	r := &turn.Response
	if m.random.IntN(10) > 0 {
		r.Expires = m.now.Add(time.Duration(m.random.IntN(100)) * time.Hour)
	}
	var before []string
	if base, ok := m.responses[pick(m, m.responses)]; ok && m.random.IntN(8) > 0 {
		turn.Base, turn.BaseLength, before = base.Thread, base.Length, base.items
	}
	if c := pick(m, m.conversations); c != "" && m.random.IntN(5) == 0 {
		r.Conversation, before = c, m.conversations[c].items
	}
	if m.random.IntN(6) == 0 {
		m.background(turn)
	}
	mustDo(m.t, m.s.CommitTurn(m.t.Context(), turn))
	items := append(slices.Clone(before), strings.Fields(idsOf(turn.Input)+" "+idsOf(turn.Output))...)
	if r.From != int64(len(before)) || r.Length != int64(len(items)) {
		m.t.Fatalf("turn %s stands at (%d, %d], want (%d, %d]", r.ID, r.From, r.Length, len(before), len(items))
	}
	m.responses[r.ID] = modelResponse{*r, items}
	if r.Conversation != "" {
		c := m.conversations[r.Conversation]
		c.items = items
		if r.Expires.After(c.expires) {
			c.expires = r.Expires
		}
		m.conversations[r.Conversation] = c
	}
}

// background makes a turn the end of a run, whose base may be deleted meanwhile.
func (m *model) background(turn *Turn) {
	begun := turn.Response
	begun.Status, begun.Runner = "in_progress", "x"
	begun.Thread, begun.Length = turn.Base, turn.BaseLength
	if begun.Conversation != "" {
		begun.Thread, begun.Length = "", 0
	}
	mustDo(m.t, m.s.InsertResponse(m.t.Context(), &begun))
	for i := range m.random.IntN(3) {
		mustDo(m.t, m.s.AppendEvents(m.t.Context(), owner, begun.ID, int64(i), []byte("event")))
	}
	if turn.Base != "" && begun.Thread != "" {
		m.deleteResponse()
	}
	turn.Response.Runner = "x"
}

func (m *model) deleteResponse() {
	if id := pick(m, m.responses); id != "" {
		mustDo(m.t, m.s.DeleteResponse(m.t.Context(), owner, id))
		delete(m.responses, id)
	}
}

func (m *model) editConversation() {
	ctx, id := m.t.Context(), pick(m, m.conversations)
	c := m.conversations[id]
	switch n := m.random.IntN(6); {
	case id == "" || n == 0:
		items := m.newItems()
		made := &Conversation{Owner: owner, ID: m.id("c"), Created: m.now, Expires: m.now.Add(50 * time.Hour)}
		mustDo(m.t, m.s.CreateConversation(ctx, made, items))
		m.conversations[made.ID] = modelConversation{made.Expires, strings.Fields(idsOf(items))}
	case n == 1:
		mustDo(m.t, m.s.DeleteConversation(ctx, owner, id))
		delete(m.conversations, id)
	case n == 2:
		items := m.newItems()
		mustDo(m.t, m.s.AppendItems(ctx, owner, id, items))
		c.items = append(slices.Clone(c.items), strings.Fields(idsOf(items))...)
		m.conversations[id] = c
	default:
		m.deleteItem(id, c.items)
	}
}

func (m *model) deleteItem(conversation string, items []string) {
	if len(items) == 0 {
		return
	}
	id := items[m.random.IntN(len(items))]
	if id == "" {
		return
	}
	mustDo(m.t, m.s.DeleteItem(m.t.Context(), owner, conversation, id))
	blank := func(items []string) []string {
		items = slices.Clone(items)
		if at := slices.Index(items, id); at >= 0 {
			items[at] = ""
		}
		return items
	}
	for name, c := range m.conversations {
		c.items = blank(c.items)
		m.conversations[name] = c
	}
	for name, r := range m.responses {
		r.items = blank(r.items)
		m.responses[name] = r
	}
}

func (m *model) sweep() {
	over := func(t time.Time) bool { return !t.IsZero() && t.UnixMilli() <= m.now.UnixMilli() }
	want := 0
	for id, r := range m.responses {
		if over(r.Expires) {
			delete(m.responses, id)
			want++
		}
	}
	for id, c := range m.conversations {
		if over(c.expires) {
			delete(m.conversations, id)
			want++
		}
	}
	if n, err := m.s.Sweep(m.t.Context(), m.now, 0); n != want || err != nil {
		m.t.Fatalf("a sweep deleted %d, %v, want %d", n, err, want)
	}
}

// check reads all back.
func (m *model) check() {
	m.t.Helper()
	for id, r := range m.responses {
		if _, err := m.s.Response(m.t.Context(), owner, id); err != nil {
			m.t.Errorf("response %s: %v", id, err)
		}
		wantItems(m.t, m.s, r.Thread, 0, r.Length, strings.Join(strings.Fields(strings.Join(r.items, " ")), " "))
	}
	for id, c := range m.conversations {
		wantItems(m.t, m.s, id, 0, int64(len(c.items)), strings.Join(strings.Fields(strings.Join(c.items, " ")), " "))
	}
	wantBytes(m.t, m.s)
}

// Whatever is done in whatever order, what lives reads back whole, and nothing
// is left of what does not.
func TestStateAgainstAModel(t *testing.T) {
	const steps = 1500
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			onEach(t, func(t *testing.T, open func() *Store) {
				m := &model{
					t: t, s: open(), random: rand.New(rand.NewPCG(seed, seed)), now: time.Now().Add(time.Hour),
					responses: map[string]modelResponse{}, conversations: map[string]modelConversation{},
				}
				noSync(t, m.s)
				for step := range steps {
					m.now = m.now.Add(time.Duration(m.random.IntN(60)) * time.Minute)
					switch n := m.random.IntN(20); {
					case n < 10:
						m.turn()
					case n < 14:
						m.deleteResponse()
					case n < 18:
						m.editConversation()
					case n < 19:
						m.sweep()
					}
					if step%40 == 0 {
						m.check()
					}
					if t.Failed() {
						t.Fatalf("at step %d", step)
					}
				}
				m.check()
				m.end()
			})
		})
	}
}

// end deletes the half, and lets the sweep have the rest as the oldest.
func (m *model) end() {
	for range len(m.responses) / 2 {
		m.deleteResponse()
	}
	m.check()
	if _, err := m.s.Sweep(m.t.Context(), m.now, 1); err != nil {
		m.t.Error(err)
	}
	for id := range m.responses { // those without a byte were never too much
		if err := m.s.DeleteResponse(m.t.Context(), owner, id); err != nil && !errors.Is(err, ErrNotFound) {
			m.t.Error(err)
		}
	}
	for id := range m.conversations {
		if err := m.s.DeleteConversation(m.t.Context(), owner, id); err != nil && !errors.Is(err, ErrNotFound) {
			m.t.Error(err)
		}
	}
	wantEmpty(m.t, m.s)
}
