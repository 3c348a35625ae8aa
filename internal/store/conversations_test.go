package store

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func newConversation(t *testing.T, s *Store, id string, items ...string) *Conversation {
	t.Helper()
	c := &Conversation{Owner: owner, ID: id, Created: time.UnixMilli(day0.UnixMilli()), Expires: time.UnixMilli(time.Now().UnixMilli() + 1e6), Metadata: `{"a":"é"}`}
	mustDo(t, s.CreateConversation(t.Context(), c, newItems(items...)))
	return c
}

func turnIn(id, conversation string) *Turn {
	turn := newTurn(id, "", 0)
	turn.Response.Conversation = conversation
	return turn
}

func TestConversation(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		c := newConversation(t, s, "c", "x", "y")
		if got, err := s.Conversation(ctx, owner, "c"); err != nil || !reflect.DeepEqual(got, c) || c.Length != 2 {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, c)
		}
		wantErr(t, "second of one ID", s.CreateConversation(ctx, c, nil), ErrConflict)
		mustDo(t, s.SetConversationMetadata(ctx, owner, "c", "{}"))
		more := newItems("z", "x")
		mustDo(t, s.AppendItems(ctx, owner, "c", more))
		if more[0].Seq != 3 || more[1].Seq != 4 {
			t.Errorf("appended items have the numbers %d and %d, want 3 and 4", more[0].Seq, more[1].Seq)
		}
		got, err := s.Conversation(ctx, owner, "c")
		mustDo(t, err)
		if got.Metadata != "{}" || got.Length != 4 {
			t.Errorf("it became %+v", got)
		}
		if item, err := s.Item(ctx, owner, "c", "x"); err != nil || item.Seq != 4 {
			t.Errorf("item x is %+v, %v, want its last, number 4", item, err)
		}
		mustDo(t, s.DeleteItem(ctx, owner, "c", "x"))
		_, err = s.Item(ctx, owner, "c", "x")
		wantErr(t, "deleted item", err, ErrNotFound)
		wantErr(t, "deleted again", s.DeleteItem(ctx, owner, "c", "x"), ErrNotFound)
		wantItems(t, s, "c", 0, 4, "y z")
		mustDo(t, s.AppendItems(ctx, owner, "c", newItems("w")))
		wantItems(t, s, "c", 4, 5, "w")
		wantBytes(t, s)
		mustDo(t, s.DeleteConversation(ctx, owner, "c"))
		wantEmpty(t, s)
	})
}

func TestConversationMisses(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		newConversation(t, s, "c", "x")
		commit(t, s, newTurn("a", "", 0)) // its thread is no conversation
		for name, of := range map[string][2]string{"missing": {owner, "none"}, "another's": {"key2", "c"}, "a thread": {owner, "a"}, "NUL": {owner, "c\x00"}} {
			_, err := s.Conversation(ctx, of[0], of[1])
			wantErr(t, name, err, ErrNotFound)
			_, err = s.Item(ctx, of[0], of[1], "x")
			wantErr(t, name+": item", err, ErrNotFound)
			_, err = s.Item(ctx, of[0], of[1], "a.in")
			wantErr(t, name+": item", err, ErrNotFound)
			wantErr(t, name+": metadata", s.SetConversationMetadata(ctx, of[0], of[1], "{}"), ErrNotFound)
			wantErr(t, name+": append", s.AppendItems(ctx, of[0], of[1], newItems("z")), ErrNotFound)
			wantErr(t, name+": delete item", s.DeleteItem(ctx, of[0], of[1], "a.in"), ErrNotFound)
			wantErr(t, name+": lock", s.Lock(ctx, of[0], of[1], "h", time.Now().Add(time.Hour)), ErrNotFound)
			wantErr(t, name+": delete", s.DeleteConversation(ctx, of[0], of[1]), ErrNotFound)
		}
		over := &Conversation{Owner: owner, ID: "over", Expires: time.Now().Add(-time.Millisecond)}
		mustDo(t, s.CreateConversation(ctx, over, nil))
		_, err := s.Conversation(ctx, owner, "over")
		wantErr(t, "over", err, ErrNotFound)
		wantItems(t, s, "a", 0, 9, "a.in a.out")
		wantItems(t, s, "c", 0, 9, "x")
	})
}

// Turns are appended to a conversation wherever it ends. A turn that goes on
// from a response in it, but not in it, adds nothing to it.
func TestTurnsInAConversation(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		c := newConversation(t, s, "c", "x")
		late := turnIn("a", "c")
		late.Response.Expires = c.Expires.Add(time.Hour)
		a := commit(t, s, late)
		mustDo(t, s.AppendItems(ctx, owner, "c", newItems("y")))
		early := turnIn("b", "c")
		early.Response.Expires = c.Expires.Add(-time.Hour)
		b := commit(t, s, early)
		if b.Thread != "c" || b.From != 4 || b.Inputs != 5 || b.Length != 6 {
			t.Errorf("the second turn stands at %q (%d, %d, %d), want at c (4, 5, 6)", b.Thread, b.From, b.Inputs, b.Length)
		}
		fork := commit(t, s, newTurn("f", b.Thread, b.Length))
		wantItems(t, s, "c", 0, 6, "x a.in a.out y b.in b.out")
		wantItems(t, s, fork.Thread, 0, fork.Length, "x a.in a.out y b.in b.out f.in f.out")
		got, err := s.Conversation(ctx, owner, "c")
		if err != nil || !got.Expires.Equal(late.Response.Expires) || got.Length != 6 {
			t.Errorf("it is %+v, %v, want it to be over with its last response, at %v", got, err, late.Response.Expires)
		}

		mustDo(t, s.DeleteResponse(ctx, owner, "a"))
		mustDo(t, s.DeleteResponse(ctx, owner, "f"))
		wantItems(t, s, "c", 0, 6, "x a.in a.out y b.in b.out")
		fork = commit(t, s, newTurn("g", a.Thread, 2))
		mustDo(t, s.DeleteResponse(ctx, owner, "b"))
		mustDo(t, s.DeleteConversation(ctx, owner, "c"))
		wantItems(t, s, fork.Thread, 0, fork.Length, "x a.in g.in g.out") // what the fork needs stays
		wantBytes(t, s)
		mustDo(t, s.DeleteResponse(ctx, owner, "g"))
		wantEmpty(t, s)
	})
}

func TestConversationLock(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s, ctx := open(), t.Context()
		newConversation(t, s, "c")
		hour := time.Now().Add(time.Hour)
		mustDo(t, s.Lock(ctx, owner, "c", "one", hour))
		wantErr(t, "second holder", s.Lock(ctx, owner, "c", "two", hour), ErrConflict)
		mustDo(t, s.Lock(ctx, owner, "c", "one", hour))
		mustDo(t, s.Unlock(ctx, owner, "c", "two"))
		mustDo(t, s.Unlock(ctx, "key2", "c", "one"))
		wantErr(t, "after another's unlock", s.Lock(ctx, owner, "c", "two", hour), ErrConflict)
		mustDo(t, s.Unlock(ctx, owner, "c", "one"))
		mustDo(t, s.Lock(ctx, owner, "c", "two", time.Now().Add(-time.Millisecond)))
		mustDo(t, s.Lock(ctx, owner, "c", "one", hour)) // the other's has run out
		mustDo(t, s.Unlock(ctx, owner, "none", "one"))
	})
}

// Locks that would run out before a time end; others, and what nobody holds,
// stay as they are.
func TestUnlockStale(t *testing.T) {
	onEach(t, func(t *testing.T, open func() *Store) {
		s := open()
		now := time.Now()
		for id, until := range map[string]time.Duration{"old": time.Minute, "new": time.Hour, "free": 0} {
			mustDo(t, s.CreateConversation(t.Context(), &Conversation{Owner: owner, ID: id, Created: now, Metadata: "{}"}, nil))
			if until > 0 {
				mustDo(t, s.Lock(t.Context(), owner, id, "gone", now.Add(until)))
			}
		}
		mustDo(t, s.UnlockStale(t.Context(), now.Add(2*time.Minute)))
		for id, want := range map[string]error{"old": nil, "new": ErrConflict, "free": nil} {
			if err := s.Lock(t.Context(), owner, id, "next", now.Add(time.Minute)); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", id, err, want)
			}
		}
	})
}
