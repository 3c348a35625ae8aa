package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// What is kept of Responses, as OpenAI keeps it. A response in the background is
// queued when it is asked for, goes on when it is read first and is over when it is
// read again; one whose prompt has [[hold]] goes on until it is cancelled.

// stored are the responses that are kept, by their IDs.
type stored struct {
	mu   sync.Mutex
	byID map[string]*storedResponse
}

type storedResponse struct {
	id        int
	request   *responsesRequest
	reply     reply
	usage     usage
	input     []json.RawMessage // what came before, too
	read      int
	cancelled bool
}

// WithIDsFrom has the IDs of answers begin behind n, so that those of two servers
// differ.
func WithIDsFrom(n int) Option {
	return func(s *Server) { s.ledger.last = n }
}

// Forget drops a response, as its time would.
func (s *Server) Forget(id string) {
	s.stored.mu.Lock()
	defer s.stored.mu.Unlock()
	delete(s.stored.byID, id)
}

// Kept says how many responses are kept.
func (s *Server) Kept() int {
	s.stored.mu.Lock()
	defer s.stored.mu.Unlock()
	return len(s.stored.byID)
}

// keep keeps what a request wants kept, and reports false when it refused it: what
// it goes on from is not there.
func (x *exchange) keep(r *responsesRequest) bool {
	s := &x.srv.stored
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &storedResponse{id: x.entry.ID, request: r, reply: x.reply, usage: x.usage}
	var previous string
	if json.Unmarshal(r.PreviousResponseID, &previous); previous != "" {
		past := s.byID[previous]
		if past == nil {
			x.fail(http.StatusBadRequest, apiError{
				Message: "Previous response with id '" + previous + "' not found.", Type: "invalid_request_error",
				Param: new("previous_response_id"), Code: new("previous_response_not_found"),
			})
			return false
		}
		kept.input = append(kept.input, past.input...)
		for _, out := range past.request.outputs(past.id, past.reply) {
			kept.input = append(kept.input, marshal(out))
		}
	}
	kept.input = append(kept.input, r.items(x.entry.ID)...)
	if string(r.Store) != "false" {
		if s.byID == nil {
			s.byID = map[string]*storedResponse{}
		}
		s.byID[responseID(kept.id)] = kept
	}
	return true
}

// responseID is the ID of the answer to a request.
func responseID(id int) string { return fmt.Sprintf("resp_%d", id) }

// items are the input's, with their IDs.
func (r *responsesRequest) items(id int) (list []json.RawMessage) {
	var items []map[string]json.RawMessage
	if json.Unmarshal(r.Input, &items) != nil {
		content := marshal([]part{{Type: "input_text", Text: r.prompt().user}})
		items = []map[string]json.RawMessage{{"type": json.RawMessage(`"message"`), "role": json.RawMessage(`"user"`), "content": content}}
	}
	for i, it := range items {
		it["id"] = fmt.Appendf(nil, `"in_%d_%d"`, id, i)
		list = append(list, marshal(it))
	}
	return list
}

// now is the response as it is read; mu is held.
func (k *storedResponse) now() response {
	s := k.request.snapshot(k.id)
	switch {
	case k.cancelled:
		s.Status = "cancelled"
	case !k.request.Background || k.read > 1 && !strings.Contains(k.request.prompt().user, "[[hold]]"):
		return k.request.completed(k.id, k.reply, k.usage)
	case k.read == 0:
		s.Status = "queued"
	}
	return s
}

// storedCall serves an operation on a response that is kept.
func (s *Server) storedCall(do func(*exchange, *storedResponse)) func(*exchange) {
	return func(x *exchange) {
		if !x.authorised() {
			return
		}
		id := x.r.PathValue("id")
		s.stored.mu.Lock()
		defer s.stored.mu.Unlock()
		kept := s.stored.byID[id]
		if kept == nil {
			x.fail(http.StatusNotFound, apiError{Message: "Response with id '" + id + "' not found.", Type: "invalid_request_error"})
			return
		}
		do(x, kept)
	}
}

func (x *exchange) getStored(k *storedResponse) {
	if x.r.URL.Query().Get("stream") != "true" {
		k.read++
		x.send(&answer{body: k.now()})
		return
	}
	after, err := strconv.Atoi(x.r.URL.Query().Get("starting_after"))
	if err != nil {
		after = -1
	}
	frames := k.request.stream(k.id, k.reply, k.usage)
	first := min(after+1, len(frames))
	x.send(&answer{frames: frames[first:], number: first})
}

func (x *exchange) deleteStored(k *storedResponse) {
	delete(x.srv.stored.byID, responseID(k.id))
	x.send(&answer{body: map[string]any{"id": responseID(k.id), "object": "response", "deleted": true}})
}

func (x *exchange) cancelStored(k *storedResponse) {
	if !k.request.Background {
		x.fail(http.StatusBadRequest, apiError{Message: "Cannot cancel a synchronous response.", Type: "invalid_request_error"})
		return
	}
	k.cancelled = k.cancelled || k.now().Status != "completed"
	x.send(&answer{body: k.now()})
}

func (x *exchange) inputStored(k *storedResponse) {
	list := k.input
	if n, err := strconv.Atoi(x.r.URL.Query().Get("limit")); err == nil {
		list = list[:min(n, len(list))]
	}
	x.send(&answer{body: map[string]any{"object": "list", "data": list, "has_more": len(list) < len(k.input)}})
}
