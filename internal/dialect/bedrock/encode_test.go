package bedrock

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

func says(role llm.Role, texts ...string) *llm.Message {
	m := &llm.Message{Pos: llm.Pos{Part: -1}, Role: role}
	for _, t := range texts {
		m.Parts = append(m.Parts, str(t))
	}
	return m
}

func str(s string) *llm.Text { return &llm.Text{Text: llm.Quote(s)} }

func calls(id, name, args string) *llm.ToolCall {
	return &llm.ToolCall{Pos: llm.Pos{Item: 1, Part: -1}, ID: llm.Quote(id), Name: name, Args: llm.Quote(args)}
}

func gives(id string, parts ...llm.Part) *llm.ToolResult {
	return &llm.ToolResult{Pos: llm.Pos{Item: 2, Part: -1}, ID: llm.Quote(id), Parts: parts}
}

func user(parts ...llm.Part) *llm.Message { return &llm.Message{Parts: parts} }

func claude() *llm.Caps {
	return &llm.Caps{Model: "us.anthropic.claude:0", Vendor: "anthropic", Reasons: true, ReasonsKnown: true, Bedrock: llm.BedrockCaps{Family: "anthropic"}}
}

var (
	picture = &llm.Media{Kind: llm.Image, Data: llm.Raw(`"P"`), MIME: "image/jpg"}
	tools   = []llm.Tool{{Name: "f", Desc: llm.Raw(`"d"`), Schema: llm.Raw(`{"type":"object"}`)}}
)

const toolConfig = `"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{"type":"object"}}}}]`

func TestConversation(t *testing.T) {
	signed := &llm.Reasoning{Texts: []llm.Thought{{Text: llm.Raw(`"hm"`)}}, Opaque: []llm.Opaque{{Kind: llm.Signature, Vendor: "anthropic", Data: llm.Raw(`"S"`)}}}
	redacted := &llm.Reasoning{Opaque: []llm.Opaque{{Kind: llm.Redacted, Vendor: "anthropic", Data: llm.Raw(`"R"`)}}}
	foreign := &llm.Reasoning{Opaque: []llm.Opaque{{Kind: llm.Encrypted, Vendor: "openai", Data: llm.Raw(`"E"`)}}}
	failed := gives("2", str("no"))
	failed.IsError = true
	pdf := func(name string) *llm.Media {
		return &llm.Media{Kind: llm.File, Data: llm.Raw(`"F"`), MIME: "application/pdf", Name: llm.Quote(name)}
	}
	mid := claude()
	mid.MidSystem = true
	for name, c := range map[string]struct {
		items       []llm.Item
		caps        *llm.Caps
		want, notes string
	}{
		"signed thinking, crossed results, text after them": {
			[]llm.Item{says(llm.User, "a"), signed, redacted, says(llm.Assistant, "b"), calls("1", "f", `{"x":1}`), calls("2", "f", ""), failed, gives("1", str("one"), picture), says(llm.User, "c")}, claude(),
			`"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"S"}}},{"reasoningContent":{"redactedContent":"R"}},{"text":"b"},` +
				`{"toolUse":{"toolUseId":"1","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"2","name":"f","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"text":"one"},{"image":{"format":"jpeg","source":{"bytes":"P"}}}]}},{"toolResult":{"toolUseId":"2","content":[{"text":"no"}],"status":"error"}},{"text":"c"}]}]`, "",
		},
		"arguments that are cut": {
			[]llm.Item{says(llm.User, "a"), calls("1", "f", `{"x`), gives("1")}, claude(),
			`"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"1","name":"f","input":{"_raw":"{\"x"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[]}}]}]`, "degrade:tool_arguments",
		},
		"instructions": {
			[]llm.Item{says(llm.System, "a"), &llm.Message{Role: llm.Developer, Parts: []llm.Part{&llm.Text{Text: llm.Raw(`"b"`), Cache: &llm.Breakpoint{TTL: "1h"}}}}, says(llm.User, "c"), says(llm.System, "d"), says(llm.User, "e")}, claude(),
			`"system":[{"text":"a"},{"text":"b"},{"cachePoint":{"type":"default","ttl":"1h"}}],"messages":[{"role":"user","content":[{"text":"c"},{"text":"<system>\nd\n</system>"},{"text":"e"}]}]`, "degrade:mid_system",
		},
		"instructions in their own role": {
			[]llm.Item{says(llm.User, "c"), says(llm.System, "d"), says(llm.System, "e"), says(llm.Assistant, "f "), says(llm.User, " ")}, mid,
			`"messages":[{"role":"user","content":[{"text":"c"}]},{"role":"system","content":[{"text":"d"},{"text":"e"}]},{"role":"assistant","content":[{"text":"f"}]}]`, "",
		},
		"documents": {
			[]llm.Item{user(pdf("my_file.v2.pdf"), pdf("my file v2.pdf"), &llm.Media{Kind: llm.File, Text: llm.Raw(`"T"`)})}, claude(),
			`"messages":[{"role":"user","content":[{"document":{"name":"my file v2","format":"pdf","source":{"bytes":"F"}}},{"document":{"name":"my file v2 2","format":"pdf","source":{"bytes":"F"}}},` +
				`{"document":{"name":"document","format":"txt","source":{"bytes":"VA=="}}},{"text":"(document attached)"}]}]`, "",
		},
		"stored at the vendor": {
			[]llm.Item{user(&llm.Media{Kind: llm.Image, URL: llm.Raw(`"s3://b/k"`), MIME: "image/png"})}, claude(),
			`"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"s3Location":{"uri":"s3://b/k"}}}}]}]`, "",
		},
		"what another model sealed": {
			[]llm.Item{says(llm.User, "a"), foreign, &llm.NativeTurn{Items: []llm.Item{says(llm.Assistant, "b")}}, says(llm.User, "c")}, claude(),
			`"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"b"}]},{"role":"user","content":[{"text":"c"}]}]`, "drop:reasoning_details",
		},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := Upstream{}.Encode(&llm.Request{Items: c.items, Tools: tools}, c.caps)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimPrefix(string(call.Body), "{"+toolConfig+"},"); got != c.want+"}" {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("got notes %q, want %q", got, c.notes)
			}
		})
	}
}

func TestFlatHistory(t *testing.T) {
	r := gives("1", str("x"), picture)
	r.IsError = true
	req := &llm.Request{Items: []llm.Item{says(llm.User, "a"), calls("1", "f", `{"a":"b"}`), r}, Tools: tools, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceNone}}
	call, err := Upstream{}.Encode(req, claude())
	want := `{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"[tool call 1: f({\"a\":\"b\"})]"}]},` +
		`{"role":"user","content":[{"text":"[tool error 1: x]"},{"image":{"format":"jpeg","source":{"bytes":"P"}}}]}]}`
	if err != nil || string(call.Body) != want || call.Notes.String() != "degrade:tool_history_text" {
		t.Errorf("got\n%s, %v, notes %q\nwant\n%s", call.Body, err, call.Notes, want)
	}
}

func TestSettings(t *testing.T) {
	no, n, yes := false, int64(4000), true
	family := func(f string) *llm.Caps { return &llm.Caps{Bedrock: llm.BedrockCaps{Family: f}} }
	budget := claude()
	budget.Thinking = []string{"enabled", "disabled"}
	always := claude()
	always.Thinking, always.Efforts = []string{"adaptive"}, []string{"low", "high"}
	effort := func(e string) llm.Request { return llm.Request{Reasoning: llm.ReasoningWish{Effort: e}} }
	limits := llm.Limits{MaxTokens: &n}
	for name, c := range map[string]struct {
		req         llm.Request
		caps        *llm.Caps
		want, notes string
	}{
		"nothing": {llm.Request{}, claude(), ``, ""},
		"sampling of Claude": {
			llm.Request{Limits: llm.Limits{MaxTokens: &n, Stop: []llm.Raw{llm.Raw(`"END"`), llm.Raw(`" \n"`)}}, Sampling: llm.Sampling{Temperature: llm.Raw("1.6"), TopP: llm.Raw("0.5"), TopK: llm.Raw("3"), Seed: llm.Raw("1")}}, claude(),
			`"inferenceConfig":{"maxTokens":4000,"temperature":1,"stopSequences":["END"]},"additionalModelRequestFields":{"top_k":3},`, "clamp:temperature,drop:top_p,drop:stop[1],drop:seed",
		},
		"sampling of others": {
			llm.Request{Limits: llm.Limits{Stop: []llm.Raw{llm.Raw(`"END"`)}}, Sampling: llm.Sampling{Temperature: llm.Raw("0.6"), TopP: llm.Raw("0.5"), TopK: llm.Raw("3")}}, &llm.Caps{Bedrock: llm.BedrockCaps{Family: "openai", NoStopSeqs: true}},
			`"inferenceConfig":{"temperature":0.6,"topP":0.5},`, "drop:top_k,drop:stop",
		},
		"effort of Claude":      {effort("high"), claude(), `"outputConfig":{"effort":"high"},"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"}},`, ""},
		"nearest effort":        {effort("medium"), always, `"outputConfig":{"effort":"low"},"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"}},`, "clamp:reasoning_effort"},
		"none of Claude":        {effort("none"), claude(), `"additionalModelRequestFields":{"thinking":{"type":"disabled"}},`, ""},
		"none, always thinking": {effort("none"), always, `"outputConfig":{"effort":"low"},"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"}},`, "degrade:effort_none"},
		"budget": {
			llm.Request{Limits: limits, Reasoning: llm.ReasoningWish{Effort: "high"}, Sampling: llm.Sampling{Temperature: llm.Raw("0")}}, budget,
			`"inferenceConfig":{"maxTokens":4000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}},`, "drop:temperature",
		},
		"a client's own budget": {
			llm.Request{Limits: limits, Reasoning: llm.ReasoningWish{Mode: llm.ThinkingOn, Budget: 9000}}, budget,
			`"inferenceConfig":{"maxTokens":4000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":3999}},`, "clamp:thinking_budget",
		},
		"effort of Nova":     {effort("max"), family("nova"), `"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}},`, "clamp:reasoning_effort"},
		"none of Nova":       {effort("none"), family("nova"), `"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}},`, ""},
		"effort of gpt-oss":  {effort("minimal"), family("gpt-oss"), `"additionalModelRequestFields":{"reasoning_effort":"low"},`, "clamp:reasoning_effort"},
		"effort of gpt-5":    {effort("minimal"), family("openai"), `"additionalModelRequestFields":{"reasoning":{"effort":"minimal"}},`, ""},
		"effort of unknowns": {effort("low"), family(""), ``, "drop:reasoning_effort"},
		"schema": {
			llm.Request{Format: llm.Format{Kind: llm.JSONSchema, Name: llm.Raw(`"n"`), Schema: llm.Raw(`{"type": "object"}`)}}, claude(),
			`"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"n","schema":"{\"type\":\"object\"}"}}}},`, "",
		},
		"a tool by name":     {llm.Request{Tools: tools, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceNamed, Names: []llm.ToolName{{Name: "f"}}}}, claude(), toolConfig + `,"toolChoice":{"tool":{"name":"f"}}},`, ""},
		"any tool":           {llm.Request{Tools: tools, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceRequired}}, claude(), toolConfig + `,"toolChoice":{"any":{}}},`, ""},
		"none can be forced": {llm.Request{Tools: tools, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceRequired}}, &llm.Caps{NoForcedTool: true}, toolConfig + `,"toolChoice":{"auto":{}}},`, "degrade:tool_choice"},
		"one call at a time": {llm.Request{Tools: tools, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceRequired}, Parallel: &no}, claude(), toolConfig + `},"additionalModelRequestFields":{"tool_choice":{"type":"any","disable_parallel_tool_use":true}},`, ""},
		"one call, others":   {llm.Request{Tools: tools, Parallel: &no}, family("nova"), toolConfig + `},`, "drop:parallel_tool_calls"},
		"what has no place":  {llm.Request{Verbosity: llm.Raw(`"low"`), Meta: llm.Meta{User: llm.Raw(`"u"`), ServiceTier: "flex"}, State: llm.State{Store: &yes}, Other: []llm.Member{{Name: "foo", Value: llm.Raw("1")}}}, claude(), `"serviceTier":{"type":"flex"},`, "drop:verbosity,drop:user,drop:store,drop:foo"},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Items = []llm.Item{says(llm.User, "x")}
			call, err := Upstream{}.Encode(&c.req, c.caps)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(call.Body), "{"+c.want+`"messages":[{"role":"user","content":[{"text":"x"}]}]}`; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("got notes %q, want %q", got, c.notes)
			}
		})
	}
}

// TestOpenToolTurn proves that a budget is given up where its turn lacks the
// signed thinking that it demands.
func TestOpenToolTurn(t *testing.T) {
	caps := claude()
	caps.Thinking = []string{"enabled", "disabled"}
	req := &llm.Request{Items: []llm.Item{says(llm.User, "a"), calls("1", "f", ""), gives("1", str("x"))}, Tools: tools, Reasoning: llm.ReasoningWish{Effort: "low"}}
	call, err := Upstream{}.Encode(req, caps)
	if err != nil || !strings.Contains(string(call.Body), `"thinking":{"type":"disabled"}`) || call.Notes.String() != "degrade:thinking_off" {
		t.Errorf("got %s, %v, notes %q", call.Body, err, call.Notes)
	}
	signed := &llm.Reasoning{Opaque: []llm.Opaque{{Kind: llm.Signature, Vendor: "anthropic", Data: llm.Raw(`"S"`)}}}
	req.Items = append([]llm.Item{req.Items[0], signed}, req.Items[1:]...)
	call, err = Upstream{}.Encode(req, caps)
	if err != nil || !strings.Contains(string(call.Body), `"type":"enabled"`) || len(call.Notes) > 0 {
		t.Errorf("got %s, %v, notes %q", call.Body, err, call.Notes)
	}
}

func TestBreakpoints(t *testing.T) {
	m := &llm.Message{}
	for range 6 {
		m.Parts = append(m.Parts, &llm.Text{Text: llm.Raw(`"x"`), Cache: &llm.Breakpoint{}})
	}
	call, err := Upstream{}.Encode(&llm.Request{Items: []llm.Item{m}}, claude())
	if want := `[{"text":"x"},{"text":"x"},{"text":"x"},{"cachePoint"`; err != nil || strings.Count(string(call.Body), "cachePoint") != 4 || !strings.Contains(string(call.Body), want) || call.Notes.String() != "drop:prompt_cache_breakpoint" {
		t.Errorf("got %s, %v, notes %q", call.Body, err, call.Notes)
	}
}

// Marks are put in where nothing was said of the cache, and left out where the
// model takes none.
func TestCachePoints(t *testing.T) {
	long := strings.Repeat("x", leastCached)
	placing := func(family string) *llm.Caps {
		return &llm.Caps{PlaceCache: true, Bedrock: llm.BedrockCaps{Family: family}}
	}
	old := placing("anthropic")
	old.Bedrock.NoCachePoints = true
	marked := func(ttl string) llm.Item {
		return user(&llm.Text{Text: llm.Raw(`"x"`), Cache: &llm.Breakpoint{TTL: ttl}})
	}
	talk := []llm.Item{says(llm.System, long), says(llm.User, "1"), says(llm.Assistant, "2"), says(llm.User, "3"), says(llm.Assistant, "4"), says(llm.User, "5")}
	const point, hour = `{"cachePoint":{"type":"default"}}`, `{"cachePoint":{"type":"default","ttl":"1h"}}`
	for name, c := range map[string]struct {
		req    llm.Request
		caps   *llm.Caps
		points int
		has    string
		notes  string
	}{
		"placed":       {llm.Request{Items: talk, Tools: tools}, placing("anthropic"), 4, `{"text":"5"},` + point + `]}]}`, ""},
		"the last two": {llm.Request{Items: talk}, placing("anthropic"), 3, `{"text":"3"},` + point, ""},
		"Nova":         {llm.Request{Items: talk, Tools: tools}, placing("nova"), 3, `}}]},"system"`, ""},
		"short":        {llm.Request{Items: []llm.Item{says(llm.User, "1")}}, placing("anthropic"), 0, "", ""},
		"not wished":   {llm.Request{Items: talk, Cache: llm.Cache{Mode: "explicit"}}, placing("anthropic"), 0, "", ""},
		"Messages":     {llm.Request{Items: talk, Words: &llm.Words{Items: "messages", MarksCache: true}}, placing("anthropic"), 0, "", ""},
		"an old model": {llm.Request{Items: talk}, old, 0, "", ""},
		"other models": {llm.Request{Items: talk}, placing("openai"), 0, "", ""},
		"automatic":    {llm.Request{Items: talk[1:], Cache: llm.Cache{Auto: &llm.Breakpoint{TTL: "1h"}}}, claude(), 2, `{"text":"5"},` + hour + `]}]}`, ""},
		"no such mark": {llm.Request{Items: []llm.Item{marked("")}, Cache: llm.Cache{Auto: &llm.Breakpoint{}}}, &llm.Caps{Bedrock: llm.BedrockCaps{Family: "openai"}}, 0, "", "drop:prompt_cache_breakpoint,drop:cache_control"},
		"a result's":   {llm.Request{Items: []llm.Item{says(llm.User, "a"), calls("1", "f", ""), gives("1", &llm.Text{Text: llm.Raw(`"r"`), Cache: &llm.Breakpoint{}})}, Tools: tools}, claude(), 1, `{"toolResult":{"toolUseId":"1","content":[{"text":"r"}]}},` + point, ""},
		"Nova's tools": {llm.Request{Items: []llm.Item{marked("1h")}, Tools: []llm.Tool{{Name: "f", Cache: &llm.Breakpoint{}}}}, &llm.Caps{Bedrock: llm.BedrockCaps{Family: "nova"}}, 1, point, "drop:prompt_cache_breakpoint,clamp:cache_ttl"},
		"long first":   {llm.Request{Items: []llm.Item{marked("1h"), says(llm.Assistant, "a"), marked("12h"), says(llm.Assistant, "a"), marked(""), says(llm.Assistant, "a"), marked("1h")}}, claude(), 4, "", "clamp:cache_ttl"},
	} {
		call, err := Upstream{}.Encode(&c.req, c.caps)
		if err != nil {
			t.Fatal(err)
		}
		body := string(call.Body)
		if got := strings.Count(body, "cachePoint"); got != c.points || !strings.Contains(body, c.has) || call.Notes.String() != c.notes {
			t.Errorf("%s: %d marks, notes %q in %s", name, got, call.Notes, body)
		}
	}
}

func TestRefusals(t *testing.T) {
	remote := &llm.Media{Pos: llm.Pos{Item: 0, Part: 1}, Kind: llm.Image, URL: llm.Raw(`"https://x.test/a.png"`), At: ".image_url.url"}
	tiff := &llm.Media{Pos: llm.Pos{Item: 0, Part: 0}, Kind: llm.Image, Data: llm.Raw(`"T"`), MIME: "image/tiff", At: ".image_url.url"}
	sound := &llm.Media{Pos: llm.Pos{Item: 0, Part: 0}, Kind: llm.Audio, Data: llm.Raw(`"T"`), MIME: "audio/wav", At: ".input_audio.data"}
	zero := int64(0)
	prefill := claude()
	prefill.NoPrefill = true
	x := says(llm.User, "x")
	for name, c := range map[string]struct {
		req   llm.Request
		param string
	}{
		"remote":          {llm.Request{Items: []llm.Item{user(remote)}}, "messages[0].content[1].image_url.url"},
		"format":          {llm.Request{Items: []llm.Item{user(tiff)}}, "messages[0].content[0].image_url.url"},
		"sound":           {llm.Request{Items: []llm.Item{user(sound)}}, "messages[0].content[0].input_audio.data"},
		"orphan":          {llm.Request{Items: []llm.Item{x, gives("1")}}, "messages[2].tool_call_id"},
		"unanswered":      {llm.Request{Items: []llm.Item{x, calls("1", "f", "")}}, "messages[1].tool_call_id"},
		"nothing":         {llm.Request{Items: []llm.Item{says(llm.System, "x")}}, "messages"},
		"assistant first": {llm.Request{Items: []llm.Item{says(llm.Assistant, "x"), x}}, "messages[0]"},
		"prefill":         {llm.Request{Items: []llm.Item{x, &llm.Message{Pos: llm.Pos{Item: 1}, Role: llm.Assistant, Parts: []llm.Part{str("y")}}}}, "messages[1]"},
		"n":               {llm.Request{Items: []llm.Item{x}, Choices: 2}, "n"},
		"logprobs":        {llm.Request{Items: []llm.Item{x}, Logprobs: true}, "logprobs"},
		"audio":           {llm.Request{Items: []llm.Item{x}, Modalities: []string{"audio"}}, "modalities"},
		"bias":            {llm.Request{Items: []llm.Item{x}, Sampling: llm.Sampling{LogitBias: llm.Raw(`{"1":1}`)}}, "logit_bias"},
		"JSON":            {llm.Request{Items: []llm.Item{x}, Format: llm.Format{Kind: llm.JSONObject}}, "response_format"},
		"search":          {llm.Request{Items: []llm.Item{x}, Tools: []llm.Tool{{Server: &llm.ServerTool{Kind: llm.WebSearch, Type: "web_search"}}}}, "tools[0]"},
		"no tokens":       {llm.Request{Items: []llm.Item{x}, Limits: llm.Limits{MaxTokens: &zero}}, "max_completion_tokens"},
		"store":           {llm.Request{Items: []llm.Item{x}, State: llm.State{PreviousID: llm.Raw(`"r"`)}}, "previous_response_id"},
	} {
		_, err := Upstream{}.Encode(&c.req, prefill)
		if e := llm.AsError(err); err == nil || e.Param != c.param || !strings.Contains(e.Message, c.param) {
			t.Errorf("%s: got %v about %q, want %q", name, err, llm.AsError(err).Param, c.param)
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct {
		model, want string
		stream      bool
	}{
		{"us.anthropic.claude-v1:0", "/model/us.anthropic.claude-v1%3A0/converse", false},
		{"arn:aws:bedrock:x:1:inference-profile/y", "/model/arn%3Aaws%3Abedrock%3Ax%3A1%3Ainference-profile%2Fy/converse-stream", true},
	} {
		call, err := Upstream{}.Encode(&llm.Request{Items: []llm.Item{says(llm.User, "x")}, Stream: c.stream}, &llm.Caps{Model: c.model})
		if err != nil || call.Path != c.want || jsonedit.Scan(call.Body, noFields, &jsonedit.Object{}) != nil {
			t.Errorf("got %s %s, %v", call.Path, call.Body, err)
		}
	}
}
