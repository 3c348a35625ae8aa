package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// chatWords are those of a client that speaks Chat Completions.
var chatWords = &llm.Words{Items: "messages", Parts: "content"}

func say(role llm.Role, item int, texts ...string) *llm.Message {
	m := &llm.Message{Pos: llm.Pos{Item: item, Part: -1}, Role: role}
	for i, text := range texts {
		m.Parts = append(m.Parts, &llm.Text{Pos: llm.Pos{Item: item, Part: i}, Text: llm.Quote(text)})
	}
	return m
}

func call(item int, id, args string) *llm.ToolCall {
	return &llm.ToolCall{Pos: llm.Pos{Item: item, Part: -1}, ID: llm.Quote(id), Name: "f", Args: llm.Quote(args)}
}

func gave(item int, id, text string) *llm.ToolResult {
	return &llm.ToolResult{Pos: llm.Pos{Item: item, Part: -1}, ID: llm.Quote(id), Parts: []llm.Part{
		&llm.Text{Pos: llm.Pos{Item: item, Part: -1}, Text: llm.Quote(text)}}}
}

func signed(item int, text, signature, vendor string) *llm.Reasoning {
	return &llm.Reasoning{Pos: llm.Pos{Item: item, Part: -1}, Texts: []llm.Thought{{Text: llm.Quote(text)}},
		Opaque: []llm.Opaque{{Kind: llm.Signature, Vendor: vendor, Data: llm.Quote(signature)}}}
}

// outcome is a body without what every body has, and its notes; or a refusal.
func outcome(t *testing.T, req *llm.Request, caps *llm.Caps) (body map[string]any, notes llm.Notes, err *llm.Error) {
	t.Helper()
	c, failed := Upstream{}.Encode(req, caps)
	if failed != nil {
		errors.As(failed, &err)
		return nil, nil, err
	}
	if e := json.Unmarshal(c.Body, &body); e != nil {
		t.Fatalf("%v in %s", e, c.Body)
	}
	return body, c.Notes, nil
}

func sameJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v in %s", what, err, want)
	}
	if !reflect.DeepEqual(got, w) {
		g, _ := json.Marshal(got)
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, want)
	}
}

func sameNotes(t *testing.T, what string, got llm.Notes, want string) {
	t.Helper()
	slices.Sort(got)
	if got.String() != want {
		t.Errorf("%s: got notes %q, want %q", what, got, want)
	}
}

func upTo(n int64) *int64 { return &n }

func TestConversation(t *testing.T) {
	old := &llm.Caps{Vendor: "anthropic", Thinking: []string{enabled, disabled}}
	able := &llm.Caps{Vendor: "anthropic", MidSystem: true}
	u := func(s string) string { return `{"role":"user","content":[{"type":"text","text":"` + s + `"}]}` }
	a := func(s string) string { return `{"role":"assistant","content":[{"type":"text","text":"` + s + `"}]}` }
	for name, c := range map[string]struct {
		caps        *llm.Caps
		items       []llm.Item
		want, notes string
	}{
		"late result moves up, results in the order of the calls": {old,
			[]llm.Item{say(llm.User, 0, "x"), call(1, "a", ""), say(llm.Assistant, 2, "and"), call(3, "b", `{"n":1}`), gave(4, "b", "B"), say(llm.User, 5, "brief"), gave(6, "a", "A")},
			`[` + u("x") + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"and"},{"type":"tool_use","id":"b","name":"f","input":{"n":1}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"tool_result","tool_use_id":"b","content":"B"},{"type":"text","text":"brief"}]}]`, ""},
		"an ID used twice": {old,
			[]llm.Item{say(llm.User, 0, "x"), call(1, "a", ""), gave(2, "a", "1"), call(3, "a", ""), gave(4, "a", "2")},
			`[` + u("x") + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"2"}]}]`, ""},
		"system after user, then the assistant": {able,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.System, 1, "S"), say(llm.Assistant, 2, "y"), say(llm.User, 3, "z")},
			`[` + u("x") + `,{"role":"system","content":[{"type":"text","text":"S"}]},` + a("y") + `,` + u("z") + `]`, ""},
		"two systems are one": {able,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.System, 1, "S"), say(llm.Developer, 2, "T")},
			`[` + u("x") + `,{"role":"system","content":[{"type":"text","text":"S"},{"type":"text","text":"T"}]}]`, ""},
		"system after the assistant is wrapped": {able,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.Assistant, 1, "y"), say(llm.System, 2, "S"), say(llm.User, 3, "z")},
			`[` + u("x") + `,` + a("y") + `,{"role":"user","content":[{"type":"text","text":"<system>\nS\n</system>"},{"type":"text","text":"z"}]}]`, "degrade:mid_system"},
		"system before more of the user is wrapped where it stands": {able,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.System, 1, "S"), say(llm.User, 2, "z")},
			`[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<system>\nS\n</system>"},{"type":"text","text":"z"}]}]`, "degrade:mid_system"},
		"wrapped after the results": {old,
			[]llm.Item{say(llm.User, 0, "x"), call(1, "a", ""), say(llm.System, 2, "S"), gave(3, "a", "A")},
			`[` + u("x") + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"text","text":"<system>\nS\n</system>"}]}]`, "degrade:mid_system"},
		"an empty turn vanishes": {old,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.Assistant, 1, " \n"), say(llm.User, 2, "", "z")},
			`[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"z"}]}]`, ""},
		"foreign state stays out": {old,
			[]llm.Item{say(llm.User, 0, "x"), signed(1, "t", "S", "bedrock"), say(llm.Assistant, 1, "y"), say(llm.User, 2, "z")},
			`[` + u("x") + `,` + a("y") + `,` + u("z") + `]`, "drop:reasoning_details"},
		"own state goes back": {old,
			[]llm.Item{say(llm.User, 0, "x"), signed(1, "", "S", "anthropic"), say(llm.Assistant, 1, "y"), say(llm.User, 2, "z")},
			`[` + u("x") + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"S"},{"type":"text","text":"y"}]},` + u("z") + `]`, ""},
		"a refusal is text": {old,
			[]llm.Item{say(llm.User, 0, "x"), &llm.Message{Pos: llm.Pos{Item: 1, Part: -1}, Role: llm.Assistant, Parts: []llm.Part{&llm.Refusal{Text: llm.Raw(`"no"`)}}}, say(llm.User, 2, "z")},
			`[` + u("x") + `,` + a("no") + `,` + u("z") + `]`, "degrade:refusal"},
		"white space after a prefill": {old,
			[]llm.Item{say(llm.User, 0, "x"), say(llm.Assistant, 1, "Sure:\t\n ")},
			`[` + u("x") + `,` + a("Sure:") + `]`, ""},
		"the parts of a result": {old,
			[]llm.Item{say(llm.User, 0, "x"), call(1, "a", ""), &llm.ToolResult{Pos: llm.Pos{Item: 2, Part: -1}, ID: llm.Raw(`"a"`), IsError: true, Parts: []llm.Part{
				&llm.Text{Pos: llm.Pos{Item: 2}, Text: llm.Raw(`"t"`)}, &llm.Media{Pos: llm.Pos{Item: 2, Part: 1}, Kind: llm.Image, MIME: "image/jpg", Data: llm.Raw(`"QQ=="`)}}}},
			`[` + u("x") + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[` +
				`{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QQ=="}}]}]}]`, ""},
		"documents": {old,
			[]llm.Item{&llm.Message{Pos: llm.Pos{Part: -1}, Parts: []llm.Part{
				&llm.Media{Kind: llm.File, MIME: "application/pdf", Name: llm.Raw(`"a.pdf"`), Data: llm.Raw(`"JVBERi0="`)},
				&llm.Media{Kind: llm.File, MIME: "text/plain", Data: llm.Raw(`"aMOp"`)}}}},
			`[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"},` +
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hé"}}]}]`, ""},
	} {
		body, notes, err := outcome(t, &llm.Request{Words: chatWords, Items: c.items, Limits: llm.Limits{MaxTokens: upTo(9)}}, c.caps)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sameJSON(t, name, body["messages"], c.want)
		sameNotes(t, name, notes, c.notes)
	}
}

func TestRefusals(t *testing.T) {
	media := func(m llm.Media) llm.Item {
		m.Pos = llm.Pos{Item: 0, Part: 1}
		return &llm.Message{Pos: llm.Pos{Part: -1}, Parts: []llm.Part{&m}}
	}
	items := func(items ...llm.Item) *llm.Request { return &llm.Request{Items: items} }
	user := say(llm.User, 0, "x")
	for param, c := range map[string]struct {
		req  *llm.Request
		caps llm.Caps
	}{
		"n":                                {&llm.Request{Choices: 2}, llm.Caps{}},
		"logprobs":                         {&llm.Request{Logprobs: true}, llm.Caps{}},
		"modalities":                       {&llm.Request{Modalities: []string{"text", "audio"}}, llm.Caps{}},
		"audio":                            {&llm.Request{Audio: llm.Raw(`{}`)}, llm.Caps{}},
		"logit_bias":                       {&llm.Request{Sampling: llm.Sampling{LogitBias: llm.Raw(`{"1":2}`)}}, llm.Caps{}},
		"response_format":                  {&llm.Request{Format: llm.Format{Kind: llm.JSONObject}}, llm.Caps{}},
		"messages":                         {items(say(llm.System, 0, "S")), llm.Caps{}},
		"messages[0]":                      {items(say(llm.Assistant, 0, "y")), llm.Caps{}},
		"messages[1]":                      {items(user, say(llm.Assistant, 1, "y")), llm.Caps{NoPrefill: true}},
		"messages[2].tool_call_id":         {items(user, gave(2, "a", "A")), llm.Caps{}},
		"messages[3].tool_call_id":         {items(user, call(3, "a", ""), say(llm.User, 4, "z")), llm.Caps{}},
		"messages[5].tool_call_id":         {items(user, call(3, "a", ""), gave(4, "a", "A"), gave(5, "a", "B")), llm.Caps{}},
		"messages[0].content[1].file_id":   {items(media(llm.Media{Kind: llm.File, FileID: llm.Raw(`"f"`), At: ".file_id"})), llm.Caps{}},
		"messages[0].content[1].audio":     {items(media(llm.Media{Kind: llm.Audio, Data: llm.Raw(`"QQ=="`), At: ".audio"})), llm.Caps{}},
		"messages[0].content[1].image_url": {items(media(llm.Media{Kind: llm.Image, URL: llm.Raw(`"gs://b/o"`), At: ".image_url"})), llm.Caps{}},
		"tools[4]":                         {&llm.Request{Items: []llm.Item{user}, Tools: []llm.Tool{{Index: 4, Server: &llm.ServerTool{Kind: llm.FileSearch, Type: "file_search"}}}}, llm.Caps{}},
	} {
		c.req.Words = chatWords
		_, _, err := outcome(t, c.req, &c.caps)
		if err == nil {
			t.Errorf("%s: not refused", param)
			continue
		}
		if err.Param != param || err.Kind != llm.Unsupported || !strings.Contains(err.Message, strings.TrimPrefix(param, "messages[0].content[1].")) {
			t.Errorf("%s: got %+v", param, err)
		}
	}
}

// settled are the members of a body beside the conversation.
func TestSettings(t *testing.T) {
	never := false
	f := llm.Tool{Name: "f", Schema: llm.Raw(`{"type":"object"}`)}
	named := llm.ToolChoice{Mode: llm.ChoiceNamed, Names: []llm.ToolName{{Name: "f"}}}
	adaptives := []string{adaptive, disabled}
	budgets := []string{enabled, disabled}
	between := []string{adaptive, betweenTools}
	effort := func(e string, max int64) llm.Request {
		return llm.Request{Reasoning: llm.ReasoningWish{Effort: e}, Limits: llm.Limits{MaxTokens: &max}}
	}
	for name, c := range map[string]struct {
		req         llm.Request
		caps        llm.Caps
		want, notes string
	}{
		"minimal":                {effort("minimal", 9), llm.Caps{Thinking: adaptives}, `{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}`, "clamp:reasoning_effort"},
		"nearest effort":         {effort("xhigh", 9), llm.Caps{Thinking: adaptives, Efforts: []string{"low", "high"}}, `{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}`, "clamp:reasoning_effort"},
		"none":                   {effort("none", 9), llm.Caps{Thinking: adaptives}, `{"max_tokens":9,"thinking":{"type":"disabled"}}`, ""},
		"none between tools":     {effort("none", 9), llm.Caps{Thinking: between}, `{"max_tokens":9,"thinking":{"type":"between_tools"}}`, "degrade:effort_none"},
		"none at least":          {effort("none", 9), llm.Caps{Thinking: []string{adaptive}}, `{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}`, "degrade:effort_none"},
		"budget":                 {effort("low", 9000), llm.Caps{Thinking: budgets}, `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2048}}`, ""},
		"half of the limit":      {effort("max", 9000), llm.Caps{Thinking: budgets}, `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4500}}`, ""},
		"least budget":           {effort("max", 1100), llm.Caps{Thinking: budgets}, `{"max_tokens":1100,"thinking":{"type":"enabled","budget_tokens":1024}}`, ""},
		"no room":                {effort("max", 1024), llm.Caps{Thinking: budgets}, `{"max_tokens":1024,"thinking":{"type":"disabled"}}`, "degrade:thinking_off"},
		"does not reason":        {effort("low", 9), llm.Caps{ReasonsKnown: true}, `{"max_tokens":9}`, "drop:reasoning_effort"},
		"no summary":             {llm.Request{Reasoning: llm.ReasoningWish{Effort: "low", Summary: llm.Raw("null")}, Limits: llm.Limits{MaxTokens: upTo(9)}}, llm.Caps{}, `{"max_tokens":9,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"}}`, ""},
		"as written":             {llm.Request{Other: []llm.Member{{Name: "thinking", Value: llm.Raw(`{"type":"future"}`)}}, Limits: llm.Limits{MaxTokens: upTo(9)}}, llm.Caps{}, `{"max_tokens":9,"thinking":{"type":"future"}}`, ""},
		"budget and forced tool": {llm.Request{Reasoning: llm.ReasoningWish{Effort: "low"}, Limits: llm.Limits{MaxTokens: upTo(9000)}, Tools: []llm.Tool{f}, ToolChoice: named}, llm.Caps{Thinking: budgets}, `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2048},"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"}}`, "degrade:tool_choice"},
		"no forced tool":         {llm.Request{Tools: []llm.Tool{f}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceRequired}, Parallel: &never}, llm.Caps{NoForcedTool: true, DefaultMaxTokens: 7}, `{"max_tokens":7,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, "default:max_tokens,degrade:tool_choice"},
		"choice of one":          {llm.Request{Tools: []llm.Tool{f}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceRequired, Allowed: true, Names: named.Names}}, llm.Caps{DefaultMaxTokens: 7}, `{"max_tokens":7,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}}`, "default:max_tokens"},
		"choice of some":         {llm.Request{Tools: []llm.Tool{f}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceAuto, Allowed: true, Names: named.Names}}, llm.Caps{DefaultMaxTokens: 7}, `{"max_tokens":7,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"}}`, "default:max_tokens,degrade:tool_choice"},
		"none stays alone":       {llm.Request{Tools: []llm.Tool{f}, ToolChoice: llm.ToolChoice{Mode: llm.ChoiceNone}, Parallel: &never}, llm.Caps{DefaultMaxTokens: 7}, `{"max_tokens":7,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`, "default:max_tokens"},
		"clamped":                {llm.Request{Limits: llm.Limits{MaxTokens: upTo(99)}, Sampling: llm.Sampling{Temperature: llm.Raw("1.5"), TopP: llm.Raw("0.5"), TopK: llm.Raw("3")}}, llm.Caps{MaxOutput: 9}, `{"max_tokens":9,"temperature":1,"top_k":3}`, "clamp:max_tokens,clamp:temperature,drop:top_p"},
		"no sampling":            {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Sampling: llm.Sampling{Temperature: llm.Raw("0"), TopP: llm.Raw("0.5")}}, llm.Caps{NoSampling: true}, `{"max_tokens":9}`, "drop:temperature,drop:top_p"},
		"new version":            {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Sampling: llm.Sampling{TopK: llm.Raw("5")}}, llm.Caps{Anthropic: llm.AnthropicCaps{Version: noSampling}}, `{"max_tokens":9}`, "drop:top_k"},
		"user":                   {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Meta: llm.Meta{User: llm.Raw(`"u"`), SafetyID: llm.Raw(`"s"`), ServiceTier: "default"}}, llm.Caps{}, `{"max_tokens":9,"metadata":{"user_id":"s"},"service_tier":"standard_only"}`, ""},
		"address":                {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Meta: llm.Meta{User: llm.Raw(`"u@e.test"`), ServiceTier: "flex"}}, llm.Caps{}, `{"max_tokens":9}`, "drop:service_tier,drop:user"},
		"fast":                   {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Meta: llm.Meta{ServiceTier: "fast"}}, llm.Caps{Anthropic: llm.AnthropicCaps{FastSpeed: true}}, `{"max_tokens":9,"speed":"fast"}`, ""},
		"search":                 {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Tools: []llm.Tool{{Server: &llm.ServerTool{Kind: llm.WebSearch, Domains: []llm.Raw{llm.Raw(`"e.test"`)}}}}}, llm.Caps{Anthropic: llm.AnthropicCaps{WebSearch: "web_search_20260318"}}, `{"max_tokens":9,"tools":[{"type":"web_search_20260318","name":"web_search","allowed_domains":["e.test"]}]}`, ""},
		"strict, without it":     {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Tools: []llm.Tool{{Name: "f", Strict: new(true), Schema: llm.Raw(`{"type":"object"}`)}}}, llm.Caps{NoStrictTools: true}, `{"max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}]}`, "drop:strict"},
		"the rest":               {llm.Request{Limits: llm.Limits{MaxTokens: upTo(9)}, Verbosity: llm.Raw(`"low"`), Sampling: llm.Sampling{Seed: llm.Raw("0"), Presence: llm.Raw("0")}, Meta: llm.Meta{Metadata: llm.Raw(`{"a":"b"}`)}, State: llm.State{Store: new(true)}}, llm.Caps{}, `{"max_tokens":9}`, "drop:metadata,drop:presence_penalty,drop:seed,drop:store,drop:verbosity"},
	} {
		c.req.Words, c.req.Items = chatWords, []llm.Item{say(llm.User, 0, "x")}
		body, notes, err := outcome(t, &c.req, &c.caps)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		delete(body, "messages")
		delete(body, "model")
		sameJSON(t, name, body, c.want)
		sameNotes(t, name, notes, c.notes)
	}
}

func TestOpenToolTurn(t *testing.T) {
	caps := &llm.Caps{Vendor: "anthropic", Thinking: []string{enabled, disabled}}
	x, think := say(llm.User, 0, "x"), signed(1, "t", "S", "anthropic")
	for name, c := range map[string]struct {
		items []llm.Item
		want  string
	}{
		"signed":              {[]llm.Item{x, think, call(1, "a", ""), gave(2, "a", "A")}, enabled},
		"unsigned":            {[]llm.Item{x, call(1, "a", ""), gave(2, "a", "A")}, disabled},
		"signed at its start": {[]llm.Item{x, think, call(1, "a", ""), gave(2, "a", "A"), call(3, "b", ""), gave(4, "b", "B")}, enabled},
		"an older loop":       {[]llm.Item{x, call(1, "a", ""), gave(2, "a", "A"), say(llm.Assistant, 3, "y"), say(llm.User, 4, "z")}, enabled},
	} {
		body, _, err := outcome(t, &llm.Request{Words: chatWords, Items: c.items, Reasoning: llm.ReasoningWish{Effort: "low"}, Limits: llm.Limits{MaxTokens: upTo(9000)}}, caps)
		if err != nil {
			t.Fatal(err)
		}
		if got := body["thinking"].(map[string]any)["type"]; got != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

func TestSchema(t *testing.T) {
	for name, c := range map[string]struct{ in, open, shut string }{
		"nothing to do":  {`{"type":"object","properties":{"a":{"const":{"minimum":1}}},"additionalProperties":false}`, "", ""},
		"bounds":         {`{"type":"array","items":{"type":"string","description":"D","maxLength":3,"default":"x"},"minItems":1,"maxItems":2}`, `{"type":"array","items":{"type":"string","description":"D maxLength: 3. default: \"x\"."},"minItems":1,"description":"maxItems: 2."}`, "open"},
		"closed":         {`{"type":"object","properties":{"a":{"type":["object","null"]}}}`, "", `{"type":"object","properties":{"a":{"type":["object","null"],"additionalProperties":false}},"additionalProperties":false}`},
		"oneOf":          {`{"oneOf":[{"minimum":1}]}`, `{"anyOf":[{"description":"minimum: 1."}]}`, "open"},
		"named minimum":  {`{"$defs":{"minimum":{"type":"number"}}}`, "", ""},
		"true is no one": {`{"items":true,"anyOf":7}`, "", ""},
	} {
		for i, want := range []string{c.open, c.shut} {
			if want == "open" {
				want = c.open
			}
			if want == "" {
				want = c.in
			}
			o := &outgoing{}
			got := o.fitSchema(llm.Raw(c.in), i == 1)
			var g any
			if err := json.Unmarshal(got, &g); err != nil {
				t.Fatalf("%s: %v in %s", name, err, got)
			}
			sameJSON(t, name, g, want)
			if changed := len(o.notes) > 0; changed != (want != c.in) {
				t.Errorf("%s: notes %q", name, o.notes)
			}
		}
	}
}

// Five breakpoints become four, and a long one cannot follow a short one.
func TestCacheBreakpoints(t *testing.T) {
	ttls := []string{"1h", "24h", "", "1h", "5m"}
	m := say(llm.User, 1, "a", "b", "c")
	for i := range m.Parts {
		m.Parts[i].(*llm.Text).Cache = &llm.Breakpoint{TTL: ttls[i+2]}
	}
	s := say(llm.System, 0, "S")
	s.Parts[0].(*llm.Text).Cache = &llm.Breakpoint{TTL: ttls[1]}
	req := &llm.Request{Words: chatWords, Items: []llm.Item{s, m}, Limits: llm.Limits{MaxTokens: upTo(9)}, Tools: []llm.Tool{{Name: "f", Cache: &llm.Breakpoint{TTL: ttls[0]}}}}
	body, notes, err := outcome(t, req, &llm.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "tools", body["tools"], `[{"name":"f","input_schema":{"type":"object","properties":{}}}]`)
	sameJSON(t, "system", body["system"], `[{"type":"text","text":"S","cache_control":{"type":"ephemeral","ttl":"1h"}}]`)
	sameJSON(t, "messages", body["messages"], `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`+
		`{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"5m"}},{"type":"text","text":"c","cache_control":{"type":"ephemeral","ttl":"5m"}}]}]`)
	sameNotes(t, "notes", notes, "clamp:cache_ttl,drop:prompt_cache_breakpoint")
}

func TestPlaceCache(t *testing.T) {
	long := strings.Repeat("x", leastCached)
	mark := `"cache_control":{"type":"ephemeral"}`
	for _, c := range []struct {
		text string
		want int
	}{{"short", 0}, {long, 4}} {
		req := &llm.Request{Words: chatWords, Limits: llm.Limits{MaxTokens: upTo(9)}, Tools: []llm.Tool{{Name: "f"}, {Name: "g"}}, Items: []llm.Item{
			say(llm.System, 0, c.text), say(llm.User, 1, "1"), say(llm.Assistant, 2, "2"), say(llm.User, 3, "3"), say(llm.Assistant, 4, "4"), say(llm.User, 5, "5", "6")}}
		call, err := Upstream{}.Encode(req, &llm.Caps{PlaceCache: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(call.Body), mark); got != c.want {
			t.Errorf("%.5s: %d breakpoints, want %d in %s", c.text, got, c.want, call.Body)
		}
		if c.want > 0 && !strings.HasSuffix(string(call.Body), `{"type":"text","text":"6",`+mark+`}]}]}`) {
			t.Errorf("no breakpoint at the end of %s", call.Body)
		}
	}
}

// What a client says of the cache itself goes before what is put in.
func TestPlaceCacheWishes(t *testing.T) {
	long := say(llm.User, 0, strings.Repeat("x", leastCached))
	marked := say(llm.User, 0, strings.Repeat("x", leastCached))
	marked.Parts[0].(*llm.Text).Cache = &llm.Breakpoint{}
	for name, c := range map[string]struct {
		req  llm.Request
		want int
	}{
		"nothing said":   {llm.Request{Words: chatWords, Items: []llm.Item{long}}, 1},
		"implicit":       {llm.Request{Words: chatWords, Items: []llm.Item{long}, Cache: llm.Cache{Mode: "implicit"}}, 1},
		"explicit":       {llm.Request{Words: chatWords, Items: []llm.Item{long}, Cache: llm.Cache{Mode: "explicit"}}, 0},
		"automatic":      {llm.Request{Words: chatWords, Items: []llm.Item{long}, Cache: llm.Cache{Auto: &llm.Breakpoint{}}}, 1},
		"its own":        {llm.Request{Words: chatWords, Items: []llm.Item{marked, say(llm.Assistant, 1, "a"), say(llm.User, 2, "b")}}, 1},
		"a dialect's":    {llm.Request{Words: words, Items: []llm.Item{long}}, 0},
		"tools that are": {llm.Request{Words: chatWords, Items: []llm.Item{long}, Tools: []llm.Tool{{Name: "f"}}}, 2},
	} {
		c.req.Limits.MaxTokens = upTo(9)
		call, err := Upstream{}.Encode(&c.req, &llm.Caps{PlaceCache: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(call.Body), `"cache_control"`); got != c.want {
			t.Errorf("%s: %d breakpoints, want %d in %s", name, got, c.want, call.Body)
		}
	}
}

// The next turn reads what this one wrote: but for the marks, its bytes go on
// from those of this turn, and a mark stands where this turn had its last.
func TestPlaceCacheMoves(t *testing.T) {
	items := []llm.Item{say(llm.System, 0, strings.Repeat("x", leastCached)), say(llm.User, 1, "1")}
	mark := `,"cache_control":{"type":"ephemeral"}`
	var before, last string
	for n := range 3 {
		req := &llm.Request{Words: chatWords, Items: items, Limits: llm.Limits{MaxTokens: upTo(9)}}
		call, err := Upstream{}.Encode(req, &llm.Caps{PlaceCache: true})
		if err != nil {
			t.Fatal(err)
		}
		body := string(call.Body)
		plain := strings.ReplaceAll(body, mark, "")
		if !strings.HasPrefix(plain, before) {
			t.Errorf("turn %d: %s does not go on from %s", n, plain, before)
		}
		if last != "" && !strings.Contains(body, last) {
			t.Errorf("turn %d: no mark at %s in %s", n, last, body)
		}
		before = strings.TrimSuffix(plain, "]}")
		said := fmt.Sprint(2*n + 1)
		last = `"text":"` + said + `"` + mark
		items = append(items, say(llm.Assistant, 2*n+2, "a"), say(llm.User, 2*n+3, fmt.Sprint(2*n+3)))
	}
}

// A medium in the first part of the first message is refused at that place.
func TestFirstPlace(t *testing.T) {
	m := &llm.Message{Pos: llm.Pos{Part: -1}, Parts: []llm.Part{&llm.Media{Kind: llm.Image, URL: llm.Raw(`"gs://b/o"`), At: ".image_url.url"}}}
	_, _, err := outcome(t, &llm.Request{Words: chatWords, Items: []llm.Item{m}}, &llm.Caps{})
	if want := "messages[0].content[0].image_url.url"; err == nil || err.Param != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Only the vendor of the client's dialect knows how to manage its context.
func TestContextManagement(t *testing.T) {
	req := &llm.Request{Words: chatWords, Items: []llm.Item{say(llm.User, 0, "q")}, State: llm.State{Context: llm.Raw(`[{}]`)}}
	if _, _, err := outcome(t, req, &llm.Caps{}); err == nil || err.Param != "context_management" || err.Code != "unsupported_parameter" {
		t.Errorf("got %v", err)
	}
}

// Tools that the upstream does not run are left out where the model may do
// without them, and so is the phase of a message.
func TestLeavesOut(t *testing.T) {
	search := llm.Tool{Server: &llm.ServerTool{Kind: llm.FileSearch, Type: "file_search"}}
	said := say(llm.Assistant, 1, "a")
	said.Phase = llm.Raw(`"commentary"`)
	req := &llm.Request{
		Words: chatWords, Limits: llm.Limits{MaxTokens: upTo(9)}, Tools: []llm.Tool{{Name: "f"}, search},
		Items: []llm.Item{say(llm.User, 0, "q"), said, say(llm.User, 2, "q")},
	}
	body, notes, err := outcome(t, req, &llm.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "tools", body["tools"], `[{"name":"f","input_schema":{"type":"object","properties":{}}}]`)
	sameNotes(t, "notes", notes, "drop:file_search,drop:phase")
	req.ToolChoice = llm.ToolChoice{Mode: llm.ChoiceRequired, Hosted: true, Server: llm.FileSearch}
	if _, _, err := outcome(t, req, &llm.Caps{}); err == nil || err.Param != "tools[0]" {
		t.Errorf("demanded: got %v", err)
	}
}

func TestVertex(t *testing.T) {
	req := &llm.Request{Words: chatWords, Items: []llm.Item{say(llm.User, 0, "x")}, Limits: llm.Limits{MaxTokens: upTo(9)}, Stream: true}
	caps := &llm.Caps{Model: "claude-x@20250929", Anthropic: llm.AnthropicCaps{InPath: true, Betas: []string{"b"}}}
	c, err := Upstream{}.Encode(req, caps)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["b"],"max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`
	if c.Path != "/claude-x@20250929:streamRawPredict" || string(c.Body) != want || len(c.Header) > 0 {
		t.Errorf("got %s %v %s", c.Path, c.Header, c.Body)
	}
	caps.Anthropic.InPath = false
	if c, _ = (Upstream{}).Encode(req, caps); c.Header[0].Value != "2023-06-01" || c.Header[1].Value != "b" || c.Path != "/messages" {
		t.Errorf("got %s %v", c.Path, c.Header)
	}
}

// A conversation that grows keeps the bytes that it had.
func TestEncodingAppends(t *testing.T) {
	items := []llm.Item{say(llm.System, 0, "S"), say(llm.User, 1, "x"), signed(2, "t", "S", "anthropic"), call(2, "a", `{"b": 1}`), gave(3, "a", "A"),
		say(llm.System, 4, "T"), say(llm.Assistant, 5, "y"), say(llm.User, 6, "z")}
	var last string
	for _, n := range []int{2, 6, 8} {
		c, err := Upstream{}.Encode(&llm.Request{Words: chatWords, Items: items[:n], Limits: llm.Limits{MaxTokens: upTo(9)}}, &llm.Caps{Vendor: "anthropic"})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.TrimSuffix(string(c.Body), "]}]}")
		if !strings.HasPrefix(body, last) {
			t.Errorf("%s does not begin with %s", body, last)
		}
		last = body
	}
}

// A turn that came back sealed goes on as it was, as long as the client has
// not changed what it shows.
func TestNativeTurn(t *testing.T) {
	blocks := `[{"id":"s1","input":{},"name":"web_search","type":"server_tool_use"},{"text":"hi","type":"text"},{"text":"","type":"text"},{"id":"t1","input":{"a":1},"name":"f","type":"tool_use"}]`
	sealed := string(llm.Quote(seal.Key{}.Seal("anthropic.turn", seal.Field{Name: "b", Value: []byte(blocks)})))
	const shown = `{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"f","input":{"a": 1}}`
	for name, c := range map[string]struct{ text, vendor, want string }{
		"as it was": {"hi", "anthropic", strings.Replace(blocks, `{"text":"","type":"text"},`, "", 1)},
		"changed":   {"ho", "anthropic", "[" + strings.Replace(shown, "hi", "ho", 1) + "]"},
		"elsewhere": {"hi", "bedrock", "[" + shown + "]"},
	} {
		body := `{"max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + strings.Replace(shown, "hi", c.text, 1) +
			`,{"type":"redacted_thinking","data":` + sealed + `}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"A"}]}]}`
		req, err := Dialect{}.Decode([]byte(body), seal.Key{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, failed := outcome(t, req, &llm.Caps{Vendor: c.vendor})
		if failed != nil {
			t.Fatal(failed)
		}
		sameJSON(t, name, got["messages"].([]any)[1].(map[string]any)["content"], c.want)
	}
}
