package openairesponses

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

var (
	errNoType = errors.New("the event has no type")
)

// The members of an event that are looked at.
const (
	eventType = iota
	eventSequence
	eventResponse
	eventError
	eventItem
)

var eventFields = jsonedit.NewFields("type", "sequence_number", "response", "error", "item")

// follower implements dialect.Follower for Responses. Events that keep to the
// contract pass as they are.
type follower struct {
	told   []llm.Member // what the gateway answers for
	cost   dialect.Cost
	ended  bool
	begun  bool
	events int64
	usage  llm.Usage
	known  bool
	heard  int64 // searches that took a fee

	sequence  int64 // of the last event
	numbered  bool  // the upstream numbers its events
	id        []byte
	model     []byte
	createdAt []byte
	output    [][]byte // finished items, for the response that a failure ends
	outputLen int

	event, response jsonedit.Object // scratch
}

var _ dialect.Follower = (*follower)(nil)

// maxOutput bounds what is kept of finished items in case the stream fails.
const maxOutput = 64 << 10

// Follow implements dialect.Dialect.
func (Dialect) Follow(req *dialect.Request) dialect.Follower {
	return &follower{sequence: -1, told: req.Told, cost: req.Cost}
}

func (f *follower) Begun() bool { return f.begun }
func (f *follower) Done() bool  { return f.ended }

func (f *follower) Usage(in int64) llm.Usage {
	if f.known {
		return f.usage
	}
	u := llm.Estimate(in, 0)
	u.Output = f.events // servers send about a token in each
	u.Service, u.Searches = f.usage.Service, max(f.usage.Searches, f.heard)
	return u
}

func (f *follower) Frame(dst []byte, frame sse.Frame) ([]byte, bool, error) {
	if openai.IsDone(frame.Data) {
		return dst, false, dialect.Truncated() // the terminal event comes first
	}
	if err := jsonedit.Scan(frame.Data, eventFields, &f.event); err != nil {
		return dst, false, dialect.Malformed(err)
	}
	kind, ok := jsonedit.Unquote(f.event.Value(eventType))
	if !ok || kind == "" || strings.ContainsAny(kind, "\r\n") {
		if e := f.event.Value(eventError); e != nil && jsonedit.KindOf(e) != jsonedit.KindNull {
			return dst, false, openai.EventError(e)
		}
		return dst, false, dialect.Malformed(errNoType)
	}
	var room [3]jsonedit.Change
	changes := room[:0]
	switch kind {
	case "error":
		return dst, false, f.failure(frame.Data)
	case "response.failed":
		if e, ok := jsonedit.Get(f.event.Value(eventResponse), "error"); ok && jsonedit.KindOf(e) == jsonedit.KindObject {
			return dst, false, openai.EventError(e)
		}
		return dst, false, &llm.Error{Kind: llm.Upstream, Message: "The upstream reported that the response failed.", Err: errFailed}
	case "response.created", "response.in_progress", "response.queued":
		f.keepHead()
		if response := f.event.Value(eventResponse); f.told != nil && response != nil {
			changes = append(changes, jsonedit.Set(eventResponse, Dialect{}.Tell(response, f.told)))
		}
	case "response.output_item.done":
		f.keepItem()
	case "response.completed", "response.incomplete":
		f.ended = true
		response := f.readTerminal()
		if f.told != nil {
			response = Dialect{}.Tell(openai.OrElse(response, string(f.event.Value(eventResponse))), f.told)
		}
		if response != nil {
			changes = append(changes, jsonedit.Set(eventResponse, response))
		}
	default:
		f.events++
	}
	f.begun = true
	if n, err := strconv.ParseInt(string(f.event.Value(eventSequence)), 10, 64); err == nil {
		f.sequence, f.numbered = n, true
	} else if !f.numbered { // some clients ask again without end when there are no numbers
		f.sequence++
		changes = append(changes, jsonedit.Set(eventSequence, strconv.AppendInt(nil, f.sequence, 10)))
	}
	if e := f.event.Value(eventError); e != nil && jsonedit.KindOf(e) == jsonedit.KindNull {
		changes = append(changes, jsonedit.Remove(eventError)) // clients look whether it is there, not what it is
	}
	pass := len(changes) == 0 && frame.Canonical && string(frame.Event) == kind
	if pass && !f.ended {
		return dst, true, nil
	}
	if pass {
		dst = append(dst, frame.Raw...)
	} else {
		dst = sse.Append(dst, []byte(kind), jsonedit.Edited(frame.Data, &f.event, changes...))
	}
	if f.ended {
		dst = append(dst, openai.DoneFrame...)
	}
	return dst, false, nil
}

// failure reads an error event, in either of its shapes.
func (f *follower) failure(data []byte) error {
	if e := f.event.Value(eventError); jsonedit.KindOf(e) == jsonedit.KindObject {
		return openai.EventError(e)
	}
	return openai.EventError(data)
}

// keepHead remembers what a failed response must say again.
func (f *follower) keepHead() {
	response := f.event.Value(eventResponse)
	if f.id != nil || jsonedit.KindOf(response) != jsonedit.KindObject {
		return
	}
	keep := func(name string) []byte {
		v, _ := jsonedit.Get(response, name)
		return bytes.Clone(v)
	}
	f.id, f.model, f.createdAt = keep("id"), keep("model"), keep("created_at")
}

func (f *follower) keepItem() {
	item := f.event.Value(eventItem)
	if searches(item) {
		f.heard++
	}
	if f.outputLen += len(item); f.outputLen <= maxOutput && item != nil {
		f.output = append(f.output, bytes.Clone(item))
	}
}

// readTerminal reads the usage of the terminal event. It returns the response
// anew when that is missing or half there: some clients ask again without end.
func (f *follower) readTerminal() (mended []byte) {
	response := f.event.Value(eventResponse)
	if jsonedit.KindOf(response) != jsonedit.KindObject || jsonedit.Scan(response, responseFields, &f.response) != nil {
		return nil
	}
	f.usage, f.known = usageOf(&f.response, f.heard)
	usage := f.response.Value(responseUsage)
	switch {
	case !f.known || !usageIsWhole(usage):
		var w jsonedit.Writer
		writeUsage(&w, f.Usage(0), f.known, f.cost)
		usage = w.Bytes()
	case f.cost != nil:
		usage = f.cost.In(usage, f.usage, true)
	default:
		return nil
	}
	return jsonedit.Edited(response, &f.response, jsonedit.Set(responseUsage, usage))
}

// usageIsWhole reports whether a usage object has all that clients insist on:
// the three counts, and of the details either nothing or what belongs there.
func usageIsWhole(usage []byte) bool {
	for _, name := range []string{"input_tokens", "output_tokens", "total_tokens"} {
		if v, ok := jsonedit.Get(usage, name); !ok || jsonedit.KindOf(v) != jsonedit.KindNumber {
			return false
		}
	}
	for _, path := range [][]string{{"input_tokens_details", "cached_tokens"}, {"output_tokens_details", "reasoning_tokens"}} {
		details, ok := jsonedit.Get(usage, path[0])
		if !ok || jsonedit.KindOf(details) == jsonedit.KindNull {
			continue
		}
		if _, ok := jsonedit.Get(details, path[1]); !ok {
			return false
		}
	}
	return true
}

// End implements dialect.Follower.
func (f *follower) End(dst []byte) ([]byte, error) { return dst, dialect.Truncated() }

// Fail implements dialect.Follower: an error event, which SDKs raise, then
// the failed response, which agents act on. The error is written in both
// shapes in use, flat and nested.
func (f *follower) Fail(dst []byte, e *llm.Error) []byte {
	f.ended = true
	data := appendFault(f.beginEvent("error"), e)
	dst = sse.Append(dst, []byte("error"), append(data, '}'))

	data = f.beginEvent("response.failed")
	data = append(data, `,"response":`...)
	failed := f.appendFailed(nil, e)
	if f.told != nil {
		failed = Dialect{}.Tell(failed, f.told)
	}
	data = append(data, failed...)
	dst = sse.Append(dst, []byte("response.failed"), append(data, '}'))
	return append(dst, openai.DoneFrame...)
}

// beginEvent begins the data of an event of the gateway's own.
func (f *follower) beginEvent(kind string) []byte {
	f.sequence++
	data := append([]byte(`{"type":"`), kind...)
	data = append(data, `","sequence_number":`...)
	return strconv.AppendInt(data, f.sequence, 10)
}

// appendFault appends the members of an error event that tell of a failure.
func appendFault(data []byte, e *llm.Error) []byte {
	object := openai.AppendErrorObject(nil, e)
	data = append(data, `,"error":`...)
	data = append(data, object...)
	data = append(data, ',')
	return append(data, flat(object)...)
}

// flat is the inside of an error object without its type, which would clash
// with the event's own.
func flat(object []byte) []byte {
	var o jsonedit.Object
	if err := jsonedit.Scan(object, errorFields, &o); err != nil {
		return nil // cannot be: it was just made
	}
	inside := jsonedit.Edited(object, &o, jsonedit.Remove(0))
	return inside[1 : len(inside)-1]
}

var errorFields = jsonedit.NewFields("type")

// appendFailed appends the response object of a failure: all members that the
// schema wants, and the items that were finished.
func (f *follower) appendFailed(dst []byte, e *llm.Error) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, openai.OrElse(f.id, `"resp_0"`)...)
	dst = append(dst, `,"object":"response","created_at":`...)
	if len(f.createdAt) == 0 {
		f.createdAt = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	dst = append(dst, f.createdAt...)
	dst = append(dst, `,"completed_at":null,"status":"failed","model":`...)
	dst = append(dst, openai.OrElse(f.model, `""`)...)
	dst = append(dst, `,"error":{"code":`...)
	dst = jsonedit.AppendQuote(dst, failedCode(e))
	dst = append(dst, `,"message":`...)
	dst = jsonedit.AppendQuote(dst, e.Message)
	dst = append(dst, `},"output":[`...)
	dst = append(dst, bytes.Join(f.output, []byte{','})...)
	return append(dst, `],"incomplete_details":null,"instructions":null,"previous_response_id":null,"tools":[],"tool_choice":"auto",`+
		`"parallel_tool_calls":true,"temperature":1,"top_p":1,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,`+
		`"max_output_tokens":null,"max_tool_calls":null,"text":{"format":{"type":"text"}},"reasoning":{"effort":null,"summary":null},`+
		`"truncation":"disabled","store":false,"background":false,"service_tier":"default","metadata":{},`+
		`"usage":null,"safety_identifier":null,"prompt_cache_key":null}`...)
}

// failedCode is the code of a failed response. Agents repeat the request on
// server_error and on codes that they do not know.
func failedCode(e *llm.Error) string {
	switch {
	case e.Code == "context_length_exceeded", e.Code == "invalid_prompt", e.Code == "cyber_policy":
		return e.Code
	case e.Kind == llm.RateLimited:
		return "rate_limit_exceeded"
	case e.Kind == llm.Overloaded:
		return "server_is_overloaded"
	case e.Kind == llm.UpstreamQuota, e.Kind == llm.OverBudget:
		return "insufficient_quota"
	case e.Kind == llm.Invalid:
		return "invalid_prompt"
	}
	return "server_error"
}
