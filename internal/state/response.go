package state

import (
	"context"

	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Response returns a kept response as its client was told it. Of one that its
// provider keeps the error is an *Elsewhere, here and in all that follows.
func (k *Keeper) Response(ctx context.Context, owner, id string) ([]byte, error) {
	r, err := k.response(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	body, err := k.box.Open(nil, owner, r.Body)
	if err != nil || r.Length <= r.Inputs {
		return body, err
	}
	output, err := k.store.Items(ctx, owner, r.Thread, r.Inputs, r.Length)
	if err != nil {
		return nil, away(err)
	}
	w := jsonedit.NewWriter(nil)
	w.BeginArray()
	for _, it := range output {
		own, err := k.item(owner, it)
		if err != nil {
			return nil, err
		}
		w.Raw(own.shown())
	}
	w.EndArray()
	var o jsonedit.Object
	if err := jsonedit.Scan(body, responseFields, &o); err != nil {
		return nil, err
	}
	return jsonedit.Edited(body, &o, jsonedit.Set(responseOutput, w.Bytes())), nil
}

func (k *Keeper) response(ctx context.Context, owner, id string) (*store.Response, error) {
	r, err := k.store.Response(ctx, owner, id)
	switch {
	case missing(err):
		return nil, notFound("Response", id)
	case err != nil:
		return nil, unread(err)
	case r.Provider != "":
		return nil, k.elsewhere(r)
	}
	return r, nil
}

// unread is the failure of a store that cannot be asked for an object.
func unread(err error) error {
	e := llm.AsError(away(err))
	e.Message = "What is stored cannot be read now. Please try again in 2s."
	return e
}

// DeleteResponse forgets a response. Turns that went on from it keep what they
// have of it.
func (k *Keeper) DeleteResponse(ctx context.Context, owner, id string) error {
	if _, err := k.response(ctx, owner, id); err != nil {
		return err
	}
	switch err := k.store.DeleteResponse(ctx, owner, id); {
	case missing(err):
		return notFound("Response", id)
	case err != nil:
		return unread(err)
	}
	return nil
}

// Page is what part of a list is asked for.
type Page struct {
	After     string // the ID of the item before the page; empty is none
	Limit     int
	Ascending bool
}

// InputItems returns a page of what a response saw, as a list object.
func (k *Keeper) InputItems(ctx context.Context, owner, id string, p Page) ([]byte, error) {
	r, err := k.response(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	if r.Thread == "" { // of a run that has yet to end
		return k.list(owner, nil, false)
	}
	return k.page(ctx, owner, r.Thread, r.Inputs, p)
}

// page is a page of the first items of a thread.
func (k *Keeper) page(ctx context.Context, owner, thread string, length int64, p Page) ([]byte, error) {
	items, more, err := k.store.ListItems(ctx, owner, thread, 0, length, p.After, !p.Ascending, p.Limit)
	switch {
	case missing(err):
		return nil, llm.InvalidParam("invalid_value", "after", "There is no item '%s' in this list to begin after.", clip(p.After))
	case err != nil:
		return nil, unread(err)
	}
	return k.list(owner, items, more)
}

// list is a list object of items.
func (k *Keeper) list(owner string, items []store.Item, more bool) ([]byte, error) {
	w := jsonedit.NewWriter(nil)
	w.BeginObject()
	w.SetText("object", "list")
	w.Array("data")
	for _, it := range items {
		own, err := k.item(owner, it)
		if err != nil {
			return nil, err
		}
		w.Raw(own.shown())
	}
	w.EndArray()
	ends := func(name string, at int) {
		if len(items) == 0 {
			w.SetRaw(name, openai.Null)
			return
		}
		w.SetText(name, items[at].ID)
	}
	ends("first_id", 0)
	ends("last_id", len(items)-1)
	w.SetBool("has_more", more)
	w.EndObject()
	return w.Bytes(), nil
}
