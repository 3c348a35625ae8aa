package anthropic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// request is a body with messages and what else there is.
func request(messages, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"m","max_tokens":9,"messages":[` + messages + `]` + more + `}`
}

func userSays(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }

func TestInspect(t *testing.T) {
	for body, want := range map[string]string{
		request(`{"role":"user","content":"x"}`, `"stream":true`): "m true",
		`{"model":"m","input":"x","max_tokens":1}`:                "missing_required_parameter messages /v1/responses",
		`{"model":"m","max_tokens":1}`:                            "missing_required_parameter messages messages",
		`{"model":"m","max_tokens":1,"messages":[]}`:              "invalid_value messages empty",
		`{"model":"m","max_tokens":1,"messages":{}}`:              "invalid_type messages array",
		`{"model":"m","messages":[{}]}`:                           "missing_required_parameter max_tokens max_tokens",
		`{"model":"m","messages":[{}],"max_completion_tokens":1}`: "missing_required_parameter max_tokens /v1/chat/completions",
		`{"model":"m","messages":[{}],"max_tokens":"1"}`:          "invalid_type max_tokens a string",
		`{"model":"m","messages":[{}],"max_tokens":-1}`:           "invalid_value max_tokens negative",
		`{"model":"m","messages":[{}],"max_tokens":1,"stream":1}`: "invalid_type stream boolean",
		`{"messages":[{}],"max_tokens":1}`:                        "missing_required_parameter model model",
		`{"model":"m","Model":"m"}`:                               "invalid_value model case",
	} {
		var req dialect.Request
		err := Dialect{}.Inspect([]byte(body), &req)
		if err == nil {
			if got := fmt.Sprintf("%s %v", req.Model, req.Stream); got != want {
				t.Errorf("%s: got %s", body, got)
			}
			continue
		}
		var e *llm.Error
		code, rest, _ := strings.Cut(want, " ")
		param, text, _ := strings.Cut(rest, " ")
		if !errors.As(err, &e) || e.Code != code || e.Param != param || !strings.Contains(e.Message, text) {
			t.Errorf("%s: got %+v, want %s", body, err, want)
		}
	}
}

func TestForward(t *testing.T) {
	const body = `{"max_tokens":1,"model" : "a","messages":[{"big":12345678901234567890}],"x":1.0}`
	var req dialect.Request
	if err := (Dialect{}).Inspect([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	segments, size := Dialect{}.Forward(nil, []byte(body), &req, dialect.Upstream{Model: `b"`})
	got := ""
	for _, s := range segments {
		got += string(s)
	}
	if want := strings.Replace(body, `"a"`, `"b\""`, 1); got != want || size != len(want) {
		t.Errorf("got %d %s", size, got)
	}
}

func TestPassed(t *testing.T) {
	sent := map[string]string{"Anthropic-Version": "v", "Anthropic-Beta": "b", "X-Api-Key": "k", "Cookie": "c"}
	if got := fmt.Sprint(Dialect{}.Passed(func(name string) string { return sent[name] })); got != "[{Anthropic-Version v} {Anthropic-Beta b}]" {
		t.Errorf("got %s", got)
	}
}

// laid is the items of a request in short.
func laid(items []llm.Item) string {
	var b strings.Builder
	for _, item := range items {
		switch item := item.(type) {
		case *llm.Message:
			fmt.Fprintf(&b, "%d%s", item.Turn(), [...]string{"user", "assistant", "system"}[item.Role])
			for _, p := range item.Parts {
				b.WriteString(" " + part(p))
			}
		case *llm.Reasoning:
			fmt.Fprintf(&b, "%dreasoning %s", item.Turn(), item.ID)
			for _, thought := range item.Texts {
				fmt.Fprintf(&b, " %s", thought.Text)
			}
			b.WriteString(states(item.Opaque))
		case *llm.ToolCall:
			fmt.Fprintf(&b, "%dcall %s %s %s%s", item.Turn(), item.ID, item.Name, item.Args, states(item.Opaque))
		case *llm.ToolResult:
			fmt.Fprintf(&b, "%dresult %s %v", item.Turn(), item.ID, item.IsError)
			for _, p := range item.Parts {
				b.WriteString(" " + part(p))
			}
		case *llm.ServerCall:
			fmt.Fprintf(&b, "%dserver %d %s %d blocks", item.Turn(), item.Kind, item.ID, len(item.Native))
		case *llm.NativeTurn:
			fmt.Fprintf(&b, "%dnative %s [%s]", item.Turn(), item.Opaque.Data, laid(item.Items))
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func states(list []llm.Opaque) string {
	out := ""
	for _, o := range list {
		out += fmt.Sprintf(" <%d %s %s %s %s>", o.Kind, o.Vendor, o.Origin, o.Data, o.For)
	}
	return out
}

func part(p llm.Part) string {
	switch p := p.(type) {
	case *llm.Text:
		out := string(p.Text) + states(p.Opaque)
		if p.Cache != nil {
			out += "!" + p.Cache.TTL
		}
		return out
	case *llm.Media:
		return fmt.Sprintf("media %d %s data=%s url=%s file=%s text=%s name=%s at=%s", p.Kind, p.MIME, p.Data, p.URL, p.FileID, p.Text, p.Name, p.At)
	case *llm.SearchResult:
		return fmt.Sprintf("found %s %s %s", p.Source, p.Title, p.Texts)
	case *llm.ToolReference:
		return "reference " + p.Name
	}
	return "?"
}

func TestDecodeMessages(t *testing.T) {
	sealed := func(kind string, fields ...string) string {
		var f []seal.Field
		for i := 0; i < len(fields); i += 2 {
			f = append(f, seal.Field{Name: fields[i], Value: []byte(fields[i+1])})
		}
		return string(llm.Quote(seal.Key{}.Seal(kind, f...)))
	}
	assistant := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	thinking := func(signature string) string {
		return `{"type":"thinking","thinking":"t","signature":` + signature + `}`
	}
	const use = `{"type":"tool_use","id":"c1","name":"f","input":{"a": 1}}`
	for body, want := range map[string]string{
		request(`{"role":"user","content":"x"},{"role":"system","content":"S"}`, `"system":"T"`):                                                                                                                              `-1system "T"; 0user "x"; 1system "S"`,
		request(userSays(`{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`), `"system":[{"type":"text","text":"T"}]`):                                                                              `-1system "T"; 0user "x"!1h`,
		request(userSays(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}`), ""):                                                                                                           `0user media 0 image/png data="QQ==" url= file= text= name= at=.source`,
		request(userSays(`{"type":"document","title":"D","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`), ""):                                                                `0user media 3 text/plain data= url= file= text="a\n\nb" name="D" at=.source`,
		request(userSays(`{"type":"document","source":{"type":"url","url":"https://e.test/a"}}`), ""):                                                                                                                         `0user media 3 application/pdf data= url="https://e.test/a" file= text= name= at=.source`,
		request(userSays(`{"type":"search_result","source":"s","title":"T","content":[{"type":"text","text":"a"}]}`), ""):                                                                                                     `0user found "s" "T" ["a"]`,
		request(userSays(`{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"e","cache_control":{"type":"ephemeral"}},{"type":"text","text":"y"}`), ""):                                                      `0result "c1" true "e"!; 0user "y"`,
		request(userSays(`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"tool_reference","tool_name":"g"},{"type":"image","source":{"type":"url","url":"u"}}]},{"type":"tool_result","tool_use_id":"c2"}`), ""): `0result "c1" false reference g media 0  data= url="u" file= text= name= at=.content[1].source; 0result "c2" false`,
		request(assistant(`{"type":"text","text":"a"},{"type":"text","text":"b"},`+use+`,{"type":"text","text":"c"}`), ""):                                                                                                    `0assistant "a" "b"; 0call "c1" f "{\"a\":1}"; 0assistant "c"`,
		request(assistant(thinking(`"S"`)+`,{"type":"redacted_thinking","data":"R"}`), ""):                                                                                                                                    `0reasoning  "t" <0 anthropic  "S" >; 0reasoning  <1 anthropic  "R" >`,
		request(assistant(thinking(sealed("google.call", "c", `"c1"`, "s", `"G"`))+`,`+use), ""):                                                                                                                              `0reasoning  "t"; 0call "c1" f "{\"a\":1}" <3 google  "G" >`,
		request(assistant(use+`,{"type":"thinking","thinking":"","signature":`+sealed("google.call", "c", `"c1"`, "s", `"G"`)+`}`), ""):                                                                                       `0call "c1" f "{\"a\":1}" <3 google  "G" >`,
		request(assistant(thinking(sealed("google.call", "c", `"c9"`, "s", `"G"`))+`,`+use), ""):                                                                                                                              `0reasoning  "t" <3 google  "G" "c9">; 0call "c1" f "{\"a\":1}"`,
		request(assistant(`{"type":"text","text":"a"},{"type":"thinking","thinking":"","signature":`+sealed("google.text", "i", `0`, "s", `"G"`)+`}`), ""):                                                                    `0assistant "a" <3 google  "G" >`,
		request(assistant(`{"type":"text","text":"z"},{"type":"thinking","thinking":"","signature":`+sealed("google.text", "i", `2`, "s", `"G"`)+`},{"type":"text","text":"a"}`), ""):                                         `0assistant "z" "a" <3 google  "G" >`,
		request(assistant(thinking(sealed("openai.item", "id", `"rs_1"`, "e", `"E"`, "o", `"or"`))), ""):                                                                                                                      `0reasoning "rs_1" "t" <2 openai or "E" >`,
		request(assistant(thinking(sealed("anthropic.thinking", "t", `"T"`, "s", `"S"`))), ""):                                                                                                                                `0reasoning  "T" <0 anthropic  "S" >`,
		request(assistant(thinking(sealed("plain"))), ""):                                                                                                                                                                     `0reasoning  "t" <5 plain   >`,
		request(assistant(thinking(`"gw1.broken"`)), ""):                                                                                                                                                                      `0reasoning  "t"`,
		request(assistant(searchUse+`,`+strings.Replace(searchResult, "\n", "", -1)+`,{"type":"text","text":"a"}`), ""):                                                                                                       `0server 1 "s1" 2 blocks; 0assistant "a"`,
		request(assistant(`{"type":"text","text":"a"},{"type":"redacted_thinking","data":`+sealed("anthropic.turn", "b", `[{"text":"a","type":"text"}]`)+`}`), ""):                                                            `0native [{"text":"a","type":"text"}] [0assistant "a"]`,
		request(assistant(`{"type":"text","text":"b"},{"type":"redacted_thinking","data":`+sealed("anthropic.turn", "b", `[{"text":"a","type":"text"}]`)+`}`), ""):                                                            `0assistant "b"`,
	} {
		req, err := Dialect{}.Decode([]byte(body), seal.Key{})
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := laid(req.Items); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestDecodeSettings(t *testing.T) {
	const x = `{"role":"user","content":"x"}`
	for more, want := range map[string]struct {
		say   func(r *llm.Request) string
		want  string
		notes string
	}{
		`"temperature":1.0,"top_k":3,"stop_sequences":["a"]`: {func(r *llm.Request) string {
			return fmt.Sprintf("%s %s %s", r.Sampling.Temperature, r.Sampling.TopK, r.Limits.Stop)
		}, `1.0 3 ["a"]`, ""},
		`"thinking":{"type":"enabled","budget_tokens":2000,"display":"omitted"}`: {func(r *llm.Request) string {
			return fmt.Sprint(r.Reasoning.Mode, r.Reasoning.Budget, r.Reasoning.Display)
		}, fmt.Sprint(llm.ThinkingOn, 2000, "omitted"), ""},
		`"output_config":{"effort":"max","format":{"type":"json_schema","schema":{}},"task_budget":{}},"context_management":{}`: {func(r *llm.Request) string {
			return fmt.Sprintf("%s %d %s", r.Reasoning.Effort, r.Format.Kind, r.Format.Schema)
		}, "max 2 {}", "drop:context_management,drop:output_config.task_budget"},
		`"metadata":{"user_id":"u"},"service_tier":"standard_only","mcp_servers":[],"container":null`: {func(r *llm.Request) string {
			return fmt.Sprintf("%s %s", r.Meta.SafetyID, r.Meta.ServiceTier)
		}, `"u" default`, ""},
		`"tool_choice":{"type":"any","disable_parallel_tool_use":true},"tools":[{"name":"f","input_schema":{"a":1},"strict":true,"input_examples":[1]},{"type":"bash_20250124","name":"bash"}]`: {func(r *llm.Request) string {
			return fmt.Sprintf("%d %v %s %s %v %s %d", r.ToolChoice.Mode, *r.Parallel, r.Tools[0].Name, r.Tools[0].Schema, *r.Tools[0].Strict, r.Tools[1].Name, len(r.Tools[1].Schema)/100)
		}, `3 false f {"a":1} true bash 0`, "degrade:bash,drop:input_examples"},
		`"tool_choice":{"type":"tool","name":"web_search"},"tools":[{"type":"web_search_20260209","name":"web_search","max_uses":2,"allowed_domains":["d"],"user_location":{"type":"approximate","city":"Rome"}}]`: {func(r *llm.Request) string {
			s := r.Tools[0].Server
			return fmt.Sprintf("%v %d %s %s %s %s", r.ToolChoice.Hosted, s.Kind, s.Type, s.MaxUses, s.Domains, s.Location)
		}, `true 1 web_search_20260209 2 ["d"] {"city":"Rome"}`, ""},
		`"cache_control":{"type":"ephemeral","ttl":"1h"},"speed":"fast"`: {func(r *llm.Request) string { return r.Cache.Auto.TTL }, "1h", "drop:speed"},
	} {
		req, err := Dialect{}.Decode([]byte(request(x, more)), seal.Key{})
		if err != nil {
			t.Errorf("%s: %v", more, err)
			continue
		}
		if got := want.say(req); got != want.want {
			t.Errorf("%s: got %s, want %s", more, got, want.want)
		}
		sameNotes(t, more, req.Notes, want.notes)
		if *req.Limits.MaxTokens != 9 || !req.WantsUsage {
			t.Errorf("%s: %+v", more, req.Limits)
		}
	}
}

func TestDecodeRefusals(t *testing.T) {
	const x = `{"role":"user","content":"x"}`
	for body, want := range map[string]string{
		`{"max_tokens":0,"messages":[` + x + `]}`:                                                          " max_tokens",
		request(x, `"container":"c"`):                                                                      "unsupported_parameter container",
		request(x, `"mcp_servers":[{}]`):                                                                   "unsupported_parameter mcp_servers",
		request(x, `"inference_geo":"us"`):                                                                 "unsupported_parameter inference_geo",
		request(x, `"tools":[{"type":"computer_toolset_20260801","name":"c"}]`):                            "unsupported_parameter tools[0].type",
		request(x, `"tools":[{}]`):                                                                         "missing_required_parameter tools[0].name",
		request(x, `"temperature":"1"`):                                                                    "invalid_type temperature",
		request(x, `"stop_sequences":["a",1]`):                                                             "invalid_type stop_sequences[1]",
		request(x, `"thinking":{"type":"x"}`):                                                              "invalid_value thinking.type",
		request(x, `"tool_choice":{"type":"x"}`):                                                           "invalid_value tool_choice.type",
		request(x, `"system":[{"type":"image"}]`):                                                          "unsupported_parameter system[0].type",
		request(`{"role":"tool","content":"x"}`, ""):                                                       "invalid_value messages[0].role",
		request(`{"role":"user"}`, ""):                                                                     "missing_required_parameter messages[0].content",
		request(x+`,7`, ""):                                                                                "invalid_type messages[1]",
		request(userSays(`{"type":"text","text":"a"},{"type":"hologram"}`), ""):                            "unsupported_parameter messages[0].content[1].type",
		request(userSays(`{"type":"image","source":{"type":"x"}}`), ""):                                    "unsupported_parameter messages[0].content[0].source.type",
		request(userSays(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"x"}]}`), ""):         "unsupported_parameter messages[0].content[0].content[0].type",
		request(`{"role":"assistant","content":[{"type":"compaction"}]}`, ""):                              "unsupported_parameter messages[0].content[0].type",
		request(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]}`, ""): "invalid_type messages[0].content[0].input",
		request(`{"role":"system","content":[{"type":"image"}]}`, ""):                                      "unsupported_parameter messages[0].content[0].type",
	} {
		_, err := Dialect{}.Decode([]byte(body), seal.Key{})
		var e *llm.Error
		code, param, _ := strings.Cut(want, " ")
		if !errors.As(err, &e) || e.Code != code || e.Param != param || !strings.Contains(e.Message, param) {
			t.Errorf("%s: got %+v, want %s", body, e, want)
		}
	}
}

// A seal of another key is no state.
func TestForeignSeal(t *testing.T) {
	state := string(llm.Quote(seal.NewKey([]byte("one")).Seal("openai.item", seal.Field{Name: "e", Value: []byte(`"E"`)})))
	body := request(`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":`+state+`}]}`, "")
	for secret, want := range map[string]int{"one": 1, "two": 0} {
		req, err := Dialect{}.Decode([]byte(body), seal.NewKey([]byte(secret)))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(req.Items[0].(*llm.Reasoning).Opaque); got != want {
			t.Errorf("%s: %d states, want %d", secret, got, want)
		}
	}
}

func TestCodePoints(t *testing.T) {
	for s, want := range map[string]int{`""`: 0, `"aé😀"`: 3, `"\u00e9\n\\\ud83d\ude00"`: 4, `"\ude"`: 1} {
		if got := codePoints(llm.Raw(s)); got != want {
			t.Errorf("%s: got %d, want %d", s, got, want)
		}
	}
}
