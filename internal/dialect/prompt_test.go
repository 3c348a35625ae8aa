package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/anthropic"
	"github.com/limen-gateway/limen/internal/dialect/openaichat"
	"github.com/limen-gateway/limen/internal/dialect/openairesponses"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

func TestPrompt(t *testing.T) {
	var (
		chat      = openaichat.Dialect{}
		responses = openairesponses.Dialect{}
		messages  = anthropic.Dialect{}
	)
	type wants struct {
		pictures, tools, schema bool
		limit                   int64
		thread                  string
	}
	for name, tt := range map[string]struct {
		dialect dialect.Dialect
		body    string
		want    wants
	}{
		"chat, plain":            {chat, `{"messages":[{"role":"user","content":"image_url"}],"tools":[ ],"response_format":{"type":"text"}}`, wants{}},
		"chat, a picture":        {chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, wants{pictures: true}},
		"chat, tools":            {chat, `{"messages":[{}],"tools":[{"type":"function"}]}`, wants{tools: true}},
		"chat, a schema":         {chat, `{"messages":[{}],"response_format":{"type":"json_schema","json_schema":{}}}`, wants{schema: true}},
		"chat, a limit":          {chat, `{"messages":[{}],"max_completion_tokens":12,"max_tokens":9}`, wants{limit: 12}},
		"chat, an older limit":   {chat, `{"messages":[{}],"max_tokens":13}`, wants{limit: 13}},
		"chat, a thread":         {chat, `{"messages":[{}],"prompt_cache_key":"k"}`, wants{thread: `"k"`}},
		"responses, a picture":   {responses, `{"input":[{"type":"message","role":"user","content":[{"type":"input_image"}]}]}`, wants{pictures: true}},
		"responses, in a result": {responses, `{"input":[{"type":"function_call_output","output":[{"type":"input_file"}]}]}`, wants{pictures: true}},
		"responses, a schema":    {responses, `{"input":"hi","text":{"format":{"type":"json_schema"}},"max_output_tokens":5}`, wants{schema: true, limit: 5}},
		"messages, a picture":    {messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}],"max_tokens":9}`, wants{pictures: true, limit: 9}},
		"messages, a schema":     {messages, `{"messages":[{}],"max_tokens":1,"output_config":{"format":{"type":"json_schema"}}}`, wants{schema: true, limit: 1}},
		"messages, a session":    {messages, `{"messages":[{}],"max_tokens":1,"metadata":{"user_id":"u_session_1"}}`, wants{limit: 1, thread: `"u_session_1"`}},
		"messages, a user":       {messages, `{"messages":[{}],"max_tokens":1,"metadata":{"user_id":"u"}}`, wants{limit: 1}},
		"odd types":              {responses, `{"input":"7","tools":null,"text":[],"metadata":null,"max_output_tokens":"5"}`, wants{}},
	} {
		p := prompt(t, tt.dialect, tt.body)
		if got := (wants{p.HasPictures(), p.HasTools(), p.HasSchema(), p.Limit(), string(p.Thread)}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func prompt(t testing.TB, d dialect.Dialect, body string) dialect.Prompt {
	t.Helper()
	var req dialect.Request
	if err := d.Inspect([]byte(strings.Replace(body, "{", `{"model":"m",`, 1)), &req); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return d.Prompt(&req)
}

// The turns of one conversation open alike, and those of another do not.
func opening(t testing.TB, d dialect.Dialect, body string) uint64 {
	p := prompt(t, d, body)
	return p.Opening()
}

func TestOpening(t *testing.T) {
	first := opening(t, openaichat.Dialect{}, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`)
	later := opening(t, openaichat.Dialect{}, `{"tools":[{}],"messages":[{"role":"system","content":"s"}, {"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	other := opening(t, openaichat.Dialect{}, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"c"}]}`)
	if first != later || first == other {
		t.Errorf("openings %x, %x of one conversation, %x of another", first, later, other)
	}
	long := func(middle, end string) uint64 {
		return opening(t, openairesponses.Dialect{}, `{"input":"`+strings.Repeat("a", 20_000)+middle+strings.Repeat("b", 20_000)+end+`"}`)
	}
	one, again := long("", "x"), long("", "x")
	if one != again || one == long("", "y") || one == long("more", "x") {
		t.Error("long openings are not told apart")
	}
	instructed := opening(t, openairesponses.Dialect{}, `{"instructions":"s","input":"a"}`)
	if instructed == opening(t, openairesponses.Dialect{}, `{"instructions":"t","input":"a"}`) {
		t.Error("two instructions open alike")
	}
}

// State that only one account reads is found wherever it is, the newest first.
func TestOrigins(t *testing.T) {
	key := seal.NewKey([]byte("secret"))
	of := func(origin string) string {
		return key.Seal("openai.item", seal.Field{Name: "o", Value: llm.Quote(origin)})
	}
	items := `[{"type":"reasoning","encrypted_content":"` + of("a") + `"},{"role":"assistant","reasoning_details":[{"data":"` + of("b") + `"},{"data":"` + of("b") + `"}]},` +
		`{"content":"gw1.` + "`" + `"},{"content":"` + seal.NewKey([]byte("other")).Seal("openai.item", seal.Field{Name: "o", Value: llm.Quote("c")}) + `"}]`
	p := dialect.Prompt{Items: []byte(items)}
	if got := p.Origins(key); !slices.Equal(got, []string{"b"}) { // a is the fifth from the end
		t.Errorf("got %q", got)
	}
	p.Items = []byte(`[{"encrypted_content":"` + of("a") + `"}]`)
	if got := p.Origins(key); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
}

// What makes an answer dearer is seen, however it is asked for.
func TestPromptCost(t *testing.T) {
	type costs struct {
		answers                   int64
		priority, sound, pictures bool
	}
	for body, want := range map[string]costs{
		`{"messages":[{}]}`: {answers: 1},
		`{"messages":[{}],"n":3,"service_tier":"priority"}`:                             {answers: 3, priority: true},
		`{"messages":[{}],"n":0,"service_tier":"flex","modalities":["text"]}`:           {answers: 1},
		`{"messages":[{}],"n":-1,"service_tier":"auto","modalities":["text","audio"]}`:  {answers: 1, priority: true, sound: true},
		`{"messages":[{"content":[{"type":"input_audio"}]}],"modalities":["image"]}`:    {answers: 1, sound: true, pictures: true},
		`{"messages":[{}],"n":"7","service_tier":"default","modalities":{"text":true}}`: {answers: 1},
	} {
		p := prompt(t, openaichat.Dialect{}, body)
		if got := (costs{p.Answers(), p.IsPriority(), p.HasSound(), p.MakesPictures()}); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func TestEmbedded(t *testing.T) {
	file := strings.Repeat("iVBORw0KGgo+/aA9", 128) // 2 KiB
	for name, tt := range map[string]struct {
		document    string
		files, size int
	}{
		"nothing":            {``, 0, 0},
		"a text":             {`{"a":"` + strings.Repeat("some words ", 400) + `"}`, 0, 0},
		"a short one":        {`{"a":"` + file[:1023] + `"}`, 0, 0},
		"base64":             {`{"a":"` + file + `","b":"x"}`, 1, 2048},
		"a data URL":         {`{"url":"data:image/png;base64,` + file + `"}`, 1, 2048 + 22},
		"padded":             {`["` + file + `=="]`, 1, 2050},
		"slashes escaped":    {`["` + strings.ReplaceAll(file, "/", `\/`) + `"]`, 1, 2048 + 128},
		"two":                {`["` + file + `", "` + file + `"]`, 2, 4096},
		"quotes within":      {`["he said \"` + file + `\" twice \\","` + file + `"]`, 1, 2048},
		"an end in words":    {`["` + file + ` is a file"]`, 0, 0},
		"not in ASCII":       {`["` + strings.Repeat("é", 2048) + `"]`, 0, 0},
		"cut within":         {`["` + file, 1, 2048},
		"ends with a quote":  {`"`, 0, 0},
		"ends with a escape": {`"\`, 0, 0},
	} {
		if files, size := dialect.Embedded([]byte(tt.document)); files != tt.files || size != tt.size {
			t.Errorf("%s: got %d files of %d bytes, want %d of %d", name, files, size, tt.files, tt.size)
		}
	}
}
