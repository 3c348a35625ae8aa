package openairesponses

import (
	"bytes"
	"encoding/json"
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
// gets before any failure, the failure, and the usage (of a request of 400
// bytes).
func follow(f dialect.Follower, src io.Reader) (out []byte, usage llm.Usage, failure error) {
	for frame, err := range sse.All(src, 1<<20) {
		if err != nil {
			return out, f.Usage(400), err
		}
		if len(frame.Data) == 0 {
			continue
		}
		var pass bool
		if out, pass, err = f.Frame(out, frame); err != nil {
			return out, f.Usage(400), err
		}
		if pass {
			out = append(out, frame.Raw...)
		}
		if f.Done() {
			return out, f.Usage(400), nil
		}
	}
	out, err := f.End(out)
	return out, f.Usage(400), err
}

func newFollower() dialect.Follower { return Dialect{}.Follow(&dialect.Request{Stream: true}) }

// outcome is what the client gets, with the kind of a failure at its end in
// place of its frames.
func outcome(out []byte, failure error) string {
	if failure == nil {
		return string(out)
	}
	return string(out) + "! " + llm.AsError(failure).Kind.String()
}

// frame is an event with its name and number.
func frame(number int, kind, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, number, members)
}

const (
	fullUsage = `{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}`
	message   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hé\nllo","annotations":[],"logprobs":[]}]}`
	place     = `"item_id":"msg_1","output_index":0,"content_index":0,`
	done1     = "data: [DONE]\n\n"
)

// response is a response object.
func response(status, output, usage string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":7,"status":%q,"error":null,"model":"m","output":[%s],"usage":%s,"x":12345678901234567890}`, status, output, usage)
}

// opening is the beginning of a stream, opened the events of one message, and
// completed the end.
var (
	opening = frame(0, "response.created", `"response":`+response("in_progress", "", "null")) + frame(1, "response.in_progress", `"response":`+response("in_progress", "", "null"))
	opened  = opening +
		frame(2, "response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
		frame(3, "response.content_part.added", place+`"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`) +
		frame(4, "response.output_text.delta", place+`"delta":"hé\n","logprobs":[],"obfuscation":"x"`) +
		frame(5, "response.output_text.delta", place+`"delta":"llo","logprobs":[]`)
	finished = opened +
		frame(6, "response.output_text.done", place+`"text":"hé\nllo","logprobs":[]`) +
		frame(7, "response.content_part.done", place+`"part":{"type":"output_text","text":"hé\nllo","annotations":[],"logprobs":[]}`) +
		frame(8, "response.output_item.done", `"output_index":0,"item":`+message)
	completed = frame(9, "response.completed", `"response":`+response("completed", message, fullUsage))
	whole     = finished + completed
)

// unnamed takes the names off frames.
func unnamed(stream string) string {
	var lines []string
	for line := range strings.Lines(stream) {
		if !strings.HasPrefix(line, "event: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// streams are what upstreams send, and what clients are to get of it.
var streams = []struct{ name, in, want string }{
	{"canonical", whole, whole + done1},
	{"canonical with an end", whole + done1, whole + done1},
	{"canonical, then more", whole + whole + "garbage", whole + done1},
	{
		"canonical, incomplete",
		finished + frame(9, "response.incomplete", `"response":`+response("incomplete", message, fullUsage)),
		finished + frame(9, "response.incomplete", `"response":`+response("incomplete", message, fullUsage)) + done1,
	},
	{"canonical, unknown event", opening + frame(2, "response.new_thing", `"x":1e400`) + completed, opening + frame(2, "response.new_thing", `"x":1e400`) + completed + done1},
	{"canonical, queued", frame(0, "response.queued", `"response":`+response("queued", "", "null")) + completed, frame(0, "response.queued", `"response":`+response("queued", "", "null")) + completed + done1},

	// Frames.
	{"no names", unnamed(whole), whole + done1},
	{"other names", strings.ReplaceAll(whole, "event: response.", "event: "), whole + done1},
	{"other line ends, comments, fields", ": hi\r\n\r\nretry: 1\r\n\r\n" + strings.ReplaceAll(whole, "\n", "\r\n"), whole + done1},
	{"several lines", strings.ReplaceAll(whole, `,"sequence_number"`, ",\ndata: \"sequence_number\""), whole + done1},
	{"no empty line at the end", strings.TrimRight(whole, "\n"), whole + done1},
	{"null error", strings.ReplaceAll(whole, `"output_index":0,`, `"output_index":0,"error":null,`), whole + done1},

	// The end.
	{"no usage", strings.Replace(whole, `"usage":`+fullUsage+`,`, ``, 1), strings.Replace(whole, `"usage":`+fullUsage+`,"x":12345678901234567890`, `"x":12345678901234567890,"usage":`+estimated, 1) + done1},
	{"null usage", strings.Replace(whole, fullUsage, `null`, 1), strings.Replace(whole, fullUsage, estimated, 1) + done1},
	{"empty usage", strings.Replace(whole, fullUsage, `{}`, 1), strings.Replace(whole, fullUsage, estimated, 1) + done1},
	{"cut", finished, finished + "! upstream_truncated"},
	{"cut in a frame", opened + completed[:100], opened + "! upstream_invalid"},
	{"end before the terminal event", finished + done1, finished + "! upstream_truncated"},
	{"end alone", done1, "! upstream_truncated"},
	{"nothing", "", "! upstream_truncated"},
	{"comments alone", ": a\n\n: b\n\n", "! upstream_truncated"},

	// Failures.
	{"error, flat", opened + frame(6, "error", `"code":"rate_limit_exceeded","message":"m","param":null`), opened + "! rate_limited"},
	{"error, nested", opened + frame(6, "error", `"error":{"type":"x","code":"rate_limit_exceeded","message":"m","param":null}`), opened + "! rate_limited"},
	{"error, both", opened + frame(6, "error", `"code":"c","message":"m","error":{"code":"rate_limit_exceeded","message":"m"}`), opened + "! rate_limited"},
	{"error without a type", opened + "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}\n\n", opened + "! rate_limited"},
	{"error as text without a type", opened + "data: {\"error\":\"m\"}\n\n", opened + "! upstream"},
	{"failed", opened + frame(6, "response.failed", `"response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"m"},"output":[]}`), opened + "! invalid"},
	{"failed without an error", opened + frame(6, "response.failed", `"response":{"id":"resp_1","status":"failed","error":null}`), opened + "! upstream"},
	{"failed without a response", opened + frame(6, "response.failed", `"x":1`), opened + "! upstream"},
	{"no JSON", opened + "data: oops\n\n", opened + "! upstream_invalid"},
	{"no object", opened + "data: []\n\n", opened + "! upstream_invalid"},
	{"no type", opened + "data: {\"delta\":\"x\"}\n\n", opened + "! upstream_invalid"},
	{"empty type", opened + "data: {\"type\":\"\"}\n\n", opened + "! upstream_invalid"},
	{"type that is no name", opened + "data: {\"type\":\"\\n\"}\n\n", opened + "! upstream_invalid"},
	{"chunks of the other dialect", "data: {\"id\":\"c\",\"choices\":[]}\n\n", "! upstream_invalid"},
}

// estimated is the usage that an upstream did not tell: an event is a token.
const estimated = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":6}`

func TestFollow(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			out, usage, err := follow(newFollower(), strings.NewReader(tt.in))
			got := outcome(out, err)
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if strings.Contains(tt.in, fullUsage) && !strings.Contains(tt.want, "!") && usage != (llm.Usage{Input: 6, CacheRead: 4, Output: 3, Reasoning: 2}) {
				t.Errorf("usage is %+v", usage)
			}
			// However the network cuts it, it stays the same.
			sources := []io.Reader{iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))}
			for i := range tt.in {
				sources = append(sources, io.MultiReader(strings.NewReader(tt.in[:i]), strings.NewReader(tt.in[i:])))
			}
			for i, src := range sources {
				if again, usageAgain, err := follow(newFollower(), src); outcome(again, err) != got || usageAgain != usage {
					t.Fatalf("cut %d:\n%s\nwhole:\n%s", i-2, outcome(again, err), got)
				}
			}
		})
	}
}

// The test's own stream keeps the rules, or it could not show that they are
// kept.
func TestCanonicalStream(t *testing.T) { checkStream(t, []byte(whole+done1)) }

// Codex repeats a call six times over a usage that lacks a member.
func TestTerminalUsageIsWhole(t *testing.T) {
	for _, sent := range []string{
		`{"input_tokens":10,"output_tokens":5}`,
		`{"input_tokens":10,"output_tokens":5,"total_tokens":15,"input_tokens_details":{},"output_tokens_details":{}}`,
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`,
	} {
		out, _, err := follow(newFollower(), strings.NewReader(strings.Replace(whole, fullUsage, sent, 1)))
		if err != nil {
			t.Fatal(err)
		}
		const want = `"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}`
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: the terminal event is %s", sent, out[bytes.LastIndex(out, []byte("event:")):])
		}
	}
}

// The items are the truth: a terminal event that does not repeat them is left
// alone.
func TestEmptyTerminalOutputPasses(t *testing.T) {
	in := finished + frame(9, "response.completed", `"response":`+response("completed", "", fullUsage))
	out, _, err := follow(newFollower(), strings.NewReader(in))
	if got := outcome(out, err); got != in+done1 {
		t.Errorf("got\n%s\nwant\n%s", got, in+done1)
	}
}

func TestFollowUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want llm.Usage
	}{
		"reported":        {whole, llm.Usage{Input: 6, CacheRead: 4, Output: 3, Reasoning: 2}},
		"none, estimated": {strings.Replace(whole, fullUsage, "null", 1), llm.Usage{Input: 100, Output: 6, Estimated: true}},
		"cut":             {opened, llm.Usage{Input: 100, Output: 4, Estimated: true}},
		"nothing came":    {"", llm.Usage{Input: 100, Estimated: true}},
	} {
		if _, got, _ := follow(newFollower(), strings.NewReader(tt.in)); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// A failure is told twice, an error event and a failed response, since some
// clients heed only the one and some only the other.
func TestFail(t *testing.T) {
	for name, tt := range map[string]struct{ in, passed, output string }{
		"cut":                        {finished, finished, message},
		"cut early":                  {opened, opened, ""},
		"at once":                    {"", "", ""},
		"no numbers":                 {unnumbered(opening), "", ""}, // it gets some
		"the upstream's error":       {opened + frame(6, "error", `"message":"m"`), opened, ""},
		"the upstream failed":        {finished + frame(9, "response.failed", `"response":{"status":"failed","error":null}`), finished, message},
		"error, then failed":         {opened + frame(6, "error", `"message":"m"`) + frame(7, "response.failed", `"response":{}`), opened, ""},
		"items over several lines":   {opening + "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":2,\"item\":{\ndata: \"id\":\"a\"\ndata: }}\n\n", "", `{"id":"a"}`},
		"end before terminal events": {finished + done1, finished, message},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollower()
			out, _, err := follow(f, strings.NewReader(tt.in))
			if err == nil {
				t.Fatal("the stream did not fail")
			}
			if tt.passed != "" && string(out) != tt.passed {
				t.Fatalf("passed is\n%s", out)
			}
			e := &llm.Error{Kind: llm.RateLimited, Message: "wait \"a\"\nbit", Param: "p", Err: errors.New("canary")}
			out = f.Fail(out, e)
			if !f.Done() {
				t.Error("a failed stream goes on")
			}
			checkFailure(t, out, tt.output)
		})
	}
}

// unnumbered takes the numbers off events.
func unnumbered(stream string) string {
	for i := range 10 {
		stream = strings.ReplaceAll(stream, fmt.Sprintf(`"sequence_number":%d,`, i), "")
	}
	return stream
}

func checkFailure(t *testing.T, stream []byte, output string) {
	t.Helper()
	if bytes.Contains(stream, []byte("canary")) {
		t.Error("the cause is shown")
	}
	var names, data []string
	for f, err := range sse.All(bytes.NewReader(stream), 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		if !f.Canonical {
			t.Errorf("no frame of the contract: %q", f.Raw)
		}
		names, data = append(names, string(f.Event)), append(data, string(f.Data))
	}
	n := len(names)
	if n < 3 || names[n-3] != "error" || names[n-2] != "response.failed" || names[n-1] != "" || data[n-1] != "[DONE]" {
		t.Fatalf("the stream ends with %q", names)
	}
	for i, d := range data[:n-1] {
		var e struct {
			Type     string
			Sequence *int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		if e.Type != names[i] || e.Sequence != nil && *e.Sequence != i {
			t.Errorf("event %d is %q with number %d: %s", i, e.Type, *e.Sequence, d)
		}
	}
	var event struct {
		Code, Message, Param string
		Error                struct{ Type, Code, Message, Param string }
	}
	if err := json.Unmarshal([]byte(data[n-3]), &event); err != nil {
		t.Fatal(err)
	}
	if event.Code != "rate_limit_exceeded" || event.Message != "wait \"a\"\nbit" || event.Param != "p" ||
		event.Error.Type != "rate_limit_error" || event.Error.Code != event.Code || event.Error.Message != event.Message || event.Error.Param != "p" {
		t.Errorf("error event is %s", data[n-3])
	}
	var failed struct {
		Response struct {
			ID, Object, Status, Model string
			CreatedAt                 int64 `json:"created_at"`
			Error                     struct{ Code, Message string }
			Output                    []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(data[n-2]), &failed); err != nil {
		t.Fatal(err)
	}
	r := failed.Response
	if r.Object != "response" || r.Status != "failed" || r.Error.Code != "rate_limit_exceeded" || r.Error.Message != event.Message || r.CreatedAt == 0 || r.Output == nil {
		t.Errorf("failed response is %s", data[n-2])
	}
	if begun := n > 3; begun && (r.ID != "resp_1" || r.Model != "m" || r.CreatedAt != 7) || r.ID == "" {
		t.Errorf("failed response is of another call: %s", data[n-2])
	}
	var items []string
	for _, o := range r.Output {
		items = append(items, string(o))
	}
	if got := strings.Join(items, ","); got != output {
		t.Errorf("output is %s, want %s", got, output)
	}
}

// Agents repeat a call on server_error and on codes that they do not know.
func TestFailedCodes(t *testing.T) {
	for _, tt := range []struct {
		e    llm.Error
		want string
	}{
		{llm.Error{Kind: llm.Upstream}, "server_error"},
		{llm.Error{Kind: llm.UpstreamTruncated}, "server_error"},
		{llm.Error{Kind: llm.UpstreamAuth}, "server_error"},
		{llm.Error{Kind: llm.Internal}, "server_error"},
		{llm.Error{Kind: llm.RateLimited}, "rate_limit_exceeded"},
		{llm.Error{Kind: llm.Overloaded}, "server_is_overloaded"},
		{llm.Error{Kind: llm.UpstreamQuota}, "insufficient_quota"},
		{llm.Error{Kind: llm.Invalid}, "invalid_prompt"},
		{llm.Error{Kind: llm.Invalid, Code: "unknown_word"}, "invalid_prompt"},
		{llm.Error{Kind: llm.Invalid, Code: "context_length_exceeded"}, "context_length_exceeded"},
		{llm.Error{Kind: llm.Invalid, Code: "cyber_policy"}, "cyber_policy"},
	} {
		out := newFollower().Fail(nil, &tt.e)
		if want := `"error":{"code":"` + tt.want + `"`; !strings.Contains(string(out), want) {
			t.Errorf("%s %q: no %s in\n%s", tt.e.Kind, tt.e.Code, want, out)
		}
	}
}

// What is kept for a failure is bounded.
func TestFailKeepsLittle(t *testing.T) {
	f := newFollower()
	item := `{"id":"a","text":"` + strings.Repeat("x", 10_000) + `"}`
	stream := strings.Repeat(frame(0, "response.output_item.done", `"item":`+item), 100)
	follow(f, strings.NewReader(stream))
	if n := len(f.Fail(nil, llm.Errorf(llm.Upstream, "m"))); n > maxOutput+4096 {
		t.Errorf("a failure has %d bytes", n)
	}
}

func TestBegun(t *testing.T) {
	f := newFollower()
	if f.Begun() || f.Done() {
		t.Error("begun or done before anything came")
	}
	follow(f, strings.NewReader(opening))
	if !f.Begun() || f.Done() {
		t.Errorf("after the opening: begun %v, done %v", f.Begun(), f.Done())
	}
}

func FuzzFollowResponses(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.in), uint16(len(tt.in)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		first := newFollower()
		out, usage, err := follow(first, bytes.NewReader(in))
		at := min(int(cut), len(in))
		again, usageAgain, errAgain := follow(newFollower(), io.MultiReader(bytes.NewReader(in[:at]), bytes.NewReader(in[at:])))
		if outcome(out, err) != outcome(again, errAgain) || usage != usageAgain {
			t.Errorf("cut at %d:\n%s\nwhole:\n%s", at, outcome(again, errAgain), outcome(out, err))
		}
		if err != nil {
			out = first.Fail(out, llm.AsError(err))
		}
		ends := 0
		for frame, err := range sse.All(bytes.NewReader(out), 1<<22) {
			if err != nil {
				t.Fatal(err)
			}
			if ends > 0 {
				t.Errorf("the stream goes on after its end:\n%s", out)
			}
			if string(frame.Data) == "[DONE]" {
				ends++
			} else if !json.Valid(frame.Data) || frame.Event == nil {
				t.Errorf("no event of the contract: %q", frame.Raw)
			}
		}
		if ends != 1 {
			t.Errorf("the stream has %d ends:\n%s", ends, out)
		}
	})
}
