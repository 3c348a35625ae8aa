package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

const (
	askedFirst  = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}]}`
	lookupUse   = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}`
	lookupFound = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://a.test","title":"A","encrypted_content":"E"}]}`
)

// feed feeds a stream to a decoder that may go on with another.
func feed(t *testing.T, d dialect.Decoder, events []llm.Event, stream string) []llm.Event {
	t.Helper()
	for frame, err := range sse.All(strings.NewReader(stream), 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		frame.Data = []byte(string(frame.Data))
		if events, err = d.Frame(events, frame); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

func parsed(t *testing.T, body []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

// A turn that is paused goes back as it came, and what follows is the rest of
// one answer: one beginning, one end, the usage of both requests.
func TestResume(t *testing.T) {
	first := strings.Replace(head(""), `"stop_reason"`, `"container":{"id":"c1"},"stop_reason"`, 1) +
		blockEvents(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"I look"}`, `{"type":"text_delta","text":" it up."}`) +
		blockEvents(1, `{"type":"text","text":""}`) +
		blockEvents(2, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`) +
		tail("pause_turn")
	second := strings.Replace(head(""), "msg_1", "msg_2", 1) +
		blockEvents(0, lookupFound) + blockEvents(1, `{"type":"text","text":""}`, `{"type":"text_delta","text":"Found."}`) + tail("end_turn")

	d := Upstream{}.Answers(&dialect.Call{Body: []byte(askedFirst), Rounds: 1}, &llm.Caps{}).(dialect.Resumer)
	events := feed(t, d, nil, first)
	if d.Done() {
		t.Fatal("a paused answer is done")
	}
	sameJSON(t, "the second request", parsed(t, d.Resume(false)), `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},`+
		`{"role":"assistant","content":[{"type":"text","text":"I look it up."},`+lookupUse+`]}],"container":"c1"}`)
	if d.Resume(false) != nil {
		t.Error("it goes on twice")
	}
	events = feed(t, d, events, second)
	if !d.Done() {
		t.Error("it is not done")
	}
	if err := dialecttest.Check(events, true); err != nil {
		t.Error(err)
	}
	a := fold(events)
	if string(a.ID) != `"msg_1"` || len(a.Choices) != 1 || a.Choices[0].Finish.Reason != llm.Stopped {
		t.Errorf("got %s, %+v", a.ID, a.Choices)
	}
	if u := a.Usage; u.Input != 10 || u.Output != 18 || !a.Known {
		t.Errorf("usage %+v", u)
	}
	turn := a.Choices[0].Finish.Turn
	if turn == nil {
		t.Fatal("no turn")
	}
	for _, want := range []string{`I look it up.`, `"server_tool_use"`, `"web_search_tool_result"`, `Found.`} {
		if !strings.Contains(string(turn.Data), want) {
			t.Errorf("the turn lacks %s: %s", want, turn.Data)
		}
	}
	var calls []*llm.ServerCall
	for _, item := range a.Choices[0].Items {
		if c, ok := item.(*llm.ServerCall); ok {
			calls = append(calls, c)
		}
	}
	if len(calls) != 1 || len(calls[0].Sources) != 1 || len(calls[0].Native) != 2 {
		t.Errorf("server calls: %+v", calls)
	}
}

// A pause is told where nobody can or need go on.
func TestPauseIsTold(t *testing.T) {
	search := blockEvents(0, lookupUse)
	for name, c := range map[string]struct {
		stream string
		rounds int
		want   llm.Reason
	}{
		"no more requests":   {head("") + search + tail("pause_turn"), 0, llm.Paused},
		"a call is open":     {head("") + search + blockEvents(1, `{"type":"tool_use","id":"t","name":"f","input":{}}`) + tail("pause_turn"), 5, llm.ToolsCalled},
		"nothing came":       {head("") + tail("pause_turn"), 5, llm.Paused},
		"something was lost": {head("") + search + blockEvents(1, `{"type":"hologram"}`, `{"type":"hologram_delta","x":1}`) + tail("pause_turn"), 5, llm.Paused},
		"a cut input":        {head("") + blockEvents(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"qu"}`) + tail("pause_turn"), 5, llm.Paused},
	} {
		d := Upstream{}.Answers(&dialect.Call{Body: []byte(askedFirst), Rounds: c.rounds}, &llm.Caps{}).(dialect.Resumer)
		events := feed(t, d, nil, c.stream)
		if !d.Done() || d.Resume(true) != nil {
			t.Errorf("%s: it waits to go on", name)
			continue
		}
		if a := fold(events); a.Choices[0].Finish.Reason != c.want {
			t.Errorf("%s: finish %d, want %d", name, a.Choices[0].Finish.Reason, c.want)
		}
	}
}

// A stream that ends between the pause and its own end was cut.
func TestPauseIsCut(t *testing.T) {
	stream, _, _ := strings.Cut(head("")+blockEvents(0, lookupUse)+tail("pause_turn"), "event: message_stop")
	d := Upstream{}.Answers(&dialect.Call{Body: []byte(askedFirst), Rounds: 5}, &llm.Caps{}).(dialect.Resumer)
	events := feed(t, d, nil, stream)
	if d.Resume(true) != nil {
		t.Error("it goes on")
	}
	if _, err := d.End(events); err == nil {
		t.Error("it ends well")
	}
}

// Whole answers go on in the same way.
func TestResumeWhole(t *testing.T) {
	body := func(reason, content string) []byte {
		return []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + content + `],"stop_reason":"` + reason + `","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":9}}`)
	}
	d := Upstream{}.Answers(&dialect.Call{Body: []byte(askedFirst), Rounds: 5}, &llm.Caps{}).(dialect.Resumer)
	events, err := d.Whole(nil, body("pause_turn", lookupUse))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "the second request", parsed(t, d.Resume(true)), `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[`+lookupUse+`]}]}`)
	if events, err = d.Whole(events, body("pause_turn", lookupFound)); err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "the third request", parsed(t, d.Resume(true)), `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[`+lookupUse+`,`+lookupFound+`]}]}`)
	if events, err = d.Whole(events, body("end_turn", `{"type":"text","text":"Found."}`)); err != nil {
		t.Fatal(err)
	}
	if err := dialecttest.Check(events, true); err != nil {
		t.Error(err)
	}
	if u := fold(events).Usage; u.Input != 15 || u.Output != 27 {
		t.Errorf("usage %+v", u)
	}
}
