package state

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
	"github.com/limen-gateway/limen/internal/store"
)

// lockTime is how long a conversation stays locked when the process is gone
// that its turn runs in. While that is there, the lock is renewed.
const lockTime = 2 * time.Minute

// resolveConversation takes a conversation for the turn, and its items.
func (t *Turn) resolveConversation(ctx context.Context) error {
	k, id := t.keeper, t.ask.Conversation
	switch err := t.lock(ctx); {
	case missing(err):
		return notFound("Conversation", id)
	case errors.Is(err, store.ErrConflict):
		e := llm.Errorf(llm.Conflict, "Another response is being made in the conversation '%s'. Try again when that is over.", clip(id))
		e.Code, e.Param = "conversation_locked", "conversation"
		return e
	case err != nil:
		return away(err)
	}
	c, err := k.store.Conversation(ctx, t.owner, id)
	switch {
	case missing(err): // its time is over
		return notFound("Conversation", id)
	case err != nil:
		return away(err)
	}
	t.past, err = k.read(ctx, t.owner, id, c.Length)
	t.from = place{id, c.Length}
	return err
}

// lock takes the turn's conversation.
func (t *Turn) lock(ctx context.Context) error {
	t.lockMu.Lock()
	defer t.lockMu.Unlock()
	if err := t.keeper.store.Lock(ctx, t.owner, t.ask.Conversation, t.ID, time.Now().Add(lockTime)); err != nil {
		return err
	}
	t.locked = true
	t.keeper.mu.Lock()
	defer t.keeper.mu.Unlock()
	t.keeper.locked[t] = struct{}{}
	return nil
}

// renew has the lock last longer, or gives it back when that could not be done
// before.
func (t *Turn) renew(ctx context.Context) error {
	t.lockMu.Lock()
	defer t.lockMu.Unlock()
	switch {
	case !t.locked:
		return nil
	case t.done:
		return t.free(ctx)
	}
	return t.keeper.store.Lock(ctx, t.owner, t.ask.Conversation, t.ID, time.Now().Add(lockTime))
}

// unlock gives the conversation back, if the turn has it.
func (t *Turn) unlock(ctx context.Context) {
	t.lockMu.Lock()
	defer t.lockMu.Unlock()
	if !t.locked || t.done {
		return
	}
	t.done = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	t.free(ctx) // else renew does
}

// free is unlock for who has lockMu.
func (t *Turn) free(ctx context.Context) error {
	if err := t.keeper.store.Unlock(ctx, t.owner, t.ask.Conversation, t.ID); err != nil {
		return err
	}
	t.locked = false
	t.keeper.mu.Lock()
	defer t.keeper.mu.Unlock()
	delete(t.keeper.locked, t)
	return nil
}

// unlockStale gives back the conversations of turns that ran in a process
// before.
func (k *Keeper) unlockStale(ctx context.Context, log *slog.Logger) {
	if err := k.store.UnlockStale(ctx, k.begun.Add(lockTime)); err != nil && ctx.Err() == nil {
		log.Warn("conversations that a process before had locked could not be unlocked", "error", err)
	}
}

// conversationFields are the members of a request about a conversation.
var conversationFields = jsonedit.NewFields("items", "metadata")

const (
	conversationItems = iota
	conversationMetadata
)

// maxAdded is how many items can be added at once.
const maxAdded = 20

// CreateConversation makes a conversation as a request body asks, and returns
// it. id is unique, without any prefix.
func (k *Keeper) CreateConversation(ctx context.Context, owner, id string, body []byte) ([]byte, error) {
	o, err := readConversation(body)
	if err != nil {
		return nil, err
	}
	metadata, err := metadataOf(o)
	if err != nil {
		return nil, err
	}
	items, err := k.added(owner, id, o)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &store.Conversation{Owner: owner, ID: "conv_" + id, Created: now, Expires: now.Add(k.settings.Load().Retention), Metadata: k.closeText(owner, metadata)}
	if err := k.store.CreateConversation(ctx, c, items); err != nil {
		return nil, unread(err)
	}
	return k.conversationObject(c)
}

func readConversation(body []byte) (*jsonedit.Object, error) {
	if len(body) == 0 {
		body = []byte("{}") // everything is optional
	}
	o := new(jsonedit.Object)
	if err := jsonedit.Scan(body, conversationFields, o); err != nil {
		return nil, openai.ScanError(err)
	}
	return o, nil
}

func metadataOf(o *jsonedit.Object) (string, error) {
	v := llm.Raw(o.Value(conversationMetadata))
	switch {
	case !v.Given():
		return "{}", nil
	case v.Kind() != jsonedit.KindObject:
		return "", openai.WrongType("metadata", "an object", v)
	}
	return string(v), nil
}

// added are the items of a request, as they are kept.
func (k *Keeper) added(owner, id string, o *jsonedit.Object) ([]store.Item, error) {
	list := llm.Raw(o.Value(conversationItems))
	if !list.Given() {
		return nil, nil
	}
	if list.Kind() != jsonedit.KindArray {
		return nil, openai.WrongType("items", "an array of items", list)
	}
	items, refs, err := readInput(list, numbered(id))
	switch {
	case err != nil:
		return nil, err
	case len(refs) > 0:
		return nil, llm.InvalidParam("invalid_value", "items", "Items of a conversation cannot be references: send the items themselves.")
	case len(items) > maxAdded:
		return nil, llm.InvalidParam("array_above_max_length", "items", "Invalid 'items': %d at once are too many, the most is %d.", len(items), maxAdded)
	}
	if err := checkIDs(items); err != nil {
		return nil, err
	}
	t := Turn{keeper: k, owner: owner}
	return t.closed(items, time.Now()), nil
}

func (k *Keeper) conversationObject(c *store.Conversation) ([]byte, error) {
	metadata, err := k.openText(c.Owner, c.Metadata)
	if err != nil {
		return nil, err
	}
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("id", c.ID)
	w.SetText("object", "conversation")
	w.SetInt("created_at", c.Created.Unix())
	w.SetRaw("metadata", metadata)
	w.EndObject()
	return w.Bytes(), nil
}

// closeText closes what the store takes as text.
func (k *Keeper) closeText(owner, content string) string {
	return base64.StdEncoding.EncodeToString(k.box.Close(owner, []byte(content)))
}

func (k *Keeper) openText(owner, closed string) ([]byte, error) {
	box, err := base64.StdEncoding.DecodeString(closed)
	if err != nil {
		return nil, seal.ErrBox
	}
	return k.box.Open(nil, owner, box)
}

func (k *Keeper) conversation(ctx context.Context, owner, id string) (*store.Conversation, error) {
	c, err := k.store.Conversation(ctx, owner, id)
	if err != nil {
		return nil, conversationError(err, id)
	}
	return c, nil
}

func conversationError(err error, id string) error {
	if missing(err) {
		return notFound("Conversation", id)
	}
	return unread(err)
}

// Conversation returns a conversation.
func (k *Keeper) Conversation(ctx context.Context, owner, id string) ([]byte, error) {
	c, err := k.conversation(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return k.conversationObject(c)
}

// UpdateConversation gives a conversation the metadata of a request body.
func (k *Keeper) UpdateConversation(ctx context.Context, owner, id string, body []byte) ([]byte, error) {
	o, err := readConversation(body)
	if err != nil {
		return nil, err
	}
	metadata, err := metadataOf(o)
	if err != nil {
		return nil, err
	}
	if err := k.store.SetConversationMetadata(ctx, owner, id, k.closeText(owner, metadata)); err != nil {
		return nil, conversationError(err, id)
	}
	return k.Conversation(ctx, owner, id)
}

// DeleteConversation forgets a conversation and its items.
func (k *Keeper) DeleteConversation(ctx context.Context, owner, id string) error {
	if err := k.store.DeleteConversation(ctx, owner, id); err != nil {
		return conversationError(err, id)
	}
	return nil
}

// ConversationItems returns a page of a conversation's items, as a list object.
func (k *Keeper) ConversationItems(ctx context.Context, owner, id string, p Page) ([]byte, error) {
	c, err := k.conversation(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return k.page(ctx, owner, id, c.Length, p)
}

// AddItems adds the items of a request body to a conversation, and returns them
// as a list object. unique makes their IDs.
func (k *Keeper) AddItems(ctx context.Context, owner, id, unique string, body []byte) ([]byte, error) {
	o, err := readConversation(body)
	if err != nil {
		return nil, err
	}
	items, err := k.added(owner, unique, o)
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, openai.Missing("items")
	}
	if err := k.store.AppendItems(ctx, owner, id, items); err != nil {
		return nil, conversationError(err, id)
	}
	c, err := k.conversation(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return k.pageAfter(ctx, owner, id, c.Length-int64(len(items)), c.Length)
}

// pageAfter is a page of all items of a thread in a range.
func (k *Keeper) pageAfter(ctx context.Context, owner, thread string, after, length int64) ([]byte, error) {
	items, err := k.store.Items(ctx, owner, thread, after, length)
	if err != nil {
		return nil, unread(err)
	}
	return k.list(owner, items, false)
}

// Item returns an item of a conversation.
func (k *Keeper) Item(ctx context.Context, owner, conversation, id string) ([]byte, error) {
	kept, err := k.store.Item(ctx, owner, conversation, id)
	switch {
	case missing(err):
		return nil, notFound("Item", id)
	case err != nil:
		return nil, unread(err)
	}
	it, err := k.item(owner, *kept)
	return it.shown(), err
}

// DeleteItem takes an item out of a conversation, which it returns.
func (k *Keeper) DeleteItem(ctx context.Context, owner, conversation, id string) ([]byte, error) {
	switch err := k.store.DeleteItem(ctx, owner, conversation, id); {
	case missing(err):
		return nil, notFound("Item", id)
	case err != nil:
		return nil, unread(err)
	}
	return k.Conversation(ctx, owner, conversation)
}
