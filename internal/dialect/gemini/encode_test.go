package gemini

import (
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
)

// three is a model that thinks in levels, at the Gemini API.
func three() *llm.Caps {
	return &llm.Caps{Model: "g3", Vendor: "google", Reasons: true, ReasonsKnown: true, Logprobs: true, Gemini: llm.GeminiCaps{
		Levels: []string{"low", "medium", "high"}, FunctionIDs: true, ResponseParts: true, NeedsSignature: true, ToolsAndSearch: true,
	}}
}

// pro is a model that thinks within a budget, on Vertex.
func pro() *llm.Caps {
	return &llm.Caps{Model: "g2", Vendor: "google", Reasons: true, ReasonsKnown: true, SchemaAlone: true, Gemini: llm.GeminiCaps{
		Vertex: true, Project: "p", Location: "l", Budget: [2]int64{128, 32768}, NoPenalties: true,
	}}
}

var chat = &llm.Words{Items: "messages", Parts: "content"}

func says(role llm.Role, texts ...string) *llm.Message {
	m := &llm.Message{Pos: llm.Pos{Part: -1}, Role: role}
	for _, t := range texts {
		m.Parts = append(m.Parts, &llm.Text{Text: llm.Quote(t)})
	}
	return m
}

func calls(id, name, args string, o ...llm.Opaque) *llm.ToolCall {
	return &llm.ToolCall{Pos: llm.Pos{Item: 1, Part: -1}, ID: llm.Quote(id), Name: name, Args: llm.Quote(args), Opaque: o}
}

func gives(id string, parts ...llm.Part) *llm.ToolResult {
	return &llm.ToolResult{Pos: llm.Pos{Item: 2, Part: -1}, ID: llm.Quote(id), Parts: parts}
}

func str(s string) *llm.Text { return &llm.Text{Text: llm.Quote(s)} }

func signed(data string) llm.Opaque {
	return llm.Opaque{Kind: llm.ThoughtSignature, Vendor: "google", Data: llm.Quote(data)}
}

var picture = &llm.Media{Kind: llm.Image, Data: llm.Raw(`"P"`), MIME: "image/jpg"}

func TestContents(t *testing.T) {
	loose := signed("L")
	loose.For = llm.Raw("1")
	foreign := llm.Opaque{Kind: llm.Signature, Vendor: "anthropic", Data: llm.Raw(`"A"`)}
	for name, c := range map[string]struct {
		items []llm.Item
		want  string
		notes string
	}{
		"leading instructions, part by part": {
			[]llm.Item{says(llm.System, "a", "b"), says(llm.Developer, "c"), says(llm.User, "hi")},
			`"systemInstruction":{"parts":[{"text":"a"},{"text":"b"},{"text":"c"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]`, "",
		},
		"later instructions": {
			[]llm.Item{says(llm.User, "hi"), says(llm.Assistant, "ho"), says(llm.System, "be\nbrief"), says(llm.User, "go")},
			`"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"ho"}]},{"role":"user","parts":[{"text":"<system>\nbe\nbrief\n</system>"},{"text":"go"}]}]`, "degrade:mid_system",
		},
		"neighbours merge, empty texts vanish": {
			[]llm.Item{says(llm.User, "a", ""), says(llm.User, "b"), says(llm.Assistant, ""), says(llm.User, "c")},
			`"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"},{"text":"c"}]}]`, "",
		},
		"late and crossed results": {
			[]llm.Item{says(llm.User, "a"), calls("1", "f", "{}", signed("S")), calls("2", "g", `{"x":1}`), says(llm.User, "wait"), gives("2", str("zwei")), gives("1", str("eins"))},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"S"},{"functionCall":{"id":"2","name":"g","args":{"x":1}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"eins"}}},{"functionResponse":{"id":"2","name":"g","response":{"output":"zwei"}}}]},{"role":"user","parts":[{"text":"wait"}]}]`, "",
		},
		"a sentinel for every step": {
			[]llm.Item{says(llm.User, "a"), calls("1", "f", ""), gives("1"), calls("1", "f", `[1`), &llm.ToolResult{ID: llm.Raw(`"1"`), IsError: true, Parts: []llm.Part{str("no")}}},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":""}}}]},` +
				`{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{"_raw":"[1"}},"thoughtSignature":"skip_thought_signature_validator"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"error":"no"}}}]}]`, "degrade:signature_sentinel,degrade:tool_arguments",
		},
		"a signature that stands apart from its text": {
			[]llm.Item{says(llm.User, "a"), &llm.Reasoning{Texts: []llm.Thought{{Text: llm.Raw(`"t"`)}}, Opaque: []llm.Opaque{loose}}, says(llm.Assistant, "b")},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b","thoughtSignature":"L"}]}]`, "",
		},
		"a signature without a text": {
			[]llm.Item{says(llm.User, "a"), &llm.Reasoning{Opaque: []llm.Opaque{loose}}, says(llm.User, "b")},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"L"}]},{"role":"user","parts":[{"text":"b"}]}]`, "",
		},
		"what another model signed": {
			[]llm.Item{says(llm.User, "a"), &llm.Reasoning{Opaque: []llm.Opaque{foreign}}, says(llm.Assistant, "b"), says(llm.User, "c")},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"user","parts":[{"text":"c"}]}]`, "drop:reasoning_details",
		},
		"media": {
			[]llm.Item{&llm.Message{Parts: []llm.Part{picture, &llm.Media{Kind: llm.Audio, MIME: "audio/mpeg", Data: llm.Raw(`"M"`)}, &llm.Media{Kind: llm.File, Name: llm.Raw(`"x.pdf"`), Data: llm.Raw(`"F"`)}, &llm.Media{Kind: llm.File, Text: llm.Raw(`"T"`), Name: llm.Raw(`"n"`)}}}},
			`"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/jpeg","data":"P"}},{"inlineData":{"mimeType":"audio/mp3","data":"M"}},{"inlineData":{"mimeType":"application/pdf","data":"F"}},{"text":"[document: n]\nT"}]}]`, "",
		},
		"parts of a result": {
			[]llm.Item{says(llm.User, "a"), calls("1", "f", "", signed("S")), gives("1", str("x"), &llm.ToolReference{Name: "foo"}, picture, str("y"))},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"S"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"x\n[tool loaded: foo]\ny"},"parts":[{"inlineData":{"mimeType":"image/jpeg","data":"P"}}]}}]}]`, "degrade:tool_reference",
		},
		"a sealed turn of another": {
			[]llm.Item{says(llm.User, "a"), &llm.NativeTurn{Opaque: llm.Opaque{Kind: llm.WholeTurn, Vendor: "anthropic"}, Items: []llm.Item{says(llm.Assistant, "b")}}, says(llm.User, "c")},
			`"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"user","parts":[{"text":"c"}]}]`, "drop:reasoning_details",
		},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := Upstream{}.Encode(&llm.Request{Words: chat, Items: c.items}, three())
			if err != nil {
				t.Fatal(err)
			}
			if got := string(call.Body); got != `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}},`+c.want+"}" {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := call.Notes.String(); got != c.notes {
				t.Errorf("got notes %q, want %q", got, c.notes)
			}
		})
	}
}

// TestAppendOnly proves that a longer history begins as the shorter one does.
func TestAppendOnly(t *testing.T) {
	items := []llm.Item{says(llm.System, "s"), says(llm.User, "a"), calls("1", "f", "{}"), gives("1", str("x")), says(llm.Assistant, "b"), says(llm.User, "c"), calls("2", "f", "{}"), gives("2", str("y"))}
	before := ""
	for _, n := range []int{2, 4, 6, 8} {
		call, err := Upstream{}.Encode(&llm.Request{Words: chat, Items: items[:n]}, three())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(call.Body), before) {
			t.Errorf("with %d items\n%s\ndoes not begin with\n%s", n, call.Body, before)
		}
		before = strings.TrimSuffix(string(call.Body), "]}")
	}
}

func TestConfig(t *testing.T) {
	no, n := false, int64(99)
	schema := llm.Format{Kind: llm.JSONSchema, Schema: llm.Raw(`{"type":"object"}`)}
	f := []llm.Tool{{Name: "f"}}
	search := llm.Tool{Server: &llm.ServerTool{Kind: llm.WebSearch, Type: "web_search"}}
	for name, c := range map[string]struct {
		req         llm.Request
		caps        *llm.Caps
		want, notes string
	}{
		"effort":           {llm.Request{Reasoning: llm.ReasoningWish{Effort: "medium"}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"MEDIUM","includeThoughts":true}}`, ""},
		"too little":       {llm.Request{Reasoning: llm.ReasoningWish{Effort: "minimal"}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}}`, "clamp:reasoning_effort"},
		"too much":         {llm.Request{Reasoning: llm.ReasoningWish{Effort: "max"}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}}`, "clamp:reasoning_effort"},
		"none":             {llm.Request{Reasoning: llm.ReasoningWish{Effort: "none"}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}`, "degrade:effort_none"},
		"none, budget":     {llm.Request{Reasoning: llm.ReasoningWish{Mode: llm.ThinkingOff}}, pro(), `"generationConfig":{"thinkingConfig":{"thinkingBudget":128}}`, "degrade:effort_none"},
		"minimal, budget":  {llm.Request{Reasoning: llm.ReasoningWish{Effort: "minimal"}}, pro(), `"generationConfig":{"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}}`, ""},
		"xhigh, budget":    {llm.Request{Reasoning: llm.ReasoningWish{Effort: "xhigh"}}, pro(), `"generationConfig":{"thinkingConfig":{"thinkingBudget":24576,"includeThoughts":true}}`, "clamp:reasoning_effort"},
		"a budget":         {llm.Request{Reasoning: llm.ReasoningWish{Mode: llm.ThinkingOn, Budget: 99999}}, pro(), `"generationConfig":{"thinkingConfig":{"thinkingBudget":32768,"includeThoughts":true}}`, "clamp:thinkingBudget"},
		"a budget, levels": {llm.Request{Reasoning: llm.ReasoningWish{Mode: llm.ThinkingOn, Budget: 10000}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"MEDIUM","includeThoughts":true}}`, ""},
		"hidden":           {llm.Request{Reasoning: llm.ReasoningWish{Summary: llm.Raw("null"), Effort: "low"}}, three(), `"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}`, ""},
		"does not think":   {llm.Request{Reasoning: llm.ReasoningWish{Effort: "low"}}, &llm.Caps{Model: "g", ReasonsKnown: true}, ``, "drop:reasoning_effort"},
		"limits": {
			llm.Request{Limits: llm.Limits{MaxTokens: &n, Stop: []llm.Raw{llm.Raw(`"END"`)}}, Choices: 2, Sampling: llm.Sampling{Temperature: llm.Raw("0"), TopP: llm.Raw("0.5"), TopK: llm.Raw("3"), Seed: llm.Raw("7"), Presence: llm.Raw("1"), Frequency: llm.Raw("0"), LogitBias: llm.Raw("{}")}}, three(),
			`"generationConfig":{"maxOutputTokens":99,"stopSequences":["END"],"candidateCount":2,"temperature":0,"topP":0.5,"topK":3,"seed":7,"presencePenalty":1,"frequencyPenalty":0,"thinkingConfig":{"includeThoughts":true}}`, "drop:logit_bias",
		},
		"no penalties": {llm.Request{Sampling: llm.Sampling{Presence: llm.Raw("1"), MinP: llm.Raw("0.1")}}, pro(), `"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`, "drop:presence_penalty,drop:min_p"},
		"JSON":         {llm.Request{Format: llm.Format{Kind: llm.JSONObject}}, three(), `"generationConfig":{"responseMimeType":"application/json","thinkingConfig":{"includeThoughts":true}}`, ""},
		"a schema beside tools": {
			llm.Request{Format: schema, Tools: f}, three(),
			`"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}]`, "",
		},
		"search beside functions": {
			llm.Request{Tools: []llm.Tool{f[0], search}}, three(),
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]},{"googleSearch":{}}]`, "",
		},
		"search beside functions, before 3": {
			llm.Request{Tools: []llm.Tool{f[0], search}}, pro(),
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}]`, "drop:web_search",
		},
		"search alone": {llm.Request{Tools: []llm.Tool{search}}, pro(), `"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"googleSearch":{}}]`, ""},
		"none of the tools": {
			llm.Request{Tools: []llm.Tool{f[0], search}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceNone}, Parallel: &no}, three(),
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`, "drop:parallel_tool_calls",
		},
		"names": {
			llm.Request{Tools: []llm.Tool{{Name: "9x", Desc: llm.Raw(`"d"`)}}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceNamed, Names: []llm.ToolName{{Name: "9x"}}}}, three(),
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"_9x","description":"d","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["_9x"]}}`, "",
		},
		"allowed": {
			llm.Request{Tools: f, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceAuto, Allowed: true, Names: []llm.ToolName{{Name: "f"}}}}, three(),
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]}}`, "",
		},
		"Google's own words": {
			llm.Request{Other: []llm.Member{{Name: "extra_body", Value: llm.Raw(`{"google":{"thinking_config":{"thinking_budget":1},"cached_content":"cachedContents/x","generationConfig":{"mediaResolution":"LOW"}}}`)}, {Name: "foo", Value: llm.Raw("1")}}, Meta: llm.Meta{Safety: llm.Raw("[]")}}, three(),
			`"generationConfig":{"thinkingConfig":{"thinking_budget":1},"mediaResolution":"LOW"}`, "drop:foo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Words = chat
			c.req.Items = []llm.Item{says(llm.User, "x")}
			call, err := Upstream{}.Encode(&c.req, c.caps)
			if err != nil {
				t.Fatal(err)
			}
			got, rest, _ := strings.Cut(string(call.Body), `"contents"`)
			if got = strings.TrimSuffix(strings.TrimPrefix(got, "{"), ","); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if call.Notes.String() != c.notes {
				t.Errorf("got notes %q, want %q", call.Notes, c.notes)
			}
			if name == "Google's own words" && !strings.HasSuffix(rest, `],"safetySettings":[],"cachedContent":"cachedContents/x"}`) {
				t.Errorf("got at the end %s", rest)
			}
		})
	}
}

func TestMeta(t *testing.T) {
	req := &llm.Request{Words: chat, Stream: true, Items: []llm.Item{says(llm.User, "x")}, Verbosity: llm.Raw(`"low"`), Meta: llm.Meta{User: llm.Raw(`"A@b"`), Metadata: llm.Raw(`{"Team":"X 1"}`), ServiceTier: "default"}}
	call, err := Upstream{}.Encode(req, pro())
	if err != nil {
		t.Fatal(err)
	}
	if want := `"labels":{"team":"x_1","user":"a_b"},"serviceTier":"standard"}`; !strings.HasSuffix(string(call.Body), want) {
		t.Errorf("got %s, want it to end with %s", call.Body, want)
	}
	if want := "/projects/p/locations/l/publishers/google/models/g2:streamGenerateContent?alt=sse"; call.Path != want {
		t.Errorf("got path %s, want %s", call.Path, want)
	}
	req.Stream = false
	call, err = Upstream{}.Encode(req, three())
	if err != nil {
		t.Fatal(err)
	}
	if got := call.Notes.String(); got != "drop:user,drop:metadata,drop:verbosity" || call.Path != "/models/g3:generateContent" {
		t.Errorf("got %s and notes %q", call.Path, got)
	}
}

func TestRefusals(t *testing.T) {
	remote := &llm.Media{Pos: llm.Pos{Item: 3, Part: 1}, Kind: llm.Image, URL: llm.Raw(`"https://x.test/a.png"`), At: ".image_url.url"}
	stored := &llm.Media{Pos: llm.Pos{Item: 0, Part: 0}, Kind: llm.File, FileID: llm.Raw(`"f"`), At: ".file.file_id"}
	user := func(p llm.Part) []llm.Item { return []llm.Item{&llm.Message{Parts: []llm.Part{p}}} }
	zero := int64(0)
	for name, c := range map[string]struct {
		req   llm.Request
		caps  *llm.Caps
		param string
	}{
		"remote":        {llm.Request{Items: user(remote)}, three(), "messages[3].content[1].image_url.url"},
		"stored":        {llm.Request{Items: user(stored)}, three(), "messages[0].content[0].file.file_id"},
		"orphan":        {llm.Request{Items: []llm.Item{says(llm.User, "x"), gives("1")}}, three(), "messages[2].tool_call_id"},
		"unanswered":    {llm.Request{Items: []llm.Item{says(llm.User, "x"), calls("1", "f", "")}}, three(), "messages[1].tool_call_id"},
		"nothing":       {llm.Request{Items: []llm.Item{says(llm.System, "x")}}, three(), "messages"},
		"schema":        {llm.Request{Items: user(str("x")), Format: llm.Format{Kind: llm.JSONObject}, Tools: []llm.Tool{{Name: "f"}}}, pro(), "response_format"},
		"logprobs":      {llm.Request{Items: user(str("x")), Logprobs: true}, pro(), "logprobs"},
		"audio":         {llm.Request{Items: user(str("x")), Modalities: []string{"text", "audio"}}, three(), "modalities"},
		"image":         {llm.Request{Items: user(str("x")), Modalities: []string{"image"}}, three(), "modalities"},
		"n":             {llm.Request{Items: user(str("x")), Choices: 9}, three(), "n"},
		"stop":          {llm.Request{Items: user(str("x")), Limits: llm.Limits{Stop: make([]llm.Raw, 6)}}, three(), "stop"},
		"no tokens":     {llm.Request{Items: user(str("x")), Limits: llm.Limits{MaxTokens: &zero, MaxTokensRaw: "max_tokens"}}, three(), "max_tokens"},
		"bias":          {llm.Request{Items: user(str("x")), Sampling: llm.Sampling{LogitBias: llm.Raw(`{"1":1}`)}}, three(), "logit_bias"},
		"file search":   {llm.Request{Items: user(str("x")), Tools: []llm.Tool{{Server: &llm.ServerTool{Kind: llm.FileSearch, Type: "file_search"}}}}, three(), "tools[0]"},
		"cached":        {llm.Request{Items: user(str("x")), Tools: []llm.Tool{{Name: "f"}}, Other: []llm.Member{{Name: "cached_content", Value: llm.Raw(`"c"`)}}}, three(), "cached_content"},
		"store":         {llm.Request{Items: user(str("x")), State: llm.State{PreviousID: llm.Raw(`"r"`)}}, three(), "previous_response_id"},
		"system image":  {llm.Request{Items: []llm.Item{&llm.Message{Role: llm.System, Parts: []llm.Part{remote}}}}, three(), "messages[3].content[1]"},
		"old compacted": {llm.Request{Items: []llm.Item{says(llm.User, "x"), &llm.Compaction{Pos: llm.Pos{Item: 1, Part: -1}}}}, three(), "messages[1]"},
	} {
		c.req.Words = chat
		_, err := Upstream{}.Encode(&c.req, c.caps)
		if e := llm.AsError(err); err == nil || e.Param != c.param || !strings.Contains(e.Message, c.param) {
			t.Errorf("%s: got %v about %q, want %q", name, err, llm.AsError(err).Param, c.param)
		}
	}
	remoteCaps := three()
	remoteCaps.RemoteMedia = true
	call, err := Upstream{}.Encode(&llm.Request{Words: chat, Items: user(remote)}, remoteCaps)
	if err != nil || !strings.Contains(string(call.Body), `{"fileData":{"mimeType":"image/png","fileUri":"https://x.test/a.png"}}`) {
		t.Errorf("got %s, %v", call.Body, err)
	}
}

// Which tools an upstream runs by itself.
func TestRuns(t *testing.T) {
	draws := &llm.Caps{Gemini: llm.GeminiCaps{Images: true}}
	for name, c := range map[string]struct {
		kind      llm.ServerKind
		functions bool
		caps      *llm.Caps
		want      bool
	}{
		"a search":                  {llm.WebSearch, false, pro(), true},
		"a search beside functions": {llm.WebSearch, true, pro(), false},
		"both, of a newer model":    {llm.WebSearch, true, three(), true},
		"code":                      {llm.CodeExecution, false, pro(), true},
		"files":                     {llm.FileSearch, false, three(), false},
		"an image":                  {llm.ImageGeneration, false, pro(), false},
		"an image of one that can":  {llm.ImageGeneration, true, draws, true},
	} {
		if got := (Upstream{}).Runs(c.kind, c.functions, c.caps); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
