package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"
)

// Response is one turn. It stands on a thread and sees the first Length items
// of it: (From, Inputs] are its own input, (Inputs, Length] its output.
type Response struct {
	Owner        string // a key's ID
	ID           string
	Thread       string // "" is none: the provider has it, or nothing came of it yet
	Conversation string // "" is none
	From         int64
	Inputs       int64
	Length       int64
	Status       string // completed, incomplete, failed, cancelled, queued, in_progress
	Provider     string // set when the upstream keeps the state itself: here is only whose it is
	Runner       string // of a background run that goes on: which process
	Created      time.Time
	Expires      time.Time // zero is never
	Body         []byte    // sealed: the response object without its output; of a provider's, the model's name while it runs
}

// Turn is a response and the items that are new with it.
type Turn struct {
	Response      Response
	Base          string // the thread that the turn came after; "" begins one
	BaseLength    int64  // how many of its items the turn saw
	Input, Output []Item
}

const responseColumns = "owner, id, thread, conversation, from_item, inputs, length, status, provider, runner, created_ms, expires_ms, body"

// running is the condition of a response whose status can still change.
const running = "status IN ('queued', 'in_progress')"

// isRunning is the same of a status.
func isRunning(status string) bool { return status == "queued" || status == "in_progress" }

// Response returns a response whose time is not over, or ErrNotFound.
func (s *Store) Response(ctx context.Context, owner, id string) (*Response, error) {
	row := s.read.QueryRowContext(ctx, "SELECT "+responseColumns+" FROM responses WHERE owner = $1 AND id = $2 AND (expires_ms = 0 OR expires_ms > $3)",
		owner, storable(id), time.Now().UnixMilli())
	r, err := scanResponse(func(targets ...any) error { return scanOne(row, targets...) })
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func scanResponse(scan func(...any) error) (Response, error) {
	var (
		r                Response
		created, expires int64
	)
	err := scan(&r.Owner, &r.ID, &r.Thread, &r.Conversation, &r.From, &r.Inputs, &r.Length, &r.Status, &r.Provider, &r.Runner, &created, &expires, &r.Body)
	r.Created, r.Expires = fromMS(created), fromMS(expires)
	return r, err
}

// InsertResponse stores a response without items: a background run that
// begins, or what a provider keeps. A run that names the thread and the length
// that it goes on from keeps these until it ends; when they are gone already,
// it returns ErrNotFound. It returns ErrConflict when the ID is taken.
func (s *Store) InsertResponse(ctx context.Context, r *Response) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if err := insertResponse(ctx, tx, r); err != nil || r.Thread == "" {
			return err
		}
		return pin(ctx, tx, r.Owner, r.Thread, r.Length)
	})
}

func insertResponse(ctx context.Context, tx *sql.Tx, r *Response) error {
	n, err := affected(ctx, tx, "INSERT INTO responses ("+responseColumns+`, touched_ms, bytes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
		r.Owner, r.ID, r.Thread, r.Conversation, r.From, r.Inputs, r.Length, r.Status, r.Provider, r.Runner,
		toMS(r.Created), toMS(r.Expires), blob(r.Body), toMS(r.Created), len(r.Body))
	if err == nil && n == 0 {
		return ErrConflict
	}
	return err
}

// UpdateResponse gives a response another status and body when its status is
// one of from, and reports whether it was. A status that ends a response never
// changes, whatever from says.
func (s *Store) UpdateResponse(ctx context.Context, owner, id string, from []string, status string, body []byte) (bool, error) {
	if len(from) == 0 {
		return false, nil
	}
	args := []any{status, isRunning(status), len(body), blob(body), owner, storable(id)}
	for _, f := range from {
		args = append(args, f)
	}
	n, err := affected(ctx, s.write, `UPDATE responses SET status = $1, runner = CASE WHEN $2 THEN runner ELSE '' END,
		bytes = bytes - LENGTH(body) + CAST($3 AS BIGINT), body = $4
		WHERE owner = $5 AND id = $6 AND `+running+" AND status IN "+placeholders(7, len(from)), args...)
	return n > 0, err
}

// DeleteResponse deletes a response, its events, and those of its items that no
// other response, fork or conversation needs. It returns ErrNotFound when there
// is no such response.
func (s *Store) DeleteResponse(ctx context.Context, owner, id string) error {
	gone, err := s.dropResponses(ctx, []name{{owner, storable(id)}})
	if err != nil {
		return err
	}
	if gone.count == 0 {
		return ErrNotFound
	}
	for _, t := range gone.threads {
		if err := s.tidyDown(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// CommitTurn stores a turn in one transaction. Its items are appended to the
// base when that ends where the turn went on; when somebody else went on from
// there before, they begin a thread of their own at that place. Those of a
// conversation are appended to it wherever it ends. It sets the response's
// Thread, From, Inputs and Length, and the numbers of the items.
//
// The response of a background run, one with a Runner, takes the place of the
// row of the run.
//
// It returns ErrConflict when the run has ended already, or the ID is taken,
// and ErrNotFound when the base, the conversation, or the row of a run was
// deleted. Then nothing is stored.
func (s *Store) CommitTurn(ctx context.Context, turn *Turn) error {
	var r Response
	err := s.together(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		r = turn.Response
		var kept string
		if r.Runner != "" {
			if kept, err = endRun(ctx, tx, &r); err != nil {
				return err
			}
		}
		items := slices.Concat(turn.Input, turn.Output)
		if err := place(ctx, tx, turn, &r, items); err != nil {
			return err
		}
		r.Length = r.From + int64(len(items))
		r.Inputs = r.From + int64(len(turn.Input))
		if err := insertItems(ctx, tx, r.Owner, r.Thread, r.From, items); err != nil {
			return err
		}
		if r.Runner == "" {
			return insertResponse(ctx, tx, &r)
		}
		return replaceRun(ctx, tx, &r, kept)
	})
	if err != nil {
		return err
	}
	number(turn.Output, number(turn.Input, r.From))
	turn.Response = r
	return nil
}

// endRun ends the background run of a response, and returns the thread that it
// kept.
func endRun(ctx context.Context, tx *sql.Tx, r *Response) (kept string, err error) {
	row := tx.QueryRowContext(ctx, "UPDATE responses SET status = $1, runner = '' WHERE owner = $2 AND id = $3 AND "+running+" RETURNING thread",
		r.Status, r.Owner, r.ID)
	if err := scanOne(row, &kept); !errors.Is(err, ErrNotFound) {
		return kept, err
	}
	if err := scanOne(tx.QueryRowContext(ctx, "SELECT status FROM responses WHERE owner = $1 AND id = $2", r.Owner, r.ID), new(string)); err != nil {
		return "", err
	}
	return "", ErrConflict
}

// replaceRun writes a response over the row of its run, which kept a thread.
func replaceRun(ctx context.Context, tx *sql.Tx, r *Response, kept string) error {
	r.Runner = ""
	_, err := affected(ctx, tx, `UPDATE responses SET thread = $1, conversation = $2, from_item = $3, inputs = $4, length = $5,
		expires_ms = $6, bytes = bytes - LENGTH(body) + CAST($7 AS BIGINT), body = $8 WHERE owner = $9 AND id = $10`,
		r.Thread, r.Conversation, r.From, r.Inputs, r.Length, toMS(r.Expires), len(r.Body), blob(r.Body), r.Owner, r.ID)
	if err != nil || kept == "" || kept == r.Thread {
		return err
	}
	return loosen(ctx, tx, []name{{r.Owner, kept}})
}

// place finds or makes the thread for the items of a turn, and sets the
// response's Thread and From. The items' rows are not there yet.
func place(ctx context.Context, tx *sql.Tx, turn *Turn, r *Response, items []Item) error {
	if r.Conversation != "" {
		end, err := extendConversation(ctx, tx, conversationEnd{r.Owner, r.Conversation, toMS(r.Created), toMS(r.Expires)}, items)
		r.Thread, r.From = r.Conversation, end
		return err
	}
	if turn.Base == "" {
		r.Thread, r.From = r.ID, 0
		return newThread(ctx, tx, r.Owner, r.Thread, "", 0, false, items)
	}
	r.Thread, r.From = turn.Base, turn.BaseLength
	n, err := affected(ctx, tx, "UPDATE threads SET length = length + $1, bytes = bytes + $2 WHERE owner = $3 AND id = $4 AND length = $5 AND NOT closed",
		len(items), size(items), r.Owner, turn.Base, turn.BaseLength)
	if err != nil || n > 0 {
		return err
	}
	if err := pin(ctx, tx, r.Owner, turn.Base, turn.BaseLength); err != nil {
		return err
	}
	r.Thread = r.ID
	return newThread(ctx, tx, r.Owner, r.Thread, turn.Base, turn.BaseLength, false, items)
}
