package state

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// A run is a turn in the background: its response is in the store from the
// start, and whoever has its ID can read how far it is, on every replica.

// touchEvery is how often the store is told that runs go on: those that nobody
// tells of for a minute are over.
const touchEvery = 20 * time.Second

// Run is what a keeper knows of a run in this process.
type Run struct {
	Cancel   func()          // has it stop
	Finished func() [][]byte // are the items of its output so far
}

// Queue stores the response of a run that is about to begin.
func (t *Turn) Queue(ctx context.Context, response []byte, run Run) error {
	k := t.keeper
	r := &store.Response{
		Owner: t.owner, ID: t.ID, Status: statusQueued, Runner: k.runner, Conversation: t.ask.Conversation,
		Thread: t.from.thread, From: t.from.length, Inputs: t.from.length, Length: t.from.length,
		Created: t.begun, Expires: t.begun.Add(k.settings.Load().Retention), Body: k.box.Close(t.owner, response),
	}
	if err := k.store.InsertResponse(ctx, r); err != nil {
		return away(err)
	}
	t.run, t.queued = run, response
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[t] = struct{}{}
	return nil
}

// Begin stores that the run's upstream answers.
func (t *Turn) Begin(ctx context.Context) error {
	_, err := t.keeper.store.UpdateResponse(ctx, t.owner, t.ID, []string{statusQueued}, statusInProgress, t.keeper.box.Close(t.owner, ended(t.queued, statusInProgress, nil, nil)))
	return err
}

// Fail stores that the run failed, and what came of it, unless it ended
// otherwise before.
func (t *Turn) Fail(ctx context.Context, fault []byte) error {
	_, err := t.keeper.store.UpdateResponse(ctx, t.owner, t.ID, unended, statusFailed, t.keeper.box.Close(t.owner, ended(t.queued, statusFailed, fault, t.run.Finished())))
	return err
}

// unended are the states that can still change.
var unended = []string{statusQueued, statusInProgress}

var statusFields = jsonedit.NewFields("status", "error", "output")

// ended is a response in another state; fault is its error, an object, or nil,
// output its items.
func ended(response []byte, status string, fault []byte, output [][]byte) []byte {
	var o jsonedit.Object
	if jsonedit.Scan(response, statusFields, &o) != nil {
		return response
	}
	list := bytes.Join([][]byte{{'['}, bytes.Join(output, comma), {']'}}, nil)
	return jsonedit.Edited(response, &o, jsonedit.Set(0, jsonedit.AppendQuote(nil, status)), jsonedit.Set(1, fault), jsonedit.Set(2, list))
}

// Cancel stops a run and returns its response, with what came of it where it
// ran in this process. One that is over stays as it is.
func (k *Keeper) Cancel(ctx context.Context, owner, id string) ([]byte, error) {
	r, err := k.response(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	body, err := k.box.Open(nil, owner, r.Body)
	if err != nil {
		return nil, err
	}
	if background, _ := jsonedit.Get(body, "background"); string(background) != "true" {
		return nil, llm.Errorf(llm.Invalid, "Only a response that was made in the background can be cancelled: '%s' was not.", clip(id))
	}
	var output [][]byte
	t := k.running(owner, id)
	if t != nil {
		output = t.run.Finished()
	}
	if _, err := k.store.UpdateResponse(ctx, owner, id, unended, statusCancelled, k.box.Close(owner, ended(body, statusCancelled, nil, output))); err != nil {
		return nil, unread(err)
	}
	if t != nil {
		t.run.Cancel()
	}
	return k.Response(ctx, owner, id)
}

// running is the turn of a run in this process, nil when there is none.
func (k *Keeper) running(owner, id string) *Turn {
	k.mu.Lock()
	defer k.mu.Unlock()
	for t := range k.runs {
		if t.owner == owner && t.ID == id {
			return t
		}
	}
	return nil
}

// over takes a turn off the runs.
func (k *Keeper) over(t *Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runs, t)
}

// touch tells the store of the runs and of the locks that go on, and stops the
// runs that were cancelled elsewhere.
func (k *Keeper) touch(ctx context.Context, log *slog.Logger) {
	k.mu.Lock()
	runs, locked := slices.Collect(maps.Keys(k.runs)), slices.Collect(maps.Keys(k.locked))
	k.mu.Unlock()
	for _, t := range locked {
		if err := t.renew(ctx); err != nil && !missing(err) && ctx.Err() == nil {
			log.Warn("the store could not be told that a conversation is in use", "error", err)
		}
	}
	for _, t := range runs {
		switch err := k.store.TouchRun(ctx, t.owner, t.ID, k.runner, time.Now()); {
		case missing(err):
			t.run.Cancel()
		case err != nil && ctx.Err() == nil:
			log.Warn("the store could not be told that a background response goes on", "error", err)
		}
	}
	k.markStale(ctx, time.Now(), log)
}

// lost is the error of a run whose process is gone.
const lost = `{"code":"server_error","message":"The gateway was stopped while it made this response. Please send the request again."}`

// markStale ends the runs of processes that are gone.
func (k *Keeper) markStale(ctx context.Context, now time.Time, log *slog.Logger) {
	_, err := k.store.MarkStale(ctx, now, func(r store.Response) []byte {
		body, err := k.box.Open(nil, r.Owner, r.Body)
		if err != nil {
			return r.Body // whoever reads it is told
		}
		return k.box.Close(r.Owner, ended(body, statusFailed, []byte(lost), nil))
	})
	if err != nil && ctx.Err() == nil {
		log.Warn("background responses whose process is gone could not be ended", "error", err)
	}
}

// KeepEvents stores a part of the run's stream: events as JSON objects, the
// first of which has that number.
func (t *Turn) KeepEvents(ctx context.Context, first int64, events [][]byte) error {
	return t.keeper.store.AppendEvents(ctx, t.owner, t.ID, first, t.keeper.box.Close(t.owner, bytes.Join(events, newline)))
}

var newline = []byte{'\n'}

// Events are the stored events of a run's stream that follow the one with a
// number, and the response's status.
func (k *Keeper) Events(ctx context.Context, owner, id string, after int64) (events [][]byte, status string, err error) {
	r, err := k.response(ctx, owner, id)
	if err != nil {
		return nil, "", err
	}
	parts, err := k.store.Events(ctx, owner, id, after)
	if err != nil {
		return nil, "", unread(err)
	}
	for _, part := range parts {
		text, err := k.box.Open(nil, owner, part.Body)
		if err != nil {
			return nil, "", err
		}
		for event := range bytes.SplitSeq(text, newline) {
			if Number(event) > after {
				events = append(events, event)
			}
		}
	}
	return events, r.Status, nil
}

// Number is the number of an event, -1 when it has none.
func Number(event []byte) int64 {
	v, _ := jsonedit.Get(event, "sequence_number")
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Running reports whether a response's status can still change.
func Running(status string) bool { return status == statusQueued || status == statusInProgress }

// errCancelled is the end of a run that was cancelled meanwhile.
var errCancelled = &llm.Error{Kind: llm.Canceled, Message: "The response was cancelled."}
