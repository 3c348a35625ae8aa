package state

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Turn is a call that goes on from something, or that others may go on from.
type Turn struct {
	ID string // of its response

	keeper  *Keeper
	session *Session // of a socket; nil elsewhere
	owner   string
	ask     dialect.Context
	begun   time.Time
	from    place
	past    past
	input   []item
	queued  []byte // the response of a run when it was queued; nil elsewhere
	run     Run    // in the background

	lockMu sync.Mutex
	locked bool // the conversation, as far as the store knows
	done   bool // with the conversation
}

// place is where in the store a turn goes on. Without a thread it begins one.
type place struct {
	thread string
	length int64
}

// Open resolves what a request goes on from. id is the call's, without any
// prefix. The turn is nil when the request stands for itself and nothing of it
// is kept. What cannot be found, or not be gone on from, is an *llm.Error;
// what a provider keeps is an *Elsewhere. Close must be called on a turn.
func (k *Keeper) Open(ctx context.Context, owner, id string, ask *dialect.Context, session *Session) (*Turn, error) {
	t := &Turn{ID: "resp_" + id, keeper: k, session: session, owner: owner, ask: *ask, begun: time.Now()}
	if err := t.check(); err != nil {
		return nil, err
	}
	if !ask.Store && !ask.Itemized && session == nil && ask.Previous == "" && ask.Conversation == "" && !refers(ask.Input) {
		return nil, nil
	}
	err := t.resolve(ctx)
	if err == nil {
		err = t.read(ctx, id)
	}
	if err != nil {
		t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// check refuses what cannot be asked together.
func (t *Turn) check() error {
	switch a := t.ask; {
	case a.Previous != "" && a.Conversation != "":
		return llm.InvalidParam("mutually_exclusive_parameters", "previous_response_id", "Use either 'previous_response_id' or 'conversation', not both: each of them says what came before.")
	case a.Background && !a.Store:
		return llm.InvalidParam("invalid_value", "background", "'background' needs 'store' to be true: the answer is read later, by its ID.")
	}
	return nil
}

// refers reports whether an input may have items that only refer to others.
func refers(input []byte) bool { return bytes.Contains(input, []byte(`"`+referenceType+`"`)) }

// resolve finds the past.
func (t *Turn) resolve(ctx context.Context) error {
	switch {
	case t.ask.Conversation != "":
		return t.resolveConversation(ctx)
	case t.ask.Previous == "":
		return nil
	}
	if t.session != nil {
		if found, ok := t.session.turns[t.ask.Previous]; ok {
			t.past, t.from = found.past, found.at
			return nil
		}
	}
	r, err := t.keeper.store.Response(ctx, t.owner, t.ask.Previous)
	switch {
	case missing(err):
		return unknown("Previous response", t.ask.Previous, "previous_response_id")
	case err != nil:
		return away(err)
	case r.Provider != "":
		return t.keeper.elsewhere(r)
	case r.Status == statusQueued || r.Status == statusInProgress:
		return llm.InvalidParam("invalid_value", "previous_response_id", "The response '%s' is still %s: go on from it when it is over.", clip(r.ID), r.Status)
	case r.Status == statusFailed || r.Status == statusCancelled || r.Thread == "": // nothing came of it
		return unknown("Previous response", t.ask.Previous, "previous_response_id")
	}
	t.from = place{r.Thread, r.Length}
	if r.Conversation != "" { // whose items clients can take out
		t.past, err = t.keeper.read(ctx, t.owner, r.Thread, r.Length)
	} else {
		t.past, err = t.keeper.past(ctx, t.owner, r.Thread, r.Length)
	}
	return err
}

// read reads the request's own input, and what it refers to.
func (t *Turn) read(ctx context.Context, id string) error {
	items, refs, err := readInput(t.ask.Input, numbered(id))
	if err != nil {
		return err
	}
	if err := t.dereference(ctx, items, refs); err != nil {
		return err
	}
	if err := checkIDs(items); err != nil {
		return err
	}
	t.input = items
	if t.ask.Previous == "" && t.ask.Conversation == "" {
		return nil // the upstream knows its own rules
	}
	switch result, call := t.past.unmatched(items); {
	case result != "":
		return llm.InvalidParam("invalid_value", "input", "No tool call found for function call output with call_id %s.", clip(result))
	case call != "":
		return llm.InvalidParam("invalid_value", "input", "No tool output found for function call %s.", clip(call))
	}
	return nil
}

// dereference puts kept items where there are only their IDs.
func (t *Turn) dereference(ctx context.Context, items []item, refs map[int]string) error {
	if len(refs) == 0 {
		return nil
	}
	ids := make([]string, 0, len(refs))
	for _, id := range refs {
		ids = append(ids, id)
	}
	kept, err := t.keeper.store.ItemsByID(ctx, t.owner, ids)
	if err != nil {
		return away(err)
	}
	byID := make(map[string]item, len(kept))
	for _, k := range kept {
		if byID[k.ID], err = t.keeper.item(t.owner, k); err != nil {
			return err
		}
	}
	for at := range items {
		id, is := refs[at]
		if !is {
			continue
		}
		found, ok := byID[id]
		if !ok {
			e := notFound("Item", id)
			llm.AsError(e).Param = "input"
			return e
		}
		items[at] = found
	}
	return nil
}

// Input is the whole input of the call, as the inside of an array.
func (t *Turn) Input() (parts [][]byte, size int) {
	add := func(b []byte) {
		parts, size = append(parts, b), size+len(b)
	}
	if before := t.past.bytes(); len(before) > 0 {
		add(before)
	}
	for _, it := range t.input {
		if size > 0 {
			add(comma)
		}
		add(it.json)
	}
	return parts, size
}

var comma = []byte{','}

// Told are the members of the response that the gateway answers for, not the
// upstream.
func (t *Turn) Told() []llm.Member {
	previous, conversation := llm.Raw("null"), llm.Raw("null")
	if t.ask.Previous != "" {
		previous = llm.Quote(t.ask.Previous)
	}
	if t.ask.Conversation != "" {
		w := jsonedit.NewWriter(nil)
		w.BeginObject()
		w.SetText("id", t.ask.Conversation)
		w.EndObject()
		conversation = w.Bytes()
	}
	return []llm.Member{
		{Name: "id", Value: llm.Quote(t.ID)},
		{Name: "previous_response_id", Value: previous},
		{Name: "conversation", Value: conversation},
		{Name: "store", Value: strconv.AppendBool(nil, t.ask.Store)},
		{Name: "background", Value: strconv.AppendBool(nil, t.ask.Background)},
	}
}

// The states of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

var responseFields = jsonedit.NewFields("status", "output")

const (
	responseStatus = iota
	responseOutput
)

// commitTime bounds how long the end of a turn waits for the store.
const commitTime = 10 * time.Second

// Commit keeps the turn, with the response as the client is about to be told
// it. Others can go on from it when Commit has returned. The client's leaving
// does not stop it.
func (t *Turn) Commit(ctx context.Context, response []byte) error {
	var o jsonedit.Object
	if err := jsonedit.Scan(response, responseFields, &o); err != nil {
		return err
	}
	output, err := readOutput(o.Value(responseOutput), t.ID)
	if err != nil {
		return err
	}
	if t.ask.Store {
		status, _ := jsonedit.Unquote(o.Value(responseStatus))
		body := jsonedit.Edited(response, &o, jsonedit.Set(responseOutput, []byte("[]")))
		if err := t.keep(ctx, status, body, output); err != nil {
			return err
		}
	} else {
		t.past = t.past.extend(t.input).extend(output)
		t.from = place{}
	}
	if t.session != nil {
		t.session.keep(t.ID, t.past, t.from)
	}
	t.unlock(ctx) // whoever hears of the end may begin the next turn
	return nil
}

// readOutput lays out the output of a response.
func readOutput(output llm.Raw, id string) ([]item, error) {
	items, refs, err := readInput(output, numbered(id[len("resp_"):]+"_out"))
	if err != nil || len(refs) > 0 {
		return nil, &llm.Error{Kind: llm.UpstreamInvalid, Err: err, Message: "The upstream's answer has an item that cannot be kept."}
	}
	return items, nil
}

// keep commits the turn to the store.
func (t *Turn) keep(ctx context.Context, status string, body []byte, output []item) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	err := t.put(ctx, status, body, output)
	if missing(err) && t.queued == nil && t.ask.Conversation == "" && t.from.thread != "" {
		t.from = place{} // it was deleted meanwhile: the turn begins with all of it
		err = t.put(ctx, status, body, output)
	}
	switch {
	case err == nil:
		return nil
	case t.queued != nil && (missing(err) || errors.Is(err, store.ErrConflict)):
		return errCancelled
	}
	return &llm.Error{Kind: llm.Unavailable, Err: err,
		Message: "The response could not be stored, so nothing can go on from it. Send the request again, or with 'store' set to false."}
}

// put is one try to keep the turn.
func (t *Turn) put(ctx context.Context, status string, body []byte, output []item) error {
	k, now := t.keeper, time.Now()
	input, before := t.input, t.past
	if t.from.thread == "" && before.length > 0 { // nothing of it is in the store
		all, _, err := readInput(bytes.Join([][]byte{{'['}, before.bytes(), {']'}}, nil), numbered(t.ID[len("resp_"):]+"_past"))
		if err != nil {
			return err
		}
		input, before = append(all, input...), past{}
	}
	turn := &store.Turn{
		Response: store.Response{
			Owner: t.owner, ID: t.ID, Conversation: t.ask.Conversation, Status: status,
			Created: t.begun, Expires: now.Add(k.settings.Load().Retention), Body: k.box.Close(t.owner, body),
		},
		Base: t.from.thread, BaseLength: t.from.length,
		Input: t.closed(input, now), Output: t.closed(output, now),
	}
	if t.queued != nil {
		turn.Response.Runner = k.runner
	}
	if err := k.store.CommitTurn(ctx, turn); err != nil {
		return err
	}
	t.past = before.extend(input).extend(output)
	t.from = place{turn.Response.Thread, turn.Response.Length}
	if t.ask.Conversation == "" && t.past.length == int(t.from.length) {
		k.remember(t.owner, t.from.thread, t.past)
	}
	return nil
}

func (t *Turn) closed(items []item, now time.Time) []store.Item {
	kept := make([]store.Item, 0, len(items))
	for _, it := range items {
		if !it.passing {
			kept = append(kept, store.Item{ID: it.id[:min(len(it.id), longestID)], Created: now, Body: t.keeper.box.Close(t.owner, it.json)})
		}
	}
	return kept
}

// Background reports whether the client does not wait for the answer.
func (t *Turn) Background() bool { return t.ask.Background }

// Close gives back what the turn holds.
func (t *Turn) Close(ctx context.Context) {
	if t.queued != nil {
		t.keeper.over(t)
	}
	t.unlock(ctx)
}
