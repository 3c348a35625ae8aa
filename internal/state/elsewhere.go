package state

import (
	"context"
	"errors"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Elsewhere is a response that its provider keeps: here is only whose it is. It
// is also the failure of what can only be done with a response that is here.
type Elsewhere struct {
	Owner    string // a key's ID
	ID       string // the provider's own
	Provider string // and which of its accounts, where it has several: "openai#2"
	Running  bool   // in the background, as far as it is known here
	Model    string // that the client asked for, while it is running
}

// Error implements error.
func (e *Elsewhere) Error() string { return e.Unwrap().Error() }

// Unwrap is what a client is told whose request goes elsewhere.
func (e *Elsewhere) Unwrap() error {
	return llm.InvalidParam("previous_response_not_found", "previous_response_id",
		"The response '%s' is kept by the provider '%s', and only a model of that provider can go on from it. Ask for one, or send the whole history in 'input'.", clip(e.ID), e.Provider)
}

// Gone is the failure of a request that goes on from the response, which the
// provider does not have any more.
func (e *Elsewhere) Gone() error { return unknown("Previous response", e.ID, "previous_response_id") }

// NotFound is the failure of a request about the response, which the provider
// does not have any more.
func (e *Elsewhere) NotFound() error { return notFound("Response", e.ID) }

// Own keeps whose a response is that its provider keeps. It can be told again
// when the response is over.
func (k *Keeper) Own(ctx context.Context, e *Elsewhere) error {
	if e.ID == "" || len(e.ID) > longestID {
		return llm.Errorf(llm.UpstreamInvalid, "The upstream's answer has no ID by which it could be found again.")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	now := time.Now()
	r := &store.Response{
		Owner: e.Owner, ID: e.ID, Provider: e.Provider, Status: statusCompleted,
		Created: now, Expires: now.Add(k.settings.Load().Retention),
	}
	if e.Running {
		r.Status, r.Body = statusQueued, k.box.Close(e.Owner, []byte(e.Model))
	}
	err := k.store.InsertResponse(ctx, r)
	if errors.Is(err, store.ErrConflict) {
		err = k.ownAgain(ctx, e)
	}
	if err != nil {
		return &llm.Error{Kind: llm.Unavailable, Err: err,
			Message: "Whose the response is could not be stored, so nothing can go on from it. Send the request again, or with 'store' set to false."}
	}
	return nil
}

// ownAgain is Own for an ID that the key has already.
func (k *Keeper) ownAgain(ctx context.Context, e *Elsewhere) error {
	had, err := k.store.Response(ctx, e.Owner, e.ID)
	switch {
	case err != nil:
		return err
	case had.Provider != e.Provider:
		return store.ErrConflict
	case !e.Running:
		_, err = k.End(ctx, e)
	}
	return err
}

// End keeps that a response is over which ran in the background, and reports
// whether nobody had told of it before.
func (k *Keeper) End(ctx context.Context, e *Elsewhere) (first bool, err error) {
	first, err = k.store.UpdateResponse(ctx, e.Owner, e.ID, unended, statusCompleted, nil)
	if err != nil {
		return false, unread(err)
	}
	return first, nil
}

// Disown forgets whose a response is.
func (k *Keeper) Disown(ctx context.Context, e *Elsewhere) error {
	if err := k.store.DeleteResponse(ctx, e.Owner, e.ID); err != nil && !missing(err) {
		return unread(err)
	}
	return nil
}

// elsewhere says who keeps a response that is not here.
func (k *Keeper) elsewhere(r *store.Response) error {
	e := &Elsewhere{Owner: r.Owner, ID: r.ID, Provider: r.Provider, Running: Running(r.Status)}
	if len(r.Body) > 0 {
		model, err := k.box.Open(nil, r.Owner, r.Body)
		if err != nil {
			return err
		}
		e.Model = string(model)
	}
	return e
}

// Refers reports whether an input has items that only refer to others. What
// cannot be read is an *llm.Error.
func Refers(input []byte) (bool, error) {
	_, refs, err := readInput(input, nil)
	return len(refs) > 0, err
}
