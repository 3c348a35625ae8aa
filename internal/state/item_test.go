package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// TestItems lays out input of every shape.
func TestItems(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"a string", `"Hi \"you\" \u00e9"`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi \"you\" \u00e9"}],"status":"completed"}`},
		{"nothing", ``, ``},
		{"an empty list", `[]`, ``},
		{"an easy message", `[{"role":"user","content":"Hi"}]`,
			`{"type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"Hi"}]}`},
		{"an easy message of the assistant", `[{"role":"assistant","content":"Hi","phase":"commentary"}]`,
			`{"type":"message","id":"msg_x_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}],"phase":"commentary"}`},
		{"null members", `[{"type":null,"id":null,"status":null,"role":"user","content":[]}]`,
			`{"type":"message","status":"completed","role":"user","content":[]}`},
		{"an ID of the client's own", `[{"type":"function_call","id":"mine","call_id":"c","name":"f","arguments":"{}"}]`,
			`{"type":"function_call","id":"mine","call_id":"c","name":"f","arguments":"{}"}`},
		{"IDs that are none", `[{"type":"reasoning","id":"","summary":[]},{"type":"reasoning","id":7,"summary":[]}]`,
			`{"type":"reasoning","summary":[]} {"type":"reasoning","summary":[]}`},
		{"a call and its result", `[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"y"}]`,
			`{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"} {"type":"custom_tool_call_output","call_id":"c","output":"y"}`},
		{"a type that is not known", `[{"type":"acme:thing","deep":{"a":[1e99,null]}}]`,
			`{"type":"acme:thing","deep":{"a":[1e99,null]}}`},
		{"spaces", " [ { \"type\" : \"message\" , \"id\" : \"m\" , \"status\" : \"completed\" , \"role\" : \"user\" , \"content\" : [ ] } ] ",
			`{ "type" : "message" , "id" : "m" , "status" : "completed" , "role" : "user" , "content" : [ ] }`},
	} {
		items, refs, err := readInput(llm.Raw(c.input), numbered("x"))
		var got []string
		for _, it := range items {
			got = append(got, string(it.json))
		}
		if err != nil || len(refs) > 0 || !sameJSON(t, strings.Join(got, " "), c.want) {
			t.Errorf("%s: got %s, %v, %v\nwant %s", c.name, strings.Join(got, " "), refs, err, c.want)
		}
		// What is kept is read as it was written.
		for _, it := range items {
			again, ref, err := readItem(it.json, 0, nil)
			if err != nil || ref != "" || string(again.json) != string(it.json) || again.id != "" && again.id != it.id || again.call != it.call || again.result != it.result {
				t.Errorf("%s: read again: %+v, %q, %v, want %+v", c.name, again, ref, err, it)
			}
		}
	}
}

// sameJSON compares values that follow each other, without the order of members.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	read := func(text string) (list []any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		for d.More() {
			var v any
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			list = append(list, v)
		}
		return list
	}
	return fmt.Sprint(read(a)) == fmt.Sprint(read(b))
}

func TestReferences(t *testing.T) {
	items, refs, err := readInput(llm.Raw(`[{"type":"item_reference","id":"a"},{"role":"user","content":"Hi"},{"id":"b"},{"type":null,"id":"c","role":null}]`), numbered("x"))
	if err != nil || len(items) != 4 || fmt.Sprint(refs) != "map[0:a 2:b 3:c]" {
		t.Errorf("got %d items, %v, %v", len(items), refs, err)
	}
}

// TestBadItems has what is no item: it is refused with the place of it, before
// anything is kept.
func TestBadItems(t *testing.T) {
	k, _, _ := keepers(t)
	for input, want := range map[string]string{
		`["Hi"]`:                                "invalid_type input[0]",
		`[{"role":"user","content":"x"},7]`:     "invalid_type input[1]",
		`[null]`:                                "invalid_type input[0]",
		`[[]]`:                                  "invalid_type input[0]",
		`[{"type":"item_reference"}]`:           "missing_required_parameter input[0].id",
		`[{"type":"item_reference","id":null}]`: "missing_required_parameter input[0].id",
		`[{"type":7,"role":"user"}]`:            "invalid_type input[0].type",
		`[{"role":"user","id":"` + strings.Repeat("i", 600) + `"}]`:       "string_above_max_length input[0].id",
		`[{"id":"` + strings.Repeat("r", 600) + `"}]`:                     " input",
		`[{"type":"item_reference","id":"none"}]`:                         " input",
		`[{"role":"user","id":"` + strings.Repeat("i", longestID) + `"}]`: "",
	} {
		turn, err := k.Open(t.Context(), owner, "bad", ask("", input), nil)
		got := ""
		if err != nil {
			e := llm.AsError(err)
			got = e.Code + " " + e.Param
		} else {
			turn.Close(t.Context())
		}
		if got != want {
			t.Errorf("%.60s: got %q (%v), want %q", input, got, err, want)
		}
	}
	body := func(items string) []byte { return []byte(`{"items":` + items + `}`) }
	conversation := newConversation(t, k)
	for items, want := range map[string]string{
		`[{"id":"x"}]`: "invalid_value",
		`[7]`:          "invalid_type",
		`[{"role":"user","id":"` + strings.Repeat("i", 600) + `"}]`:          "string_above_max_length",
		`[` + strings.Repeat(`{"role":"user"},`, maxAdded) + `{"role":"u"}]`: "array_above_max_length",
		`[]`:   "missing_required_parameter",
		`null`: "missing_required_parameter",
		`{}`:   "invalid_type",
	} {
		if got, err := k.AddItems(t.Context(), owner, conversation, "u", body(items)); code(err) != want {
			t.Errorf("%.60s: got %s, %v, want %s", items, got, err, want)
		}
	}
}

// TestOutputs has answers of an upstream with items of all kinds.
func TestOutputs(t *testing.T) {
	k, another, _ := keepers(t)
	long := strings.Repeat("o", 600)
	turn := open(t, k, "long", ask("", `"Hi"`), nil)
	commit(t, turn, []byte(`{"status":"incomplete","output":[{"type":"message","id":"`+long+`","role":"assistant","content":[{"type":"output_text","text":"there"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"too"}]}]}`))
	for _, k := range []*Keeper{k, another()} {
		sees(t, k, turn.ID, "Hi", "there", "too")
		if body, err := k.Response(t.Context(), owner, turn.ID); err != nil || !strings.Contains(string(body), `"id":"`+long+`"`) || !strings.Contains(string(body), `"id":"msg_long_out_1"`) {
			t.Errorf("%v: %s", err, body)
		}
	}
	for _, output := range []string{`[7]`, `[null]`, `[{"id":"x"}]`, `[{"type":"item_reference"}]`} {
		turn := open(t, k, "bad", ask("", `"Hi"`), nil)
		if err := turn.Commit(t.Context(), []byte(`{"status":"completed","output":`+output+`}`)); llm.AsError(err).Kind != llm.UpstreamInvalid {
			t.Errorf("%s: %v", output, err)
		}
		turn.Close(t.Context())
	}
	for _, response := range []string{`{"status":"completed"}`, `{"status":"completed","output":null}`, `{}`} {
		turn := open(t, k, "none"+fmt.Sprint(len(response)), ask("", `"Hi"`), nil)
		commit(t, turn, []byte(response))
		sees(t, k, turn.ID, "Hi")
	}
}

// TestCalls has calls and results that meet, and that do not.
func TestCalls(t *testing.T) {
	k, another, _ := keepers(t)
	called := open(t, k, "called", ask("", `"Hi"`), nil)
	commit(t, called, []byte(`{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}]}`))
	result := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	const both = `[{"type":"function_call_output","call_id":"c2","output":"x"},{"type":"function_call_output","call_id":"c1","output":"x"}]`
	answered := open(t, k, "answered", ask(called.ID, both), nil)
	commit(t, answered, answer("done"))
	for _, k := range []*Keeper{k, another()} {
		for _, c := range []struct{ previous, input, want string }{
			{called.ID, both, ""},
			{called.ID, `"Never mind"`, "No tool output found for function call c1."},
			{called.ID, `[` + result("c1") + `]`, "No tool output found for function call c2."},
			{called.ID, `[` + result("c1") + `,` + result("c2") + `,` + result("c3") + `]`, "No tool call found for function call output with call_id c3."},
			{called.ID, `[` + result("c1") + `,` + result("c2") + `,{"type":"function_call","call_id":"c3","name":"f","arguments":"{}"},` + result("c3") + `]`, ""},
			{answered.ID, `"On"`, ""},
			{answered.ID, `[` + result("c1") + `]`, ""}, // again: the upstream's own business
			{answered.ID, `[` + result("c9") + `]`, "No tool call found for function call output with call_id c9."},
		} {
			turn, err := k.Open(t.Context(), owner, "x", ask(c.previous, c.input), nil)
			got := ""
			if err != nil {
				got = llm.AsError(err).Message
			} else {
				turn.Close(t.Context())
			}
			if got != c.want {
				t.Errorf("%s after %s: got %q, want %q", c.input, c.previous, got, c.want)
			}
		}
	}
}

// FuzzReadInput lays out any list: each item comes out as an object with an ID
// and a type that reads the same again, or the list is refused.
func FuzzReadInput(f *testing.F) {
	for _, seed := range []string{
		`"Hi"`, `[]`, `[{"role":"user","content":"Hi"}]`, `[{"type":null,"role":"assistant","content":"x","status":null,"id":null}]`,
		`[{"type":"item_reference","id":"a"},{"id":"b"}]`, `[{"type":"function_call","call_id":"c"},{"type":"function_call_output","call_id":"c"}]`,
		`[{"type":"x","id":"msg_x_1"},{"role":"user","content":null}]`, `[{}]`, `[7,null]`, `[{"\u0074ype":"message","role":"user"}]`, `[{"type":"message","id":"\ud800"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if !json.Valid(input) || !jsonValue(input) {
			return
		}
		unique := "x" // as the ID of a call is
		for bytes.Contains(input, []byte(unique)) {
			unique += "x"
		}
		items, refs, err := readInput(llm.Raw(input), numbered(unique))
		if err != nil {
			if llm.AsError(err).Kind != llm.Invalid {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for at, it := range items {
			if ref, is := refs[at]; is {
				if ref == "" || it.json != nil {
					t.Fatalf("item %d: a reference to %q with %s", at, ref, it.json)
				}
				continue
			}
			if it.passing { // it goes as it is, and is not kept
				continue
			}
			var read struct{ ID string }
			if err := json.Unmarshal(it.shown(), &read); err != nil || it.id == "" {
				t.Fatalf("item %d: %v: %q in %s", at, err, it.id, it.json)
			}
			got, _ := jsonedit.Get(it.shown(), "id")
			if id, ok := jsonedit.Unquote(got); !ok || id != it.id {
				t.Fatalf("item %d: the ID is %s, and said to be %q", at, got, it.id)
			}
			if strings.Contains(it.id, unique) && seen[it.id] {
				t.Fatalf("item %d: the ID %q was made twice", at, it.id)
			}
			seen[it.id] = true
			again, ref, err := readItem(it.json, 0, nil)
			if err != nil || ref != "" || string(again.json) != string(it.json) {
				t.Fatalf("item %d: %s reads as %s, %q, %v", at, it.json, again.json, ref, err)
			}
		}
		want := 1
		if v := llm.Raw(input); !v.IsText() {
			want = len(slices.Collect(jsonedit.Elements(v)))
		}
		if len(items) != want {
			t.Fatalf("%d items of %d", len(items), want)
		}
	})
}

// jsonValue reports whether a request with that input would be read at all.
func jsonValue(input []byte) bool {
	var o jsonedit.Object
	doc := append(append([]byte(`{"input":`), input...), '}')
	if jsonedit.Scan(doc, jsonedit.NewFields("input"), &o) != nil {
		return false
	}
	v := llm.Raw(o.Value(0))
	return v.IsText() || v.Kind() == jsonedit.KindArray
}
