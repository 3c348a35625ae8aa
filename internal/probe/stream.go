package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/limen-gateway/limen/internal/sse"
)

// stream is an answer that came as events.
type stream struct {
	events [][]byte // the data of each but [DONE]
	done   bool     // [DONE] came
	ended  bool     // an event came that is the last
	cut    error    // what broke it off
	faults []*fault // of the framing
}

// Faults of event streams, whatever they tell.
var (
	streamMedia    = &fault{"the stream's content type is not text/event-stream", "send 'Content-Type: text/event-stream'", []string{"qwen-code"}}
	streamLength   = &fault{"the stream has a Content-Length", "send streams without Content-Length, and each event as it comes", nil}
	streamUnended  = &fault{"the last event is not ended by an empty line", "end every event with an empty line, the last one too", []string{"openai-go", "openai-python", "vercel-ai", "langchain"}}
	streamNothing  = &fault{"the stream has an event without data", "send heartbeats as comments (': keepalive'), not as empty events", []string{"openai-js", "openai-python", "openai-go", "vercel-ai", "langchain"}}
	streamOpen     = &fault{"the connection stays open after the last event", "close the answer after the last event", nil}
	streamCut      = &fault{"the stream broke off", "look for time limits and restarts of the server and of proxies; when an upstream fails, end with an error event", everyone}
	streamEmpty    = &fault{"the stream has no events", "send events as they come", everyone}
	streamAsJSON   = &fault{"a request with 'stream': true was answered with plain JSON; clients take that for an empty answer", "answer with an event stream whenever 'stream' is true, whatever Accept says", []string{"openai-js", "openai-go", "langchain"}}
	streamNotJSON  = &fault{"an event is no JSON", "send one JSON object on the data line of every event", everyone}
	streamTooLarge = &fault{"the stream has an event of more than 16 MiB", "send smaller events", everyone}
)

// closing is how long a server may take to close after the last event.
const closing = 2 * time.Second

// readStream reads events to the end. cancel ends the request: a server that
// does not close after the last event is not waited for.
func readStream(body io.Reader, cancel context.CancelFunc) *stream {
	s := &stream{}
	var impatient *time.Timer
	defer func() {
		if impatient != nil {
			impatient.Stop()
		}
	}()
	whole := true
	for f, err := range sse.All(body, maxBody) {
		if err != nil {
			s.cut = err
			break
		}
		if f.IsComment() {
			continue
		}
		whole = bytes.HasSuffix(f.Raw, []byte("\n\n")) || bytes.HasSuffix(f.Raw, []byte("\r")) || bytes.HasSuffix(f.Raw, []byte("\n\r\n"))
		s.add(f.Data)
		if (s.done || s.ended) && impatient == nil {
			impatient = time.AfterFunc(closing, cancel)
		}
	}
	switch {
	case s.cut == sse.ErrTooLong:
		s.faults = append(s.faults, streamTooLarge)
	case s.cut != nil && (s.done || s.ended):
		s.faults = append(s.faults, streamOpen)
	case s.cut == nil && !whole:
		s.faults = append(s.faults, streamUnended)
	}
	return s
}

func (s *stream) add(data []byte) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		s.faults = append(s.faults, streamNothing)
	case string(data) == "[DONE]":
		s.done = true
	default:
		s.events = append(s.events, bytes.Clone(data))
		s.ended = s.ended || last(data)
	}
}

// last tells whether an event ends its stream. Those of chats say nothing of it.
func last(data []byte) bool {
	var event struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &event) != nil {
		return false
	}
	switch event.Type {
	case "response.completed", "response.incomplete", "response.failed", "message_stop":
		return true
	}
	return false
}

// headers looks at the header that came with the stream.
func (s *stream) headers(a *answer) {
	if a.media != "text/event-stream" {
		s.faults = append(s.faults, streamMedia)
	}
	if a.header.Get("Content-Length") != "" {
		s.faults = append(s.faults, streamLength)
	}
}

// events returns the events of an answer that should be a stream.
func (a *answer) events() (*stream, error) {
	if a.stream == nil {
		if a.media == "application/json" && json.Valid(a.body) {
			return nil, streamAsJSON
		}
		return nil, a.notStream()
	}
	if len(a.stream.events) == 0 {
		if a.stream.cut != nil {
			return nil, streamCut
		}
		return nil, streamEmpty
	}
	return a.stream, nil
}

func (a *answer) notStream() error {
	if a.status == http.StatusOK && a.page() {
		return &fault{"HTTP 200 with a web page instead of events", "ask what stands in front of the server, a proxy or a login page, to let the API through", everyone}
	}
	return streamEmpty
}

// broken is the fault of a stream that did not come to its end.
func (s *stream) broken() []*fault {
	if s.cut != nil && !s.done && !s.ended && s.cut != sse.ErrTooLong {
		return []*fault{streamCut}
	}
	return nil
}

// eventStreams looks at the framing of all streams so far.
func (v *visit) eventStreams(context.Context) (verdict, error) {
	var found verdict
	streams := 0
	for _, s := range v.seen {
		if s.stream != nil {
			streams++
			found.faults = append(found.faults, s.stream.faults...)
		}
	}
	if streams == 0 {
		return found, errSkip{"no stream came"}
	}
	found.detail = plural(streams, "stream") + ", framed as clients read them"
	return found, nil
}

// requestIDs looks whether all answers so far had an ID.
func (v *visit) requestIDs(context.Context) (verdict, error) {
	without := map[string]bool{}
	var first string
	for _, s := range v.seen {
		if !s.requestID && !without[s.operation] {
			without[s.operation] = true
			if first == "" {
				first = s.operation
			}
		}
	}
	switch {
	case len(v.seen) == 0:
		return verdict{}, errSkip{"nothing was answered"}
	case len(without) == 0:
		return verdict{detail: "x-request-id on all " + plural(len(v.seen), "answer")}, nil
	}
	return verdict{}, &errAbsent{
		why:     "answers have no x-request-id, for example that of " + first,
		change:  "send x-request-id with every answer, errors and streams too: it is what a user can quote",
		clients: []string{"codex", "openai-js", "openai-python"},
	}
}
