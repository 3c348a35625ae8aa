package openaichat

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// through takes a client's body to a server of this dialect.
func through(body string, caps *llm.Caps) (*dialect.Call, error) {
	req, err := Dialect{}.Decode([]byte(body), seal.Key{})
	if err != nil {
		return nil, err
	}
	return Upstream{}.Encode(req, caps)
}

const (
	askX  = `"messages":[{"role":"user","content":"x"}]`
	toldX = `"messages":[{"role":"user","content":"x"}]`
	toolF = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	callA = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	callB = `{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`
)

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name, in, want, notes string
		caps                  llm.Caps
	}{
		{
			name: "limit, both names", in: `{"max_tokens":5,"max_completion_tokens":7,` + askX + `}`,
			want: `{"model":"m","max_completion_tokens":7,` + toldX + `}`,
		},
		{
			name: "limit, clamped", in: `{"max_completion_tokens":700,` + askX + `}`, caps: llm.Caps{MaxOutput: 100},
			want: `{"model":"m","max_completion_tokens":100,` + toldX + `}`, notes: "clamp:max_tokens",
		},
		{
			name: "limit, renamed by the list", in: `{"max_completion_tokens":7,"user":"u",` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Rename: [][2]string{{"max_completion_tokens", "max_tokens"}, {"user", "user_id"}}}},
			want: `{"model":"m","max_tokens":7,"user_id":"u",` + toldX + `}`, notes: "rename:max_tokens,rename:user",
		},
		{
			name: "what the server may know", in: `{"guided_regex":"a","q\"":{},"top_k":3,"n":1,"stop":"E","verbosity":null,` + askX + `}`,
			want: `{"model":"m","stop":["E"],"n":1,"top_k":3,"guided_regex":"a","q\"":{},` + toldX + `}`,
		},
		{
			name: "what a strict server does not know", in: `{"guided_regex":"a","top_k":3,"verbosity":"low","metadata":{},` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Strict: true}},
			want: `{"model":"m",` + toldX + `}`, notes: "drop:top_k,drop:metadata,drop:verbosity,drop:guided_regex",
		},
		{
			name: "usage of a stream, asked for by the gateway", in: `{"stream":true,` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{AskUsage: true}},
			want: `{"model":"m",` + toldX + `,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name: "usage of a stream, not known", in: `{"stream":true,"stream_options":{"include_usage":true},` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{NoStreamUsage: true}},
			want: `{"model":"m",` + toldX + `,"stream":true}`, notes: "drop:stream_options",
		},
		{
			name: "only text is asked for", in: `{"modalities":["text"],` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{Strict: true}},
			want: `{"model":"m",` + toldX + `}`,
		},
		{
			name: "names that are not taken", in: `{"messages":[{"role":"user","name":"n","content":"x"}]}`, caps: llm.Caps{Chat: llm.ChatCaps{NoNames: true}},
			want: `{"model":"m",` + toldX + `}`, notes: "drop:name",
		},
		{
			name: "a schema in the instructions", in: `{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},"messages":[{"role":"system","content":"S"},{"role":"user","content":"x"}]}`,
			caps: llm.Caps{Chat: llm.ChatCaps{OneSystem: true, Formats: []string{"json_object"}}},
			want: `{"model":"m","response_format":{"type":"json_object"},"messages":[{"role":"system","content":"S\n\nAnswer with a JSON object that matches this JSON schema:\n{\"type\":\"object\"}"},{"role":"user","content":"x"}]}`, notes: "degrade:response_format",
		},
		{
			name: "effort by the list", in: `{"reasoning_effort":"minimal",` + askX + `}`,
			caps: llm.Caps{Efforts: []string{"low", "high"}, Chat: llm.ChatCaps{EffortAs: [][2]string{{"minimal", "low"}}, On: `{"enable_thinking":true}`}},
			want: `{"model":"m","enable_thinking":true,"reasoning_effort":"low",` + toldX + `}`, notes: "clamp:reasoning_effort",
		},
		{
			name: "no thinking, by a switch", in: `{"reasoning_effort":"none",` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{Off: `{"thinking":{"type":"disabled"}}`}},
			want: `{"model":"m","thinking":{"type":"disabled"},` + toldX + `}`,
		},
		{
			name: "no thinking, where there must be some", in: `{"reasoning_effort":"none",` + askX + `}`, caps: llm.Caps{Efforts: []string{"low", "high"}},
			want: `{"model":"m","reasoning_effort":"low",` + toldX + `}`, notes: "degrade:effort_none",
		},
		{
			name: "thinking in the server's own words", in: `{"thinking":{"type":"enabled"},` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Strict: true, On: `{"thinking":{"type":"adaptive"}}`}},
			want: `{"model":"m","thinking":{"type":"enabled"},` + toldX + `}`,
		},
		{
			name: "OpenRouter's reasoning", in: `{"reasoning":{"max_tokens":2000,"exclude":true},` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{Reasoning: "reasoning_details"}},
			want: `{"model":"m","reasoning":{"max_tokens":2000,"exclude":true},` + toldX + `}`,
		},
		{
			name: "a model that does not think", in: `{"reasoning_effort":"high",` + askX + `}`, caps: llm.Caps{ReasonsKnown: true},
			want: `{"model":"m",` + toldX + `}`, notes: "drop:reasoning_effort",
		},
		{
			name: "a choice of tools without any", in: `{"tools":[],"tool_choice":"required","parallel_tool_calls":true,` + askX + `}`,
			want: `{"model":"m",` + toldX + `}`,
		},
		{
			name: "a choice that is not taken", in: `{"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"f"}},` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{ToolChoice: []string{"auto"}}},
			want: `{"model":"m","tools":[` + toolF + `],"tool_choice":"auto",` + toldX + `}`, notes: "degrade:tool_choice",
		},
		{
			name: "a named choice as the only tool", in: `{"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"f"}},` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{ToolChoice: []string{"auto", "required"}}},
			want: `{"model":"m","tools":[` + toolF + `],"tool_choice":"required",` + toldX + `}`,
		},
		{
			name: "no tools where none cannot be chosen", in: `{"tools":[` + toolF + `],"tool_choice":"none",` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{ToolChoice: []string{"auto"}}},
			want: `{"model":"m",` + toldX + `}`, notes: "degrade:tool_choice",
		},
		{
			name: "allowed tools at OpenAI", in: `{"tools":[` + toolF + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},` + askX + `}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Native: true}},
			want: `{"model":"m","tools":[` + toolF + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}},` + toldX + `}`,
		},
		{
			name: "allowed tools elsewhere", in: `{"tools":[` + toolF + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}},` + askX + `}`,
			want: `{"model":"m","tools":[` + toolF + `],"tool_choice":"required",` + toldX + `}`, notes: "degrade:tool_choice",
		},
		{
			name: "custom tools at OpenAI", in: `{"tools":[{"type":"custom","custom":{"name":"p","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"G"}}}}],"tool_choice":{"type":"custom","custom":{"name":"p"}},"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"p","input":"i"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Native: true}},
			want: `{"model":"m","tools":[{"type":"custom","custom":{"name":"p","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"G"}}}}],"tool_choice":{"type":"custom","custom":{"name":"p"}},"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"p","input":"i"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
		},
		{
			name: "custom tools elsewhere", in: `{"tools":[{"type":"custom","custom":{"name":"p"}}],"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"p","input":"i"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
			want: `{"model":"m","tools":[{"type":"function","function":{"name":"p","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"p","arguments":"{\"input\":\"i\"}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
		},
		{
			name: "the search of this dialect's clients", in: `{"web_search_options":{"search_context_size":"low"},` + askX + `}`, caps: llm.Caps{Chat: llm.ChatCaps{Native: true}},
			want: `{"model":"m","web_search_options":{"search_context_size":"low"},` + toldX + `}`,
		},
		{
			name: "late results, and IDs that come again", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + callA + `,` + callB + `]},{"role":"tool","tool_call_id":"b","content":"1"},{"role":"user","content":"y"},{"role":"tool","tool_call_id":"a","content":"2"},{"role":"assistant","tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"3"}]}`,
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + callA + `,` + callB + `]},{"role":"tool","tool_call_id":"a","content":"2"},{"role":"tool","tool_call_id":"b","content":"1"},{"role":"user","content":"y"},{"role":"assistant","content":null,"tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"3"}]}`,
		},
		{
			name: "media in results", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/jpg;base64,AA==","detail":"low"}}]},{"role":"assistant","content":"z"}]}`,
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"t"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,AA==","detail":"low"}}]},{"role":"assistant","content":"z"}]}`, notes: "move:tool_images",
		},
		{
			name: "no user after a tool", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","is_error":true,"content":"t"},{"role":"user","content":"y"}]}`, caps: llm.Caps{Chat: llm.ChatCaps{AnswerFirst: true, NamedTools: true}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","name":"f","content":"Error: t"},{"role":"assistant","content":"OK."},{"role":"user","content":"y"}]}`, notes: "degrade:user_after_tool",
		},
		{
			name: "one place for instructions, turns that alternate", in: `{"messages":[{"role":"user","content":"x"},{"role":"user","content":"y"},{"role":"system","content":"S"}]}`, caps: llm.Caps{Chat: llm.ChatCaps{OneSystem: true}},
			want: `{"model":"m","messages":[{"role":"user","content":"x\n\ny\n\n<system>\nS\n</system>"}]}`, notes: "degrade:mid_system",
		},
		{
			name: "instructions in their place", in: `{"messages":[{"role":"developer","content":"D"},{"role":"user","content":"x"},{"role":"system","content":"S"}]}`, caps: llm.Caps{Chat: llm.ChatCaps{NoDeveloper: true}},
			want: `{"model":"m","messages":[{"role":"system","content":"D"},{"role":"user","content":"x"},{"role":"system","content":"S"}]}`,
		},
		{
			name: "reasoning on every message", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"t"},{"role":"user","content":"z"},{"role":"assistant","content":"w"}]}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Reasoning: "reasoning_content", Echo: llm.EchoAlways}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","content":"y"},{"role":"user","content":"z"},{"role":"assistant","reasoning_content":"","content":"w"}]}`,
		},
		{
			name: "reasoning in open loops", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning_content":"s"},{"role":"user","content":"z"},{"role":"assistant","reasoning_content":"t","tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Reasoning: "reasoning", Echo: llm.EchoTools}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"},{"role":"assistant","reasoning":"t","content":null,"tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"r"}]}`, notes: "drop:reasoning_content",
		},
		{
			name: "reasoning of another vendor", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"S","format":"anthropic-claude-v1","index":0}]}]}`,
			caps: llm.Caps{Vendor: "deepseek", Chat: llm.ChatCaps{Reasoning: "reasoning_content", Echo: llm.EchoTools}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, notes: "drop:reasoning_details",
		},
		{
			name: "reasoning of many vendors", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"S","format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"D","format":"anthropic-claude-v1","index":1}]}]}`,
			caps: llm.Caps{Vendor: "openrouter", Chat: llm.ChatCaps{Reasoning: "reasoning_details", Echo: llm.EchoAlways}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"S","format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"D","format":"anthropic-claude-v1","index":1}],"content":"y"}]}`,
		},
		{
			name: "reasoning in the content", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"y"}]}]}`,
			caps: llm.Caps{Chat: llm.ChatCaps{Reasoning: "content", Echo: llm.EchoAlways, Strict: true}},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"y"}]}]}`,
		},
		{
			name: "signatures of Google", in: `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a__thought__SIG","type":"function","function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"a__thought__SIG","content":"r"}]}`, caps: llm.Caps{Vendor: "google"},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
		},
		{
			name: "breakpoints", in: `{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, caps: llm.Caps{Chat: llm.ChatCaps{Breakpoints: true}},
			want: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]}]}`,
		},
		{
			name: "breakpoints that are not known", in: `{"messages":[{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`,
			want: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, notes: "drop:prompt_cache_breakpoint",
		},
		{
			name: "files and sound", in: `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}},{"type":"file","file":{"file_id":"f1"}},{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}},{"type":"file","file":{"filename":"n","file_data":"data:text/plain;base64,aGk="}}]}]}`,
			want: `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}},{"type":"file","file":{"file_id":"f1"}},{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}},{"type":"text","text":"[document: n]\nhi"}]}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.caps.Model = "m"
			call, err := through(c.in, &c.caps)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(call.Body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("notes: got %s, want %s", got, c.notes)
			}
		})
	}
}

func TestEncodeIsAppendOnly(t *testing.T) {
	history := `{"role":"system","content":"S"},{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + callA + `]},{"role":"tool","tool_call_id":"a","content":"r"}`
	caps := &llm.Caps{Model: "m", Chat: llm.ChatCaps{CallID: `^[a-zA-Z0-9]{9}$`, OneSystem: true}}
	first, err := through(`{"messages":[`+history+`]}`, caps)
	if err != nil {
		t.Fatal(err)
	}
	second, err := through(`{"messages":[`+history+`,{"role":"assistant","content":"y"},{"role":"system","content":"T"},{"role":"user","content":"z"}]}`, caps)
	if err != nil {
		t.Fatal(err)
	}
	if before, _ := strings.CutSuffix(string(first.Body), "]}"); !strings.HasPrefix(string(second.Body), before) {
		t.Errorf("the history\n%s\ndoes not begin\n%s", before, second.Body)
	}
}

func TestEncodeRefuses(t *testing.T) {
	native := llm.Caps{Chat: llm.ChatCaps{Native: true}}
	for _, c := range []struct {
		in, param string
		caps      llm.Caps
	}{
		{`{"n":2,` + askX + `}`, "n", llm.Caps{Chat: llm.ChatCaps{OneChoice: true}}},
		{`{"stop":["1","2","3","4","5"],` + askX + `}`, "stop", native},
		{`{"modalities":["text","audio"],` + askX + `}`, "modalities", llm.Caps{Chat: llm.ChatCaps{Strict: true}}},
		{`{"response_format":{"type":"json_object"},` + askX + `}`, "response_format", llm.Caps{Chat: llm.ChatCaps{Formats: []string{}}}},
		{`{"web_search_options":{},` + askX + `}`, "web_search_options", llm.Caps{Chat: llm.ChatCaps{Strict: true}}},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}]}]}`, "messages[0].content[1].file.file_data", llm.Caps{Chat: llm.ChatCaps{NoFiles: true}}},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"gs://b/a.png"}}]}]}`, "messages[0].content[0].image_url.url", native},
		{`{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x.test/a"}}]}]}`, "messages[0].content[0].video_url.url", native},
		{`{"messages":[{"role":"user","content":"x"},{"role":"assistant","audio":{"id":"a"}}]}`, "messages[1].audio.id", llm.Caps{Chat: llm.ChatCaps{Strict: true}}},
	} {
		_, err := through(c.in, &c.caps)
		if err == nil {
			t.Errorf("%s passes", c.in)
			continue
		}
		if e := llm.AsError(err); e.Kind != llm.Unsupported || e.Param != c.param || !strings.Contains(e.Message, lastWord(c.param)) {
			t.Errorf("%s: got %s, param %q: %s; want param %q", c.in, e.Kind, e.Param, e.Message, c.param)
		}
	}
}

func lastWord(param string) string { return param[strings.LastIndexByte(param, '.')+1:] }

// theirs is a request of a client that speaks another dialect.
func theirs(change func(*llm.Request)) *llm.Request {
	req := &llm.Request{
		Words: &llm.Words{Items: "input", Parts: "content", Params: map[string]string{"stop": "stop_sequences"}},
		Items: []llm.Item{&llm.Message{Pos: llm.Pos{Part: -1}, Parts: []llm.Part{&llm.Text{Pos: llm.Pos{Part: 0}, Text: llm.Quote("x")}}}},
	}
	change(req)
	return req
}

func TestEncodeForOthers(t *testing.T) {
	at := func(item int) llm.Pos { return llm.Pos{Item: item, Part: -1} }
	say := func(role llm.Role, item int, texts ...string) *llm.Message {
		m := &llm.Message{Pos: at(item), Role: role}
		for _, text := range texts {
			m.Parts = append(m.Parts, &llm.Text{Text: llm.Quote(text)})
		}
		return m
	}
	yes, limit := true, int64(9)
	for _, c := range []struct {
		name   string
		change func(*llm.Request)
		caps   llm.Caps
		want   string
		notes  string
	}{
		{
			name: "no note for a limit that has no name here", change: func(r *llm.Request) { r.Limits.MaxTokens = &limit }, caps: llm.Caps{Chat: llm.ChatCaps{TokenLimit: "max_tokens"}},
			want: `{"model":"m","max_tokens":9,` + toldX + `}`,
		},
		{
			name: "what other servers do not know", change: func(r *llm.Request) {
				r.Meta.SafetyID, r.Cache.Key, r.State.Store, r.Sampling.TopK = llm.Quote("u"), llm.Quote("k"), &yes, llm.Raw("3")
				r.Other = []llm.Member{{Name: "o", Value: llm.Raw("1")}}
			},
			want: `{"model":"m",` + toldX + `}`, notes: "drop:top_k,drop:safety_identifier,drop:prompt_cache_key,drop:store,drop:o",
		},
		{
			name: "what OpenAI knows", change: func(r *llm.Request) { r.Meta.SafetyID, r.Cache.Key = llm.Quote("u"), llm.Quote("k") }, caps: llm.Caps{Chat: llm.ChatCaps{Native: true}},
			want: `{"model":"m","safety_identifier":"u","prompt_cache_key":"k",` + toldX + `}`,
		},
		{
			name: "top_k where it is known", change: func(r *llm.Request) { r.Sampling.TopK = llm.Raw("3") }, caps: llm.Caps{Chat: llm.ChatCaps{TopK: true, Strict: true}},
			want: `{"model":"m","top_k":3,` + toldX + `}`,
		},
		{
			name: "a budget as an effort", change: func(r *llm.Request) { r.Reasoning.Mode, r.Reasoning.Budget = llm.ThinkingOn, 5000 }, caps: llm.Caps{Reasons: true, ReasonsKnown: true},
			want: `{"model":"m","reasoning_effort":"medium",` + toldX + `}`,
		},
		{
			name: "thinking at a server of which nothing is known", change: func(r *llm.Request) { r.Reasoning.Mode = llm.ThinkingAdaptive },
			want: `{"model":"m",` + toldX + `}`, notes: "drop:thinking",
		},
		{
			name: "a turn of many items", change: func(r *llm.Request) {
				r.Items = append(r.Items, say(llm.Assistant, 1, "a"), &llm.ToolCall{Pos: at(2), ID: llm.Quote("c"), Name: "f", Args: llm.Raw(`""`)},
					say(llm.Assistant, 3, "b"), &llm.ToolResult{Pos: at(4), ID: llm.Quote("c"), IsError: true}, say(llm.User, 5, "y"))
			},
			want: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"Error: "},{"role":"user","content":"y"}]}`,
		},
		{
			name: "documents and sources", change: func(r *llm.Request) {
				r.Items = []llm.Item{&llm.Message{Pos: at(0), Parts: []llm.Part{
					&llm.Media{Kind: llm.File, Text: llm.Quote("d"), Name: llm.Quote("T"), Citations: true},
					&llm.SearchResult{Title: llm.Quote("S"), Source: llm.Quote("https://s.test"), Texts: []llm.Raw{llm.Quote("1"), llm.Quote("2")}},
				}}}
			},
			want: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"[document: T]\nd"},{"type":"text","text":"[search result: S (https://s.test)]\n1\n2"}]}]}`, notes: "degrade:search_result",
		},
		{
			name: "tools of an upstream", change: func(r *llm.Request) {
				r.Tools = []llm.Tool{{Index: 0, Server: &llm.ServerTool{Kind: llm.WebSearch, Type: "web_search"}}, {Index: 1, Name: "f", Schema: llm.Raw(`{"type":"object"}`)}}
			},
			want: `{"model":"m","tools":[` + toolF + `],` + toldX + `}`, notes: "drop:web_search",
		},
		{
			name: "a namespace, and phases", change: func(r *llm.Request) {
				r.Tools = []llm.Tool{{Name: "f", Namespace: "s", Schema: llm.Raw(`{"type":"object"}`)}}
				m := say(llm.Assistant, 1, "a")
				m.Phase = llm.Quote("commentary")
				r.Items = append(r.Items, m, &llm.ToolCall{Pos: at(2), ID: llm.Quote("c"), Name: "f", Namespace: "s", Args: llm.Quote("{}")})
			},
			want:  `{"model":"m","tools":[{"type":"function","function":{"name":"s__f","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"s__f","arguments":"{}"}}]}]}`,
			notes: "drop:phase",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.caps.Model = "m"
			call, err := Upstream{}.Encode(theirs(c.change), &c.caps)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(call.Body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("notes: got %s, want %s", got, c.notes)
			}
		})
	}
}

func TestEncodeRefusesOthers(t *testing.T) {
	zero := int64(0)
	for _, c := range []struct {
		param  string
		code   string
		change func(*llm.Request)
	}{
		{"previous_response_id", "unsupported_parameter", func(r *llm.Request) { r.State.PreviousID = llm.Quote("r") }},
		{"conversation", "unsupported_parameter", func(r *llm.Request) { r.State.Conversation = llm.Quote("r") }},
		{"background", "unsupported_parameter", func(r *llm.Request) { r.State.Background = true }},
		{"max_completion_tokens", "", func(r *llm.Request) { r.Limits.MaxTokens = &zero }},
		{"tools[3]", "", func(r *llm.Request) {
			r.Tools = []llm.Tool{{Index: 3, Server: &llm.ServerTool{Kind: llm.FileSearch, Type: "file_search"}}}
		}},
		{"input[0]", "", func(r *llm.Request) { r.Items = []llm.Item{&llm.Compaction{}} }},
		{"input[2].content[1].image_url", "", func(r *llm.Request) {
			r.Items = []llm.Item{&llm.Message{Parts: []llm.Part{&llm.Media{Pos: llm.Pos{Item: 2, Part: 1}, FileID: llm.Quote("f"), At: ".image_url"}}}}
		}},
	} {
		_, err := Upstream{}.Encode(theirs(c.change), &llm.Caps{})
		if e := llm.AsError(err); err == nil || e.Param != c.param || e.Code != c.code {
			t.Errorf("got %v, want %s %s", err, c.param, c.code)
		}
	}
}
