package openaichat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/sse"
)

// shownEvents writes events so that a test can be read. Pieces of a text that
// follow each other are one.
func shownEvents(events []llm.Event) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	last := ""
	for _, e := range events {
		joins := ""
		switch e := e.(type) {
		case llm.Start:
			add("start(%s)", e.Model.Text())
		case llm.Open:
			kind := [...]string{"text", "think", "call", "server"}[e.Kind]
			switch {
			case e.Kind == llm.CallItem:
				add("%d:%s(%s %s)%s", e.Item, kind, e.CallID.Text(), e.Name, shownState(e.Opaque))
			case e.Choice > 0:
				add("%d:%s@%d", e.Item, kind, e.Choice)
			default:
				add("%d:%s", e.Item, kind)
			}
		case llm.Delta:
			joins = fmt.Sprintf("%d.%d+%s", e.Item, e.Part, [...]string{"", "refusal:", "audio:", "said:", "", "summary:", ""}[e.Channel])
			if joins == last {
				out[len(out)-1] += e.Data.Text()
			} else {
				add("%s%s", joins, e.Data.Text())
			}
		case llm.Annotate:
			add("%d+cite(%s %d-%d)", e.Item, e.Annotation.URL.Text(), e.Annotation.Start, e.Annotation.End)
		case llm.Picture:
			add("%d+picture(%s)", e.Item, e.Media.MIME)
		case llm.Logprobs:
			add("%d+logprobs(%d)", e.Item, len(e.Tokens))
		case llm.Seal:
			add("%d+seal(%s)", e.Item, strings.TrimSpace(shownState([]llm.Opaque{e.Opaque})))
		case llm.Close:
			add("%d.", e.Item)
		case llm.Used:
			add("used(%d+%d+%d %d+%d)", e.Usage.Input, e.Usage.CacheRead, e.Usage.CacheWrite, e.Usage.Output, e.Usage.Reasoning)
		case llm.Finish:
			add("finish%d(%s%s)", e.Choice, [...]string{"stop", "length", "calls", "filter", "refused", "paused", "window", "compacted"}[e.Reason], e.StopSeq.Text())
		case llm.Note:
			add("note(%s)", e.Notes)
		}
		last = joins
	}
	return strings.Join(out, " ")
}

// decode reads a stream of data, and says how it ended.
func decode(caps *llm.Caps, data ...string) (events []llm.Event, err error) {
	d := Upstream{}.Answers(&dialect.Call{}, caps)
	for _, text := range data {
		if events, err = d.Frame(events, sse.Frame{Data: []byte(text)}); err != nil || d.Done() {
			return events, err
		}
	}
	return d.End(events)
}

var tagged = llm.Caps{Chat: llm.ChatCaps{Tags: true}}

// bytewise is a text in as many chunks as it has bytes.
func bytewise(text string) (data []string) {
	for _, c := range text {
		data = append(data, piece(`"content":`+string(llm.Quote(string(c)))))
	}
	return data
}

func piece(members string) string { return `{"choices":[{"index":0,"delta":{` + members + `}}]}` }

const (
	finished = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done     = "[DONE]"
)

func TestDecodeStream(t *testing.T) {
	for _, c := range []struct {
		name string
		data []string
		want string
		caps llm.Caps
	}{
		{
			"empty things are nothing", []string{`{"id":"i","model":"","choices":[]}`, `{"model":"m","choices":[{"index":0,"delta":{"role":"","content":"","tool_calls":[],"reasoning":"","function_call":null,"refusal":null}}]}`, piece(`"content":"x","tool_calls":null`), finished, done},
			`start(m) 0:text 0.0+x 0. finish0(stop)`, llm.Caps{},
		},
		{
			"thinking, then text; the twins are one", []string{piece(`"reasoning":"a","reasoning_content":"a"`), piece(`"reasoning":"b"`), piece(`"content":"x"`), finished, done},
			`start() 0:think 0.0+ab 0. 1:text 1.0+x 1. finish0(stop)`, llm.Caps{},
		},
		{
			"details", []string{piece(`"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"anthropic-claude-v1","index":0}]`),
				piece(`"reasoning_details":[{"type":"reasoning.text","signature":"S","format":"anthropic-claude-v1","index":0}]`),
				piece(`"reasoning_details":[{"type":"reasoning.encrypted","data":"R","format":"anthropic-claude-v1","index":1}]`), piece(`"content":"x"`), finished, done},
			`start() 0:think 0.0+a 0+seal(anthropic:0:"S") 0. 1:think 1+seal(anthropic:1:"R") 1. 2:text 2.0+x 2. finish0(stop)`, llm.Caps{},
		},
		{
			"content in parts", []string{piece(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"x"},{"type":"new"}]`), finished, done},
			`start() 0:think 0.0+t 0. 1:text 1.0+x note(skip:part:new) 1. finish0(stop)`, llm.Caps{},
		},
		{
			"text and refusal", []string{piece(`"content":"x"`), piece(`"refusal":"n"`), finished, done},
			`start() 0:text 0.0+x 0.1+refusal:n 0. finish0(stop)`, llm.Caps{},
		},
		{
			"calls: no index, IDs", []string{piece(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]`), piece(`"tool_calls":[{"function":{"arguments":"}"}}]`), piece(`"tool_calls":[{"id":"b","function":{"name":"f"}}]`), finished, done},
			`start() 0:call(a f) 0.0+{} 1:call(b f) 1.0+{} 0. 1. finish0(calls)`, llm.Caps{},
		},
		{
			"calls: index always 0, no IDs", []string{`{"id":"i","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":0,"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"stop"}]}`, done},
			`start() 0:call(call_` + hash("i[0 0]")[:24] + ` f) 0.0+{} 1:call(call_` + hash("i[0 1]")[:24] + ` g) 1.0+{} 0. 1. finish0(calls)`, llm.Caps{},
		},
		{
			"calls: the name comes late, the ID too", []string{piece(`"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`), finished, done},
			`start() 0:call(a f) 0.0+{"a":1} 0. finish0(calls)`, llm.Caps{},
		},
		{
			"calls: arguments as object, as null, and all over again", []string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"a": 1}}},{"index":1,"id":"b","function":{"name":"g","arguments":null}}]`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}]`), finished, done},
			`start() 0:call(a f) 0.0+{"a":1} 1:call(b g) 1.0+{} 0. 1. finish0(calls)`, llm.Caps{},
		},
		{
			"calls: a half one stays half", []string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}]`), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, done},
			`start() 0:call(a f) 0.0+{"a" 0. finish0(length)`, llm.Caps{},
		},
		{
			"calls: custom, of the old form, and signed", []string{piece(`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"p","input":"i"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}]`), finished, done},
			`start() 0:call(a p) 0.0+i 1:call(b f) google:3:"S" 1.0+{} 0. 1. finish0(calls)`, llm.Caps{},
		},
		{
			"the old form", []string{`{"id":"i","choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}`, piece(`"function_call":{"arguments":"{}"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`, done},
			`start() 0:call(call_` + hash("i[0 0]")[:24] + ` f) 0.0+{} 0. finish0(calls)`, llm.Caps{},
		},
		{
			"text after a call", []string{piece(`"content":"x"`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), piece(`"content":"y"`), finished, done},
			`start() 0:text 0.0+x 0. 1:call(a f) 1.0+{} 2:text 2.0+y 1. 2. finish0(calls)`, llm.Caps{},
		},
		{
			"two choices", []string{`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, finished, `{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`},
			`start() 0:text@1 0.0+b 1:text 1.0+a 1. finish0(stop) 0. finish1(length)`, llm.Caps{},
		},
		{
			"the first finish counts, usage may follow", []string{piece(`"content":"x"`), finished, `{"choices":[{"index":0,"delta":{"content":"late"},"finish_reason":"length","usage":{"prompt_tokens":1,"completion_tokens":2}}]}`, done},
			`start() 0:text 0.0+x 0. finish0(stop) used(1+0+0 2+0)`, llm.Caps{},
		},
		{
			"done without a finish", []string{piece(`"content":"x"`), done},
			`start() 0:text 0.0+x note(assume:finish_reason) 0. finish0(stop)`, llm.Caps{},
		},
		{
			"calls that are none", []string{piece(`"content":"x"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, done},
			`start() 0:text 0.0+x 0. note(assume:finish_reason) finish0(stop)`, llm.Caps{},
		},
		{
			"words of servers", []string{`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"MODEL_LENGTH"}]}`, `{"choices":[{"index":1,"delta":{},"finish_reason":"sensitive"}]}`, `{"choices":[{"index":2,"delta":{},"finish_reason":"oops"}]}`, `{"choices":[{"index":3,"delta":{},"finish_reason":"halt","stop_reason":"E"}]}`, done},
			`start() 0:text 0.0+x 0. finish0(length) finish1(filter) note(assume:finish_reason) finish2(stop) finish3(stopE)`, llm.Caps{Chat: llm.ChatCaps{Finish: [][2]string{{"halt", "stop"}}}},
		},
		{
			"usage at Groq, with the cached", []string{piece(`"content":"x"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":"2","prompt_cache_hit_tokens":3}}}`, done},
			`start() 0:text 0.0+x 0. finish0(stop) used(2+3+0 2+0)`, llm.Caps{},
		},
		{
			"reasoning beside the completion", []string{piece(`"content":"x"`), finished, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":7}}}`, done},
			`start() 0:text 0.0+x 0. finish0(stop) used(5+0+0 2+7)`, llm.Caps{Chat: llm.ChatCaps{ReasoningApart: true}},
		},
		{
			"calls: one ID for two", []string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), piece(`"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{"}}]`), piece(`"tool_calls":[{"index":1,"id":"a","function":{"arguments":"}"}}]`), finished, done},
			`start() 0:call(a f) 0.0+{} 1:call(call_` + hash("[0 1]")[:24] + ` f) 1.0+{} 0. 1. finish0(calls)`, llm.Caps{},
		},
		{
			"tags", []string{piece(`"content":"\n<think>a"`), piece(`"content":"b</think>\n\nx"`), piece(`"content":" <think>y"`), finished, done},
			`start() 0:think 0.0+ab 0. 1:text 1.0+x <think>y 1. finish0(stop)`, tagged,
		},
		{
			"tags, one byte after the other", append(bytewise(`<think>a</thin</think> x</think>`), finished, done),
			`start() 0:think 0.0+a</thin 0. 1:text 1.0+x</think> 1. finish0(stop)`, tagged,
		},
		{
			"tags that are written otherwise", []string{piece(`"content":"\u003cthink\u003ea\u003c/think\u003ex"`), finished, done},
			`start() 0:think 0.0+a 0. 1:text 1.0+x 1. finish0(stop)`, tagged,
		},
		{
			"tags that are none", []string{piece(`"content":" <thin"`), piece(`"content":"g>"`), piece(`"content":"<think>"`), finished, done},
			`start() 0:text 0.0+ <thing><think> 0. finish0(stop)`, tagged,
		},
		{
			"tags that do not end", []string{piece(`"content":"<think>a</th"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, done},
			`start() 0:think 0.0+a</th 0. finish0(length)`, tagged,
		},
		{
			"the beginning of a tag is all", []string{piece(`"content":"<th"`), finished, done},
			`start() 0:text 0.0+<th 0. finish0(stop)`, tagged,
		},
		{
			"tags, then a call", []string{piece(`"content":"<think>a</think>\n"`), piece(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), finished, done},
			`start() 0:think 0.0+a 0. 1:call(a f) 1.0+{} 1. finish0(calls)`, tagged,
		},
		{
			"tags at a server that has none", []string{piece(`"content":"<think>a</think>x"`), finished, done},
			`start() 0:text 0.0+<think>a</think>x 0. finish0(stop)`, llm.Caps{},
		},
		{
			"snapshots", []string{piece(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"}]`), piece(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a\"b"}]`),
				piece(`"content":"x","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a\"b"}]`), finished, done},
			`start() 0:think 0.0+a"b 0. 1:text 1.0+x 1. finish0(stop)`, llm.Caps{Chat: llm.ChatCaps{Snapshots: true}},
		},
		{
			"pieces at a server of snapshots", []string{piece(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"}]`), piece(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"b"}]`), piece(`"content":"x"`), finished, done},
			`start() 0:think 0.0+ab 0. 1:text 1.0+x 1. finish0(stop)`, llm.Caps{Chat: llm.ChatCaps{Snapshots: true}},
		},
		{
			"details of one ID", []string{piece(`"reasoning_details":[{"type":"reasoning.summary","summary":"s","id":"rs","format":"openai-responses-v1","index":0}]`),
				piece(`"reasoning_details":[{"type":"reasoning.encrypted","data":"E","id":"rs","format":"openai-responses-v1","index":1}]`), piece(`"content":"x"`), finished, done},
			`start() 0:think 0.0+summary:s 0+seal(openai:2:"E") 0. 1:text 1.0+x 1. finish0(stop)`, llm.Caps{},
		},
		{
			"what belongs to a text", []string{`{"choices":[{"index":0,"delta":{"content":"xy"},"logprobs":{"content":[{"token":"xy"}]}}]}`, piece(`"annotations":[{"type":"url_citation","url_citation":{"url":"u","start_index":0,"end_index":1}}],"images":[{"image_url":{"url":"data:image/png;base64,AA"}}],"audio":{"data":"BB"}`), finished, done},
			`start() 0:text 0.0+xy 0+logprobs(1) 0.0+audio:BB 0+picture(image/png) 0+cite(u 0-1) 0. finish0(stop)`, llm.Caps{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := decode(&c.caps, c.data...)
			if err != nil {
				t.Fatal(err)
			}
			if got := shownEvents(events); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if err := dialecttest.Check(events, true); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDecodeStreamFails(t *testing.T) {
	for _, c := range []struct {
		name string
		data []string
		kind llm.Kind
	}{
		{"cut", []string{piece(`"content":"x"`)}, llm.UpstreamTruncated},
		{"one of two choices is cut", []string{`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{"content":"b"}}]}`}, llm.UpstreamTruncated},
		{"nothing", nil, llm.UpstreamTruncated},
		{"done with nothing", []string{done}, llm.UpstreamTruncated},
		{"no JSON", []string{`{"choices":[`}, llm.UpstreamInvalid},
		{"an error", []string{piece(`"content":"x"`), `{"error":{"message":"m","code":"server_error"}}`}, llm.Upstream},
		{"an error beside choices", []string{`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":503,"message":"m"}}`}, llm.Overloaded},
		{"a failure as the reason", []string{piece(`"content":"x"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}`}, llm.Upstream},
		{"a call without a name", []string{piece(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]`), finished}, llm.UpstreamInvalid},
	} {
		events, err := decode(&llm.Caps{}, c.data...)
		if err == nil || llm.AsError(err).Kind != c.kind {
			t.Errorf("%s: got %v, want %s", c.name, err, c.kind)
		}
		if err := dialecttest.Check(events, false); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestDecodeWhole(t *testing.T) {
	body := `{"id":"i","created":5,"model":"m","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}],"content":"x","reasoning_content":"t"},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	events, err := Upstream{}.Answers(&dialect.Call{}, &llm.Caps{}).Whole(nil, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shownEvents(events), `start(m) 0:think 0.0+t 0. 1:text 1.0+x 1. 2:call(a f) 2.0+{} 2. finish0(calls) used(1+0+0 2+0)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		body, want string
	}{
		{`{"error":{"code":429,"message":"slow"}}`, "rate_limited slow"},
		{`{"error":"gone","code":"rate_limit_exceeded"}`, "rate_limited gone"},
		{`{"error":{"message":"m","type":"invalid_request_error","param":"seed"}}`, "invalid m"},
		{`{"error":{"message":"This model's maximum context length is 5","type":"invalid_request_error"}}`, "invalid This model's maximum context length is 5"},
		{`{"error":{"message":"secret","code":"invalid_api_key"}}`, "upstream_auth The upstream refused the gateway's credential. Your own key is fine; tell the operator."},
		{`{"error":{"message":"pay","code":"insufficient_quota"}}`, "upstream_quota The upstream account of this gateway has no quota left. Your own key is fine; tell the operator."},
		{`{"error":{"message":"pay","code":"1113"}}`, "upstream_quota The upstream account of this gateway has no quota left. Your own key is fine; tell the operator."},
		{`{"object":"error","message":"m","code":400}`, "invalid m"},
		{`{"detail":[{"msg":"a"},{"msg":"b"}]}`, "upstream a; b"},
		{`{"message":"m","code":"x"}`, "upstream m"},
		{`{"base_resp":{"status_code":1002,"status_msg":"slow"},"choices":null}`, "rate_limited slow"},
		{`{"base_resp":{"status_code":0},"choices":[]}`, "upstream_invalid The upstream's answer could not be read."},
		{`{"choices":[]}`, "upstream_invalid The upstream's answer could not be read."},
		{`<html>`, "upstream_invalid The upstream's answer could not be read."},
	} {
		_, err := Upstream{}.Answers(&dialect.Call{}, &llm.Caps{}).Whole(nil, []byte(c.body))
		if e := llm.AsError(err); err == nil || e.Kind.String()+" "+e.Message != c.want {
			t.Errorf("%s: got %s %s, want %s", c.body, e.Kind, e.Message, c.want)
		}
	}
}

func TestFailed(t *testing.T) {
	e := Upstream{}.Failed(http.StatusTooManyRequests, []byte(`{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`), 7*time.Second)
	if e.Kind != llm.RateLimited || e.Message != "Rate limit reached" || e.RetryAfter != 7*time.Second {
		t.Errorf("got %+v", e)
	}
	if e = (Upstream{}).Failed(http.StatusBadGateway, []byte("<html>"), 0); e.Kind != llm.Upstream || !strings.Contains(e.Message, "502") {
		t.Errorf("got %+v", e)
	}
	if e = (Upstream{}).Failed(http.StatusUnprocessableEntity, []byte(`{"detail":[{"msg":"Extra inputs"}]}`), 0); e.Kind != llm.Invalid || e.Message != "Extra inputs" {
		t.Errorf("got %+v", e)
	}
}
