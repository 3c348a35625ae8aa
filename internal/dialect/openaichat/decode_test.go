package openaichat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// shownItems writes items so that a test can be read.
func shownItems(items []llm.Item) string {
	var out []string
	for _, item := range items {
		switch item := item.(type) {
		case *llm.Message:
			parts := []string{}
			for _, p := range item.Parts {
				parts = append(parts, shownPart(p))
			}
			out = append(out, fmt.Sprintf("%s(%s)", [...]string{"user", "assistant", "system", "developer"}[item.Role], strings.Join(parts, " ")))
		case *llm.Reasoning:
			said := "think("
			for _, t := range item.Texts {
				said += string(t.Text)
				if t.Summary {
					said += "*"
				}
			}
			out = append(out, said+shownState(item.Opaque)+")")
		case *llm.ToolCall:
			out = append(out, fmt.Sprintf("call(%s %s %s%s)", item.ID.Text(), item.Name, item.Args, shownState(item.Opaque)))
		case *llm.ToolResult:
			out = append(out, fmt.Sprintf("result(%s %d)", item.ID.Text(), len(item.Parts)))
		case *llm.NativeTurn:
			out = append(out, fmt.Sprintf("native(%s)", shownItems(item.Items)))
		}
	}
	return strings.Join(out, " ")
}

func shownPart(p llm.Part) string {
	switch p := p.(type) {
	case *llm.Text:
		return string(p.Text) + shownState(p.Opaque)
	case *llm.Refusal:
		return "refusal:" + p.Text.Text()
	case *llm.Media:
		return fmt.Sprintf("media%d:%s%s%s%s%s", p.Kind, p.MIME, p.Data, p.URL, p.FileID, p.At)
	}
	return "?"
}

func shownState(list []llm.Opaque) (out string) {
	for _, o := range list {
		out += fmt.Sprintf(" %s:%d:%s", o.Vendor, o.Kind, o.Data)
	}
	return out
}

func TestDecodeAssistant(t *testing.T) {
	turn := seal.Key{}.Seal("anthropic.turn", seal.Field{Name: "b", Value: []byte(`[{"text":"y","type":"text"}]`)})
	for _, c := range []struct{ name, message, want string }{
		{"text", `"content":"y"`, `assistant("y")`},
		{"nothing", `"content":null`, ``},
		{"an empty text", `"content":""`, `assistant("")`},
		{"an empty text beside calls", `"content":"","tool_calls":[` + callA + `]`, `call(a f "{}")`},
		{"a refusal", `"content":null,"refusal":"no"`, `assistant(refusal:no)`},
		{"plain reasoning, the first name wins", `"content":"y","reasoning":"b","reasoning_content":"a"`, `think("a") assistant("y")`},
		{"details alone tell the text", `"content":"y","reasoning_content":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"anthropic-claude-v1","index":0}]`, `think("a") assistant("y")`},
		{
			"pieces of one text", `"content":"y","reasoning_details":[{"type":"reasoning.text","text":"a","format":"anthropic-claude-v1","index":0},{"type":"reasoning.text","text":"b","format":"anthropic-claude-v1","index":0},{"type":"reasoning.text","signature":"S","format":"anthropic-claude-v1","index":0}]`,
			`think("ab" anthropic:0:"S") assistant("y")`,
		},
		{
			"thinking between text and call", `"content":"y","tool_calls":[` + callA + `],"reasoning_details":[{"type":"reasoning.text","text":"b","signature":"S","format":"anthropic-claude-v1","index":1}]`,
			`assistant("y") think("b" anthropic:0:"S") call(a f "{}")`,
		},
		{
			"items of OpenAI", `"content":"y","reasoning_details":[{"type":"reasoning.summary","summary":"s","id":"r","format":"openai-responses-v1","index":0},{"type":"reasoning.encrypted","data":"E","id":"r","format":"openai-responses-v1","index":0},{"type":"reasoning.encrypted","data":"F","id":"q","format":"azure-openai-responses-v1","index":3}]`,
			`think("s"* openai:2:"E") think( azure:2:"F") assistant("y")`,
		},
		{
			"text and summary of one item", `"content":"y","reasoning_details":[{"type":"reasoning.text","text":"t","id":"r","format":"openai-responses-v1"},{"type":"reasoning.summary","summary":"s","id":"r","format":"openai-responses-v1"}]`,
			`think("t""s"*) assistant("y")`,
		},
		{
			"signatures of Google", `"content":"y","tool_calls":[` + callA + `],"reasoning_details":[{"type":"reasoning.text","text":"t","format":"google-gemini-v1","index":0},{"type":"reasoning.encrypted","data":"T","format":"google-gemini-v1","index":1},{"type":"reasoning.encrypted","data":"C","id":"a","format":"google-gemini-v1","index":2}]`,
			`think("t") assistant("y" google:3:"T") call(a f "{}" google:3:"C")`,
		},
		{"a format that is not known", `"content":"y","reasoning_details":[{"type":"reasoning.encrypted","data":"E","format":"x","index":0}]`, `think( :2:"E") assistant("y")`},
		{"LiteLLM's blocks", `"content":"y","thinking_blocks":[{"type":"thinking","thinking":"a","signature":"S"},{"type":"redacted_thinking","data":"R"}]`, `think("a" anthropic:0:"S") think( anthropic:1:"R") assistant("y")`},
		{"LiteLLM's signatures", `"content":"y","provider_specific_fields":{"thought_signatures":["T"]},"tool_calls":[{"id":"a","type":"function","function":{"name":"f"},"provider_specific_fields":{"thought_signature":"C"}}]`, `assistant("y" google:3:"T") call(a f "" google:3:"C")`},
		{
			"a call's signature on the message too", `"content":"y","extra_content":{"google":{"thought_signature":"C"}},"tool_calls":[{"id":"a","type":"function","function":{"name":"f"},"extra_content":{"google":{"thought_signature":"C"}}}]`,
			`assistant("y") call(a f "" google:3:"C")`,
		},
		{"a sealed turn", `"content":"y","reasoning_details":[{"type":"reasoning.encrypted","data":"` + turn + `","format":"anthropic-claude-v1","index":0}]`, `native(assistant("y"))`},
		{"a sealed turn that was edited", `"content":"z","reasoning_details":[{"type":"reasoning.encrypted","data":"` + turn + `","format":"anthropic-claude-v1","index":0}]`, `assistant("z")`},
		{"sound that was made here", `"content":null,"audio":{"id":"u"}`, `assistant(media1:"u".audio.id)`},
	} {
		req, err := Dialect{}.Decode([]byte(`{"messages":[{"role":"assistant",`+c.message+`}]}`), seal.Key{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := shownItems(req.Items); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDecodeForeignSeal(t *testing.T) {
	sealed := seal.NewKey([]byte("theirs")).Seal("anthropic.thinking", seal.Field{Name: "t", Value: []byte(`"t"`)}, seal.Field{Name: "s", Value: []byte(`"S"`)})
	body := `{"messages":[{"role":"assistant","content":"y","reasoning_details":[{"type":"reasoning.encrypted","data":"` + sealed + `"}]}]}`
	req, err := Dialect{}.Decode([]byte(body), seal.NewKey([]byte("ours")))
	if err != nil || shownItems(req.Items) != `assistant("y")` || req.Notes.String() != "drop:reasoning_details" {
		t.Errorf("got %s, notes %s, %v", shownItems(req.Items), req.Notes, err)
	}
	if req, _ = (Dialect{}).Decode([]byte(body), seal.NewKey([]byte("theirs"))); shownItems(req.Items) != `think("t" anthropic:0:"S") assistant("y")` {
		t.Errorf("got %s", shownItems(req.Items))
	}
}

func TestDecodeParts(t *testing.T) {
	for _, c := range []struct{ part, want string }{
		{`"bare"`, `"bare"`},
		{`{"type":"image_url","image_url":{"url":"https:\/\/x.test\/a"}}`, `media0:"https:\/\/x.test\/a".image_url.url`},
		{`{"type":"image_url","image_url":"data:image\/jpg;base64,A\/=="}`, `media0:image/jpeg"A\/==".image_url`},
		{`{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}`, `media1:audio/wav"AA".input_audio.data`},
		{`{"type":"file","file":{"file_id":"f"}}`, `media3:"f".file.file_id`},
		{`{"type":"file","file":{"file_data":"AA","filename":"a.pdf"}}`, `media3:application/pdf"AA".file.file_data`},
	} {
		req, err := Dialect{}.Decode([]byte(`{"messages":[{"role":"user","content":[`+c.part+`]}]}`), seal.Key{})
		if err != nil {
			t.Errorf("%s: %v", c.part, err)
			continue
		}
		if got := shownItems(req.Items); got != "user("+c.want+")" {
			t.Errorf("%s: got %s, want %s", c.part, got, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ body, param, code string }{
		{`{"model":"m"}`, "messages", "missing_required_parameter"},
		{`{"messages":[1]}`, "messages[0]", "invalid_type"},
		{`{"messages":[{"content":"x"}]}`, "messages[0].role", "missing_required_parameter"},
		{`{"messages":[{"role":"robot","content":"x"}]}`, "messages[0].role", "invalid_value"},
		{`{"messages":[{"role":"user"}]}`, "messages[0].content", "missing_required_parameter"},
		{`{"messages":[{"role":"user","content":5}]}`, "messages[0].content", "invalid_type"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"hologram"}]}]}`, "messages[0].content[1].type", "unsupported_parameter"},
		{`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text", "missing_required_parameter"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]}]}`, "messages[0].content[0].image_url.url", "invalid_value"},
		{`{"messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x.test"}}]}]}`, "messages[0].content", "invalid_value"},
		{`{"messages":[{"role":"tool","content":"x"}]}`, "messages[0].tool_call_id", "missing_required_parameter"},
		{`{"messages":[{"role":"function","name":"f","content":"x"}]}`, "messages[0].name", "invalid_value"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f"}}]}]}`, "messages[0].tool_calls[0].id", "missing_required_parameter"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":5}}]}]}`, "messages[0].tool_calls[0].function.arguments", "invalid_type"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"hologram"}]}]}`, "messages[0].tool_calls[0].type", "unsupported_parameter"},
		{`{"temperature":"hot",` + askX + `}`, "temperature", "invalid_type"},
		{`{"max_tokens":0,` + askX + `}`, "max_tokens", "invalid_value"},
		{`{"max_tokens":1.5,` + askX + `}`, "max_tokens", "invalid_type"},
		{`{"stop":["a",5],` + askX + `}`, "stop[1]", "invalid_type"},
		{`{"stream_options":{"include_usage":"yes"},` + askX + `}`, "stream_options.include_usage", "invalid_type"},
		{`{"response_format":{"type":"regex"},` + askX + `}`, "response_format.type", "unsupported_parameter"},
		{`{"response_format":{"type":"json_schema"},` + askX + `}`, "response_format.json_schema", "missing_required_parameter"},
		{`{"tools":[{"type":"web_search"}],` + askX + `}`, "tools[0].type", "unsupported_parameter"},
		{`{"tools":[{"type":"function","function":{}}],` + askX + `}`, "tools[0].function.name", "missing_required_parameter"},
		{`{"tools":[` + toolF + `],"tool_choice":"maybe",` + askX + `}`, "tool_choice", "invalid_value"},
	} {
		_, err := Dialect{}.Decode([]byte(c.body), seal.Key{})
		if e := llm.AsError(err); err == nil || e.Kind != llm.Invalid || e.Param != c.param || e.Code != c.code {
			t.Errorf("%s: got %v, want %s %s", c.body, err, c.param, c.code)
		}
	}
}

func TestDecodeWishes(t *testing.T) {
	req, err := Dialect{}.Decode([]byte(`{"reasoning":{"effort":"high","exclude":true,"new":1},"output_config":{"effort":"max","format":{"type":"json_schema","schema":{"type":"object"}}},"prompt_cache_options":{"mode":"explicit","ttl":"12h"},"seed":null,"new":{},`+askX+`}`), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %d %s %s %t %d %s", req.Reasoning.Effort, req.Reasoning.Display, req.Format.Kind, req.Cache.Mode, req.Cache.TTL, req.Sampling.Seed == nil, len(req.Other), req.Notes)
	if want := "max omitted 2 explicit 12h true 1 drop:reasoning.new"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
