package dialect_test

import (
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
)

func TestWants(t *testing.T) {
	var (
		chat      = openaichat.Dialect{}
		responses = openairesponses.Dialect{}
		messages  = anthropic.Dialect{}
	)
	for name, tt := range map[string]struct {
		dialect dialect.Dialect
		body    string
		want    dialect.Wants // without its Opening
	}{
		"chat, plain":            {chat, `{"messages":[{"role":"user","content":"image_url"}],"tools":[],"response_format":{"type":"text"}}`, dialect.Wants{}},
		"chat, a picture":        {chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, dialect.Wants{Vision: true}},
		"chat, tools":            {chat, `{"messages":[],"tools":[{"type":"function"}]}`, dialect.Wants{Tools: true}},
		"chat, a schema":         {chat, `{"messages":[],"response_format":{"type":"json_schema","json_schema":{}}}`, dialect.Wants{Schema: true}},
		"chat, a limit":          {chat, `{"messages":[],"max_completion_tokens":12}`, dialect.Wants{MaxOutput: 12}},
		"chat, an older limit":   {chat, `{"messages":[],"max_tokens":13}`, dialect.Wants{MaxOutput: 13}},
		"chat, a thread":         {chat, `{"messages":[],"prompt_cache_key":"k","metadata":{"a":"b"}}`, dialect.Wants{Thread: []byte(`"k"`), Metadata: []byte(`{"a":"b"}`)}},
		"responses, a picture":   {responses, `{"input":[{"type":"message","content":[{"type":"input_image"}]}]}`, dialect.Wants{Vision: true}},
		"responses, in a result": {responses, `{"input":[{"type":"function_call_output","output":[{"type":"input_file"}]}]}`, dialect.Wants{Vision: true}},
		"responses, a schema":    {responses, `{"input":"hi","text":{"format":{"type":"json_schema"}},"max_output_tokens":5}`, dialect.Wants{Schema: true, MaxOutput: 5}},
		"messages, a picture":    {messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}],"max_tokens":9}`, dialect.Wants{Vision: true, MaxOutput: 9}},
		"messages, a schema":     {messages, `{"messages":[],"output_config":{"format":{"type":"json_schema"}}}`, dialect.Wants{Schema: true}},
		"odd types":              {responses, `{"input":7,"tools":null,"text":[],"prompt_cache_key":"","metadata":null,"max_output_tokens":"5"}`, dialect.Wants{}},
	} {
		got := tt.dialect.Wants([]byte(tt.body))
		if got.Vision != tt.want.Vision || got.Tools != tt.want.Tools || got.Schema != tt.want.Schema || got.MaxOutput != tt.want.MaxOutput ||
			string(got.Thread) != string(tt.want.Thread) || string(got.Metadata) != string(tt.want.Metadata) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// The turns of one conversation open alike, and those of another do not.
func TestOpening(t *testing.T) {
	first := openaichat.Dialect{}.Wants([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`)).Opening
	later := openaichat.Dialect{}.Wants([]byte(`{"tools":[{}],"messages":[{"role":"system","content":"s"}, {"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)).Opening
	other := openaichat.Dialect{}.Wants([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"c"}]}`)).Opening
	if first != later || first == other {
		t.Errorf("openings %x, %x of one conversation, %x of another", first, later, other)
	}
	instructed := openairesponses.Dialect{}.Wants([]byte(`{"instructions":"s","input":"a"}`)).Opening
	if instructed == (openairesponses.Dialect{}.Wants([]byte(`{"instructions":"t","input":"a"}`)).Opening) {
		t.Error("two instructions open alike")
	}
}

func BenchmarkWants(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"`)
	for range 900 {
		body = append(body, 'x')
	}
	body = append(body, `"},{"role":"user","content":"hello"}],"stream":true,"max_tokens":100}`...)
	b.ReportAllocs()
	for b.Loop() {
		openaichat.Dialect{}.Wants(body)
	}
}
