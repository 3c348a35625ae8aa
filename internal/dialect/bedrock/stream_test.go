package bedrock

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// toldAs is a list of events in a short form, one a line.
func toldAs(events []llm.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e := e.(type) {
		case llm.Start:
			fmt.Fprintf(&b, "start %s\n", e.Model)
		case llm.Open:
			fmt.Fprintf(&b, "open %d: %s at %d %s %s\n", e.Item, [...]string{"message", "reasoning", "call", "server"}[e.Kind], e.Block, e.CallID, e.Name)
		case llm.Delta:
			fmt.Fprintf(&b, "%s %d: %s\n", [...]string{"text", "refusal", "audio", "transcript", "thinking", "summary", "args"}[e.Channel], e.Item, e.Data)
		case llm.Annotate:
			fmt.Fprintf(&b, "cite %d: %s %s %d-%d\n", e.Item, e.Annotation.URL, e.Annotation.Title, e.Annotation.Start, e.Annotation.End)
		case llm.Picture:
			fmt.Fprintf(&b, "picture %d: %s %s\n", e.Item, e.Media.MIME, e.Media.Data)
		case llm.Seal:
			fmt.Fprintf(&b, "seal %d: %s %d %s\n", e.Item, e.Opaque.Vendor, e.Opaque.Kind, e.Opaque.Data)
		case llm.Close:
			fmt.Fprintf(&b, "close %d\n", e.Item)
		case llm.Used:
			u := e.Usage
			fmt.Fprintf(&b, "used %d+%d+%d %d\n", u.Input, u.CacheRead, u.CacheWrite, u.Output)
		case llm.Finish:
			fmt.Fprintf(&b, "finish: %s\n", [...]string{"stopped", "length", "tools", "filtered", "refused", "paused", "window", "compacted"}[e.Reason])
		case llm.Note:
			fmt.Fprintf(&b, "note %s\n", e.Notes)
		}
	}
	return b.String()
}

// streamed decodes frames, one a line: the name, a space, the payload.
func streamed(frames string) ([]llm.Event, error) {
	d := Upstream{}.Answers(nil, &llm.Caps{Model: "m", Vendor: "anthropic"})
	var events []llm.Event
	for line := range strings.Lines(frames) {
		name, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		if events, err = d.Frame(events, sse.Frame{Event: []byte(name), Data: []byte(data)}); err != nil {
			return events, err
		}
		if d.Done() {
			return events, nil
		}
	}
	return d.End(events)
}

const answer = "start \"m\"\nopen 0: reasoning at 0  \nthinking 0: \"hm\"\nseal 0: anthropic 0 \"SIG\"\nclose 0\n" +
	"open 1: reasoning at 1  \nseal 1: anthropic 1 \"RED\"\nclose 1\n" +
	"open 2: message at 2  \ntext 2: \"ä\"\ntext 2: \"b\"\ncite 2: \"u\" \"t\" 1-2\nclose 2\n" +
	"open 3: call at 4 \"id\" f\nargs 3: \"{}\"\nclose 3\n"

func TestStream(t *testing.T) {
	events, err := streamed(`messageStart {"role":"assistant"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"SIG"}}}
contentBlockStop {"contentBlockIndex":0}
contentBlockDelta {"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"RED"}}}
contentBlockStop {"contentBlockIndex":1}
contentBlockDelta {"contentBlockIndex":2,"delta":{"text":"ä"}}
contentBlockStop {"contentBlockIndex":2}
futureEvent {"x":1}
contentBlockDelta {"contentBlockIndex":3,"delta":{"text":"b"}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"citation":{"title":"t","location":{"web":{"url":"u"}}}}}
contentBlockStop {"contentBlockIndex":3}
contentBlockStart {"contentBlockIndex":4,"start":{"toolUse":{"toolUseId":"id","name":"f"}}}
contentBlockStop {"contentBlockIndex":4}
messageStop {"stopReason":"tool_use"}
metadata {"usage":{"inputTokens":8,"cacheReadInputTokens":4,"cacheWriteInputTokens":2,"outputTokens":6}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := toldAs(events), answer+"finish: tools\nused 8+4+2 6\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := dialecttest.Check(events, true); err != nil {
		t.Error(err)
	}
}

func TestWhole(t *testing.T) {
	const body = `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"SIG"}}},{"reasoningContent":{"redactedContent":"RED"}},{"text":"ä"},` +
		`{"citationsContent":{"content":[{"text":"b"}],"citations":[{"title":"t","location":{"web":{"url":"u"}}}]}},{"toolUse":{"toolUseId":"id","name":"f","input":{ }}}]}},` +
		`"stopReason":"tool_use","usage":{"inputTokens":8,"cacheReadInputTokens":4,"cacheWriteInputTokens":2,"outputTokens":6}}`
	events, err := Upstream{}.Answers(nil, &llm.Caps{Model: "m", Vendor: "anthropic"}).Whole(nil, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := toldAs(events), answer+"used 8+4+2 6\nfinish: tools\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStops(t *testing.T) {
	for word, want := range map[string]string{
		"end_turn": "stopped", "stop_sequence": "stopped", "max_tokens": "length", "model_context_window_exceeded": "window",
		"guardrail_intervened": "filtered", "content_filtered": "filtered", "hologram": "stopped",
	} {
		events, err := streamed(`messageStop {"stopReason":"` + word + `"}`)
		if got := toldAs(events); err != nil || !strings.HasSuffix(got, "finish: "+want+"\n") || strings.Contains(got, "assume") != (word == "hologram") {
			t.Errorf("%s: got %s, %v", word, got, err)
		}
	}
	events, err := streamed(`contentBlockStart {"start":{"toolUse":{"toolUseId":"s","name":"x","type":"server_tool_use"}}}
contentBlockDelta {"delta":{"toolUse":{"input":"{}"}}}
contentBlockDelta {"contentBlockIndex":1,"delta":{"hologram":{}}}
contentBlockDelta {"contentBlockIndex":2,"delta":{"image":{"format":"webp","source":{"bytes":"P"}}}}
messageStop {"stopReason":"end_turn"}`)
	want := "start \"m\"\nnote skip:block:server_tool_use\nnote skip:block:hologram\nopen 0: message at 2  \npicture 0: image/webp \"P\"\nclose 0\nfinish: stopped\n"
	if got := toldAs(events); err != nil || got != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
}

func TestStreamFails(t *testing.T) {
	for name, c := range map[string]struct {
		frames string
		kind   llm.Kind
		code   string
	}{
		"cut":        {`messageStart {}`, llm.UpstreamTruncated, ""},
		"throttled":  {`exception:throttlingException {"message":"m"}`, llm.RateLimited, "upstream_rate_limited"},
		"model":      {`exception:modelStreamErrorException {"message":"m"}`, llm.Upstream, ""},
		"validation": {`exception:validationException {"message":"Input is too long for requested model."}`, llm.Invalid, "context_length_exceeded"},
		"service":    {`exception:serviceUnavailableException {}`, llm.Overloaded, "upstream_overloaded"},
		"unknown":    {`exception:hologram {}`, llm.Upstream, ""},
		"malformed":  {`messageStop {"stopReason":"malformed_tool_use"}`, llm.UpstreamInvalid, "upstream_malformed_output"},
		"no JSON":    {`messageStart {`, llm.UpstreamInvalid, "upstream_malformed_output"},
		"no name":    {`contentBlockStart {"start":{"toolUse":{"toolUseId":"x"}}}`, llm.UpstreamInvalid, "upstream_malformed_output"},
	} {
		_, err := streamed(c.frames)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Code != c.code {
			t.Errorf("%s: got %#v", name, err)
		}
	}
}

func TestFailed(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   llm.Kind
	}{
		{400, `{"__type":"com.amazon.coral.service#ThrottlingException","message":"m"}`, llm.RateLimited},
		{400, `{"__type":"ServiceQuotaExceededException:http://x"}`, llm.RateLimited},
		{400, `{"message":"bad"}`, llm.Invalid},
		{403, `{"Message":"no"}`, llm.UpstreamAuth},
		{424, `{"message":"model failed"}`, llm.Upstream},
		{408, `{"message":"slow"}`, llm.UpstreamTimeout},
		{404, `{}`, llm.Upstream},
		{503, `<html>`, llm.Overloaded},
	} {
		if e := (Upstream{}).Failed(c.status, []byte(c.body), 0); e.Kind != c.kind {
			t.Errorf("%d %s: got %v, want %v", c.status, c.body, e.Kind, c.kind)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add("contentBlockStart {\"contentBlockIndex\":1,\"start\":{\"toolUse\":{\"toolUseId\":\"a\",\"name\":\"f\"}}}\ncontentBlockDelta {\"contentBlockIndex\":2,\"delta\":{\"text\":\"x\",\"citation\":{\"location\":{\"web\":{\"url\":\"u\"}}}}}\nmessageStop {\"stopReason\":\"tool_use\"}")
	f.Add("contentBlockDelta {\"delta\":{\"reasoningContent\":{\"text\":\"x\",\"signature\":\"s\"}}}\nmetadata {\"usage\":{\"inputTokens\":-1}}")
	f.Add(`{"output":{"message":{"content":[{"text":"a"},{"toolUse":{"toolUseId":"a","name":"f"}}]}}}`)
	f.Fuzz(func(t *testing.T, frames string) {
		events, err := streamed(frames)
		if broken := dialecttest.Check(events, err == nil); broken != nil {
			t.Fatalf("%v in\n%s", broken, toldAs(events))
		}
		events, err = Upstream{}.Answers(nil, nil).Whole(nil, []byte(frames))
		if broken := dialecttest.Check(events, err == nil); broken != nil {
			t.Fatalf("%v in\n%s", broken, toldAs(events))
		}
	})
}
