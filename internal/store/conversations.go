package store

import (
	"context"
	"database/sql"
	"time"
)

// Conversation is a thread that clients name and edit. The thread has its ID.
type Conversation struct {
	Owner    string // a key's ID
	ID       string
	Created  time.Time
	Expires  time.Time // zero is never; a turn moves it on to when its response expires
	Length   int64     // number of the last item, also when it was deleted; the store counts it
	Metadata string    // sealed
}

// CreateConversation stores a conversation with its first items, and sets its
// Length and their numbers. It returns ErrConflict when the ID is taken.
func (s *Store) CreateConversation(ctx context.Context, c *Conversation, items []Item) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		n, err := affected(ctx, tx, `INSERT INTO conversations (owner, id, created_ms, expires_ms, touched_ms, metadata, lock_holder, lock_until_ms)
			VALUES ($1, $2, $3, $4, $5, $6, '', 0) ON CONFLICT DO NOTHING`,
			c.Owner, c.ID, toMS(c.Created), toMS(c.Expires), toMS(c.Created), c.Metadata)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrConflict
		}
		if err := newThread(ctx, tx, c.Owner, c.ID, "", 0, true, items); err != nil {
			return err
		}
		return insertItems(ctx, tx, c.Owner, c.ID, 0, items)
	})
	if err != nil {
		return err
	}
	c.Length = number(items, 0)
	return nil
}

// Conversation returns a conversation whose time is not over, or ErrNotFound.
func (s *Store) Conversation(ctx context.Context, owner, id string) (*Conversation, error) {
	var (
		c                Conversation
		created, expires int64
	)
	row := s.read.QueryRowContext(ctx, `SELECT c.owner, c.id, c.created_ms, c.expires_ms, t.length, c.metadata
		FROM conversations c JOIN threads t ON t.owner = c.owner AND t.id = c.id
		WHERE c.owner = $1 AND c.id = $2 AND (c.expires_ms = 0 OR c.expires_ms > $3)`, owner, storable(id), time.Now().UnixMilli())
	if err := scanOne(row, &c.Owner, &c.ID, &created, &expires, &c.Length, &c.Metadata); err != nil {
		return nil, err
	}
	c.Created, c.Expires = fromMS(created), fromMS(expires)
	return &c, nil
}

// SetConversationMetadata gives a conversation other metadata. It returns
// ErrNotFound when there is no such conversation.
func (s *Store) SetConversationMetadata(ctx context.Context, owner, id, metadata string) error {
	n, err := affected(ctx, s.write, "UPDATE conversations SET metadata = $1 WHERE owner = $2 AND id = $3", metadata, owner, storable(id))
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// DeleteConversation deletes a conversation and those of its items that no
// response or fork needs. It returns ErrNotFound when there is no such
// conversation.
func (s *Store) DeleteConversation(ctx context.Context, owner, id string) error {
	c := name{owner, storable(id)}
	n, err := s.dropConversations(ctx, []name{c})
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotFound
	}
	return s.tidyDown(ctx, c)
}

// AppendItems appends items to a conversation and sets their numbers. It
// returns ErrNotFound when there is no such conversation.
func (s *Store) AppendItems(ctx context.Context, owner, conversation string, items []Item) error {
	end := conversationEnd{owner: owner, id: storable(conversation)}
	for i := range items {
		end.touched = max(end.touched, toMS(items[i].Created))
	}
	var after int64
	err := s.inTx(ctx, func(tx *sql.Tx) (err error) {
		if after, err = extendConversation(ctx, tx, end, items); err != nil {
			return err
		}
		return insertItems(ctx, tx, owner, end.id, after, items)
	})
	if err != nil {
		return err
	}
	number(items, after)
	return nil
}

// conversationEnd is what is told of a conversation when something is
// appended to it.
type conversationEnd struct {
	owner, id string
	touched   int64 // Unix ms
	expires   int64 // Unix ms; 0 leaves it
}

// extendConversation makes room for items at the end of a conversation, and
// returns the number of the item that was its last. It returns ErrNotFound
// when there is no such conversation.
func extendConversation(ctx context.Context, tx *sql.Tx, end conversationEnd, items []Item) (after int64, err error) {
	// The lock of its row keeps it from being deleted in between.
	n, err := affected(ctx, tx, `UPDATE conversations SET touched_ms = CASE WHEN touched_ms < $1 THEN $1 ELSE touched_ms END,
		expires_ms = CASE WHEN expires_ms > 0 AND expires_ms < $2 THEN $2 ELSE expires_ms END WHERE owner = $3 AND id = $4`,
		end.touched, end.expires, end.owner, end.id)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, ErrNotFound
	}
	var length int64
	row := tx.QueryRowContext(ctx, "UPDATE threads SET length = length + $1, bytes = bytes + $2 WHERE owner = $3 AND id = $4 RETURNING length",
		len(items), size(items), end.owner, end.id)
	if err := scanOne(row, &length); err != nil {
		return 0, err
	}
	return length - int64(len(items)), nil
}

// Item returns an item of a conversation, or ErrNotFound. Of several with its
// ID it is the last.
func (s *Store) Item(ctx context.Context, owner, conversation, itemID string) (*Item, error) {
	items, err := s.queryItems(ctx, `SELECT id, seq, created_ms, body FROM items WHERE owner = $1 AND id = $2 AND thread = $3
		AND EXISTS (SELECT 1 FROM conversations WHERE owner = $1 AND id = $3) ORDER BY seq DESC LIMIT 1`,
		owner, storable(itemID), storable(conversation))
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound
	}
	return &items[0], nil
}

// DeleteItem takes all items with an ID out of a conversation. The numbers of
// the others stay. It returns ErrNotFound when there is none.
func (s *Store) DeleteItem(ctx context.Context, owner, conversation, itemID string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		conversation := storable(conversation)
		n, err := affected(ctx, tx, `UPDATE threads SET untidy = untidy WHERE owner = $1 AND id = $2
			AND EXISTS (SELECT 1 FROM conversations WHERE owner = $1 AND id = $2)`, owner, conversation)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrNotFound
		}
		gone, err := deleteReturning(ctx, tx, "DELETE FROM items WHERE owner = $1 AND id = $2 AND thread = $3 RETURNING LENGTH(body)", owner, storable(itemID), conversation)
		if err != nil {
			return err
		}
		if gone.rows == 0 {
			return ErrNotFound
		}
		_, err = affected(ctx, tx, "UPDATE threads SET bytes = bytes - $1 WHERE owner = $2 AND id = $3", gone.bytes, owner, conversation)
		return err
	})
}

// Lock gives a conversation to a holder until a time, or moves the end of the
// holder's own lock. It returns ErrConflict while another's has not run out,
// and ErrNotFound when there is no such conversation.
func (s *Store) Lock(ctx context.Context, owner, conversation, holder string, until time.Time) error {
	n, err := affected(ctx, s.write, `UPDATE conversations SET lock_holder = $1, lock_until_ms = $2
		WHERE owner = $3 AND id = $4 AND (lock_holder = $1 OR lock_until_ms <= $5)`,
		holder, until.UnixMilli(), owner, storable(conversation), time.Now().UnixMilli())
	if err != nil || n > 0 {
		return err
	}
	if _, err := s.Conversation(ctx, owner, conversation); err != nil {
		return err
	}
	return ErrConflict
}

// Unlock ends a holder's lock of a conversation. Another's stays.
func (s *Store) Unlock(ctx context.Context, owner, conversation, holder string) error {
	_, err := affected(ctx, s.write, "UPDATE conversations SET lock_holder = '', lock_until_ms = 0 WHERE owner = $1 AND id = $2 AND lock_holder = $3",
		owner, storable(conversation), holder)
	return err
}

// UnlockStale ends the locks that would run out before a time.
func (s *Store) UnlockStale(ctx context.Context, until time.Time) error {
	_, err := affected(ctx, s.write, "UPDATE conversations SET lock_holder = '', lock_until_ms = 0 WHERE lock_until_ms > 0 AND lock_until_ms < $1", until.UnixMilli())
	return err
}
