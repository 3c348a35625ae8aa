// Package probe checks an OpenAI-compatible API from the outside, the way its
// clients meet it. It knows nothing of Limen's inside and works on any server.
//
// A check passes, or names faults: what was seen, what to change, and the
// clients that were seen to break on it. What a server merely lacks is not a
// fault but absent, with the clients that would use it.
package probe

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// The outcomes of a check.
const (
	Pass   = "pass"
	Fail   = "fail"
	Absent = "absent" // the server has no such thing, and says so
	Skip   = "skip"   // could not be checked here
)

// Result is the outcome of one check.
type Result struct {
	Check   string   `json:"check"`
	Status  string   `json:"status"`
	Detail  string   `json:"detail"`            // what was seen
	Change  string   `json:"change,omitempty"`  // what to do about it
	Clients []string `json:"clients,omitempty"` // those it concerns
}

// Target is what is checked.
type Target struct {
	Base   string // base URL, as ParseBase returns it
	Key    string // "" is none
	Model  string // the first of the list when empty
	Client *http.Client
}

// Reporter is told of checks as they are made.
type Reporter struct {
	Begin func(check string) // nil is nobody
	Done  func(Result)
}

// timeout bounds a request with its answer: models that think take long.
const timeout = 2 * time.Minute

// NewClient returns a client for a Target. It follows no redirect: that would
// turn a POST into a GET, and take the key to another host.
func NewClient() *http.Client {
	return &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// visit is one examination of a server.
type visit struct {
	Target
	Reporter
	client *Client // whose sequence it is; nil for all that a server may have
	run    string  // stands in IDs that clients make up

	said   said            // by the last answer of a sequence
	seen   []sight         // all answers
	absent map[string]bool // groups of checks that the server has nothing for
}

// check is one thing to look at. Of a group, the first says whether the server
// has it at all.
type check struct {
	name  string
	group string
	run   func(context.Context) (verdict, error)
	vital bool // without it there is nothing to go on with
}

// Run makes all checks in order and reports each as it is done.
func (t *Target) Run(ctx context.Context, r Reporter) Found {
	v := newVisit(t, r)
	v.all(ctx, []check{
		{"base URL", "", v.findBase, true},
		{"list models", "", v.listModels, true},
		{"retrieve a model", "", v.retrieveModel, false},
		{"chat", "chat", v.chat, false},
		{"chat, streamed", "chat", v.chatStream, false},
		{"chat, tool call", "chat", v.chatTool, false},
		{"chat, tool result", "chat", v.chatToolResult, false},
		{"chat, structured output", "chat", v.chatStructured, false},
		{"responses", "responses", v.responses, false},
		{"responses, streamed", "responses", v.responsesStream, false},
		{"responses, tool call", "responses", v.responsesTool, false},
		{"responses, tool result", "responses", v.responsesToolResult, false},
		{"responses, continued", "responses", v.responsesContinued, false},
		{"responses, by WebSocket", "responses", v.responsesSocket, false},
		{"wrong key is refused", "chat", v.wrongKey, false},
		{"unknown model is refused", "chat", v.unknownModel, false},
		{"broken JSON is refused", "chat", v.brokenJSON, false},
		{"event streams", "", v.eventStreams, false},
		{"request IDs", "", v.requestIDs, false},
	})
	return v.found()
}

// Found is where the checks were made in the end.
type Found struct {
	Base  string
	Model string
}

func (v *visit) found() Found { return Found{v.Base, v.Model} }

func newVisit(t *Target, r Reporter) *visit {
	if r.Begin == nil {
		r.Begin = func(string) {}
	}
	return &visit{Target: *t, Reporter: r, run: newID(), absent: map[string]bool{}}
}

// all makes checks until one that is vital fails, or the user has enough.
func (v *visit) all(ctx context.Context, checks []check) {
	met := map[string]bool{}
	for _, c := range checks {
		if v.absent[c.group] {
			v.Done(Result{Check: c.name, Status: Skip, Detail: "there is no " + c.group + " to check it with"})
			continue
		}
		v.Begin(c.name)
		found, err := c.run(ctx)
		if ctx.Err() != nil {
			v.Done(Result{Check: c.name, Status: Fail, Detail: "interrupted"})
			return
		}
		result := v.result(c.name, found, err)
		if c.group != "" && !met[c.group] {
			met[c.group], v.absent[c.group] = true, result.Status == Absent
		}
		v.Done(result)
		if c.vital && result.Status == Fail && err != nil {
			return
		}
	}
}

// result says what came of a check, in words that may be shown.
func (v *visit) result(name string, found verdict, err error) Result {
	r := Result{Check: name, Status: Pass, Detail: found.detail}
	var skip errSkip
	var absent *errAbsent
	var fatal *fault
	switch {
	case errors.As(err, &skip):
		r.Status, r.Detail = Skip, skip.why
	case errors.As(err, &absent):
		r.Status, r.Detail, r.Change, r.Clients = Absent, absent.why, absent.change, absent.clients
	case errors.As(err, &fatal):
		found.faults = append(found.faults, fatal)
	case err != nil:
		r.Status, r.Detail = Fail, err.Error()
	}
	if faults := v.minded(found.faults); len(faults) > 0 {
		r.Status, r.Detail, r.Change, r.Clients = told(faults)
	}
	r.Detail, r.Change = v.clean(r.Detail), v.clean(r.Change)
	return r
}

// minded are the faults that matter: to the client whose sequence it is, or
// all.
func (v *visit) minded(faults []*fault) (matter []*fault) {
	for _, f := range faults {
		if v.client == nil || v.client.minds(f) {
			matter = append(matter, f)
		}
	}
	return matter
}
