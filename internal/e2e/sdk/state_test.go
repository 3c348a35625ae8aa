package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const calling = `call weather {"city":"Rome"}`

var weatherTools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: weather.Name, Parameters: weather.Parameters, Strict: openai.Bool(false)}}}

// asking is a response with tools, which goes on from another unless that is "".
func asking(previous string, input ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	p := responses.ResponseNewParams{Model: "up/small", Tools: weatherTools, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input}}
	if previous != "" {
		p.PreviousResponseID = openai.String(previous)
	}
	return p
}

func user(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser)
}

// resultsOf are the results of what a response calls.
func resultsOf(t *testing.T, r *responses.Response) (items []responses.ResponseInputItemUnionParam) {
	t.Helper()
	for _, item := range r.Output {
		if item.Type == "function_call" {
			result := responses.ResponseInputItemParamOfFunctionCallOutput("sunny")
			result.OfFunctionCallOutput.CallID = openai.String(item.AsFunctionCall().CallID)
			items = append(items, result)
		}
	}
	if len(items) == 0 {
		t.Fatalf("no call in %s", r.RawJSON())
	}
	return items
}

// expectFit is that an answer has no member that the SDK does not know.
func expectFit[T any](t *testing.T, raw string) {
	t.Helper()
	if err := (checker{answer: true}).check(json.RawMessage(raw), reflect.TypeFor[T]()); err != nil {
		t.Errorf("%v in %s", err, raw)
	}
}

// expectStatus is that an error is of an HTTP status and code.
func expectStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code {
		t.Errorf("got %v, want %d %s", err, status, code)
	}
}

// must is the result of a call that has to succeed.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestStoredResponses(t *testing.T) {
	c := client()
	done := must[*responses.Response](t)
	first := done(c.Responses.New(t.Context(), asking("", user(calling))))
	second := done(c.Responses.New(t.Context(), asking(first.ID, resultsOf(t, first)...)))
	if second.OutputText() != "The tool said: sunny" || second.PreviousResponseID != first.ID {
		t.Errorf("got %s", second.RawJSON())
	}
	got := done(c.Responses.Get(t.Context(), second.ID, responses.ResponseGetParams{}))
	if got.RawJSON() != second.RawJSON() {
		t.Errorf("got  %s\nwant %s", got.RawJSON(), second.RawJSON())
	}

	var kinds []string
	pages := c.Responses.InputItems.ListAutoPaging(t.Context(), second.ID, responses.InputItemListParams{Limit: openai.Int(1), Order: responses.InputItemListParamsOrderAsc})
	for pages.Next() {
		item := pages.Current()
		kinds = append(kinds, item.Type)
		expectFit[responses.ResponseItemUnion](t, item.RawJSON())
	}
	if want := []string{"message", "function_call", "function_call_output"}; pages.Err() != nil || !slices.Equal(kinds, want) {
		t.Errorf("input items: got %q, want %q, %v", kinds, want, pages.Err())
	}

	if err := c.Responses.Delete(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	_, err := c.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{})
	expectStatus(t, err, 404, "")
	_, err = c.Responses.New(t.Context(), asking(first.ID, user("Hi")))
	expectStatus(t, err, 400, "previous_response_not_found")
	_, err = c.Responses.Cancel(t.Context(), second.ID)
	expectStatus(t, err, 400, "")
}

// awaitResponse polls a response until it is over.
func awaitResponse(t *testing.T, id string) *responses.Response {
	t.Helper()
	c := client()
	for {
		r := must[*responses.Response](t)(c.Responses.Get(t.Context(), id, responses.ResponseGetParams{}))
		if r.Status != responses.ResponseStatusQueued && r.Status != responses.ResponseStatusInProgress {
			return r
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the response is not over")
		}
	}
}

func TestBackgroundResponses(t *testing.T) {
	c := client()
	done := must[*responses.Response](t)
	params := response("Hi")
	params.Background = openai.Bool(true)
	begun := done(c.Responses.New(t.Context(), params))
	if begun.Status != responses.ResponseStatusQueued || !begun.Background {
		t.Errorf("got %s", begun.RawJSON())
	}
	if r := awaitResponse(t, begun.ID); r.Status != responses.ResponseStatusCompleted || r.OutputText() != "Hello from small." {
		t.Errorf("got %s", r.RawJSON())
	}

	stalled := response("[[fault:stall]]")
	stalled.Background = openai.Bool(true)
	begun = done(c.Responses.New(t.Context(), stalled))
	for range 2 {
		if r := done(c.Responses.Cancel(t.Context(), begun.ID)); r.Status != responses.ResponseStatusCancelled {
			t.Errorf("got %s", r.RawJSON())
		}
	}
	if r := awaitResponse(t, begun.ID); r.Status != responses.ResponseStatusCancelled {
		t.Errorf("got %s", r.RawJSON())
	}
}

// TestBackgroundStreams: what a client saw before it left and what it reads
// later are one stream.
func TestBackgroundStreams(t *testing.T) {
	c := client()
	params := response("[[fault:slow 20]] Hi")
	params.Background = openai.Bool(true)
	stream := c.Responses.NewStreaming(t.Context(), params)
	var seen []string
	var id string
	take := func(s *ssestream.Stream[responses.ResponseStreamEventUnion], until string) {
		t.Helper()
		for s.Next() {
			e := s.Current()
			if e.SequenceNumber != int64(len(seen)) {
				t.Fatalf("got the event %d, %s, after %d", e.SequenceNumber, e.Type, len(seen))
			}
			seen = append(seen, e.Type)
			if e.Type == "response.created" {
				id = e.Response.ID
			}
			if e.Type == until {
				s.Close()
				return
			}
		}
		t.Fatalf("no %s after %q: %v", until, seen, s.Err())
	}
	take(stream, "response.output_text.delta")
	last := int64(len(seen) - 1)
	take(c.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{StartingAfter: openai.Int(last)}), "response.completed")
	whole := seen
	seen = nil
	take(c.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{}, option.WithQuery("stream", "true")), "response.completed")
	if !slices.Equal(seen, whole) {
		t.Errorf("got %q, want %q", seen, whole)
	}
}

func TestConversations(t *testing.T) {
	c := client()
	made := must[*conversations.Conversation](t)
	created := made(c.Conversations.New(t.Context(), conversations.ConversationNewParams{
		Items:    []responses.ResponseInputItemUnionParam{user("I live in Rome.")},
		Metadata: shared.Metadata{"topic": "weather"},
	}))
	expectFit[conversations.Conversation](t, created.RawJSON())
	id := created.ID
	if got := made(c.Conversations.Get(t.Context(), id)); got.RawJSON() != created.RawJSON() {
		t.Errorf("got %s, want %s", got.RawJSON(), created.RawJSON())
	}
	updated := made(c.Conversations.Update(t.Context(), id, conversations.ConversationUpdateParams{Metadata: shared.Metadata{"topic": "rain"}}))
	if fmt.Sprint(updated.Metadata) != "map[topic:rain]" || updated.CreatedAt != created.CreatedAt {
		t.Errorf("got %s", updated.RawJSON())
	}

	done := must[*responses.Response](t)
	params := asking("", user(calling))
	params.Conversation.OfConversationObject = &responses.ResponseConversationParam{ID: id}
	first := done(c.Responses.New(t.Context(), params))
	params = asking("", resultsOf(t, first)...)
	params.Conversation.OfString = openai.String(id)
	if second := done(c.Responses.New(t.Context(), params)); second.OutputText() != "The tool said: sunny" || second.Conversation.ID != id {
		t.Errorf("got %s", second.RawJSON())
	}

	added := must[*conversations.ConversationItemList](t)(c.Conversations.Items.New(t.Context(), id, conversations.ItemNewParams{Items: []responses.ResponseInputItemUnionParam{user("Thanks.")}}))
	if len(added.Data) != 1 || added.FirstID != added.LastID {
		t.Fatalf("got %s", added.RawJSON())
	}
	list := func() (ids, kinds []string) {
		t.Helper()
		pages := c.Conversations.Items.ListAutoPaging(t.Context(), id, conversations.ItemListParams{Limit: openai.Int(2), Order: conversations.ItemListParamsOrderAsc})
		for pages.Next() {
			item := pages.Current()
			ids, kinds = append(ids, item.ID), append(kinds, item.Type)
			expectFit[conversations.ConversationItemUnion](t, item.RawJSON())
		}
		if err := pages.Err(); err != nil {
			t.Fatal(err)
		}
		return ids, kinds
	}
	ids, kinds := list()
	if want := []string{"message", "message", "function_call", "function_call_output", "message", "message"}; !slices.Equal(kinds, want) || ids[5] != added.FirstID {
		t.Fatalf("got %q, want %q", kinds, want)
	}
	item := must[*conversations.ConversationItemUnion](t)(c.Conversations.Items.Get(t.Context(), id, ids[5], conversations.ItemGetParams{}))
	if item.RawJSON() != added.Data[0].RawJSON() {
		t.Errorf("got %s, want %s", item.RawJSON(), added.Data[0].RawJSON())
	}
	if left := made(c.Conversations.Items.Delete(t.Context(), id, ids[5])); left.ID != id {
		t.Errorf("got %s", left.RawJSON())
	}
	if left, _ := list(); !slices.Equal(left, ids[:5]) {
		t.Errorf("got %q, want %q", left, ids[:5])
	}

	gone := must[*conversations.ConversationDeletedResource](t)(c.Conversations.Delete(t.Context(), id))
	if !gone.Deleted || gone.ID != id || gone.Object != "conversation.deleted" {
		t.Errorf("got %s", gone.RawJSON())
	}
	_, err := c.Conversations.Get(t.Context(), id)
	expectStatus(t, err, 404, "")
	_, err = c.Conversations.Items.Get(t.Context(), id, ids[0], conversations.ItemGetParams{})
	expectStatus(t, err, 404, "")
}

// turnOf is a message of a socket.
func turnOf(previous string, input ...responses.ResponseInputItemUnionParam) responses.ResponsesClientEventResponseCreateParam {
	list := responses.ResponseInputParam(input)
	p := responses.ResponsesClientEventResponseCreateParam{
		Model: "up/small", Store: openai.Bool(false), Tools: weatherTools,
		Input: responses.ResponsesClientEventResponseCreateInputUnionParam{OfResponse: &list},
	}
	if previous != "" {
		p.PreviousResponseID = param.NewOpt(previous)
	}
	return p
}

// TestSocket has turns over the SDK's own WebSocket, of which nothing is stored.
func TestSocket(t *testing.T) {
	c := client()
	conn := must[*responses.ResponseConnection](t)(c.Responses.Connect(t.Context(), responses.ResponseConnectionOptions{}))
	defer conn.Close()
	done := must[*responses.Response](t)
	turn := func(p responses.ResponsesClientEventResponseCreateParam) *responses.Response {
		t.Helper()
		if err := conn.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return done(conn.FinalResponse(t.Context()))
	}
	first := turn(turnOf("", user(calling)))
	second := turn(turnOf(first.ID, resultsOf(t, first)...))
	if second.OutputText() != "The tool said: sunny" {
		t.Errorf("got %s", second.RawJSON())
	}
	_, err := c.Responses.Get(t.Context(), second.ID, responses.ResponseGetParams{})
	expectStatus(t, err, 404, "")

	// What fails leaves the socket usable.
	if err := conn.Create(t.Context(), turnOf("resp_none", user("Hi"))); err != nil {
		t.Fatal(err)
	}
	_, err = conn.FinalResponse(t.Context())
	var refused *responses.ResponseProtocolError
	if !errors.As(err, &refused) || codeOf(refused.Event.RawJSON()) != "previous_response_not_found" {
		t.Errorf("got %v", err)
	}

	// A lane is answered on its own.
	lane := must[*responses.ResponseLane](t)(conn.Lane("side"))
	defer lane.Close()
	p := turnOf(second.ID, user(calling))
	p.StreamID = openai.String("side")
	if err := conn.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if r := done(lane.FinalResponse(t.Context())); r.PreviousResponseID != second.ID || len(r.Output) == 0 {
		t.Errorf("got %s", r.RawJSON())
	}
	var text responses.ResponseAccumulator
	last := turnOf(second.ID, user("Thanks."))
	last.Tools = nil
	if err := conn.Create(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	for text.Snapshot().TerminalEvent == "" {
		event, err := conn.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := text.AddEvent(event); err != nil {
			t.Fatal(err)
		}
	}
	if got := text.Snapshot().OutputText(); got != "Hello from small." {
		t.Errorf("got %q", got)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// codeOf is the code of an error event.
func codeOf(event string) string {
	var e struct{ Error struct{ Code string } }
	json.Unmarshal([]byte(event), &e)
	return e.Error.Code
}
