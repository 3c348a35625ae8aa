package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
)

// Route asks where a call would go that is not made.
type Route struct {
	Model     string            `json:"model"`
	Key       string            `json:"key,omitempty"`       // ID or name; empty: an operator, who sees all models
	Operation string            `json:"operation,omitempty"` // empty: what the body looks like
	Headers   map[string]string `json:"headers,omitempty"`
	// Body is the client's request, or a string with its text, whose every byte
	// counts for where a conversation stays. Without one it is a greeting.
	Body json.RawMessage `json:"body,omitempty"`
}

// Routed says where it would go.
type Routed struct {
	Model    string        `json:"model"`
	Strategy string        `json:"strategy" enum:"weighted ordered latency busy price"`
	Affinity Affinity      `json:"affinity"`
	Targets  []RouteTarget `json:"targets"` // in the order in which they would be asked; then the others
	// Refused is what the client would be told where no target would be asked.
	Refused string `json:"refused,omitempty"`
}

// Affinity says what keeps a conversation with an account.
type Affinity struct {
	On        bool   `json:"on"`
	Thread    string `json:"thread,omitempty"`     // what tells the conversation from others; absent where nobody asks
	StaysWith string `json:"stays_with,omitempty"` // the account; absent when the conversation is new
}

// RouteTarget is what would become of one target.
type RouteTarget struct {
	Target  string `json:"target"`
	Account string `json:"account"`
	// Order is from 1: each is asked if those before it failed. It is absent
	// where the target would not be asked.
	Order   int      `json:"order,omitempty"`
	LeftOut string   `json:"left_out,omitempty"` // why it would not be asked
	Health  Health   `json:"health"`
	Sends   string   `json:"would_send,omitempty"` // the dialect of the request there
	Notes   []string `json:"notes,omitempty"`      // what would become of it, as in X-Limen-Notes
	Refusal string   `json:"refusal,omitempty"`    // why it cannot be said there
	Unsaid  string   `json:"unsaid,omitempty"`     // why it was not tried to say it
}

func (a *API) route(r *request, in *Route) (*Routed, error) {
	if a.Forecast == nil {
		return nil, errNotRunning
	}
	if in.Model == "" {
		return nil, llm.InvalidParam("missing_required_parameter", "model", "model is the model that a client would ask for.")
	}
	var key *keys.Key
	if in.Key != "" {
		var err error
		if key, err = a.Keys.Find(in.Key); err != nil {
			return nil, err
		}
	}
	header := http.Header{}
	for name, value := range in.Headers {
		header.Set(name, value)
	}
	body := []byte(in.Body)
	if text, ok := jsonedit.Unquote(body); ok {
		body = []byte(text)
	}
	f, err := a.Forecast(r.Context(), key, in.Model, in.Operation, header, body)
	if err != nil {
		return nil, err
	}
	return newRouted(f, time.Now()), nil
}

func newRouted(f *route.Forecast, now time.Time) *Routed {
	out := &Routed{Model: f.Model.ID, Strategy: f.Model.Strategy.String(), Affinity: Affinity{On: f.Model.Affinity}, Targets: []RouteTarget{}}
	if f.Sticky != 0 {
		out.Affinity.Thread = fmt.Sprintf("%016x", f.Sticky)
	}
	if f.StaysWith != nil {
		out.Affinity.StaysWith = f.StaysWith.Account
	}
	for _, o := range f.Targets {
		out.Targets = append(out.Targets, RouteTarget{
			Target: o.Target.String(), Account: o.Target.Account, Order: o.Order, LeftOut: o.LeftOut, Health: newHealth(o.Target, now),
			Sends: string(o.Says), Notes: o.Notes, Refusal: o.Refusal, Unsaid: o.Unsaid,
		})
	}
	if f.Refused != nil {
		out.Refused = llm.AsError(f.Refused).Message
	}
	return out
}
