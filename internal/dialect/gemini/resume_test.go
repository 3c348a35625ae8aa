package gemini

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

const longAsked = `{"contents":[{"role":"user","parts":[{"text":"q"}]}]}`

func longAnswer(rounds int) dialect.Resumer {
	return Upstream{}.Answers(&dialect.Call{Body: []byte(longAsked), Rounds: rounds}, &llm.Caps{}).(dialect.Resumer)
}

// An answer that is longer than one request gives goes on in the same text, and
// its sources count from where each request began.
func TestResume(t *testing.T) {
	d := longAnswer(1)
	var events []llm.Event
	next := func(chunk string) {
		t.Helper()
		var err error
		if events, err = d.Frame(events, sse.Frame{Data: []byte(chunk)}); err != nil {
			t.Fatal(err)
		}
	}
	next(`{"candidates":[{"content":{"parts":[{"text":"ä one "}]}}],"modelVersion":"m","responseId":"r"}`)
	next(`{"candidates":[{"content":{"parts":[{"text":"two "}]},"finishReason":"CONTINUATION","continuationToken":"T"}]}`)
	if d.Resume(false) != nil {
		t.Error("it does not wait for the usage")
	}
	next(`{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3}}`)
	if d.Done() {
		t.Error("it is done")
	}
	if got, want := string(d.Resume(false)), `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"continuationToken":"T"}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	next(`{"candidates":[{"content":{"parts":[{"text":"three"}]},"finishReason":"CONTINUATION","continuationToken":"U","groundingMetadata":{` +
		`"groundingChunks":[{"web":{"uri":"u","title":"t"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":5},"groundingChunkIndices":[0]}]}}],` +
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1},"responseId":"r2"}`)
	want := "start \"r\" \"m\"\nopen 0 of 0: message at 0\ntext 0.0: \"ä one \"\ntext 0.0: \"two \"\nused 5+0 3+0\n" +
		"used 14+0 4+0\ntext 0.0: \"three\"\ncite 0: \"u\" \"t\" 10-15\nclose 0\nfinish 0: length\n"
	if got := toldAs(events); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := dialecttest.Check(events, true); err != nil || !d.Done() {
		t.Error(err, d.Done())
	}
}

// Without a token, or beside other candidates, nothing can go on.
func TestContinuationIsTold(t *testing.T) {
	for name, chunk := range map[string]string{
		"no token":       `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION"}]}`,
		"two candidates": `{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION","continuationToken":"T"}]}`,
	} {
		d := longAnswer(5)
		events, err := d.Whole(nil, []byte(chunk))
		if err != nil || d.Resume(true) != nil || !d.Done() {
			t.Errorf("%s: it goes on, %v", name, err)
		}
		if err := dialecttest.Check(events, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whole answers go on in the same way; a token that the client sent gives way.
func TestResumeWhole(t *testing.T) {
	d := Upstream{}.Answers(&dialect.Call{Body: []byte(`{"continuationToken":"old","contents":[]}`), Rounds: 5}, &llm.Caps{}).(dialect.Resumer)
	events, err := d.Whole(nil, []byte(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION","continuationToken":"T"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(d.Resume(true)), `{"contents":[],"continuationToken":"T"}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	events, err = d.Whole(events, []byte(`{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "start  \nused 5+0 3+0\nopen 0 of 0: message at 0\ntext 0.0: \"a\"\nused 10+0 6+0\ntext 0.0: \"b\"\nclose 0\nfinish 0: stopped\n"
	if got := toldAs(events); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
