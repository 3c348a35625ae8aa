package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/dialecttest"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/seal"
)

// Whatever a client sends is refused or understood; what is understood can be
// said to an upstream, or is refused there.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(request(`{"role":"user","content":"x"}`, `"system":"S","thinking":{"type":"adaptive"}`)))
	f.Add([]byte(request(userSays(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"https://e.test"}}`), `"tools":[{"name":"f","input_schema":{"oneOf":[{"minimum":1}]},"strict":true}]`)))
	f.Add([]byte(request(`{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"`+seal.Key{}.Seal("google.call", seal.Field{Name: "c", Value: []byte(`"a"`)})+`"},{"type":"tool_use","id":"a","name":"f","input":{}}]},`+userSays(`{"type":"tool_result","tool_use_id":"a"}`), "")))
	f.Add([]byte(request(`{"role":"user","content":"x"},{"role":"assistant","content":[`+searchUse+`,`+searchResult+`]}`, "")))
	f.Fuzz(func(t *testing.T, body []byte) {
		var look dialect.Request
		if err := (Dialect{}).Inspect(body, &look); err != nil {
			return
		}
		req, err := Dialect{}.Decode(body, seal.Key{})
		if err != nil {
			if llm.AsError(err).Kind == llm.Internal {
				t.Fatal(err)
			}
			return
		}
		call, err := Upstream{}.Encode(req, &llm.Caps{Vendor: vendor, MidSystem: true})
		if err != nil {
			if llm.AsError(err).Kind == llm.Internal {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(call.Body) {
			t.Fatalf("%s becomes %s", body, call.Body)
		}
	})
}

// Whatever an upstream sends is told in order, and so that a client reads it.
func FuzzAnswers(f *testing.F) {
	f.Add(head("") + blockEvents(0, `{"type":"text","text":""}`, `{"type":"citations_delta","citation":`+location+`}`, `{"type":"text_delta","text":"a"}`) + tail("end_turn"))
	f.Add(head("") + blockEvents(0, `{"type":"thinking","thinking":"a","signature":"S"}`) + blockEvents(1, `{"type":"tool_use","id":"","name":"f","input":{"a":1}}`, `{"type":"input_json_delta","partial_json":"x"}`) + tail("tool_use"))
	f.Add(head(searchUse+","+searchResult) + tail("pause_turn"))
	f.Fuzz(func(t *testing.T, stream string) {
		events, err := read(t, stream, &llm.Caps{})
		if err == nil && len(events) > 0 {
			e := Dialect{}.Encode(&dialect.Ask{ID: "1"})
			var out []byte
			for _, event := range events {
				out = e.Event(out, event)
			}
			if out = e.End(out); !strings.HasSuffix(string(out), event("message_stop", "")) {
				t.Fatalf("%q becomes %q", stream, out)
			}
			if body := (Dialect{}).AppendAnswer(nil, fold(events), &dialect.Ask{ID: "1"}); !json.Valid(body) {
				t.Fatalf("%q becomes %q", stream, body)
			}
		}
		whole, err := Upstream{}.Answers(nil, &llm.Caps{}).Whole(nil, []byte(stream))
		if err != nil {
			return
		}
		if err := dialecttest.Check(whole, true); err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
	})
}
