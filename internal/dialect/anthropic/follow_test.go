package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// follow hands a stream on as the gateway does. It returns what the client
// gets before any failure, the failure, and the follower.
func follow(src io.Reader) (out []byte, f dialect.Follower, failure error) {
	f = Dialect{}.Follow(&dialect.Request{Stream: true})
	for frame, err := range sse.All(src, 1<<20) {
		if err != nil {
			return out, f, err
		}
		if len(frame.Data) == 0 {
			continue
		}
		var pass bool
		if out, pass, err = f.Frame(out, frame); err != nil {
			return out, f, err
		}
		if pass {
			out = append(out, frame.Raw...)
		}
		if f.Done() {
			return out, f, nil
		}
	}
	out, err := f.End(out)
	return out, f, err
}

func TestFollow(t *testing.T) {
	content := blockEvents(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"a"}`)
	future := event("future_event", `"x":12345678901234567890`)
	usage := llm.Usage{Input: 5, Output: 9}
	for name, c := range map[string]struct {
		stream, want string
		failure      llm.Kind
		begun        bool
		usage        llm.Usage
	}{
		"as it came": {head("") + event("ping", "") + future + content + tail("end_turn"), "", 0, true, usage},
		"usage is replaced": {head("") + event("message_delta", `"delta":{},"usage":{"input_tokens":20,"cache_read_input_tokens":100,"cache_creation_input_tokens":null,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}`) + event("message_stop", ""), "",
			0, true, llm.Usage{Input: 20, CacheRead: 100, Output: 4, Reasoning: 3}},
		"names are put in": {strings.ReplaceAll(head("")+content+tail("end_turn"), "event: content_block_start\n", ""), head("") + content + tail("end_turn"), 0, true, usage},
		"cut":              {head("") + content, "", llm.UpstreamTruncated, true, llm.Usage{Input: 5, Output: 1}},
		"failed at once":   {head("") + event("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`), head(""), llm.Overloaded, false, llm.Usage{Input: 5, Output: 1}},
		"no usage":         {strings.Replace(head(""), `"usage"`, `"other"`, 1) + content, "", llm.UpstreamTruncated, true, llm.Usage{Input: 100, Output: 1, Estimated: true}},
		"malformed":        {head("") + "data: [1]\n\n", head(""), llm.UpstreamInvalid, false, llm.Usage{Input: 5, Output: 1}},
		"another end":      {head("") + content + "data: [DONE]\n\n", head("") + content, llm.UpstreamTruncated, true, llm.Usage{Input: 5, Output: 1}},
	} {
		if c.want == "" {
			c.want = c.stream
		}
		out, f, failure := follow(iotest.OneByteReader(strings.NewReader(c.stream)))
		if string(out) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, out, c.want)
		}
		var e *llm.Error
		if errors.As(failure, &e) != (c.failure != 0) || e != nil && e.Kind != c.failure {
			t.Errorf("%s: got %v", name, failure)
		}
		if f.Begun() != c.begun || f.Done() != (c.failure == 0) {
			t.Errorf("%s: begun %v, done %v", name, f.Begun(), f.Done())
		}
		if got := f.Usage(400); got != c.usage {
			t.Errorf("%s: got %+v, want %+v", name, got, c.usage)
		}
		const told = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n"
		if got := string(f.Fail(nil, &llm.Error{Kind: llm.Overloaded, Message: "m"})); got != told || !f.Done() {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// A whole answer is told as the stream that leads to it.
func TestReplay(t *testing.T) {
	const content = `[{"type":"thinking","thinking":"t","signature":"S"},{"type":"redacted_thinking","data":"R"},{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]`
	body := "{\n" + `"id":"msg_1","type":"message","role":"assistant","model":"m","content":` + content + `,"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal"},"usage":{"input_tokens":5,"output_tokens":9}}`
	usage, known, err := Dialect{}.Answer([]byte(body))
	if want := (llm.Usage{Input: 5, Output: 9}); usage != want || !known || err != nil {
		t.Errorf("got %+v %v %v", usage, known, err)
	}
	stream := Dialect{}.Replay(nil, []byte(body), &dialect.Request{Stream: true})
	got, end := assembled(t, string(stream))
	want, _ := assembled(t, head("")+`event: content_block_start`+"\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"t","signature":"S"}}`+"\n\n"+event("content_block_stop", `"index":0`)+
		blockEvents(1, `{"type":"redacted_thinking","data":"R"}`)+blockEvents(2, `{"type":"text","text":"a"}`)+blockEvents(3, `{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(end, `"stop_details":{"type":"refusal"}`) || !bytes.HasSuffix(stream, []byte(event("message_stop", ""))) {
		t.Errorf("got %s", stream)
	}
	if !bytes.Contains(stream, []byte(`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":9}}`)) {
		t.Errorf("got %s", stream)
	}
}

func TestAnswer(t *testing.T) {
	for body, want := range map[string]llm.Kind{
		``: llm.UpstreamInvalid, `<html>`: llm.UpstreamInvalid, `{}`: llm.UpstreamInvalid, `{"content":"x"}`: llm.UpstreamInvalid,
		`{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`: llm.RateLimited,
	} {
		_, _, err := Dialect{}.Answer([]byte(body))
		_, other := Upstream{}.Answers(nil, &llm.Caps{}).Whole(nil, []byte(body))
		if err == nil || other == nil || llm.AsError(err).Kind != want || llm.AsError(other).Kind != want {
			t.Errorf("%s: got %v and %v", body, err, other)
		}
	}
	if _, known, err := (Dialect{}).Answer([]byte(`{"content":[]}`)); known || err != nil {
		t.Errorf("got %v %v", known, err)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add([]byte(head("") + blockEvents(0, `{"type":"text","text":"a"}`) + tail("end_turn")))
	f.Add([]byte(event("error", `"error":{}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		out, follower, failure := follow(bytes.NewReader(stream))
		if failure == nil && !follower.Done() {
			t.Fatal("neither done nor failed")
		}
		again, _, err := follow(bytes.NewReader(out))
		if failure == nil && (err != nil || !bytes.Equal(out, again)) {
			t.Fatalf("what passed does not pass again: %v\n%s\n%s", err, out, again)
		}
		follower.Fail(out, &llm.Error{Kind: llm.Upstream, Message: fmt.Sprint(failure)})
	})
}
