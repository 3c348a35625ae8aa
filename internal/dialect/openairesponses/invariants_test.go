package openairesponses

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/sse"
)

// event is what of an event the strictest clients look at.
type event struct {
	Type         string
	Sequence     *int   `json:"sequence_number"`
	OutputIndex  *int   `json:"output_index"`
	ContentIndex *int   `json:"content_index"`
	SummaryIndex *int   `json:"summary_index"`
	ItemID       string `json:"item_id"`
	Item         *item
	Part         *part
	Delta        *string
	Text         *string
	Refusal      *string
	Arguments    *string
	Input        *string
	Code         *string
	Response     *struct {
		ID     string
		Status string
		Output []json.RawMessage
	}
	Error json.RawMessage
}

type item struct {
	ID, Type, Status string
	Content, Summary []part
	Arguments        argText
	Input            string
}

// argText is arguments that are a text; those that are an object have no
// deltas.
type argText string

func (w *argText) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		return nil
	}
	return json.Unmarshal(data, (*string)(w))
}

type part struct {
	Type, Text, Refusal string
}

// progress is what has come of an item so far.
type progress struct {
	item           item
	parts, summary []*text
	whole          *text // of arguments or input
	done           bool
}

type text struct {
	deltas, final string
	ended, closed bool
}

func (x *text) String() string { return x.deltas }

// checkStream fails when a stream breaks a rule that official helpers
// enforce. Streams must be whole, from response.created to [DONE].
func checkStream(t *testing.T, stream []byte) {
	t.Helper()
	var (
		items    []*progress
		raw      []string // items as they were done
		count    int
		terminal string
		ended    bool
		id       string
	)
	for f, err := range sse.All(bytes.NewReader(stream), 1<<22) {
		if err != nil {
			t.Fatal(err)
		}
		bad := func(what string) { t.Helper(); t.Errorf("event %d %s: %s", count, what, f.Raw) }
		if !f.Canonical {
			bad("is no frame of the contract")
		}
		if ended {
			bad("comes after the end")
		}
		if string(f.Data) == "[DONE]" {
			if ended = true; f.Event != nil {
				bad("names the end")
			}
			continue
		}
		var e event
		if err := json.Unmarshal(f.Data, &e); err != nil {
			t.Fatalf("%v in %s", err, f.Data)
		}
		if e.Type != string(f.Event) {
			bad("has another name than type")
		}
		if e.Sequence == nil || *e.Sequence != count {
			bad("breaks the sequence")
		}
		if terminal != "" {
			bad("comes after " + terminal)
		}
		if (count == 0) != (e.Type == "response.created") {
			bad("is out of place")
		}
		if e.Error != nil && string(e.Error) == "null" {
			bad("has a null error")
		}
		count++
		var at *progress
		if e.OutputIndex != nil && e.Type != "response.output_item.added" {
			if n := *e.OutputIndex; n >= len(items) {
				bad("is of an item that was not added")
				continue
			} else if at = items[n]; at.done {
				bad("is of an item that was done")
			}
			if e.Item == nil && e.ItemID != at.item.ID {
				bad("is of an item with another ID")
			}
		}
		switch e.Type {
		case "response.created", "response.in_progress":
			if e.Response == nil || e.Response.Status != "in_progress" || e.Response.Output == nil || len(e.Response.Output) > 0 || e.Response.ID == "" {
				bad("is no fresh response")
				continue
			}
			id = e.Response.ID
		case "response.output_item.added":
			if e.OutputIndex == nil || *e.OutputIndex != len(items) || e.Item == nil || e.Item.ID == "" || len(e.Item.Content)+len(e.Item.Summary)+len(e.Item.Arguments)+len(e.Item.Input) > 0 {
				bad("adds no fresh item at the next index")
				continue
			}
			items = append(items, &progress{item: *e.Item, whole: &text{}})
		case "response.content_part.added":
			if e.ContentIndex == nil || *e.ContentIndex != len(at.parts) || e.Part == nil || e.Part.Text+e.Part.Refusal != "" {
				bad("adds no fresh part at the next index")
				continue
			}
			at.parts = append(at.parts, &text{})
		case "response.reasoning_summary_part.added":
			if e.SummaryIndex == nil || *e.SummaryIndex != len(at.summary) || e.Part == nil || e.Part.Text != "" {
				bad("adds no fresh part at the next index")
				continue
			}
			at.summary = append(at.summary, &text{})
		case "response.output_item.done":
			checkItem(bad, at, e.Item)
			at.done = true
			member, _ := jsonMember(f.Data, "item")
			raw = append(raw, member)
		case "response.completed", "response.incomplete", "response.failed":
			terminal = e.Type
			if e.Response == nil || "response."+e.Response.Status != e.Type || e.Response.ID != id {
				bad("does not end this response")
				continue
			}
			if len(e.Response.Output) != len(raw) {
				bad("has another number of items than were done")
				continue
			}
			for i, o := range e.Response.Output {
				if string(o) != raw[i] {
					bad("has other items than were done")
				}
			}
		default:
			checkText(bad, at, &e)
		}
	}
	if terminal == "" || !ended {
		t.Errorf("the stream has no end: %q, [DONE] %v", terminal, ended)
	}
	for _, p := range items {
		if !p.done {
			t.Errorf("item %s was not done", p.item.ID)
		}
	}
}

// checkText follows the deltas of one text and its final value.
func checkText(bad func(string), at *progress, e *event) {
	if at == nil {
		bad("is of no item")
		return
	}
	of := at.whole
	list, index := at.parts, e.ContentIndex
	if e.SummaryIndex != nil {
		list, index = at.summary, e.SummaryIndex
	}
	if index != nil {
		if *index >= len(list) {
			bad("is of a part that was not added")
			return
		}
		of = list[*index]
	}
	switch {
	case hostedEvents[e.Type]:
	case strings.HasSuffix(e.Type, "_part.done"):
		if e.Part == nil || e.Part.Text+e.Part.Refusal != of.final || (e.Part.Type == "output_text" || e.Part.Type == "refusal" || e.Part.Type == "summary_text" || e.Part.Type == "reasoning_text") != of.ended {
			bad("ends a part with another value than its text")
		}
		of.closed = true
	case strings.HasSuffix(e.Type, ".delta"):
		if e.Delta == nil || of.ended {
			bad("is no delta, or comes after the final value")
			return
		}
		of.deltas += *e.Delta
	case strings.HasSuffix(e.Type, ".done"):
		for _, final := range []*string{e.Text, e.Refusal, e.Arguments, e.Input, e.Code} {
			if final != nil {
				of.final, of.ended = *final, true
			}
		}
		if !of.ended || of.final != of.deltas {
			bad("has a final value that its deltas do not make")
		}
	default:
		bad("is of a type that no client knows")
	}
}

// hostedEvents carry no text.
var hostedEvents = map[string]bool{
	"response.output_text.annotation.added":       true,
	"response.web_search_call.in_progress":        true,
	"response.web_search_call.searching":          true,
	"response.web_search_call.completed":          true,
	"response.file_search_call.in_progress":       true,
	"response.file_search_call.searching":         true,
	"response.file_search_call.completed":         true,
	"response.code_interpreter_call.in_progress":  true,
	"response.code_interpreter_call.interpreting": true,
	"response.code_interpreter_call.completed":    true,
	"response.image_generation_call.in_progress":  true,
	"response.image_generation_call.generating":   true,
	"response.image_generation_call.completed":    true,
}

func checkItem(bad func(string), at *progress, done *item) {
	if done == nil || done.ID != at.item.ID || done.Type != at.item.Type || done.Status == "in_progress" {
		bad("does not end the item that was added")
		return
	}
	same := len(done.Content) == len(at.parts) && len(done.Summary) == len(at.summary) && (done.Type == "code_interpreter_call" || string(done.Arguments)+done.Input == at.whole.final)
	for i := 0; same && i < len(at.parts); i++ {
		same = at.parts[i].closed && done.Content[i].Text+done.Content[i].Refusal == at.parts[i].final
	}
	for i := 0; same && i < len(at.summary); i++ {
		same = at.summary[i].closed && done.Summary[i].Text == at.summary[i].final
	}
	if !same {
		bad("has other content than came before")
	}
}

// jsonMember returns a member's bytes.
func jsonMember(object []byte, name string) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return "", false
	}
	m, ok := members[name]
	return string(m), ok
}
