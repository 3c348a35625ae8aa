package openaichat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
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

// frames makes a stream of data.
func frames(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// outcome is what the client gets, with the kind of a failure at its end in
// place of its frames.
func outcome(out []byte, failure error) string {
	if failure == nil {
		return string(out)
	}
	return string(out) + "! " + llm.AsError(failure).Kind.String()
}

const head = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",`

// chunk is a chunk of the contract with one choice.
func chunk(delta, finish string) string {
	return head + `"choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}`
}

// with adds a member to a chunk.
func with(chunk, member string) string { return strings.TrimSuffix(chunk, "}") + "," + member + "}" }

// calls is a chunk with fragments of tool calls.
func calls(fragments string) string { return chunk(`{"tool_calls":[`+fragments+`]}`, "null") }

const (
	counts = `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
	usage  = head + `"choices":[],"usage":` + counts + `}`
	end    = "[DONE]"
)

var (
	hello     = chunk(`{"role":"assistant","content":"hé","refusal":null}`, "null")
	world     = chunk(`{"content":" wörld\n"}`, "null")
	stop      = chunk(`{}`, `"stop"`)
	callsStop = chunk(`{}`, `"tool_calls"`)
	begin     = chunk(`{"role":"assistant","content":null}`, "null")
)

// streams are what upstreams send, and what clients are to get of it.
var streams = []struct {
	name       string
	in         string
	wantsUsage bool
	want       string
}{
	{"canonical", frames(hello, world, stop, end), false, frames(hello, world, stop, end)},
	{"canonical with usage", frames(hello, stop, usage, end), true, frames(hello, stop, usage, end)},
	{"canonical, null usage in all", frames(with(hello, `"usage":null`), with(stop, `"usage":null`), usage, end), true, frames(with(hello, `"usage":null`), with(stop, `"usage":null`), usage, end)},
	{
		"canonical, unknown members and numbers",
		frames(with(hello, `"x":{"a":1e400,"b":[12345678901234567890]},"obfuscation":"aB"`), with(stop, `"service_tier":"default"`), end), false,
		frames(with(hello, `"x":{"a":1e400,"b":[12345678901234567890]},"obfuscation":"aB"`), with(stop, `"service_tier":"default"`), end),
	},
	{"canonical, a chunk before all choices", frames(head+`"choices":[],"prompt_filter_results":[]}`, hello, stop, end), false, frames(head+`"choices":[],"prompt_filter_results":[]}`, hello, stop, end)},
	{
		"canonical, two choices",
		frames(hello, strings.Replace(hello, `"index":0`, `"index":1`, 1), stop, strings.Replace(stop, `"index":0`, `"index":1`, 1), end), false,
		frames(hello, strings.Replace(hello, `"index":0`, `"index":1`, 1), stop, strings.Replace(stop, `"index":0`, `"index":1`, 1), end),
	},
	{
		"canonical, two parallel calls",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"x\":"}}`),
			calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}`), calls(`{"index":0,"function":{"arguments":"1}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"x\":"}}`),
			calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}`), calls(`{"index":0,"function":{"arguments":"1}"}}`), callsStop, end),
	},
	{
		"canonical, a custom call",
		frames(begin, calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":""}}`), calls(`{"index":0,"custom":{"input":"x"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":""}}`), calls(`{"index":0,"custom":{"input":"x"}}`), callsStop, end),
	},
	{"what follows the end", frames(hello, stop, end, hello, "garbage"), false, frames(hello, stop, end)},

	// Frames.
	{"other line ends, comments, fields", "\ufeff: hi\r\n\r\nid: 1\r\ndata:" + hello + "\r\n\r\nretry: 3\n\n: ping\n\ndata:  " + stop + "\n\ndata:[DONE]\n\n", false, frames(hello, " "+stop, end)},
	{"several lines", "data: " + strings.Replace(hello, `"choices"`, "\ndata: \"choices\"", 1) + "\n\n" + frames(stop, end), false, frames(hello, stop, end)},
	{"no empty line at the end", frames(hello, stop) + "data: [DONE]", false, frames(hello, stop, end)},
	{"finish without an empty line, then nothing", frames(hello) + "data: " + stop, false, frames(hello, stop, end)},
	{"event names", "event: message\ndata: " + hello + "\n\nevent: message\ndata: " + stop + "\n\n" + frames(end), false, frames(hello, stop, end)},
	{"space behind the end", frames(hello, stop, "[DONE] "), false, frames(hello, stop, end)},

	// Usage.
	{"usage that was not asked for", frames(hello, stop, usage, end), false, frames(hello, stop, end)},
	{"usage in every chunk", frames(with(hello, `"usage":{"prompt_tokens":10,"completion_tokens":1}`), with(world, `"usage":{"prompt_tokens":10,"completion_tokens":3}`), with(stop, `"usage":`+counts), end), true, frames(hello, world, stop, usage, end)},
	{"usage in every chunk, not asked for", frames(with(hello, `"usage":{"prompt_tokens":10,"completion_tokens":1}`), with(stop, `"usage":`+counts), end), false, frames(hello, stop, end)},
	{"usage in the finish", frames(hello, with(stop, `"usage":`+counts), end), true, frames(hello, stop, usage, end)},
	{"usage in the finish and alone", frames(hello, with(stop, `"usage":`+counts), usage, end), true, frames(hello, stop, usage, end)},
	{"usage twice", frames(hello, stop, usage, usage, end), true, frames(hello, stop, usage, end)},
	{"usage without an end", frames(hello, stop, usage), true, frames(hello, stop, usage, end)},
	{"usage with null choices", frames(hello, stop, strings.Replace(usage, "[]", "null", 1), end), true, frames(hello, stop, usage, end)},
	{"usage without choices", frames(hello, stop, head+`"usage":`+counts+`}`, end), true, frames(hello, stop, head+`"usage":`+counts+`,"choices":[]}`, end)},
	{"usage by another name", frames(hello, with(stop, `"x_groq":{"usage":`+counts+`}`), end), true, frames(hello, with(stop, `"x_groq":{"usage":`+counts+`}`), usage, end)},
	{"usage in a choice", frames(hello, strings.Replace(stop, `"delta"`, `"usage":`+counts+`,"delta"`, 1), end), true, frames(hello, strings.Replace(stop, `"delta"`, `"usage":`+counts+`,"delta"`, 1), usage, end)},
	{"no usage though asked for", frames(hello, stop, end), true, frames(hello, stop, end)},
	{"usage on several lines", frames(hello) + "data: " + strings.TrimSuffix(stop, "}") + ",\ndata: \"usage\":{\ndata: \"prompt_tokens\":10,\ndata: \"completion_tokens\":5,\"total_tokens\":15}}\n\n" + frames(end), true, frames(hello, stop, usage, end)},

	// Heads and deltas.
	{"null error", frames(strings.Replace(hello, `"id"`, `"error":null,"id"`, 1), with(stop, `"error": null`), end), false, frames(hello, stop, end)},
	{"null choices", frames(head+`"choices":null}`, hello, stop, end), false, frames(head+`"choices":[]}`, hello, stop, end)},
	{"no role", frames(world, stop, end), false, frames(chunk(`{"content":" wörld\n","role":"assistant"}`, "null"), stop, end)},
	{"empty role", frames(chunk(`{"role":"","content":"a"}`, "null"), stop, end), false, frames(chunk(`{"role":"assistant","content":"a"}`, "null"), stop, end)},
	{"null role", frames(chunk(`{"role":null,"content":"a"}`, "null"), stop, end), false, frames(chunk(`{"role":"assistant","content":"a"}`, "null"), stop, end)},
	{"role again", frames(hello, hello, stop, end), false, frames(hello, hello, stop, end)},
	{"no role of the second choice", frames(hello, strings.Replace(world, `"index":0`, `"index":1`, 1), stop, end), false, frames(hello, strings.Replace(chunk(`{"content":" wörld\n","role":"assistant"}`, "null"), `"index":0`, `"index":1`, 1), stop, end)},
	{"no ID later", frames(hello, strings.Replace(stop, `"id":"c",`, ``, 1), end), false, frames(hello, with(strings.Replace(stop, `"id":"c",`, ``, 1), `"id":"c"`), end)},
	{"another ID later", frames(hello, strings.Replace(stop, `"c"`, `"d"`, 1), strings.Replace(usage, `"c"`, `""`, 1), end), true, frames(hello, stop, usage, end)},
	{"empty ID first", frames(strings.Replace(begin, `"c"`, `""`, 1), world, stop, end), false, frames(strings.Replace(begin, `"c"`, `""`, 1), world, stop, end)},
	{"null ID first", frames(strings.Replace(begin, `"c"`, `null`, 1), world, stop, end), false, frames(strings.Replace(begin, `"c"`, `null`, 1), world, stop, end)},

	// Finish.
	{"empty finish", frames(chunk(`{"role":"assistant","content":"a"}`, `""`), stop, end), false, frames(chunk(`{"role":"assistant","content":"a"}`, `null`), stop, end)},
	{"finish in the words of others", frames(hello, chunk(`{}`, `"eos"`), end), false, frames(hello, stop, end)},
	{"end_turn", frames(hello, chunk(`{}`, `"end_turn"`), end), false, frames(hello, stop, end)},
	{"STOP", frames(hello, chunk(`{}`, `"STOP"`), end), false, frames(hello, stop, end)},
	{"max_tokens", frames(hello, chunk(`{}`, `"max_tokens"`), end), false, frames(hello, chunk(`{}`, `"length"`), end)},
	{"MAX_TOKENS", frames(hello, chunk(`{}`, `"MAX_TOKENS"`), end), false, frames(hello, chunk(`{}`, `"length"`), end)},
	{"LENGTH", frames(hello, chunk(`{}`, `"LENGTH"`), end), false, frames(hello, chunk(`{}`, `"length"`), end)},
	{"sensitive", frames(hello, chunk(`{}`, `"sensitive"`), end), false, frames(hello, chunk(`{}`, `"content_filter"`), end)},
	{"SAFETY", frames(hello, chunk(`{}`, `"SAFETY"`), end), false, frames(hello, chunk(`{}`, `"content_filter"`), end)},
	{"an unknown word passes", frames(hello, chunk(`{}`, `"new_word"`), end), false, frames(hello, chunk(`{}`, `"new_word"`), end)},
	{"finish of failure", frames(hello, chunk(`{}`, `"error"`), end), false, frames(hello) + "! upstream"},
	{"finish of a full system", frames(hello, chunk(`{}`, `"insufficient_system_resource"`), end), false, frames(hello) + "! upstream"},
	{"stop with calls", frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), stop, end), false, frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end)},
	{"STOP with calls", frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), chunk(`{}`, `"STOP"`), end), false, frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end)},
	{"tool_calls without calls", frames(hello, callsStop, end), false, frames(hello, stop, end)},
	{"end without a finish", frames(hello, end), false, frames(hello, stop, end)},
	{"end without a finish, with usage", frames(hello, with(world, `"usage":`+counts), end), true, frames(hello, world, stop, usage, end)},
	{"end without a finish, with calls", frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), end), false, frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end)},
	{"finish without an end", frames(hello, stop), false, frames(hello, stop, end)},
	{"finish as an object", frames(hello, chunk(`{}`, `{"type":"stop","matched":2}`), end), false, frames(hello, stop, end)},
	{"finish twice, and text after it", frames(hello, stop, world, callsStop, end), false, frames(hello, stop, end)},
	{"usage after the finish, in a choice again", frames(hello, stop, with(chunk(`{"content":""}`, "null"), `"usage":`+counts), end), true, frames(hello, stop, usage, end)},
	{
		"one of two choices is finished",
		frames(hello, strings.Replace(hello, `"index":0`, `"index":1`, 1), stop, strings.Replace(world, `"index":0`, `"index":1`, 1), strings.Replace(stop, `"index":0`, `"index":1`, 1), end), false,
		frames(hello, strings.Replace(hello, `"index":0`, `"index":1`, 1), stop, strings.Replace(world, `"index":0`, `"index":1`, 1), strings.Replace(stop, `"index":0`, `"index":1`, 1), end),
	},
	{"end alone", frames(end), false, "! upstream_truncated"},
	{"cut", frames(hello, world), false, frames(hello, world) + "! upstream_truncated"},
	{"cut in a frame", frames(hello) + "data: " + world[:40], false, frames(hello) + "! upstream_invalid"},
	{"nothing", "", false, "! upstream_truncated"},
	{"comments alone", ": hi\n\n: hi\n\n", false, "! upstream_truncated"},

	// Failures.
	{"error", frames(hello, `{"error":{"message":"m","type":"server_error"}}`, end), false, frames(hello) + "! upstream"},
	{"error at once", frames(`{"error":{"message":"m","code":"rate_limit_exceeded"}}`, end), false, "! rate_limited"},
	{"error as text", frames(hello, `{"error":"m"}`), false, frames(hello) + "! upstream"},
	{"error beside choices", frames(hello, with(stop, `"error":{"message":"m","code":502}`), end), false, frames(hello) + "! upstream"},
	{"error by its event", frames(hello) + "event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n", false, frames(hello) + "! upstream"},
	{"error as an object", frames(hello, `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`, end), false, frames(hello) + "! upstream"},
	{"error without a name", frames(hello, `{"message":"m","type":"t","param":null,"code":"x"}`), false, frames(hello) + "! upstream"},
	{"error as a detail", frames(`{"detail":[{"msg":"m"}]}`), false, "! upstream"},
	{"error as MiniMax's status", frames(hello, `{"choices":null,"base_resp":{"status_code":1002,"status_msg":"m"}}`), false, frames(hello) + "! rate_limited"},
	{"MiniMax's status of success", frames(with(hello, `"base_resp":{"status_code":0}`), stop, end), false, frames(with(hello, `"base_resp":{"status_code":0}`), stop, end)},
	{"no JSON", frames(hello, "oops", stop, end), false, frames(hello) + "! upstream_invalid"},
	{"JSON, but no object", frames(hello, "[]", stop, end), false, frames(hello) + "! upstream_invalid"},
	{"ambiguous", frames(hello, with(stop, `"choices":[]`), end), false, frames(hello) + "! upstream_invalid"},
	{"a choice that is none", frames(hello, head+`"choices":[1]}`), false, frames(hello) + "! upstream_invalid"},

	// Calls.
	{
		"no index",
		frames(begin, calls(`{"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"function":{"arguments":"{}"}}`),
			calls(`{"id":"b","type":"function","function":{"name":"g","arguments":""}}`), calls(`{"function":{"arguments":"[]"}}`), callsStop, end), false,
		frames(begin, calls(`{"id":"a","type":"function","function":{"name":"f","arguments":""},"index":0}`), calls(`{"function":{"arguments":"{}"},"index":0}`),
			calls(`{"id":"b","type":"function","function":{"name":"g","arguments":""},"index":1}`), calls(`{"function":{"arguments":"[]"},"index":1}`), callsStop, end),
	},
	{
		"null index",
		frames(begin, calls(`{"index":null,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end),
	},
	{
		"all of index 0, whole",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":1,"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`), callsStop, end),
	},
	{
		"all of index 0, in fragments",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`),
			calls(`{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"[]"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`),
			calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`), calls(`{"index":1,"function":{"arguments":"[]"}}`), callsStop, end),
	},
	{
		"index from 1",
		frames(begin, calls(`{"index":1,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":1,"function":{"arguments":"{}"}}`),
			calls(`{"index":2,"id":"b","type":"function","function":{"name":"g","arguments":""}}`), calls(`{"index":1,"function":{"arguments":" "}}`), calls(`{"index":2,"function":{"arguments":"[]"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`),
			calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`), calls(`{"index":0,"function":{"arguments":" "}}`), calls(`{"index":1,"function":{"arguments":"[]"}}`), callsStop, end),
	},
	{
		"two in one chunk",
		frames(begin, calls(`{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"[]"}}`), callsStop, end), false,
		frames(begin, calls(`{"id":"a","function":{"name":"f","arguments":"{}"},"index":0,"type":"function"},{"id":"b","function":{"name":"g","arguments":"[]"},"index":1,"type":"function"}`), callsStop, end),
	},
	{
		"name, type and ID in every fragment",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":"a","type":"function","function":{"arguments":"}"}}`), callsStop, end),
	},
	{
		"null and empty names later",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":null,"function":{"name":null,"arguments":""}}`), calls(`{"index":0,"id":"","function":{"name":"","arguments":"}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":null,"function":{"name":null,"arguments":""}}`), calls(`{"index":0,"id":"","function":{"name":"","arguments":"}"}}`), callsStop, end),
	},
	{
		"arguments as an object",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":{"x": "é\n"}}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"é\\n\"}"}}`), callsStop, end),
	},
	{
		"no ID, or an empty one",
		frames(begin, calls(`{"index":0,"type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"function":{"arguments":"}"}}`), calls(`{"index":1,"id":"","type":"function","function":{"name":"g","arguments":"{}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"type":"function","function":{"name":"f","arguments":"{"},"id":"call_`+hash("c[0 0]")[:24]+`"}`), calls(`{"index":0,"function":{"arguments":"}"}}`),
			calls(`{"index":1,"id":"call_`+hash("c[0 1]")[:24]+`","type":"function","function":{"name":"g","arguments":"{}"}}`), callsStop, end),
	},
	{
		"an ID that comes late",
		frames(begin, calls(`{"index":0,"type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":"a","function":{"arguments":"}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"type":"function","function":{"name":"f","arguments":"{"},"id":"call_`+hash("c[0 0]")[:24]+`"}`), calls(`{"index":0,"function":{"arguments":"}"}}`), callsStop, end),
	},
	{
		"one ID for two calls",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":1,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":1,"id":"a","function":{"arguments":"}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":1,"id":"call_`+hash("c[0 1]")[:24]+`","type":"function","function":{"name":"f","arguments":"{"}}`), calls(`{"index":1,"function":{"arguments":"}"}}`), callsStop, end),
	},
	{
		"null arguments",
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":null}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`), callsStop, end), false,
		frames(begin, calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`), callsStop, end),
	},
	{"null and empty calls", frames(chunk(`{"role":"assistant","content":"a","tool_calls":null}`, "null"), chunk(`{"tool_calls":[]}`, "null"), stop, end), false, frames(chunk(`{"role":"assistant","content":"a","tool_calls":null}`, "null"), chunk(`{"tool_calls":[]}`, "null"), stop, end)},
	{
		"calls of two choices",
		frames(begin, calls(`{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`), strings.Replace(chunk(`{"role":"assistant","tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`, `"stop"`), `"index":0`, `"index":1`, 1), callsStop, end), false,
		frames(begin, calls(`{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"index":0}`), strings.Replace(chunk(`{"role":"assistant","tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"},"index":0}]}`, `"tool_calls"`), `"index":0`, `"index":1`, 1), callsStop, end),
	},
	{"a call that is none", frames(begin, calls(`"x"`)), false, frames(begin) + "! upstream_invalid"},
}

func TestFollow(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			follower := func() dialect.Follower { return Dialect{}.Follow(&dialect.Request{WantsUsage: tt.wantsUsage}) }
			out, usage, err := follow(follower(), strings.NewReader(tt.in))
			got := outcome(out, err)
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if strings.HasPrefix(tt.name, "canonical") && got != tt.in {
				t.Error("a canonical stream was changed")
			}
			if strings.Contains(tt.in, counts) && usage != (llm.Usage{Input: 10, Output: 5}) {
				t.Errorf("usage is %+v", usage)
			}
			// However the network cuts it, it stays the same.
			sources := []io.Reader{iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))}
			for i := range tt.in {
				sources = append(sources, io.MultiReader(strings.NewReader(tt.in[:i]), strings.NewReader(tt.in[i:])))
			}
			for i, src := range sources {
				if again, usageAgain, err := follow(follower(), src); outcome(again, err) != got || usageAgain != usage {
					t.Fatalf("cut %d:\n%s\nwhole:\n%s", i-2, outcome(again, err), got)
				}
			}
		})
	}
}

func TestFollowUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want llm.Usage
	}{
		"reported":                {frames(hello, stop, usage, end), llm.Usage{Input: 10, Output: 5}},
		"the last counts":         {frames(hello, with(world, `"usage":{"prompt_tokens":1,"completion_tokens":1}`), stop, usage, end), llm.Usage{Input: 10, Output: 5}},
		"cumulative, then cut":    {frames(hello, with(world, `"usage":{"prompt_tokens":10,"completion_tokens":3}`)), llm.Usage{Input: 10, Output: 3}},
		"null after it":           {frames(hello, with(world, `"usage":`+counts), with(stop, `"usage":null`), end), llm.Usage{Input: 10, Output: 5}},
		"none, estimated":         {frames(hello, world, stop, end), llm.Usage{Input: 100, Output: 3, Estimated: true}},
		"none, cut":               {frames(hello, world), llm.Usage{Input: 100, Output: 2, Estimated: true}},
		"nothing came":            {"", llm.Usage{Input: 100, Estimated: true}},
		"beside the choices":      {frames(hello, with(stop, `"x_groq":{"id":"r","usage":`+counts+`}`), end), llm.Usage{Input: 10, Output: 5}},
		"of a failure in between": {frames(hello, with(world, `"usage":`+counts), `{"error":{"message":"m"}}`), llm.Usage{Input: 10, Output: 5}},
	} {
		if _, got, _ := follow(Dialect{}.Follow(&dialect.Request{}), strings.NewReader(tt.in)); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestBegun(t *testing.T) {
	f := Dialect{}.Follow(&dialect.Request{})
	for _, step := range []struct {
		data        string
		begun, done bool
	}{{head + `"choices":[]}`, false, false}, {hello, true, false}, {stop, true, false}, {usage, true, false}, {end, true, true}} {
		if _, _, err := f.Frame(nil, sse.Frame{Data: []byte(step.data), Raw: []byte(frames(step.data)), Canonical: true}); err != nil {
			t.Fatal(err)
		}
		if f.Begun() != step.begun || f.Done() != step.done {
			t.Errorf("after %s: begun %v, done %v, want %v, %v", step.data, f.Begun(), f.Done(), step.begun, step.done)
		}
	}
}

func TestFail(t *testing.T) {
	e := &llm.Error{Kind: llm.RateLimited, Message: "wait \"a\"\nbit", Err: errors.New("canary")}
	const want = `before` + "data: " + `{"error":{"message":"wait \"a\"\nbit","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}` + "\n\ndata: [DONE]\n\n"
	f := Dialect{}.Follow(&dialect.Request{})
	if got := string(f.Fail([]byte("before"), e)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !f.Done() {
		t.Error("a failed stream goes on")
	}
}

// dataOf returns the data of a stream, and fails when it is not what clients
// read: canonical frames without names, JSON in each but the last.
func dataOf(t *testing.T, stream []byte) (list []string) {
	t.Helper()
	for f, err := range sse.All(bytes.NewReader(stream), 1<<22) {
		if err != nil {
			t.Fatal(err)
		}
		if !f.Canonical || f.Event != nil {
			t.Errorf("no frame of the contract: %q", f.Raw)
		}
		if string(f.Data) != end && !json.Valid(f.Data) {
			t.Errorf("no JSON: %q", f.Data)
		}
		list = append(list, string(f.Data))
	}
	return list
}

func FuzzFollowChat(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.in), tt.wantsUsage, uint16(len(tt.in)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, wantsUsage bool, cut uint16) {
		request := &dialect.Request{WantsUsage: wantsUsage}
		first := Dialect{}.Follow(request)
		out, usage, err := follow(first, bytes.NewReader(in))
		at := min(int(cut), len(in))
		again, usageAgain, errAgain := follow(Dialect{}.Follow(request), io.MultiReader(bytes.NewReader(in[:at]), bytes.NewReader(in[at:])))
		if outcome(out, err) != outcome(again, errAgain) || usage != usageAgain {
			t.Errorf("cut at %d:\n%s\nwhole:\n%s", at, outcome(again, errAgain), outcome(out, err))
		}
		data := dataOf(t, out)
		if err != nil {
			if slices.Contains(data, end) {
				t.Errorf("a failed stream has an end:\n%s", out)
			}
			out = first.Fail(out, llm.AsError(err))
			data = dataOf(t, out)
		}
		if len(data) == 0 || data[len(data)-1] != end || slices.Index(data, end) != len(data)-1 {
			t.Errorf("the stream does not end once:\n%s", out)
		}
	})
}
